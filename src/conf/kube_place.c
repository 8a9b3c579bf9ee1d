/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_place.c - which pool a workload uses, and who its neighbours there are.
 *
 * A request names a resource, and the pool that exposes it is the one it uses; `cluster` and
 * `mig` stand for whole GPUs and MIG slices that only pods speak of. But pods of one pool are
 * neighbours only where they meet on a kernel, so a pool is split:
 *
 *   cluster            pods in containers that may run on any node
 *   cluster-vm         pods under a RuntimeClass of that tier (sandbox, vm, cvm)
 *   cluster@gpu-01     namespaces whose pods of this pool are all bound to these nodes
 *   cluster-vm@gpu-01  both
 *
 * A part has the settings of its pool (`copy_of`), the namespaces of its pods and no others. In
 * the pool itself stay all other tenants: those with pods of its kind, and those whose pods are
 * not among the files. A pool that only pods speak of and that nobody is left in takes the name
 * of its first part.
 */
#include "conf/kube_cluster.h"

#include "base/buf.h"
#include "base/str.h"

enum {
    NAMED_NODES = 3,    /* in the name of a part */
    NAMES_MAX = 1 << 20 /* of tenants and resources written into pools that were split */
};

/* The pods of one namespace that use one pool at one tier. */
struct group {
    uint32_t pool, tenant;
    uint8_t tier;
    bool unbound;           /* one of them may run on any node */
    struct bh_kube_pin pin; /* where the others run */
    uint32_t part;          /* the pool they end up in */
    const char *root;       /* the name of the pool that was split */
};

struct placer {
    struct bh_kube *k;
    BH_VEC(struct group) groups;
    struct bh_map group_by_key;
    struct bh_map part_by_key;
    BH_VEC(uint32_t) group_of; /* per workload: the group of its first request; BH_NONE: none */
    size_t names;
    uint32_t
        deserted[2]; /* pools that only pods speak of and nobody is left in, until a part takes them over */
};

/* ---- the pool of a resource ---- */

/* A pool that only pods speak of: whole GPUs, or MIG slices that somebody cut elsewhere. */
static uint32_t implied_pool(struct bh_kube *k, const struct bh_workload *w, const struct bh_amount *ask)
{
    bool mig = bh_kube_is_mig(ask->resource);
    const char *name = mig ? "mig" : "cluster";
    uint32_t pool = bh_map_find(&k->implied, name);

    if (!mig && strcmp(ask->resource, "nvidia.com/gpu") != 0) {
        bh_diag_note_once(k->d, ask->pos,
                          "`%.100s` is asked for, but nothing among the files says what it is",
                          ask->resource);
        return BH_NONE;
    }
    if (pool == BH_MAP_NONE) {
        struct bh_pool *p = bh_kube_add_pool(k, name, w->object, ask->pos);
        p->mechanism = mig ? BH_MECH_MIG : BH_MECH_WHOLE;
        p->strategy = mig ? BH_STRATEGY_MIXED : BH_STRATEGY_UNSET;
        pool = (uint32_t)(k->p->pools.n - 1);
        bh_map_add(&k->implied, name, pool);
    }
    bh_kube_expose(k, pool, ask->resource, ask->pos);
    return pool;
}

/* ---- gathering ---- */

static uint32_t group_at(struct placer *pl, uint32_t pool, uint32_t tenant, uint8_t tier)
{
    char *key = bh_arena_printf(&pl->k->arena, "%u %u %u", pool, tenant, tier);
    uint32_t i = bh_map_add(&pl->group_by_key, key, (uint32_t)pl->groups.n);
    if (i != BH_MAP_NONE)
        return i;
    *bh_vec_push(&pl->groups) = (struct group){
        .pool = pool, .tenant = tenant, .tier = tier, .part = pool, .root = pl->k->p->pools.at[pool].name};
    return (uint32_t)(pl->groups.n - 1);
}

static void group_bind(struct group *g, const struct bh_kube_pin *pin)
{
    if (!pin->nodes.n) {
        g->unbound = true;
        return;
    }
    if (!g->pin.pos.line)
        g->pin.pos = pin->pos;
    for (size_t i = 0; !g->unbound && i < pin->nodes.n; i++)
        *bh_vec_push(&g->pin.nodes) = pin->nodes.at[i];
}

static void gather(struct placer *pl, uint32_t index)
{
    struct bh_kube *k = pl->k;
    const struct bh_workload *w = &k->p->workloads.at[index];
    uint32_t tenant = bh_map_find(&k->tenants, w->tenant_name.s);
    uint8_t tier = w->has_tier ? w->tier : BH_TIER_CONTAINER;
    uint32_t first = BH_NONE;
    for (size_t i = 0; i < w->requests.n; i++) {
        const struct bh_amount *ask = &w->requests.at[i];
        uint32_t pool = bh_map_find(&k->exposed, ask->resource);
        if (pool == BH_MAP_NONE)
            pool = implied_pool(k, w, ask);
        if (pool == BH_NONE)
            continue;
        uint32_t g = group_at(pl, pool, tenant, tier);
        group_bind(&pl->groups.at[g], &k->pins.at[index]);
        if (first == BH_NONE) {
            first = g;
            k->p->workloads.at[index].pool_name.pos = ask->pos;
        }
    }
    *bh_vec_push(&pl->group_of) = first;
}

