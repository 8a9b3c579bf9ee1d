/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_reclaim.c - the move is made on the account, looked at, and taken back.
 *
 * First as a whole, for what it does to the taker's path; then victim by victim, for what each queue had when
 * its turn came. Only amounts are moved (no time, no shares), and what they were is put back from a copy.
 */
#include "core/sched/queue_reclaim.h"

#include "core/sched/queue_inside.h"
#include "core/sched/queue_order.h"

#include <string.h>

static bool divided(const struct bh_queues *t, unsigned r)
{
    return t->config.divided >> r & 1;
}

static void touch_path(struct bh_queues *t, uint32_t queue)
{
    for (uint32_t i = queue;; i = t->at.at[i].parent) {
        const struct bh_queue *q = &t->at.at[i];
        if (t->shadow[i].touched)
            return;
        t->shadow[i] = (struct bh_queue_shadow){true, q->used, q->used_firm, q->held, q->held_below};
        t->touched[t->touched_n++] = i;
        if (!q->depth)
            return;
    }
}

static void put_back(struct bh_queues *t)
{
    for (size_t k = 0; k < t->touched_n; k++) {
        struct bh_queue *q = &t->at.at[t->touched[k]];
        const struct bh_queue_shadow *s = &t->shadow[t->touched[k]];
        q->used = s->used;
        q->used_firm = s->used_firm;
        q->held = s->held;
        q->held_below = s->held_below;
    }
}

static void forget(struct bh_queues *t)
{
    for (size_t k = 0; k < t->touched_n; k++)
        t->shadow[t->touched[k]].touched = false;
    t->touched_n = 0;
}

static bool refuse(const struct bh_queues *t, struct bh_queue_reason *ret, enum bh_queue_why why,
                   uint32_t queue, unsigned r, uint64_t asked, uint64_t bound)
{
    *ret = (struct bh_queue_reason){.why = why,
                                    .queue = queue,
                                    .res = (enum bh_res)r,
                                    .used = t->at.at[queue].used.at[r],
                                    .asked = asked,
                                    .bound = bound,
                                    .victim = UINT32_MAX};
    return false;
}

/* Rule a, with the whole move made: grown, and now above the fair share? */
static bool path_is_fair(const struct bh_queues *t, const struct bh_charge *taker,
                         struct bh_queue_reason *ret)
{
    for (uint32_t i = taker->queue;; i = t->at.at[i].parent) {
        const struct bh_queue *q = &t->at.at[i];
        BH_EACH_RES(r)
        {
            const uint64_t before = t->shadow[i].used.at[r];
            if (divided(t, r) && q->used.at[r] > before && q->used.at[r] > q->fair.at[r]) {
                refuse(t, ret, BH_RECLAIM_OVER, i, r, taker->amount.at[r], q->fair.at[r]);
                ret->used = before;
                return false;
            }
        }
        if (!q->depth)
            return true;
    }
}

/* With the whole move made: nothing on the path grew beyond its entitlement. */
static bool path_is_entitled(const struct bh_queues *t, uint32_t queue)
{
    for (uint32_t i = queue;; i = t->at.at[i].parent) {
        const struct bh_queue *q = &t->at.at[i];
        BH_EACH_RES(r)
        {
            if (divided(t, r) && q->entitled.at[r] != BH_AMOUNT_ANY &&
                q->used.at[r] > t->shadow[i].used.at[r] && q->used.at[r] > q->entitled.at[r])
                return false;
        }
        if (!q->depth)
            return true;
    }
}

static bool is_entitled(const struct bh_queue *q, const struct bh_charge *taker)
{
    BH_EACH_RES(r)
    {
        if (taker->amount.at[r] && q->used.at[r] > q->entitled.at[r])
            return false;
    }
    return true;
}

/* Rule d, with the whole move made. */
static bool side_is_fuller(const struct bh_queues *t, const struct bh_charge *taker, uint32_t victim_queue,
                           struct bh_queue_reason *ret)
{
    uint32_t x = taker->queue, y = victim_queue;
    bh_queue_fork(t, &x, &y);
    struct bh_ratio mine = bh_queue_saturation(t, &t->at.at[x]);
    mine.num *= t->config.margin_ppm;
    mine.den *= BH_SHARE_WHOLE;
    if (x == y || is_entitled(&t->at.at[x], taker) || bh_ratio_cmp(mine, (struct bh_ratio){1, 1}) <= 0 ||
        bh_ratio_cmp(mine, bh_queue_saturation(t, &t->at.at[y])) <= 0)
        return true;
    return refuse(t, ret, BH_RECLAIM_SATURATED, x, BH_RES_GPU, taker->amount.at[BH_RES_GPU],
                  t->at.at[x].fair.at[BH_RES_GPU]);
}

/*
 * Rule e, guarantees: with the whole move made, nothing on the victim's side fell into what is kept for it.
 */
