/* SPDX-License-Identifier: Apache-2.0 */
/* rules_sharing.c - BH-001..BH-013: who may share what with whom. */
#include "core/policy/lint.h"

#include "base/str.h"
#include "core/policy/words.h"

#include <inttypes.h>

/* ---- BH-001: what meets on one kernel ---- */

/* Every pool whose tenants run on the host's kernel, seen kernel by kernel. */
struct kernel_meeting {
    struct bh_lint *l;
    struct bh_map by_kernel; /* kernel -> index into kernels */
    BH_VEC(struct bh_domains) kernels;
    const struct bh_pool *pool;    /* being walked */
    const struct bh_domains *mine; /* of it */
    struct bh_map first_node;      /* kernel -> the fleet's first node that runs it */
    struct bh_map by_nodes;        /* the list of nodes that pools of one match share -> index into walked */
    BH_VEC(struct bh_domains) walked;
    struct bh_map spoken; /* kernels already found */
    const char *first;    /* without a fleet: where the pool meets another; NULL: nowhere */
    uint32_t a, b;        /* the distrusting pair there */
};

static void share_kernel(struct bh_lint *l, struct bh_subject s, uint32_t a, uint32_t b, const char *kernel)
{
    const char *who = l->p->tenants.at[a].name, *other = l->p->tenants.at[b].name;
    if (kernel)
        bh_found(l, s, "Tenants %s and %s do not trust each other but share kernel %s.", who, other, kernel);
    else
        bh_found(l, s, "Tenants %s and %s do not trust each other but share a kernel in pool %s.", who, other,
                 s.name);
}

/* Each kernel's first node of the fleet. */
static void index_kernels(struct kernel_meeting *m)
{
    for (uint32_t i = 0; m->l->fleet && i < m->l->fleet->nodes.n; i++)
        (void)bh_map_add(&m->first_node, m->l->fleet->nodes.at[i].kernel, i);
}

/* Two pools meet here: with a fleet that is the node's finding, without one the later pool's. */
static void strangers_meet(struct kernel_meeting *m, const char *key, uint32_t a, uint32_t b)
{
    if (bh_map_add(&m->spoken, key, 0) != BH_MAP_NONE)
        return;
    uint32_t node = bh_map_find(&m->first_node, key);
    if (node != BH_MAP_NONE) {
        share_kernel(m->l, bh_about_node(&m->l->fleet->nodes.at[node]), a, b, key);
    } else if (!m->first) {
        m->first = key;
        m->a = a;
        m->b = b;
    }
}

static void meet(void *ctx, const char *kernel)
{
    struct kernel_meeting *m = ctx;
    uint32_t k = bh_map_find(&m->by_kernel, kernel), a, b;
    if (k == BH_MAP_NONE) {
        k = (uint32_t)m->kernels.n;
        *bh_vec_push(&m->kernels) = bh_domains_none;
        /* names from a pattern live only during the walk */
        (void)bh_map_add(&m->by_kernel, bh_arena_str(&m->l->out->arena, kernel), k);
    } else if (bh_domains_distrust(m->l->p, &m->kernels.at[k], m->mine, &a, &b)) {
        strangers_meet(m, bh_arena_str(&m->l->out->arena, kernel), a, b);
    }
    bh_domains_join(m->l->p, &m->kernels.at[k], m->mine);
}

/*
 * Thousands of pools may share one match. Where such a pool brings no trust domain that another of them has not
 * brought, walking the same nodes again finds nothing new.
 */
static bool brings_nothing(struct kernel_meeting *m)
{
    if (!m->l->fleet)
        return false;
    const char *key = bh_arena_printf(&m->l->out->arena, "%" PRIxPTR " %zu", (uintptr_t)m->pool->nodes.at,
                                      m->pool->nodes.n);
    uint32_t g = bh_map_add(&m->by_nodes, key, (uint32_t)m->walked.n);
    if (g == BH_MAP_NONE) {
        *bh_vec_push(&m->walked) = *m->mine;
        return false;
    }
    struct bh_domains before = m->walked.at[g];
    bh_domains_join(m->l->p, &m->walked.at[g], m->mine);
    return memcmp(&before, &m->walked.at[g], sizeof(before)) == 0;
}

/* With whole GPUs on one-GPU machines tenants of a pool never run side by side. */
static bool one_gpu_each(const struct bh_lint *l, const struct bh_pool *pool)
{
    if (!l->fleet || !pool->nodes.n || bh_pool_effective(pool) != BH_MECH_WHOLE)
        return false;
    for (size_t i = 0; i < pool->nodes.n; i++)
        if (l->fleet->nodes.at[pool->nodes.at[i]].gpus.n != 1)
            return false;
    return true;
}

/* Where the tenants of one pool meet, as far as the files say. */
static const char *a_node(const struct bh_lint *l, const struct bh_pool *pool)
{
    if (pool->nodes.n)
        return l->fleet->nodes.at[pool->nodes.at[0]].kernel;
    return pool->match.nodes.n ? pool->match.nodes.at[0].s : NULL;
}

