/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.c - evict and refill: see reclaim.h. */
#include "core/sched/reclaim.h"

/* ---- units: what goes as one ---- */

static void unit_record(struct bh_sched *s, struct bh_unit *u, uint32_t hold)
{
    const struct bh_hold *h = &s->shelf.holds.at[hold];
    *bh_vec_push(&s->unit_places) = (struct bh_place){
        {.node = h->node, .gpus = h->gpus, .mig_start = h->mig_start}, s->owners.at[hold].role};
    *bh_vec_push(&s->unit_holds) = hold;
    const struct bh_resources one = bh_class_amount(s, h->class_, h->node);
    bh_resources_add(&u->amount, &one, 1);
    u->n++;
}

static void unit_add(struct bh_sched *s, uint32_t job, uint32_t hold)
{
    struct bh_unit *u = bh_vec_push(&s->units);
    *u = (struct bh_unit){.job = job, .hold = hold, .first = (uint32_t)s->unit_places.n, .out = true};
    if (hold != BH_NONE) {
        unit_record(s, u, hold);
        return;
    }
    for (uint32_t h = s->gangs.at[job].first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        if (s->shelf.holds.at[h].state != BH_HOLD_FREE) /* else it was a unit of its own */
            unit_record(s, u, h);
    }
}

static void unit_release(struct bh_sched *s, const struct bh_unit *u)
{
    for (uint32_t i = 0; i < u->n; i++)
        bh_shelf_free(&s->shelf, s->unit_holds.at[u->first + i]);
    bh_sched_step(s, u->n);
}

static uint32_t class_of(const struct bh_sched *s, const struct bh_unit *u, uint32_t role, enum bh_rung rung)
{
    const struct bh_gang_role *r = &bh_shape_of(s, bh_gang_at(s, u->job))->roles[role];
    return rung == BH_RUNG_PAUSE ? r->paused : rung == BH_RUNG_SUSPEND ? r->suspended : r->class_;
}

static struct bh_spot spot_of(const struct bh_sched *s, const struct bh_unit *u, uint32_t i,
                              enum bh_rung rung)
{
    struct bh_spot spot = s->unit_places.at[u->first + i].spot;
    if (rung == BH_RUNG_SUSPEND)
        spot.gpus = 0, spot.mig_start = 0;
    return spot;
}

/* It gets its own places back (rung KILL), or what stays behind of it; all or nothing. */
static bool unit_back(struct bh_sched *s, const struct bh_unit *u, enum bh_rung rung)
{
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    for (uint32_t i = 0; i < u->n; i++) {
        const uint32_t class_ = class_of(s, u, s->unit_places.at[u->first + i].role, rung);
        const struct bh_spot spot = spot_of(s, u, i, rung);
        uint32_t hold;
        if (class_ == BH_NONE || bh_shelf_take(&s->shelf, class_, &spot, &hold, NULL) < 0) {
            bh_shelf_rollback(&s->shelf, mark);
            return false;
        }
    }
    bh_shelf_commit(&s->shelf, mark);
    bh_sched_step(s, u->n);
    return true;
}

/* ---- the shortest beginning ---- */

struct attempt {
    struct bh_search search;
    const struct bh_shape *shape;
    struct bh_mark base;
    size_t most;    /* units, at most */
    bool listed;    /* those of sched.here, and no others */
    size_t at_here; /* of these, the next */
    /* What is kept for others stands in its way: a sum up the tree that only the queues can work out. */
    bool kept;
    struct bh_resources amount; /* that it takes: the least of all places, or that of those in try_places */
};

static void release_some(struct bh_sched *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (s->units.at[i].out)
            unit_release(s, &s->units.at[i]);
    }
}

