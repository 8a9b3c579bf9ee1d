/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang.c - all of a gang, or nothing.
 *
 * Members are taken on the shelf one by one, below a mark. The domains that could hold all of it are tried from the
 * lowest level up and from the fullest to the emptiest, so that a gang goes where it spoils least. Members of a
 * slice go into one domain each; the same order holds for these.
 *
 * Of several roles the largest is placed first. Where that fails among few nodes, every way of laying out the members is
 * tried, up to a bound (docs/scheduling.md says what is not looked at).
 */
#include "core/sched/sched_inside.h"

enum { SEARCH_NODES = 64, SEARCH_MEMBERS = 64, SEARCH_STEPS = 4096 };

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
bool bh_gang_pick(struct bh_sched *s, uint32_t class_, uint32_t domain, struct bh_spot *ret)
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
        if (!bh_gang_pick(s, class_, domain, &spot) || !take(s, class_, role, &spot))
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

/* ---- roles together ---- */

/* Of one member, or of one slice where these stay together. */
static uint64_t size_of(const struct bh_sched *s, const struct bh_gang_role *role)
{
    return (uint64_t)bh_request_milli(&s->requests.at.at[role->class_]) * (role->slice ? role->slice : 1);
}

/* The largest first; of equal ones as they were given. */
static void order_roles(const struct bh_sched *s, const struct bh_shape *shape, uint8_t *ret)
{
    for (uint8_t i = 0; i < shape->n_roles; i++) {
        uint8_t k = i;
        for (; k && size_of(s, &shape->roles[ret[k - 1]]) < size_of(s, &shape->roles[i]); k--)
            ret[k] = ret[k - 1];
        ret[k] = i;
    }
}

/* Every way, on the nodes where one of its members could be. */
struct search {
    struct bh_sched *s;
    const struct bh_shape *shape;
    const uint8_t *order;
    uint32_t nodes[SEARCH_NODES], n;
    uint32_t *steps; /* left */
};

/* The k-th role has `left` members to place, on the nodes from `from` on: its members are alike, so one order is enough. */
static bool search_from(struct search *f, uint32_t k, uint32_t left, uint32_t from)
{
    struct bh_sched *s = f->s;
    while (!left && ++k < f->shape->n_roles) {
        left = f->shape->roles[f->order[k]].min;
        from = 0;
    }
    if (!left)
        return true;
    const uint32_t role = f->order[k], class_ = f->shape->roles[role].class_;
    const struct bh_request *r = &s->requests.at.at[class_];
    for (uint32_t i = from; i < f->n && *f->steps && s->steps_left; i++) {
        --*f->steps;
        if (!bh_shelf_usable(&s->shelf, r, f->nodes[i]))
            continue;
        const struct bh_mark mark = bh_shelf_mark(&s->shelf);
        const size_t before = s->try_places.n;
        const struct bh_spot spot = bh_score_spot(s->score, r, f->nodes[i]);
        if (take(s, class_, role, &spot) && search_from(f, k, left - 1, i)) {
            bh_shelf_commit(&s->shelf, mark);
            return true;
        }
        bh_shelf_rollback(&s->shelf, mark);
        forget_after(s, before);
    }
    return false;
}

/* False: there are too many. */
static bool search_node(struct search *f, uint32_t node)
{
    bool usable = false;
    for (uint32_t i = 0; i < f->shape->n_roles && !usable; i++)
        usable = bh_shelf_usable(&f->s->shelf, &f->s->requests.at.at[f->shape->roles[i].class_], node);
    if (!usable)
        return true;
    if (f->n == SEARCH_NODES)
        return false;
    f->nodes[f->n++] = node;
    return true;
}

