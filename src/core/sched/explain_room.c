/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_room.c - what is free for a waiting job, what is free and not for it, and the most of it in one place.
 *
 * GPUs of another model, pool or kind of node are not counted at all. Of the others those are free for it that it could
 * have now; what is idle there and lies beside somebody it will not share with, or without processors or memory for one
 * more member, is withheld, and by what is said. All by counting: nothing is tried.
 */
#include "core/sched/explain.h"
#include "core/sched/fleet_inside.h"
#include "core/sched/mig.h"
#include "core/sched/sched_inside.h"

const char *const bh_hinder_names[BH_HINDERS] = {
    [BH_HINDER_NOT] = "nothing",           [BH_HINDER_TRUST] = "isolation",
    [BH_HINDER_KINDS] = "kind of sharing", [BH_HINDER_CPU] = "processors",
    [BH_HINDER_MEMORY] = "memory",         [BH_HINDER_GPU_MEMORY] = "GPU memory",
    [BH_HINDER_HOLDS] = "pieces of work",  [BH_HINDER_PARTS] = "its parts together",
};

struct look {
    const struct bh_sched *s;
    const struct bh_shelf *shelf;
    const struct bh_shape *shape;
    struct bh_verdict *v;
    const uint32_t *own;         /* NULL, or by node: so many of it go on there or nowhere */
    uint8_t order[BH_ROLES_MAX]; /* roles, the largest first */
    uint8_t level;               /* of the places that are compared */
    uint64_t withheld[BH_HINDERS], most[BH_HINDERS];
    uint32_t worst[BH_HINDERS]; /* the node where most is withheld by it */
};

/* One role on one node, as things are. */
struct fit {
    uint64_t raw, usable; /* thousandths that are idle; that it could have */
    uint64_t one;         /* ... the most of these on one GPU */
    uint32_t members;     /* of the role that find a place, each role by itself */
    enum bh_hinder hinder;
};

static const struct bh_request *request_of(const struct look *l, uint32_t role)
{
    return &l->shelf->requests->at.at[l->shape->roles[role].class_];
}

