/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_whatif.c - changes made on a copy of the scheduler: who would start, who would have to go? */
#include "base/str.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/scenario.h"
#include "cli/why_text.h"

#include <stdio.h>

enum { OPT_SCENARIO, OPT_OUTPUT };
enum { WORDS = 16, WORD_BYTES = 64, GPUS_MAX = 1 << 17, NODES_MAX = 20000 };

static const struct bh_opt opts[] = {
    [OPT_SCENARIO] = {"scenario", 's', BH_OPT_FILE, "FILE", NULL,
                      "the fleet, the queues and the jobs (YAML)"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

/* ---- words to changes ---- */

struct words {
    char at[WORDS][WORD_BYTES];
    size_t n;
};

struct asked {
    const struct bh_scenario *s;
    bh_changes changes;
    uint64_t wait_ms;
};

static bool split(const char *s, struct words *w)
{
    for (w->n = 0; *(s += strspn(s, " ")); w->n++) {
        const size_t n = strcspn(s, " ");
        if (w->n == WORDS || n >= WORD_BYTES)
            return false;
        memcpy(w->at[w->n], s, n);
        w->at[w->n][n] = '\0';
        s += n;
    }
    return w->n != 0;
}

static uint32_t find(const bh_scenario_names *names, const char *name)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (bh_str_eq_nocase(names->at[i], name))
            return i;
    return BH_NONE;
}

/* ---- adding nodes ---- */

/* `16`: so many GPUs in nodes like the largest of the model; `2x3`: two nodes of three. */
static int parse_gpus(const char *word, uint32_t each, struct bh_change *lots, size_t *ret_n,
                      struct bh_err *err)
{
    const char *x = strchr(word, 'x');
    char nodes[WORD_BYTES];
    uint64_t n = 0, gpus = 0;
    int rc;
    if (x) {
        (void)snprintf(nodes, sizeof(nodes), "%.*s", (int)(x - word), word);
        rc = bh_uint_parse(nodes, NODES_MAX, &n, err);
        if (rc == BH_OK)
            rc = bh_uint_parse(x + 1, BH_NODE_GPUS, &gpus, err);
        if (rc == BH_OK && !n)
            rc = bh_fail(err, BH_USAGE, "'%s' adds no node", word);
        lots[0].nodes = (uint32_t)n;
        lots[0].gpus = (uint32_t)gpus;
        *ret_n = 1;
        return rc;
    }
    rc = bh_uint_parse(word, GPUS_MAX, &gpus, err);
    if (rc == BH_OK && !gpus)
        rc = bh_fail(err, BH_USAGE, "needs at least one GPU to add");
    if (rc == BH_OK && !each)
        rc = bh_fail(err, BH_NOT_FOUND, "no node of that model has a GPU; 'add 1x8 MODEL' says how many");
    if (rc != BH_OK)
        return rc;
    *ret_n = 0;
    if (gpus / each) {
        lots[*ret_n].nodes = (uint32_t)gpus / each;
        lots[(*ret_n)++].gpus = each;
    }
    if (gpus % each) {
        lots[*ret_n].nodes = 1;
        lots[(*ret_n)++].gpus = (uint32_t)gpus % each;
    }
    return BH_OK;
}

/* `in l1`, `in none`, `in new link`, `in new rack`, `in same new`: the domain that an earlier change made. */
static int parse_place(const struct asked *a, const struct words *w, size_t *i, struct bh_change *c,
                       struct bh_err *err)
{
    const char *at = *i < w->n ? w->at[*i] : "", *then = *i + 1 < w->n ? w->at[*i + 1] : "";
    ++*i;
    c->domain = BH_NONE;
    if (bh_str_eq(at, "none"))
        return BH_OK;
    if (bh_str_eq(at, "new") && (bh_str_eq(then, "link") || bh_str_eq(then, "rack"))) {
        ++*i;
        c->domain = BH_CHANGE_NEW_DOMAIN;
        c->level = bh_str_eq(then, "link") ? BH_LEVEL_LINK : BH_LEVEL_RACK;
        return BH_OK;
    }
    if (bh_str_eq(at, "same") && bh_str_eq(then, "new")) {
        ++*i;
        c->domain = (uint32_t)a->s->domain_names.n;
        return BH_OK;
    }
    c->domain = find(&a->s->domain_names, at);
    return c->domain == BH_NONE ? bh_fail(err, BH_NOT_FOUND, "the scenario has no link and no rack '%s'", at)
                                : BH_OK;
}

/* `with 96 cpu`, `with 2TiB memory`. */
static int parse_besides(const struct words *w, size_t *i, struct bh_change *c, struct bh_err *err)
{
    const char *amount = *i < w->n ? w->at[*i] : "", *of = *i + 1 < w->n ? w->at[*i + 1] : "";
    uint64_t bytes;
    int rc;
    *i += 2;
    if (bh_str_eq(of, "cpu")) {
        rc = bh_count_parse(amount, &c->cpu_milli, err);
        return rc == BH_OK && c->cpu_milli > UINT32_MAX
                   ? bh_fail(err, BH_USAGE, "%s processors are too many", amount)
                   : rc;
    }
    if (!bh_str_eq(of, "memory"))
        return bh_fail(err, BH_USAGE, "a node has more with N cpu or with SIZE memory, not with %s %s",
                       amount, of);
    rc = bh_size_parse(amount, &bytes, err);
    c->mem_mib = rc == BH_OK ? bytes / BH_MIB : 0;
    return rc;
}

/* The largest node of the model is what more of them look like; where there is none, the first of all. */
static uint32_t like_of(const struct bh_shelf *shelf, uint32_t model)
{
    uint32_t like = BH_NONE;
    for (uint32_t i = 0; i < shelf->nodes.n; i++)
        if (shelf->nodes.at[i].model == model &&
            (like == BH_NONE || shelf->nodes.at[i].n_gpus > shelf->nodes.at[like].n_gpus))
            like = i;
    return like;
}

static int want_add(struct asked *a, const struct words *w, struct bh_err *err)
{
    const struct bh_shelf *shelf = bh_sched_shelf(a->s->trial.sched);
    const uint32_t model = find(&a->s->model_names, w->at[2]);
    struct bh_change lots[2];
    size_t n = 0, i = 3;
    if (model == BH_NONE || !shelf->nodes.n)
        return bh_fail(err, BH_NOT_FOUND, "no node and no job of the scenario names model '%s'", w->at[2]);
    const uint32_t like = like_of(shelf, model);
    struct bh_change c = {.kind = BH_CHANGE_ADD, .model = model, .like = like == BH_NONE ? 0 : like};
    c.domain = shelf->nodes.at[c.like].domain;
    int rc = BH_OK;
    while (i < w->n && rc == BH_OK) {
        const char *word = w->at[i++];
        rc = bh_str_eq(word, "in") ? parse_place(a, w, &i, &c, err)
             : bh_str_eq(word, "with")
                 ? parse_besides(w, &i, &c, err)
                 : bh_fail(err, BH_USAGE, "'%s' says nothing of a node; 'in' and 'with' do", word);
    }
    lots[0] = lots[1] = c;
    if (rc == BH_OK)
        rc = parse_gpus(w->at[1], like == BH_NONE ? 0 : shelf->nodes.at[like].n_gpus, lots, &n, err);
    for (size_t k = 0; k < n && rc == BH_OK; k++)
        *bh_vec_push(&a->changes) = lots[k];
    return rc;
}

static int want_quota(struct asked *a, const struct words *w, enum bh_quota_part part, struct bh_err *err)
{
    const struct bh_queues *queues = bh_sched_queues(a->s->trial.sched);
    struct bh_change c = {.kind = BH_CHANGE_QUOTA, .queue = BH_QUEUE_NONE, .part = part, .res = BH_RES_GPU};
    for (uint32_t i = 1; i < queues->at.n; i++)
        if (bh_str_eq(bh_scenario_queue_name(a->s, i), w->at[1]))
            c.queue = i;
    if (c.queue == BH_QUEUE_NONE)
        return bh_fail(err, BH_NOT_FOUND, "the scenario has no queue '%s'", w->at[1]);
    const struct bh_queue_config *q = &bh_queue_get(queues, c.queue)->config;
    c.from = part == BH_PART_LIMIT ? q->limit.at[BH_RES_GPU] : q->deserved.at[BH_RES_GPU];
    int rc = bh_count_parse(w->at[3], &c.to, err);
    if (rc == BH_OK)
        *bh_vec_push(&a->changes) = c;
    return rc;
}

/* A limit below what it deserves would make the raise worth nothing. */
static int want_raise(struct asked *a, const struct words *w, struct bh_err *err)
{
    int rc = want_quota(a, w, BH_PART_DESERVED, err);
    if (rc < 0)
        return rc;
    const struct bh_change *c = &a->changes.at[a->changes.n - 1];
    const uint64_t limit =
        bh_queue_get(bh_sched_queues(a->s->trial.sched), c->queue)->config.limit.at[BH_RES_GPU];
    return limit < c->to ? want_quota(a, w, BH_PART_LIMIT, err) : BH_OK;
}

static int want_limit(struct asked *a, const struct words *w, struct bh_err *err)
{
    return want_quota(a, w, BH_PART_LIMIT, err);
}

static int want_health(struct asked *a, const struct words *w, struct bh_err *err)
{
    static const char *const words[] = {[BH_HEALTH_OK] = "uncordon",
                                        [BH_HEALTH_CORDON] = "cordon",
                                        [BH_HEALTH_DRAIN] = "drain",
                                        [BH_HEALTH_FAILED] = "fail"};
    struct bh_change c = {
        .kind = BH_CHANGE_HEALTH, .node = find(&a->s->node_names, w->at[1]), .gpu = BH_NONE};
    for (uint32_t i = 0; i < BH_COUNT_OF(words); i++)
        if (bh_str_eq(words[i], w->at[0]))
            c.health = (enum bh_health)i;
    if (c.node == BH_NONE)
        return bh_fail(err, BH_NOT_FOUND, "the scenario has no node '%s'", w->at[1]);
    *bh_vec_push(&a->changes) = c;
    return BH_OK;
}

static int want_end(struct asked *a, const struct words *w, struct bh_err *err)
{
    const uint64_t job = bh_scenario_job(a->s, w->at[1]);
    const struct bh_gang *g = job ? bh_sched_job(a->s->trial.sched, job) : NULL;
    if (!g)
        return bh_fail(err, BH_NOT_FOUND, "there is no job '%s' now", w->at[1]);
    *bh_vec_push(&a->changes) =
        (struct bh_change){.kind = BH_CHANGE_FREE, .job = job, .milli = bh_gang_milli(a->s->trial.sched, g)};
    return BH_OK;
}

static int want_wait(struct asked *a, const struct words *w, struct bh_err *err)
{
    uint64_t ms;
    int rc = bh_duration_parse(w->at[1], &ms, err);
    if (rc == BH_OK)
        a->wait_ms += ms;
    return rc;
}

/* `*` stands for a word of the user's, `...` for any number of them. */
static const struct {
    const char *form[WORDS];
    int (*want)(struct asked *a, const struct words *w, struct bh_err *err);
} forms[] = {
    {{"add", "*", "*", "..."}, want_add},
    {{"raise", "*", "to", "*"}, want_raise},
    {{"limit", "*", "to", "*"}, want_limit},
    {{"cordon", "*"}, want_health},
    {{"uncordon", "*"}, want_health},
    {{"drain", "*"}, want_health},
    {{"fail", "*"}, want_health},
    {{"end", "*"}, want_end},
    {{"wait", "*"}, want_wait},
};

static bool has_form(const struct words *w, const char *const *form)
{
    for (size_t i = 0; i < WORDS; i++) {
        if (form[i] && bh_str_eq(form[i], "..."))
            return true;
        if (!form[i] || i == w->n)
            return !form[i] && i == w->n;
        if (!bh_str_eq(form[i], "*") && !bh_str_eq(form[i], w->at[i]))
            return false;
    }
    return w->n == WORDS;
}

static int parse(struct asked *a, const char *text, struct bh_err *err)
{
    struct words w;
    for (size_t i = 0; split(text, &w) && i < BH_COUNT_OF(forms); i++)
        if (has_form(&w, forms[i].form))
            return forms[i].want(a, &w, err);
    return bh_fail(err, BH_USAGE,
                   "'%.80s' is no change; such are 'add 16 H200', 'raise QUEUE to 8', 'limit QUEUE to 8', "
                   "'cordon NODE', 'drain NODE', 'end JOB', 'wait 2h'",
                   text);
}

/* ---- before and after ---- */

static void until(struct bh_trial *t, uint64_t ms)
{
    while (bh_trial_next(t, ms))
        continue;
}

/* Jobs that run in `in` and do not in `out`. */
static size_t only_in(struct bh_buf *b, const struct bh_scenario *s, const struct bh_trial *in,
                      const struct bh_trial *out)
{
    size_t n = 0;
    for (uint64_t id = 1; id <= s->file.jobs.n; id++)
        if (bh_trial_runs(in, id) && !bh_trial_runs(out, id)) {
            bh_buf_str(b, n++ ? ", " : "");
            bh_text_add(b, bh_scenario_job_name(s, id));
        }
    return n;
}

static void names_json(struct bh_json *j, const char *key, const struct bh_scenario *s,
                       const struct bh_trial *in, const struct bh_trial *out)
{
    bh_json_key(j, key);
    bh_json_open_flat(j, '[');
    for (uint64_t id = 1; id <= s->file.jobs.n; id++)
        if (bh_trial_runs(in, id) && (!out || !bh_trial_runs(out, id)))
            bh_json_str(j, bh_scenario_job_name(s, id));
    bh_json_close(j, ']');
}

static void say_text(struct bh_cli *cli, const struct asked *a, const struct bh_trial *before,
                     const struct bh_trial *after)
{
    struct bh_buf *b = &cli->out, names BH_AUTO(bh_buf_fini);
    bh_buf_init(&names, 1u << 20);
    for (size_t i = 0; i < a->changes.n; i++) {
        bh_buf_str(b, "if       ");
        bh_why_change(b, a->s, &a->changes.at[i]);
        bh_buf_str(b, "\n");
    }
    if (a->wait_ms) {
        bh_buf_str(b, "then     wait ");
        bh_why_time(b, a->wait_ms);
        bh_buf_str(b, "\n");
    }
    const size_t starts = only_in(&names, a->s, after, before);
    bh_buf_printf(b, "starts   %s\n", starts ? bh_buf_text(&names) : "nothing");
    bh_buf_fini(&names);
    bh_buf_init(&names, 1u << 20);
    if (only_in(&names, a->s, before, after))
        bh_buf_printf(b, "prevents %s\n", bh_buf_text(&names));
    const struct bh_sched_stats was = bh_sched_stats(before->sched), is = bh_sched_stats(after->sched);
    bh_buf_printf(b, "waiting  %u, without it %u\n", is.pending, was.pending);
}

static void say_json(struct bh_buf *b, const struct asked *a, const struct bh_trial *before,
                     const struct bh_trial *after)
{
    struct bh_json j;
    bh_json_init(&j, b);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_u64(&j, "at_ms", after->now_ms);
    names_json(&j, "starts", a->s, after, before);
    names_json(&j, "prevents", a->s, before, after);
    names_json(&j, "runs", a->s, after, NULL);
    bh_json_key_u64(&j, "waiting", bh_sched_stats(after->sched).pending);
    bh_json_key_u64(&j, "waiting_without", bh_sched_stats(before->sched).pending);
    bh_json_close(&j, '}');
    bh_buf_str(b, "\n");
}

static int try_it(struct bh_cli *cli, struct asked *a, struct bh_err *err)
{
    struct bh_whatif w;
    struct bh_trial before = {0}, after = {0};
    bh_whatif_init(&w, a->s->trial.sched, &a->s->reserve, a->s->trial.now_ms);
    int rc = bh_trial_begin(&w, NULL, 0, &before, err);
    if (rc == BH_OK)
        rc = bh_trial_begin(&w, a->changes.at, a->changes.n, &after, err);
    if (rc == BH_OK) {
        /* Without a change the question is what time alone brings: held against now. */
        if (a->changes.n)
            until(&before, w.now_ms + a->wait_ms);
        until(&after, w.now_ms + a->wait_ms);
        if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
            say_json(&cli->out, a, &before, &after);
        else
            say_text(cli, a, &before, &after);
    }
    bh_trial_end(&before);
    bh_trial_end(&after);
    bh_whatif_fini(&w);
    return rc;
}

static int run(struct bh_cli *cli)
{
    struct bh_scenario s;
    struct bh_err err;
    if (!cli->value[OPT_SCENARIO]) {
        (void)bh_fail(&err, BH_USAGE,
                      "needs --scenario FILE: there is no daemon yet whose jobs could be asked for");
        return bh_cli_fail(cli, &err);
    }
    int status = bh_scenario_open(cli, cli->value[OPT_SCENARIO], &s);
    struct asked a = {.s = &s};
    if (status == BH_EXIT_OK) {
        int rc = BH_OK;
        for (size_t i = 0; i < cli->n_operands && rc == BH_OK; i++)
            rc = parse(&a, cli->operands[i], &err);
        if (rc == BH_OK)
            rc = try_it(cli, &a, &err);
        status = rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
    }
    bh_vec_fini(&a.changes);
    bh_scenario_fini(&s);
    return status;
}

const struct bh_cmd bh_cmd_whatif = {
    .name = "what-if",
    .summary = "who would start, and who would have to go, if",
    .operands = "CHANGE...",
    .operand_kind = BH_OPERAND_NONE,
    .min_operands = 1,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples = "bulkhead what-if 'add 16 H200' -s scenario.yaml        more GPUs\n"
                "bulkhead what-if 'raise team-a to 8' -s scenario.yaml  another quota\n"
                "bulkhead what-if 'cordon gpu-07' 'wait 2h' -s s.yaml   a node less, two hours on\n",
    .text =
        "The changes are made together on a copy of the scheduler, which then decides; nothing else is\n"
        "simulated but jobs that end when they said they would.\n"
        "Changes: add N MODEL [in DOMAIN] [with N cpu] [with SIZE memory], raise QUEUE to N, limit QUEUE\n"
        "to N, cordon NODE, uncordon NODE, drain NODE, fail NODE, end JOB, wait TIME. N of add may be 2x4:\n"
        "two nodes of four GPUs; DOMAIN may be none, new link or new rack.\n"
        "\n"
        "Exit status: 0; 2 the file or a change could not be read, 4 there is no such thing.\n",
    .opts = opts,
    .run = run,
};
