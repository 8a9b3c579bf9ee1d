/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - why a job waits: the one thing that stands in its way, its numbers, and who has what it waits for.
 *
 * Quick, and only looks. What would start it is for whatif_search.h; that tries things.
 */
#ifndef BH_CORE_SCHED_EXPLAIN_H
#define BH_CORE_SCHED_EXPLAIN_H

#include "core/sched/reserve.h"

/* From what nothing but a change of the job helps, to what time alone will do. */
enum bh_wait {
    BH_WAIT_NOT,           /* it does not wait */
    BH_WAIT_MISCONFIGURED, /* no node could ever take one of its members: model, features, pool, size */
    BH_WAIT_EXCEEDS,       /* even an empty fleet, as far as it is healthy, has no place for all of it */
    BH_WAIT_LIMIT,         /* over what its queue may have: quota */
    BH_WAIT_FIRM,          /* not interruptible, and over what its queue is entitled to: quota */
    BH_WAIT_TURN,          /* others of its kind come first, or it was not looked at yet: ahead */
    BH_WAIT_ROOM,          /* too few GPUs are free: free, need */
    BH_WAIT_SHAPE,         /* enough are free, and not together: group, at level */
    BH_WAIT_RESERVED,      /* there is room, and it is kept for another: reserved_for, until_ms */
    BH_WAIT_VICTIMS,       /* those who could go for it have not run for their minimum yet: until_ms */
    BH_WAIT_LEAVING,       /* it has its place; those who had it are leaving */
    BH_WAITS
};
extern const char *const bh_wait_names[BH_WAITS]; /* one word each */

enum { BH_HOLDERS_MAX = 8 };
#define BH_LEVEL_NODE ((uint8_t)(BH_LEVELS + 1)) /* of a group: one node */

struct bh_holder {
    uint64_t job, milli;
    uint64_t end_ms; /* BH_NEVER_MS: not known */
    uint32_t queue;
};

struct bh_verdict {
    enum bh_wait tier;
    struct bh_queue_reason
        quota;     /* LIMIT, FIRM; of ROOM and SHAPE: why nobody goes for it, or BH_QUEUE_FREE */
    uint32_t role; /* MISCONFIGURED: whose request */
    /*
     * Its turn, whatever the tier: how many are looked at before it (all of its own kind in its queue, the first of each
     * other kind), the one just before, and what decides between them.
     */
    uint32_t ahead;
    uint64_t next_job; /* 0: it is the first */
    enum bh_turn_key key;
    struct bh_ratio share,
        next_share; /* dominant shares of the two queues where their paths part, with the job */
    /* GPU thousandths it needs, that are free on nodes which could take it; the largest part of these in one place. */
    uint64_t need, free, group;
    uint8_t level;   /* of that place: enum bh_level or BH_LEVEL_NODE */
    uint32_t domain; /* or node */
    uint64_t reserved_for;
    uint64_t until_ms;                        /* BH_NEVER_MS: not known */
    struct bh_holder holders[BH_HOLDERS_MAX]; /* of what it waits for; those that have most */
    uint32_t n_holders, n_more;               /* n_more: others besides */
    uint64_t more_milli;
};

/* False: there is no such job. reserve: NULL where there is none. */
bool bh_explain(const struct bh_sched *s, const struct bh_reserve *reserve, uint64_t job, uint64_t now_ms,
                struct bh_verdict *ret);

#endif
