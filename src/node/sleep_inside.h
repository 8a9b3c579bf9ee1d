/* SPDX-License-Identifier: Apache-2.0 */
/* sleep_inside.h - what orders (sleep.c) and looks (sleep_idle.c) share. For those two only. */
#ifndef BH_NODE_SLEEP_INSIDE_H
#define BH_NODE_SLEEP_INSIDE_H

#include "node/daemon.h"

/* A note: its memory may be off the card. Written before it goes, and gone when it is back. */
#define BH_SLEEP_NOTE "sleep/"

struct bh_sleep_task {
    struct bh_daemon *of;
    uint64_t lease, ticket; /* ticket 0: nobody waits for an answer */
    enum bh_sleep_what what;
    bool ordered; /* by somebody; else the daemon does it by itself */
    bool again;   /* it was begun before: the note of it is from then */
    struct bh_worker worker;
    sd_event_source *source;
};

/* `L17`, as the governor knows it. */
const char *bh_sleep_name(uint64_t lease, char text[24]);
bool bh_sleep_is_active(const struct bh_life *run); /* NULL: no */
bool bh_sleep_is_under_way(const struct bh_daemon *d, uint64_t lease);
struct bh_sleep_idle *bh_sleep_idle_of(struct bh_daemon *d, uint64_t lease); /* or NULL */
/* ret "": there is no such note. */
int bh_sleep_read_note(struct bh_daemon *d, const char *kind, uint64_t lease, char ret[32],
                       struct bh_err *err) BH_MUST_USE;

/* In a process of its own; what is to be noted of it was. */
int bh_sleep_begin(struct bh_daemon *d, const struct bh_sleep_task *what, struct bh_err *err) BH_MUST_USE;
/* What nobody ordered: written first. */
void bh_sleep_begin_alone(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what);
/* Orders of an earlier daemon, or of this one where the governor did not answer. */
void bh_sleep_repeat(struct bh_daemon *d);
/* Notes of leases that are over go. */
void bh_sleep_sweep(struct bh_daemon *d);

#endif
