/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reclaim.h - who goes, so that a job which is entitled to room gets it.
 *
 * Evict and refill. Those who could go are released, on the shelf only, in the order of reclaim_victim.c, until
 * the whole job fits; release is monotone, so the shortest beginning of that order is found by bisection. Then
 * the job is placed, and whoever can have its own place back beside it gets it back, the last in order first. Then
 * each one that is left is tried: if the job fits without it, it stays. What remains are the victims, and with any one
 * of them put back the job would not fit. If the queues agree (queue_reclaim.h) all of it happens at once, else
 * whoever they name is left out and it is tried again.
 *
 * That search is short. Where the first in order are spread over so many nodes that nothing fits, the nodes are
 * looked at one by one (reclaim_node.c). It is no search of all sets of victims: of those that exist on small fleets
 * it misses about one in a thousand (reclaim_test.c compares).
 *
 * Each victim goes by the cheapest rung that leaves the job its room: a share is paused if its memory is not
 * needed; suspended if its image fits into the memory of its host, and writing it costs less than to start again;
 * requeued; killed. What stays of it is still on the account of its queue.
 */
#ifndef BH_CORE_SCHED_RECLAIM_H
#define BH_CORE_SCHED_RECLAIM_H

#include "core/sched/sched_inside.h"

enum { BH_SEARCH_TRIES = 8 };

struct bh_search {
    struct bh_charge taker;
    int32_t priority;
    uint64_t models;
    const struct bh_shape *shape;
    uint32_t per_node; /* whole GPUs that it must find on one node; 0: not known, or one */
    uint32_t scope;    /* only below this queue: above, somebody has all that is his */
    bool others;       /* queues that have more than theirs */
    bool own;          /* the taker's own queue: lower priorities */
    bool entitled;     /* the taker stays within what it is entitled to */
    bool serves;
    bool pauses;       /* it needs no whole GPU: who is paused may make room for it */
    size_t at_elastic; /* where the search for elastic members is */
    uint32_t at_hold;
    struct {
        uint32_t job, hold;
    } left_out[BH_SEARCH_TRIES];
    uint32_t n_left_out;
    /* bh_search_next_node() */
    uint32_t looked, walk;
    bool walk_all;
};

/* Below which queue somebody must go so that the leaf may have so much more; BH_NONE: nobody there could. */
uint32_t bh_search_scope(const struct bh_sched *s, uint32_t leaf, const struct bh_resources *more);
/* Does anybody beside the leaf's path have too much? */
bool bh_search_any(const struct bh_sched *s, uint32_t leaf);
/* A new search: which queues could lose something. */
void bh_search_open(struct bh_sched *s, struct bh_search *f);
/* The next one who could go; hold BH_NONE: all of the job. False: there is none. */
bool bh_search_next(struct bh_sched *s, struct bh_search *f, uint32_t *ret_job, uint32_t *ret_hold);

/* May this one go in this search, as far as one alone can be judged? */
bool bh_search_takes(const struct bh_sched *s, const struct bh_search *f, uint32_t job, uint32_t hold);
/* The order within a queue; and its i-th, or BH_NONE. */
bool bh_victim_before(const struct bh_sched *s, uint32_t a, uint32_t b, bool pauses);
uint32_t bh_victim_at(struct bh_sched *s, uint32_t queue, uint32_t i, bool pauses);

/* ---- reclaim_node.c ---- */

/* The next node of those who could go; false: there is none, or enough were looked at. */
bool bh_search_next_node(struct bh_sched *s, struct bh_search *f, uint32_t *ret);
/* Lists who could go there (sched.here); how many members then find room there, and nobody is listed where none. */
uint32_t bh_search_here(struct bh_sched *s, const struct bh_search *f, uint32_t node);
/* Lists the first few of the taker's own queue: they leave it a part of its share. */
void bh_search_own_rest(struct bh_sched *s, const struct bh_search *f);

#endif
