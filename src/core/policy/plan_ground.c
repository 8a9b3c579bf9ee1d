/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_ground.h"

#include "base/str.h"
#include "core/model/advisory.h"

enum {
    ALL_PPM = 1000000,
    DEFAULT_SHARE_PPM = 250000, /* four to a GPU, when nothing says how many */
};

static bool distrusts(const struct bh_ground *g, const struct bh_domains *others, uint32_t tenant)
{
    struct bh_domains self = bh_domains_none;
    uint32_t a, b;
    bh_domains_add(g->index.p, &self, tenant);
    return bh_domains_distrust(g->index.p, others, &self, &a, &b);
}

/* ---- who stands where ---- */

static struct bh_domains *place_get(struct bh_ground *g, const char *name)
{
    uint32_t at = bh_map_find(&g->place_by_name, name);
    if (at == BH_MAP_NONE) {
        at = (uint32_t)g->places.n;
        *bh_vec_push(&g->places) = bh_domains_none;
        (void)bh_map_add(&g->place_by_name, bh_arena_str(&g->scratch.arena, name), at);
    }
    return &g->places.at[at];
}

struct visit {
    struct bh_ground *g;
    struct bh_domains *pool;
};

/* First the pool's tenants join every place it touches ... */
static void join_place(void *ctx, const char *name)
{
    struct visit *v = ctx;
    bh_domains_join(v->g->index.p, place_get(v->g, name), v->pool);
}

/* ... then everyone who stands there becomes the pool's neighbour. */
static void gather_place(void *ctx, const char *name)
{
    struct visit *v = ctx;
    bh_domains_join(v->g->index.p, v->pool, place_get(v->g, name));
}

static void find_neighbours(struct bh_ground *g)
{
    const struct bh_policy *p = g->index.p;
    const struct bh_fleet *fleet = g->index.fleet;

    for (size_t i = 0; fleet && i < fleet->nodes.n; i++)
        (void)place_get(g, fleet->nodes.at[i].kernel);
    for (size_t i = 0; i < p->pools.n; i++) {
        struct visit v = {g, &g->index.pool_domains[i]};
        g->neighbours[i] = g->index.pool_domains[i];
        bh_pool_kernels(&g->index, &p->pools.at[i], join_place, &v);
    }
    for (size_t i = 0; i < p->pools.n; i++) {
        struct visit v = {g, &g->neighbours[i]};
        bh_pool_kernels(&g->index, &p->pools.at[i], gather_place, &v);
    }
}

static bool has_pool(const struct bh_ground *g, uint32_t tenant)
{
    return g->index.tenant_pools.start[tenant] < g->index.tenant_pools.start[tenant + 1];
}

void bh_ground_init(struct bh_ground *g, const struct bh_policy *policy, const struct bh_fleet *fleet)
{
    *g = (struct bh_ground){.everyone = bh_domains_none, .poolless = bh_domains_none};
    g->index = (struct bh_lint){.p = policy, .fleet = fleet, .out = &g->scratch};
    bh_lint_index(&g->index);
    g->neighbours = bh_alloc(policy->pools.n, sizeof(*g->neighbours));
    find_neighbours(g);
    for (uint32_t i = 0; i < policy->tenants.n; i++) {
        bh_domains_add(policy, &g->everyone, i);
        if (!has_pool(g, i))
            bh_domains_add(policy, &g->poolless, i);
    }
}

void bh_ground_fini(struct bh_ground *g)
{
    for (size_t i = 0; i < g->silicon.n; i++)
        bh_vec_fini(&g->silicon.at[i].models);
    bh_vec_fini(&g->silicon);
    bh_vec_fini(&g->places);
    bh_map_fini(&g->place_by_name);
    bh_map_fini(&g->silicon_by_key);
    bh_lint_unindex(&g->index);
    bh_report_fini(&g->scratch);
    free(g->neighbours);
    g->neighbours = NULL;
}

/* ---- what each tenant asks ---- */

/* One unit's part of a GPU: what was promised, else what a pool cuts, else a quarter. */
static uint32_t share_of(const struct bh_ground *g, uint32_t tenant)
{
    const struct bh_tenant *t = &g->index.p->tenants.at[tenant];
    if (t->share.has_target && t->share.target_ppm)
        return t->share.target_ppm;
    BH_EACH(at, &g->index.tenant_pools, tenant)
    {
        const struct bh_pool *p = &g->index.p->pools.at[*at];
        if (p->cap_compute_ppm)
            return p->cap_compute_ppm;
        if (p->replicas)
            return ALL_PPM / p->replicas;
    }
    return DEFAULT_SHARE_PPM;
}

struct bh_asks bh_ground_asks(const struct bh_ground *g, uint32_t tenant)
{
    const uint32_t boundary = 1u << BH_CLAIM_SECURITY_BOUNDARY | 1u << BH_CLAIM_CONFIDENTIAL;
    struct bh_asks a = {.claim_pool = BH_NONE, .nvlink_workload = BH_NONE, .share_ppm = share_of(g, tenant)};

    BH_EACH(at, &g->index.tenant_pools, tenant)
    {
        const struct bh_pool *p = &g->index.p->pools.at[*at];
        if (a.claim_pool == BH_NONE && (p->claims & boundary))
            a.claim_pool = *at;
        if (p->cap_memory_bytes > a.cap_bytes)
            a.cap_bytes = p->cap_memory_bytes;
    }
    BH_EACH(at, &g->index.tenant_workloads, tenant)
    {
        const struct bh_workload *w = &g->index.p->workloads.at[*at];
        if (w->memory_bytes > a.memory_bytes)
            a.memory_bytes = w->memory_bytes;
        if (w->needs_nvlink && a.nvlink_workload == BH_NONE)
            a.nvlink_workload = *at;
    }
    return a;
}

