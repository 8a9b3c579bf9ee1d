/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - tenants become queues: what they are promised, in the scheduler's words.
 *
 * Work stands in leaves, so a tenant that has others below it gets a second queue for its own. A queue once given stays:
 * the scheduler takes none back. One whose tenant is gone may have nothing.
 */
#include "core/admit/admit_inside.h"

#include "base/str.h"
#include "base/units.h"
#include "core/sched/mig.h"

enum { BUDGET_PERIOD_DAYS = 30 }; /* `budget: 200h` is for a month */

uint64_t bh_admit_entitled(const struct bh_queue_config *c)
{
    const uint64_t deserved = c->deserved.at[BH_RES_GPU];
    return deserved == BH_AMOUNT_ANY ? BH_AMOUNT_ANY : c->guarantee.at[BH_RES_GPU] + deserved;
}

uint64_t bh_admit_most(const struct bh_queue_config *c)
{
    const uint64_t limit = c->limit.at[BH_RES_GPU], entitled = bh_admit_entitled(c);
    return c->model == BH_QUOTA_HARD && entitled < limit ? entitled : limit;
}

static uint64_t capped(uint64_t amount)
{
    return amount < BH_AMOUNT_MAX ? amount : BH_AMOUNT_MAX;
}

/* `nvidia.com/mig-1g.18gb: 7` on the silicon of its pools, in thousandths of a GPU. */
static uint64_t instances_milli(const struct bh_admit *a, const struct bh_amount *r)
{
    static const char mig[] = "nvidia.com/mig-";
    if (!bh_str_starts(r->resource, mig))
        return r->milli;
    for (size_t i = 0; i < a->models.n; i++) {
        const struct bh_gpu_model *m = a->models.at[i].known;
        const struct bh_mig_profile *p =
            m && bh_model_has_mig(m) ? bh_mig_find(m, r->resource + strlen(mig)) : NULL;
        if (p)
            return capped(r->milli) / 1000 * bh_mig_milli(m, (uint32_t)(p - m->profiles));
    }
    return 0;
}

/* The guarantee: as written, else what the resources that it names amount to. */
static uint64_t own_milli(const struct bh_admit *a, const struct bh_quota *q)
{
    uint64_t sum = 0;
    if (q->has_gpus)
        return capped(q->gpus_milli);
    for (size_t i = 0; i < q->resources.n; i++)
        sum = capped(sum + instances_milli(a, &q->resources.at[i]));
    return sum;
}

/*
 *   hard        kept for it; with a ceiling above that it is kept, and the rest is borrowed
 *   fairshare   lent when idle; more only for who may borrow, or up to a stated ceiling
 *   priority    the same, and priority counts between queues
 */
static void set_amounts(const struct bh_admit *a, const struct bh_quota *q, struct bh_queue_config *c)
{
    const uint64_t own = own_milli(a, q), mib = q->memory_bytes / BH_MIB;
    const uint64_t max = capped(q->max_milli);
    const bool hard = q->model == BH_QUOTA_HARD, more = q->has_max && max > own;
    c->model = hard && more ? BH_QUOTA_FAIRSHARE : (enum bh_quota_model)q->model;
    struct bh_resources *own_is = hard ? &c->guarantee : &c->deserved;
    c->deserved.at[BH_RES_GPU] = 0;
    own_is->at[BH_RES_GPU] = q->has_max && max < own ? max : own;
    if (q->has_max)
        c->limit.at[BH_RES_GPU] = max;
    else if (hard || (q->has_gpus && !q->borrow))
        c->limit.at[BH_RES_GPU] = own;
    if (mib) {
        c->deserved.at[BH_RES_MIB] = 0;
        own_is->at[BH_RES_MIB] = capped(mib);
        if (hard && !more)
            c->limit.at[BH_RES_MIB] = capped(mib);
    }
}

