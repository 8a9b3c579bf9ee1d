/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - a rule in full: why it exists, what to do, a failing and a passing example. */
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "conf/out.h"
#include "core/policy/rule.h"

enum { OPT_OUTPUT };
enum { LABEL = 11 };

static const struct bh_opt opts[] = {
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static const char *const needs_words[] = {
    [BH_NEEDS_POLICY] = "policy",
    [BH_NEEDS_FLEET] = "fleet",
    [BH_NEEDS_LIVE] = "live",
};

static const char *const needs_text[] = {
    [BH_NEEDS_POLICY] = "the policy or the manifests alone",
    [BH_NEEDS_FLEET] = "the policy and a fleet file (--fleet)",
    [BH_NEEDS_LIVE] = "a live system: no file can answer it",
};

static enum bh_paint paint_of(const struct bh_rule *r)
{
    return r->severity == BH_SEV_ERROR     ? BH_PAINT_RED
           : r->severity == BH_SEV_WARNING ? BH_PAINT_YELLOW
                                           : BH_PAINT_CYAN;
}

/* ---- text ---- */

static void row(struct bh_cli *cli, const char *label, const char *text)
{
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, label);
    bh_text_blanks(&cli->out, LABEL - bh_text_width(label));
    bh_text_wrap(&cli->out, text, LABEL, LABEL, cli->width);
}

static void row_words(struct bh_cli *cli, const char *label, const char *const *words)
{
    struct bh_buf line;
    bh_buf_init(&line, 4096);
    for (const char *const *w = words; w && *w; w++)
        bh_buf_printf(&line, "%s%s", w == words ? "" : " ", *w);
    if (line.n)
        row(cli, label, bh_buf_text(&line));
    bh_buf_fini(&line);
}

static void example(struct bh_cli *cli, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    bh_buf_str(&cli->out, "\n");
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, label);
    bh_buf_str(&cli->out, "\n");
    bh_text_block(&cli->out, text, 4);
}

static void write_rule(struct bh_cli *cli, const struct bh_rule *r)
{
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, r->id);
    bh_buf_str(&cli->out, " ");
    bh_paint_add(&cli->out, cli->paint_out, paint_of(r), bh_severity_str(r->severity));
    bh_buf_str(&cli->out, ": ");
    bh_text_wrap(&cli->out, r->title, (unsigned)(strlen(r->id) + 10), LABEL, cli->width);
    bh_buf_str(&cli->out, "\n");
    row(cli, "when", r->condition);
    row(cli, "says", r->message);
    row(cli, "why", r->why);
    row(cli, "fix", r->fix);
    row(cli, "waiver",
        r->unwaivable ? "cannot be waived; trying to is an error of its own (BH-090)"
                      : "may be waived with a scope, an approver and an expiry date");
    row(cli, "needs", needs_text[r->needs]);
    row_words(cli, "refs", r->refs);
    row_words(cli, "controls", r->controls);
    example(cli, "fails", r->fail_example);
    example(cli, "passes", r->pass_example);
}

static void write_table(struct bh_cli *cli)
{
    struct bh_buf *b = &cli->out;
    for (size_t i = 0; i < bh_rule_count(); i++) {
        const struct bh_rule *r = bh_rule_at(i);
        const char *severity = bh_severity_str(r->severity);
        bh_paint_add(b, cli->paint_out, BH_PAINT_BOLD, r->id);
        bh_buf_str(b, "  ");
        bh_paint_add(b, cli->paint_out, paint_of(r), severity);
        bh_text_blanks(b, 9 - strlen(severity));
        bh_buf_printf(b, "%-7s%-9s", needs_words[r->needs], r->unwaivable ? "no-waiver" : "");
        bh_buf_str(b, " ");
        bh_text_add(b, r->title);
        bh_buf_str(b, "\n");
    }
    bh_cli_next(cli, "bulkhead explain %s", bh_rule_at(0)->id);
}

/* ---- json ---- */

static void json_rule(struct bh_json *j, const struct bh_rule *r)
{
    bh_json_open(j, '{');
    bh_json_key_str(j, "id", r->id);
    bh_json_key_str(j, "severity", bh_severity_str(r->severity));
    bh_json_key_str(j, "title", r->title);
    bh_json_key_str(j, "condition", r->condition);
    bh_json_key_str(j, "message", r->message);
    bh_json_key_str(j, "why", r->why);
    bh_json_key_str(j, "fix", r->fix);
    bh_json_key_words(j, "refs", r->refs);
    bh_json_key_words(j, "controls", r->controls);
    bh_json_key_bool(j, "waivable", !r->unwaivable);
    bh_json_key_bool(j, "extended", r->extended);
    bh_json_key_str(j, "needs", needs_words[r->needs]);
    bh_json_key_str(j, "fails", r->fail_example);
    bh_json_key_str(j, "passes", r->pass_example);
    bh_json_close(j, '}');
}

static void write_json(struct bh_cli *cli, const struct bh_rule *only)
{
    struct bh_json j;
    bh_json_init(&j, &cli->out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key(&j, "rules");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < bh_rule_count(); i++)
        if (!only || bh_rule_at(i) == only)
            json_rule(&j, bh_rule_at(i));
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}

static int unknown_rule(struct bh_cli *cli, const char *id)
{
    struct bh_err err;
    BH_VEC(const char *) ids = {0};
    for (size_t i = 0; i < bh_rule_count(); i++)
        *bh_vec_push(&ids) = bh_rule_at(i)->id;
    const char *near = bh_str_nearest(id, ids.at, ids.n);
    if (near)
        (void)bh_fail(&err, BH_NOT_FOUND, "no rule '%.60s'; did you mean %s?", id, near);
    else
        (void)bh_fail(&err, BH_NOT_FOUND, "no rule '%.60s'; bulkhead explain lists them all", id);
    bh_vec_fini(&ids);
    return bh_cli_fail(cli, &err);
}

static int run(struct bh_cli *cli)
{
    const struct bh_rule *rule = cli->n_operands ? bh_rule_find(cli->operands[0]) : NULL;
    if (cli->n_operands && !rule)
        return unknown_rule(cli, cli->operands[0]);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
        write_json(cli, rule);
    else if (rule)
        write_rule(cli, rule);
    else
        write_table(cli);
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_explain = {
    .name = "explain",
    .summary = "why a rule exists, how to mend it, both examples",
    .operands = "[RULE]",
    .operand_kind = BH_OPERAND_RULE,
    .max_operands = 1,
    .examples = "bulkhead explain             every rule in a line\n"
                "bulkhead explain BH-020      one rule in full; 20 and bh-20 mean the same\n"
                "bulkhead explain -o json     the rule book for a program\n",
    .text = "Exit status: 0, or 4 when there is no such rule.\n",
    .opts = opts,
    .run = run,
};
