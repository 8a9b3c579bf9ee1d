/* SPDX-License-Identifier: Apache-2.0 */
/* queue_inside.h - what the rooms of the queue tree share, and nobody else needs. */
#ifndef BH_CORE_SCHED_QUEUE_INSIDE_H
#define BH_CORE_SCHED_QUEUE_INSIDE_H

#include "core/sched/queue.h"

#define BH_EACH_RES(r) for (unsigned r = 0; r < BH_RES_COUNT; r++)

static inline uint64_t bh_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t bh_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline bool bh_queue_leaf(const struct bh_queue *q)
{
    return q->first_child == BH_QUEUE_NONE;
}

/* One queue of those among which an amount is divided (queue_share.c). */
struct bh_share_item {
    uint32_t queue;
    uint64_t want, pull; /* still wanted; its weight in this round */
    uint64_t got;
    bh_u128 part; /* what rounding took in the last round */
};

/* What a judged reclaim changes, as it was (queue_reclaim.c). */
struct bh_queue_shadow {
    bool touched;
    struct bh_resources used, used_firm, held, held_below;
};

/* Amounts in use on the path, with what follows from them. Time and money are not touched. */
void bh_queue_move(struct bh_queues *t, const struct bh_charge *c, bool more);

#endif
