/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - from names to indices, and from pools to the GPUs of a fleet.
 *
 * Shaped for ten thousand tenants, as many nodes and thousands of pools: every name is
 * looked up in a hash map, a pool that names nodes or a fabric looks at those alone, and
 * pools with the same match share one answer. Patterns are a few bytes that can name
 * millions, so the work is bounded by the size of the fleet and what is past it refused.
 * Linking again (against another fleet) starts afresh.
 */
#include "base/buf.h"
#include "base/str.h"
#include "core/model/policy.h"
#include "core/model/tables.h"

enum kind { KIND_TENANT, KIND_POOL, KIND_CLASS, KIND_NODE, N_KINDS };
static const char *const kind_text[] = {"tenant", "pool", "class", "node"};

enum {
    MISSING_SHOWN = 8,         /* of one pattern: a wrong range is one mistake, not thousands */
    COMPARISONS_MAX = 1 << 18, /* for "did you mean", a courtesy that must not cost a minute */
    WORK_BASE = 1 << 22,       /* how many names may be expanded and GPUs looked at, */
    WORK_PER_GPU = 128,        /* and how many more for each node and GPU of the fleet */
    MATCH_KEY_MAX = 1 << 16,   /* bytes; a match longer than this is not shared */
};

/* That a GPU belongs to a fabric. */
struct member {
    struct bh_gpu_ref ref;
    uint32_t flat; /* the GPU's number when all of the fleet are counted through */
    uint32_t fabric;
};

struct linker {
    struct bh_policy *p;
    const struct bh_fleet *fleet;
    bh_unresolved_vec *problems;
    BH_VEC(const char *) candidates[N_KINDS];
    size_t comparisons_left;
    uint64_t work_left;

    uint32_t *first_gpu;     /* node -> flat number of its first GPU; one more than there are nodes */
    uint32_t *node_mark;     /* node -> the pool (from 1) that named it last */
    BH_VEC(uint32_t) chosen; /* nodes the pool at hand names */
    struct bh_map fabric_ids;
    BH_VEC(struct member) members;
    struct member *by_gpu, *by_fabric; /* the members in either order, and where each GPU or fabric starts */
    uint32_t *gpu_start, *fabric_start;
    struct bh_arena keys;
    struct bh_map pool_by_match;
};

static void problem(struct linker *l, const char *what, const char *name, struct bh_pos pos,
                    const char *nearest)
{
    *bh_vec_push(l->problems) = (struct bh_unresolved){pos, what, bh_arena_str(&l->p->arena, name), nearest};
}

static void candidate(struct linker *l, enum kind kind, const char *name)
{
    if (name)
        *bh_vec_push(&l->candidates[kind]) = name;
}

static void candidates_fill(struct linker *l, enum kind kind)
{
    const struct bh_policy *p = l->p;
    switch (kind) {
    case KIND_TENANT:
        for (size_t i = 0; i < p->tenants.n; i++)
            candidate(l, kind, p->tenants.at[i].name);
        break;
    case KIND_POOL:
        for (size_t i = 0; i < p->pools.n; i++)
            candidate(l, kind, p->pools.at[i].name);
        break;
    case KIND_CLASS:
        for (size_t i = 0; i < p->classes.n; i++)
            candidate(l, kind, p->classes.at[i].name);
        for (size_t i = 0; i < bh_builtin_class_count; i++)
            candidate(l, kind, bh_builtin_classes[i].name);
        break;
    case KIND_NODE:
        for (size_t i = 0; i < l->fleet->nodes.n; i++)
            candidate(l, kind, l->fleet->nodes.at[i].name);
        break;
    case N_KINDS:
        break;
    }
}

static void unresolved(struct linker *l, enum kind kind, const char *name, struct bh_pos pos)
{
    const char *nearest = NULL;
    if (!l->candidates[kind].n)
        candidates_fill(l, kind);
    size_t n = l->candidates[kind].n;
    if (n <= l->comparisons_left) {
        l->comparisons_left -= n;
        nearest = bh_str_nearest(name, l->candidates[kind].at, n);
    }
    /* a node's name lives in the fleet, which may go before the policy does */
    if (nearest && kind == KIND_NODE)
        nearest = bh_arena_str(&l->p->arena, nearest);
    problem(l, kind_text[kind], name, pos, nearest);
}

