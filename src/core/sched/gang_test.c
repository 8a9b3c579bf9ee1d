/* SPDX-License-Identifier: Apache-2.0 */
/* gang_test.c - gangs in domains and slices, against counting by hand and against all ways of placing them. */
#include "core/sched/sched_fixture.h"

/* A region of two blocks, each of two racks, each of two NVLink domains, each of two nodes of eight. */
static struct bh_sched *fabric(void)
{
    struct bh_sched *s = plain_sched();
    uint32_t id = 0, node = 0;
    add_model(s, 0, NULL);
    add_domain(s, id++, BH_LEVEL_REGION, BH_NONE);
    for (uint32_t b = 0; b < 2; b++) {
        const uint32_t block = id;
        add_domain(s, id++, BH_LEVEL_BLOCK, 0);
        for (uint32_t r = 0; r < 2; r++) {
            const uint32_t rack = id;
            add_domain(s, id++, BH_LEVEL_RACK, block);
            for (uint32_t l = 0; l < 2; l++, node += 2) {
                add_domain(s, id, BH_LEVEL_LINK, rack);
                add_node(s, node, 8, id);
                add_node(s, node + 1, 8, id++);
            }
        }
    }
    add_queue(s, 1, 0, 0, 128);
    return s;
}

static struct bh_gang_spec within(struct bh_gang_spec j, uint8_t level, uint8_t prefer)
{
    j.within = level;
    j.prefer = prefer;
    return j;
}

/* In how many domains of a level the job is. */
static uint32_t spread(const struct bh_sched *s, uint64_t id, enum bh_level level)
{
    uint64_t seen = 0;
    const struct bh_gang *g = bh_sched_job(s, id);
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next)
        seen |= UINT64_C(1) << bh_shelf_domain_of(&s->shelf, s->shelf.holds.at[h].node, level);
    return bh_bits((uint32_t)seen) + bh_bits((uint32_t)(seen >> 32));
}

TEST(a_gang_stays_in_the_smallest_domain_that_has_room)
{
    struct bh_sched *s = fabric();
    submit(s, within(job_of(1, 1, 2, 4), BH_LEVEL_ANY, BH_LEVEL_LINK));
    submit(s, within(job_of(2, 1, 3, 8), BH_LEVEL_ANY, BH_LEVEL_LINK));
    submit(s, within(job_of(3, 1, 2, 8), BH_LEVEL_LINK, BH_LEVEL_LINK));
    cycle(s, 1);
    CHECK_EQ(s->stats.runs, 3);
    CHECK_EQ(spread(s, 1, BH_LEVEL_LINK), 1);
    CHECK_EQ(spread(s, 2, BH_LEVEL_LINK), 2); /* no NVLink domain has three */
    CHECK_EQ(spread(s, 2, BH_LEVEL_RACK), 1);
    CHECK_EQ(spread(s, 3, BH_LEVEL_LINK), 1);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_gang_that_does_not_fit_in_its_domain_waits)
{
    struct bh_sched *s = fabric();
    submit(s, within(job_of(1, 1, 5, 8), BH_LEVEL_RACK, BH_LEVEL_RACK));
    submit(s, within(job_of(2, 1, 8, 8), BH_LEVEL_BLOCK, BH_LEVEL_LINK));
    cycle(s, 1);
    CHECK_EQ(state_of(s, 1), BH_GANG_PENDING);
    CHECK_EQ(state_of(s, 2), BH_GANG_RUNS);
    CHECK_EQ(spread(s, 2, BH_LEVEL_BLOCK), 1);
    CHECK_EQ(s->shelf.milli_used, 64 * GPU);
    bh_sched_free(s);
}