/* Without a fleet and without node names nobody knows whom a pool's tenants meet. */
static bool place_unknown(const struct bh_lint *l, const struct bh_pool *pool)
{
    return !l->fleet && !pool->match.nodes.n;
}

/* Says so where a meeting would matter: the tenants of two pools distrust each other and one's nodes are unknown. */
static void strangers_somewhere(struct bh_lint *l)
{
    struct bh_domains all = bh_domains_none, unplaced = bh_domains_none;
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        uint32_t a, b;
        if (!bh_tier_shares_kernel(pool->tier))
            continue;
        bool unknown = place_unknown(l, pool);
        if (bh_domains_distrust(l->p, &l->pool_domains[i], unknown ? &all : &unplaced, &a, &b)) {
            bh_unknown(
                l,
                "pool '%s' and another hold tenants who distrust each other, and not both say which nodes they use",
                pool->name);
            return;
        }
        bh_domains_join(l->p, &all, &l->pool_domains[i]);
        if (unknown)
            bh_domains_join(l->p, &unplaced, &l->pool_domains[i]);
    }
}

BH_CHECK(001)
{
    struct kernel_meeting m = {.l = l};
    strangers_somewhere(l);
    index_kernels(&m);
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (!bh_tier_shares_kernel(pool->tier))
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->tier_pos;
        m.pool = pool;
        m.mine = &l->pool_domains[i];
        m.first = NULL;
        uint32_t a, b;
        bool mixed = !one_gpu_each(l, pool) && bh_domains_distrust(l->p, m.mine, m.mine, &a, &b);
        if (mixed)
            share_kernel(l, s, a, b, a_node(l, pool));
        if (!brings_nothing(&m))
            bh_pool_kernels(l, pool, meet, &m);
        if (m.first && !mixed)
            share_kernel(l, s, m.a, m.b, m.first);
    }
    bh_map_fini(&m.by_kernel);
    bh_map_fini(&m.spoken);
    bh_map_fini(&m.by_nodes);
    bh_map_fini(&m.first_node);
    bh_vec_fini(&m.walked);
    bh_vec_fini(&m.kernels);
}

/* ---- trust ---- */

static const char *domain_names(struct bh_lint *l, const struct bh_pool *pool)
{
    struct bh_naming names;
    struct bh_map seen = {0};
    bh_naming_init(&names, 6);
    for (size_t i = 0; i < pool->tenants.n; i++) {
        const char *domain = l->p->tenants.at[pool->tenants.at[i]].domain;
        if (bh_map_add(&seen, domain, 0) == BH_MAP_NONE)
            bh_naming_add(&names, domain);
    }
    bh_map_fini(&seen);
    return bh_naming_end(l, &names);
}

/* `tenant a` or `tenants a, b`: those of a pool that are not internal (`external_only`: nor partners); NULL: none. */
static const char *foreign_names(struct bh_lint *l, const struct bh_pool *pool, bool external_only)
{
    struct bh_naming names;
    bh_naming_init(&names, 6);
    for (size_t i = 0; i < pool->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[pool->tenants.at[i]];
        if (t->trust == BH_TRUST_EXTERNAL || (!external_only && t->trust == BH_TRUST_PARTNER))
            bh_naming_add(&names, t->name);
    }
    size_t n = names.n;
    const char *text = bh_naming_end(l, &names);
    return n ? bh_arena_printf(&l->out->arena, "tenant%s %s", n == 1 ? "" : "s", text) : NULL;
}

BH_CHECK(002)
{
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (bh_pool_effective(pool) == BH_MECH_MPS && bh_domains_many(&l->pool_domains[i]))
            bh_found(
                l, bh_about_pool(pool),
                "MPS pool %s mixes trust domains %s; a fault or stall of one client reaches all, and caches are "
                "shared.",
                pool->name, domain_names(l, pool));
    }
}

BH_CHECK(003)
{
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        const char *names =
            bh_pool_effective(pool) == BH_MECH_TIMESLICE ? foreign_names(l, pool, false) : NULL;
        if (!names)
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->mechanism_pos;
        bh_found(l, s, "Time-slicing gives untrusted %s no memory-capacity, cache or fault separation.",
                 names);
    }
}

BH_CHECK(004)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (pool->mechanism != BH_MECH_FRACTIONAL || pool->backing != BH_MECH_UNSET)
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->mechanism_pos;
        bh_found(l, s, "Fractional pool %s names no backing primitive; its isolation is unknown.",
                 pool->name);
    }
}

/* mig-vgpu is missing on purpose: behind a VM it is the strongest shared option offered. */
static bool bounds_only_performance(enum bh_mechanism m)
{
    return m == BH_MECH_MIG || m == BH_MECH_VGPU || bh_mech_is_soft(m);
}

static bool claims_security(const struct bh_pool *pool)
{
    uint32_t asked = 1u << BH_CLAIM_SECURITY_BOUNDARY | 1u << BH_CLAIM_CONFIDENTIAL;
    if (pool->claims & asked)
        return true;
    return bh_claims(pool->description, "security boundary") ||
           bh_claims(pool->description, "security-boundary") || bh_claims(pool->description, "confidential");
}

