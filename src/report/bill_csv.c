/* SPDX-License-Identifier: Apache-2.0 */
/* bill_csv.c - a bill as lines with commas: all that is known, or the columns that finance tools know. */
#include "report/bill.h"

#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "core/ledger/ledger.h"

#include <inttypes.h>
#include <string.h>

enum { MIB_MS_PER_GIB_S = 1024 * 1000, MS_PER_DAY = 86400000, DAY_LAST = 2932896 /* of the year 9999 */ };
#define MILLI_MS_PER_GPU_HOUR (UINT64_C(1000) * 3600 * 1000)
#define MIB_MS_PER_GIB_HOUR   (UINT64_C(1024) * 3600 * 1000)

void bh_csv_text(struct bh_buf *b, const char *s)
{
    const char *text = s ? s : "";
    /* Names of a policy need no quotes, and neither do those that a driver gives a card. */
    if (text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.:@_")] == '\0' &&
        (*text == '\0' || !strchr("-@", *text))) {
        bh_buf_str(b, text);
        return;
    }
    bh_buf_str(b, "\"'"); /* the quote keeps it from being a formula */
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        bh_buf_printf(b, c < ' ' || c == 0x7f ? "\\x%02x" : c == '"' ? "\"%c" : "%c", c);
    }
    bh_buf_str(b, "\"");
}

static int32_t day_of(uint64_t ms)
{
    const uint64_t day = ms / MS_PER_DAY;
    return day < DAY_LAST ? (int32_t)day : DAY_LAST;
}

/* `2026-11-15T15:01:02.003Z`; without the part of a second where there is none. */
static const char *instant(struct bh_arena *a, uint64_t ms)
{
    const uint64_t s = ms / 1000;
    struct bh_unit_text t;
    const char *day = bh_date_format(day_of(ms), &t);
    if (ms % 1000)
        return bh_arena_printf(a, "%sT%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%03" PRIu64 "Z", day,
                               s / 3600 % 24, s / 60 % 60, s % 60, ms % 1000);
    return bh_arena_printf(a, "%sT%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "Z", day, s / 3600 % 24,
                           s / 60 % 60, s % 60);
}

/* v / scale, rounded down. */
static const char *quotient(struct bh_arena *a, uint64_t v, uint64_t scale, unsigned digits)
{
    uint64_t ten = 1;
    for (unsigned i = 0; i < digits; i++)
        ten *= 10;
    uint64_t rest = 0;
    const uint64_t part = (uint64_t)bh_wide_div(bh_wide_mul(v % scale, ten), scale, &rest);
    return bh_arena_printf(a, "%" PRIu64 ".%0*" PRIu64, v / scale, (int)digits, part);
}

static void csv_line(const struct bh_bill *b, const struct bh_bill_line *c, struct bh_arena *a,
                     struct bh_buf *out)
{
    const char *const names[] = {c->tenant, c->cost_center, c->user, c->gpu, c->mechanism};
    struct bh_ledger_text t;
    uint64_t gpu, memory;
    bh_buf_printf(out, "%s,%s", instant(a, b->from_ms), instant(a, b->to_ms));
    for (size_t i = 0; i < BH_COUNT_OF(names); i++) {
        bh_buf_str(out, ",");
        bh_csv_text(out, names[i]);
    }
    bh_buf_printf(out, ",%s", bh_ledger_gpu_seconds(c->milli_ms, &t));
    bh_buf_printf(out, ",%s", quotient(a, c->mib_ms, MIB_MS_PER_GIB_S, 3));
    bh_buf_printf(out, ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                  bh_ledger_gpu_seconds(c->lost_milli_ms, &t), c->leases, c->milli_ms, c->mib_ms);
    if (bh_bill_cost(b, c, &gpu, &memory)) {
        bh_csv_text(out, b->prices->currency);
        bh_buf_printf(out, ",%s", bh_bill_money(a, gpu + memory));
    } else {
        bh_buf_str(out, ",");
    }
    bh_buf_str(out, "\n");
}

void bh_bill_csv(const struct bh_bill *b, struct bh_arena *a, struct bh_buf *out)
{
    bh_buf_str(out, "from,to,tenant,cost_center,user,gpu,mechanism,gpu_seconds,gib_seconds,lost_gpu_seconds,"
                    "leases,milli_ms,mib_ms,currency,cost\n");
    for (size_t i = 0; i < b->lines.n; i++)
        csv_line(b, &b->lines.at[i], a, out);
}

/* ---- FOCUS ---- */

/* The midnight with which the month of that day begins. */
static uint64_t month_of(uint64_t ms)
{
    struct bh_unit_text t;
    int32_t day = 0;
    (void)bh_date_format(day_of(ms), &t);
    memcpy(t.s + 8, "01", 2);
    if (bh_date_parse(t.s, &day, NULL) < 0)
        return ms; /* a day that was written so is read so */
    return (uint64_t)day * MS_PER_DAY;
}