static uint32_t resolve(struct linker *l, enum kind kind, const char *name, struct bh_pos pos)
{
    if (!name)
        return BH_NONE;
    uint32_t i = bh_map_find(kind == KIND_POOL ? &l->p->pool_by_name : &l->p->tenant_by_name, name);
    if (i == BH_MAP_NONE)
        unresolved(l, kind, name, pos);
    return i;
}

/* ---- tenants, classes, workloads ---- */

static void maps_fill(struct bh_policy *p)
{
    bh_map_fini(&p->tenant_by_name);
    bh_map_fini(&p->pool_by_name);
    bh_map_fini(&p->class_by_name);
    p->every_tenant.n = 0;
    for (uint32_t i = 0; i < p->tenants.n; i++) {
        if (p->tenants.at[i].name)
            (void)bh_map_add(&p->tenant_by_name, p->tenants.at[i].name, i);
        *bh_vec_push(&p->every_tenant) = i;
    }
    for (uint32_t i = 0; i < p->pools.n; i++)
        if (p->pools.at[i].name)
            (void)bh_map_add(&p->pool_by_name, p->pools.at[i].name, i);
    for (uint32_t i = 0; i < p->classes.n; i++)
        if (p->classes.at[i].name)
            (void)bh_map_add(&p->class_by_name, p->classes.at[i].name, i);
}

static void link_tenant(struct linker *l, struct bh_tenant *t)
{
    if (!t->domain)
        t->domain = t->trust == BH_TRUST_INTERNAL ? "internal" : t->name;
    if (!t->class_name && t->source == BH_SOURCE_POLICY)
        t->class_name = "research";
    if (!t->quota.has_max && t->quota.model == BH_QUOTA_HARD && t->quota.has_gpus)
        t->quota.max_milli = t->quota.gpus_milli;
    t->class_ = bh_policy_class(l->p, t->class_name);
    if (t->class_name && !t->class_)
        unresolved(l, KIND_CLASS, t->class_name, t->class_pos);
}

static uint32_t parent_of(const struct bh_policy *p, uint32_t tenant)
{
    const char *name = p->tenants.at[tenant].parent;
    return name ? bh_map_find(&p->tenant_by_name, name) : BH_NONE;
}

/* A parent that is no tenant is a place in the quota tree and ends the walk; a ring has no root. */
static void link_parents(struct linker *l)
{
    const struct bh_policy *p = l->p;
    BH_AUTOFREE uint32_t *walk_of = bh_alloc(p->tenants.n, sizeof(*walk_of)); /* 0: not yet visited */
    for (uint32_t i = 0; i < p->tenants.n; i++) {
        uint32_t at = i;
        while (at != BH_NONE && !walk_of[at]) {
            walk_of[at] = i + 1;
            at = parent_of(p, at);
        }
        if (at == BH_NONE || walk_of[at] != i + 1)
            continue;
        uint32_t first = at;
        for (uint32_t k = parent_of(p, at); k != at; k = parent_of(p, k))
            first = k < first ? k : first;
        problem(l, "parent", p->tenants.at[first].parent, p->tenants.at[first].parent_pos, NULL);
    }
}

static void link_workload(struct linker *l, struct bh_workload *w)
{
    w->tenant = resolve(l, KIND_TENANT, w->tenant_name.s, w->tenant_name.pos);
    w->pool = resolve(l, KIND_POOL, w->pool_name.s, w->pool_name.pos);
    for (size_t i = 0; l->fleet && i < w->assigned.n; i++)
        if (!bh_fleet_find(l->fleet, w->assigned.at[i].node))
            unresolved(l, KIND_NODE, w->assigned.at[i].node, w->assigned.at[i].pos);
}

