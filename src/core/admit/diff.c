/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.c - what another policy would change, and for whom.
 *
 * Fields are rows of tables: what they are called, how they are read, whether more of it is better for the tenant. Work
 * that is there is asked for again under the new policy; what that would refuse is named with its reason.
 */
#include "core/admit/admit_inside.h"

#include "base/str.h"

const char *bh_admit_change_str(enum bh_admit_change_kind k)
{
    static const char *const words[BH_CHANGEDS] = {
        [BH_CHANGED_TENANT_ADDED] = "tenant_added",
        [BH_CHANGED_TENANT_REMOVED] = "tenant_removed",
        [BH_CHANGED_POOL_ADDED] = "pool_added",
        [BH_CHANGED_POOL_REMOVED] = "pool_removed",
        [BH_CHANGED_POOL_JOINED] = "pool_joined",
        [BH_CHANGED_POOL_LEFT] = "pool_left",
        [BH_CHANGED_QUOTA_RAISED] = "quota_raised",
        [BH_CHANGED_QUOTA_LOWERED] = "quota_lowered",
        [BH_CHANGED_TERMS] = "terms",
        [BH_CHANGED_GPUS] = "gpus",
        [BH_CHANGED_WORK] = "work",
        [BH_CHANGED_MACHINE] = "machine",
    };
    return words[k];
}

struct comparing {
    const struct bh_admit *from, *to;
    bh_admit_changes *out;
};

static struct bh_admit_change *add(struct comparing *c, enum bh_admit_change_kind kind, const char *tenant,
                                   const char *pool)
{
    struct bh_admit_change *x = bh_vec_push(c->out);
    *x = (struct bh_admit_change){.kind = (uint8_t)kind, .tenant = tenant, .pool = pool};
    return x;
}

/* ---- amounts of a tenant ---- */

static const struct bh_queue_config *config_of(const struct bh_admit *a, uint32_t tenant)
{
    const uint32_t leaf = a->leaf[tenant];
    return &a->rows.at[a->rows.at[leaf].kind == BH_ROW_OWN ? a->rows.at[leaf].parent : leaf].config;
}

static uint64_t amount_gpus(const struct bh_admit *a, uint32_t t)
{
    return bh_admit_entitled(config_of(a, t));
}

static uint64_t amount_max(const struct bh_admit *a, uint32_t t)
{
    return bh_admit_most(config_of(a, t));
}

static uint64_t amount_memory(const struct bh_admit *a, uint32_t t)
{
    return a->policy->tenants.at[t].quota.memory_bytes;
}

static uint64_t amount_weight(const struct bh_admit *a, uint32_t t)
{
    return config_of(a, t)->weight;
}

static uint64_t amount_budget(const struct bh_admit *a, uint32_t t)
{
    const struct bh_tenant *x = &a->policy->tenants.at[t];
    return x->priority.has_budget ? x->priority.budget_ms : BH_AMOUNT_ANY;
}

/* None at all is the most. */
static uint64_t amount_network(const struct bh_admit *a, uint32_t t)
{
    const uint64_t v = bh_tenant_bandwidth(&a->policy->tenants.at[t]).network;
    return v ? v : BH_AMOUNT_ANY;
}

static uint64_t amount_disk(const struct bh_admit *a, uint32_t t)
{
    const uint64_t v = bh_tenant_bandwidth(&a->policy->tenants.at[t]).disk;
    return v ? v : BH_AMOUNT_ANY;
}

static const struct {
    const char *field;
    uint64_t (*get)(const struct bh_admit *, uint32_t tenant);
} amounts[] = {
    {"gpus", amount_gpus},           {"max", amount_max},       {"memory", amount_memory},
    {"weight", amount_weight},       {"budget", amount_budget}, {"bandwidth.network", amount_network},
    {"bandwidth.disk", amount_disk},
};

/* ---- words of a tenant and of a pool ---- */

static const char *word_model(const struct bh_tenant *t)
{
    return bh_word(quota_model, t->quota.model);
}

