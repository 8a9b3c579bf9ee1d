/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owed.h - records of what has happened whether or not the log could be written: somebody came in, or was turned away.
 *
 * What the daemon does is in the log together with it or not at all. What others did cannot be undone, so its record is kept
 * here until a commit with it succeeded, and every transaction of a command writes what is kept first: who cannot be seen to have
 * come in changes nothing. A record that comes late says so. There is a most of them; past it they are counted, and the count
 * is a record itself.
 */
#ifndef BH_NODE_OWED_H
#define BH_NODE_OWED_H

#include "base/arena.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "store/audit.h"

enum { BH_OWED_MOST = 4096, BH_OWED_LATE_MS = 1000 };

struct bh_owed_row {
    struct bh_audit_event e;
    struct bh_arena arena; /* its texts */
    uint64_t at_ms;
    bool written; /* in the transaction that is open */
};

struct bh_owed { /* zeroed: nothing */
    BH_VEC(struct bh_owed_row) rows;
    uint64_t past;         /* so many more, of which nothing else is known */
    uint64_t past_written; /* ... of these, in the transaction that is open */
    bool said;             /* that there is something, since the log last took anything */
    uint64_t unsaid;       /* ... and so many more */
};

void bh_owed_fini(struct bh_owed *o);
/* Takes a copy. False: there are too many, and it is counted. */
bool bh_owed_add(struct bh_owed *o, const struct bh_audit_event *e, uint64_t now_ms);
bool bh_owed_any(const struct bh_owed *o);
bool bh_owed_has_room(const struct bh_owed *o);
/* Somebody asks for something: is a record of it to be added? Once for each; past the most of them each is counted once, and
 * recorded when there is room again. */
bool bh_owed_meets(const struct bh_owed *o, struct bh_idmap *met, uint64_t key);
/* Is it to be said that something is not recorded yet? Once for all of them until the log takes something; the others are counted. */
bool bh_owed_is_to_say(struct bh_owed *o);
/* How many were not said until the log took them; then it begins anew. */
uint64_t bh_owed_unsaid(struct bh_owed *o);
/* All that are not in it yet, into the transaction that is open. On failure that one is undone (audit.h). */
int bh_owed_write(struct bh_owed *o, struct bh_audit *audit, uint64_t now_ms, struct bh_err *err) BH_MUST_USE;
/* That transaction is over: durable, or undone. */
void bh_owed_settle(struct bh_owed *o, bool committed);

#endif
