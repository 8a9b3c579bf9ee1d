/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_audit.c - the audit log, looked at offline: this command becomes bulkhead-audit, which has what it takes to read it.
 *
 * Here the words and options are checked; the command itself links neither SQLite nor GnuTLS.
 */
#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "launch/warden.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPT_KEY, OPT_CHECKPOINT, OPT_FROM, OPT_TENANT, OPT_EVENT, OPT_ACTOR, OPT_SINCE, OPT_OUTPUT, N_OPTS };

static const struct bh_opt opts[] = {
    [OPT_KEY] = {"key", 'k', BH_OPT_FILE, "FILE", NULL, "verify: the log's public key, from elsewhere"},
    [OPT_CHECKPOINT] = {"checkpoint", 'c', BH_OPT_FILE, "FILE", NULL,
                        "verify: a checkpoint that was kept elsewhere"},
    [OPT_FROM] = {"from", 0, BH_OPT_FILE, "FILE", NULL,
                  "export --tenant: prove that it goes on from this checkpoint"},
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "NAME", NULL, "show, export: records of this tenant only"},
    [OPT_EVENT] = {"event", 'e', BH_OPT_TEXT, "PATTERN", NULL, "show: such as alloc.*"},
    [OPT_ACTOR] = {"actor", 'a', BH_OPT_TEXT, "WHO", NULL, "show: a pattern such as user:ada, or a user id"},
    [OPT_SINCE] = {"since", 's', BH_OPT_TEXT, "TIME", NULL, "show: an instant, or how long ago such as 2h"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json,
                    "verify, show: text (default) or json"},
    {0},
};

#define BIT(opt) (1u << (opt))
static const struct {
    const char *word;
    unsigned takes;
} words[] = {
    {"verify", BIT(OPT_KEY) | BIT(OPT_CHECKPOINT) | BIT(OPT_OUTPUT)},
    {"show", BIT(OPT_TENANT) | BIT(OPT_EVENT) | BIT(OPT_ACTOR) | BIT(OPT_SINCE) | BIT(OPT_OUTPUT)},
    {"export", BIT(OPT_TENANT) | BIT(OPT_FROM)},
    {"checkpoint", 0},
    {"key", 0},
};

static int check_words(const struct bh_cli *cli, struct bh_err *err)
{
    size_t i = 0;
    while (i < BH_COUNT_OF(words) && !bh_str_eq(words[i].word, cli->operands[0]))
        i++;
    if (i == BH_COUNT_OF(words))
        return bh_fail(err, BH_USAGE, "audit needs verify, show, export, checkpoint or key, not '%.40s'",
                       cli->operands[0]);
    for (size_t o = 0; o < N_OPTS; o++)
        if (cli->value[o] && !(words[i].takes & BIT(o)))
            return bh_fail(err, BH_USAGE, "'--%s' is not for audit %s; see bulkhead audit --help",
                           opts[o].name, words[i].word);
    if (cli->value[OPT_FROM] && !cli->value[OPT_TENANT])
        return bh_fail(err, BH_USAGE, "--from is for the export of one tenant; a whole log needs no proof");
    return BH_OK;
}

/* The log of this node, unless another was named. */
static int find_log(const struct bh_cli *cli, char ret[PATH_MAX], struct bh_err *err)
{
    const char *state = getenv("BULKHEAD_STATE_DIR");
    const int n = cli->n_operands > 1 ? snprintf(ret, PATH_MAX, "%s", cli->operands[1])
                                      : snprintf(ret, PATH_MAX, "%s/bulkhead.db",
                                                 state && *state ? state : "/var/lib/bulkhead");
    return n < PATH_MAX ? BH_OK : bh_fail(err, BH_TOO_LARGE, "the path is too long");
}

static int become(struct bh_cli *cli, struct bh_err *err)
{
    char program[PATH_MAX], path[PATH_MAX], word[16], name[] = "bulkhead-audit", dashes[] = "--";
    char *argv[N_OPTS + 5] = {name};
    struct bh_arena arena = {0};
    size_t n = 1;
    int rc = check_words(cli, err);
    if (rc == BH_OK)
        rc = find_log(cli, path, err);
    if (rc == BH_OK)
        rc = bh_audit_program(program, sizeof(program), err);
    if (rc < 0)
        return rc;
    for (size_t o = 0; o < N_OPTS; o++)
        if (cli->value[o])
            argv[n++] = bh_arena_printf(&arena, "--%s=%s", opts[o].name, cli->value[o]);
    (void)snprintf(word, sizeof(word), "%s", cli->operands[0]);
    argv[n++] = dashes;
    argv[n++] = word;
    argv[n] = path;
    if (!cli->ignore_pipe)
        (void)signal(SIGPIPE, SIG_DFL);
    (void)execv(program, argv);
    rc = bh_fail(err, BH_SYSTEM, "'%.200s': %s", program, strerrordesc_np(errno));
    (void)signal(SIGPIPE, SIG_IGN);
    bh_arena_fini(&arena);
    return rc;
}

static int run(struct bh_cli *cli)
{
    struct bh_err err;
    (void)become(cli, &err); /* comes back only when it failed */
    return bh_cli_fail(cli, &err);
}

const struct bh_cmd bh_cmd_audit = {
    .name = "audit",
    .summary = "verify, show or export the audit log, also without its daemon",
    .operands = "verify|show|export|checkpoint|key [FILE]",
    .operand_kind = BH_OPERAND_FILE,
    .min_operands = 1,
    .max_operands = 2,
    .examples = "bulkhead audit verify                          this node's log\n"
                "bulkhead audit verify log.jsonl --key k.pub    an export, on any machine\n"
                "bulkhead audit checkpoint > checkpoint.txt     keep it somewhere else\n"
                "bulkhead audit verify --checkpoint checkpoint.txt\n"
                "bulkhead audit show --tenant red --since 2h\n"
                "bulkhead audit export --tenant red > red.jsonl\n",
    .text = "FILE is a database of bulkheadd or an export; without one, this node's database. Only read,\n"
            "also while the daemon runs. verify ends with 1 when something is wrong, and names the record.\n",
    .opts = opts,
    .run = run,
};
