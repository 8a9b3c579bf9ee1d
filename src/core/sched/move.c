/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move.c - somebody who runs stands elsewhere: so that a job finds its room in one piece, or to empty what is drained.
 *
 * For a job: enough GPUs are idle, and not together. First one member of a job that may be moved (BH_CAN_MOVE) is tried,
 * each with every place it could have; then all such members of a node, node after node. They are taken off the shelf, the
 * job is placed, and whoever cannot have its own place back beside it must find another. Either all of them do and the job
 * starts, or nothing happens at all. Each time one job fewer waits, nobody stops running, and nobody moves twice before
 * it was told to be gone from its first place: so this ends.
 *
 * Off what is drained: interruption is what the operator asked for, so whoever may be started again is moved too. Who
 * has no other place stays, as does what must not be interrupted; it is looked at again in the next cycle.
 *
 * A move keeps to the model of the GPU and to its memory, so that nobody pays for another one.
 */
#include "core/sched/sched_inside.h"

enum { MOVERS_MAX = 64, HOLDS_MAX = 256 };

struct mover {
    uint32_t hold; /* that it had */
    struct bh_place from, to;
};

/* One attempt. Below `base` they are off their places. */
struct moving {
    struct bh_mark base;
    struct mover at[MOVERS_MAX];
    uint32_t n;
};

/* ---- who may move ---- */

static bool may_move(const struct bh_sched *s, uint32_t hold, uint8_t can)
{
    const struct bh_owner *o = &s->owners.at[hold];
    if (o->job == BH_NONE || o->extra || s->shelf.holds.at[hold].state != BH_HOLD_TAKEN)
        return false;
    const struct bh_gang *g = bh_gang_at(s, o->job);
    return g->state == BH_GANG_RUNS && !bh_shape_of(s, g)->firm && (bh_shape_of(s, g)->can & can) &&
           !g->broken_ms && g->first_left == BH_NONE && bh_gang_past_min_run(s, g);
}

static void take_off(struct bh_sched *s, struct moving *m, uint32_t hold)
{
    struct mover *one = &m->at[m->n++];
    *one = (struct mover){.hold = hold, .from = bh_hold_place(s, hold)};
    one->to = one->from;
    bh_shelf_free(&s->shelf, hold);
    bh_sched_step(s, 1);
}

static const struct bh_gang *gang_of(const struct bh_sched *s, const struct mover *one)
{
    return bh_gang_at(s, s->owners.at[one->hold].job);
}

static uint32_t class_of(const struct bh_sched *s, const struct mover *one)
{
    return bh_shape_of(s, gang_of(s, one))->roles[one->from.role].class_;
}

static bool is_moved(const struct mover *one)
{
    return one->to.spot.node != one->from.spot.node || one->to.spot.gpus != one->from.spot.gpus ||
           one->to.spot.mig_start != one->from.spot.mig_start;
}

/* It goes on there at once: nobody may still be leaving, nor be about to. */
static bool is_clear(const struct bh_sched *s, const struct moving *m, const struct mover *one,
                     const struct bh_spot *spot)
{
    if (s->leaving.at[spot->node] ||
        s->shelf.nodes.at[spot->node].model != s->shelf.nodes.at[one->from.spot.node].model)
        return false;
    const struct bh_resources here = bh_class_amount(s, class_of(s, one), one->from.spot.node),
                              there = bh_class_amount(s, class_of(s, one), spot->node);
    if (memcmp(&here, &there, sizeof(here)) != 0)
        return false;
    for (uint32_t i = 0; i < m->n; i++)
        if (&m->at[i] != one && m->at[i].from.spot.node == spot->node)
            return false;
    return true;
}

static bool put(struct bh_sched *s, const struct moving *m, struct mover *one, const struct bh_spot *spot)
{
    uint32_t hold;
    bh_sched_step(s, 1);
    one->to = (struct bh_place){*spot, one->from.role};
    return is_moved(one) && is_clear(s, m, one, spot) &&
           bh_shelf_take(&s->shelf, class_of(s, one), spot, &hold, NULL) >= 0;
}

/* Ways to stand on a node: the best one, and a share of one GPU on each of them. Whole GPUs are all alike. */
static uint32_t ways_on(const struct bh_sched *s, const struct mover *one, uint32_t node)
{
    const struct bh_request *r = &s->requests.at.at[class_of(s, one)];
    return r->form == BH_FORM_SHARE && r->n_gpus == 1 ? 1u + s->shelf.nodes.at[node].n_gpus : 1;
}

