/* SPDX-License-Identifier: Apache-2.0 */
/* use_test.c - what is believed of whom, when it is asked, and whether the sum can be true. */
#include "core/govern/use_fixture.h"

TEST(alone_a_sample_is_of_one)
{
    static const uint32_t works[] = {0, 40, 300, 500, 840, 860, 1000};
    for (size_t i = 0; i < BH_COUNT_OF(works); i++) {
        const struct plays who[] = {{A, 1000, works[i]}};
        begin();
        play(who, 1, 200);
        CHECK_EQ(use_of(A), BH_USE_UNKNOWN); /* it may be of another still */
        play(who, 1, 300);
        const uint32_t found = use_of(A);
        CHECK(works[i] >= BH_USE_FULL ? found == 1000 : found + 3 >= works[i] && found <= works[i]);
        const uint32_t before = asks;
        play(who, 1, 10000);
        CHECK(asks - before <= 21); /* what is known need not be sought */
    }
}

/* One that was paused does first what it could not do, so the first sample of it says too much. */
TEST(what_is_caught_up_with_is_not_what_it_needs)
{
    static const struct plays late[] = {{A, 150, 1000}}, rests[] = {{A, 1000, 40}};
    begin();
    next_ns = now + 100 * MS;
    play(late, 1, 150);
    play(rests, 1, 200);
    CHECK_EQ(use_of(A), BH_USE_UNKNOWN);
    play(rests, 1, 200);
    CHECK(use_of(A) >= 36 && use_of(A) <= 40);
}

/* Samples of 200 ms, as on another card: the one that is of its neighbour, too, is not taken for its own. */
TEST(a_sample_that_began_before_it_had_the_card_is_not_of_it)
{
    for (uint32_t ms = 0; ms < 200; ms += 5) {
        begin();
        every_ms = 200;
        play(&(struct plays){B, 1000, 1000}, 1, 400 + ms);
        for (int i = 0; i < 60 && use_of(A) == BH_USE_UNKNOWN; i++)
            play(&(struct plays){A, 1000, 250}, 1, 20);
        CHECK(use_of(A) >= 245 && use_of(A) <= 255);
    }
}

TEST(busy_ones_are_never_in_doubt_and_nobody_asks_often)
{
    static const struct plays who[] = {{A, 30, 1000}, {B, 30, 860}, {C, 30, 910}};
    begin();
    for (int i = 0; i < 100; i++) {
        play(who, 3, 100);
        CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B) && !bh_use_doubt(&use, C));
    }
    CHECK(asks <= 21);
}

TEST(one_that_rests_in_short_turns_makes_all_doubtful_and_long_ones_tell)
{
    static const struct plays who[] = {{A, 30, 1000}, {B, 30, 40}};
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 40}};
    begin();
    play(who, 2, 1600);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && use_of(A) == BH_USE_UNKNOWN);
    play(a, 1, 450);
    CHECK(!bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && use_of(A) == 1000);
    play(who, 2, 1000); /* that it does not fit is known already */
    CHECK(!bh_use_doubt(&use, A) && bh_use_doubt(&use, B));
    play(b, 1, 450);
    CHECK(!bh_use_doubt(&use, B) && use_of(B) >= 36 && use_of(B) <= 40);
    for (int i = 0; i < 50; i++) { /* now it does */
        play(who, 2, 100);
        CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B));
    }
}

/* As on a card with ten that come at once: each has it to load, and nobody computes yet. */
TEST(who_loads_first_and_then_works_is_not_in_doubt)
{
    static const struct plays load[] = {{A, 30, 60}, {B, 30, 60}, {C, 30, 60}};
    static const struct plays work[] = {{A, 30, 960}, {B, 30, 960}, {C, 30, 960}};
    for (uint64_t ms = 300; ms <= 600; ms += 20) {
        begin();
        play(load, 3, ms);
        for (int i = 0; i < 33; i++) {
            play(work, 3, 90);
            CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B) && !bh_use_doubt(&use, C));
        }
    }
}