/* The next of the search, or of the list. */
static bool next_of(struct bh_sched *s, struct attempt *a, uint32_t *ret_job, uint32_t *ret_hold)
{
    if (!a->listed)
        return bh_search_next(s, &a->search, ret_job, ret_hold);
    while (a->at_here < s->here.n) {
        const struct bh_here *one = &s->here.at[a->at_here++];
        *ret_job = one->job;
        *ret_hold = one->hold;
        const bool went = one->hold != BH_NONE && s->shelf.holds.at[one->hold].state == BH_HOLD_FREE;
        if (!went && bh_search_takes(s, &a->search, one->job, one->hold)) /* went: with all of its job */
            return true;
    }
    return false;
}

static bool next_unit(struct bh_sched *s, struct attempt *a)
{
    uint32_t job, hold;
    if (s->units.n >= a->most || !s->steps_left || !next_of(s, a, &job, &hold))
        return false;
    unit_add(s, job, hold);
    unit_release(s, &s->units.at[s->units.n - 1]);
    return true;
}

/* GPU time of the models it could use that nobody has; at most so much of it can be had. */
static uint64_t idle_milli(const struct bh_sched *s, uint64_t models)
{
    uint64_t idle = 0;
    for (uint32_t m = 0; m < s->shelf.n_models; m++) {
        if (models >> m & 1)
            idle += s->shelf.models[m].milli_all - s->shelf.models[m].milli_used;
    }
    return idle;
}

/* Is a queue at or below another? */
static bool is_below(const struct bh_queues *t, uint32_t queue, uint32_t top)
{
    while (t->at.at[queue].depth > t->at.at[top].depth)
        queue = t->at.at[queue].parent;
    return queue == top;
}

/* With those gone: may this queue of its path have it, by its ceiling and without growing over its fair share? */
static bool may_have(struct bh_sched *s, const struct attempt *a, uint32_t queue)
{
    const struct bh_queue *q = &s->queues.at.at[queue];
    const struct bh_resources *more = &a->amount;
    struct bh_resources gone = {{0}};
    for (size_t i = 0; i < s->units.n; i++) {
        const struct bh_unit *u = &s->units.at[i];
        if (u->out && is_below(&s->queues, s->gangs.at[u->job].queue, queue))
            bh_resources_add(&gone, &u->amount, 1);
    }
    for (unsigned r = 0; r < BH_RES_COUNT; r++) {
        const uint64_t then = q->used.at[r] + more->at[r] - gone.at[r];
        const bool grows = more->at[r] > gone.at[r], divided = s->queues.config.divided >> r & 1;
        if (more->at[r] && (then > q->ceiling.at[r] || (grows && divided && then > q->fair.at[r])))
            return false;
    }
    return true;
}

static bool starts_with_those_gone(struct bh_sched *s, const struct attempt *a)
{
    const size_t mark = bh_queues_mark(&s->queues);
    struct bh_charge taker = a->search.taker;
    struct bh_queue_reason why;
    taker.amount = a->amount;
    for (size_t i = 0; i < s->units.n; i++) {
        const struct bh_unit *u = &s->units.at[i];
        const struct bh_gang *g = bh_gang_at(s, u->job);
        const struct bh_charge c = {.queue = g->queue, .started_ms = g->charged_ms, .amount = u->amount};
        if (u->out)
            bh_queue_apply(&s->queues, BH_CHARGE_END, &c, s->now_ms);
    }
    const bool ok = bh_queue_may_start(&s->queues, &taker, &why);
    bh_queues_rollback(&s->queues, mark);
    bh_sched_step(s, s->units.n);
    return ok;
}

/* The more go the more it may have; so this is found by the same search as room. The rest is for the queues to say. */
static bool account_allows(struct bh_sched *s, const struct attempt *a)
{
    bool ok = true;
    for (uint32_t i = a->search.taker.queue; ok; i = s->queues.at.at[i].parent) {
        ok = may_have(s, a, i);
        if (!s->queues.at.at[i].depth)
            break;
    }
    bh_sched_step(s, s->units.n / 4 + 1);
    return ok && (!a->kept || starts_with_those_gone(s, a));
}

