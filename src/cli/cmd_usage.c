/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_usage.c - who had how much, in a time: for chargeback. */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/books_text.h"
#include "cli/remote.h"

#include <inttypes.h>

enum { OPT_BY, OPT_TENANT, OPT_FROM, OPT_TO, OPT_OUTPUT };

static const char *const bys[] = {"tenant", "mechanism", "both", NULL};
static const char *const formats[] = {"text", "json", "csv", NULL};

static const struct bh_opt opts[] = {
    [OPT_BY] = {"by", 0, BH_OPT_WORD, "WHAT", bys, "a line for each tenant (default), mechanism, or both"},
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "TENANT", NULL, "only of this tenant"},
    [OPT_FROM] = {"from", 0, BH_OPT_TEXT, "TIME", NULL,
                  "an instant such as 2026-12-01, or how long ago such as 7d (default: 30d)"},
    [OPT_TO] = {"to", 0, BH_OPT_TEXT, "TIME", NULL, "not included (default: now)"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", formats, "text (default), json or csv"},
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

static int read_words(const struct bh_cli *cli, struct bh_buf *path, struct bh_err *err)
{
    const uint64_t now_ms = bh_now_ms();
    const char *from = cli->value[OPT_FROM] ? cli->value[OPT_FROM] : "30d";
    uint64_t from_ms = 0, to_ms = now_ms;
    int rc = read_time("from", from, now_ms, &from_ms, err);
    if (rc == BH_OK && cli->value[OPT_TO])
        rc = read_time("to", cli->value[OPT_TO], now_ms, &to_ms, err);
    if (rc < 0)
        return rc;
    bh_buf_printf(path, "/v1/usage?from_ms=%" PRIu64 "&to_ms=%" PRIu64, from_ms, to_ms);
    if (cli->value[OPT_TENANT]) {
        bh_buf_str(path, "&tenant=");
        bh_remote_quote(path, cli->value[OPT_TENANT]);
    }
    return BH_OK;
}

static enum bh_usage_by by_of(const char *word)
{
    size_t i = 0;
    while (word && bys[i] && !bh_str_eq(bys[i], word))
        i++;
    return (enum bh_usage_by)i;
}

static int show(struct bh_cli *cli, struct bh_remote *r, const char *path, struct bh_err *err)
{
    const enum bh_usage_by by = by_of(cli->value[OPT_BY]);
    struct bh_a_usage u;
    const int rc = bh_remote_get(r, path, &bh_a_usage_shape, &u, err);
    if (rc < 0)
        return rc;
    if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else if (bh_cli_wants(cli, OPT_OUTPUT, "csv"))
        bh_usage_csv(cli, &r->arena, &u, by);
    else
        bh_usage_text(cli, &r->arena, &u, by);
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_buf path;
    struct bh_err err;
    bh_buf_init(&path, 1024);
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = read_words(cli, &path, &err);
    if (rc == BH_OK)
        rc = show(cli, &r, bh_buf_text(&path), &err);
    bh_buf_fini(&path);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_usage = {
    .name = "usage",
    .summary = "who had how much of the GPUs, for how long",
    .operands = "",
    .examples = "bulkhead usage                                        the last 30 days, by tenant\n"
                "bulkhead usage --from 2026-11-01 --to 2026-12-01      a month\n"
                "bulkhead usage --by both -o csv > usage.csv           for a spreadsheet\n",
    .text =
        "What was granted counts, whether it was used or not: GPU HOURS are hours of a whole GPU, a half of\n"
        "one for two hours is one of them; GiB HOURS are of its memory. Times are UTC. The sum over tenants\n"
        "is what was granted, exactly; csv and json have it in thousandths of a GPU times milliseconds.\n",
    .opts = opts,
    .run = run,
};
