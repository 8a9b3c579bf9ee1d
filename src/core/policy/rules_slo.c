/* SPDX-License-Identifier: Apache-2.0 */
/* rules_slo.c - BH-020..BH-026: promises about service, and what may break them. */
#include "core/policy/lint.h"

#include "base/str.h"
#include "base/units.h"

/* `p99 50ms`, or what there is of it. */
static const char *slo_text(struct bh_lint *l, const struct bh_tenant *t)
{
    return bh_arena_printf(&l->out->arena, "%s%s%s", t->slo.metric ? t->slo.metric : "",
                           t->slo.metric && t->slo.target ? " " : "", t->slo.target ? t->slo.target : "");
}

/* The first of a tenant's pools for which ask() holds, or NULL. */
static const struct bh_pool *first_pool(const struct bh_lint *l, uint32_t tenant,
                                        bool (*ask)(enum bh_mechanism))
{
    BH_EACH (pi, &l->tenant_pools, tenant) {
        const struct bh_pool *pool = &l->p->pools.at[*pi];
        if (ask(bh_pool_effective(pool)))
            return pool;
    }
    return NULL;
}

static bool breaks_hard_slo(enum bh_mechanism m)
{
    return !bh_mech_keeps_hard_slo(m);
}

BH_CHECK(020)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        const struct bh_pool *pool = t->slo.kind == BH_SLO_HARD ? first_pool(l, i, breaks_hard_slo) : NULL;
        if (!pool)
            continue;
        struct bh_subject s = bh_about_tenant(t);
        s.cause = t->slo.pos;
        const char *slo = slo_text(l, t);
        bh_found(l, s, "Hard SLO%s%s sold on soft mechanism %s (pool %s).", *slo ? " " : "", slo,
                 bh_word(mechanism, pool->mechanism), pool->name);
    }
}

BH_CHECK(022)
{
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (t->slo.kind != BH_SLO_SOFT || (t->share.has_target && t->share.under_contention))
            continue;
        bool in_no_pool = l->tenant_pools.start[i] == l->tenant_pools.start[i + 1];
        if (!in_no_pool && !first_pool(l, i, bh_mech_is_soft))
            continue;
        struct bh_subject s = bh_about_tenant(t);
        s.cause = t->share.pos.line ? t->share.pos : t->slo.pos;
        if (t->share.has_target)
            bh_found(l, s, "Soft guarantee without a stated behaviour under contention.");
        else
            bh_found(l, s, "Soft guarantee without a stated target share.");
    }
}

/* ---- preemption ---- */

static bool is_background(const struct bh_tenant *t)
{
    return bh_str_eq(t->class_name, "training") || bh_str_eq(t->class_name, "batch");
}

/* Per pool: the training or batch tenant with the highest ceiling, so that serving tenants look once. */
static uint32_t loudest_background(const struct bh_lint *l, const struct bh_pool *pool)
{
    uint32_t best = BH_NONE;
    for (size_t i = 0; i < pool->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[pool->tenants.at[i]];
        if (is_background(t) &&
            (best == BH_NONE || t->priority.ceiling > l->p->tenants.at[best].priority.ceiling))
            best = pool->tenants.at[i];
    }
    return best;
}

BH_CHECK(023)
{
    uint32_t *loudest = bh_alloc(l->p->pools.n, sizeof(*loudest));
    for (size_t i = 0; i < l->p->pools.n; i++)
        loudest[i] = loudest_background(l, &l->p->pools.at[i]);
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (t->slo.kind == BH_SLO_NONE || !bh_tenant_is_serving(t))
            continue;
        BH_EACH (pi, &l->tenant_pools, i) {
            const struct bh_tenant *u = loudest[*pi] == BH_NONE ? NULL : &l->p->tenants.at[loudest[*pi]];
            if (!u || u->priority.ceiling <= t->priority.ceiling)
                continue;
            bh_found(l, bh_about_tenant(t),
                     "SLO tenant %s is preemptible by %s (ceiling %s against %s in pool %s).", t->name,
                     u->name, bh_word(priority, u->priority.ceiling), bh_word(priority, t->priority.ceiling),
                     l->p->pools.at[*pi].name);
            break;
        }
    }
    free(loudest);
}

/* ---- priority inflation ---- */

enum {
    TENANT_PERCENT = 30,
    ALL_PERCENT = 20,
    TENANT_MIN = 3,
    ALL_MIN = 5
}; /* a share of two jobs says nothing */

static bool at_top(const struct bh_workload *w)
{
    return w->has_priority && w->priority >= BH_PRIORITY_HIGH;
}

BH_CHECK(024)
{
    size_t all_top = 0;
    for (uint32_t i = 0; i < l->p->tenants.n; i++) {
        size_t n = 0, top = 0;
        BH_EACH (wi, &l->tenant_workloads, i) {
            n++;
            top += at_top(&l->p->workloads.at[*wi]);
        }
        all_top += top;
        if (n >= TENANT_MIN && top * 100 > n * TENANT_PERCENT)
            bh_found(l, bh_about_tenant(&l->p->tenants.at[i]),
                     "Priority inflation: %zu %% of jobs are top priority (%zu of %zu).", top * 100 / n, top,
                     n);
    }
    size_t n = l->p->workloads.n;
    if (n >= ALL_MIN && all_top * 100 > n * ALL_PERCENT) {
        struct bh_subject s = {.kind = "workloads", .pos = l->p->workloads.at[0].pos};
        bh_found(l, s, "Priority inflation: %zu %% of all jobs are top priority (%zu of %zu).",
                 all_top * 100 / n, all_top, n);
    }
}

/* ---- borrowing and floors ---- */

BH_CHECK(025)
{
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        if (w->tenant == BH_NONE || w->checkpointable == BH_FACT_YES ||
            !l->p->tenants.at[w->tenant].quota.borrow)
            continue;
        if (w->checkpointable == BH_FACT_UNKNOWN)
            bh_unknown(l, "workload '%s' may borrow and does not say whether it is checkpointable", w->name);
        else
            bh_found(l, bh_about_workload(w), "Borrowed capacity will be reclaimed; %s cannot resume.",
                     w->name);
    }
}

BH_CHECK(026)
{
    for (size_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        bool floor = (t->quota.has_gpus && t->quota.gpus_milli > 0) || t->quota.memory_bytes > 0;
        if (t->trust != BH_TRUST_EXTERNAL || t->quota.model != BH_QUOTA_FAIRSHARE || !t->quota.has_model ||
            floor)
            continue;
        struct bh_subject s = bh_about_tenant(t);
        s.cause = t->quota.pos;
        bh_found(l, s, "Guaranteed capacity sold on a target share.");
    }
}
