/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ps.c - jobs: whose, what they asked for, how they get on. */
#include "base/mem.h"
#include "cli/watch.h"
#include "cli/work_text.h"

enum { OPT_TENANT, OPT_USER, OPT_STATE, OPT_ALL, OPT_LIMIT, OPT_WATCH, OPT_OUTPUT };
enum { WHYS = 8, LIST_MAX = 1 << 28 };

static const char *const states[] = {"waiting", "running", "ended", NULL};

static const struct bh_opt opts[] = {
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "TENANT", NULL, "only of this tenant"},
    [OPT_USER] = {"user", 'u', BH_OPT_TEXT, "USER", NULL, "only of this user"},
    [OPT_STATE] = {"state", 's', BH_OPT_WORD, "STATE", states,
                   "only in this state: waiting, running or ended"},
    [OPT_ALL] = {"all", 'a', BH_OPT_FLAG, NULL, NULL, "those that have ended too, the newest first"},
    [OPT_LIMIT] = {"limit", 'n', BH_OPT_TEXT, "N", NULL, "at most so many (default: 200)"},
    [OPT_WATCH] = {"watch", 'w', BH_OPT_FLAG, NULL, NULL, "show it again whenever something changes"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

struct listing {
    const char *paths[2]; /* what runs comes before what waits */
    size_t n_paths;
    uint64_t limit;
    struct bh_seen seen;
};

static void add_query(struct bh_buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    bh_buf_printf(b, "&%s=", key);
    bh_remote_quote(b, value);
}

static const char *make_path(const struct bh_cli *cli, struct bh_arena *a, const char *state)
{
    struct bh_buf b;
    bh_buf_init(&b, 4096);
    bh_buf_printf(&b, "/v1/jobs?newest=%s", cli->value[OPT_ALL] ? "true" : "false");
    add_query(&b, "tenant", cli->value[OPT_TENANT]);
    add_query(&b, "user", cli->value[OPT_USER]);
    add_query(&b, "state", state);
    const char *path = bh_arena_str(a, bh_buf_text(&b));
    bh_buf_fini(&b);
    return path;
}

static int draw(void *ctx, struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    struct listing *l = ctx;
    struct bh_a_jobs jobs;
    struct bh_buf text;
    bh_buf_init(&text, LIST_MAX);
    int rc = bh_remote_list(r, "jobs", l->paths, l->n_paths, l->limit, &text, err);
    if (rc == BH_OK)
        rc = bh_answer_read(&r->arena, bh_buf_text(&text), text.n, &bh_a_jobs_shape, &jobs, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&text), text.n);
    else if (rc == BH_OK) {
        const size_t n = jobs.jobs.n;
        bh_remote_whys(r, &jobs, WHYS);
        bh_jobs_text(cli, &r->arena, &jobs, bh_now_ms(), cli->value[OPT_WATCH] ? &l->seen : NULL);
        if (n >= l->limit)
            bh_buf_printf(&cli->out, "there may be more than these %zu: --limit\n", n);
    }
    bh_buf_fini(&text);
    return rc;
}

static int read_words(const struct bh_cli *cli, struct bh_arena *a, struct listing *l, struct bh_err *err)
{
    const int rc =
        bh_watch_words(cli->value[OPT_LIMIT], cli->value[OPT_WATCH], cli->value[OPT_OUTPUT], &l->limit, err);
    if (rc < 0)
        return rc;
    if (cli->value[OPT_STATE] || cli->value[OPT_ALL])
        l->paths[l->n_paths++] = make_path(cli, a, cli->value[OPT_STATE]);
    else
        for (size_t i = 0; i < 2; i++)
            l->paths[l->n_paths++] = make_path(cli, a, i ? "waiting" : "running");
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct listing l = {0};
    struct bh_err err;
    int rc = bh_remote_init(&r, &err), status = BH_EXIT_OK;
    if (rc == BH_OK)
        rc = read_words(cli, &arena, &l, &err);
    if (rc == BH_OK && cli->value[OPT_WATCH])
        status = bh_watch(cli, &r, draw, &l);
    else if (rc == BH_OK)
        rc = draw(&l, cli, &r, &err);
    bh_seen_fini(&l.seen);
    return rc < 0 ? bh_cli_fail(cli, &err) : status;
}

const struct bh_cmd bh_cmd_ps = {
    .name = "ps",
    .summary = "jobs that run and wait, whose they are, and why they wait",
    .operands = "",
    .examples = "bulkhead ps                       what runs and what waits\n"
                "bulkhead ps -t red -w             of one tenant, shown again whenever something changes\n"
                "bulkhead ps --all -n 20           the newest 20, those that have ended too\n",
    .text =
        "ASKS is for all of it, or N x what each part gets. FOR says how long it has been in its state. The\n"
        "first 8 that wait say what they wait for now; bulkhead why JOB says it of any, and what would\n"
        "help. With --watch a * marks a state that changed.\n",
    .opts = opts,
    .run = run,
};