static void link_pool_tenants(struct linker *l, struct bh_pool *pool, uint32_t *mark, uint32_t serial)
{
    if (pool->tenants.cap)
        bh_vec_fini(&pool->tenants);
    pool->tenants.at = NULL;
    pool->tenants.n = 0;
    for (size_t i = 0; i < pool->tenant_names.n; i++) {
        const struct bh_text *name = &pool->tenant_names.at[i];
        uint32_t t = resolve(l, KIND_TENANT, name->s, name->pos);
        if (t != BH_NONE && mark[t] != serial && !pool->any_tenant) {
            mark[t] = serial;
            *bh_vec_push(&pool->tenants) = t;
        }
    }
    if (pool->any_tenant) {
        pool->tenants.at = l->p->every_tenant.at;
        pool->tenants.n = l->p->every_tenant.n;
    }
}

static void link_names(struct linker *l)
{
    struct bh_policy *p = l->p;
    BH_AUTOFREE uint32_t *mark = bh_alloc(p->tenants.n, sizeof(*mark));
    maps_fill(p);
    for (size_t i = 0; i < p->tenants.n; i++)
        link_tenant(l, &p->tenants.at[i]);
    link_parents(l);
    for (uint32_t i = 0; i < p->pools.n; i++)
        link_pool_tenants(l, &p->pools.at[i], mark, i + 1);
    for (size_t i = 0; i < p->fabrics.n; i++)
        (void)resolve(l, KIND_TENANT, p->fabrics.at[i].tenant.s, p->fabrics.at[i].tenant.pos);
    for (size_t i = 0; i < p->workloads.n; i++)
        link_workload(l, &p->workloads.at[i]);
    for (size_t i = 0; i < p->roles.n; i++)
        (void)resolve(l, KIND_TENANT, p->roles.at[i].tenant.s, p->roles.at[i].tenant.pos);
}

/* ---- the fleet's nodes and fabrics ---- */

static bool spend(struct linker *l, uint64_t work)
{
    bool enough = work <= l->work_left;
    l->work_left = enough ? l->work_left - work : 0;
    return enough;
}

/* Walking one pattern: each name becomes a node of the fleet, or a problem. */
struct walk {
    struct linker *l;
    struct bh_pos pos;
    unsigned n_missing;
    uint32_t owner; /* the fabric, or the pool (from 1), whose pattern it is */
};

static uint32_t walk_node(struct walk *w, const char *name)
{
    uint32_t node = bh_map_find(&w->l->fleet->by_name, name);
    if (node != BH_MAP_NONE)
        return node;
    /* a node's GPUs come one after the other: it is missing once */
    const bh_unresolved_vec *said = w->l->problems;
    if (w->n_missing < MISSING_SHOWN && !(w->n_missing && bh_str_eq(said->at[said->n - 1].name, name))) {
        w->n_missing++;
        unresolved(w->l, KIND_NODE, name, w->pos);
    }
    return BH_NONE;
}

static void pattern_failed(struct linker *l, int rc, const struct bh_text *pattern)
{
    if (rc == BH_TOO_LARGE)
        problem(l, "match", pattern->s, pattern->pos, NULL);
    else if (rc)
        unresolved(l, KIND_NODE, pattern->s, pattern->pos);
}

static uint32_t fabric_id(struct linker *l, const char *name)
{
    uint32_t next = (uint32_t)l->fabric_ids.n, known = bh_map_add(&l->fabric_ids, name, next);
    return known == BH_MAP_NONE ? next : known;
}

static void member_add(struct linker *l, uint32_t node, uint32_t gpu, uint32_t fabric)
{
    *bh_vec_push(&l->members) = (struct member){{node, gpu}, l->first_gpu[node] + gpu, fabric};
}

/* What the fleet says of a GPU's fabric outranks the policy. */
static void on_fabric_gpu(void *ctx, const char *name, uint32_t index)
{
    struct walk *w = ctx;
    (void)spend(w->l, 1);
    uint32_t node = walk_node(w, name);
    if (node == BH_NONE)
        return;
    const struct bh_fleet_node *n = &w->l->fleet->nodes.at[node];
    const struct bh_gpu *g = bh_fleet_node_gpu(n, index);
    if (g && !g->fabric)
        member_add(w->l, node, (uint32_t)(g - n->gpus.at), w->owner);
}

