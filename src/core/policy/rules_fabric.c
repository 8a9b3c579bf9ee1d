/* SPDX-License-Identifier: Apache-2.0 */
/* rules_fabric.c - BH-040..BH-046: links between GPUs, labels, and what is put together. */
#include "core/policy/lint.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>

/* ---- BH-040: one workload, one fabric domain ---- */

/* The fabric domains of the GPUs a workload was given; `unplaced` when one of them is in no known domain. */
static const char *assigned_domains(struct bh_lint *l, const struct bh_workload *w, size_t *ret_n)
{
    struct bh_naming names;
    struct bh_map seen = {0};
    bh_naming_init(&names, 6);
    for (size_t i = 0; i < w->assigned.n; i++) {
        const struct bh_assigned *g = &w->assigned.at[i];
        const char *fabric = bh_gpu_fabric(l, g->node, g->index);
        if (!fabric)
            bh_unknown(l, "the fabric domain of GPU %s:%" PRIu32 " is not known", g->node, g->index);
        else if (bh_map_add(&seen, fabric, 0) == BH_MAP_NONE)
            bh_naming_add(&names, fabric);
    }
    bh_map_fini(&seen);
    *ret_n = names.n;
    return bh_naming_end(l, &names);
}

/* Pools with the same match share one list of GPUs, and so the answers about it. */
static bool same_gpus(const struct bh_pool *a, const struct bh_pool *b)
{
    return a->gpus.n == b->gpus.n && a->gpus.at == b->gpus.at;
}

/* The most GPUs a pool has inside one fabric domain; 0: some GPU's domain is unknown. */
static uint64_t largest_domain(const struct bh_lint *l, const struct bh_pool *pool)
{
    struct bh_map index = {0};
    BH_VEC(uint64_t) sizes = {0};
    uint64_t most = 0;
    bool known = pool->gpus.n > 0;
    for (size_t i = 0; known && i < pool->gpus.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[pool->gpus.at[i].node];
        const char *fabric = bh_fleet_gpu_fabric(l, n, &n->gpus.at[pool->gpus.at[i].gpu]);
        if (!fabric) {
            known = false;
            break;
        }
        uint32_t at = bh_map_add(&index, fabric, (uint32_t)sizes.n);
        if (at == BH_MAP_NONE) {
            at = (uint32_t)sizes.n;
            *bh_vec_push(&sizes) = 0;
        }
        if (++sizes.at[at] > most)
            most = sizes.at[at];
    }
    bh_map_fini(&index);
    bh_vec_fini(&sizes);
    return known ? most : 0;
}

BH_CHECK(040)
{
    if (l->fabrics_cut)
        bh_unknown(l, "the `fabric` section names more GPUs than can be held against each other");
    uint64_t *largest = bh_alloc(l->p->pools.n, sizeof(*largest));
    for (size_t i = 0; l->fleet && i < l->p->pools.n; i++)
        largest[i] = i && same_gpus(&l->p->pools.at[i], &l->p->pools.at[i - 1])
                         ? largest[i - 1]
                         : largest_domain(l, &l->p->pools.at[i]);
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        if (w->allow_span)
            continue;
        struct bh_subject s = bh_about_workload(w);
        size_t n = 0;
        const char *names = w->assigned.n > 1 ? assigned_domains(l, w, &n) : "";
        if (n > 1) {
            s.cause = w->assigned.at[0].pos;
            bh_found(l, s, "Workload %s spans fabric domains %s.", w->name, names);
        } else if (!w->assigned.n && w->pool != BH_NONE && largest[w->pool] &&
                   w->gpus_milli > largest[w->pool] * 1000) {
            struct bh_unit_text want;
            bh_found(
                l, s,
                "Workload %s spans fabric domains: it asks for %s GPUs, the largest domain of pool %s has %" PRIu64
                ".",
                w->name, bh_count_format(w->gpus_milli, &want), l->p->pools.at[w->pool].name,
                largest[w->pool]);
        }
    }
    free(largest);
}

