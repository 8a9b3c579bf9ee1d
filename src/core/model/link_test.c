/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/str.h"
#include "base/test.h"
#include "core/model/policy.h"

struct world {
    struct bh_policy p;
    struct bh_fleet f;
    bh_unresolved_vec problems;
};

static void world_init(struct world *w)
{
    *w = (struct world){.problems = {.n = 0}};
    bh_policy_init(&w->p, BH_SOURCE_POLICY);
}

static void world_fini(struct world *w)
{
    bh_vec_fini(&w->problems);
    bh_policy_fini(&w->p);
    bh_fleet_fini(&w->f);
}

static struct bh_tenant *tenant(struct world *w, const char *name)
{
    struct bh_tenant *t = bh_policy_add_tenant(&w->p);
    t->name = bh_arena_str(&w->p.arena, name);
    return t;
}

static struct bh_pool *pool(struct world *w, const char *name)
{
    struct bh_pool *p = bh_policy_add_pool(&w->p);
    p->name = bh_arena_str(&w->p.arena, name);
    return p;
}

static struct bh_text text(const char *s, uint32_t line)
{
    return (struct bh_text){s, {0, line, 3}};
}

static void fabric(struct world *w, const char *name, const char *gpus, const char *tenant_name)
{
    struct bh_fabric *f = bh_vec_push(&w->p.fabrics);
    *f = (struct bh_fabric){.name = name, .tenant = text(tenant_name, 70)};
    if (gpus)
        *bh_vec_push(&f->gpus) = text(gpus, 71);
}

static struct bh_fleet_node *node(struct world *w, const char *name, const char *model, uint32_t n_gpus)
{
    struct bh_fleet_node *n = bh_vec_push(&w->f.nodes);
    *n = (struct bh_fleet_node){.name = bh_arena_str(&w->f.arena, name), .kernel = name};
    (void)bh_map_add(&w->f.by_name, n->name, (uint32_t)w->f.nodes.n - 1);
    for (uint32_t i = 0; i < n_gpus; i++)
        *bh_vec_push(&n->gpus) =
            (struct bh_gpu){.index = i, .model_name = model, .model = bh_catalog_find(model), .numa = -1};
    return n;
}

static void link_with(struct world *w, const struct bh_fleet *f)
{
    w->problems.n = 0;
    bh_policy_link(&w->p, f, &w->problems);
}

/* `n0g0 n0g1 `: the GPUs a pool took, for comparing by eye. */
static const char *gpus_text(struct world *w, const struct bh_pool *p)
{
    const char *s = "";
    for (size_t i = 0; i < p->gpus.n; i++)
        s = bh_arena_printf(&w->p.arena, "%sn%ug%u ", s, p->gpus.at[i].node, p->gpus.at[i].gpu);
    return s;
}

static bool problem_is(const struct world *w, size_t i, const char *what, const char *name, uint32_t line,
                       const char *nearest)
{
    if (i >= w->problems.n)
        return false;
    const struct bh_unresolved *u = &w->problems.at[i];
    bool same = bh_str_eq(u->what, what) && bh_str_eq(u->name, name) && u->pos.line == line &&
                bh_str_eq(u->nearest, nearest);
    if (!same)
        printf("# problem %zu: %s '%s' line %u, nearest %s\n", i, u->what, u->name, u->pos.line,
               u->nearest ? u->nearest : "none");
    return same;
}

/* ---- names ---- */

TEST(tenants_get_their_defaults)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)tenant(&w, "inside");
    tenant(&w, "outside")->trust = BH_TRUST_EXTERNAL;
    tenant(&w, "partner")->trust = BH_TRUST_PARTNER;
    struct bh_tenant *t = tenant(&w, "said");
    t->domain = "elsewhere";
    t->class_name = "batch";
    t->class_pos.line = 9;
    link_with(&w, NULL);
    CHECK_EQ(w.problems.n, 0);
    CHECK_STR(w.p.tenants.at[0].domain, "internal");
    CHECK_STR(w.p.tenants.at[1].domain, "outside");
    CHECK_STR(w.p.tenants.at[2].domain, "partner");
    CHECK_STR(w.p.tenants.at[3].domain, "elsewhere");
    CHECK_STR(w.p.tenants.at[0].class_name, "research");
    CHECK_EQ(w.p.tenants.at[0].class_pos.line, 0);
    CHECK_STR(w.p.tenants.at[3].class_->name, "batch");
}

