/* SPDX-License-Identifier: Apache-2.0 */
/* scenario.c - a scenario becomes a scheduler, and is played. */
#include "cli/scenario.h"

#include "base/str.h"
#include "base/units.h"
#include "conf/file.h"

#include <inttypes.h>
#include <stdio.h>

enum { FILE_BYTES = 16 << 20, NODES_MAX = 20000, RESERVATIONS = 2 };

/* ---- becoming a scheduler ---- */

struct maker {
    struct bh_scenario *s;
    struct bh_diags *d; /* the file's */
    BH_VEC(struct {
        uint32_t parent;
        enum bh_level level;
    })
    domains;                          /* by id */
    BH_VEC(struct bh_pos) node_spots; /* by id: where it is listed */
};

static void tell(struct maker *m, struct bh_sched_event e, struct bh_pos pos)
{
    struct bh_err err;
    e.at_ms = m->s->trial.now_ms;
    if (bh_sched_apply(m->s->trial.sched, &e, &err) < 0)
        bh_diag_error(m->d, pos, "%s", err.msg);
}

static uint32_t name_of(bh_scenario_names *n, const char *name, bool *ret_new)
{
    for (uint32_t i = 0; i < n->n; i++)
        if (bh_str_eq(n->at[i], name)) {
            *ret_new = false;
            return i;
        }
    *bh_vec_push(n) = name;
    *ret_new = true;
    return (uint32_t)(n->n - 1);
}

/* Where an event came from that was refused only together with others. */
static struct bh_pos pos_of(const struct maker *m, const struct bh_sched_refusal *r)
{
    const struct bh_scenario_file *f = &m->s->file;
    if (r->kind == BH_SCHED_QUEUE && r->id && r->id <= f->queues.n)
        return f->queues.at[r->id - 1].pos;
    if (r->kind == BH_SCHED_SUBMIT && r->id && r->id <= f->jobs.n)
        return f->jobs.at[r->id - 1].pos;
    if (r->kind == BH_SCHED_NODE && r->id < m->node_spots.n)
        return m->node_spots.at[r->id];
    return (struct bh_pos){.line = 1, .column = 1};
}

/* Takes in what was told; what the scheduler refuses of it is said, of each kind the first: others may follow from it. */
static void settle(struct maker *m)
{
    uint64_t kinds = 0;
    size_t n;
    bh_sched_settle(m->s->trial.sched);
    const struct bh_sched_refusal *r = bh_sched_refusals(m->s->trial.sched, &n);
    for (size_t i = 0; i < n; i++) {
        if (!(kinds >> r[i].kind & 1) || r[i].kind == BH_SCHED_SUBMIT)
            bh_diag_error(m->d, pos_of(m, &r[i]), "%s", r[i].why.msg);
        kinds |= UINT64_C(1) << r[i].kind;
    }
}

static uint32_t domain_of(struct maker *m, const char *name, enum bh_level level, uint32_t parent,
                          struct bh_pos pos)
{
    bool is_new;
    if (!name)
        return parent;
    const uint32_t id = name_of(&m->s->domain_names, name, &is_new);
    if (is_new) {
        (void)bh_vec_push(&m->domains);
        m->domains.at[id].parent = parent;
        m->domains.at[id].level = level;
        tell(m, (struct bh_sched_event){.kind = BH_SCHED_DOMAIN, .id = id, .level = level, .parent = parent},
             pos);
    } else if (m->domains.at[id].level != level) {
        bh_diag_error(m->d, pos, "'%.63s' is named as a rack and as a link", name);
    } else if (m->domains.at[id].parent != parent) {
        bh_diag_error(m->d, pos, "link '%.63s' stands in two racks; an NVLink domain is in one", name);
    }
    return id;
}

