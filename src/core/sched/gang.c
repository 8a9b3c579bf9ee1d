/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang.c - all of a gang, or nothing.
 *
 * Members are taken on the shelf one by one, below a mark. The domains that could hold all of it are tried from the
 * lowest level up and from the fullest to the emptiest, so that a gang goes where it spoils least. Members of a
 * slice go into one domain each; the same order holds for these.
 */
#include "core/sched/sched_inside.h"

/* ---- candidates ---- */

/* The fuller one first. */
static bool fuller(const void *context, uint32_t a, uint32_t b)
{
    const struct bh_shelf *s = context;
    const uint32_t x = s->domains.at[a].n_whole, y = s->domains.at[b].n_whole;
    return x != y ? x < y : a < b;
}

/* By counters alone: could n members of this class be in there? */
static bool could_hold(const struct bh_sched *s, const struct bh_gang_role *role, uint32_t domain, uint32_t n)
{
    const struct bh_request *r = &s->requests.at.at[role->class_];
    const struct bh_shelf_domain *d = &s->shelf.domains.at[domain];
    if (r->form != BH_FORM_CPU && r->models && !(d->models & r->models))
        return false;
    if (r->form != BH_FORM_WHOLE)
        return d->n_nodes != 0;
    return d->n_whole >= (uint64_t)r->n_gpus * n && bh_shelf_domain_pieces(&s->shelf, domain, r->n_gpus) >= n;
}

static bool could_hold_all(const struct bh_sched *s, const struct bh_shape *shape, uint32_t domain)
{
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        if (shape->roles[i].min && !could_hold(s, &shape->roles[i], domain, shape->roles[i].min))
            return false;
    }
    return true;
}

/* Domains of a level, below `top` (BH_NONE: all), that could hold it; role NULL: all of the shape. */
static uint32_t candidates(const struct bh_sched *s, const struct bh_shape *shape,
                           const struct bh_gang_role *role, uint32_t top, uint8_t level, uint32_t *ret)
{
    const struct bh_shelf *shelf = &s->shelf;
    uint32_t n = 0;
    for (uint32_t root = top == BH_NONE ? shelf->first_root : top; root != BH_NONE;
         root = top == BH_NONE ? shelf->domains.at[root].next : BH_NONE) {
        for (uint32_t at = root, next; at != BH_NONE; at = next) {
            const bool fits = role ? could_hold(s, role, at, role->slice) : could_hold_all(s, shape, at);
            const uint8_t is = shelf->domains.at[at].level;
            /* What does not fit as a whole has nothing below that fits. */
            next = bh_shelf_domain_next(shelf, root, at, fits && is > level);
            if (fits && is == level)
                ret[n++] = at;
        }
    }
    bh_heap_sort(ret, n, fuller, shelf);
    return n;
}

/* ---- members ---- */

/* The best place below a domain; where that is most of the fleet, the best of all is mostly in it. */
static bool pick_in(struct bh_sched *s, uint32_t class_, uint32_t domain, struct bh_spot *ret)
{
    if (domain == BH_NONE)
        return bh_pick_best(s->pick, class_, ret);
    const struct bh_shelf_domain *d = &s->shelf.domains.at[domain];
    if ((size_t)d->n_nodes * 2 > s->shelf.nodes.n && bh_score_mode(s->score) != BH_SCORE_RANDOM) {
        if (!bh_pick_best(s->pick, class_, ret))
            return false;
        if (bh_shelf_domain_of(&s->shelf, ret->node, (enum bh_level)d->level) == domain)
            return true;
    }
    return bh_pick_within(s->pick, class_, domain, ret);
}

static bool take(struct bh_sched *s, uint32_t class_, uint32_t role, const struct bh_spot *spot)
{
    uint32_t hold;
    bh_sched_step(s, 1);
    if (bh_shelf_take(&s->shelf, class_, spot, &hold, NULL) < 0)
        return false;
    *bh_vec_push(&s->try_places) = (struct bh_place){*spot, role};
    *bh_vec_push(&s->try_holds) = hold;
    return true;
}

static bool place_members(struct bh_sched *s, const struct bh_shape *shape, uint32_t role, uint32_t n,
                          uint32_t domain)
{
    const uint32_t class_ = shape->roles[role].class_;
    struct bh_spot spot;
    for (; n; n--) {
        bh_sched_step(s, 1);
        if (!pick_in(s, class_, domain, &spot) || !take(s, class_, role, &spot))
            return false;
    }
    return true;
}

static void forget_after(struct bh_sched *s, size_t n)
{
    s->try_places.n = n;
    s->try_holds.n = n;
}

/* n members, a slice in each domain as long as that has room. */
static bool place_slices(struct bh_sched *s, const struct bh_shape *shape, uint32_t role, uint32_t n,
                         uint32_t domain)
{
    const struct bh_gang_role *r = &shape->roles[role];
    const uint32_t n_candidates = candidates(s, shape, r, domain, r->slice_level, s->slices.at);
    bh_sched_step(s, s->shelf.domains.n / 64 + 1);
    for (uint32_t i = 0; n && i < n_candidates; i++) {
        while (n && could_hold(s, r, s->slices.at[i], r->slice)) {
            const struct bh_mark mark = bh_shelf_mark(&s->shelf);
            const size_t before = s->try_places.n;
            if (!place_members(s, shape, role, r->slice, s->slices.at[i])) {
                bh_shelf_rollback(&s->shelf, mark);
                forget_after(s, before);
                break;
            }
            bh_shelf_commit(&s->shelf, mark);
            n -= r->slice;
        }
    }
    return !n;
}