TEST(a_cluster_tenant_has_no_default_class)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    tenant(&w, "team-a")->source = BH_SOURCE_KUBERNETES;
    link_with(&w, NULL);
    CHECK(!w.p.tenants.at[0].class_name && !w.p.tenants.at[0].class_);
    CHECK_EQ(w.problems.n, 0);
}

TEST(the_ceiling_of_a_hard_quota_is_the_quota)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    static const struct bh_quota quotas[] = {
        {.model = BH_QUOTA_HARD, .has_gpus = true, .gpus_milli = 4000},
        {.model = BH_QUOTA_HARD, .has_gpus = true, .gpus_milli = 4000, .has_max = true, .max_milli = 8000},
        {.model = BH_QUOTA_FAIRSHARE, .has_gpus = true, .gpus_milli = 4000},
        {.model = BH_QUOTA_HARD},
    };
    static const uint64_t expected[] = {4000, 8000, 0, 0};
    for (size_t i = 0; i < BH_COUNT_OF(quotas); i++)
        tenant(&w, "t")->quota = quotas[i];
    link_with(&w, NULL);
    for (size_t i = 0; i < BH_COUNT_OF(quotas); i++) {
        CHECK_EQ(w.p.tenants.at[i].quota.max_milli, expected[i]);
        CHECK_EQ(w.p.tenants.at[i].quota.has_max, quotas[i].has_max);
    }
}

TEST(every_name_that_nothing_bears_is_reported_where_it_stands)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    struct bh_tenant *t = tenant(&w, "acme");
    t->class_name = "servig";
    t->class_pos.line = 4;
    (void)tenant(&w, "globex");
    struct bh_pool *p = pool(&w, "training");
    *bh_vec_push(&p->tenant_names) = text("acme", 10);
    *bh_vec_push(&p->tenant_names) = text("globx", 11);
    fabric(&w, "A", NULL, "acne");
    struct bh_workload *wl = bh_policy_add_workload(&w.p);
    wl->tenant_name = text("nobody-at-all", 20);
    wl->pool_name = text("trianing", 21);
    *bh_vec_push(&w.p.roles) = (struct bh_role_binding){.pos = {0, 30, 1}, .tenant = {"acmee", {0, 30, 1}}};
    *bh_vec_push(&w.p.roles) = (struct bh_role_binding){.pos = {0, 31, 1}};
    link_with(&w, NULL);
    CHECK_EQ(w.problems.n, 6);
    CHECK(problem_is(&w, 0, "class", "servig", 4, "serving"));
    CHECK(problem_is(&w, 1, "tenant", "globx", 11, "globex"));
    CHECK(problem_is(&w, 2, "tenant", "acne", 70, "acme"));
    CHECK(problem_is(&w, 3, "tenant", "nobody-at-all", 20, NULL));
    CHECK(problem_is(&w, 4, "pool", "trianing", 21, "training"));
    CHECK(problem_is(&w, 5, "tenant", "acmee", 30, "acme"));
    CHECK_EQ(w.p.workloads.at[0].tenant, BH_NONE);
    CHECK_EQ(w.p.workloads.at[0].pool, BH_NONE);
    CHECK_EQ(w.p.pools.at[0].tenants.n, 1);
}

