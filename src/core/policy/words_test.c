/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/words.h"

#include "base/test.h"

TEST(claims_are_whole_words_in_any_case)
{
    CHECK(bh_claims("Full Isolation for every team", "full isolation"));
    CHECK(bh_claims("it is secure", "secure"));
    CHECK(bh_claims("secure", "secure"));
    CHECK(!bh_claims("an insecure default", "secure"));
    CHECK(!bh_claims("security matters", "secure"));
    CHECK(!bh_claims("", "secure"));
    CHECK(!bh_claims(NULL, "secure"));
}

TEST(a_denied_claim_is_no_claim)
{
    CHECK(!bh_claims("this is not a security boundary", "security boundary"));
    CHECK(!bh_claims("never confidential", "confidential"));
    CHECK(!bh_claims("runs WITHOUT full isolation", "full isolation"));
    CHECK(bh_claims("not cheap. Secure.", "secure")); /* a new sentence */
    CHECK(bh_claims("not secure for you, but secure", "secure"));
}

TEST(mentions_are_anywhere)
{
    CHECK(bh_mentions("a=1;RMDisableScrubOnFree=1;b", "rmdisablescrubonfree=1"));
    CHECK(!bh_mentions("RMDisableScrubOnFree=0", "RMDisableScrubOnFree=1"));
    CHECK(!bh_mentions(NULL, "x"));
}

TEST_MAIN
