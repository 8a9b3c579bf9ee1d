/* SPDX-License-Identifier: Apache-2.0 */
/* rules_partition.c - BH-047..BH-049: partitions against the silicon's own geometry. */
#include "core/policy/lint.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>

static bool pool_cuts(const struct bh_pool *pool)
{
    return bh_mech_cuts_mig(bh_pool_effective(pool));
}

/* `1g.18gb, 1g.18gb+me, 1g.35gb, …` */
static const char *profile_names(struct bh_lint *l, const struct bh_gpu_model *m)
{
    struct bh_naming names;
    bh_naming_init(&names, 16);
    for (size_t i = 0; i < m->n_profiles; i++)
        bh_naming_add(&names, m->profiles[i].name);
    return bh_naming_end(l, &names);
}

/*
 * The models a pool's partitions are held against. A pool that names none (a bare mig-parted layout) is held against
 * every model with MIG: what fits on none of them fits nowhere. A name the catalogue does not have assumes nothing.
 */
static const struct bh_gpu_model *next_candidate(const struct bh_lint *l, uint32_t pool,
                                                 const struct bh_gpu_model *after)
{
    if (l->pool_models[pool] || l->p->pools.at[pool].match.model.s)
        return bh_pool_next_model(l, pool, after);
    size_t i = after ? (size_t)(after - bh_catalog_at(0)) + 1 : 0;
    while (i < bh_catalog_count() && !bh_model_has_mig(bh_catalog_at(i)))
        i++;
    return i < bh_catalog_count() ? bh_catalog_at(i) : NULL;
}

/*
 * Without a fleet `H100` may mean any of several models: a profile is missing only when none
 * of them has it. With a fleet every model present must have it.
 */
static const struct bh_gpu_model *model_lacking(const struct bh_lint *l, uint32_t pool, const char *profile)
{
    const struct bh_gpu_model *lacking = NULL;
    bool every = l->p->pools.at[pool].gpus.n > 0;
    for (const struct bh_gpu_model *m = NULL; (m = next_candidate(l, pool, m));) {
        bool has = bh_model_has_mig(m) && (!profile || bh_mig_find(m, profile));
        if (has && !every)
            return NULL;
        if (!has && !lacking)
            lacking = m;
    }
    return lacking;
}

static void lacks(struct bh_lint *l, uint32_t i, const struct bh_gpu_model *m, const char *profile,
                  struct bh_pos cause)
{
    const struct bh_pool *pool = &l->p->pools.at[i];
    struct bh_subject s = bh_about_pool(pool);
    s.cause = cause;
    if (!bh_pool_next_model(l, i, NULL)) {
        bh_found(l, s, "No GPU model of the catalogue has profile %s.", profile);
        return;
    }
    if (bh_model_has_mig(m))
        bh_found(l, s, "%s has no profile %s; it has %s.", m->name, profile, profile_names(l, m));
    else
        bh_found_fix(l, s, "Use whole GPUs or a share of this model, or another model for this pool.",
                     "%s has no MIG; pool %s cannot be cut from it.", m->name, pool->name);
}

/* Each profile exists somewhere; is there one model that has them all? */
static bool one_model_has_all(const struct bh_lint *l, uint32_t i)
{
    const struct bh_pool *pool = &l->p->pools.at[i];
    for (const struct bh_gpu_model *m = NULL; (m = next_candidate(l, i, m));) {
        bool all = true;
        for (size_t k = 0; k < pool->layout.n && all; k++)
            all = bh_mig_find(m, pool->layout.at[k].profile) != NULL;
        if (all)
            return true;
    }
    return false;
}

static const char *layout_profiles(struct bh_lint *l, const struct bh_pool *pool)
{
    struct bh_naming names;
    bh_naming_init(&names, BH_MIG_INSTANCES_MAX);
    for (size_t k = 0; k < pool->layout.n; k++)
        bh_naming_add(&names, pool->layout.at[k].profile);
    return bh_naming_end(l, &names);
}

