/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_life_fixture.h - random fleets, trees of queues and lives of jobs, drawn from a string of bytes.
 *
 * A life is told to any number of schedulers at once, to each in its own order within a tick, and all must
 * decide the same. The host in it does what it is told, after a while.
 */
#ifndef BH_CORE_SCHED_SCHED_LIFE_FIXTURE_H
#define BH_CORE_SCHED_SCHED_LIFE_FIXTURE_H

#include "core/sched/reserve.h"
#include "core/sched/sched_fixture.h"

enum { LIFE_BYTES = 8192, LIFE_EVENTS = 256, LIFE_JOBS = 96, LIFE_PAYLOADS = 64, LIFE_MIB = 1000 };

struct life {
    struct bh_choice choice;
    struct bh_sched *s[2];
    struct bh_reserve *reserve[2]; /* NULL: there are no reservations in this life */
    uint64_t
        allowed[LIFE_JOBS * 16]; /* jobs that were given places by those, in this cycle of one scheduler */
    uint32_t n_allowed;
    void (*deciding)(bool); /* told before and after each cycle; may be NULL */
    uint32_t n_s;
    uint64_t now_ms;
    uint32_t n_nodes, n_queues, leaves[32], n_leaves;
    uint64_t next_job;
    /* of this tick */
    struct bh_sched_event events[LIFE_EVENTS];
    uint32_t n_events;
    struct bh_gang_spec jobs[LIFE_PAYLOADS];
    uint32_t n_jobs;
    /* told to go, and not gone yet */
    uint64_t going[LIFE_JOBS * 4];
    uint32_t n_going;
};

static inline uint32_t draw(struct life *l, uint32_t n)
{
    return bh_choose(&l->choice, n);
}

static inline void note(struct life *l, struct bh_sched_event e)
{
    e.at_ms = l->now_ms;
    if (l->n_events < LIFE_EVENTS)
        l->events[l->n_events++] = e;
}

/* Everybody hears of the tick; the second one backwards. */
static inline void tell_all(struct life *l)
{
    for (uint32_t i = 0; i < l->n_events; i++) {
        for (uint32_t k = 0; k < l->n_s; k++)
            (void)!bh_sched_apply(l->s[k], &l->events[k ? l->n_events - 1 - i : i], NULL);
    }
    l->n_events = l->n_jobs = 0;
}

static inline struct bh_sched_config life_config(struct life *l)
{
    static const uint8_t modes[] = {BH_SCORE_PACKING, BH_SCORE_BULKHEAD, BH_SCORE_FGD, BH_SCORE_BESTFIT};
    struct bh_sched_config c = plain_config();
    c.score = (enum bh_score_mode)modes[draw(l, 4)];
    c.grace_ms = draw(l, 3) * 50;
    if (draw(l, 2)) {
        c.queues.divided |= 1u << BH_RES_CPU | draw(l, 2) << BH_RES_MEM;
        c.queues.half_life_ms = 10000;
        c.queues.history_k = BH_HISTORY_ONE / 2;
        c.queues.entry_ms = 100;
        c.queues.sample_ms = 20;
        c.queues.slack_ms = 100;
    }
    if (!draw(l, 3)) {
        c.model_class[0] = 0;
        c.model_class[1] = 1;
    }
    return c;
}

static inline void life_fleet(struct life *l)
{
    static const uint8_t sizes[] = {8, 4, 8, 2, 0};
    static struct bh_node_spec specs[32];
    const uint32_t racks = draw(l, 3), domains = racks * 3;
    note(l, (struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = 0});
    note(l, (struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = 1, .model = bh_catalog_find("A100")});
    for (uint32_t i = 0; i < domains; i++)
        note(l, (struct bh_sched_event){.kind = BH_SCHED_DOMAIN,
                                        .id = i,
                                        .level = i % 3 ? BH_LEVEL_LINK : BH_LEVEL_RACK,
                                        .parent = i % 3 ? i - i % 3 : BH_NONE});
    l->n_nodes = 1 + draw(l, 10);
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        const uint32_t d = draw(l, 1 + racks * 2);
        specs[i] = node_of(i, sizes[draw(l, 5)], d ? (d - 1) / 2 * 3 + 1 + (d - 1) % 2 : BH_NONE);
        specs[i].model = draw(l, 2);
        specs[i].cpu_milli = 1000 * (4 + draw(l, 16));
        specs[i].mem_mib = 1000 * (1 + draw(l, 64));
        specs[i].gpu_mib = draw(l, 4) ? LIFE_MIB : LIFE_MIB / 2;
        note(l, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = i, .node = &specs[i]});
    }
}

