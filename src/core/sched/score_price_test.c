/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "core/sched/score_inside.h"
#include "core/sched/shelf_fixture.h"

static struct bh_requests requests;
static struct bh_shelf shelf;
static struct bh_price price;

/* 80 GPUs of model 0, 16 of model 1, 4 of model 2; of model 3 there are none. */
static void setup(void)
{
    static const uint32_t nodes[] = {10, 2, 1};
    uint32_t id, rank = 0;
    memset(&price, 0, sizeof(price));
    bh_shelf_init(&shelf, &requests);
    for (uint32_t m = 0; m < 4; m++)
        world_must(bh_shelf_add_model(&shelf, m ? NULL : bh_catalog_find("H100"), &id, NULL));
    for (uint32_t m = 0; m < 3; m++) {
        for (uint32_t i = 0; i < nodes[m]; i++) {
            const struct bh_node_spec spec = {
                .domain = BH_NONE, .model = m, .rank = rank++, .n_gpus = m == 2 ? 4 : 8, .cpu_milli = 1000};
            world_must(bh_shelf_add_node(&shelf, &spec, &id, NULL));
        }
    }
}

static void teardown(void)
{
    bh_shelf_fini(&shelf);
    bh_requests_fini(&requests);
}

static void arrive(uint64_t models, uint32_t times)
{
    const struct bh_request r = {.form = BH_FORM_WHOLE, .n_gpus = 1, .gpu_milli = 1000, .models = models};
    for (; times; times--)
        bh_price_arrived(&price, &shelf, &r);
}

TEST(who_names_nothing_makes_no_price)
{
    setup();
    arrive(0, 50);
    arrive(7, 50);  /* any model that is there */
    arrive(15, 50); /* the same and one that is not */
    arrive(8, 50);  /* one that is not: nothing to keep for it */
    const struct bh_request cpu = {.form = BH_FORM_CPU};
    bh_price_arrived(&price, &shelf, &cpu);
    for (uint32_t m = 0; m < 4; m++)
        CHECK_EQ(price.price_milli[m], 0);
    CHECK_EQ(price.milli, 200000);
    teardown();
}

/* A fifth of all wants model 1, which is a sixth of the fleet: pressure 20 / 16, less 0.3, times 20 points. */
TEST(what_others_need_is_dear)
{
    setup();
    arrive(0, 80);
    arrive(2, 20);
    CHECK_EQ(price.price_milli[0], 0);
    CHECK_EQ(price.price_milli[1], 18000);
    CHECK_EQ(price.price_milli[2], 0);
    teardown();
}

TEST(plenty_is_free)
{
    setup();
    arrive(0, 80);
    arrive(1, 20); /* a fifth for four fifths of the fleet */
    for (uint32_t m = 0; m < 3; m++)
        CHECK_EQ(price.price_milli[m], 0);
    teardown();
}

/* The more of it is taken by those who did not need it, the dearer what is left. */
TEST(what_runs_out_becomes_dearer)
{
    setup();
    arrive(0, 90);
    arrive(2, 10);
    const int32_t before = price.price_milli[1];
    const struct bh_request r = {.form = BH_FORM_WHOLE, .n_gpus = 8, .gpu_milli = 1000};
    uint32_t class_, hold;
    world_must(bh_request_intern(&requests, &r, &class_, NULL));
    world_must(bh_shelf_take(&shelf, class_, &(struct bh_spot){.node = 10, .gpus = 0xff}, &hold, NULL));
    arrive(0, 1);
    CHECK(before > 0 && price.price_milli[1] > before);
    const int32_t half = price.price_milli[1];
    world_must(bh_shelf_take(&shelf, class_, &(struct bh_spot){.node = 11, .gpus = 0xff}, &hold, NULL));
    arrive(0, 1);
    CHECK(price.price_milli[1] > half);
    CHECK(price.price_milli[1] <= 120000);
    teardown();
}

TEST(the_past_is_forgotten)
{
    setup();
    arrive(0, 80);
    arrive(2, 20);
    CHECK(price.price_milli[1] > 0);
    arrive(0, 3000);
    CHECK_EQ(price.price_milli[1], 0);
    CHECK(price.milli <= 400000);
    teardown();
}

TEST(an_instance_is_part_of_a_gpu)
{
    setup();
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    const uint8_t profile = (uint8_t)(bh_mig_find(m, "3g.40gb") - m->profiles);
    const struct bh_request r = {.form = BH_FORM_MIG, .n_gpus = 1, .models = 1, .mig_profile = profile};
    const struct bh_request odd = {.form = BH_FORM_MIG, .n_gpus = 1, .models = 2, .mig_profile = profile};
    bh_price_arrived(&price, &shelf, &r);
    CHECK_EQ(price.milli, 3000 / 7);
    bh_price_arrived(&price, &shelf, &odd); /* cannot be cut */
    CHECK_EQ(price.milli, 3000 / 7);
    teardown();
}

TEST(too_many_different_wishes_are_dropped)
{
    setup();
    uint32_t id;
    for (uint32_t m = 4; m < 12; m++) {
        const struct bh_node_spec spec = {.domain = BH_NONE, .model = m, .rank = 100 + m, .n_gpus = 1};
        world_must(bh_shelf_add_model(&shelf, NULL, &id, NULL));
        world_must(bh_shelf_add_node(&shelf, &spec, &id, NULL));
    }
    for (uint64_t models = 1; models < 200; models++)
        arrive(models, 1);
    CHECK_EQ(price.n_masks, BH_MASKS_MAX);
    teardown();
}

TEST_MAIN