/* Where it is placed it may take more than the least: GPUs of a model that is counted apart, or with more memory. */
static bool place_allowed(struct bh_sched *s, struct attempt *a)
{
    if (!bh_gang_place(s, a->shape))
        return false;
    a->amount = bh_placed_amount(s, a->shape);
    return !memcmp(&a->amount, &a->search.taker.amount, sizeof(a->amount)) || account_allows(s, a);
}

static bool fits(struct bh_sched *s, struct attempt *a, bool keep)
{
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    a->amount = a->search.taker.amount;
    const bool ok = account_allows(s, a) && place_allowed(s, a);
    if (ok && keep)
        bh_shelf_commit(&s->shelf, mark);
    else
        bh_shelf_rollback(&s->shelf, mark);
    return ok;
}

/* Release until it fits: *ret_low released are too few, all of the units are enough. One more only: it is placed. */
static bool release_enough(struct bh_sched *s, struct attempt *a, size_t *ret_low, struct bh_mark *ret_mark)
{
    const uint64_t need = a->shape->least.at[BH_RES_GPU];
    size_t want = 1;
    *ret_low = 0;
    *ret_mark = bh_shelf_mark(&s->shelf);
    for (;;) {
        bool more = true;
        while (more && (s->units.n < want || idle_milli(s, a->shape->models) < need))
            more = next_unit(s, a);
        if (s->units.n == *ret_low || (!more && idle_milli(s, a->shape->models) < need))
            return false;
        if (fits(s, a, s->units.n - *ret_low == 1))
            return true;
        if (!more)
            return false;
        *ret_low = s->units.n;
        *ret_mark = bh_shelf_mark(&s->shelf);
        want = 2 * s->units.n;
    }
}

static bool shortest(struct bh_sched *s, struct attempt *a)
{
    size_t low;
    struct bh_mark mark;
    if (!release_enough(s, a, &low, &mark))
        return false;
    if (s->units.n - low == 1)
        return true;
    for (size_t high = s->units.n; high - low > 1;) {
        const size_t middle = low + (high - low) / 2;
        bh_shelf_rollback(&s->shelf, mark);
        mark = bh_shelf_mark(&s->shelf);
        release_some(s, low, middle);
        if (fits(s, a, false)) {
            s->units.n = high = middle;
        } else {
            low = middle;
            mark = bh_shelf_mark(&s->shelf);
        }
    }
    bh_shelf_rollback(&s->shelf, mark);
    release_some(s, low, s->units.n);
    return fits(s, a, true);
}

/* ---- refill ---- */

/* All of its job goes, and it with it. */
static bool goes_along(const struct bh_sched *s, const struct bh_unit *u)
{
    for (size_t i = 0; u->hold != BH_NONE && i < s->units.n; i++) {
        const struct bh_unit *whole = &s->units.at[i];
        if (whole->out && whole->job == u->job && whole->hold == BH_NONE)
            return true;
    }
    return false;
}

static bool put_back(struct bh_sched *s, const struct attempt *a, struct bh_unit *u)
{
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    u->out = false;
    if (!goes_along(s, u) && unit_back(s, u, BH_RUNG_KILL) && account_allows(s, a)) {
        bh_shelf_commit(&s->shelf, mark);
        return true;
    }
    bh_shelf_rollback(&s->shelf, mark);
    u->out = true;
    return false;
}

/* Says how many are out. */
static uint32_t refill(struct bh_sched *s, const struct attempt *a)
{
    uint32_t out = 0;
    for (size_t i = s->units.n; i-- > 0;) {
        if (s->units.at[i].out)
            out += !put_back(s, a, &s->units.at[i]);
    }
    return out;
}

/* From the beginning: those who are out released, the job placed. */
static bool redo(struct bh_sched *s, struct attempt *a)
{
    bh_shelf_rollback(&s->shelf, a->base);
    a->base = bh_shelf_mark(&s->shelf);
    release_some(s, 0, s->units.n);
    return fits(s, a, true);
}

