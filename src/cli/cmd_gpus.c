/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gpus.c - every GPU and slice of this machine: who, how much, how well, where. */
#include "cli/cli.h"
#include "cli/gpus_json.h"
#include "cli/gpus_text.h"

enum { OPT_TREE, OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_TREE] = {"tree", 't', BH_OPT_FLAG, NULL, NULL, "by place: NUMA node, PCI address, NVLink domain"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int run(struct bh_cli *cli)
{
    struct bh_gpu_snapshot s;
    struct bh_err err;
    if (bh_gpu_read(&bh_gpu_machine, &s, &err) < 0)
        return bh_cli_fail(cli, &err);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_gpus_json(&cli->out, &s);
    else if (cli->value[OPT_TREE])
        bh_gpus_tree(cli, &s);
    else
        bh_gpus_text(cli, &s);
    bh_gpu_snapshot_fini(&s);
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_gpus = {
    .name = "gpus",
    .summary = "every GPU and slice of this machine, and who uses it",
    .operands = "",
    .examples = "bulkhead gpus              one line for each GPU and MIG slice\n"
                "bulkhead gpus --tree       where they sit and which reach each other over NVLink\n"
                "bulkhead gpus -o json      all that is known, for a program\n",
    .text =
        "Asks NVIDIA's library (libnvidia-ml.so.1, or what BULKHEAD_NVML names) and AMD's driver below\n"
        "/sys, and changes nothing. A value that cannot be had is shown as - and has its reason in the\n"
        "JSON. On a terminal WHO names the heaviest process of each line; in a pipe, all: pid, user,\n"
        "memory, share of the multiprocessors' time. A driver that does not answer for 10 s is given up;\n"
        "BULKHEAD_GPU_TIMEOUT sets another number of seconds.\n"
        "\n"
        "Exit status: 0; 3 no permission, 4 no driver on this machine, 5 driver and library differ, 7 the\n"
        "driver does not answer.\n",
    .opts = opts,
    .run = run,
};
