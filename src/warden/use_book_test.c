/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card is played: turns go into the book of turns, and every 140 ms the driver adds a sample, which is how busy the
 * engine was and one name. Shares of names are as `nvidia-smi pmon` showed them on an H200.
 */
#include "warden/use_book_fixture.h"

#include "base/test.h"

enum { A = 4242, B = 4243, C = 4244, MS = 1000000 };

static struct bh_use_book use;
static struct bh_busy_book turns;
static struct book_tape tape;
static struct rm_use_samples ring;
static uint64_t sampled_ns, asked_ns, at, worked_ns;
static uint64_t dice;

static uint32_t roll(uint32_t n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 33) % n;
}

static void begin(uint64_t seed)
{
    bh_use_book_init(&use);
    bh_busy_book_init(&turns);
    samples_clear(&ring);
    tape = (struct book_tape){.now_ns = BEGAN_NS};
    sampled_ns = asked_ns = BEGAN_NS;
    at = 1000;
    worked_ns = 0;
    dice = seed;
}

struct plays {
    uint32_t pid;
    uint32_t turn_us; /* of each of its turns */
    uint32_t works;   /* permille of it */
    uint32_t named;   /* in so many permille of the samples */
};

static void sample(const struct plays *who, size_t n)
{
    const uint64_t busy = worked_ns * 10000 / (tape.now_ns - sampled_ns);
    uint32_t pick = roll(1000), i = 0;
    while (i + 1 < n && pick >= who[i].named)
        pick -= who[i++].named;
    samples_add(&ring, at += SAMPLE_US, who[i].pid, (uint32_t)(busy < 10000 ? busy : 10000));
    sampled_ns = tape.now_ns;
    worked_ns = 0;
}

/* They take turns; the driver is asked every 200 ms, as it is in earnest. */
static void play(const struct plays *who, size_t n, uint64_t ms)
{
    const uint64_t until = tape.now_ns + ms * MS;
    for (size_t i = 0; tape.now_ns < until; i = (i + 1) % n) {
        tape_add(&tape, &turns, RM_TURN_BEGINS, who[i].pid);
        for (uint32_t us = 0; us < who[i].turn_us; us += 1000) {
            tape.now_ns += MS;
            worked_ns += MS / 1000 * who[i].works;
            bh_busy_book_look(&turns, tape.now_ns);
            if (tape.now_ns - sampled_ns >= SAMPLE_US * UINT64_C(1000))
                sample(who, n);
            if (tape.now_ns - asked_ns < 200 * MS)
                continue;
            asked_ns = tape.now_ns;
            bh_use_book_take(&use, &ring, &turns, tape.now_ns);
            CHECK(use_wrong(&use, &turns, tape.now_ns) == NULL);
        }
        tape_add(&tape, &turns, RM_TURN_ENDS, who[i].pid);
        tape.now_ns += CHANGE_NS;
    }
}

static uint32_t use_of(uint32_t pid)
{
    return bh_use_book_permille(&use, pid, tape.now_ns);
}

/* Who is named is chance, so it may be wrong for a while, but never so that the busy one would pass for a light one. */
TEST(one_that_rests_in_its_turns_is_told_from_one_that_works)
{
    /* 20 ms each; long is named in 71 to 87 of 100, whatever it had */
    static const struct plays who[] = {{A, 20000, 1000, 790}, {B, 20000, 45, 210}};
    uint32_t full = 0, light = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(seed);
        play(who, 2, 2000);
        for (int i = 0; i < 40; i++) {
            play(who, 2, 200);
            CHECK(use_of(A) >= 300 && use_of(A) <= 1000 && use_of(B) <= 800);
            full += use_of(A) == 1000;
            light += use_of(B) >= 10 && use_of(B) < 100;
        }
    }
    CHECK(full >= 600 && light >= 600); /* of 800 */
}

TEST(busy_ones_do_not_lose_whoever_is_named)
{
    static const struct plays who[] = {{A, 20000, 1000, 500}, {B, 20000, 910, 500}};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(seed);
        play(who, 2, 2000);
        for (int i = 0; i < 40; i++) {
            play(who, 2, 200);
            CHECK(use_of(A) == 1000 && use_of(B) == 1000);
        }
    }
}

TEST(two_that_rest_alike_are_judged_alike)
{
    static const struct plays who[] = {{A, 20000, 500, 500}, {B, 20000, 500, 500}};
    uint64_t sum[2] = {0};
    begin(7);
    play(who, 2, 2000);
    for (int i = 0; i < 100; i++) {
        play(who, 2, 200);
        sum[0] += use_of(A);
        sum[1] += use_of(B);
    }
    CHECK(sum[0] / 100 >= 430 && sum[0] / 100 <= 670 && sum[1] / 100 >= 430 && sum[1] / 100 <= 670);
}

/* `pmon` of each alone: 3 % of one that works for 4, 74 to 96 of one that works for 91. */
TEST(alone_it_is_as_it_was_measured)
{
    static const struct {
        uint32_t works, least, most;
    } rows[] = {{30, 20, 40}, {740, 1000, 1000}, {960, 1000, 1000}, {500, 490, 510}, {0, 0, 0}};
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++) {
        const struct plays who[] = {{A, 50000, rows[i].works, 1000}};
        begin(i);
        play(who, 1, 3000);
        CHECK(use_of(A) >= rows[i].least && use_of(A) <= rows[i].most);
    }
}

