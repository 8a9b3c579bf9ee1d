/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - a command line against a verb's table.
 *
 * getopt_long does the walking; this builds its tables, and turns what it trips over
 * into a sentence with the nearest right spelling. Values of closed lists are checked
 * here, so a verb only ever sees words it knows.
 */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

static const char *const color_words[] = {"auto", "always", "never", NULL};
const char *const bh_words_text_json[] = {"text", "json", NULL};

enum { COMMON_COLOR, COMMON_HELP, N_COMMON };
const struct bh_opt bh_opts_common[] = {
    [COMMON_COLOR] = {"color", 0, BH_OPT_WORD, "WHEN", color_words, "auto (default), always or never"},
    [COMMON_HELP] = {"help", 'h', BH_OPT_FLAG, NULL, NULL, "show this help"},
    {0},
};

enum { OPTS_ALL = BH_CLI_OPTS_MAX + N_COMMON, LONG_BASE = 256 };

/* A verb's options and the common ones, as getopt wants them; val - LONG_BASE is the place in `opt`. */
struct tables {
    const struct bh_opt *opt[OPTS_ALL];
    size_t n, n_own;
    struct option longs[OPTS_ALL + 1];
    char shorts[2 * OPTS_ALL + 3];
};

static void add_opts(struct tables *t, const struct bh_opt *opts, size_t *n_shorts)
{
    for (; opts && opts->name && t->n < OPTS_ALL; opts++) {
        bool takes = opts->kind != BH_OPT_FLAG;
        t->longs[t->n] =
            (struct option){opts->name, takes ? required_argument : no_argument, NULL, LONG_BASE + (int)t->n};
        if (opts->letter) {
            t->shorts[(*n_shorts)++] = opts->letter;
            if (takes)
                t->shorts[(*n_shorts)++] = ':';
        }
        t->opt[t->n++] = opts;
    }
}

static void build(struct tables *t, const struct bh_cmd *cmd, bool stop_at_operand)
{
    size_t n = 0;
    *t = (struct tables){0};
    if (stop_at_operand)
        t->shorts[n++] = '+';
    t->shorts[n++] = ':';
    add_opts(t, cmd->opts, &n);
    t->n_own = t->n;
    assert(t->n_own <= BH_CLI_OPTS_MAX); /* or their values had no place */
    add_opts(t, bh_opts_common, &n);
}

/* The place of the option getopt named, by letter or by LONG_BASE: it names only what it was given. */
static size_t place_of(const struct tables *t, int c)
{
    size_t i = c >= LONG_BASE ? (size_t)(c - LONG_BASE) : 0;
    while (c < LONG_BASE && i < t->n && t->opt[i]->letter != c)
        i++;
    assert(i < t->n && t->opt[i]);
    return i;
}

/* A blank before the verb's name, none before the nameless one. */
static const char *gap(const struct bh_cmd *cmd)
{
    return *cmd->name ? " " : "";
}

static int unknown_option(const struct tables *t, const struct bh_cmd *cmd, const char *word,
                          struct bh_err *err)
{
    const char *names[OPTS_ALL];
    char bare[64];
    size_t n = 0, len = strcspn(word + strspn(word, "-"), "=");
    if (optopt > 0 && optopt < LONG_BASE)
        return bh_fail(err, BH_USAGE, "no option '-%c'; see bulkhead%s%s --help", optopt, gap(cmd),
                       cmd->name);
    if (optopt >= LONG_BASE)
        return bh_fail(err, BH_USAGE, "option '--%s' takes no value", t->opt[optopt - LONG_BASE]->name);
    word += strspn(word, "-");
    if (len >= sizeof(bare))
        len = sizeof(bare) - 1;
    memcpy(bare, word, len);
    bare[len] = '\0';
    for (size_t i = 0; i < t->n; i++)
        names[n++] = t->opt[i]->name;
    const char *near = bh_str_nearest(bare, names, n);
    if (near)
        return bh_fail(err, BH_USAGE, "no option '--%s'; did you mean '--%s'?", bare, near);
    return bh_fail(err, BH_USAGE, "no option '--%s'; see bulkhead%s%s --help", bare, gap(cmd), cmd->name);
}