/* Whoever has loaded keeps the card and rests on it, until the next one comes. */
TEST(who_rested_alone_and_works_with_all_the_others_is_soon_out_of_doubt)
{
    static const struct plays load[] = {{A, 400, 20}, {B, 400, 20}, {C, 400, 20}, {D, 400, 20}};
    static const struct plays work[] = {{A, 30, 960}, {B, 30, 960}, {C, 30, 960}, {D, 30, 960}};
    for (uint64_t ms = 1600; ms <= 1900; ms += 20) {
        begin();
        play(load, 4, ms);
        CHECK(use_of(A) < 100 && use_of(B) < 100);
        play(work, 4, 120 * 20);
        for (int i = 0; i < 25; i++) {
            CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B));
            CHECK(!bh_use_doubt(&use, C) && !bh_use_doubt(&use, D));
            play(work, 4, 120);
        }
        CHECK(use_of(A) >= 1000 && use_of(B) >= 1000 && use_of(C) >= 1000 && use_of(D) >= 1000);
    }
}

TEST(a_doubt_ends_when_what_was_missing_is_there)
{
    static const struct plays rest[] = {{A, 30, 60}, {B, 30, 60}, {C, 30, 960}};
    static const struct plays work[] = {{A, 30, 960}, {B, 30, 960}, {C, 30, 960}};
    begin();
    play(rest, 3, 1600);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && bh_use_doubt(&use, C));
    play(work, 3, 1600);
    CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B) && !bh_use_doubt(&use, C));
}

TEST(a_doubt_ends_among_many_who_came_since)
{
    static const struct plays rest[] = {{A, 30, 60}, {B, 30, 60}, {C, 30, 960}};
    struct plays work[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        work[i] = (struct plays){A + i, 30, 960};
    begin();
    play(rest, 3, 1600);
    play(work, MOST, 360 * 6);
    for (uint32_t i = 0; i < MOST; i++)
        CHECK(!bh_use_doubt(&use, A + i));
}

/* D was in doubt and away while the others came into doubt anew. */
TEST(who_is_in_doubt_for_longer_is_let_go_with_the_others)
{
    static const struct plays rest[] = {{D, 30, 40}, {A, 30, 960}},
                              again[] = {{A, 30, 40}, {B, 30, 40}, {C, 30, 960}};
    static const struct plays work[] = {{A, 30, 980}, {B, 30, 980}, {C, 30, 980}, {D, 30, 980}},
                              a[] = {{A, 1000, 960}};
    begin();
    play(rest, 2, 1600);
    play(a, 1, 450);
    CHECK(!bh_use_doubt(&use, A) && bh_use_doubt(&use, D));
    play(again, 3, 2000);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && bh_use_doubt(&use, C) && bh_use_doubt(&use, D));
    play(work, 4, 700);
    CHECK(!any_doubt(A, 4));
}

/* D is in doubt since before the others came into it together; what two of those do says nothing of it. */
TEST(who_is_in_doubt_for_longer_is_not_taken_to_be_like_the_others)
{
    static const struct plays rest[] = {{D, 30, 40}, {A, 30, 960}}, a[] = {{A, 1000, 960}};
    static const struct plays gaps[] = {{A, 30, 780}, {B, 30, 780}, {C, 30, 780}};
    static const struct plays one[] = {{A, 1000, 780}}, two[] = {{B, 1000, 780}};
    uint32_t runs = 0;
    for (uint64_t ms = 1600; ms <= 2400; ms += 80) {
        for (uint64_t again = 600; again <= 3000; again += 200) {
            begin();
            play(rest, 2, ms);
            play(a, 1, 450);
            play(gaps, 3, again);
            if (!bh_use_doubt(&use, A) || !bh_use_doubt(&use, B) || !bh_use_doubt(&use, D))
                continue;
            runs++;
            play(one, 1, 500);
            play(two, 1, 500);
            CHECK(bh_use_doubt(&use, D) || use_of(D) == BH_USE_UNKNOWN);
        }
    }
    CHECK(runs >= 20);
}

/* They were seen to do little, and now do more, all of them: that need not be looked into. */
TEST(who_fills_the_card_is_no_longer_taken_for_small)
{
    static const struct plays load[] = {{A, 400, 20}, {B, 400, 20}, {C, 400, 20}, {D, 400, 20}};
    static const struct plays work[] = {{A, 30, 980}, {B, 30, 980}, {C, 30, 980}, {D, 30, 980}};
    for (uint64_t ms = 1600; ms <= 1900; ms += 20) {
        begin();
        play(load, 4, ms);
        CHECK(use_of(A) < 100 && use_of(B) < 100);
        play(work, 4, 700);
        for (int i = 0; i < 25; i++) {
            play(work, 4, 120);
            CHECK(!any_doubt(A, 4));
        }
        CHECK(use_of(A) >= 1000 && use_of(B) >= 1000 && use_of(C) >= 1000 && use_of(D) >= 1000);
    }
}

