/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan.h"

#include "base/choice.h"
#include "base/str.h"
#include "base/test.h"
#include "base/units.h"
#include "core/policy/plan_fixture.h"
#include "core/policy/predicate.h"

/* Plans anew: the old plan goes, and a tenant is looked up by its place in the policy. */
static const struct bh_tenant_plan *plan(struct fixture *f, struct bh_plan *p, size_t tenant)
{
    const struct bh_fleet *fleet = fixture_link(f);
    bh_plan_fini(p);
    bh_plan_make(&f->policy, fleet, p);
    return &p->tenants.at[tenant];
}

static const char *rejected_by(const struct bh_tenant_plan *p, enum bh_mechanism m, enum bh_tier t)
{
    for (size_t i = 0; i < p->rejected.n; i++) {
        if (p->rejected.at[i].mechanism == m && p->rejected.at[i].tier == t)
            return p->rejected.at[i].rule->id;
    }
    return "not rejected";
}

static bool shares(const struct bh_tenant_plan *p, const char *word)
{
    for (size_t i = 0; p->shared[i]; i++) {
        if (strstr(p->shared[i], word))
            return true;
    }
    return false;
}

/* The four classes of R130 to R133 on one fleet, with pools as an operator would cut them. */
static void four_classes(struct fixture *f, bool with_pools, bool with_fleet)
{
    fixture_init(f);
    (void)fixture_tenant(f, "frontier", BH_TRUST_INTERNAL, "training");
    struct bh_tenant *t = fixture_tenant(f, "acme", BH_TRUST_EXTERNAL, "serving");
    t->slo.kind = BH_SLO_HARD;
    t = fixture_tenant(f, "initech", BH_TRUST_EXTERNAL, "serving");
    t->slo.kind = BH_SLO_HARD;
    t->operator_untrusted = true;
    t = fixture_tenant(f, "lab", BH_TRUST_INTERNAL, "research");
    t->share.has_target = true;
    t->share.target_ppm = 200000;
    (void)fixture_tenant(f, "nightly", BH_TRUST_INTERNAL, "batch");
    fixture_tenant(f, "search", BH_TRUST_INTERNAL, "serving")->slo.kind = BH_SLO_HARD;
    if (with_pools) {
        (void)fixture_pool(f, "train", BH_MECH_WHOLE, BH_TIER_CONTAINER, "n1", "frontier", NULL);
        (void)fixture_pool(f, "serve", BH_MECH_MIG_VGPU, BH_TIER_VM, "n2", "acme", NULL);
        (void)fixture_pool(f, "sealed", BH_MECH_WHOLE, BH_TIER_CVM, "n3", "initech", NULL);
        fixture_pool(f, "dev", BH_MECH_FRACTIONAL, BH_TIER_CONTAINER, "n4", "lab", "nightly")->backing =
            BH_MECH_GATE;
        (void)fixture_pool(f, "inner", BH_MECH_MIG, BH_TIER_CONTAINER, "n5", "search", NULL);
    }
    static const char *const nodes[] = {"n1", "n2", "n3", "n4", "n5"};
    for (size_t i = 0; with_fleet && i < BH_COUNT_OF(nodes); i++)
        fixture_node(f, nodes[i], "H200", 8)->iommu = BH_FACT_YES;
}

