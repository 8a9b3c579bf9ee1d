/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_fleet.c - this machine as a fleet file.
 *
 * survey.h makes the model that lint and plan judge; here it is written down.
 */
#include "base/str.h"
#include "cli/cli.h"
#include "cli/save.h"
#include "host/labels.h"
#include "survey/survey.h"

enum { OPT_OUT, OPT_NAME, OPT_FORCE };
enum { FILE_MAX = 16 << 20 };

static const struct bh_opt opts[] = {
    [OPT_OUT] = {"out", 0, BH_OPT_FILE, "FILE", NULL, "write there instead of standard output"},
    [OPT_NAME] = {"name", 0, BH_OPT_TEXT, "NODE", NULL, "the node's name (default: the host's)"},
    [OPT_FORCE] = {"force", 0, BH_OPT_FLAG, NULL, NULL, "replace FILE when it exists"},
    {0},
};

static int check_name(const char *name, struct bh_err *err)
{
    if (bh_survey_name_fits(name))
        return BH_OK;
    return bh_fail(
        err, BH_USAGE,
        "--name takes up to %d letters, digits, `.`, `_` and `-`, as a fleet file does, not '%.40s%s'",
        BH_SURVEY_NAME_MAX, name, strlen(name) > 40 ? "..." : "");
}

static int export(struct bh_cli *cli, const struct bh_gpu_snapshot *s, struct bh_err *err)
{
    struct bh_buf text;
    struct bh_survey x;
    bh_survey_make(&x, s, cli->value[OPT_NAME]);
    bh_buf_init(&text, FILE_MAX);
    bh_fleet_write(&text, &x.fleet, &x.head, &x.unknown);
    int rc = text.full ? bh_fail(err, BH_TOO_LARGE, "the fleet file would pass %d bytes", FILE_MAX)
                       : bh_cli_save(cli, cli->value[OPT_OUT], &text, cli->value[OPT_FORCE] != NULL,
                                     "bulkhead lint policy.yaml --fleet", err);
    bh_buf_fini(&text);
    bh_survey_fini(&x);
    return rc;
}

static int run(struct bh_cli *cli)
{
    struct bh_gpu_snapshot s;
    struct bh_err err;
    if (!bh_str_eq(cli->operands[0], "export")) {
        (void)bh_fail(&err, BH_USAGE, "fleet has no '%.60s'; there is export", cli->operands[0]);
        return bh_cli_fail(cli, &err);
    }
    int rc = cli->value[OPT_NAME] ? check_name(cli->value[OPT_NAME], &err) : BH_OK;
    if (rc == BH_OK)
        rc = bh_gpu_read(&bh_gpu_machine, &s, &err);
    if (rc == BH_OK) {
        rc = export(cli, &s, &err);
        bh_gpu_snapshot_fini(&s);
    }
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_fleet = {
    .name = "fleet",
    .summary = "write this machine down as a fleet file",
    .operands = "export",
    .operand_kind = BH_OPERAND_NONE,
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead fleet export                       to standard output\n"
                "bulkhead fleet export --out fleet.yaml      to a file, for lint and plan\n"
                "bulkhead fleet export --name gpu-01         under another name than the host's\n",
    .text =
        "As root more can be seen: the ports' configuration (acs) and MIG placements. Facts that cannot be\n"
        "had are left out, and a comment says why. Labels are those that GPU feature discovery left in\n" BH_LABELS_GFD
        ".\n"
        "\n"
        "Exit status: 0; 2 wrong use, 3 no permission, 4 no driver on this machine, 5 the file exists, 7 the\n"
        "driver does not answer.\n",
    .opts = opts,
    .run = run,
};
