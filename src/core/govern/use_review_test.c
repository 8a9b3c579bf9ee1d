/* SPDX-License-Identifier: Apache-2.0 */
/* use_review_test.c - some of the card stays empty, and what is believed explains it, or nearly so. */
#include "core/govern/use_fixture.h"

/* Both were seen when they did something else: one half of the card is taken for two quarters of it. */
TEST(two_wrong_beliefs_that_explain_the_sum_are_looked_into)
{
    static const struct plays a[] = {{A, 1000, 500}}, b[] = {{B, 1000, 500}};
    static const struct plays now_a[] = {{A, 1000, 1000}}, turns_of_both[] = {{A, 20, 980}, {B, 20, 40}};
    begin_alone(a, b);
    play(b, 1, 600);
    CHECK(use_of(A) < 550 && use_of(B) < 550);
    play(turns_of_both, 2, 2500);
    CHECK(!any_doubt(A, 2));
    play(turns_of_both, 2, 3000);
    CHECK(bh_use_doubt(&use, A) && !bh_use_doubt(&use, B)); /* one at a time: it is given a turn for it */
    play(now_a, 1, 600);
    CHECK(use_of(A) == 1000 && !bh_use_doubt(&use, A));
    play(turns_of_both, 2, 2000);
    CHECK(bh_use_doubt(&use, B)); /* by the sum */
}

/* Of one that does as believed, later and later; and the other one in between. */
TEST(what_is_true_is_looked_into_seldom)
{
    static const struct plays who[] = {{A, 20, 500}, {B, 20, 500}}, a[] = {{A, 1000, 500}},
                              b[] = {{B, 1000, 500}};
    uint32_t looks[2] = {0}, early = 0;
    begin_alone(a, b);
    for (int i = 0; i < 3000; i++) {
        play(who, 2, 120);
        const bool doubts[] = {bh_use_doubt(&use, A), bh_use_doubt(&use, B)};
        CHECK(!(doubts[0] && doubts[1]));
        if (!doubts[0] && !doubts[1])
            continue;
        play(doubts[0] ? a : b, 1, 600);
        looks[doubts[1]]++;
        early += i < 300;
    }
    printf("# looked at %u and %u times in six minutes\n", looks[0], looks[1]);
    CHECK(looks[0] >= 2 && looks[1] >= 2 && looks[0] + looks[1] <= 8);
    CHECK(early >= 2 && early <= 4); /* of those in the first 36 s */
}

/* It was given no turn for it: nothing spoke against what was believed. */
TEST(who_was_not_looked_at_after_all_is_believed_again)
{
    static const struct plays who[] = {{A, 20, 400}, {B, 20, 400}, {C, 20, 400}};
    uint32_t most = 0, unknown = 0;
    begin();
    for (size_t i = 0; i < BH_COUNT_OF(who); i++)
        play(&(struct plays){who[i].pid, 2000, 400}, 1, 1000);
    for (int i = 0; i < 400; i++) {
        play(who, 3, 120);
        const uint32_t n = (uint32_t)bh_use_doubt(&use, A) + bh_use_doubt(&use, B) + bh_use_doubt(&use, C);
        most = n > most ? n : most;
        unknown += (uint32_t)(use_of(A) > 1000) + (use_of(B) > 1000) + (use_of(C) > 1000) > n;
    }
    CHECK_EQ(most, 1u);
    CHECK_EQ(unknown, 0u);
}

/* Who starts a process every second would else have others looked at all the time. */
TEST(new_processes_do_not_bring_it_back_again_and_again)
{
    static const struct plays who[] = {{A, 20, 500}, {B, 20, 500}}, a[] = {{A, 1000, 500}},
                              b[] = {{B, 1000, 500}};
    uint32_t looks[2] = {0};
    for (uint32_t forks = 0; forks < 2; forks++) {
        begin_alone(a, b);
        for (int i = 0; i < 3000; i++) {
            play(who, 2, 120);
            if (forks && i % 8 == 0) { /* another one in the place of the last */
                if (n_turns > 2)
                    turns[2] = (struct bh_use_turns){.pid = D + (uint32_t)i};
                else
                    (void)turns_of(D);
            }
            if (!any_doubt(A, 2))
                continue;
            play(bh_use_doubt(&use, A) ? a : b, 1, 600);
            looks[forks]++;
        }
    }
    printf("# %u looks in six minutes, %u with a new process every second\n", looks[0], looks[1]);
    CHECK(looks[1] > looks[0] && looks[1] <= 3 * looks[0]);
}

TEST(nobody_is_looked_at_where_little_is_empty_or_only_light_ones_leave_it)
{
    static const struct plays full[] = {{A, 1000, 1000}}, most[] = {{B, 1000, 480}},
                              little[] = {{B, 1000, 60}};
    static const struct plays three_quarters[] = {{A, 20, 980}, {B, 20, 480}},
                              light[] = {{A, 20, 600}, {B, 20, 60}};
    begin_alone(full, most);
    play(most, 1, 600);
    for (int i = 0; i < 200; i++) {
        play(three_quarters, 2, 120);
        CHECK(!any_doubt(A, 2));
    }
    begin_alone(&(struct plays){A, 1000, 600}, little);
    for (int i = 0; i < 200; i++) {
        play(light, 2, 120);
        CHECK(!any_doubt(A, 2));
    }
    /* Nor by one that does next to nothing, and is on the card whenever the other rests. */
    begin_alone(&(struct plays){A, 1000, 600}, &(struct plays){B, 1000, 4});
    for (int i = 0; i < 200; i++) {
        play(light, 2, 120);
        CHECK(!any_doubt(A, 2));
    }
}

