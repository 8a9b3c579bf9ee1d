/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_ground.h"

#include "base/test.h"
#include "base/units.h"
#include "core/policy/plan_fixture.h"

TEST(an_empty_policy_and_an_empty_fleet_are_grounds)
{
    struct fixture f;
    struct bh_ground g;
    fixture_init(&f);
    bh_ground_init(&g, &f.policy, NULL);
    bh_ground_fini(&g);
    (void)fixture_tenant(&f, "a", BH_TRUST_INTERNAL, NULL);
    (void)fixture_link(&f);
    bh_ground_init(&g, &f.policy, &f.fleet);
    CHECK_EQ(bh_ground_silicon(&g, 0)->models.n, 0);
    CHECK_EQ(bh_ground_meeting(&g, 0), BH_MEETS_NOBODY);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

static enum bh_meeting meeting_of(struct fixture *f, uint32_t tenant)
{
    struct bh_ground g;
    bh_ground_init(&g, &f->policy, fixture_link(f));
    enum bh_meeting m = bh_ground_meeting(&g, tenant);
    bh_ground_fini(&g);
    return m;
}

TEST(teams_stay_and_outsiders_get_a_vm)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    (void)fixture_tenant(&f, "ops", BH_TRUST_INTERNAL, NULL);
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_NOBODY);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL);
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_VMS);
    CHECK_EQ(meeting_of(&f, 2), BH_MEETS_OTHERS);
    /* One node is enough: a VM brings its own kernel. */
    (void)fixture_node(&f, "n1", "H200", 1);
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_VMS);
    CHECK_EQ(meeting_of(&f, 2), BH_MEETS_OTHERS);
    fixture_fini(&f);
}

/* Named nodes decide, with and without a fleet. */
static void check_named_nodes(bool with_fleet)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL);
    (void)fixture_tenant(&f, "globex", BH_TRUST_EXTERNAL, NULL);
    (void)fixture_pool(&f, "dev", BH_MECH_TIMESLICE, BH_TIER_CONTAINER, "n[1-2]", "lab", NULL);
    (void)fixture_pool(&f, "acme", BH_MECH_MIG, BH_TIER_CONTAINER, "n3", "acme", NULL);
    (void)fixture_pool(&f, "globex", BH_MECH_MIG_VGPU, BH_TIER_VM, "n4", "globex", NULL);
    static const char *const names[] = {"n1", "n2", "n3", "n4"};
    for (size_t i = 0; with_fleet && i < BH_COUNT_OF(names); i++)
        (void)fixture_node(&f, names[i], "H200", 1);
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_NOBODY_HERE);
    CHECK_EQ(meeting_of(&f, 1), BH_MEETS_NOBODY_HERE);
    CHECK_EQ(meeting_of(&f, 2), BH_MEETS_OTHERS); /* a node for VMs takes the next VM too */
    (void)fixture_pool(&f, "more", BH_MECH_MIG, BH_TIER_CONTAINER, "n[2-3]", "globex", NULL);
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_VMS);
    CHECK_EQ(meeting_of(&f, 1), BH_MEETS_OTHERS);
    fixture_fini(&f);
}

TEST(named_nodes_decide_without_a_fleet)
{
    check_named_nodes(false);
}

TEST(named_nodes_decide_with_a_fleet)
{
    check_named_nodes(true);
}

TEST(nodes_of_one_kernel_are_one_place)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL);
    (void)fixture_pool(&f, "dev", BH_MECH_WHOLE, BH_TIER_CONTAINER, "n1", "lab", NULL);
    (void)fixture_pool(&f, "out", BH_MECH_WHOLE, BH_TIER_CONTAINER, "n2", "acme", NULL);
    (void)fixture_node(&f, "n1", "H200", 1);
    (void)fixture_node(&f, "n2", "H200", 1);
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_NOBODY_HERE);
    CHECK_EQ(meeting_of(&f, 1), BH_MEETS_NOBODY_HERE);
    f.fleet.nodes.at[1].kernel = "n1";
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_VMS);
    CHECK_EQ(meeting_of(&f, 1), BH_MEETS_OTHERS);
    fixture_fini(&f);
}

