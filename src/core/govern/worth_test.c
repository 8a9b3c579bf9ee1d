/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/worth.h"

#include "base/test.h"

static struct bh_worth fed(uint64_t done, uint64_t gpu_us, uint32_t times, uint64_t fade_us)
{
    struct bh_worth w = {0};
    while (times--)
        bh_worth_add(&w, done, 1, gpu_us, fade_us);
    return w;
}

TEST(less_time_is_no_less_worth)
{
    const struct bh_worth alone = fed(1000, 1000000, 20, 60000000), beside = fed(100, 100000, 20, 60000000);
    CHECK(bh_worth_is_known(&alone) && bh_worth_is_known(&beside));
    CHECK_EQ(bh_worth_milli(&alone), 1000000);
    CHECK_EQ(bh_worth_permille(bh_worth_milli(&alone), bh_worth_milli(&beside)), 1000);
}

TEST(less_work_in_the_same_time_is)
{
    const struct bh_worth alone = fed(1000, 1000000, 20, 60000000), beside = fed(61, 100000, 20, 60000000);
    CHECK_EQ(bh_worth_permille(bh_worth_milli(&alone), bh_worth_milli(&beside)), 610);
}

TEST(a_few_words_tell_nothing)
{
    const struct bh_worth few = fed(1000, 1000000, 9, 60000000), brief = fed(10, 1000, 20, 60000000),
                          none = {0};
    CHECK(!bh_worth_is_known(&few) && !bh_worth_is_known(&brief) && !bh_worth_is_known(&none));
    CHECK_EQ(bh_worth_milli(&none), 0);
    CHECK_EQ(bh_worth_permille(0, 1000), 0);
    CHECK_EQ(bh_worth_permille(1000, 0), 1); /* nothing at all is told, too */
}

TEST(what_is_old_fades)
{
    struct bh_worth w = fed(1000, 1000000, 100, 10000000);
    for (int i = 0; i < 60; i++)
        bh_worth_add(&w, 500, 1, 1000000, 10000000);
    CHECK(bh_worth_milli(&w) >= 500000 && bh_worth_milli(&w) < 510000);
}

TEST(huge_numbers_stay_numbers)
{
    struct bh_worth w = {0};
    for (int i = 0; i < 100; i++)
        bh_worth_add(&w, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    CHECK(w.done == UINT64_MAX && bh_worth_is_known(&w) && bh_worth_milli(&w) == UINT64_C(1000000000));
    const struct bh_worth dense = {.done = UINT64_MAX, .lines = 20, .gpu_us = 1000000};
    CHECK(bh_worth_milli(&dense) > UINT64_MAX / 1000);
    CHECK_EQ(bh_worth_permille(1, UINT64_MAX), 10000);
    CHECK_EQ(bh_worth_permille(UINT64_MAX, UINT64_MAX), 1000);
}

TEST_MAIN
