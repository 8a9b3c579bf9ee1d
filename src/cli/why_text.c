/* SPDX-License-Identifier: Apache-2.0 */
/* why_text.c - why a job waits, in words. A table has a sentence for each tier. */
#include "cli/why_text.h"

#include <assert.h>
#include <inttypes.h>

void bh_why_gpus(struct bh_buf *b, uint64_t milli)
{
    if (milli % BH_GPU_MILLI)
        bh_buf_printf(b, "%" PRIu64 ".%03" PRIu64 " GPUs", milli / BH_GPU_MILLI, milli % BH_GPU_MILLI);
    else
        bh_buf_printf(b, "%" PRIu64 " GPU%s", milli / BH_GPU_MILLI, milli == BH_GPU_MILLI ? "" : "s");
}

void bh_why_time(struct bh_buf *b, uint64_t ms)
{
    const uint64_t s = ms / 1000;
    if (!s)
        bh_buf_printf(b, "%" PRIu64 "ms", ms);
    else if (s < 60)
        bh_buf_printf(b, "%" PRIu64 "s", s);
    else if (s < 3600)
        bh_buf_printf(b, "%" PRIu64 "m %" PRIu64 "s", s / 60, s % 60);
    else
        bh_buf_printf(b, "%" PRIu64 "h %" PRIu64 "m", s / 3600, s / 60 % 60);
}

static void add_amount(struct bh_buf *b, enum bh_res res, uint64_t n)
{
    static const char *const units[] = {[BH_RES_MIB] = "MiB of GPU memory",
                                        [BH_RES_CPU] = "thousandths of a processor",
                                        [BH_RES_MEM] = "MiB"};
    if (res == BH_RES_GPU || res >= BH_RES_MODEL0)
        bh_why_gpus(b, n);
    else
        bh_buf_printf(b, "%" PRIu64 " %s", n, units[res]);
}

static void add_name(struct bh_buf *b, const bh_scenario_names *names, size_t i)
{
    bh_text_add(b, i < names->n ? names->at[i] : "?");
}

/* ---- changes ---- */

static void add_quota(struct bh_buf *b, const struct bh_scenario *s, const struct bh_change *c)
{
    static const char *const parts[BH_PARTS] = {"limit", "deserved share", "guarantee", "largest share"};
    bh_buf_printf(b, "%s the %s of ", c->to >= c->from ? "raise" : "lower", parts[c->part]);
    bh_text_add(b, bh_scenario_queue_name(s, c->queue));
    if (c->part == BH_PART_SHARE_MAX) {
        bh_buf_printf(b, " to %" PRIu64 ".%04" PRIu64 " %%", c->to / 10000, c->to % 10000);
        return;
    }
    if (c->from != BH_AMOUNT_ANY) {
        bh_buf_str(b, " from ");
        add_amount(b, c->res, c->from);
    }
    bh_buf_str(b, " to ");
    add_amount(b, c->res, c->to);
}

static void add_processors(struct bh_buf *b, uint64_t milli)
{
    if (milli % 1000)
        bh_buf_printf(b, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);
    else
        bh_buf_printf(b, "%" PRIu64, milli / 1000);
}

/* What new nodes have besides, where it is not as with the one that they are like. */
static void add_besides(struct bh_buf *b, const struct bh_change *c)
{
    const char *glue = " and with ";
    if (c->cpu_milli) {
        bh_buf_str(b, glue);
        add_processors(b, c->cpu_milli);
        bh_buf_str(b, " processors");
        glue = ", ";
    }
    if (c->mem_mib) {
        bh_buf_printf(b, "%s%" PRIu64 " MiB of memory", glue, c->mem_mib);
        glue = ", ";
    }
    if (c->gpu_mib) {
        bh_buf_printf(b, "%s%" PRIu64 " MiB of memory on each GPU", glue, c->gpu_mib);
        glue = ", ";
    }
    if (c->features) {
        bh_buf_printf(b, "%sthe features that it asks for", glue);
        glue = ", ";
    }
    if (c->pools)
        bh_buf_printf(b, "%sa place in its pool", glue);
}

