/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_init.c - a first policy from four answers, asked on a terminal or given as options.
 *
 * What an option answers is not asked; without a terminal nothing is asked and nothing
 * is guessed. A file that is there stays unless --force says otherwise.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/save.h"
#include "core/model/vocab.h"
#include "core/policy/starter.h"

#include <string.h>
#include <unistd.h>

enum {
    OPT_WHO,
    OPT_RUNS,
    OPT_MODEL,
    OPT_NODES,
    OPT_GPUS,
    OPT_PROMISE,
    OPT_REGULATED,
    OPT_OUT,
    OPT_FORCE,
    OPT_NO_INPUT,
};

/* A word's place in its list is its value: bh_starter_who, bh_starter_work, bh_starter_promise, bh_regime. */
static const char *const who_words[] = {"internal", "partner", "external", NULL};
static const char *const runs_words[] = {"training", "serving", "research", "batch", NULL};
static const char *const promise_words[] = {"none", "soft", "hard", NULL};
static const char *const regime_words[] = {"hipaa", "fedramp", "soc2", "pci", "iso27001", NULL};

static const struct bh_opt opts[] = {
    [OPT_WHO] = {"who", 0, BH_OPT_WORD, "TRUST", who_words,
                 "who the tenants are: internal, partner or external"},
    [OPT_RUNS] = {"runs", 0, BH_OPT_WORDS, "CLASSES", runs_words,
                  "what they run: training, serving, research, batch; with commas between"},
    [OPT_MODEL] = {"model", 0, BH_OPT_TEXT, "MODEL", NULL, "the GPU model, such as H200"},
    [OPT_NODES] = {"nodes", 0, BH_OPT_TEXT, "COUNT", NULL, "how many nodes (default 1)"},
    [OPT_GPUS] = {"gpus", 0, BH_OPT_TEXT, "COUNT", NULL, "how many GPUs a node has (default 8)"},
    [OPT_PROMISE] = {"promise", 0, BH_OPT_WORD, "KIND", promise_words,
                     "what was promised: none, soft or hard"},
    [OPT_REGULATED] = {"regulated", 0, BH_OPT_WORDS, "REGIMES", regime_words,
                       "hipaa, fedramp, soc2, pci, iso27001; with commas between"},
    [OPT_OUT] = {"out", 0, BH_OPT_FILE, "FILE", NULL,
                 "where to write (default policy.yaml); - for standard output"},
    [OPT_FORCE] = {"force", 0, BH_OPT_FLAG, NULL, NULL, "replace the file if it exists"},
    [OPT_NO_INPUT] = {"no-input", 0, BH_OPT_FLAG, NULL, NULL, "ask nothing"},
    {0},
};

/* ---- answers ---- */

static int check_who(const char *answer, struct bh_err *err)
{
    return bh_opt_check(&opts[OPT_WHO], answer, err);
}

static int check_runs(const char *answer, struct bh_err *err)
{
    return bh_opt_check(&opts[OPT_RUNS], answer, err);
}

static int check_promise(const char *answer, struct bh_err *err)
{
    return bh_opt_check(&opts[OPT_PROMISE], answer, err);
}

static int check_model(const char *model, struct bh_err *err)
{
    size_t n = strlen(model);
    for (const char *c = model; *c; c++)
        if (!bh_is_alpha(*c) && !bh_is_digit(*c) && !strchr(" -._", *c))
            return bh_fail(err, BH_USAGE,
                           "'%.60s' is no model name: letters, digits, blanks, dashes and dots", model);
    if (n == 0 || n > 60)
        return bh_fail(err, BH_USAGE, "a model name has 1 to 60 characters");
    return BH_OK;
}

static int read_count(const char *text, uint64_t max, const char *what, uint32_t *ret, struct bh_err *err)
{
    uint64_t v;
    if (bh_uint_parse(text, max, &v, NULL) < 0 || v == 0)
        return bh_fail(err, BH_USAGE, "%s: a number from 1 to %u is wanted, not '%.40s'", what, (unsigned)max,
                       text);
    *ret = (uint32_t)v;
    return BH_OK;
}

/* `H200` or `H200 2x8`: what stands before the last blank is the model when nodes x GPUs follow. */
static int split_hardware(const char *answer, char model[BH_ANSWER_MAX], uint32_t *nodes, uint32_t *gpus,
                          struct bh_err *err)
{
    const char *blank = strrchr(answer, ' '), *x = blank ? strchr(blank, 'x') : NULL;
    (void)snprintf(model, BH_ANSWER_MAX, "%s", answer);
    if (x && bh_is_digit(blank[1])) {
        char count[BH_ANSWER_MAX];
        (void)snprintf(count, sizeof(count), "%.*s", (int)(x - blank - 1), blank + 1);
        int rc = read_count(count, BH_STARTER_NODES_MAX, "nodes", nodes, err);
        if (rc == BH_OK)
            rc = read_count(x + 1, BH_STARTER_GPUS_MAX, "GPUs", gpus, err);
        if (rc < 0)
            return rc;
        model[blank - answer] = '\0';
    }
    return check_model(model, err);
}

static int check_hardware(const char *answer, struct bh_err *err)
{
    char model[BH_ANSWER_MAX];
    uint32_t nodes, gpus;
    return split_hardware(answer, model, &nodes, &gpus, err);
}

