/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve_fit.c - what a node, a domain, the fleet will have left at a time to come.
 *
 * Room only grows as holds end, so the time is found by halving. A node is worked out from nothing but its size
 * and the holds that are still there then.
 */
#include "core/sched/fleet_inside.h"
#include "core/sched/reserve.h"

struct left {
    uint64_t mem_mib;
    uint32_t cpu_milli, holds;
    uint16_t idle;               /* bit i: nobody is on GPU i */
    uint16_t open[BH_NODE_GPUS]; /* thousandths for shares of the class that is asked about */
    uint32_t mib[BH_NODE_GPUS];
};

/* Members of the gang itself that were laid out before. */
struct laid {
    uint32_t class_;
    uint16_t gpus;
};

/* One look into the future. */
struct view {
    const struct bh_shelf *shelf;
    const uint64_t *end_ms; /* NULL: nobody is there */
    uint64_t at_ms;
    struct laid laid[BH_NODE_GPUS]; /* on the node that is looked at */
    uint32_t n_laid;
};

static const struct bh_request *request_of(const struct view *v, uint32_t class_)
{
    return &v->shelf->requests->at.at[class_];
}

static bool stays(const struct view *v, uint32_t hold)
{
    return v->end_ms[hold] > v->at_ms;
}

static bool strangers(const struct bh_request *a, const struct bh_request *b, uint8_t where)
{
    return a->trust != b->trust && ((bh_strict_of[a->apart] | bh_strict_of[b->apart]) & where);
}

/* ---- one node ---- */

/* One that is there then takes its part; false: and it tolerates no such neighbour. */
static bool take(const struct bh_request *r, const struct bh_request *other, uint32_t gpus, struct left *l)
{
    if (strangers(r, other, BH_STRICT_NODE) || l->cpu_milli < other->cpu_milli || l->mem_mib < other->mem_mib)
        return false;
    l->cpu_milli -= other->cpu_milli;
    l->mem_mib -= other->mem_mib;
    l->holds++;
    l->idle &= (uint16_t)~gpus;
    const bool mixes = other->form == BH_FORM_SHARE && r->form == BH_FORM_SHARE &&
                       other->mechanism == r->mechanism && !(r->kinds & other->avoid) &&
                       !(r->avoid & other->kinds) && !strangers(r, other, BH_STRICT_GPU);
    for (uint32_t left = gpus; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const bool room = mixes && l->open[i] >= other->gpu_milli && l->mib[i] >= other->gpu_mib;
        l->open[i] = room ? (uint16_t)(l->open[i] - other->gpu_milli) : (uint16_t)0;
        l->mib[i] = room ? l->mib[i] - other->gpu_mib : 0;
    }
    return true;
}

/* Does the NVLink domain of the node take it, apart from what stands on the node itself? */
static bool link_takes(const struct view *v, const struct bh_request *r, uint32_t link)
{
    const struct bh_shelf *s = v->shelf;
    if (link == BH_NONE || r->form == BH_FORM_CPU || !v->end_ms ||
        bh_crowd_takes(&s->domains.at[link].crowd, r->trust, bh_strict_of[r->apart] & BH_STRICT_LINK))
        return true;
    for (uint32_t n = s->domains.at[link].first_node; n != BH_NONE; n = s->nodes.at[n].next)
        for (uint32_t h = s->nodes.at[n].first_hold; h != BH_NONE; h = s->holds.at[h].next) {
            const struct bh_request *other = request_of(v, s->holds.at[h].class_);
            if (stays(v, h) && other->form != BH_FORM_CPU && strangers(r, other, BH_STRICT_LINK))
                return false;
        }
    return true;
}

