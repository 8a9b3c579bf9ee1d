/* SPDX-License-Identifier: Apache-2.0 */
/* cycle_test.c - the phases of a cycle: broken gangs, elastic ones, the order they come in. */
#include "core/sched/sched_fixture.h"

static struct bh_sched *nodes(uint32_t n)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, n, 8);
    add_queue(s, 1, 0, 0, 8 * n);
    return s;
}

static uint32_t node_of_job(const struct bh_sched *s, uint64_t id)
{
    return s->shelf.holds.at[bh_sched_job(s, id)->first_hold].node;
}

TEST(a_broken_gang_is_repaired_before_others_start)
{
    struct bh_sched *s = nodes(3);
    submit(s, job_of(1, 1, 2, 8));
    cycle(s, 1);
    const uint32_t lost = node_of_job(s, 1);
    submit(s, job_of(2, 1, 1, 8)); /* would have the last node */
    health(s, lost, BH_NONE, BH_HEALTH_FAILED, 2);
    cycle(s, 2);
    const struct bh_decision *d = decision_of(s, BH_DECIDE_MOVE, 1);
    CHECK(d != NULL);
    CHECK_EQ(d->n_places, 1);
    CHECK(bh_sched_places(s, d)->spot.node != lost);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK_EQ(state_of(s, 2), BH_GANG_PENDING);
    CHECK_EQ(bh_sched_job(s, 1)->broken_ms, 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_broken_gang_is_evicted_whole_after_a_while)
{
    struct bh_sched *s = nodes(2);
    submit(s, job_of(1, 1, 2, 8));
    cycle(s, 1);
    health(s, 0, 3, BH_HEALTH_FAILED, 1000); /* one GPU is enough */
    cycle(s, 1000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 0);
    CHECK_EQ(bh_sched_job(s, 1)->broken_ms, 1000);
    cycle(s, 1000 + s->config.grace_ms - 1);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 0);
    cycle(s, 1000 + s->config.grace_ms);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 1), 1);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 1)->why, BH_FOR_BROKEN);
    cycle(s, 1001 + s->config.grace_ms);
    CHECK_EQ(state_of(s, 1), BH_GANG_PENDING);
    CHECK_EQ(s->shelf.n_taken, 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_node_that_comes_back_in_time_breaks_nothing)
{
    struct bh_sched *s = nodes(2);
    submit(s, job_of(1, 1, 2, 8));
    cycle(s, 1);
    health(s, 0, BH_NONE, BH_HEALTH_FAILED, 10);
    cycle(s, 10);
    health(s, 0, BH_NONE, BH_HEALTH_OK, 20);
    cycle(s, 20);
    cycle(s, 10 + 2 * s->config.grace_ms);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK_EQ(bh_sched_job(s, 1)->broken_ms, 0);
    CHECK_EQ(s->stats.evictions, 0);
    bh_sched_free(s);
}

TEST(a_repair_stays_in_its_domain)
{
    struct bh_sched *s = plain_sched();
    add_model(s, 0, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        add_domain(s, i, BH_LEVEL_RACK, BH_NONE);
        for (uint32_t k = 0; k < 3; k++)
            add_node(s, 3 * i + k, 8, i);
    }
    add_queue(s, 1, 0, 0, 48);
    struct bh_gang_spec j = job_of(1, 1, 2, 8);
    j.within = j.prefer = BH_LEVEL_RACK;
    submit(s, j);
    cycle(s, 1);
    const uint32_t lost = node_of_job(s, 1), rack = lost / 3;
    health(s, lost, BH_NONE, BH_HEALTH_FAILED, 2);
    cycle(s, 2);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 1), 1);
    CHECK_EQ(bh_sched_places(s, decision_of(s, BH_DECIDE_MOVE, 1))->spot.node / 3, rack);
    health(s, node_of_job(s, 1), BH_NONE, BH_HEALTH_FAILED, 3); /* the third is the last of the rack */
    cycle(s, 3);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 1), 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(elastic_gangs_share_what_is_left)
{
    struct bh_sched *s = nodes(1);
    for (uint32_t i = 1; i <= 2; i++) {
        struct bh_gang_spec j = job_of(i, 1, 1, 1);
        j.roles[0].max = 8;
        submit(s, j);
    }
    submit(s, job_of(3, 1, 1, 2));
    cycle(s, 1);
    CHECK_EQ(state_of(s, 3), BH_GANG_RUNS);
    CHECK_EQ(bh_sched_job(s, 1)->extra, 2); /* one each in turn */
    CHECK_EQ(bh_sched_job(s, 2)->extra, 2);
    tell(s, BH_SCHED_FINISH, 3, 2);
    cycle(s, 2);
    CHECK_EQ(bh_sched_job(s, 1)->extra + bh_sched_job(s, 2)->extra, 6);
    submit(s, job_of(4, 1, 1,
                     1)); /* a job of the same queue and priority comes before members above a minimum */
    cycle(s, 3);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 1);
    cycle(s, 4);
    CHECK_EQ(state_of(s, 4), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(the_key_that_decided_is_said)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 1, 8);
    add_queue(s, 1, 0, 0, 2);
    add_queue(s, 2, 0, 0, 6);
    submit(s, job_of(1, 1, 1, 4)); /* over what its queue deserves */
    submit(s, job_of(2, 2, 1, 4));
    cycle(s, 1);
    CHECK_EQ(s->decisions.at[0].job, 2);
    CHECK_EQ(s->decisions.at[0].key, BH_TURN_ENTITLED);
    CHECK_EQ(s->decisions.at[0].other, 1);
    bh_sched_free(s);
}

TEST_MAIN
