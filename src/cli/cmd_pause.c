/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_pause.c - stops a governed command's work on the GPUs and lets it go on: where it is, or with its memory off the cards. */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "launch/governor.h"
#include "launch/suspend.h"

#include <inttypes.h>

static int pause_it(const char *lease, struct bh_cli *cli, struct bh_err *err)
{
    (void)cli;
    return bh_governor_order_by(lease, BH_GOVERN_PAUSE, err);
}

static void say_step(void *self, const struct bh_checkpoint_event *e)
{
    struct bh_cli *cli = self;
    struct bh_unit_text bytes;
    if (e->done && e->bytes)
        bh_buf_printf(&cli->out, "pid %" PRIu32 ": %s%s, %s in %" PRIu64 " ms\n", e->pid,
                      e->undo ? "put back: " : "", bh_checkpoint_step_words(e->step),
                      bh_size_format(e->bytes, &bytes), e->ns / 1000000);
}

static int suspend_it(const char *lease, struct bh_cli *cli, struct bh_err *err)
{
    const struct bh_checkpoint_progress progress = {say_step, cli};
    return bh_suspend(lease, &progress, err);
}

static int resume_it(const char *lease, struct bh_cli *cli, struct bh_err *err)
{
    const struct bh_checkpoint_progress progress = {say_step, cli};
    return bh_unsuspend(lease, &progress, err);
}

/* ---- the daemon's leases and GPUs ---- */

/* A card of the daemon's, by uuid or index. */
static bool is_gpu(struct bh_remote *r, const char *name)
{
    struct bh_a_gpu gpu;
    uint64_t index;
    return (bh_str_starts(name, "GPU-") || bh_uint_parse(name, UINT32_MAX, &index, NULL) == BH_OK) &&
           bh_remote_gpu(r, name, &gpu, NULL) == BH_OK;
}

/*
 * `L17` is the daemon's, where it has one of that number, and a GPU is its to give away again. True: *ret_rc is what came of
 * it. False: whoever it is about, it is not the daemon's; err->code is BH_NOT_FOUND where a lease of the daemon's was meant.
 */
static bool ask_daemon(const struct bh_cmd *cmd, const char *name, int *ret_rc, struct bh_err *err)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    char lease[BH_REMOTE_ID_MAX];
    const bool is_lease = (*name == 'L' || *name == 'l') && bh_remote_id(name, 'L', lease);
    *ret_rc = bh_remote_init(&r, err);
    if (*ret_rc < 0)
        return true;
    if (is_lease) {
        *ret_rc = bh_remote_order(&r, "leases", lease, cmd->name, NULL, err);
        return *ret_rc != BH_NOT_FOUND;
    }
    if (cmd != &bh_cmd_resume || !is_gpu(&r, name))
        return false;
    *ret_rc = bh_remote_order(&r, "gpus", name, "uncordon", NULL, err);
    return true;
}

static int run(struct bh_cli *cli)
{
    static const struct {
        const struct bh_cmd *cmd;
        int (*fn)(const char *lease, struct bh_cli *cli, struct bh_err *err);
    } verbs[] = {{&bh_cmd_pause, pause_it}, {&bh_cmd_suspend, suspend_it}, {&bh_cmd_resume, resume_it}};
    struct bh_err err, told = {0};
    int rc;
    if (ask_daemon(cli->cmd, cli->operands[0], &rc, &told))
        return rc < 0 ? bh_cli_fail(cli, &told) : BH_EXIT_OK;
    for (size_t i = 0; i < BH_COUNT_OF(verbs); i++)
        if (verbs[i].cmd == cli->cmd && (rc = verbs[i].fn(cli->operands[0], cli, &err)) < 0)
            /* Where neither knows it, the daemon's word says more. */
            return bh_cli_fail(cli, rc == BH_NOT_FOUND && told.code == BH_NOT_FOUND ? &told : &err);
    return BH_EXIT_OK;
}

static const struct bh_opt no_opts[] = {{0}};
#define EXIT_TEXT                                                                                       \
    "\n"                                                                                                \
    "Exit status: 0; 1 the driver cannot, 2 wrong use, 3 not root or not permitted, 4 no such lease,\n" \
    "nothing is governed, or suspend finds nothing of it on a GPU, 5 several bear that name, it is\n"   \
    "suspended (pause) or over, 7 governor or process do not answer, 70 the driver failed.\n"

const struct bh_cmd bh_cmd_pause = {
    .name = "pause",
    .summary = "stop a governed command's work on the GPUs",
    .operands = "LEASE",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead pause training    its kernels stop within milliseconds, in the middle if need be\n"
                "bulkhead pause 4711        by the number that bulkhead shares shows\n"
                "bulkhead pause L17         a lease of the daemon's, as bulkhead leases shows it\n",
    .text =
        "LEASE is a lease of the daemon's, or the number or the name of one that was started with bulkhead\n"
        "run --share, --cap, --floor or --latency. Its processes go on and wait for their work; its memory\n"
        "stays on the GPU. Its share is the others'. A pause ends with bulkhead resume, and with the\n"
        "governor: nobody stays paused by one that is gone. What outlives the command stays paused.\n" EXIT_TEXT,
    .opts = no_opts,
    .run = run,
};

const struct bh_cmd bh_cmd_resume = {
    .name = "resume",
    .summary = "let a command go on, or give a GPU away again",
    .operands = "LEASE|GPU",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead resume training   from where it was\n"
                "bulkhead resume L17        a lease of the daemon's\n"
                "bulkhead resume 3          a GPU that was cordoned or drained, by index or uuid\n",
    .text =
        "A number is a GPU's where the daemon has one of that index, else a lease's.\n"
        "\n"
        "Undoes bulkhead pause and bulkhead suspend, and fails where one of the command's processes still\n"
        "does not run. What was suspended needs its memory on the GPU again: where others have that now, it\n"
        "fails and can be repeated.\n" EXIT_TEXT,
    .opts = no_opts,
    .run = run,
};

const struct bh_cmd bh_cmd_suspend = {
    .name = "suspend",
    .summary = "move a governed command's GPU memory to the host, and stop it",
    .operands = "LEASE",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead suspend training  its GPU memory is free for others until bulkhead resume\n"
                "bulkhead suspend L17       a lease of the daemon's\n",
    .text =
        "By the driver's own checkpoints (R570 or later): CUDA calls of the command wait, its submitted\n"
        "work ends, its memory moves to the host. All of its processes that use a GPU are suspended, or\n"
        "none; one that is interrupted or killed half-way is put back. It outlives the governor; bulkhead\n"
        "resume brings it back. A cap on memory holds for it as before.\n" EXIT_TEXT,
    .opts = no_opts,
    .run = run,
};
