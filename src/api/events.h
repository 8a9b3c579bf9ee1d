/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - what changed lately, for those who listen: a ring, and each listener's place in it.
 *
 * An event names what changed and not how: whoever may see it asks for it then. Ids are `BOOT-N`: after a restart, or once the
 * ring went past a listener that comes back, it is told `reset`, asks for everything once, and goes on from there. Pure.
 */
#ifndef BH_API_EVENTS_H
#define BH_API_EVENTS_H

#include "api/api.h"
#include "base/buf.h"

enum { BH_EVENT_TENANT = 64, BH_EVENT_STATE = 24 };

struct bh_event {
    uint64_t id;                  /* of what changed */
    uint8_t kind;                 /* enum bh_api_kind */
    char tenant[BH_EVENT_TENANT]; /* "": nobody's */
    char state[BH_EVENT_STATE];
};

struct bh_events {
    struct bh_event *ring;
    uint32_t size;
    uint64_t boot; /* tells this run of the daemon from others */
    uint64_t next; /* number of the next event; the first is 1 */
};

void bh_events_init(struct bh_events *e, uint32_t size, uint64_t boot);
void bh_events_fini(struct bh_events *e);
void bh_events_add(struct bh_events *e, enum bh_api_kind kind, uint64_t id, const char *tenant,
                   const char *state);

/* Where a listener is: the number of the event it gets next. */
struct bh_cursor {
    uint64_t next;
    bool reset; /* is told so first */
};
/* last_id NULL: from now on. What is no id of ours counts as one that the ring went past. */
struct bh_cursor bh_cursor_at(const struct bh_events *e, const char *last_id);
/* Did the ring go past it? */
bool bh_cursor_is_lost(const struct bh_events *e, const struct bh_cursor *c);
/*
 * Appends what comes next and may be seen by the caller, as far as it fits, and moves the cursor. False: nothing was
 * appended, the listener is up to date.
 */
bool bh_cursor_read(const struct bh_events *e, struct bh_cursor *c, const struct bh_api_caller *by,
                    struct bh_buf *out, size_t max);

#endif
