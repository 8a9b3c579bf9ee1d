/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - copies of the scheduler, changed, and played on with a host that obeys at once. */
#include "core/sched/whatif.h"

#include <inttypes.h>

/* Decisions call for answers, and these for decisions; on a finite fleet that ends, a fault in it must not hang. */
enum { ROUNDS_MAX = 64 };

void bh_whatif_init(struct bh_whatif *w, struct bh_sched *s, const struct bh_reserve_config *reserve,
                    uint64_t now_ms)
{
    *w = (struct bh_whatif){.now_ms = now_ms};
    if (reserve)
        w->reserve = *reserve;
    bh_sched_save(s, &w->saved);
}

void bh_whatif_fini(struct bh_whatif *w)
{
    free(w->saved.at);
    *w = (struct bh_whatif){0};
}

/* ---- looking at jobs ---- */

uint64_t bh_gang_milli(const struct bh_sched *s, const struct bh_gang *g)
{
    const struct bh_shelf *shelf = bh_sched_shelf(s);
    uint64_t milli = 0;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = bh_sched_owner(s, h)->next) {
        const struct bh_request *r = &shelf->requests->at.at[shelf->holds.at[h].class_];
        milli += r->form == BH_FORM_MIG ? BH_GPU_MILLI : bh_request_milli(r);
    }
    return milli;
}

bool bh_queue_is_below(const struct bh_queues *t, uint32_t queue, uint32_t top)
{
    while (queue != top && bh_queue_get(t, queue)->depth)
        queue = bh_queue_get(t, queue)->parent;
    return queue == top;
}

uint64_t bh_pending_below(const struct bh_sched *s, uint32_t queue, enum bh_res res)
{
    uint64_t pending = 0;
    for (size_t i = 0; i < bh_sched_slots(s); i++) {
        const struct bh_gang *g = bh_sched_slot(s, i);
        if (g->state == BH_GANG_PENDING && bh_queue_is_below(bh_sched_queues(s), g->queue, queue))
            pending += bh_sched_shape(s, g)->least.at[res];
    }
    return pending;
}

void bh_gang_spec_of(const struct bh_sched *s, const struct bh_gang *g, struct bh_gang_spec *ret)
{
    const struct bh_shape *shape = bh_sched_shape(s, g);
    const struct bh_requests *requests = bh_sched_shelf(s)->requests;
    *ret = (struct bh_gang_spec){
        .id = g->id,
        .queue = g->queue,
        .user = g->user,
        .n_roles = shape->n_roles,
        .within = shape->within,
        .prefer = shape->prefer,
        .band = shape->band,
        .can = shape->can,
        .firm = shape->firm,
        .priority = g->priority,
        .submit_ms = g->submit_ms,
        .deadline_ms = g->deadline_ms,
        .runtime_ms = g->runtime_ms,
        .min_run_ms = g->min_run_ms,
    };
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        const struct bh_gang_role *r = &shape->roles[i];
        ret->roles[i] = (struct bh_gang_role_spec){.request = requests->at.at[r->class_],
                                                   .min = r->min,
                                                   .max = r->max,
                                                   .slice = r->slice,
                                                   .slice_level = r->slice_level};
    }
}

bool bh_trial_runs(const struct bh_trial *t, uint64_t job)
{
    const struct bh_gang *g = bh_sched_job(t->sched, job);
    return g && (g->state == BH_GANG_RUNS || g->state == BH_GANG_BOUND);
}

/* ---- the host ---- */

/* An event that the copy's own decisions call for; it cannot be wrong. */
static void tell(struct bh_trial *t, const struct bh_sched_event *e)
{
    struct bh_err err;
    if (bh_sched_apply(t->sched, e, &err) < 0)
        abort();
}

