/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/estate.h"

#include "core/model/advisory.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { SETS_MAX = 64, WORDS = BH_JOB_TENANTS / 64 };

/* Tenants that may use a GPU; by place in estate.tenants. */
struct set {
    uint64_t at[WORDS];
};

struct maker {
    struct bh_estate *g;
    const struct bh_policy *policy;
    const struct bh_fleet *fleet;
    uint32_t *queue_of;  /* by tenant of the policy */
    uint32_t *runner_of; /* likewise: place in estate.tenants, or BH_NONE */
    struct set sets[SETS_MAX];
    uint32_t n_sets;
    BH_VEC(const char *) places, trusts, fabrics, model_names;
    BH_VEC(struct set) users;  /* by GPU of the fleet, node after node */
    BH_VEC(size_t) first_user; /* by node */
    bool divided;              /* some node is shared out between sets of tenants */
};

static uint32_t name_of(const char *name, const char ***at, size_t *n, size_t *cap)
{
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp((*at)[i], name) == 0)
            return i;
    if (*n == *cap)
        *at = bh_grow_(*at, cap, *n + 1, sizeof(**at));
    (*at)[(*n)++] = name;
    return (uint32_t)(*n - 1);
}
#define name_in(v, name) name_of((name), &(v)->at, &(v)->n, &(v)->cap)

/* ---- the tree of queues ---- */

static uint32_t parent_of(const struct maker *m, uint32_t tenant)
{
    const char *name = m->policy->tenants.at[tenant].parent;
    for (uint32_t i = 0; name && i < m->policy->tenants.n; i++)
        if (strcmp(m->policy->tenants.at[i].name, name) == 0)
            return i;
    return BH_NONE;
}

static bool has_children(const struct maker *m, uint32_t tenant)
{
    for (uint32_t i = 0; i < m->policy->tenants.n; i++)
        if (parent_of(m, i) == tenant)
            return true;
    return false;
}

static void fill_quota(const struct bh_tenant *t, bool leaf, struct bh_queue_config *c)
{
    const struct bh_quota *q = &t->quota;
    const bool says = q->pos.line && (q->has_gpus || q->has_max);
    if (leaf || says)
        bh_queue_config_init(c);
    else
        bh_queue_config_group(c);
    c->weight = q->weight < BH_WEIGHT_MAX ? q->weight : BH_WEIGHT_MAX;
    c->serves = t->slo.kind == BH_SLO_HARD;
    if (q->has_gpus)
        c->deserved.at[BH_RES_GPU] = q->gpus_milli;
    if (q->has_max)
        c->limit.at[BH_RES_GPU] = q->max_milli;
    if (q->has_gpus && !q->borrow && c->limit.at[BH_RES_GPU] > q->gpus_milli)
        c->limit.at[BH_RES_GPU] = q->gpus_milli;
    if (q->has_model)
        c->model = (enum bh_quota_model)q->model;
    if (t->priority.pos.line)
        c->band_max = (enum bh_priority)t->priority.ceiling;
    if (t->priority.has_budget)
        c->budget = t->priority.budget_ms < BH_BUDGET_ANY / BH_GPU_MILLI
                        ? t->priority.budget_ms * BH_GPU_MILLI
                        : BH_BUDGET_ANY;
}

/* A parent that is no tenant is only a place in the tree. */
static uint32_t place_queue(struct maker *m, const char *name)
{
    const size_t before = m->places.n;
    const uint32_t id = name_in(&m->places, name);
    if (id == before) {
        struct bh_estate_queue *q = bh_vec_push(&m->g->queues);
        q->parent = BH_QUEUE_ROOT;
        bh_queue_config_group(&q->config);
    }
    return id + 1; /* places are laid first */
}

static int lay_queue(struct maker *m, uint32_t tenant, uint32_t depth, struct bh_err *err)
{
    const struct bh_tenant *t = &m->policy->tenants.at[tenant];
    const uint32_t parent = parent_of(m, tenant);
    if (m->queue_of[tenant])
        return BH_OK;
    if (depth >= BH_QUEUE_DEPTH - 1)
        return bh_fail(err, BH_TOO_LARGE, "tenant '%.63s' has more than %u tenants above it", t->name,
                       BH_QUEUE_DEPTH - 1);
    int rc = parent == BH_NONE ? BH_OK : lay_queue(m, parent, depth + 1, err);
    if (rc < 0)
        return rc;
    const uint32_t above = parent != BH_NONE ? m->queue_of[parent]
                           : t->parent       ? place_queue(m, t->parent)
                                             : BH_QUEUE_ROOT;
    struct bh_estate_queue *q = bh_vec_push(&m->g->queues);
    q->parent = above;
    fill_quota(t, !has_children(m, tenant), &q->config);
    m->queue_of[tenant] = (uint32_t)m->g->queues.n;
    return BH_OK;
}

