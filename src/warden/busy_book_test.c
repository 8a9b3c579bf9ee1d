/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/busy_book_fixture.h"

#include "base/test.h"

enum { A = 4242, B = 4243, MS = 1000000 };

static struct bh_busy_book book;
static struct book_tape tape;

static void begin(void)
{
    bh_busy_book_init(&book);
    tape = (struct book_tape){.now_ns = BEGAN_NS, .seq = 65530}; /* the number wraps soon */
}

TEST(two_busy_tenants_have_half_each_less_the_changes)
{
    begin();
    for (int i = 0; i < 500; i++)
        tape_turn(&tape, &book, i % 2 ? B : A, TURN_NS);
    const struct bh_driver_busy a = book_of(&book, A), b = book_of(&book, B);
    const uint64_t passed = tape.now_ns - BEGAN_NS;
    CHECK_EQ(a.turns, 250);
    CHECK_EQ(b.turns, 250);
    /* 48.1 % of the clock each, in steps of 32 ns */
    CHECK(a.ns > 250 * TURN_NS - 250 * 32 && a.ns < 250 * TURN_NS + 250 * 32);
    CHECK_EQ(a.ns * 1000 / passed, 481);
    CHECK_EQ(b.ns * 1000 / passed, 481);
    /* nobody has come after the last one */
    CHECK(a.cut == 250 && b.cut == 249 && a.cut_ns == a.ns);
    CHECK(!a.on && !b.on && book.lost == 0);
}

TEST(a_turn_that_goes_on_counts_up_to_now)
{
    begin();
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    bh_busy_book_look(&book, tape.now_ns + 100000); /* it might be over already, and not written down */
    CHECK_EQ(book_of(&book, A).ns, 0);
    CHECK(book_of(&book, A).on);
    bh_busy_book_look(&book, tape.now_ns + 50 * MS);
    CHECK_EQ(book_of(&book, A).ns, 50 * MS - BH_BUSY_SETTLE_NS);
    bh_busy_book_look(&book, tape.now_ns + 40 * MS); /* a clock that goes back takes nothing */
    CHECK_EQ(book_of(&book, A).ns, 50 * MS - BH_BUSY_SETTLE_NS);
    tape.now_ns += 60 * MS;
    tape_add(&tape, &book, RM_TURN_ENDS, A);
    CHECK_EQ(book_of(&book, A).ns, 60 * MS);
    CHECK(!book_of(&book, A).on);
    bh_busy_book_look(&book, tape.now_ns + 10 * MS);
    CHECK_EQ(book_of(&book, A).ns, 60 * MS);
    CHECK_EQ(book_of(&book, A).turns, 1);
}

TEST(time_given_out_is_not_given_again)
{
    begin();
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    bh_busy_book_look(&book, tape.now_ns + 10 * MS);
    const uint64_t given = book_of(&book, A).ns;
    tape.now_ns += 5 * MS; /* it had ended long before that */
    tape_add(&tape, &book, RM_TURN_ENDS, A);
    tape_add(&tape, &book, RM_TURN_BEGINS, B);
    tape.now_ns += 15 * MS;
    tape_add(&tape, &book, RM_TURN_ENDS, B);
    CHECK_EQ(book_of(&book, A).ns, given);
    CHECK_EQ(book_of(&book, A).ns + book_of(&book, B).ns, 20 * MS);
}

TEST(what_lost_records_hide_is_given_to_nobody)
{
    begin();
    tape_turn(&tape, &book, A, TURN_NS);
    tape_add(&tape, &book, RM_TURN_BEGINS, B);
    tape.now_ns += 100 * MS;
    tape.seq += 2; /* its end, and another's beginning */
    tape_add(&tape, &book, RM_TURN_ENDS, A);
    CHECK_EQ(book_of(&book, B).ns, 0);
    CHECK_EQ(book_of(&book, A).ns / 32, TURN_NS / 32);
    CHECK_EQ(book.lost, 1);
    tape.now_ns += CHANGE_NS;
    tape_turn(&tape, &book, B, TURN_NS);
    CHECK_EQ(book_of(&book, B).ns / 32, TURN_NS / 32);
    /* the same where the driver says so: until the next record nobody knows who has it */
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    bh_busy_book_lose(&book);
    bh_busy_book_look(&book, tape.now_ns + 100 * MS);
    CHECK(book_of(&book, A).ns < 2 * TURN_NS && bh_busy_book_tell(&book, NULL, 0) == 0);
    tape.now_ns += 100 * MS;
    tape_add(&tape, &book, RM_TURN_ENDS, A);
    CHECK(book_of(&book, A).ns < 2 * TURN_NS && bh_busy_book_tell(&book, NULL, 0) == 2);
}

TEST(a_turn_without_an_end_ended_nobody_knows_when)
{
    begin();
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    tape.now_ns += 10 * MS;
    tape_add(&tape, &book, RM_TURN_BEGINS, B);
    tape.now_ns += 10 * MS;
    tape_add(&tape, &book, RM_TURN_ENDS, A); /* nor this one */
    CHECK(book_of(&book, A).ns == 0 && book_of(&book, B).ns == 0);
    CHECK(book_of(&book, A).turns == 1 && book_of(&book, B).turns == 1);
    CHECK(book_of(&book, A).cut == 0 && book_of(&book, B).cut == 0);
}

