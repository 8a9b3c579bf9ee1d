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
    g->index.names_left = BH_NAMES_MAX; /* the same names once more */
    for (size_t i = 0; i < p->pools.n; i++) {
        struct visit v = {g, &g->neighbours[i]};
        bh_pool_kernels(&g->index, &p->pools.at[i], gather_place, &v);
    }
}

/* ---- the fleet, by what a tenant can tell apart ---- */

static struct bh_lot *lot_get(struct bh_ground *g, struct bh_map *by_key, const struct bh_fleet_node *n,
                              const struct bh_gpu_model *model)
{
    const char *site = n->site ? n->site : "", *driver = n->driver ? n->driver : "";
    bool iommu = n->iommu != BH_FACT_NO, acs = n->acs != BH_FACT_NO;
    bool manager = n->vgpu_manager && *n->vgpu_manager;
    const char *key = bh_arena_printf(&g->scratch.arena, "%d%d%d %s\n%s\n%s", iommu, acs, manager,
                                      model ? model->name : "", driver, site);
    uint32_t at = bh_map_add(by_key, key, (uint32_t)g->lots.n);
    if (at != BH_MAP_NONE)
        return &g->lots.at[at];
    struct bh_lot *lot = bh_vec_push(&g->lots);
    *lot = (struct bh_lot){
        .model = model,
        .site = n->site,
        .driver = driver,
        .iommu = iommu,
        .acs = acs,
        .vgpu_manager = manager,
    };
    return lot;
}

static void find_lots(struct bh_ground *g)
{
    struct bh_map by_key = {0};
    for (size_t i = 0; g->index.fleet && i < g->index.fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &g->index.fleet->nodes.at[i];
        /* A node without GPUs is still a node in a site. */
        struct bh_lot *lot = n->gpus.n ? NULL : lot_get(g, &by_key, n, NULL);
        for (size_t k = 0; k < n->gpus.n; k++) {
            if (!lot || lot->model != n->gpus.at[k].model)
                lot = lot_get(g, &by_key, n, n->gpus.at[k].model);
            lot->gpus++;
            lot->free++;
        }
    }
    bh_map_fini(&by_key);
}

bool bh_lot_for_vm(const struct bh_lot *lot, bool mixed)
{
    return lot->iommu && (!mixed || lot->acs);
}

void bh_ground_init(struct bh_ground *g, const struct bh_policy *policy, const struct bh_fleet *fleet)
{
    *g = (struct bh_ground){.everyone = bh_domains_none};
    g->index = (struct bh_lint){.p = policy, .fleet = fleet, .out = &g->scratch};
    bh_lint_index(&g->index);
    g->neighbours = bh_alloc(policy->pools.n, sizeof(*g->neighbours));
    find_neighbours(g);
    find_lots(g);
    for (uint32_t i = 0; i < policy->tenants.n; i++)
        bh_domains_add(policy, &g->everyone, i);
}

void bh_ground_fini(struct bh_ground *g)
{
    for (size_t i = 0; i < g->silicon.n; i++) {
        for (size_t k = 0; k < g->silicon.at[i].models.n; k++)
            bh_vec_fini(&g->silicon.at[i].models.at[k].lots);
        bh_vec_fini(&g->silicon.at[i].models);
    }
    bh_vec_fini(&g->silicon);
    for (size_t i = 0; i < g->lots.n; i++)
        bh_vec_fini(&g->lots.at[i].opened);
    bh_vec_fini(&g->lots);
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
    BH_EACH (at, &g->index.tenant_pools, tenant) {
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

    BH_EACH (at, &g->index.tenant_pools, tenant) {
        const struct bh_pool *p = &g->index.p->pools.at[*at];
        if (a.claim_pool == BH_NONE && (p->claims & boundary))
            a.claim_pool = *at;
        if (p->cap_memory_bytes > a.cap_bytes)
            a.cap_bytes = p->cap_memory_bytes;
    }
    BH_EACH (at, &g->index.tenant_workloads, tenant) {
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

enum bh_meeting bh_ground_meeting(const struct bh_ground *g, uint32_t tenant)
{
    bool internal = g->index.p->tenants.at[tenant].trust == BH_TRUST_INTERNAL, placed = false;
    /* A VM has a kernel of its own: the operator's teams stay where they are, and outsiders get the VM. */
    enum bh_meeting met = internal ? BH_MEETS_VMS : BH_MEETS_OTHERS;

    if (!distrusts(g, &g->everyone, tenant))
        return BH_MEETS_NOBODY;
    BH_EACH (at, &g->index.tenant_pools, tenant) {
        const struct bh_pool *p = &g->index.p->pools.at[*at];
        if (distrusts(g, &g->neighbours[*at], tenant))
            return met;
        /*
         * An outsider owns its nodes only where a pool says so: named nodes, and a tier that would not
         * let the next VM in.
         */
        if (!internal && (p->tier >= BH_TIER_VM || !pool_has_nodes(g, p)))
            return met;
        placed = placed || pool_has_nodes(g, p);
    }
    /* Patterns too large to be walked say nothing about who stands where. */
    return placed && !g->index.unknown ? BH_MEETS_NOBODY_HERE : met;
}

/* ---- silicon ---- */

bool bh_ground_pool_takes(const struct bh_ground *g, uint32_t pool, const struct bh_gpu_model *m)
{
    uint64_t named = g->index.pool_models[pool];
    return !named || named >> (m - bh_catalog_at(0)) & 1;
}

/* Models with a confidential mode that takes one GPU into one VM. MIG together with it is not offered. */
static bool is_confidential(const struct bh_gpu_model *m)
{
    static const char *const names[] = {"H100", "H200", "B200", "B300", "RTX-PRO-6000"};
    for (size_t i = 0; m && i < BH_COUNT_OF(names); i++) {
        if (bh_catalog_matches(names[i], m))
            return true;
    }
    return false;
}

static struct bh_at_hand *silicon_add(struct bh_silicon *s, const struct bh_gpu_model *model, bool for_vm)
{
    for (size_t i = 0; i < s->models.n; i++) {
        if (s->models.at[i].model == model) {
            s->models.at[i].for_vm = s->models.at[i].for_vm || for_vm;
            return &s->models.at[i];
        }
    }
    struct bh_at_hand *h = bh_vec_push(&s->models);
    *h = (struct bh_at_hand){.model = model, .for_vm = for_vm, .confidential = is_confidential(model)};
    return h;
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

static void silicon_read(struct bh_silicon *s, const struct bh_ground *g, const struct bh_tenant *t)
{
    if (!g->index.fleet) {
        s->site_exists = s->vgpu_manager = true;
        for (size_t i = 0; i < bh_catalog_count(); i++)
            (void)silicon_add(s, bh_catalog_at(i), true);
        return;
    }
    for (uint32_t i = 0; i < g->lots.n; i++) {
        const struct bh_lot *lot = &g->lots.at[i];
        if (t->site && !bh_str_eq(t->site, lot->site))
            continue;
        s->site_exists = true;
        if (!lot->gpus || !driver_accepted(t, lot->driver))
            continue;
        struct bh_at_hand *h = silicon_add(s, lot->model, bh_lot_for_vm(lot, s->mixed));
        *bh_vec_push(&h->lots) = i;
        s->vgpu_manager = s->vgpu_manager || lot->vgpu_manager;
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
        *s = (struct bh_silicon){.mixed = mixed};
        silicon_read(s, g, t);
        (void)bh_map_add(&g->silicon_by_key, key, at);
    }
    return &g->silicon.at[at];
}
