/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reclaim_victim.c - who could go for a job, one after the other.
 *
 * First members of elastic gangs above their minimum. Then whole jobs: from the queue that is most saturated,
 * level by level, where what was released so far in this search counts as gone; in a queue the lowest priority,
 * then those who leave room for a whole member of the job (so that few go rather than many), then whom the
 * cheapest rung that could be enough costs least, then who would lose least, then the youngest. Queues that are
 * within what is theirs are not looked at, nor is anything that must not be interrupted. Whether all those who
 * really go may go together is for queue_reclaim.h to say.
 */
#include "core/sched/reclaim.h"

/* ---- a queue's victims in order, sorted as far as somebody asked ---- */

bool bh_gang_past_min_run(const struct bh_sched *s, const struct bh_gang *g)
{
    /* At the very moment it started it is safe in any case: at one moment nobody goes twice. */
    const uint64_t min_ms = g->min_run_ms ? g->min_run_ms : 1;
    return s->now_ms >= g->since_ms && s->now_ms - g->since_ms >= min_ms;
}

static bool may_go(const struct bh_sched *s, const struct bh_gang *g)
{
    return g->state == BH_GANG_RUNS && !s->shapes.at[g->shape].firm && bh_gang_past_min_run(s, g);
}

/* What is lost when it goes by the last rung that it has. */
static uint64_t loses(const struct bh_sched *s, const struct bh_gang *g)
{
    const struct bh_shape *shape = &s->shapes.at[g->shape];
    const enum bh_rung last = shape->can & BH_CAN_REQUEUE ? BH_RUNG_REQUEUE : BH_RUNG_KILL;
    return bh_wide_scale(shape->least.at[BH_RES_GPU], bh_gang_lost_ms(s, g, last), 1);
}

/*
 * ... by the cheapest that could be enough. A pause leaves the memory where it is, so that is of no use to who wants
 * all of a GPU. Elastic gangs are not parked as long as they have more than their minimum; that may change within a
 * cycle, and the order must not.
 */
static uint64_t costs(const struct bh_sched *s, const struct bh_gang *g, uint64_t most, bool pauses)
{
    const struct bh_shape *shape = &s->shapes.at[g->shape];
    if (shape->elastic || !(shape->can & (BH_CAN_PAUSE | BH_CAN_SUSPEND)))
        return most;
    if (pauses && bh_shape_parks(shape, BH_RUNG_PAUSE))
        return 0;
    if (!bh_shape_parks(shape, BH_RUNG_SUSPEND))
        return most;
    const uint64_t suspend =
        bh_wide_scale(shape->least.at[BH_RES_GPU], bh_gang_lost_ms(s, g, BH_RUNG_SUSPEND), 1);
    return suspend < most || !(shape->can & BH_CAN_REQUEUE) ? suspend : most;
}

bool bh_victim_before(const struct bh_sched *s, uint32_t x, uint32_t y, bool pauses)
{
    const struct bh_gang *a = &s->gangs.at[x], *b = &s->gangs.at[y];
    if (a->priority != b->priority)
        return a->priority < b->priority;
    const uint64_t la = loses(s, a), lb = loses(s, b);
    const uint64_t ca = costs(s, a, la, pauses), cb = costs(s, b, lb, pauses);
    if (ca != cb)
        return ca < cb;
    if (la != lb)
        return la < lb;
    return a->since_ms != b->since_ms ? a->since_ms > b->since_ms : a->id > b->id;
}

static bool before_whole(const void *s, uint32_t a, uint32_t b)
{
    return bh_victim_before(s, a, b, false);
}

static bool before_time(const void *s, uint32_t a, uint32_t b)
{
    return bh_victim_before(s, a, b, true);
}

static bh_before *const befores[2] = {before_whole, before_time};

static void gather(struct bh_sched *s, uint32_t queue, bool pauses)
{
    struct bh_room *q = &s->rooms.at[queue];
    struct bh_ranking *k = &q->rankings[pauses];
    k->cycle = s->stats.cycles;
    k->first = (uint32_t)s->victims.n;
    q->low = INT32_MAX;
    for (uint32_t i = q->first_run; i != BH_NONE; i = s->gangs.at[i].next) {
        const struct bh_gang *g = &s->gangs.at[i];
        if (!s->shapes.at[g->shape].firm && g->priority < q->low)
            q->low = g->priority;
        if (may_go(s, g))
            *bh_vec_push(&s->victims) = i;
    }
    k->n = (uint32_t)s->victims.n - k->first;
    k->sorted = k->went = 0;
    bh_heap_make(&s->victims.at[k->first], k->n, befores[pauses], s);
    bh_sched_step(s, k->n / 8 + 1);
}

