/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_refuse.h"

#include "base/test.h"
#include "base/units.h"
#include "core/policy/plan_fixture.h"

static const struct bh_candidate gate = {BH_MECH_FRACTIONAL, BH_MECH_GATE, BH_TIER_CONTAINER};
static const struct bh_candidate turns = {BH_MECH_TIMESLICE, BH_MECH_UNSET, BH_TIER_CONTAINER};
static const struct bh_candidate mps = {BH_MECH_MPS, BH_MECH_UNSET, BH_TIER_CONTAINER};
static const struct bh_candidate mig = {BH_MECH_MIG, BH_MECH_UNSET, BH_TIER_CONTAINER};
static const struct bh_candidate mig_vm = {BH_MECH_MIG, BH_MECH_UNSET, BH_TIER_VM};
static const struct bh_candidate vgpu = {BH_MECH_VGPU, BH_MECH_UNSET, BH_TIER_VM};
static const struct bh_candidate mig_vgpu = {BH_MECH_MIG_VGPU, BH_MECH_UNSET, BH_TIER_VM};
static const struct bh_candidate mig_vgpu_cvm = {BH_MECH_MIG_VGPU, BH_MECH_UNSET, BH_TIER_CVM};
static const struct bh_candidate whole = {BH_MECH_WHOLE, BH_MECH_UNSET, BH_TIER_CONTAINER};
static const struct bh_candidate whole_sandbox = {BH_MECH_WHOLE, BH_MECH_UNSET, BH_TIER_SANDBOX};
static const struct bh_candidate whole_vm = {BH_MECH_WHOLE, BH_MECH_UNSET, BH_TIER_VM};
static const struct bh_candidate whole_cvm = {BH_MECH_WHOLE, BH_MECH_UNSET, BH_TIER_CVM};

/* The refusals of one candidate for the first tenant. */
static uint32_t refusals(struct fixture *f, const struct bh_candidate *k)
{
    struct bh_ground g;
    struct bh_case c;
    bh_ground_init(&g, &f->policy, fixture_link(f));
    bh_case_open(&c, &g, 0);
    uint32_t set = bh_case_refusals(&c, k);
    /* Whatever is refused is also said: a rule, a sentence, a way out. */
    for (int r = 0; r < BH_N_REFUSALS; r++) {
        if (!(set >> r & 1))
            continue;
        struct bh_arena a = {.head = NULL};
        const char *reason = bh_refusal_reason(&a, &c, k, (enum bh_refusal)r);
        if (!bh_refusal_rule(&c, (enum bh_refusal)r) || reason[strlen(reason) - 1] != '.' ||
            !*bh_refusal_needed(&a, &c, k, (enum bh_refusal)r))
            set = UINT32_MAX;
        bh_arena_fini(&a);
    }
    bh_ground_fini(&g);
    return set;
}

#define ONLY(r) (1u << (r))

TEST(a_team_of_its_own_is_refused_nothing)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    CHECK_EQ(refusals(&f, &gate), 0);
    CHECK_EQ(refusals(&f, &turns), 0);
    CHECK_EQ(refusals(&f, &mps), 0); /* R101: one team may share one MPS server */
    CHECK_EQ(refusals(&f, &mig), 0);
    CHECK_EQ(refusals(&f, &vgpu), 0);
    CHECK_EQ(refusals(&f, &whole_cvm), 0);
    CHECK_EQ(refusals(&f, &mig_vm), ONLY(BH_REFUSE_SLICE_IN_VM));
    fixture_fini(&f);
}

TEST(a_hard_slo_refuses_every_target) /* R110 */
{
    struct fixture f;
    fixture_init(&f);
    fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL)->slo.kind = BH_SLO_HARD;
    CHECK_EQ(refusals(&f, &gate), ONLY(BH_REFUSE_HARD_SLO));
    CHECK_EQ(refusals(&f, &turns), ONLY(BH_REFUSE_HARD_SLO));
    CHECK_EQ(refusals(&f, &mps), ONLY(BH_REFUSE_HARD_SLO));
    CHECK_EQ(refusals(&f, &vgpu), ONLY(BH_REFUSE_HARD_SLO));
    CHECK_EQ(refusals(&f, &mig), 0);
    CHECK_EQ(refusals(&f, &(struct bh_candidate){BH_MECH_FRACTIONAL, BH_MECH_MIG, BH_TIER_CONTAINER}), 0);
    CHECK_EQ(refusals(&f, &whole), 0);
    fixture_fini(&f);
}

