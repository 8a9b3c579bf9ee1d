/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_case.h"

#include "base/test.h"
#include "base/units.h"
#include "core/policy/plan_fixture.h"

static const struct bh_candidate gate = {BH_MECH_FRACTIONAL, BH_MECH_GATE, BH_TIER_CONTAINER};
static const struct bh_candidate mig = {BH_MECH_MIG, BH_MECH_UNSET, BH_TIER_CONTAINER};
static const struct bh_candidate mig_vgpu = {BH_MECH_MIG_VGPU, BH_MECH_UNSET, BH_TIER_VM};
static const struct bh_candidate whole = {BH_MECH_WHOLE, BH_MECH_UNSET, BH_TIER_CONTAINER};
static const struct bh_candidate whole_cvm = {BH_MECH_WHOLE, BH_MECH_UNSET, BH_TIER_CVM};

struct opened {
    struct fixture f;
    struct bh_ground g;
    struct bh_case c;
};

static struct bh_tenant *tenant(struct opened *o, uint64_t milli, uint64_t memory_gib)
{
    fixture_init(&o->f);
    struct bh_tenant *t = fixture_tenant(&o->f, "a", BH_TRUST_INTERNAL, NULL);
    t->quota.has_gpus = milli > 0;
    t->quota.gpus_milli = milli;
    t->quota.memory_bytes = memory_gib * BH_GIB;
    return t;
}

static void open_case(struct opened *o)
{
    bh_ground_init(&o->g, &o->f.policy, fixture_link(&o->f));
    bh_case_open(&o->c, &o->g, 0);
}

static void close_case(struct opened *o)
{
    bh_ground_fini(&o->g);
    fixture_fini(&o->f);
}

TEST(a_guarantee_in_gpus_becomes_what_is_handed_out)
{
    struct opened o;
    (void)tenant(&o, 4000, 0);
    (void)fixture_node(&o.f, "n1", "H200", 8);
    open_case(&o);
    struct bh_allotment x = bh_case_allot(&o.c, &mig, false);
    CHECK_EQ(x.units, 28); /* 1g.18gb, seven to a GPU */
    CHECK_EQ(x.gpus, 4);
    CHECK_EQ(x.cost_ppm, 125000);
    CHECK_EQ(x.lacking, 0);
    x = bh_case_allot(&o.c, &gate, false);
    CHECK_EQ(x.units, 16); /* a quarter each */
    CHECK_EQ(x.gpus, 4);
    x = bh_case_allot(&o.c, &whole, false);
    CHECK_EQ(x.units, 4);
    CHECK_STR(x.hand->model->name, "H200-141GB");
    CHECK_EQ(bh_case_stock(&o.c, &whole).free, 8);
    (void)bh_case_allot(&o.c, &whole, true);
    CHECK_EQ(bh_case_stock(&o.c, &whole).free, 4);
    (void)bh_case_allot(&o.c, &whole, true);
    CHECK_EQ(bh_case_allot(&o.c, &whole, false).lacking, 4);
    CHECK_EQ(bh_case_allot(&o.c, &mig, false).lacking, 4);
    close_case(&o);
}

TEST(parts_of_a_gpu_are_rounded_up)
{
    struct opened o;
    (void)tenant(&o, 250, 0);
    (void)fixture_node(&o.f, "n1", "H200", 1);
    open_case(&o);
    CHECK_EQ(bh_case_allot(&o.c, &mig, false).units, 2); /* 1.75 of seven */
    CHECK_EQ(bh_case_allot(&o.c, &whole, false).units, 1);
    CHECK_EQ(bh_case_allot(&o.c, &gate, false).units, 1);
    close_case(&o);
}

TEST(a_guarantee_no_fleet_could_hold_is_still_counted)
{
    struct opened o;
    (void)tenant(&o, UINT64_MAX, 0);
    (void)fixture_node(&o.f, "n1", "H200", 1);
    open_case(&o);
    CHECK(bh_case_allot(&o.c, &mig, false).lacking > UINT64_C(1) << 39);
    CHECK(bh_case_allot(&o.c, &gate, false).lacking > UINT64_C(1) << 39);
    CHECK(bh_case_allot(&o.c, &whole, false).lacking > UINT64_C(1) << 39);
    close_case(&o);
}

