/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_completion.c - completion scripts for bash and zsh, written from the table of verbs.
 *
 * The scripts hold words only: they call nothing while the user types. The packages ship
 * what this command prints, so an option cannot exist without being completed.
 */
#include "base/str.h"
#include "cli/cli.h"
#include "core/policy/rule.h"

#include <string.h>

static const char *const shells[] = {"bash", "zsh", NULL};

/* The words an operand may be, separated by blanks; nothing for files. */
static void operand_words(struct bh_buf *b, const struct bh_cmd *cmd)
{
    if (cmd->operand_kind == BH_OPERAND_RULE)
        for (size_t i = 0; i < bh_rule_count(); i++)
            bh_buf_printf(b, "%s%s", i ? " " : "", bh_rule_at(i)->id);
    if (cmd->operand_kind == BH_OPERAND_SHELL)
        for (size_t i = 0; shells[i]; i++)
            bh_buf_printf(b, "%s%s", i ? " " : "", shells[i]);
    if (cmd->operand_kind == BH_OPERAND_VERB)
        for (size_t i = 0; bh_cmds[i]; i++)
            bh_buf_printf(b, "%s%s", i ? " " : "", bh_cmds[i]->name);
}

static void add_words(struct bh_buf *b, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        bh_buf_printf(b, "%s%s", i ? " " : "", words[i]);
}

/* ---- bash ---- */

static void bash_names(struct bh_buf *b, const struct bh_opt *o)
{
    for (; o && o->name; o++) {
        if (o->letter)
            bh_buf_printf(b, " -%c", o->letter);
        bh_buf_printf(b, " --%s", o->name);
    }
}

/* A case arm for each option that takes a value: `lint:-o|lint:--output) _bulkhead_words ... ;;` */
static void bash_values(struct bh_buf *b, const char *verb, const struct bh_opt *o)
{
    for (; o && o->name; o++) {
        if (o->kind == BH_OPT_FLAG)
            continue;
        bh_buf_str(b, "    ");
        if (o->letter)
            bh_buf_printf(b, "%s:-%c|", verb, o->letter);
        bh_buf_printf(b, "%s:--%s) ", verb, o->name);
        if (o->kind == BH_OPT_FILE)
            bh_buf_str(b, "_bulkhead_files; ");
        if (o->kind == BH_OPT_WORD || o->kind == BH_OPT_WORDS) {
            bh_buf_printf(b, "%s '", o->kind == BH_OPT_WORD ? "_bulkhead_words" : "_bulkhead_list");
            add_words(b, o->words);
            bh_buf_str(b, "'; ");
        }
        bh_buf_str(b, "return ;;\n");
    }
}

static void bash_operands(struct bh_buf *b, const struct bh_cmd *cmd)
{
    bh_buf_printf(b, "    %s:-*) _bulkhead_words '", cmd->name);
    bash_names(b, cmd->opts);
    bash_names(b, bh_opts_common);
    bh_buf_printf(b, "' ;;\n    %s:*) ", cmd->name);
    if (cmd->operand_kind == BH_OPERAND_FILE) {
        bh_buf_str(b, "_bulkhead_files");
    } else {
        bh_buf_str(b, "_bulkhead_words '");
        operand_words(b, cmd);
        bh_buf_str(b, "'");
    }
    bh_buf_str(b, " ;;\n");
}

static void bash_script(struct bh_buf *b)
{
    bh_buf_str(b, "# bash completion for bulkhead, printed by: bulkhead completion bash\n"
                  "_bulkhead_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
                  "_bulkhead_list() {\n"
                  "  local last=${cur##*,}\n"
                  "  mapfile -t COMPREPLY < <(compgen -P \"${cur%\"$last\"}\" -W \"$1\" -- \"$last\")\n"
                  "}\n"
                  "_bulkhead_files() {\n"
                  "  compopt -o filenames 2>/dev/null\n"
                  "  mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                  "}\n"
                  "_bulkhead() {\n"
                  "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= i\n"
                  "  COMPREPLY=()\n"
                  "  # readline splits --option=value into three words\n"
                  "  if [[ $cur == = ]]; then cur=\n"
                  "  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                  "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "    case ${COMP_WORDS[i]} in\n"
                  "    ");
    for (size_t i = 0; bh_cmds[i]; i++)
        bh_buf_printf(b, "%s%s", i ? "|" : "", bh_cmds[i]->name);
    bh_buf_str(b, ") verb=${COMP_WORDS[i]}; break ;;\n    esac\n  done\n  case $verb:$prev in\n");
    bash_values(b, bh_cmd_status.name, bh_cmd_status.opts);
    for (size_t i = 0; bh_cmds[i]; i++)
        bash_values(b, bh_cmds[i]->name, bh_cmds[i]->opts);
    bash_values(b, "*", bh_opts_common);
    bh_buf_str(b, "  esac\n  case $verb:$cur in\n");
    bash_operands(b, &bh_cmd_status);
    for (size_t i = 0; bh_cmds[i]; i++)
        bash_operands(b, bh_cmds[i]);
    bh_buf_str(b, "  esac\n}\ncomplete -F _bulkhead bulkhead\n");
}

