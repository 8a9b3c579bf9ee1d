/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_policy.c - the policy in force, what another one would change for whom, and putting it in force.
 *
 * What is applied is what was shown: the text is read once, and the daemon refuses it where another version than the one it
 * was compared with is in force by then.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/books_text.h"
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPT_YES, OPT_REASON, OPT_VERSION, OPT_OUTPUT };
enum { POLICY_MAX = 768 * 1024, BODY_MAX = 2 << 20 };

static const struct bh_opt opts[] = {
    [OPT_YES] = {"yes", 'y', BH_OPT_FLAG, NULL, NULL, "apply: do not ask"},
    [OPT_REASON] = {"reason", 'r', BH_OPT_TEXT, "TEXT", NULL, "apply: why, for the audit log"},
    [OPT_VERSION] = {"version", 'v', BH_OPT_TEXT, "N", NULL, "show: an earlier one"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int read_policy(const char *path, struct bh_buf *ret, struct bh_err *err)
{
    const bool is_stdin = bh_str_eq(path, "-");
    FILE *f = is_stdin ? stdin : fopen(path, "re");
    char piece[16384];
    size_t n;
    if (!f)
        return bh_fail(err, errno == ENOENT ? BH_NOT_FOUND : BH_INVALID, "'%.200s': %s", path,
                       strerrordesc_np(errno));
    do {
        n = fread(piece, 1, sizeof(piece), f);
        bh_buf_add(ret, piece, n);
    } while (n == sizeof(piece) && !ret->full);
    const bool failed = ferror(f);
    if (!is_stdin)
        (void)fclose(f);
    if (failed)
        return bh_fail(err, BH_INVALID, "'%.200s' cannot be read", path);
    if (ret->full)
        return bh_fail(err, BH_TOO_LARGE, "'%.200s' is larger than %d KiB", path, POLICY_MAX / 1024);
    return memchr(bh_buf_text(ret), '\0', ret->n) ? bh_fail(err, BH_INVALID, "'%.200s' has a NUL in it", path)
                                                  : BH_OK;
}

/* version 0: it is compared, not applied. */
static void make_body(struct bh_buf *b, const struct bh_buf *text, bool apply, uint64_t version,
                      const char *reason)
{
    struct bh_json j;
    bh_json_init(&j, b);
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "text", bh_buf_text(text));
    if (apply && version)
        bh_json_key_u64(&j, "version", version);
    if (apply && reason)
        bh_json_key_str(&j, "reason", reason);
    bh_json_close(&j, '}');
}

static int post(struct bh_remote *r, const char *path, const struct bh_buf *text, bool apply,
                uint64_t version, const char *reason, struct bh_err *err)
{
    struct bh_buf body;
    bh_buf_init(&body, BODY_MAX);
    make_body(&body, text, apply, version, reason);
    const int rc = body.full ? bh_fail(err, BH_TOO_LARGE, "the policy is too large")
                             : bh_remote_ask(r, "POST", path, bh_buf_text(&body), err);
    bh_buf_fini(&body);
    return rc;
}

static int compare(struct bh_cli *cli, struct bh_remote *r, const struct bh_buf *text, bool json,
                   struct bh_a_diff *ret, struct bh_err *err)
{
    bh_remote_slow("the policy is being compared");
    int rc = post(r, "/v1/policy/diff", text, false, 0, NULL, err);
    bh_remote_slow(NULL);
    if (rc == BH_OK)
        rc = bh_remote_read(r, &bh_a_diff_shape, ret, err);
    if (rc == BH_OK && json)
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else if (rc == BH_OK)
        bh_diff_text(cli, &r->arena, ret, cli->operands[1]);
    return rc;
}

/* ---- the words ---- */

static int diff(struct bh_cli *cli, struct bh_remote *r, const struct bh_buf *text, int *ret_status,
                struct bh_err *err)
{
    struct bh_a_diff d;
    const int rc = compare(cli, r, text, bh_cli_wants(cli, OPT_OUTPUT, "json"), &d, err);
    if (rc != BH_OK)
        return rc;
    *ret_status = d.errors ? BH_EXIT_FOUND : BH_EXIT_OK;
    if (!d.errors && d.changes.n && !bh_str_eq(cli->operands[1], "-") && !cli->value[OPT_OUTPUT])
        bh_cli_next(cli, "bulkhead policy apply %s", cli->operands[1]);
    return BH_OK;
}

static int apply(struct bh_cli *cli, struct bh_remote *r, const struct bh_buf *text, int *ret_status,
                 struct bh_err *err)
{
    const bool json = bh_cli_wants(cli, OPT_OUTPUT, "json");
    struct bh_a_applied done;
    struct bh_a_diff d;
    int rc = compare(cli, r, text, false, &d, err);
    if (rc != BH_OK)
        return rc;
    if (json)
        cli->out.n = 0;
    else if ((rc = bh_cli_flush(cli, STDOUT_FILENO, err)) < 0) /* it is asked about: it must be seen */
        return rc;
    cli->out.n = 0;
    if (d.errors)
        return bh_fail(err, BH_REFUSED,
                       "'%.200s' cannot be applied: %" PRIu64 " of its findings are errors; next: "
                       "bulkhead policy diff",
                       cli->operands[1], d.errors);
    if (!cli->value[OPT_YES] &&
        (rc = bh_confirm(stdin, stderr, isatty(STDIN_FILENO) && !bh_str_eq(cli->operands[1], "-"),
                         "Apply it?", err)) < 0)
        return rc;
    r->client.timeout_ms = 0;
    bh_remote_slow("the policy is being applied");
    rc = post(r, "/v1/policy/apply", text, true, d.version, cli->value[OPT_REASON], err);
    bh_remote_slow(NULL);
    if (rc == BH_OK)
        rc = bh_remote_read(r, &bh_a_applied_shape, &done, err);
    if (rc != BH_OK)
        return rc;
    if (json)
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else
        bh_buf_printf(&cli->out, "version %" PRIu64 " is in force\n", done.version);
    *ret_status = BH_EXIT_OK;
    return BH_OK;
}

static int show(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    struct bh_buf path;
    struct bh_a_policy p;
    bh_buf_init(&path, 512);
    bh_buf_str(&path, "/v1/policy?version=");
    bh_remote_quote(&path, cli->value[OPT_VERSION] ? cli->value[OPT_VERSION] : "0");
    const int rc = bh_remote_get(r, bh_buf_text(&path), &bh_a_policy_shape, &p, err);
    bh_buf_fini(&path);
    if (rc < 0)
        return rc;
    if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else {
        struct bh_buf said;
        bh_buf_init(&said, 4096);
        bh_text_add(&said, bh_arena_printf(&r->arena, "version %" PRIu64 ", since %s%s%s%s%s", p.version,
                                           bh_say_time(&r->arena, p.at_ms), p.who ? ", by " : "",
                                           p.who ? p.who : "", p.why ? ": " : "", p.why ? p.why : ""));
        (void)fprintf(stderr, "bulkhead: %s\n", bh_buf_text(&said));
        bh_buf_fini(&said);
        bh_buf_str(&cli->out, p.text); /* as it was written: it may be saved and applied again */
    }
    return BH_OK;
}

static int with_file(struct bh_cli *cli, struct bh_remote *r, bool is_apply, int *ret_status,
                     struct bh_err *err)
{
    struct bh_buf text;
    if (cli->n_operands < 2)
        return bh_fail(err, BH_USAGE, "policy %s needs FILE", cli->operands[0]);
    bh_buf_init(&text, POLICY_MAX);
    int rc = read_policy(cli->operands[1], &text, err);
    if (rc == BH_OK)
        rc = (is_apply ? apply : diff)(cli, r, &text, ret_status, err);
    bh_buf_fini(&text);
    return rc;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    int status = BH_EXIT_OK;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    const char *word = cli->operands[0];
    const bool is_apply = bh_str_eq(word, "apply");
    if (rc == BH_OK && bh_str_eq(word, "show"))
        rc = show(cli, &r, &err);
    else if (rc == BH_OK && (is_apply || bh_str_eq(word, "diff")))
        rc = with_file(cli, &r, is_apply, &status, &err);
    else if (rc == BH_OK)
        rc = bh_fail(&err, BH_USAGE, "policy needs show, diff or apply, not '%.40s'", word);
    return rc < 0 ? bh_cli_fail(cli, &err) : status;
}

const struct bh_cmd bh_cmd_policy = {
    .name = "policy",
    .summary = "the policy in force, what another would change, and apply it",
    .operands = "show|diff|apply [FILE]",
    .operand_kind = BH_OPERAND_FILE,
    .min_operands = 1,
    .max_operands = 2,
    .examples = "bulkhead policy show > policy.yaml           the one in force\n"
                "bulkhead policy diff policy.yaml             what it would change, and for whom\n"
                "bulkhead policy apply policy.yaml            shows that, asks, and does it\n"
                "bulkhead policy apply policy.yaml --yes --reason 'ticket 42'\n",
    .text =
        "apply puts in force what it showed: where somebody else applied another policy meanwhile it is\n"
        "refused (exit status 5), and diff shows what is new. A policy with errors is not applied; bulkhead\n"
        "lint says more about them. Needs an operator; show also serves auditors and viewers.\n"
        "\n"
        "Exit status: 0; 1 it has errors, or the answer was no, 2 wrong use or no policy, 3 not permitted,\n"
        "4 no daemon or no such file, 5 another version is in force by now.\n",
    .opts = opts,
    .run = run,
};
