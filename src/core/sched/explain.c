/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - looks at a waiting job from the outside in: itself, its queue, its turn, the fleet. */
#include "core/sched/explain.h"

#include "core/sched/sched_inside.h"

const char *const bh_wait_names[BH_WAITS] = {
    [BH_WAIT_NOT] = "not waiting",
    [BH_WAIT_MISCONFIGURED] = "misconfigured",
    [BH_WAIT_EXCEEDS] = "too large",
    [BH_WAIT_LIMIT] = "over quota",
    [BH_WAIT_FIRM] = "over quota",
    [BH_WAIT_TURN] = "waits its turn",
    [BH_WAIT_ROOM] = "no room",
    [BH_WAIT_SHAPE] = "no room in one piece",
    [BH_WAIT_WITHHELD] = "free and not for it",
    [BH_WAIT_RESERVED] = "reserved",
    [BH_WAIT_VICTIMS] = "minimum run time",
    [BH_WAIT_LEAVING] = "starts when others left",
};

struct look {
    const struct bh_sched *s;
    const struct bh_shelf *shelf;
    const struct bh_gang *g;
    const struct bh_shape *shape;
    uint64_t now_ms;
    struct bh_verdict *v;
};

static const struct bh_request *request_of(const struct look *l, uint32_t role)
{
    return &l->shelf->requests->at.at[l->shape->roles[role].class_];
}

/* ---- the job itself, on a fleet without anybody ---- */

/* Healthy or not: would a node of this kind do for one member? */
static bool suits(const struct bh_shelf_node *n, const struct bh_request *r)
{
    return !(r->features & ~n->features) && (!r->pools || (r->pools & n->pools)) &&
           n->cpu_all >= r->cpu_milli && n->mem_all >= r->mem_mib &&
           (r->form == BH_FORM_CPU || (n->n_gpus >= r->n_gpus && bh_request_takes(r, n->model)));
}

static bool suits_anywhere(const struct look *l, const struct bh_request *r)
{
    for (size_t i = 0; i < l->shelf->nodes.n; i++)
        if (suits(&l->shelf->nodes.at[i], r))
            return true;
    return false;
}

/*
 * Each role by itself, when all is empty. Of instances as many to a GPU as there can be at all: what is called too large
 * here is too large.
 */
static bool fits_empty(const struct look *l)
{
    const uint64_t now = 1;
    bool ok = true;
    for (uint32_t i = 0; i < l->shape->n_roles && ok; i++) {
        struct bh_shape one = *l->shape;
        struct bh_shadow where;
        one.roles[0] = l->shape->roles[i];
        one.n_roles = 1;
        if (request_of(l, i)->form == BH_FORM_MIG)
            one.roles[0].min =
                one.roles[0].min / BH_MIG_SLICES_MAX + (one.roles[0].min % BH_MIG_SLICES_MAX != 0);
        ok = bh_shadow_find(l->shelf, NULL, &now, 1, &one, &where);
    }
    return ok;
}

/* ---- its turn ---- */

/* A job of a line as if it were the first there. */
static struct bh_turn turn_of(const struct bh_sched *s, const struct bh_gang *g)
{
    struct bh_turn t = bh_line_turn(s, &s->lines.at[g->line]);
    t.deadline_ms = g->deadline_ms;
    t.runtime_ms = g->runtime_ms;
    t.priority = g->priority;
    t.user_rank = s->ranks.at[g->user];
    t.submit_ms = g->submit_ms;
    t.id = g->id;
    return t;
}

enum { MEMOS = 1024 };

/* Where the path of a queue and the job's own part: the other's side, and the depth of both. */
struct fork {
    uint32_t other;
    uint8_t depth;
    bool by_priority; /* the queue's model */
};

/* The job's turn, and the others as seen from it. */
struct mine {
    struct bh_turn turn;
    struct bh_turn_side at[BH_QUEUE_DEPTH + 1]; /* by depth, on its path */
    struct fork *forks;                         /* by queue */
    struct memo {
        uint64_t what; /* 0: nothing yet */
        int8_t before;
        uint8_t key;
    } memos[MEMOS];
    struct bh_turn last; /* of those who come before it; id 0: nobody does */
    enum bh_turn_key key;
};