static void check_four_classes(bool with_pools, bool with_fleet)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    four_classes(&f, with_pools, with_fleet);
    static const struct {
        enum bh_mechanism mechanism, backing;
        enum bh_quota_model quota;
        enum bh_tier tier;
    } want[] = {
        {BH_MECH_WHOLE, BH_MECH_UNSET, BH_QUOTA_HARD, BH_TIER_CONTAINER}, /* R130 */
        {BH_MECH_MIG_VGPU, BH_MECH_UNSET, BH_QUOTA_HARD, BH_TIER_VM},     /* R131 */
        {BH_MECH_WHOLE, BH_MECH_UNSET, BH_QUOTA_HARD, BH_TIER_CVM},       /* R131, operator untrusted */
        {BH_MECH_FRACTIONAL, BH_MECH_GATE, BH_QUOTA_FAIRSHARE, BH_TIER_CONTAINER}, /* R132 */
        {BH_MECH_FRACTIONAL, BH_MECH_GATE, BH_QUOTA_PRIORITY, BH_TIER_CONTAINER},  /* R133 */
        {BH_MECH_MIG, BH_MECH_UNSET, BH_QUOTA_HARD, BH_TIER_CONTAINER},            /* R136 */
    };
    (void)plan(&f, &p, 0);
    CHECK_EQ(p.tenants.n, BH_COUNT_OF(want));
    for (size_t i = 0; i < p.tenants.n; i++) {
        const struct bh_tenant_plan *t = &p.tenants.at[i];
        CHECK(t->possible);
        CHECK_STR(bh_word(mechanism, t->mechanism), bh_word(mechanism, want[i].mechanism));
        CHECK_EQ(t->backing, want[i].backing);
        CHECK_STR(bh_word(quota_model, t->quota_model), bh_word(quota_model, want[i].quota));
        CHECK_STR(bh_word(tier, t->tier), bh_word(tier, want[i].tier));
        CHECK(t->shared[0] != NULL);
        CHECK_EQ(t->pool == BH_NONE, !with_pools);
        CHECK_EQ(strstr(t->why, "no fleet was given") != NULL, !with_fleet);
    }
    CHECK(bh_str_starts(p.tenants.at[0].bounded_by, "sole ownership"));
    CHECK(strstr(p.tenants.at[0].why, "only trust domain internal") != NULL);
    CHECK_STR(rejected_by(&p.tenants.at[0], BH_MECH_MIG, BH_TIER_CONTAINER), "BH-046");
    CHECK_STR(rejected_by(&p.tenants.at[1], BH_MECH_FRACTIONAL, BH_TIER_CONTAINER), "BH-020");
    CHECK_STR(rejected_by(&p.tenants.at[1], BH_MECH_MIG, BH_TIER_CONTAINER), "BH-001");
    CHECK_STR(rejected_by(&p.tenants.at[1], BH_MECH_MIG, BH_TIER_SANDBOX), "BH-001");
    CHECK_STR(rejected_by(&p.tenants.at[1], BH_MECH_MIG, BH_TIER_VM), "BH-013");
    CHECK(bh_str_starts(p.tenants.at[1].bounded_by, "hardware partition"));
    CHECK_STR(rejected_by(&p.tenants.at[2], BH_MECH_MIG_VGPU, BH_TIER_VM), "BH-006");
    CHECK_STR(rejected_by(&p.tenants.at[2], BH_MECH_WHOLE, BH_TIER_VM), "BH-006");
    CHECK(shares(&p.tenants.at[2], "side channels"));
    CHECK_EQ(p.tenants.at[3].rejected.n, 0);
    CHECK_EQ(p.tenants.at[3].cost_ppm, 200000);
    CHECK(strstr(p.tenants.at[3].why, "20% is a target, not a guarantee") != NULL);
    CHECK(strstr(p.tenants.at[4].why, "QoS is soft") != NULL);
    CHECK_STR(rejected_by(&p.tenants.at[5], BH_MECH_MPS, BH_TIER_CONTAINER), "BH-020");
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(four_classes_without_anything)
{
    check_four_classes(false, false);
}

TEST(four_classes_with_pools)
{
    check_four_classes(true, false);
}

TEST(four_classes_with_a_fleet)
{
    check_four_classes(false, true);
}

TEST(four_classes_with_pools_and_a_fleet)
{
    check_four_classes(true, true);
}