static inline struct bh_queue_config life_queue(struct life *l, bool leaf)
{
    struct bh_queue_config c;
    if (leaf || !draw(l, 3))
        bh_queue_config_init(&c);
    else
        bh_queue_config_group(&c);
    if (c.deserved.at[BH_RES_GPU] != BH_AMOUNT_ANY)
        c.deserved.at[BH_RES_GPU] = draw(l, 16) * GPU;
    c.guarantee.at[BH_RES_GPU] = draw(l, 5) ? 0 : draw(l, 4) * GPU;
    if (!draw(l, 4))
        c.limit.at[BH_RES_GPU] = c.guarantee.at[BH_RES_GPU] + draw(l, 24) * GPU;
    if (!draw(l, 5))
        c.limit.at[BH_RES_MODEL0 + draw(l, 2)] = draw(l, 12) * GPU;
    if (!draw(l, 5))
        c.limit.at[BH_RES_MIB] = draw(l, 16) * LIFE_MIB;
    c.model = (enum bh_quota_model)(leaf ? draw(l, 3) : BH_QUOTA_FAIRSHARE);
    c.weight = draw(l, 4);
    c.priority = (int32_t)draw(l, 2);
    c.serves = !draw(l, 6);
    c.band_max = (enum bh_priority)draw(l, 4);
    c.budget = draw(l, 2) ? BH_BUDGET_ANY : UINT64_C(10000000);
    return c;
}

static inline void life_queues(struct life *l)
{
    static struct bh_queue_config configs[32];
    const uint32_t teams = 1 + draw(l, 4);
    uint32_t id = 1;
    l->n_leaves = 0;
    for (uint32_t t = 0; t < teams; t++) {
        const uint32_t below = draw(l, 4), team = id;
        for (uint32_t k = 0; k <= below; k++, id++) {
            configs[id] = life_queue(l, !below || k);
            note(l, (struct bh_sched_event){
                        .kind = BH_SCHED_QUEUE, .id = id, .parent = k ? team : 0, .queue = &configs[id]});
            if (!below || k)
                l->leaves[l->n_leaves++] = id;
        }
    }
    l->n_queues = id;
}

static inline struct bh_request life_request(struct life *l)
{
    static const uint8_t aparts[] = {BH_APART_NOTHING, BH_APART_NOTHING, BH_APART_GPU, BH_APART_NODE};
    struct bh_request r = {.form = BH_FORM_WHOLE,
                           .n_gpus = (uint8_t)(1u << draw(l, 4)),
                           .gpu_milli = GPU,
                           .cpu_milli = draw(l, 4) * 500,
                           .mem_mib = draw(l, 3) * 100,
                           .models = draw(l, 4) ? 0 : 1 + draw(l, 2),
                           .apart = aparts[draw(l, 4)],
                           .trust = draw(l, 2)};
    const uint32_t form = draw(l, 6);
    if (form == 0) {
        r.form = BH_FORM_CPU;
        r.n_gpus = 0;
        r.gpu_milli = 0;
    } else if (form < 3) {
        r.form = BH_FORM_SHARE;
        r.n_gpus = (uint8_t)(1 + !draw(l, 4));
        r.gpu_milli = (uint16_t)(100 * (1 + draw(l, 9)));
        r.gpu_mib = 100 * draw(l, 10);
    } else if (form == 3 && !draw(l, 3)) {
        r.form = BH_FORM_MIG;
        r.n_gpus = 1;
        r.gpu_milli = 0;
        r.models = 2;
        r.mig_profile = (uint8_t)draw(l, bh_catalog_find("A100")->n_profiles);
    }
    return r;
}

