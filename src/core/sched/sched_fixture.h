/* SPDX-License-Identifier: Apache-2.0 */
/* sched_fixture.h - small fleets, queues and jobs in a few words, and a host that does as it is told; for tests. */
#ifndef BH_CORE_SCHED_SCHED_FIXTURE_H
#define BH_CORE_SCHED_SCHED_FIXTURE_H

#include "base/choice.h"
#include "base/test.h"
#include "core/sched/sched_inside.h"

#define GPU 1000u

static inline void say(struct bh_sched *s, struct bh_sched_event e)
{
    if (bh_sched_apply(s, &e, NULL) < 0)
        abort();
}

/* GPUs alone are divided, nothing fades, nothing is paid for starting. */
static inline struct bh_sched_config plain_config(void)
{
    struct bh_sched_config c;
    bh_sched_config_init(&c);
    c.queues.divided = 1u << BH_RES_GPU;
    c.queues.half_life_ms = c.queues.entry_ms = 0;
    c.score = BH_SCORE_PACKING;
    return c;
}

static inline struct bh_sched *plain_sched(void)
{
    const struct bh_sched_config c = plain_config();
    return bh_sched_new(&c);
}

static inline void add_model(struct bh_sched *s, uint32_t id, const char *name)
{
    say(s, (struct bh_sched_event){
               .kind = BH_SCHED_MODEL, .id = id, .model = name ? bh_catalog_find(name) : NULL});
}

static inline void add_domain(struct bh_sched *s, uint32_t id, enum bh_level level, uint32_t parent)
{
    say(s, (struct bh_sched_event){.kind = BH_SCHED_DOMAIN, .id = id, .level = level, .parent = parent});
}

static inline struct bh_node_spec node_of(uint32_t id, uint32_t n_gpus, uint32_t domain)
{
    return (struct bh_node_spec){.domain = domain,
                                 .rank = id,
                                 .n_gpus = n_gpus,
                                 .gpu_mib = 80000,
                                 .cpu_milli = 64000,
                                 .mem_mib = 1 << 20};
}

static inline void add_node(struct bh_sched *s, uint32_t id, uint32_t n_gpus, uint32_t domain)
{
    const struct bh_node_spec spec = node_of(id, n_gpus, domain);
    say(s, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = id, .node = &spec});
}

/* n nodes of so many GPUs, of one model, in no domain. */
static inline void add_fleet(struct bh_sched *s, uint32_t n, uint32_t n_gpus)
{
    add_model(s, 0, NULL);
    for (uint32_t i = 0; i < n; i++)
        add_node(s, i, n_gpus, BH_NONE);
}

static inline void add_queue(struct bh_sched *s, uint32_t id, uint32_t parent, uint64_t guarantee,
                             uint64_t deserved)
{
    struct bh_queue_config c;
    bh_queue_config_init(&c);
    c.guarantee.at[BH_RES_GPU] = guarantee * GPU;
    c.deserved.at[BH_RES_GPU] = deserved * GPU;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = id, .parent = parent, .queue = &c});
}

/* One role of n members with so many whole GPUs each, that may be started again. */
static inline struct bh_gang_spec job_of(uint64_t id, uint32_t queue, uint32_t n, uint32_t n_gpus)
{
    struct bh_gang_spec j = {.id = id,
                             .queue = queue,
                             .n_roles = 1,
                             .within = BH_LEVEL_ANY,
                             .prefer = BH_LEVEL_ANY,
                             .band = BH_PRIORITY_NORMAL,
                             .can = BH_CAN_REQUEUE,
                             .submit_ms = id,
                             .deadline_ms = BH_TURN_NO_DEADLINE};
    j.roles[0] = (struct bh_gang_role_spec){.min = n, .max = n};
    j.roles[0].request = (struct bh_request){
        .form = n_gpus ? BH_FORM_WHOLE : BH_FORM_CPU, .n_gpus = (uint8_t)n_gpus, .apart = BH_APART_NOTHING};
    j.roles[0].request.gpu_milli = (uint16_t)(n_gpus ? GPU : 0);
    return j;
}

/* A share of one GPU. */
static inline struct bh_gang_spec share_of(uint64_t id, uint32_t queue, uint32_t milli, uint32_t mib)
{
    struct bh_gang_spec j = job_of(id, queue, 1, 1);
    j.roles[0].request.form = BH_FORM_SHARE;
    j.roles[0].request.gpu_milli = (uint16_t)milli;
    j.roles[0].request.gpu_mib = mib;
    return j;
}

static inline void submit(struct bh_sched *s, struct bh_gang_spec j)
{
    say(s, (struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .job = &j});
}

static inline void tell(struct bh_sched *s, enum bh_sched_event_kind kind, uint64_t id, uint64_t at_ms)
{
    say(s, (struct bh_sched_event){.kind = kind, .id = id, .at_ms = at_ms});
}

static inline void health(struct bh_sched *s, uint32_t node, uint32_t gpu, enum bh_health h, uint64_t at_ms)
{
    say(s, (struct bh_sched_event){
               .kind = BH_SCHED_HEALTH, .id = node, .gpu = gpu, .health = h, .at_ms = at_ms});
}

static inline int state_of(const struct bh_sched *s, uint64_t id)
{
    const struct bh_gang *g = bh_sched_job(s, id);
    return g ? g->state : BH_GANG_FREE;
}