/*
 * Nobody goes for nothing. With the job placed so, none of them can have its place back; but placed otherwise it
 * may need fewer of them. Who has more than all that is idle beside the job is needed however it is placed.
 */
static bool weed(struct bh_sched *s, struct attempt *a, uint32_t out)
{
    const bool gpus = a->shape->least.at[BH_RES_GPU] != 0;
    uint64_t idle = idle_milli(s, a->shape->models);
    bool moved = false;
    for (size_t i = s->units.n; out > 1 && i-- > 0;) {
        struct bh_unit *u = &s->units.at[i];
        if (!u->out || (gpus && u->amount.at[BH_RES_GPU] > idle) || goes_along(s, u))
            continue;
        if (!s->steps_left)
            return false;
        u->out = false;
        moved = !redo(s, a);
        if (moved) {
            u->out = true;
            continue;
        }
        out = refill(s, a);
        idle = idle_milli(s, a->shape->models);
    }
    return !moved || (redo(s, a) && refill(s, a));
}

/* ---- may they go? ---- */

static bool parks(const struct bh_unit *u)
{
    return u->out && (u->rung == BH_RUNG_PAUSE || u->rung == BH_RUNG_SUSPEND);
}

/* What its queue goes on paying for. */
static struct bh_resources stays_of(const struct bh_sched *s, const struct bh_unit *u)
{
    const struct bh_shape *shape = bh_shape_of(s, bh_gang_at(s, u->job));
    struct bh_resources all = {{0}};
    for (uint32_t i = 0; i < u->n && parks(u); i++) {
        const struct bh_place *p = &s->unit_places.at[u->first + i];
        const struct bh_resources one =
            bh_parked_amount(s, &shape->roles[p->role], (enum bh_rung)u->rung, p->spot.node);
        bh_resources_add(&all, &one, 1);
    }
    return all;
}

/* Do the queues agree that those go, each by its rung? */
static bool queues_agree(struct bh_sched *s, const struct attempt *a, const struct bh_line *l,
                         struct bh_queue_reason *ret)
{
    const struct bh_charge taker = bh_placed_charge(s, l);
    s->charges.n = s->judged.n = 0;
    for (size_t i = 0; i < s->units.n; i++) {
        const struct bh_unit *u = &s->units.at[i];
        const struct bh_gang *g = bh_gang_at(s, u->job);
        if (!u->out)
            continue;
        struct bh_charge *c = bh_vec_push(&s->charges);
        *c = (struct bh_charge){.queue = g->queue,
                                .band = (enum bh_priority)g->band,
                                .started_ms = g->charged_ms,
                                .amount = u->amount};
        const struct bh_resources stays = stays_of(s, u);
        bh_resources_less(&c->amount, &stays);
    }
    for (size_t i = 0, k = 0; i < s->units.n; i++) {
        const struct bh_unit *u = &s->units.at[i];
        if (u->out)
            *bh_vec_push(&s->judged) = (struct bh_victim){
                &s->charges.at[k++], u->hold == BH_NONE ? s->gangs.at[u->job].priority : INT32_MIN};
    }
    return bh_queue_may_reclaim(&s->queues, &taker, a->search.priority, s->judged.at, (uint32_t)s->judged.n,
                                ret);
}

/* On no: why, and in left_out whom to do without where it is one of them. */
static bool agreed(struct bh_sched *s, struct attempt *a, struct bh_line *l, bool *ret_again)
{
    if (queues_agree(s, a, l, &l->why_not))
        return true;
    if (l->why_not.why == BH_QUEUE_KEPT && !a->kept) {
        a->kept = *ret_again = true;
        return false;
    }
    *ret_again = l->why_not.victim < s->judged.n && a->search.n_left_out < BH_SEARCH_TRIES;
    for (size_t i = 0, k = 0; *ret_again && i < s->units.n; i++) {
        if (s->units.at[i].out && k++ == l->why_not.victim) {
            a->search.left_out[a->search.n_left_out].job = s->units.at[i].job;
            a->search.left_out[a->search.n_left_out++].hold = s->units.at[i].hold;
        }
    }
    return false;
}

