/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_take.c - what each event does, in the order in which those of one tick are taken.
 *
 * The fleet and the queues come first, by what they are and by id, then jobs by id, and the events of one job in the
 * order in which they can happen. So the order in which they arrived does not matter.
 */
#include "core/sched/sched_inside.h"

#include <inttypes.h>

/* ---- the fleet and the queues ---- */

static int no_next(uint64_t id, size_t n, const char *what, struct bh_err *err)
{
    return bh_fail(err, BH_INVALID, "%s %" PRIu64 ", where the next is %zu", what, id, n);
}

static int take_model(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t id;
    if (in->id != s->shelf.n_models)
        return no_next(in->id, s->shelf.n_models, "model", err);
    return bh_shelf_add_model(&s->shelf, in->model, &id, err);
}

static int take_domain(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t id;
    if (in->id != s->shelf.domains.n)
        return no_next(in->id, s->shelf.domains.n, "domain", err);
    return bh_shelf_add_domain(&s->shelf, (enum bh_level)in->level, in->parent, &id, err);
}

static int take_node(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t id;
    if (in->id != s->shelf.nodes.n)
        return no_next(in->id, s->shelf.nodes.n, "node", err);
    const int rc = bh_shelf_add_node(&s->shelf, &s->in_nodes.at[in->payload], &id, err);
    if (rc < 0)
        return rc;
    *bh_vec_push(&s->leaving) = 0;
    s->fleet_changed = true;
    bh_room_gain(s, id);
    return 0;
}

static void note_broken(struct bh_sched *s, uint32_t node, uint64_t at_ms)
{
    for (uint32_t h = s->shelf.nodes.at[node].first_hold; h != BH_NONE; h = s->shelf.holds.at[h].next) {
        const uint32_t job = h < s->owners.n ? s->owners.at[h].job : BH_NONE;
        if (job == BH_NONE || !bh_hold_lost(s, h))
            continue;
        struct bh_gang *g = bh_gang_at(s, job);
        if (g->broken_ms || (g->state != BH_GANG_RUNS && g->state != BH_GANG_BOUND))
            continue;
        g->broken_ms = at_ms ? at_ms : 1;
        *bh_vec_push(&s->broken) = job;
    }
}

static int take_health(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    if (in->id >= s->shelf.nodes.n || (in->gpu != BH_NONE && in->gpu >= s->shelf.nodes.at[in->id].n_gpus))
        return bh_fail(err, BH_NOT_FOUND, "there is no node %" PRIu64 " with a GPU %" PRIu32, in->id,
                       in->gpu);
    const uint32_t node = (uint32_t)in->id;
    bh_shelf_set_health(&s->shelf, node, in->gpu, (enum bh_health)in->health);
    s->fleet_changed = true;
    if (in->health == BH_HEALTH_OK)
        bh_room_gain(s, node);
    if (in->health == BH_HEALTH_FAILED)
        note_broken(s, node, in->at_ms);
    if (in->health == BH_HEALTH_DRAIN)
        *bh_vec_push(&s->draining) = node;
    return 0;
}

static bool has_jobs(const struct bh_sched *s, uint32_t queue)
{
    if (queue >= s->rooms.n)
        return false;
    bool any = s->rooms.at[queue].n_runs != 0;
    for (uint32_t i = s->rooms.at[queue].first_line; i != BH_NONE && !any; i = s->lines.at[i].next)
        any = s->lines.at[i].heap.n != 0;
    return any;
}

static int take_queue(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    const struct bh_queue_config *c = &s->in_queues.at[in->payload];
    uint32_t id = (uint32_t)in->id;
    int rc;
    if (in->id > s->queues.at.n)
        return no_next(in->id, s->queues.at.n, "queue", err);
    if (in->id < s->queues.at.n) {
        rc = bh_queues_change(&s->queues, id, c, s->now_ms, err);
    } else {
        if (has_jobs(s, in->parent))
            return bh_fail(err, BH_CONFLICT, "there are jobs in queue %" PRIu32, in->parent);
        rc = bh_queues_add(&s->queues, in->parent, c, &id, err);
    }
    s->queues_changed |= rc >= 0;
    return rc;
}

static void grow_ranks(struct bh_sched *s, uint32_t user)
{
    while (s->ranks.n <= user)
        *bh_vec_push(&s->ranks) = 0;
}