/* Another place on this node. */
static bool put_on(struct bh_sched *s, const struct moving *m, struct mover *one, uint32_t node, uint32_t way)
{
    const struct bh_request *r = &s->requests.at.at[class_of(s, one)];
    const uint32_t domain = bh_member_domain(s, gang_of(s, one), one->from.role, one->from.spot.node);
    if (domain != BH_NONE &&
        bh_shelf_domain_of(&s->shelf, node, (enum bh_level)s->shelf.domains.at[domain].level) != domain)
        return false;
    if (!bh_shelf_usable(&s->shelf, r, node))
        return false;
    const struct bh_spot spot = way ? (struct bh_spot){.node = node, .gpus = (uint16_t)(1u << (way - 1))}
                                    : bh_score_spot(s->score, r, node);
    return bh_shelf_fits(&s->shelf, r, &spot) && put(s, m, one, &spot);
}

/* The best place that there is for it now, or else any. */
static bool put_anywhere(struct bh_sched *s, const struct moving *m, struct mover *one)
{
    const uint32_t domain = bh_member_domain(s, gang_of(s, one), one->from.role, one->from.spot.node);
    struct bh_spot spot;
    if (!bh_gang_pick(s, class_of(s, one), domain, &spot))
        return false;
    if (put(s, m, one, &spot))
        return true;
    for (uint32_t node = 0; node < s->shelf.nodes.n && s->steps_left; node++)
        for (uint32_t way = 0; way < ways_on(s, one, node); way++)
            if (put_on(s, m, one, node, way))
                return true;
    return false;
}

/* ---- may all of it be? ---- */

static bool has_veto(struct bh_sched *s, const struct bh_gang *g, const struct bh_place *places, uint32_t n)
{
    return s->veto && !s->veto(s->veto_context, s, g, places, n, s->now_ms);
}

static bool movers_may(struct bh_sched *s, const struct moving *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (is_moved(&m->at[i]) && has_veto(s, gang_of(s, &m->at[i]), &m->at[i].to, 1))
            return false;
    return true;
}

/* The line's first in the places of try_places. */
static bool job_may(struct bh_sched *s, struct bh_line *l)
{
    const struct bh_charge c = bh_placed_charge(s, l);
    return bh_queue_may_start(&s->queues, &c, &l->why) &&
           !has_veto(s, &s->gangs.at[l->heap.at[0]], s->try_places.at, (uint32_t)s->try_places.n);
}

/* ---- doing it ---- */

static void must(bool ok)
{
    if (!ok)
        abort(); /* the same was done a moment ago on the same shelf */
}

/* One decision for each job, with the new places of all its members that move. */
static void say_moves(struct bh_sched *s, const struct moving *m, enum bh_evict_for why, uint64_t other)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t job = s->owners.at[m->at[i].hold].job;
        bool said = !is_moved(&m->at[i]);
        for (uint32_t k = 0; k < i && !said; k++)
            said = is_moved(&m->at[k]) && s->owners.at[m->at[k].hold].job == job;
        if (said)
            continue;
        struct bh_decision *d = bh_decision_add(s, BH_DECIDE_MOVE, job);
        d->why = (uint8_t)why;
        d->other = other;
        d->price = bh_gang_price(s, bh_gang_at(s, job), BH_RUNG_REQUEUE);
        s->stats.price += d->price;
        for (uint32_t k = i; k < m->n; k++) {
            if (s->owners.at[m->at[k].hold].job != job || !is_moved(&m->at[k]))
                continue;
            bh_decision_place(s, d, &m->at[k].to);
            s->stats.moves++;
        }
        bh_run_since(s, job, s->now_ms);
    }
}

