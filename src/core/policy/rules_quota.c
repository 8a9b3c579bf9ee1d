/* SPDX-License-Identifier: Apache-2.0 */
/* rules_quota.c - BH-030..BH-039: how much of what, and under which name. */
#include "core/policy/lint.h"

#include "base/str.h"
#include "base/units.h"

#include <stdio.h>

/* ---- quotas ---- */

static bool bounds_gpus(const struct bh_quota *q)
{
    return q->pos.line && (q->has_gpus || q->has_max || q->memory_bytes || q->resources.n);
}

BH_CHECK(030)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (bounds_gpus(&t->quota))
            continue;
        BH_EACH (pi, &l->tenant_pools, i) {
            const struct bh_pool *pool = &l->p->pools.at[*pi];
            if (!bh_pool_is_shared(pool))
                continue;
            struct bh_subject s = bh_about_tenant(t);
            s.cause = t->quota.pos;
            bh_found(l, s, "Tenant %s has no GPU quota (shared pool %s).", t->name, pool->name);
            break;
        }
    }
}

static bool quota_names(const struct bh_quota *q, const char *resource)
{
    for (size_t i = 0; i < q->resources.n; i++)
        if (bh_str_eq(q->resources.at[i].resource, resource))
            return true;
    return false;
}

struct resource_name {
    char s[160];
};

/* The name under which an orchestrator sees one profile of a mixed pool: `+` is no legal character there. */
static const char *mig_resource(struct resource_name *r, const char *profile)
{
    (void)snprintf(r->s, sizeof(r->s), "nvidia.com/mig-%.100s", profile);
    for (char *p = r->s; *p; p++)
        if (*p == '+')
            *p = '.';
    return r->s;
}

struct uncovered {
    struct bh_lint *l;
    const struct bh_quota *quota;
    struct bh_naming names;
    struct bh_map seen;
};

static void want_covered(struct uncovered *u, const char *resource)
{
    if (quota_names(u->quota, resource) || bh_map_find(&u->seen, resource) != BH_MAP_NONE)
        return;
    (void)bh_map_add(&u->seen, bh_arena_str(&u->l->out->arena, resource), 0);
    bh_naming_add(&u->names, resource);
}

static bool names_profile(const struct uncovered *u, const char *profile)
{
    struct resource_name r;
    return quota_names(u->quota, mig_resource(&r, profile));
}

/* A pool that does not say its strategy may show either name: a quota on the slices is believed. */
static bool names_a_slice(const struct uncovered *u, const struct bh_pool *pool)
{
    for (size_t i = 0; i < pool->profiles.n; i++)
        if (names_profile(u, pool->profiles.at[i].s))
            return true;
    for (size_t i = 0; i < pool->layout.n; i++)
        if (names_profile(u, pool->layout.at[i].profile))
            return true;
    return false;
}

/* What a policy's pool shows an orchestrator when it names no resource itself. */
static void want_usual_covered(struct uncovered *u, const struct bh_pool *pool)
{
    struct resource_name r;
    bool mig = bh_mech_cuts_mig(bh_pool_effective(pool));
    if (mig && pool->strategy == BH_STRATEGY_MIXED) {
        for (size_t i = 0; i < pool->profiles.n; i++)
            want_covered(u, mig_resource(&r, pool->profiles.at[i].s));
        for (size_t i = 0; i < pool->layout.n; i++)
            want_covered(u, mig_resource(&r, pool->layout.at[i].profile));
        return;
    }
    bool passed_to_vms = pool->mechanism == BH_MECH_VGPU || pool->mechanism == BH_MECH_MIG_VGPU;
    bool slice_named = mig && pool->strategy == BH_STRATEGY_UNSET && names_a_slice(u, pool);
    if (!passed_to_vms && !slice_named)
        want_covered(u, "nvidia.com/gpu");
}

static void want_pool_covered(struct uncovered *u, const struct bh_pool *pool)
{
    for (size_t i = 0; i < pool->exposes.n; i++)
        want_covered(u, pool->exposes.at[i].s);
    if (pool->exposes.n)
        return;
    if (pool->resource)
        want_covered(u, pool->resource);
    else
        want_usual_covered(u, pool);
}

/* A policy's quota.gpus, max or memory bounds every name; a list of names bounds those names. */
static bool covers_all_names(const struct bh_tenant *t)
{
    const struct bh_quota *q = &t->quota;
    return !q->resources.n ||
           (t->source == BH_SOURCE_POLICY && (q->has_gpus || q->has_max || q->memory_bytes));
}

