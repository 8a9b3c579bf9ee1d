/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cordon.c - a GPU that nobody is given any more, and one that those who have it must leave. */
#include "base/mem.h"
#include "cli/ask.h"
#include "cli/node_text.h"
#include "cli/remote.h"

#include <stdio.h>
#include <unistd.h>

enum { OPT_REASON, OPT_YES };

static const struct bh_opt cordon_opts[] = {
    [OPT_REASON] = {"reason", 'r', BH_OPT_TEXT, "TEXT", NULL, "why, for people and for the audit log"},
    {0},
};
static const struct bh_opt drain_opts[] = {
    [OPT_REASON] = {"reason", 'r', BH_OPT_TEXT, "TEXT", NULL, "why, for people and for the audit log"},
    [OPT_YES] = {"yes", 'y', BH_OPT_FLAG, NULL, NULL, "do not ask"},
    {0},
};

static int run_cordon(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = bh_remote_order(&r, "gpus", cli->operands[0], "cordon", cli->value[OPT_REASON], &err);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    bh_buf_str(&cli->out, "GPU ");
    bh_text_add(&cli->out, cli->operands[0]);
    bh_buf_str(&cli->out, " is cordoned: nobody is given anything of it any more; what runs there goes on\n");
    bh_cli_next(cli, "bulkhead resume %s", cli->operands[0]);
    return BH_EXIT_OK;
}

/* Whoever has it is named before it is taken away. */
static int confirm(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    struct bh_a_leases leases = {0};
    struct bh_a_gpu gpu;
    int rc = bh_remote_gpu(r, cli->operands[0], &gpu, err);
    if (rc == BH_OK)
        rc = bh_remote_get(r, "/v1/leases?state=live&limit=1000", &bh_a_leases_shape, &leases, err);
    if (rc < 0 || cli->value[OPT_YES])
        return rc;
    const char *who = bh_say_owners(&r->arena, &gpu, &leases);
    struct bh_buf line;
    bh_buf_init(&line, 1u << 16);
    bh_text_add(&line, bh_arena_printf(&r->arena, "GPU %s has to be left by: %s. Drain it?", cli->operands[0],
                                       who ? who : "nobody"));
    rc = bh_confirm(stdin, stderr, isatty(STDIN_FILENO), bh_buf_text(&line), err);
    bh_buf_fini(&line);
    return rc;
}

static int run_drain(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = confirm(cli, &r, &err);
    if (rc == BH_OK)
        rc = bh_remote_order(&r, "gpus", cli->operands[0], "drain", cli->value[OPT_REASON], &err);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    bh_buf_str(&cli->out, "GPU ");
    bh_text_add(&cli->out, cli->operands[0]);
    bh_buf_str(&cli->out, " is being drained\n");
    bh_cli_next(cli, "bulkhead describe %s", cli->operands[0]);
    bh_cli_next(cli, "bulkhead resume %s", cli->operands[0]);
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_cordon = {
    .name = "cordon",
    .summary = "give nothing of a GPU away any more",
    .operands = "GPU",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead cordon 3 --reason 'fan is loud'\n"
                "bulkhead resume 3                          give it away again\n",
    .text = "GPU is its index or its uuid. What runs there goes on to its end; bulkhead drain has it leave.\n"
            "Needs an operator.\n",
    .opts = cordon_opts,
    .run = run_cordon,
};

const struct bh_cmd bh_cmd_drain = {
    .name = "drain",
    .summary = "cordon a GPU, and have what runs there leave",
    .operands = "GPU",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead drain 3 --reason 'driver change'   names who has it, and asks\n"
                "bulkhead drain 3 --yes                      does not ask\n"
                "bulkhead resume 3                           give it away again\n",
    .text =
        "GPU is its index or its uuid. What runs there is suspended, started again elsewhere or ended, as its\n"
        "owner allowed. Needs an operator.\n",
    .opts = drain_opts,
    .run = run_drain,
};