static void configure(const struct bh_admit *a, uint32_t tenant, struct bh_queue_config *c)
{
    const struct bh_tenant *t = &a->policy->tenants.at[tenant];
    bh_queue_config_init(c);
    c->weight = t->quota.weight < BH_WEIGHT_MAX ? t->quota.weight : BH_WEIGHT_MAX;
    c->serves = t->slo.kind != BH_SLO_NONE && bh_tenant_is_serving(t);
    c->band_max = (enum bh_priority)t->priority.ceiling;
    c->budget = BH_BUDGET_ANY;
    c->budget_period_ms = (uint64_t)BUDGET_PERIOD_DAYS * 86400 * 1000;
    if (t->priority.has_budget) /* one GPU for a millisecond is a thousand units */
        c->budget =
            t->priority.budget_ms < BH_BUDGET_MAX / 1000 ? t->priority.budget_ms * 1000 : BH_BUDGET_MAX;
    if (t->quota.pos.line) {
        set_amounts(a, &t->quota, c);
        return;
    }
    /* Nothing was promised: it takes part in what is left over. */
    c->deserved.at[BH_RES_GPU] = 0;
}

/* The tenant's own work, below the queue that holds the promise for all of it. */
static void configure_own(const struct bh_queue_config *around, struct bh_queue_config *c)
{
    bh_queue_config_group(c);
    c->weight = around->weight;
    c->serves = around->serves;
    c->band_max = around->band_max;
}

static void configure_gone(struct bh_queue_config *c)
{
    bh_queue_config_init(c);
    c->limit.at[BH_RES_GPU] = 0;
    c->weight = 0;
}

struct filling {
    struct bh_admit *a;
    struct bh_map by_key; /* rows that an earlier policy gave, and groups */
    bool *has_children;   /* by tenant */
    uint32_t *queue;      /* by tenant: around all of it; 0: not placed yet */
    struct bh_err *err;
};

static uint32_t tenant_named(const struct bh_admit *a, const char *name)
{
    const uint32_t t = name ? bh_map_find(&a->policy->tenant_by_name, name) : BH_MAP_NONE;
    return t == BH_MAP_NONE ? BH_NONE : t;
}

static const char *key_of(struct bh_admit *a, const struct bh_admit_row *r)
{
    return bh_arena_printf(&a->arena, "%u %d %u %s", r->kind, r->inner, r->parent, r->name);
}

/*
 * The row that an earlier policy gave it, or a new one. Work stays in its queue: so a tenant that had work of its own and
 * now has others below it, or stands below another one, gets new queues, and its old one becomes nobody's.
 */
static uint32_t row_for(struct filling *f, const struct bh_admit_row *want)
{
    struct bh_admit *a = f->a;
    const char *key = key_of(a, want);
    uint32_t i = bh_map_find(&f->by_key, key);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)a->rows.n;
        struct bh_admit_row *r = bh_vec_push(&a->rows);
        *r = *want;
        r->name = bh_arena_str(&a->arena, want->name);
        (void)bh_map_add(&f->by_key, key, i);
    }
    a->rows.at[i].tenant = want->tenant;
    a->rows.at[i].config = want->config;
    return i;
}

/* The queue below which a tenant's stands. A parent that is no tenant only groups. */
static uint32_t queue_above(struct filling *f, const char *parent)
{
    const uint32_t above = tenant_named(f->a, parent);
    if (above != BH_NONE)
        return f->queue[above];
    if (!parent)
        return BH_QUEUE_ROOT;
    struct bh_admit_row group = {.name = parent, .kind = BH_ROW_GROUP, .inner = true, .tenant = BH_NONE};
    bh_queue_config_group(&group.config);
    return row_for(f, &group);
}