static void obey(struct bh_trial *t, const struct bh_decision *d, size_t n)
{
    t->answers.n = 0;
    for (size_t i = 0; i < n; i++) {
        const bool goes = bh_decision_leaves(&d[i]);
        t->evictions += d[i].kind == BH_DECIDE_EVICT;
        if (goes || d[i].kind == BH_DECIDE_START || d[i].kind == BH_DECIDE_RESUME)
            *bh_vec_push(&t->answers) = (struct bh_sched_event){
                .kind = goes ? BH_SCHED_GONE : BH_SCHED_STARTED, .at_ms = t->now_ms, .id = d[i].job};
    }
    for (size_t i = 0; i < t->answers.n; i++)
        tell(t, &t->answers.at[i]);
}

void bh_trial_play(struct bh_trial *t)
{
    for (uint32_t i = 0; i < ROUNDS_MAX; i++) {
        size_t n;
        bh_sched_settle(t->sched);
        if (t->reserve)
            bh_reserve_refresh(t->reserve, t->sched, t->now_ms);
        const struct bh_decision *d = bh_sched_decide(t->sched, t->now_ms, 0, &n);
        if (!n)
            return;
        obey(t, d, n);
    }
}

/* ---- changes ---- */

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static int add_nodes(struct bh_trial *t, const struct bh_change *c, struct bh_err *err)
{
    const struct bh_shelf *shelf = bh_sched_shelf(t->sched);
    if (c->like >= shelf->nodes.n)
        return bh_fail(err, BH_INVALID, "there is no node %" PRIu32 " to take as a model", c->like);
    const struct bh_shelf_node *like = &shelf->nodes.at[c->like];
    uint32_t rank = 0, domain = c->domain;
    for (size_t i = 0; i < shelf->nodes.n; i++)
        rank = shelf->nodes.at[i].rank > rank ? shelf->nodes.at[i].rank : rank;
    struct bh_sched_event e = {.at_ms = t->now_ms, .gpu = BH_NONE};
    int rc = 0;
    if (domain == BH_CHANGE_NEW_DOMAIN) {
        domain = (uint32_t)shelf->domains.n;
        e.kind = BH_SCHED_DOMAIN;
        e.id = domain;
        e.level = c->level;
        e.parent = BH_NONE;
        rc = bh_sched_apply(t->sched, &e, err);
    }
    const uint32_t first = (uint32_t)shelf->nodes.n;
    for (uint32_t i = 0; i < c->nodes && rc == 0; i++) {
        const struct bh_node_spec spec = {
            .model = c->model,
            .domain = domain,
            .rank = rank + 1 + i,
            .n_gpus = c->gpus,
            .gpu_mib = (uint32_t)most(like->n_gpus ? shelf->gpus.at[like->first_gpu].mib_all : 0, c->gpu_mib),
            .n_numa = 1,
            .cpu_milli = (uint32_t)most(like->cpu_all, c->cpu_milli),
            .mem_mib = most(like->mem_all, c->mem_mib),
            .features = like->features | c->features,
            .pools = like->pools | c->pools,
            .holds_max = like->holds_max,
        };
        e.kind = BH_SCHED_NODE;
        e.id = first + i;
        e.node = &spec;
        rc = bh_sched_apply(t->sched, &e, err);
    }
    return rc;
}

static int change_quota(struct bh_trial *t, const struct bh_change *c, struct bh_err *err)
{
    const struct bh_queues *queues = bh_sched_queues(t->sched);
    if (c->queue >= queues->at.n || c->res >= BH_RES_COUNT)
        return bh_fail(err, BH_INVALID, "there is no queue %" PRIu32, c->queue);
    struct bh_queue_config config = bh_queue_get(queues, c->queue)->config;
    struct bh_resources *const parts[] = {
        [BH_PART_LIMIT] = &config.limit,
        [BH_PART_DESERVED] = &config.deserved,
        [BH_PART_GUARANTEE] = &config.guarantee,
        [BH_PART_SHARE_MAX] = NULL,
    };
    if (parts[c->part])
        parts[c->part]->at[c->res] = c->to;
    else
        config.share_max_ppm = (uint32_t)c->to;
    const struct bh_sched_event e = {.kind = BH_SCHED_QUEUE,
                                     .at_ms = t->now_ms,
                                     .id = c->queue,
                                     .parent = bh_queue_get(queues, c->queue)->parent,
                                     .queue = &config};
    return bh_sched_apply(t->sched, &e, err);
}