BH_CHECK(031)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (covers_all_names(t))
            continue;
        struct uncovered u = {.l = l, .quota = &t->quota};
        bh_naming_init(&u.names, 6);
        BH_EACH (pi, &l->tenant_pools, i)
            want_pool_covered(&u, &l->p->pools.at[*pi]);
        size_t n = u.names.n;
        const char *names = bh_naming_end(l, &u.names);
        bh_map_fini(&u.seen);
        if (!n)
            continue;
        struct bh_subject s = bh_about_tenant(t);
        s.cause = t->quota.pos;
        bh_found(l, s, "Quota does not cover %s; tenant can take all of it.", names);
    }
}

/* Does any number the quota enforces equal the stated one? *ret_one: an enforced number to show. */
static bool states_enforced(const struct bh_quota *q, uint64_t milli, uint64_t *ret_one)
{
    bool any = false;
    if (q->has_max) {
        *ret_one = q->max_milli;
        any = true;
        if (q->max_milli == milli)
            return true;
    }
    for (size_t i = q->resources.n; i-- > 0;) {
        *ret_one = q->resources.at[i].milli;
        any = true;
        if (q->resources.at[i].milli == milli)
            return true;
    }
    if (q->has_gpus) {
        *ret_one = q->gpus_milli;
        any = true;
        if (q->gpus_milli == milli)
            return true;
    }
    return !any;
}

BH_CHECK(032)
{
    struct bh_unit_text said, enforced;
    for (size_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        for (size_t k = 0; k < t->quota.stated.n; k++) {
            const struct bh_stated *st = &t->quota.stated.at[k];
            uint64_t value = 0;
            /* "at least 2, at most 4" is right when one of its numbers is */
            bool right = states_enforced(&t->quota, st->milli, &value);
            for (size_t n = 0; n < st->n_also && !right; n++)
                right = states_enforced(&t->quota, st->also[n], &value);
            if (right)
                continue;
            struct bh_subject s = bh_about_tenant(t);
            s.cause = st->pos;
            bh_found(l, s, "Text says %s, quota enforces %s.", bh_count_format(st->milli, &said),
                     bh_count_format(value, &enforced));
            break;
        }
    }
}

/* ---- memory and compute caps on a shared GPU ---- */

/* The smallest device a pool's work may land on; 0: unknown. */
/* Caps that may meet on one GPU: replicas are per GPU, tenants and workloads spread over those the pool has. */
static uint32_t caps_per_gpu(const struct bh_lint *l, uint32_t pool)
{
    const struct bh_pool *p = &l->p->pools.at[pool];
    uint32_t clients = bh_pool_clients(l, pool);
    return p->replicas || !p->gpus.n ? clients : (uint32_t)((clients + p->gpus.n - 1) / p->gpus.n);
}

static uint64_t device_memory(const struct bh_lint *l, uint32_t pool, const struct bh_gpu_model **ret_model)
{
    uint64_t least = 0;
    for (const struct bh_gpu_model *m = NULL; (m = bh_pool_next_model(l, pool, m));)
        if (m->memory_mib && (!least || m->memory_mib < least)) {
            least = m->memory_mib;
            *ret_model = m;
        }
    return least * BH_MIB;
}

BH_CHECK(033)
{
    struct bh_unit_text sum_text, total_text;
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        enum bh_mechanism m = bh_pool_effective(pool);
        if (pool->copy_of || !pool->cap_memory_bytes || pool->oversubscribe || !bh_mech_is_soft(m) ||
            m == BH_MECH_VGPU)
            continue;
        const struct bh_gpu_model *model = NULL;
        uint64_t total = device_memory(l, i, &model), sum;
        if (!total) {
            bh_unknown(l, "the GPU model of pool '%s' is not known", pool->name);
            continue;
        }
        if (__builtin_mul_overflow(pool->cap_memory_bytes, (uint64_t)caps_per_gpu(l, i), &sum))
            sum = UINT64_MAX;
        if (sum <= total)
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->caps_pos;
        bh_found(l, s, "Memory oversubscribed on %s: %s/%s (%u caps).", model->name,
                 bh_size_format(sum, &sum_text), bh_size_format(total, &total_text), caps_per_gpu(l, i));
    }
}

BH_CHECK(034)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        enum bh_mechanism m = bh_pool_effective(pool);
        /* a fraction of unknown backing has no admission either */
        bool unbounded =
            m == BH_MECH_TIMESLICE || m == BH_MECH_GATE || (m == BH_MECH_UNSET && pool->mechanism != m);
        if (pool->copy_of || pool->cap_memory_bytes || !unbounded)
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->caps_pos.line ? pool->caps_pos : pool->mechanism_pos;
        bh_found(l, s, "Any tenant can take all memory of %s.",
                 pool->match.model.s ? pool->match.model.s
                                     : bh_arena_printf(&l->out->arena, "a GPU of pool %s", pool->name));
    }
}

static bool has_env(const struct bh_workload *w, const char *name)
{
    const char *value = bh_keyed_find(w->env.at, w->env.n, name);
    return value && *value;
}

