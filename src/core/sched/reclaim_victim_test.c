/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim_victim_test.c - in which order who could go. */
#include "core/sched/reclaim.h"

#include "core/sched/sched_fixture.h"

enum { ALL = 32 };

/* Who could go for a job of queue 1 that wants so much; their ids, negative for one member of an elastic gang. */
static uint32_t victims_for(struct bh_sched *s, uint32_t n_gpus, bool own, int64_t *ret)
{
    uint32_t shape, job, hold, n = 0;
    const struct bh_gang_spec j = job_of(1000, 1, 1, n_gpus);
    if (bh_shape_intern(s, &j, &shape, NULL) < 0)
        abort();
    struct bh_search f = {.taker = {.queue = 1, .amount = s->shapes.at[shape].least},
                          .priority = own ? 9 : 0,
                          .models = UINT64_MAX,
                          .shape = &s->shapes.at[shape],
                          .scope = BH_QUEUE_ROOT,
                          .others = true,
                          .own = own,
                          .entitled = true};
    s->stats.cycles++;
    s->victims.n = 0;
    s->steps_left = UINT64_MAX;
    bh_reclaim_prepare(s);
    bh_search_open(s, &f);
    while (n < ALL && bh_search_next(s, &f, &job, &hold))
        ret[n++] = hold == BH_NONE ? (int64_t)s->gangs.at[job].id : -(int64_t)s->gangs.at[job].id;
    return n;
}

static struct bh_sched *three_queues(uint32_t nodes)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, nodes, 8);
    add_queue(s, 1, 0, 0, 8 * nodes);
    add_queue(s, 2, 0, 0, 1);
    add_queue(s, 3, 0, 0, 2);
    return s;
}

TEST(from_the_most_saturated_queue_and_the_lowest_priority)
{
    struct bh_sched *s = three_queues(1);
    int64_t at[ALL];
    for (uint32_t i = 1; i <= 8; i++) {
        struct bh_gang_spec j = job_of(i, i <= 4 ? 2 : 3, 1, 1);
        j.priority = i == 2 ? 1 : 0;
        submit(s, j);
    }
    submit(s, job_of(100, 1, 8, 1)); /* so that shares are what they deserve */
    s->config.victims_max = 0;
    size_t k;
    bh_sched_decide(s, 1, 0, &k);
    CHECK_EQ(s->stats.runs, 8);
    tell(s, BH_SCHED_TICK, 0, 10);
    bh_queues_refresh(&s->queues, 10);
    const uint32_t n = victims_for(s, 1, false, at);
    CHECK_EQ(n, 8);
    CHECK_EQ(at[0], 4); /* four of one against four of two; the youngest */
    CHECK_EQ(at[1], 3);
    CHECK_EQ(at[2], 1); /* two of one against four of two are equal: the older queue */
    CHECK_EQ(at[3], 8);
    int32_t last_of_2 = -1, high = -1;
    for (int32_t i = 0; i < 8; i++) {
        last_of_2 = at[i] <= 4 ? i : last_of_2;
        high = at[i] == 2 ? i : high;
    }
    CHECK_EQ(last_of_2, high); /* of its queue it goes last */
    bh_sched_free(s);
}

TEST(elastic_members_then_those_that_leave_enough)
{
    struct bh_sched *s = three_queues(1);
    int64_t at[ALL];
    struct bh_gang_spec j = job_of(1, 2, 1, 1);
    j.roles[0].max = 3;
    submit(s, j);
    submit(s, job_of(2, 2, 1, 1));
    submit(s, job_of(3, 2, 1, 2));
    submit(s, job_of(4, 2, 1, 1));
    s->config.victims_max = 0;
    cycle(s, 1);
    submit(s, job_of(100, 1, 8, 1));
    tell(s, BH_SCHED_TICK, 0, 10);
    bh_queues_refresh(&s->queues, 10);
    const uint32_t n = victims_for(s, 2, false, at);
    CHECK_EQ(n, 6);
    CHECK_EQ(at[0], -1);
    CHECK_EQ(at[1], -1);
    CHECK_EQ(at[2], 3); /* two GPUs at once, though it loses most */
    CHECK_EQ(at[3], 4);
    CHECK_EQ(at[4], 2);
    CHECK_EQ(at[5], 1);
    bh_sched_free(s);
}

TEST(who_is_within_its_share_or_protected_is_not_looked_at)
{
    struct bh_sched *s = three_queues(1);
    int64_t at[ALL];
    struct bh_gang_spec firm = job_of(1, 2, 1, 1), young = job_of(2, 3, 1, 1);
    firm.firm = true;
    young.min_run_ms = 100;
    submit(s, firm);
    submit(s, young);
    submit(s, job_of(3, 3, 1, 2));
    submit(s, job_of(4, 1, 1, 2));
    s->config.victims_max = 0;
    cycle(s, 1);
    submit(s, job_of(100, 1, 8, 1));
    tell(s, BH_SCHED_TICK, 0, 10);
    bh_queues_refresh(&s->queues, 10);
    CHECK_EQ(victims_for(s, 1, false, at), 1);
    CHECK_EQ(at[0], 3);
    CHECK_EQ(victims_for(s, 1, true, at), 2); /* with the taker's own, of lower priority */
    CHECK_EQ(at[0], 3);
    CHECK_EQ(at[1], 4);
    tell(s, BH_SCHED_TICK, 0, 200);
    CHECK_EQ(victims_for(s, 1, false, at), 2);
    bh_sched_free(s);
}

/* The cheapest rung that could be enough counts before the time that would be lost. */
TEST(by_what_the_cheapest_rung_costs)
{
    struct bh_sched *s = three_queues(1);
    static const uint8_t what[] = {BH_CAN_PAUSE | BH_CAN_REQUEUE, BH_CAN_SUSPEND | BH_CAN_REQUEUE,
                                   BH_CAN_REQUEUE, BH_CAN_SUSPEND};
    for (uint32_t i = 0; i < 4; i++) {
        struct bh_gang_spec j = share_of(1 + i, 2, 500, 1000);
        j.can = what[i];
        j.roles[0].image_mib = i == 3 ? 135000 : 27; /* 100 s, or 20 ms */
        submit(s, j);
        cycle(s, 1 + 1000 * i); /* the oldest has most to lose */
    }
    uint32_t job[4];
    for (uint32_t i = 0; i < 4; i++)
        job[i] = (uint32_t)(bh_sched_job(s, 1 + i) - s->gangs.at);
    tell(s, BH_SCHED_TICK, 0, 10000);
    for (uint32_t i = 0; i < 3; i++) /* for time: paused, suspended, started again, and 100 s of image */
        CHECK(bh_victim_before(s, job[i], job[i + 1], true) &&
              !bh_victim_before(s, job[i + 1], job[i], true));
    CHECK(bh_victim_before(s, job[1], job[2], false) && bh_victim_before(s, job[2], job[0], false) &&
          bh_victim_before(s, job[0], job[3], false)); /* for a whole GPU: it would have to start again */
    bh_sched_free(s);
}

TEST_MAIN
