/* SPDX-License-Identifier: Apache-2.0 */
/* bill_hints.c - what a bill tells somebody who could change a quota. */
#include "report/bill.h"

#include "base/str.h"
#include "base/units.h"
#include "core/sched/wide.h"

#include <inttypes.h>

enum { LEAST_MS = 3600000, IDLE_PPM = 10000 };

static uint64_t had(const struct bh_bill *b, const char *tenant)
{
    for (size_t i = 0; i < b->lines.n; i++) {
        if (bh_str_eq(b->lines.at[i].tenant, tenant))
            return b->lines.at[i].milli_ms;
    }
    return 0;
}

/* On average over the time, against what is kept for it. */
static void say_reserved(const struct bh_bill *b, const struct bh_bill_quota *q, struct bh_arena *a,
                         bh_bill_sentences *ret)
{
    const uint64_t from_ms = b->all.first_ms > b->from_ms ? b->all.first_ms : b->from_ms;
    struct bh_unit_text reserved, mean;
    uint64_t rest;
    if (!b->all.first_ms || b->to_ms < from_ms + LEAST_MS || !q->guaranteed_milli ||
        q->guaranteed_milli == UINT64_MAX)
        return;
    const uint64_t span_ms = b->to_ms - from_ms,
                   milli = (uint64_t)bh_wide_div(had(b, q->tenant), span_ms, &rest);
    if (milli * 2 >= q->guaranteed_milli)
        return;
    *bh_vec_push(ret) = bh_arena_printf(
        a, "%s has %s GPUs reserved and was given %s of them on average: a smaller quota would do.",
        q->tenant, bh_count_format(q->guaranteed_milli, &reserved), bh_count_format(milli, &mean));
}

static void say_wanting(const struct bh_bill_quota *q, struct bh_arena *a, bh_bill_sentences *ret)
{
    struct bh_unit_text used;
    if (!q->waiting_jobs || q->guaranteed_milli == UINT64_MAX || q->used_milli < q->guaranteed_milli)
        return;
    *bh_vec_push(ret) = bh_arena_printf(
        a, "%s needs more: %" PRIu64 " job%s of it wait%s while it has %s GPUs, all that is reserved for it.",
        q->tenant, q->waiting_jobs, q->waiting_jobs == 1 ? "" : "s", q->waiting_jobs == 1 ? "s" : "",
        bh_count_format(q->used_milli, &used));
}

void bh_bill_hints(const struct bh_bill *b, const struct bh_bill_facts *facts, struct bh_arena *a,
                   bh_bill_sentences *ret)
{
    size_t unknown = 0;
    for (size_t i = 0; i < facts->n_quotas; i++) {
        say_reserved(b, &facts->quotas[i], a, ret);
        say_wanting(&facts->quotas[i], a, ret);
    }
    for (size_t i = 0; i < facts->n_leases; i++) {
        const struct bh_bill_lease *l = &facts->leases[i];
        unknown += l->compute_ppm == UINT64_MAX;
        if (l->compute_ppm < IDLE_PPM)
            *bh_vec_push(ret) = bh_arena_printf(
                a, "%s of %s computes nothing now (under 1 %% of a GPU): it is idle, and charged.", l->id,
                l->tenant);
    }
    if (unknown)
        *bh_vec_push(ret) = bh_arena_printf(
            a, "Of %zu of %zu active lease%s it is unknown whether they compute: nothing measures them.",
            unknown, facts->n_leases, facts->n_leases == 1 ? "" : "s");
}