static void add_nodes(struct bh_buf *b, const struct bh_scenario *s, const struct bh_change *c)
{
    bh_buf_printf(b, "add %" PRIu32 " node%s with", c->nodes, c->nodes == 1 ? "" : "s");
    if (c->gpus) {
        bh_buf_printf(b, " %" PRIu32 " ", c->gpus);
        add_name(b, &s->model_names, c->model);
    } else {
        bh_buf_str(b, "out GPUs");
    }
    bh_buf_str(b, c->nodes == 1 ? "" : " each");
    if (c->domain < s->domain_names.n) {
        bh_buf_str(b, " in ");
        add_name(b, &s->domain_names, c->domain);
    } else if (c->domain != BH_NONE) {
        bh_buf_printf(b, " in %s new %s", c->domain == BH_CHANGE_NEW_DOMAIN ? "a" : "that",
                      c->level == BH_LEVEL_LINK ? "NVLink domain" : "rack");
    }
    add_besides(b, c);
}

/* As bulkhead what-if takes it. */
static void add_words(struct bh_buf *b, const struct bh_scenario *s, const struct bh_change *c)
{
    bh_buf_printf(b, "add %" PRIu32 "x%" PRIu32 " ", c->nodes, c->gpus);
    add_name(b, &s->model_names, c->model);
    if (c->domain < s->domain_names.n) {
        bh_buf_str(b, " in ");
        add_name(b, &s->domain_names, c->domain);
    } else {
        bh_buf_str(b, c->domain == BH_NONE ? " in none"
                      : c->domain == BH_CHANGE_NEW_DOMAIN
                          ? c->level == BH_LEVEL_LINK ? " in new link" : " in new rack"
                          : " in same new");
    }
    if (c->cpu_milli) {
        bh_buf_str(b, " with ");
        add_processors(b, c->cpu_milli);
        bh_buf_str(b, " cpu");
    }
    if (c->mem_mib)
        bh_buf_printf(b, " with %" PRIu64 "MiB memory", c->mem_mib);
}

void bh_why_change(struct bh_buf *b, const struct bh_scenario *s, const struct bh_change *c)
{
    static const char *const healths[BH_HEALTHS] = {"uncordon ", "cordon ", "drain ", "fail ", "quarantine "};
    switch (c->kind) {
    case BH_CHANGE_WAIT:
        bh_buf_str(b, "wait ");
        bh_why_time(b, c->at_ms > s->trial.now_ms ? c->at_ms - s->trial.now_ms : 0);
        break;
    case BH_CHANGE_MOVE:
    case BH_CHANGE_FREE:
        bh_buf_str(b, c->kind == BH_CHANGE_MOVE ? "move " : "end ");
        bh_text_add(b, bh_scenario_job_name(s, c->job));
        bh_buf_str(b, " (");
        bh_why_gpus(b, c->milli);
        bh_buf_str(b, c->kind == BH_CHANGE_MOVE ? ") elsewhere" : ")");
        break;
    case BH_CHANGE_QUOTA:
        add_quota(b, s, c);
        break;
    case BH_CHANGE_ADD:
        add_nodes(b, s, c);
        break;
    case BH_CHANGE_HEALTH:
        bh_buf_str(b, healths[c->health]);
        add_name(b, &s->node_names, c->node);
        break;
    case BH_CHANGE_NONE:
    case BH_CHANGES:
        break;
    }
}

/* ---- verdicts ---- */

typedef void (*sentence_fn)(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v);

static void say_quota(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    bh_buf_str(b, bh_queue_why_text(v->quota.why));
    bh_buf_str(b, ": ");
    bh_text_add(b, bh_scenario_queue_name(s, v->quota.queue));
    bh_buf_str(b, " uses ");
    add_amount(b, v->quota.res, v->quota.used);
    bh_buf_str(b, ", this asks for ");
    add_amount(b, v->quota.res, v->quota.asked);
    bh_buf_str(b, ", and it may have ");
    add_amount(b, v->quota.res, v->quota.bound);
    if (v->quota.kept) {
        bh_buf_str(b, " of which ");
        add_amount(b, v->quota.res, v->quota.kept);
        bh_buf_str(b, " are kept for others");
    }
}

static void say_turn(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    (void)s;
    bh_buf_printf(b, "%" PRIu32 " %s looked at before it", v->ahead, v->ahead == 1 ? "is" : "are");
}

static void say_group(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    bh_buf_str(b, "; the most in one ");
    bh_buf_str(b, v->level == BH_LEVEL_NODE   ? "node is "
                  : v->level == BH_LEVEL_GPU  ? "GPU is "
                  : v->level == BH_LEVEL_LINK ? "NVLink domain is "
                                              : "rack is ");
    bh_why_gpus(b, v->group);
    if (v->group) {
        bh_buf_str(b, ", on ");
        add_name(b, v->level >= BH_LEVEL_NODE ? &s->node_names : &s->domain_names, v->domain);
    }
}

