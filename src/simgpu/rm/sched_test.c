/* SPDX-License-Identifier: Apache-2.0 */
/* sched_test.c - turns and slices, against times that can be worked out by hand. */
#include "simgpu/rm/sched.h"

#include "base/mem.h"
#include "base/test.h"

#define MS     UINT64_C(1000000)
#define LONG   (3600 * 1000 * MS) /* more than any of these tests runs for */
#define SWITCH ((uint64_t)BH_SIM_SWITCH_NS)

static void drop(struct bh_sim_sched **s)
{
    bh_sim_sched_free(*s);
}

/* A scheduled group with the channel of the same number. */
static void add(struct bh_sim_sched *s, uint64_t group)
{
    bh_sim_group_add(s, group);
    bh_sim_channel_add(s, group, group);
    bh_sim_group_schedule(s, group);
}

static void add_slice(struct bh_sim_sched *s, uint64_t group, uint64_t us, uint64_t work_ns)
{
    add(s, group);
    (void)bh_sim_group_set_slice(s, group, us);
    (void)bh_sim_submit(s, group, work_ns);
}

TEST(nothing_to_run)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX);
    bh_sim_sched_advance(s, LONG);
    add(s, 1);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX);
    CHECK_EQ(bh_sim_sched_busy_ns(s), 0);
    CHECK_EQ(bh_sim_submit(s, 77, 5), 0); /* no such channel */
    CHECK_EQ(bh_sim_fence_done(s, 77), 0);
    bh_sim_group_add(s, 0);
    bh_sim_channel_add(s, 99, 5); /* no such group */
    CHECK_EQ(bh_sim_submit(s, 5, 1), 0);
    CHECK_EQ(bh_sim_group_slice(s, 0), 0);
}

TEST(an_idle_engine_runs_a_group_at_once)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add(s, 1);
    add(s, 2);
    bh_sim_sched_advance(s, MS);
    CHECK_EQ(bh_sim_submit(s, 1, 5 * MS), 1);
    CHECK_EQ(bh_sim_sched_next(s), 6 * MS); /* longer than its slice, and nobody else is there */
    bh_sim_sched_advance(s, 6 * MS - 1);
    CHECK_EQ(bh_sim_fence_done(s, 1), 0);
    bh_sim_sched_advance(s, 6 * MS);
    CHECK_EQ(bh_sim_fence_done(s, 1), 1);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX);
    bh_sim_sched_advance(s, 10 * MS);
    CHECK_EQ(bh_sim_submit(s, 1, MS), 2); /* the same group again: no switch */
    CHECK_EQ(bh_sim_sched_next(s), 11 * MS);
    bh_sim_sched_advance(s, 20 * MS);
    CHECK_EQ(bh_sim_submit(s, 2, MS), 1); /* another one: a switch */
    CHECK_EQ(bh_sim_sched_next(s), 21 * MS + SWITCH);
    bh_sim_sched_advance(s, 30 * MS);
    CHECK_EQ(bh_sim_sched_busy_ns(s), 7 * MS);
}

/* Over whole rounds each gets exactly its slices, and each turn costs a switch. */
static void shares(const uint64_t *slices_us, size_t n)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    uint64_t round = 0;
    for (size_t i = 0; i < n; i++) {
        add_slice(s, i + 1, slices_us[i], LONG);
        round += slices_us[i] * 1000 + SWITCH;
    }
    bh_sim_sched_advance(s, 100 * round);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(bh_sim_group_busy_ns(s, i + 1), 100 * slices_us[i] * 1000);
    CHECK_EQ(bh_sim_sched_busy_ns(s), 100 * (round - n * SWITCH));
    /* from the second group's turn on: the first has had one more */
    bh_sim_sched_advance(s, 100 * round + slices_us[0] * 1000 + SWITCH);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 101 * slices_us[0] * 1000);
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 100 * slices_us[1] * 1000);
}

TEST(shares_follow_the_slices)
{
    shares((const uint64_t[]){2000, 2000}, 2);
    shares((const uint64_t[]){9000, 1000}, 2);
    shares((const uint64_t[]){20000, 200}, 2);
    shares((const uint64_t[]){6000, 3000, 1000}, 3);
}