/* ---- parts ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* `cluster-vm@gpu-01,gpu-02`: with at most so many nodes, or with all to tell parts apart. */
static void part_name(struct bh_buf *b, const struct group *g, size_t max)
{
    size_t n = g->pin.nodes.n;
    bh_buf_str(b, g->root);
    if (g->tier != BH_TIER_CONTAINER)
        bh_buf_printf(b, "-%s", bh_word(tier, g->tier));
    for (size_t i = 0; i < n && i < max; i++)
        bh_buf_printf(b, "%c%s", i ? ',' : '@', g->pin.nodes.at[i]);
    if (n > max)
        bh_buf_printf(b, "+%zu", n - max);
}

static bool may_name(struct placer *pl, struct bh_pos pos, size_t n)
{
    if (n > NAMES_MAX - pl->names) {
        bh_diag_note_once(pl->k->d, pos,
                          "too many pools, namespaces and resources to tell who uses which; "
                          "the rest counts as shared by all");
        return false;
    }
    pl->names += n;
    return true;
}

/* A new pool with the settings of another. Its layout stays with that one: it is cut once. */
static uint32_t part_add(struct placer *pl, const struct group *g, const char *name)
{
    struct bh_kube *k = pl->k;
    struct bh_pos pos = k->p->pools.at[g->pool].pos;
    struct bh_pool *part = bh_kube_add_pool(k, name, k->p->pools.at[g->pool].object, pos);
    const struct bh_pool *from = &k->p->pools.at[g->pool];
    part->copy_of = from->name;
    part->mechanism = from->mechanism;
    part->mechanism_pos = from->mechanism_pos;
    part->strategy = from->strategy;
    part->replicas = from->replicas;
    part->cap_memory_bytes = from->cap_memory_bytes;
    part->cap_compute_ppm = from->cap_compute_ppm;
    part->caps_by_plugin = from->caps_by_plugin;
    part->caps_pos = from->caps_pos;
    part->resource = from->resource;
    part->resource_pos = from->resource_pos;
    part->match.model = from->match.model;
    part->match.pos = from->match.pos;
    part->any_tenant = false;
    size_t n = may_name(pl, pos, from->exposes.n) ? from->exposes.n : 0;
    for (size_t i = 0; i < n; i++)
        *bh_vec_push(&part->exposes) = from->exposes.at[i];
    return (uint32_t)(k->p->pools.n - 1);
}

/* Tier and nodes of a group are those of its part. */
static void part_bind(struct bh_kube *k, struct bh_pool *part, const struct group *g)
{
    part->tier = g->tier;
    for (size_t i = 0; i < g->pin.nodes.n; i++)
        *bh_vec_push(&part->match.nodes) = (struct bh_text){bh_kube_keep(k, g->pin.nodes.at[i]), g->pin.pos};
    if (g->pin.nodes.n)
        part->match.pos = g->pin.pos;
}

static struct bh_text tenant_text(const struct bh_kube *k, uint32_t tenant)
{
    return (struct bh_text){k->p->tenants.at[tenant].name, k->p->tenants.at[tenant].pos};
}

/* The nodes of a group as a set, or none at all. */
static void group_settle(struct group *g)
{
    size_t n = 0;
    if (g->unbound)
        g->pin.nodes.n = 0;
    if (g->pin.nodes.n)
        qsort(g->pin.nodes.at, g->pin.nodes.n, sizeof(g->pin.nodes.at[0]), by_name);
    for (size_t i = 0; i < g->pin.nodes.n; i++)
        if (n == 0 || strcmp(g->pin.nodes.at[n - 1], g->pin.nodes.at[i]) != 0)
            g->pin.nodes.at[n++] = g->pin.nodes.at[i];
    g->pin.nodes.n = n;
}

static bool stays(const struct group *g)
{
    return g->tier == BH_TIER_CONTAINER && !g->pin.nodes.n;
}

/* The pool that a new part is: the one it leaves, if that was deserted, else one of its own. */
static uint32_t part_make(struct placer *pl, const struct group *g, const char *name)
{
    struct bh_kube *k = pl->k;
    for (size_t i = 0; i < BH_COUNT_OF(pl->deserted); i++)
        if (pl->deserted[i] == g->pool) {
            pl->deserted[i] = BH_NONE;
            k->p->pools.at[g->pool].name = bh_kube_keep(k, name);
            return g->pool;
        }
    return part_add(pl, g, name);
}