TEST(a_pool_for_anybody_is_shared_with_everybody)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL);
    fixture_pool(&f, "all", BH_MECH_TIMESLICE, BH_TIER_CONTAINER, "n1", NULL, NULL)->any_tenant = true;
    (void)fixture_pool(&f, "dev", BH_MECH_WHOLE, BH_TIER_CONTAINER, "n1", "lab", NULL);
    CHECK_EQ(meeting_of(&f, 0), BH_MEETS_VMS);
    CHECK_EQ(meeting_of(&f, 1), BH_MEETS_OTHERS);
    fixture_fini(&f);
}

TEST(alike_gpus_are_one_lot)
{
    struct fixture f;
    struct bh_ground g;
    fixture_init(&f);
    (void)fixture_tenant(&f, "a", BH_TRUST_INTERNAL, NULL);
    (void)fixture_node(&f, "n1", "H200", 8);
    (void)fixture_node(&f, "n2", "H200", 4);
    fixture_node(&f, "n3", "H200", 2)->iommu = BH_FACT_NO;
    fixture_node(&f, "n4", "L40S", 1)->site = "eu";
    fixture_node(&f, "n5", "L40S", 0)->site = "us"; /* a node in a site, though it has no GPU */
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    CHECK_EQ(g.lots.n, 4);
    CHECK_EQ(g.lots.at[0].gpus, 12);
    CHECK_EQ(g.lots.at[0].free, 12);
    CHECK_EQ(g.lots.at[1].gpus, 2);
    CHECK(!bh_lot_for_vm(&g.lots.at[1], false));
    CHECK_STR(g.lots.at[2].site, "eu");
    CHECK_EQ(g.lots.at[3].gpus, 0);
    const struct bh_silicon *s = bh_ground_silicon(&g, 0);
    CHECK_EQ(s->models.n, 2);
    CHECK_EQ(s->models.at[0].lots.n, 2);
    CHECK(s->models.at[0].for_vm);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(drivers_agree_where_one_version_suits_both)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "a", BH_TRUST_INTERNAL, NULL);
    (void)fixture_tenant(&f, "b", BH_TRUST_INTERNAL, NULL);
    const struct bh_tenant *a = &f.policy.tenants.at[0], *b = &f.policy.tenants.at[1];
    CHECK(bh_tenants_agree_on_driver(a, b));
    *bh_vec_push(&f.policy.tenants.at[0].drivers) = (struct bh_text){.s = "470"};
    CHECK(bh_tenants_agree_on_driver(a, b));
    *bh_vec_push(&f.policy.tenants.at[1].drivers) = (struct bh_text){.s = "580.159.03"};
    CHECK(!bh_tenants_agree_on_driver(a, b));
    *bh_vec_push(&f.policy.tenants.at[0].drivers) = (struct bh_text){.s = "580"};
    CHECK(bh_tenants_agree_on_driver(a, b));
    CHECK(bh_tenants_agree_on_driver(b, a));
    fixture_fini(&f);
}

