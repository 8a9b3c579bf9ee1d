/* SPDX-License-Identifier: Apache-2.0 */
/* rules_lifecycle.c - BH-050..BH-058, BH-071: versions, firmware switches, what the node is set to. */
#include "core/policy/lint.h"

#include "base/str.h"
#include "base/units.h"
#include "core/model/advisory.h"
#include "core/policy/words.h"

/* ---- BH-050: one kernel, one driver ---- */

static bool same_drivers(const struct bh_tenant *a, const struct bh_tenant *b)
{
    bool same = a->drivers.n == b->drivers.n;
    for (size_t i = 0; i < a->drivers.n && same; i++)
        same = bh_str_eq(a->drivers.at[i].s, b->drivers.at[i].s);
    return same;
}

enum { WISHES_MAX = 16 }; /* distinct driver lists remembered per kernel */

struct wishes {
    uint32_t tenant[WISHES_MAX];
    size_t n;
    bool cut; /* there were more */
};

/* Remember the tenant's wish; a tenant that cannot agree with one remembered is returned in *ret. */
static bool wish(const struct bh_policy *p, struct wishes *w, uint32_t tenant, uint32_t *ret)
{
    const struct bh_tenant *t = &p->tenants.at[tenant];
    bool new_list = true;
    for (size_t i = 0; i < w->n; i++) {
        const struct bh_tenant *u = &p->tenants.at[w->tenant[i]];
        if (!bh_tenants_agree_on_driver(u, t)) {
            *ret = w->tenant[i];
            return true;
        }
        new_list = new_list && !same_drivers(u, t);
    }
    if (new_list && w->n < WISHES_MAX)
        w->tenant[w->n++] = tenant;
    else if (new_list)
        w->cut = true;
    return false;
}

struct driver_meeting {
    struct bh_lint *l;
    struct bh_map by_kernel;
    BH_VEC(struct wishes) kernels;
    const struct wishes *mine;
    uint32_t a, b;
    bool met;
};

static void meet(void *ctx, const char *kernel)
{
    struct driver_meeting *m = ctx;
    uint32_t k = bh_map_find(&m->by_kernel, kernel);
    if (k == BH_MAP_NONE) {
        k = (uint32_t)m->kernels.n;
        *bh_vec_push(&m->kernels) = (struct wishes){.n = 0};
        (void)bh_map_add(&m->by_kernel, bh_arena_str(&m->l->out->arena, kernel), k);
    }
    for (size_t i = 0; i < m->mine->n && !m->met; i++)
        if (wish(m->l->p, &m->kernels.at[k], m->mine->tenant[i], &m->a)) {
            m->b = m->mine->tenant[i];
            m->met = true;
        }
}

static const char *driver_names(struct bh_lint *l, const struct bh_tenant *t)
{
    struct bh_naming names;
    bh_naming_init(&names, 4);
    for (size_t i = 0; i < t->drivers.n; i++)
        bh_naming_add(&names, t->drivers.at[i].s);
    return bh_naming_end(l, &names);
}

BH_CHECK(050)
{
    struct driver_meeting m = {.l = l};
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        struct wishes mine = {.n = 0};
        if (pool->tier >= BH_TIER_VM)
            continue; /* a VM brings its own driver */
        m.met = false;
        for (size_t k = 0; k < pool->tenants.n && !m.met; k++) {
            uint32_t t = pool->tenants.at[k];
            if (l->p->tenants.at[t].drivers.n && wish(l->p, &mine, t, &m.a)) {
                m.b = t;
                m.met = true;
            }
        }
        m.mine = &mine;
        if (mine.n)
            bh_pool_kernels(l, pool, meet, &m);
        if (mine.cut && !m.met)
            bh_unknown(l, "the tenants of pool '%s' have too many different driver lists to compare",
                       pool->name);
        if (!m.met)
            continue;
        const struct bh_tenant *a = &l->p->tenants.at[m.a], *b = &l->p->tenants.at[m.b];
        bh_found(l, bh_about_pool(pool),
                 "Tenants %s and %s need drivers %s and %s; one kernel loads one driver.", a->name, b->name,
                 driver_names(l, a), driver_names(l, b));
    }
    bh_map_fini(&m.by_kernel);
    bh_vec_fini(&m.kernels);
}

/* ---- BH-051 ---- */

static bool qualified(const struct bh_pool *pool, const char *driver)
{
    for (size_t i = 0; i < pool->drivers.n; i++)
        if (bh_str_eq(pool->drivers.at[i].s, driver) || bh_version_accepts(pool->drivers.at[i].s, driver))
            return true;
    return false;
}