TEST(turns_are_changes_of_group)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add_slice(s, 1, 2000, LONG);
    bh_sim_sched_advance(s, 100 * MS); /* alone: no turns to take */
    CHECK_EQ(bh_sim_group_turns(s, 1), 1);
    CHECK(bh_sim_group_runs(s, 1));
    add_slice(s, 2, 2000, 10 * MS);
    bh_sim_sched_advance(s, 300 * MS);
    CHECK_EQ(bh_sim_group_turns(s, 2), 5); /* until its work was done */
    CHECK_EQ(bh_sim_group_turns(s, 1), 6);
    CHECK(bh_sim_group_runs(s, 1) && !bh_sim_group_runs(s, 2));
    bh_sim_channel_enable(s, 1, false);
    CHECK(!bh_sim_group_runs(s, 1));
    CHECK(bh_sim_group_turns(s, 3) == 0 && !bh_sim_group_runs(s, 3));
}

TEST(a_slice_counts_once_the_group_was_scheduled)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(0);
    bh_sim_group_add(s, 1);
    bh_sim_channel_add(s, 1, 1);
    CHECK_EQ(bh_sim_group_slice(s, 1), BH_SIM_SLICE_DEFAULT_US);
    CHECK(bh_sim_group_set_slice(s, 1, 9000));
    CHECK_EQ(bh_sim_group_slice(s, 1), 9000); /* reads back ... */
    (void)bh_sim_submit(s, 1, LONG);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX); /* not scheduled: not run */
    bh_sim_group_schedule(s, 1);
    add_slice(s, 2, 1000, LONG);
    bh_sim_sched_advance(s, 300 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 200 * MS); /* ... and is 2000 still */
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 100 * MS);
    CHECK(bh_sim_group_set_slice(s, 1, 9000));
    bh_sim_sched_advance(s, 1300 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 1100 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 200 * MS);
    CHECK(!bh_sim_group_set_slice(s, 1, 0));
    CHECK(!bh_sim_group_set_slice(s, 3, 5));
    CHECK_EQ(bh_sim_group_slice(s, 1), 9000);
}

TEST(a_slice_set_in_a_turn_counts_from_the_next)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(0);
    add_slice(s, 1, 4000, LONG);
    add_slice(s, 2, 1000, LONG);
    bh_sim_sched_advance(s, 1 * MS);
    CHECK(bh_sim_group_set_slice(s, 1, 1000));
    bh_sim_sched_advance(s, 5 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 4 * MS);
    bh_sim_sched_advance(s, 25 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 14 * MS);
    /* longer than time itself */
    CHECK(bh_sim_group_set_slice(s, 1, UINT64_MAX));
    bh_sim_sched_advance(s, 125 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 114 * MS);
}

TEST(a_pause_cuts_into_work_and_loses_nothing)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add(s, 1);
    for (int i = 0; i < 1000; i++)
        (void)bh_sim_submit(s, 1, 8 * MS);
    bh_sim_sched_advance(s, 2003 * MS); /* 250 pieces and 3 ms of the next */
    bh_sim_channel_enable(s, 1, false);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX);
    bh_sim_sched_advance(s, 4003 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 2003 * MS);
    CHECK_EQ(bh_sim_fence_done(s, 1), 250);
    CHECK_EQ(bh_sim_submit(s, 1, MS), 1001); /* work for a paused channel waits */
    bh_sim_channel_enable(s, 1, true);
    CHECK_EQ(bh_sim_sched_next(s), 4008 * MS);
    bh_sim_sched_advance(s, 10001 * MS); /* 8,001 ms of work and a pause of 2,000 */
    CHECK_EQ(bh_sim_fence_done(s, 1), 1001);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 8001 * MS);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX);
}

TEST(a_paused_group_leaves_its_turn_to_the_others)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add_slice(s, 1, 2000, LONG);
    add_slice(s, 2, 2000, LONG);
    bh_sim_sched_advance(s, MS);
    bh_sim_channel_enable(s, 1, false); /* in its own turn */
    bh_sim_sched_advance(s, 101 * MS + SWITCH);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 100 * MS);
    bh_sim_channel_enable(s, 1, true);
    /* 100 ms are whole slices of the second; the first is next. A pause in the switch to it ends that as well. */
    bh_sim_sched_advance(s, 101 * MS + SWITCH + SWITCH / 2);
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 100 * MS);
    bh_sim_channel_enable(s, 1, false);
    bh_sim_sched_advance(s, 103 * MS + 2 * SWITCH + SWITCH / 2);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 102 * MS);
}