static int take_rank(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    (void)err;
    grow_ranks(s, (uint32_t)in->id);
    s->ranks_changed |= s->ranks.at[in->id] != in->rank;
    s->ranks.at[in->id] = in->rank;
    return 0;
}

/* What a node adds to the fleet; failed ones nothing, and those not proved clean. */
static void count_node(const struct bh_sched *s, const struct bh_shelf_node *n, struct bh_resources *total)
{
    const uint8_t c = n->n_gpus ? s->config.model_class[n->model] : BH_SCHED_NO_CLASS;
    uint64_t milli = 0;
    if (n->health == BH_HEALTH_FAILED || n->health == BH_HEALTH_QUARANTINED)
        return;
    for (uint32_t g = 0; g < n->n_gpus; g++) {
        const struct bh_shelf_gpu *gpu = &s->shelf.gpus.at[n->first_gpu + g];
        if (gpu->health == BH_HEALTH_FAILED || gpu->health == BH_HEALTH_QUARANTINED)
            continue;
        milli += BH_GPU_MILLI;
        total->at[BH_RES_MIB] += gpu->mib_all;
    }
    total->at[BH_RES_GPU] += milli;
    total->at[BH_RES_CPU] += n->cpu_all;
    total->at[BH_RES_MEM] += n->mem_all;
    if (c < BH_RES_COUNT - BH_RES_MODEL0)
        total->at[BH_RES_MODEL0 + c] += milli;
}

static void follow_fleet(struct bh_sched *s)
{
    struct bh_resources total = {{0}};
    for (size_t i = 0; i < s->shelf.nodes.n; i++)
        count_node(s, &s->shelf.nodes.at[i], &total);
    if (!total.at[BH_RES_MIB])
        total.at[BH_RES_MIB] = BH_AMOUNT_MAX; /* nobody said how much memory there is: it is not counted */
    bh_queues_total(&s->queues, &total);
    bh_models_measure(s);
}

/* What follows from them, once for all that came. */
static void follow(struct bh_sched *s)
{
    if (s->fleet_changed)
        follow_fleet(s);
    if (s->queues_changed) {
        while (s->rooms.n < s->queues.at.n)
            *bh_vec_push(&s->rooms) =
                (struct bh_room){.first_line = BH_NONE, .first_run = BH_NONE, .best = BH_NONE};
        bh_order_lay(s);
    }
    if (s->fleet_changed || s->queues_changed) {
        s->clock++;
        for (size_t i = 0; i < s->rooms.n; i++)
            s->rooms.at[i].fell = s->clock;
    }
    if (s->ranks_changed)
        bh_lines_rebuild(s);
    s->fleet_changed = s->queues_changed = s->ranks_changed = false;
}

/* ---- jobs ---- */

static int job_of(const struct bh_sched *s, uint64_t id, uint32_t *ret, struct bh_err *err)
{
    *ret = bh_idmap_find(&s->gang_ids, id);
    return *ret == BH_IDMAP_NONE ? bh_fail(err, BH_NOT_FOUND, "there is no job %" PRIu64, id) : 0;
}

static int new_job(struct bh_sched *s, const struct bh_inbox *in, uint32_t *ret, struct bh_err *err)
{
    const struct bh_gang *g = &s->in_jobs.at[in->payload];
    if (bh_idmap_find(&s->gang_ids, g->id) != BH_IDMAP_NONE)
        return bh_fail(err, BH_CONFLICT, "there is a job %" PRIu64 " already", g->id);
    if (g->queue >= s->queues.at.n || s->queues.at.at[g->queue].first_child != BH_QUEUE_NONE ||
        g->queue == BH_QUEUE_ROOT)
        return bh_fail(err, BH_NOT_FOUND, "job %" PRIu64 " for queue %" PRIu32 ", which is no leaf", g->id,
                       g->queue);
    grow_ranks(s, g->user);
    *ret = bh_gang_new(s, g);
    struct bh_shape *shape = &s->shapes.at[g->shape];
    if (!shape->used) {
        shape->used = true;
        *bh_vec_push(&s->shape_order) = g->shape;
    }
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        for (uint32_t k = 0; k < shape->roles[i].min; k++)
            bh_score_arrived(s->score, shape->roles[i].class_);
    }
    return 0;
}

