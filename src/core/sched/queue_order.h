/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_order.h - who is served next, and which key decided.
 *
 * Between two queues below one parent, each with the work it would start next:
 *
 *   1 the one that stays within its entitlement with that work
 *   2 the higher band of priority, as far as budgets carry it; only work of queues by priority has one
 *   3 the closer deadline, where one is critical; only inside the entitlements of its own queue and of those
 *     above it up to here, so that a deadline takes nothing from others
 *   4 the queue of higher priority, then the smaller dominant share with that work for its weight (moved by
 *     past usage), then the smaller one without, then the queue created first
 *
 * Between two pieces of work of one queue: 2 and 3, then their own priority, the Fair Tree rank of their
 * users, who asked first, the id.
 *
 * To find the next in a tree, take the best child by its best work, recursively: bh_turn_compare() of
 * siblings' best is a total order at each level. (Any two pieces of work can be compared, which tells who is
 * ahead and why; but such pairs taken across a whole tree need not be transitive, because the share of a team
 * depends on which of its jobs stands for it.)
 */
#ifndef BH_CORE_SCHED_QUEUE_ORDER_H
#define BH_CORE_SCHED_QUEUE_ORDER_H

#include "core/sched/queue.h"

#define BH_TURN_NO_DEADLINE UINT64_MAX

struct bh_turn {
    uint32_t queue;
    const struct bh_resources *amount;
    enum bh_priority band; /* from bh_queue_band() */
    uint64_t deadline_ms, runtime_ms;
    int32_t priority;   /* in its queue, higher first */
    uint32_t user_rank; /* Fair Tree, higher first */
    uint64_t submit_ms;
    uint64_t id;
};

enum bh_turn_key {
    BH_TURN_SAME,
    BH_TURN_ENTITLED,
    BH_TURN_BAND,
    BH_TURN_DEADLINE,
    BH_TURN_QUEUE_PRIORITY,
    BH_TURN_SHARE,
    BH_TURN_SHARE_NOW,
    BH_TURN_QUEUE,
    BH_TURN_PRIORITY,
    BH_TURN_USER,
    BH_TURN_SUBMIT,
    BH_TURN_ID,
    BH_TURN_KEYS,
};
const char *bh_turn_key_text(enum bh_turn_key key);

/* Negative: a goes before b. Decided between the queues where their paths part, or in the queue of both. */
int bh_turn_compare(const struct bh_queues *t, const struct bh_turn *a, const struct bh_turn *b,
                    uint64_t now_ms, enum bh_turn_key *ret_key);

/*
 * The same in parts, for one who is compared with very many: a side is a piece of work and the queue of its path where
 * the two paths part (bh_queue_fork). bh_turn_ready() works out what does not depend on the other side; it holds until
 * an amount of the queue changes.
 */
struct bh_turn_side {
    const struct bh_queue *queue, *leaf;
    const struct bh_turn *turn;
    bool ready, entitled;
    struct bh_ratio share;
};
void bh_turn_side(const struct bh_queues *t, const struct bh_turn *turn, uint32_t queue,
                  struct bh_turn_side *ret);
void bh_turn_ready(const struct bh_queues *t, struct bh_turn_side *s);
int bh_turn_sides(const struct bh_queues *t, const struct bh_turn_side *a, const struct bh_turn_side *b,
                  uint64_t now_ms, enum bh_turn_key *ret_key);

/* The largest of a queue's parts of the fleet, of the resources that are divided. more may be NULL. */
struct bh_ratio bh_queue_dominant(const struct bh_queues *t, const struct bh_queue *q,
                                  const struct bh_resources *more);
/*
 * What it has over what it should have, in the resource where that is most; infinite where it should have
 * nothing.
 */
struct bh_ratio bh_queue_saturation(const struct bh_queues *t, const struct bh_queue *q);

#endif