static inline struct bh_gang_spec life_job(struct life *l)
{
    struct bh_gang_spec j = {.id = ++l->next_job,
                             .queue = l->leaves[draw(l, l->n_leaves)],
                             .user = draw(l, 3),
                             .n_roles = (uint8_t)(1 + !draw(l, 5)),
                             .within = BH_LEVEL_ANY,
                             .prefer = BH_LEVEL_ANY,
                             .band = (uint8_t)draw(l, BH_N_priority),
                             .can = (uint8_t)draw(l, 16),
                             .firm = !draw(l, 4),
                             .priority = (int32_t)draw(l, 3),
                             .submit_ms = l->now_ms - draw(l, 2),
                             .deadline_ms = draw(l, 4) ? BH_TURN_NO_DEADLINE : l->now_ms + draw(l, 300),
                             .runtime_ms = draw(l, 50),
                             .min_run_ms = draw(l, 3) ? 0 : draw(l, 60)};
    if (!draw(l, 4))
        j.within = (uint8_t)draw(l, 2);
    j.prefer = draw(l, 2) ? j.within : (uint8_t)draw(l, (uint32_t)j.within + 1);
    for (uint32_t i = 0; i < j.n_roles; i++) {
        struct bh_gang_role_spec *r = &j.roles[i];
        r->request = life_request(l);
        r->min = 1 + (draw(l, 3) ? 0 : draw(l, 4));
        r->max = r->min + (draw(l, 4) ? 0 : draw(l, draw(l, 3) ? 4 : 200));
        r->image_mib = draw(l, 3) * 500;
        if (j.within >= BH_LEVEL_RACK && !draw(l, 6)) {
            r->slice = 2;
            r->slice_level = BH_LEVEL_LINK;
            r->min = 2 * r->min;
            r->max = 2 * r->max;
        }
    }
    return j;
}

/* A job that is in this state, or 0. */
static inline uint64_t any_job(struct life *l, enum bh_gang_state state)
{
    const uint32_t n = (uint32_t)bh_sched_slots(l->s[0]), from = n ? draw(l, n) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_gang *g = bh_sched_slot(l->s[0], (from + i) % n);
        if (g->state == state)
            return g->id;
    }
    return 0;
}

static inline void note_of(struct life *l, enum bh_sched_event_kind kind, uint64_t job)
{
    if (job)
        note(l, (struct bh_sched_event){.kind = kind, .id = job});
}

static inline void life_event(struct life *l)
{
    switch (draw(l, 12)) {
    case 0:
    case 1:
        note_of(l, BH_SCHED_FINISH, any_job(l, BH_GANG_RUNS));
        break;
    case 2:
        note_of(l, BH_SCHED_CANCEL, any_job(l, (enum bh_gang_state)(1 + draw(l, 4))));
        break;
    case 3:
        note_of(l, draw(l, 2) ? BH_SCHED_CHECKPOINT : BH_SCHED_STARTED, any_job(l, BH_GANG_RUNS));
        break;
    case 4: {
        static const uint8_t states[] = {BH_HEALTH_OK, BH_HEALTH_FAILED, BH_HEALTH_OK, BH_HEALTH_CORDON,
                                         BH_HEALTH_DRAIN};
        note(l, (struct bh_sched_event){.kind = BH_SCHED_HEALTH,
                                        .id = draw(l, l->n_nodes),
                                        .gpu = draw(l, 2) ? BH_NONE : draw(l, 2),
                                        .health = (enum bh_health)states[draw(l, 5)]});
        break;
    }
    case 5:
        note(l, (struct bh_sched_event){.kind = BH_SCHED_RANK, .id = draw(l, 3), .rank = draw(l, 3)});
        break;
    default:
        if (l->n_jobs == LIFE_PAYLOADS || bh_sched_stats(l->s[0]).pending > LIFE_JOBS)
            break;
        l->jobs[l->n_jobs] = life_job(l);
        note(l, (struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .job = &l->jobs[l->n_jobs]});
        l->n_jobs++;
    }
}

