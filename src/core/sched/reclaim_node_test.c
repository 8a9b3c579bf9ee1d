/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim_node_test.c - one node emptied rather than many scratched. */
#include "core/sched/reclaim.h"

#include "core/sched/sched_fixture.h"

enum { NODES = 8, GPUS = 8 };

/* Full of jobs of one GPU; of any eight that are next in order, no two are on one node. */
static struct bh_sched *scattered(bool firm_on_even)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, NODES, GPUS);
    add_queue(s, 1, 0, 0, 0);
    add_queue(s, 2, 0, 0, NODES * GPUS);
    for (uint32_t i = 0; i < NODES * GPUS; i++) {
        const struct bh_spot at = {.node = i % NODES, .gpus = (uint16_t)(1u << i / NODES)};
        struct bh_gang_spec j = job_of(1 + i, 1, 1, 1);
        j.min_run_ms = firm_on_even && at.node % 2 == 0 && i < NODES ? 100000 : 0;
        say(s, (struct bh_sched_event){
                   .kind = BH_SCHED_FOUND, .job = &j, .places = &at, .n_places = 1, .at_ms = 1 + i});
    }
    bh_sched_settle(s);
    return s;
}

TEST(one_node_is_emptied)
{
    struct bh_sched *s = scattered(false);
    submit(s, job_of(1000, 2, 1, GPUS));
    cycle(s, 1000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), GPUS);
    for (size_t i = 1; i < s->decisions.n; i++)
        CHECK_EQ(s->decisions.at[i].job % NODES, s->decisions.at[0].job % NODES);
    cycle(s, 1001);
    CHECK_EQ(state_of(s, 1000), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_gang_empties_as_many_as_it_needs)
{
    struct bh_sched *s = scattered(false);
    submit(s, job_of(1000, 2, 3, GPUS));
    cycle(s, 1000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 3 * GPUS);
    cycle(s, 1001);
    CHECK_EQ(state_of(s, 1000), BH_GANG_RUNS);
    bh_sched_free(s);
}

TEST(a_node_with_somebody_who_stays_is_left_alone)
{
    struct bh_sched *s = scattered(true);
    for (uint32_t i = 0; i < NODES / 2; i++)
        submit(s, job_of(1000 + i, 2, 1, GPUS));
    submit(s, job_of(2000, 2, 1, GPUS)); /* one too many */
    cycle(s, 1000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), NODES / 2 * GPUS);
    for (size_t i = 0; i < s->decisions.n; i++)
        CHECK_EQ((s->decisions.at[i].job - 1) % 2, 1);
    CHECK_EQ(state_of(s, 2000), BH_GANG_PENDING);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(nodes_come_in_the_order_of_those_who_could_go)
{
    struct bh_sched *s = scattered(false);
    uint32_t shape, node, n = 0;
    const struct bh_gang_spec j = job_of(1000, 2, 1, GPUS);
    CHECK_EQ(bh_shape_intern(s, &j, &shape, NULL), 0);
    s->now_ms = 1000;
    s->steps_left = UINT64_MAX;
    s->stats.cycles++;
    struct bh_search f = {.taker = {.queue = 2, .amount = s->shapes.at[shape].least},
                          .models = UINT64_MAX,
                          .shape = &s->shapes.at[shape],
                          .scope = BH_QUEUE_ROOT,
                          .others = true};
    bh_search_open(s, &f);
    s->here.n = 0;
    while (bh_search_next_node(s, &f, &node)) {
        CHECK_EQ(node, NODES - 1 - n++); /* the youngest first, and each node once */
        CHECK_EQ(bh_search_here(s, &f, node), 1);
        CHECK_EQ(s->here.n, n * GPUS);
    }
    CHECK_EQ(n, NODES);
    bh_sched_free(s);
}

TEST_MAIN
