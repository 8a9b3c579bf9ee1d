/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - for each tenant the cheapest way to keep every promise. */
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/plan_text.h"

#include <stdlib.h>

enum { OPT_FLEET, OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_FLEET] = {"fleet", 'f', BH_OPT_FILE, "FILE", NULL, "the hardware at hand"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static void say_next(struct bh_cli *cli, bool has_fleet, size_t impossible)
{
    struct bh_buf rest;
    bh_buf_init(&rest, 1u << 16);
    bh_text_shell(&rest, cli->operands[0]);
    if (cli->value[OPT_FLEET]) {
        bh_buf_str(&rest, " --fleet ");
        bh_text_shell(&rest, cli->value[OPT_FLEET]);
    }
    if (!has_fleet && !impossible)
        bh_cli_next(cli, "bulkhead plan %s --fleet FLEET.yaml", bh_buf_text(&rest));
    else
        bh_cli_next(cli, "bulkhead lint %s", bh_buf_text(&rest));
    bh_buf_fini(&rest);
}

static int make(struct bh_cli *cli, const struct bh_input *in)
{
    struct bh_plan plan = {0};
    const struct bh_unit *unit = in->units.at[0];
    /* a fleet may have come with the folder */
    const char *fleet = in->has_fleet ? in->files.at[in->fleet_file] : NULL;
    struct bh_plan_out out = {&plan, &unit->policy, unit->label, fleet};

    bh_plan_make(&unit->policy, in->has_fleet ? &in->fleet : NULL, &plan);
    bh_cli_say_notes(cli, in);
    size_t impossible = bh_plan_impossible(&plan);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_plan_json(&cli->out, &out);
    } else {
        bh_plan_text(cli, &out);
        say_next(cli, in->has_fleet, impossible);
    }
    bh_plan_fini(&plan);
    if (in->n_set_aside)
        return BH_EXIT_UNREADABLE;
    return impossible ? BH_EXIT_FOUND : BH_EXIT_OK;
}

static int run(struct bh_cli *cli)
{
    struct bh_input in = {0};
    struct bh_err err;
    int status = bh_cli_load(cli, &in, cli->value[OPT_FLEET]);
    if (status == BH_EXIT_OK && (in.units.n != 1 || in.units.at[0]->policy.source != BH_SOURCE_POLICY)) {
        (void)bh_fail(&err, BH_INVALID, "'%.200s' is no policy file; bulkhead init writes one to start from",
                      cli->operands[0]);
        status = bh_cli_fail(cli, &err);
    } else if (status == BH_EXIT_OK) {
        status = make(cli, &in);
    }
    bh_input_fini(&in);
    return status;
}

const struct bh_cmd bh_cmd_plan = {
    .name = "plan",
    .summary = "the cheapest way to keep every promise",
    .operands = "POLICY",
    .operand_kind = BH_OPERAND_FILE,
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead plan policy.yaml                      on any GPU of the catalogue\n"
                "bulkhead plan policy.yaml --fleet fleet.yaml   on the GPUs at hand\n"
                "bulkhead plan -o json policy.yaml              for a program\n",
    .text = "For each tenant: mechanism x quota model x tier, what stays shared, what bounds a noisy\n"
            "neighbour, and each cheaper choice with the rule that refused it.\n"
            "\n"
            "Exit status: 0 every promise can be kept, 1 some cannot, 2 the file could not be read.\n",
    .opts = opts,
    .run = run,
};