TEST(workloads_point_at_tenant_and_pool)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)tenant(&w, "a");
    (void)tenant(&w, "b");
    (void)pool(&w, "p");
    (void)pool(&w, "q");
    struct bh_workload *wl = bh_policy_add_workload(&w.p);
    wl->tenant_name = text("b", 1);
    wl->pool_name = text("q", 2);
    (void)bh_policy_add_workload(&w.p); /* names neither */
    link_with(&w, NULL);
    CHECK_EQ(w.p.workloads.at[0].tenant, 1);
    CHECK_EQ(w.p.workloads.at[0].pool, 1);
    CHECK_EQ(w.p.workloads.at[1].tenant, BH_NONE);
    CHECK_EQ(w.problems.n, 0);
}

TEST(a_declared_class_comes_first)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    *bh_vec_push(&w.p.classes) = (struct bh_class){.name = "gold", .slos = 1u << BH_SLO_HARD};
    *bh_vec_push(&w.p.classes) = (struct bh_class){.name = "batch"};
    tenant(&w, "a")->class_name = "gold";
    tenant(&w, "b")->class_name = "batch";
    tenant(&w, "c")->class_name = "training";
    link_with(&w, NULL);
    CHECK(w.p.tenants.at[0].class_ == &w.p.classes.at[0]);
    CHECK(w.p.tenants.at[1].class_ == &w.p.classes.at[1]);
    CHECK(w.p.tenants.at[2].class_->built_in);
    CHECK(bh_tenant_is_serving(&w.p.tenants.at[0]) && !bh_tenant_is_serving(&w.p.tenants.at[2]));
}

TEST(pool_tenants_are_in_order_without_doubles)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)tenant(&w, "a");
    (void)tenant(&w, "b");
    (void)tenant(&w, "c");
    for (int i = 0; i < 2; i++) {
        struct bh_pool *p = pool(&w, i ? "q" : "p");
        *bh_vec_push(&p->tenant_names) = text("c", 1);
        *bh_vec_push(&p->tenant_names) = text("a", 2);
        *bh_vec_push(&p->tenant_names) = text("c", 3);
    }
    for (int i = 0; i < 3; i++)
        pool(&w, "any")->any_tenant = true;
    link_with(&w, NULL);
    link_with(&w, NULL); /* again: nothing doubles, nothing leaks */
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(w.p.pools.at[i].tenants.n, 2);
        CHECK_EQ(w.p.pools.at[i].tenants.at[0], 2);
        CHECK_EQ(w.p.pools.at[i].tenants.at[1], 0);
    }
    for (int i = 2; i < 5; i++) {
        CHECK_EQ(w.p.pools.at[i].tenants.n, 3);
        CHECK_EQ(w.p.pools.at[i].tenants.at[2], 2);
    }
    CHECK_EQ(w.problems.n, 0);
}

TEST(a_ring_of_parents_is_reported_once)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    static const char *const rows[][2] = {
        {"tail", "b"}, {"a", "customers"}, {"c", "d"},    {"b", "c"},
        {"d", "b"},    {"self", "self"},   {"leaf", "a"},
    };
    for (uint32_t i = 0; i < BH_COUNT_OF(rows); i++) {
        struct bh_tenant *t = tenant(&w, rows[i][0]);
        t->parent = rows[i][1];
        t->parent_pos.line = i + 1;
    }
    link_with(&w, NULL);
    CHECK_EQ(w.problems.n, 2);
    CHECK(problem_is(&w, 0, "parent", "d", 3, NULL)); /* the ring's first in the file: c -> d */
    CHECK(problem_is(&w, 1, "parent", "self", 6, NULL));
}

/* Random parents: a ring is reported exactly when following parents from somewhere never ends. */
TEST(rings_agree_with_walking)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        enum { N = 12 };
        uint8_t bytes[64];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct world w BH_AUTO(world_fini);
        int parent[N];
        size_t rings = 0;
        world_init(&w);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        for (int i = 0; i < N; i++) {
            struct bh_tenant *t = tenant(&w, bh_arena_printf(&w.p.arena, "t%d", i));
            parent[i] = (int)bh_choose(&c, N + 4);
            t->parent = bh_arena_printf(&w.p.arena, "t%d", parent[i]);
        }
        for (int i = 0; i < N; i++) { /* i is the smallest of a ring? */
            int at = parent[i], steps = 0;
            while (at < N && at > i && ++steps < N)
                at = parent[at];
            rings += at == i;
        }
        link_with(&w, NULL);
        CHECK_EQ(w.problems.n, rings);
    }
}

