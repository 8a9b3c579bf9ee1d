/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_usage.c - who had how much, in a time: for chargeback. */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/books_text.h"
#include "cli/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OPT_BY, OPT_TENANT, OPT_FROM, OPT_TO, OPT_RAW, OPT_OUTPUT };

static const char *const formats[] = {"text", "json", "csv", "focus", NULL};

static const struct bh_opt opts[] = {
    [OPT_BY] =
        {"by", 0, BH_OPT_WORD, "WHAT", bh_bill_bys,
         "a line for each tenant (default), cost-center, gpu, user, mechanism, or both: tenant and mechanism"},
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "TENANT", NULL, "only of this tenant"},
    [OPT_FROM] = {"from", 0, BH_OPT_TEXT, "TIME", NULL,
                  "an instant such as 2026-12-01, or how long ago such as 7d (default: 30d)"},
    [OPT_TO] = {"to", 0, BH_OPT_TEXT, "TIME", NULL, "not included (default: now, which is also the latest)"},
    [OPT_RAW] = {"raw", 0, BH_OPT_FLAG, NULL, NULL, "the intervals of which all this is the sum, as csv"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", formats,
                    "text (default), json, csv, or focus: the columns of the FinOps specification"},
    {0},
};

static int read_time(const char *option, const char *word, uint64_t now_ms, uint64_t *ret, struct bh_err *err)
{
    uint64_t ago_ms;
    int64_t s;
    if (bh_duration_parse(word, &ago_ms, NULL) == BH_OK) {
        *ret = ago_ms < now_ms ? now_ms - ago_ms : 0;
        return BH_OK;
    }
    if (bh_instant_parse(word, &s, err) < 0 || s < 0)
        return bh_fail(err, BH_USAGE,
                       "--%s: '%.40s' is neither a time such as 2026-12-31 nor an age such as 7d", option,
                       word);
    *ret = (uint64_t)s * 1000;
    return BH_OK;
}

/* A FOCUS file is of one month: this one, where nothing else is said. */
static uint64_t default_from(const struct bh_cli *cli, uint64_t now_ms)
{
    const uint64_t day_ms = UINT64_C(86400000);
    struct bh_unit_text t;
    int32_t day = 0;
    if (bh_cli_wants(cli, OPT_OUTPUT, "focus")) {
        (void)bh_date_format((int32_t)(now_ms / day_ms), &t);
        memcpy(t.s + 8, "01", 2);
        if (bh_date_parse(t.s, &day, NULL) == BH_OK)
            return (uint64_t)day * day_ms;
    }
    return now_ms > 30 * day_ms ? now_ms - 30 * day_ms : 0;
}

/* What follows the `?` of a question. */
static int read_words(const struct bh_cli *cli, struct bh_buf *query, struct bh_err *err)
{
    const uint64_t now_ms = bh_now_ms();
    uint64_t from_ms = default_from(cli, now_ms), to_ms = now_ms;
    int rc = cli->value[OPT_FROM] ? read_time("from", cli->value[OPT_FROM], now_ms, &from_ms, err) : BH_OK;
    if (rc == BH_OK && cli->value[OPT_TO])
        rc = read_time("to", cli->value[OPT_TO], now_ms, &to_ms, err);
    if (rc == BH_OK && cli->value[OPT_RAW] && (cli->value[OPT_BY] || cli->value[OPT_OUTPUT]))
        rc = bh_fail(err, BH_USAGE, "--raw shows every interval as csv: it goes with neither --by nor -o");
    if (rc < 0)
        return rc;
    bh_buf_printf(query, "from_ms=%" PRIu64 "&to_ms=%" PRIu64, from_ms, to_ms);
    if (cli->value[OPT_TENANT]) {
        bh_buf_str(query, "&tenant=");
        bh_remote_quote(query, cli->value[OPT_TENANT]);
    }
    return BH_OK;
}

static enum bh_bill_by by_of(const struct bh_cli *cli)
{
    const char *word = cli->value[OPT_BY];
    /* A row of a FOCUS file is of one resource. */
    if (!word)
        return bh_cli_wants(cli, OPT_OUTPUT, "focus") ? BH_BILL_BY_GPU : BH_BILL_BY_TENANT;
    size_t i = 0;
    while (bh_bill_bys[i] && !bh_str_eq(bh_bill_bys[i], word))
        i++;
    return (enum bh_bill_by)i;
}