/* The i-th victim of a queue, or BH_NONE. Sorted ones stand at the end, the first of them last. */
uint32_t bh_victim_at(struct bh_sched *s, uint32_t queue, uint32_t i, bool pauses)
{
    struct bh_ranking *k = &s->rooms.at[queue].rankings[pauses];
    if (k->cycle != s->stats.cycles)
        gather(s, queue, pauses);
    uint32_t *at = &s->victims.at[k->first];
    if (i >= k->n)
        return BH_NONE;
    while (k->sorted <= i) {
        const uint32_t left = k->n - ++k->sorted, front = at[0];
        at[0] = at[left];
        at[left] = front;
        bh_heap_sift(at, left, 0, befores[pauses], s);
    }
    return at[k->n - 1 - i];
}

/* ---- is there any hope ---- */

/* Has it more of anything than its fair share; entitled: or than it is entitled to? */
static bool has_too_much(const struct bh_sched *s, const struct bh_queue *q, bool entitled)
{
    for (unsigned r = 0; r < BH_RES_COUNT; r++) {
        if (!(s->queues.config.divided >> r & 1))
            continue;
        if (q->used.at[r] > q->fair.at[r] || (entitled && q->used.at[r] > q->entitled.at[r]))
            return true;
    }
    return false;
}

void bh_reclaim_prepare(struct bh_sched *s)
{
    for (size_t i = 0; i < s->queues.at.n; i++)
        memset(s->rooms.at[i].losers_below, 0, sizeof(s->rooms.at[i].losers_below));
    for (size_t i = s->queues.at.n; i-- > 0;) { /* children come after their parents */
        const struct bh_queue *q = &s->queues.at.at[i];
        struct bh_room *room = &s->rooms.at[i];
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t below =
                q->first_child == BH_QUEUE_NONE ? room->n_runs != 0 : room->losers_below[k];
            room->losers[k] = below && has_too_much(s, q, k) ? below : 0;
            if (i)
                s->rooms.at[q->parent].losers_below[k] += room->losers[k];
        }
    }
}

/* May this queue have so much more, without anybody below it going? */
static bool may_grow(const struct bh_sched *s, const struct bh_queue *q, const struct bh_resources *more)
{
    for (unsigned r = 0; r < BH_RES_COUNT; r++) {
        const uint64_t then = q->used.at[r] + more->at[r];
        if (more->at[r] &&
            (((s->queues.config.divided >> r & 1) && then > q->fair.at[r]) || then > q->ceiling.at[r]))
            return false;
    }
    return true;
}

uint32_t bh_search_scope(const struct bh_sched *s, uint32_t leaf, const struct bh_resources *more)
{
    const struct bh_queue *all = s->queues.at.at;
    const uint32_t entitled = bh_queue_within(&all[leaf], more);
    bool any = false;
    uint32_t i = leaf;
    for (; all[i].depth && may_grow(s, &all[i], more); i = all[i].parent)
        any |= s->rooms.at[all[i].parent].losers_below[entitled] > s->rooms.at[i].losers[entitled];
    return any ? i : BH_NONE;
}

bool bh_search_any(const struct bh_sched *s, uint32_t leaf)
{
    const struct bh_queue *all = s->queues.at.at;
    bool any = false;
    for (uint32_t i = leaf; all[i].depth && !any; i = all[i].parent)
        any = s->rooms.at[all[i].parent].losers_below[1] > s->rooms.at[i].losers[1];
    return any;
}

bool bh_reclaim_hopeful(const struct bh_sched *s, const struct bh_line *l)
{
    return (s->rooms.at[l->queue].n_runs && s->rooms.at[l->queue].low < l->turn.priority) ||
           s->rooms.at[l->queue].n_extra ||
           bh_search_scope(s, l->queue, &s->shapes.at[l->shape].least) != BH_NONE;
}

/* ---- which queues ---- */