static const char *word_trust(const struct bh_tenant *t)
{
    return bh_word(trust, t->trust);
}

static const char *word_domain(const struct bh_tenant *t)
{
    return t->domain;
}

static const char *word_parent(const struct bh_tenant *t)
{
    return t->parent;
}

static const char *word_class(const struct bh_tenant *t)
{
    return t->class_name;
}

static const char *word_ceiling(const struct bh_tenant *t)
{
    return bh_word(priority, t->priority.ceiling);
}

static const char *word_slo(const struct bh_tenant *t)
{
    return bh_word(slo_kind, t->slo.kind);
}

static const char *word_site(const struct bh_tenant *t)
{
    return t->site;
}

static const struct {
    const char *field;
    const char *(*get)(const struct bh_tenant *);
} words[] = {
    {"quota.model", word_model}, {"trust", word_trust},      {"domain", word_domain}, {"parent", word_parent},
    {"class", word_class},       {"priority", word_ceiling}, {"slo", word_slo},       {"site", word_site},
};

static const char *pool_mechanism(const struct bh_pool *p)
{
    return bh_word(mechanism, bh_pool_effective(p));
}

static const char *pool_tier(const struct bh_pool *p)
{
    return bh_word(tier, p->tier);
}

static const struct {
    const char *field;
    const char *(*get)(const struct bh_pool *);
} pool_words[] = {{"mechanism", pool_mechanism}, {"tier", pool_tier}};

static uint64_t pool_memory(const struct bh_pool *p)
{
    return p->cap_memory_bytes ? p->cap_memory_bytes : BH_AMOUNT_ANY;
}

static uint64_t pool_compute(const struct bh_pool *p)
{
    return p->cap_compute_ppm ? p->cap_compute_ppm : BH_AMOUNT_ANY;
}

static uint64_t pool_gpus(const struct bh_pool *p)
{
    return p->gpus.n;
}

static const struct {
    const char *field;
    uint64_t (*get)(const struct bh_pool *);
    enum bh_admit_change_kind kind;
} pool_amounts[] = {{"caps.memory", pool_memory, BH_CHANGED_TERMS},
                    {"caps.compute", pool_compute, BH_CHANGED_TERMS},
                    {"gpus", pool_gpus, BH_CHANGED_GPUS}};

/* ---- comparing ---- */

static void compare_tenant(struct comparing *c, uint32_t from, uint32_t to)
{
    const struct bh_tenant *x = &c->from->policy->tenants.at[from], *y = &c->to->policy->tenants.at[to];
    for (size_t i = 0; i < BH_COUNT_OF(amounts); i++) {
        const uint64_t was = amounts[i].get(c->from, from), is = amounts[i].get(c->to, to);
        if (was == is)
            continue;
        struct bh_admit_change *d =
            add(c, is > was ? BH_CHANGED_QUOTA_RAISED : BH_CHANGED_QUOTA_LOWERED, y->name, NULL);
        d->field = amounts[i].field;
        d->from = was;
        d->to = is;
        d->worse = is < was;
    }
    for (size_t i = 0; i < BH_COUNT_OF(words); i++) {
        const char *was = words[i].get(x), *is = words[i].get(y);
        if (bh_str_eq(was, is))
            continue;
        struct bh_admit_change *d = add(c, BH_CHANGED_TERMS, y->name, NULL);
        d->field = words[i].field;
        d->from_text = was;
        d->to_text = is;
    }
}

static bool is_in(const struct bh_admit *a, uint32_t tenant, const char *pool)
{
    BH_EACH (p, &a->index.tenant_pools, tenant)
        if (bh_str_eq(a->policy->pools.at[*p].name, pool))
            return true;
    return false;
}