static void commit(struct bh_sched *s, struct moving *m, enum bh_evict_for why, uint32_t line)
{
    uint32_t jobs[MOVERS_MAX], classes[MOVERS_MAX], n = 0;
    bh_shelf_rollback(&s->shelf, m->base);
    say_moves(s, m, why, line == BH_NONE ? 0 : s->gangs.at[s->lines.at[line].heap.at[0]].id);
    for (uint32_t i = 0; i < m->n; i++) {
        if (!is_moved(&m->at[i]))
            continue;
        jobs[n] = s->owners.at[m->at[i].hold].job;
        classes[n] = class_of(s, &m->at[i]);
        m->at[n] = m->at[i];
        bh_gang_disown(s, jobs[n], m->at[n].hold);
        bh_room_free(s, m->at[n].hold);
        n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t hold;
        must(bh_shelf_take(&s->shelf, classes[i], &m->at[i].to.spot, &hold, NULL) >= 0);
        bh_gang_add(s, jobs[i], &m->at[i].to, hold, false);
    }
    for (size_t i = 0; line != BH_NONE && i < s->try_places.n; i++) {
        const struct bh_place *p = &s->try_places.at[i];
        const struct bh_shape *shape = &s->shapes.at[s->lines.at[line].shape];
        must(bh_shelf_take(&s->shelf, shape->roles[p->role].class_, &p->spot, &s->try_holds.at[i], NULL) >=
             0);
    }
    /* What is left of their room beside the job is not free before they are gone. */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t hold;
        if (bh_shelf_take(&s->shelf, classes[i], &m->at[i].from.spot, &hold, NULL) < 0)
            hold = BH_NONE;
        bh_left_add(s, jobs[i], hold, m->at[i].from.spot.node);
    }
    if (line != BH_NONE)
        bh_cycle_start(s, line);
}

/* ---- for a job ---- */

/* Members that may move, the cheapest first; as many as are looked at. */
struct choice {
    uint32_t hold[HOLDS_MAX];
    uint64_t price[HOLDS_MAX];
    uint32_t n;
};

static bool is_cheaper(const struct bh_sched *s, const struct choice *c, uint32_t i, uint64_t price,
                       uint32_t hold)
{
    if (price != c->price[i])
        return price < c->price[i];
    const uint32_t a = bh_hold_milli(s, hold), b = bh_hold_milli(s, c->hold[i]);
    return a != b ? a < b : hold < c->hold[i];
}

static void choose(const struct bh_sched *s, struct choice *c, uint32_t hold, uint64_t price)
{
    uint32_t i = c->n;
    while (i && is_cheaper(s, c, i - 1, price, hold))
        i--;
    if (i == HOLDS_MAX)
        return;
    c->n += c->n < HOLDS_MAX;
    for (uint32_t k = c->n - 1; k > i; k--) {
        c->hold[k] = c->hold[k - 1];
        c->price[k] = c->price[k - 1];
    }
    c->hold[i] = hold;
    c->price[i] = price;
}

/* On a node of a model that the job could use? */
static bool is_in_the_way(const struct bh_sched *s, const struct bh_shape *shape, uint32_t hold)
{
    const struct bh_shelf_node *n = &s->shelf.nodes.at[s->shelf.holds.at[hold].node];
    return n->n_gpus && (shape->models >> n->model & 1);
}

static void list_movable(struct bh_sched *s, const struct bh_shape *shape, struct choice *c)
{
    for (size_t i = 0; i < s->briefs.n; i++) {
        const struct bh_gang *g = bh_gang_at(s, s->briefs.at[i].job);
        if (!(s->shapes.at[s->briefs.at[i].shape].can & BH_CAN_MOVE))
            continue;
        const uint64_t price = bh_gang_price(s, g, BH_RUNG_REQUEUE);
        for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next)
            if (may_move(s, h, BH_CAN_MOVE) && is_in_the_way(s, shape, h))
                choose(s, c, h, price);
    }
    bh_sched_step(s, s->briefs.n / 16 + 1);
}

static void begin(struct bh_sched *s, struct moving *m)
{
    m->n = 0;
    m->base = bh_shelf_mark(&s->shelf);
}

/* With all of m off their places the job is placed; each has its own place back beside it, or finds another. */
static bool settle(struct bh_sched *s, struct moving *m, struct bh_line *l)
{
    if (!bh_gang_place(s, &s->shapes.at[l->shape]) || !job_may(s, l))
        return false;
    bool moves = false;
    for (uint32_t i = m->n; i-- > 0;) {
        uint32_t hold;
        if (bh_shelf_take(&s->shelf, class_of(s, &m->at[i]), &m->at[i].from.spot, &hold, NULL) >= 0)
            continue;
        if (!put_anywhere(s, m, &m->at[i]))
            return false;
        moves = true;
    }
    return moves && movers_may(s, m);
}

/* It alone, in this way on this node. */
static bool try_way(struct bh_sched *s, struct moving *m, struct bh_line *l, uint32_t hold, uint32_t node,
                    uint32_t way)
{
    bh_shelf_rollback(&s->shelf, m->base);
    begin(s, m);
    take_off(s, m, hold);
    return put_on(s, m, &m->at[0], node, way) && bh_gang_place(s, &s->shapes.at[l->shape]) && job_may(s, l) &&
           movers_may(s, m);
}

