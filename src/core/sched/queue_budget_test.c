/* SPDX-License-Identifier: Apache-2.0 */
/* queue_budget_test.c - the bucket drains, fills, and never gives more than it holds and gets. */
#include "core/sched/queue_budget.h"

#include "base/choice.h"
#include "base/test.h"

TEST(it_drains_and_fills)
{
    struct bh_budget b;
    bh_budget_init(&b, 10000, 1000, 0); /* fills at 10 a millisecond */
    bh_budget_faster(&b, 0, 30);
    bh_budget_settle(&b, 100);
    CHECK_EQ(b.level, 10000 - 2000);
    bh_budget_settle(&b, 500);
    CHECK_EQ(b.level, 0);
    CHECK(!bh_budget_lasts(&b, 500, 0, 0)); /* empty is empty */
    bh_budget_settle(&b, 700);
    CHECK_EQ(b.level, 0);
    bh_budget_slower(&b, 700, 30);
    bh_budget_settle(&b, 900);
    CHECK_EQ(b.level, 2000);
    bh_budget_settle(&b, 5000);
    CHECK_EQ(b.level, 10000); /* no fuller than full */
}

TEST(it_must_last)
{
    struct bh_budget b;
    bh_budget_init(&b, 10000, 0, 0);
    CHECK(bh_budget_lasts(&b, 0, 10, 1000));
    CHECK(!bh_budget_lasts(&b, 0, 11, 1000));
    bh_budget_faster(&b, 0, 6);
    CHECK(bh_budget_lasts(&b, 0, 4, 1000));
    CHECK(!bh_budget_lasts(&b, 0, 5, 1000));
    CHECK(!bh_budget_lasts(&b, 1000, 4, 1000));
    CHECK_EQ(b.at_ms, 0); /* asking changes nothing */
}

TEST(edges)
{
    struct bh_budget b;
    bh_budget_init(&b, BH_BUDGET_ANY, 0, 0);
    bh_budget_faster(&b, 0, UINT64_MAX / 2);
    bh_budget_settle(&b, UINT64_MAX);
    CHECK(bh_budget_lasts(&b, UINT64_MAX, 1, UINT64_MAX));
    bh_budget_init(&b, UINT64_MAX - 1, 1, 0);
    CHECK(b.level == BH_BUDGET_MAX);
    bh_budget_settle(&b, UINT64_MAX);
    CHECK(b.level == BH_BUDGET_MAX);
    bh_budget_init(&b, 0, 1000, 0);
    CHECK(!bh_budget_lasts(&b, 1000000, 0, 0)); /* no budget is none */
    bh_budget_slower(&b, 1000000, 5);
    CHECK_EQ(b.rate_milli, 0);
}

/* Steps of any length give the same as one, to the unit; and what ran above normal is paid for. */
TEST(steps_do_not_matter_and_nothing_is_given_twice)
{
    uint8_t bytes[8192];
    for (uint64_t seed = 0; seed < 300; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_budget fine, coarse;
        const uint64_t size = bh_choose(&c, 1000000), period = 1 + bh_choose(&c, 100000);
        uint64_t now = 0, paid = 0;
        bh_budget_init(&fine, size, period, 0);
        coarse = fine;
        for (int i = 0; i < 40; i++) {
            const uint64_t rate = bh_choose(&c, 30), before = fine.level, span = 1 + bh_choose(&c, 2000);
            bh_budget_faster(&fine, now, rate);
            bh_budget_faster(&coarse, now, rate);
            uint64_t high = 0; /* time at which it counts as high */
            for (uint64_t ms = 0; ms < span; ms++) {
                high += bh_budget_lasts(&fine, now + ms, 0, 1);
                bh_budget_settle(&fine, now + ms + 1);
            }
            now += span;
            paid += high * rate;
            bh_budget_settle(&coarse, now);
            if (before && fine.level) { /* where it ran dry on the way a part of a unit may be lost */
                CHECK(fine.level >= coarse.level ? fine.level - coarse.level <= 1
                                                 : coarse.level - fine.level <= 1);
            }
            coarse = fine;
            bh_budget_slower(&fine, now, rate);
            bh_budget_slower(&coarse, now, rate);
        }
        CHECK(paid <= size + size * now / period + 1);
    }
}

TEST_MAIN
