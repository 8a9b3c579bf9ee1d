/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/test.h"
#include "core/admit/admit.h"

static const struct bh_admit_idle idle = {.now_ms = 10000,
                                          .active_ms = 4000,
                                          .agreed_ms = 5000,
                                          .can = BH_CAN_SUSPEND,
                                          .wanted = true,
                                          .image_mib = 100,
                                          .host_free_mib = 100};

TEST(who_agreed_and_is_idle_sleeps_when_others_want_its_place)
{
    uint64_t at = 7;
    struct bh_admit_idle i = idle;
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_NOW);
    CHECK_EQ(at, 7); /* untouched */
    i.wanted = false;
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_NOT);
    i.now_ms = 8999;
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_LATER);
    CHECK_EQ(at, 9000);
}

TEST(who_did_not_agree_or_cannot_does_not)
{
    uint64_t at = 0;
    struct bh_admit_idle i = idle;
    i.agreed_ms = 0;
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_NOT);
    i = idle;
    i.can = BH_CAN_PAUSE | BH_CAN_REQUEUE;
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_NOT);
    i = idle;
    i.image_mib = 101; /* no room for it in the host's memory */
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_NOT);
    i = idle;
    i.agreed_ms = UINT64_MAX;
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_NOT);
}

TEST(who_just_woke_is_left_alone_for_a_while)
{
    uint64_t at = 0;
    struct bh_admit_idle i = idle;
    i.woken_ms = 9500; /* used nothing since */
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_LATER);
    CHECK_EQ(at, 9500 + 5000 / 4);
    i.now_ms = at;
    CHECK_EQ(bh_admit_sleep(&i, &at), BH_SLEEP_NOW);
}

TEST(later_is_when_it_happens)
{
    uint8_t bytes[64];
    for (uint64_t seed = 0; seed < 2000; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_admit_idle i = idle;
        uint64_t at = 0, again = 0;
        i.now_ms = bh_choose(&c, 10000);
        i.active_ms = bh_choose(&c, 10000);
        i.woken_ms = bh_choose(&c, 2) * bh_choose(&c, 10000);
        i.agreed_ms = bh_choose(&c, 5000);
        if (bh_admit_sleep(&i, &at) != BH_SLEEP_LATER)
            continue;
        CHECK(at > i.now_ms);
        i.now_ms = at - 1;
        CHECK_EQ(bh_admit_sleep(&i, &again), BH_SLEEP_LATER);
        i.now_ms = at;
        CHECK_EQ(bh_admit_sleep(&i, &again), BH_SLEEP_NOW);
    }
}

TEST(what_is_used_in_a_moment_or_for_moving_is_no_work)
{
    enum { MS = 1000000 };
    CHECK_EQ(bh_admit_awake(&(struct bh_admit_use){.span_ms = 1000, .cpu_ns = 50 * MS}), BH_AWAKE_NOT);
    CHECK_EQ(bh_admit_awake(&(struct bh_admit_use){.span_ms = 1000, .cpu_ns = 51 * MS}), BH_AWAKE_WORKS);
    CHECK_EQ(bh_admit_awake(&(struct bh_admit_use){.span_ms = 60000, .cpu_ns = 51 * MS}), BH_AWAKE_NOT);
    CHECK_EQ(bh_admit_awake(&(struct bh_admit_use){.span_ms = 1000, .cpu_ns = 900 * MS, .moved = true}),
             BH_AWAKE_NOT);
    /* Looks that follow a delay, one at once after the other: one short process in between. */
    CHECK_EQ(bh_admit_awake(&(struct bh_admit_use){.span_ms = 3, .cpu_ns = 2 * MS}), BH_AWAKE_UNTOLD);
    CHECK_EQ(bh_admit_awake(&(struct bh_admit_use){.span_ms = 0, .cpu_ns = 0}), BH_AWAKE_UNTOLD);
    CHECK_EQ(bh_admit_awake(&(struct bh_admit_use){.span_ms = 500, .cpu_ns = 26 * MS}), BH_AWAKE_WORKS);
}

TEST_MAIN
