/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_stock.h"

#include "base/choice.h"
#include "base/test.h"
#include "core/policy/plan_fixture.h"

/* Eight GPUs of which three stand where no VM can be isolated. */
static void stock_init(struct fixture *f, struct bh_ground *g)
{
    fixture_init(f);
    (void)fixture_tenant(f, "a", BH_TRUST_INTERNAL, NULL);
    (void)fixture_tenant(f, "b", BH_TRUST_INTERNAL, NULL);
    (void)fixture_node(f, "n1", "H200", 5);
    fixture_node(f, "n2", "H200", 3)->iommu = BH_FACT_NO;
    bh_ground_init(g, &f->policy, fixture_link(f));
}

static uint64_t draw(struct bh_ground *g, const struct bh_take *t, uint32_t tenant)
{
    const struct bh_silicon *s = bh_ground_silicon(g, 0);
    return bh_stock_draw(g, s, &s->models.at[0], t, tenant);
}

static struct bh_holding count(struct bh_ground *g, bool vm)
{
    const struct bh_silicon *s = bh_ground_silicon(g, 0);
    struct bh_holding sum = {.gpus = 0};
    bh_stock_count(g, s, &s->models.at[0], vm, &sum);
    return sum;
}

TEST(asking_takes_nothing)
{
    struct fixture f;
    struct bh_ground g;
    stock_init(&f, &g);
    struct bh_take t = {.mechanism = BH_MECH_WHOLE, .per_gpu = 1, .units = 9};
    CHECK_EQ(draw(&g, &t, BH_NONE), 1);
    CHECK_EQ(count(&g, false).free, 8);
    t.vm = true;
    CHECK_EQ(draw(&g, &t, BH_NONE), 4);
    CHECK_EQ(count(&g, true).gpus, 5);
    t.units = 0;
    CHECK_EQ(draw(&g, &t, BH_NONE), 0);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(nodes_without_a_vm_go_first)
{
    struct fixture f;
    struct bh_ground g;
    stock_init(&f, &g);
    struct bh_take t = {.mechanism = BH_MECH_WHOLE, .per_gpu = 1, .units = 3};
    CHECK_EQ(draw(&g, &t, 0), 0);
    CHECK_EQ(count(&g, true).free, 5);
    CHECK_EQ(count(&g, true).n_holders, 0);
    CHECK_EQ(count(&g, false).n_holders, 1);
    t = (struct bh_take){.mechanism = BH_MECH_WHOLE, .vm = true, .per_gpu = 1, .units = 6};
    CHECK_EQ(draw(&g, &t, 1), 1); /* what there is goes, what lacks is said */
    CHECK_EQ(count(&g, false).free, 0);
    CHECK_EQ(count(&g, false).n_holders, 2);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(what_is_left_of_a_gpu_is_used_up_by_its_like)
{
    struct fixture f;
    struct bh_ground g;
    stock_init(&f, &g);
    const struct bh_gpu_model *h200 = bh_catalog_find("H200");
    struct bh_take t = {
        .mechanism = BH_MECH_MIG, .profile = bh_mig_find(h200, "1g.18gb"), .per_gpu = 7, .units = 5};
    CHECK_EQ(draw(&g, &t, 0), 0);
    CHECK_EQ(count(&g, false).free, 7);
    t.units = 2;
    CHECK_EQ(draw(&g, &t, 1), 0); /* the rest of the same GPU */
    CHECK_EQ(count(&g, false).free, 7);
    CHECK_EQ(draw(&g, &t, 1), 0);
    CHECK_EQ(count(&g, false).free, 6);
    t.profile = bh_mig_find(h200, "3g.71gb"); /* one profile to a GPU */
    t.per_gpu = 2;
    t.units = 1;
    CHECK_EQ(draw(&g, &t, 1), 0);
    CHECK_EQ(count(&g, false).free, 5);
    t.domain = "acme"; /* nobody's leftovers but its own domain's */
    CHECK_EQ(draw(&g, &t, 1), 0);
    CHECK_EQ(count(&g, false).free, 4);
    CHECK_EQ(draw(&g, &t, 1), 0);
    CHECK_EQ(count(&g, false).free, 4);
    bh_ground_fini(&g);
    fixture_fini(&f);
}

TEST(no_unit_is_given_twice)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        uint8_t bytes[128];
        struct fixture f;
        struct bh_ground g;
        uint64_t given = 0;
        stock_init(&f, &g);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        for (int i = 0; i < 20; i++) {
            static const uint32_t parts[] = {1, 7, 1000};
            static const uint8_t mechanisms[] = {BH_MECH_WHOLE, BH_MECH_MIG, BH_MECH_GATE};
            uint32_t kind = bh_choose(&c, 3);
            struct bh_take t = {.mechanism = mechanisms[kind], .per_gpu = parts[kind]};
            t.vm = bh_choose(&c, 2);
            t.units = bh_choose(&c, 3 * t.per_gpu);
            uint64_t asked = draw(&g, &t, BH_NONE), left = draw(&g, &t, bh_choose(&c, 2));
            CHECK_EQ(asked, left);
            given += (t.units - left) * (7000 / t.per_gpu);
        }
        CHECK(given <= 8 * 7000);
        CHECK(given <= (8 - count(&g, false).free) * 7000);
        bh_ground_fini(&g);
        fixture_fini(&f);
    }
}

TEST_MAIN