BH_CHECK(051)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        const char *first = NULL;
        struct bh_naming names;
        bh_naming_init(&names, 6);
        for (size_t k = 0; pool->drivers.n && k < pool->nodes.n; k++) {
            const struct bh_fleet_node *n = &l->fleet->nodes.at[pool->nodes.at[k]];
            if (!n->driver || !*n->driver) {
                bh_unknown(l, "the driver of node '%s' is not known", n->name);
            } else if (!qualified(pool, n->driver)) {
                first = first ? first : n->driver;
                bh_naming_add(&names, n->name);
            }
        }
        const char *where = bh_naming_end(l, &names);
        if (!first)
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->drivers.at[0].pos;
        bh_found(l, s, "Driver %s not qualified for pool %s (%s).", first, pool->name, where);
    }
}

/* ---- BH-052, BH-053: advisories ---- */

static const struct {
    const char *label, *component;
} components[] = {
    {"driver", "nvidia-driver"},
    {"toolkit", "nvidia-container-toolkit"},
    {"operator", "gpu-operator"},
    {"vGPU manager", "vgpu-manager-kvm"},
};

static const char *component_version(const struct bh_fleet_node *n, size_t i)
{
    const char *const v[] = {n->driver, n->toolkit, n->operator_, n->vgpu_manager};
    return v[i] && *v[i] ? v[i] : NULL;
}

/*
 * A branch that the newest bulletin leaves out is open to all that bulletin fixed elsewhere: its worst
 * advisory stands in where the branch itself has none open.
 */
static const struct bh_advisory *unpatched_by(const char *component, int32_t today)
{
    const struct bh_advisory *worst = NULL;
    for (size_t i = 0; i < bh_advisory_count(); i++) {
        const struct bh_advisory *a = bh_advisory_at(i);
        if (strcmp(a->component, component) != 0 || a->published_day > today)
            continue;
        if (!worst || a->published_day > worst->published_day ||
            (a->published_day == worst->published_day && a->cvss_tenths > worst->cvss_tenths))
            worst = a;
    }
    return worst;
}

static bool exposure_of(struct bh_lint *l, const struct bh_fleet_node *n, size_t i, struct bh_exposure *ret)
{
    const char *v = component_version(n, i);
    if (!v)
        return false;
    if (bh_advisory_check(components[i].component, v, l->today, ret, NULL) != BH_OK) {
        bh_unknown(l, "the %s version '%s' of node '%s' is no version number", components[i].label, v,
                   n->name);
        return false;
    }
    const struct bh_advisory *newest =
        ret->unpatched_branch ? unpatched_by(components[i].component, l->today) : NULL;
    if (newest && (!ret->worst || newest->cvss_tenths > ret->worst->cvss_tenths))
        ret->worst = newest;
    if (newest && !ret->oldest)
        ret->oldest = newest;
    return ret->worst != NULL;
}

/* The lowest version that has every published fix, where there is one. */
static void add_fix(struct bh_lint *l, struct bh_naming *fixes, size_t i, const struct bh_exposure *e)
{
    if (e->fix_version)
        bh_naming_add(fixes, bh_arena_printf(&l->out->arena, "%s %s", components[i].label, e->fix_version));
}

enum { CVSS_HIGH = 70 };

/* One version of one component with a serious advisory open. Fleets run few versions, so each is looked up once. */
struct affected {
    size_t component;
    const char *version;
    struct bh_exposure open;
};

struct affected_index {
    BH_VEC(struct affected) versions;
    struct bh_map by_version;                  /* `0 580.95.05` -> versions, or FINE */
    uint32_t (*node)[BH_COUNT_OF(components)]; /* per node and component: versions, or FINE */
};

enum { FINE = UINT32_MAX - 1 };

static uint32_t affected_version(struct bh_lint *l, struct affected_index *x, const struct bh_fleet_node *n,
                                 size_t c)
{
    const char *version = component_version(n, c);
    struct bh_exposure e;
    if (!version)
        return FINE;
    const char *key = bh_arena_printf(&l->out->arena, "%zu %s", c, version);
    uint32_t known = bh_map_find(&x->by_version, key);
    if (known != BH_MAP_NONE)
        return known;
    known = FINE;
    if (exposure_of(l, n, c, &e) && e.worst->cvss_tenths >= CVSS_HIGH) {
        known = (uint32_t)x->versions.n;
        *bh_vec_push(&x->versions) = (struct affected){c, version, e};
    }
    (void)bh_map_add(&x->by_version, key, known);
    return known;
}

/* The versions of a pool's nodes, each with the nodes that run it. */
enum { AFFECTED_MAX = 8 };

struct pool_affected {
    uint32_t version[AFFECTED_MAX];
    struct bh_naming nodes[AFFECTED_MAX];
    size_t n;
};