static bool guarantees_stand(const struct bh_queues *t, const struct bh_charge *taker,
                             const struct bh_charge *victim, struct bh_queue_reason *ret)
{
    uint32_t x = taker->queue, y = victim->queue;
    bh_queue_fork(t, &x, &y);
    for (uint32_t i = victim->queue; x != y; i = t->at.at[i].parent) {
        const struct bh_queue *q = &t->at.at[i];
        BH_EACH_RES(r)
        {
            if (victim->amount.at[r] && q->used.at[r] < q->kept.at[r])
                return refuse(t, ret, BH_RECLAIM_GUARANTEE, i, r, victim->amount.at[r], q->kept.at[r]);
        }
        if (i == y)
            break;
    }
    return true;
}

static bool over(const struct bh_queues *t, const struct bh_queue *q, const struct bh_charge *taker,
                 const struct bh_charge *victim, bool entitled)
{
    BH_EACH_RES(r)
    {
        if (!divided(t, r) || !taker->amount.at[r] || !victim->amount.at[r])
            continue;
        if (q->used.at[r] > q->fair.at[r] ||
            (entitled && q->entitled.at[r] != BH_AMOUNT_ANY && q->used.at[r] > q->entitled.at[r]))
            return true;
    }
    return false;
}

/* Rules c, e and f for one victim, with those before it gone. */
static bool may_evict(const struct bh_queues *t, const struct bh_charge *taker, int32_t priority,
                      const struct bh_victim *v, bool entitled, struct bh_queue_reason *ret)
{
    const uint64_t asked = v->charge->amount.at[BH_RES_GPU];
    uint32_t x = taker->queue, y = v->charge->queue;
    if (v->charge->firm)
        return refuse(t, ret, BH_RECLAIM_FIRM, y, BH_RES_GPU, asked, 0);
    if (x == y)
        return (v->priority < priority && entitled) ||
               refuse(t, ret, BH_RECLAIM_PRIORITY, y, BH_RES_GPU, asked, 0);
    if (t->at.at[y].serves && !t->at.at[x].serves)
        return refuse(t, ret, BH_RECLAIM_SERVES, y, BH_RES_GPU, asked, 0);
    bh_queue_fork(t, &x, &y);
    for (uint32_t i = v->charge->queue;; i = t->at.at[i].parent) {
        if (!over(t, &t->at.at[i], taker, v->charge, entitled))
            return refuse(t, ret, BH_RECLAIM_WITHIN, i, BH_RES_GPU, asked, t->at.at[i].fair.at[BH_RES_GPU]);
        if (i == y)
            return true;
    }
}

/* The move as a whole. *ret_entitled: the taker's path stays within its entitlements. */
static bool judge_whole(struct bh_queues *t, const struct bh_charge *taker, const struct bh_victim *victims,
                        uint32_t n, bool *ret_entitled, struct bh_queue_reason *ret)
{
    for (uint32_t i = 0; i < n; i++)
        bh_queue_move(t, victims[i].charge, false);
    if (!bh_queue_may_start(t, taker, ret)) {
        ret->victim = UINT32_MAX;
        return false;
    }
    bh_queue_move(t, taker, true);
    *ret_entitled = path_is_entitled(t, taker->queue);
    if (!path_is_fair(t, taker, ret))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!guarantees_stand(t, taker, victims[i].charge, ret) ||
            !side_is_fuller(t, taker, victims[i].charge->queue, ret)) {
            ret->victim = i;
            return false;
        }
    return true;
}

static bool judge_each(struct bh_queues *t, const struct bh_charge *taker, int32_t priority,
                       const struct bh_victim *victims, uint32_t n, bool entitled,
                       struct bh_queue_reason *ret)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!may_evict(t, taker, priority, &victims[i], entitled, ret)) {
            ret->victim = i;
            return false;
        }
        bh_queue_move(t, victims[i].charge, false);
    }
    *ret = (struct bh_queue_reason){.why = BH_QUEUE_FREE, .queue = BH_QUEUE_NONE, .victim = UINT32_MAX};
    return true;
}

bool bh_queue_may_reclaim(struct bh_queues *t, const struct bh_charge *taker, int32_t priority,
                          const struct bh_victim *victims, uint32_t n, struct bh_queue_reason *ret)
{
    bool entitled, ok;
    touch_path(t, taker->queue);
    for (uint32_t i = 0; i < n; i++)
        touch_path(t, victims[i].charge->queue);
    ok = judge_whole(t, taker, victims, n, &entitled, ret);
    put_back(t);
    if (ok) {
        ok = judge_each(t, taker, priority, victims, n, entitled, ret);
        put_back(t);
    }
    forget(t);
    return ok;
}

void bh_queues_potential(const struct bh_queues *t, struct bh_potential *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < t->at.n; i++) {
        const struct bh_queue *q = &t->at.at[i];
        BH_EACH_RES(r)
        {
            if (!divided(t, r))
                continue;
            ret->over_fair += q->used.at[r] - bh_least(q->used.at[r], q->fair.at[r]);
            if (q->entitled.at[r] != BH_AMOUNT_ANY)
                ret->over_entitled += q->used.at[r] - bh_least(q->used.at[r], q->entitled.at[r]);
        }
    }
}

int bh_potential_cmp(const struct bh_potential *a, const struct bh_potential *b)
{
    return a->over_fair != b->over_fair ? bh_wide_cmp(a->over_fair, b->over_fair)
                                        : bh_wide_cmp(a->over_entitled, b->over_entitled);
}
