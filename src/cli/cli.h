/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what a verb is, and what it is given.
 *
 * One table entry drives the parsing, the help, the completion scripts and the check of
 * the man pages. A verb fills cli->out and returns an exit status; main writes the text
 * out in one go, so a verb never meets a closed pipe or a full disk. Talk goes to
 * standard error, data to standard output.
 */
#ifndef BH_CLI_CLI_H
#define BH_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/paint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bh_opt_kind {
    BH_OPT_FLAG,  /* takes no value */
    BH_OPT_WORD,  /* one of `words` */
    BH_OPT_WORDS, /* some of `words`, separated by commas */
    BH_OPT_FILE,
    BH_OPT_TEXT,
};

struct bh_opt {
    const char *name;         /* long form without dashes; NULL ends a table */
    char letter;              /* short form, or 0 */
    uint8_t kind;             /* enum bh_opt_kind */
    const char *value;        /* its value's name in help: `FILE`; NULL for a flag */
    const char *const *words; /* NULL-terminated, for BH_OPT_WORD and BH_OPT_WORDS */
    const char *help;         /* one line, lower case, no full stop */
};

/* What stands after the options, for the count check and for completion. */
enum bh_operand_kind { BH_OPERAND_NONE, BH_OPERAND_FILE, BH_OPERAND_RULE, BH_OPERAND_SHELL, BH_OPERAND_VERB };

struct bh_cli;
struct bh_cmd {
    const char *name;     /* "" for what stands before any verb */
    const char *summary;  /* one line for the list of verbs */
    const char *operands; /* as the usage line shows them: `FILE...`; "" when there are none */
    uint8_t operand_kind; /* enum bh_operand_kind */
    uint8_t min_operands, max_operands;
    const char *examples; /* lines of `command   what it does`; shown first */
    const char *text;     /* what else there is to say */
    const struct bh_opt *opts;
    int (*run)(struct bh_cli *cli); /* returns the exit status */
};

enum { BH_CLI_OPTS_MAX = 24, BH_CLI_OPERANDS_ANY = 255 };
enum { BH_EXIT_OK = 0, BH_EXIT_FOUND = 1, BH_EXIT_UNREADABLE = 2 };

struct bh_cli {
    const struct bh_cmd *cmd;
    const char *value[BH_CLI_OPTS_MAX]; /* by place in cmd->opts; NULL: not given; "" for a flag */
    const char *const *operands;
    size_t n_operands;
    bool want_help;
    bool ignore_pipe;   /* SIGPIPE was ignored when we began; it always is later */
    const char *color;  /* --color's word; NULL: not given */
    struct bh_buf out;  /* standard output */
    struct bh_buf hint; /* what to try next: standard error, after the output */
    bool paint_out, paint_err;
    bool is_terminal; /* standard output: long sentences are folded only for eyes, never for a pipe */
    unsigned width;   /* columns of the terminal, 40 to 100 */
};

/* Every verb, in the order help shows them; NULL-terminated (main.c). */
extern const struct bh_cmd *const bh_cmds[];
const struct bh_cmd *bh_cmd_find(const char *name); /* or NULL */

extern const struct bh_cmd bh_cmd_lint, bh_cmd_plan, bh_cmd_explain, bh_cmd_init, bh_cmd_completion,
    bh_cmd_help, bh_cmd_version, bh_cmd_gpus, bh_cmd_fleet, bh_cmd_doctor, bh_cmd_sim, bh_cmd_run,
    bh_cmd_adopt, bh_cmd_replay, bh_cmd_shares, bh_cmd_pause, bh_cmd_resume, bh_cmd_suspend, bh_cmd_why,
    bh_cmd_whatif, bh_cmd_audit, bh_cmd_tenants, bh_cmd_leases, bh_cmd_ps, bh_cmd_submit, bh_cmd_logs,
    bh_cmd_cancel, bh_cmd_quota, bh_cmd_cordon, bh_cmd_drain, bh_cmd_policy, bh_cmd_usage, bh_cmd_describe,
    bh_cmd_backup, bh_cmd_token, bh_cmd_upgrade, bh_cmd_top;
/* What `bulkhead` alone does; its options are also those that may stand before a verb. */
extern const struct bh_cmd bh_cmd_status;

/* Options every verb takes: --color, --help. */
extern const struct bh_opt bh_opts_common[];
extern const char *const bh_words_text_json[];

/*
 * Read argv[1..] against cmd's table. stop_at_operand: leave the first word that is no option
 * and everything after it to the caller (cli->operands).
 */
int bh_cli_parse(struct bh_cli *cli, const struct bh_cmd *cmd, int argc, char **argv, bool stop_at_operand,
                 struct bh_err *err) BH_MUST_USE;
/* Is the value one of the words the option takes? Other kinds accept anything. */
int bh_opt_check(const struct bh_opt *o, const char *value, struct bh_err *err) BH_MUST_USE;
/* Is -o json asked for? opt: the place of the output option. */
bool bh_cli_wants(const struct bh_cli *cli, size_t opt, const char *format);

/* Say what went wrong on standard error; returns the code's exit status. */
int bh_cli_fail(const struct bh_cli *cli, const struct bh_err *err);
/* The line that it says. */
void bh_cli_error(const struct bh_cli *cli, const char *text, struct bh_buf *out);
/* `next: ` and a command, shown after the output. */
void bh_cli_next(struct bh_cli *cli, const char *fmt, ...) BH_PRINTF(2, 3);
/* Write cli->out to fd. A reader that went away is no failure. */
int bh_cli_flush(struct bh_cli *cli, int fd, struct bh_err *err) BH_MUST_USE;

void bh_help_verb(struct bh_cli *cli, const struct bh_cmd *cmd);
void bh_help_all(struct bh_cli *cli);
/* `no verb 'lnt'; did you mean 'lint'?` */
int bh_cli_unknown_verb(const char *name, struct bh_err *err);

#endif