static int end_job(struct bh_trial *t, const struct bh_change *c, struct bh_err *err)
{
    if (!bh_sched_job(t->sched, c->job))
        return bh_fail(err, BH_NOT_FOUND, "there is no job %" PRIu64, c->job);
    const struct bh_sched_event e = {.kind = BH_SCHED_FINISH, .at_ms = t->now_ms, .id = c->job};
    return bh_sched_apply(t->sched, &e, err);
}

static int set_health(struct bh_trial *t, const struct bh_change *c, struct bh_err *err)
{
    if (c->node >= bh_sched_shelf(t->sched)->nodes.n)
        return bh_fail(err, BH_INVALID, "there is no node %" PRIu32, c->node);
    const struct bh_sched_event e = {
        .kind = BH_SCHED_HEALTH, .at_ms = t->now_ms, .id = c->node, .gpu = c->gpu, .health = c->health};
    return bh_sched_apply(t->sched, &e, err);
}

/* Waiting is done afterwards, by whoever asked. */
static int nothing(struct bh_trial *t, const struct bh_change *c, struct bh_err *err)
{
    (void)t, (void)c, (void)err;
    return 0;
}

static int (*const makers[BH_CHANGES])(struct bh_trial *t, const struct bh_change *c, struct bh_err *err) = {
    [BH_CHANGE_NONE] = nothing,      [BH_CHANGE_WAIT] = nothing,  [BH_CHANGE_MOVE] = end_job,
    [BH_CHANGE_FREE] = end_job,      [BH_CHANGE_ADD] = add_nodes, [BH_CHANGE_QUOTA] = change_quota,
    [BH_CHANGE_HEALTH] = set_health,
};

int bh_trial_begin(struct bh_whatif *w, const struct bh_change *changes, size_t n, struct bh_trial *ret,
                   struct bh_err *err)
{
    *ret = (struct bh_trial){.now_ms = w->now_ms};
    w->tries++;
    int rc = bh_sched_load(w->saved.at, w->saved.n, &ret->sched, err);
    if (rc < 0)
        return rc;
    if (w->reserve.most) {
        ret->reserve = bh_reserve_new(&w->reserve);
        bh_sched_set_veto(ret->sched, bh_reserve_veto, ret->reserve);
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = makers[changes[i].kind](ret, &changes[i], err);
        if (changes[i].kind != BH_CHANGE_FREE || i + 1 == n)
            bh_sched_settle(ret->sched); /* the next one may build on it: two lots of nodes */
        size_t refused = 0;
        const struct bh_sched_refusal *why = rc == 0 ? bh_sched_refusals(ret->sched, &refused) : NULL;
        if (refused) {
            *err = why[0].why;
            rc = why[0].why.code;
        }
    }
    if (rc < 0)
        bh_trial_end(ret);
    else
        bh_trial_play(ret);
    return rc;
}

void bh_trial_end(struct bh_trial *t)
{
    bh_sched_free(t->sched);
    bh_reserve_free(t->reserve);
    bh_vec_fini(&t->answers);
    *t = (struct bh_trial){0};
}

/* ---- time ---- */

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > BH_NEVER_MS - b ? BH_NEVER_MS : a + b;
}

/* When it is known to end. One that should have ended already is not known to. */
static uint64_t end_of(const struct bh_gang *g, uint64_t now_ms)
{
    const uint64_t end = g->state == BH_GANG_RUNS && g->runtime_ms ? sum(g->since_ms, g->runtime_ms) : 0;
    return end > now_ms ? end : BH_NEVER_MS;
}