static uint64_t milli_of(const struct look *l, uint32_t role)
{
    return l->shape->roles[role].one.at[BH_RES_GPU];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- one node ---- */

/* Would a node of this kind do, whoever is there? */
static bool is_for(const struct bh_request *r, const struct bh_shelf_node *n)
{
    return n->health == BH_HEALTH_OK && !(r->features & ~n->features) &&
           (!r->pools || (r->pools & n->pools)) && n->cpu_all >= r->cpu_milli && n->mem_all >= r->mem_mib &&
           (r->form == BH_FORM_CPU || (n->n_gpus >= r->n_gpus && bh_request_takes(r, n->model)));
}

/* Of so many members those for whom the node has processors, memory and the right; *ret says what there is least of. */
static uint32_t others_of(const struct look *l, const struct bh_request *r, const struct bh_shelf_node *n,
                          uint64_t members, enum bh_hinder *ret)
{
    const struct {
        uint64_t left, each;
        enum bh_hinder is;
    } bounds[] = {
        {n->cpu_free, r->cpu_milli, BH_HINDER_CPU},
        {n->mem_free, r->mem_mib, BH_HINDER_MEMORY},
        {n->holds_max > n->crowd.holds ? n->holds_max - n->crowd.holds : 0, n->holds_max != 0,
         BH_HINDER_HOLDS},
    };
    *ret = BH_HINDER_NOT;
    if (bh_shelf_welcome(l->shelf, r, n) == BH_WELCOME_NO) {
        *ret = BH_HINDER_TRUST;
        return 0;
    }
    for (size_t i = 0; i < BH_COUNT_OF(bounds); i++)
        if (bounds[i].each * members > bounds[i].left) {
            members = bounds[i].left / bounds[i].each;
            *ret = bounds[i].is;
        }
    return (uint32_t)members;
}

/* What a GPU that has room for one more share refuses it for. */
static enum bh_hinder gpu_hinder(const struct bh_request *r, const struct bh_shelf_gpu *gpu)
{
    if (gpu->crowd.holds) {
        if (!bh_crowd_takes(&gpu->crowd, r->trust, bh_strict_of[r->apart] & BH_STRICT_GPU))
            return BH_HINDER_TRUST;
        if ((r->kinds & gpu->avoid) || (r->avoid & gpu->kinds) ||
            (r->form == BH_FORM_SHARE && gpu->mechanism != r->mechanism))
            return BH_HINDER_KINDS;
    }
    return r->form == BH_FORM_SHARE && gpu->mib_free < r->gpu_mib ? BH_HINDER_GPU_MEMORY : BH_HINDER_NOT;
}

/* Members with a share on each of n_gpus different GPUs, that have room for so many each. */
static uint32_t deal(const uint32_t *slots, uint32_t n_gpus)
{
    uint64_t members = 0, sum;
    do {
        sum = 0;
        for (uint32_t i = 0; i < BH_NODE_GPUS; i++)
            sum += least(slots[i], members + 1);
        members++;
    } while (sum >= members * n_gpus);
    return (uint32_t)(members - 1);
}

/* How much of a GPU is idle; of one that is cut, the compute slices. */
static uint64_t idle_of(const struct look *l, const struct bh_request *r, const struct bh_shelf_node *n,
                        uint32_t i)
{
    const struct bh_shelf_gpu *gpu = &l->shelf->gpus.at[n->first_gpu + i];
    const struct bh_gpu_model *known = l->shelf->models[n->model].known;
    if (r->form != BH_FORM_MIG || gpu->use != BH_USE_MIG || gpu->health != BH_HEALTH_OK || !known)
        return r->form == BH_FORM_MIG && n->open[i] < BH_GPU_MILLI ? 0 : n->open[i];
    return (uint64_t)BH_GPU_MILLI * (known->compute_slices - gpu->mig_compute) / known->compute_slices;
}

/* Instances that a GPU has room for, one after the other as they would be put there. */
static uint32_t instances(const struct look *l, const struct bh_request *r, const struct bh_shelf_node *n,
                          uint32_t i)
{
    const struct bh_gpu_model *known = l->shelf->models[n->model].known;
    struct bh_shelf_gpu gpu = l->shelf->gpus.at[n->first_gpu + i];
    struct bh_mig_place at;
    uint32_t count = 0;
    for (; known && count < BH_MIG_INSTANCES_MAX && bh_mig_best(known, &gpu, r->mig_profile, &at); count++) {
        gpu.mig_held |= bh_mig_mask(&known->profiles[r->mig_profile], at.start);
        gpu.mig_compute = (uint8_t)(gpu.mig_compute + known->profiles[r->mig_profile].compute_slices);
    }
    return count;
}

/* Shares and instances: GPU by GPU. What is more than all its members could take of one GPU is not counted. */
static struct fit fit_parts(const struct look *l, uint32_t role, const struct bh_shelf_node *n)
{
    const struct bh_request *r = request_of(l, role);
    const uint64_t each = r->form == BH_FORM_SHARE ? r->gpu_milli : milli_of(l, role);
    const uint64_t cap = each * (l->shape->roles[role].min ? l->shape->roles[role].min : 1);
    uint32_t slots[BH_NODE_GPUS] = {0};
    struct fit f = {0};
    for (uint32_t i = 0; i < n->n_gpus; i++) {
        if (r->form == BH_FORM_SHARE && !n->open[i])
            continue;
        const struct bh_shelf_gpu *gpu = &l->shelf->gpus.at[n->first_gpu + i];
        const uint64_t idle = least(idle_of(l, r, n, i), cap);
        const enum bh_hinder hinder = idle ? gpu_hinder(r, gpu) : BH_HINDER_NOT;
        f.raw += idle;
        if (hinder != BH_HINDER_NOT) {
            f.hinder = hinder;
            continue;
        }
        f.usable += idle;
        f.one = idle > f.one ? idle : f.one;
        slots[i] = r->form == BH_FORM_MIG ? (idle ? instances(l, r, n, i) : 0) : (uint32_t)(idle / each);
        if (r->gpu_mib)
            slots[i] = (uint32_t)least(slots[i], gpu->mib_free / r->gpu_mib);
    }
    f.members = f.usable ? deal(slots, r->n_gpus) : 0;
    return f;
}

static struct fit fit_on(const struct look *l, uint32_t role, const struct bh_shelf_node *n)
{
    const struct bh_request *r = request_of(l, role);
    enum bh_hinder hinder;
    struct fit f = {0};
    if ((r->form == BH_FORM_WHOLE && !n->n_whole) || !is_for(r, n)) /* most of them, mostly */
        return f;
    if (r->form == BH_FORM_CPU) {
        f.members = l->shape->roles[role].min;
    } else if (r->form == BH_FORM_WHOLE) {
        f.raw = f.usable = (uint64_t)n->n_whole * BH_GPU_MILLI;
        f.members = n->n_whole / r->n_gpus;
    } else {
        f = fit_parts(l, role, n);
    }
    const uint64_t some = f.members || !f.raw ? f.members : 1; /* too few for one: would one be let in? */
    const uint32_t others = others_of(l, r, n, some, &hinder);
    if (others < some) {
        f.usable = least(f.usable, others * milli_of(l, role));
        f.one = least(f.one, f.usable);
        f.members = others;
        f.hinder = hinder;
    }
    return f;
}

/* ---- all of it on one node ---- */

/* Members that go there together, the largest role first; `need` becomes what is left. In thousandths. */
static uint64_t lay(const struct look *l, const struct bh_shelf_node *n, const struct fit *fits,
                    uint32_t *need)
{
    uint64_t cpu = n->cpu_free, mem = n->mem_free, milli = 0;
    uint32_t whole = n->n_whole;
    for (uint32_t k = 0; k < l->shape->n_roles; k++) {
        const uint32_t role = l->order[k];
        const struct bh_request *r = request_of(l, role);
        uint64_t m = least(need[role], fits[role].members);
        if (r->form == BH_FORM_WHOLE)
            m = least(m, whole / r->n_gpus);
        if (r->cpu_milli)
            m = least(m, cpu / r->cpu_milli);
        if (r->mem_mib)
            m = least(m, mem / r->mem_mib);
        need[role] -= (uint32_t)m;
        cpu -= m * r->cpu_milli;
        mem -= m * r->mem_mib;
        whole -= r->form == BH_FORM_WHOLE ? (uint32_t)m * r->n_gpus : 0;
        milli += m * milli_of(l, role);
    }
    return milli;
}

static void need_all(const struct look *l, uint32_t *need)
{
    for (uint32_t i = 0; i < BH_ROLES_MAX; i++)
        need[i] = i < l->shape->n_roles ? l->shape->roles[i].min : 0;
}

static void note(struct look *l, enum bh_hinder hinder, uint64_t milli, uint32_t node)
{
    if (hinder == BH_HINDER_NOT)
        return;
    l->withheld[hinder] += milli;
    if (l->most[hinder] >= milli + 1)
        return;
    l->most[hinder] = milli + 1;
    l->worst[hinder] = node;
}

static void see_group(struct look *l, uint64_t milli, uint32_t id)
{
    if (milli <= l->v->group && l->v->domain != BH_NONE)
        return;
    l->v->group = milli;
    l->v->domain = id;
}

/* Counts the node, and compares it as a place; returns whether it is one. */
static bool see_node(struct look *l, uint32_t node, struct fit *fits)
{
    const struct bh_shelf_node *n = &l->shelf->nodes.at[node];
    struct fit all = {0};
    if (l->own && !l->own[node])
        return false;
    for (uint32_t i = 0; i < l->shape->n_roles; i++) {
        fits[i] = fit_on(l, i, n);
        all.raw = fits[i].raw > all.raw ? fits[i].raw : all.raw;
        all.usable = fits[i].usable > all.usable ? fits[i].usable : all.usable;
        all.one = fits[i].one > all.one ? fits[i].one : all.one;
        all.members |= fits[i].members;
        all.hinder = all.hinder == BH_HINDER_NOT ? fits[i].hinder : all.hinder;
    }
    if (l->own) { /* no more than were there */
        all.raw = least(all.raw, l->own[node] * milli_of(l, l->order[0]));
        all.usable = least(all.usable, all.raw);
    }
    l->v->free += all.usable;
    if (all.hinder != BH_HINDER_NOT)
        note(l, all.hinder, all.raw - all.usable, node);
    if (l->level == BH_LEVEL_GPU || l->level == BH_LEVEL_NODE)
        see_group(l, l->level == BH_LEVEL_GPU ? all.one : all.usable, node);
    return all.members != 0;
}

/* ---- places of many nodes ---- */

/* The level of what its slices stand in, or BH_LEVEL_ANY. */
static uint8_t slice_level(const struct bh_shape *shape)
{
    return shape->n_roles == 1 && shape->roles[0].slice ? shape->roles[0].slice_level : BH_LEVEL_ANY;
}

/* Where only whole slices count: members by domain of the slice's level, and these for the domain of the whole. */
static void see_slices(struct look *l, const uint64_t *members)
{
    const struct bh_gang_role *role = &l->shape->roles[0];
    const struct bh_shelf *s = l->shelf;
    const bool within = l->shape->within != BH_LEVEL_ANY;
    uint64_t *sums = bh_alloc(s->domains.n + 1, sizeof(*sums));
    for (uint32_t d = 0; d < s->domains.n; d++) {
        uint32_t top = d;
        if (s->domains.at[d].level != role->slice_level)
            continue;
        while (within && top != BH_NONE && s->domains.at[top].level != l->shape->within)
            top = s->domains.at[top].parent;
        if (top != BH_NONE)
            sums[top] += (within ? members[d] / role->slice * role->slice : members[d]) * milli_of(l, 0);
    }
    for (uint32_t d = 0; d < s->domains.n; d++)
        if (s->domains.at[d].level == l->level)
            see_group(l, sums[d], d);
    free(sums);
}

static void see_domains(struct look *l)
{
    const struct bh_shelf *s = l->shelf;
    const uint8_t slice = slice_level(l->shape), of = slice != BH_LEVEL_ANY ? slice : l->level;
    uint32_t(*need)[BH_ROLES_MAX] = bh_alloc(s->domains.n + 1, sizeof(*need));
    uint64_t *sums = bh_alloc(s->domains.n + 1, sizeof(*sums));
    for (uint32_t d = 0; d < s->domains.n; d++)
        need_all(l, need[d]);
    for (uint32_t i = 0; i < s->nodes.n; i++) {
        struct fit fits[BH_ROLES_MAX];
        const bool is_place = see_node(l, i, fits);
        const uint32_t d = is_place ? bh_shelf_domain_of(s, i, (enum bh_level)of) : BH_NONE;
        if (d != BH_NONE)
            sums[d] += slice != BH_LEVEL_ANY ? fits[0].members : lay(l, &s->nodes.at[i], fits, need[d]);
    }
    if (slice != BH_LEVEL_ANY)
        see_slices(l, sums);
    for (uint32_t d = 0; slice == BH_LEVEL_ANY && d < s->domains.n; d++)
        if (s->domains.at[d].level == l->level)
            see_group(l, sums[d], d);
    free(need);
    free(sums);
}

/* ---- all of it ---- */

static uint8_t level_of(const struct look *l)
{
    const uint8_t form = request_of(l, l->order[0])->form;
    if (l->shape->within != BH_LEVEL_ANY)
        return l->shape->within;
    if (slice_level(l->shape) != BH_LEVEL_ANY)
        return slice_level(l->shape);
    return form == BH_FORM_SHARE || form == BH_FORM_MIG ? BH_LEVEL_GPU : BH_LEVEL_NODE;
}

static void order_roles(struct look *l)
{
    for (uint8_t i = 0; i < l->shape->n_roles; i++) {
        uint8_t k = i;
        for (; k && milli_of(l, l->order[k - 1]) < milli_of(l, i); k--)
            l->order[k] = l->order[k - 1];
        l->order[k] = i;
    }
}

/* By what most is withheld, and its numbers on the node where that is most of it. */
static void see_hinder(struct look *l)
{
    struct bh_verdict *v = l->v;
    for (uint32_t i = 1; i < BH_HINDERS; i++) {
        v->withheld += l->withheld[i];
        if (l->most[i] && (v->hinder == BH_HINDER_NOT || l->withheld[i] > l->withheld[v->hinder]))
            v->hinder = (enum bh_hinder)i;
    }
    if (v->hinder == BH_HINDER_NOT)
        return;
    const struct bh_shelf_node *n = &l->shelf->nodes.at[l->worst[v->hinder]];
    v->hinder_node = l->worst[v->hinder];
    for (uint32_t i = 0; i < l->shape->n_roles; i++) {
        const struct bh_request *r = request_of(l, i);
        const uint64_t need = v->hinder == BH_HINDER_CPU          ? r->cpu_milli
                              : v->hinder == BH_HINDER_MEMORY     ? r->mem_mib
                              : v->hinder == BH_HINDER_GPU_MEMORY ? r->gpu_mib
                                                                  : 0;
        v->hinder_need = need > v->hinder_need ? need : v->hinder_need;
    }
    v->hinder_free = v->hinder == BH_HINDER_CPU      ? n->cpu_free
                     : v->hinder == BH_HINDER_MEMORY ? n->mem_free
                                                     : 0;
    for (uint32_t i = 0; v->hinder == BH_HINDER_GPU_MEMORY && i < n->n_gpus; i++) {
        const uint32_t mib = l->shelf->gpus.at[n->first_gpu + i].mib_free;
        v->hinder_free = n->open[i] && mib > v->hinder_free ? mib : v->hinder_free;
    }
}

/* Where a paused or suspended job is: what stayed behind of it. */
static uint32_t *own_nodes(const struct bh_sched *s, const struct bh_gang *g)
{
    if (!g->parked)
        return NULL;
    uint32_t *own = bh_alloc(s->shelf.nodes.n + 1, sizeof(*own));
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next)
        own[s->shelf.holds.at[h].node]++;
    return own;
}