TEST(memory_is_held_by_each_gpu)
{
    struct opened o;
    (void)tenant(&o, 4000, 320);
    (void)fixture_node(&o.f, "n1", "H100", 4);
    open_case(&o);
    CHECK_EQ(o.c.gpu_mib, 80 * 1024);
    CHECK(o.c.slice.hand == NULL); /* 79.25 GiB at most */
    CHECK(bh_case_suited(&o.c, &whole, true));
    close_case(&o);
    (void)tenant(&o, 4000, 1300);
    (void)fixture_node(&o.f, "n1", "H100", 4);
    open_case(&o);
    CHECK(bh_case_suited(&o.c, &whole, false));
    CHECK(!bh_case_suited(&o.c, &whole, true));
    close_case(&o);
    /* A GPU of unknown size is not said to be too small, unless it is only in the catalogue. */
    (void)tenant(&o, 4000, 1300);
    (void)fixture_node(&o.f, "n1", "never-heard-of-it", 4);
    open_case(&o);
    CHECK(bh_case_suited(&o.c, &whole, true));
    close_case(&o);
    (void)tenant(&o, 1000, 2000);
    open_case(&o);
    CHECK(!bh_case_suited(&o.c, &whole, true));
    close_case(&o);
}

TEST(small_workloads_still_owe_the_memory_of_a_gpu)
{
    struct opened o;
    (void)tenant(&o, 2000, 150); /* 75 GiB a GPU: seven of 1g.10gb hold 68 */
    fixture_workload(&o.f, "w", "a")->memory_bytes = 5 * BH_GIB;
    (void)fixture_node(&o.f, "n1", "H100", 2);
    open_case(&o);
    CHECK_STR(o.c.slice.profile->name, "1g.20gb");
    close_case(&o);
}

TEST(the_least_cost_wins_then_the_least_waste_then_the_order)
{
    struct opened o;
    (void)tenant(&o, 1000, 0);
    (void)fixture_node(&o.f, "n1", "A30", 1);
    (void)fixture_node(&o.f, "n2", "H200", 1);
    open_case(&o);
    CHECK_STR(o.c.slice.model->name, "H200-141GB"); /* an eighth, not a quarter */
    CHECK_EQ(bh_case_allot(&o.c, &mig, true).lacking, 0);
    bh_case_open(&o.c, &o.g, 0);
    CHECK_STR(o.c.slice.model->name, "A30"); /* what is there goes before what costs less and is not */
    close_case(&o);
    (void)tenant(&o, 1000, 15);
    (void)fixture_node(&o.f, "n1", "H200", 1);
    (void)fixture_node(&o.f, "n2", "H100", 1);
    open_case(&o);
    CHECK_STR(o.c.slice.profile->name, "1g.18gb"); /* an eighth of a H200, a quarter of a H100 */
    close_case(&o);
}

TEST(a_named_profile_is_the_one)
{
    struct opened o;
    struct bh_tenant *t = tenant(&o, 0, 0);
    static const struct bh_amount amounts[] = {{.resource = "nvidia.com/gpu", .milli = 1000},
                                               {.resource = "nvidia.com/mig-3g.71gb", .milli = 3000},
                                               {.resource = "nvidia.com/mig-1g.18gb", .milli = 7000}};
    for (size_t i = 0; i < BH_COUNT_OF(amounts); i++)
        *bh_vec_push(&t->quota.resources) = amounts[i];
    (void)fixture_node(&o.f, "n1", "A100-80GB", 4);
    (void)fixture_node(&o.f, "n2", "H200", 4);
    open_case(&o);
    CHECK_STR(o.c.slice.profile->name, "3g.71gb");
    CHECK_STR(o.c.vgpu_slice.profile->name, "3g.71gb");
    struct bh_allotment x = bh_case_allot(&o.c, &mig_vgpu, false);
    CHECK_EQ(x.units, 5); /* three, and seven small ones are a GPU: two more of these */
    CHECK_EQ(x.gpus, 3);
    close_case(&o);
}

TEST(confidential_gpus_are_the_ones_that_can)
{
    struct opened o;
    struct bh_arena a = {.head = NULL};
    (void)tenant(&o, 1000, 0);
    (void)fixture_node(&o.f, "n1", "A100-80GB", 1);
    (void)fixture_node(&o.f, "n2", "H100", 1);
    open_case(&o);
    CHECK_STR(bh_case_models(&a, &o.c, &whole_cvm), "H100-80GB-SXM");
    CHECK_STR(bh_case_models(&a, &o.c, &whole), "A100-80GB or H100-80GB-SXM");
    CHECK_STR(bh_case_allot(&o.c, &whole_cvm, false).hand->model->name, "H100-80GB-SXM");
    bh_arena_fini(&a);
    close_case(&o);
}

TEST_MAIN
