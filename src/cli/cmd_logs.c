/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_logs.c - what a job wrote, and goes on to write. */
#include "base/mem.h"
#include "cli/follow.h"

#include <stdio.h>
#include <unistd.h>

enum { OPT_FOLLOW, OPT_ERR, OPT_LEASE };

static const struct bh_opt opts[] = {
    [OPT_FOLLOW] = {"follow", 'f', BH_OPT_FLAG, NULL, NULL, "go on until it ends"},
    [OPT_ERR] = {"err", 'e', BH_OPT_FLAG, NULL, NULL, "its standard error instead of its standard output"},
    [OPT_LEASE] = {"lease", 'l', BH_OPT_TEXT, "LEASE", NULL, "of this attempt (default: the newest)"},
    {0},
};

static int show(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    const int stream = cli->value[OPT_ERR] ? 1 : 0;
    char job[BH_REMOTE_ID_MAX];
    struct bh_follow_end end;
    struct bh_follow f;
    if (!bh_remote_id(cli->operands[0], 'J', job))
        return bh_fail(err, BH_USAGE, "'%.40s' is no job's id, such as J17; next: bulkhead ps",
                       cli->operands[0]);
    if (cli->value[OPT_FOLLOW] && cli->value[OPT_LEASE])
        return bh_fail(err, BH_USAGE, "--follow goes from attempt to attempt; leave --lease out");
    bh_follow_init(&f, cli, r, job);
    f.fd[stream] = STDOUT_FILENO;
    f.fd[!stream] = -1;
    if (cli->value[OPT_FOLLOW])
        return bh_follow(&f, NULL, NULL, &end, err);
    if (cli->value[OPT_LEASE] && !bh_remote_id(cli->value[OPT_LEASE], 'L', f.lease))
        return bh_fail(err, BH_USAGE, "--lease: '%.40s' is no lease's id, such as L17",
                       cli->value[OPT_LEASE]);
    return bh_follow_rest(&f, err);
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = show(cli, &r, &err);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_logs = {
    .name = "logs",
    .summary = "what a job wrote",
    .operands = "JOB",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead logs J17         what it wrote so far\n"
                "bulkhead logs -f J17      and what it goes on to write, until it ends\n"
                "bulkhead logs --err J17   its standard error\n",
    .text =
        "The bytes are shown as the job wrote them. A job that had to go and came back has a log for each\n"
        "attempt; the newest is shown. Of each stream the last 32 MiB at least are kept; where something is\n"
        "missing, a line on standard error says how much.\n",
    .opts = opts,
    .run = run,
};
