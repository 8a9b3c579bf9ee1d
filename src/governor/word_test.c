/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/word.h"

#include "base/test.h"

#define MS UINT64_C(1000000)

static struct bh_word word;
static struct bh_tally_line line;
static uint64_t now;
static uint64_t last;

static void begin(void)
{
    word = (struct bh_word){0};
    line = (struct bh_tally_line){
        .gpu_permille = 1000, .gpu_us = 1000000, .tells = true, .own_p99_us = UINT32_MAX};
    now = 1000000 * MS;
}

static void says(uint32_t times, enum bh_word_company company, uint64_t step_ms, uint32_t permille,
                 uint64_t done)
{
    for (uint32_t i = 0; i < times; i++) {
        now += step_ms * MS;
        line.gpu_permille = permille;
        line.gpu_us = step_ms * permille;
        line.own_done += done;
        line.own_lines += done > 0;
        last = bh_word_take(&word, &line, company, now);
    }
}

static const char *words(void)
{
    static struct bh_buf out;
    const struct bh_culprit_tenant who = {.id = 9, .name = "serve"};
    bh_buf_fini(&out);
    bh_buf_init(&out, 1000);
    bh_word_say(&word, &who, &out);
    return bh_buf_text(&out);
}

TEST(a_turn_that_does_less)
{
    begin();
    says(15, BH_WORD_ALONE, 1000, 1000, 800);
    CHECK(last >= 799000 && last <= 801000 && bh_word_worth(&word) == 0);
    CHECK_STR(words(), "");
    says(40, BH_WORD_BESIDE, 200, 500, 48); /* 480 a second of card time */
    CHECK_EQ(bh_word_worth(&word), 600);
    CHECK_STR(words(),
              "lease 9 (serve) says of itself: 480 units a second of card time beside others, 800 alone: a "
              "turn does 60 % of the work that it does alone\n");
}

TEST(less_time_is_no_less_work)
{
    begin();
    says(15, BH_WORD_ALONE, 1000, 1000, 800);
    says(40, BH_WORD_BESIDE, 200, 250, 40);
    CHECK_EQ(bh_word_worth(&word), 1000);
}

TEST(silence_is_not_taken_for_slow_work)
{
    begin();
    says(15, BH_WORD_ALONE, 1000, 1000, 800);
    says(20, BH_WORD_BESIDE, 200, 500, 80);
    says(100, BH_WORD_BESIDE, 200, 500, 0); /* it says nothing for 20 s */
    says(20, BH_WORD_BESIDE, 200, 500, 80);
    CHECK_EQ(bh_word_worth(&word), 1000);
}

TEST(what_was_said_long_ago_is_told_no_longer)
{
    begin();
    says(15, BH_WORD_ALONE, 1000, 1000, 800);
    says(40, BH_WORD_BESIDE, 200, 500, 48);
    CHECK(word.speaks && bh_word_worth(&word) == 600);
    says(60, BH_WORD_BESIDE, 200, 500, 0);
    CHECK(!word.speaks && bh_word_worth(&word) == 0);
    CHECK_STR(words(), "");
    says(2, BH_WORD_BESIDE, 200, 500, 48); /* and again when it speaks */
    CHECK_EQ(bh_word_worth(&word), 600);
}

TEST(seldom_words_are_of_the_time_since_the_last)
{
    begin();
    says(15, BH_WORD_ALONE, 1000, 1000, 800);
    for (int i = 0; i < 20; i++) { /* one a second */
        says(4, BH_WORD_BESIDE, 200, 500, 0);
        says(1, BH_WORD_BESIDE, 200, 500, 400);
    }
    CHECK_EQ(bh_word_worth(&word), 1000);
}

/* As by slices alone: intervals of five seconds. */
TEST(words_at_long_intervals_are_heard)
{
    begin();
    for (int i = 0; i < 60; i++) {
        line.own_lines += 9; /* it says more often than that */
        says(1, BH_WORD_ALONE, 5000, 1000, 4000);
    }
    CHECK(bh_word_alone_milli(&word) >= 799000 && bh_word_alone_milli(&word) <= 801000);
    for (int i = 0; i < 60; i++) {
        line.own_lines += 9;
        says(1, BH_WORD_BESIDE, 5000, 500, 1000); /* half the work for each second on the card */
    }
    CHECK(bh_word_worth(&word) >= 499 && bh_word_worth(&word) <= 501);
    says(10, BH_WORD_BESIDE, 5000, 500, 0); /* and silence is silence */
    CHECK(!word.speaks && bh_word_worth(&word) == 0);
    says(1, BH_WORD_BESIDE, 5000, 500, 1000); /* of all that time: nothing is made of it */
    CHECK(bh_word_worth(&word) >= 499 && bh_word_worth(&word) <= 501);
}

TEST(one_that_was_never_alone_is_compared_with_nothing)
{
    begin();
    says(40, BH_WORD_BESIDE, 200, 500, 48);
    CHECK_EQ(bh_word_worth(&word), 0);
    CHECK_STR(words(), "lease 9 (serve) says of itself: 480 units a second of card time\n");
}

TEST(unknown_time_and_numbers_that_go_back_count_for_nothing)
{
    begin();
    says(15, BH_WORD_ALONE, 1000, 1000, 800);
    says(40, BH_WORD_BESIDE, 200, 500, 80);
    line.own_done = line.own_lines = 0;
    says(1, BH_WORD_BESIDE, 200, 500, 0);
    says(5, BH_WORD_BESIDE, 200, BH_CULPRIT_UNKNOWN, 1000000);
    says(40, BH_WORD_BESIDE, 200, 500, 80);
    CHECK_EQ(bh_word_worth(&word), 1000);
}

TEST(latencies_are_compared_once_they_are_of_one_kind)
{
    begin();
    line.own_p99_us = 245;
    says(10, BH_WORD_ALONE, 1000, 50, 0);
    line.own_p99_us = 5000; /* of before and after */
    says(20, BH_WORD_BESIDE, 200, 50, 0);
    CHECK_STR(words(), "");
    line.own_p99_us = 446;
    says(30, BH_WORD_BESIDE, 200, 50, 0);
    CHECK_STR(words(), "lease 9 (serve) says of itself: p99 446 us beside others, 245 us alone\n");
}

TEST_MAIN
