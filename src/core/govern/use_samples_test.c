/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/test.h"
#include "core/govern/use.h"

TEST(they_are_in_order_whatever_order_they_come_in)
{
    static const uint64_t orders[][4] = {{10, 20, 30, 40}, {40, 30, 20, 10}, {20, 40, 10, 30}};
    for (size_t k = 0; k < BH_COUNT_OF(orders); k++) {
        struct bh_use_samples s = {0};
        for (size_t i = 0; i < 4; i++)
            bh_use_samples_add(&s, orders[k][i], (uint32_t)orders[k][i] * 10);
        bh_use_samples_follow(&s, 7);
        CHECK(s.n == 4 && s.n_timed == 4 && s.mean == 250 && s.last == 400);
        for (uint32_t i = 0; i < 4; i++) {
            CHECK(s.at[i].to_ns == 10 * (i + 1) && s.at[i].permille == 100 * (i + 1));
            CHECK_EQ(s.at[i].from_ns, i ? 10 * i : UINT64_C(7));
        }
    }
}

/* Of those that do not fit it is known how much they say, but not of what time the oldest in the list is. */
TEST(of_many_the_newest_are_kept)
{
    for (int down = 0; down < 2; down++) {
        struct bh_use_samples s = {0};
        for (uint32_t i = 0; i < BH_USE_TIMED + 3; i++) {
            const uint32_t k = down ? BH_USE_TIMED + 3 - i : i + 1;
            bh_use_samples_add(&s, 100 * k, k);
        }
        bh_use_samples_follow(&s, 5);
        CHECK(s.n == BH_USE_TIMED + 3 && s.n_timed == BH_USE_TIMED);
        CHECK(s.mean == (BH_USE_TIMED + 4) / 2 && s.last == BH_USE_TIMED + 3);
        for (uint32_t i = 0; i < BH_USE_TIMED; i++)
            CHECK_EQ(s.at[i].to_ns, UINT64_C(100) * (i + 4));
        CHECK_EQ(s.at[0].from_ns, s.at[0].to_ns);
        CHECK_EQ(s.at[1].from_ns, s.at[0].to_ns);
    }
}

TEST(two_of_one_time_are_both_there)
{
    struct bh_use_samples s = {0};
    for (uint32_t i = 0; i < 3; i++)
        bh_use_samples_add(&s, 100, 10 * (i + 1));
    bh_use_samples_follow(&s, 40);
    CHECK(s.n == 3 && s.n_timed == 3 && s.mean == 20 && s.last == 30);
    CHECK(s.at[0].from_ns == 40 && s.at[1].from_ns == 100 && s.at[2].from_ns == 100);
}

TEST_MAIN
