/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - the look-ups that keep lint linear: who is in which pool, which pools touch
 * a node, which trust domains meet where.
 */
#include "core/policy/lint.h"

#include "base/str.h"
#include "base/units.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

/* ---- lists by owner: count, sum up, fill ---- */

static void lists_init(struct bh_lists *x, size_t n_owners)
{
    x->start = bh_alloc(n_owners + 2, sizeof(*x->start));
    x->at = NULL;
}

/* start[] holds counts at owner + 2 and becomes, at owner + 1, the place to write next. */
static void lists_ready(struct bh_lists *x, size_t n_owners)
{
    for (size_t i = 0; i <= n_owners; i++)
        x->start[i + 1] += x->start[i];
    x->at = bh_alloc(x->start[n_owners + 1], sizeof(*x->at));
}

static void lists_fini(struct bh_lists *x)
{
    free(x->start);
    free(x->at);
}

static void index_tenant_pools(struct bh_lint *l)
{
    struct bh_lists *x = &l->tenant_pools;
    size_t pairs = 0;
    lists_init(x, l->p->tenants.n);
    for (size_t i = 0; i < l->p->pools.n && pairs <= BH_PAIRS_MAX; i++)
        pairs += l->p->pools.at[i].tenants.n;
    if (pairs > BH_PAIRS_MAX) {
        l->too_large = "there are too many pools times tenants to judge; split the policy";
        return;
    }
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t i = 0; i < l->p->pools.n; i++) {
            const struct bh_pool *pool = &l->p->pools.at[i];
            for (size_t k = 0; k < pool->tenants.n; k++) {
                if (fill)
                    x->at[x->start[pool->tenants.at[k] + 1]++] = i;
                else
                    x->start[pool->tenants.at[k] + 2]++;
            }
        }
        if (!fill)
            lists_ready(x, l->p->tenants.n);
    }
}

/* What one pool, or several with the same nodes, bring to each of them. */
static void use_add_pool(const struct bh_lint *l, struct bh_node_use *u, uint32_t i)
{
    const struct bh_pool *pool = &l->p->pools.at[i];
    bh_domains_join(l->p, &u->domains, &l->pool_domains[i]);
    u->shared = u->shared || bh_pool_is_shared(pool);
    for (size_t k = 0; k < pool->tenants.n && (u->regulated == BH_NONE || pool->tier >= BH_TIER_VM); k++) {
        uint32_t t = pool->tenants.at[k];
        if (u->regulated == BH_NONE && l->p->tenants.at[t].regimes)
            u->regulated = t;
        if (pool->tier < BH_TIER_VM)
            continue;
        u->vm_tenants = u->vm_tenants || (u->vm_tenant != BH_NONE && u->vm_tenant != t);
        u->vm_tenant = t;
        if (u->vm_tenants && u->regulated != BH_NONE)
            break;
    }
}

static void use_join(const struct bh_policy *p, struct bh_node_use *u, const struct bh_node_use *more)
{
    bh_domains_join(p, &u->domains, &more->domains);
    u->shared = u->shared || more->shared;
    u->regulated = u->regulated == BH_NONE ? more->regulated : u->regulated;
    u->vm_tenants =
        u->vm_tenants || more->vm_tenants ||
        (u->vm_tenant != BH_NONE && more->vm_tenant != BH_NONE && u->vm_tenant != more->vm_tenant);
    u->vm_tenant = u->vm_tenant == BH_NONE ? more->vm_tenant : u->vm_tenant;
}

static const struct bh_node_use use_none = {
    .domains = {{BH_NONE, BH_NONE}, {BH_NONE, BH_NONE}}, .regulated = BH_NONE, .vm_tenant = BH_NONE};

