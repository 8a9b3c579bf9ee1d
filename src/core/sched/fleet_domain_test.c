/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "core/sched/shelf_fixture.h"

static struct bh_requests requests;
static struct bh_shelf shelf;

/* One region of 2 blocks of 2 racks of 2 NVLink domains of 2 nodes of 8: 128 GPUs. */
static void setup(void)
{
    uint32_t region, block, rack, link, id;
    bh_shelf_init(&shelf, &requests);
    world_must(bh_shelf_add_model(&shelf, NULL, &id, NULL));
    world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_REGION, BH_NONE, &region, NULL));
    for (uint32_t i = 0; i < 16; i++) {
        if (i % 8 == 0)
            world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_BLOCK, region, &block, NULL));
        if (i % 4 == 0)
            world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_RACK, block, &rack, NULL));
        if (i % 2 == 0)
            world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_LINK, rack, &link, NULL));
        const struct bh_node_spec spec = {.domain = link, .rank = i, .n_gpus = 8, .cpu_milli = 8000};
        world_must(bh_shelf_add_node(&shelf, &spec, &id, NULL));
    }
}

static void teardown(void)
{
    bh_shelf_fini(&shelf);
    bh_requests_fini(&requests);
}

static uint32_t take(uint32_t node, uint32_t n)
{
    const struct bh_request r = {.form = BH_FORM_WHOLE, .n_gpus = (uint8_t)n, .gpu_milli = 1000};
    uint32_t class_, hold;
    world_must(bh_request_intern(&requests, &r, &class_, NULL));
    const uint32_t usable = bh_shelf_usable(&shelf, &r, node);
    struct bh_spot spot = {.node = node};
    for (uint32_t left = usable, k = n; k; k--, left &= left - 1)
        spot.gpus = (uint16_t)(spot.gpus | (left & -left));
    world_must(bh_shelf_take(&shelf, class_, &spot, &hold, NULL));
    return hold;
}

TEST(counters_on_the_path)
{
    setup();
    CHECK_EQ(shelf.domains.at[0].n_whole, 128);
    CHECK_EQ(shelf.domains.at[0].by_whole[8], 16);
    const uint32_t h = take(5, 3);
    for (enum bh_level level = BH_LEVEL_LINK; level < BH_LEVELS; level++) {
        const struct bh_shelf_domain *d = &shelf.domains.at[bh_shelf_domain_of(&shelf, 5, level)];
        CHECK_EQ(d->n_whole, (16u << level) - 3);
        CHECK_EQ(d->by_whole[5], 1);
        CHECK_EQ(d->crowd.holds, 1);
    }
    const uint32_t rack = bh_shelf_domain_of(&shelf, 5, BH_LEVEL_RACK);
    CHECK_EQ(bh_shelf_domain_pieces(&shelf, rack, 8), 3);
    CHECK_EQ(bh_shelf_domain_pieces(&shelf, rack, 4), 7);
    CHECK_EQ(bh_shelf_domain_pieces(&shelf, rack, 3), 2 * 3 + 1);
    CHECK_EQ(bh_shelf_domain_pieces(&shelf, rack, 0), 0);
    bh_shelf_free(&shelf, h);
    CHECK_EQ(shelf.domains.at[0].n_whole, 128);
    CHECK_EQ(shelf.domains.at[rack].crowd.holds, 0);
    CHECK(bh_shelf_sound(&shelf));
    teardown();
}

TEST(the_smallest_domain_that_fits)
{
    setup();
    const uint32_t link = bh_shelf_domain_of(&shelf, 6, BH_LEVEL_LINK);
    take(6, 6); /* the fullest that still has 8 and 2 */
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, 2, 1), link);
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, 8, 1), link);
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, 8, 2),
             bh_shelf_domain_of(&shelf, 0, BH_LEVEL_LINK));
    /* 3 nodes: no NVLink domain, so the rack that is broken into already. */
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, 8, 3),
             bh_shelf_domain_of(&shelf, 6, BH_LEVEL_RACK));
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, 8, 8),
             bh_shelf_domain_of(&shelf, 8, BH_LEVEL_BLOCK));
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, 8, 15), 0);
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_BLOCK, 0, 8, 15), BH_NONE);
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, 8, 16), BH_NONE);
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_BLOCK, BH_LEVEL_REGION, 0, 2, 1),
             bh_shelf_domain_of(&shelf, 6, BH_LEVEL_BLOCK));
    CHECK_EQ(bh_shelf_smallest_domain(&shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 2, 2, 1), BH_NONE);
    teardown();
}