TEST(channels_of_a_group_take_turns_by_piece)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add(s, 1);
    bh_sim_channel_add(s, 1, 10);
    for (int i = 0; i < 3; i++)
        (void)bh_sim_submit(s, 1, 3 * MS);
    for (int i = 0; i < 3; i++)
        (void)bh_sim_submit(s, 10, 1 * MS);
    bh_sim_sched_advance(s, 4 * MS);
    CHECK_EQ(bh_sim_fence_done(s, 1), 1);
    CHECK_EQ(bh_sim_fence_done(s, 10), 1);
    bh_sim_channel_enable(s, 1, false); /* one of two: the other goes on within the same group */
    CHECK_EQ(bh_sim_sched_next(s), 5 * MS);
    bh_sim_sched_advance(s, 6 * MS);
    CHECK_EQ(bh_sim_fence_done(s, 10), 3);
    bh_sim_channel_enable(s, 1, true);
    bh_sim_sched_advance(s, 12 * MS);
    CHECK_EQ(bh_sim_fence_done(s, 1), 3);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 12 * MS);
}

TEST(groups_that_wait_often_give_up_their_turns)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    uint64_t work = MS / 5, done[2] = {0};
    add_slice(s, 1, 7000, work);
    add_slice(s, 2, 3000, work);
    for (int i = 0; i < 2000; i++) {
        bh_sim_sched_advance(s, bh_sim_sched_next(s));
        for (uint64_t g = 1; g <= 2; g++) {
            if (bh_sim_fence_done(s, g) == done[g - 1])
                continue;
            done[g - 1]++;
            CHECK_EQ(bh_sim_submit(s, g, work), done[g - 1] + 1);
        }
    }
    CHECK_EQ(done[0], 1000); /* half each, whatever their slices */
    CHECK_EQ(done[1], 1000);
    CHECK_EQ(bh_sim_sched_busy_ns(s), 2000 * work);
}

TEST(levels_come_round_more_often)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(0);
    for (uint64_t g = 1; g <= 4; g++)
        add_slice(s, g, 1000, LONG);
    CHECK(bh_sim_group_set_level(s, 3, 1));
    CHECK(bh_sim_group_set_level(s, 4, 2));
    CHECK(!bh_sim_group_set_level(s, 4, 3));
    CHECK(!bh_sim_group_set_level(s, 5, 0));
    /* high, medium, high, low: the first low one comes in the fourth turn */
    bh_sim_sched_advance(s, 3 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 4), 2 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 3), MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 0);
    bh_sim_sched_advance(s, 80 * MS); /* ten times: low high medium high low high medium high */
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 10 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 10 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 3), 20 * MS);
    CHECK_EQ(bh_sim_group_busy_ns(s, 4), 40 * MS);
    CHECK(bh_sim_group_set_level(s, 3, 0));
    CHECK(bh_sim_group_set_level(s, 4, 0));
    bh_sim_sched_advance(s, 160 * MS);
    for (uint64_t g = 1; g <= 2; g++)
        CHECK_EQ(bh_sim_group_busy_ns(s, g), 30 * MS);
}

/* The rounds of a level must not depend on how time was cut up while one group was alone. */
TEST(a_level_set_in_a_turn_counts_as_served)
{
    for (uint64_t step = 1; step <= 10; step += 9) {
        BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(0);
        add_slice(s, 1, 1000, MS);
        CHECK(bh_sim_group_set_level(s, 1, 1));
        add(s, 2);
        bh_sim_sched_advance(s, MS); /* the medium one was served and has nothing left */
        add_slice(s, 3, 1000, LONG);
        CHECK(bh_sim_group_set_level(s, 3, 2));
        bh_sim_sched_advance(s, MS + 1);
        CHECK(bh_sim_group_set_level(s, 3, 1));
        for (uint64_t t = 1; t <= 10; t += step)
            bh_sim_sched_advance(s, (t + step) * MS);
        (void)bh_sim_submit(s, 2, MS);
        (void)bh_sim_submit(s, 1, MS);
        bh_sim_sched_advance(s, 12 * MS);
        CHECK_EQ(bh_sim_fence_done(s, 1), 2); /* a new round for it, before the low one */
        CHECK_EQ(bh_sim_fence_done(s, 2), 0);
    }
}