static bool counts(const struct bh_sched *s, const struct bh_search *f, unsigned r)
{
    return (s->queues.config.divided >> r & 1) && f->taker.amount.at[r];
}

/* Is there something in it that is more than its own? */
static bool over(const struct bh_sched *s, const struct bh_search *f, uint32_t queue)
{
    const struct bh_queue *q = &s->queues.at.at[queue];
    for (unsigned r = 0; r < BH_RES_COUNT; r++) {
        if (!counts(s, f, r))
            continue;
        const uint64_t own =
            f->entitled && q->entitled.at[r] < q->fair.at[r] ? q->entitled.at[r] : q->fair.at[r];
        if (q->used.at[r] > own)
            return true;
    }
    return false;
}

static bool could_lose(const struct bh_sched *s, const struct bh_search *f, uint32_t queue)
{
    const struct bh_queue *q = &s->queues.at.at[queue];
    if (q->first_child == BH_QUEUE_NONE &&
        (!s->rooms.at[queue].n_runs || (q->serves && !f->serves) || queue == f->taker.queue))
        return false;
    return over(s, f, queue);
}

static bool fuller(const struct bh_room *a, const struct bh_room *b)
{
    return bh_wide_mul(a->num, b->den) > bh_wide_mul(b->num, a->den);
}

/* What it has over what it should have, in the resource where that is most, with those gone. */
static void saturate(struct bh_sched *s, uint32_t queue)
{
    const struct bh_queue *q = &s->queues.at.at[queue];
    struct bh_room *room = &s->rooms.at[queue];
    room->num = 0;
    room->den = 1;
    for (unsigned r = 0; r < BH_RES_COUNT; r++) {
        if (!(s->queues.config.divided >> r & 1) || q->used.at[r] <= room->gone.at[r])
            continue;
        const struct bh_room part = {.num = q->fair.at[r] ? q->used.at[r] - room->gone.at[r] : 1,
                                     .den = q->fair.at[r]};
        if (fuller(&part, room)) {
            room->num = part.num;
            room->den = part.den;
        }
    }
}

static void enter(struct bh_sched *s, const struct bh_search *f, uint32_t queue, bool open)
{
    struct bh_room *q = &s->rooms.at[queue];
    const struct bh_ranking *k = &q->rankings[f->pauses];
    q->search = s->search;
    q->cursor[0] = q->cursor[1] = k->cycle == s->stats.cycles ? k->went : 0;
    q->open = q->could = open;
    memset(&q->gone, 0, sizeof(q->gone));
    saturate(s, queue);
}

void bh_search_open(struct bh_sched *s, struct bh_search *f)
{
    const struct bh_queue *all = s->queues.at.at;
    s->search++;
    f->at_elastic = 0;
    f->at_hold = f->walk = BH_NONE;
    f->looked = 0;
    /* What is on the taker's own path need not have too much; only what is beside it. */
    enter(s, f, f->taker.queue, f->own);
    for (uint32_t i = f->taker.queue; i != f->scope; i = all[i].parent)
        enter(s, f, all[i].parent, true);
    for (uint32_t i = f->scope + 1; f->others && i < s->queues.at.n;
         i++) { /* children come after their parents */
        const struct bh_room *up = &s->rooms.at[all[i].parent];
        if (s->rooms.at[i].search != s->search && up->search == s->search && up->open)
            enter(s, f, i, could_lose(s, f, i));
    }
    bh_sched_step(s, s->queues.at.n / 16 + 1);
}

/* ---- one after the other ---- */

static bool is_left_out(const struct bh_search *f, uint32_t job, uint32_t hold)
{
    for (uint32_t i = 0; i < f->n_left_out; i++) {
        if (f->left_out[i].job == job && f->left_out[i].hold == hold)
            return true;
    }
    return false;
}

static bool is_open(const struct bh_sched *s, uint32_t queue)
{
    return s->rooms.at[queue].search == s->search && s->rooms.at[queue].open;
}

/* Members above the minimum; those of a slice stay together. */
static bool extra_may_go(const struct bh_sched *s, const struct bh_gang *g, const struct bh_owner *o)
{
    return g->state == BH_GANG_RUNS && o->extra && o->since_ms < s->now_ms &&
           !s->shapes.at[g->shape].roles[o->role].slice;
}