static uint64_t month_after(uint64_t month_ms)
{
    return month_of(month_ms + UINT64_C(31) * MS_PER_DAY);
}

/* One of the two things that are charged for. */
struct sku {
    const char *id, *says, *unit;
    uint64_t amount, scale, micro, price_micro;
};

/* A JSON object as one field; a name of a policy may hold anything. */
static void tags(struct bh_buf *out, const struct bh_bill_line *c)
{
    struct bh_buf text;
    struct bh_json j;
    bh_buf_init(&text, 4096);
    bh_json_init(&j, &text);
    bh_json_open_flat(&j, '{');
    bh_json_key_str(&j, "cost-center", c->cost_center ? c->cost_center : "none");
    bh_json_key_str(&j, "mechanism", c->mechanism);
    bh_json_key_str(&j, "user", c->user ? c->user : BH_BILL_ALL);
    bh_json_close(&j, '}');
    bh_buf_str(out, "\"");
    for (const char *s = bh_buf_text(&text); *s && *s != '\n'; s++) /* a line ends with the document */
        bh_buf_printf(out, *s == '"' ? "\"%c" : "%c", *s);
    bh_buf_str(out, "\"");
    bh_buf_fini(&text);
}

static void focus_row(const struct bh_bill *b, const struct bh_bill_line *c, const struct sku *k,
                      const char *account, struct bh_arena *a, struct bh_buf *out)
{
    const char *cost = bh_bill_money(a, k->micro);
    const uint64_t month = month_of(b->from_ms);
    const bool card = c->gpu && !bh_str_eq(c->gpu, BH_BILL_ALL);
    const char *const fields[] = {account, account, b->prices->currency ? b->prices->currency : ""};
    bh_buf_printf(out, "%s", cost);
    for (size_t i = 0; i < BH_COUNT_OF(fields); i++) {
        bh_buf_str(out, ",");
        bh_csv_text(out, fields[i]);
    }
    bh_buf_printf(out, ",%s,%s,Usage,,%s,Usage-Based,%s,%s", instant(a, month_after(month)),
                  instant(a, month), k->says, instant(a, b->to_ms), instant(a, b->from_ms));
    bh_buf_printf(out, ",%s,%s", quotient(a, k->amount, k->scale, 9), k->unit);
    bh_buf_printf(out, ",%s,%s,Bulkhead,%s,%s,Standard,%s,%s,Bulkhead,Bulkhead,", cost, cost, cost,
                  bh_bill_money(a, k->price_micro), quotient(a, k->amount, k->scale, 9), k->unit);
    bh_csv_text(out, card ? c->gpu : "");
    bh_buf_printf(out, ",,%s,Compute,Bulkhead GPU sharing,%s,%s,", card ? "GPU" : "", k->id, k->id);
    bh_csv_text(out, c->tenant);
    bh_buf_str(out, ",");
    bh_csv_text(out, c->tenant);
    bh_buf_str(out, ",");
    tags(out, c);
    bh_buf_str(out, "\n");
}

int bh_bill_focus(const struct bh_bill *b, const char *account, struct bh_arena *a, struct bh_buf *out,
                  struct bh_err *err)
{
    if (!b->prices)
        return bh_fail(err, BH_INVALID, "the policy has no `prices`, and a FOCUS file is made of costs");
    if (b->to_ms <= b->from_ms || month_of(b->to_ms - 1) != month_of(b->from_ms))
        return bh_fail(err, BH_INVALID,
                       "a FOCUS file is of one billing period: --from and --to must lie in one month");
    bh_buf_str(out,
               "BilledCost,BillingAccountId,BillingAccountName,BillingCurrency,BillingPeriodEnd,"
               "BillingPeriodStart,ChargeCategory,ChargeClass,ChargeDescription,ChargeFrequency,"
               "ChargePeriodEnd,ChargePeriodStart,ConsumedQuantity,ConsumedUnit,ContractedCost,EffectiveCost,"
               "InvoiceIssuerName,ListCost,ListUnitPrice,PricingCategory,PricingQuantity,PricingUnit,"
               "ProviderName,PublisherName,ResourceId,ResourceName,ResourceType,ServiceCategory,ServiceName,"
               "SkuId,SkuPriceId,SubAccountId,SubAccountName,Tags\n");
    for (size_t i = 0; i < b->lines.n; i++) {
        const struct bh_bill_line *c = &b->lines.at[i];
        uint64_t gpu, memory;
        (void)bh_bill_cost(b, c, &gpu, &memory);
        const struct sku time = {
            "gpu-time", "GPU time that was granted", "GPU-Hours", c->milli_ms, MILLI_MS_PER_GPU_HOUR,
            gpu,        b->prices->gpu_hour_micro};
        const struct sku space = {
            "gpu-memory", "GPU memory that was granted",   "GiB-Hours", c->mib_ms, MIB_MS_PER_GIB_HOUR,
            memory,       b->prices->memory_gib_hour_micro};
        focus_row(b, c, &time, account, a, out);
        focus_row(b, c, &space, account, a, out);
    }
    return 0;
}
