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

/* Does it come before the job, and after the one that was the last to do so? */
static void see_other(const struct look *l, const struct bh_turn *mine, const struct bh_gang *g,
                      struct bh_turn *last)
{
    const struct bh_queues *t = &l->s->queues;
    const struct bh_turn other = turn_of(l->s, g);
    enum bh_turn_key key, unused;
    if (g == l->g || bh_turn_compare(t, &other, mine, l->now_ms, &key) >= 0)
        return;
    l->v->ahead++;
    if (l->v->next_job && bh_turn_compare(t, &other, last, l->now_ms, &unused) < 0)
        return;
    l->v->next_job = g->id;
    l->v->key = key;
    *last = other;
}

static void see_turn(const struct look *l)
{
    const struct bh_sched *s = l->s;
    const struct bh_turn mine = turn_of(s, l->g);
    struct bh_turn last = {0};
    for (uint32_t i = 0; i < s->lines.n; i++) {
        const struct bh_line *line = &s->lines.at[i];
        const size_t n = i == l->g->line ? line->heap.n : line->heap.n != 0;
        for (size_t k = 0; k < n; k++)
            see_other(l, &mine, &s->gangs.at[line->heap.at[k]], &last);
    }
    if (!l->v->next_job)
        return;
    uint32_t a = mine.queue, b = last.queue;
    bh_queue_fork(&s->queues, &a, &b);
    l->v->share = bh_queue_dominant(&s->queues, bh_queue_get(&s->queues, a), mine.amount);
    l->v->next_share = bh_queue_dominant(&s->queues, bh_queue_get(&s->queues, b), last.amount);
}

/* ---- the fleet ---- */

/* Thousandths of GPUs that can be given now, to the largest of its requests. */
static uint64_t open_on(const struct look *l, uint32_t node)
{
    const struct bh_shelf_node *n = &l->shelf->nodes.at[node];
    uint64_t milli = 0;
    if (n->health != BH_HEALTH_OK || !n->n_gpus || !(l->shape->models >> n->model & 1))
        return 0;
    for (uint32_t i = 0; i < n->n_gpus; i++)
        milli += l->shape->least.at[BH_RES_GPU] < BH_GPU_MILLI || n->open[i] == BH_GPU_MILLI ? n->open[i] : 0;
    return milli;
}

static void see_group(const struct look *l, uint64_t milli, uint8_t level, uint32_t id)
{
    if (milli <= l->v->group && l->v->level == level)
        return;
    l->v->group = milli;
    l->v->level = level;
    l->v->domain = id;
}

/* What is free for it, and the most of it in one place: a domain where the job is bound to one, else a node. */
static void see_room(const struct look *l)
{
    struct bh_verdict *v = l->v;
    const bool nodes = l->shape->within == BH_LEVEL_ANY;
    uint64_t *below = nodes ? NULL : bh_alloc(l->shelf->domains.n + 1, sizeof(*below));
    v->need = l->shape->least.at[BH_RES_GPU];
    v->level = BH_LEVEL_ANY;
    for (uint32_t i = 0; i < l->shelf->nodes.n; i++) {
        const uint64_t milli = open_on(l, i);
        v->free += milli;
        if (nodes)
            see_group(l, milli, BH_LEVEL_NODE, i);
        const uint32_t d = nodes ? BH_NONE : bh_shelf_domain_of(l->shelf, i, (enum bh_level)l->shape->within);
        if (d != BH_NONE)
            below[d] += milli;
    }
    for (uint32_t d = 0; !nodes && d < l->shelf->domains.n; d++)
        if (l->shelf->domains.at[d].level == l->shape->within)
            see_group(l, below[d], l->shape->within, d);
    free(below);
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

/* GPU thousandths that a job has; of those in the place, or of all. */
static uint64_t milli_of(const struct look *l, const struct bh_gang *g, bool near)
{
    uint64_t milli = 0;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = bh_sched_owner(l->s, h)->next) {
        const struct bh_hold *hold = &l->shelf->holds.at[h];
        const struct bh_request *r = &l->shelf->requests->at.at[hold->class_];
        if (!near || is_near(l, hold->node))
            milli += r->form == BH_FORM_MIG ? BH_GPU_MILLI : bh_request_milli(r);
    }
    return milli;
}

