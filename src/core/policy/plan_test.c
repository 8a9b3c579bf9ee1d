/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan.h"

#include "base/str.h"
#include "base/test.h"
#include "base/units.h"
#include "core/policy/plan_fixture.h"

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
    const char *place =
        with_pools ? ", on nodes that hold only trust domain internal" : "is behind a VM or on other nodes";
    CHECK(strstr(p.tenants.at[0].why, place) != NULL);
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

TEST(who_pays_gets_a_hard_quota) /* R080 */
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, "research");
    t->quota.has_model = true;
    t->quota.model = BH_QUOTA_FAIRSHARE;
    t->quota.has_gpus = true;
    t->quota.gpus_milli = 2000; /* a floor does not make it less of a sale */
    CHECK_EQ(plan(&f, &p, 0)->quota_model, BH_QUOTA_HARD);
    CHECK(strstr(p.tenants.at[0].why, "BH-026") != NULL);
    CHECK(strstr(p.tenants.at[0].why, "class research does not list it (BH-046)") != NULL);
    f.policy.tenants.at[0].class_name = "batch"; /* prefers priority */
    f.policy.tenants.at[0].quota.has_model = false;
    CHECK_EQ(plan(&f, &p, 0)->quota_model, BH_QUOTA_HARD);
    CHECK(strstr(p.tenants.at[0].why, "BH-026") == NULL);
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
    CHECK_STR(p.tenants.at[0].needed, "a node with GPUs in site us-1 and driver 535: the fleet has none, "
                                      "and one kernel loads one driver (BH-050)");
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
    /* A class of slices alone is a warning where there are none: planned outside it, and said so. */
    struct bh_class *c = bh_vec_push(&f.policy.classes);
    *c = (struct bh_class){.name = "sliced", .mechanisms = 1u << BH_MECH_MIG};
    t = &f.policy.tenants.at[0];
    t->operator_untrusted = false;
    t->class_name = "sliced";
    CHECK_EQ(plan(&f, &p, 0)->mechanism, BH_MECH_WHOLE);
    CHECK(strstr(p.tenants.at[0].why, "`classes: [{name: sliced-own, mechanism: [whole], quota: hard, "
                                      "tier: [container]}]` would") != NULL);
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
    CHECK(strstr(t->why, "on nodes that hold only trust domain acme") != NULL);
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

/* ---- what the fleet can hold ---- */

static struct bh_tenant *guaranteed(struct fixture *f, const char *name, enum bh_trust trust,
                                    const char *class_name, uint64_t gpus)
{
    struct bh_tenant *t = fixture_tenant(f, name, trust, class_name);
    t->quota.has_gpus = true;
    t->quota.gpus_milli = gpus * 1000;
    return t;
}