/* ---- how they go ---- */

static enum bh_rung last_rung(const struct bh_sched *s, const struct bh_unit *u)
{
    return bh_shape_of(s, bh_gang_at(s, u->job))->can & BH_CAN_REQUEUE ? BH_RUNG_REQUEUE : BH_RUNG_KILL;
}

/* A suspended image may cost more than to start again. What cannot start again is not killed for that. */
static enum bh_rung rung_of(struct bh_sched *s, const struct bh_unit *u)
{
    const struct bh_gang *g = bh_gang_at(s, u->job);
    const struct bh_shape *shape = bh_shape_of(s, g);
    const enum bh_rung last = last_rung(s, u);
    if (u->hold != BH_NONE)
        return BH_RUNG_NARROW;
    if (!g->extra && bh_shape_parks(shape, BH_RUNG_PAUSE) && unit_back(s, u, BH_RUNG_PAUSE))
        return BH_RUNG_PAUSE;
    if (!g->extra && bh_shape_parks(shape, BH_RUNG_SUSPEND) &&
        (last == BH_RUNG_KILL ||
         bh_gang_lost_ms(s, g, BH_RUNG_SUSPEND) <= bh_gang_lost_ms(s, g, BH_RUNG_REQUEUE)) &&
        unit_back(s, u, BH_RUNG_SUSPEND))
        return BH_RUNG_SUSPEND;
    return last;
}

/* The one that the queues named, or else the last; BH_NONE: none is parked. */
static uint32_t parked_unit(const struct bh_sched *s, uint32_t named)
{
    uint32_t found = BH_NONE, k = 0;
    for (uint32_t i = 0; i < s->units.n; i++) {
        const struct bh_unit *u = &s->units.at[i];
        if (parks(u) && k == named)
            return i;
        k += u->out;
        found = parks(u) ? i : found;
    }
    return found;
}

/*
 * The cheapest of each that leaves the job its room. Then the account: they agreed that all of these go, and of whom is
 * parked the memory stays. Where that is too much for somebody, one after the other goes altogether.
 */
static void choose_rungs(struct bh_sched *s, const struct attempt *a, const struct bh_line *l)
{
    struct bh_queue_reason why;
    uint32_t one = BH_NONE;
    for (size_t i = s->units.n; i-- > 0;) {
        struct bh_unit *u = &s->units.at[i];
        if (u->out)
            u->rung = (uint8_t)rung_of(s, u);
    }
    for (uint32_t tries = 0; (one = parked_unit(s, BH_NONE)) != BH_NONE && !queues_agree(s, a, l, &why);
         tries++) {
        if (tries < BH_SEARCH_TRIES)
            one = parked_unit(s, why.victim);
        do {
            s->units.at[one].rung = (uint8_t)last_rung(s, &s->units.at[one]);
            one = parked_unit(s, BH_NONE);
        } while (tries >= BH_SEARCH_TRIES && one != BH_NONE);
    }
}

static void say_narrow(struct bh_sched *s, const struct bh_unit *u, uint64_t other)
{
    struct bh_decision *d = bh_decision_add(s, BH_DECIDE_EVICT, u->job);
    d->rung = BH_RUNG_NARROW;
    d->why = BH_FOR_JOB;
    d->other = other;
    bh_decision_place(s, d, &s->unit_places.at[u->first]);
    s->stats.narrowings++;
    bh_extra_unpaid(s, u->job, u->hold);
}

static void evict_unit(struct bh_sched *s, const struct bh_unit *u, uint64_t other)
{
    if (u->rung == BH_RUNG_NARROW)
        say_narrow(s, u, other);
    else
        bh_gang_evict(s, u->job, (enum bh_rung)u->rung, BH_FOR_JOB, other);
    for (uint32_t i = 0; i < u->n; i++) {
        const uint32_t hold = s->unit_holds.at[u->first + i];
        bh_gang_disown(s, u->job, hold);
        bh_room_free(s, hold);
    }
}