/* Queues of the tenants above it come first. */
static int place_tenant(struct filling *f, uint32_t tenant)
{
    struct bh_admit *a = f->a;
    const struct bh_tenant *tenants = a->policy->tenants.at;
    uint32_t path[BH_QUEUE_DEPTH], n = 0;
    for (uint32_t t = tenant; t != BH_NONE && !f->queue[t]; t = tenant_named(a, tenants[t].parent)) {
        if (n == BH_QUEUE_DEPTH)
            return bh_fail(f->err, BH_TOO_LARGE, "tenant '%s' has %u or more others above it",
                           tenants[tenant].name, BH_QUEUE_DEPTH);
        path[n++] = t;
    }
    while (n--) {
        const uint32_t t = path[n];
        struct bh_admit_row row = {.name = tenants[t].name,
                                   .kind = BH_ROW_TENANT,
                                   .inner = f->has_children[t],
                                   .tenant = t,
                                   .parent = queue_above(f, tenants[t].parent)};
        configure(a, t, &row.config);
        f->queue[t] = row_for(f, &row);
    }
    return 0;
}

static void place_own(struct filling *f, uint32_t tenant)
{
    struct bh_admit *a = f->a;
    a->leaf[tenant] = f->queue[tenant];
    if (!f->has_children[tenant])
        return;
    struct bh_admit_row row = {.name = a->policy->tenants.at[tenant].name,
                               .kind = BH_ROW_OWN,
                               .tenant = tenant,
                               .parent = f->queue[tenant]};
    configure_own(&a->rows.at[f->queue[tenant]].config, &row.config);
    a->leaf[tenant] = row_for(f, &row);
}

static uint32_t depth_of(const struct bh_admit *a, uint32_t queue)
{
    uint32_t depth = 0;
    for (; queue != BH_QUEUE_ROOT; queue = a->rows.at[queue].parent)
        depth++;
    return depth;
}

static int place_all(struct filling *f)
{
    struct bh_admit *a = f->a;
    const struct bh_policy *p = a->policy;
    for (uint32_t t = 0; t < p->tenants.n; t++) {
        const uint32_t above = tenant_named(a, p->tenants.at[t].parent);
        if (above != BH_NONE)
            f->has_children[above] = true;
    }
    for (uint32_t t = 0; t < p->tenants.n; t++) {
        const int rc = f->queue[t] ? 0 : place_tenant(f, t);
        if (rc < 0)
            return rc;
    }
    for (uint32_t t = 0; t < p->tenants.n; t++) {
        place_own(f, t);
        if (depth_of(a, a->leaf[t]) > BH_QUEUE_DEPTH)
            return bh_fail(f->err, BH_TOO_LARGE, "tenant '%s' is more than %u levels deep",
                           p->tenants.at[t].name, BH_QUEUE_DEPTH);
    }
    return 0;
}

static void take_over(struct filling *f, const struct bh_admit *before)
{
    struct bh_admit *a = f->a;
    for (uint32_t i = 1; before && i < before->rows.n; i++) {
        struct bh_admit_row *r = bh_vec_push(&a->rows);
        *r = before->rows.at[i];
        r->name = bh_arena_str(&a->arena, r->name);
        r->tenant = BH_NONE;
        if (r->kind != BH_ROW_GROUP)
            configure_gone(&r->config);
        (void)bh_map_add(&f->by_key, key_of(a, r), i);
    }
}

int bh_admit_rows(struct bh_admit *a, const struct bh_admit *before, struct bh_err *err)
{
    struct filling f = {.a = a, .err = err};
    f.queue = bh_alloc(a->policy->tenants.n, sizeof(*f.queue));
    f.has_children = bh_alloc(a->policy->tenants.n, sizeof(*f.has_children));
    *bh_vec_push(&a->rows) = (struct bh_admit_row){
        .name = "", .kind = BH_ROW_GROUP, .inner = true, .tenant = BH_NONE, .parent = BH_QUEUE_NONE};
    take_over(&f, before);
    const int rc = place_all(&f);
    bh_map_fini(&f.by_key);
    free(f.has_children);
    free(f.queue);
    return rc;
}
