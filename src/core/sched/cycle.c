/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycle.c - one cycle, phase by phase.
 *
 * No phase allocates; what they fill was made large enough when the tick was settled.
 */
#include "core/sched/sched_inside.h"

/* ---- saying ---- */

struct bh_decision *bh_decision_add(struct bh_sched *s, enum bh_decision_kind kind, uint32_t job)
{
    struct bh_decision *d = bh_vec_push(&s->decisions);
    memset(d, 0, sizeof(*d));
    d->kind = (uint8_t)kind;
    d->job = s->gangs.at[job].id;
    d->first_place = (uint32_t)s->places.n;
    return d;
}

void bh_decision_place(struct bh_sched *s, struct bh_decision *d, const struct bh_place *place)
{
    *bh_vec_push(&s->places) = *place;
    d->n_places++;
}

struct bh_place bh_hold_place(const struct bh_sched *s, uint32_t hold)
{
    const struct bh_hold *h = &s->shelf.holds.at[hold];
    return (struct bh_place){{.node = h->node, .gpus = h->gpus, .mig_start = h->mig_start},
                             s->owners.at[hold].role};
}

void bh_gang_evict(struct bh_sched *s, uint32_t job, enum bh_rung rung, enum bh_evict_for why, uint64_t other)
{
    struct bh_gang *g = bh_gang_at(s, job);
    struct bh_decision *d = bh_decision_add(s, BH_DECIDE_EVICT, job);
    d->rung = (uint8_t)rung;
    d->why = (uint8_t)why;
    d->other = other;
    d->price = bh_gang_price(s, g, rung);
    s->stats.price += d->price;
    s->stats.evictions++;
    bh_gang_unpaid(s, job, rung != BH_RUNG_KILL);
    bh_run_leave(s, job);
    g->state = rung == BH_RUNG_KILL ? BH_GANG_ENDS : BH_GANG_LEAVES;
    s->stats.runs--;
    s->stats.leaves++;
}

/* ---- starting ---- */

/* Its places, role by role. */
static void say_start(struct bh_sched *s, uint32_t job, enum bh_decision_kind kind, enum bh_turn_key key,
                      uint64_t other)
{
    const struct bh_gang *g = bh_gang_at(s, job);
    struct bh_decision *d = bh_decision_add(s, kind, job);
    d->key = (uint8_t)key;
    d->other = other;
    for (uint32_t role = 0; role < bh_shape_of(s, g)->n_roles; role++) {
        for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
            const struct bh_place place = bh_hold_place(s, h);
            if (place.role == role)
                bh_decision_place(s, d, &place);
        }
    }
    s->stats.starts++;
}

static void begin(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    g->state = BH_GANG_RUNS;
    s->stats.runs++;
    if (bh_shape_of(s, g)->elastic)
        *bh_vec_push(&s->elastic) = job;
}

void bh_cycle_start(struct bh_sched *s, uint32_t line)
{
    const struct bh_line *l = &s->lines.at[line];
    const uint32_t job = l->heap.at[0];
    const uint8_t band = l->band;
    struct bh_gang *g = bh_gang_at(s, job);
    const enum bh_decision_kind kind = g->parked ? BH_DECIDE_RESUME : BH_DECIDE_START;
    enum bh_turn_key key;
    const uint32_t rival = bh_order_rival(s, line, &key);
    const uint64_t other = rival == BH_NONE ? 0 : s->gangs.at[s->lines.at[rival].heap.at[0]].id;

    bh_line_leave(s, job);
    bh_gang_stays_no_more(s, job);
    g->first_hold = BH_NONE; /* what stayed behind of a parked one is part of its places again */
    g->n_holds = 0;
    g->band = band;
    bh_gang_bind(s, job, s->try_places.at, s->try_holds.at, (uint32_t)s->try_places.n, false);
    bh_run_join(s, job);
    if (bh_gang_waits(s, g)) {
        g->state = BH_GANG_BOUND;
        g->parked = kind == BH_DECIDE_RESUME;
        *bh_vec_push(&s->bound) = job;
        s->stats.bound++;
        return;
    }
    begin(s, job);
    say_start(s, job, kind, key, other);
}

static void start_bound(struct bh_sched *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->bound.n; i++) {
        const uint32_t job = s->bound.at[i];
        struct bh_gang *g = bh_gang_at(s, job);
        if (g->state != BH_GANG_BOUND)
            continue;
        if (bh_gang_waits(s, g)) {
            s->bound.at[kept++] = job;
            continue;
        }
        const enum bh_decision_kind kind = g->parked ? BH_DECIDE_RESUME : BH_DECIDE_START;
        g->parked = 0;
        bh_run_since(s, job, s->now_ms);
        s->stats.bound--;
        begin(s, job);
        say_start(s, job, kind, BH_TURN_SAME, 0);
    }
    s->bound.n = kept;
}

