/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_share.c - how much each queue should have now: level by level from the root, each resource by itself.
 *
 * What a queue has is divided among its children in three steps. First what is kept for each, wanted or not.
 * Then what each is entitled to, as far as it wants it. Then the rest, queues of higher priority first, among
 * those of one priority by weight: each round gives everybody its part, those who want less take only that,
 * and what they leave goes into the next round (KAI's division). With history a weight w of a sum W counts as
 *
 *     w + k (w - past * W),  not below 0
 *
 * where past is the queue's part of the fleet's time lately: who had more than its part gets less now. The
 * last few units go one by one to those whom rounding cost most. Where a step has less than it should give,
 * it is divided in proportion: by what is kept, by what is entitled.
 *
 * Only queues whose children's wants changed are divided anew, and below them those whose share came out
 * different.
 */
#include "core/sched/queue_inside.h"

#include <string.h>

/* Order of the last units: who lost most by rounding, then who was created first. */
static bool before(const struct bh_share_item *a, const struct bh_share_item *b)
{
    return a->part != b->part ? a->part > b->part : a->queue < b->queue;
}

static void sift(struct bh_share_item *at, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(&at[child], &at[child + 1]))
            child++;
        if (!before(&at[i], &at[child]))
            return;
        const struct bh_share_item swap = at[i];
        at[i] = at[child];
        at[child] = swap;
    }
}

/* In place and without memory; the order is total, so that it needs not be stable. */
static void sort_items(struct bh_share_item *at, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(at, i, n);
    for (size_t left = n; left-- > 1;) {
        const struct bh_share_item swap = at[0];
        at[0] = at[left];
        at[left] = swap;
        sift(at, 0, left);
    }
}

static void take(struct bh_share_item *item, uint64_t amount, uint64_t *rest)
{
    item->got += amount;
    item->want -= amount;
    *rest -= amount;
}

/* What rounding left over, a quantum at a time; one for each is always enough. */
static void hand_out(struct bh_share_item *at, size_t n, uint64_t *rest, uint64_t quantum)
{
    sort_items(at, n);
    for (size_t i = 0; i < n && *rest; i++)
        if (at[i].pull && at[i].want)
            take(&at[i], bh_least(bh_least(quantum, *rest), at[i].want), rest);
}

enum pull {
    BY_CLAIM,   /* pull is what was wanted at first */
    BY_HISTORY, /* weight and past usage */
    BY_WEIGHT,
};

static uint64_t pull_of(const struct bh_queues *t, uint32_t queue, uint64_t weights, uint64_t k)
{
    const struct bh_queue *q = &t->at.at[queue];
    const uint64_t more = q->config.weight * (BH_HISTORY_ONE + k);
    const uint64_t less = k ? bh_wide_scale(weights * k, q->past, UINT64_C(1) << 32) : 0;
    return q->config.weight && more > less ? more - less : 0;
}

/* The pull of everybody who still wants something, and their sum. */
static uint64_t weigh(const struct bh_queues *t, struct bh_share_item *at, size_t n, enum pull by)
{
    uint64_t weights = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        weights += at[i].want ? t->at.at[at[i].queue].config.weight : 0;
    for (size_t i = 0; i < n; i++) {
        if (by != BY_CLAIM)
            at[i].pull =
                at[i].want ? pull_of(t, at[i].queue, weights, by == BY_HISTORY ? t->config.history_k : 0) : 0;
        sum += at[i].want ? at[i].pull : 0;
    }
    return sum;
}

/* One round: everybody its part of what there is now. Says whether anybody got all it wanted. */
static bool give_round(struct bh_share_item *at, size_t n, uint64_t sum, uint64_t *rest, uint64_t quantum)
{
    const uint64_t round = *rest;
    bool satisfied = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t part;
        at[i].part = 0;
        if (!at[i].want || !at[i].pull)
            continue;
        const uint64_t give = bh_wide_div(bh_wide_mul(round, at[i].pull), sum, &part);
        if (at[i].want <= give) {
            satisfied = true;
            take(&at[i], at[i].want, rest);
        } else {
            at[i].part = bh_wide_mul(give % quantum, sum) + part;
            take(&at[i], give - give % quantum, rest);
        }
    }
    return satisfied;
}

/* Out of *rest, until nobody wants more or nothing is left. */
static void divide(const struct bh_queues *t, struct bh_share_item *at, size_t n, uint64_t *rest,
                   uint64_t quantum, enum pull by)
{
    uint64_t sum;
    while (*rest && (sum = weigh(t, at, n, by)) && give_round(at, n, sum, rest, quantum))
        continue;
    if (*rest)
        hand_out(at, n, rest, quantum);
}