/* The members by GPU or by fabric, in the fleet's order within each; *ret_start ends with their number. */
static struct member *group(const struct member *at, size_t n, size_t n_groups, bool by_fabric,
                            uint32_t **ret_start)
{
    struct member *out = bh_alloc(n, sizeof(*out));
    uint32_t *start = bh_alloc(n_groups + 1, sizeof(*start));
    for (size_t i = 0; i < n; i++)
        start[by_fabric ? at[i].fabric : at[i].flat]++;
    for (size_t i = 1; i <= n_groups; i++)
        start[i] += start[i - 1];
    for (size_t i = n; i-- > 0;)
        out[--start[by_fabric ? at[i].fabric : at[i].flat]] = at[i];
    *ret_start = start;
    return out;
}

static void fleet_index(struct linker *l)
{
    const struct bh_fleet *f = l->fleet;
    uint32_t n_gpus = 0;
    l->first_gpu = bh_alloc(f->nodes.n + 1, sizeof(*l->first_gpu));
    l->node_mark = bh_alloc(f->nodes.n, sizeof(*l->node_mark));
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        l->first_gpu[i] = n_gpus;
        n_gpus += (uint32_t)f->nodes.at[i].gpus.n;
        for (uint32_t k = 0; k < f->nodes.at[i].gpus.n; k++)
            if (f->nodes.at[i].gpus.at[k].fabric)
                member_add(l, i, k, fabric_id(l, f->nodes.at[i].gpus.at[k].fabric));
    }
    l->first_gpu[f->nodes.n] = n_gpus;
    l->work_left = WORK_BASE + WORK_PER_GPU * ((uint64_t)n_gpus + f->nodes.n);
    for (size_t i = 0; i < l->p->fabrics.n; i++) {
        const struct bh_fabric *fabric = &l->p->fabrics.at[i];
        for (size_t k = 0; fabric->name && k < fabric->gpus.n; k++) {
            const struct bh_text *pattern = &fabric->gpus.at[k];
            struct walk w = {.l = l, .pos = pattern->pos, .owner = fabric_id(l, fabric->name)};
            pattern_failed(l, bh_gpus_expand(pattern->s, l->work_left, on_fabric_gpu, &w, NULL), pattern);
        }
    }
    l->by_gpu = group(l->members.at, l->members.n, n_gpus, false, &l->gpu_start);
    l->by_fabric = group(l->by_gpu, l->members.n, l->fabric_ids.n, true, &l->fabric_start);
}

/* ---- pools and their GPUs ---- */

struct selector {
    struct linker *l;
    struct bh_pool *pool;
    uint32_t *indices;                     /* of match.gpus, ascending */
    uint32_t fabric;                       /* BH_NONE: one that no GPU belongs to */
    const struct bh_gpu_model *last_model; /* the last one compared: fleets repeat themselves */
    bool last_matched;
};

static int compare_u32(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static bool starts_nocase(const char *s, const char *prefix)
{
    while (*prefix && bh_to_lower(*s) == bh_to_lower(*prefix)) {
        s++;
        prefix++;
    }
    return *prefix == '\0';
}

static bool model_matches(struct selector *s, const struct bh_gpu *g)
{
    const char *wanted = s->pool->match.model.s;
    if (!wanted)
        return true;
    if (!g->model)
        return g->model_name && starts_nocase(g->model_name, wanted);
    if (g->model != s->last_model) {
        s->last_model = g->model;
        s->last_matched = bh_catalog_matches(wanted, g->model);
    }
    return s->last_matched;
}

static void take_gpu(struct selector *s, struct bh_gpu_ref ref)
{
    const struct bh_gpu *g = &s->l->fleet->nodes.at[ref.node].gpus.at[ref.gpu];
    size_t n = s->pool->match.gpus.n;
    if (n && !bsearch(&g->index, s->indices, n, sizeof(g->index), compare_u32))
        return;
    if (model_matches(s, g))
        *bh_vec_push(&s->pool->gpus) = ref;
}

static bool in_fabric(const struct linker *l, uint32_t flat, uint32_t fabric)
{
    for (uint32_t i = l->gpu_start[flat]; i < l->gpu_start[flat + 1]; i++)
        if (l->by_gpu[i].fabric == fabric)
            return true;
    return false;
}

static bool take_node(struct selector *s, uint32_t node)
{
    const struct linker *l = s->l;
    uint32_t n = l->first_gpu[node + 1] - l->first_gpu[node];
    if (!spend(s->l, n + 1))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!s->pool->match.fabric.s || in_fabric(l, l->first_gpu[node] + i, s->fabric))
            take_gpu(s, (struct bh_gpu_ref){node, i});
    return true;
}