/* ---- placing ---- */

static void stick(struct bh_line *l, enum bh_stuck stuck, uint64_t at)
{
    l->stuck = (uint8_t)stuck;
    l->at = at;
}

struct bh_resources bh_placed_amount(const struct bh_sched *s, const struct bh_shape *shape)
{
    struct bh_resources a = {{0}};
    for (size_t i = 0; i < s->try_places.n; i++) {
        const struct bh_place *p = &s->try_places.at[i];
        const struct bh_resources one = bh_class_amount(s, shape->roles[p->role].class_, p->spot.node);
        bh_resources_add(&a, &one, 1);
    }
    return a;
}

/* What it would really cost, where it was placed. */
struct bh_charge bh_placed_charge(const struct bh_sched *s, const struct bh_line *l)
{
    const struct bh_shape *shape = &s->shapes.at[l->shape];
    const struct bh_resources all = bh_placed_amount(s, shape);
    return (struct bh_charge){.queue = l->queue,
                              .firm = shape->firm,
                              .band = (enum bh_priority)l->band,
                              .started_ms = s->now_ms,
                              .amount = bh_beside_stays(&s->gangs.at[l->heap.at[0]], &all)};
}

/* Places are taken below a mark, and so much was asked for before. May it have them? */
static bool may_keep(struct bh_sched *s, struct bh_line *l, const struct bh_resources *asked)
{
    const struct bh_charge c = bh_placed_charge(s, l);
    if (memcmp(&c.amount, asked, sizeof(c.amount)) != 0 && !bh_queue_may_start(&s->queues, &c, &l->why)) {
        stick(l, BH_STUCK_QUOTA, s->clock);
        return false;
    }
    if (s->veto && !s->veto(s->veto_context, s, &s->gangs.at[l->heap.at[0]], s->try_places.at,
                            (uint32_t)s->try_places.n, s->now_ms)) {
        stick(l, BH_STUCK_VETO, s->stats.cycles);
        return false;
    }
    return true;
}

static void try_line(struct bh_sched *s, uint32_t line)
{
    struct bh_line *l = &s->lines.at[line];
    struct bh_shape *shape = &s->shapes.at[l->shape];
    const struct bh_gang *g = &s->gangs.at[l->heap.at[0]];
    const struct bh_resources asks = bh_shape_asks(s, shape);
    const struct bh_charge c = {.queue = l->queue,
                                .firm = shape->firm,
                                .band = (enum bh_priority)l->band,
                                .started_ms = s->now_ms,
                                .amount = bh_beside_stays(g, &asks)};
    if (!bh_queue_may_start(&s->queues, &c, &l->why)) {
        const bool total =
            l->why.why == BH_QUEUE_TOTAL && !g->parked; /* no room, for any line of the shape */
        stick(l, total ? BH_STUCK_ROOM : BH_STUCK_QUOTA, s->clock);
        if (total)
            shape->stuck_at = s->clock;
        return;
    }
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    const bool placed = g->parked ? bh_gang_unpark(s, g) : bh_gang_place(s, shape);
    if (placed && may_keep(s, l, &c.amount)) {
        bh_shelf_commit(&s->shelf, mark);
        bh_cycle_start(s, line);
        return;
    }
    bh_shelf_rollback(&s->shelf, mark);
    if (placed || !s->steps_left) /* out of steps: it is not known */
        return;
    stick(l, BH_STUCK_ROOM, s->clock);
    if (!g->parked)
        shape->stuck_at = s->clock;
}

/* Placing only takes room: a shape that has none now has none in all of the phase, and its lines stay out. */
static void try_shapes(struct bh_sched *s)
{
    for (size_t i = 0; i < s->shape_order.n && s->steps_left; i++) {
        struct bh_shape *shape = &s->shapes.at[s->shape_order.at[i]];
        if (!shape->pending || !shape->stuck_at || !bh_shape_gained(s, shape, shape->stuck_at))
            continue;
        const struct bh_mark mark = bh_shelf_mark(&s->shelf);
        const bool fits = bh_gang_place(s, shape);
        bh_shelf_rollback(&s->shelf, mark);
        if (s->steps_left)
            shape->stuck_at = fits ? 0 : s->clock;
    }
}

