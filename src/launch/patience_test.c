/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/patience.h"

#include "base/err.h"
#include "base/test.h"
#include "launch/warden.h"

TEST(who_was_answered_does_not_ask_again)
{
    static const int codes[] = {BH_OK, BH_BUSY, BH_NOT_FOUND, BH_CONFLICT, BH_DENIED};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct bh_patience p = bh_patience_of(5000);
        CHECK(!bh_patience_again(&p, codes[i], true, true));
    }
}

TEST(one_that_began_a_moment_ago_may_not_know_a_lease_yet)
{
    struct bh_patience p = bh_patience_of(5000), brief = bh_patience_of(200);
    p.young = brief.young = true;
    CHECK(bh_patience_again(&p, BH_NOT_FOUND, true, true));
    CHECK(!bh_patience_again(&p, BH_CONFLICT, true, true));
    CHECK(!bh_patience_again(&p, BH_NOT_FOUND, false, false));
    p.young = false;
    CHECK(!bh_patience_again(&p, BH_NOT_FOUND, true, true));
    CHECK(!bh_patience_again(&brief, BH_NOT_FOUND, true, true));
}

TEST(where_nothing_is_governed_nobody_is_waited_for)
{
    struct bh_patience p = bh_patience_of(5000);
    CHECK(!bh_patience_again(&p, BH_NOT_FOUND, false, false));
    CHECK(!bh_patience_again(&p, BH_DENIED, false, false));
}

TEST(who_follows_one_that_ended_is_asked)
{
    struct bh_patience p = bh_patience_of(5000);
    CHECK(bh_patience_again(&p, BH_BUSY, false, true));
    CHECK(bh_patience_again(&p, BH_NOT_FOUND, false, true)); /* nobody listens yet, ... */
    CHECK(bh_patience_again(&p, BH_NOT_FOUND, false,
                            false)); /* ... or one that ended in order took it away, ... */
    CHECK(bh_patience_again(&p, BH_NOT_FOUND, true, true)); /* ... and the lease is not there yet */
    CHECK(!bh_patience_again(&p, BH_OK, true, true));
    CHECK(p.lost);
}

TEST(one_that_was_killed_before_may_be_followed)
{
    struct bh_patience p = bh_patience_of(60000);
    const int64_t began = bh_warden_now_ms();
    while (bh_patience_again(&p, BH_NOT_FOUND, false, true)) {
    }
    const int64_t took = bh_warden_now_ms() - began;
    CHECK(took >= BH_PATIENCE_FOLLOWED_MS && took < 30000);
    CHECK(!p.lost);
}

TEST(patience_ends)
{
    struct bh_patience p = bh_patience_of(BH_PATIENCE_FOLLOWED_MS + 10);
    const int64_t began = bh_warden_now_ms();
    while (bh_patience_again(&p, BH_BUSY, false, true)) {
    }
    CHECK(bh_warden_now_ms() - began < 30000);
}

TEST(who_has_little_of_it_asks_once_more_and_waits_for_nobody)
{
    struct bh_patience p = bh_patience_of(200), q = bh_patience_of(200);
    CHECK(bh_patience_again(&p, BH_BUSY, false, true));
    CHECK(!bh_patience_again(&p, BH_BUSY, false, true));
    CHECK(!bh_patience_again(&q, BH_NOT_FOUND, false, true));
}

TEST_MAIN