/* One finding a pool: the first thing its model cannot be cut into. */
static void check_pool_profiles(struct bh_lint *l, uint32_t i)
{
    const struct bh_pool *pool = &l->p->pools.at[i];
    if (!next_candidate(l, i, NULL)) {
        bh_unknown(l, "the GPU model of pool '%s' is not known", pool->name);
        return;
    }
    const struct bh_gpu_model *m = model_lacking(l, i, NULL);
    if (m) {
        lacks(l, i, m, NULL, pool->mechanism_pos);
        return;
    }
    for (size_t k = 0; k < pool->profiles.n; k++)
        if ((m = model_lacking(l, i, pool->profiles.at[k].s))) {
            lacks(l, i, m, pool->profiles.at[k].s, pool->profiles.at[k].pos);
            return;
        }
    for (size_t k = 0; k < pool->layout.n; k++)
        if ((m = model_lacking(l, i, pool->layout.at[k].profile))) {
            lacks(l, i, m, pool->layout.at[k].profile, pool->layout.at[k].pos);
            return;
        }
    if (pool->layout.n && !one_model_has_all(l, i)) {
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->layout_pos;
        bh_found(l, s, "No one GPU model has all of %s.", layout_profiles(l, pool));
    }
}

static struct bh_subject about_gpu(struct bh_lint *l, const struct bh_fleet_node *n, const struct bh_gpu *g)
{
    return (struct bh_subject){.kind = "gpu",
                               .name = bh_arena_printf(&l->out->arena, "%s:%" PRIu32, n->name, g->index),
                               .pos = g->pos};
}

/* ---- what a memory request takes, for BH-047 and BH-049 ---- */

struct request {
    const struct bh_gpu_model *model;
    struct bh_mig_fit fit;
    const char *allowed[BH_MIG_INSTANCES_MAX]; /* what the pool may cut; n 0: anything */
    size_t n;
};

/* On the pool's first model; the profiles it may cut, else those of its layout, else any. */
static struct request take(const struct bh_lint *l, const struct bh_workload *w)
{
    const struct bh_pool *pool = &l->p->pools.at[w->pool];
    struct request r = {.model = bh_pool_next_model(l, w->pool, NULL)};
    for (size_t i = 0; i < pool->profiles.n && r.n < BH_COUNT_OF(r.allowed); i++)
        r.allowed[r.n++] = pool->profiles.at[i].s;
    for (size_t i = 0; !pool->profiles.n && i < pool->layout.n && r.n < BH_COUNT_OF(r.allowed); i++)
        r.allowed[r.n++] = pool->layout.at[i].profile;
    if (r.model && bh_model_has_mig(r.model))
        r.fit = bh_mig_smallest(r.model, (w->memory_bytes + BH_MIB - 1) / BH_MIB, r.allowed, r.n);
    return r;
}

static const char *allowed_names(struct bh_lint *l, const struct request *r)
{
    struct bh_naming names;
    if (!r->n)
        return profile_names(l, r->model);
    bh_naming_init(&names, BH_MIG_INSTANCES_MAX);
    for (size_t i = 0; i < r->n; i++)
        bh_naming_add(&names, r->allowed[i]);
    return bh_naming_end(l, &names);
}

static bool asks_of_mig(const struct bh_lint *l, const struct bh_workload *w)
{
    return w->memory_bytes && w->pool != BH_NONE && pool_cuts(&l->p->pools.at[w->pool]);
}

/* Are all sizes published? A model that hides some may well have a profile that is large enough. */
static bool sizes_known(const struct bh_gpu_model *m)
{
    for (size_t i = 0; i < m->n_profiles; i++)
        if (!m->profiles[i].memory_mib)
            return false;
    return m->n_profiles > 0;
}

