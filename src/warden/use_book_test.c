/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card is played: turns go into the book of turns, and every 150 ms the driver adds a sample, which is how busy the
 * engine was and one name. What is made of samples is tested beside core/govern/use.c; here it is that they arrive.
 */
#include "warden/use_book_fixture.h"

#include "base/test.h"

enum { A = 4242, B = 4243, MS = 1000000 };

static struct bh_use_book use;
static struct bh_busy_book turns;
static struct book_tape tape;
static struct rm_use_samples ring;
static uint64_t sampled_ns, worked_ns;
static uint32_t asks, named;

static void begin(void)
{
    bh_use_book_init(&use);
    bh_busy_book_init(&turns);
    samples_clear(&ring);
    tape = (struct book_tape){.now_ns = BEGAN_NS};
    sampled_ns = BEGAN_NS;
    worked_ns = 0;
    asks = 0;
    named = A;
}

struct plays {
    uint32_t pid, turn_ms, works; /* works: permille of its turns */
};

static void pass(uint32_t works)
{
    tape.now_ns += MS;
    worked_ns += MS / 1000 * works;
    bh_busy_book_look(&turns, tape.now_ns);
    if (tape.now_ns - sampled_ns >= 150 * MS) {
        const uint64_t busy = worked_ns * 10000 / (tape.now_ns - sampled_ns);
        samples_add(&ring, tape.now_ns, named, (uint32_t)(busy < 10000 ? busy : 10000));
        sampled_ns = tape.now_ns;
        worked_ns = 0;
    }
    if (!bh_use_book_watch(&use, &turns, tape.now_ns))
        return;
    asks++;
    bh_use_book_take(&use, &ring, &turns, tape.now_ns);
    CHECK(use_wrong(&use, &turns) == NULL);
}

static void play(const struct plays *who, size_t n, uint64_t ms)
{
    const uint64_t until = tape.now_ns + ms * MS;
    for (size_t i = 0; tape.now_ns < until; i = (i + 1) % n) {
        tape_add(&tape, &turns, RM_TURN_BEGINS, who[i].pid);
        for (uint32_t k = 0; k < who[i].turn_ms && tape.now_ns < until; k++)
            pass(who[i].works);
        tape_add(&tape, &turns, RM_TURN_ENDS, who[i].pid);
        tape.now_ns += CHANGE_NS;
    }
}

static uint32_t use_of(uint32_t pid)
{
    return bh_use_book_permille(&use, pid);
}

/* Measured on an H200 when names were believed: 49 and 3 in a hundred, as each was held to do half of what it had. */
TEST(whoever_is_named_the_sum_and_long_turns_tell)
{
    static const struct plays who[] = {{A, 20, 1000}, {B, 20, 45}}, a[] = {{A, 900, 1000}},
                              b[] = {{B, 900, 45}};
    static const uint32_t names[] = {A, B, 7, UINT32_MAX};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++) {
        begin();
        named = names[i];
        play(who, 2, 1600);
        CHECK(bh_use_book_doubt(&use, A) && bh_use_book_doubt(&use, B));
        CHECK(use_of(A) == BH_DRIVER_USE_UNKNOWN && use_of(B) == BH_DRIVER_USE_UNKNOWN);
        play(a, 1, 500);
        CHECK(use_of(A) == 1000 && !bh_use_book_doubt(&use, A) && bh_use_book_doubt(&use, B));
        play(b, 1, 500);
        CHECK(use_of(B) >= 40 && use_of(B) <= 50 && !bh_use_book_doubt(&use, B));
    }
}

TEST(busy_ones_are_not_in_doubt)
{
    static const struct plays who[] = {{A, 30, 1000}, {B, 30, 910}};
    begin();
    for (int i = 0; i < 100; i++) {
        play(who, 2, 100);
        CHECK(!bh_use_book_doubt(&use, A) && !bh_use_book_doubt(&use, B));
    }
    CHECK(asks <= 22); /* each takes 1.5 ms of a processor */
}

TEST(samples_are_read_once_and_a_ring_that_is_another_begins_anew)
{
    static const struct plays who[] = {{A, 100000, 500}};
    begin();
    play(who, 1, 1000);
    bh_use_book_take(&use, &ring, &turns, tape.now_ns);
    CHECK(use_of(A) >= 490 && use_of(A) <= 500);
    const uint64_t taken = use.use.taken_ns;
    bh_use_book_take(&use, &ring, &turns, tape.now_ns + MS);
    CHECK_EQ(use.use.taken_ns, taken); /* nothing new */
    bh_use_book_take(&use, NULL, &turns, tape.now_ns + 2 * MS);
    CHECK_EQ(use.use.taken_ns, taken);
    samples_clear(&ring);
    samples_add(&ring, 5, A, 10000);
    bh_use_book_take(&use, &ring, &turns, tape.now_ns + 3 * MS);
    CHECK(use.newest == 5 && use.use.taken_ns == taken);
    CHECK(use_of(A) >= 490 && use_of(A) <= 500); /* what was found before stays */
    samples_add(&ring, 6, A, 9000);
    bh_use_book_take(&use, &ring, &turns, tape.now_ns + 4 * MS);
    CHECK(use.newest == 6 && use.use.taken_ns > taken && use_of(A) == 1000);
}

TEST(the_ring_is_read_round)
{
    static const struct plays who[] = {{A, 100000, 300}};
    begin();
    play(who, 1, 30000); /* three times */
    CHECK(ring.count == BH_COUNT_OF(ring.samples) && use_of(A) >= 290 && use_of(A) <= 310);
}

/* The answer as the driver lays it out: what is where was read off the recorded size and the public header. */
TEST(an_answer_is_read_by_its_bytes)
{
    enum { HEAD = 16, ONE = 776, ENGINE = 8 + 128 };
    static uint8_t bytes[55888];
    static struct rm_use_samples s;
    const uint64_t stamp = 77;
    const uint32_t percent = 2500;
    _Static_assert(sizeof(bytes) == sizeof(s), "the recorded size");
    begin();
    tape_add(&tape, &turns, RM_TURN_BEGINS, A);
    for (size_t i = 0; i < 10; i++) {
        const uint64_t later = stamp + i;
        memcpy(bytes + HEAD + i * ONE, &later, sizeof(later));
        memcpy(bytes + HEAD + i * ONE + ENGINE, &percent, sizeof(percent));
        memcpy(&s, bytes, sizeof(s));
        tape.now_ns += 100 * MS;
        bh_busy_book_look(&turns, tape.now_ns);
        (void)bh_use_book_watch(&use, &turns, tape.now_ns);
        bh_use_book_take(&use, &s, &turns, tape.now_ns);
    }
    CHECK(use_of(A) >= 249 && use_of(A) <= 251);
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
