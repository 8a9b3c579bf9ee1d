/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/score.h"

#include "base/test.h"
#include "core/sched/shelf_fixture.h"

static struct bh_requests requests;
static struct bh_shelf shelf;
static struct bh_score *score;

static uint32_t class_of(const struct bh_request *r)
{
    uint32_t id;
    world_must(bh_request_intern(&requests, r, &id, NULL));
    return id;
}

static void node(uint32_t n_gpus, uint32_t cpu, uint32_t n_numa, uint32_t domain)
{
    uint32_t id;
    const struct bh_node_spec spec = {.domain = domain,
                                      .rank = (uint32_t)shelf.nodes.n,
                                      .n_gpus = n_gpus,
                                      .cpu_milli = cpu,
                                      .mem_mib = 1000,
                                      .n_numa = n_numa};
    world_must(bh_shelf_add_node(&shelf, &spec, &id, NULL));
}

static void setup(enum bh_score_mode mode)
{
    uint32_t id;
    bh_shelf_init(&shelf, &requests);
    world_must(bh_shelf_add_model(&shelf, bh_catalog_find("H100"), &id, NULL));
    score = bh_score_new(mode, &shelf, 1);
}

static void teardown(void)
{
    bh_score_free(score);
    bh_shelf_fini(&shelf);
    bh_requests_fini(&requests);
}

static void take(const struct bh_request *r, uint32_t at, uint16_t gpus)
{
    uint32_t hold;
    world_must(bh_shelf_take(&shelf, class_of(r), &(struct bh_spot){.node = at, .gpus = gpus}, &hold, NULL));
}

static int points(const struct bh_request *r, uint32_t at)
{
    bh_score_grow(score);
    const int cached = bh_score_node(score, r, at);
    return cached == bh_score_afresh(score, r, at) ? cached - 1 : -2;
}

static const struct bh_request cpu = {.form = BH_FORM_CPU, .cpu_milli = 32000};
static const struct bh_request one = {
    .form = BH_FORM_WHOLE, .n_gpus = 1, .gpu_milli = 1000, .cpu_milli = 16000};
static const struct bh_request four = {
    .form = BH_FORM_WHOLE, .n_gpus = 4, .gpu_milli = 1000, .cpu_milli = 16000};
static const struct bh_request third = {
    .form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 330, .cpu_milli = 4000};
static const struct bh_request most = {
    .form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 700, .cpu_milli = 4000};

TEST(bestfit)
{
    setup(BH_SCORE_BESTFIT);
    node(8, 128000, 1, BH_NONE);
    node(2, 32000, 1, BH_NONE);
    CHECK_EQ(points(&one, 0), 12); /* 100 - 50 * 112 / 128 - 50 * 7 / 8 = 12.5 */
    CHECK_EQ(points(&one, 1), 87); /* 100 - 50 * 16 / 128 - 50 * 1 / 8 = 87.5 */
    CHECK_EQ(points(&cpu, 1), 87); /* 100 - 0 - 50 * 2 / 8 = 87.5 */
    CHECK_EQ(points(&four, 1), -1);
    teardown();
}

TEST(dotprod)
{
    setup(BH_SCORE_DOTPROD);
    node(8, 128000, 1, BH_NONE);
    node(2, 32000, 1, BH_NONE);
    CHECK_EQ(points(&one, 0), 87); /* 100 - 50 * (16 / 128 + 1 / 8) = 87.5 */
    CHECK_EQ(points(&one, 1), 96); /* 100 - 50 * (16 / 128 / 4 + 1 / 8 / 4) = 96.875 */
    teardown();
}

/* As many processors as can be said: the product is beyond 64 bits with its sign, and no place is worse. */
TEST(dotprod_of_the_largest)
{
    const struct bh_request large = {
        .form = BH_FORM_WHOLE, .n_gpus = 8, .gpu_milli = 1000, .cpu_milli = UINT32_MAX};
    setup(BH_SCORE_DOTPROD);
    node(8, UINT32_MAX, 1, BH_NONE);
    CHECK_EQ(points(&large, 0), 0);
    teardown();
}

