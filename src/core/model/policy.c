/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - the model of a policy: its defaults, its end, and the questions every rule asks.
 * Names become indices in link.c; patterns become names in names.c.
 */
#include "core/model/policy.h"

#include "base/str.h"
#include "core/model/tables.h"

#define DAY_MS UINT64_C(86400000)

void bh_policy_init(struct bh_policy *p, enum bh_source source)
{
    *p = (struct bh_policy){.source = (uint8_t)source};
    p->audit.enabled = true;
    p->audit.retention_ms = 365 * DAY_MS;
    p->prices.borrowed_ppm = 1000000;
}

static void tenant_fini(struct bh_tenant *t)
{
    bh_vec_fini(&t->drivers);
    bh_vec_fini(&t->images);
    bh_vec_fini(&t->quota.resources);
    bh_vec_fini(&t->quota.stated);
}

/* What another pool lent (cap 0) is freed there. */
static void pool_fini(struct bh_pool *p)
{
    bh_vec_fini(&p->match.nodes);
    bh_vec_fini(&p->match.gpus);
    bh_vec_fini(&p->profiles);
    bh_vec_fini(&p->layout);
    bh_vec_fini(&p->tenant_names);
    bh_vec_fini(&p->drivers);
    bh_vec_fini(&p->exposes);
    if (p->tenants.cap)
        bh_vec_fini(&p->tenants);
    if (p->gpus.cap)
        bh_vec_fini(&p->gpus);
    if (p->nodes.cap)
        bh_vec_fini(&p->nodes);
}

static void workload_fini(struct bh_workload *w)
{
    bh_vec_fini(&w->mounts);
    bh_vec_fini(&w->devices);
    bh_vec_fini(&w->assigned);
    bh_vec_fini(&w->env);
    bh_vec_fini(&w->requests);
}

void bh_policy_fini(struct bh_policy *p)
{
    for (size_t i = 0; i < p->tenants.n; i++)
        tenant_fini(&p->tenants.at[i]);
    for (size_t i = 0; i < p->pools.n; i++)
        pool_fini(&p->pools.at[i]);
    for (size_t i = 0; i < p->fabrics.n; i++)
        bh_vec_fini(&p->fabrics.at[i].gpus);
    for (size_t i = 0; i < p->workloads.n; i++)
        workload_fini(&p->workloads.at[i]);
    bh_vec_fini(&p->tenants);
    bh_vec_fini(&p->pools);
    bh_vec_fini(&p->fabrics);
    bh_vec_fini(&p->workloads);
    bh_vec_fini(&p->classes);
    bh_vec_fini(&p->roles);
    bh_vec_fini(&p->waivers);
    bh_vec_fini(&p->audit.exclude);
    bh_vec_fini(&p->every_tenant);
    bh_map_fini(&p->tenant_by_name);
    bh_map_fini(&p->pool_by_name);
    bh_map_fini(&p->class_by_name);
    bh_arena_fini(&p->arena);
}

struct bh_tenant *bh_policy_add_tenant(struct bh_policy *p)
{
    struct bh_tenant *t = bh_vec_push(&p->tenants);
    *t = (struct bh_tenant){.source = p->source, .trust = BH_TRUST_INTERNAL};
    t->quota.weight = 100;
    t->slo.kind = BH_SLO_NONE;
    t->priority.ceiling = BH_PRIORITY_NORMAL;
    return t;
}

struct bh_pool *bh_policy_add_pool(struct bh_policy *p)
{
    struct bh_pool *pool = bh_vec_push(&p->pools);
    *pool = (struct bh_pool){.source = p->source, .tier = BH_TIER_CONTAINER};
    return pool;
}

struct bh_workload *bh_policy_add_workload(struct bh_policy *p)
{
    struct bh_workload *w = bh_vec_push(&p->workloads);
    *w = (struct bh_workload){
        .source = p->source,
        .priority = BH_PRIORITY_NORMAL,
        .tenant = BH_NONE,
        .pool = BH_NONE,
    };
    return w;
}

enum bh_mechanism bh_pool_effective(const struct bh_pool *p)
{
    return p->mechanism == BH_MECH_FRACTIONAL ? p->backing : p->mechanism;
}

bool bh_pool_is_shared(const struct bh_pool *p)
{
    return p->tenants.n > 1 || p->mechanism != BH_MECH_WHOLE;
}

bool bh_tenants_distrust(const struct bh_tenant *a, const struct bh_tenant *b)
{
    bool outsider = a->trust != BH_TRUST_INTERNAL || b->trust != BH_TRUST_INTERNAL;
    return outsider && !bh_str_eq(a->domain, b->domain);
}

/* A declared class stands before a built-in one of the same name. */
const struct bh_class *bh_policy_class(const struct bh_policy *p, const char *name)
{
    if (!name)
        return NULL;
    uint32_t declared = bh_map_find(&p->class_by_name, name);
    if (declared != BH_MAP_NONE)
        return &p->classes.at[declared];
    for (size_t i = 0; !p->class_by_name.n && i < p->classes.n; i++) /* not linked yet */
        if (bh_str_eq(p->classes.at[i].name, name))
            return &p->classes.at[i];
    for (size_t i = 0; i < bh_builtin_class_count; i++)
        if (strcmp(bh_builtin_classes[i].name, name) == 0)
            return &bh_builtin_classes[i];
    return NULL;
}

struct bh_bandwidth bh_tenant_bandwidth(const struct bh_tenant *t)
{
    struct bh_bandwidth b = t->bandwidth;
    if (t->class_ && !b.network)
        b.network = t->class_->bandwidth.network;
    if (t->class_ && !b.disk)
        b.disk = t->class_->bandwidth.disk;
    return b;
}

bool bh_tenant_is_serving(const struct bh_tenant *t)
{
    return bh_str_eq(t->class_name, "serving") ||
           (t->class_ && t->class_->slos == UINT32_C(1) << BH_SLO_HARD);
}