static inline bool life_veto(void *life, const struct bh_sched *s, const struct bh_gang *g,
                             const struct bh_place *places, uint32_t n, uint64_t now_ms)
{
    struct life *l = life;
    const bool may = bh_reserve_veto(l->reserve[s == l->s[1]], s, g, places, n, now_ms);
    if (may && l->n_allowed < BH_COUNT_OF(l->allowed))
        l->allowed[l->n_allowed++] = g->id;
    return may;
}

/* From now on this one decides in the place of another. */
static inline void life_seat(struct life *l, uint32_t k, struct bh_sched *s)
{
    l->s[k] = s;
    if (l->reserve[k])
        bh_sched_set_veto(s, life_veto, l);
}

static inline void life_begin(struct life *l, const uint8_t *bytes, size_t n, uint32_t n_s)
{
    memset(l, 0, sizeof(*l));
    l->choice = (struct bh_choice){bytes, n};
    l->now_ms = 1000;
    const struct bh_sched_config c = life_config(l);
    const struct bh_reserve_config rc = {.most = draw(l, 4), .assumed_ms = draw(l, 2) * 50};
    for (l->n_s = 0; l->n_s < n_s; l->n_s++) {
        l->reserve[l->n_s] = rc.most ? bh_reserve_new(&rc) : NULL;
        life_seat(l, l->n_s, bh_sched_new(&c));
    }
    life_fleet(l);
    life_queues(l);
    tell_all(l);
}

static inline void life_end(struct life *l)
{
    for (uint32_t k = 0; k < l->n_s; k++) {
        bh_sched_free(l->s[k]);
        bh_reserve_free(l->reserve[k]);
    }
}

/* The host: who was told to go will be gone. */
static inline void life_obey(struct life *l, const struct bh_decision *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (l->n_going == LIFE_JOBS * 4 || !bh_decision_leaves(&d[i]))
            continue;
        l->going[l->n_going++] = d[i].job;
    }
}

static inline void life_gone(struct life *l, bool all)
{
    for (uint32_t i = 0; i < l->n_going;) {
        if (l->n_events == LIFE_EVENTS || (!all && draw(l, 2))) {
            i++;
            continue;
        }
        note_of(l, BH_SCHED_GONE, l->going[i]);
        l->going[i] = l->going[--l->n_going];
    }
}

/* ---- what must not happen in a cycle ---- */

struct before {
    struct bh_resources used[32], firm[32];
    struct {
        uint64_t id, since_ms, min_run_ms;
        bool firm;
        uint32_t queue;
    } jobs[1024];
    uint32_t n_jobs;
};

static inline void look(const struct bh_sched *s, struct before *b)
{
    b->n_jobs = 0;
    for (size_t i = 0; i < s->queues.at.n; i++) {
        b->used[i] = s->queues.at.at[i].used;
        b->firm[i] = s->queues.at.at[i].used_firm;
    }
    for (size_t i = 0; i < s->gangs.n && b->n_jobs < BH_COUNT_OF(b->jobs); i++) {
        const struct bh_gang *g = &s->gangs.at[i];
        if (g->state != BH_GANG_RUNS)
            continue;
        b->jobs[b->n_jobs].id = g->id;
        b->jobs[b->n_jobs].since_ms = g->since_ms;
        b->jobs[b->n_jobs].min_run_ms = g->min_run_ms;
        b->jobs[b->n_jobs].firm = s->shapes.at[g->shape].firm;
        b->jobs[b->n_jobs++].queue = g->queue;
    }
}

/* Nothing grew over a limit, and what is not interruptible not over what it is entitled to. */
static inline bool limits_hold(const struct bh_sched *s, const struct before *b)
{
    for (size_t i = 0; i < s->queues.at.n; i++) {
        const struct bh_queue *q = &s->queues.at.at[i];
        for (unsigned r = 0; r < BH_RES_COUNT; r++) {
            if (q->used.at[r] > q->ceiling.at[r] && q->used.at[r] > b->used[i].at[r])
                return false;
            if (q->entitled.at[r] != BH_AMOUNT_ANY && q->used_firm.at[r] > q->entitled.at[r] &&
                q->used_firm.at[r] > b->firm[i].at[r])
                return false;
        }
    }
    return true;
}