/* Parents come before their children. */
static void lay_forks(const struct look *l, struct mine *m)
{
    const struct bh_queues *t = &l->s->queues;
    m->turn = turn_of(l->s, l->g);
    m->forks = bh_alloc(t->at.n, sizeof(*m->forks));
    for (uint32_t q = m->turn.queue;; q = bh_queue_get(t, q)->parent) {
        struct bh_turn_side *at = &m->at[bh_queue_get(t, q)->depth];
        bh_turn_side(t, &m->turn, q, at);
        bh_turn_ready(t, at);
        if (!bh_queue_get(t, q)->depth)
            break;
    }
    for (uint32_t q = 1; q < t->at.n; q++) {
        const struct bh_queue *queue = bh_queue_get(t, q), *above = bh_queue_get(t, queue->parent);
        const bool on_path = m->at[above->depth].queue == above;
        m->forks[q] =
            on_path ? (struct fork){.other = q, .depth = (uint8_t)queue->depth} : m->forks[queue->parent];
        m->forks[q].by_priority = queue->config.model == BH_QUOTA_PRIORITY;
    }
}

/* Work of one shape without a deadline, below the same child of a common queue, compares alike: asked once. */
static int compare(const struct look *l, struct mine *m, const struct bh_line *line,
                   enum bh_turn_key *ret_key)
{
    const struct bh_queues *t = &l->s->queues;
    const struct fork *fork = &m->forks[line->queue];
    const uint64_t what = (uint64_t)fork->other << 32 | (uint64_t)line->shape << 4 |
                          (uint64_t)line->band << 1 | fork->by_priority;
    struct memo *memo = &m->memos[(what * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
    const bool alike = line->turn.deadline_ms == BH_TURN_NO_DEADLINE && line->queue != m->turn.queue;
    if (alike && memo->what == what) {
        *ret_key = (enum bh_turn_key)memo->key;
        return memo->before;
    }
    const struct bh_turn other = bh_line_turn(l->s, line);
    struct bh_turn_side x;
    bh_turn_side(t, &other, fork->other, &x);
    const int c = bh_turn_sides(t, &x, &m->at[fork->depth], l->now_ms, ret_key);
    if (alike)
        *memo = (struct memo){what, (int8_t)c, (uint8_t)*ret_key};
    return c;
}

/* It comes before the job. Is it the last to do so? Of two queues the nearer one counts. */
static void see_ahead(const struct look *l, struct mine *m, const struct bh_turn *other, enum bh_turn_key key)
{
    const uint32_t depth = m->forks[other->queue].depth;
    l->v->ahead++;
    if (m->last.id) {
        const uint32_t was = m->forks[m->last.queue].depth;
        const bool own = other->queue == m->turn.queue, was_own = m->last.queue == m->turn.queue;
        enum bh_turn_key unused;
        if (own != was_own ? was_own
            : depth != was ? depth < was
                           : bh_turn_compare(&l->s->queues, other, &m->last, l->now_ms, &unused) < 0)
            return;
    }
    m->last = *other;
    m->key = key;
}

/* Of its own line: who does not come before it has nobody behind it in the heap who does. */
static void see_line(const struct look *l, struct mine *m, size_t i)
{
    const struct bh_line *line = &l->s->lines.at[l->g->line];
    if (i >= line->heap.n)
        return;
    const struct bh_turn other = turn_of(l->s, &l->s->gangs.at[line->heap.at[i]]);
    enum bh_turn_key key;
    if (bh_turn_compare(&l->s->queues, &other, &m->turn, l->now_ms, &key) >= 0)
        return;
    see_ahead(l, m, &other, key);
    see_line(l, m, 2 * i + 1);
    see_line(l, m, 2 * i + 2);
}

static void see_turn(const struct look *l)
{
    const struct bh_sched *s = l->s;
    struct mine m = {0};
    lay_forks(l, &m);
    see_line(l, &m, 0);
    for (uint32_t i = 0; i < s->lines.n; i++) { /* as they lie in memory: there may be tens of thousands */
        const struct bh_line *line = &s->lines.at[i];
        enum bh_turn_key key;
        if (i == l->g->line || !line->heap.n || compare(l, &m, line, &key) >= 0)
            continue;
        const struct bh_turn other = bh_line_turn(s, line);
        see_ahead(l, &m, &other, key);
    }
    if (m.last.id) {
        uint32_t x = m.turn.queue, y = m.last.queue;
        bh_queue_fork(&s->queues, &x, &y);
        l->v->next_job = m.last.id;
        l->v->key = m.key;
        l->v->share = bh_queue_dominant(&s->queues, bh_queue_get(&s->queues, x), m.turn.amount);
        l->v->next_share = bh_queue_dominant(&s->queues, bh_queue_get(&s->queues, y), m.last.amount);
    }
    free(m.forks);
}

/* ---- who has it ---- */

static uint64_t end_of(const struct look *l, const struct bh_gang *g)
{
    const uint64_t end = g->runtime_ms ? g->since_ms + g->runtime_ms : 0;
    return end > l->now_ms ? end : BH_NEVER_MS;
}

/* Is the node in the place that is looked at, a domain or a node? */
static bool is_near(const struct look *l, uint32_t node)
{
    if (l->v->level < BH_LEVELS)
        return bh_shelf_domain_of(l->shelf, node, (enum bh_level)l->v->level) == l->v->domain;
    return node == l->v->domain;
}

/* GPU thousandths that a job has in the place. */
static uint64_t milli_of(const struct look *l, const struct bh_gang *g)
{
    uint64_t milli = 0;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = bh_sched_owner(l->s, h)->next) {
        if (is_near(l, l->shelf->holds.at[h].node))
            milli += bh_hold_milli(l->s, h);
    }
    return milli;
}

static bool has_more(const struct bh_holder *a, const struct bh_holder *b)
{
    if (a->part != b->part)
        return a->part > b->part;
    return a->milli != b->milli ? a->milli > b->milli : a->job < b->job;
}

static void see_holder(const struct look *l, struct bh_holder h)
{
    struct bh_verdict *v = l->v;
    uint32_t i = v->n_holders;
    while (i && has_more(&h, &v->holders[i - 1]))
        i--;
    if (v->n_holders == BH_HOLDERS_MAX) {
        v->n_more++;
        v->more_milli += i == BH_HOLDERS_MAX ? h.milli : v->holders[BH_HOLDERS_MAX - 1].milli;
    }
    if (i == BH_HOLDERS_MAX)
        return;
    v->n_holders += v->n_holders < BH_HOLDERS_MAX;
    memmove(&v->holders[i + 1], &v->holders[i], (v->n_holders - 1 - i) * sizeof(h));
    v->holders[i] = h;
}

static bool has_room(const struct bh_gang *g)
{
    return g->state == BH_GANG_RUNS || g->state == BH_GANG_BOUND || g->state == BH_GANG_LEAVES ||
           g->state == BH_GANG_ENDS;
}

/* What a job has in the place of what there is too little of, where that is not GPUs. */
static uint64_t part_of(const struct look *l, const struct bh_gang *g)
{
    uint64_t part = 0;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = bh_sched_owner(l->s, h)->next) {
        const struct bh_request *r = &l->shelf->requests->at.at[l->shelf->holds.at[h].class_];
        if (is_near(l, l->shelf->holds.at[h].node))
            part += l->v->hinder == BH_HINDER_CPU ? r->cpu_milli : r->mem_mib;
    }
    return part;
}