/* ---- zsh ---- */

/* Text inside '...' and an _arguments description, where quotes, colons and brackets mean something. */
static void zsh_text(struct bh_buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '\'')
            bh_buf_str(b, "'\\'");
        else if (strchr(":[]\\", *s))
            bh_buf_str(b, "\\");
        bh_buf_add(b, s, 1);
    }
}

static void zsh_opt(struct bh_buf *b, const struct bh_opt *o)
{
    const char *eq = o->kind == BH_OPT_FLAG ? "" : "=";
    if (o->letter)
        bh_buf_printf(b, "      '(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, *eq ? "+" : "",
                      o->name, eq);
    else
        bh_buf_printf(b, "      '--%s%s[", o->name, eq);
    zsh_text(b, o->help);
    bh_buf_str(b, "]");
    if (o->value)
        bh_buf_printf(b, ":%s:", o->value);
    if (o->kind == BH_OPT_FILE)
        bh_buf_str(b, "_files");
    if (o->kind == BH_OPT_WORD || o->kind == BH_OPT_WORDS) {
        bh_buf_str(b, o->kind == BH_OPT_WORD ? "(" : "_values -s , word ");
        add_words(b, o->words);
        bh_buf_str(b, o->kind == BH_OPT_WORD ? ")" : "");
    }
    bh_buf_str(b, "' \\\n");
}

static void zsh_opts(struct bh_buf *b, const struct bh_opt *o)
{
    for (; o && o->name; o++)
        zsh_opt(b, o);
}

static void zsh_verb(struct bh_buf *b, const struct bh_cmd *cmd)
{
    bh_buf_printf(b, "    %s)\n      _arguments \\\n", cmd->name);
    zsh_opts(b, cmd->opts);
    zsh_opts(b, bh_opts_common);
    if (cmd->operand_kind == BH_OPERAND_FILE) {
        bh_buf_str(b, "      '*:file:_files' ;;\n");
    } else if (cmd->operand_kind != BH_OPERAND_NONE) {
        bh_buf_str(b, "      '1:word:(");
        operand_words(b, cmd);
        bh_buf_str(b, ")' ;;\n");
    } else {
        bh_buf_str(b, "      ;;\n");
    }
}

static void zsh_script(struct bh_buf *b)
{
    bh_buf_str(b, "#compdef bulkhead\n"
                  "# zsh completion for bulkhead, printed by: bulkhead completion zsh\n"
                  "_bulkhead() {\n"
                  "  local context state state_descr line\n"
                  "  typeset -A opt_args\n"
                  "  local -a verbs\n"
                  "  verbs=(\n");
    for (size_t i = 0; bh_cmds[i]; i++) {
        bh_buf_printf(b, "    '%s:", bh_cmds[i]->name);
        zsh_text(b, bh_cmds[i]->summary);
        bh_buf_str(b, "'\n");
    }
    bh_buf_str(b, "  )\n  _arguments -C -A '-*' \\\n");
    zsh_opts(b, bh_cmd_status.opts);
    zsh_opts(b, bh_opts_common);
    bh_buf_str(b, "      '1:command:->verb' '*::argument:->rest' && return\n"
                  "  case $state in\n"
                  "  verb) _describe command verbs ;;\n"
                  "  rest)\n"
                  "    case $words[1] in\n");
    for (size_t i = 0; bh_cmds[i]; i++)
        zsh_verb(b, bh_cmds[i]);
    bh_buf_str(
        b,
        "    esac ;;\n"
        "  esac\n"
        "}\n"
        "if [[ $funcstack[1] == _bulkhead ]]; then _bulkhead \"$@\"; else compdef _bulkhead bulkhead; fi\n");
}

static int run(struct bh_cli *cli)
{
    struct bh_err err;
    const char *shell = cli->operands[0];
    if (bh_str_eq(shell, "bash")) {
        bash_script(&cli->out);
    } else if (bh_str_eq(shell, "zsh")) {
        zsh_script(&cli->out);
    } else {
        (void)bh_fail(&err, BH_USAGE, "no completion for '%.60s'; there is bash and zsh", shell);
        return bh_cli_fail(cli, &err);
    }
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_completion = {
    .name = "completion",
    .summary = "a completion script for bash or zsh",
    .operands = "bash|zsh",
    .operand_kind = BH_OPERAND_SHELL,
    .min_operands = 1,
    .max_operands = 1,
    .examples = "source <(bulkhead completion bash)                    in this shell\n"
                "bulkhead completion zsh > ~/.zfunc/_bulkhead          for good, in a folder of your fpath\n",
    .text = "",
    .run = run,
};