/* Against a look at all domains, on random fleets. */
TEST(smallest_of_all)
{
    static uint8_t bytes[WORLD_BYTES];
    uint32_t found = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct world w;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        world_init(&w, bytes, sizeof(bytes));
        for (int i = 0; i < 20; i++) {
            const uint32_t node = world_draw(&w, (uint32_t)w.shelf.nodes.n);
            if (w.shelf.nodes.at[node].n_gpus)
                bh_shelf_set_health(&w.shelf, node, world_draw(&w, w.shelf.nodes.at[node].n_gpus),
                                    BH_HEALTH_FAILED);
            const uint32_t per_node = 1 + world_draw(&w, 4), n = 1 + world_draw(&w, 4);
            uint32_t best = BH_NONE;
            for (uint32_t d = 0; d < w.shelf.domains.n; d++) {
                const struct bh_shelf_domain *at = &w.shelf.domains.at[d];
                if (bh_shelf_domain_pieces(&w.shelf, d, per_node) < n)
                    continue;
                if (best == BH_NONE || at->level < w.shelf.domains.at[best].level ||
                    (at->level == w.shelf.domains.at[best].level &&
                     at->n_whole < w.shelf.domains.at[best].n_whole))
                    best = d;
            }
            CHECK_EQ(bh_shelf_smallest_domain(&w.shelf, BH_LEVEL_LINK, BH_LEVEL_REGION, 0, per_node, n),
                     best);
            found += best != BH_NONE;
        }
        world_fini(&w);
    }
    CHECK(found > 500);
}

TEST(a_walk_enters_every_domain_below_once)
{
    setup();
    uint32_t n = 0, nodes = 0;
    for (uint32_t d = 0; d != BH_NONE; d = bh_shelf_domain_next(&shelf, 0, d, true)) {
        n++;
        for (uint32_t i = shelf.domains.at[d].first_node; i != BH_NONE; i = shelf.nodes.at[i].next)
            nodes++;
    }
    CHECK_EQ(n, shelf.domains.n);
    CHECK_EQ(nodes, 16);
    const uint32_t rack = bh_shelf_domain_of(&shelf, 9, BH_LEVEL_RACK);
    nodes = 0;
    for (uint32_t d = rack; d != BH_NONE; d = bh_shelf_domain_next(&shelf, rack, d, true)) {
        for (uint32_t i = shelf.domains.at[d].first_node; i != BH_NONE; i = shelf.nodes.at[i].next)
            nodes++;
    }
    CHECK_EQ(nodes, 4);
    teardown();
}

TEST(levels_must_fall)
{
    setup();
    uint32_t id = 77;
    CHECK_EQ(bh_shelf_add_domain(&shelf, BH_LEVEL_REGION, 0, &id, NULL), BH_INVALID);
    CHECK_EQ(bh_shelf_add_domain(&shelf, BH_LEVEL_LINK, 999, &id, NULL), BH_INVALID);
    CHECK_EQ(bh_shelf_add_domain(&shelf, BH_LEVELS, BH_NONE, &id, NULL), BH_INVALID);
    CHECK_EQ(id, 77);
    /* A link may hang below a region: what is not known is left out. */
    CHECK_EQ(bh_shelf_add_domain(&shelf, BH_LEVEL_LINK, 0, &id, NULL), 0);
    CHECK_EQ(bh_shelf_domain_of(&shelf, 0, BH_LEVEL_REGION), 0);
    teardown();
}

TEST_MAIN