/* False: it may not be there at all. */
static bool look(const struct view *v, const struct bh_request *r, uint32_t node, struct left *l)
{
    const struct bh_shelf *s = v->shelf;
    const struct bh_shelf_node *n = &s->nodes.at[node];
    if (n->health != BH_HEALTH_OK || (r->features & ~n->features) || (r->pools && !(r->pools & n->pools)) ||
        (r->form != BH_FORM_CPU && (n->n_gpus < r->n_gpus || !bh_request_takes(r, n->model))) ||
        !link_takes(v, r, n->link))
        return false;
    *l = (struct left){.mem_mib = n->mem_all, .cpu_milli = n->cpu_all};
    for (uint32_t i = 0; i < n->n_gpus; i++) {
        const struct bh_shelf_gpu *gpu = &s->gpus.at[n->first_gpu + i];
        if (gpu->health != BH_HEALTH_OK)
            continue;
        l->idle |= (uint16_t)(1u << i);
        l->open[i] = BH_GPU_MILLI;
        l->mib[i] = gpu->mib_all;
    }
    for (uint32_t h = v->end_ms ? n->first_hold : BH_NONE; h != BH_NONE; h = s->holds.at[h].next)
        if (stays(v, h) && !take(r, request_of(v, s->holds.at[h].class_), s->holds.at[h].gpus, l))
            return false;
    for (uint32_t i = 0; i < v->n_laid; i++)
        if (!take(r, request_of(v, v->laid[i].class_), v->laid[i].gpus, l))
            return false;
    return true;
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Shares on n_gpus different GPUs each: as many as can be dealt out. */
static uint32_t shares(const struct bh_request *r, const struct left *l)
{
    uint32_t m = 0, slots;
    do {
        slots = 0;
        for (uint32_t i = 0; i < BH_NODE_GPUS; i++) {
            const uint32_t by_mib = r->gpu_mib ? l->mib[i] / r->gpu_mib : BH_GPU_MILLI;
            slots += least(least(l->open[i] / r->gpu_milli, by_mib), m + 1);
        }
        m++;
    } while (slots >= m * r->n_gpus);
    return m - 1;
}

static uint32_t count(const struct bh_shelf_node *n, const struct bh_request *r, const struct left *l)
{
    uint32_t most = UINT32_MAX;
    if (r->form == BH_FORM_WHOLE || r->form == BH_FORM_MIG)
        most = bh_bits(l->idle) / r->n_gpus;
    else if (r->form == BH_FORM_SHARE)
        most = shares(r, l);
    if (r->cpu_milli)
        most = least(most, l->cpu_milli / r->cpu_milli);
    if (r->mem_mib)
        most = least(most, l->mem_mib / r->mem_mib);
    if (n->holds_max)
        most = least(most, n->holds_max > l->holds ? n->holds_max - l->holds : 0);
    return most;
}

uint32_t bh_shadow_room(const struct bh_shelf *s, const uint64_t *end_ms, uint32_t class_, uint32_t node,
                        uint64_t at_ms)
{
    struct view v = {.shelf = s, .end_ms = end_ms, .at_ms = at_ms};
    struct left l;
    return look(&v, request_of(&v, class_), node, &l) ? count(&s->nodes.at[node], request_of(&v, class_), &l)
                                                      : 0;
}

/* ---- many nodes ---- */

/*
 * The room of a node goes to the roles in turn; what one has taken, the next does not have. After a role of
 * shares or instances nothing is worked out for the others: to the later.
 */
static void spread(struct view *v, const struct bh_shape *shape, uint32_t node, uint32_t *need)
{
    v->n_laid = 0;
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        const struct bh_request *r = request_of(v, shape->roles[i].class_);
        struct left l;
        if (!need[i] || shape->roles[i].slice || !look(v, r, node, &l))
            continue;
        const uint32_t n = least(count(&v->shelf->nodes.at[node], r, &l), need[i]);
        need[i] -= n;
        if (n && r->form != BH_FORM_WHOLE)
            return;
        for (uint32_t k = 0; k < n && v->n_laid < BH_NODE_GPUS; k++) {
            struct laid *mine = &v->laid[v->n_laid++];
            *mine = (struct laid){.class_ = shape->roles[i].class_};
            while (bh_bits(mine->gpus) < r->n_gpus) {
                const uint16_t low = (uint16_t)(l.idle & (uint16_t)-l.idle);
                mine->gpus |= low;
                l.idle &= (uint16_t)~low;
            }
        }
    }
}

static bool is_done(const struct bh_shape *shape, const uint32_t *need)
{
    for (uint32_t i = 0; i < shape->n_roles; i++)
        if (need[i])
            return false;
    return true;
}