BH_CHECK(005)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (pool->tier >= BH_TIER_VM || !bounds_only_performance(bh_pool_effective(pool)) ||
            !claims_security(pool))
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->description_pos;
        bh_found(l, s, "%s is a QoS boundary, not a confidentiality boundary.",
                 bh_word(mechanism, pool->mechanism));
    }
}

BH_CHECK(006)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (!t->operator_untrusted)
            continue;
        BH_EACH (pi, &l->tenant_pools, i) {
            const struct bh_pool *pool = &l->p->pools.at[*pi];
            if (pool->tier == BH_TIER_CVM)
                continue;
            struct bh_subject s = bh_about_tenant(t);
            s.cause = pool->tier_pos;
            bh_found(
                l, s,
                "Tenant %s excludes the operator from trust; tier %s of pool %s lets the host read its memory.",
                t->name, bh_word(tier, pool->tier), pool->name);
            break;
        }
    }
}

BH_CHECK(008)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (!t->regimes)
            continue;
        BH_EACH (pi, &l->tenant_pools, i) {
            const struct bh_pool *pool = &l->p->pools.at[*pi];
            if (bh_mech_fits_regulated(bh_pool_effective(pool)))
                continue;
            bh_found(l, bh_about_tenant(t), "Regulated tenant %s runs on %s (pool %s).", t->name,
                     bh_word(mechanism, pool->mechanism), pool->name);
            break;
        }
    }
}

/* `1c.3g.71gb`: a compute instance inside a GPU instance, which others may share. */
static bool is_compute_instance(const char *profile)
{
    const char *p = profile;
    while (bh_is_digit(*p))
        p++;
    return p > profile && p[0] == 'c' && p[1] == '.';
}

static const char *compute_instance(const struct bh_pool *pool, struct bh_pos *ret_pos)
{
    static const char mig[] = "nvidia.com/mig-";
    for (size_t i = 0; i < pool->profiles.n; i++) {
        *ret_pos = pool->profiles.at[i].pos;
        if (is_compute_instance(pool->profiles.at[i].s))
            return pool->profiles.at[i].s;
    }
    for (size_t i = 0; i < pool->layout.n; i++) {
        *ret_pos = pool->layout.at[i].pos;
        if (is_compute_instance(pool->layout.at[i].profile))
            return pool->layout.at[i].profile;
    }
    for (size_t i = 0; i < pool->exposes.n; i++) {
        *ret_pos = pool->exposes.at[i].pos;
        if (bh_str_starts(pool->exposes.at[i].s, mig) &&
            is_compute_instance(pool->exposes.at[i].s + strlen(mig)))
            return pool->exposes.at[i].s + strlen(mig);
    }
    return NULL;
}

BH_CHECK(009)
{
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        struct bh_subject s = bh_about_pool(pool);
        const char *ci = compute_instance(pool, &s.cause);
        if (!ci || !bh_mech_cuts_mig(bh_pool_effective(pool)) || !bh_domains_many(&l->pool_domains[i]))
            continue;
        const uint32_t *two = l->pool_domains[i].any;
        bh_found(l, s, "Tenants %s, %s share GPU instance %s: same L2, memory bandwidth and memory pool.",
                 l->p->tenants.at[two[0]].name, l->p->tenants.at[two[1]].name, strchr(ci, '.') + 1);
    }
}

BH_CHECK(010)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (!bh_str_eq(t->class_name, "sovereign") && !bh_str_eq(t->class_name, "classified"))
            continue;
        BH_EACH (pi, &l->tenant_pools, i) {
            const struct bh_pool *pool = &l->p->pools.at[*pi];
            if (!bh_tier_shares_kernel(pool->tier))
                continue;
            bh_found(l, bh_about_tenant(t),
                     "Namespace isolation is soft: %s tenant %s runs in tier %s of pool %s.", t->class_name,
                     t->name, bh_word(tier, pool->tier), pool->name);
            break;
        }
    }
}

BH_CHECK(011)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        const char *names = bh_pool_effective(pool) == BH_MECH_VGPU ? foreign_names(l, pool, true) : NULL;
        if (names)
            bh_found(
                l, bh_about_pool(pool),
                "Time-sliced vGPU shares SMs, caches and power in turns; only the framebuffer is partitioned "
                "(external %s).",
                names);
    }
}

BH_CHECK(012)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (!bh_mech_cuts_mig(bh_pool_effective(pool)))
            continue;
        /* a layout that no node of the cluster chose is cut nowhere */
        if (pool->source != BH_SOURCE_POLICY && !pool->tenants.n)
            continue;
        const char *where = pool->match.model.s ? pool->match.model.s
                            : pool->model       ? pool->model->name
                                                : pool->name;
        bh_found(
            l, bh_about_pool(pool),
            "Shared under MIG on %s: PCIe link, clocks, power budget, thermals, driver, firmware; published "
            "cross-instance timing channels exist.",
            where);
    }
}

BH_CHECK(013)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (pool->tier < BH_TIER_VM || bh_mech_fits_vm(bh_pool_effective(pool)))
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->tier_pos;
        bh_found(l, s, "A %s slice cannot be given to a VM.", bh_word(mechanism, pool->mechanism));
    }
}
