/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/vocab.h"

#include "base/test.h"

TEST(words_and_values_agree_both_ways)
{
    CHECK_STR(bh_word(trust, BH_TRUST_PARTNER), "partner");
    CHECK_EQ(bh_words_find(&bh_words_trust, "external"), BH_TRUST_EXTERNAL);
    CHECK_EQ(bh_words_find(&bh_words_trust, "External"), -1);
    CHECK_EQ(bh_words_find(&bh_words_trust, ""), -1);
    CHECK_EQ(bh_words_mechanism.n, BH_N_mechanism);
    for (size_t i = 0; i < bh_words_mechanism.n; i++)
        CHECK_EQ(bh_words_find(&bh_words_mechanism, bh_words_mechanism.text[i]), i);
}

/* The rules compare with < and >=: a reordered list would change their meaning without a sound. */
TEST(lists_that_are_compared_are_in_order)
{
    CHECK(BH_TRUST_INTERNAL < BH_TRUST_PARTNER && BH_TRUST_PARTNER < BH_TRUST_EXTERNAL);
    CHECK(BH_TIER_PROCESS < BH_TIER_CONTAINER && BH_TIER_CONTAINER < BH_TIER_SANDBOX);
    CHECK(BH_TIER_SANDBOX < BH_TIER_VM && BH_TIER_VM < BH_TIER_CVM);
    CHECK(BH_PRIORITY_LOW < BH_PRIORITY_NORMAL && BH_PRIORITY_NORMAL < BH_PRIORITY_HIGH);
    CHECK(BH_PRIORITY_HIGH < BH_PRIORITY_CRITICAL);
}

TEST_MAIN
