/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the table of verbs, and the way to the one that was asked for. Nothing else. */
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

const struct bh_cmd *const bh_cmds[] = {
    /* what was promised */
    &bh_cmd_lint,
    &bh_cmd_plan,
    &bh_cmd_explain,
    &bh_cmd_init,
    &bh_cmd_policy,
    /* who has what */
    &bh_cmd_top,
    &bh_cmd_tenants,
    &bh_cmd_quota,
    &bh_cmd_usage,
    &bh_cmd_gpus,
    &bh_cmd_leases,
    /* work */
    &bh_cmd_run,
    &bh_cmd_submit,
    &bh_cmd_ps,
    &bh_cmd_logs,
    &bh_cmd_cancel,
    &bh_cmd_why,
    &bh_cmd_whatif,
    &bh_cmd_describe,
    &bh_cmd_adopt,
    &bh_cmd_shares,
    &bh_cmd_pause,
    &bh_cmd_resume,
    &bh_cmd_suspend,
    /* the machine */
    &bh_cmd_doctor,
    &bh_cmd_fleet,
    &bh_cmd_cordon,
    &bh_cmd_drain,
    &bh_cmd_upgrade,
    &bh_cmd_token,
    &bh_cmd_audit,
    &bh_cmd_backup,
    &bh_cmd_sim,
    &bh_cmd_replay,
    /* this command */
    &bh_cmd_completion,
    &bh_cmd_help,
    &bh_cmd_version,
    NULL,
};

enum { N_CMDS = BH_COUNT_OF(bh_cmds) - 1 };
#define OUT_MAX ((size_t)1 << 30)

const struct bh_cmd *bh_cmd_find(const char *name)
{
    for (size_t i = 0; i < N_CMDS; i++)
        if (bh_str_eq(bh_cmds[i]->name, name))
            return bh_cmds[i];
    return NULL;
}

int bh_cli_unknown_verb(const char *name, struct bh_err *err)
{
    const char *names[N_CMDS];
    for (size_t i = 0; i < N_CMDS; i++)
        names[i] = bh_cmds[i]->name;
    const char *near = bh_str_nearest(name, names, N_CMDS);
    if (near)
        return bh_fail(err, BH_USAGE, "no command '%.60s'; did you mean '%s'?", name, near);
    return bh_fail(err, BH_USAGE, "no command '%.60s'; bulkhead help lists them", name);
}

/* The options before the verb, then the verb's own; cli->cmd is what is to run. */
static int parse(struct bh_cli *cli, int argc, char **argv, struct bh_err *err)
{
    int rc = bh_cli_parse(cli, &bh_cmd_status, argc, argv, true, err);
    if (rc < 0 || cli->n_operands == 0)
        return rc;
    const struct bh_cmd *cmd = bh_cmd_find(cli->operands[0]);
    if (!cmd)
        return bh_cli_unknown_verb(cli->operands[0], err);
    for (size_t i = 0; bh_cmd_status.opts[i].name; i++)
        if (cli->value[i])
            return bh_fail(err, BH_USAGE, "'--%s' does not go before a command; see bulkhead %s --help",
                           bh_cmd_status.opts[i].name, cmd->name);
    int skip = argc - (int)cli->n_operands;
    return bh_cli_parse(cli, cmd, argc - skip, argv + skip, false, err);
}

static int run(struct bh_cli *cli)
{
    if (!cli->want_help)
        return cli->cmd->run(cli);
    if (cli->cmd == &bh_cmd_status)
        bh_help_all(cli);
    else
        bh_help_verb(cli, cli->cmd);
    return BH_EXIT_OK;
}

static void set_paint(struct bh_cli *cli)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    cli->is_terminal = isatty(STDOUT_FILENO);
    cli->paint_out = bh_paint_wanted(cli->color, cli->is_terminal, no_color, term);
    cli->paint_err = bh_paint_wanted(cli->color, isatty(STDERR_FILENO), no_color, term);
    cli->width = bh_paint_width(STDOUT_FILENO);
}

/* Names in a hostile file cannot be chosen to collide in our maps. Without randomness the answers are the same. */
static void key_maps(void)
{
    uint64_t k[2] = {0};
    if (getrandom(k, sizeof(k), GRND_NONBLOCK) == (ssize_t)sizeof(k))
        bh_map_key(k[0], k[1]);
}

int main(int argc, char **argv)
{
    struct bh_cli cli = {0};
    struct bh_err err;
    int status;

    key_maps();
    /* A reader that leaves early must not turn a verdict into a signal. */
    cli.ignore_pipe = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    bh_buf_init(&cli.out, OUT_MAX);
    bh_buf_init(&cli.hint, 1u << 16);
    int rc = parse(&cli, argc, argv, &err);
    set_paint(&cli);
    status = rc < 0 ? bh_cli_fail(&cli, &err) : run(&cli);
    if (bh_cli_flush(&cli, STDOUT_FILENO, &err) < 0)
        status = bh_cli_fail(&cli, &err);
    else
        fputs(bh_buf_text(&cli.hint), stderr);
    bh_buf_fini(&cli.out);
    bh_buf_fini(&cli.hint);
    return status;
}