/* What was asked of each, as far as it goes. */
static void divide_claims(const struct bh_queues *t, struct bh_share_item *at, size_t n, uint64_t *rest)
{
    for (size_t i = 0; i < n; i++)
        at[i].pull = at[i].want;
    divide(t, at, n, rest, 1, BY_CLAIM);
}

/* The highest priority below `under` of somebody who wants more than it has; false when there is none. */
static bool next_priority(const struct bh_queues *t, const struct bh_share_item *at, size_t n, unsigned r,
                          int64_t under, int64_t *ret)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        const struct bh_queue *q = &t->at.at[at[i].queue];
        if (q->config.priority < under && q->wanted.at[r] > at[i].got &&
            (!found || q->config.priority > *ret)) {
            *ret = q->config.priority;
            found = true;
        }
    }
    return found;
}

static void divide_rest(const struct bh_queues *t, struct bh_share_item *at, size_t n, unsigned r,
                        uint64_t *rest)
{
    const uint64_t quantum = bh_most(t->config.quantum[r], 1);
    int64_t priority = INT64_MAX;
    while (*rest && next_priority(t, at, n, r, priority, &priority)) {
        for (size_t i = 0; i < n; i++) {
            const struct bh_queue *q = &t->at.at[at[i].queue];
            const uint64_t wanted = q->wanted.at[r];
            at[i].want = q->config.priority == priority && wanted > at[i].got ? wanted - at[i].got : 0;
        }
        divide(t, at, n, rest, quantum, BY_HISTORY);
        divide(t, at, n, rest, quantum, BY_WEIGHT); /* history moves shares; it leaves nothing idle */
    }
}

static void divide_resource(struct bh_queues *t, const struct bh_queue *parent, unsigned r)
{
    uint64_t rest = parent->fair.at[r];
    size_t n = 0;
    for (uint32_t i = parent->first_child; i != BH_QUEUE_NONE; i = t->at.at[i].next_sibling)
        t->items[n++] = (struct bh_share_item){.queue = i, .want = t->at.at[i].kept.at[r]};
    divide_claims(t, t->items, n, &rest);
    for (size_t i = 0; i < n; i++) {
        const struct bh_queue *q = &t->at.at[t->items[i].queue];
        const uint64_t due =
            q->entitled.at[r] == BH_AMOUNT_ANY ? 0 : bh_least(q->entitled.at[r], q->wanted.at[r]);
        t->items[i].want = due > t->items[i].got ? due - t->items[i].got : 0;
    }
    divide_claims(t, t->items, n, &rest);
    divide_rest(t, t->items, n, r, &rest);
    for (size_t i = 0; i < n; i++) {
        struct bh_queue *q = &t->at.at[t->items[i].queue];
        if (q->fair.at[r] != t->items[i].got && !bh_queue_leaf(q))
            t->dirty[t->items[i].queue] = 1;
        q->fair.at[r] = t->items[i].got;
    }
}

/* Everybody's part of the fleet's time lately. */
static void sample(struct bh_queues *t, uint64_t now_ms)
{
    const uint64_t half_life_ms = t->config.half_life_ms;
    uint64_t all = bh_usage_level(t->total.at[BH_RES_GPU], half_life_ms);
    if (!half_life_ms)
        all = bh_usage_at(&t->at.at[BH_QUEUE_ROOT].usage, 0, now_ms);
    for (size_t i = 0; i < t->at.n; i++) {
        struct bh_queue *q = &t->at.at[i];
        const uint64_t past =
            all ? bh_wide_scale(bh_usage_at(&q->usage, half_life_ms, now_ms), UINT64_C(1) << 32, all) : 0;
        q->past = bh_least(past, UINT64_C(1) << 33);
        t->dirty[i] |= !bh_queue_leaf(q);
    }
    t->sampled = true;
    t->sampled_ms = now_ms;
}

uint32_t bh_queues_refresh(struct bh_queues *t, uint64_t now_ms)
{
    uint32_t divided = 0;
    if (t->config.history_k && (!t->sampled || now_ms >= t->sampled_ms + t->config.sample_ms))
        sample(t, now_ms);
    t->at.at[BH_QUEUE_ROOT].fair = t->total;
    for (size_t i = 0; i < t->at.n; i++) { /* parents come first, so that one pass is enough */
        struct bh_queue *q = &t->at.at[i];
        if (!t->dirty[i])
            continue;
        t->dirty[i] = 0;
        if (bh_queue_leaf(q))
            continue;
        divided++;
        BH_EACH_RES(r) if (t->config.divided >> r & 1) divide_resource(t, q, r);
        for (uint32_t c = q->first_child; c != BH_QUEUE_NONE; c = t->at.at[c].next_sibling)
            t->at.at[c].pull = pull_of(t, c, q->weight_below, t->config.history_k);
    }
    return divided;
}