/* What is left of a victim's room beside the job is not free before the victim is gone. */
static void linger(struct bh_sched *s, const struct bh_unit *u)
{
    for (uint32_t i = 0; i < u->n; i++) {
        const struct bh_place *p = &s->unit_places.at[u->first + i];
        uint32_t hold = BH_NONE;
        if (parks(u) ||
            bh_shelf_take(&s->shelf, class_of(s, u, p->role, BH_RUNG_KILL), &p->spot, &hold, NULL) < 0)
            hold = BH_NONE;
        bh_left_add(s, u->job, hold, p->spot.node);
    }
}

static void must(bool ok)
{
    if (!ok)
        abort(); /* the same was done a moment ago on the same shelf */
}

static void park(struct bh_sched *s, const struct bh_unit *u)
{
    for (uint32_t i = 0; i < u->n; i++) {
        struct bh_place p = s->unit_places.at[u->first + i];
        uint32_t hold;
        p.spot = spot_of(s, u, i, (enum bh_rung)u->rung);
        must(bh_shelf_take(&s->shelf, class_of(s, u, p.role, (enum bh_rung)u->rung), &p.spot, &hold, NULL) >=
             0);
        bh_gang_add(s, u->job, &p, hold, false);
    }
    const struct bh_resources stays = stays_of(s, u);
    bh_gang_stays(s, u->job, &stays);
    s->gangs.at[u->job].parked = u->rung;
}

static void commit(struct bh_sched *s, struct attempt *a, uint32_t line)
{
    const uint64_t other = s->gangs.at[s->lines.at[line].heap.at[0]].id;
    bh_shelf_rollback(&s->shelf, a->base);
    for (size_t i = 0; i < s->units.n; i++) {
        if (s->units.at[i].out)
            evict_unit(s, &s->units.at[i], other);
    }
    for (size_t i = 0; i < s->try_places.n; i++) {
        const struct bh_place *p = &s->try_places.at[i];
        must(bh_shelf_take(&s->shelf, a->shape->roles[p->role].class_, &p->spot, &s->try_holds.at[i], NULL) >=
             0);
    }
    for (size_t i = s->units.n; i-- > 0;) {
        if (parks(&s->units.at[i]))
            park(s, &s->units.at[i]);
    }
    for (size_t i = 0; i < s->units.n; i++) {
        if (s->units.at[i].out)
            linger(s, &s->units.at[i]);
    }
    bh_cycle_start(s, line);
}

/* ---- one job ---- */

static bool vetoed(struct bh_sched *s, const struct bh_line *l)
{
    return s->veto && !s->veto(s->veto_context, s, &s->gangs.at[l->heap.at[0]], s->try_places.at,
                               (uint32_t)s->try_places.n, s->now_ms);
}

static bool attempt(struct bh_sched *s, struct attempt *a, uint32_t line)
{
    struct bh_line *l = &s->lines.at[line];
    for (bool again = true; again;) {
        again = false;
        s->units.n = s->unit_places.n = s->unit_holds.n = 0;
        a->at_here = 0;
        if (!a->listed)
            bh_search_open(s, &a->search);
        a->base = bh_shelf_mark(&s->shelf);
        if (shortest(s, a)) {
            const uint32_t out = refill(s, a);
            if (out && (out == 1 || weed(s, a, out)) && agreed(s, a, l, &again) && !vetoed(s, l)) {
                choose_rungs(s, a, l);
                commit(s, a, line);
                return true;
            }
        }
        bh_shelf_rollback(&s->shelf, a->base);
    }
    return false;
}

enum { FEW = 16, FEW_FOR_EACH = 64, NODES_MAX = 64 };

