/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/link_join.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/test.h"

static struct bh_link_join j;

TEST(a_version_that_is_refused_is_followed_by_the_one_before)
{
    bh_link_join_init(&j, 0);
    CHECK(j.version == BH_GOVERN_WIRE_VERSION && !j.hears_news);
    bh_link_join_refused(&j, BH_CONFLICT);
    CHECK_EQ(j.version, BH_GOVERN_WIRE_VERSION - 1);
    CHECK(bh_link_join_ask(&j).what == BH_LEASE_ASK_GONE && bh_link_join_pause_ms(&j) == 1000);
    bh_link_join_taken(&j);
    CHECK_EQ(j.version, BH_GOVERN_WIRE_VERSION - 1); /* remembered */
    for (uint32_t v = j.version; v > BH_GOVERN_WIRE_OLDEST; v--) {
        CHECK_EQ(j.version, v);
        bh_link_join_refused(&j, BH_CONFLICT);
    }
    CHECK_EQ(j.version, BH_GOVERN_WIRE_OLDEST);
    bh_link_join_refused(&j, BH_CONFLICT); /* none was left */
    CHECK(j.version == BH_GOVERN_WIRE_VERSION && j.refused == BH_CONFLICT);
}

TEST(what_the_launcher_found_comes_first)
{
    bh_link_join_init(&j, 4);
    CHECK(j.version == 4 && j.hears_news);
    bh_link_join_given(&j, UINT32_MAX); /* it did not say */
    CHECK_EQ(j.version, 4);
    bh_link_join_given(&j, BH_GOVERN_WIRE_VERSION + 1);
    bh_link_join_given(&j, BH_GOVERN_WIRE_OLDEST - 1);
    CHECK_EQ(j.version, 4);
    bh_link_join_given(&j, 5);
    CHECK_EQ(j.version, 5);
    bh_link_join_given(&j, 0); /* who hears news does not stop to */
    CHECK(j.version == 5 && j.hears_news);
}

TEST(who_is_refused_asks_later_and_later)
{
    static const int64_t ms[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    bh_link_join_init(&j, 5);
    for (size_t i = 0; i < BH_COUNT_OF(ms); i++) {
        bh_link_join_refused(&j, BH_REFUSED);
        CHECK_EQ(bh_link_join_pause_ms(&j), ms[i]);
        CHECK(bh_link_join_ask(&j).what == BH_LEASE_ASK_REFUSED && bh_link_join_ask(&j).code == BH_REFUSED);
    }
    bh_link_join_taken(&j);
    CHECK(bh_link_join_pause_ms(&j) == 1000 && bh_link_join_ask(&j).what == BH_LEASE_ASK_GONE);
    j.silences = 100;
    CHECK_EQ(bh_link_join_pause_ms(&j), 8000);
    bh_link_join_taken(&j);
    CHECK_EQ(bh_link_join_pause_ms(&j), 1000);
    j.silences = 1;
    bh_link_join_refused(&j, BH_REFUSED); /* the longer of the two */
    CHECK_EQ(bh_link_join_pause_ms(&j), 2000);
    j.refusals = UINT32_MAX;
    CHECK_EQ(bh_link_join_pause_ms(&j), 60000);
}

TEST_MAIN