/* Pools with the same match share one list of nodes: they are summed up first, then laid on its nodes once. */
static void index_node_use(struct bh_lint *l)
{
    if (!l->fleet)
        return;
    struct bh_arena keys = {0};
    struct bh_map by_list = {0};
    BH_VEC(struct bh_node_use) sums = {0};
    BH_VEC(uint32_t) first = {0};
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (!pool->nodes.n)
            continue;
        const char *key =
            bh_arena_printf(&keys, "%" PRIxPTR " %zu", (uintptr_t)pool->nodes.at, pool->nodes.n);
        uint32_t g = bh_map_add(&by_list, key, (uint32_t)sums.n);
        if (g == BH_MAP_NONE) {
            g = (uint32_t)sums.n;
            *bh_vec_push(&sums) = use_none;
            *bh_vec_push(&first) = i;
        }
        use_add_pool(l, &sums.at[g], i);
    }
    l->node_use = bh_alloc(l->fleet->nodes.n, sizeof(*l->node_use));
    for (size_t i = 0; i < l->fleet->nodes.n; i++)
        l->node_use[i] = use_none;
    for (size_t g = 0; g < sums.n; g++) {
        const struct bh_pool *pool = &l->p->pools.at[first.at[g]];
        for (size_t k = 0; k < pool->nodes.n; k++)
            use_join(l->p, &l->node_use[pool->nodes.at[k]], &sums.at[g]);
    }
    bh_vec_fini(&sums);
    bh_vec_fini(&first);
    bh_map_fini(&by_list);
    bh_arena_fini(&keys);
}

static uint32_t owner_pool(const struct bh_workload *w)
{
    return w->pool;
}

static uint32_t owner_tenant(const struct bh_workload *w)
{
    return w->tenant;
}

static void index_workloads(struct bh_lint *l, struct bh_lists *x, size_t n_owners,
                            uint32_t (*owner)(const struct bh_workload *))
{
    lists_init(x, n_owners);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t i = 0; i < l->p->workloads.n; i++) {
            uint32_t o = owner(&l->p->workloads.at[i]);
            if (o == BH_NONE)
                continue;
            if (fill)
                x->at[x->start[o + 1]++] = i;
            else
                x->start[o + 2]++;
        }
        if (!fill)
            lists_ready(x, n_owners);
    }
}

/* ---- trust domains ---- */

const struct bh_domains bh_domains_none = {{BH_NONE, BH_NONE}, {BH_NONE, BH_NONE}};

static bool same_domain(const struct bh_policy *p, uint32_t a, uint32_t b)
{
    return bh_str_eq(p->tenants.at[a].domain, p->tenants.at[b].domain);
}

static void keep_two(const struct bh_policy *p, uint32_t pair[2], uint32_t tenant)
{
    if (tenant == BH_NONE)
        return;
    if (pair[0] == BH_NONE)
        pair[0] = tenant;
    else if (pair[1] == BH_NONE && !same_domain(p, pair[0], tenant))
        pair[1] = tenant;
}

void bh_domains_add(const struct bh_policy *p, struct bh_domains *d, uint32_t tenant)
{
    keep_two(p, d->any, tenant);
    if (p->tenants.at[tenant].trust != BH_TRUST_INTERNAL)
        keep_two(p, d->foreign, tenant);
}

void bh_domains_join(const struct bh_policy *p, struct bh_domains *d, const struct bh_domains *more)
{
    for (int i = 0; i < 2; i++) {
        keep_two(p, d->any, more->any[i]);
        keep_two(p, d->foreign, more->foreign[i]);
    }
}

bool bh_domains_many(const struct bh_domains *d)
{
    return d->any[1] != BH_NONE;
}

/* Two distinct domains are kept of each set, so a differing pair exists among the kept ones if at all. */
static bool differ(const struct bh_policy *p, const uint32_t a[2], const uint32_t b[2], uint32_t *ret_a,
                   uint32_t *ret_b)
{
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (a[i] != BH_NONE && b[k] != BH_NONE && !same_domain(p, a[i], b[k])) {
                *ret_a = a[i];
                *ret_b = b[k];
                return true;
            }
    return false;
}