/* Both limits, each by the pool's caps or by the variable NVIDIA's MPS reads from the workload's environment. */
static bool is_bounded(const struct bh_pool *pool, const struct bh_workload *w)
{
    bool compute = pool->cap_compute_ppm || has_env(w, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    bool memory = pool->cap_memory_bytes || has_env(w, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    return compute && memory;
}

BH_CHECK(035)
{
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (bh_pool_effective(pool) != BH_MECH_MPS || pool->copy_of || pool->caps_by_plugin ||
            (pool->cap_memory_bytes && pool->cap_compute_ppm))
            continue;
        size_t n = 0, unbounded = 0;
        struct bh_naming names;
        bh_naming_init(&names, 6);
        BH_EACH (wi, &l->pool_workloads, i) {
            const struct bh_workload *w = &l->p->workloads.at[*wi];
            n++;
            if (!is_bounded(pool, w)) {
                unbounded++;
                bh_naming_add(&names, w->name);
            }
        }
        const char *who = bh_naming_end(l, &names);
        /* a single client has nobody to bother; no declared workload means any number of them */
        if ((n && !unbounded) || (n == 1 && pool->tenants.n <= 1))
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->caps_pos;
        const char *missing = pool->cap_memory_bytes  ? "no thread percentage"
                              : pool->cap_compute_ppm ? "no device-memory limit"
                                                      : "no thread percentage and no device-memory limit";
        bh_found(
            l, s, "MPS client%s %s unbounded: %s.", unbounded > 1 ? "s" : "",
            bh_arena_printf(&l->out->arena, "%s %s", n ? who : "of any tenant", unbounded > 1 ? "are" : "is"),
            missing);
    }
}

BH_CHECK(036)
{
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        uint64_t sum = (uint64_t)pool->cap_compute_ppm * bh_pool_clients(l, i);
        if (bh_pool_effective(pool) != BH_MECH_MPS || sum <= 1000000)
            continue;
        for (size_t k = 0; k < pool->tenants.n; k++) {
            const struct bh_tenant *t = &l->p->tenants.at[pool->tenants.at[k]];
            if (t->slo.kind == BH_SLO_NONE)
                continue;
            struct bh_subject s = bh_about_pool(pool);
            s.cause = pool->caps_pos;
            bh_found(
                l, s,
                "MPS shares oversubscribed (%u clients, %u %%) beside the SLO of %s; caps are ceilings, not reservations.",
                bh_pool_clients(l, i), (unsigned)(sum / 10000), t->name);
            break;
        }
    }
}

/* ---- names and requests ---- */

/* The names a whole GPU or a whole MIG slice goes by: `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`. A rename is neither. */
static bool looks_whole(const char *resource)
{
    if (!resource || !bh_str_starts(resource, "nvidia.com/mig-"))
        return bh_str_eq(resource, "nvidia.com/gpu");
    const char *p = resource + strlen("nvidia.com/mig-");
    while (bh_is_digit(*p))
        p++;
    if (*p++ != 'g' || *p++ != '.')
        return false;
    while (bh_is_digit(*p))
        p++;
    return strcmp(p, "gb") == 0 || strcmp(p, "gb.me") == 0;
}

BH_CHECK(037)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (pool->copy_of ||
            (pool->mechanism != BH_MECH_TIMESLICE && pool->mechanism != BH_MECH_FRACTIONAL) ||
            !looks_whole(pool->resource))
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->resource_pos;
        bh_found(l, s, "Shared replicas look like whole GPUs (`%s`).", pool->resource);
    }
}

BH_CHECK(038)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (pool->fail_requests_greater_than_one != BH_FACT_NO)
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->fail_pos;
        bh_found(l, s, "A request for 2 replicas of one GPU buys nothing.");
    }
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        if (w->pool == BH_NONE || !w->requests.n || l->p->pools.at[w->pool].mechanism != BH_MECH_TIMESLICE)
            continue;
        for (size_t k = 0; k < w->requests.n; k++) {
            const struct bh_amount *r = &w->requests.at[k];
            if (r->milli <= 1000 || !bh_str_eq(r->resource, l->p->pools.at[w->pool].resource))
                continue;
            struct bh_subject s = bh_about_workload(w);
            struct bh_unit_text n;
            s.cause = r->pos;
            bh_found_fix(l, s, "Ask for one replica.", "A request for %s replicas of one GPU buys nothing.",
                         bh_count_format(r->milli, &n));
            break;
        }
    }
}

BH_CHECK(039)
{
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        if (w->gang || (w->gpus_milli <= 1000 && w->assigned.n <= 1))
            continue;
        struct bh_subject s = bh_about_workload(w);
        s.cause = w->gang_pos;
        bh_found(l, s, "Multi-GPU job %s may deadlock holding part of its GPUs.", w->name);
    }
}