TEST(site_and_driver_leave_some_silicon)
{
    struct fixture f;
    struct bh_ground g;
    fixture_init(&f);
    fixture_tenant(&f, "a", BH_TRUST_INTERNAL, NULL)->site = "eu-de-1";
    fixture_tenant(&f, "b", BH_TRUST_INTERNAL, NULL)->site = "us-1";
    struct bh_tenant *c = fixture_tenant(&f, "c", BH_TRUST_INTERNAL, NULL);
    *bh_vec_push(&c->drivers) = (struct bh_text){.s = "535"};
    *bh_vec_push(&c->drivers) = (struct bh_text){.s = "570"};
    (void)fixture_tenant(&f, "d", BH_TRUST_INTERNAL, NULL);
    struct bh_fleet_node *n = fixture_node(&f, "n1", "H200", 2);
    n->site = "eu-de-1";
    n->driver = "580.159.03";
    n->iommu = BH_FACT_NO;
    n = fixture_node(&f, "n2", "L40S", 1);
    n->driver = "570.211.01";
    n->vgpu_manager = "570.211.01";
    (void)fixture_node(&f, "n3", "never-heard-of-it", 1);
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    const struct bh_silicon *s = bh_ground_silicon(&g, 0);
    CHECK_EQ(s->models.n, 1);
    CHECK_STR(s->models.at[0].model->name, "H200-141GB");
    CHECK(!s->models.at[0].for_vm);
    CHECK(!s->vgpu_manager);
    s = bh_ground_silicon(&g, 1);
    CHECK_EQ(s->models.n, 0);
    CHECK(!s->site_exists);
    s = bh_ground_silicon(&g, 2); /* n3 does not say its driver: that is silence, not a no */
    CHECK_EQ(s->models.n, 2);
    CHECK_STR(s->models.at[0].model->name, "L40S");
    CHECK(s->models.at[0].for_vm);
    CHECK(s->models.at[1].model == NULL);
    CHECK(s->vgpu_manager);
    CHECK_EQ(bh_ground_silicon(&g, 3)->models.n, 3);
    size_t kept = g.silicon.n;
    (void)bh_ground_silicon(&g, 0);
    CHECK_EQ(g.silicon.n, kept);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(acs_off_matters_only_between_strangers)
{
    struct fixture f;
    struct bh_ground g;
    fixture_init(&f);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL);
    fixture_node(&f, "n1", "H200", 1)->acs = BH_FACT_NO;
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    CHECK(bh_ground_silicon(&g, 0)->models.at[0].for_vm);
    bh_ground_fini(&g);
    (void)fixture_tenant(&f, "globex", BH_TRUST_EXTERNAL, NULL);
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    CHECK(!bh_ground_silicon(&g, 0)->models.at[0].for_vm);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(without_a_fleet_the_catalogue_is_at_hand)
{
    struct fixture f;
    struct bh_ground g;
    fixture_init(&f);
    fixture_tenant(&f, "a", BH_TRUST_INTERNAL, NULL)->site = "anywhere";
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    CHECK_EQ(bh_ground_silicon(&g, 0)->models.n, bh_catalog_count());
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(a_pool_takes_the_models_its_name_starts)
{
    struct fixture f;
    struct bh_ground g;
    fixture_init(&f);
    (void)fixture_pool(&f, "any", BH_MECH_WHOLE, BH_TIER_CONTAINER, NULL, NULL, NULL);
    fixture_pool(&f, "h100", BH_MECH_WHOLE, BH_TIER_CONTAINER, NULL, NULL, NULL)->match.model.s = "H100";
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    CHECK(bh_ground_pool_takes(&g, 0, bh_catalog_find("L40S")));
    CHECK(bh_ground_pool_takes(&g, 1, bh_catalog_find("H100-80GB-PCIe")));
    CHECK(bh_ground_pool_takes(&g, 1, bh_catalog_find("H100-94GB-NVL")));
    CHECK(!bh_ground_pool_takes(&g, 1, bh_catalog_find("H200")));
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(a_tenant_asks_through_its_pools_and_workloads)
{
    struct fixture f;
    struct bh_ground g;
    fixture_init(&f);
    (void)fixture_tenant(&f, "a", BH_TRUST_INTERNAL, NULL);
    (void)fixture_tenant(&f, "b", BH_TRUST_INTERNAL, NULL);
    struct bh_pool *p = fixture_pool(&f, "first", BH_MECH_TIMESLICE, BH_TIER_CONTAINER, NULL, "a", "b");
    p->replicas = 8;
    p->cap_memory_bytes = 10 * BH_GIB;
    p = fixture_pool(&f, "second", BH_MECH_MPS, BH_TIER_CONTAINER, NULL, "b", NULL);
    p->cap_memory_bytes = 12 * BH_GIB;
    p->claims = 1u << BH_CLAIM_CONFIDENTIAL;
    fixture_workload(&f, "small", "b")->memory_bytes = BH_GIB;
    struct bh_workload *w = fixture_workload(&f, "large", "b");
    w->memory_bytes = 30 * BH_GIB;
    w->needs_nvlink = true;
    (void)fixture_workload(&f, "orphan", "nobody");
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    struct bh_asks one = bh_ground_asks(&g, 0), two = bh_ground_asks(&g, 1);
    CHECK_EQ(one.share_ppm, 125000);
    CHECK_EQ(one.cap_bytes, 10 * BH_GIB);
    CHECK_EQ(one.claim_pool, BH_NONE);
    CHECK_EQ(one.nvlink_workload, BH_NONE);
    CHECK_EQ(two.memory_bytes, 30 * BH_GIB);
    CHECK_EQ(two.cap_bytes, 12 * BH_GIB);
    CHECK_EQ(two.claim_pool, 1);
    CHECK_EQ(two.nvlink_workload, 1);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST_MAIN