/* Models are bits of a mask. */
static uint32_t model_of(struct maker *m, const char *name, struct bh_pos pos)
{
    bool is_new;
    const uint32_t id = name_of(&m->s->model_names, name, &is_new);
    if (id >= BH_MODELS_MAX)
        bh_diag_error(m->d, pos, "needs at most %d GPU models, '%.63s' is one more", BH_MODELS_MAX, name);
    else if (is_new)
        tell(m, (struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = id, .model = bh_catalog_find(name)},
             pos);
    return id;
}

static void make_nodes(struct maker *m, const struct bh_scenario_node *n)
{
    struct bh_scenario *s = m->s;
    const uint32_t model = model_of(m, n->model, n->pos);
    const uint32_t rack = domain_of(m, n->rack, BH_LEVEL_RACK, BH_NONE, n->pos);
    const uint32_t link = domain_of(m, n->link, BH_LEVEL_LINK, rack, n->pos);
    for (uint32_t i = 0; i < n->count; i++) {
        const struct bh_node_spec spec = {
            .model = model,
            .domain = link,
            .rank = (uint32_t)s->node_names.n,
            .n_gpus = n->gpus,
            .n_numa = 1,
            .cpu_milli = n->cpu_milli ? (uint32_t)n->cpu_milli : UINT32_MAX,
            .mem_mib = n->memory_bytes ? n->memory_bytes / BH_MIB : BH_AMOUNT_MAX >> 16,
        };
        tell(m, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = s->node_names.n, .node = &spec}, n->pos);
        *bh_vec_push(&m->node_spots) = n->pos;
        *bh_vec_push(&s->node_names) =
            n->count == 1 ? n->name : bh_arena_printf(&s->file.arena, "%s-%" PRIu32, n->name, i);
    }
}

static uint32_t queue_of(const struct bh_scenario *s, const char *name)
{
    for (uint32_t i = 0; i < s->file.queues.n; i++)
        if (bh_str_eq(s->file.queues.at[i].name, name))
            return i + 1;
    return BH_QUEUE_NONE;
}

static void make_queue(struct maker *m, uint32_t id)
{
    const struct bh_scenario_queue *q = &m->s->file.queues.at[id - 1];
    struct bh_queue_config c;
    const uint32_t parent = q->parent ? queue_of(m->s, q->parent) : BH_QUEUE_ROOT;
    if (parent == BH_QUEUE_NONE || parent >= id) {
        bh_diag_error(m->d, q->pos, "queue '%.63s' needs a parent that stands before it, not '%.63s'",
                      q->name, q->parent);
        return;
    }
    bh_queue_config_init(&c);
    c.guarantee.at[BH_RES_GPU] = q->guarantee_milli;
    if (q->has_deserved)
        c.deserved.at[BH_RES_GPU] = q->deserved_milli;
    if (q->has_limit)
        c.limit.at[BH_RES_GPU] = q->limit_milli;
    c.weight = q->weight;
    c.serves = q->serves;
    tell(m, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = id, .parent = parent, .queue = &c}, q->pos);
}

static bool level_of(struct maker *m, const struct bh_scenario_job *j, uint8_t *ret)
{
    static const char *const words[] = {[BH_LEVEL_LINK] = "link", [BH_LEVEL_RACK] = "rack"};
    *ret = BH_LEVEL_ANY;
    for (uint8_t i = 0; j->within && i < BH_COUNT_OF(words); i++)
        if (bh_str_eq(j->within, words[i]))
            *ret = i;
    if (j->within && *ret == BH_LEVEL_ANY)
        bh_diag_error(m->d, j->pos, "`within` of job '%.63s' needs link or rack, not '%.63s'", j->name,
                      j->within);
    return !j->within || *ret != BH_LEVEL_ANY;
}

