/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_why.h"

#include "base/str.h"
#include "base/test.h"
#include "core/policy/plan_fixture.h"

static enum bh_quota_model quota(enum bh_trust trust, const char *class_name, int declared,
                                 enum bh_slo_kind slo)
{
    struct fixture f;
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "a", trust, class_name);
    t->slo.kind = (uint8_t)slo;
    t->quota.has_model = declared >= 0;
    t->quota.model = (uint8_t)(declared >= 0 ? declared : 0);
    (void)fixture_link(&f);
    enum bh_quota_model q = bh_tenant_quota(&f.policy.tenants.at[0]);
    fixture_fini(&f);
    return q;
}

TEST(external_tenants_are_sold_capacity) /* R080 */
{
    CHECK_EQ(quota(BH_TRUST_EXTERNAL, "research", BH_QUOTA_FAIRSHARE, BH_SLO_NONE), BH_QUOTA_HARD);
    CHECK_EQ(quota(BH_TRUST_EXTERNAL, "batch", BH_QUOTA_PRIORITY, BH_SLO_SOFT), BH_QUOTA_HARD);
    CHECK_EQ(quota(BH_TRUST_EXTERNAL, NULL, -1, BH_SLO_NONE), BH_QUOTA_HARD);
}

TEST(a_declared_hard_quota_stays)
{
    CHECK_EQ(quota(BH_TRUST_INTERNAL, "research", BH_QUOTA_HARD, BH_SLO_NONE), BH_QUOTA_HARD);
    CHECK_EQ(quota(BH_TRUST_PARTNER, "batch", BH_QUOTA_HARD, BH_SLO_NONE), BH_QUOTA_HARD);
}

TEST(else_the_class_decides)
{
    CHECK_EQ(quota(BH_TRUST_INTERNAL, "research", -1, BH_SLO_NONE), BH_QUOTA_FAIRSHARE);
    CHECK_EQ(quota(BH_TRUST_INTERNAL, "batch", -1, BH_SLO_NONE), BH_QUOTA_PRIORITY);
    CHECK_EQ(quota(BH_TRUST_INTERNAL, "training", BH_QUOTA_FAIRSHARE, BH_SLO_NONE), BH_QUOTA_HARD);
    CHECK_EQ(quota(BH_TRUST_INTERNAL, "training", BH_QUOTA_PRIORITY, BH_SLO_NONE), BH_QUOTA_PRIORITY);
    CHECK_EQ(quota(BH_TRUST_INTERNAL, "research", -1, BH_SLO_HARD), BH_QUOTA_HARD);
    CHECK_EQ(quota(BH_TRUST_INTERNAL, NULL, -1, BH_SLO_NONE), BH_QUOTA_FAIRSHARE);
    CHECK_EQ(quota(BH_TRUST_PARTNER, NULL, -1, BH_SLO_NONE), BH_QUOTA_FAIRSHARE); /* research, by default */
    CHECK_EQ(quota(BH_TRUST_PARTNER, NULL, BH_QUOTA_PRIORITY, BH_SLO_NONE), BH_QUOTA_PRIORITY);
}

TEST(another_driver_joins_the_sentence)
{
    struct bh_arena a = {.head = NULL};
    struct bh_tenant other = {.name = "old"};
    CHECK_STR(bh_plan_why_driver(&a, "It is so.", &other),
              "It is so; tenant old needs another driver, and one kernel loads one: "
              "separate nodes or a VM (BH-050).");
    bh_arena_fini(&a);
}

TEST(why_is_one_sentence)
{
    struct fixture f;
    struct bh_ground g;
    struct bh_case c;
    struct bh_arena a = {.head = NULL};
    fixture_init(&f);
    (void)fixture_tenant(&f, "a", BH_TRUST_INTERNAL, "training");
    (void)fixture_node(&f, "n1", "L40S", 1);
    bh_ground_init(&g, &f.policy, fixture_link(&f));
    bh_case_open(&c, &g, 0);
    struct bh_tenant_plan p = {.mechanism = BH_MECH_VGPU, .tier = BH_TIER_VM, .quota_model = BH_QUOTA_HARD};
    const char *why = bh_plan_why(&a, &c, &p);
    CHECK(bh_str_starts(why, "A time-sliced vGPU behind a vm is the cheapest choice"));
    CHECK(strstr(why, "class training does not list it (BH-046), `classes: [{name: training-own, "
                      "mechanism: [vgpu], quota: hard, tier: [vm]}]` would") != NULL);
    CHECK(strstr(why, "no node at hand has the vGPU manager") != NULL);
    CHECK(strstr(why, ". ") == NULL);
    p.mechanism = BH_MECH_WHOLE;
    CHECK_STR(bh_plan_why(&a, &c, &p),
              "A whole GPU behind a vm is the cheapest choice that keeps every promise.");
    bh_arena_fini(&a);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST_MAIN
