/* SPDX-License-Identifier: Apache-2.0 */
/* queue_budget.c - a bucket whose level moves in a straight line between two changes, to the last unit. */
#include "core/sched/queue_budget.h"

#include "core/sched/wide.h"

void bh_budget_init(struct bh_budget *b, uint64_t size, uint64_t period_ms, uint64_t now_ms)
{
    if (size != BH_BUDGET_ANY && size > BH_BUDGET_MAX)
        size = BH_BUDGET_MAX;
    *b = (struct bh_budget){.size = size, .period_ms = period_ms, .level = size, .at_ms = now_ms};
}

/* What came in; the part of a unit is carried on, so that many small steps give what one gives. */
static bh_u128 came_in(struct bh_budget *b, uint64_t dt_ms)
{
    if (!b->period_ms)
        return 0;
    const uint64_t periods = dt_ms / b->period_ms;
    const bh_u128 n = bh_wide_mul(b->size, dt_ms % b->period_ms) + b->carry;
    return bh_wide_mul(b->size, periods) + bh_wide_div(n, b->period_ms, &b->carry);
}

void bh_budget_settle(struct bh_budget *b, uint64_t now_ms)
{
    if (now_ms <= b->at_ms)
        return;
    const uint64_t dt_ms = now_ms - b->at_ms;
    b->at_ms = now_ms;
    if (b->size == BH_BUDGET_ANY)
        return;
    const bh_u128 up = b->level + came_in(b, dt_ms), down = bh_wide_mul(b->rate_milli, dt_ms);
    const bh_u128 level = up > down ? up - down : 0;
    if (level >= b->size || up < down)
        b->carry = 0; /* what spills over is gone, whole and part; so is what was owed */
    b->level = level < b->size ? (uint64_t)level : b->size;
}

void bh_budget_faster(struct bh_budget *b, uint64_t now_ms, uint64_t more_milli)
{
    bh_budget_settle(b, now_ms);
    b->rate_milli += more_milli;
}

void bh_budget_slower(struct bh_budget *b, uint64_t now_ms, uint64_t less_milli)
{
    bh_budget_settle(b, now_ms);
    b->rate_milli -= less_milli < b->rate_milli ? less_milli : b->rate_milli;
}

bool bh_budget_lasts(const struct bh_budget *b, uint64_t now_ms, uint64_t more_milli, uint64_t horizon_ms)
{
    struct bh_budget then = *b;
    if (b->size == BH_BUDGET_ANY)
        return true;
    bh_budget_settle(&then, now_ms);
    return then.level && then.level >= bh_wide_mul(then.rate_milli + more_milli, horizon_ms);
}