/* One cycle; whoever was told to go is gone at once. How many decisions. */
static inline size_t cycle(struct bh_sched *s, uint64_t now_ms)
{
    size_t n;
    const struct bh_decision *d = bh_sched_decide(s, now_ms, 0, &n);
    for (size_t i = 0; i < n; i++) {
        if (bh_decision_leaves(&d[i]))
            tell(s, BH_SCHED_GONE, d[i].job, now_ms);
    }
    return n;
}

/* How many decisions of a kind the last cycle made about a job; 0: about any. */
static inline uint32_t told_of(const struct bh_sched *s, enum bh_decision_kind kind, uint64_t job)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->decisions.n; i++)
        n += s->decisions.at[i].kind == kind && (!job || s->decisions.at[i].job == job);
    return n;
}

static inline const struct bh_decision *decision_of(const struct bh_sched *s, enum bh_decision_kind kind,
                                                    uint64_t job)
{
    for (size_t i = 0; i < s->decisions.n; i++) {
        if (s->decisions.at[i].kind == kind && s->decisions.at[i].job == job)
            return &s->decisions.at[i];
    }
    return NULL;
}

/* ---- what must always hold ---- */

/* Every job has all of its minimum or nothing, in places that exist and are near enough; the accounts agree. */
static inline bool gang_is_sound(const struct bh_sched *s, uint32_t job, struct bh_resources *used)
{
    const struct bh_gang *g = &s->gangs.at[job];
    const struct bh_shape *shape = &s->shapes.at[g->shape];
    uint32_t has[BH_ROLES_MAX] = {0}, extra = 0, n = 0, domain = BH_NONE;
    const bool there = g->state == BH_GANG_RUNS || g->state == BH_GANG_BOUND;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next, n++) {
        const struct bh_hold *hold = &s->shelf.holds.at[h];
        if (s->owners.at[h].job != job || hold->state != BH_HOLD_TAKEN)
            return false;
        has[s->owners.at[h].role]++;
        extra += s->owners.at[h].extra;
        if (!there)
            continue;
        if (hold->class_ != shape->roles[s->owners.at[h].role].class_)
            return false;
        const struct bh_resources one = bh_class_amount(s, hold->class_, hold->node);
        bh_resources_add(used, &one, 1);
        if (shape->within < BH_LEVELS) {
            const uint32_t d = bh_shelf_domain_of(&s->shelf, hold->node, (enum bh_level)shape->within);
            if (d == BH_NONE || (domain != BH_NONE && d != domain))
                return false;
            domain = d;
        }
    }
    if (n != g->n_holds || extra != g->extra || (!g->parked && (g->stays_mib || g->stays_mem_mib)))
        return false;
    used->at[BH_RES_MIB] += g->stays_mib;
    used->at[BH_RES_MEM] += g->stays_mem_mib;
    for (uint32_t r = 0; there && r < shape->n_roles; r++) {
        if (has[r] < shape->roles[r].min || has[r] > shape->roles[r].max)
            return false;
    }
    return there || !n || g->parked;
}

/* What is kept beside of those who have places is what their holds say. */
static inline bool briefs_are_sound(const struct bh_sched *s)
{
    uint32_t movable = 0;
    for (uint32_t i = 0; i < s->briefs.n; i++) {
        const struct bh_brief *b = &s->briefs.at[i];
        const struct bh_gang *g = &s->gangs.at[b->job];
        const struct bh_shape *shape = &s->shapes.at[g->shape];
        uint32_t milli = 0;
        for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next)
            milli += bh_hold_milli(s, h);
        movable += !shape->firm && (shape->can & BH_CAN_MOVE);
        if ((g->state != BH_GANG_RUNS && g->state != BH_GANG_BOUND) || g->brief_at != i || b->id != g->id ||
            b->queue != g->queue || b->shape != g->shape || b->milli != milli ||
            b->safe_ms != (shape->firm || !g->min_run_ms ? 0 : g->since_ms + g->min_run_ms))
            return false;
    }
    return s->briefs.n == s->stats.runs + s->stats.bound && movable == s->n_movable;
}

static inline bool sched_is_sound(struct bh_sched *s)
{
    struct bh_resources used = {{0}};
    uint32_t runs = 0, pending = 0, bound = 0, leaves = 0;
    if (!bh_shelf_sound(&s->shelf) || s->shelf.marks || s->queues.marks)
        return false;
    for (uint32_t i = 0; i < s->gangs.n; i++) {
        const struct bh_gang *g = &s->gangs.at[i];
        if (g->state == BH_GANG_FREE)
            continue;
        runs += g->state == BH_GANG_RUNS;
        pending += g->state == BH_GANG_PENDING;
        bound += g->state == BH_GANG_BOUND;
        leaves += g->state == BH_GANG_LEAVES || g->state == BH_GANG_ENDS;
        if (!gang_is_sound(s, i, &used))
            return false;
    }
    if (memcmp(&used, &s->queues.at.at[BH_QUEUE_ROOT].used, sizeof(used)) != 0)
        return false;
    return briefs_are_sound(s) && runs == s->stats.runs && pending == s->stats.pending &&
           bound == s->stats.bound && leaves == s->stats.leaves;
}

#endif
