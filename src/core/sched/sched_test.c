/* SPDX-License-Identifier: Apache-2.0 */
/* sched_test.c - events and what becomes of jobs, one thing at a time. */
#include "core/sched/sched_fixture.h"

/* Two queues that deserve half each of n nodes of eight. */
static struct bh_sched *halves(uint32_t n)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, n, 8);
    add_queue(s, 1, 0, 0, n * 4);
    add_queue(s, 2, 0, 0, n * 4);
    return s;
}

TEST(a_job_starts_and_ends)
{
    struct bh_sched *s = halves(1);
    submit(s, job_of(7, 1, 1, 2));
    CHECK_EQ(cycle(s, 10), 1);
    CHECK_EQ(told_of(s, BH_DECIDE_START, 7), 1);
    CHECK_EQ(bh_bits(bh_sched_places(s, decision_of(s, BH_DECIDE_START, 7))->spot.gpus), 2);
    CHECK_EQ(state_of(s, 7), BH_GANG_RUNS);
    CHECK_EQ(cycle(s, 11), 0);
    CHECK(sched_is_sound(s));
    tell(s, BH_SCHED_FINISH, 7, 20);
    CHECK_EQ(cycle(s, 20), 0);
    CHECK_EQ(state_of(s, 7), BH_GANG_FREE);
    CHECK_EQ(s->shelf.n_taken, 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_gang_is_all_or_nothing)
{
    struct bh_sched *s = halves(2);
    submit(s, job_of(1, 1, 1, 5));
    submit(s, job_of(2, 1, 1, 5));
    cycle(s, 1);
    CHECK_EQ(s->stats.runs, 2); /* 10 are more than the queue deserves, but nobody else wants them */
    submit(s, job_of(3, 1, 3, 2));
    cycle(s, 2); /* 6 GPUs are free, but for two members only */
    CHECK_EQ(s->shelf.milli_used, 10 * GPU);
    CHECK(sched_is_sound(s));
    CHECK_EQ(state_of(s, 3), BH_GANG_PENDING);
    CHECK_EQ(bh_sched_line(s, bh_sched_job(s, 3))->stuck, BH_STUCK_ROOM);
    bh_sched_free(s);
}

TEST(borrowed_room_is_given_back)
{
    struct bh_sched *s = halves(1);
    for (uint32_t i = 1; i <= 8; i++)
        submit(s, job_of(i, 1, 1, 1));
    cycle(s, 1);
    CHECK_EQ(s->stats.runs, 8);
    submit(s, job_of(20, 2, 2, 1));
    size_t n;
    bh_sched_decide(s, 1000, 0, &n);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 2);
    CHECK_EQ(told_of(s, BH_DECIDE_START, 0), 0); /* not before they are gone */
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 8)->other, 20);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 8)->rung, BH_RUNG_REQUEUE);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 8)->price, 999 * GPU);
    CHECK_EQ(state_of(s, 20), BH_GANG_BOUND);
    CHECK(sched_is_sound(s));
    tell(s, BH_SCHED_GONE, 8, 1001);
    bh_sched_decide(s, 1001, 0, &n);
    CHECK_EQ(n, 0); /* all on one node: it waits for both */
    tell(s, BH_SCHED_GONE, 7, 1002);
    bh_sched_decide(s, 1002, 0, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(told_of(s, BH_DECIDE_START, 20), 1);
    CHECK_EQ(state_of(s, 8), BH_GANG_PENDING);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(who_is_not_to_be_interrupted_stays)
{
    struct bh_sched *s = halves(1);
    for (uint32_t i = 1; i <= 4; i++) {
        struct bh_gang_spec j = job_of(i, 1, 1, 1);
        j.firm = true;
        submit(s, j);
    }
    for (uint32_t i = 5; i <= 8; i++) {
        struct bh_gang_spec j = job_of(i, 1, 1, 1);
        j.min_run_ms = 5000;
        submit(s, j);
    }
    cycle(s, 1);
    CHECK_EQ(s->stats.runs, 8);
    submit(s, job_of(20, 2, 4, 1));
    cycle(s, 1000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 0); /* all within their time */
    cycle(s, 6000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 4);
    for (uint32_t i = 1; i <= 4; i++)
        CHECK_EQ(state_of(s, i), BH_GANG_RUNS);
    cycle(s, 6001);
    CHECK_EQ(state_of(s, 20), BH_GANG_RUNS);
    bh_sched_free(s);
}

static bool refuse(void *context, const struct bh_sched *s, const struct bh_gang *g,
                   const struct bh_place *places, uint32_t n, uint64_t now_ms)
{
    (void)s;
    (void)places;
    (void)n;
    (void)now_ms;
    return g->id != *(const uint64_t *)context;
}

TEST(room_can_be_kept_for_others)
{
    struct bh_sched *s = halves(1);
    uint64_t id = 1;
    bh_sched_set_veto(s, refuse, &id);
    submit(s, job_of(1, 1, 1, 1));
    submit(s, job_of(2, 1, 1, 2));
    cycle(s, 1);
    CHECK_EQ(state_of(s, 1), BH_GANG_PENDING);
    CHECK_EQ(bh_sched_line(s, bh_sched_job(s, 1))->stuck, BH_STUCK_VETO);
    CHECK_EQ(state_of(s, 2), BH_GANG_RUNS);
    id = 0;
    cycle(s, 2);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    bh_sched_free(s);
}

TEST(a_bounded_cycle_goes_on_in_the_next)
{
    struct bh_sched *s = halves(4), *free_one = halves(4);
    for (uint32_t i = 1; i <= 32; i++) {
        submit(s, job_of(i, 1 + i % 2, 1, 1));
        submit(free_one, job_of(i, 1 + i % 2, 1, 1));
    }
    size_t n;
    uint32_t cycles = 0;
    do {
        bh_sched_decide(s, 1, 20, &n);
        cycles++;
    } while (bh_sched_stats(s).more && cycles < 100);
    bh_sched_decide(free_one, 1, 0, &n);
    CHECK(cycles > 2);
    CHECK_EQ(s->stats.runs, 32);
    CHECK_EQ(free_one->stats.runs, 32);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
    bh_sched_free(free_one);
}

TEST_MAIN