TEST(nameless_things_do_no_harm)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)bh_policy_add_tenant(&w.p);
    (void)bh_policy_add_pool(&w.p);
    *bh_vec_push(&w.p.classes) = (struct bh_class){.name = NULL};
    *bh_vec_push(&w.p.fabrics) = (struct bh_fabric){.name = NULL};
    (void)node(&w, "gpu-01", "H200", 1);
    bh_policy_add_workload(&w.p)->tenant_name = text("ghost", 5);
    link_with(&w, &w.f);
    CHECK_EQ(w.problems.n, 1);
    CHECK(problem_is(&w, 0, "tenant", "ghost", 5, NULL));
}

/* ---- GPUs ---- */

static struct bh_pool *matching(struct world *w, const char *model, const char *nodes,
                                const char *fabric_name)
{
    struct bh_pool *p = pool(w, "p");
    p->match.pos.line = 50;
    p->match.model = text(model, 51);
    p->match.fabric = text(fabric_name, 52);
    if (nodes)
        *bh_vec_push(&p->match.nodes) = text(nodes, 53);
    return p;
}

TEST(a_match_selects_by_model_node_and_index)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)node(&w, "gpu-01", "H200", 2);
    (void)node(&w, "gpu-02", "H100-80GB", 2);
    (void)node(&w, "gpu-03", "XP900 Turbo", 2); /* not in the catalogue */
    (void)matching(&w, NULL, NULL, NULL);
    (void)matching(&w, "h200", NULL, NULL);
    (void)matching(&w, "H100", "gpu-[01-02]", NULL);
    (void)matching(&w, "xp900", NULL, NULL);
    (void)matching(&w, NULL, "gpu-03,gpu-01,gpu-03", NULL);
    struct bh_pool *second = matching(&w, NULL, NULL, NULL);
    *bh_vec_push(&second->match.gpus) = 1;
    (void)pool(&w, "without a match");
    (void)matching(&w, "H200", "gpu-02", NULL);
    link_with(&w, &w.f);
    static const char *const expected[] = {
        "n0g0 n0g1 n1g0 n1g1 n2g0 n2g1 ", "n0g0 n0g1 ",      "n1g0 n1g1 ", "n2g0 n2g1 ",
        "n0g0 n0g1 n2g0 n2g1 ",           "n0g1 n1g1 n2g1 ", "",           "",
    };
    CHECK_EQ(w.problems.n, 0);
    for (size_t i = 0; i < BH_COUNT_OF(expected); i++)
        CHECK_STR(gpus_text(&w, &w.p.pools.at[i]), expected[i]);
    CHECK_EQ(w.p.pools.at[4].nodes.n, 2);
    CHECK_EQ(w.p.pools.at[4].nodes.at[0], 0);
    CHECK_EQ(w.p.pools.at[4].nodes.at[1], 2);
}

TEST(a_pool_knows_its_model)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)node(&w, "gpu-01", "H200", 1);
    (void)node(&w, "gpu-02", "H100-94GB", 1);
    (void)node(&w, "gpu-03", "XP900", 1);
    (void)matching(&w, NULL, "gpu-01", NULL);
    (void)matching(&w, NULL, "gpu-[01-02]", NULL); /* they differ */
    (void)matching(&w, "H100", NULL, NULL);        /* several are called so: the GPUs tell which */
    (void)matching(&w, NULL, "gpu-03", NULL);
    (void)matching(&w, "A100", NULL, NULL); /* none here, but the name is known */
    link_with(&w, &w.f);
    CHECK(w.p.pools.at[0].model == bh_catalog_find("H200"));
    CHECK(w.p.pools.at[1].model == NULL);
    CHECK(w.p.pools.at[2].model == w.f.nodes.at[1].gpus.at[0].model && w.p.pools.at[2].model);
    CHECK(w.p.pools.at[3].model == NULL);
    CHECK(w.p.pools.at[4].model == bh_catalog_find("A100") && w.p.pools.at[4].model);
    link_with(&w, NULL); /* without a fleet only names are left */
    CHECK(w.p.pools.at[0].model == NULL && w.p.pools.at[0].gpus.n == 0 && w.p.pools.at[0].nodes.n == 0);
    CHECK(w.p.pools.at[2].model == bh_catalog_find("H100"));
}