static int lay_queues(struct maker *m, struct bh_err *err)
{
    int rc = BH_OK;
    for (uint32_t i = 0; i < m->policy->tenants.n; i++)
        if (m->policy->tenants.at[i].parent && parent_of(m, i) == BH_NONE)
            (void)place_queue(m, m->policy->tenants.at[i].parent);
    for (uint32_t i = 0; i < m->policy->tenants.n && rc == BH_OK; i++)
        rc = lay_queue(m, i, 0, err);
    return rc;
}

/* ---- who may use what ---- */

static bool driver_suits(const struct bh_tenant *t, const struct bh_fleet_node *n)
{
    if (!t->drivers.n || !n->driver || !*n->driver)
        return true;
    for (size_t i = 0; i < t->drivers.n; i++)
        if (bh_version_accepts(t->drivers.at[i].s, n->driver))
            return true;
    return false;
}

static bool node_suits(const struct bh_tenant *t, const struct bh_fleet_node *n)
{
    return driver_suits(t, n) && (!t->site || (n->site && strcmp(t->site, n->site) == 0));
}

static void add_user(struct maker *m, uint32_t tenant, struct bh_gpu_ref at)
{
    const uint32_t runner = m->runner_of[tenant];
    if (runner == BH_NONE || !node_suits(&m->policy->tenants.at[tenant], &m->fleet->nodes.at[at.node]))
        return;
    m->users.at[m->first_user.at[at.node] + at.gpu].at[runner / 64] |= UINT64_C(1) << runner % 64;
}

/* The strictest of its pools: whose own kernel it has in all of them shares only the machine. */
static void add_tier(struct maker *m, uint32_t tenant, const struct bh_pool *pool)
{
    if (m->runner_of[tenant] != BH_NONE && pool->gpus.n && pool->tier < BH_TIER_VM)
        m->g->tenants.at[m->runner_of[tenant]].apart = BH_APART_NODE;
}

static int list_tenants(struct maker *m, struct bh_err *err)
{
    for (uint32_t i = 0; i < m->policy->tenants.n; i++) {
        const struct bh_tenant *t = &m->policy->tenants.at[i];
        m->runner_of[i] = BH_NONE;
        if (has_children(m, i))
            continue;
        if (m->g->tenants.n == BH_JOB_TENANTS)
            return bh_fail(err, BH_TOO_LARGE, "the policy has more than %d tenants", BH_JOB_TENANTS);
        m->runner_of[i] = (uint32_t)m->g->tenants.n;
        *bh_vec_push(&m->g->tenants) = (struct bh_estate_tenant){
            .name = t->name,
            .queue = m->queue_of[i],
            .trust = name_in(&m->trusts, t->domain),
            .apart = BH_APART_GPU,
            .promised_milli = t->quota.gpus_milli,
            .weight = t->quota.gpus_milli + t->quota.weight,
        };
    }
    return BH_OK;
}

static void list_users(struct maker *m)
{
    for (size_t i = 0; i < m->fleet->nodes.n; i++) {
        *bh_vec_push(&m->first_user) = m->users.n;
        for (size_t k = 0; k < m->fleet->nodes.at[i].gpus.n; k++)
            *bh_vec_push(&m->users) = (struct set){{0}};
    }
    for (size_t i = 0; i < m->policy->pools.n; i++) {
        const struct bh_pool *pool = &m->policy->pools.at[i];
        for (size_t t = 0; t < pool->tenants.n; t++) {
            add_tier(m, pool->tenants.at[t], pool);
            for (size_t k = 0; k < pool->gpus.n; k++)
                add_user(m, pool->tenants.at[t], pool->gpus.at[k]);
        }
    }
}

/* ---- the nodes ---- */

static int set_of(struct maker *m, const struct set *s, uint32_t *ret, struct bh_err *err)
{
    for (*ret = 0; *ret < m->n_sets; (*ret)++)
        if (memcmp(&m->sets[*ret], s, sizeof(*s)) == 0)
            return BH_OK;
    if (m->n_sets == SETS_MAX)
        return bh_fail(err, BH_TOO_LARGE, "pools divide the GPUs between more than %d groups of tenants",
                       SETS_MAX);
    m->sets[m->n_sets++] = *s;
    return BH_OK;
}