/* They do more than was seen, and how much more nobody knows: the card is not full. */
TEST(who_does_more_on_a_card_that_is_not_full_is_looked_at)
{
    static const struct plays load[] = {{A, 400, 20}, {B, 400, 20}, {C, 400, 20}, {D, 400, 20}};
    static const struct plays more[] = {{A, 30, 700}, {B, 30, 700}, {C, 30, 700}, {D, 30, 700}};
    begin();
    play(load, 4, 1600);
    CHECK(use_of(A) < 100 && use_of(B) < 100);
    for (int i = 0; i < 10 && !any_doubt(A, 4); i++)
        play(more, 4, 120);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B)); /* at once, and not by what is missing later */
}

TEST(of_many_that_leave_the_same_gaps_two_are_looked_at)
{
    static const struct plays who[] = {{A, 30, 780}, {B, 30, 800}, {C, 30, 820}, {D, 30, 790}};
    static const struct plays a[] = {{A, 1000, 780}}, c[] = {{C, 1000, 820}};
    begin();
    play(who, 4, 1600);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && bh_use_doubt(&use, C) && bh_use_doubt(&use, D));
    play(a, 1, 600);
    CHECK(!bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && bh_use_doubt(&use, C) && bh_use_doubt(&use, D));
    play(c, 1, 600);
    CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B) && !bh_use_doubt(&use, C) &&
          !bh_use_doubt(&use, D));
    CHECK(use_of(B) >= 750 && use_of(B) <= 830 && use_of(D) == use_of(B));
    for (int i = 0; i < 100; i++) { /* and all fits */
        play(who, 4, 100);
        CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B) && !bh_use_doubt(&use, C));
    }
}

/* In short turns much goes into changes, which is no rest of anybody's. */
TEST(what_changes_took_is_not_missed)
{
    static const struct plays who[] = {{A, 2, 750}, {B, 2, 750}, {C, 2, 750}, {D, 2, 750}};
    static const struct plays a[] = {{A, 1000, 800}}, b[] = {{B, 1000, 800}};
    begin();
    counts_changes = true;
    play(who, 4, 2600);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && bh_use_doubt(&use, C) && bh_use_doubt(&use, D));
    play(a, 1, 600);
    play(b, 1, 600);
    CHECK(!bh_use_doubt(&use, C) && !bh_use_doubt(&use, D));
    CHECK(use_of(C) >= 780 && use_of(C) <= 820);
}

/* Those that were seen do not explain the sum, or rest themselves for the better part of it. */
TEST(others_are_not_taken_to_be_like_those)
{
    static const struct {
        uint32_t seen, other;
    } mixes[] = {{700, 880}, {430, 430}, {600, 300}};
    for (size_t i = 0; i < BH_COUNT_OF(mixes); i++) {
        const struct plays who[] = {
            {A, 30, mixes[i].seen}, {B, 30, mixes[i].seen}, {C, 30, mixes[i].other}, {D, 30, mixes[i].other}};
        const struct plays a[] = {{A, 1000, mixes[i].seen}}, b[] = {{B, 1000, mixes[i].seen}};
        begin();
        play(who, 4, 1600);
        play(a, 1, 600);
        play(b, 1, 600);
        CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B));
        CHECK(bh_use_doubt(&use, C) && bh_use_doubt(&use, D));
    }
}

/* One of seven rests still: by so little the sum may be off, but it may be any of them. */
TEST(a_doubt_does_not_end_while_one_may_rest)
{
    struct plays two[7], one[7];
    for (uint32_t i = 0; i < 7; i++) {
        two[i] = (struct plays){A + i, 30, i < 2 ? 40 : 1000};
        one[i] = (struct plays){A + i, 30, i < 1 ? 40 : 1000};
    }
    begin();
    play(two, 7, 210 * 8);
    for (uint32_t i = 0; i < 7; i++)
        CHECK(bh_use_doubt(&use, A + i));
    play(one, 7, 210 * 12);
    for (uint32_t i = 0; i < 7; i++)
        CHECK(bh_use_doubt(&use, A + i));
}

