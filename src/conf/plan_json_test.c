/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "conf/out.h"

struct fixture {
    struct bh_tenant tenants[2];
    struct bh_pool pools[1];
    struct bh_policy policy;
    struct bh_plan_rejected rejected[1];
    struct bh_tenant_plan plans[2];
    struct bh_plan plan;
    struct bh_plan_out out;
};

static void fixture_init(struct fixture *x)
{
    *x = (struct fixture){
        .tenants = {{.name = "acme", .pos = {0, 4, 5}}, {.name = "globex"}},
        .pools = {{.name = "serving"}},
        .rejected = {{.mechanism = BH_MECH_FRACTIONAL,
                      .backing = BH_MECH_GATE,
                      .tier = BH_TIER_CONTAINER,
                      .rule = bh_rule_find("BH-020"),
                      .reason = "A hard SLO needs silicon of its own."}},
        .plans = {{.tenant = 0,
                   .possible = true,
                   .mechanism = BH_MECH_MIG_VGPU,
                   .quota_model = BH_QUOTA_HARD,
                   .tier = BH_TIER_VM,
                   .pool = 0,
                   .cost_ppm = 142857,
                   .units = 28,
                   .shared = {"PCIe link", "power"},
                   .bounded_by = "the partition",
                   .why = "Cheapest that keeps it."},
                  {.tenant = 1, .pool = BH_NONE, .needed = "a GPU with MIG"}},
    };
    x->plans[0].rejected.at = x->rejected;
    x->plans[0].rejected.n = 1;
    x->policy.tenants.at = x->tenants;
    x->policy.tenants.n = 2;
    x->policy.pools.at = x->pools;
    x->policy.pools.n = 1;
    x->plan.tenants.at = x->plans;
    x->plan.tenants.n = 2;
    x->out = (struct bh_plan_out){&x->plan, &x->policy, "p.yaml", NULL};
}

static bool json_has(const struct fixture *x, const char *words)
{
    struct bh_buf b;
    bh_buf_init(&b, 1 << 20);
    bh_plan_json(&b, &x->out);
    bool has = strstr(bh_buf_text(&b), words) != NULL;
    bh_buf_fini(&b);
    return has;
}

TEST(a_kept_promise_names_its_choice)
{
    struct fixture x;
    fixture_init(&x);
    CHECK(json_has(&x, "\"mechanism\": \"mig-vgpu\""));
    CHECK(json_has(&x, "\"backing\": null"));
    CHECK(json_has(&x, "\"pool\": \"serving\""));
    CHECK(json_has(&x, "\"costPpm\": 142857"));
    CHECK(json_has(&x, "\"units\": 28"));
    CHECK(json_has(&x, "\"PCIe link\""));
    CHECK(json_has(&x, "{\"mechanism\": \"fractional\", \"backing\": \"gate\", \"tier\": \"container\", "
                       "\"rule\": \"BH-020\", \"reason\": \"A hard SLO needs silicon of its own.\"}"));
}

TEST(an_impossible_one_says_what_is_needed)
{
    struct fixture x;
    fixture_init(&x);
    CHECK_EQ(bh_plan_impossible(&x.plan), 1);
    CHECK(json_has(&x, "\"kept\": 1"));
    CHECK(json_has(&x, "\"impossible\": 1"));
    CHECK(json_has(&x, "\"needed\": \"a GPU with MIG\""));
}

TEST(a_ground_that_is_no_rule_is_null)
{
    struct fixture x;
    fixture_init(&x);
    x.rejected[0].rule = NULL;
    CHECK(json_has(&x, "\"rule\": null, \"reason\": \"A hard SLO"));
}

TEST(a_pool_to_be_made_is_null)
{
    struct fixture x;
    fixture_init(&x);
    x.plans[0].pool = BH_NONE;
    CHECK(json_has(&x, "\"pool\": null"));
    CHECK(json_has(&x, "\"fleet\": null"));
}

TEST_MAIN