TEST(packing)
{
    setup(BH_SCORE_PACKING);
    node(8, 128000, 1, BH_NONE);
    node(2, 128000, 1, BH_NONE);
    CHECK_EQ(points(&third, 0), 25); /* idle: 33 - 8 */
    CHECK_EQ(points(&third, 1), 31);
    take(&third, 0, 1);
    CHECK_EQ(points(&third, 0), 94); /* 67 % left on the one in use */
    CHECK_EQ(points(&most, 0), 49);  /* a free one on a used node */
    CHECK_EQ(points(&four, 0), 46);  /* four of them */
    CHECK_EQ(bh_score_spot(score, &most, 0).gpus, 2);
    CHECK_EQ(bh_score_spot(score, &third, 0).gpus, 1);
    CHECK_EQ(points(&cpu, 0), 0);
    teardown();
}

TEST(clustering)
{
    setup(BH_SCORE_CLUSTERING);
    for (int i = 0; i < 3; i++)
        node(8, 128000, 1, BH_NONE);
    take(&one, 1, 1);
    CHECK_EQ(points(&one, 0), 25);
    CHECK_EQ(points(&one, 1), 75 + 3);
    CHECK_EQ(points(&third, 1), 3);
    take(&third, 1, 2);
    CHECK_EQ(points(&one, 1), 50 + 4); /* 25 * 1330 / 8000 */
    CHECK_EQ(points(&four, 1), 4);
    CHECK_EQ(points(&cpu, 1), 0);
    teardown();
}

/* A share goes where it leaves the least that nobody can use. */
TEST(fgd_keeps_what_typical_work_needs)
{
    setup(BH_SCORE_FGD);
    node(2, 128000, 1, BH_NONE);
    node(2, 128000, 1, BH_NONE);
    take(&most, 1, 2); /* 300 left: nobody wants less than 330 */
    const struct bh_typical typical[] = {{class_of(&one), 50}, {class_of(&third), 50}};
    bh_score_set_typical(score, typical, 2);
    CHECK_EQ(bh_score_typical_count(score), 2);
    /* Node 0: a whole GPU becomes 670, of no use to half of all work: fragments rise by 335 thousandths. */
    CHECK_EQ(points(&third, 0), 41);
    CHECK_EQ(bh_score_spot(score, &third, 0).gpus, 1);
    /* A whole GPU taken leaves none behind: fragments stay as they are. */
    CHECK_EQ(points(&one, 0), 50);
    const struct bh_fragment f = bh_score_fragment(score);
    CHECK_EQ(f.idle_milli, 3300);
    CHECK_EQ(f.fragment_milli, 300);
    take(&third, 0, 2);
    CHECK_EQ(bh_score_spot(score, &third, 0).gpus, 2);
    CHECK(points(&third, 0) > points(&third, 1));
    /* Processors count: without them GPUs are of no use. */
    const struct bh_request hog = {.form = BH_FORM_CPU, .cpu_milli = 120000};
    CHECK(points(&hog, 0) < 50);
    teardown();
}

TEST(shares_on_several_gpus_take_the_fullest)
{
    setup(BH_SCORE_FGD);
    node(4, 128000, 1, BH_NONE);
    take(&third, 0, 2);
    take(&third, 0, 8);
    take(&third, 0, 8);
    struct bh_request two = third;
    two.n_gpus = 2;
    CHECK_EQ(bh_score_spot(score, &two, 0).gpus, 0xa);
    CHECK(points(&two, 0) >= 0);
    teardown();
}

TEST(nodes_without_gpus_take_processors_only)
{
    for (enum bh_score_mode mode = 0; mode < BH_SCORE_MODES; mode++) {
        setup(mode);
        node(0, 64000, 1, BH_NONE);
        CHECK(points(&cpu, 0) >= 0);
        CHECK_EQ(points(&one, 0), -1);
        CHECK_EQ(bh_score_spot(score, &cpu, 0).gpus, 0);
        teardown();
    }
}