TEST(a_high_group_waits_for_one_slice_only)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    for (uint64_t g = 1; g <= 3; g++)
        add_slice(s, g, 200, LONG);
    add(s, 9);
    CHECK(bh_sim_group_set_level(s, 9, 2));
    bh_sim_sched_advance(s, 370 * 1000 + 100 * 1000); /* 100 us into the second group's slice */
    (void)bh_sim_submit(s, 9, 215 * 1000);
    CHECK_EQ(bh_sim_sched_next(s), (370 + 200 + 170 + 215) * 1000);
}

TEST(removal_in_the_middle)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add_slice(s, 1, 2000, LONG);
    add_slice(s, 2, 2000, 5 * MS);
    bh_sim_channel_add(s, 2, 20);
    (void)bh_sim_submit(s, 20, MS);
    bh_sim_sched_advance(s, MS);
    bh_sim_group_remove(s, 1);
    CHECK_EQ(bh_sim_group_busy_ns(s, 1), 0);
    CHECK_EQ(bh_sim_sched_busy_ns(s), MS); /* what it had still counts for the engine */
    CHECK_EQ(bh_sim_submit(s, 1, MS), 0);  /* its channel went with it */
    CHECK_EQ(bh_sim_sched_next(s), 6 * MS);
    bh_sim_sched_advance(s, 3 * MS);
    bh_sim_channel_remove(s, 2); /* while it runs: the other channel takes over */
    CHECK_EQ(bh_sim_sched_next(s), 4 * MS);
    bh_sim_sched_advance(s, 4 * MS);
    CHECK_EQ(bh_sim_fence_done(s, 20), 1);
    CHECK_EQ(bh_sim_group_busy_ns(s, 2), 3 * MS);
    bh_sim_group_remove(s, 2);
    bh_sim_group_remove(s, 2);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX);
    add_slice(s, 1, 2000, MS); /* an id may come back, and begins anew */
    CHECK_EQ(bh_sim_fence_done(s, 1), 0);
    CHECK_EQ(bh_sim_sched_next(s), 5 * MS);
}

TEST(time_does_not_go_backwards)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add_slice(s, 1, 2000, 3 * MS);
    bh_sim_sched_advance(s, 2 * MS);
    bh_sim_sched_advance(s, 1 * MS);
    CHECK_EQ(bh_sim_sched_next(s), 3 * MS);
    bh_sim_sched_advance(s, UINT64_MAX);
    CHECK_EQ(bh_sim_fence_done(s, 1), 1);
}

TEST(work_of_no_length_takes_a_nanosecond)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add_slice(s, 1, 2000, 0);
    CHECK_EQ(bh_sim_sched_next(s), 1);
    bh_sim_sched_advance(s, 1);
    CHECK_EQ(bh_sim_fence_done(s, 1), 1);
}

TEST(the_next_end_is_exact_far_ahead)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    uint64_t work = 10001 * MS; /* 5,001 turns, the last one of half a slice */
    add_slice(s, 1, 2000, work);
    for (uint64_t g = 2; g <= 10; g++)
        add_slice(s, g, 2000, 2 * work);
    uint64_t end = 5000 * 10 * (2 * MS + SWITCH) + MS;
    CHECK_EQ(bh_sim_sched_next(s), end);
    bh_sim_sched_advance(s, end - 1);
    CHECK_EQ(bh_sim_fence_done(s, 1), 0);
    CHECK_EQ(bh_sim_sched_next(s), end);
    bh_sim_sched_advance(s, end);
    CHECK_EQ(bh_sim_fence_done(s, 1), 1);
}

static void add_levels(struct bh_sim_sched *s, uint64_t each, uint64_t work_ns)
{
    for (uint64_t g = 1; g <= 3 * each; g++) {
        add_slice(s, g, 200, work_ns);
        (void)bh_sim_group_set_level(s, g, (uint32_t)(g % 3));
    }
}