static bool search_in(struct bh_sched *s, const struct bh_shape *shape, const uint8_t *order, uint32_t domain,
                      uint32_t *steps)
{
    struct search f = {.s = s, .shape = shape, .order = order, .steps = steps};
    const struct bh_shelf *shelf = &s->shelf;
    bool few = shape->n_roles > 1 && shape->members <= SEARCH_MEMBERS;
    for (uint32_t i = 0; i < shape->n_roles; i++)
        few &= !shape->roles[i].slice;
    for (uint32_t n = 0; few && domain == BH_NONE && n < shelf->nodes.n; n++)
        few = search_node(&f, n);
    for (uint32_t d = domain; few && d != BH_NONE; d = bh_shelf_domain_next(shelf, domain, d, true))
        for (uint32_t n = shelf->domains.at[d].first_node; few && n != BH_NONE; n = shelf->nodes.at[n].next)
            few = search_node(&f, n);
    return few && search_from(&f, 0, shape->roles[order[0]].min, 0);
}

static void reverse(struct bh_sched *s, size_t from, size_t to)
{
    for (; from + 1 < to; from++, to--) {
        const struct bh_place place = s->try_places.at[from];
        const uint32_t hold = s->try_holds.at[from];
        s->try_places.at[from] = s->try_places.at[to - 1];
        s->try_holds.at[from] = s->try_holds.at[to - 1];
        s->try_places.at[to - 1] = place;
        s->try_holds.at[to - 1] = hold;
    }
}

/* Role 0 first again, as BH_SCHED_FOUND has it: a host hands back after a restart what it was told. */
static void in_order_given(struct bh_sched *s, const struct bh_shape *shape)
{
    size_t at = 0;
    for (uint32_t role = 0; role < shape->n_roles; role++) {
        size_t from = at;
        while (shape->roles[role].min && s->try_places.at[from].role != role)
            from++;
        const size_t to = from + shape->roles[role].min;
        if (from != at) {
            reverse(s, at, from);
            reverse(s, from, to);
            reverse(s, at, to);
        }
        at += shape->roles[role].min;
    }
}

/* All of it below one domain; nothing when that fails. */
static bool place_in(struct bh_sched *s, const struct bh_shape *shape, uint32_t domain, uint32_t *steps)
{
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    uint8_t order[BH_ROLES_MAX] = {0};
    bool ok = true;
    order_roles(s, shape, order);
    forget_after(s, 0);
    for (uint32_t i = 0; i < shape->n_roles && ok; i++)
        ok = place_role(s, shape, order[i], shape->roles[order[i]].min, domain);
    if (ok) {
        bh_shelf_commit(&s->shelf, mark);
    } else {
        bh_shelf_rollback(&s->shelf, mark);
        forget_after(s, 0);
        ok = search_in(s, shape, order, domain, steps);
    }
    if (ok)
        in_order_given(s, shape);
    return ok;
}

bool bh_gang_place(struct bh_sched *s, const struct bh_shape *shape)
{
    uint32_t steps = SEARCH_STEPS;
    for (uint8_t level = shape->prefer; level <= shape->within && level < BH_LEVELS; level++) {
        const uint32_t n = candidates(s, shape, NULL, BH_NONE, level, s->domains.at);
        bh_sched_step(s, s->shelf.domains.n / 64 + 1);
        for (uint32_t i = 0; i < n && s->steps_left; i++) {
            if (place_in(s, shape, s->domains.at[i], &steps))
                return true;
        }
    }
    return shape->within == BH_LEVEL_ANY && place_in(s, shape, BH_NONE, &steps);
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

uint32_t bh_member_domain(const struct bh_sched *s, const struct bh_gang *g, uint32_t role, uint32_t node)
{
    const struct bh_gang_role *r = &bh_shape_of(s, g)->roles[role];
    if (r->slice)
        return bh_shelf_domain_of(&s->shelf, node, (enum bh_level)r->slice_level);
    if (bh_shape_of(s, g)->within < BH_LEVELS)
        return bh_shelf_domain_of(&s->shelf, node, (enum bh_level)bh_shape_of(s, g)->within);
    return BH_NONE;
}

/* A new place for one that lost its own. */
static bool repair_hold(struct bh_sched *s, const struct bh_gang *g, uint32_t hold)
{
    const uint32_t role = s->owners.at[hold].role;
    return place_members(s, bh_shape_of(s, g), role, 1,
                         bh_member_domain(s, g, role, s->shelf.holds.at[hold].node));
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