bool bh_domains_distrust(const struct bh_policy *p, const struct bh_domains *a, const struct bh_domains *b,
                         uint32_t *ret_a, uint32_t *ret_b)
{
    return differ(p, a->foreign, b->any, ret_a, ret_b) || differ(p, a->any, b->foreign, ret_a, ret_b);
}

/* ---- places ---- */

struct kernel_walk {
    struct bh_lint *l;
    bh_kernel_fn fn;
    void *ctx;
};

static void walk_name(void *ctx, const char *name)
{
    struct kernel_walk *w = ctx;
    w->l->names_left--; /* bh_nodes_expand was given what is left as its limit */
    w->fn(w->ctx, name);
}

void bh_pool_kernels(struct bh_lint *l, const struct bh_pool *pool, bh_kernel_fn fn, void *ctx)
{
    struct kernel_walk walk = {l, fn, ctx};
    if (l->fleet) {
        for (size_t i = 0; i < pool->nodes.n; i++)
            fn(ctx, l->fleet->nodes.at[pool->nodes.at[i]].kernel);
        return;
    }
    for (size_t i = 0; i < pool->match.nodes.n; i++)
        if (bh_nodes_expand(pool->match.nodes.at[i].s, l->names_left, walk_name, &walk, NULL) != BH_OK)
            bh_unknown(
                l,
                "`%.60s` of pool '%s' names too many nodes to hold against the others; a fleet file would say which exist",
                pool->match.nodes.at[i].s, pool->name);
}

enum { FABRIC_GPUS_MAX = 1 << 18 }; /* of all patterns together */

struct fabric_fill {
    struct bh_lint *l;
    uint32_t fabric;
    size_t left;
};

static void fill_fabric(void *ctx, const char *node, uint32_t index)
{
    struct fabric_fill *f = ctx;
    f->left--;
    char *key = bh_arena_printf(&f->l->out->arena, "%s:%" PRIu32, node, index);
    (void)bh_map_add(&f->l->fabric_by_gpu, key, f->fabric);
}

static void index_fabrics(struct bh_lint *l)
{
    struct fabric_fill fill = {l, 0, FABRIC_GPUS_MAX};
    for (; fill.fabric < l->p->fabrics.n; fill.fabric++) {
        const struct bh_fabric *f = &l->p->fabrics.at[fill.fabric];
        for (size_t k = 0; k < f->gpus.n; k++)
            if (bh_gpus_expand(f->gpus.at[k].s, fill.left, fill_fabric, &fill, NULL) != BH_OK)
                l->fabrics_cut = true;
    }
}

static const char *declared_fabric(const struct bh_lint *l, const char *node, uint32_t index)
{
    char key[280]; /* a node's name has at most 253 bytes */
    if (!l->fabric_by_gpu.n)
        return NULL;
    (void)snprintf(key, sizeof(key), "%s:%" PRIu32, node, index);
    uint32_t f = bh_map_find(&l->fabric_by_gpu, key);
    return f == BH_MAP_NONE ? NULL : l->p->fabrics.at[f].name;
}

const char *bh_fleet_gpu_fabric(const struct bh_lint *l, const struct bh_fleet_node *n,
                                const struct bh_gpu *g)
{
    return g->fabric ? g->fabric : declared_fabric(l, n->name, g->index);
}

const char *bh_gpu_fabric(const struct bh_lint *l, const char *node, uint32_t index)
{
    const struct bh_fleet_node *n = l->fleet ? bh_fleet_find(l->fleet, node) : NULL;
    const struct bh_gpu *g = n ? bh_fleet_node_gpu(n, index) : NULL;
    return g ? bh_fleet_gpu_fabric(l, n, g) : declared_fabric(l, node, index);
}

