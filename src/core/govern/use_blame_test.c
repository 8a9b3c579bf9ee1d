/* SPDX-License-Identifier: Apache-2.0 */
/* use_blame_test.c - one of many leaves most of its turns, and it is told who by when the card was empty. */
#include "core/govern/use_fixture.h"

enum { MOST_WHO = 10 };
static struct plays who[2 * MOST_WHO]; /* two rounds */
static uint32_t n_who, looks[MOST_WHO];

static void set_works(uint32_t i, uint32_t works)
{
    who[i].works = who[n_who + i].works = works;
}

/* n take turns, all as busy as told: as on the card a longer one, and a shorter one the next time. */
static void crowd(uint32_t n, uint32_t turn_ms, uint32_t longer_ms, uint32_t works)
{
    begin();
    n_who = n;
    memset(looks, 0, sizeof(looks));
    for (uint32_t i = 0; i < 2 * n; i++)
        who[i] = (struct plays){A + i % n, (i + i / n) % 2 ? longer_ms : turn_ms, works};
}

enum { NOBODY = MOST_WHO };

/* Whoever is in doubt has the card for a while, as the controller sees to; sly: works all of that. */
static void go_on(uint32_t seconds, uint32_t sly)
{
    for (const uint64_t until = now + seconds * 1000 * MS; now < until;) {
        for (uint32_t i = 0; i < 2 * n_who; i++)
            play(&who[i], 1, who[i].turn_ms);
        for (uint32_t i = 0; i < n_who; i++)
            if (bh_use_doubt(&use, A + i)) {
                play(&(struct plays){A + i, 1000, i == sly ? 1000 : who[i].works}, 1, 800);
                looks[i]++;
            }
    }
}

static uint32_t looks_at_all_but(uint32_t but)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < n_who; i++)
        all += i == but ? 0 : looks[i];
    return all;
}

/* Rounds that are not as long as a sample, or two of them: those tell nothing, see below. */
TEST(whoever_leaves_much_of_its_turns_in_a_crowd_is_found)
{
    static const uint64_t every[] = {150, 200}; /* of a driver's samples */
    for (uint32_t n = 6; n <= MOST_WHO; n++)
        for (uint32_t at = 0; at < n; at += 3)
            for (size_t k = 0; k < BH_COUNT_OF(every); k++) {
                crowd(n, 25, 40, 990);
                every_ms = every[k];
                set_works(at, 250);
                go_on(15, NOBODY);
                CHECK(use_of(A + at) < 300 && looks[at] == 1);
                CHECK(n < 8 || looks_at_all_but(at) == 0); /* of fewer the sum may tell, and of all of them */
            }
}

/* In each sample each had as much: it cannot be told, and nobody is looked at for that. */
TEST(rounds_as_long_as_a_sample_tell_of_nobody)
{
    crowd(8, 25, 25, 990);
    every_ms = 200;
    set_works(5, 250);
    go_on(120, NOBODY);
    CHECK_EQ(looks_at_all_but(NOBODY), 0u);
}

/* Busy ones that come to nine tenths: no line falls, and nobody waits for a look, whoever comes meanwhile. */
TEST(a_crowd_that_leaves_the_same_gaps_is_not_looked_at)
{
    for (uint32_t n = 5; n <= MOST_WHO; n++) {
        crowd(n, 25, 40, 900);
        go_on(100, NOBODY);
        CHECK_EQ(looks_at_all_but(NOBODY), 0u);
        for (uint32_t k = 0; k < 6; k++) {
            turns_of(A + n)->ns += MS;
            go_on(15, NOBODY);
            turns[n].pid++;
        }
        CHECK_EQ(looks_at_all_but(NOBODY), 0u);
    }
}

/* One that is busy when it is looked at: each look finds nothing, and the next is later: 10 s, 20, 40, 80, 160, 160. */
TEST(who_works_when_it_is_looked_at_is_looked_at_seldom)
{
    crowd(8, 25, 40, 990);
    set_works(5, 250);
    go_on(65, 5);
    CHECK(looks[5] == 3 || looks[5] == 4);
    go_on(535, 5);
    CHECK(looks[5] >= 4 && looks[5] <= 8);
    CHECK_EQ(looks_at_all_but(5), 0u);
    turns_of(A + 8)->ns += MS; /* somebody comes: it may be that one */
    const uint32_t before = looks[5];
    go_on(9, 5);
    CHECK_EQ(looks[5], before + 1);
}

/* Nor does one between them whose line falls with both: whoever was looked at in vain is left out for a while. */
TEST(who_works_when_it_is_looked_at_hides_nobody)
{
    crowd(9, 25, 40, 990);
    set_works(2, 400);
    set_works(4, 300);
    go_on(120, 4);
    CHECK(use_of(A + 2) < 450 && looks[2] == 1 && looks_at_all_but(2) <= 4);
}