static bool take_fabric(struct selector *s)
{
    const struct linker *l = s->l;
    if (s->fabric == BH_NONE)
        return true;
    uint32_t first = l->fabric_start[s->fabric], end = l->fabric_start[s->fabric + 1];
    if (!spend(s->l, end - first))
        return false;
    for (uint32_t i = first; i < end; i++)
        if (i == first || l->by_fabric[i].flat != l->by_fabric[i - 1].flat)
            take_gpu(s, l->by_fabric[i].ref);
    return true;
}

static void on_pool_node(void *ctx, const char *name)
{
    struct walk *w = ctx;
    (void)spend(w->l, 1);
    uint32_t node = walk_node(w, name);
    if (node == BH_NONE || w->l->node_mark[node] == w->owner)
        return;
    w->l->node_mark[node] = w->owner;
    *bh_vec_push(&w->l->chosen) = node;
}

static void choose_nodes(struct linker *l, const struct bh_pool *pool, uint32_t serial)
{
    l->chosen.n = 0;
    for (size_t i = 0; i < pool->match.nodes.n; i++) {
        const struct bh_text *pattern = &pool->match.nodes.at[i];
        struct walk w = {.l = l, .pos = pattern->pos, .owner = serial};
        pattern_failed(l, bh_nodes_expand(pattern->s, l->work_left, on_pool_node, &w, NULL), pattern);
    }
    if (l->chosen.n)
        qsort(l->chosen.at, l->chosen.n, sizeof(l->chosen.at[0]), compare_u32);
}

static void select_gpus(struct linker *l, struct bh_pool *pool, uint32_t serial)
{
    size_t n_indices = pool->match.gpus.n;
    BH_AUTOFREE uint32_t *indices = bh_alloc(n_indices, sizeof(*indices));
    struct selector s = {.l = l, .pool = pool, .indices = indices};
    if (n_indices) {
        memcpy(indices, pool->match.gpus.at, n_indices * sizeof(*indices));
        qsort(indices, n_indices, sizeof(*indices), compare_u32);
    }
    s.fabric = pool->match.fabric.s ? bh_map_find(&l->fabric_ids, pool->match.fabric.s) : BH_NONE;
    bool done = true;
    if (pool->match.nodes.n) {
        choose_nodes(l, pool, serial);
        for (size_t i = 0; i < l->chosen.n && done; i++)
            done = take_node(&s, l->chosen.at[i]);
    } else if (pool->match.fabric.s) {
        done = take_fabric(&s);
    } else {
        for (uint32_t i = 0; i < l->fleet->nodes.n && done; i++)
            done = take_node(&s, i);
    }
    if (!done)
        problem(l, "match", pool->name ? pool->name : "", pool->match.pos, NULL);
    for (size_t i = 0; i < pool->gpus.n; i++)
        if (i == 0 || pool->gpus.at[i].node != pool->gpus.at[i - 1].node)
            *bh_vec_push(&pool->nodes) = pool->gpus.at[i].node;
}

