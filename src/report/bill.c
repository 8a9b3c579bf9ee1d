/* SPDX-License-Identifier: Apache-2.0 */
/* bill.c - lines of a bill, and their price. */
#include "report/bill.h"

#include "base/str.h"
#include "core/ledger/ledger.h"

#include <inttypes.h>

const char *const bh_bill_bys[BH_BILL_BYS + 1] = {
    [BH_BILL_BY_TENANT] = "tenant", [BH_BILL_BY_COST_CENTER] = "cost-center", [BH_BILL_BY_GPU] = "gpu",
    [BH_BILL_BY_USER] = "user",     [BH_BILL_BY_MECHANISM] = "mechanism",     [BH_BILL_BY_BOTH] = "both"};

/* Which names tell the lines of each kind apart. */
static const struct {
    bool tenant, cost_center, user, gpu, mechanism;
    const char *asks;
} tells[BH_BILL_BYS] = {
    [BH_BILL_BY_TENANT] = {.tenant = true, .cost_center = true, .asks = "tenant"},
    [BH_BILL_BY_COST_CENTER] = {.cost_center = true, .asks = "tenant"},
    [BH_BILL_BY_GPU] = {.gpu = true, .asks = "gpu"},
    [BH_BILL_BY_USER] = {.tenant = true, .cost_center = true, .user = true, .asks = "user"},
    [BH_BILL_BY_MECHANISM] = {.mechanism = true, .asks = "tenant"},
    [BH_BILL_BY_BOTH] = {.tenant = true, .cost_center = true, .mechanism = true, .asks = "tenant"},
};

const char *bh_bill_asks(enum bh_bill_by by)
{
    return tells[by].asks;
}

void bh_bill_fini(struct bh_bill *b)
{
    bh_vec_fini(&b->lines);
}

static void add_to(uint64_t *sum, uint64_t v)
{
    if (__builtin_add_overflow(*sum, v, sum))
        *sum = UINT64_MAX;
}

static void add_amounts(struct bh_bill_line *to, const struct bh_bill_line *c)
{
    add_to(&to->milli_ms, c->milli_ms);
    add_to(&to->mib_ms, c->mib_ms);
    add_to(&to->lost_milli_ms, c->lost_milli_ms);
    add_to(&to->leases, c->leases);
    if (!to->first_ms || (c->first_ms && c->first_ms < to->first_ms))
        to->first_ms = c->first_ms;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && bh_str_eq(a, b));
}

void bh_bill_add(struct bh_bill *b, const struct bh_bill_line *c)
{
    const struct bh_bill_line names = {.tenant = tells[b->by].tenant ? c->tenant : BH_BILL_ALL,
                                       .cost_center = tells[b->by].cost_center ? c->cost_center : BH_BILL_ALL,
                                       .user = tells[b->by].user ? c->user : BH_BILL_ALL,
                                       .gpu = tells[b->by].gpu ? c->gpu : BH_BILL_ALL,
                                       .mechanism = tells[b->by].mechanism ? c->mechanism : BH_BILL_ALL};
    struct bh_bill_line *line = NULL;
    /* From the end: what belongs together tends to come together. */
    for (size_t i = b->lines.n; !line && i-- > 0;) {
        struct bh_bill_line *x = &b->lines.at[i];
        if (same_name(x->tenant, names.tenant) && same_name(x->cost_center, names.cost_center) &&
            same_name(x->user, names.user) && same_name(x->gpu, names.gpu) &&
            same_name(x->mechanism, names.mechanism))
            line = x;
    }
    if (!line) {
        line = bh_vec_push(&b->lines);
        *line = names;
    }
    add_amounts(line, c);
    add_amounts(&b->all, c);
}

bool bh_bill_cost(const struct bh_bill *b, const struct bh_bill_line *c, uint64_t *ret_gpu_micro,
                  uint64_t *ret_memory_micro)
{
    *ret_gpu_micro = *ret_memory_micro = 0;
    if (!b->prices)
        return false;
    const struct bh_policy p = {.prices = {.pos = {.line = 1},
                                           .gpu_hour_micro = b->prices->gpu_hour_micro,
                                           .memory_gib_hour_micro = b->prices->memory_gib_hour_micro}};
    const struct bh_ledger_line time = {.milli_ms = c->milli_ms}, memory = {.mib_ms = c->mib_ms};
    return bh_ledger_price(&p, &time, ret_gpu_micro) && bh_ledger_price(&p, &memory, ret_memory_micro);
}

const char *bh_bill_name(const struct bh_bill *b, const struct bh_bill_line *c, struct bh_arena *a)
{
    switch (b->by) {
    case BH_BILL_BY_COST_CENTER:
        return c->cost_center ? c->cost_center : "none";
    case BH_BILL_BY_GPU:
        return c->gpu ? c->gpu : "unknown";
    case BH_BILL_BY_USER:
        return bh_arena_printf(a, "%s/%s", c->tenant, c->user ? c->user : "");
    case BH_BILL_BY_MECHANISM:
        return c->mechanism;
    default:
        return c->tenant;
    }
}

const char *bh_bill_money(struct bh_arena *a, uint64_t micro)
{
    return bh_arena_printf(a, "%" PRIu64 ".%06" PRIu64, micro / 1000000, micro % 1000000);
}