/* The four that must be answered, in the order they are asked. */
static const struct {
    int opt;
    struct bh_question question;
} questions[] = {
    {OPT_WHO, {"Who shares the GPUs?", "(internal, partner or external)", "internal", check_who}},
    {OPT_RUNS,
     {"What do they run?", "(training, serving, research, batch; commas between)", "research", check_runs}},
    {OPT_MODEL, {"On which GPUs?", "(MODEL, or MODEL NODESxGPUS)", "H200 1x8", check_hardware}},
    {OPT_PROMISE, {"What were they promised?", "(none, soft or hard)", "none", check_promise}},
};
enum { N_QUESTIONS = BH_COUNT_OF(questions) };

static int place_of(const char *const *words, const char *word, size_t n)
{
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
            return i;
    return 0; /* the words were checked when they were read */
}

static uint32_t bits_of(const char *const *words, const char *list)
{
    uint32_t bits = 0;
    for (const char *s = list; *s; s += strcspn(s, ","), s += *s == ',')
        bits |= UINT32_C(1) << place_of(words, s, strcspn(s, ","));
    return bits;
}

/* ---- asking ---- */

static bool may_ask(const struct bh_cli *cli)
{
    return !cli->value[OPT_NO_INPUT] && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static int need_options(const struct bh_cli *cli, struct bh_err *err)
{
    struct bh_buf names;
    bh_buf_init(&names, 256);
    for (size_t i = 0; i < N_QUESTIONS; i++)
        if (!cli->value[questions[i].opt])
            bh_buf_printf(&names, "%s--%s", names.n ? ", " : "", opts[questions[i].opt].name);
    int rc = bh_fail(err, BH_USAGE, "nobody can be asked here; give %s as well", bh_buf_text(&names));
    bh_buf_fini(&names);
    return rc;
}

/* Every answer that no option gave. answers outlives the values that point into it. */
static int ask_rest(struct bh_cli *cli, char answers[N_QUESTIONS][BH_ANSWER_MAX], struct bh_err *err)
{
    unsigned n = 0, number = 0;
    for (size_t i = 0; i < N_QUESTIONS; i++)
        n += !cli->value[questions[i].opt];
    if (n && !may_ask(cli))
        return need_options(cli, err);
    for (size_t i = 0; i < N_QUESTIONS; i++) {
        if (cli->value[questions[i].opt])
            continue;
        int rc = bh_ask(stdin, stderr, cli->paint_err, &questions[i].question, ++number, n, answers[i], err);
        if (rc < 0)
            return rc;
        cli->value[questions[i].opt] = answers[i];
    }
    return BH_OK;
}

static int read_answers(const struct bh_cli *cli, struct bh_starter *s, char model[BH_ANSWER_MAX],
                        struct bh_err *err)
{
    const char *const *v = cli->value;
    *s = (struct bh_starter){.nodes = 1, .gpus_per_node = 8};
    s->who = (uint8_t)place_of(who_words, v[OPT_WHO], strlen(v[OPT_WHO]));
    s->work = bits_of(runs_words, v[OPT_RUNS]);
    s->promise = (uint8_t)place_of(promise_words, v[OPT_PROMISE], strlen(v[OPT_PROMISE]));
    s->regimes = v[OPT_REGULATED] ? bits_of(regime_words, v[OPT_REGULATED]) : 0;
    s->model_name = model;
    int rc = split_hardware(v[OPT_MODEL], model, &s->nodes, &s->gpus_per_node, err);
    if (rc == BH_OK && v[OPT_NODES])
        rc = read_count(v[OPT_NODES], BH_STARTER_NODES_MAX, "--nodes", &s->nodes, err);
    if (rc == BH_OK && v[OPT_GPUS])
        rc = read_count(v[OPT_GPUS], BH_STARTER_GPUS_MAX, "--gpus", &s->gpus_per_node, err);
    return rc;
}

/* ---- writing ---- */

static int make(struct bh_cli *cli, struct bh_err *err)
{
    const char *path = cli->value[OPT_OUT] ? cli->value[OPT_OUT] : "policy.yaml";
    char answers[N_QUESTIONS][BH_ANSWER_MAX], model[BH_ANSWER_MAX];
    struct bh_starter starter;
    struct bh_buf text;

    /* before the questions: nobody answers four of them to hear no at the end */
    if (!bh_str_eq(path, "-") && !cli->value[OPT_FORCE] && access(path, F_OK) == 0)
        return bh_fail(err, BH_CONFLICT, "'%.300s' exists; --force replaces it, --out FILE writes another",
                       path);
    int rc = ask_rest(cli, answers, err);
    if (rc == BH_OK)
        rc = read_answers(cli, &starter, model, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&text, 1u << 20);
    rc = bh_starter_write(&starter, &text, err);
    if (rc == BH_OK)
        rc = bh_cli_save(cli, path, &text, cli->value[OPT_FORCE] != NULL, "bulkhead lint", err);
    bh_buf_fini(&text);
    return rc;
}

static int run(struct bh_cli *cli)
{
    struct bh_err err;
    return make(cli, &err) < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_init = {
    .name = "init",
    .summary = "write a commented starter policy",
    .operands = "",
    .examples =
        "bulkhead init                                   answer four questions\n"
        "bulkhead init --who external --runs serving --model H200 --nodes 2 --promise hard\n"
        "bulkhead init --who internal --runs research,batch --model A100 --promise soft --out lab.yaml\n"
        "bulkhead init --who internal --runs training --model B200 --promise none --out -\n",
    .text =
        "What an option answers is not asked. Without a terminal, or with --no-input, the four answers\n"
        "(--who, --runs, --model, --promise) must be options. A file that exists stays, unless --force.\n",
    .opts = opts,
    .run = run,
};

_Static_assert(BH_STARTER_CUSTOMERS == 2 && BH_N_STARTER_WORK == 4 && BH_STARTER_HARD_SLO == 2 &&
                   BH_N_regime == 5,
               "the word lists above follow these enums");