/* One of them alone; every place it could have, where the job would take the only one. */
static bool move_one(struct bh_sched *s, struct moving *m, uint32_t line, uint32_t hold)
{
    struct bh_line *l = &s->lines.at[line];
    begin(s, m);
    take_off(s, m, hold);
    const struct bh_mark off = bh_shelf_mark(&s->shelf);
    const bool helps = bh_gang_place(s, &s->shapes.at[l->shape]);
    bh_shelf_rollback(&s->shelf, off);
    bool done = helps && settle(s, m, l);
    for (uint32_t node = 0; helps && !done && node < s->shelf.nodes.n && s->steps_left; node++)
        for (uint32_t way = 0; !done && way < ways_on(s, &m->at[0], node); way++)
            done = try_way(s, m, l, hold, node, way);
    if (done)
        commit(s, m, BH_FOR_JOB, line);
    else
        bh_shelf_rollback(&s->shelf, m->base);
    return done;
}

/* All of a node, and of more nodes as long as the job does not fit. */
static bool move_nodes(struct bh_sched *s, struct moving *m, uint32_t line, const struct choice *c,
                       uint32_t from)
{
    struct bh_line *l = &s->lines.at[line];
    bool fits = false;
    begin(s, m);
    for (uint32_t i = from; i < c->n && !fits && s->steps_left; i++) {
        const uint32_t node = s->shelf.holds.at[c->hold[i]].node;
        if (s->shelf.holds.at[c->hold[i]].state != BH_HOLD_TAKEN)
            continue;
        for (uint32_t k = 0; k < c->n && m->n < MOVERS_MAX; k++)
            if (s->shelf.holds.at[c->hold[k]].state == BH_HOLD_TAKEN &&
                s->shelf.holds.at[c->hold[k]].node == node)
                take_off(s, m, c->hold[k]);
        const struct bh_mark mark = bh_shelf_mark(&s->shelf);
        fits = bh_gang_place(s, &s->shapes.at[l->shape]);
        bh_shelf_rollback(&s->shelf, mark);
        if (m->n == MOVERS_MAX)
            break;
    }
    if (fits && settle(s, m, l)) {
        commit(s, m, BH_FOR_JOB, line);
        return true;
    }
    bh_shelf_rollback(&s->shelf, m->base);
    return false;
}

bool bh_move_hopeful(const struct bh_sched *s, const struct bh_line *l)
{
    const struct bh_shape *shape = &s->shapes.at[l->shape];
    uint64_t idle = 0;
    if (!s->n_movable || l->stuck != BH_STUCK_ROOM || l->parked != BH_NONE || !shape->least.at[BH_RES_GPU])
        return false;
    for (uint32_t i = 0; i < s->shelf.n_models; i++)
        idle += shape->models >> i & 1 ? s->shelf.models[i].milli_all - s->shelf.models[i].milli_used : 0;
    return idle >= shape->least.at[BH_RES_GPU];
}

bool bh_move(struct bh_sched *s, uint32_t line)
{
    struct bh_line *l = &s->lines.at[line];
    const struct bh_shape *shape = &s->shapes.at[l->shape];
    const struct bh_charge charge = {.queue = l->queue,
                                     .firm = shape->firm,
                                     .band = (enum bh_priority)l->band,
                                     .started_ms = s->now_ms,
                                     .amount = shape->least};
    struct bh_queue_reason why;
    struct choice c = {.n = 0};
    struct moving m;
    if (!bh_move_hopeful(s, l) || !bh_queue_may_start(&s->queues, &charge, &why))
        return false;
    list_movable(s, shape, &c);
    for (uint32_t i = 0; i < c.n && s->steps_left; i++)
        if (move_one(s, &m, line, c.hold[i]))
            return true;
    for (uint32_t i = 0; i < c.n && s->steps_left; i++)
        if (move_nodes(s, &m, line, &c, i))
            return true;
    return false;
}

/* ---- off what is drained ---- */

static bool is_drained(const struct bh_sched *s, uint32_t hold)
{
    const struct bh_hold *h = &s->shelf.holds.at[hold];
    const struct bh_shelf_node *n = &s->shelf.nodes.at[h->node];
    bool drained = n->health == BH_HEALTH_DRAIN;
    for (uint32_t left = h->gpus; left && !drained; left &= left - 1)
        drained = s->shelf.gpus.at[n->first_gpu + (uint32_t)__builtin_ctz(left)].health == BH_HEALTH_DRAIN;
    return drained;
}

