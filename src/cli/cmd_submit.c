/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_submit.c - hands a job to the daemon and leaves. */
#include "base/mem.h"
#include "cli/job_words.h"
#include "cli/remote.h"

enum {
    OPT_TENANT,
    OPT_POOL,
    OPT_GPUS,
    OPT_CAP,
    OPT_MEMORY,
    OPT_NAME,
    OPT_TIER,
    OPT_PRIORITY,
    OPT_PROFILE,
    OPT_IMAGE,
    OPT_DURATION,
    OPT_CAN,
    OPT_FIRM,
    OPT_ENV,
    OPT_DRY,
    OPT_OUTPUT
};

static const struct bh_opt opts[] = {
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "TENANT", NULL, "whose job it is"},
    [OPT_POOL] = {"pool", 'p', BH_OPT_TEXT, "POOL", NULL, "from this pool (default: whichever fits)"},
    [OPT_GPUS] = {"gpus", 'g', BH_OPT_TEXT, "N", NULL, "so many, or a part of one: 2, 0.5 (default: 1)"},
    [OPT_CAP] = {"cap", 0, BH_OPT_TEXT, "PART", NULL, "of the time of each: 25% (default: all)"},
    [OPT_MEMORY] = {"memory", 'm', BH_OPT_TEXT, "SIZE", NULL, "of each: 20GiB (default: what the slice has)"},
    [OPT_NAME] = {"name", 'n', BH_OPT_TEXT, "NAME", NULL, "what lists call it"},
    [OPT_TIER] = {"tier", 0, BH_OPT_WORD, "TIER", bh_job_tiers, "behind what it runs (default: the pool's)"},
    [OPT_PRIORITY] = {"priority", 0, BH_OPT_WORD, "WORD", bh_job_priorities,
                      "low, normal (default), high or critical"},
    [OPT_PROFILE] = {"profile", 0, BH_OPT_TEXT, "PROFILE", NULL, "of MIG: 1g.10gb"},
    [OPT_IMAGE] = {"image", 0, BH_OPT_FILE, "FOLDER", NULL, "root file system of its container"},
    [OPT_DURATION] = {"duration", 'd', BH_OPT_TEXT, "TIME", NULL,
                      "how long it takes at most: 4h; short ones are let in between"},
    [OPT_CAN] = {"can", 0, BH_OPT_WORDS, "WORDS", bh_job_cans,
                 "what may be done to it for others: pause, suspend, requeue"},
    [OPT_FIRM] = {"firm", 0, BH_OPT_FLAG, NULL, NULL, "never interrupted; only within what is guaranteed"},
    [OPT_ENV] = {"env", 'e', BH_OPT_TEXT, "NAMES", NULL,
                 "take only these variables along: HOME,PATH (default: the shell's)"},
    [OPT_DRY] = {"dry-run", 0, BH_OPT_FLAG, NULL, NULL,
                 "say whether it would be taken, and do not submit it"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int submit(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    const char *const *v = cli->value;
    const struct bh_job_words words = {.tenant = v[OPT_TENANT],
                                       .pool = v[OPT_POOL],
                                       .gpus = v[OPT_GPUS],
                                       .cap = v[OPT_CAP],
                                       .memory = v[OPT_MEMORY],
                                       .name = v[OPT_NAME],
                                       .tier = v[OPT_TIER],
                                       .priority = v[OPT_PRIORITY],
                                       .profile = v[OPT_PROFILE],
                                       .image = v[OPT_IMAGE],
                                       .duration = v[OPT_DURATION],
                                       .can = v[OPT_CAN],
                                       .env = v[OPT_ENV],
                                       .firm = v[OPT_FIRM],
                                       .dry_run = v[OPT_DRY],
                                       .argv = cli->operands,
                                       .n_argv = cli->n_operands};
    char job[BH_REMOTE_ID_MAX];
    const int rc = bh_job_submit(r, &words, job, err);
    if (rc < 0)
        return rc;
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    } else if (!job[0]) {
        bh_buf_str(&cli->out, "it would be taken\n");
    } else {
        bh_buf_printf(&cli->out, "%s\n", job);
        bh_cli_next(cli, "bulkhead logs -f %s", job);
        bh_cli_next(cli, "bulkhead why %s", job);
    }
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = submit(cli, &r, &err);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_submit = {
    .name = "submit",
    .summary = "hand a job to the daemon",
    .operands = "-- COMMAND...",
    .min_operands = 1,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples = "bulkhead submit -t red -- python train.py             one GPU, when it is red's turn\n"
                "bulkhead submit -t red -g 4 -d 8h -- ./train          four, for eight hours at most\n"
                "bulkhead submit -t red -g 0.5 -m 20GiB -- ./serve     half of one, 20 GiB of its memory\n"
                "bulkhead submit -t red --dry-run -g 64 -- ./train     would it be taken?\n",
    .text =
        "Prints the job's id. The command runs as the user who submits it, in this folder, with this shell's\n"
        "environment (the daemon keeps it with the job; --env takes less of it along) but for what names\n"
        "GPUs. bulkhead run --tenant waits for it and shows what it writes.\n"
        "\n"
        "Exit status: 0; 1 the policy does not allow it, 2 wrong use, 3 not permitted, 4 no daemon or no\n"
        "such tenant or pool, 6 past its quota for good.\n",
    .opts = opts,
    .run = run,
};