/* Is there a shape left that may find room? */
static bool any_awake(const struct bh_sched *s)
{
    for (size_t i = 0; i < s->shapes.n; i++) {
        if (s->shapes.at[i].pending && !s->shapes.at[i].stuck_at)
            return true;
    }
    return s->n_parked != 0;
}

static void place_pending(struct bh_sched *s)
{
    s->reclaiming = false;
    try_shapes(s);
    bh_order_all(s);
    bh_sched_step(s, s->queues.at.n / 16 + 1);
    while (s->rooms.at[BH_QUEUE_ROOT].best != BH_NONE && bh_sched_step(s, 1)) {
        const uint32_t line = s->rooms.at[BH_QUEUE_ROOT].best;
        const uint32_t queue = s->lines.at[line].queue, shape = s->lines.at[line].shape;
        if (!bh_line_stuck(s, &s->lines.at[line])) { /* others of its shape may have had the last room */
            try_line(s, line);
            if ((s->shapes.at[shape].stuck_at || !s->shapes.at[shape].pending) && !any_awake(s))
                break;
        }
        bh_order_leaf(s, queue);
    }
}

enum { LOOK_AGAIN = 64 }; /* failures after which who has too much is counted anew */

/* Room that others left over may be enough by now. */
static bool starts_without(struct bh_sched *s, uint32_t line)
{
    const uint64_t starts = s->stats.starts + s->stats.bound;
    if (bh_line_stuck(s, &s->lines.at[line]))
        return false;
    try_line(s, line);
    return s->stats.starts + s->stats.bound != starts;
}

static void reclaim_pending(struct bh_sched *s)
{
    uint32_t tries = 0;
    if (!s->steps_left)
        return;
    s->reclaiming = true;
    bh_reclaim_prepare(s);
    bh_order_all(s);
    bh_sched_step(s, s->queues.at.n / 8 + 1);
    while (s->rooms.at[BH_QUEUE_ROOT].best != BH_NONE && bh_sched_step(s, 1)) {
        const uint32_t line = s->rooms.at[BH_QUEUE_ROOT].best, queue = s->lines.at[line].queue;
        if (!starts_without(s, line) && !bh_move(s, line) && !bh_reclaim(s, line)) {
            s->lines.at[line].tried_at = s->round;
            if (++tries % LOOK_AGAIN == 0)
                bh_reclaim_prepare(s);
            if (tries == s->config.reclaim_tries)
                break;
        }
        bh_order_leaf(s, queue);
    }
    /* Those who were not tried come first in the next cycle; when all were, everybody may be tried again. */
    if (tries != s->config.reclaim_tries && s->steps_left)
        s->round++;
    s->reclaiming = false;
}

/* ---- broken gangs ---- */

/* It was never told to start: nobody needs to be told anything. */
static void unbind(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    bh_gang_unpaid(s, job, true);
    bh_run_leave(s, job);
    while (g->first_hold != BH_NONE)
        bh_gang_drop(s, job, g->first_hold);
    g->parked = 0;
    g->state = BH_GANG_PENDING;
    s->stats.bound--;
    bh_line_join(s, job);
}

static void evict_broken(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    const enum bh_rung rung = bh_shape_of(s, g)->can & BH_CAN_REQUEUE ? BH_RUNG_REQUEUE : BH_RUNG_KILL;
    g->broken_ms = 0;
    if (g->state == BH_GANG_BOUND) {
        unbind(s, job);
        return;
    }
    bh_gang_evict(s, job, rung, BH_FOR_BROKEN, 0);
    bh_gang_leave(s, job);
}

/* Members above the minimum that lost their place are not replaced. */
static bool drop_lost_extra(struct bh_sched *s, uint32_t job)
{
    const struct bh_gang *g = bh_gang_at(s, job);
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        if (!s->owners.at[h].extra || !bh_hold_lost(s, h))
            continue;
        const struct bh_place place = bh_hold_place(s, h);
        struct bh_decision *d = bh_decision_add(s, BH_DECIDE_EVICT, job);
        d->rung = BH_RUNG_NARROW;
        d->why = BH_FOR_BROKEN;
        bh_decision_place(s, d, &place);
        s->stats.narrowings++;
        bh_extra_unpaid(s, job, h);
        bh_gang_drop(s, job, h);
        return true;
    }
    return false;
}

static bool anything_lost(const struct bh_sched *s, const struct bh_gang *g)
{
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        if (bh_hold_lost(s, h))
            return true;
    }
    return false;
}

/* A repaired gang goes on at once, so it takes no room that somebody is still leaving. */
static bool room_is_clear(const struct bh_sched *s)
{
    for (size_t i = 0; i < s->try_places.n; i++) {
        if (s->leaving.at[s->try_places.at[i].spot.node])
            return false;
    }
    return true;
}