static size_t count_words(const char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

static int check_word(const struct bh_opt *o, const char *word, struct bh_err *err)
{
    struct bh_buf list;
    size_t n = count_words(o->words);
    for (size_t i = 0; i < n; i++)
        if (bh_str_eq(o->words[i], word))
            return BH_OK;
    bh_buf_init(&list, 256);
    for (size_t i = 0; i < n; i++)
        bh_buf_printf(&list, "%s%s", i ? ", " : "", o->words[i]);
    const char *near = bh_str_nearest(word, o->words, n);
    int rc =
        near ? bh_fail(err, BH_USAGE, "--%s: '%.60s' is not one of %s; did you mean '%s'?", o->name, word,
                       bh_buf_text(&list), near)
             : bh_fail(err, BH_USAGE, "--%s: '%.60s' is not one of %s", o->name, word, bh_buf_text(&list));
    bh_buf_fini(&list);
    return rc;
}

int bh_opt_check(const struct bh_opt *o, const char *value, struct bh_err *err)
{
    if (o->kind == BH_OPT_WORD)
        return check_word(o, value, err);
    if (o->kind != BH_OPT_WORDS)
        return BH_OK;
    for (const char *s = value;;) {
        char word[64];
        size_t n = strcspn(s, ",");
        if (n == 0 || n >= sizeof(word))
            return bh_fail(err, BH_USAGE, "--%s: words separated by commas are wanted, not '%.60s'", o->name,
                           value);
        memcpy(word, s, n);
        word[n] = '\0';
        int rc = check_word(o, word, err);
        if (rc < 0 || s[n] == '\0')
            return rc;
        s += n + 1;
    }
}

static int check_operands(const struct bh_cli *cli, struct bh_err *err)
{
    const struct bh_cmd *cmd = cli->cmd;
    if (cli->n_operands < cmd->min_operands)
        return bh_fail(err, BH_USAGE, "%s needs %s; see bulkhead %s --help", cmd->name, cmd->operands,
                       cmd->name);
    if (cmd->max_operands != BH_CLI_OPERANDS_ANY && cli->n_operands > cmd->max_operands)
        return bh_fail(err, BH_USAGE, "%s: '%.200s' is one word too many; see bulkhead %s --help", cmd->name,
                       cli->operands[cmd->max_operands], cmd->name);
    return BH_OK;
}

static int take(struct bh_cli *cli, const struct tables *t, size_t place, struct bh_err *err)
{
    const struct bh_opt *o = t->opt[place];
    const char *value = o->kind == BH_OPT_FLAG ? "" : optarg;
    int rc = bh_opt_check(o, value, err);
    if (rc < 0)
        return rc;
    if (place < t->n_own)
        cli->value[place] = value;
    else if (place - t->n_own == COMMON_COLOR)
        cli->color = value;
    else
        cli->want_help = true;
    return BH_OK;
}

int bh_cli_parse(struct bh_cli *cli, const struct bh_cmd *cmd, int argc, char **argv, bool stop_at_operand,
                 struct bh_err *err)
{
    struct tables t;
    int c;
    build(&t, cmd, stop_at_operand);
    cli->cmd = cmd;
    memset(cli->value, 0, sizeof(cli->value));
    optind = 0; /* GNU: start over, the second parse reads another argv */
    opterr = 0;
    while ((c = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1) {
        if (c == '?')
            return unknown_option(&t, cmd, argv[optind - 1], err);
        size_t place = place_of(&t, c == ':' ? optopt : c);
        if (c == ':')
            return bh_fail(err, BH_USAGE, "option '%.60s' needs a %s", argv[optind - 1], t.opt[place]->value);
        int rc = take(cli, &t, place, err);
        if (rc < 0)
            return rc;
    }
    cli->operands = (const char *const *)(argv + optind);
    cli->n_operands = (size_t)(argc - optind);
    return stop_at_operand || cli->want_help ? BH_OK : check_operands(cli, err);
}