TEST(a_process_that_is_gone_ends_under_no_name)
{
    begin();
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    tape.now_ns += 3 * MS;
    tape_add(&tape, &book, RM_TURN_ENDS, UINT32_MAX);
    CHECK_EQ(book_of(&book, A).ns, 3 * MS);
    tape.now_ns += CHANGE_NS;
    tape_turn(&tape, &book, UINT32_MAX, TURN_NS); /* the kernel's own, */
    tape_turn(&tape, &book, 0, TURN_NS);          /* and one that is hidden: neither is anybody's */
    CHECK_EQ(book_of(&book, BH_BUSY_OTHERS).turns, 2);
    CHECK_EQ(book_of(&book, UINT32_MAX).turns, 0);
    CHECK_EQ(book_of(&book, A).cut, 1);
}

TEST(a_kernel_record_without_a_time_is_of_now)
{
    begin();
    tape_turn(&tape, &book, A, TURN_NS);
    struct rm_switch_record r = tape_record(&tape, RM_TURN_BEGINS, UINT32_MAX);
    r.at_ns = 0;
    bh_busy_book_add(&book, &r, UINT64_MAX);
    tape.now_ns += MS;
    tape_add(&tape, &book, RM_TURN_ENDS, UINT32_MAX);
    CHECK_EQ(book_of(&book, BH_BUSY_OTHERS).ns / MS, 1);
}

TEST(a_turn_given_back_early_is_not_cut)
{
    begin();
    tape_turn(&tape, &book, A, TURN_NS);
    tape.now_ns += 5 * MS; /* nobody wanted the card */
    tape_turn(&tape, &book, B, TURN_NS);
    tape_turn(&tape, &book, B, TURN_NS); /* another context of the same */
    tape_turn(&tape, &book, A, TURN_NS);
    CHECK_EQ(book_of(&book, A).cut, 0);
    CHECK_EQ(book_of(&book, B).cut, 1);
    CHECK_EQ(book_of(&book, B).cut_ns / 32, TURN_NS / 32);
}

TEST(long_turns_are_told_from_short_ones)
{
    begin();
    for (int i = 0; i < 100; i++)
        tape_turn(&tape, &book, A, TURN_NS);
    CHECK(book.n == 1 && book.at[0].long_ns == 0);
    const uint64_t before = book_of(&book, A).ns;
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    for (int i = 0; i < 20; i++) { /* all of it, however often it is looked */
        tape.now_ns += MS;
        bh_busy_book_look(&book, tape.now_ns);
        CHECK_EQ(book.at[0].long_ns, i < 4 ? 0 : (uint64_t)(i + 1) * MS - BH_BUSY_SETTLE_NS);
    }
    tape_add(&tape, &book, RM_TURN_ENDS, A);
    CHECK(book.at[0].long_ns == 20 * MS && book_of(&book, A).ns == before + 20 * MS);
    tape.now_ns += CHANGE_NS;
    tape_turn(&tape, &book, A, 10 * MS); /* and where nobody looked */
    CHECK_EQ(book.at[0].long_ns / 32, 30 * MS / 32);
}

TEST(damaged_records_are_lost_records)
{
    begin();
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    tape.now_ns += MS;
    struct rm_switch_record r = tape_record(&tape, RM_TURN_ENDS, A);
    r.at_ns += UINT64_C(1) << 60;
    bh_busy_book_add(&book, &r, tape.now_ns + MS);
    CHECK(book.lost == 1 && book_of(&book, A).ns == 0 && book.until_ns < tape.now_ns);
    r = tape_record(&tape, RM_TURN_BEGINS, A);
    r.type = 7; /* of something else */
    bh_busy_book_add(&book, &r, UINT64_MAX);
    tape.seq--;
    r = tape_record(&tape, 4, A); /* a detail that was not asked for */
    bh_busy_book_add(&book, &r, UINT64_MAX);
    CHECK(book_of(&book, A).turns == 1 && book.lost == 1);
}

TEST(who_is_gone_is_forgotten_and_room_is_made)
{
    begin();
    for (uint32_t i = 0; i < BH_BUSY_PIDS + 10; i++)
        tape_turn(&tape, &book, 1000 + i, TURN_NS);
    CHECK_EQ(book.n, BH_BUSY_PIDS);
    CHECK_EQ(book_of(&book, 1000 + 9).turns, 0); /* silent longest */
    CHECK_EQ(book_of(&book, 1000 + 10).turns, 1);
    tape_add(&tape, &book, RM_TURN_BEGINS, A);
    bh_busy_book_look(&book, tape.now_ns + 2 * BH_BUSY_FORGET_NS);
    CHECK(book.n == 1 && book_of(&book, A).on); /* who has it is not gone */
}

TEST(no_records_give_out_more_than_the_clock)
{
    static uint8_t bytes[4096];
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        const char *why = play_book(&c);
        if (why)
            printf("# seed %" PRIu64 ": %s\n", seed, why);
        CHECK(!why);
    }
}

TEST_MAIN