TEST(a_slice_costs_the_larger_of_its_two_parts)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    four_classes(&f, true, true);
    const struct bh_tenant_plan *t = plan(&f, &p, 1);
    CHECK_STR(t->profile->name, "1g.18gb");
    CHECK_STR(t->model->name, "H200-141GB");
    CHECK_EQ(t->cost_ppm, 125000); /* an eighth of the memory, 16 of 132 SMs */
    CHECK_EQ(p.tenants.at[0].cost_ppm, 1000000);
    CHECK_STR(p.tenants.at[2].model->name, "H200-141GB");
    fixture_workload(&f, "llm", "acme")->memory_bytes = 65 * BH_GIB;
    t = plan(&f, &p, 1);
    CHECK_STR(t->profile->name, "3g.71gb");
    CHECK_EQ(t->cost_ppm, 500000);
    /* A pool that cuts another profile is not this choice. */
    CHECK_EQ(t->pool, 1);
    *bh_vec_push(&f.policy.pools.at[1].profiles) = (struct bh_text){.s = "1g.18gb"};
    CHECK_EQ(plan(&f, &p, 1)->pool, BH_NONE);
    *bh_vec_push(&f.policy.pools.at[1].layout) = (struct bh_layout_item){.profile = "3g.71gb", .count = 2};
    CHECK_EQ(plan(&f, &p, 1)->pool, 1);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(the_declared_quota_model_stays_where_the_class_takes_it)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "frontier", BH_TRUST_INTERNAL, "training");
    t->quota.has_model = true;
    t->quota.model = BH_QUOTA_PRIORITY;
    CHECK_EQ(plan(&f, &p, 0)->quota_model, BH_QUOTA_PRIORITY);
    f.policy.tenants.at[0].quota.model = BH_QUOTA_FAIRSHARE;
    CHECK_EQ(plan(&f, &p, 0)->quota_model, BH_QUOTA_HARD);
    /* Without a class: a share for a team, capacity of its own for whoever was promised something. */
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    CHECK_EQ(plan(&f, &p, 1)->quota_model, BH_QUOTA_FAIRSHARE);
    f.policy.tenants.at[1].slo.kind = BH_SLO_HARD;
    CHECK_EQ(plan(&f, &p, 1)->quota_model, BH_QUOTA_HARD);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(fair_share_without_a_floor_is_not_sold) /* R080 */
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, "research");
    t->quota.has_model = true;
    t->quota.model = BH_QUOTA_FAIRSHARE;
    CHECK_EQ(plan(&f, &p, 0)->quota_model, BH_QUOTA_HARD);
    CHECK(strstr(p.tenants.at[0].why, "BH-026") != NULL);
    f.policy.tenants.at[0].quota.has_gpus = true;
    f.policy.tenants.at[0].quota.gpus_milli = 2000;
    CHECK_EQ(plan(&f, &p, 0)->quota_model, BH_QUOTA_FAIRSHARE);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(a_missing_site_or_driver_is_said)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    fixture_tenant(&f, "a", BH_TRUST_INTERNAL, NULL)->site = "eu-de-1";
    struct bh_fleet_node *n = fixture_node(&f, "n1", "H200", 1);
    n->site = "us-1";
    n->driver = "580.159.03";
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK_STR(p.tenants.at[0].needed, "a node in site eu-de-1: the fleet has none");
    f.policy.tenants.at[0].site = "us-1";
    *bh_vec_push(&f.policy.tenants.at[0].drivers) = (struct bh_text){.s = "535"};
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK_STR(p.tenants.at[0].needed, "a node with GPUs in site us-1 and driver 535: the fleet has none");
    *bh_vec_push(&f.policy.tenants.at[0].drivers) = (struct bh_text){.s = "580"};
    CHECK(plan(&f, &p, 0)->possible);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(what_would_keep_the_promise_is_the_smallest_change)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, "serving");
    t->operator_untrusted = true;
    t->site = "eu-de-1";
    struct bh_fleet_node *n = fixture_node(&f, "n1", "L40S", 4);
    n->site = "eu-de-1";
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK_EQ(p.tenants.at[0].rejected.n, 28); /* every candidate */
    CHECK(strstr(p.tenants.at[0].needed, "confidential computing") != NULL);
    CHECK(strstr(p.tenants.at[0].needed, "in site eu-de-1") != NULL);
    CHECK(strstr(p.tenants.at[0].needed, "operatorUntrusted dropped") != NULL);
    /* A class of slices alone: silicon that has them, not another class. */
    struct bh_class *c = bh_vec_push(&f.policy.classes);
    *c = (struct bh_class){.name = "sliced", .mechanisms = 1u << BH_MECH_MIG};
    t = &f.policy.tenants.at[0];
    t->operator_untrusted = false;
    t->class_name = "sliced";
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK_STR(p.tenants.at[0].needed,
              "a GPU with MIG in site eu-de-1: then mig behind a container keeps every promise");
    CHECK_STR(rejected_by(&p.tenants.at[0], BH_MECH_MIG, BH_TIER_CONTAINER), "BH-047");
    /* IOMMU off: a setting is the least. */
    (void)fixture_tenant(&f, "globex", BH_TRUST_EXTERNAL, "serving");
    f.fleet.nodes.at[0].iommu = BH_FACT_NO;
    CHECK(!plan(&f, &p, 1)->possible);
    CHECK_STR(rejected_by(&p.tenants.at[1], BH_MECH_WHOLE, BH_TIER_VM), "BH-057");
    CHECK(bh_str_starts(p.tenants.at[1].needed, "IOMMU"));
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(a_stranger_with_nodes_of_its_own_may_use_containers)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, "serving")->slo.kind = BH_SLO_HARD;
    (void)fixture_tenant(&f, "globex", BH_TRUST_EXTERNAL, "serving");
    (void)fixture_pool(&f, "own", BH_MECH_MIG, BH_TIER_CONTAINER, "n1", "acme", NULL);
    (void)fixture_node(&f, "n1", "H200", 1);
    (void)fixture_node(&f, "n2", "H200", 1);
    const struct bh_tenant_plan *t = plan(&f, &p, 0);
    CHECK_EQ(t->mechanism, BH_MECH_MIG);
    CHECK_EQ(t->tier, BH_TIER_CONTAINER);
    CHECK(strstr(t->why, "on nodes of its own") != NULL);
    CHECK_EQ(t->pool, 0);
    CHECK_EQ(p.tenants.at[1].tier, BH_TIER_VM);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(time_sliced_vgpu_only_when_nothing_better_is_left)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    *bh_vec_push(&f.policy.classes) =
        (struct bh_class){.name = "desk", .mechanisms = 1u << BH_MECH_VGPU | 1u << BH_MECH_MIG_VGPU};
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, "desk");
    (void)fixture_tenant(&f, "globex", BH_TRUST_EXTERNAL, "desk");
    (void)fixture_node(&f, "n1", "H200", 1);
    CHECK_EQ(plan(&f, &p, 0)->mechanism, BH_MECH_MIG_VGPU);
    CHECK_STR(rejected_by(&p.tenants.at[0], BH_MECH_VGPU, BH_TIER_VM), "BH-011");
    CHECK(strstr(p.tenants.at[0].why, "no node at hand has the vGPU manager") != NULL);
    bh_vec_fini(&f.fleet.nodes.at[0].gpus);
    bh_fleet_fini(&f.fleet);
    f.fleet = (struct bh_fleet){.nodes = {.n = 0}};
    (void)fixture_node(&f, "n1", "L40S", 1);
    CHECK_EQ(plan(&f, &p, 0)->mechanism, BH_MECH_VGPU);
    CHECK(strstr(p.tenants.at[0].why, "BH-011") != NULL);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(nvlink_takes_whole_gpus)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    fixture_workload(&f, "ring", "lab")->needs_nvlink = true;
    CHECK_EQ(plan(&f, &p, 0)->mechanism, BH_MECH_WHOLE);
    CHECK_STR(rejected_by(&p.tenants.at[0], BH_MECH_MIG, BH_TIER_CONTAINER), "BH-042");
    bh_plan_fini(&p);
    fixture_fini(&f);
}