static int take_submit(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t job;
    const int rc = new_job(s, in, &job, err);
    if (rc < 0)
        return rc;
    s->gangs.at[job].state = BH_GANG_PENDING;
    bh_gang_asks(s, bh_gang_at(s, job), BH_CHARGE_SUBMIT);
    bh_line_join(s, job);
    return 0;
}

static int take_found(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t job, k = 0;
    int rc = new_job(s, in, &job, err);
    if (rc < 0)
        return rc;
    struct bh_gang *g = bh_gang_at(s, job);
    const struct bh_shape *shape = bh_shape_of(s, g);
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    s->try_places.n = s->try_holds.n = 0;
    for (uint32_t role = 0; role < shape->n_roles; role++) {
        for (uint32_t i = 0; rc >= 0 && i < shape->roles[role].min; i++) {
            const struct bh_spot *spot = &s->in_spots.at[in->parent + k++];
            *bh_vec_push(&s->try_places) = (struct bh_place){*spot, role};
            rc = bh_shelf_take(&s->shelf, shape->roles[role].class_, spot, bh_vec_push(&s->try_holds), err);
        }
    }
    if (rc < 0) {
        bh_shelf_rollback(&s->shelf, mark);
        bh_gang_forget(s, job);
        return rc;
    }
    bh_shelf_commit(&s->shelf, mark);
    g->band = BH_PRIORITY_NORMAL;
    bh_gang_bind(s, job, s->try_places.at, s->try_holds.at, (uint32_t)s->try_places.n, true);
    g->since_ms = in->at_ms;
    g->state = BH_GANG_RUNS;
    bh_run_join(s, job);
    s->stats.runs++;
    if (shape->elastic)
        *bh_vec_push(&s->elastic) = job;
    return 0;
}

static int take_started(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t job;
    const int rc = job_of(s, in->id, &job, err);
    if (rc >= 0 && s->gangs.at[job].state == BH_GANG_RUNS)
        bh_run_since(s, job, in->at_ms);
    return rc;
}

static int take_checkpoint(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t job;
    const int rc = job_of(s, in->id, &job, err);
    if (rc >= 0)
        s->gangs.at[job].checkpoint_ms = in->at_ms;
    return rc;
}

/* Off the account and out of all lists; its holds are still there. */
static void stop(struct bh_sched *s, uint32_t job, bool asks)
{
    struct bh_gang *g = bh_gang_at(s, job);
    bh_gang_unpaid(s, job, asks);
    bh_run_leave(s, job);
    if (g->state == BH_GANG_RUNS)
        s->stats.runs--;
    else
        s->stats.bound--;
    g->broken_ms = 0;
}

static void drop_all(struct bh_sched *s, uint32_t job)
{
    while (s->gangs.at[job].first_hold != BH_NONE)
        bh_gang_drop(s, job, s->gangs.at[job].first_hold);
}

static void wait_again(struct bh_sched *s, uint32_t job)
{
    s->gangs.at[job].state = BH_GANG_PENDING;
    bh_line_join(s, job);
}

static int take_gone(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t job;
    const int rc = job_of(s, in->id, &job, err);
    if (rc < 0)
        return rc;
    struct bh_gang *g = bh_gang_at(s, job);
    const bool was_told = g->first_left != BH_NONE;
    bh_left_gone(s, job);
    if (g->state == BH_GANG_LEAVES || g->state == BH_GANG_ENDS)
        s->stats.leaves--;
    if (g->state == BH_GANG_LEAVES) {
        wait_again(s, job);
    } else if (g->state == BH_GANG_ENDS) {
        drop_all(s, job);
        bh_gang_forget(s, job);
    } else if (g->state == BH_GANG_RUNS && !was_told) {
        stop(s, job, true);
        drop_all(s, job);
        wait_again(s, job);
    }
    return 0;
}

static int take_finish(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t job;
    const int rc = job_of(s, in->id, &job, err);
    if (rc < 0)
        return rc;
    struct bh_gang *g = bh_gang_at(s, job);
    bh_gang_stays_no_more(s, job);
    switch ((enum bh_gang_state)g->state) {
    case BH_GANG_PENDING:
        bh_gang_asks(s, g, BH_CHARGE_WITHDRAW);
        bh_line_leave(s, job);
        break;
    case BH_GANG_BOUND:
    case BH_GANG_RUNS:
        stop(s, job, false);
        break;
    case BH_GANG_LEAVES:
        bh_gang_asks(s, g, BH_CHARGE_WITHDRAW);
        s->stats.leaves--;
        break;
    case BH_GANG_ENDS:
        s->stats.leaves--;
        break;
    case BH_GANG_FREE:
    case BH_GANG_STATES:
        break;
    }
    bh_left_gone(s, job);
    drop_all(s, job);
    bh_gang_forget(s, job);
    return 0;
}

