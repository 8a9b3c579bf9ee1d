/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_why.c - why does this job wait, who has what it waits for, and what is the least that would start it? */
#include "cli/cli.h"
#include "cli/scenario.h"
#include "cli/why_text.h"

enum { OPT_SCENARIO, OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_SCENARIO] = {"scenario", 's', BH_OPT_FILE, "FILE", NULL,
                      "the fleet, the queues and the jobs (YAML)"},
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

static int run(struct bh_cli *cli)
{
    struct bh_scenario s;
    struct bh_err err;
    if (!cli->value[OPT_SCENARIO]) {
        (void)bh_fail(&err, BH_USAGE,
                      "needs --scenario FILE: there is no daemon yet whose jobs could be asked for");
        return bh_cli_fail(cli, &err);
    }
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
    .examples = "bulkhead why train -s scenario.yaml           the reason, who holds what, what would help\n"
                "bulkhead why train -s scenario.yaml -o json   for a program\n",
    .text = "The jobs of the scenario are played through the scheduler up to its `now`; then the job is\n"
            "looked at. What would start it was tried: waiting a known time, moving or ending the fewest\n"
            "GPUs, raising one quota by the least, adding the fewest GPUs, in this order.\n"
            "\n"
            "Exit status: 0 it runs, 1 it waits, 2 the file could not be read, 4 there is no such job.\n",
    .opts = opts,
    .run = run,
};