/* ---- BH-041: who meets on a fabric ---- */

struct fabric_use {
    const char *name;
    struct bh_pos pos;
    uint8_t mode;
    uint32_t owner;               /* tenant; BH_NONE: nobody's */
    struct bh_domains all, peers; /* peers: those whose mechanism leaves peer access open */
    const char *node;             /* the first GPU met, */
    uint32_t index;
    bool several; /* and whether there is another: one GPU alone has no peer */
};

struct fabric_walk {
    struct bh_lint *l;
    struct bh_map by_name;
    BH_VEC(struct fabric_use) uses;
    uint32_t pool;
    const struct bh_pool *at;
    BH_VEC(uint32_t) met; /* the fabrics of the GPUs of `met_by`, each once */
    const struct bh_pool *met_by;
    bool elsewhere_too;                    /* it has GPUs outside the fabric being joined */
    bool known;                            /* some fabric of the pool at hand is */
    struct bh_domains everyone, elsewhere; /* peers of all pools; of those whose fabric nobody names */
    const char *nowhere;                   /* the first such pool */
};

static struct fabric_use *use_of(struct fabric_walk *w, const char *name, struct bh_pos pos)
{
    uint32_t i = bh_map_add(&w->by_name, name, (uint32_t)w->uses.n);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)w->uses.n;
        /* an NVSwitch or hive nobody configured is shared */
        *bh_vec_push(&w->uses) = (struct fabric_use){.name = name,
                                                     .pos = pos,
                                                     .mode = BH_FABRIC_SHARED,
                                                     .owner = BH_NONE,
                                                     .all = bh_domains_none,
                                                     .peers = bh_domains_none};
    }
    return &w->uses.at[i];
}

static bool pool_has_domain(const struct bh_policy *p, const struct bh_pool *pool, const char *domain)
{
    for (size_t i = 0; i < pool->tenants.n; i++)
        if (bh_str_eq(p->tenants.at[pool->tenants.at[i]].domain, domain))
            return true;
    return false;
}

/* A MIG instance and a vGPU have no peer access to another GPU. */
static bool has_peers(const struct bh_pool *pool)
{
    enum bh_mechanism m = bh_pool_effective(pool);
    return !bh_mech_cuts_mig(m) && m != BH_MECH_VGPU;
}

/*
 * A fabric with an owner is given to the owner alone where the pool holds the owner and has GPUs elsewhere for
 * its other tenants.
 */
static void pool_joins(struct fabric_walk *w, struct fabric_use *u)
{
    const struct bh_policy *p = w->l->p;
    w->known = true;
    if (u->owner != BH_NONE && w->elsewhere_too && pool_has_domain(p, w->at, p->tenants.at[u->owner].domain))
        return;
    bh_domains_join(p, &u->all, &w->l->pool_domains[w->pool]);
    if (has_peers(w->at))
        bh_domains_join(p, &u->peers, &w->l->pool_domains[w->pool]);
}

static void meet_gpu(struct fabric_walk *w, struct fabric_use *u, const char *node, uint32_t index)
{
    if (!u->node) {
        u->node = bh_arena_str(&w->l->out->arena, node);
        u->index = index;
    }
    u->several = u->several || u->index != index || !bh_str_eq(u->node, node);
}

static void pool_joins_at(struct fabric_walk *w, const char *node, uint32_t index, struct bh_pos pos)
{
    const char *fabric = bh_gpu_fabric(w->l, node, index);
    if (!fabric)
        return;
    struct fabric_use *u = use_of(w, fabric, pos);
    meet_gpu(w, u, node, index);
    pool_joins(w, u);
}

enum { GPUS_PER_NODE = 16 }; /* without a fleet nobody says how many a node has */

static void pool_joins_node(void *ctx, const char *node)
{
    struct fabric_walk *w = ctx;
    for (uint32_t i = 0; !w->at->match.gpus.n && i < GPUS_PER_NODE; i++)
        pool_joins_at(w, node, i, w->at->pos);
    for (size_t i = 0; i < w->at->match.gpus.n; i++)
        pool_joins_at(w, node, w->at->match.gpus.at[i], w->at->pos);
}

