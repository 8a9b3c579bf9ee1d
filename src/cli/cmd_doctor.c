/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - every layer of this node: what is there, what is missing, and what it can keep today. */
#include "base/units.h"
#include "cli/doctor.h"

#include <time.h>

enum { OPT_VERBOSE, OPT_NOW, OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_VERBOSE] = {"verbose", 'v', BH_OPT_FLAG, NULL, NULL, "also what does not apply, and details"},
    [OPT_NOW] = {"now", 0, BH_OPT_TEXT, "DATE", NULL,
                 "judge as of this day, YYYY-MM-DD (default today, UTC)"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int run(struct bh_cli *cli)
{
    struct bh_doctor_gathered g;
    struct bh_doctor d = {0};
    struct bh_err err;
    int32_t day = (int32_t)(time(NULL) / 86400);
    if (cli->value[OPT_NOW] && bh_date_parse(cli->value[OPT_NOW], &day, &err) < 0) {
        (void)bh_wrap(&err, err.code, "--now");
        return bh_cli_fail(cli, &err);
    }
    bh_doctor_gather(&g, day);
    if (!g.facts.gpus &&
        g.facts.gpus_err.code == BH_USAGE) { /* a variable of the caller's, and no fault of the node */
        err = g.facts.gpus_err;
        bh_doctor_gathered_fini(&g);
        return bh_cli_fail(cli, &err);
    }
    bh_doctor_judge(&d, &g.facts);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_doctor_json(&cli->out, &d);
    } else {
        bh_doctor_text(cli, &d, cli->value[OPT_VERBOSE] != NULL);
        if (!cli->value[OPT_VERBOSE])
            bh_cli_next(cli, "bulkhead doctor --verbose");
    }
    int status = bh_doctor_exit(&d);
    bh_doctor_fini(&d);
    bh_doctor_gathered_fini(&g);
    return status;
}

const struct bh_cmd bh_cmd_doctor = {
    .name = "doctor",
    .summary = "examine this node, layer by layer, and say what it can keep",
    .operands = "",
    .examples = "bulkhead doctor             what is there, what is missing, how to mend it\n"
                "bulkhead doctor --verbose   all of it, with details\n"
                "bulkhead doctor -o json     for a program\n",
    .text =
        "Looks at the GPUs, the driver, device nodes, fabric, kernel, containers, virtualisation, scheduler\n"
        "and host. Reads files and asks the kernel; starts no program and changes nothing. The last line\n"
        "says which ways of sharing this node can keep today. As root it sees more.\n"
        "\n"
        "Exit status: 0 nothing needs mending, 1 something does, 2 the command line is wrong.\n",
    .opts = opts,
    .run = run,
};