TEST(the_fleet_outranks_the_policy_about_fabrics)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    struct bh_fleet_node *n = node(&w, "gpu-01", "H200", 4);
    n->gpus.at[0].fabric = "A";
    n->gpus.at[1].fabric = "B";
    fabric(&w, "A", "gpu-01:0-2", NULL);
    fabric(&w, "C", "gpu-01:2", NULL); /* one GPU may be on two fabrics */
    fabric(&w, "C", "gpu-01:2", NULL);
    static const char *const fabrics[] = {"A", "B", "C", "D"};
    static const char *const expected[] = {"n0g0 n0g2 ", "n0g1 ", "n0g2 ", ""};
    for (size_t i = 0; i < BH_COUNT_OF(fabrics); i++) {
        (void)matching(&w, NULL, NULL, fabrics[i]);
        (void)matching(&w, NULL, "gpu-01", fabrics[i]);
    }
    link_with(&w, &w.f);
    CHECK_EQ(w.problems.n, 0);
    for (size_t i = 0; i < 2 * BH_COUNT_OF(fabrics); i++)
        CHECK_STR(gpus_text(&w, &w.p.pools.at[i]), expected[i / 2]);
}

TEST(nodes_that_are_not_there_are_reported)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)node(&w, "gpu-01", "H200", 2);
    (void)matching(&w, NULL, "gpu-[01-02]", NULL);
    (void)matching(&w, NULL, "gpu-[01-02]", NULL); /* the same mistake in another place */
    fabric(&w, "A", "gpx-01:0-3", NULL);
    struct bh_workload *wl = bh_policy_add_workload(&w.p);
    *bh_vec_push(&wl->assigned) = (struct bh_assigned){"gpu-01", 0, {0, 60, 1}};
    *bh_vec_push(&wl->assigned) = (struct bh_assigned){"elsewhere", 0, {0, 61, 1}};
    link_with(&w, &w.f);
    CHECK_EQ(w.problems.n, 4);
    CHECK(problem_is(&w, 0, "node", "elsewhere", 61, NULL));
    CHECK(problem_is(&w, 1, "node", "gpx-01", 71, "gpu-01")); /* four GPUs, one missing node */
    CHECK(problem_is(&w, 2, "node", "gpu-02", 53, "gpu-01"));
    CHECK(problem_is(&w, 3, "node", "gpu-02", 53, "gpu-01"));
    CHECK_STR(gpus_text(&w, &w.p.pools.at[1]), "n0g0 n0g1 ");
    link_with(&w, NULL); /* nothing to hold them against */
    CHECK_EQ(w.problems.n, 0);
}

TEST(hostile_patterns_cost_little)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)node(&w, "gpu-1", "H200", 1);
    (void)matching(&w, NULL, "gpu-[1-99999999999]", NULL);
    (void)matching(&w, NULL, "gpu-[1-1000000]", NULL);
    (void)matching(&w, NULL, "gpu-[1-", NULL);
    fabric(&w, "A", "gpu-[1-99999999]:0-99999999", NULL);
    link_with(&w, &w.f);
    CHECK(problem_is(&w, 0, "match", "gpu-[1-99999999]:0-99999999", 71, NULL));
    CHECK(problem_is(&w, 1, "match", "gpu-[1-99999999999]", 53, NULL));
    CHECK(problem_is(&w, 2, "node", "gpu-2", 53, "gpu-1"));
    CHECK_EQ(w.problems.n, 2 + 8 + 1); /* a range that is wrong a million times is told eight times */
    CHECK(problem_is(&w, 10, "node", "gpu-[1-", 53, "gpu-1"));
    CHECK_EQ(w.p.pools.at[1].gpus.n, 1);
}