/* The fabrics that a pool's GPUs of the fleet are in. */
static void meet_fleet_gpus(struct fabric_walk *w)
{
    struct bh_map seen = {0};
    w->met.n = 0;
    w->met_by = w->at;
    for (size_t k = 0; k < w->at->gpus.n; k++) {
        const struct bh_fleet_node *n = &w->l->fleet->nodes.at[w->at->gpus.at[k].node];
        const struct bh_gpu *g = &n->gpus.at[w->at->gpus.at[k].gpu];
        const char *fabric = bh_fleet_gpu_fabric(w->l, n, g);
        if (!fabric)
            continue;
        struct fabric_use *u = use_of(w, fabric, g->pos);
        meet_gpu(w, u, n->name, g->index);
        if (bh_map_add(&seen, fabric, 0) == BH_MAP_NONE)
            *bh_vec_push(&w->met) = (uint32_t)(u - w->uses.at);
    }
    bh_map_fini(&seen);
}

static void walk_pool(struct fabric_walk *w)
{
    if (w->l->fleet) {
        if (!w->met_by || !same_gpus(w->at, w->met_by))
            meet_fleet_gpus(w);
        w->elsewhere_too = w->met.n > 1;
        for (size_t k = 0; k < w->met.n; k++)
            pool_joins(w, &w->uses.at[w->met.at[k]]);
    } else if (w->at->match.fabric.s) {
        struct fabric_use *u = use_of(w, w->at->match.fabric.s, w->at->match.fabric.pos);
        u->several = true; /* how many it has is not written here */
        w->elsewhere_too = false;
        pool_joins(w, u);
    } else if (w->l->p->fabrics.n) {
        w->elsewhere_too = true; /* without a fleet nobody says where a pool ends */
        bh_pool_kernels(w->l, w->at, pool_joins_node, w);
    }
}

/* A pool whose fabric is written nowhere may still share one with tenants it distrusts. */
static void note_place(struct fabric_walk *w)
{
    if (!has_peers(w->at))
        return;
    bh_domains_join(w->l->p, &w->everyone, &w->l->pool_domains[w->pool]);
    if (w->known)
        return;
    bh_domains_join(w->l->p, &w->elsewhere, &w->l->pool_domains[w->pool]);
    w->nowhere = w->nowhere ? w->nowhere : w->at->name;
}

BH_CHECK(041)
{
    struct fabric_walk w = {.l = l, .everyone = bh_domains_none, .elsewhere = bh_domains_none};
    uint32_t x, y;
    if (l->fabrics_cut)
        bh_unknown(l, "the `fabric` section names more GPUs than can be held against each other");
    for (size_t i = 0; i < l->p->fabrics.n; i++) {
        const struct bh_fabric *f = &l->p->fabrics.at[i];
        struct fabric_use *u = use_of(&w, f->name, f->pos);
        u->mode = f->mode;
        u->owner = f->tenant.s ? bh_map_find(&l->p->tenant_by_name, f->tenant.s) : BH_NONE;
        if (u->owner != BH_NONE) {
            bh_domains_add(l->p, &u->all, u->owner);
            bh_domains_add(l->p, &u->peers, u->owner);
        }
    }
    for (w.pool = 0; w.pool < l->p->pools.n; w.pool++) {
        w.at = &l->p->pools.at[w.pool];
        w.known = false;
        walk_pool(&w);
        note_place(&w);
    }
    if (bh_domains_distrust(l->p, &w.elsewhere, &w.everyone, &x, &y))
        bh_unknown(l, "the fabric of pool '%s' is not known (a `fabric` section or a fleet file would say)",
                   w.nowhere);
    for (size_t i = 0; i < w.uses.n; i++) {
        const struct fabric_use *u = &w.uses.at[i];
        uint32_t a = u->all.any[0], b = u->all.any[1];
        bool meet = u->mode == BH_FABRIC_PARTITIONED
                        ? bh_domains_many(&u->all)
                        : bh_domains_distrust(l->p, &u->peers, &u->peers, &a, &b);
        if (meet && u->several)
            bh_found(l, (struct bh_subject){.kind = "fabric", .name = u->name, .pos = u->pos},
                     "Tenants %s, %s can exchange data over %s.", l->p->tenants.at[a].name,
                     l->p->tenants.at[b].name, u->name);
    }
    bh_map_fini(&w.by_name);
    bh_vec_fini(&w.uses);
    bh_vec_fini(&w.met);
}