static int model_of(struct maker *m, const struct bh_gpu *gpu, uint32_t *ret, struct bh_err *err)
{
    const size_t before = m->model_names.n;
    *ret = name_in(&m->model_names, gpu->model_name);
    if (*ret == BH_MODELS_MAX)
        return bh_fail(err, BH_TOO_LARGE, "the fleet has more than %d models of GPUs", BH_MODELS_MAX);
    if (m->model_names.n != before)
        *bh_vec_push(&m->g->models) = gpu->model;
    return BH_OK;
}

/* What of a node is of one model and for the same tenants is a node of its own; they stay in one NVLink domain. */
static int add_gpu(struct maker *m, uint32_t node, uint32_t i, size_t from, struct bh_err *err)
{
    static const struct set nobody = {{0}};
    struct bh_estate *g = m->g;
    const struct bh_fleet_node *n = &m->fleet->nodes.at[node];
    const struct set *users = &m->users.at[m->first_user.at[node] + i];
    uint32_t set, model;
    if (memcmp(users, &nobody, sizeof(nobody)) == 0) {
        g->left_out++;
        return BH_OK;
    }
    int rc = set_of(m, users, &set, err);
    if (rc == BH_OK)
        rc = model_of(m, &n->gpus.at[i], &model, err);
    if (rc < 0)
        return rc;
    g->gpus++;
    for (size_t k = from; k < g->nodes.n; k++)
        if (g->nodes.at[k].model == model && g->nodes.at[k].pools == UINT64_C(1) << set &&
            g->nodes.at[k].n_gpus < BH_NODE_GPUS) {
            g->nodes.at[k].n_gpus++;
            return BH_OK;
        }
    const char *fabric = n->gpus.at[i].fabric ? n->gpus.at[i].fabric : n->name;
    const uint32_t link = g->nodes.n > from ? g->nodes.at[from].link : name_in(&m->fabrics, fabric);
    m->divided |= g->nodes.n > from;
    *bh_vec_push(&g->nodes) = (struct bh_estate_node){model, link, 1, UINT64_C(1) << set};
    return BH_OK;
}

static int lay_nodes(struct maker *m, struct bh_err *err)
{
    int rc = BH_OK;
    for (uint32_t i = 0; i < m->fleet->nodes.n; i++) {
        const size_t from = m->g->nodes.n;
        for (uint32_t k = 0; k < m->fleet->nodes.at[i].gpus.n && rc == BH_OK; k++)
            rc = add_gpu(m, i, k, from, err);
    }
    m->g->n_links = (uint32_t)m->fabrics.n;
    for (size_t i = 0; i < m->g->tenants.n; i++) {
        struct bh_estate_tenant *t = &m->g->tenants.at[i];
        for (uint32_t k = 0; k < m->n_sets; k++)
            t->pools |= (m->sets[k].at[i / 64] >> i % 64 & 1) << k;
        for (size_t k = 0; k < m->g->nodes.n; k++)
            t->gpus += t->pools & m->g->nodes.at[k].pools ? m->g->nodes.at[k].n_gpus : 0;
        if (m->divided && t->apart == BH_APART_NODE)
            t->apart = BH_APART_LINK; /* the parts of a node have one kernel, and are in one domain */
    }
    return rc;
}

/* Who may use no GPU runs nothing. */
static void drop_idle(struct bh_estate *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->tenants.n; i++)
        if (g->tenants.at[i].gpus)
            g->tenants.at[kept++] = g->tenants.at[i];
    g->tenants.n = kept;
}

/* ---- the scheduler ---- */

/* These events are made here, and cannot be wrong. */
static void tell(struct bh_sched *s, const struct bh_sched_event *e)
{
    struct bh_err err;
    if (bh_sched_apply(s, e, &err) < 0)
        abort();
}

void bh_estate_lay(const struct bh_estate *g, struct bh_sched *s)
{
    for (uint32_t i = 0; i < g->models.n; i++)
        tell(s, &(struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = i, .model = g->models.at[i]});
    for (uint32_t i = 0; i < g->n_links; i++)
        tell(s, &(struct bh_sched_event){
                    .kind = BH_SCHED_DOMAIN, .id = i, .level = BH_LEVEL_LINK, .parent = BH_NONE});
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        const struct bh_estate_node *n = &g->nodes.at[i];
        const struct bh_node_spec spec = {.model = n->model,
                                          .domain = n->link,
                                          .rank = i,
                                          .n_gpus = n->n_gpus,
                                          .n_numa = 1,
                                          .pools = n->pools};
        tell(s, &(struct bh_sched_event){.kind = BH_SCHED_NODE, .id = i, .node = &spec});
    }
    for (uint32_t i = 0; i < g->queues.n; i++)
        tell(s, &(struct bh_sched_event){.kind = BH_SCHED_QUEUE,
                                         .id = i + 1,
                                         .parent = g->queues.at[i].parent,
                                         .queue = &g->queues.at[i].config});
}