static void tell_to_end(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    *bh_vec_push(&s->told) = (struct bh_decision){
        .kind = BH_DECIDE_EVICT, .rung = BH_RUNG_KILL, .why = BH_FOR_CANCEL, .job = g->id};
    bh_gang_stays_no_more(s, job);
    bh_gang_leave(s, job);
    g->state = BH_GANG_ENDS;
    s->stats.leaves++;
}

static int take_cancel(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err)
{
    uint32_t job;
    const int rc = job_of(s, in->id, &job, err);
    if (rc < 0)
        return rc;
    struct bh_gang *g = bh_gang_at(s, job);
    switch ((enum bh_gang_state)g->state) {
    case BH_GANG_RUNS:
        stop(s, job, false);
        tell_to_end(s, job);
        return 0;
    case BH_GANG_PENDING:
        if (!g->parked)
            break;
        bh_gang_asks(s, g, BH_CHARGE_WITHDRAW);
        bh_line_leave(s, job);
        tell_to_end(s, job);
        return 0;
    case BH_GANG_BOUND:
        if (!g->parked)
            break;
        stop(s, job, false);
        tell_to_end(s, job);
        return 0;
    case BH_GANG_LEAVES: /* it was told to go, but to come back */
        bh_gang_asks(s, g, BH_CHARGE_WITHDRAW);
        s->stats.leaves--;
        tell_to_end(s, job);
        return 0;
    case BH_GANG_ENDS:
        return 0;
    case BH_GANG_FREE:
    case BH_GANG_STATES:
        break;
    }
    return take_finish(s, in, err);
}

/* ---- settling ---- */

/* The fleet and the queues one kind after the other, jobs by id. */
static const struct {
    uint32_t phase;
    int (*take)(struct bh_sched *s, const struct bh_inbox *in, struct bh_err *err);
} events[BH_SCHED_TICK] = {
    [BH_SCHED_MODEL] = {0, take_model},     [BH_SCHED_DOMAIN] = {1, take_domain},
    [BH_SCHED_NODE] = {2, take_node},       [BH_SCHED_HEALTH] = {3, take_health},
    [BH_SCHED_QUEUE] = {4, take_queue},     [BH_SCHED_RANK] = {5, take_rank},
    [BH_SCHED_SUBMIT] = {6, take_submit},   [BH_SCHED_FOUND] = {6, take_found},
    [BH_SCHED_STARTED] = {6, take_started}, [BH_SCHED_CHECKPOINT] = {6, take_checkpoint},
    [BH_SCHED_GONE] = {6, take_gone},       [BH_SCHED_FINISH] = {6, take_finish},
    [BH_SCHED_CANCEL] = {6, take_cancel},
};
enum { PHASE_JOBS = 6 };

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_order(const void *x, const void *y)
{
    const struct bh_inbox *a = x, *b = y;
    int c = order(events[a->kind].phase, events[b->kind].phase);
    c = c ? c : order(a->id, b->id);
    c = c ? c : order(a->kind, b->kind);
    c = c ? c : order(a->at_ms, b->at_ms);
    c = c ? c : order(a->gpu, b->gpu);
    return c ? c : order((uint64_t)a->health << 32 | a->rank, (uint64_t)b->health << 32 | b->rank);
}

/* What elastic gangs could grow by in one cycle, those that start in it too. */
static size_t growth_of(const struct bh_sched *s)
{
    size_t more = 0;
    for (size_t i = 0; i < s->lines.n; i++)
        more +=
            s->lines.at[i].heap.n * (s->lines.at[i].heap.n ? s->shapes.at[s->lines.at[i].shape].elastic : 0);
    for (size_t i = 0; i < s->elastic.n; i++)
        more += s->shapes.at[s->gangs.at[s->elastic.at[i]].shape].elastic;
    for (size_t i = 0; i < s->bound.n; i++)
        more += s->shapes.at[s->gangs.at[s->bound.at[i]].shape].elastic;
    return more < BH_GROW_MAX ? more : BH_GROW_MAX;
}

