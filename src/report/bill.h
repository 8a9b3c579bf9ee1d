/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bill.h - what tenants had in a time, added up the way somebody asked for, with its price.
 *
 * Amounts are exact: thousandths of a GPU times milliseconds, MiB times milliseconds. Money is worked out once for each line
 * of a bill, from its sums, and rounded down to a millionth; so a bill by tenant and a bill by GPU may differ by as many
 * millionths as they have lines, and each is what anybody gets who adds up the records in the same way.
 */
#ifndef BH_REPORT_BILL_H
#define BH_REPORT_BILL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

/* What was given to somebody. Names that were added up over are BH_BILL_ALL; a cost center, user or GPU may be NULL. */
struct bh_bill_line {
    const char *tenant, *cost_center, *user, *gpu, *mechanism;
    uint64_t milli_ms, mib_ms;
    uint64_t lost_milli_ms; /* of milli_ms: attempts that were ended to make room */
    uint64_t leases, first_ms;
};
#define BH_BILL_ALL "all"

enum bh_bill_by {
    BH_BILL_BY_TENANT,
    BH_BILL_BY_COST_CENTER,
    BH_BILL_BY_GPU,
    BH_BILL_BY_USER,
    BH_BILL_BY_MECHANISM,
    BH_BILL_BY_BOTH, /* tenant and mechanism */
    BH_BILL_BYS
};
extern const char *const bh_bill_bys[BH_BILL_BYS + 1]; /* their words, and NULL */
/* What has to be asked for so that the lines can be told apart: `tenant`, `user` or `gpu` of the API. */
const char *bh_bill_asks(enum bh_bill_by by);

struct bh_bill_prices {
    const char *currency; /* NULL: not said */
    uint64_t gpu_hour_micro, memory_gib_hour_micro;
};

struct bh_bill {
    enum bh_bill_by by;
    uint64_t from_ms, to_ms;
    const struct bh_bill_prices *prices; /* NULL: none in the policy */
    BH_VEC(struct bh_bill_line) lines;   /* in the order in which they first came */
    struct bh_bill_line all;             /* of all lines */
};
void bh_bill_fini(struct bh_bill *b); /* zeroed but for the first part: an empty one */
/* To the line that it belongs to; strings are borrowed. Sums past what a number holds stay there. */
void bh_bill_add(struct bh_bill *b, const struct bh_bill_line *c);
/* Of time and of memory, in millionths; false: there are no prices. */
bool bh_bill_cost(const struct bh_bill *b, const struct bh_bill_line *c, uint64_t *ret_gpu_micro,
                  uint64_t *ret_memory_micro);
/* What a line is called where one word has to do: `red`, `red/ada`, `GPU-...`. */
const char *bh_bill_name(const struct bh_bill *b, const struct bh_bill_line *c, struct bh_arena *a);

/* `12.500000`: millionths. */
const char *bh_bill_money(struct bh_arena *a, uint64_t micro);

/* ---- for spreadsheets ---- */

/* A line of names, then a line each, all to the last digit. */
void bh_bill_csv(const struct bh_bill *b, struct bh_arena *a, struct bh_buf *out);

/*
 * The columns of the FinOps Open Cost and Usage Specification 1.0 (focus.finops.org): for each line of the bill one row for
 * time and one for memory. BH_INVALID: no prices, or not within one month, which is the billing period.
 */
int bh_bill_focus(const struct bh_bill *b, const char *account, struct bh_arena *a, struct bh_buf *out,
                  struct bh_err *err) BH_MUST_USE;

/* A field that a spreadsheet takes for text, whatever it begins with. */
void bh_csv_text(struct bh_buf *b, const char *s);

/* ---- hints ---- */

/* What is known of a tenant's quota now. UINT64_MAX: none. */
struct bh_bill_quota {
    const char *tenant;
    uint64_t guaranteed_milli, used_milli, waiting_jobs;
};
/* A lease that is active now. */
struct bh_bill_lease {
    const char *id, *tenant;
    uint64_t compute_ppm; /* UINT64_MAX: nothing measures it */
};
struct bh_bill_facts {
    const struct bh_bill_quota *quotas;
    size_t n_quotas;
    const struct bh_bill_lease *leases;
    size_t n_leases;
};
/*
 * One sentence each, in the arena: tenants that were given less than half of what is reserved for them, since the first record
 * of the time at most; tenants that wait while they have all of theirs; leases that compute nothing; how many leases nobody
 * measures. The bill is by tenant.
 */
typedef BH_VEC(const char *) bh_bill_sentences;
void bh_bill_hints(const struct bh_bill *b, const struct bh_bill_facts *facts, struct bh_arena *a,
                   bh_bill_sentences *ret);

#endif