/* Samples come about seven times a second. */
TEST(a_doubt_is_asked_about_often_but_not_for_long)
{
    static const struct plays who[] = {{A, 30, 600}, {B, 30, 600}};
    begin();
    play(who, 2, 1500);
    CHECK(bh_use_doubt(&use, A));
    const uint32_t before = asks;
    play(who, 2, 2000);
    const uint32_t soon = asks - before;
    play(who, 2, 6000);
    const uint32_t later = asks - before - soon;
    printf("# asked %u times in 2 s, then %u times in 6 s\n", soon, later);
    CHECK(soon >= 9 && soon <= 13 && later <= 18);
    begin();
    play(who, 2, 1500);
    CHECK(bh_use_doubt(&use, A));
    const uint32_t all = asks;
    bh_use_ask_seldom(&use, true);
    play(who, 2, 2000);
    CHECK(asks - all <= 1);
    play(who, 2, 20000);
    CHECK(asks - all <= 6 && !bh_use_doubt(&use, A) && !bh_use_doubt(&use, B));
}

/* A works more now than all of them did together: whatever they came into doubt for is over. */
TEST(one_that_has_changed_ends_the_doubts_of_all)
{
    static const struct plays half[] = {{A, 30, 60}, {B, 30, 960}, {C, 30, 60}, {D, 30, 960}};
    static const struct plays a[] = {{A, 1000, 980}}, b[] = {{B, 1000, 960}};
    for (uint32_t loads = 0; loads <= 180; loads += 60) {
        const struct plays load[] = {{A, 30, loads}, {B, 30, loads}, {C, 30, loads}, {D, 30, loads}};
        begin();
        play(load, 4, 1600);
        CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B) && bh_use_doubt(&use, C) &&
              bh_use_doubt(&use, D));
        play(a, 1, 450);
        CHECK(!any_doubt(A, 4));
    }
    begin();
    play(half, 4, 1600);
    play(b, 1, 450);
    CHECK(!bh_use_doubt(&use, B) && bh_use_doubt(&use, A) && bh_use_doubt(&use, C) && bh_use_doubt(&use, D));
}

/* By the sum all of them could be like A, and are not. */
TEST(one_that_happens_to_be_like_the_mean_is_no_example)
{
    static const struct plays who[] = {{A, 30, 750}, {B, 30, 990}, {C, 30, 990}, {D, 30, 270}};
    static const struct plays a[] = {{A, 1000, 750}}, b[] = {{B, 1000, 990}};
    begin();
    play(who, 4, 1600);
    play(a, 1, 600);
    CHECK(!bh_use_doubt(&use, A) && bh_use_doubt(&use, D));
    play(b, 1, 600);
    CHECK(!bh_use_doubt(&use, B) && bh_use_doubt(&use, D));
}

TEST(one_that_rests_is_not_taken_to_be_like_the_others)
{
    static const struct plays who[] = {{A, 30, 960}, {B, 30, 960}, {C, 30, 40}, {D, 30, 960}};
    static const struct plays a[] = {{A, 1000, 960}}, b[] = {{B, 1000, 960}}, c[] = {{C, 1000, 40}};
    begin();
    play(who, 4, 1600);
    play(a, 1, 450);
    play(b, 1, 450);
    CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B) && bh_use_doubt(&use, C) && bh_use_doubt(&use, D));
    play(c, 1, 600);
    CHECK(!bh_use_doubt(&use, C) && use_of(C) <= 40);
    /* one that was seen to rest says nothing of the one that is left */
    CHECK(bh_use_doubt(&use, D));
}

/* A visits whenever it has something to do, and keeps the card until the other wants it. */
TEST(visits_of_small_ones_are_no_hindrance)
{
    static const struct plays a[] = {{A, 1000, 40}}, both[] = {{A, 2, 40}, {B, 3, 60}};
    static const struct plays busy[] = {{A, 1, 1000}, {C, 20, 1000}};
    begin();
    play(a, 1, 600);
    CHECK(use_of(A) >= 36 && use_of(A) <= 40);
    play(both, 2, 600);
    CHECK(use_of(B) < 100 && !bh_use_doubt(&use, B));
    play(busy, 2, 600);
    CHECK_EQ(use_of(C), 1000);
}

TEST(who_works_again_is_noticed)
{
    static const struct plays both[] = {{A, 30, 1000}, {B, 30, 1000}};
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 40}};
    begin_alone(a, b);
    CHECK(use_of(B) < 100 && use_of(A) == 1000);
    play(both, 2, 2100);                                     /* by the sum */
    CHECK(use_of(B) == BH_USE_UNKNOWN && use_of(A) >= 1000); /* unknown is taken for all */
}