BH_CHECK(047)
{
    struct bh_unit_text need;
    for (uint32_t i = 0; i < l->p->pools.n; i++)
        if (pool_cuts(&l->p->pools.at[i]))
            check_pool_profiles(l, i);
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        if (!asks_of_mig(l, w))
            continue;
        struct request r = take(l, w);
        if (r.model && !r.fit.profile && sizes_known(r.model))
            bh_found_fix(
                l, bh_about_workload(w), "Ask for less memory, or allow a larger profile in the pool.",
                "Pool %s has no profile that holds %s on %s; it may cut %s.", l->p->pools.at[w->pool].name,
                bh_size_format(w->memory_bytes, &need), r.model->name, allowed_names(l, &r));
    }
    for (size_t i = 0; l->fleet && i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        for (size_t g = 0; g < n->gpus.n; g++) {
            const struct bh_gpu *gpu = &n->gpus.at[g];
            for (size_t k = 0; gpu->model && k < gpu->instances.n; k++) {
                if (gpu->instances.at[k].known)
                    continue;
                struct bh_subject s = about_gpu(l, n, gpu);
                s.cause = gpu->instances.at[k].pos;
                bh_found(l, s, "%s has no profile %s; it has %s.", gpu->model->name,
                         gpu->instances.at[k].profile,
                         bh_model_has_mig(gpu->model) ? profile_names(l, gpu->model) : "no MIG at all");
                break;
            }
        }
    }
}

/* ---- BH-048 ---- */

static const char *slice_names(struct bh_lint *l, uint16_t slices)
{
    struct bh_naming names;
    bh_naming_init(&names, BH_MIG_SLICES_MAX);
    for (unsigned i = 0; i < BH_MIG_SLICES_MAX; i++)
        if (slices >> i & 1)
            bh_naming_add(&names, bh_arena_printf(&l->out->arena, "%u", i));
    return bh_naming_end(l, &names);
}

/* `3g.71gb x2, 1g.18gb`: equal neighbours are counted. */
static const char *layout_text(struct bh_lint *l, const struct bh_mig_instance *at, size_t n,
                               const bool *keep)
{
    struct bh_naming names;
    bh_naming_init(&names, BH_MIG_INSTANCES_MAX);
    for (size_t i = 0; i < n;) {
        size_t same = 0, kept = 0;
        for (; i + same < n && at[i + same].profile == at[i].profile; same++)
            kept += !keep || keep[i + same];
        if (kept > 1)
            bh_naming_add(&names, bh_arena_printf(&l->out->arena, "%s x%zu", at[i].profile->name, kept));
        else if (kept)
            bh_naming_add(&names, at[i].profile->name);
        i += same;
    }
    return bh_naming_end(l, &names);
}

/* Says what collides and names a layout that fits. */
static void does_not_fit(struct bh_lint *l, struct bh_subject s, const struct bh_gpu_model *m,
                         const struct bh_mig_instance *at, size_t n, const struct bh_mig_conflict *c)
{
    bool keep[BH_MIG_INSTANCES_MAX + 1] = {false};
    size_t kept = bh_mig_layout_trim(m, at, n, keep);
    const char *fix =
        kept ? bh_arena_printf(&l->out->arena, "A layout that fits: %s.", layout_text(l, at, n, keep))
             : l->rule->fix;
    if (c->slices)
        bh_found_fix(l, s, fix, "%s do not fit on %s: slices %s overlap.", layout_text(l, at, n, NULL),
                     m->name, slice_names(l, c->slices));
    else
        bh_found_fix(l, s, fix, "%s do not fit on %s: %s (%s).", layout_text(l, at, n, NULL), m->name,
                     strcmp(c->reason, "start") == 0   ? "no such placement"
                     : strcmp(c->reason, "media") == 0 ? "the media engines are wanted twice"
                                                       : "more than the GPU has",
                     at[c->a].profile->name);
}