TEST(strangers_never_share_a_kernel) /* R092, R093 */
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL);
    (void)fixture_tenant(&f, "globex", BH_TRUST_EXTERNAL, NULL);
    CHECK_EQ(refusals(&f, &mig), ONLY(BH_REFUSE_KERNEL));
    CHECK_EQ(refusals(&f, &whole), ONLY(BH_REFUSE_KERNEL));
    CHECK_EQ(refusals(&f, &whole_sandbox), ONLY(BH_REFUSE_KERNEL));
    CHECK_EQ(refusals(&f, &turns), ONLY(BH_REFUSE_KERNEL) | ONLY(BH_REFUSE_UNTRUSTED_TURNS));
    CHECK_EQ(refusals(&f, &vgpu), ONLY(BH_REFUSE_VGPU_TURNS));
    CHECK_EQ(refusals(&f, &mig_vgpu), 0);
    CHECK_EQ(refusals(&f, &whole_vm), 0);
    fixture_fini(&f);
}

TEST(who_distrusts_the_operator_gets_a_whole_gpu_in_a_cvm) /* R092, R099 */
{
    struct fixture f;
    fixture_init(&f);
    fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL)->operator_untrusted = true;
    CHECK_EQ(refusals(&f, &whole_vm), ONLY(BH_REFUSE_OPERATOR));
    CHECK_EQ(refusals(&f, &mig_vgpu_cvm), ONLY(BH_REFUSE_CONFIDENTIAL_SLICE));
    CHECK_EQ(refusals(&f, &whole_cvm), 0);
    (void)fixture_node(&f, "n1", "A100-80GB", 1);
    CHECK_EQ(refusals(&f, &whole_cvm), ONLY(BH_REFUSE_CONFIDENTIAL_SILICON));
    (void)fixture_node(&f, "n2", "H100", 1);
    CHECK_EQ(refusals(&f, &whole_cvm), 0);
    fixture_fini(&f);
}

TEST(promises_of_the_tenant_and_its_pools_count)
{
    struct fixture f;
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "clinic", BH_TRUST_INTERNAL, NULL);
    t->regimes = 1u << BH_REGIME_HIPAA;
    CHECK_EQ(refusals(&f, &mig), ONLY(BH_REFUSE_REGULATED)); /* R138 */
    CHECK_EQ(refusals(&f, &mig_vgpu), 0);
    f.policy.tenants.at[0].regimes = 0;
    fixture_pool(&f, "p", BH_MECH_MIG, BH_TIER_CONTAINER, NULL, "clinic", NULL)->claims =
        1u << BH_CLAIM_SECURITY_BOUNDARY;
    CHECK_EQ(refusals(&f, &mig), ONLY(BH_REFUSE_CLAIM)); /* R095 */
    CHECK_EQ(refusals(&f, &mig_vgpu), 0);
    CHECK_EQ(refusals(&f, &whole), 0);
    f.policy.pools.at[0].claims = 1u << BH_CLAIM_PERFORMANCE;
    fixture_workload(&f, "ring", "clinic")->needs_nvlink = true;
    CHECK_EQ(refusals(&f, &mig), ONLY(BH_REFUSE_NVLINK)); /* R025 */
    CHECK_EQ(refusals(&f, &whole), 0);
    fixture_fini(&f);
}

TEST(only_a_class_that_was_written_refuses)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, "training");
    CHECK_EQ(refusals(&f, &gate), ONLY(BH_REFUSE_CLASS));
    CHECK_EQ(refusals(&f, &whole), 0);
    CHECK_EQ(refusals(&f, &whole_sandbox), ONLY(BH_REFUSE_CLASS));
    f.policy.tenants.at[0].class_pos.line = 0;
    CHECK_EQ(refusals(&f, &gate), 0);
    fixture_fini(&f);
}

static struct bh_slice_choice slice(struct fixture *f, const struct bh_candidate *k)
{
    struct bh_ground g;
    struct bh_case c;
    bh_ground_init(&g, &f->policy, fixture_link(f));
    bh_case_open(&c, &g, 0);
    struct bh_slice_choice s = bh_case_slice(&c, k);
    bh_ground_fini(&g);
    return s;
}