TEST(slices_stay_together)
{
    struct bh_sched *s = fabric();
    struct bh_gang_spec j = within(job_of(1, 1, 6, 8), BH_LEVEL_REGION, BH_LEVEL_REGION);
    j.roles[0].slice = 2;
    j.roles[0].slice_level = BH_LEVEL_LINK;
    submit(s, job_of(9, 1, 1, 1)); /* one NVLink domain is broken into */
    submit(s, j);
    cycle(s, 1);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK_EQ(spread(s, 1, BH_LEVEL_LINK), 3); /* two nodes in each */
    j.id = 2;
    j.roles[0].min = j.roles[0].max = 10; /* eight whole domains there were */
    submit(s, j);
    cycle(s, 2);
    CHECK_EQ(state_of(s, 2), BH_GANG_PENDING);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(roles_are_placed_together_or_not_at_all)
{
    struct bh_sched *s = fabric();
    struct bh_gang_spec j = within(job_of(1, 1, 2, 8), BH_LEVEL_RACK, BH_LEVEL_RACK);
    j.n_roles = 2;
    j.roles[1] = j.roles[0];
    j.roles[1].min = j.roles[1].max = 4;
    j.roles[1].request.n_gpus = 4;
    submit(s, j);
    j.id = 2;
    j.roles[1].min = j.roles[1].max = 5;
    submit(s, j);
    cycle(s, 1);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK_EQ(state_of(s, 2), BH_GANG_PENDING);
    CHECK_EQ(spread(s, 1, BH_LEVEL_RACK), 1);
    CHECK_EQ(bh_sched_job(s, 1)->n_holds, 6);
    bh_sched_free(s);
}

/* ---- all ways ---- */

enum { NODES = 4, GPUS = 8 };

/* Members of two sizes into what is free: every way. */
static bool any_way(const uint8_t *free_gpus, const uint8_t *need, uint32_t n, uint32_t nodes)
{
    uint8_t left[NODES];
    if (!n)
        return true;
    for (uint32_t i = 0; i < nodes; i++) {
        if (free_gpus[i] < need[0])
            continue;
        memcpy(left, free_gpus, sizeof(left));
        left[i] = (uint8_t)(left[i] - need[0]);
        if (any_way(left, need + 1, n - 1, nodes))
            return true;
    }
    return false;
}

/* Gangs of one role and of two, of sizes of their own, in any order. */
TEST(whatever_can_be_placed_is_placed)
{
    static const enum bh_score_mode modes[] = {BH_SCORE_PACKING, BH_SCORE_BULKHEAD, BH_SCORE_FGD};
    static uint8_t bytes[256];
    uint32_t placed[2] = {0}, not_placed[2] = {0};
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_sched_config config = plain_config();
        uint8_t free_gpus[NODES], need[8];
        uint32_t n = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        config.score = modes[seed % BH_COUNT_OF(modes)];
        struct bh_sched *s = bh_sched_new(&config);
        add_fleet(s, NODES, GPUS);
        add_queue(s, 1, 0, 0, NODES * GPUS);
        for (uint32_t i = 1; i <= NODES; i++) { /* somebody is there */
            struct bh_gang_spec j = job_of(i, 1, 1, 1 + bh_choose(&c, GPUS));
            if (bh_choose(&c, 3))
                submit(s, j);
        }
        cycle(s, 1);
        for (uint32_t i = 0; i < NODES; i++)
            free_gpus[i] = s->shelf.nodes.at[i].n_whole;
        struct bh_gang_spec j = job_of(99, 1, 1 + bh_choose(&c, 4), 1 + bh_choose(&c, GPUS));
        j.n_roles = (uint8_t)(1 + bh_choose(&c, 2));
        j.roles[1] = j.roles[0];
        j.roles[1].min = j.roles[1].max = 1 + bh_choose(&c, 3);
        j.roles[1].request.n_gpus = (uint8_t)(1 + bh_choose(&c, GPUS));
        for (uint32_t r = 0; r < j.n_roles; r++)
            for (uint32_t k = 0; k < j.roles[r].min; k++)
                need[n++] = j.roles[r].request.n_gpus;
        const bool can = any_way(free_gpus, need, n, NODES);
        submit(s, j);
        cycle(s, 2);
        const bool runs = state_of(s, 99) == BH_GANG_RUNS;
        CHECK(sched_is_sound(s));
        bh_sched_free(s);
        CHECK_EQ(runs, can);
        placed[j.n_roles - 1] += runs;
        not_placed[j.n_roles - 1] += !runs;
    }
    CHECK(placed[0] > 300 && not_placed[0] > 300 && placed[1] > 300 && not_placed[1] > 300);
}

/* 2 x 1 and 2 x 3 where 1, 3, 1 and 3 are free: as given the small ones would take the large places. */
TEST(the_largest_role_first)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 4, 3);
    add_queue(s, 1, 0, 0, 12);
    submit(s, job_of(1, 1, 2, 2));
    cycle(s, 1);
    struct bh_gang_spec j = job_of(99, 1, 2, 1);
    j.n_roles = 2;
    j.roles[1] = j.roles[0];
    j.roles[1].request.n_gpus = 3;
    submit(s, j);
    cycle(s, 2);
    CHECK_EQ(state_of(s, 99), BH_GANG_RUNS);
    /* Said in the order of the roles all the same. */
    size_t n = s->decisions.n;
    CHECK_EQ(n, 1);
    const struct bh_place *at = bh_sched_places(s, &s->decisions.at[0]);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(at[i].role, i / 2);
    bh_sched_free(s);
}

TEST_MAIN
