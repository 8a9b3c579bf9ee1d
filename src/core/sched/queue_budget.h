/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_budget.h - high priority is paid for with GPU time, and there is only so much of it.
 *
 * A bucket: it holds at most a period's budget, fills evenly over the period, and what runs above normal
 * priority drains it. While it is empty such work counts as normal. In any span of time no more runs above
 * normal than the budget and what came in during the span, whatever is called high.
 */
#ifndef BH_CORE_SCHED_QUEUE_BUDGET_H
#define BH_CORE_SCHED_QUEUE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BH_BUDGET_ANY UINT64_MAX /* no bound */
#define BH_BUDGET_MAX (UINT64_C(1) << 62)

struct bh_budget {
    uint64_t size, period_ms; /* in millionths of a GPU second */
    uint64_t level;
    uint64_t carry; /* of what comes in, the part of a unit; in 1 / period_ms */
    uint64_t rate_milli;
    uint64_t at_ms;
};

/* Full at the beginning. A period of 0 never fills again. */
void bh_budget_init(struct bh_budget *b, uint64_t size, uint64_t period_ms, uint64_t now_ms);
void bh_budget_settle(struct bh_budget *b, uint64_t now_ms);
void bh_budget_faster(struct bh_budget *b, uint64_t now_ms, uint64_t more_milli);
void bh_budget_slower(struct bh_budget *b, uint64_t now_ms, uint64_t less_milli);
/* Enough for what drains it and this much more, for so long? */
bool bh_budget_lasts(const struct bh_budget *b, uint64_t now_ms, uint64_t more_milli, uint64_t horizon_ms);

#endif
