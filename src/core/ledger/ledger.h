/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - what was used, by whom, and what it costs; in whole numbers that lose nothing.
 *
 * Usage comes as intervals [from, to) of one slice: so many thousandths of a GPU, so many MiB, under a mechanism. GPU time
 * is counted in thousandths of a GPU times milliseconds, memory in MiB times milliseconds; both sums are exact, and
 * cutting an interval in two, in time or in amount, changes no sum. So the tenants' sums are the sum of what was granted.
 * Only money is rounded, once for each line of a bill, and to the tenant's favour.
 */
#ifndef BH_CORE_LEDGER_LEDGER_H
#define BH_CORE_LEDGER_LEDGER_H

#include "base/err.h"
#include "base/mem.h"
#include "core/model/policy.h"
#include "core/sched/wide.h"

#include <stdbool.h>
#include <stdint.h>

/* No sum of fewer than 2^32 intervals overflows: 2^32 of amount, 2^63 of time, 2^32 of them. */
#define BH_LEDGER_MS_MAX ((UINT64_C(1) << 63) - 1)

struct bh_used {
    uint32_t tenant;   /* of the policy, or any number */
    uint8_t mechanism; /* enum bh_mechanism */
    bool borrowed;     /* beyond what the tenant was entitled to: another price */
    uint32_t milli, mib;
    uint64_t from_ms, to_ms; /* to_ms 0: still open */
};

struct bh_ledger_line {
    uint32_t tenant;
    uint8_t mechanism;
    bool borrowed;
    bh_u128 milli_ms, mib_ms;
};

struct bh_ledger {
    BH_VEC(struct bh_ledger_line) lines; /* by tenant, mechanism, borrowed: after bh_ledger_sort() */
    bh_u128 milli_ms, mib_ms;            /* of all of them */
    size_t n;                            /* intervals that counted */
};

void bh_ledger_fini(struct bh_ledger *l); /* a zeroed struct is an empty one */
/*
 * Counts what of the interval lies in [from_ms, to_ms). An open one ends at now_ms. BH_INVALID and nothing changed: it
 * ends before it begins.
 */
int bh_ledger_add(struct bh_ledger *l, const struct bh_used *u, uint64_t from_ms, uint64_t to_ms,
                  uint64_t now_ms, struct bh_err *err) BH_MUST_USE;
void bh_ledger_sort(struct bh_ledger *l);
/* Of one tenant, over its mechanisms. */
void bh_ledger_tenant(const struct bh_ledger *l, uint32_t tenant, bh_u128 *ret_milli_ms, bh_u128 *ret_mib_ms);

/* `12.345678`: GPU seconds with the six digits that milli times milliseconds have. */
struct bh_ledger_text {
    char s[48];
};
const char *bh_ledger_gpu_seconds(bh_u128 milli_ms, struct bh_ledger_text *ret);
/* The same cut down to hours, for a person: three digits, rounded down. */
const char *bh_ledger_gpu_hours(bh_u128 milli_ms, struct bh_ledger_text *ret);

/* In millionths of the policy's currency, rounded down; false: the policy has no prices. UINT64_MAX: more than that. */
bool bh_ledger_price(const struct bh_policy *p, const struct bh_ledger_line *line, uint64_t *ret_micro);

#endif