/* Who is bound waits again where its place is lost before it could start. */
static void room_to_wait_again(struct bh_sched *s)
{
    bh_vec_room(&s->alarms, s->alarms.n + s->bound.n);
    for (size_t i = 0; i < s->bound.n; i++) {
        if (s->gangs.at[s->bound.at[i]].state == BH_GANG_BOUND)
            bh_line_prepare(s, s->bound.at[i]);
    }
}

void bh_sched_room(struct bh_sched *s)
{
    size_t members = 0;
    for (size_t i = 0; i < s->lines.n; i++)
        members +=
            s->lines.at[i].heap.n * (s->lines.at[i].heap.n ? s->shapes.at[s->lines.at[i].shape].members : 0);
    const size_t growth = growth_of(s);
    bool moves = s->draining.n != 0; /* whoever does has two places for a while */
    for (size_t i = 0; i < s->shapes.n && !moves; i++)
        moves = s->shapes.at[i].can & BH_CAN_MOVE;
    const size_t holds = (s->shelf.n_taken + members) * (1 + moves) + growth + 64, jobs = s->gangs.n + 64;
    const size_t pieces = jobs + s->shelf.n_taken; /* whole jobs, and members above a minimum */
    const size_t units = s->config.victims_max < pieces ? s->config.victims_max : pieces;
    bh_shelf_reserve(&s->shelf, holds, 4 * (units + BH_MEMBERS_MAX / 16));
    bh_queues_reserve(&s->queues, units);
    while (s->owners.n < s->shelf.holds.cap)
        *bh_vec_push(&s->owners) = (struct bh_owner){.job = BH_NONE, .next = BH_NONE};
    /* Each job is moved because it is broken, moved again, and told to go; each member once added or given up. */
    bh_vec_room(&s->decisions, 3 * jobs + s->shelf.n_taken + growth + s->told.n);
    bh_vec_room(&s->places, holds);
    bh_vec_room(&s->try_places, holds);
    bh_vec_room(&s->try_holds, holds);
    bh_vec_room(&s->briefs, jobs);
    bh_vec_room(&s->bound, jobs);
    bh_vec_room(&s->broken, jobs);
    bh_vec_room(&s->elastic, jobs);
    bh_vec_room(&s->domains, s->shelf.domains.n);
    bh_vec_room(&s->slices, s->shelf.domains.n);
    bh_vec_room(&s->victims, 2 * jobs); /* two rankings */
    bh_vec_room(&s->units, units);
    bh_vec_room(&s->here, pieces);
    bh_vec_room(&s->unit_places, holds);
    bh_vec_room(&s->unit_holds, holds);
    bh_vec_room(&s->lefts, s->lefts.n + holds);
    bh_vec_room(&s->charges, units);
    bh_vec_room(&s->judged, units);
    while (s->prospects.n < s->shelf.nodes.n)
        *bh_vec_push(&s->prospects) = (struct bh_prospect){0};
    for (size_t i = 0; s->shelf.nodes.n && i < s->lines.n; i++) {
        const struct bh_shape *shape = s->lines.at[i].heap.n ? &s->shapes.at[s->lines.at[i].shape] : NULL;
        for (uint32_t r = 0; shape && r < shape->n_roles; r++)
            bh_pick_prepare(s->pick, shape->roles[r].class_);
    }
    room_to_wait_again(s);
}

void bh_sched_settle(struct bh_sched *s)
{
    if (!s->inbox.n && !s->queues_changed) {
        if (s->decisions.n) /* of the last cycle: what it did took of the room */
            bh_sched_room(s);
        return;
    }
    qsort(s->inbox.at, s->inbox.n, sizeof(*s->inbox.at), by_order);
    s->refusals.n = 0;
    bool followed = false;
    for (size_t i = 0; i < s->inbox.n; i++) {
        const struct bh_inbox *in = &s->inbox.at[i];
        struct bh_err err;
        if (!followed && events[in->kind].phase == PHASE_JOBS) {
            follow(s);
            followed = true;
        }
        if (events[in->kind].take(s, in, &err) < 0)
            *bh_vec_push(&s->refusals) = (struct bh_sched_refusal){
                .kind = (enum bh_sched_event_kind)in->kind, .id = in->id, .why = err};
    }
    follow(s);
    s->inbox.n = s->in_nodes.n = s->in_queues.n = s->in_jobs.n = s->in_spots.n = 0;
    bh_sched_room(s);
}