static int raw(struct bh_cli *cli, struct bh_remote *r, const char *query, struct bh_err *err)
{
    struct bh_a_usage_records page = {.next = 0};
    bh_usage_raw_head(&cli->out);
    while (page.next != BH_ANSWER_UNKNOWN) {
        const char *path =
            bh_arena_printf(&r->arena, "/v1/usage/records?%s&limit=1000&after=%" PRIu64, query, page.next);
        const int rc = bh_remote_get(r, path, &bh_a_usage_records_shape, &page, err);
        if (rc < 0)
            return rc;
        bh_usage_raw(&cli->out, &page);
    }
    return BH_OK;
}

/* What is so now, beside what was: where it cannot be had, nothing is said of it. */
static void hints(struct bh_cli *cli, struct bh_remote *r, const struct bh_a_usage *u)
{
    struct bh_a_quotas quotas = {0};
    struct bh_a_leases leases = {0};
    struct bh_err err;
    if (bh_remote_get(r, "/v1/quota", &bh_a_quotas_shape, &quotas, &err) == BH_OK &&
        bh_remote_get(r, "/v1/leases?state=active&limit=1000", &bh_a_leases_shape, &leases, &err) == BH_OK)
        bh_usage_hints(cli, &r->arena, u, &quotas, &leases);
}

static int focus(struct bh_cli *cli, struct bh_remote *r, const struct bh_a_usage *u, struct bh_err *err)
{
    struct bh_a_status status;
    /* One resource, one tenant, one mechanism for each row, whatever else it is told apart by. */
    struct bh_bill b = {.by = by_of(cli), .from_ms = u->from_ms, .to_ms = u->to_ms, .prices = u->prices};
    int rc = bh_remote_get(r, "/v1/status", &bh_a_status_shape, &status, err);
    for (size_t i = 0; i < u->usage.n; i++)
        *bh_vec_push(&b.lines) = u->usage.at[i];
    if (rc == BH_OK)
        rc = bh_bill_focus(&b, status.node, &r->arena, &cli->out, err);
    bh_bill_fini(&b);
    return rc;
}

static int show(struct bh_cli *cli, struct bh_remote *r, const char *query, struct bh_err *err)
{
    const enum bh_bill_by by = by_of(cli);
    struct bh_a_usage u;
    const int rc = bh_remote_get(r, bh_arena_printf(&r->arena, "/v1/usage?%s&by=%s", query, bh_bill_asks(by)),
                                 &bh_a_usage_shape, &u, err);
    if (rc < 0)
        return rc;
    const char *missing = bh_usage_missing(&r->arena, &u);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    } else if (bh_cli_wants(cli, OPT_OUTPUT, "csv")) {
        struct bh_bill b;
        bh_usage_bill(&u, by, &b);
        bh_bill_csv(&b, &r->arena, &cli->out);
        if (missing)
            (void)fprintf(stderr, "bulkhead: %s\n", missing);
        bh_bill_fini(&b);
    } else if (bh_cli_wants(cli, OPT_OUTPUT, "focus")) {
        /* Whoever charges by it would not see what is said beside it. */
        return missing ? bh_fail(err, BH_REFUSED, "this bill is %s; ask for --from that time", missing)
                       : focus(cli, r, &u, err);
    } else {
        bh_usage_text(cli, &r->arena, &u, by);
        hints(cli, r, &u);
    }
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_buf query;
    struct bh_err err;
    bh_buf_init(&query, 1024);
    int rc = bh_remote_init(&r, &err);
    r.client.timeout_ms = 0; /* a long one takes its time, and may have to wait for its turn */
    if (rc == BH_OK)
        rc = read_words(cli, &query, &err);
    bh_remote_slow("the bill is being added up");
    if (rc == BH_OK)
        rc = cli->value[OPT_RAW] ? raw(cli, &r, bh_buf_text(&query), &err)
                                 : show(cli, &r, bh_buf_text(&query), &err);
    bh_remote_slow(NULL);
    bh_buf_fini(&query);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_usage = {
    .name = "usage",
    .summary = "who had how much of the GPUs, for how long",
    .operands = "",
    .examples = "bulkhead usage                                        the last 30 days, by tenant\n"
                "bulkhead usage --from 2026-11-01 --to 2026-12-01      a month\n"
                "bulkhead usage --by cost-center -o csv > usage.csv    for a spreadsheet\n"
                "bulkhead usage --from 2026-11-01 --to 2026-12-01 -o focus > focus.csv\n",
    .text =
        "What was granted counts, whether it was used or not: GPU HOURS are hours of a whole GPU, a half of\n"
        "one for two hours is one of them; GiB HOURS are of its memory. LOST are GPU hours of attempts that\n"
        "were ended to make room. Times are UTC. The sum over tenants is what was granted, exactly; csv and\n"
        "json have it in thousandths of a GPU times milliseconds, and --raw shows what it is the sum of.\n",
    .opts = opts,
    .run = run,
};
