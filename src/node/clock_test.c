/* SPDX-License-Identifier: Apache-2.0 */
#include "node/clock.h"

#include "base/test.h"

#define YEAR           (UINT64_C(365) * 86400 * 1000)
#define T              UINT64_C(1800000000000)
#define AT(wall, boot) ((struct bh_clock_reading){.wall_ms = (wall), .boot_ms = (boot)})

TEST(a_jump_of_the_time_of_day_is_no_time)
{
    struct bh_clock c = {0};
    int64_t by = 0;
    CHECK_EQ(bh_clock_now(&c, AT(T, 5000), 0), T);
    CHECK_EQ(bh_clock_now(&c, AT(T + 1000 + YEAR, 6000), T), T + 1000);
    CHECK(bh_clock_step(&c, AT(T + 1000 + YEAR, 6000), &by));
    CHECK(by == (int64_t)YEAR);
    CHECK(!bh_clock_step(&c, AT(T + 1000 + YEAR, 6000), &by));
    CHECK_EQ(bh_clock_now(&c, AT(T - YEAR, 7000), T + 1000), T + 2000);
    CHECK(bh_clock_step(&c, AT(T - YEAR, 7000), &by));
    CHECK(by < 0);
    CHECK_EQ(bh_clock_now(&c, AT(T + 3000, 8000), T + 2000), T + 3000);
}

TEST(it_goes_on_where_the_last_one_stood)
{
    struct bh_clock c = {0};
    bh_clock_resume(&c, 5000, T);
    CHECK_EQ(bh_clock_now(&c, AT(T + YEAR, 9000), 0), T + 4000);
    /* Rows that are later than that: another boot, or another daemon. */
    CHECK_EQ(bh_clock_now(&c, AT(T + YEAR, 9000), T + 7000), T + 7000);
    CHECK_EQ(bh_clock_now(&c, AT(T + YEAR, 9001), T + 7000), T + 7001);
}

TEST(it_follows_while_nothing_is_charged)
{
    struct bh_clock c = {0};
    CHECK_EQ(bh_clock_now(&c, AT(T, 0), 0), T);
    for (uint64_t s = 1; s < 200; s++) /* charged */
        CHECK(!bh_clock_follow(&c, AT(T + YEAR + s * 1000, s * 1000), true));
    for (uint64_t s = 200; s < 260; s++)
        CHECK(!bh_clock_follow(&c, AT(T + YEAR + s * 1000, s * 1000), false));
    CHECK(!bh_clock_follow(&c, AT(T + 260000, 260000), false)); /* it was right again: from the start */
    for (uint64_t s = 261; s < 321; s++)
        CHECK(!bh_clock_follow(&c, AT(T + YEAR + s * 1000, s * 1000), false));
    CHECK_EQ(bh_clock_now(&c, AT(T + YEAR + 321000, 321000), 0), T + 321000);
    CHECK(bh_clock_follow(&c, AT(T + YEAR + 321000, 321000), false));
    CHECK_EQ(bh_clock_now(&c, AT(T + YEAR + 321000, 321000), 0), T + YEAR + 321000);
    /* Back it does not go: what is written would be later than now. */
    for (uint64_t s = 400; s < 600; s++)
        CHECK(!bh_clock_follow(&c, AT(T + s * 1000, s * 1000), false));
    CHECK_EQ(bh_clock_now(&c, AT(T, 600000), 0), T + YEAR + 600000);
}

TEST(the_machines_clocks_go_forward)
{
    const struct bh_clock_reading a = bh_clock_read(), b = bh_clock_read();
    CHECK(a.wall_ms > 0 && a.boot_ms > 0);
    CHECK(b.boot_ms >= a.boot_ms);
}

TEST_MAIN