static void see_gang(const struct look *l, const struct bh_gang *g)
{
    const bool parts =
        l->v->tier == BH_WAIT_WITHHELD && (l->v->hinder == BH_HINDER_CPU || l->v->hinder == BH_HINDER_MEMORY);
    if (!has_room(g) || g == l->g)
        return;
    const struct bh_holder h = {.job = g->id,
                                .milli = milli_of(l, g),
                                .end_ms = end_of(l, g),
                                .part = parts ? part_of(l, g) : 0,
                                .queue = g->queue};
    if (parts ? h.part : h.milli || l->v->tier == BH_WAIT_WITHHELD)
        see_holder(l, h);
}

/* Very many: most have less than the last of those that are named, and are only counted. */
static void see_briefs(const struct look *l, const bool *queues, const bool *shapes)
{
    struct bh_verdict *v = l->v;
    uint64_t n = 0, milli = 0, id = UINT64_MAX;
    uint32_t least = 1;
    for (const struct bh_brief *b = l->s->briefs.at; b < l->s->briefs.at + l->s->briefs.n; b++) {
        if (!(queues ? queues[b->queue] : shapes[b->shape]))
            continue;
        if (b->milli < least || (b->milli == least && b->id > id)) {
            n += b->milli != 0;
            milli += b->milli;
            continue;
        }
        const struct bh_gang *g = bh_gang_at(l->s, b->job);
        see_holder(l, (struct bh_holder){
                          .job = g->id, .milli = b->milli, .end_ms = end_of(l, g), .queue = g->queue});
        if (v->n_holders == BH_HOLDERS_MAX) {
            least = (uint32_t)v->holders[BH_HOLDERS_MAX - 1].milli;
            id = v->holders[BH_HOLDERS_MAX - 1].job;
        }
    }
    v->n_more += (uint32_t)n;
    v->more_milli += milli;
}