bool bh_search_takes(const struct bh_sched *s, const struct bh_search *f, uint32_t job, uint32_t hold)
{
    const struct bh_gang *g = &s->gangs.at[job];
    const struct bh_room *q = &s->rooms.at[g->queue];
    if (q->search != s->search || !q->could || is_left_out(f, job, hold))
        return false;
    if (hold != BH_NONE)
        return extra_may_go(s, g, &s->owners.at[hold]);
    return may_go(s, g) && (g->queue != f->taker.queue || g->priority < f->priority);
}

static bool next_elastic(struct bh_sched *s, struct bh_search *f, uint32_t *ret_job, uint32_t *ret_hold)
{
    for (; f->at_elastic < s->elastic.n; f->at_elastic++, f->at_hold = BH_NONE) {
        const uint32_t job = s->elastic.at[f->at_elastic];
        const struct bh_gang *g = bh_gang_at(s, job);
        if (g->state != BH_GANG_RUNS || !g->extra || !is_open(s, g->queue) ||
            !(bh_shape_of(s, g)->models & f->models))
            continue;
        for (uint32_t h = f->at_hold == BH_NONE ? g->first_hold : s->owners.at[f->at_hold].next; h != BH_NONE;
             h = s->owners.at[h].next) {
            const struct bh_owner *o = &s->owners.at[h];
            f->at_hold = h;
            if (!extra_may_go(s, g, o) || is_left_out(f, job, h))
                continue;
            *ret_job = job;
            *ret_hold = h;
            return true;
        }
    }
    return false;
}

/* The most saturated child that is open, the older one of equals; BH_NONE: there is none. */
static uint32_t fullest_child(const struct bh_sched *s, uint32_t queue)
{
    uint32_t best = BH_NONE;
    for (uint32_t c = s->queues.at.at[queue].first_child; c != BH_QUEUE_NONE;
         c = s->queues.at.at[c].next_sibling) {
        if (is_open(s, c) && (best == BH_NONE || fuller(&s->rooms.at[c], &s->rooms.at[best])))
            best = c;
    }
    return best;
}

/* The leaf to take from next, or BH_NONE. */
static uint32_t fullest_leaf(struct bh_sched *s, uint32_t scope)
{
    uint32_t at = scope;
    while (s->rooms.at[scope].open && s->queues.at.at[at].first_child != BH_QUEUE_NONE) {
        const uint32_t child = fullest_child(s, at);
        if (child == BH_NONE)
            s->rooms.at[at].open = false;
        at = child == BH_NONE ? scope : child;
    }
    return s->rooms.at[scope].open ? at : BH_NONE;
}

/* GPUs of a node that are free, or had by somebody who could go in any search; looked at once in a cycle. */
static uint32_t prospect(struct bh_sched *s, uint32_t node)
{
    struct bh_prospect *p = &s->prospects.at[node];
    const struct bh_shelf_node *n = &s->shelf.nodes.at[node];
    if (p->cycle == s->stats.cycles)
        return p->gpus;
    p->cycle = s->stats.cycles;
    p->gpus = 0;
    for (uint32_t i = 0; i < n->n_gpus && i < BH_NODE_GPUS; i++)
        p->gpus |= (uint32_t)(n->open[i] == BH_GPU_MILLI) << i;
    for (uint32_t h = n->first_hold; h != BH_NONE; h = s->shelf.holds.at[h].next) {
        const struct bh_owner *o = &s->owners.at[h];
        if (o->job != BH_NONE && (o->extra || may_go(s, &s->gangs.at[o->job])))
            p->gpus |= s->shelf.holds.at[h].gpus;
    }
    return p->gpus;
}

/*
 * Could it be of use that this job goes? Not where even then no node has enough whole GPUs. One of the taker's own
 * queue leaves it a part of its share, wherever it is.
 */
static bool of_use(struct bh_sched *s, const struct bh_search *f, const struct bh_gang *g)
{
    if (g->queue == f->taker.queue)
        return true;
    if (!(bh_shape_of(s, g)->models & f->models))
        return false;
    if (!f->per_node)
        return true;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        const struct bh_hold *hold = &s->shelf.holds.at[h];
        if (hold->state != BH_HOLD_FREE && bh_bits(prospect(s, hold->node)) >= f->per_node)
            return true; /* a free one was released in this search */
    }
    return false;
}

