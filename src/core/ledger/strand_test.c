/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger/strand.h"

#include "base/test.h"

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