static void walk(struct view *v, const struct bh_shape *shape, uint32_t top, uint32_t *need)
{
    const struct bh_shelf *s = v->shelf;
    if (top == BH_NONE) {
        for (uint32_t n = 0; n < s->nodes.n && !is_done(shape, need); n++)
            spread(v, shape, n, need);
        return;
    }
    for (uint32_t d = top; d != BH_NONE && !is_done(shape, need); d = bh_shelf_domain_next(s, top, d, true))
        for (uint32_t n = s->domains.at[d].first_node; n != BH_NONE; n = s->nodes.at[n].next)
            spread(v, shape, n, need);
}

/* Is the domain below top, or top itself? */
static bool is_below(const struct bh_shelf *s, uint32_t domain, uint32_t top)
{
    while (domain != BH_NONE && domain != top)
        domain = s->domains.at[domain].parent;
    return domain == top;
}

/* Members that find room in whole slices, each below one domain of the slice's level. */
static bool fits_slices(struct view *v, const struct bh_gang_role *role, uint32_t top)
{
    const struct bh_shelf *s = v->shelf;
    const struct bh_shape one = {.roles = {*role}, .n_roles = 1};
    uint32_t members = 0;
    for (uint32_t d = 0; d < s->domains.n && members < role->min; d++) {
        if (s->domains.at[d].level != role->slice_level || !is_below(s, d, top))
            continue;
        struct bh_shape plain = one;
        uint32_t need = UINT32_MAX / 2;
        plain.roles[0].slice = 0;
        walk(v, &plain, d, &need);
        members += (UINT32_MAX / 2 - need) / role->slice * role->slice;
    }
    return members >= role->min;
}

bool bh_shadow_fits(const struct bh_shelf *s, const uint64_t *end_ms, const struct bh_shape *shape,
                    uint32_t domain, uint64_t at_ms)
{
    struct view v = {.shelf = s, .end_ms = end_ms, .at_ms = at_ms};
    uint32_t need[BH_ROLES_MAX] = {0};
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        if (shape->roles[i].slice && !fits_slices(&v, &shape->roles[i], domain))
            return false;
        need[i] = shape->roles[i].slice ? 0 : shape->roles[i].min;
    }
    walk(&v, shape, domain, need);
    return is_done(shape, need);
}

/* The first of times[0..n) at which it fits in the domain, or n. */
static size_t first_time(const struct bh_shelf *s, const uint64_t *end_ms, const uint64_t *times, size_t n,
                         const struct bh_shape *shape, uint32_t domain)
{
    size_t low = 0, high = n;
    if (!n || !bh_shadow_fits(s, end_ms, shape, domain, times[n - 1]))
        return n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (bh_shadow_fits(s, end_ms, shape, domain, times[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* By its size alone: are there as many GPUs below the domain as it needs, at least? */
static bool is_large(const struct bh_shelf *s, const struct bh_shape *shape, uint32_t domain)
{
    uint64_t milli = 0;
    for (uint32_t i = 0; i < shape->n_roles; i++)
        milli +=
            (uint64_t)shape->roles[i].min * bh_request_milli(&s->requests->at.at[shape->roles[i].class_]);
    return milli <= (uint64_t)s->domains.at[domain].n_gpus * BH_GPU_MILLI;
}

bool bh_shadow_find(const struct bh_shelf *s, const uint64_t *end_ms, const uint64_t *times, size_t n_times,
                    const struct bh_shape *shape, struct bh_shadow *ret)
{
    size_t best = n_times;
    if (shape->within == BH_LEVEL_ANY) {
        best = first_time(s, end_ms, times, n_times, shape, BH_NONE);
        ret->domain = BH_NONE;
    }
    for (uint32_t d = 0; shape->within != BH_LEVEL_ANY && d < s->domains.n; d++) {
        if (s->domains.at[d].level != shape->within || !is_large(s, shape, d))
            continue;
        /* Only an earlier one is better: the times before `best` are looked at. */
        const size_t i = first_time(s, end_ms, times, best, shape, d);
        if (i < best) {
            best = i;
            ret->domain = d;
        }
    }
    if (best == n_times)
        return false;
    ret->start_ms = times[best];
    return true;
}