/* It, or a queue above it. */
static inline bool serves(const struct bh_sched *s, uint32_t queue)
{
    bool any = false;
    for (; s->queues.at.at[queue].depth && !any; queue = s->queues.at.at[queue].parent)
        any = s->queues.at.at[queue].config.serves;
    return any;
}

/* Who serves under an SLO loses nothing to who does not. */
static inline bool slo_holds(const struct bh_sched *s, uint32_t victim, const struct bh_gang *taker)
{
    return taker && (taker->queue == victim || !serves(s, victim) || serves(s, taker->queue));
}

static inline bool may_be_evicted(const struct bh_sched *s, const struct before *b,
                                  const struct bh_decision *d)
{
    const struct bh_gang *taker = bh_sched_job(s, d->other);
    const bool moves = d->kind == BH_DECIDE_MOVE && d->why != BH_FOR_BROKEN;
    if (!moves && (d->kind != BH_DECIDE_EVICT || d->why != BH_FOR_JOB))
        return true;
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        if (b->jobs[i].id != d->job)
            continue;
        if (d->rung == BH_RUNG_NARROW && !moves)
            return slo_holds(s, b->jobs[i].queue, taker);
        if (b->jobs[i].firm || s->now_ms - b->jobs[i].since_ms < b->jobs[i].min_run_ms)
            return false;
        if (moves) /* and the one it is for has its places */
            return d->why == BH_FOR_DRAIN || (taker && taker->state != BH_GANG_PENDING);
        return slo_holds(s, b->jobs[i].queue, taker);
    }
    return false; /* did not run before */
}

/* GPU memory that a hold keeps from others; of a paused one all that it had. */
static inline uint64_t memory_of(const struct bh_sched *s, const struct bh_gang *g, uint32_t hold)
{
    const struct bh_hold *h = &s->shelf.holds.at[hold];
    const struct bh_shelf_node *n = &s->shelf.nodes.at[h->node];
    const struct bh_request *r =
        &s->requests.at.at[s->shapes.at[g->shape].roles[s->owners.at[hold].role].class_];
    const uint64_t all = n->n_gpus ? s->shelf.gpus.at[n->first_gpu].mib_all : 0;
    if (!h->gpus)
        return 0; /* suspended, or never had one */
    if (r->form == BH_FORM_MIG)
        return all * s->shelf.models[n->model].known->profiles[r->mig_profile].memory_slices /
               s->shelf.models[n->model].known->memory_slices;
    const uint64_t one = r->form == BH_FORM_WHOLE ? all : r->gpu_mib ? r->gpu_mib : all * r->gpu_milli / GPU;
    return one * bh_bits(h->gpus);
}

/* Every leaf pays for the memory that its jobs have. */
static inline bool memory_is_paid(const struct bh_sched *s)
{
    uint64_t used[32] = {0};
    for (uint32_t i = 0; i < s->gangs.n; i++) {
        const struct bh_gang *g = &s->gangs.at[i];
        for (uint32_t h = g->state == BH_GANG_FREE ? BH_NONE : g->first_hold; h != BH_NONE;
             h = s->owners.at[h].next)
            used[g->queue] += memory_of(s, g, h);
    }
    for (size_t i = 1; i < s->queues.at.n; i++) {
        const struct bh_queue *q = &s->queues.at.at[i];
        if (q->first_child == BH_QUEUE_NONE && q->used.at[BH_RES_MIB] != used[i])
            return false;
    }
    return true;
}

/* Whoever is moved or grows was asked about, where there are reservations. */
static inline bool was_allowed(const struct life *l, const struct bh_decision *d)
{
    if (!l->reserve[0] || (d->kind != BH_DECIDE_MOVE && d->kind != BH_DECIDE_GROW) ||
        l->n_allowed == BH_COUNT_OF(l->allowed))
        return true;
    for (uint32_t i = 0; i < l->n_allowed; i++) {
        if (l->allowed[i] == d->job)
            return true;
    }
    return false;
}

/*
 * A deadline that decided between two queues did so inside the entitlements of its path. Of cycles in which nobody
 * goes: there, what is used only grows, so that it was no less when the job started.
 */