static bool place_role(struct bh_sched *s, const struct bh_shape *shape, uint32_t role, uint32_t n,
                       uint32_t domain)
{
    return shape->roles[role].slice ? place_slices(s, shape, role, n, domain)
                                    : place_members(s, shape, role, n, domain);
}

/* All of it below one domain; nothing when that fails. */
static bool place_in(struct bh_sched *s, const struct bh_shape *shape, uint32_t domain)
{
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    forget_after(s, 0);
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        if (place_role(s, shape, i, shape->roles[i].min, domain))
            continue;
        bh_shelf_rollback(&s->shelf, mark);
        forget_after(s, 0);
        return false;
    }
    bh_shelf_commit(&s->shelf, mark);
    return true;
}

bool bh_gang_place(struct bh_sched *s, const struct bh_shape *shape)
{
    for (uint8_t level = shape->prefer; level <= shape->within && level < BH_LEVELS; level++) {
        const uint32_t n = candidates(s, shape, NULL, BH_NONE, level, s->domains.at);
        bh_sched_step(s, s->shelf.domains.n / 64 + 1);
        for (uint32_t i = 0; i < n && s->steps_left; i++) {
            if (place_in(s, shape, s->domains.at[i]))
                return true;
        }
    }
    return shape->within == BH_LEVEL_ANY && place_in(s, shape, BH_NONE);
}

/* ---- a job that has places ---- */

/* A parked member goes where its memory or its image is. */
static bool unpark_hold(struct bh_sched *s, const struct bh_gang *g, const struct bh_hold *left,
                        uint32_t role)
{
    const uint32_t class_ = bh_shape_of(s, g)->roles[role].class_;
    const struct bh_request *r = &s->requests.at.at[class_];
    struct bh_spot spot = {.node = left->node, .gpus = left->gpus};
    if (g->parked == BH_RUNG_SUSPEND) {
        if (!bh_shelf_usable(&s->shelf, r, left->node))
            return false;
        spot = bh_score_spot(s->score, r, left->node);
    }
    return take(s, class_, role, &spot);
}

bool bh_gang_unpark(struct bh_sched *s, const struct bh_gang *g)
{
    forget_after(s, 0);
    s->unit_holds.n = 0;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next)
        *bh_vec_push(&s->unit_holds) = h;
    for (size_t i = 0; i < s->unit_holds.n; i++) {
        const uint32_t h = s->unit_holds.at[i];
        const struct bh_hold left = s->shelf.holds.at[h];
        bh_shelf_free(&s->shelf, h);
        if (!unpark_hold(s, g, &left, s->owners.at[h].role))
            return false;
    }
    return true;
}

/* Where its members must be: the domain that the whole stays in. */
static uint32_t domain_of_gang(const struct bh_sched *s, const struct bh_gang *g)
{
    const uint8_t within = bh_shape_of(s, g)->within;
    return within < BH_LEVELS
               ? bh_shelf_domain_of(&s->shelf, s->shelf.holds.at[g->first_hold].node, (enum bh_level)within)
               : BH_NONE;
}

bool bh_gang_more(struct bh_sched *s, const struct bh_gang *g, uint32_t role)
{
    const struct bh_shape *shape = bh_shape_of(s, g);
    const uint32_t n = shape->roles[role].slice ? shape->roles[role].slice : 1;
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    forget_after(s, 0);
    if (place_role(s, shape, role, n, domain_of_gang(s, g))) {
        bh_shelf_commit(&s->shelf, mark);
        return true;
    }
    bh_shelf_rollback(&s->shelf, mark);
    forget_after(s, 0);
    return false;
}

bool bh_hold_lost(const struct bh_sched *s, uint32_t hold)
{
    const struct bh_hold *h = &s->shelf.holds.at[hold];
    const struct bh_shelf_node *n = &s->shelf.nodes.at[h->node];
    bool lost = n->health == BH_HEALTH_FAILED;
    for (uint32_t left = h->gpus; left && !lost; left &= left - 1)
        lost = s->shelf.gpus.at[n->first_gpu + (uint32_t)__builtin_ctz(left)].health == BH_HEALTH_FAILED;
    return lost;
}

/* A new place for one that lost its own, as near to the others as it was. */
static bool repair_hold(struct bh_sched *s, const struct bh_gang *g, uint32_t hold)
{
    const uint32_t role = s->owners.at[hold].role;
    const struct bh_gang_role *r = &bh_shape_of(s, g)->roles[role];
    const uint32_t node = s->shelf.holds.at[hold].node;
    uint32_t domain = BH_NONE;
    if (r->slice)
        domain = bh_shelf_domain_of(&s->shelf, node, (enum bh_level)r->slice_level);
    else if (bh_shape_of(s, g)->within < BH_LEVELS)
        domain = bh_shelf_domain_of(&s->shelf, node, (enum bh_level)bh_shape_of(s, g)->within);
    return place_members(s, bh_shape_of(s, g), role, 1, domain);
}

bool bh_gang_repair(struct bh_sched *s, const struct bh_gang *g)
{
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    forget_after(s, 0);
    s->unit_holds.n = 0;
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        if (!bh_hold_lost(s, h))
            continue;
        *bh_vec_push(&s->unit_holds) = h;
        if (!repair_hold(s, g, h)) {
            bh_shelf_rollback(&s->shelf, mark);
            forget_after(s, 0);
            return false;
        }
    }
    bh_shelf_commit(&s->shelf, mark);
    return true;
}
