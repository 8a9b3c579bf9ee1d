/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "cli/plan_text.h"

struct fixture {
    struct bh_tenant tenants[2];
    struct bh_policy policy;
    struct bh_plan_rejected rejected[4];
    struct bh_tenant_plan plans[2];
    struct bh_plan plan;
    struct bh_plan_out out;
};

static void fixture_init(struct fixture *x)
{
    const struct bh_rule *hard = bh_rule_find("BH-020"), *kernel = bh_rule_find("BH-001");
    *x = (struct fixture){
        .tenants = {{.name = "acme",
                     .trust = BH_TRUST_EXTERNAL,
                     .class_name = "serving",
                     .slo = {.kind = BH_SLO_HARD, .metric = "p99", .target = "50ms"},
                     .quota = {.has_gpus = true, .gpus_milli = 4000}},
                    {.name = "globex", .class_name = "batch"}},
        .rejected = {{BH_MECH_FRACTIONAL, BH_MECH_GATE, BH_TIER_CONTAINER, hard, "A gate is soft."},
                     {BH_MECH_FRACTIONAL, BH_MECH_GATE, BH_TIER_VM, hard, "A gate is soft."},
                     {BH_MECH_MIG, BH_MECH_UNSET, BH_TIER_CONTAINER, kernel, "The kernel is shared."},
                     {BH_MECH_MPS, BH_MECH_UNSET, BH_TIER_VM, hard, "A gate is soft."}},
        .plans = {{.tenant = 0,
                   .possible = true,
                   .mechanism = BH_MECH_MIG_VGPU,
                   .quota_model = BH_QUOTA_HARD,
                   .tier = BH_TIER_VM,
                   .pool = BH_NONE,
                   .cost_ppm = 250000,
                   .units = 16,
                   .shared = {"PCIe link", "power"},
                   .bounded_by = "the partition",
                   .why = "Cheapest that keeps it."},
                  {.tenant = 1, .pool = BH_NONE, .needed = "a GPU with MIG"}},
    };
    x->plans[0].rejected.at = x->rejected;
    x->plans[0].rejected.n = 4;
    x->policy.tenants.at = x->tenants;
    x->policy.tenants.n = 2;
    x->plan.tenants.at = x->plans;
    x->plan.tenants.n = 2;
    x->out = (struct bh_plan_out){&x->plan, &x->policy, "p.yaml", "f.yaml"};
}

TEST(a_plan_is_a_block_a_tenant)
{
    struct fixture x;
    char got[4096];
    struct bh_cli cli = {.width = 100};
    fixture_init(&x);
    bh_buf_init(&cli.out, 1 << 16);
    bh_plan_text(&cli, &x.out);
    (void)snprintf(got, sizeof(got), "%s", bh_buf_text(&cli.out));
    bh_buf_fini(&cli.out);
    CHECK_STR(got, "tenant acme (external, class serving, SLO hard p99 50ms, quota 4)\n"
                   "  choose        mig-vgpu x hard quota x vm tier\n"
                   "  silicon       any model at hand; 4 GPUs guaranteed = 16 workloads, each 25% of a GPU\n"
                   "  pool          none in the policy is this yet: make one\n"
                   "  why           Cheapest that keeps it.\n"
                   "  bounded by    the partition\n"
                   "  stays shared  PCIe link; power\n"
                   "  rejected      BH-020 A gate is soft: fractional on gate in container, vm; mps in vm\n"
                   "                BH-001 The kernel is shared: mig in container\n"
                   "\n"
                   "tenant globex (internal, class batch, SLO none)\n"
                   "  CANNOT KEEP   nothing at hand keeps what this tenant was promised\n"
                   "  would keep it a GPU with MIG\n"
                   "\n"
                   "2 tenants: 1 can be kept, 1 cannot, in p.yaml\n");
}

TEST(different_reasons_of_one_rule_give_way_to_its_title)
{
    struct fixture x;
    struct bh_cli cli = {.width = 100};
    fixture_init(&x);
    x.rejected[3].reason = "MPS is soft.";
    bh_buf_init(&cli.out, 1 << 16);
    bh_plan_text(&cli, &x.out);
    bool title = strstr(bh_buf_text(&cli.out), bh_rule_find("BH-020")->title) != NULL;
    bool reason = strstr(bh_buf_text(&cli.out), "A gate is soft") != NULL;
    bh_buf_fini(&cli.out);
    CHECK(title);
    CHECK(!reason);
}

static bool text_has(struct fixture *x, const char *words)
{
    struct bh_cli cli = {.width = 200};
    bh_buf_init(&cli.out, 1 << 16);
    bh_plan_text(&cli, &x->out);
    bool has = strstr(bh_buf_text(&cli.out), words) != NULL;
    bh_buf_fini(&cli.out);
    return has;
}

TEST(what_the_reasons_share_is_said_once)
{
    struct fixture x;
    fixture_init(&x);
    x.rejected[0].reason = x.rejected[1].reason = "Class training does not take fractional.";
    x.rejected[3].reason = "Class training does not take mps.";
    CHECK(text_has(&x, "Class training does not take: fractional on gate in container, vm; mps in vm\n"));
    x.rejected[3].reason = "Class training does not take fractional on Sundays.";
    CHECK(text_has(&x, "BH-020 Class training does not take fractional: "));
}

TEST(a_ground_that_is_no_rule_stands_alone)
{
    struct fixture x;
    fixture_init(&x);
    x.rejected[2].rule = NULL;
    x.rejected[2].reason = "The guarantee takes 8 GPUs, and 0 of 2 are still free.";
    CHECK(text_has(&x, "     The guarantee takes 8 GPUs, and 0 of 2 are still free: mig in container\n"));
}

TEST(a_guarantee_is_said_in_what_is_handed_out)
{
    struct fixture x;
    fixture_init(&x);
    struct bh_tenant_plan *t = &x.plans[0];
    t->model = bh_catalog_find("H200");
    t->profile = bh_mig_find(t->model, "1g.18gb");
    t->cost_ppm = 125000;
    t->units = 28;
    CHECK(text_has(&x, "H200-141GB, profile 1g.18gb; 4 GPUs guaranteed = 28 instances, each 12.5% of a GPU"));
    x.tenants[0].quota.has_gpus = false;
    t->units = 1;
    CHECK(text_has(&x, "1g.18gb; the guarantee is 1 instance, each 12.5% of a GPU\n"));
    t->units = 0;
    CHECK(text_has(&x, "1g.18gb; nothing is guaranteed; each instance costs 12.5% of a GPU\n"));
    t->profile = NULL;
    t->mechanism = BH_MECH_WHOLE;
    CHECK(text_has(&x, "H200-141GB; no GPU is guaranteed; each costs a whole one\n"));
    t->units = 4;
    CHECK(text_has(&x, "H200-141GB; the guarantee is 4 whole GPUs\n"));
}

TEST(without_a_fleet_it_says_so)
{
    struct fixture x;
    struct bh_cli cli = {.width = 100};
    fixture_init(&x);
    x.out.fleet = NULL;
    bh_buf_init(&cli.out, 1 << 16);
    bh_plan_text(&cli, &x.out);
    bool says = strncmp(bh_buf_text(&cli.out), "No fleet given:", 15) == 0;
    bh_buf_fini(&cli.out);
    CHECK(says);
}

TEST_MAIN