struct bh_request bh_estate_request(const struct bh_estate_tenant *t)
{
    return (struct bh_request){.form = BH_FORM_WHOLE,
                               .n_gpus = 1,
                               .gpu_milli = BH_GPU_MILLI,
                               .apart = t->apart,
                               .pools = t->pools,
                               .trust = t->trust};
}

/* Does a job of so many start when nobody else is there? */
static bool starts_alone(const struct bh_estate *g, const struct bh_estate_tenant *t, uint32_t gpus)
{
    struct bh_sched_config c;
    size_t n;
    bh_sched_config_init(&c);
    c.queues.divided = 1u << BH_RES_GPU;
    struct bh_sched *s = bh_sched_new(&c);
    const struct bh_gang_spec spec = {
        .id = 1,
        .queue = t->queue,
        .n_roles = 1,
        .within = BH_LEVEL_ANY,
        .prefer = BH_LEVEL_ANY,
        .band = BH_PRIORITY_NORMAL,
        .can = BH_CAN_REQUEUE,
        .deadline_ms = BH_TURN_NO_DEADLINE,
        .roles = {{.request = bh_estate_request(t), .min = gpus, .max = gpus}},
    };
    bh_estate_lay(g, s);
    tell(s, &(struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .id = 1, .job = &spec});
    (void)bh_sched_decide(s, 1, 0, &n);
    bh_sched_free(s);
    return n == 1;
}

/* Asked of the scheduler itself, so that no job waits for what can never be. */
static void find_most(const struct bh_estate *g, struct bh_estate_tenant *t)
{
    uint32_t low = 0, high = (t->gpus < BH_MEMBERS_MAX ? t->gpus : BH_MEMBERS_MAX) + 1;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (starts_alone(g, t, middle))
            low = middle;
        else
            high = middle;
    }
    t->most = low;
}

/* ---- all of it ---- */

int bh_estate_make(struct bh_estate *g, const struct bh_policy *p, const struct bh_fleet *f,
                   struct bh_err *err)
{
    struct maker m = {.g = g, .policy = p, .fleet = f};
    m.queue_of = bh_alloc(2 * p->tenants.n + 1, sizeof(*m.queue_of));
    m.runner_of = m.queue_of + p->tenants.n;
    int rc = lay_queues(&m, err);
    if (rc == BH_OK)
        rc = list_tenants(&m, err);
    if (rc == BH_OK) {
        list_users(&m);
        rc = lay_nodes(&m, err);
    }
    if (rc == BH_OK) {
        drop_idle(g);
        for (size_t i = 0; i < g->tenants.n; i++)
            find_most(g, &g->tenants.at[i]);
        if (!g->tenants.n)
            rc = bh_fail(err, BH_INVALID, "the pools of the policy leave no tenant a GPU of this fleet");
    }
    free(m.queue_of);
    bh_vec_fini(&m.places);
    bh_vec_fini(&m.trusts);
    bh_vec_fini(&m.fabrics);
    bh_vec_fini(&m.model_names);
    bh_vec_fini(&m.users);
    bh_vec_fini(&m.first_user);
    return rc;
}

void bh_estate_fini(struct bh_estate *g)
{
    bh_vec_fini(&g->tenants);
    bh_vec_fini(&g->queues);
    bh_vec_fini(&g->nodes);
    bh_vec_fini(&g->models);
}

size_t bh_estate_adopt(const struct bh_estate *g, struct bh_jobs *jobs)
{
    uint32_t to[BH_JOB_TENANTS] = {0};
    size_t foreign = 0;
    assert(g->tenants.n); /* or there was no estate to be had */
    for (size_t i = 0; i < jobs->tenants.n; i++) {
        uint32_t turn = 0;
        to[i] = BH_NONE;
        for (uint32_t k = 0; k < g->tenants.n; k++)
            if (strcmp(g->tenants.at[k].name, jobs->tenants.at[i]) == 0)
                to[i] = k;
        if (to[i] != BH_NONE)
            continue;
        for (size_t k = 0; k < jobs->tenants.n; k++)
            turn += strcmp(jobs->tenants.at[k], jobs->tenants.at[i]) < 0;
        to[i] = turn % (uint32_t)g->tenants.n;
        foreign++;
    }
    for (size_t i = 0; i < jobs->at.n; i++)
        jobs->at.at[i].tenant = to[jobs->at.at[i].tenant];
    jobs->tenants.n = 0;
    for (size_t i = 0; i < g->tenants.n; i++)
        *bh_vec_push(&jobs->tenants) = g->tenants.at[i].name;
    return foreign;
}
