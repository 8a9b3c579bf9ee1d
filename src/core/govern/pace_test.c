/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/pace.h"

#include "base/test.h"

static struct bh_pace pace;
static struct bh_govern_in in;
static struct bh_govern_out out;

static void begin(uint8_t mode, uint32_t n)
{
    pace = (struct bh_pace){0};
    in = (struct bh_govern_in){.elapsed_us = 100000, .n = n};
    out = (struct bh_govern_out){.mode = mode, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        in.at[i].id = out.at[i].id = i + 1;
        out.at[i].active = 1;
    }
}

static uint32_t next(bool slices_only)
{
    return in.elapsed_us = bh_pace_us(&pace, slices_only, &in, &out);
}

/* How many steps until they are far apart; 99: never. */
static int steps_until_even(void)
{
    for (int i = 1; i < 99; i++)
        if (next(true) == BH_PACE_ALONE_EVEN_US)
            return i;
    return 99;
}

TEST(with_pauses_as_ever)
{
    begin(BH_GOVERN_FREE, 1);
    CHECK_EQ(next(false), BH_PACE_CALM_US);
    in.at[0].cap_permille = 500;
    CHECK_EQ(next(false), BH_PACE_STEP_US);
    begin(BH_GOVERN_SLICES, 2);
    CHECK_EQ(next(false), BH_PACE_STEP_US);
    out.settled = 1;
    CHECK_EQ(next(false), BH_PACE_EVEN_US);
    CHECK(!pace.seldom);
}

/* Each look asks for all of them. */
TEST(many_that_are_settled_are_looked_at_seldom)
{
    begin(BH_GOVERN_SLICES, BH_GOVERN_FEW + 1);
    CHECK_EQ(next(false), BH_PACE_STEP_US);
    out.settled = 1;
    CHECK_EQ(next(false), BH_PACE_MANY_EVEN_US);
    CHECK(!pace.seldom);
    out.at[0].light = 1; /* and so a few compete */
    CHECK_EQ(next(false), BH_PACE_EVEN_US);
    out.at[0].light = 0;
    out.at[1].active = 0;
    CHECK_EQ(next(false), BH_PACE_EVEN_US);
    out.at[1].active = 1;
    out.mode = BH_GOVERN_FREE;
    in.at[0].cap_permille = 500;
    CHECK_EQ(next(false), BH_PACE_EVEN_US);
}

TEST(by_slices_alone_slowly_a_second_after_the_crowd_changed)
{
    begin(BH_GOVERN_SLICES, 8);
    CHECK_EQ(steps_until_even(), 11);
    CHECK(pace.seldom);
    out.at[3].active = 0;
    CHECK_EQ(next(true), BH_PACE_ALONE_US);
    CHECK_EQ(steps_until_even(), 10);
    out.at[3].light = 1;
    CHECK_EQ(next(true), BH_PACE_ALONE_US);
    CHECK_EQ(steps_until_even(), 10);
    out.n = in.n = 7;
    CHECK_EQ(next(true), BH_PACE_ALONE_US);
    CHECK_EQ(steps_until_even(), 10);
    out.at[6].id = 99; /* one for another */
    CHECK_EQ(next(true), BH_PACE_ALONE_US);
}

TEST(a_correction_is_no_reason_to_look_sooner)
{
    begin(BH_GOVERN_SLICES, 8);
    CHECK_EQ(steps_until_even(), 11);
    for (uint32_t i = 0; i < 20; i++) {
        out.at[i % 8].corrections++;
        out.at[i % 8].slice_us += i;
        out.at[i % 8].delivered_permille = i;
        CHECK_EQ(next(true), BH_PACE_ALONE_EVEN_US);
    }
}

TEST(who_is_alone_is_looked_at_as_ever)
{
    begin(BH_GOVERN_FREE, 1);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(next(true), BH_PACE_CALM_US);
    CHECK(!pace.seldom);
}

TEST_MAIN