TEST(the_smallest_slice_that_holds_the_largest_workload) /* R008 */
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    (void)fixture_node(&f, "n1", "H200", 1);
    CHECK_STR(slice(&f, &mig).profile->name, "1g.18gb");
    fixture_workload(&f, "w", "lab")->memory_bytes = 30 * BH_GIB;
    CHECK_STR(slice(&f, &mig).profile->name, "1g.35gb");
    /* An A100 wastes less of 3g.40gb than an H200 of 3g.71gb. */
    f.policy.workloads.at[0].memory_bytes = 38 * BH_GIB;
    CHECK_STR(slice(&f, &mig).profile->name, "3g.71gb");
    (void)fixture_node(&f, "n2", "A100-80GB", 1);
    CHECK_STR(slice(&f, &mig).profile->name, "3g.40gb");
    CHECK_STR(slice(&f, &mig).model->name, "A100-80GB");
    /* A pool of the tenant's own says which model is meant for it. */
    fixture_pool(&f, "p", BH_MECH_MIG, BH_TIER_CONTAINER, NULL, "lab", NULL)->match.model.s = "H200";
    CHECK_STR(slice(&f, &mig).model->name, "H200-141GB");
    f.policy.workloads.at[0].memory_bytes = 200 * BH_GIB;
    CHECK(slice(&f, &mig).model == NULL);
    CHECK_EQ(refusals(&f, &mig), ONLY(BH_REFUSE_MIG));
    fixture_fini(&f);
}

TEST(without_a_workload_the_cap_or_a_small_quota_says_what_to_hold)
{
    struct fixture f;
    fixture_init(&f);
    struct bh_tenant *t = fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    t->quota.memory_bytes = 60 * BH_GIB;
    t->quota.has_gpus = true;
    t->quota.gpus_milli = 4000; /* memory of four GPUs says nothing about one instance */
    (void)fixture_node(&f, "n1", "H200", 1);
    CHECK_STR(slice(&f, &mig).profile->name, "1g.18gb");
    f.policy.tenants.at[0].quota.gpus_milli = 500;
    CHECK_STR(slice(&f, &mig).profile->name, "3g.71gb");
    fixture_pool(&f, "p", BH_MECH_MIG, BH_TIER_CONTAINER, NULL, "lab", NULL)->cap_memory_bytes = 20 * BH_GIB;
    CHECK_STR(slice(&f, &mig).profile->name, "1g.35gb");
    fixture_fini(&f);
}

TEST(a_vgpu_takes_a_graphics_profile_where_there_are_such)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "lab", BH_TRUST_INTERNAL, NULL);
    (void)fixture_node(&f, "n1", "RTX-PRO-6000", 1);
    CHECK(slice(&f, &mig_vgpu).profile->gfx);
    (void)fixture_node(&f, "n2", "H200", 1);
    CHECK_STR(slice(&f, &mig_vgpu).model->name, "H200-141GB");
    fixture_fini(&f);
}

TEST(hardware_that_cannot_is_named)
{
    struct fixture f;
    fixture_init(&f);
    (void)fixture_tenant(&f, "acme", BH_TRUST_EXTERNAL, NULL);
    fixture_node(&f, "n1", "L40S", 1)->iommu = BH_FACT_NO;
    CHECK_EQ(refusals(&f, &mig), ONLY(BH_REFUSE_MIG));
    CHECK_EQ(refusals(&f, &whole_vm), ONLY(BH_REFUSE_IOMMU));
    CHECK_EQ(refusals(&f, &whole_cvm), ONLY(BH_REFUSE_IOMMU));
    /* A switch that is off is not also a missing GPU. */
    fixture_node(&f, "n2", "H200", 1)->iommu = BH_FACT_NO;
    CHECK_EQ(refusals(&f, &mig_vgpu), ONLY(BH_REFUSE_IOMMU));
    f.fleet.nodes.at[0].iommu = BH_FACT_UNKNOWN;
    CHECK_EQ(refusals(&f, &whole_vm), 0);
    CHECK_EQ(refusals(&f, &mig_vgpu), ONLY(BH_REFUSE_MIG));
    fixture_fini(&f);
}

TEST(what_lies_in_the_mechanism_cannot_be_lifted)
{
    CHECK_EQ(bh_refusal_effort(BH_REFUSE_SLICE_IN_VM), 0);
    CHECK_EQ(bh_refusal_effort(BH_REFUSE_UNTRUSTED_TURNS), 0);
    CHECK_EQ(bh_refusal_effort(BH_REFUSE_CONFIDENTIAL_SLICE), 0);
    /* Keeping a promise comes before giving one up. */
    CHECK(bh_refusal_effort(BH_REFUSE_MIG) < bh_refusal_effort(BH_REFUSE_CLASS));
    CHECK(bh_refusal_effort(BH_REFUSE_CONFIDENTIAL_SILICON) < bh_refusal_effort(BH_REFUSE_OPERATOR));
    CHECK(bh_refusal_effort(BH_REFUSE_KERNEL) < bh_refusal_effort(BH_REFUSE_HARD_SLO));
}

TEST_MAIN