TEST(guarantees_are_met_by_silicon)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    (void)guaranteed(&f, "big", BH_TRUST_INTERNAL, "training", 64);
    CHECK(plan(&f, &p, 0)->possible); /* nothing is counted without a fleet */
    CHECK_EQ(p.tenants.at[0].units, 64);
    fixture_node(&f, "n1", "H100", 2)->site = "eu";
    f.policy.tenants.at[0].site = "eu";
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK_STR(p.tenants.at[0].needed,
              "62 more H100-80GB-SXM GPUs in site eu (64 guaranteed, 2 of 2 still free): "
              "then whole behind a container keeps every promise");
    const struct bh_plan_rejected *last = &p.tenants.at[0].rejected.at[p.tenants.at[0].rejected.n - 1];
    CHECK(last->rule == NULL);
    CHECK_STR(last->reason,
              "The guarantee takes 64 H100-80GB-SXM GPUs in site eu, and 2 of 2 are still free.");
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(who_comes_first_holds_it_and_hard_comes_first)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    (void)guaranteed(&f, "lab", BH_TRUST_INTERNAL, "research", 2);
    (void)guaranteed(&f, "t0", BH_TRUST_EXTERNAL, "training", 8);
    (void)guaranteed(&f, "t1", BH_TRUST_EXTERNAL, "training", 7);
    (void)fixture_node(&f, "n1", "H100", 8);
    (void)fixture_node(&f, "n2", "H100", 8);
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK(p.tenants.at[1].possible && p.tenants.at[2].possible);
    CHECK(bh_str_starts(p.tenants.at[0].needed, "1 more H100-80GB-SXM GPU (2 guaranteed, 1 of 16 still free; "
                                                "t0 and t1 hold the rest)"));
    f.policy.tenants.at[2].quota.gpus_milli = 6000;
    CHECK(plan(&f, &p, 0)->possible);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(slices_fill_the_gpus_they_are_cut_from)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    /* Half a GPU is 4 of 7 instances: two GPUs take three such tenants and one of two instances. */
    static const char *const who[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < BH_COUNT_OF(who); i++) {
        struct bh_tenant *t = guaranteed(&f, who[i], BH_TRUST_EXTERNAL, "serving", 0);
        t->slo.kind = BH_SLO_HARD;
        t->quota.gpus_milli = i < 3 ? 500 : 200;
    }
    (void)fixture_node(&f, "n1", "H200", 2);
    (void)plan(&f, &p, 0);
    for (size_t i = 0; i < 4; i++) {
        CHECK(p.tenants.at[i].possible);
        CHECK_EQ(p.tenants.at[i].mechanism, BH_MECH_MIG_VGPU);
        CHECK_EQ(p.tenants.at[i].units, i < 3 ? 4 : 2);
    }
    CHECK(!p.tenants.at[4].possible);
    CHECK(bh_str_starts(p.tenants.at[4].needed, "1 more H200-141GB GPU (1 guaranteed, 0 of 2 still free; "
                                                "a, b, c and others hold the rest)"));
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(a_guarantee_may_take_several_models)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    (void)guaranteed(&f, "a", BH_TRUST_INTERNAL, "training", 12);
    (void)guaranteed(&f, "b", BH_TRUST_INTERNAL, "research", 3);
    (void)fixture_node(&f, "n1", "H200", 8);
    (void)fixture_node(&f, "n2", "L40S", 8);
    CHECK(plan(&f, &p, 0)->possible);
    CHECK(p.tenants.at[0].model == NULL);
    CHECK_STR(p.tenants.at[1].model->name, "L40S");
    f.policy.tenants.at[0].quota.gpus_milli = 17000;
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK(bh_str_starts(p.tenants.at[0].needed,
                        "1 more H200-141GB or L40S GPU (17 guaranteed, 16 of 16 still free)"));
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(what_no_gpu_holds_is_not_possible)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    guaranteed(&f, "a", BH_TRUST_EXTERNAL, "serving", 4)->quota.memory_bytes = 1300 * BH_GIB;
    (void)fixture_node(&f, "n1", "H100", 8);
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK_STR(p.tenants.at[0].needed, "a GPU of 325 GiB or more (or a smaller request): "
                                      "then whole behind a container keeps every promise");
    f.policy.tenants.at[0].quota.memory_bytes = 320 * BH_GIB; /* 80 GiB each: no slice has that, a GPU does */
    CHECK_EQ(plan(&f, &p, 0)->mechanism, BH_MECH_WHOLE);
    f.policy.tenants.at[0].quota.memory_bytes = 120 * BH_GIB;
    CHECK_STR(plan(&f, &p, 0)->profile->name, "3g.40gb");
    CHECK_EQ(p.tenants.at[0].units, 8);
    fixture_workload(&f, "w", "a")->memory_bytes = 300 * BH_GIB;
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK_STR(rejected_by(&p.tenants.at[0], BH_MECH_WHOLE, BH_TIER_CONTAINER), "BH-033");
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(a_profile_named_by_the_quota_is_cut)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "a", BH_TRUST_INTERNAL, "research");
    *bh_vec_push(&t->quota.resources) =
        (struct bh_amount){.resource = "nvidia.com/mig-3g.40gb", .milli = 2000};
    (void)fixture_node(&f, "n1", "H100", 1);
    CHECK_EQ(plan(&f, &p, 0)->mechanism, BH_MECH_MIG);
    CHECK_STR(p.tenants.at[0].profile->name, "3g.40gb");
    CHECK_EQ(p.tenants.at[0].units, 2);
    CHECK_STR(rejected_by(&p.tenants.at[0], BH_MECH_TIMESLICE, BH_TIER_CONTAINER), "BH-031");
    f.policy.tenants.at[0].quota.resources.at[0].milli = 3000;
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK(bh_str_starts(p.tenants.at[0].needed, "1 more H100-80GB-SXM GPU (2 guaranteed"));
    f.policy.tenants.at[0].quota.resources.at[0].resource = "nvidia.com/mig-1g.18gb";
    CHECK(!plan(&f, &p, 0)->possible);
    CHECK(bh_str_starts(p.tenants.at[0].needed, "a GPU with MIG and profile 1g.18gb"));
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(outsiders_get_slices_at_least) /* R096 */
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    fixture_tenant(&f, "a", BH_TRUST_EXTERNAL, NULL)->domain = "corp";
    fixture_tenant(&f, "b", BH_TRUST_PARTNER, NULL)->domain = "corp";
    (void)fixture_node(&f, "n1", "H100", 1);
    (void)plan(&f, &p, 0);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(p.tenants.at[i].mechanism, BH_MECH_MIG);
        CHECK_EQ(p.tenants.at[i].tier, BH_TIER_CONTAINER);
        CHECK_STR(rejected_by(&p.tenants.at[i], BH_MECH_FRACTIONAL, BH_TIER_CONTAINER), "BH-003");
        CHECK_STR(rejected_by(&p.tenants.at[i], BH_MECH_MPS, BH_TIER_CONTAINER), "BH-003");
    }
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(batch_of_strangers_is_packed_in_vms)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    (void)fixture_tenant(&f, "a", BH_TRUST_EXTERNAL, "batch");
    (void)fixture_tenant(&f, "b", BH_TRUST_EXTERNAL, "research");
    (void)fixture_node(&f, "n1", "H100", 1);
    (void)plan(&f, &p, 0);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(p.tenants.at[i].mechanism, BH_MECH_MIG_VGPU);
        CHECK_EQ(p.tenants.at[i].cost_ppm, 125000);
    }
    bh_plan_fini(&p);
    fixture_fini(&f);
}

