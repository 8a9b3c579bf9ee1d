/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger/part.h"

#include "base/test.h"

TEST(an_instance_is_a_part_of_its_card)
{
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "", 1000), 1000);
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "", 250), 250);
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "mig:1g.10gb@0", 1000), 142);
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "3g.40gb@4", 1000), 428);
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "mig:7g.80gb@0", 1000), 1000);
    /* a half of an instance */
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "mig:3g.40gb@0", 500), 214);
    /* what is not known is counted as it is written down, never as nothing */
    CHECK_EQ(bh_ledger_card_milli("of another maker", "mig:1g.10gb@0", 1000), 1000);
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "mig:9g.90gb@0", 1000), 1000);
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "@", 7), 7);
    CHECK_EQ(bh_ledger_card_milli("H100-80GB", "mig:a-name-that-is-longer-than-any-profile-has@0", 1000),
             1000);
}

TEST(compute_is_stranded_beside_memory_that_is_given_away)
{
    struct bh_strand s = {.card_mib = 80000};
    bh_strand_step(&s, 100, 428, 40000); /* idle until then: not stranded */
    CHECK(s.milli_ms == 0 && s.mib_ms == 0);
    bh_strand_step(&s, 200, 428, 39000); /* a half is free: somebody can have it */
    CHECK(s.milli_ms == 0 && s.mib_ms == 0);
    bh_strand_step(&s, 1200, -428, -39000); /* 144 thousandths and 1000 MiB were left for a second */
    CHECK(s.milli_ms == 144 * 1000);
    CHECK(s.mib_ms == 0);
    bh_strand_step(&s, 5000, -428, -40000);
    CHECK(s.milli_ms == 144 * 1000);
    bh_strand_step(&s, 9000, 0, 0);
    CHECK(s.milli_ms == 144 * 1000 && s.mib_ms == 0);
}

TEST(memory_is_stranded_beside_compute_that_is_given_away)
{
    struct bh_strand s = {.card_mib = 80000};
    for (int i = 0; i < 7; i++)
        bh_strand_step(&s, 0, 142, 9728);
    bh_strand_step(&s, 10, 0, 0);
    CHECK(s.mib_ms == (80000 - 7 * 9728) * 10);
    CHECK(s.milli_ms == 0);
    /* a whole card leaves nothing */
    struct bh_strand w = {.card_mib = 80000};
    bh_strand_step(&w, 0, 1000, 80000);
    bh_strand_step(&w, 10, -1000, -80000);
    CHECK(w.mib_ms == 0 && w.milli_ms == 0);
}

TEST_MAIN