TEST(nobody_is_reviewed_while_another_is_in_doubt)
{
    static const struct plays who[] = {{A, 20, 500}, {B, 20, 500}}, a[] = {{A, 1000, 500}},
                              b[] = {{B, 1000, 500}};
    begin_alone(a, b);
    play(b, 1, 600);
    play(who, 2, 2000);
    CHECK(!any_doubt(A, 2));
    for (int i = 0; i < 60; i++) {
        use.at[1].doubt = true; /* for some other reason */
        use.at[1].by_sum = false;
        use.at[1].doubt_at_ns = now;
        play(who, 2, 120);
        CHECK(!bh_use_doubt(&use, A));
    }
}

/* Who had the card in a sample's time is not known then, so nobody is told by that (use_blame.c). */
static void begin_on_two_clocks(void)
{
    begin();
    apart_ns = 1000000 * MS;
}

/* C leaves most of its small share, and the sum puts up with that: it is looked at before those who have more, and nobody after it. */
TEST(who_may_be_all_that_is_missing_is_looked_at)
{
    static const struct plays who[] = {{A, 30, 980}, {B, 40, 980}, {C, 13, 250}}, c[] = {{C, 1000, 250}};
    begin_on_two_clocks();
    play(who, 3, 19000);
    CHECK(!any_doubt(A, 3));
    play(who, 3, 4000);
    CHECK(bh_use_doubt(&use, C) && !any_doubt(A, 2));
    play(c, 1, 600);
    CHECK(use_of(C) < 300 && !bh_use_doubt(&use, C));
    for (int i = 0; i < 600; i++) {
        play(who, 3, 166);
        CHECK(!any_doubt(A, 3));
    }
}

/* What D leaves is believed, and it has least. */
TEST(who_is_believed_to_rest_is_not_the_one_who_may)
{
    static const struct plays who[] = {{A, 30, 980}, {B, 40, 980}, {C, 13, 250}, {D, 12, 500}},
                              d[] = {{D, 1000, 500}};
    begin_on_two_clocks();
    play(d, 1, 1200);
    CHECK(use_of(D) < 550);
    play(who, 4, 26000);
    CHECK(bh_use_doubt(&use, C) && !bh_use_doubt(&use, D) && !any_doubt(A, 2));
}

/* All of them come to nine tenths, as far as busy ones do: each is looked at once, later and later. */
TEST(what_busy_ones_leave_is_looked_into_seldom)
{
    static const struct plays who[] = {{A, 30, 900}, {B, 40, 900}, {C, 20, 900}};
    uint32_t looks[3] = {0};
    begin();
    for (int i = 0; i < 3000; i++) {
        play(who, 3, 180);
        for (uint32_t k = 0; k < 3; k++) {
            if (!bh_use_doubt(&use, A + k))
                continue;
            play(&(struct plays){A + k, 1000, 900}, 1, 600);
            CHECK(!bh_use_doubt(&use, A + k) && use_of(A + k) == 1000);
            looks[k]++;
        }
    }
    printf("# looked at %u, %u and %u times in nine minutes\n", looks[0], looks[1], looks[2]);
    for (uint32_t k = 0; k < 3; k++)
        CHECK(looks[k] >= 1 && looks[k] <= 2);
}

/* D is of class latency, say: with it in the way no look would tell. */
TEST(nobody_is_looked_at_while_an_unknown_one_visits)
{
    static const struct plays who[] = {{A, 30, 980}, {D, 1, 1000}, {B, 40, 980},
                                       {D, 1, 1000}, {C, 13, 250}, {D, 1, 1000}};
    begin();
    for (int i = 0; i < 400; i++) {
        play(who, 6, 172);
        CHECK(!any_doubt(A, 4));
    }
}

/* Each look would cost all of them a second, and little could be found. */
TEST(nobody_in_a_crowd_is_looked_at_for_a_little)
{
    static const struct plays who[] = {
        {A, 20, 910}, {B, 20, 910}, {C, 20, 910}, {D, 20, 910}, {D + 1, 20, 910}};
    begin();
    for (int i = 0; i < 400; i++) {
        play(who, 5, 200);
        CHECK(!any_doubt(A, 5));
    }
}

/* Of one of whom nothing was known nothing is, if nobody looked. */
TEST(who_was_not_known_and_not_looked_at_is_not_known)
{
    static const struct plays who[] = {{A, 30, 980}, {B, 40, 980}, {C, 13, 250}};
    begin_on_two_clocks();
    play(who, 3, 24000);
    CHECK(bh_use_doubt(&use, C));
    for (int i = 0; i < 200; i++) {
        play(who, 3, 166);
        CHECK_EQ(use_of(C), BH_USE_UNKNOWN);
    }
    CHECK(!bh_use_doubt(&use, A) && !bh_use_doubt(&use, B));
}

TEST_MAIN