/* 8,004,006,000 turns until the order is what it was: nobody can walk that, and nobody has to. */
TEST(the_next_end_of_very_many_is_not_before_it_is_said)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add_levels(s, 2000, LONG);
    for (int i = 0; i < 20; i++) {
        uint64_t next = bh_sim_sched_next(s), now = (uint64_t)i * MS;
        CHECK(next > now && next < UINT64_MAX);
        bh_sim_sched_advance(s, now + MS);
    }
}

/* Whoever asks again each time it was told to meets the end all the same, and at the right time. */
TEST(asking_again_leads_to_the_end)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(0), *straight = bh_sim_sched_new(0);
    const uint64_t each = 40,
                   work = 100 * MS; /* 500 turns: of a high one, within the first cycle of 67,240 */
    add_levels(s, each, work);
    add_levels(straight, each, work);
    uint64_t at = 0, asked = 0, done = 0;
    while (!done && asked < 100) {
        uint64_t next = bh_sim_sched_next(s);
        CHECK(next > at);
        bh_sim_sched_advance(s, next - 1);
        for (uint64_t g = 1; g <= 3 * each; g++)
            CHECK_EQ(bh_sim_fence_done(s, g), 0); /* nothing is done before it */
        bh_sim_sched_advance(s, next);
        at = next;
        asked++;
        for (uint64_t g = 1; g <= 3 * each; g++)
            done += bh_sim_fence_done(s, g);
    }
    CHECK_EQ(done, 1);
    CHECK(asked > 1 && asked < 100);
    /* Time passed in one step knows the same end. */
    bh_sim_sched_advance(straight, at - 1);
    for (uint64_t g = 1; g <= 3 * each; g++)
        CHECK_EQ(bh_sim_fence_done(straight, g), 0);
    bh_sim_sched_advance(straight, at);
    CHECK_EQ(bh_sim_sched_busy_ns(straight), at);
}

TEST(a_time_past_all_times_is_no_overflow)
{
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    add_slice(s, 1, 1, UINT64_MAX);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX - 1);
    add_slice(s, 2, UINT64_MAX, UINT64_MAX);
    add_slice(s, 3, 1, UINT64_MAX);
    bh_sim_sched_advance(s, 10 * MS);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX - 1);
    CHECK_EQ(bh_sim_sched_busy_ns(s), 10 * MS - SWITCH);
}

TEST(a_thousand_groups_of_twenty_channels)
{
    enum { GROUPS = 1000, CHANNELS = 20, PIECES = 10 };
    BH_AUTO(drop) struct bh_sim_sched *s = bh_sim_sched_new(SWITCH);
    for (uint64_t g = 1; g <= GROUPS; g++) {
        bh_sim_group_add(s, g);
        bh_sim_group_schedule(s, g);
        for (uint64_t c = 1; c <= CHANNELS; c++)
            bh_sim_channel_add(s, g, g * 100 + c);
    }
    for (uint64_t p = 1; p <= PIECES; p++)
        for (uint64_t g = 1; g <= GROUPS; g++)
            for (uint64_t c = 1; c <= CHANNELS; c++)
                CHECK_EQ(bh_sim_submit(s, g * 100 + c, MS / 10), p);
    uint64_t work = (uint64_t)GROUPS * CHANNELS * PIECES * (MS / 10);
    /* 20 ms of work each are ten turns of 2 ms each, in ten rounds */
    uint64_t end = work + (10 * GROUPS - 1) * SWITCH;
    bh_sim_sched_advance(s, end - 1);
    CHECK_EQ(bh_sim_fence_done(s, GROUPS * 100 + CHANNELS), PIECES - 1);
    bh_sim_sched_advance(s, end);
    for (uint64_t g = 1; g <= GROUPS; g++)
        for (uint64_t c = 1; c <= CHANNELS; c++)
            CHECK_EQ(bh_sim_fence_done(s, g * 100 + c), PIECES);
    CHECK_EQ(bh_sim_sched_busy_ns(s), work);
    for (uint64_t g = GROUPS; g >= 1; g--)
        bh_sim_group_remove(s, g);
    CHECK_EQ(bh_sim_sched_next(s), UINT64_MAX);
}

TEST_MAIN