static inline bool deadline_is_its_own(const struct bh_sched *s, const struct before *b,
                                       const struct bh_decision *d, size_t n)
{
    const struct bh_gang *g = bh_sched_job(s, d->job), *other = bh_sched_job(s, d->other);
    if (d->kind != BH_DECIDE_START || d->key != BH_TURN_DEADLINE || !g || !other)
        return true;
    for (size_t i = 0; i < n; i++) {
        if (s->decisions.at[i].kind != BH_DECIDE_START && s->decisions.at[i].kind != BH_DECIDE_GROW)
            return true;
    }
    uint32_t mine = g->queue, its = other->queue;
    bh_queue_fork(&s->queues, &mine, &its);
    for (uint32_t i = g->queue; mine != its; i = s->queues.at.at[i].parent) {
        const struct bh_queue *q = &s->queues.at.at[i];
        const struct bh_resources *least = &s->shapes.at[g->shape].least;
        for (unsigned r = 0; r < BH_RES_COUNT; r++) {
            if (least->at[r] && q->entitled.at[r] != BH_AMOUNT_ANY &&
                b->used[i].at[r] + least->at[r] > q->entitled.at[r])
                return false;
        }
        if (i == mine)
            break;
    }
    return true;
}

/* Reservations go by the priority that counts. */
static inline bool reserved_in_order(const struct life *l, uint32_t k)
{
    const struct bh_sched *s = l->s[k];
    enum bh_priority last = BH_PRIORITY_CRITICAL;
    size_t n = 0;
    const struct bh_reservation *r = l->reserve[k] ? bh_reserve_list(l->reserve[k], &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        const struct bh_gang *g = bh_sched_job(s, r[i].job);
        const struct bh_shape *shape = bh_sched_shape(s, g);
        uint32_t binding;
        const enum bh_priority band = bh_queue_band(&s->queues, g->queue, (enum bh_priority)shape->band,
                                                    shape->least.at[BH_RES_GPU], l->now_ms, &binding);
        const bool counts = s->queues.at.at[g->queue].config.model == BH_QUOTA_PRIORITY;
        if ((counts ? band : BH_PRIORITY_NORMAL) > last)
            return false;
        last = counts ? band : BH_PRIORITY_NORMAL;
    }
    return true;
}

static inline const struct bh_decision *life_decide(struct life *l, uint32_t k, uint64_t steps, size_t *ret_n)
{
    if (l->reserve[k])
        bh_reserve_refresh(l->reserve[k], l->s[k], l->now_ms);
    l->n_allowed = 0;
    if (l->deciding)
        l->deciding(true);
    const struct bh_decision *d = bh_sched_decide(l->s[k], l->now_ms, steps, ret_n);
    if (l->deciding)
        l->deciding(false);
    return d;
}

/* One cycle of all of them; 0: something is wrong. */
static inline bool life_step(struct life *l, uint64_t steps, size_t *ret_n)
{
    static struct before b[2];
    uint64_t digest = 0;
    for (uint32_t k = 0; k < l->n_s; k++) {
        struct bh_sched *s = l->s[k];
        bh_sched_settle(s);
        look(s, &b[k]);
        const struct bh_decision *d = life_decide(l, k, steps, ret_n);
        if (!sched_is_sound(s) || !memory_is_paid(s) || !limits_hold(s, &b[k]) || !reserved_in_order(l, k))
            return false;
        for (size_t i = 0; i < *ret_n; i++) {
            if (!may_be_evicted(s, &b[k], &d[i]) || !was_allowed(l, &d[i]) ||
                !deadline_is_its_own(s, &b[k], &d[i], *ret_n))
                return false;
        }
        if (k && digest != bh_sched_digest(s))
            return false;
        digest = bh_sched_digest(s);
        if (!k)
            life_obey(l, d, *ret_n);
    }
    return true;
}

static inline bool life_live(struct life *l, uint32_t ticks)
{
    for (uint32_t t = 0; t < ticks; t++) {
        size_t n;
        l->now_ms += draw(l, 40);
        for (uint32_t i = draw(l, 16); i; i--)
            life_event(l);
        life_gone(l, false);
        tell_all(l);
        if (!life_step(l, draw(l, 4) ? 0 : 10 + draw(l, 200), &n))
            return false;
    }
    return true;
}

#endif
