/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_backup.c - a copy of the daemon's state, while it works. */
#include "base/json.h"
#include "base/mem.h"
#include "cli/remote.h"

static const struct bh_opt no_opts[] = {{0}};

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_json j;
    struct bh_buf body;
    struct bh_err err;
    if (bh_remote_init(&r, &err) < 0)
        return bh_cli_fail(cli, &err);
    r.client.timeout_ms = 0; /* a large state takes its time */
    bh_buf_init(&body, 4096);
    bh_json_init(&j, &body);
    bh_json_open_flat(&j, '{');
    bh_json_key_str(&j, "name", cli->operands[0]);
    bh_json_close(&j, '}');
    bh_remote_slow("the state is being copied");
    const int rc = bh_remote_ask(&r, "POST", "/v1/backup", bh_buf_text(&body), &err);
    bh_remote_slow(NULL);
    bh_buf_fini(&body);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    bh_buf_str(&cli->out, "the state is copied to backups/");
    bh_text_add(&cli->out, cli->operands[0]);
    bh_buf_str(&cli->out, " below the daemon's state folder\n");
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_backup = {
    .name = "backup",
    .summary = "a copy of the daemon's state, while it works",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead backup before-upgrade\n",
    .text =
        "NAME is lower-case letters, digits and dashes; one that is there is not written over. The copy\n"
        "has everything that is in force at one instant: policy, jobs, leases, usage and the audit log, but\n"
        "not the key that signs it. Needs an operator.\n",
    .opts = no_opts,
    .run = run,
};