/* The same tenant with the class written and with the class it has by default. */
static bool same_with_and_without_class(struct fixture *f, enum bh_mechanism m, enum bh_tier tier)
{
    struct bh_plan p = {.tenants = {.n = 0}};
    bool same = true;
    for (uint32_t line = 0; line < 2; line++) {
        for (size_t i = 0; i < f->policy.tenants.n; i++)
            f->policy.tenants.at[i].class_pos.line = line;
        const struct bh_tenant_plan *t = plan(f, &p, 0);
        same = same && t->possible && t->mechanism == m && t->tier == tier &&
               t->quota_model == BH_QUOTA_HARD && (strstr(t->why, "BH-046") != NULL) == (line == 1);
    }
    bh_plan_fini(&p);
    return same;
}

TEST(a_written_class_never_makes_a_promise_impossible)
{
    struct fixture f;
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "a", BH_TRUST_INTERNAL, "research");
    t->quota.has_model = true;
    t->quota.model = BH_QUOTA_HARD;
    t->regimes = 1u << BH_REGIME_HIPAA;
    (void)fixture_node(&f, "n1", "H100", 1);
    CHECK(same_with_and_without_class(&f, BH_MECH_MIG_VGPU, BH_TIER_VM));
    f.policy.tenants.at[0].regimes = 0;
    f.policy.tenants.at[0].operator_untrusted = true;
    CHECK(same_with_and_without_class(&f, BH_MECH_WHOLE, BH_TIER_CVM));
    t = &f.policy.tenants.at[0];
    t->operator_untrusted = false;
    t->trust = BH_TRUST_EXTERNAL;
    t->slo.kind = BH_SLO_HARD;
    t->quota.has_model = false;
    (void)fixture_tenant(&f, "b", BH_TRUST_EXTERNAL, "research");
    CHECK(same_with_and_without_class(&f, BH_MECH_MIG_VGPU, BH_TIER_VM));
    f.fleet.nodes.at[0].gpus.at[0].model = bh_catalog_find("L40S");
    f.policy.tenants.at[0].trust = BH_TRUST_INTERNAL;
    CHECK(same_with_and_without_class(&f, BH_MECH_WHOLE, BH_TIER_CONTAINER));
    fixture_fini(&f);
}

TEST(one_node_holds_a_vm_of_a_stranger_and_containers_of_a_team) /* BH-001, as lint sees it */
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    fixture_init(&f);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, "serving");
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, "research");
    (void)fixture_pool(&f, "vms", BH_MECH_MIG_VGPU, BH_TIER_VM, "n1", "acme", NULL);
    fixture_pool(&f, "dev", BH_MECH_TIMESLICE, BH_TIER_CONTAINER, "n1", "lab", NULL)->replicas = 4;
    (void)fixture_node(&f, "n1", "H100", 2);
    CHECK_EQ(plan(&f, &p, 0)->tier, BH_TIER_VM);
    CHECK_EQ(p.tenants.at[1].tier, BH_TIER_CONTAINER);
    CHECK(p.tenants.at[1].possible);
    bh_plan_fini(&p);
    fixture_fini(&f);
}

TEST(drivers_that_one_kernel_cannot_load_are_told)
{
    struct fixture f;
    struct bh_plan p = {.tenants = {.n = 0}};
    static const char *const wants[] = {"470", "580", "580.159.03"};
    fixture_init(&f);
    for (size_t i = 0; i < BH_COUNT_OF(wants); i++) {
        struct bh_tenant *t = fixture_tenant(&f, wants[i], BH_TRUST_INTERNAL, NULL);
        *bh_vec_push(&t->drivers) = (struct bh_text){.s = wants[i]};
    }
    (void)fixture_tenant(&f, "any", BH_TRUST_INTERNAL, NULL);
    (void)plan(&f, &p, 0);
    CHECK(strstr(p.tenants.at[0].why, "; tenant 580 needs another driver") != NULL);
    CHECK(bh_str_ends(p.tenants.at[1].why, "separate nodes or a VM (BH-050)."));
    CHECK(strstr(p.tenants.at[2].why, "BH-050") != NULL);
    CHECK(strstr(p.tenants.at[3].why, "BH-050") == NULL);
    f.policy.tenants.at[0].drivers.at[0].s = "580"; /* now one version suits all */
    CHECK(strstr(plan(&f, &p, 0)->why, "BH-050") == NULL);
    bh_plan_fini(&p);
    fixture_fini(&f);
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
