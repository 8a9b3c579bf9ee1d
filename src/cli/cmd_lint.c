/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_lint.c - judge policies, manifests and Slurm files against the rules. */
#include "base/str.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/findings_text.h"
#include "cli/load.h"

#include <time.h>

enum { OPT_FLEET, OPT_NOW, OPT_OUTPUT };

static const char *const formats[] = {"text", "json", "sarif", NULL};
static const struct bh_opt opts[] = {
    [OPT_FLEET] = {"fleet", 'f', BH_OPT_FILE, "FILE", NULL, "the hardware to hold the policy against"},
    [OPT_NOW] = {"now", 0, BH_OPT_TEXT, "DATE", NULL,
                 "judge as of this day, YYYY-MM-DD (default today, UTC)"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", formats, "text (default), json or sarif"},
    {0},
};

/* The clock is read here and nowhere below: the same files and day give the same report. */
static int read_today(const struct bh_cli *cli, int32_t *ret, struct bh_err *err)
{
    if (!cli->value[OPT_NOW]) {
        *ret = (int32_t)(time(NULL) / 86400);
        return BH_OK;
    }
    int rc = bh_date_parse(cli->value[OPT_NOW], ret, err);
    return rc < 0 ? bh_wrap(err, rc, "--now") : BH_OK;
}

static const struct bh_rule *first_of(const struct bh_findings *f, enum bh_severity severity)
{
    for (size_t i = 0; i < f->in->units.n; i++)
        for (size_t k = 0; k < f->reports[i].findings.n; k++) {
            const struct bh_finding *at = &f->reports[i].findings.at[k];
            if (!at->waived && at->rule->severity == severity)
                return at->rule;
        }
    return NULL;
}

static bool lacks_fleet(const struct bh_findings *f)
{
    for (size_t i = 0; !f->in->has_fleet && i < f->in->units.n; i++)
        for (size_t k = 0; k < f->reports[i].unchecked.n; k++)
            if (f->reports[i].unchecked.at[k].rule->needs == BH_NEEDS_FLEET)
                return true;
    return false;
}

static void say_next(struct bh_cli *cli, const struct bh_findings *f)
{
    const struct bh_rule *rule = first_of(f, BH_SEV_ERROR);
    struct bh_buf path;
    bh_buf_init(&path, 1u << 16);
    bh_text_shell(&path, cli->operands[0]);
    if (cli->value[OPT_FLEET]) {
        bh_buf_str(&path, " --fleet ");
        bh_text_shell(&path, cli->value[OPT_FLEET]);
    }
    if (!rule)
        rule = first_of(f, BH_SEV_WARNING);
    if (rule)
        bh_cli_next(cli, "bulkhead explain %s", rule->id);
    if (lacks_fleet(f) && cli->n_operands == 1)
        bh_cli_next(cli, "bulkhead lint %s --fleet FLEET.yaml", bh_buf_text(&path));
    else if (!rule && f->in->units.at[0]->policy.source == BH_SOURCE_POLICY)
        bh_cli_next(cli, "bulkhead plan %s", bh_buf_text(&path));
    bh_buf_fini(&path);
}

static int judge(struct bh_cli *cli, const struct bh_input *in, int32_t today)
{
    struct bh_report *reports = bh_alloc(in->units.n, sizeof(*reports));
    struct bh_findings f = {in, reports, BH_VERSION};
    struct bh_findings_sum sum;

    for (size_t i = 0; i < in->units.n; i++)
        bh_lint(&in->units.at[i]->policy, in->has_fleet ? &in->fleet : NULL, today, &reports[i]);
    bh_findings_sum(&f, &sum);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_cli_say_notes(cli, in);
        bh_findings_json(&cli->out, &f);
    } else if (bh_cli_wants(cli, OPT_OUTPUT, "sarif")) {
        bh_cli_say_notes(cli, in);
        bh_findings_sarif(&cli->out, &f);
    } else {
        bh_findings_text(cli, &f);
        say_next(cli, &f);
    }
    for (size_t i = 0; i < in->units.n; i++)
        bh_report_fini(&reports[i]);
    free(reports);
    if (in->n_set_aside)
        return BH_EXIT_UNREADABLE;
    return sum.errors ? BH_EXIT_FOUND : BH_EXIT_OK;
}

static int run(struct bh_cli *cli)
{
    struct bh_input in = {0};
    struct bh_err err;
    int32_t today;

    if (read_today(cli, &today, &err) < 0)
        return bh_cli_fail(cli, &err);
    int status = bh_cli_load(cli, &in, cli->value[OPT_FLEET]);
    if (status == BH_EXIT_OK)
        status = judge(cli, &in, today);
    bh_input_fini(&in);
    return status;
}

const struct bh_cmd bh_cmd_lint = {
    .name = "lint",
    .summary = "find promises that the silicon cannot keep",
    .operands = "FILE...",
    .operand_kind = BH_OPERAND_FILE,
    .min_operands = 1,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples =
        "bulkhead lint policy.yaml                      judge a policy\n"
        "bulkhead lint policy.yaml --fleet fleet.yaml   and hold it against the hardware\n"
        "bulkhead lint manifests/                       a folder of Kubernetes manifests, as one cluster\n"
        "bulkhead lint slurm.conf gres.conf             what Slurm was told about GPUs\n"
        "bulkhead lint -o sarif policy.yaml             for a code host to show inline\n"
        "kubectl get cm,quota -A -o yaml | bulkhead lint -\n",
    .text = "Files are told apart by content. Each policy is judged alone; all Kubernetes manifests\n"
            "together are one cluster, and so are all Slurm files. A folder stands for every .yaml,\n"
            ".yml, .json and .conf file below it, and - for standard input.\n"
            "\n"
            "Exit status: 0 no error found, 1 at least one, 2 something could not be read or parsed.\n"
            "A rule that these files cannot answer is listed as such, never as passed.\n",
    .opts = opts,
    .run = run,
};