static void find_part(struct placer *pl, struct group *g)
{
    struct bh_kube *k = pl->k;
    if (stays(g))
        return;
    struct bh_buf name BH_AUTO(bh_buf_fini);
    struct bh_buf key BH_AUTO(bh_buf_fini);
    bh_buf_init(&name, BH_KUBE_TEXT_MAX + 64 + NAMED_NODES * (BH_KUBE_NAME_MAX + 2));
    bh_buf_init(&key, BH_KUBE_TEXT_MAX + 64 + g->pin.nodes.n * (BH_KUBE_NAME_MAX + 2));
    part_name(&key, g, SIZE_MAX);
    g->part = bh_map_find(&pl->part_by_key, bh_buf_text(&key));
    if (g->part == BH_MAP_NONE) {
        part_name(&name, g, NAMED_NODES);
        g->part = part_make(pl, g, bh_buf_text(&name));
        part_bind(k, &k->p->pools.at[g->part], g);
        bh_map_add(&pl->part_by_key, bh_arena_str(&k->arena, bh_buf_text(&key)), g->part);
    }
    *bh_vec_push(&k->p->pools.at[g->part].tenant_names) = tenant_text(k, g->tenant);
}

/* ---- who is left ---- */

static int by_pool(const void *pa, const void *pb)
{
    const struct group *a = *(const struct group *const *)pa, *b = *(const struct group *const *)pb;
    if (a->pool != b->pool)
        return a->pool < b->pool ? -1 : 1;
    return a < b ? -1 : a > b; /* in the order of the files */
}

static void desert(struct placer *pl, uint32_t pool)
{
    static const char *const names[] = {"cluster", "mig"};
    for (size_t i = 0; i < BH_COUNT_OF(pl->deserted); i++)
        if (bh_map_find(&pl->k->implied, names[i]) == pool)
            pl->deserted[i] = pool;
}

/* The groups of one pool, n of them: take the tenants who are only in parts of it out of it. */
static void leave(struct placer *pl, struct group *const *groups, size_t n)
{
    struct bh_kube *k = pl->k;
    struct bh_pool *pool = &k->p->pools.at[groups[0]->pool];
    size_t n_tenants = k->p->tenants.n, n_gone = 0;
    BH_AUTOFREE bool *here = bh_alloc(n_tenants, sizeof(*here));
    BH_AUTOFREE bool *gone = bh_alloc(n_tenants, sizeof(*gone));
    for (size_t i = 0; i < n; i++)
        if (stays(groups[i]))
            here[groups[i]->tenant] = true;
    for (size_t i = 0; i < n; i++)
        if (!here[groups[i]->tenant] && !gone[groups[i]->tenant]) {
            gone[groups[i]->tenant] = true;
            n_gone++;
        }
    if (!n_gone || !pool->any_tenant || !may_name(pl, pool->pos, n_tenants))
        return;
    pool->any_tenant = false;
    for (uint32_t t = 0; t < n_tenants; t++)
        if (!gone[t])
            *bh_vec_push(&pool->tenant_names) = tenant_text(k, t);
    if (n_gone == n_tenants)
        desert(pl, groups[0]->pool);
}

static void leave_all(struct placer *pl)
{
    BH_AUTOFREE struct group **order = bh_alloc(pl->groups.n, sizeof(struct group *));
    for (size_t i = 0; i < pl->groups.n; i++)
        order[i] = &pl->groups.at[i];
    if (pl->groups.n)
        qsort(order, pl->groups.n, sizeof(order[0]), by_pool);
    for (size_t i = 0, end; i < pl->groups.n; i = end) {
        for (end = i; end < pl->groups.n && order[end]->pool == order[i]->pool;)
            end++;
        leave(pl, order + i, end - i);
    }
}

void bh_kube_place_pods(struct bh_kube *k)
{
    struct placer pl = {.k = k, .deserted = {BH_NONE, BH_NONE}};
    for (uint32_t i = 0; i < k->p->workloads.n; i++)
        gather(&pl, i);
    for (size_t i = 0; i < pl.groups.n; i++)
        group_settle(&pl.groups.at[i]);
    leave_all(&pl);
    for (size_t i = 0; i < pl.groups.n; i++)
        find_part(&pl, &pl.groups.at[i]);
    for (size_t i = 0; i < k->p->workloads.n; i++)
        if (pl.group_of.at[i] != BH_NONE)
            k->p->workloads.at[i].pool_name.s = k->p->pools.at[pl.groups.at[pl.group_of.at[i]].part].name;
    for (size_t i = 0; i < pl.groups.n; i++)
        bh_vec_fini(&pl.groups.at[i].pin.nodes);
    bh_vec_fini(&pl.groups);
    bh_vec_fini(&pl.group_of);
    bh_map_fini(&pl.group_by_key);
    bh_map_fini(&pl.part_by_key);
}