/* Places of another model, or with more memory, are paid for like those of a start; so they are asked for alike. */
static bool may_repair(struct bh_sched *s, const struct bh_gang *g)
{
    const struct bh_shape *shape = bh_shape_of(s, g);
    struct bh_charge c = bh_gang_charge(s, g, false);
    struct bh_resources lost = {{0}};
    struct bh_queue_reason why;
    memset(&c.amount, 0, sizeof(c.amount));
    for (size_t i = 0; i < s->try_places.n; i++) {
        const struct bh_place *p = &s->try_places.at[i];
        const struct bh_hold *h = &s->shelf.holds.at[s->unit_holds.at[i]];
        const struct bh_resources now = bh_class_amount(s, shape->roles[p->role].class_, p->spot.node),
                                  was = bh_class_amount(s, h->class_, h->node);
        bh_resources_add(&c.amount, &now, 1);
        bh_resources_add(&lost, &was, 1);
    }
    bh_resources_less(&c.amount, &lost);
    return bh_queue_may_start(&s->queues, &c, &why) &&
           (!s->veto ||
            s->veto(s->veto_context, s, g, s->try_places.at, (uint32_t)s->try_places.n, s->now_ms));
}

static bool repair(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    if (!bh_gang_repair(s, g) || !room_is_clear(s) || !may_repair(s, g)) {
        bh_shelf_rollback(&s->shelf, mark);
        return false;
    }
    bh_shelf_commit(&s->shelf, mark);
    struct bh_charge old = bh_gang_charge(s, g, false);
    struct bh_decision *d = g->state == BH_GANG_RUNS ? bh_decision_add(s, BH_DECIDE_MOVE, job) : NULL;
    if (d)
        d->why = BH_FOR_BROKEN;
    for (size_t i = 0; i < s->unit_holds.n; i++)
        bh_gang_drop(s, job, s->unit_holds.at[i]);
    for (size_t i = 0; i < s->try_places.n; i++) {
        bh_gang_add(s, job, &s->try_places.at[i], s->try_holds.at[i], false);
        if (d)
            bh_decision_place(s, d, &s->try_places.at[i]);
    }
    struct bh_charge now = bh_gang_charge(s, g, false);
    if (memcmp(&old.amount, &now.amount, sizeof(now.amount)) != 0) { /* of another model */
        bh_queue_apply(&s->queues, BH_CHARGE_END, &old, s->now_ms);
        bh_queue_apply(&s->queues, BH_CHARGE_FOUND, &now, s->now_ms);
    }
    s->stats.moves += s->try_places.n;
    return true;
}

static void mend_broken(struct bh_sched *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->broken.n; i++) {
        const uint32_t job = s->broken.at[i];
        struct bh_gang *g = bh_gang_at(s, job);
        if ((g->state != BH_GANG_RUNS && g->state != BH_GANG_BOUND) || !g->broken_ms)
            continue;
        while (drop_lost_extra(s, job))
            continue;
        if (!anything_lost(s, g) || repair(s, job)) {
            g->broken_ms = 0;
        } else if (s->now_ms - g->broken_ms >= s->config.grace_ms) {
            evict_broken(s, job);
        } else {
            s->broken.at[kept++] = job;
        }
        bh_sched_step(s, 1);
    }
    s->broken.n = kept;
}

/* ---- elastic gangs ---- */

static uint32_t extras_of(const struct bh_sched *s, const struct bh_gang *g, uint32_t role)
{
    uint32_t n = 0;
    for (uint32_t h = g->first_hold; g->extra && h != BH_NONE; h = s->owners.at[h].next)
        n += s->owners.at[h].extra && s->owners.at[h].role == role;
    return n;
}

/* By how much all of them may grow in this cycle. */
struct growth {
    uint32_t left;
    bool cut; /* somebody would have grown further */
};

