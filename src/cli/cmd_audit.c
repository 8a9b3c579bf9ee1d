/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_audit.c - the audit log, looked at offline: this command becomes bulkhead-audit, which has what it takes to read it.
 *
 * Here the words and options are checked; the command itself links neither SQLite nor GnuTLS. A new key is the daemon's to make.
 */
#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/remote.h"
#include "launch/warden.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_KEY,
    OPT_CHECKPOINT,
    OPT_FROM,
    OPT_TENANT,
    OPT_EVENT,
    OPT_ACTOR,
    OPT_SINCE,
    OPT_REASON,
    OPT_OUTPUT,
    N_OPTS
};

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
    [OPT_REASON] = {"reason", 'r', BH_OPT_TEXT, "WHY", NULL, "rotate: for the log"},
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
    {"rotate", BIT(OPT_REASON)},
};

static int check_words(const struct bh_cli *cli, struct bh_err *err)
{
    size_t i = 0;
    while (i < BH_COUNT_OF(words) && !bh_str_eq(words[i].word, cli->operands[0]))
        i++;
    if (i == BH_COUNT_OF(words))
        return bh_fail(err, BH_USAGE,
                       "audit needs verify, show, export, checkpoint, key or rotate, not '%.40s'",
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

/* The daemon has the key: the new one is named by a record that the old one signs. */
static int rotate(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_a_made made;
    struct bh_json j;
    struct bh_buf body;
    int rc = check_words(cli, err);
    if (rc == BH_OK && cli->n_operands > 1)
        rc = bh_fail(err, BH_USAGE, "audit rotate is for the log of the daemon that runs here");
    if (rc == BH_OK)
        rc = bh_remote_init(&r, err);
    else
        r = (struct bh_remote){.client = {.fd = -1}};
    bh_buf_init(&body, 4096);
    bh_json_init(&j, &body);
    bh_json_open_flat(&j, '{');
    if (cli->value[OPT_REASON])
        bh_json_key_str(&j, "reason", cli->value[OPT_REASON]);
    bh_json_close(&j, '}');
    if (rc == BH_OK)
        rc = bh_remote_ask(&r, "POST", "/v1/audit/rotate", bh_buf_text(&body), err);
    bh_buf_fini(&body);
    if (rc == BH_OK)
        rc = bh_remote_read(&r, &bh_a_made_shape, &made, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_str(&cli->out, "the log is signed with key ");
    bh_text_add(&cli->out, made.id);
    bh_buf_str(&cli->out, " from now on\n");
    bh_cli_next(cli, "bulkhead audit key > log.pub");
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    struct bh_err err;
    if (bh_str_eq(cli->operands[0], "rotate"))
        return rotate(cli, &err) < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
    (void)become(cli, &err); /* comes back only when it failed */
    return bh_cli_fail(cli, &err);
}

const struct bh_cmd bh_cmd_audit = {
    .name = "audit",
    .summary = "verify, show or export the audit log, also without its daemon",
    .operands = "verify|show|export|checkpoint|key|rotate [FILE]",
    .operand_kind = BH_OPERAND_FILE,
    .min_operands = 1,
    .max_operands = 2,
    .examples = "bulkhead audit verify                          this node's log\n"
                "bulkhead audit verify log.jsonl --key k.pub    an export, on any machine\n"
                "bulkhead audit checkpoint > checkpoint.txt     keep it somewhere else\n"
                "bulkhead audit verify --checkpoint checkpoint.txt\n"
                "bulkhead audit show --tenant red --since 2h\n"
                "bulkhead audit export --tenant red > red.jsonl\n"
                "bulkhead audit rotate --reason 'an operator left'\n",
    .text = "FILE is a database of bulkheadd or an export; without one, this node's database. Only read,\n"
            "also while the daemon runs. verify ends with 1 when something is wrong, and names the record.\n"
            "rotate has the daemon sign with a new key, vouched for by the one before; needs an operator.\n",
    .opts = opts,
    .run = run,
};