/* ---- BH-042 ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool pool_takes(const struct bh_lint *l, const struct bh_pool *pool, const struct bh_assigned *g)
{
    uint32_t node = bh_map_find(&l->fleet->by_name, g->node);
    if (!bsearch(&node, pool->nodes.at, pool->nodes.n, sizeof(node), by_number))
        return false;
    const char *fabric = pool->match.fabric.s ? bh_gpu_fabric(l, g->node, g->index) : NULL;
    if (fabric && !bh_str_eq(fabric, pool->match.fabric.s))
        return false;
    for (size_t i = 0; i < pool->match.gpus.n; i++)
        if (pool->match.gpus.at[i] == g->index)
            return true;
    return pool->match.gpus.n == 0;
}

/* Does the fleet put an assigned GPU outside the workload's own pool? */
static bool leaves_pool(const struct bh_lint *l, const struct bh_workload *w)
{
    const struct bh_pool *pool = &l->p->pools.at[w->pool];
    for (size_t i = 0; i < w->assigned.n && pool->nodes.n; i++)
        if (!pool_takes(l, pool, &w->assigned.at[i]))
            return true;
    return false;
}

BH_CHECK(042)
{
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        if (!w->needs_nvlink || w->pool == BH_NONE)
            continue;
        const struct bh_pool *pool = &l->p->pools.at[w->pool];
        enum bh_mechanism m = bh_pool_effective(pool);
        if (bh_mech_cuts_mig(m) || m == BH_MECH_VGPU || leaves_pool(l, w))
            bh_found(l, bh_about_workload(w), "NVLink required but pool %s cannot provide it to one tenant.",
                     pool->name);
    }
}

/* ---- BH-043: labels against what was observed ---- */

struct drift {
    const char *label, *says, *is;
    struct bh_pos pos;
};

/* Does a label's value mean this GPU? One without a name may be anything. */
static bool names_gpu(const char *says, const struct bh_gpu *g)
{
    if (!g->model)
        return !g->model_name || bh_str_eq_nocase(says, g->model_name);
    return bh_catalog_matches(says, g->model) || bh_catalog_find(says) == g->model;
}

/*
 * GPU Feature Discovery writes one product for a node, also for one that has several, and counts those GPUs alone: a
 * node has drifted when none of its GPUs is the product, or another number of them. Of a node that is cut
 * (`-MIG-1g.10gb`) it counts slices.
 */
static bool product_differs(struct bh_lint *l, const struct bh_fleet_node *n, struct drift *ret)
{
    const struct bh_keyed *product = NULL, *count = NULL;
    size_t named = 0;
    for (size_t i = 0; i < n->labels.n; i++) {
        const struct bh_keyed *label = &n->labels.at[i];
        product = bh_str_eq(label->key, "nvidia.com/gpu.product") ? label : product;
        count = bh_str_eq(label->key, "nvidia.com/gpu.count") ? label : count;
    }
    for (size_t i = 0; i < n->gpus.n; i++)
        named += !product || names_gpu(product->value, &n->gpus.at[i]);
    if (product && !named && n->gpus.n) {
        *ret = (struct drift){product->key, product->value, n->gpus.at[0].model_name, product->pos};
        return true;
    }
    if (!count || (product && strstr(product->value, "-MIG-")))
        return false;
    *ret =
        (struct drift){count->key, count->value, bh_arena_printf(&l->out->arena, "%zu", named), count->pos};
    return !bh_str_eq(count->value, ret->is);
}