/* ---- any policy at all ---- */

static const char *const names[] = {"t0", "t1", "t2", "t3", "t4", "t5"};
static const char *const node_names[] = {"n0", "n1", "n2", "n3"};
static const char *const models[] = {"H200", "A100-80GB", "L40S", "unknown-gpu", "RTX-PRO-6000"};
static const char *const class_names[] = {NULL, "training", "serving", "research", "batch"};

static void random_policy(struct fixture *f, struct bh_choice *c)
{
    uint32_t n = 1 + bh_choose(c, BH_COUNT_OF(names));
    fixture_init(f);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_tenant *t = fixture_tenant(f, names[i], (enum bh_trust)bh_choose(c, BH_N_trust),
                                             class_names[bh_choose(c, BH_COUNT_OF(class_names))]);
        t->slo.kind = (uint8_t)bh_choose(c, BH_N_slo_kind);
        t->operator_untrusted = bh_choose(c, 6) == 0;
        t->regimes = bh_choose(c, 5) == 0 ? 1u << BH_REGIME_PCI : 0;
        t->site = bh_choose(c, 4) == 0 ? "eu" : NULL;
        t->quota.has_model = bh_choose(c, 2);
        t->quota.model = (uint8_t)bh_choose(c, BH_N_quota_model);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (bh_choose(c, 2))
            continue;
        struct bh_pool *p =
            fixture_pool(f, names[i], (enum bh_mechanism)(1 + bh_choose(c, BH_MECH_FRACTIONAL)),
                         (enum bh_tier)bh_choose(c, BH_N_tier), node_names[bh_choose(c, 4)],
                         names[bh_choose(c, n)], names[bh_choose(c, n)]);
        p->backing = p->mechanism == BH_MECH_FRACTIONAL ? BH_MECH_GATE : BH_MECH_UNSET;
        p->claims = bh_choose(c, 1u << BH_N_claim);
        p->cap_memory_bytes = bh_choose(c, 3) * 20 * BH_GIB;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct bh_workload *w = fixture_workload(f, names[i], names[bh_choose(c, n)]);
        w->memory_bytes = bh_choose(c, 8) * 24 * BH_GIB;
        w->needs_nvlink = bh_choose(c, 5) == 0;
    }
    for (uint32_t i = 0, m = bh_choose(c, 5); i < m; i++) {
        struct bh_fleet_node *node = fixture_node(f, node_names[i], models[bh_choose(c, 5)], bh_choose(c, 3));
        node->iommu = (uint8_t)bh_choose(c, 3);
        node->acs = (uint8_t)bh_choose(c, 3);
        node->site = bh_choose(c, 2) ? "eu" : NULL;
    }
}

