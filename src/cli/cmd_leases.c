/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_leases.c - leases: who may use what, by which mechanism, behind which tier. */
#include "base/mem.h"
#include "cli/watch.h"
#include "cli/work_text.h"

enum { OPT_TENANT, OPT_STATE, OPT_JOB, OPT_ALL, OPT_LIMIT, OPT_WATCH, OPT_OUTPUT };
enum { LIST_MAX = 1 << 28 };

static const struct bh_opt opts[] = {
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "TENANT", NULL, "only of this tenant"},
    [OPT_STATE] = {"state", 's', BH_OPT_TEXT, "STATE", NULL,
                   "only in this state: active, draining, quarantined ..."},
    [OPT_JOB] = {"job", 'j', BH_OPT_TEXT, "JOB", NULL, "every attempt of this job"},
    [OPT_ALL] = {"all", 'a', BH_OPT_FLAG, NULL, NULL, "those that are over too, the newest first"},
    [OPT_LIMIT] = {"limit", 'n', BH_OPT_TEXT, "N", NULL, "at most so many (default: 200)"},
    [OPT_WATCH] = {"watch", 'w', BH_OPT_FLAG, NULL, NULL, "show it again whenever something changes"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

struct listing {
    struct bh_buf path;
    uint64_t limit;
    struct bh_seen seen;
};

static int draw(void *ctx, struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    struct listing *l = ctx;
    const char *path = bh_buf_text(&l->path);
    struct bh_a_leases leases;
    struct bh_buf text;
    bh_buf_init(&text, LIST_MAX);
    int rc = bh_remote_list(r, "leases", &path, 1, l->limit, &text, err);
    if (rc == BH_OK)
        rc = bh_answer_read(&r->arena, bh_buf_text(&text), text.n, &bh_a_leases_shape, &leases, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&text), text.n);
    else if (rc == BH_OK) {
        bh_leases_text(cli, &r->arena, &leases, bh_now_ms(), cli->value[OPT_WATCH] ? &l->seen : NULL);
        if (leases.leases.n >= l->limit)
            bh_buf_printf(&cli->out, "there may be more than these %zu: --limit\n", leases.leases.n);
    }
    bh_buf_fini(&text);
    return rc;
}

static int read_words(const struct bh_cli *cli, struct listing *l, struct bh_err *err)
{
    const bool all = cli->value[OPT_ALL] || cli->value[OPT_JOB];
    const char *state = cli->value[OPT_STATE] ? cli->value[OPT_STATE] : all ? NULL : "live";
    char job[BH_REMOTE_ID_MAX];
    const int rc =
        bh_watch_words(cli->value[OPT_LIMIT], cli->value[OPT_WATCH], cli->value[OPT_OUTPUT], &l->limit, err);
    if (rc < 0)
        return rc;
    bh_buf_printf(&l->path, "/v1/leases?newest=%s", cli->value[OPT_ALL] ? "true" : "false");
    if (cli->value[OPT_TENANT]) {
        bh_buf_str(&l->path, "&tenant=");
        bh_remote_quote(&l->path, cli->value[OPT_TENANT]);
    }
    if (state) {
        bh_buf_str(&l->path, "&state=");
        bh_remote_quote(&l->path, state);
    }
    if (cli->value[OPT_JOB] && !bh_remote_id(cli->value[OPT_JOB], 'J', job))
        return bh_fail(err, BH_USAGE, "--job: '%.40s' is no job's id, such as J17", cli->value[OPT_JOB]);
    if (cli->value[OPT_JOB])
        bh_buf_printf(&l->path, "&job=%s", job);
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct listing l = {0};
    struct bh_err err;
    bh_buf_init(&l.path, 4096);
    int rc = bh_remote_init(&r, &err), status = BH_EXIT_OK;
    if (rc == BH_OK)
        rc = read_words(cli, &l, &err);
    if (rc == BH_OK && cli->value[OPT_WATCH])
        status = bh_watch(cli, &r, draw, &l);
    else if (rc == BH_OK)
        rc = draw(&l, cli, &r, &err);
    bh_buf_fini(&l.path);
    bh_seen_fini(&l.seen);
    return rc < 0 ? bh_cli_fail(cli, &err) : status;
}

const struct bh_cmd bh_cmd_leases = {
    .name = "leases",
    .summary = "who may use what now, and how it is kept apart",
    .operands = "",
    .examples = "bulkhead leases                   those that hold something\n"
                "bulkhead leases -t red -w         of one tenant, shown again whenever something changes\n"
                "bulkhead leases --job J17         every attempt of a job\n",
    .text =
        "A lease is one attempt to run a job. ISOLATION is the mechanism that divides the GPU and the tier\n"
        "behind which the tenant runs; USES is the part of the GPU's time and the memory that it has now.\n"
        "bulkhead describe L17 shows what it was given, and its history.\n",
    .opts = opts,
    .run = run,
};