/* Pools of one that the same tenant does not have in the other. */
static void compare_membership(struct comparing *c, const struct bh_admit *a, uint32_t tenant,
                               const struct bh_admit *other, uint32_t other_tenant,
                               enum bh_admit_change_kind kind)
{
    BH_EACH (p, &a->index.tenant_pools, tenant) {
        const char *pool = a->policy->pools.at[*p].name;
        if (!is_in(other, other_tenant, pool))
            add(c, kind, a->policy->tenants.at[tenant].name, pool)->worse = kind == BH_CHANGED_POOL_LEFT;
    }
}

static void compare_tenants(struct comparing *c)
{
    const struct bh_policy *x = c->from->policy, *y = c->to->policy;
    for (uint32_t i = 0; i < y->tenants.n; i++) {
        const uint32_t old = bh_map_find(&x->tenant_by_name, y->tenants.at[i].name);
        if (old == BH_MAP_NONE) {
            add(c, BH_CHANGED_TENANT_ADDED, y->tenants.at[i].name, NULL);
            continue;
        }
        compare_tenant(c, old, i);
        compare_membership(c, c->to, i, c->from, old, BH_CHANGED_POOL_JOINED);
        compare_membership(c, c->from, old, c->to, i, BH_CHANGED_POOL_LEFT);
    }
    for (uint32_t i = 0; i < x->tenants.n; i++)
        if (bh_map_find(&y->tenant_by_name, x->tenants.at[i].name) == BH_MAP_NONE)
            add(c, BH_CHANGED_TENANT_REMOVED, x->tenants.at[i].name, NULL)->worse = true;
}

static void compare_pool(struct comparing *c, const struct bh_pool *x, const struct bh_pool *y)
{
    for (size_t i = 0; i < BH_COUNT_OF(pool_words); i++) {
        const char *was = pool_words[i].get(x), *is = pool_words[i].get(y);
        if (bh_str_eq(was, is))
            continue;
        struct bh_admit_change *d = add(c, BH_CHANGED_TERMS, NULL, y->name);
        d->field = pool_words[i].field;
        d->from_text = was;
        d->to_text = is;
    }
    for (size_t i = 0; i < BH_COUNT_OF(pool_amounts); i++) {
        const uint64_t was = pool_amounts[i].get(x), is = pool_amounts[i].get(y);
        if (was == is)
            continue;
        struct bh_admit_change *d = add(c, pool_amounts[i].kind, NULL, y->name);
        d->field = pool_amounts[i].field;
        d->from = was;
        d->to = is;
        d->worse = is < was;
    }
}

static void compare_pools(struct comparing *c)
{
    const struct bh_policy *x = c->from->policy, *y = c->to->policy;
    for (size_t i = 0; i < y->pools.n; i++) {
        const uint32_t old = bh_map_find(&x->pool_by_name, y->pools.at[i].name);
        if (old == BH_MAP_NONE)
            add(c, BH_CHANGED_POOL_ADDED, NULL, y->pools.at[i].name);
        else
            compare_pool(c, &x->pools.at[old], &y->pools.at[i]);
    }
    for (size_t i = 0; i < x->pools.n; i++)
        if (bh_map_find(&y->pool_by_name, x->pools.at[i].name) == BH_MAP_NONE)
            add(c, BH_CHANGED_POOL_REMOVED, NULL, x->pools.at[i].name)->worse = true;
}

void bh_admit_diff(const struct bh_admit *from, const struct bh_admit *to, const struct bh_admit_ask *live,
                   size_t n_live, bh_admit_changes *ret)
{
    struct comparing c = {from, to, ret};
    compare_tenants(&c);
    compare_pools(&c);
    if (!bh_admit_same_ground(to, from))
        add(&c, BH_CHANGED_MACHINE, NULL, NULL);
    for (size_t i = 0; i < n_live; i++) {
        struct bh_admit_grant grant;
        struct bh_admit_refusal why;
        if (bh_admit_job(to, &live[i], &grant, &why))
            continue;
        struct bh_admit_change *d = add(&c, BH_CHANGED_WORK, live[i].tenant, live[i].pool);
        d->job = live[i].id;
        d->why = why;
        d->worse = true;
    }
}