/* The next time after now at which the job's part in things changes: it ends, may be interrupted, is urgent. */
static uint64_t turning(const struct bh_trial *t, const struct bh_gang *g)
{
    const uint64_t slack = sum(g->runtime_ms, bh_sched_queues(t->sched)->config.slack_ms);
    const uint64_t times[] = {
        end_of(g, t->now_ms),
        g->state == BH_GANG_RUNS ? sum(g->since_ms, g->min_run_ms ? g->min_run_ms : 1) : 0,
        g->state == BH_GANG_PENDING && g->deadline_ms != BH_TURN_NO_DEADLINE && g->deadline_ms > slack
            ? g->deadline_ms - slack + 1
            : 0,
    };
    uint64_t next = BH_NEVER_MS;
    for (size_t i = 0; i < BH_COUNT_OF(times); i++)
        if (times[i] > t->now_ms && times[i] < next)
            next = times[i];
    return next;
}

bool bh_trial_next(struct bh_trial *t, uint64_t until_ms)
{
    uint64_t next = BH_NEVER_MS;
    for (size_t i = 0; i < bh_sched_slots(t->sched); i++) {
        const struct bh_gang *g = bh_sched_slot(t->sched, i);
        const uint64_t at = g->state == BH_GANG_FREE ? BH_NEVER_MS : turning(t, g);
        next = at < next ? at : next;
    }
    if (next == BH_NEVER_MS || next > until_ms)
        return false;
    t->answers.n = 0;
    for (size_t i = 0; i < bh_sched_slots(t->sched); i++) {
        const struct bh_gang *g = bh_sched_slot(t->sched, i);
        if (g->state == BH_GANG_RUNS && end_of(g, t->now_ms) <= next)
            *bh_vec_push(&t->answers) =
                (struct bh_sched_event){.kind = BH_SCHED_FINISH, .at_ms = next, .id = g->id};
    }
    t->now_ms = next;
    for (size_t i = 0; i < t->answers.n; i++)
        tell(t, &t->answers.at[i]);
    bh_trial_play(t);
    return true;
}

/* ---- moving ---- */

bool bh_trial_return(struct bh_trial *t, const struct bh_sched *before, const uint64_t *jobs, size_t n)
{
    const uint64_t evictions = t->evictions;
    uint64_t id = 0;
    bool ok = true;
    for (size_t i = 0; i < bh_sched_slots(t->sched); i++) {
        const struct bh_gang *g = bh_sched_slot(t->sched, i);
        id = g->state != BH_GANG_FREE && g->id > id ? g->id : id;
    }
    for (size_t i = 0; i < n; i++)
        id = jobs[i] > id ? jobs[i] : id;
    for (size_t i = 0; i < n && ok; i++) {
        struct bh_gang_spec spec;
        struct bh_err err;
        bh_gang_spec_of(before, bh_sched_job(before, jobs[i]), &spec);
        spec.id = id + 1 + i;
        const struct bh_sched_event e = {
            .kind = BH_SCHED_SUBMIT, .at_ms = t->now_ms, .id = spec.id, .job = &spec};
        ok = bh_sched_apply(t->sched, &e, &err) == 0;
    }
    bh_trial_play(t);
    for (size_t i = 0; i < n && ok; i++)
        ok = bh_trial_runs(t, id + 1 + i);
    return ok && t->evictions == evictions;
}

bool bh_whatif_starts(struct bh_whatif *w, const struct bh_change *changes, size_t n, uint64_t job)
{
    struct bh_trial t;
    struct bh_err err;
    if (bh_trial_begin(w, changes, n, &t, &err) < 0)
        return false;
    const bool ok = bh_trial_runs(&t, job);
    bh_trial_end(&t);
    return ok;
}

bool bh_whatif_alone(struct bh_whatif *w, const struct bh_sched *s, const struct bh_change *changes, size_t n,
                     uint64_t job)
{
    bh_changes all = {0};
    for (size_t i = 0; i < bh_sched_slots(s); i++) {
        const struct bh_gang *g = bh_sched_slot(s, i);
        if (g->state != BH_GANG_FREE && g->id != job)
            *bh_vec_push(&all) = (struct bh_change){.kind = BH_CHANGE_FREE, .job = g->id};
    }
    for (size_t i = 0; i < n; i++)
        *bh_vec_push(&all) = changes[i];
    const bool ok = bh_whatif_starts(w, all.at, all.n, job);
    bh_vec_fini(&all);
    return ok;
}
