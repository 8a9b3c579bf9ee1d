/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - sums of intervals, and their price. */
#include "core/ledger/ledger.h"

#include <inttypes.h>

enum { MS_PER_HOUR = 3600000, MIB_PER_GIB = 1024, WHOLE_PPM = 1000000 };

void bh_ledger_fini(struct bh_ledger *l)
{
    bh_vec_fini(&l->lines);
}

static struct bh_ledger_line *line_of(struct bh_ledger *l, const struct bh_used *u)
{
    /* From the end: intervals of one tenant tend to come together. */
    for (size_t i = l->lines.n; i-- > 0;) {
        struct bh_ledger_line *x = &l->lines.at[i];
        if (x->tenant == u->tenant && x->mechanism == u->mechanism && x->borrowed == u->borrowed)
            return x;
    }
    struct bh_ledger_line *x = bh_vec_push(&l->lines);
    *x = (struct bh_ledger_line){.tenant = u->tenant, .mechanism = u->mechanism, .borrowed = u->borrowed};
    return x;
}

int bh_ledger_add(struct bh_ledger *l, const struct bh_used *u, uint64_t from_ms, uint64_t to_ms,
                  uint64_t now_ms, struct bh_err *err)
{
    const uint64_t end = u->to_ms ? u->to_ms : now_ms;
    if (end < u->from_ms || end > BH_LEDGER_MS_MAX)
        return bh_fail(err, BH_INVALID, "an interval from %" PRIu64 " to %" PRIu64 " ms", u->from_ms, end);
    const uint64_t first = u->from_ms > from_ms ? u->from_ms : from_ms, last = end < to_ms ? end : to_ms;
    if (first >= last)
        return 0;
    struct bh_ledger_line *x = line_of(l, u);
    const bh_u128 gpu = (bh_u128)u->milli * (last - first), memory = (bh_u128)u->mib * (last - first);
    x->milli_ms += gpu;
    x->mib_ms += memory;
    l->milli_ms += gpu;
    l->mib_ms += memory;
    l->n++;
    return 0;
}

static int by_tenant(const void *pa, const void *pb)
{
    const struct bh_ledger_line *a = pa, *b = pb;
    int c = (a->tenant > b->tenant) - (a->tenant < b->tenant);
    c = c ? c : (a->mechanism > b->mechanism) - (a->mechanism < b->mechanism);
    return c ? c : (int)a->borrowed - (int)b->borrowed;
}

void bh_ledger_sort(struct bh_ledger *l)
{
    if (l->lines.n)
        qsort(l->lines.at, l->lines.n, sizeof(*l->lines.at), by_tenant);
}

void bh_ledger_tenant(const struct bh_ledger *l, uint32_t tenant, bh_u128 *ret_milli_ms, bh_u128 *ret_mib_ms)
{
    *ret_milli_ms = *ret_mib_ms = 0;
    for (size_t i = 0; i < l->lines.n; i++) {
        if (l->lines.at[i].tenant != tenant)
            continue;
        *ret_milli_ms += l->lines.at[i].milli_ms;
        *ret_mib_ms += l->lines.at[i].mib_ms;
    }
}

/* ---- wide numbers ---- */

static bh_u128 divide(bh_u128 a, uint64_t by, uint64_t *ret_rest)
{
    const uint64_t high = (uint64_t)(a >> 64);
    const bh_u128 low = (bh_u128)(high % by) << 64 | (uint64_t)a;
    return (bh_u128)(high / by) << 64 | bh_wide_div(low, by, ret_rest);
}

static const char *decimal(bh_u128 units, int digits, struct bh_ledger_text *ret)
{
    char *p = ret->s + sizeof(ret->s) - 1;
    *p = '\0';
    for (int n = 0; units || n <= digits; n++) {
        uint64_t digit;
        units = divide(units, 10, &digit);
        if (n == digits && digits)
            *--p = '.';
        *--p = (char)('0' + digit);
    }
    memmove(ret->s, p, strlen(p) + 1);
    return ret->s;
}

const char *bh_ledger_gpu_seconds(bh_u128 milli_ms, struct bh_ledger_text *ret)
{
    return decimal(milli_ms, 6, ret);
}

const char *bh_ledger_gpu_hours(bh_u128 milli_ms, struct bh_ledger_text *ret)
{
    uint64_t rest;
    return decimal(divide(milli_ms, MS_PER_HOUR, &rest), 3, ret);
}

/* ---- money ---- */

/* amount x price / by, or all that a number of 64 bits holds. */
static bh_u128 cost(bh_u128 amount, uint64_t price, uint64_t by)
{
    const bh_u128 low = bh_wide_mul((uint64_t)amount, price),
                  high = bh_wide_mul((uint64_t)(amount >> 64), price);
    const bh_u128 product = (high << 64) + low;
    uint64_t rest;
    if (high >> 64 || product < low)
        return UINT64_MAX;
    return divide(product, by, &rest);
}

bool bh_ledger_price(const struct bh_policy *p, const struct bh_ledger_line *line, uint64_t *ret_micro)
{
    if (!p->prices.pos.line)
        return false;
    bh_u128 sum = cost(line->milli_ms, p->prices.gpu_hour_micro, UINT64_C(1000) * MS_PER_HOUR) +
                  cost(line->mib_ms, p->prices.memory_gib_hour_micro, (uint64_t)MIB_PER_GIB * MS_PER_HOUR);
    if (line->borrowed)
        sum = cost(sum, p->prices.borrowed_ppm, WHOLE_PPM);
    *ret_micro = sum < UINT64_MAX ? (uint64_t)sum : UINT64_MAX;
    return true;
}
