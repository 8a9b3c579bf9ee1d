/* SPDX-License-Identifier: Apache-2.0 */
/* fair_test.c - shares by weight between floors and limits, and what max-min fair means for any of them. */
#include "core/govern/fair.h"

#include "base/choice.h"
#include "base/test.h"

static uint64_t sum_of(const struct bh_fair *at, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += at[i].share_ppm;
    return sum;
}

TEST(by_weight)
{
    struct bh_fair f[] = {{.weight = 70, .limit_ppm = BH_FAIR_WHOLE},
                          {.weight = 30, .limit_ppm = BH_FAIR_WHOLE}};
    bh_fair_divide(f, 2);
    CHECK(f[0].share_ppm >= 699999 && f[0].share_ppm <= 700001);
    CHECK_EQ(sum_of(f, 2), BH_FAIR_WHOLE);
}

TEST(what_one_leaves_the_others_share)
{
    struct bh_fair f[] = {{.weight = 50, .limit_ppm = 100000},
                          {.weight = 40, .limit_ppm = BH_FAIR_WHOLE},
                          {.weight = 10, .limit_ppm = BH_FAIR_WHOLE}};
    bh_fair_divide(f, 3);
    CHECK_EQ(f[0].share_ppm, 100000);
    CHECK(f[1].share_ppm >= 719998 && f[1].share_ppm <= 720002);
    CHECK_EQ(sum_of(f, 3), BH_FAIR_WHOLE);
}

TEST(limits_below_the_card_leave_it_empty)
{
    struct bh_fair f[] = {{.weight = 1, .limit_ppm = 100000}, {.weight = 9, .limit_ppm = 200000}};
    bh_fair_divide(f, 2);
    CHECK_EQ(f[0].share_ppm, 100000);
    CHECK_EQ(f[1].share_ppm, 200000);
}

TEST(a_floor_lifts_the_light_one)
{
    struct bh_fair f[] = {{.weight = 10000, .limit_ppm = BH_FAIR_WHOLE},
                          {.weight = 1, .floor_ppm = 50000, .limit_ppm = BH_FAIR_WHOLE}};
    bh_fair_divide(f, 2);
    CHECK_EQ(f[1].share_ppm, 50000);
    CHECK_EQ(f[0].share_ppm, 950000);
}

TEST(floors_that_do_not_fit_are_cut)
{
    struct bh_fair f[] = {{.weight = 1, .floor_ppm = 900000, .limit_ppm = BH_FAIR_WHOLE},
                          {.weight = 1, .floor_ppm = 900000, .limit_ppm = BH_FAIR_WHOLE},
                          {.weight = 1, .floor_ppm = 900000, .limit_ppm = 10000}};
    bh_fair_divide(f, 3);
    CHECK(f[2].share_ppm <= 10000);
    CHECK(f[0].share_ppm > 490000 && f[1].share_ppm > 490000);
    CHECK(sum_of(f, 3) <= BH_FAIR_WHOLE);
}

/* Nobody below its limit is poorer, by weight, than somebody above its floor. */
static bool is_fair(const struct bh_fair *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            const uint64_t a = (uint64_t)at[i].share_ppm * at[j].weight,
                           b = (uint64_t)at[j].share_ppm * at[i].weight;
            const uint64_t slack = 2 * ((uint64_t)at[i].weight + at[j].weight);
            if (at[i].share_ppm < at[i].limit_ppm && at[j].share_ppm > at[j].floor_ppm && a + slack < b)
                return false;
        }
    }
    return true;
}

TEST(any_division_is_max_min_fair)
{
    uint8_t bytes[4096];
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_fair f[128];
        uint64_t limits = 0, floors = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        const size_t n = 1 + bh_choose(&c, 128);
        for (size_t i = 0; i < n; i++) {
            f[i] = (struct bh_fair){.weight = 1 + bh_choose(&c, BH_FAIR_WEIGHT_MAX),
                                    .floor_ppm = bh_choose(&c, 3) ? 0 : bh_choose(&c, 20000),
                                    .limit_ppm =
                                        bh_choose(&c, 2) ? BH_FAIR_WHOLE : bh_choose(&c, BH_FAIR_WHOLE)};
        }
        bh_fair_divide(f, n);
        for (size_t i = 0; i < n; i++) {
            CHECK(f[i].share_ppm <= f[i].limit_ppm && f[i].share_ppm >= f[i].floor_ppm);
            limits += f[i].limit_ppm;
            floors += f[i].floor_ppm;
        }
        CHECK(floors <= BH_FAIR_WHOLE);
        CHECK_EQ(sum_of(f, n), limits < BH_FAIR_WHOLE ? limits : BH_FAIR_WHOLE);
        CHECK(is_fair(f, n));
    }
}

TEST_MAIN