static void submit(struct maker *m, uint64_t id)
{
    struct bh_scenario *s = m->s;
    const struct bh_scenario_job *j = &s->file.jobs.at[id - 1];
    bool is_new;
    struct bh_gang_spec spec = {
        .id = id,
        .queue = queue_of(s, j->queue),
        .n_roles = 1,
        .prefer = BH_LEVEL_LINK,
        .band = BH_PRIORITY_NORMAL,
        .can = BH_CAN_REQUEUE,
        .firm = j->firm,
        .priority = j->priority,
        .submit_ms = j->submitted_ms,
        .deadline_ms = BH_TURN_NO_DEADLINE,
        .runtime_ms = j->runtime_ms,
        .min_run_ms = j->min_runtime_ms,
        .roles = {{.request = {.form = j->share_milli ? BH_FORM_SHARE
                                       : j->gpus      ? BH_FORM_WHOLE
                                                      : BH_FORM_CPU,
                               .n_gpus = (uint8_t)(j->share_milli && !j->gpus ? 1 : j->gpus),
                               .gpu_milli = (uint16_t)(j->share_milli ? j->share_milli
                                                       : j->gpus      ? BH_GPU_MILLI
                                                                      : 0),
                               .apart = j->alone ? BH_APART_NODE : BH_APART_NOTHING,
                               .cpu_milli = (uint32_t)j->cpu_milli,
                               .mem_mib = j->memory_bytes / BH_MIB,
                               .trust = j->tenant ? 1 + name_of(&s->tenant_names, j->tenant, &is_new) : 0},
                   .min = j->members,
                   .max = j->members}},
    };
    if (j->model) {
        const uint32_t model = model_of(m, j->model, j->pos);
        if (model >= BH_MODELS_MAX)
            return;
        spec.roles[0].request.models = UINT64_C(1) << model;
    }
    if (level_of(m, j, &spec.within))
        tell(m, (struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .id = id, .job = &spec}, j->pos);
}