/* Ten thousand ranges of a million names: refused when the sum is out of proportion, and soon. */
TEST(hostile_sums_of_patterns_are_bounded)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    (void)node(&w, "gpu-1", "H200", 1);
    for (int i = 0; i < 10000; i++)
        (void)matching(&w, NULL, "gpu-[1-1000000]", NULL);
    link_with(&w, &w.f);
    CHECK(w.problems.n < 10000 + 100);
    CHECK_STR(w.problems.at[w.problems.n - 1].what, "match");
}

TEST(pools_with_the_same_match_share_the_answer)
{
    struct world w BH_AUTO(world_fini);
    world_init(&w);
    char name[16];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "gpu-%03d", i);
        (void)node(&w, name, "H200", 8);
    }
    for (int i = 0; i < 3000; i++)
        (void)matching(&w, "H200", NULL, NULL);
    link_with(&w, &w.f);
    link_with(&w, &w.f);
    CHECK_EQ(w.problems.n, 0);
    for (int i = 0; i < 3000; i++) {
        CHECK_EQ(w.p.pools.at[i].gpus.n, 8000);
        CHECK(w.p.pools.at[i].gpus.at == w.p.pools.at[0].gpus.at);
        CHECK(w.p.pools.at[i].model == w.p.pools.at[0].model);
    }
}

/* ---- against the definition ---- */

static bool in_policy_fabric(const struct world *w, const char *name, uint32_t n, uint32_t g)
{
    char want[32];
    (void)snprintf(want, sizeof(want), "gpu-%u:%u", n, g);
    for (size_t i = 0; i < w->p.fabrics.n; i++)
        if (bh_str_eq(w->p.fabrics.at[i].name, name) && bh_str_eq(w->p.fabrics.at[i].gpus.at[0].s, want))
            return true;
    return false;
}

static bool belongs(const struct world *w, const struct bh_pool *p, uint32_t n, uint32_t g)
{
    const struct bh_gpu *gpu = &w->f.nodes.at[n].gpus.at[g];
    bool named = p->match.nodes.n == 0, listed = p->match.gpus.n == 0;
    for (size_t i = 0; i < p->match.nodes.n; i++)
        named |= bh_str_eq(p->match.nodes.at[i].s, w->f.nodes.at[n].name);
    for (size_t i = 0; i < p->match.gpus.n; i++)
        listed |= p->match.gpus.at[i] == gpu->index;
    if (!named || !listed || (p->match.model.s && !bh_catalog_matches(p->match.model.s, gpu->model)))
        return false;
    if (!p->match.fabric.s)
        return true;
    return gpu->fabric ? bh_str_eq(gpu->fabric, p->match.fabric.s)
                       : in_policy_fabric(w, p->match.fabric.s, n, g);
}

static void draw_fleet(struct world *w, struct bh_choice *c)
{
    static const char *const fabrics[] = {NULL, NULL, "A", "B"};
    for (uint32_t i = 0, n = 1 + bh_choose(c, 6); i < n; i++) {
        struct bh_fleet_node *at = node(w, bh_arena_printf(&w->f.arena, "gpu-%u", i),
                                        bh_choose(c, 2) ? "H200" : "H100-80GB", bh_choose(c, 5));
        for (size_t k = 0; k < at->gpus.n; k++)
            at->gpus.at[k].fabric = fabrics[bh_choose(c, 4)];
    }
    for (uint32_t i = bh_choose(c, 5); i; i--) {
        uint32_t n = bh_choose(c, (uint32_t)w->f.nodes.n), g = bh_choose(c, 5);
        fabric(w, bh_choose(c, 2) ? "A" : "C", bh_arena_printf(&w->p.arena, "gpu-%u:%u", n, g), NULL);
    }
}

