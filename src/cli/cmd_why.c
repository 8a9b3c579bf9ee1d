/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_why.c - why does this job wait, who has what it waits for, and what is the least that would start it? */
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/scenario.h"
#include "cli/why_text.h"
#include "cli/work_text.h"

enum { OPT_SCENARIO, OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_SCENARIO] = {"scenario", 's', BH_OPT_FILE, "FILE", NULL,
                      "the fleet, the queues and the jobs (YAML) instead of the daemon's"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int explain(struct bh_cli *cli, struct bh_scenario *s, const char *name)
{
    const uint64_t job = bh_scenario_job(s, name);
    struct bh_remedy remedy = {0};
    struct bh_remedy_config config;
    struct bh_verdict v;
    struct bh_whatif w;
    struct bh_err err;
    if (!job) {
        (void)bh_fail(&err, BH_NOT_FOUND, "there is no job '%.60s' in the scenario", name);
        return bh_cli_fail(cli, &err);
    }
    if (!bh_explain(s->trial.sched, s->trial.reserve, job, s->trial.now_ms, &v)) {
        (void)bh_fail(&err, BH_NOT_FOUND, "job '%.60s' is not there %s", name,
                      s->file.jobs.at[job - 1].submitted_ms > s->file.now_ms ? "yet"
                                                                             : "any more: it has ended");
        return bh_cli_fail(cli, &err);
    }
    bh_remedy_config_init(&config);
    bh_whatif_init(&w, s->trial.sched, &s->reserve, s->trial.now_ms);
    bh_remedy_find(&w, s->trial.sched, job, &config, &remedy);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_why_json(&cli->out, s, job, &v, &remedy);
    else
        bh_why_text(cli, s, job, &v, &remedy);
    bh_remedy_fini(&remedy);
    bh_whatif_fini(&w);
    return v.tier == BH_WAIT_NOT ? BH_EXIT_OK : BH_EXIT_FOUND;
}

/* ---- of the daemon ---- */

/* Of one that does not wait the daemon says so by what it is. */
static int of_daemon(struct bh_cli *cli, struct bh_remote *r, const char *id, int *ret_status,
                     struct bh_err *err)
{
    const bool json = bh_cli_wants(cli, OPT_OUTPUT, "json");
    struct bh_a_job_detail d;
    struct bh_a_why w;
    int rc = bh_remote_get(r, bh_arena_printf(&r->arena, "/v1/jobs/%s", id), &bh_a_job_detail_shape, &d, err);
    if (rc < 0)
        return rc;
    const bool waits = bh_str_eq(d.job->state, "waiting");
    *ret_status = waits ? BH_EXIT_FOUND : BH_EXIT_OK;
    if (!waits && !json) {
        const char *state = bh_say_job_state(&r->arena, d.job);
        bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, id);
        bh_buf_str(&cli->out, "  not waiting\n");
        bh_fact(cli, "  why",
                bh_arena_printf(&r->arena, "%s%s%s", state, d.job->why ? ": " : "",
                                d.job->why ? d.job->why : ""));
        return BH_OK;
    }
    rc = bh_remote_get(r, bh_arena_printf(&r->arena, "/v1/jobs/%s/why", id), &bh_a_why_shape, &w, err);
    if (rc == BH_OK && json)
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else if (rc == BH_OK)
        bh_job_why_text(cli, &r->arena, id, &w, bh_now_ms());
    return rc;
}

static int ask_daemon(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    int status = BH_EXIT_OK;
    char id[BH_REMOTE_ID_MAX];
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK && !bh_remote_id(cli->operands[0], 'J', id))
        rc = bh_fail(
            &err, BH_USAGE,
            "'%.60s' is no job's id, such as J17 (next: bulkhead ps); a job of a file needs --scenario FILE",
            cli->operands[0]);
    if (rc == BH_OK)
        rc = of_daemon(cli, &r, id, &status, &err);
    return rc < 0 ? bh_cli_fail(cli, &err) : status;
}

static int run(struct bh_cli *cli)
{
    struct bh_scenario s;
    if (!cli->value[OPT_SCENARIO])
        return ask_daemon(cli);
    int status = bh_scenario_open(cli, cli->value[OPT_SCENARIO], &s);
    if (status == BH_EXIT_OK)
        status = explain(cli, &s, cli->operands[0]);
    bh_scenario_fini(&s);
    return status;
}

const struct bh_cmd bh_cmd_why = {
    .name = "why",
    .summary = "why a job waits, and the least that would start it",
    .operands = "JOB",
    .operand_kind = BH_OPERAND_NONE,
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead why J17                              a job of the daemon's\n"
                "bulkhead why train -s scenario.yaml           the reason, who holds what, what would help\n"
                "bulkhead why train -s scenario.yaml -o json   for a program\n",
    .text =
        "Without a scenario the daemon is asked, whose scheduler says what stands in the way now. With one,\n"
        "the jobs of the scenario are played through the scheduler up to its `now`; then the job is looked\n"
        "at. What would start it was tried: waiting a known time, moving or ending the fewest\n"
        "GPUs, raising one quota by the least, adding the fewest GPUs, in this order.\n"
        "\n"
        "Exit status: 0 it runs, 1 it waits, 2 the file could not be read, 4 there is no such job, or\n"
        "no daemon.\n",
    .opts = opts,
    .run = run,
};
