/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/tally.h"

#include "base/test.h"

#define MS UINT64_C(1000000)
enum { STEP_US = 5000, STEPS = 40 /* in an interval */ };

static struct bh_tally_card card;
static struct bh_tally tally;
static struct bh_governed leases[BH_STATE_LEASES]; /* more than have a place */
static uint64_t now;
static bool seldom; /* as where nobody is paused */

static void begin(void)
{
    memset(&card, 0, sizeof(card));
    memset(leases, 0, sizeof(leases));
    for (size_t i = 0; i < BH_COUNT_OF(leases); i++)
        leases[i].id = i + 1;
    now = 1000 * MS;
}

static struct bh_govern_told told_of(bool active, bool paused)
{
    return (struct bh_govern_told){.slice_us = 2000,
                                   .active = active,
                                   .paused = paused,
                                   .seen = 1,
                                   .target_permille = 500,
                                   .held_permille = 480};
}

/* A step in which the first two leases had that much of it. */
static bool step(struct bh_govern_told a, struct bh_sense_got got_a, struct bh_govern_told b,
                 struct bh_sense_got got_b)
{
    now += STEP_US * UINT64_C(1000);
    bh_tally_begin(&card, STEP_US);
    bh_tally_add(&card, &leases[0], STEP_US, &a, &got_a);
    bh_tally_add(&card, &leases[1], STEP_US, &b, &got_b);
    return bh_tally_end(&card, now, seldom, &tally);
}

static uint32_t steps(uint32_t n, struct bh_govern_told a, struct bh_sense_got got_a, struct bh_govern_told b,
                      struct bh_sense_got got_b)
{
    uint32_t closed = 0;
    while (n--)
        closed += step(a, got_a, b, got_b);
    return closed;
}

TEST(by_slices_alone_an_interval_is_five_seconds)
{
    const struct bh_sense_got half = {.gpu_ns = 2 * MS, .turns = 4, .turn_ns = 2400000};
    begin();
    seldom = true;
    const uint32_t before = steps(999, told_of(true, false), half, told_of(true, false), half),
                   then = steps(1, told_of(true, false), half, told_of(true, false), half);
    seldom = false;
    CHECK_EQ(before, 0);
    CHECK_EQ(then, 1);
}

TEST(an_interval_is_a_fifth_of_a_second_and_the_first_is_fresh)
{
    const struct bh_sense_got half = {.gpu_ns = 2 * MS, .turns = 4, .turn_ns = 2400000},
                              rest = {.gpu_ns = 3 * MS, .turns = 1, .turn_ns = 3 * MS};
    begin();
    CHECK_EQ(steps(STEPS - 1, told_of(true, false), half, told_of(true, false), rest), 0);
    CHECK_EQ(steps(1, told_of(true, false), half, told_of(true, false), rest), 1);
    CHECK(tally.fresh && tally.n == 2 && tally.at_ns == now);
    CHECK_EQ(steps(STEPS, told_of(true, false), half, told_of(true, false), rest), 1);
    CHECK(!tally.fresh && !tally.left_out && tally.at[1].lease == 2);
    CHECK(tally.at[0].gpu_permille == 400 && tally.at[1].gpu_permille == 600);
    CHECK(tally.at[0].held_permille == 480 && tally.at[0].target_permille == 500);
    CHECK_EQ(tally.at[0].turn_ns, 600000); /* as they were on the card */
    CHECK_EQ(tally.at[1].turn_ns, 0);      /* its slice was over */
    CHECK(tally.at[0].active && tally.at[0].there_permille == 1000 && !tally.at[0].asks_little);
}

TEST(what_is_not_known_stays_unknown)
{
    const struct bh_sense_got none = {.gpu_ns = BH_GOVERN_NO_SAMPLE}, few = {.gpu_ns = 1000};
    struct bh_govern_told blind = told_of(true, false);
    begin();
    blind.seen = 0;
    leases[1].latency = 1;
    CHECK_EQ(steps(STEPS, blind, none, told_of(true, false), few), 1);
    CHECK_EQ(tally.at[0].gpu_permille, BH_CULPRIT_UNKNOWN);
    CHECK_EQ(tally.at[0].held_permille, BH_CULPRIT_UNKNOWN);
    CHECK(tally.at[1].gpu_permille == 0 && tally.at[1].turn_ns == 0 && tally.at[1].asks_little);
}

TEST(who_is_paused_does_not_copy_and_who_is_idle_may)
{
    const struct bh_sense_got none = {0};
    const struct bh_govern_told idle = told_of(false, false);
    begin();
    CHECK_EQ(steps(STEPS / 2, told_of(true, true), none, told_of(true, false), none), 0);
    CHECK_EQ(steps(STEPS / 2, told_of(true, false), none, told_of(true, false), none), 1);
    CHECK(tally.at[0].there_permille == 500 && tally.at[1].there_permille == 1000);
    CHECK(tally.at[0].active && tally.at[1].active);
    CHECK_EQ(steps(STEPS, told_of(true, false), none, idle, none), 1);
    CHECK(tally.at[0].active && !tally.at[1].active && tally.at[1].there_permille == 1000);
    CHECK(tally.at[0].works_permille == 1000 && tally.at[1].works_permille == 0);
}