/* What refuses it where GPUs are idle. */
static void say_hinder(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    static const char *const words[BH_HINDERS] = {
        [BH_HINDER_TRUST] = "another tenant is beside them, and one of the two will not share",
        [BH_HINDER_KINDS] = "they are divided in another way, or beside work that is to be apart from it",
        [BH_HINDER_HOLDS] = "their node takes no more pieces of work",
        [BH_HINDER_PARTS] = "its members do not find a place each at once",
    };
    static const char *const units[BH_HINDERS] = {
        [BH_HINDER_MEMORY] = " MiB of memory", [BH_HINDER_GPU_MEMORY] = " MiB of GPU memory"};
    if (words[v->hinder]) {
        bh_buf_str(b, words[v->hinder]);
    } else if (v->hinder == BH_HINDER_CPU) {
        bh_buf_str(b, "a member needs ");
        add_processors(b, v->hinder_need);
        bh_buf_str(b, " processors, and ");
        add_processors(b, v->hinder_free);
        bh_buf_str(b, " are left there");
    } else {
        bh_buf_printf(b, "a member needs %" PRIu64 "%s, and %" PRIu64 " are left there", v->hinder_need,
                      units[v->hinder] ? units[v->hinder] : "", v->hinder_free);
    }
    if (v->hinder_node != BH_NONE) {
        bh_buf_str(b, " (");
        add_name(b, &s->node_names, v->hinder_node);
        bh_buf_str(b, ")");
    }
}

static void say_parked(struct bh_buf *b, const struct bh_verdict *v)
{
    if (v->parked)
        bh_buf_str(b, "; it was stopped with its memory kept, and goes on only where that is");
}

static void say_room(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    bh_buf_str(b, "it needs ");
    bh_why_gpus(b, v->need);
    bh_buf_str(b, ", and ");
    bh_why_gpus(b, v->free);
    bh_buf_str(b, v->free == BH_GPU_MILLI ? " that it could use is free" : " that it could use are free");
    if (v->level != BH_LEVEL_ANY && v->free)
        say_group(b, s, v);
    if (v->withheld) {
        bh_buf_str(b, "; besides, ");
        bh_why_gpus(b, v->withheld);
        bh_buf_str(b, v->withheld == BH_GPU_MILLI ? " is free, but " : " are free, but ");
        say_hinder(b, s, v);
    }
    say_parked(b, v);
}

static void say_withheld(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    if (v->need) {
        bh_buf_str(b, "it needs ");
        bh_why_gpus(b, v->need);
        bh_buf_str(b, ", and ");
        bh_why_gpus(b, v->free + v->withheld);
        bh_buf_str(b, v->free + v->withheld == BH_GPU_MILLI ? " is free" : " are free");
        if (v->withheld) {
            bh_buf_str(b, ", of which it cannot use ");
            bh_why_gpus(b, v->withheld);
        }
        bh_buf_str(b, ": ");
    }
    say_hinder(b, s, v);
    say_parked(b, v);
}

static void say_reserved(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    bh_buf_str(b, "there is room, kept for ");
    if (!v->reserved_for) {
        bh_buf_str(b, "somebody who waits longer");
        return;
    }
    bh_text_add(b, bh_scenario_job_name(s, v->reserved_for));
    bh_buf_str(b, ", which is to start in ");
    bh_why_time(b, v->until_ms - s->trial.now_ms);
}

static void say_victims(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    bh_buf_str(b, "those who could go for it are within their minimum run time, the first for another ");
    bh_why_time(b, v->until_ms - s->trial.now_ms);
}

static void say_misconfigured(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    (void)s, (void)v;
    bh_buf_str(b, "no node could ever take one of its members: model, size, processors or memory");
}

static void say_exceeds(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    (void)s;
    bh_buf_str(b, "it needs ");
    bh_why_gpus(b, v->need);
    bh_buf_str(b, ", for which there would be no place if nobody else were there");
}

static void say_leaving(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    (void)s, (void)v;
    bh_buf_str(b, "it has its place, and starts when those who had it are gone");
}

static void say_runs(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    (void)s, (void)v;
    bh_buf_str(b, "it runs");
}