/* What no rule may be found against, said independently of how the planner looks for it. */
static bool keeps_promises(const struct bh_tenant *t, const struct bh_tenant_plan *p)
{
    enum bh_mechanism m = p->mechanism == BH_MECH_FRACTIONAL ? p->backing : p->mechanism;
    const struct bh_class *c = t->class_pos.line ? t->class_ : NULL;
    bool vm = p->tier >= BH_TIER_VM;
    return !(t->slo.kind == BH_SLO_HARD && !bh_mech_keeps_hard_slo(m)) &&
           !(t->operator_untrusted && p->tier != BH_TIER_CVM) && !(vm && !bh_mech_fits_vm(m)) &&
           !(t->regimes && !bh_mech_fits_regulated(m)) &&
           !(m == BH_MECH_TIMESLICE && t->trust != BH_TRUST_INTERNAL) &&
           !(bh_mech_cuts_mig(m) && (!p->profile || !p->model || !p->model->memory_slices)) &&
           (!c || bh_class_accepts(c, p->mechanism, p->quota_model, p->tier) ||
            p->quota_model == BH_QUOTA_HARD) &&
           p->shared[0] && p->bounded_by && p->why && !p->needed && p->cost_ppm > 0 && p->cost_ppm <= 1000000;
}

static bool same_plan(const struct bh_tenant_plan *a, const struct bh_tenant_plan *b)
{
    return a->possible == b->possible && a->mechanism == b->mechanism && a->tier == b->tier &&
           a->cost_ppm == b->cost_ppm && a->rejected.n == b->rejected.n && bh_str_eq(a->why, b->why) &&
           bh_str_eq(a->needed, b->needed);
}

static bool explains_itself(const struct bh_tenant_plan *p)
{
    for (size_t i = 0; i < p->rejected.n; i++) {
        if (!p->rejected.at[i].rule || !p->rejected.at[i].reason || !*p->rejected.at[i].reason)
            return false;
    }
    return p->rejected.n <= BH_PLAN_REJECTED_MAX && (p->possible || (p->needed && *p->needed));
}

TEST(any_policy_gets_a_plan_that_keeps_its_promises)
{
    enum { ROUNDS = 3000 };
    uint8_t bytes[256];
    size_t possible = 0, impossible = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct fixture f;
        struct bh_plan p = {.tenants = {.n = 0}}, again;
        random_policy(&f, &c);
        (void)plan(&f, &p, 0);
        bh_plan_make(&f.policy, f.fleet.nodes.n ? &f.fleet : NULL, &again);
        bool good = p.tenants.n == f.policy.tenants.n;
        for (size_t i = 0; good && i < p.tenants.n; i++) {
            const struct bh_tenant_plan *t = &p.tenants.at[i];
            good = explains_itself(t) && same_plan(t, &again.tenants.at[i]) &&
                   (!t->possible || keeps_promises(&f.policy.tenants.at[i], t));
            possible += t->possible;
            impossible += !t->possible;
        }
        bh_plan_fini(&again);
        bh_plan_fini(&p);
        fixture_fini(&f);
        if (!good)
            printf("# seed %" PRIu64 "\n", seed);
        CHECK(good);
    }
    CHECK(possible > ROUNDS / 2); /* both kinds were met */
    CHECK(impossible > ROUNDS / 2);
}

TEST(nobody_to_plan_for)
{
    struct fixture f;
    struct bh_plan p;
    fixture_init(&f);
    bh_plan_make(&f.policy, NULL, &p);
    CHECK_EQ(p.tenants.n, 0);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST_MAIN