TEST(it_goes_on_for_a_while_when_nobody_competes_then_seldom_and_then_not)
{
    const struct bh_sense_got some = {.gpu_ns = MS};
    const struct bh_govern_told busy = told_of(true, false), idle = told_of(false, false);
    begin();
    CHECK_EQ(steps(400, busy, some, idle, some), 2); /* alone: once a second */
    CHECK(!tally.fresh && tally.at[0].active);
    CHECK_EQ(steps(2 * STEPS, busy, some, busy, some), 2);
    CHECK(!tally.fresh);
    CHECK_EQ(steps(25 * STEPS + 5 * 200, busy, some, idle, some), 25 + 5);
    CHECK_EQ(steps(2000, idle, some, idle, some), 0);
    CHECK_EQ(steps(STEPS, busy, some, busy, some), 1);
    CHECK(tally.fresh);
}

TEST(a_step_of_no_time_and_one_lease)
{
    const struct bh_sense_got none = {.gpu_ns = BH_GOVERN_NO_SAMPLE}, all = {.gpu_ns = UINT64_C(9) << 60};
    const struct bh_govern_told busy = told_of(true, false);
    begin();
    bh_tally_begin(&card, 0);
    bh_tally_add(&card, &leases[0], 0, &busy, &none);
    CHECK(!bh_tally_end(&card, now, false, &tally));
    bh_tally_begin(&card, 1000000);
    bh_tally_add(&card, &leases[0], 1000000, &busy, &all);
    CHECK(bh_tally_end(&card, now + 1000 * MS, false, &tally));
    CHECK(tally.n == 1 && tally.at[0].gpu_permille == 1000 && tally.at[0].active);
}

/* With so many who work, of whom all but `light` take turns. */
static bool a_step(size_t n, size_t light)
{
    const struct bh_sense_got some = {.gpu_ns = MS};
    bh_tally_begin(&card, STEP_US);
    for (size_t k = 0; k < n; k++) {
        struct bh_govern_told told = told_of(true, false);
        told.light = k < light;
        bh_tally_add(&card, &leases[k], STEP_US, &told, &some);
    }
    return bh_tally_end(&card, now += STEP_US * UINT64_C(1000), seldom, &tally);
}

static int steps_until_closed(size_t n, size_t light)
{
    int i = 1;
    while (!a_step(n, light) && i < 2000)
        i++;
    return i;
}

TEST(who_has_no_place_is_not_hidden)
{
    begin();
    CHECK_EQ(steps_until_closed(BH_COUNT_OF(leases), 0), 30);
    CHECK(tally.n == BH_TALLY_LEASES && tally.left_out);
}

TEST(of_many_an_account_is_short_and_a_gap_comes_after_it)
{
    begin();
    CHECK(steps_until_closed(8, 0) == 30 && tally.fresh); /* 150 ms */
    for (int i = 0; i < 20; i++) {
        CHECK(steps_until_closed(8, 0) == 30 && !tally.fresh && !tally.gap && tally.n == 8);
        CHECK(steps_until_closed(8, 0) == 100 + 7 * ((i + 1) % BH_TALLY_GAPS) && tally.gap);
    }
    CHECK(steps_until_closed(6, 0) == 30 && !tally.gap);
    CHECK(steps_until_closed(5, 0) == STEPS && tally.gap); /* few again: the gap is over */
    CHECK(steps_until_closed(5, 0) == STEPS && !tally.gap && !tally.fresh);
    CHECK(steps_until_closed(5, 0) == STEPS && !tally.gap && !tally.fresh);
}

TEST(who_rests_for_a_step_is_still_one_of_many)
{
    begin();
    CHECK(steps_until_closed(6, 0) == 30 && tally.fresh);
    CHECK(steps_until_closed(6, 0) == 30 && !tally.gap);
    CHECK(!a_step(6, 0) && !a_step(5, 0));
    CHECK(steps_until_closed(5, 0) == 100 + 7 - 2 && tally.gap);
}

TEST(by_slices_alone_there_is_no_gap)
{
    begin();
    seldom = true;
    for (int i = 0; i < 4; i++)
        CHECK(steps_until_closed(8, 0) == 1000 && tally.fresh == (i == 0) && !tally.gap);
    seldom = false;
}

/* Else a crowd of those could keep the looks apart. */
TEST(who_takes_no_turns_is_not_one_of_many)
{
    begin();
    leases[19].latency = 1;
    CHECK(steps_until_closed(20, 14) == STEPS && tally.fresh);
    CHECK(steps_until_closed(20, 14) == STEPS && !tally.fresh);
    CHECK(steps_until_closed(20, 14) == STEPS && !tally.fresh);
}

TEST_MAIN