static void draw_pool(struct world *w, struct bh_choice *c)
{
    static const char *const models[] = {NULL, "H200", "H100"};
    static const char *const fabrics[] = {NULL, NULL, "A", "B", "C"};
    struct bh_pool *p = matching(w, models[bh_choose(c, 3)], NULL, fabrics[bh_choose(c, 5)]);
    for (uint32_t i = bh_choose(c, 4); i; i--)
        *bh_vec_push(&p->match.nodes) =
            text(bh_arena_printf(&w->p.arena, "gpu-%u", bh_choose(c, (uint32_t)w->f.nodes.n)), 1);
    for (uint32_t i = bh_choose(c, 3); i; i--)
        *bh_vec_push(&p->match.gpus) = bh_choose(c, 5);
}

TEST(what_a_pool_takes_is_what_its_match_says)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint8_t bytes[256];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct world w BH_AUTO(world_fini);
        world_init(&w);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        draw_fleet(&w, &c);
        for (int i = 0; i < 6; i++)
            draw_pool(&w, &c);
        link_with(&w, &w.f);
        CHECK_EQ(w.problems.n, 0);
        for (size_t i = 0; i < w.p.pools.n; i++) {
            const struct bh_pool *p = &w.p.pools.at[i];
            const char *expected = "";
            for (uint32_t n = 0; n < w.f.nodes.n; n++)
                for (uint32_t g = 0; g < w.f.nodes.at[n].gpus.n; g++)
                    if (belongs(&w, p, n, g))
                        expected = bh_arena_printf(&w.p.arena, "%sn%ug%u ", expected, n, g);
            if (strcmp(gpus_text(&w, p), expected) != 0)
                printf("# seed %" PRIu64 ", pool %zu\n", seed, i);
            CHECK_STR(gpus_text(&w, p), expected);
        }
    }
}

/* ---- at size ---- */

TEST(ten_thousand_tenants_and_nodes)
{
    enum { N = 10000, POOLS = 5000 };
    struct world w BH_AUTO(world_fini);
    char name[40];
    world_init(&w);
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof(name), "node-%05d", i);
        struct bh_fleet_node *n = node(&w, name, "H200", 8);
        for (size_t k = 0; i % 2 && k < 8; k++)
            n->gpus.at[k].fabric = n->name;
        (void)snprintf(name, sizeof(name), "tenant-%05d", i);
        struct bh_tenant *t = tenant(&w, name);
        t->parent = i ? w.p.tenants.at[i - 1].name : NULL; /* one chain, ten thousand deep */
    }
    for (int i = 0; i < POOLS; i++) {
        const char *nodes = bh_arena_printf(&w.p.arena, "node-[%05d-%05d]", 2 * i, 2 * i + 1);
        struct bh_pool *p = i % 2 ? matching(&w, NULL, NULL, w.f.nodes.at[2 * i + 1].name)
                                  : matching(&w, "H200", nodes, NULL);
        *bh_vec_push(&p->tenant_names) = text(w.p.tenants.at[2 * i].name, 1);
    }
    for (int i = 0; i < N; i++) {
        struct bh_workload *wl = bh_policy_add_workload(&w.p);
        wl->tenant_name = text(w.p.tenants.at[i].name, 1);
        wl->pool_name = text(i % 2 ? "p" : "no such pool", 1);
    }
    link_with(&w, &w.f);
    CHECK_EQ(w.problems.n, N / 2);
    for (int i = 0; i < POOLS; i++) {
        CHECK_EQ(w.p.pools.at[i].gpus.n, i % 2 ? 8 : 16);
        CHECK_EQ(w.p.pools.at[i].tenants.n, 1);
    }
    CHECK_EQ(w.p.workloads.at[N - 1].tenant, N - 1);
    CHECK(w.p.arena.total_bytes < 200 * (size_t)(3 * N + POOLS));
}

TEST_MAIN
