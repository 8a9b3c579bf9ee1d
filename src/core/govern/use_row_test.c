/* SPDX-License-Identifier: Apache-2.0 */
/* use_row_test.c - a full card ends doubts and refutes beliefs, but only by what samples can be of. */
#include "core/govern/use_fixture.h"

/* Before the sum tells: that is of the time before as well. */
TEST(two_samples_of_a_full_card_end_doubts)
{
    for (uint32_t n = 3; n <= MOST; n += 3) {
        for (uint64_t ms = 1600; ms <= 1900; ms += 20) {
            struct plays rest[MOST], work[MOST];
            for (uint32_t i = 0; i < n; i++) {
                rest[i] = (struct plays){A + i, 30, i < 6 ? 60 : 960};
                work[i] = (struct plays){A + i, 90 / n, 980};
            }
            begin();
            play(rest, n, ms);
            CHECK(any_doubt(A, n));
            play(work, n, 90 / n * n * 7); /* the first sample holds rests still */
            CHECK(!any_doubt(A, n));
        }
    }
}

/* While one is looked at the others cannot rest, and are no better known for it; nor is who had next to nothing. */
TEST(a_full_card_tells_only_of_who_had_it)
{
    static const struct plays rest[] = {{A, 30, 40}, {B, 30, 40}, {C, 30, 960}},
                              work[] = {{A, 30, 980}, {B, 30, 980}, {C, 30, 980}};
    static const struct plays most[] = {{A, 80, 1000}, {B, 10, 1000}, {C, 10, 1000}},
                              two[] = {{A, 30, 1000}, {C, 30, 1000}};
    begin();
    play(work, 3, 1200);
    play(rest, 3, 1600);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && bh_use_doubt(&use, C));
    play(most, 3, 340);
    CHECK(bh_use_doubt(&use, B) && bh_use_doubt(&use, C));
    play(two, 2, 600);
    CHECK(!bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && !bh_use_doubt(&use, C));
}

TEST(a_full_card_may_be_half_of_one_but_hardly_anything_is_missing)
{
    static const struct plays rest[] = {{A, 30, 40}, {B, 30, 40}, {C, 30, 960}};
    static const struct plays half[] = {{A, 30, 955}, {B, 15, 955}, {C, 15, 955}},
                              gaps[] = {{A, 30, 900}, {B, 30, 900}, {C, 30, 900}};
    begin();
    play(rest, 3, 1600);
    play(half, 3, 630);
    CHECK(!any_doubt(A, 3));
    begin();
    play(rest, 3, 1600);
    play(gaps, 3, 360);
    CHECK(any_doubt(A, 3)); /* the sum tells of them, in its time */
}

/* A small share is not more than what it is believed to use: neither the sum nor what it has tells. */
TEST(who_was_seen_loading_and_fills_its_turns_on_a_full_card_is_believed_no_longer)
{
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 140}},
                              both[] = {{A, 180, 980}, {B, 20, 980}};
    begin_alone(a, b);
    CHECK(use_of(B) < 150);
    play(both, 2, 2000);
    CHECK(use_of(B) == BH_USE_UNKNOWN && use_of(A) >= 1000); /* unknown is taken for all */
    CHECK(!bh_use_doubt(&use, B) && !bh_use_doubt(&use, A));
    /* Found resting again it is believed: it may work in bursts. */
    play(b, 1, 600);
    play(both, 2, 5000);
    CHECK(use_of(B) < 150);
    play(both, 2, 16000);
    CHECK_EQ(use_of(B), BH_USE_UNKNOWN);
}

/* It only caught up with something, and all worked meanwhile. */
TEST(who_was_refuted_is_looked_at_when_the_card_is_not_full)
{
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 140}};
    static const struct plays full[] = {{A, 180, 980}, {B, 20, 980}}, rests[] = {{A, 180, 980}, {B, 20, 140}};
    begin_alone(a, b);
    play(full, 2, 2000);
    play(rests, 2, 3000);
    CHECK(use_of(B) == BH_USE_UNKNOWN && !bh_use_doubt(&use, B));
    play(rests, 2, 4000);
    CHECK(bh_use_doubt(&use, B) && !bh_use_doubt(&use, A));
}

TEST(who_rests_in_its_turns_or_visits_is_not_refuted)
{
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 40}};
    static const struct plays rests[] = {{A, 180, 980}, {B, 20, 40}},
                              visits[] = {{A, 10, 1000}, {B, 1, 1000}};
    begin_alone(a, b);
    play(rests, 2, 4000);
    CHECK(use_of(B) < 100);
    begin_alone(a, b);
    play(visits, 2, 1500); /* changes of the card are part of what it has */
    CHECK(use_of(B) < 100);
}

/* What B was seen to use was by what is believed of A, which loaded then. */
TEST(who_was_seen_beside_one_that_is_refuted_is_seen_again)
{
    static const struct plays a[] = {{A, 1000, 60}}, go[] = {{A, 3, 1000}, {B, 17, 40}};
    static const struct plays work[] = {{A, 20, 1000}, {B, 1, 1000}, {C, 20, 1000}};
    begin();
    play(a, 1, 600);
    play(go, 2, 600);
    CHECK(use_of(A) < 100 && use_of(B) < 500 && use_of(B) > 60);
    play(work, 3, 3500);
    CHECK(use_of(A) == BH_USE_UNKNOWN && use_of(B) == BH_USE_UNKNOWN);
    CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B));
}

/* It is given a turn now and then, and rests in it. Wherever that falls between two samples, and between two asks. */
TEST(a_turn_that_no_sample_shows_yet_refutes_nobody)
{
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 40}},
                              visits[] = {{A, 10, 1000}, {B, 1, 1000}};
    for (uint64_t turn = 30; turn <= 90; turn += 10) {
        for (uint64_t from = 1500; from < 2500; from += 7) {
            begin_alone(a, b);
            play(visits, 2, from);
            play(b, 1, turn);
            play(visits, 2, 1500);
            CHECK(use_of(B) < 100 && !any_doubt(A, 2));
        }
    }
}

TEST_MAIN