static void see_holder(const struct look *l, struct bh_holder h)
{
    struct bh_verdict *v = l->v;
    uint32_t i = v->n_holders;
    while (i && (v->holders[i - 1].milli < h.milli ||
                 (v->holders[i - 1].milli == h.milli && v->holders[i - 1].job > h.job)))
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

static void see_gang(const struct look *l, const struct bh_gang *g, bool near)
{
    const uint64_t milli = has_room(g) && g != l->g ? milli_of(l, g, near) : 0;
    if (milli)
        see_holder(l, (struct bh_holder){g->id, milli, end_of(l, g), g->queue});
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
            see_gang(l, g, true);
    }
}

static void see_queue(const struct look *l, uint32_t queue)
{
    const struct bh_queues *t = &l->s->queues;
    for (size_t i = 0; i < bh_sched_slots(l->s); i++) {
        const struct bh_gang *g = bh_sched_slot(l->s, i);
        uint32_t at = g->queue;
        if (!has_room(g))
            continue;
        while (at != queue && bh_queue_get(t, at)->depth)
            at = bh_queue_get(t, at)->parent;
        if (at == queue)
            see_gang(l, g, false);
    }
}

/* In the place with most room already; for work of many nodes that may be anywhere, all over the fleet. */
static void see_place(const struct look *l)
{
    const struct bh_verdict *v = l->v;
    if (v->level == BH_LEVEL_NODE && l->shape->members == 1) {
        see_node(l, v->domain);
    } else if (v->level < BH_LEVELS) {
        for (uint32_t d = v->domain; d != BH_NONE; d = bh_shelf_domain_next(l->shelf, v->domain, d, true))
            for (uint32_t n = l->shelf->domains.at[d].first_node; n != BH_NONE;
                 n = l->shelf->nodes.at[n].next)
                see_node(l, n);
    } else {
        for (size_t i = 0; i < bh_sched_slots(l->s); i++) {
            const struct bh_gang *g = bh_sched_slot(l->s, i);
            if (g->state != BH_GANG_FREE && (bh_sched_shape(l->s, g)->models & l->shape->models))
                see_gang(l, g, false);
        }
    }
}

/* ---- victims that are still safe ---- */

/*
 * When the first of those who may go has run for its minimum, or 0: nobody is safe only for that. Whether the queues
 * would let it go is not asked here, since it depends on who else goes.
 */
static uint64_t safe_until(const struct look *l)
{
    uint64_t soonest = BH_NEVER_MS;
    for (size_t i = 0; i < bh_sched_slots(l->s); i++) {
        const struct bh_gang *g = bh_sched_slot(l->s, i);
        if (g->state != BH_GANG_RUNS || bh_sched_shape(l->s, g)->firm || !g->min_run_ms)
            continue;
        const uint64_t at = g->since_ms + g->min_run_ms;
        const bool own = g->queue == l->g->queue && g->priority < l->g->priority;
        const struct bh_ratio full =
            bh_queue_saturation(&l->s->queues, bh_queue_get(&l->s->queues, g->queue));
        const bool over = g->queue != l->g->queue && bh_ratio_cmp(full, (struct bh_ratio){1, 1}) > 0;
        if (at > l->now_ms && (own || over) && at < soonest)
            soonest = at;
    }
    return soonest == BH_NEVER_MS ? 0 : soonest;
}

/* ---- all of it ---- */

static enum bh_wait tier_of_room(const struct look *l)
{
    const uint64_t until = safe_until(l);
    see_room(l);
    if (until && l->v->quota.why == BH_QUEUE_FREE) {
        l->v->until_ms = until;
        return BH_WAIT_VICTIMS;
    }
    return l->v->free >= l->v->need && l->v->need ? BH_WAIT_SHAPE : BH_WAIT_ROOM;
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
    l->v->quota =
        line->why.why > BH_QUEUE_FIRM ? line->why : (struct bh_queue_reason){.queue = BH_QUEUE_NONE};
    if (bh_sched_first(l->s, line) != l->g || line->stuck == BH_STUCK_NOT)
        return BH_WAIT_TURN;
    if (line->stuck == BH_STUCK_VETO && kept) {
        l->v->reserved_for = kept->job;
        l->v->until_ms = kept->shadow.start_ms;
        return BH_WAIT_RESERVED;
    }
    return tier_of_room(l);
}

bool bh_explain(const struct bh_sched *s, const struct bh_reserve *reserve, uint64_t job, uint64_t now_ms,
                struct bh_verdict *ret)
{
    const struct bh_gang *g = bh_sched_job(s, job);
    *ret = (struct bh_verdict){.until_ms = BH_NEVER_MS, .domain = BH_NONE, .level = BH_LEVEL_ANY};
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
        see_room(&l);
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