/* What the first leaves is known, so it is not blamed for what another does, and nobody is for it. */
TEST(who_is_known_to_rest_is_not_looked_at_for_another)
{
    for (uint32_t both = 0; both < 2; both++) {
        crowd(8, 25, 40, 990);
        set_works(1, 250);
        play(&(struct plays){A + 1, 2000, 250}, 1, 900);
        CHECK(use_of(A + 1) < 300);
        go_on(20, NOBODY);
        CHECK_EQ(looks_at_all_but(NOBODY), 0u);
        set_works(4, both ? 450 : 990);
        go_on(15, NOBODY);
        CHECK_EQ(looks[4], both);
        CHECK_EQ(looks_at_all_but(4), 0u);
    }
}

/* Half of its turns is worth a look, and a third is not; nor is half of a turn that is short. */
TEST(who_leaves_little_is_not_looked_at)
{
    static const struct {
        uint32_t works, looks;
    } cases[] = {{500, 1}, {660, 0}, {800, 0}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        crowd(6, 25, 40, 990);
        set_works(3, cases[i].works);
        go_on(30, NOBODY);
        CHECK(looks[3] == cases[i].looks && looks_at_all_but(3) == 0);
    }
    crowd(6, 40, 55, 1000);
    who[2] = who[8] = (struct plays){A + 2, 20, 550};
    go_on(60, NOBODY);
    CHECK_EQ(looks_at_all_but(NOBODY), 0u);
}

/* It has 4 % of the card: little could be lent, and all would wait for a look. */
TEST(who_had_little_is_not_looked_at)
{
    crowd(6, 40, 55, 980);
    who[2] = who[8] = (struct plays){A + 2, 10, 0};
    go_on(60, NOBODY);
    CHECK_EQ(looks_at_all_but(NOBODY), 0u);
}

/* It loads, say, and some of the card is empty ever after: by samples of the time before it may be looked at once, and nobody else. */
TEST(who_has_loaded_is_looked_at_once_for_what_all_leave)
{
    for (uint32_t ms = 800; ms <= 2000; ms += 200) {
        crowd(8, 25, 40, 990);
        set_works(5, 300);
        play(who, 16, ms);
        for (uint32_t i = 0; i < 8; i++)
            set_works(i, 930);
        go_on(60, NOBODY);
        CHECK(looks[5] <= 1 && looks_at_all_but(5) == 0);
    }
}

TEST(nobody_is_blamed_where_nothing_would_follow)
{
    crowd(8, 25, 40, 990);
    set_works(5, 250);
    bh_use_ask_seldom(&use, true);
    go_on(60, NOBODY);
    CHECK_EQ(looks_at_all_but(NOBODY), 0u);
    bh_use_ask_seldom(&use, false);
    go_on(10, NOBODY);
    CHECK(looks[5] == 1 && looks_at_all_but(5) == 0);
}

/* The times of samples are of another clock than those of turns. */
TEST(samples_of_unknown_times_blame_nobody)
{
    static const uint64_t apart[] = {1000 * MS, UINT64_MAX - 3000 * MS};
    for (size_t i = 0; i < BH_COUNT_OF(apart); i++) {
        crowd(8, 25, 40, 990);
        apart_ns = apart[i];
        set_works(5, 250);
        go_on(60, NOBODY);
        CHECK_EQ(looks_at_all_but(NOBODY), 0u);
    }
}

/* The turns were not read for a while: who had what in between is not known. */
TEST(turns_that_were_read_seldom_tell_nothing)
{
    crowd(8, 25, 40, 990);
    set_works(5, 250);
    read_ms = 200;
    go_on(60, NOBODY);
    CHECK_EQ(looks_at_all_but(NOBODY), 0u);
}

TEST(a_clock_that_goes_back_makes_nobody_wait_for_it)
{
    crowd(8, 25, 40, 990);
    set_works(5, 250);
    go_on(60, 5);
    const uint32_t before = looks[5];
    now -= 50000 * MS;
    next_ns = sampled_ns = now;
    worked_ns = 0;
    for (size_t i = 0; i < n_turns; i++)
        turns[i].heard_ns = now;
    go_on(12, 5);
    CHECK(looks[5] == before + 1 && looks_at_all_but(5) == 0);
}

/* Nobody is asked more often than twice a second, whatever is missing. */
TEST(what_is_missing_costs_two_questions_a_second)
{
    static const uint32_t works[] = {900, 1000};
    for (size_t i = 0; i < BH_COUNT_OF(works); i++) {
        crowd(8, 10, 15, works[i]); /* turns in which nobody rests for long, to look at */
        go_on(2, NOBODY);
        asks = 0;
        go_on(100, NOBODY);
        CHECK(i ? asks <= 101 : asks >= 150 && asks <= 201);
    }
}

TEST_MAIN