uint32_t bh_pool_clients(const struct bh_lint *l, uint32_t pool)
{
    const struct bh_pool *p = &l->p->pools.at[pool];
    if (p->replicas)
        return p->replicas;
    uint32_t workloads = (uint32_t)(l->pool_workloads.start[pool + 1] - l->pool_workloads.start[pool]);
    uint32_t tenants = (uint32_t)p->tenants.n;
    return workloads > tenants ? workloads : tenants;
}

/* A set of catalogue models as bits; the fleet's word, else whatever match.model may mean. */
static uint64_t pool_models(const struct bh_lint *l, const struct bh_pool *pool, uint64_t fleet_models)
{
    uint64_t set = 0;
    for (size_t k = 0; k < pool->gpus.n; k++) {
        const struct bh_gpu_ref *g = &pool->gpus.at[k];
        const struct bh_gpu_model *m = l->fleet->nodes.at[g->node].gpus.at[g->gpu].model;
        if (m)
            set |= UINT64_C(1) << (m - bh_catalog_at(0));
    }
    for (size_t i = 0; !pool->gpus.n && pool->match.model.s && i < bh_catalog_count(); i++)
        if (bh_catalog_matches(pool->match.model.s, bh_catalog_at(i)))
            set |= UINT64_C(1) << i;
    /* manifests do not say which nodes a layout goes to: any of the cluster's */
    return !set && pool->source != BH_SOURCE_POLICY && !pool->match.model.s ? fleet_models : set;
}

static uint64_t all_fleet_models(const struct bh_fleet *fleet)
{
    uint64_t set = 0;
    for (size_t i = 0; fleet && i < fleet->nodes.n; i++)
        for (size_t g = 0; g < fleet->nodes.at[i].gpus.n; g++)
            if (fleet->nodes.at[i].gpus.at[g].model)
                set |= UINT64_C(1) << (fleet->nodes.at[i].gpus.at[g].model - bh_catalog_at(0));
    return set;
}

const struct bh_gpu_model *bh_pool_next_model(const struct bh_lint *l, uint32_t pool,
                                              const struct bh_gpu_model *after)
{
    for (size_t i = after ? (size_t)(after - bh_catalog_at(0)) + 1 : 0; i < bh_catalog_count(); i++)
        if (l->pool_models[pool] >> i & 1)
            return bh_catalog_at(i);
    return NULL;
}

/* ---- all together ---- */

void bh_lint_index(struct bh_lint *l)
{
    const struct bh_policy *p = l->p;
    l->names_left = BH_NAMES_MAX;
    index_tenant_pools(l);
    index_workloads(l, &l->pool_workloads, p->pools.n, owner_pool);
    index_workloads(l, &l->tenant_workloads, p->tenants.n, owner_tenant);
    index_fabrics(l);
    assert(bh_catalog_count() <= 64);
    uint64_t fleet_models = all_fleet_models(l->fleet);
    l->pool_models = bh_alloc(p->pools.n, sizeof(*l->pool_models));
    l->pool_domains = bh_alloc(p->pools.n, sizeof(*l->pool_domains));
    for (size_t i = 0; i < p->pools.n; i++) {
        l->pool_models[i] = pool_models(l, &p->pools.at[i], fleet_models);
        l->pool_domains[i] = bh_domains_none;
        for (size_t k = 0; k < p->pools.at[i].tenants.n && !l->too_large; k++)
            bh_domains_add(p, &l->pool_domains[i], p->pools.at[i].tenants.at[k]);
    }
    if (!l->too_large)
        index_node_use(l);
}

void bh_lint_unindex(struct bh_lint *l)
{
    lists_fini(&l->tenant_pools);
    free(l->node_use);
    lists_fini(&l->pool_workloads);
    lists_fini(&l->tenant_workloads);
    free(l->pool_domains);
    free(l->pool_models);
    free(l->waiver_idle);
    bh_map_fini(&l->fabric_by_gpu);
}
