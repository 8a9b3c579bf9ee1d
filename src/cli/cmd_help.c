/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_help.c - help from the table: examples first, then the options, then the rest. */
#include "cli/cli.h"

#include <stdio.h>

static void heading(struct bh_cli *cli, const char *text)
{
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, text);
    bh_buf_str(&cli->out, "\n");
}

static void write_opts(struct bh_cli *cli, const struct bh_opt *o)
{
    for (; o->name; o++) {
        char left[64];
        (void)snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
                       o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name, o->value ? " " : "",
                       o->value ? o->value : "");
        bh_buf_printf(&cli->out, "  %-26s ", left);
        bh_text_wrap(&cli->out, o->help, 29, 29, cli->width);
    }
}

void bh_help_verb(struct bh_cli *cli, const struct bh_cmd *cmd)
{
    struct bh_buf *b = &cli->out;
    bh_buf_printf(b, "bulkhead %s - %s\n\n", cmd->name, cmd->summary);
    heading(cli, "Examples");
    bh_text_block(b, cmd->examples, 2);
    bh_buf_str(b, "\n");
    heading(cli, "Usage");
    bh_buf_printf(b, "  bulkhead %s [OPTIONS]%s%s\n\n", cmd->name, *cmd->operands ? " " : "", cmd->operands);
    heading(cli, "Options");
    if (cmd->opts)
        write_opts(cli, cmd->opts);
    write_opts(cli, bh_opts_common);
    if (*cmd->text) {
        bh_buf_str(b, "\n");
        bh_buf_str(b, cmd->text);
    }
}

void bh_help_all(struct bh_cli *cli)
{
    struct bh_buf *b = &cli->out;
    bh_buf_str(b,
               "Bulkhead tells who shares a GPU with whom, and refuses promises that no silicon keeps.\n\n");
    heading(cli, "Examples");
    bh_text_block(b, bh_cmd_status.examples, 2);
    bh_buf_str(b, "\n");
    heading(cli, "Commands");
    for (size_t i = 0; bh_cmds[i]; i++)
        bh_buf_printf(b, "  %-11s %s\n", bh_cmds[i]->name, bh_cmds[i]->summary);
    bh_buf_str(b, "\n");
    heading(cli, "Options");
    write_opts(cli, bh_cmd_status.opts);
    write_opts(cli, bh_opts_common);
    bh_buf_str(b, "\n");
    bh_buf_str(b, bh_cmd_status.text);
}

static int run(struct bh_cli *cli)
{
    struct bh_err err;
    if (cli->n_operands == 0) {
        bh_help_all(cli);
        return BH_EXIT_OK;
    }
    const struct bh_cmd *cmd = bh_cmd_find(cli->operands[0]);
    if (!cmd) {
        (void)bh_cli_unknown_verb(cli->operands[0], &err);
        return bh_cli_fail(cli, &err);
    }
    bh_help_verb(cli, cmd);
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_help = {
    .name = "help",
    .summary = "how to use a command",
    .operands = "[COMMAND]",
    .operand_kind = BH_OPERAND_VERB,
    .max_operands = 1,
    .examples = "bulkhead help          every command in a line\n"
                "bulkhead help lint     one command, with examples\n",
    .text = "",
    .run = run,
};