static const sentence_fn sentences[BH_WAITS] = {
    [BH_WAIT_NOT] = say_runs,          [BH_WAIT_MISCONFIGURED] = say_misconfigured,
    [BH_WAIT_EXCEEDS] = say_exceeds,   [BH_WAIT_LIMIT] = say_quota,
    [BH_WAIT_FIRM] = say_quota,        [BH_WAIT_TURN] = say_turn,
    [BH_WAIT_ROOM] = say_room,         [BH_WAIT_SHAPE] = say_room,
    [BH_WAIT_RESERVED] = say_reserved, [BH_WAIT_VICTIMS] = say_victims,
    [BH_WAIT_LEAVING] = say_leaving,   [BH_WAIT_WITHHELD] = say_withheld,
};

void bh_why_sentence(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    sentences[v->tier](b, s, v);
}

/* ---- all of it ---- */

static void add_holders(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    for (uint32_t i = 0; i < v->n_holders; i++) {
        const struct bh_holder *h = &v->holders[i];
        bh_buf_str(b, i ? "\n           " : "  held by  ");
        bh_text_add(b, bh_scenario_job_name(s, h->job));
        bh_buf_str(b, " of ");
        bh_text_add(b, bh_scenario_queue_name(s, h->queue));
        bh_buf_str(b, ": ");
        bh_why_gpus(b, h->milli);
        if (h->part) {
            bh_buf_str(b, ", ");
            add_amount(b, v->hinder == BH_HINDER_CPU ? BH_RES_CPU : BH_RES_MEM, h->part);
        }
        if (h->end_ms != BH_NEVER_MS) {
            bh_buf_str(b, ", for another ");
            bh_why_time(b, h->end_ms - s->trial.now_ms);
        }
    }
    if (v->n_more) {
        bh_buf_printf(b, "\n           and %" PRIu32 " more with ", v->n_more);
        bh_why_gpus(b, v->more_milli);
    }
    if (v->n_holders)
        bh_buf_str(b, "\n");
}

static void add_turn(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v)
{
    if (!v->next_job)
        return;
    bh_buf_printf(b, "  turn     behind %" PRIu32 ", the last of them ", v->ahead);
    bh_text_add(b, bh_scenario_job_name(s, v->next_job));
    bh_buf_printf(b, " (%s)\n", bh_turn_key_text(v->key));
}

static void add_remedy(struct bh_buf *b, const struct bh_scenario *s, const struct bh_remedy *r)
{
    if (r->kind == BH_CHANGE_NONE) {
        bh_buf_str(b, "  to start it  nothing was found\n");
        return;
    }
    for (size_t i = 0; i < r->steps.n; i++) {
        bh_buf_str(b, i ? "           and " : "  to start it  ");
        bh_why_change(b, s, &r->steps.at[i]);
        bh_buf_str(b, "\n");
    }
    bh_buf_str(b, r->least ? "           tried: it starts then, and nothing cheaper does it\n"
                           : "           tried: it starts then; something cheaper may exist\n");
}

void bh_why_text(struct bh_cli *cli, const struct bh_scenario *s, uint64_t job, const struct bh_verdict *v,
                 const struct bh_remedy *r)
{
    struct bh_buf *b = &cli->out;
    bh_paint_add(b, cli->paint_out, BH_PAINT_BOLD, bh_scenario_job_name(s, job));
    bh_buf_printf(b, "  %s\n  why      ", bh_wait_names[v->tier]);
    bh_why_sentence(b, s, v);
    bh_buf_str(b, "\n");
    if (v->tier == BH_WAIT_NOT || v->tier == BH_WAIT_LEAVING)
        return;
    if ((v->tier == BH_WAIT_ROOM || v->tier == BH_WAIT_SHAPE || v->tier == BH_WAIT_WITHHELD) &&
        v->quota.why > BH_QUEUE_FIRM)
        bh_buf_printf(b, "  nobody goes for it: %s\n", bh_queue_why_text(v->quota.why));
    add_holders(b, s, v);
    add_turn(b, s, v);
    add_remedy(b, s, r);
}