static void add_affected(struct pool_affected *a, uint32_t version, const char *node)
{
    size_t i = 0;
    while (i < a->n && a->version[i] != version)
        i++;
    if (i == AFFECTED_MAX)
        return;
    if (i == a->n) {
        a->version[a->n++] = version;
        bh_naming_init(&a->nodes[i], 4);
    }
    bh_naming_add(&a->nodes[i], node);
}

static void say_affected(struct bh_lint *l, const struct affected_index *x, const struct bh_pool *pool,
                         struct pool_affected *a)
{
    struct bh_naming says, fixes;
    bh_naming_init(&says, AFFECTED_MAX);
    bh_naming_init(&fixes, AFFECTED_MAX);
    for (size_t i = 0; i < a->n; i++) {
        const struct affected *v = &x->versions.at[a->version[i]];
        const char *where = bh_naming_end(l, &a->nodes[i]);
        bh_naming_add(&says, bh_arena_printf(&l->out->arena, "%s %s is affected by %s (%s)",
                                             components[v->component].label, v->version,
                                             v->open.worst->worst_cve, where));
        add_fix(l, &fixes, v->component, &v->open);
    }
    size_t n_fixes = fixes.n;
    const char *text = bh_naming_end(l, &says), *to = bh_naming_end(l, &fixes);
    if (a->n)
        bh_found_fix(l, bh_about_pool(pool),
                     n_fixes ? bh_arena_printf(&l->out->arena,
                                               "Update to %s or later; until then cordon the nodes.", to)
                             : l->rule->fix,
                     "%s.", text);
}

BH_CHECK(052)
{
    struct affected_index x = {0};
    x.node = bh_alloc(l->fleet->nodes.n, sizeof(*x.node));
    for (uint32_t i = 0; i < l->fleet->nodes.n; i++)
        for (size_t c = 0; c < BH_COUNT_OF(components); c++)
            x.node[i][c] = bh_domains_many(&l->node_use[i].domains)
                               ? affected_version(l, &x, &l->fleet->nodes.at[i], c)
                               : FINE;
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        struct pool_affected a = {.n = 0};
        for (size_t k = 0; k < pool->nodes.n; k++)
            for (size_t c = 0; c < BH_COUNT_OF(components); c++)
                if (x.node[pool->nodes.at[k]][c] != FINE)
                    add_affected(&a, x.node[pool->nodes.at[k]][c],
                                 l->fleet->nodes.at[pool->nodes.at[k]].name);
        say_affected(l, &x, pool, &a);
    }
    free(x.node);
    bh_map_fini(&x.by_version);
    bh_vec_fini(&x.versions);
}

enum { PATCH_DAYS = 30 };

BH_CHECK(053)
{
    for (size_t i = 0; i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        struct bh_naming says, fixes;
        bh_naming_init(&says, 4);
        bh_naming_init(&fixes, 4);
        for (size_t c = 0; c < BH_COUNT_OF(components); c++) {
            struct bh_exposure e;
            if (!exposure_of(l, n, c, &e) || l->today - e.oldest->published_day <= PATCH_DAYS)
                continue;
            bh_naming_add(&says,
                          bh_arena_printf(&l->out->arena, "%s %s: %d days behind (%s)%s", components[c].label,
                                          component_version(n, c), (int)(l->today - e.oldest->published_day),
                                          e.oldest->worst_cve,
                                          e.unpatched_branch ? ", on a branch that gets no more fixes" : ""));
            add_fix(l, &fixes, c, &e);
        }
        size_t n_says = says.n, n_fixes = fixes.n;
        const char *text = bh_naming_end(l, &says), *to = bh_naming_end(l, &fixes);
        if (n_says)
            bh_found_fix(l, bh_about_node(n),
                         n_fixes ? bh_arena_printf(&l->out->arena, "Plan the update to %s or later.", to)
                                 : l->rule->fix,
                         "%s.", text);
    }
}

/* ---- BH-055: clearing that does not happen ---- */

/* `0`, `0x0`, `0x00000000`: parameters are written in either base. */
static bool is_zero(const char *value)
{
    const char *p = bh_str_starts(value, "0x") || bh_str_starts(value, "0X") ? value + 2 : value;
    return *p && p[strspn(p, "0")] == '\0';
}

/* The parameter itself, or inside the driver's RegistryDwords string. */
static bool scrub_disabled(const struct bh_fleet_node *n, struct bh_pos *ret)
{
    for (size_t i = 0; i < n->params.n; i++) {
        const struct bh_keyed *k = &n->params.at[i];
        if ((bh_str_eq(k->key, "RMDisableScrubOnFree") && !is_zero(k->value)) ||
            bh_mentions(k->value, "RMDisableScrubOnFree=1") ||
            bh_mentions(k->value, "RMDisableScrubOnFree=0x1")) {
            *ret = k->pos;
            return true;
        }
    }
    return false;
}

