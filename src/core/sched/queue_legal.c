/* SPDX-License-Identifier: Apache-2.0 */
/* queue_legal.c - may this start, what stands in the way, and which priority counts. */
#include "core/sched/queue_inside.h"

static const char *const texts[BH_QUEUE_WHYS] = {
    [BH_QUEUE_FREE] = "nothing is in the way",
    [BH_QUEUE_LIMIT] = "over the queue's limit",
    [BH_QUEUE_HARD] = "over the quota of a hard partition",
    [BH_QUEUE_SHARE_MAX] = "over the largest share of the fleet",
    [BH_QUEUE_TOTAL] = "more than the fleet has",
    [BH_QUEUE_KEPT] = "the rest is kept for guarantees",
    [BH_QUEUE_FIRM] = "over the entitlement, and not interruptible",
    [BH_RECLAIM_OVER] = "the taker would be over its fair share",
    [BH_RECLAIM_SATURATED] = "the taker would be more saturated than the victim's side",
    [BH_RECLAIM_WITHIN] = "the victim's queue is within its fair share",
    [BH_RECLAIM_GUARANTEE] = "the victim is inside a guarantee",
    [BH_RECLAIM_FIRM] = "the victim is not interruptible",
    [BH_RECLAIM_SERVES] = "the victim serves under an SLO",
    [BH_RECLAIM_PRIORITY] = "the victim is not of lower priority",
};

const char *bh_queue_why_text(enum bh_queue_why why)
{
    return texts[why];
}

/* Which of the bounds that make up the ceiling is the one that binds. */
static enum bh_queue_why binding(const struct bh_queues *t, const struct bh_queue *q, unsigned r)
{
    if (q == t->at.at)
        return BH_QUEUE_TOTAL;
    if (q->ceiling.at[r] == q->config.limit.at[r])
        return BH_QUEUE_LIMIT;
    if (q->config.model == BH_QUOTA_HARD && q->ceiling.at[r] == q->entitled.at[r])
        return BH_QUEUE_HARD;
    return BH_QUEUE_SHARE_MAX;
}

/*
 * One resource of one queue; *rise is by how much what the child holds goes up, and becomes that of the
 * queue.
 */
static enum bh_queue_why judge(const struct bh_queues *t, const struct bh_queue *q, const struct bh_charge *c,
                               unsigned r, uint64_t *rise)
{
    const uint64_t asked = c->amount.at[r], used = q->used.at[r] + asked;
    const uint64_t held = bh_most(q->kept.at[r], bh_queue_leaf(q) ? used : q->held_below.at[r] + *rise);
    *rise = held - q->held.at[r];
    if (used > q->ceiling.at[r])
        return binding(t, q, r);
    if (*rise && held > q->ceiling.at[r])
        return BH_QUEUE_KEPT;
    if (c->firm && q->entitled.at[r] != BH_AMOUNT_ANY && q->used_firm.at[r] + asked > q->entitled.at[r])
        return BH_QUEUE_FIRM;
    return BH_QUEUE_FREE;
}

bool bh_queue_may_start(const struct bh_queues *t, const struct bh_charge *c, struct bh_queue_reason *ret)
{
    uint64_t rise[BH_RES_COUNT] = {0};
    for (const struct bh_queue *q = &t->at.at[c->queue];; q = &t->at.at[q->parent]) {
        BH_EACH_RES(r)
        {
            if (!c->amount.at[r])
                continue;
            const enum bh_queue_why why = judge(t, q, c, r, &rise[r]);
            if (why == BH_QUEUE_FREE)
                continue;
            *ret = (struct bh_queue_reason){
                .why = why,
                .queue = (uint32_t)(q - t->at.at),
                .res = (enum bh_res)r,
                .used = why == BH_QUEUE_FIRM ? q->used_firm.at[r] : q->used.at[r],
                .asked = c->amount.at[r],
                .bound = why == BH_QUEUE_FIRM ? q->entitled.at[r] : q->ceiling.at[r],
                .kept = q->held.at[r] - bh_least(q->held.at[r], q->used.at[r]),
            };
            return false;
        }
        if (!q->depth)
            break;
    }
    *ret = (struct bh_queue_reason){.why = BH_QUEUE_FREE, .queue = BH_QUEUE_NONE};
    return true;
}

bool bh_queue_within(const struct bh_queue *q, const struct bh_resources *more)
{
    BH_EACH_RES(r)
    {
        if (more->at[r] && q->entitled.at[r] != BH_AMOUNT_ANY &&
            q->used.at[r] + more->at[r] > q->entitled.at[r])
            return false;
    }
    return true;
}

uint64_t bh_queue_stranded(const struct bh_queue *q, enum bh_res res)
{
    return q->kept.at[res] - bh_least(q->kept.at[res], q->used.at[res]);
}

enum bh_priority bh_queue_band(const struct bh_queues *t, uint32_t queue, enum bh_priority asked,
                               uint64_t gpu_milli, uint64_t now_ms, uint32_t *ret_queue)
{
    enum bh_priority band = asked;
    *ret_queue = BH_QUEUE_NONE;
    for (uint32_t i = queue; band > BH_PRIORITY_NORMAL; i = t->at.at[i].parent) {
        const struct bh_queue *q = &t->at.at[i];
        const bool lasts = bh_budget_lasts(&q->budget, now_ms, gpu_milli, t->config.horizon_ms);
        const enum bh_priority most = lasts ? q->config.band_max : BH_PRIORITY_NORMAL;
        if (most < band) {
            band = most > BH_PRIORITY_NORMAL ? most : BH_PRIORITY_NORMAL;
            *ret_queue = i;
        }
        if (!q->depth)
            break;
    }
    return band;
}

void bh_queue_fork(const struct bh_queues *t, uint32_t *a, uint32_t *b)
{
    const struct bh_queue *at = t->at.at;
    while (*a != *b && (at[*a].depth != at[*b].depth || at[*a].parent != at[*b].parent)) {
        const uint32_t da = at[*a].depth, db = at[*b].depth;
        if (da >= db)
            *a = at[*a].parent;
        if (db >= da)
            *b = at[*b].parent;
    }
}