static bool is_draining(const struct bh_sched *s, uint32_t node)
{
    const struct bh_shelf_node *n = &s->shelf.nodes.at[node];
    bool drains = n->health == BH_HEALTH_DRAIN;
    for (uint32_t i = 0; i < n->n_gpus && !drains; i++)
        drains = s->shelf.gpus.at[n->first_gpu + i].health == BH_HEALTH_DRAIN;
    return drains;
}

/* Members of the job that are to be moved: those on what is drained, or all of them. */
static bool take_members(struct bh_sched *s, struct moving *m, uint32_t job, bool whole)
{
    const struct bh_gang *g = bh_gang_at(s, job);
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        if (s->owners.at[h].extra || (!whole && !is_drained(s, h)))
            continue;
        if (m->n == MOVERS_MAX)
            return false;
        take_off(s, m, h);
    }
    return true;
}

/* Those members elsewhere, as near to the others as they are. */
static bool move_members(struct bh_sched *s, struct moving *m, uint32_t job)
{
    begin(s, m);
    bool ok = take_members(s, m, job, false);
    for (uint32_t i = 0; i < m->n && ok; i++)
        ok = put_anywhere(s, m, &m->at[i]);
    if (ok && movers_may(s, m)) {
        commit(s, m, BH_FOR_DRAIN, BH_NONE);
        return true;
    }
    bh_shelf_rollback(&s->shelf, m->base);
    return false;
}

/* All of it in another domain. Who keeps its place does not move. */
static bool move_whole(struct bh_sched *s, struct moving *m, uint32_t job)
{
    begin(s, m);
    bool ok = !s->gangs.at[job].extra && take_members(s, m, job, true) &&
              bh_gang_place(s, bh_shape_of(s, bh_gang_at(s, job)));
    for (uint32_t i = 0; i < m->n && ok; i++) {
        size_t k = 0; /* the next place of its role that nobody has */
        while (k < s->try_places.n && s->try_places.at[k].role != m->at[i].from.role)
            k++;
        ok = k < s->try_places.n;
        if (!ok)
            break;
        m->at[i].to = s->try_places.at[k];
        s->try_places.at[k] = s->try_places.at[--s->try_places.n];
        ok = !is_moved(&m->at[i]) || is_clear(s, m, &m->at[i], &m->at[i].to.spot);
    }
    if (ok && movers_may(s, m)) {
        commit(s, m, BH_FOR_DRAIN, BH_NONE);
        return true;
    }
    bh_shelf_rollback(&s->shelf, m->base);
    return false;
}

/* A member above the minimum is given up. */
static void narrow(struct bh_sched *s, uint32_t job, uint32_t hold)
{
    const struct bh_place place = bh_hold_place(s, hold);
    struct bh_decision *d = bh_decision_add(s, BH_DECIDE_EVICT, job);
    d->rung = BH_RUNG_NARROW;
    d->why = BH_FOR_DRAIN;
    bh_decision_place(s, d, &place);
    s->stats.narrowings++;
    bh_extra_unpaid(s, job, hold);
    bh_gang_disown(s, job, hold);
    bh_left_add(s, job, hold, place.spot.node);
}

static void drain_node(struct bh_sched *s, uint32_t node)
{
    struct moving m;
    for (uint32_t h = s->shelf.nodes.at[node].first_hold, next; h != BH_NONE && s->steps_left; h = next) {
        const uint32_t job = s->owners.at[h].job;
        next = s->shelf.holds.at[h].next;
        bh_sched_step(s, 1);
        if (job == BH_NONE || s->shelf.holds.at[h].state != BH_HOLD_TAKEN || !is_drained(s, h))
            continue;
        if (s->owners.at[h].extra && s->gangs.at[job].state == BH_GANG_RUNS) {
            narrow(s, job, h);
            continue;
        }
        if (may_move(s, h, BH_CAN_MOVE | BH_CAN_REQUEUE) &&
            (move_members(s, &m, job) || move_whole(s, &m, job)))
            next = s->shelf.nodes.at[node].first_hold; /* others of the job may have stood here */
    }
}

void bh_move_drained(struct bh_sched *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->draining.n; i++) {
        const uint32_t node = s->draining.at[i];
        bool again = false;
        for (size_t k = 0; k < kept && !again; k++)
            again = s->draining.at[k] == node;
        if (again || !is_draining(s, node))
            continue;
        s->draining.at[kept++] = node;
        drain_node(s, node);
    }
    s->draining.n = kept;
}