static const char *imaginary(const char *text)
{
    static const char *const names[] = {"CUDA_MEMSET_ON_ALLOC", "CUDA_MEMSET_ON_FREE", "CUDA_ZERO_ON_ALLOC",
                                        "CUDA_ZERO_ON_FREE", "CUDA_SCRUB_ON_FREE"};
    for (size_t i = 0; text && i < BH_COUNT_OF(names); i++)
        if (bh_mentions(text, names[i]))
            return names[i];
    return NULL;
}

BH_CHECK(055)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        const char *name = imaginary(pool->description);
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->description_pos;
        if (name)
            bh_found(l, s, "Memory clearing of pool %s is imaginary: %s does nothing.", pool->name, name);
    }
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        for (size_t k = 0; k < w->env.n; k++) {
            const char *name = imaginary(w->env.at[k].key);
            if (!name || bh_str_eq(w->env.at[k].value, "0"))
                continue;
            struct bh_subject s = bh_about_workload(w);
            s.cause = w->env.at[k].pos;
            bh_found(l, s, "Memory clearing of workload %s is imaginary: %s does nothing.", w->name, name);
            break;
        }
    }
    if (!l->fleet)
        bh_unknown(l, "%s", l->rule->unchecked);
    for (size_t i = 0; l->fleet && i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        struct bh_subject s = bh_about_node(n);
        if (scrub_disabled(n, &s.cause))
            bh_found_fix(l, s, "Remove the module parameter: the driver then scrubs what is freed.",
                         "Memory clearing on %s is off: RMDisableScrubOnFree is set.", n->name);
        else if (!n->params.n)
            bh_unknown(l, "the driver's module parameters on node '%s' are not known", n->name);
    }
}

/* ---- BH-056, BH-057, BH-058, BH-071: switches of the node ---- */

BH_CHECK(056)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        if (pool->tenants.n < 2)
            continue;
        struct bh_naming off;
        bh_naming_init(&off, 4);
        for (size_t k = 0; k < pool->nodes.n; k++) {
            const struct bh_fleet_node *n = &l->fleet->nodes.at[pool->nodes.at[k]];
            if (n->ecc == BH_FACT_NO)
                bh_naming_add(&off, n->name);
            else if (n->ecc == BH_FACT_UNKNOWN)
                bh_unknown(l, "the ECC state of node '%s' is not known", n->name);
        }
        size_t n_off = off.n;
        const char *names = bh_naming_end(l, &off);
        if (n_off)
            bh_found(l, bh_about_pool(pool),
                     "ECC off on %s: bit flips by a neighbour are not corrected (GPUHammer).", names);
    }
}

BH_CHECK(057)
{
    for (size_t i = 0; i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        const struct bh_node_use *u = &l->node_use[i];
        if (u->vm_tenant == BH_NONE)
            continue;
        if (n->iommu == BH_FACT_NO)
            bh_found(l, bh_about_node(n), "GPUs cannot be isolated by IOMMU on %s: the IOMMU is off.",
                     n->name);
        else if (u->vm_tenants && n->acs == BH_FACT_NO)
            bh_found(l, bh_about_node(n),
                     "GPUs cannot be isolated by IOMMU on %s: ACS is off between VM tenants.", n->name);
        else if (n->iommu == BH_FACT_UNKNOWN || (u->vm_tenants && n->acs == BH_FACT_UNKNOWN))
            bh_unknown(l, "the IOMMU and ACS state of node '%s' is not known", n->name);
    }
}

BH_CHECK(058)
{
    for (size_t i = 0; i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        if (l->node_use[i].regulated == BH_NONE)
            continue;
        const struct bh_tenant *t = &l->p->tenants.at[l->node_use[i].regulated];
        if (n->secure_boot == BH_FACT_NO)
            bh_found(l, bh_about_node(n),
                     "Secure boot is off on %s: unsigned modules can load beside regulated tenant %s.",
                     n->name, t->name);
        else if (n->secure_boot == BH_FACT_UNKNOWN)
            bh_unknown(l, "the secure boot state of node '%s' is not known", n->name);
    }
}

BH_CHECK(071)
{
    for (size_t i = 0; i < l->fleet->nodes.n; i++) {
        const struct bh_fleet_node *n = &l->fleet->nodes.at[i];
        if (!l->node_use[i].shared)
            continue;
        const char *value = bh_keyed_find(n->params.at, n->params.n, "RmProfilingAdminOnly");
        if (!value)
            bh_unknown(l, "RmProfilingAdminOnly of node '%s' is not known", n->name);
        else if (is_zero(value))
            bh_found(l, bh_about_node(n), "GPU performance counters open to tenants on %s.", n->name);
    }
}
