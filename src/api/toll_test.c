/* SPDX-License-Identifier: Apache-2.0 */
#include "api/toll.h"

#include "base/test.h"

#include <stdio.h>

TEST(who_took_all_of_his_purse_waits_and_nobody_else_does)
{
    static struct bh_toll t;
    uint64_t wait;
    CHECK(bh_toll_may(&t, "user:a", 1000, 5000, &wait));
    bh_toll_pay(&t, "user:a", 900, 5000);
    CHECK(bh_toll_may(&t, "user:a", 1000, 5000, &wait));
    bh_toll_pay(&t, "user:a", 1300, 5000);
    CHECK(!bh_toll_may(&t, "user:a", 1000, 5000, &wait));
    CHECK_EQ(wait, 1201 * BH_TOLL_SHARE);
    CHECK(bh_toll_may(&t, "user:b", 1000, 5000, &wait));
    CHECK_EQ(wait, 0);
    /* a larger purse is not empty yet */
    CHECK(bh_toll_may(&t, "user:a", 10000, 5000, &wait));
    CHECK(!bh_toll_may(&t, "user:a", 1000, 5000 + 1201 * BH_TOLL_SHARE - 1, &wait));
    CHECK(bh_toll_may(&t, "user:a", 1000, 5000 + 1201 * BH_TOLL_SHARE, &wait));
    /* a clock that went back gives nothing */
    CHECK(!bh_toll_may(&t, "user:a", 1000, 1, &wait));
}

TEST(over_a_long_time_a_caller_has_its_share)
{
    static struct bh_toll t;
    uint64_t taken = 0, wait;
    for (uint64_t now = 1; now <= 1000000; now += 10) {
        if (!bh_toll_may(&t, "user:a", 1000, now, &wait))
            continue;
        bh_toll_pay(&t, "user:a", 300, now);
        taken += 300;
    }
    CHECK(taken > 1000000 / BH_TOLL_SHARE / 2);
    CHECK(taken <= 1000000 / BH_TOLL_SHARE + 1000 + 300);
}

TEST(a_crowd_does_not_make_a_debt_forgotten)
{
    static struct bh_toll t;
    uint64_t wait;
    bh_toll_pay(&t, "user:a", 5000, 1);
    for (unsigned i = 0; i < 3 * BH_TOLL_CALLERS; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "user:%u", i);
        bh_toll_pay(&t, name, 1, 1);
        CHECK(bh_toll_may(&t, name, 1000, 1, &wait));
    }
    CHECK(!bh_toll_may(&t, "user:a", 1000, 1, &wait));
}

TEST_MAIN