/* Everybody on a node, each at the first of its holds in the place. */
static void see_node(const struct look *l, uint32_t node)
{
    for (uint32_t h = l->shelf->nodes.at[node].first_hold; h != BH_NONE; h = l->shelf->holds.at[h].next) {
        const uint32_t job = bh_sched_owner(l->s, h)->job;
        if (job >= bh_sched_slots(l->s)) /* on its way out */
            continue;
        const struct bh_gang *g = bh_sched_slot(l->s, job);
        uint32_t first = g->first_hold;
        while (first != BH_NONE && !is_near(l, l->shelf->holds.at[first].node))
            first = bh_sched_owner(l->s, first)->next;
        if (first == h)
            see_gang(l, g);
    }
}

static void see_queue(const struct look *l, uint32_t queue)
{
    const struct bh_queues *t = &l->s->queues;
    bool *below = bh_alloc(t->at.n, sizeof(*below));
    for (uint32_t q = queue; q < t->at.n; q++) /* children come after their parents */
        below[q] = q == queue || (bh_queue_get(t, q)->depth && below[bh_queue_get(t, q)->parent]);
    see_briefs(l, below, NULL);
    free(below);
}

/* Everybody who could be where it could. */
static void see_all(const struct look *l)
{
    const struct bh_sched *s = l->s;
    bool *rivals = bh_alloc(s->shapes.n, sizeof(*rivals));
    for (size_t i = 0; i < s->shapes.n; i++)
        rivals[i] = s->shapes.at[i].models & l->shape->models;
    see_briefs(l, NULL, rivals);
    free(rivals);
}

/* In the place with most room already; for work of many nodes that may be anywhere, all over the fleet. */
static void see_place(const struct look *l)
{
    const struct bh_verdict *v = l->v;
    if (v->level >= BH_LEVEL_NODE && v->domain != BH_NONE &&
        (l->shape->members == 1 || v->tier == BH_WAIT_WITHHELD)) {
        see_node(l, v->domain);
    } else if (v->level < BH_LEVELS) {
        for (uint32_t d = v->domain; d != BH_NONE; d = bh_shelf_domain_next(l->shelf, v->domain, d, true))
            for (uint32_t n = l->shelf->domains.at[d].first_node; n != BH_NONE;
                 n = l->shelf->nodes.at[n].next)
                see_node(l, n);
    } else {
        see_all(l);
    }
}

/* ---- victims that are still safe ---- */

/*
 * When the first of those who may go has run for its minimum, or 0: nobody is safe only for that. Whether the queues
 * would let it go is not asked here, since it depends on who else goes.
 */
static uint64_t safe_until(const struct look *l)
{
    const struct bh_queues *t = &l->s->queues;
    bool *over = bh_alloc(t->at.n, sizeof(*over));
    uint64_t soonest = BH_NEVER_MS;
    for (uint32_t q = 0; q < t->at.n; q++)
        over[q] = q != l->g->queue &&
                  bh_ratio_cmp(bh_queue_saturation(t, bh_queue_get(t, q)), (struct bh_ratio){1, 1}) > 0;
    for (size_t i = 0; i < l->s->briefs.n; i++) {
        const struct bh_brief *b = &l->s->briefs.at[i];
        if (b->safe_ms <= l->now_ms || b->safe_ms >= soonest || (b->queue != l->g->queue && !over[b->queue]))
            continue;
        const struct bh_gang *g = bh_gang_at(l->s, b->job);
        if (g->state == BH_GANG_RUNS && (over[b->queue] || g->priority < l->g->priority))
            soonest = b->safe_ms;
    }
    free(over);
    return soonest == BH_NEVER_MS ? 0 : soonest;
}

/* ---- all of it ---- */

static enum bh_wait tier_of_room(const struct look *l)
{
    const uint64_t until = safe_until(l);
    bh_explain_room(l->s, l->g, l->v);
    if (until && l->v->quota.why == BH_QUEUE_FREE) {
        l->v->until_ms = until;
        return BH_WAIT_VICTIMS;
    }
    const enum bh_wait tier = bh_explain_tier(l->v);
    if (tier == BH_WAIT_WITHHELD && l->v->hinder_node != BH_NONE) {
        l->v->level = BH_LEVEL_NODE;
        l->v->domain = l->v->hinder_node;
    }
    return tier;
}

/*
 * Is so much kept for others that it could not start if nobody ran? Then it is no matter of room, whatever is free.
 * ret: of the queue where that is so.
 */