/* Does one like this leave room for a member, by the amounts? */
static bool leaves_enough(const struct bh_request *v, const struct bh_request *r)
{
    if (r->form == BH_FORM_CPU)
        return v->cpu_milli >= r->cpu_milli && v->mem_mib >= r->mem_mib;
    if (r->form == BH_FORM_MIG)
        return v->form == BH_FORM_WHOLE || (v->form == BH_FORM_MIG && v->mig_profile == r->mig_profile);
    return v->n_gpus >= r->n_gpus && v->gpu_milli >= r->gpu_milli;
}

static bool is_enough(const struct bh_sched *s, const struct bh_search *f, const struct bh_gang *g)
{
    const struct bh_shape *victim = bh_shape_of(s, g);
    for (uint32_t i = 0; i < victim->n_roles; i++) {
        for (uint32_t k = 0; k < f->shape->n_roles; k++) {
            if (leaves_enough(&s->requests.at.at[victim->roles[i].class_],
                              &s->requests.at.at[f->shape->roles[k].class_]))
                return true;
        }
    }
    return false;
}

/* The next of a leaf, of those that are enough or of the others, and where the cursor stands then. */
static uint32_t look_on(struct bh_sched *s, const struct bh_search *f, uint32_t leaf, bool enough)
{
    uint32_t *cursor = &s->rooms.at[leaf].cursor[!enough];
    for (uint32_t job; (job = bh_victim_at(s, leaf, *cursor, f->pauses)) != BH_NONE; ++*cursor) {
        const struct bh_gang *g = bh_gang_at(s, job);
        if (leaf == f->taker.queue && g->priority >= f->priority)
            return BH_NONE;
        if (g->state == BH_GANG_RUNS && is_enough(s, f, g) == enough && !is_left_out(f, job, BH_NONE) &&
            of_use(s, f, g))
            return job;
    }
    return BH_NONE;
}

/* The first of a leaf that has not gone, whatever its use. */
static uint32_t first_of(struct bh_sched *s, const struct bh_search *f, uint32_t leaf)
{
    struct bh_ranking *k = &s->rooms.at[leaf].rankings[f->pauses];
    uint32_t job = bh_victim_at(s, leaf, 0, f->pauses); /* lists them, where that was not done */
    if (k->went)
        job = bh_victim_at(s, leaf, k->went, f->pauses);
    while (job != BH_NONE && s->gangs.at[job].state != BH_GANG_RUNS)
        job = bh_victim_at(s, leaf, ++k->went, f->pauses);
    return job;
}

/* The next of a leaf; BH_NONE: no more. */
static uint32_t next_of(struct bh_sched *s, const struct bh_search *f, uint32_t leaf)
{
    const uint32_t first = first_of(s, f, leaf);
    if (first == BH_NONE)
        return BH_NONE;
    const uint32_t one = look_on(s, f, leaf, true);
    bool enough = one != BH_NONE && s->gangs.at[one].priority == s->gangs.at[first].priority;
    const uint32_t other = enough ? BH_NONE : look_on(s, f, leaf, false);
    if (!enough)
        enough =
            one != BH_NONE && (other == BH_NONE || s->gangs.at[one].priority <= s->gangs.at[other].priority);
    if (one == BH_NONE && other == BH_NONE)
        return BH_NONE;
    s->rooms.at[leaf].cursor[!enough]++;
    return enough ? one : other;
}

bool bh_search_next(struct bh_sched *s, struct bh_search *f, uint32_t *ret_job, uint32_t *ret_hold)
{
    if (next_elastic(s, f, ret_job, ret_hold))
        return true;
    for (uint32_t leaf; (leaf = fullest_leaf(s, f->scope)) != BH_NONE;) {
        const uint32_t job = next_of(s, f, leaf);
        if (job == BH_NONE) {
            s->rooms.at[leaf].open = false;
            continue;
        }
        *ret_job = job;
        *ret_hold = BH_NONE;
        const struct bh_resources *least = &bh_shape_of(s, bh_gang_at(s, job))->least;
        for (uint32_t i = leaf;; i = s->queues.at.at[i].parent) {
            bh_resources_add(&s->rooms.at[i].gone, least, 1);
            saturate(s, i);
            if (i == f->scope)
                return true;
        }
    }
    return false;
}