TEST(too_little_says_nothing)
{
    static const struct plays alone[] = {{A, 20000, 1000, 1000}};
    static const struct plays visited[] = {{A, 20000, 1000, 990}, {B, 1000, 1000, 10}};
    begin(1);
    play(alone, 1, 400);
    CHECK_EQ(use_of(A), BH_DRIVER_USE_UNKNOWN); /* no four samples yet */
    play(visited, 2, 4000);
    CHECK_EQ(use_of(A), 1000);
    CHECK_EQ(use_of(B), BH_DRIVER_USE_UNKNOWN); /* a twentieth of the time */
    CHECK_EQ(use_of(C), BH_DRIVER_USE_UNKNOWN);
}

TEST(what_was_found_is_kept_for_a_while_but_not_of_one_who_left)
{
    static const struct plays both[] = {{A, 20000, 1000, 790}, {B, 20000, 45, 210}};
    static const struct plays visited[] = {{A, 20000, 1000, 990}, {B, 1000, 1000, 10}};
    static const struct plays alone[] = {{A, 20000, 1000, 1000}};
    begin(3);
    play(both, 2, 4000);
    const uint32_t found = use_of(B);
    CHECK(found >= 10 && found < 200);
    for (int i = 0; i < 50; i++) { /* as a visitor all its time is work, which says nothing of its rests */
        play(visited, 2, 200);
        CHECK(use_of(B) <= found + 150);
    }
    play(visited, 2, 15000);
    CHECK_EQ(use_of(B), BH_DRIVER_USE_UNKNOWN);
    begin(3);
    play(both, 2, 4000);
    play(alone, 1, 5000);
    CHECK_EQ(use_of(B), BH_DRIVER_USE_UNKNOWN);
    CHECK_EQ(use_of(A), 1000);
}

TEST(a_change_of_heart_is_seen_in_a_few_seconds)
{
    static const struct plays rests[] = {{A, 20000, 1000, 790}, {B, 20000, 45, 210}};
    static const struct plays works[] = {{A, 20000, 1000, 500}, {B, 20000, 1000, 500}};
    begin(5);
    play(rests, 2, 4000);
    CHECK(use_of(B) < 500);
    play(works, 2, 4000);
    CHECK_EQ(use_of(B), 1000);
}

TEST(samples_are_read_once_and_a_clock_that_goes_back_begins_anew)
{
    begin(1);
    tape_add(&tape, &turns, RM_TURN_BEGINS, A);
    bh_use_book_take(&use, &ring, &turns, tape.now_ns);
    for (int i = 0; i < 6; i++) {
        tape.now_ns += 140 * MS;
        bh_busy_book_look(&turns, tape.now_ns);
        samples_add(&ring, at += SAMPLE_US, A, 500);
        bh_use_book_take(&use, &ring, &turns, tape.now_ns);
        bh_use_book_take(&use, &ring, &turns, tape.now_ns); /* nothing new */
    }
    const uint64_t samples = use.samples;
    CHECK(samples > 4 * 1024 && samples < 6 * 1024);
    CHECK(use_of(A) >= 45 && use_of(A) <= 55);
    samples_clear(&ring);
    samples_add(&ring, 5, A, 10000);
    tape.now_ns += 140 * MS;
    bh_use_book_take(&use, &ring, &turns, tape.now_ns);
    CHECK(use.samples == 0 && use.newest == 5);
    CHECK(use_of(A) >= 45 && use_of(A) <= 55); /* what was found before stays */
}

TEST(the_ring_is_read_round)
{
    static const struct plays who[] = {{A, 20000, 300, 1000}};
    begin(1);
    play(who, 1, 30000); /* three times */
    CHECK(ring.count == BH_COUNT_OF(ring.samples) && use_of(A) >= 290 && use_of(A) <= 310);
}

/* The answer as the driver lays it out: what is where was read off the recorded size and the public header. */
TEST(an_answer_is_read_by_its_bytes)
{
    enum { HEAD = 16, ONE = 776, ENGINE = 8 + 128, PID = 8 };
    static uint8_t bytes[55888];
    static struct rm_use_samples s;
    const uint64_t stamp = 77;
    const uint32_t percent = 2500, pid = A;
    _Static_assert(sizeof(bytes) == sizeof(s), "the recorded size");
    begin(1);
    tape_add(&tape, &turns, RM_TURN_BEGINS, A);
    memcpy(&s, bytes, sizeof(s));
    bh_use_book_take(&use, &s, &turns, tape.now_ns);
    for (size_t i = 0; i < 4; i++) {
        const uint64_t later = stamp + i;
        memcpy(bytes + HEAD + i * ONE, &later, sizeof(later));
        memcpy(bytes + HEAD + i * ONE + ENGINE, &percent, sizeof(percent));
        memcpy(bytes + HEAD + i * ONE + ENGINE + PID, &pid, sizeof(pid));
    }
    memcpy(&s, bytes, sizeof(s));
    tape.now_ns += 560 * MS;
    bh_busy_book_look(&turns, tape.now_ns);
    bh_use_book_take(&use, &s, &turns, tape.now_ns);
    CHECK(use_of(A) >= 245 && use_of(A) <= 255);
}

TEST(any_answer_keeps_within_bounds)
{
    static uint8_t bytes[4096];
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        const char *why = play_use(&c);
        if (why)
            printf("# seed %" PRIu64 ": %s\n", seed, why);
        CHECK(!why);
    }
}

TEST_MAIN