void bh_explain_room(const struct bh_sched *s, const struct bh_gang *g, struct bh_verdict *v)
{
    const struct bh_shape *shape = bh_shape_of(s, g);
    uint32_t *own = own_nodes(s, g);
    struct look l = {.s = s, .shelf = bh_sched_shelf(s), .shape = shape, .v = v, .own = own};
    v->need = shape->least.at[BH_RES_GPU];
    v->domain = v->hinder_node = BH_NONE;
    order_roles(&l);
    v->level = l.level = level_of(&l);
    if (l.level < BH_LEVELS) {
        see_domains(&l);
    } else {
        for (uint32_t i = 0; i < l.shelf->nodes.n; i++) {
            struct fit fits[BH_ROLES_MAX];
            (void)see_node(&l, i, fits);
        }
    }
    see_hinder(&l);
    v->parked = own != NULL;
    free(own);
}

enum bh_wait bh_explain_tier(struct bh_verdict *v)
{
    if (v->need && v->free >= v->need && v->group < v->need)
        return BH_WAIT_SHAPE;
    if (v->need && v->free + v->withheld < v->need)
        return BH_WAIT_ROOM;
    /* Enough, in one place, and it does not start: where nothing is known to be withheld its parts hinder each other. */
    if (v->hinder == BH_HINDER_NOT)
        v->hinder = BH_HINDER_PARTS;
    return BH_WAIT_WITHHELD;
}