/* ---- meeting ---- */

static bool pool_has_nodes(const struct bh_ground *g, const struct bh_pool *p)
{
    return g->index.fleet ? p->nodes.n > 0 : p->match.nodes.n > 0;
}

/* The operator's own teams get nodes kept to them; there must be a kernel left for that. */
static bool finds_free_kernel(const struct bh_ground *g, uint32_t tenant)
{
    /* Those without a pool will stand somewhere too. */
    size_t wanted = distrusts(g, &g->poolless, tenant) ? 2 : 1, n_free = 0;
    for (size_t i = 0; i < g->places.n && n_free < wanted; i++)
        n_free += !distrusts(g, &g->places.at[i], tenant);
    return n_free >= wanted;
}

enum bh_meeting bh_ground_meeting(const struct bh_ground *g, uint32_t tenant)
{
    bool internal = g->index.p->tenants.at[tenant].trust == BH_TRUST_INTERNAL, placed = false;

    if (!distrusts(g, &g->everyone, tenant))
        return BH_MEETS_NOBODY;
    BH_EACH(at, &g->index.tenant_pools, tenant)
    {
        const struct bh_pool *p = &g->index.p->pools.at[*at];
        if (distrusts(g, &g->neighbours[*at], tenant))
            return BH_MEETS_OTHERS;
        /*
         * An outsider owns its nodes only where a pool says so: named nodes, and a tier that would not
         * let the next VM in.
         */
        if (!internal && (p->tier >= BH_TIER_VM || !pool_has_nodes(g, p)))
            return BH_MEETS_OTHERS;
        placed = placed || pool_has_nodes(g, p);
    }
    if (placed)
        return BH_MEETS_NOBODY_HERE;
    if (!internal)
        return BH_MEETS_OTHERS;
    return !g->index.fleet || finds_free_kernel(g, tenant) ? BH_MEETS_NOBODY_HERE : BH_MEETS_OTHERS;
}

/* ---- silicon ---- */

bool bh_ground_pool_takes(const struct bh_ground *g, uint32_t pool, const struct bh_gpu_model *m)
{
    uint64_t named = g->index.pool_models[pool];
    return !named || named >> (m - bh_catalog_at(0)) & 1;
}

static void silicon_add(struct bh_silicon *s, const struct bh_gpu_model *model, bool for_vm)
{
    for (size_t i = 0; i < s->models.n; i++) {
        if (s->models.at[i].model == model) {
            s->models.at[i].for_vm = s->models.at[i].for_vm || for_vm;
            return;
        }
    }
    *bh_vec_push(&s->models) = (struct bh_at_hand){.model = model, .for_vm = for_vm};
}

static bool driver_accepted(const struct bh_tenant *t, const char *driver)
{
    if (!t->drivers.n || !driver || !*driver)
        return true;
    for (size_t i = 0; i < t->drivers.n; i++) {
        if (bh_version_accepts(t->drivers.at[i].s, driver))
            return true;
    }
    return false;
}

static void silicon_read(struct bh_silicon *s, const struct bh_fleet *fleet, const struct bh_tenant *t,
                         bool mixed)
{
    if (!fleet) {
        s->site_exists = s->vgpu_manager = true;
        for (size_t i = 0; i < bh_catalog_count(); i++)
            silicon_add(s, bh_catalog_at(i), true);
        return;
    }
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &fleet->nodes.at[i];
        if (t->site && !bh_str_eq(t->site, n->site))
            continue;
        s->site_exists = true;
        if (!driver_accepted(t, n->driver))
            continue;
        bool for_vm = n->iommu != BH_FACT_NO && !(mixed && n->acs == BH_FACT_NO);
        for (size_t k = 0; k < n->gpus.n; k++)
            silicon_add(s, n->gpus.at[k].model, for_vm);
        s->vgpu_manager = s->vgpu_manager || (n->vgpu_manager && *n->vgpu_manager);
    }
}

/* Everything of a tenant that decides which nodes it may use. */
static char *silicon_key(struct bh_arena *a, const struct bh_tenant *t, bool mixed)
{
    char *key = bh_arena_printf(a, "%c%s", mixed ? 'm' : 'a', t->site ? t->site : "");
    for (size_t i = 0; i < t->drivers.n; i++)
        key = bh_arena_printf(a, "%s\n%s", key, t->drivers.at[i].s);
    return key;
}

const struct bh_silicon *bh_ground_silicon(struct bh_ground *g, uint32_t tenant)
{
    const struct bh_tenant *t = &g->index.p->tenants.at[tenant];
    bool mixed = distrusts(g, &g->everyone, tenant);
    const char *key = silicon_key(&g->scratch.arena, t, mixed);
    uint32_t at = bh_map_find(&g->silicon_by_key, key);

    if (at == BH_MAP_NONE) {
        at = (uint32_t)g->silicon.n;
        struct bh_silicon *s = bh_vec_push(&g->silicon);
        *s = (struct bh_silicon){.site_exists = false};
        silicon_read(s, g->index.fleet, t, mixed);
        (void)bh_map_add(&g->silicon_by_key, key, at);
    }
    return &g->silicon.at[at];
}