static bool label_differs(struct bh_lint *l, const struct bh_keyed *label, const struct bh_gpu *g,
                          struct drift *ret)
{
    const char *k = label->key, *v = label->value;
    *ret = (struct drift){.label = k, .says = v, .pos = label->pos};
    if (bh_str_eq(k, "fabric-domain")) {
        ret->is = g->fabric;
        return g->fabric && !bh_str_eq(v, g->fabric);
    }
    if (bh_str_eq(k, "numa-node")) {
        ret->is = bh_arena_printf(&l->out->arena, "%" PRId32, g->numa);
        return g->numa >= 0 && !bh_str_eq(v, ret->is);
    }
    if (bh_str_eq(k, "model") || bh_str_eq(k, "gpu-model")) {
        ret->is = g->model_name;
        return !names_gpu(v, g);
    }
    if (bh_str_eq(k, "mig") || bh_str_eq(k, "mig-enabled")) {
        bool on = bh_str_eq(v, "true") || bh_str_eq(v, "on") || bh_str_eq(v, "enabled") || bh_str_eq(v, "1");
        ret->is = g->mig_enabled == BH_FACT_YES ? "on" : "off";
        return g->mig_enabled != BH_FACT_UNKNOWN && on != (g->mig_enabled == BH_FACT_YES);
    }
    return false;
}

BH_CHECK(043)
{
    for (size_t i = 0; i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        struct drift d;
        bool drifted = product_differs(l, n, &d);
        for (size_t k = 0; k < n->labels.n && !drifted; k++) {
            const struct bh_keyed *label = &n->labels.at[k];
            for (size_t g = 0; g < n->gpus.n && !drifted; g++)
                drifted = label_differs(l, label, &n->gpus.at[g], &d);
            if (!drifted && bh_str_eq(label->key, "gpu-count")) {
                const char *is = bh_arena_printf(&l->out->arena, "%zu", n->gpus.n);
                drifted = !bh_str_eq(label->value, is);
                d = (struct drift){label->key, label->value, is, label->pos};
            }
        }
        if (!drifted)
            continue;
        struct bh_subject s = bh_about_node(n);
        s.cause = d.pos;
        bh_found(l, s, "Discovery drift on %s: label %s=%s, observed %s.", n->name, d.label, d.says, d.is);
    }
}

/* ---- BH-044, BH-046: what does not belong together ---- */

BH_CHECK(044)
{
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        bool seen[BH_N_pace] = {false};
        seen[pool->pace] = true;
        BH_EACH (wi, &l->pool_workloads, i)
            seen[l->p->workloads.at[*wi].pace] = true;
        if (seen[BH_PACE_LONG] && seen[BH_PACE_BURSTY])
            bh_found(l, bh_about_pool(pool), "Pool %s mixes long-running and bursty work.", pool->name);
    }
}

BH_CHECK(046)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        const struct bh_class *c = t->class_pos.line ? bh_policy_class(l->p, t->class_name) : NULL;
        if (!c)
            continue;
        BH_EACH (pi, &l->tenant_pools, i) {
            const struct bh_pool *pool = &l->p->pools.at[*pi];
            /* a tenant that names no quota model takes whatever the class has */
            enum bh_quota_model q =
                t->quota.has_model ? (enum bh_quota_model)t->quota.model : BH_N_quota_model;
            if (bh_class_accepts(c, pool->mechanism, q, pool->tier) ||
                bh_class_accepts(c, bh_pool_effective(pool), q, pool->tier))
                continue;
            struct bh_subject s = bh_about_tenant(t);
            s.cause = t->class_pos;
            bh_found(l, s, "Class %s is inconsistent: mechanism %s, quota %s, tier %s (pool %s).", c->name,
                     bh_word(mechanism, pool->mechanism),
                     t->quota.has_model ? bh_word(quota_model, t->quota.model) : "unset",
                     bh_word(tier, pool->tier), pool->name);
            break;
        }
    }
}
