/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reclaim_node.c - who could go on one node.
 *
 * The first few in order are often enough. Where they are not, because what must be free together is spread over
 * many nodes, releasing hundreds more to see which node empties first would be a waste: the nodes of those who could go
 * are looked at one by one instead, in that order.
 */
#include "core/sched/reclaim.h"

enum { LOOK_MAX = 1024, OWN_MAX = 16 };

bool bh_search_next_node(struct bh_sched *s, struct bh_search *f, uint32_t *ret)
{
    for (;;) {
        while (f->walk != BH_NONE) {
            const uint32_t node = s->shelf.holds.at[f->walk].node;
            f->walk = f->walk_all ? s->owners.at[f->walk].next : BH_NONE;
            if (s->prospects.at[node].search == s->search)
                continue;
            s->prospects.at[node].search = s->search;
            *ret = node;
            return true;
        }
        uint32_t job, hold;
        if (f->looked++ >= LOOK_MAX || !bh_search_next(s, f, &job, &hold))
            return false;
        f->walk_all = hold == BH_NONE;
        f->walk = f->walk_all ? s->gangs.at[job].first_hold : hold;
    }
}

static bool is_listed(const struct bh_sched *s, size_t from, uint32_t job)
{
    for (size_t i = from; i < s->here.n; i++) {
        if (s->here.at[i].job == job)
            return true;
    }
    return false;
}

/* In the order of victims: members above a minimum, then as in a queue. */
static bool before(const struct bh_sched *s, const struct bh_search *f, const struct bh_here *a,
                   const struct bh_here *b)
{
    const bool x = a->hold != BH_NONE, y = b->hold != BH_NONE;
    return x != y ? x : bh_victim_before(s, a->job, b->job, f->pauses);
}

static void list(struct bh_sched *s, const struct bh_search *f, size_t from, uint32_t job, uint32_t hold)
{
    const struct bh_here what = {job, hold};
    size_t i = s->here.n;
    (void)bh_vec_push(&s->here);
    for (; i > from && before(s, f, &what, &s->here.at[i - 1]); i--)
        s->here.at[i] = s->here.at[i - 1];
    s->here.at[i] = what;
}

/* With all that was listed gone: how many members find room on the node? */
static uint32_t room_for(struct bh_sched *s, const struct bh_search *f, uint32_t node, uint32_t gpus)
{
    const struct bh_request *r = &s->requests.at.at[f->shape->roles[0].class_];
    const struct bh_shelf_node *n = &s->shelf.nodes.at[node];
    for (uint32_t i = 0; i < n->n_gpus && i < BH_NODE_GPUS; i++)
        gpus |= (uint32_t)(n->open[i] == BH_GPU_MILLI) << i;
    return r->form == BH_FORM_WHOLE ? bh_bits(gpus) / r->n_gpus : 1;
}

uint32_t bh_search_here(struct bh_sched *s, const struct bh_search *f, uint32_t node)
{
    const size_t from = s->here.n;
    uint32_t gpus = 0;
    for (uint32_t h = s->shelf.nodes.at[node].first_hold; h != BH_NONE; h = s->shelf.holds.at[h].next) {
        const struct bh_owner *o = &s->owners.at[h];
        if (o->job == BH_NONE || !bh_search_takes(s, f, o->job, o->extra ? h : BH_NONE))
            continue;
        gpus |= s->shelf.holds.at[h].gpus;
        if (o->extra || !is_listed(s, 0, o->job))
            list(s, f, from, o->job, o->extra ? h : BH_NONE);
    }
    const uint32_t pieces = room_for(s, f, node, gpus);
    if (!pieces)
        s->here.n = from;
    bh_sched_step(s, 4);
    return pieces;
}

void bh_search_own_rest(struct bh_sched *s, const struct bh_search *f)
{
    const size_t from = s->here.n;
    uint32_t job;
    for (uint32_t i = 0; i < OWN_MAX && (job = bh_victim_at(s, f->taker.queue, i, f->pauses)) != BH_NONE;
         i++) {
        if (bh_search_takes(s, f, job, BH_NONE) && !is_listed(s, 0, job))
            list(s, f, from, job, BH_NONE);
    }
}