TEST(who_has_more_beside_busy_ones_is_noticed)
{
    static const struct plays little[] = {{A, 47, 1000}, {B, 2, 1000}},
                              more[] = {{A, 20, 1000}, {B, 2, 1000}};
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 40}};
    begin_alone(a, b);
    play(little, 2, 10000);
    CHECK(use_of(B) < 100 && !bh_use_doubt(&use, B));
    play(more, 2, 3000);
    CHECK(use_of(B) == BH_USE_UNKNOWN && bh_use_doubt(&use, B) && !bh_use_doubt(&use, A));
}

/* That it works was never in doubt: how much it would use alone is. */
TEST(who_has_more_beside_several_is_looked_at_on_a_full_card_too)
{
    static const struct plays little[] = {{A, 23, 1000}, {B, 2, 1000}, {C, 23, 1000}},
                              more[] = {{A, 10, 1000}, {B, 2, 1000}, {C, 10, 1000}};
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 40}}, c[] = {{C, 1000, 1000}};
    begin_alone(a, b);
    play(c, 1, 600);
    play(little, 3, 10000);
    CHECK(use_of(B) < 100 && !bh_use_doubt(&use, B));
    play(more, 3, 3000);
    CHECK(bh_use_doubt(&use, B) && !bh_use_doubt(&use, A) && !bh_use_doubt(&use, C));
}

/* Together they use what they may if each of them is caught up with something all the time. */
TEST(what_is_possible_and_unlikely_is_looked_into)
{
    static const struct plays a[] = {{A, 1000, 200}}, b[] = {{B, 1000, 450}},
                              both[] = {{A, 20, 1000}, {B, 20, 40}};
    begin_alone(a, b);
    play(both, 2, 1500);
    CHECK(!bh_use_doubt(&use, A) && use_of(A) < 250 && use_of(B) < 500);
    play(both, 2, 2500);
    CHECK(bh_use_doubt(&use, A) && bh_use_doubt(&use, B));
}

/* Whenever it rests, another is on the card, and rests there as well. */
TEST(one_that_rests_beside_another_is_known_and_not_asked_about_for_ever)
{
    static const struct plays b[] = {{B, 2000, 40}}, both[] = {{A, 90, 900}, {B, 10, 400}};
    uint32_t known = 0;
    begin();
    play(b, 1, 1500);
    const uint32_t before = asks;
    for (int i = 0; i < 600; i++) {
        play(both, 2, 100);
        known += use_of(A) <= 1000;
    }
    CHECK(known > 500);
    CHECK(asks - before < 300); /* in a minute */
}

TEST(who_rested_and_makes_short_visits_works)
{
    static const struct plays a[] = {{A, 1000, 1000}}, b[] = {{B, 1000, 0}},
                              visits[] = {{A, 50, 1000}, {B, 1, 1000}};
    begin_alone(a, b);
    CHECK_EQ(use_of(B), 0u);
    play(visits, 2, 2000);
    CHECK(use_of(B) >= 20 && use_of(B) < 100);
}

TEST(turns_of_one_that_uses_little_are_no_visits)
{
    static const struct plays b[] = {{B, 1000, 300}}, both[] = {{A, 20, 1000}, {B, 15, 40}};
    begin();
    play(b, 1, 600);
    play(both, 2, 1000);
    CHECK_EQ(use_of(A), BH_USE_UNKNOWN); /* it was not alone */
}

TEST(who_left_is_forgotten_and_doubts_end)
{
    static const struct plays who[] = {{A, 30, 1000}, {B, 30, 40}};
    static const struct plays a[] = {{A, 30, 1000}}, b[] = {{B, 1000, 40}};
    begin();
    play(b, 1, 600);
    CHECK(use_of(B) < 100);
    play(a, 1, 4500);
    CHECK_EQ(use_of(B), BH_USE_UNKNOWN);
    begin();
    play(who, 2, 1600);
    CHECK(bh_use_doubt(&use, B));
    play(a, 1, 4500);
    CHECK(!bh_use_doubt(&use, B) && !bh_use_doubt(&use, A));
    const struct bh_use_look nobody = {.now_ns = now + MS};
    bh_use_watch(&use, &nobody);
    CHECK(use.n == 0 && use_of(A) == BH_USE_UNKNOWN && !bh_use_doubt(&use, A));
}

