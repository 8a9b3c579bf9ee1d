/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/predicate.h"

#include "base/mem.h"
#include "base/test.h"
#include "core/policy/plan.h"

/* The answers of the rule book as one table: a row changes only when the rule book does. */
static const struct {
    enum bh_mechanism m;
    bool hard_slo, fits_vm, regulated, cuts;
} expected[] = {
    {BH_MECH_UNSET, false, false, false, false},     {BH_MECH_WHOLE, true, true, true, false},
    {BH_MECH_MIG, true, false, false, true},         {BH_MECH_MPS, false, false, false, false},
    {BH_MECH_TIMESLICE, false, false, false, false}, {BH_MECH_VGPU, false, true, false, false},
    {BH_MECH_MIG_VGPU, true, true, true, true},      {BH_MECH_FRACTIONAL, false, false, false, false},
    {BH_MECH_GATE, false, false, false, false},
};

TEST(each_mechanism_answers_as_the_rule_book)
{
    CHECK_EQ(BH_COUNT_OF(expected), BH_N_mechanism);
    for (size_t i = 0; i < BH_COUNT_OF(expected); i++) {
        enum bh_mechanism m = expected[i].m;
        CHECK_EQ(m, i);
        CHECK_EQ(bh_mech_keeps_hard_slo(m), expected[i].hard_slo);
        CHECK_EQ(bh_mech_is_soft(m), !expected[i].hard_slo);
        CHECK_EQ(bh_mech_fits_vm(m), expected[i].fits_vm);
        CHECK_EQ(bh_mech_fits_regulated(m), expected[i].regulated);
        CHECK_EQ(bh_mech_cuts_mig(m), expected[i].cuts);
    }
}

TEST(only_processes_and_containers_share_the_kernel)
{
    CHECK(bh_tier_shares_kernel(BH_TIER_PROCESS));
    CHECK(bh_tier_shares_kernel(BH_TIER_CONTAINER));
    CHECK(!bh_tier_shares_kernel(BH_TIER_SANDBOX));
    CHECK(!bh_tier_shares_kernel(BH_TIER_VM));
    CHECK(!bh_tier_shares_kernel(BH_TIER_CVM));
}

static size_t length(const char *const *list)
{
    size_t n = 0;
    while (list[n])
        n++;
    return n;
}

static bool mentions(enum bh_mechanism m, enum bh_tier t, const char *word)
{
    for (const char *const *s = bh_mech_stays_shared(m, t); *s; s++) {
        if (strstr(*s, word))
            return true;
    }
    return false;
}

TEST(what_stays_shared_is_never_empty_and_fits_a_plan)
{
    for (int m = 0; m < BH_N_mechanism; m++) {
        for (int t = 0; t < BH_N_tier; t++) {
            const char *const *list = bh_mech_stays_shared((enum bh_mechanism)m, (enum bh_tier)t);
            CHECK(length(list) >= 2);
            CHECK(length(list) < BH_PLAN_SHARED_MAX);
            for (size_t i = 0; list[i]; i++) {
                CHECK(list[i][0] != '\0');
                for (size_t k = 0; k < i; k++)
                    CHECK(strcmp(list[i], list[k]) != 0);
            }
        }
        CHECK(bh_mech_bounded_by((enum bh_mechanism)m)[0] != '\0');
    }
}

TEST(mig_discloses_what_published_work_found)
{
    static const char *const words[] = {"PCIe",     "clocks", "power",           "thermals",
                                        "firmware", "TLB",    "memory barriers", "compute instances"};
    for (size_t i = 0; i < BH_COUNT_OF(words); i++) {
        CHECK(mentions(BH_MECH_MIG, BH_TIER_CONTAINER, words[i]));
        CHECK(mentions(BH_MECH_MIG_VGPU, BH_TIER_VM, words[i]));
    }
    CHECK(mentions(BH_MECH_MIG, BH_TIER_CONTAINER, "GPU driver"));
    CHECK(mentions(BH_MECH_MIG_VGPU, BH_TIER_VM, "vGPU manager"));
    CHECK(!mentions(BH_MECH_MIG_VGPU, BH_TIER_VM, "host kernel"));
}

TEST(each_mode_names_its_own_leak)
{
    CHECK(mentions(BH_MECH_MPS, BH_TIER_CONTAINER, "fate"));
    CHECK(mentions(BH_MECH_TIMESLICE, BH_TIER_CONTAINER, "memory capacity"));
    CHECK(mentions(BH_MECH_TIMESLICE, BH_TIER_CONTAINER, "faults"));
    CHECK(mentions(BH_MECH_GATE, BH_TIER_CONTAINER, "L2 cache"));
    CHECK(mentions(BH_MECH_GATE, BH_TIER_CONTAINER, "host kernel"));
    CHECK(!mentions(BH_MECH_GATE, BH_TIER_CONTAINER, "memory capacity"));
    CHECK(mentions(BH_MECH_WHOLE, BH_TIER_CONTAINER, "NVLink fabric"));
    CHECK(mentions(BH_MECH_WHOLE, BH_TIER_VM, "hypervisor"));
    CHECK(mentions(BH_MECH_WHOLE, BH_TIER_CVM, "side channels"));
    CHECK(mentions(BH_MECH_WHOLE, BH_TIER_CVM, "availability"));
    CHECK(mentions(BH_MECH_GATE, BH_TIER_SANDBOX, "host kernel"));
}

TEST(a_class_without_sets_accepts_anything)
{
    struct bh_class any = {.name = "any"};
    for (int m = 0; m < BH_N_mechanism; m++)
        CHECK(bh_class_accepts(&any, (enum bh_mechanism)m, BH_QUOTA_PRIORITY, BH_TIER_CVM));
}

TEST(a_class_accepts_only_its_sets)
{
    struct bh_class c = {
        .mechanisms = 1u << BH_MECH_FRACTIONAL | 1u << BH_MECH_TIMESLICE,
        .quotas = 1u << BH_QUOTA_FAIRSHARE,
        .tiers = 1u << BH_TIER_CONTAINER,
    };
    CHECK(bh_class_accepts(&c, BH_MECH_TIMESLICE, BH_QUOTA_FAIRSHARE, BH_TIER_CONTAINER));
    CHECK(bh_class_accepts(&c, BH_MECH_GATE, BH_QUOTA_FAIRSHARE, BH_TIER_CONTAINER));
    CHECK(bh_class_accepts(&c, BH_MECH_GATE, BH_N_quota_model, BH_TIER_CONTAINER)); /* no model said */
    CHECK(!bh_class_accepts(&c, BH_MECH_MIG, BH_QUOTA_FAIRSHARE, BH_TIER_CONTAINER));
    CHECK(!bh_class_accepts(&c, BH_MECH_TIMESLICE, BH_QUOTA_HARD, BH_TIER_CONTAINER));
    CHECK(!bh_class_accepts(&c, BH_MECH_TIMESLICE, BH_QUOTA_FAIRSHARE, BH_TIER_VM));
}

TEST_MAIN