/* The layout as instances on this model; false: it names a profile the model lacks (BH-047 says so). */
static bool layout_on(const struct bh_pool *pool, const struct bh_gpu_model *m, struct bh_mig_instance *ret,
                      size_t *ret_n)
{
    *ret_n = 0;
    for (size_t i = 0; i < pool->layout.n; i++) {
        const struct bh_mig_profile *profile = bh_mig_find(m, pool->layout.at[i].profile);
        if (!profile)
            return false;
        /* one past the most is enough to prove that it does not fit */
        for (uint32_t k = 0; k < pool->layout.at[i].count && *ret_n <= BH_MIG_INSTANCES_MAX; k++)
            ret[(*ret_n)++] = (struct bh_mig_instance){profile, -1};
    }
    return true;
}

static void check_pool_layout(struct bh_lint *l, uint32_t i)
{
    const struct bh_pool *pool = &l->p->pools.at[i];
    struct bh_mig_instance want[BH_MIG_INSTANCES_MAX + 1];
    const struct bh_gpu_model *bad = NULL;
    bool every = pool->gpus.n > 0;
    for (const struct bh_gpu_model *m = NULL; (m = next_candidate(l, i, m));) {
        size_t n;
        if (!bh_model_has_mig(m) || !layout_on(pool, m, want, &n))
            continue;
        if (bh_mig_layout_fits(m, want, n, NULL, NULL)) {
            if (!every)
                return;
        } else if (!bad) {
            bad = m;
        }
    }
    if (!bad)
        return;
    size_t n;
    struct bh_mig_conflict c = {0};
    struct bh_subject s = bh_about_pool(pool);
    s.cause = pool->layout_pos;
    if (layout_on(pool, bad, want, &n) && !bh_mig_layout_fits(bad, want, n, NULL, &c))
        does_not_fit(l, s, bad, want, n, &c);
}

static void check_found_layout(struct bh_lint *l, const struct bh_fleet_node *node, const struct bh_gpu *g)
{
    struct bh_mig_instance want[BH_MIG_INSTANCES_MAX + 1];
    struct bh_mig_conflict c = {0};
    size_t n = 0;
    for (size_t i = 0; i < g->instances.n && n <= BH_MIG_INSTANCES_MAX; i++)
        if (g->instances.at[i].known)
            want[n++] = (struct bh_mig_instance){g->instances.at[i].known, g->instances.at[i].start};
    if (!n || bh_mig_layout_fits(g->model, want, n, NULL, &c))
        return;
    struct bh_subject s = about_gpu(l, node, g);
    s.cause = g->instances.at[0].pos;
    does_not_fit(l, s, g->model, want, n, &c);
}

BH_CHECK(048)
{
    for (uint32_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (!pool_cuts(pool) || !pool->layout.n)
            continue;
        if (next_candidate(l, i, NULL))
            check_pool_layout(l, i);
        else
            bh_unknown(l, "the GPU model of pool '%s' is not known", pool->name);
    }
    for (size_t i = 0; l->fleet && i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        for (size_t g = 0; g < n->gpus.n; g++)
            if (n->gpus.at[g].model && bh_model_has_mig(n->gpus.at[g].model))
                check_found_layout(l, n, &n->gpus.at[g]);
    }
}

BH_CHECK(049)
{
    struct bh_unit_text need, waste;
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        if (!asks_of_mig(l, w))
            continue;
        struct request r = take(l, w);
        if (!r.model)
            bh_unknown(l, "the GPU model of pool '%s' is not known", l->p->pools.at[w->pool].name);
        if (!r.fit.profile || (uint64_t)r.fit.waste_mib * 3 <= r.fit.profile->memory_mib)
            continue;
        bh_found(l, bh_about_workload(w), "%s takes %s: %s wasted.", bh_size_format(w->memory_bytes, &need),
                 r.fit.profile->name, bh_size_format((uint64_t)r.fit.waste_mib * BH_MIB, &waste));
    }
}
