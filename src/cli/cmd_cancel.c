/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cancel.c - jobs that are wanted no more. */
#include "base/mem.h"
#include "cli/remote.h"

enum { OPT_REASON };

static const struct bh_opt opts[] = {
    [OPT_REASON] = {"reason", 'r', BH_OPT_TEXT, "TEXT", NULL, "why, for the audit log"},
    {0},
};

/* Each is tried; the first that failed decides how it ends. */
static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    int status = BH_EXIT_OK;
    struct bh_err err;
    if (bh_remote_init(&r, &err) < 0)
        return bh_cli_fail(cli, &err);
    for (size_t i = 0; i < cli->n_operands; i++) {
        char job[BH_REMOTE_ID_MAX];
        int rc = BH_OK;
        if (!bh_remote_id(cli->operands[i], 'J', job))
            rc = bh_fail(&err, BH_USAGE, "'%.40s' is no job's id, such as J17; next: bulkhead ps",
                         cli->operands[i]);
        else
            rc = bh_remote_order(&r, "jobs", job, "cancel", cli->value[OPT_REASON], &err);
        if (rc == BH_OK) {
            bh_buf_printf(&cli->out, "%s is cancelled\n", job);
            continue;
        }
        const int failed = bh_cli_fail(cli, &err);
        status = status ? status : failed;
    }
    return status;
}

const struct bh_cmd bh_cmd_cancel = {
    .name = "cancel",
    .summary = "end a job, or take it out of the queue",
    .operands = "JOB...",
    .min_operands = 1,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples = "bulkhead cancel J17\n"
                "bulkhead cancel J17 J18 --reason 'wrong data'\n",
    .text =
        "One that runs is asked to end (SIGTERM), and after its time of grace it is ended. What it had goes\n"
        "to others once it was proved clean.\n",
    .opts = opts,
    .run = run,
};