/* An empty NVLink domain, and more so an empty rack, is kept for those that need it whole. */
TEST(bulkhead_does_not_spoil_empty_domains)
{
    setup(BH_SCORE_BULKHEAD);
    uint32_t rack, used, empty, far;
    world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_RACK, BH_NONE, &rack, NULL));
    world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_LINK, rack, &used, NULL));
    world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_LINK, rack, &empty, NULL));
    world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_RACK, BH_NONE, &far, NULL));
    world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_LINK, far, &far, NULL));
    for (int i = 0; i < 6; i++)
        node(4, 128000, 1, i < 2 ? used : i < 4 ? empty : far);
    const int all_empty = points(&one, 0);
    take(&one, 1, 1);
    CHECK_EQ(points(&one, 0), 50);
    CHECK_EQ(points(&one, 2), 50 - 30);
    CHECK_EQ(points(&one, 4), 50 - 30 - 15);
    CHECK_EQ(all_empty, 50 - 30 - 15);
    CHECK_EQ(points(&cpu, 4), 50); /* takes no GPU of it */
    teardown();
}

TEST(bulkhead_stays_on_one_numa_node)
{
    struct bh_request two = four, three = four;
    two.n_gpus = 2, three.n_gpus = 3;
    setup(BH_SCORE_BULKHEAD);
    node(8, 128000, 2, BH_NONE);
    take(&one, 0, 1);
    CHECK_EQ(bh_score_spot(score, &four, 0).gpus, 0xf0);
    CHECK_EQ(bh_score_spot(score, &three, 0).gpus, 0x0e); /* just enough there */
    CHECK_EQ(bh_score_spot(score, &two, 0).gpus, 0x06);
    take(&one, 0, 0x80);
    CHECK_EQ(bh_score_spot(score, &four, 0).gpus, 0x1e); /* nowhere enough */
    teardown();
}

TEST(only_bulkhead_has_prices)
{
    for (enum bh_score_mode mode = 0; mode < BH_SCORE_MODES; mode++) {
        setup(mode);
        uint32_t id;
        world_must(bh_shelf_add_model(&shelf, NULL, &id, NULL));
        node(8, 1000, 1, BH_NONE);
        const struct bh_node_spec other = {.domain = BH_NONE, .model = 1, .rank = 9, .n_gpus = 1};
        world_must(bh_shelf_add_node(&shelf, &other, &id, NULL));
        struct bh_request wants = one;
        wants.models = 2;
        bh_score_arrived(score, class_of(&wants));
        CHECK_EQ(bh_score_price_milli(score, &one, 1) > 0, mode == BH_SCORE_BULKHEAD);
        CHECK_EQ(bh_score_price_milli(score, &one, 0), 0);
        CHECK_EQ(bh_score_price_milli(score, &cpu, 1), 0);
        teardown();
    }
}

TEST(instances_go_to_gpus_that_are_cut)
{
    setup(BH_SCORE_BULKHEAD);
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    const struct bh_request small = {.form = BH_FORM_MIG,
                                     .n_gpus = 1,
                                     .models = 1,
                                     .mig_profile = (uint8_t)(bh_mig_find(m, "1g.10gb") - m->profiles)};
    uint32_t hold;
    node(2, 1000, 1, BH_NONE);
    node(2, 1000, 1, BH_NONE);
    for (uint32_t i = 0; i < 7; i++) {
        const struct bh_spot spot = bh_score_spot(score, &small, 1);
        CHECK_EQ(spot.gpus, 1);
        world_must(bh_shelf_take(&shelf, class_of(&small), &spot, &hold, NULL));
        CHECK_EQ(points(&small, 1) > points(&small, 0), i < 6 || shelf.nodes.at[1].n_whole < 2);
    }
    CHECK_EQ(bh_score_spot(score, &small, 1).gpus, 2);
    teardown();
}

TEST(draws_are_of_the_seed)
{
    setup(BH_SCORE_RANDOM);
    struct bh_score *again = bh_score_new(BH_SCORE_RANDOM, &shelf, 1);
    uint32_t seen = 0;
    for (int i = 0; i < 200; i++) {
        const uint32_t n = bh_score_draw(score, 8);
        CHECK_EQ(n, bh_score_draw(again, 8));
        seen |= 1u << n;
    }
    CHECK_EQ(seen, 0xff);
    bh_score_free(again);
    bh_score_free(NULL);
    teardown();
}

TEST_MAIN
