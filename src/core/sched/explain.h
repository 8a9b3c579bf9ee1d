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
    BH_WAIT_WITHHELD,      /* enough are idle, and something refuses it there: withheld, hinder */
    BH_WAIT_RESERVED,      /* there is room, and it is kept for another: reserved_for, until_ms */
    BH_WAIT_VICTIMS,       /* those who could go for it have not run for their minimum yet: until_ms */
    BH_WAIT_LEAVING,       /* it has its place; those who had it are leaving */
    BH_WAITS
};
extern const char *const bh_wait_names[BH_WAITS]; /* one word each */

/* Why GPUs that are idle are not for it. */
enum bh_hinder {
    BH_HINDER_NOT,
    BH_HINDER_TRUST,      /* beside another trust domain, and one of the two shares nothing */
    BH_HINDER_KINDS,      /* divided in another way, or beside a kind of work that is to be apart from it */
    BH_HINDER_CPU,        /* no processors left there for one more member */
    BH_HINDER_MEMORY,     /* no host memory */
    BH_HINDER_GPU_MEMORY, /* of shares */
    BH_HINDER_HOLDS,      /* the node takes so many pieces of work and no more */
    BH_HINDER_PARTS,      /* its members hinder each other */
    BH_HINDERS
};
extern const char *const bh_hinder_names[BH_HINDERS];

enum { BH_HOLDERS_MAX = 8 };
#define BH_LEVEL_NODE ((uint8_t)(BH_LEVELS + 1)) /* of a group: one node */
#define BH_LEVEL_GPU  ((uint8_t)(BH_LEVELS + 2)) /* ... one GPU; the node that has it is named */

struct bh_holder {
    uint64_t job, milli;
    uint64_t end_ms; /* BH_NEVER_MS: not known */
    uint64_t part;   /* WITHHELD for processors or memory: what it has of that in the place */
    uint32_t queue;
};

struct bh_verdict {
    enum bh_wait tier;
    struct bh_queue_reason
        quota;     /* LIMIT, FIRM; of ROOM and SHAPE: why nobody goes for it, or BH_QUEUE_FREE */
    uint32_t role; /* MISCONFIGURED: whose request */
    /*
     * Its turn, whatever the tier: how many are looked at before it (all of its own kind in its queue, the first of each
     * other kind), the last of these in the queue nearest to its own, and what decides between the two.
     */
    uint32_t ahead;
    uint64_t next_job; /* 0: it is the first */
    enum bh_turn_key key;
    struct bh_ratio share,
        next_share; /* dominant shares of the two queues where their paths part, with the job */
    /*
     * GPU thousandths it needs; that are idle and that it could have; the most of these in one place. SHAPE: group is less
     * than need. In a domain only what would be taken counts: whole members, whole slices.
     */
    uint64_t need, free, group;
    bool parked;     /* it was paused or suspended: only where it was then is counted */
    uint8_t level;   /* of that place: enum bh_level, BH_LEVEL_NODE or BH_LEVEL_GPU */
    uint32_t domain; /* or node */
    /* Idle where it could be, and not for it; what mostly refuses it, and where that is most; amounts of one member. */
    uint64_t withheld;
    enum bh_hinder hinder;
    uint32_t hinder_node;                     /* or BH_NONE */
    uint64_t hinder_need, hinder_free;        /* CPU: thousandths; MEMORY, GPU_MEMORY: MiB */
    uint64_t reserved_for;                    /* 0: not known */
    uint64_t until_ms;                        /* BH_NEVER_MS: not known */
    struct bh_holder holders[BH_HOLDERS_MAX]; /* of what it waits for; those that have most */
    uint32_t n_holders, n_more;               /* n_more: others besides */
    uint64_t more_milli;
};

/* False: there is no such job. reserve: NULL where there is none. */
bool bh_explain(const struct bh_sched *s, const struct bh_reserve *reserve, uint64_t job, uint64_t now_ms,
                struct bh_verdict *ret);

/* ---- explain_room.c ---- */

/* need to hinder_free. */
void bh_explain_room(const struct bh_sched *s, const struct bh_gang *g, struct bh_verdict *v);
/* ROOM, SHAPE or WITHHELD, by these numbers, of a job that found no place. */
enum bh_wait bh_explain_tier(struct bh_verdict *v);

#endif