static bool grow_role(struct bh_sched *s, uint32_t job, uint32_t role, struct growth *growth)
{
    const struct bh_gang *g = bh_gang_at(s, job);
    const struct bh_gang_role *r = &bh_shape_of(s, g)->roles[role];
    struct bh_charge c = {.queue = g->queue, .band = (enum bh_priority)g->band, .started_ms = s->now_ms};
    struct bh_queue_reason why;
    const uint32_t more = r->slice ? r->slice : 1;
    if (r->min + extras_of(s, g, role) + more > r->max) /* of a slice some may have been given up */
        return false;
    growth->cut |= more > growth->left;
    if (more > growth->left)
        return false;
    bh_resources_add(&c.amount, &r->one, more);
    if (!bh_queue_may_start(&s->queues, &c, &why))
        return false;
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    if (!bh_gang_more(s, g, role) || !room_is_clear(s) ||
        (s->veto &&
         !s->veto(s->veto_context, s, g, s->try_places.at, (uint32_t)s->try_places.n, s->now_ms))) {
        bh_shelf_rollback(&s->shelf, mark);
        return false;
    }
    memset(&c.amount, 0, sizeof(c.amount));
    for (size_t i = 0; i < s->try_places.n; i++) {
        const struct bh_resources one = bh_class_amount(s, r->class_, s->try_places.at[i].spot.node);
        bh_resources_add(&c.amount, &one, 1);
    }
    if (!bh_queue_may_start(&s->queues, &c, &why)) {
        bh_shelf_rollback(&s->shelf, mark);
        return false;
    }
    bh_shelf_commit(&s->shelf, mark);
    struct bh_decision *d = bh_decision_add(s, BH_DECIDE_GROW, job);
    for (size_t i = 0; i < s->try_places.n; i++) {
        bh_gang_add(s, job, &s->try_places.at[i], s->try_holds.at[i], true);
        bh_decision_place(s, d, &s->try_places.at[i]);
    }
    growth->left -= more;
    return true;
}

/* Each that runs once; a job that ran before, or another in its slot, may have been noted again. */
static void list_elastic(struct bh_sched *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->elastic.n; i++) {
        struct bh_gang *g = bh_gang_at(s, s->elastic.at[i]);
        if (g->state != BH_GANG_RUNS || g->listed == s->stats.cycles || !bh_shape_of(s, g)->elastic)
            continue;
        g->listed = s->stats.cycles;
        s->elastic.at[kept++] = s->elastic.at[i];
    }
    s->elastic.n = kept;
}

/* One more for each in turn, as long as anybody grows. True: there is more to do in the next cycle. */
static bool grow_elastic(struct bh_sched *s)
{
    struct growth growth = {.left = BH_GROW_MAX};
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < s->elastic.n; i++) {
            const uint32_t job = s->elastic.at[i];
            const struct bh_shape *shape = bh_shape_of(s, bh_gang_at(s, job));
            if (s->gangs.at[job].state != BH_GANG_RUNS || s->gangs.at[job].broken_ms ||
                s->gangs.at[job].extra >= shape->elastic)
                continue;
            for (uint32_t role = 0; role < shape->n_roles; role++) {
                if (!bh_sched_step(s, 1))
                    return true;
                grew |= grow_role(s, job, role, &growth);
            }
        }
    }
    return growth.cut;
}

/* ---- all of it ---- */

static void mix(struct bh_sched *s, uint64_t what)
{
    s->digest = bh_idmap_mix(s->digest ^ what);
}

static void sum_up(struct bh_sched *s)
{
    for (size_t i = 0; i < s->decisions.n; i++) {
        const struct bh_decision *d = &s->decisions.at[i];
        mix(s, d->job);
        mix(s, (uint64_t)d->kind | (uint64_t)d->rung << 8 | (uint64_t)d->why << 16 | (uint64_t)d->key << 24 |
                   (uint64_t)d->n_places << 32);
        mix(s, d->other);
        mix(s, d->price);
        for (uint32_t k = 0; k < d->n_places; k++) {
            const struct bh_place *p = &s->places.at[d->first_place + k];
            mix(s, (uint64_t)p->spot.node << 32 | (uint64_t)p->spot.gpus << 16 |
                       (uint64_t)p->spot.mig_start << 8 | p->role);
        }
    }
    mix(s, s->shelf.milli_used);
    mix(s, (uint64_t)s->shelf.n_taken << 32 | s->stats.pending);
    mix(s, (uint64_t)s->stats.runs << 32 | s->stats.leaves);
    mix(s, bh_usage_at(&s->queues.at.at[BH_QUEUE_ROOT].usage, s->queues.config.half_life_ms, s->now_ms));
}

void bh_cycle(struct bh_sched *s)
{
    s->stats.cycles++;
    s->stats.steps = 0;
    s->victims.n = 0;
    list_elastic(s);
    bh_lines_alarm(s);
    bh_queues_refresh(&s->queues, s->now_ms);
    start_bound(s);
    mend_broken(s);
    bh_move_drained(s);
    place_pending(s);
    reclaim_pending(s);
    s->stats.more = !s->steps_left || grow_elastic(s);
    sum_up(s);
}