/* Node by node: see reclaim_node.c. Not for what must stay close, where one node says little. */
static bool focus(struct bh_sched *s, struct attempt *a, uint32_t line)
{
    struct bh_search f = a->search;
    uint32_t node, pieces = 0;
    if (a->shape->n_roles > 1 || a->shape->within != BH_LEVEL_ANY || a->shape->roles[0].slice)
        return false;
    bh_search_open(s, &f);
    s->here.n = 0;
    a->listed = true;
    bool found = false;
    for (uint32_t tried = 0; !found && tried < NODES_MAX && bh_search_next_node(s, &f, &node); tried++) {
        pieces += bh_search_here(s, &f, node);
        if (pieces < a->shape->members)
            continue;
        if (f.own && f.others)
            bh_search_own_rest(s, &f);
        found = attempt(s, a, line);
        s->here.n = 0;
        pieces = 0;
    }
    a->listed = false;
    return found;
}

static bool search(struct bh_sched *s, struct attempt *a, uint32_t line, uint32_t scope, bool others,
                   bool own)
{
    a->search.scope = scope;
    a->search.others = others;
    a->search.own = own;
    /* With some of its own gone it may well be within what it is entitled to. */
    a->search.entitled = own || bh_queue_within(&s->queues.at.at[a->search.taker.queue], &a->shape->least);
    a->search.n_left_out = 0;
    a->most = a->shape->members == 1 ? FEW : FEW_FOR_EACH * (size_t)a->shape->members;
    a->most = a->most < s->config.victims_max ? a->most : s->config.victims_max;
    return attempt(s, a, line) || (s->config.victims_max && focus(s, a, line));
}

/* So many whole GPUs of one node must each member have, at least. */
static uint32_t whole_of(const struct bh_sched *s, const struct bh_shape *shape)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        const struct bh_request *r = &s->requests.at.at[shape->roles[i].class_];
        const uint32_t n = r->form == BH_FORM_WHOLE ? r->n_gpus : 0;
        least = n < least ? n : least;
    }
    return least > 1 ? least : 0;
}

static bool needs_time_only(const struct bh_sched *s, const struct bh_shape *shape)
{
    bool only = true;
    for (uint32_t i = 0; i < shape->n_roles && only; i++) {
        const uint8_t form = s->requests.at.at[shape->roles[i].class_].form;
        only = form == BH_FORM_SHARE || form == BH_FORM_CPU;
    }
    return only;
}

bool bh_reclaim(struct bh_sched *s, uint32_t line)
{
    const struct bh_line *l = &s->lines.at[line];
    const struct bh_queue *leaf = &s->queues.at.at[l->queue];
    const struct bh_room *room = &s->rooms.at[l->queue];
    struct attempt a = {.shape = &s->shapes.at[l->shape],
                        .kept = l->stuck == BH_STUCK_QUOTA && l->why.why == BH_QUEUE_KEPT};
    a.search = (struct bh_search){.taker = {.queue = l->queue,
                                            .firm = a.shape->firm,
                                            .band = (enum bh_priority)l->band,
                                            .started_ms = s->now_ms,
                                            .amount = bh_shape_asks(s, a.shape)},
                                  .priority = s->gangs.at[l->heap.at[0]].priority,
                                  .models = a.shape->anywhere ? UINT64_MAX : a.shape->models,
                                  .shape = a.shape,
                                  .per_node = l->stuck == BH_STUCK_QUOTA ? 0 : whole_of(s, a.shape),
                                  .serves = leaf->serves,
                                  .pauses = needs_time_only(s, a.shape)};
    /* Those who have too much; where that is not enough, lower priorities of its own queue; then both together. */
    const uint32_t scope = bh_search_scope(s, l->queue, &a.shape->least);
    const bool own = room->low < a.search.priority || room->n_extra;
    return (scope != BH_NONE && search(s, &a, line, scope, true, false)) ||
           (own && search(s, &a, line, l->queue, false, true)) ||
           (own && bh_search_any(s, l->queue) && search(s, &a, line, BH_QUEUE_ROOT, true, true));
}