/* Names that are not there, and such that are there twice. */
static void check(struct maker *m)
{
    const struct bh_scenario *s = m->s;
    for (uint32_t i = 0; i < s->file.nodes.n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (bh_str_eq(s->file.nodes.at[i].name, s->file.nodes.at[k].name)) {
                bh_diag_error(m->d, s->file.nodes.at[i].pos, "node '%.63s' is listed twice",
                              s->file.nodes.at[i].name);
                break;
            }
    for (uint32_t i = 0; i < s->file.queues.n; i++)
        if (queue_of(s, s->file.queues.at[i].name) != i + 1)
            bh_diag_error(m->d, s->file.queues.at[i].pos, "queue '%.63s' is listed twice",
                          s->file.queues.at[i].name);
    for (uint32_t i = 0; i < s->file.jobs.n; i++) {
        const struct bh_scenario_job *j = &s->file.jobs.at[i];
        const uint32_t q = queue_of(s, j->queue);
        if (bh_scenario_job(s, j->name) != i + 1)
            bh_diag_error(m->d, j->pos, "job '%.63s' is listed twice", j->name);
        if (q == BH_QUEUE_NONE)
            bh_diag_error(m->d, j->pos, "job '%.63s' names queue '%.63s', which is not listed", j->name,
                          j->queue);
        for (uint32_t k = 0; q != BH_QUEUE_NONE && k < s->file.queues.n; k++)
            if (bh_str_eq(s->file.queues.at[k].parent, j->queue)) {
                bh_diag_error(m->d, j->pos, "job '%.63s' stands in queue '%.63s', which has others below it",
                              j->name, j->queue);
                break;
            }
    }
}

/* ---- playing ---- */

/* The next time, not before `from`, at which a job is submitted; BH_NEVER_MS: none. */
static uint64_t next_submit(const struct bh_scenario *s, uint64_t from_ms)
{
    uint64_t next = BH_NEVER_MS;
    for (size_t i = 0; i < s->file.jobs.n; i++)
        if (s->file.jobs.at[i].submitted_ms >= from_ms && s->file.jobs.at[i].submitted_ms < next)
            next = s->file.jobs.at[i].submitted_ms;
    return next;
}

static void until(struct bh_trial *t, uint64_t ms)
{
    while (bh_trial_next(t, ms))
        continue;
    t->now_ms = ms;
}

static void play(struct maker *m)
{
    struct bh_scenario *s = m->s;
    for (uint64_t at = next_submit(s, 0); at <= s->file.now_ms && !m->d->n_errors;
         at = next_submit(s, at + 1)) {
        until(&s->trial, at);
        for (uint64_t id = 1; id <= s->file.jobs.n; id++)
            if (s->file.jobs.at[id - 1].submitted_ms == at)
                submit(m, id);
        settle(m);
        bh_trial_play(&s->trial);
    }
    until(&s->trial, s->file.now_ms);
    bh_trial_play(&s->trial);
}

static void make(struct maker *m)
{
    struct bh_scenario *s = m->s;
    struct bh_sched_config c;
    bh_sched_config_init(&c);
    c.queues.divided = 1u << BH_RES_GPU;
    s->reserve = (struct bh_reserve_config){.most = RESERVATIONS};
    s->trial.sched = bh_sched_new(&c);
    s->trial.reserve = bh_reserve_new(&s->reserve);
    bh_sched_set_veto(s->trial.sched, bh_reserve_veto, s->trial.reserve);
    for (size_t i = 0; i < s->file.nodes.n; i++) {
        if (s->node_names.n + s->file.nodes.at[i].count > NODES_MAX) {
            bh_diag_error(m->d, s->file.nodes.at[i].pos, "needs at most %d nodes in all", NODES_MAX);
            break;
        }
        make_nodes(m, &s->file.nodes.at[i]);
    }
    for (uint32_t i = 1; i <= s->file.queues.n; i++)
        make_queue(m, i);
    check(m);
    if (!m->d->n_errors)
        settle(m);
    if (!m->d->n_errors)
        play(m);
    bh_vec_fini(&m->domains);
    bh_vec_fini(&m->node_spots);
}

static int say(const struct bh_cli *cli, const char *path, struct bh_diags *d)
{
    bh_diags_sort(d);
    for (size_t i = 0; i < d->at.n; i++) {
        struct bh_err err;
        (void)bh_fail(&err, BH_INVALID, "%.200s:%" PRIu32 ":%" PRIu32 ": %.240s", path, d->at.at[i].pos.line,
                      d->at.at[i].pos.column, d->at.at[i].message);
        (void)bh_cli_fail(cli, &err);
    }
    return d->n_errors ? BH_EXIT_UNREADABLE : BH_EXIT_OK;
}

int bh_scenario_open(struct bh_cli *cli, const char *path, struct bh_scenario *ret)
{
    BH_AUTOFREE char *text = NULL;
    size_t n;
    struct bh_err err;
    *ret = (struct bh_scenario){0};
    if (bh_file_read(path, FILE_BYTES, &text, &n, &err) < 0)
        return bh_cli_fail(cli, &err);
    bh_scenario_file_read(text, n, &ret->file);
    if (!ret->file.diags.n_errors)
        make(&(struct maker){.s = ret, .d = &ret->file.diags});
    return say(cli, path, &ret->file.diags);
}

void bh_scenario_fini(struct bh_scenario *s)
{
    bh_trial_end(&s->trial);
    bh_vec_fini(&s->node_names);
    bh_vec_fini(&s->domain_names);
    bh_vec_fini(&s->model_names);
    bh_vec_fini(&s->tenant_names);
    bh_scenario_file_fini(&s->file);
}

/* ---- words ---- */

uint64_t bh_scenario_job(const struct bh_scenario *s, const char *name)
{
    for (uint64_t i = 0; i < s->file.jobs.n; i++)
        if (bh_str_eq(s->file.jobs.at[i].name, name))
            return i + 1;
    return 0;
}

const char *bh_scenario_job_name(const struct bh_scenario *s, uint64_t id)
{
    return id && id <= s->file.jobs.n ? s->file.jobs.at[id - 1].name : "?";
}

const char *bh_scenario_queue_name(const struct bh_scenario *s, uint32_t queue)
{
    return queue == BH_QUEUE_ROOT      ? "the fleet"
           : queue <= s->file.queues.n ? s->file.queues.at[queue - 1].name
                                       : "?";
}