/* A node as it has to be; what is not said is as with others of its model. */
static void add_json(struct bh_json *j, const struct bh_scenario *s, const struct bh_change *c)
{
    struct bh_buf words BH_AUTO(bh_buf_fini);
    bh_buf_init(&words, 4096);
    add_words(&words, s, c);
    bh_json_key_str(j, "what_if", bh_buf_text(&words));
    bh_json_key_u64(j, "nodes", c->nodes);
    bh_json_key_u64(j, "gpus_each", c->gpus);
    if (c->gpus && c->model < s->model_names.n)
        bh_json_key_str(j, "model", s->model_names.at[c->model]);
    if (c->domain < s->domain_names.n)
        bh_json_key_str(j, "domain", s->domain_names.at[c->domain]);
    else if (c->domain != BH_NONE)
        bh_json_key_str(j, "new_domain", c->level == BH_LEVEL_LINK ? "link" : "rack");
    if (c->cpu_milli)
        bh_json_key_u64(j, "cpu_milli_each", c->cpu_milli);
    if (c->mem_mib)
        bh_json_key_u64(j, "memory_mib_each", c->mem_mib);
    if (c->gpu_mib)
        bh_json_key_u64(j, "gpu_memory_mib", c->gpu_mib);
    if (c->features)
        bh_json_key_bool(j, "other_features", true);
    if (c->pools)
        bh_json_key_bool(j, "other_pool", true);
}

static void change_json(struct bh_json *j, const struct bh_scenario *s, const struct bh_change *c)
{
    static const char *const kinds[BH_CHANGES] = {"none", "wait", "move", "end", "quota", "add", "health"};
    struct bh_buf words BH_AUTO(bh_buf_fini);
    bh_buf_init(&words, 4096);
    bh_why_change(&words, s, c);
    assert(c->kind < BH_CHANGES);
    bh_json_open(j, '{');
    bh_json_key_str(j, "kind", kinds[c->kind]);
    bh_json_key_str(j, "text", bh_buf_text(&words));
    if (c->kind == BH_CHANGE_WAIT)
        bh_json_key_u64(j, "at_ms", c->at_ms);
    if (c->kind == BH_CHANGE_MOVE || c->kind == BH_CHANGE_FREE)
        bh_json_key_str(j, "job", bh_scenario_job_name(s, c->job));
    if (c->kind == BH_CHANGE_QUOTA) {
        bh_json_key_str(j, "queue", bh_scenario_queue_name(s, c->queue));
        bh_json_key_u64(j, "to", c->to);
    }
    if (c->kind == BH_CHANGE_ADD) {
        add_json(j, s, c);
    }
    bh_json_close(j, '}');
}

void bh_why_json(struct bh_buf *b, const struct bh_scenario *s, uint64_t job, const struct bh_verdict *v,
                 const struct bh_remedy *r)
{
    struct bh_json j;
    struct bh_buf words BH_AUTO(bh_buf_fini);
    bh_buf_init(&words, 4096);
    bh_why_sentence(&words, s, v);
    bh_json_init(&j, b);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_str(&j, "job", bh_scenario_job_name(s, job));
    bh_json_key_str(&j, "tier", bh_wait_names[v->tier]);
    bh_json_key_str(&j, "why", bh_buf_text(&words));
    bh_json_key_u64(&j, "need_milli", v->need);
    bh_json_key_u64(&j, "free_milli", v->free);
    bh_json_key_u64(&j, "group_milli", v->group);
    bh_json_key_u64(&j, "withheld_milli", v->withheld);
    if (v->hinder != BH_HINDER_NOT)
        bh_json_key_str(&j, "withheld_by", bh_hinder_names[v->hinder]);
    bh_json_key_u64(&j, "ahead", v->ahead);
    bh_json_key(&j, "holders");
    bh_json_open(&j, '[');
    for (uint32_t i = 0; i < v->n_holders; i++) {
        bh_json_open(&j, '{');
        bh_json_key_str(&j, "job", bh_scenario_job_name(s, v->holders[i].job));
        bh_json_key_str(&j, "queue", bh_scenario_queue_name(s, v->holders[i].queue));
        bh_json_key_u64(&j, "milli", v->holders[i].milli);
        if (v->holders[i].end_ms != BH_NEVER_MS)
            bh_json_key_u64(&j, "end_ms", v->holders[i].end_ms);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_key(&j, "change");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < r->steps.n; i++)
        change_json(&j, s, &r->steps.at[i]);
    bh_json_close(&j, ']');
    bh_json_key_bool(&j, "least", r->least);
    bh_json_close(&j, '}');
    bh_buf_str(b, "\n");
}