TEST(without_samples_it_is_asked_seldom)
{
    static const struct plays who[] = {{A, 1000, 500}};
    begin();
    for (int i = 0; i < 100; i++) {
        next_ns = now + 1000 * MS;
        play(who, 1, 100);
    }
    CHECK(asks <= 21 + 21);
    CHECK_EQ(use_of(A), BH_USE_UNKNOWN);
}

TEST(what_nobody_used_is_known_for_a_while)
{
    static const struct plays both[] = {{A, 30, 1000}, {B, 10, 0}}, full[] = {{A, 10, 1000}, {B, 10, 1000}};
    begin();
    CHECK_EQ(bh_use_unused(&use, now), 0);
    play(both, 2, 3000);
    const uint32_t unused = bh_use_unused(&use, now);
    printf("# %u permille\n", unused);
    CHECK(unused >= 220 && unused <= 280);
    CHECK_EQ(bh_use_unused(&use, now - MS), unused); /* the turns are known up to a little before */
    CHECK_EQ(bh_use_unused(&use, now + 4000 * MS), 0);
    play(full, 2, 2000);
    CHECK_EQ(bh_use_unused(&use, now), 1);
}

/* By all the samples of a second, not by the newest. */
TEST(what_nobody_used_is_of_a_second)
{
    static const struct plays works[] = {{A, 30, 1000}, {B, 1, 1000}}, rests[] = {{A, 30, 0}, {B, 1, 0}};
    uint32_t least = 1000, most = 0;
    begin();
    for (int i = 0; i < 40; i++) {
        play(i % 2 ? works : rests, 2, 200);
        const uint32_t unused = bh_use_unused(&use, now);
        least = i > 5 && unused < least ? unused : least;
        most = i > 5 && unused > most ? unused : most;
    }
    printf("# from %u to %u permille\n", least, most);
    CHECK(least >= 200 && most <= 750);
}

/* One that nobody is beside is worth the question all the same. */
TEST(it_is_asked_seldom_where_nothing_would_follow)
{
    static const struct plays all[] = {{A, 4, 1000}, {B, 4, 500}}, alone[] = {{C, 1000, 100}};
    begin();
    bh_use_ask_seldom(&use, true);
    play(all, 2, 20000);
    printf("# asked %u times in 20 s\n", asks);
    CHECK(asks >= 4 && asks <= 6);
    CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B));
    play(alone, 1, 1500);
    CHECK(use_of(C) < 200);
    const uint32_t before = asks;
    bh_use_ask_seldom(&use, false);
    play(all, 2, 5000);
    CHECK(asks >= before + 4 && (bh_use_doubt(&use, A) || bh_use_doubt(&use, B)));
}

/* A clock that goes back, processes that are forgotten and come again, more of them than there is room for. */
TEST(whatever_it_is_told_it_keeps_within_bounds)
{
    static struct bh_use_turns at[BH_USE_PROCESSES + 8];
    uint64_t dice = 1;
    begin();
    for (int i = 0; i < 4000; i++) {
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint32_t d = (uint32_t)(dice >> 33);
        now += d % 400 * MS;
        struct bh_use_look look = {.now_ns = now, .held = d & 1, .from_ns = now - d % 7 * 40 * MS, .at = at};
        look.now_ns -= d % 50 == 0 ? 3000 * MS : 0;
        look.n = d % 20 ? d % 9 : BH_COUNT_OF(at);
        for (size_t k = 0; k < look.n; k++)
            at[k] = (struct bh_use_turns){(uint32_t)k, d % 31 ? at[k].ns + d % 9 * 20 * MS : 0, at[k].ns / 2,
                                          look.now_ns, d};
        bh_use_watch(&use, &look);
        struct bh_use_samples s = {0};
        for (uint32_t k = 0; k < d % 11; k++)
            bh_use_samples_add(&s, look.now_ns - (d >> k) % 900 * MS, (d >> k) % 1001);
        bh_use_samples_follow(&s, d % 13 ? look.now_ns - 1000 * MS : dice);
        if (bh_use_is_due(&use, &look) || d % 3 == 0)
            bh_use_take(&use, &look, &s);
        for (uint32_t pid = 0; pid < BH_COUNT_OF(at); pid++) {
            const uint32_t p = use_of(pid);
            CHECK(p == BH_USE_UNKNOWN || p == 1000 || p < BH_USE_FULL);
            CHECK(pid < BH_USE_PROCESSES || (p == BH_USE_UNKNOWN && !bh_use_doubt(&use, pid)));
        }
    }
}

TEST_MAIN