static bool is_kept(const struct look *l, struct bh_queue_reason *ret)
{
    const struct bh_queues *t = &l->s->queues;
    for (uint32_t r = 0; r < BH_RES_COUNT; r++) {
        const uint64_t asked = l->shape->least.at[r];
        uint64_t held = asked;
        for (uint32_t i = l->g->queue; asked; i = bh_queue_get(t, i)->parent) {
            const struct bh_queue *q = bh_queue_get(t, i);
            const bool more = held > q->kept.at[r];
            if (more && held > q->ceiling.at[r]) {
                *ret = (struct bh_queue_reason){.why = BH_QUEUE_KEPT,
                                                .queue = i,
                                                .res = (enum bh_res)r,
                                                .used = q->used.at[r],
                                                .asked = asked,
                                                .bound = q->ceiling.at[r],
                                                .kept = held - asked};
                return true;
            }
            held = more ? held : q->kept.at[r];
            if (!q->depth)
                break;
            const struct bh_queue *up = bh_queue_get(t, q->parent);
            for (uint32_t k = up->first_child; k != BH_QUEUE_NONE; k = bh_queue_get(t, k)->next_sibling)
                held += k == i ? 0 : bh_queue_get(t, k)->kept.at[r];
        }
    }
    return false;
}

static enum bh_wait tier_of_line(const struct look *l, const struct bh_reserve *reserve)
{
    const struct bh_line *line = &l->s->lines.at[l->g->line];
    const struct bh_reservation *kept = reserve ? bh_reserve_before(reserve, l->g->line) : NULL;
    const struct bh_charge charge = {.queue = l->g->queue,
                                     .firm = l->shape->firm,
                                     .band = (enum bh_priority)line->band,
                                     .started_ms = l->now_ms,
                                     .amount = l->shape->least};
    /* Not what the line remembers: where its shape is known to have no room, quota was not looked at. */
    if (!bh_queue_may_start(&l->s->queues, &charge, &l->v->quota) && l->v->quota.why != BH_QUEUE_TOTAL)
        return l->v->quota.why == BH_QUEUE_FIRM ? BH_WAIT_FIRM : BH_WAIT_LIMIT;
    if (l->v->quota.why == BH_QUEUE_TOTAL && is_kept(l, &l->v->quota))
        return BH_WAIT_LIMIT;
    l->v->quota =
        line->why.why > BH_QUEUE_FIRM ? line->why : (struct bh_queue_reason){.queue = BH_QUEUE_NONE};
    if (bh_sched_first(l->s, line) != l->g || line->stuck == BH_STUCK_NOT)
        return BH_WAIT_TURN;
    if (line->stuck == BH_STUCK_VETO) {
        l->v->reserved_for = kept ? kept->job : 0;
        l->v->until_ms = kept ? kept->shadow.start_ms : BH_NEVER_MS;
        return BH_WAIT_RESERVED;
    }
    return tier_of_room(l);
}

bool bh_explain(const struct bh_sched *s, const struct bh_reserve *reserve, uint64_t job, uint64_t now_ms,
                struct bh_verdict *ret)
{
    const struct bh_gang *g = bh_sched_job(s, job);
    *ret = (struct bh_verdict){
        .until_ms = BH_NEVER_MS, .domain = BH_NONE, .level = BH_LEVEL_ANY, .hinder_node = BH_NONE};
    if (!g)
        return false;
    const struct look l = {s, bh_sched_shelf(s), g, bh_sched_shape(s, g), now_ms, ret};
    ret->quota.queue = BH_QUEUE_NONE;
    ret->need = l.shape->least.at[BH_RES_GPU];
    if (g->state != BH_GANG_PENDING) {
        ret->tier = g->state == BH_GANG_BOUND ? BH_WAIT_LEAVING : BH_WAIT_NOT;
        return true;
    }
    see_turn(&l);
    for (uint32_t i = 0; i < l.shape->n_roles; i++)
        if (!suits_anywhere(&l, request_of(&l, i))) {
            ret->role = i;
            ret->tier = BH_WAIT_MISCONFIGURED;
            return true;
        }
    if (!fits_empty(&l)) {
        bh_explain_room(s, g, ret);
        ret->tier = BH_WAIT_EXCEEDS;
        return true;
    }
    ret->tier = tier_of_line(&l, reserve);
    if (ret->tier == BH_WAIT_LIMIT || ret->tier == BH_WAIT_FIRM)
        see_queue(&l, ret->quota.queue);
    else if (ret->tier != BH_WAIT_TURN && ret->tier != BH_WAIT_RESERVED)
        see_place(&l);
    return true;
}