/* The GPUs say more than a name that is the start of several (`H100`); they win where they agree. */
static const struct bh_gpu_model *pool_model(const struct bh_fleet *fleet, const struct bh_pool *pool)
{
    const struct bh_gpu_model *common = NULL;
    for (size_t i = 0; i < pool->gpus.n; i++) {
        struct bh_gpu_ref ref = pool->gpus.at[i];
        const struct bh_gpu_model *m = fleet->nodes.at[ref.node].gpus.at[ref.gpu].model;
        if (!m || (common && m != common)) {
            common = NULL;
            break;
        }
        common = m;
    }
    return common || !pool->match.model.s ? common : bh_catalog_find(pool->match.model.s);
}

static void key_add(struct bh_buf *b, const char *s)
{
    bh_buf_printf(b, "%zu:%s,", s ? strlen(s) + 1 : 0, s ? s : "");
}

/* What decides which GPUs a pool takes, as text: alike for two pools exactly when their matches are. */
static void match_key(const struct bh_pool *pool, struct bh_buf *b)
{
    key_add(b, pool->match.model.s);
    key_add(b, pool->match.fabric.s);
    bh_buf_printf(b, "%zu;", pool->match.nodes.n);
    for (size_t i = 0; i < pool->match.nodes.n; i++)
        key_add(b, pool->match.nodes.at[i].s);
    for (size_t i = 0; i < pool->match.gpus.n; i++)
        bh_buf_printf(b, "%u,", pool->match.gpus.at[i]);
}

static bool has_match(const struct bh_pool *p)
{
    return p->match.pos.line || p->match.model.s || p->match.fabric.s || p->match.nodes.n || p->match.gpus.n;
}

static void pool_forget(struct bh_pool *p)
{
    if (p->gpus.cap)
        bh_vec_fini(&p->gpus);
    if (p->nodes.cap)
        bh_vec_fini(&p->nodes);
    p->gpus.at = NULL;
    p->nodes.at = NULL;
    p->gpus.n = p->nodes.n = 0;
    p->model = NULL;
}

static void pool_borrow(struct bh_pool *p, const struct bh_pool *from)
{
    p->gpus.at = from->gpus.at;
    p->gpus.n = from->gpus.n;
    p->nodes.at = from->nodes.at;
    p->nodes.n = from->nodes.n;
    p->model = from->model;
}

static void link_pool_gpus(struct linker *l, uint32_t i)
{
    struct bh_pool *pool = &l->p->pools.at[i];
    pool_forget(pool);
    if (!l->fleet || !has_match(pool)) {
        pool->model = pool_model(l->fleet, pool);
        return;
    }
    struct bh_buf key BH_AUTO(bh_buf_fini);
    bh_buf_init(&key, MATCH_KEY_MAX);
    match_key(pool, &key);
    uint32_t twin = key.full ? BH_MAP_NONE : bh_map_find(&l->pool_by_match, bh_buf_text(&key));
    if (twin != BH_MAP_NONE) {
        pool_borrow(pool, &l->p->pools.at[twin]);
        return;
    }
    size_t n_problems = l->problems->n;
    select_gpus(l, pool, i + 1);
    pool->model = pool_model(l->fleet, pool);
    /* a mistake is reported wherever it stands, so a match with one is not shared */
    if (!key.full && l->problems->n == n_problems)
        (void)bh_map_add(&l->pool_by_match, bh_arena_str(&l->keys, bh_buf_text(&key)), i);
}

void bh_policy_link(struct bh_policy *p, const struct bh_fleet *fleet, bh_unresolved_vec *problems)
{
    struct linker l = {.p = p, .fleet = fleet, .problems = problems, .comparisons_left = COMPARISONS_MAX};
    link_names(&l);
    if (fleet)
        fleet_index(&l);
    for (uint32_t i = 0; i < p->pools.n; i++)
        link_pool_gpus(&l, i);
    for (size_t i = 0; i < N_KINDS; i++)
        bh_vec_fini(&l.candidates[i]);
    bh_vec_fini(&l.chosen);
    bh_vec_fini(&l.members);
    bh_map_fini(&l.fabric_ids);
    bh_map_fini(&l.pool_by_match);
    bh_arena_fini(&l.keys);
    free(l.first_gpu);
    free(l.node_mark);
    free(l.by_gpu);
    free(l.by_fabric);
    free(l.gpu_start);
    free(l.fabric_start);
}
