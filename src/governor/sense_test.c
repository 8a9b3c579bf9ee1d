/* SPDX-License-Identifier: Apache-2.0 */
/* The card is played through the warden's own book, from records as they were measured. */
#include "governor/sense.h"

#include "base/test.h"
#include "core/govern/govern.h"
#include "warden/busy_book_fixture.h"

enum { A = 4242, A2 = 4250, B = 4243, MS = 1000000 };

static struct {
    struct bh_busy_book book;
    struct book_tape tape;
    bool refuses;
    uint32_t use_permille; /* of whoever has the card */
    uint32_t doubted;      /* pid; 0: nobody */
} card;

static int play_watch(void *self, uint32_t gpu, struct bh_err *err)
{
    (void)self;
    (void)gpu;
    return card.refuses ? bh_fail(err, BH_REFUSED, "not here") : BH_OK;
}

static size_t play_busy(void *self, uint32_t gpu, struct bh_driver_busy *ret, size_t max,
                        uint64_t *ret_now_ns)
{
    (void)self;
    (void)gpu;
    bh_busy_book_look(&card.book, card.tape.now_ns);
    *ret_now_ns = card.tape.now_ns;
    const size_t n = bh_busy_book_tell(&card.book, ret, max);
    for (size_t i = 0; i < n; i++) {
        ret[i].doubt = card.doubted && ret[i].pid == card.doubted;
        ret[i].use_permille = ret[i].doubt ? BH_DRIVER_USE_UNKNOWN : card.use_permille;
    }
    return n;
}

static uint32_t play_unused(void *self, uint32_t gpu)
{
    (void)self;
    return 100 + gpu;
}

static const struct bh_driver driver = {.name = "played", .watch_busy = play_watch, .busy = play_busy},
                              knows_more = {
                                  .watch_busy = play_watch, .busy = play_busy, .unused = play_unused};
static const uint32_t pids_a[] = {A, A2}, pids_b[] = {B};
static const struct bh_sense_who who[] = {{1, pids_a, 2, false, true}, {2, pids_b, 1, false, true}};
static struct bh_sense_got got[2];

static struct bh_sense *begin(void)
{
    bh_busy_book_init(&card.book);
    card.tape = (struct book_tape){.now_ns = BEGAN_NS};
    card.refuses = false;
    card.use_permille = BH_DRIVER_USE_UNKNOWN;
    card.doubted = 0;
    return bh_sense_new(&driver, NULL, 0);
}

static void turn(uint32_t pid, uint64_t ns)
{
    tape_turn(&card.tape, &card.book, pid, ns);
}

static bool is(const struct bh_sense_got *g, uint64_t gpu_ns, enum bh_govern_state state)
{
    if (g->gpu_ns != gpu_ns || g->state != state)
        printf("# %" PRIu64 " ns, state %u\n", g->gpu_ns, g->state);
    return g->gpu_ns == gpu_ns && g->state == state;
}

/* All but one in a thousand of what was meant: times are in steps of 32 ns, and the last turn was not cut yet. */
static bool about(uint64_t is_ns, uint64_t meant_ns)
{
    const uint64_t apart = is_ns > meant_ns ? is_ns - meant_ns : meant_ns - is_ns;
    if (apart > meant_ns / 1000 + 1000)
        printf("# %" PRIu64 " ns, not %" PRIu64 "\n", is_ns, meant_ns);
    return apart <= meant_ns / 1000 + 1000;
}

TEST(what_nobody_used_is_the_drivers_word)
{
    struct bh_sense *s = begin();
    CHECK_EQ(bh_sense_unused(s), 0);
    bh_sense_free(s);
    s = bh_sense_new(&knows_more, NULL, 7);
    CHECK_EQ(bh_sense_unused(s), 107);
    bh_sense_free(s);
    card.refuses = true;
    s = bh_sense_new(&knows_more, NULL, 7);
    CHECK_EQ(bh_sense_unused(s), 0);
    bh_sense_free(s);
}

TEST(two_busy_tenants_get_what_was_work)
{
    struct bh_sense *s = begin();
    uint64_t sum[2] = {0};
    CHECK_EQ(bh_sense_read(s, who, 2, got), BH_OK);
    CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
    for (int i = 0; i < 400; i++) {
        turn(i % 2 ? B : i % 4 ? A2 : A, TURN_NS);
        if (i % 3)
            continue;
        CHECK_EQ(bh_sense_read(s, who, 2, got), BH_OK);
        for (size_t k = 0; k < 2; k++) {
            CHECK(got[k].gpu_ns != BH_GOVERN_NO_SAMPLE && (i == 0 || got[k].state == BH_GOVERN_BUSY));
            sum[k] += got[k].gpu_ns;
        }
    }
    /* 45.5 % of the clock each: what fixed work came to was 45.3 % */
    const uint64_t passed = card.tape.now_ns - BEGAN_NS;
    CHECK(about(sum[0], 200 * (TURN_NS - 120000)) && about(sum[1], 200 * (TURN_NS - 120000)));
    CHECK(sum[0] * 1000 / passed == 454 && sum[1] * 1000 / passed == 454);
    bh_sense_free(s);
}

TEST(short_turns_that_are_given_back_are_not_eaten_up)
{
    struct bh_sense *s = begin();
    (void)bh_sense_read(s, who, 2, got);
    for (int i = 0; i < 100; i++) {
        turn(A, 60000);
        turn(B, TURN_NS);
    }
    turn(A, 60000);
    (void)bh_sense_read(s, who, 2, got);
    CHECK(about(got[0].gpu_ns, 100 * 45000 + 60000) && got[0].state == BH_GOVERN_BUSY);
    CHECK(about(got[1].gpu_ns, 100 * (TURN_NS - 120000)));
    bh_sense_free(s);
}

TEST(who_has_no_turn_waits_or_is_idle)
{
    static const struct bh_sense_who a_paused[] = {{1, pids_a, 2, true, false}, {2, pids_b, 1, false, true}};
    struct bh_sense *s = begin();
    (void)bh_sense_read(s, who, 2, got);
    turn(A, TURN_NS);
    turn(B, TURN_NS);
    (void)bh_sense_read(s, who, 2, got);
    tape_add(&card.tape, &card.book, RM_TURN_BEGINS,
             B); /* and keeps it: nobody else wants it, or its slice is long */
    for (int i = 1; i <= 59; i++) {
        card.tape.now_ns += 5 * MS;
        (void)bh_sense_read(s, who, 2, got);
        CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
        CHECK(got[1].state == BH_GOVERN_BUSY);
        CHECK(i == 1 || got[1].gpu_ns == 5 * MS);
    }
    tape_add(&card.tape, &card.book, RM_TURN_ENDS, B);
    card.tape.now_ns += CHANGE_NS;
    for (int i = 1; i <= 20; i++) { /* no slice is that long */
        turn(B, 5 * MS);
        (void)bh_sense_read(s, who, 2, got);
        CHECK(is(&got[0], 0, BH_GOVERN_IDLE));
    }
    turn(A, TURN_NS);
    turn(B, TURN_NS);
    (void)bh_sense_read(s, who, 2, got);
    CHECK(got[0].gpu_ns > 0 && got[0].state == BH_GOVERN_BUSY);
    turn(B, TURN_NS);
    (void)bh_sense_read(s, a_paused, 2, got);
    CHECK(is(&got[0], 0, BH_GOVERN_IDLE)); /* that is what a pause is for */
    bh_sense_free(s);
}

TEST(alone_it_cannot_be_told_whether_it_works)
{
    struct bh_sense *s = begin();
    (void)bh_sense_read(s, who, 2, got);
    CHECK_EQ(bh_sense_read(s, who, 2, got),
             BH_OK); /* nobody changed turns yet: it may have been alone before */
    CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
    tape_add(&card.tape, &card.book, RM_TURN_BEGINS, A);
    card.tape.now_ns += 100 * MS;
    (void)bh_sense_read(s, who, 2, got);
    CHECK(is(&got[0], 100 * MS - BH_BUSY_SETTLE_NS, BH_GOVERN_BUSY));
    card.tape.now_ns += 1000 * UINT64_C(1000000);
    (void)bh_sense_read(s, who, 2, got);
    CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
    CHECK(is(&got[1], 0, BH_GOVERN_IDLE));
    /* what is not known stays so when somebody comes: it is no debt of a second */
    tape_add(&card.tape, &card.book, RM_TURN_ENDS, A);
    card.tape.now_ns += CHANGE_NS;
    turn(B, TURN_NS);
    (void)bh_sense_read(s, who, 2, got);
    CHECK(got[0].gpu_ns <= BH_BUSY_SETTLE_NS && got[1].state == BH_GOVERN_BUSY);
    bh_sense_free(s);
}

TEST(alone_what_the_driver_tells_otherwise_is_believed)
{
    struct bh_sense *s = begin();
    tape_add(&card.tape, &card.book, RM_TURN_BEGINS, A);
    (void)bh_sense_read(s, who, 2, got);
    card.tape.now_ns += 900 * UINT64_C(1000000);
    (void)bh_sense_read(s, who, 2, got);
    card.use_permille = 250;
    card.tape.now_ns += 40 * MS;
    (void)bh_sense_read(s, who, 2, got);
    CHECK(is(&got[0], 10 * MS, BH_GOVERN_BUSY));
    card.use_permille = 0;
    card.tape.now_ns += 40 * MS;
    (void)bh_sense_read(s, who, 2, got);
    CHECK(is(&got[0], 0, BH_GOVERN_IDLE));
    bh_sense_free(s);
}

/* A and then B, each in a turn of its own while the other is paused. */
TEST(in_a_turn_of_its_own_a_rest_is_no_work)
{
    static const struct bh_sense_who held[] = {{1, pids_a, 2, false, true}, {2, pids_b, 1, true, false}};
    struct bh_sense *s = begin();
    (void)bh_sense_read(s, held, 2, got);
    turn(B, 20 * MS);
    turn(A, 20 * MS);
    (void)bh_sense_read(s, held, 2, got);
    CHECK(about(got[0].gpu_ns, 20 * MS) && got[0].state == BH_GOVERN_BUSY); /* nobody tells: all of it */
    card.use_permille = 100;
    card.tape.now_ns += 5 * MS; /* else the turns would be cut */
    turn(B, 20 * MS);
    card.tape.now_ns += 5 * MS;
    turn(A, 20 * MS);
    (void)bh_sense_read(s, held, 2, got);
    CHECK(about(got[0].gpu_ns, 2 * MS) && got[0].state == BH_GOVERN_BUSY);
    CHECK(about(got[0].turn_ns, 2 * MS) && got[0].turns == 1);
    CHECK(about(got[1].gpu_ns, 20 * MS)); /* who holds none gives up what it does not use */
    card.use_permille = 9;
    card.tape.now_ns += 5 * MS;
    turn(A, 20 * MS);
    (void)bh_sense_read(s, held, 2, got);
    CHECK(is(&got[0], 0, BH_GOVERN_IDLE));
    CHECK(is(&got[1], 0, BH_GOVERN_IDLE));
    card.use_permille = 500;
    turn(B, TURN_NS);
    card.tape.now_ns += 5 * MS;
    turn(A, 20 * MS);
    (void)bh_sense_read(s, held, 2, got);
    CHECK(about(got[0].gpu_ns, 10 * MS - 60000)); /* half of what a cut costs */
    card.use_permille = 1000;
    card.tape.now_ns += 5 * MS;
    turn(A, 20 * MS);
    (void)bh_sense_read(s, held, 2, got);
    CHECK(about(got[0].gpu_ns, 20 * MS) && got[0].state == BH_GOVERN_BUSY);
    bh_sense_free(s);
}

/* Who may rest itself takes the card from nobody: a small one beside it has it for longer than it works. */
TEST(beside_one_in_doubt_a_rest_is_no_work_either)
{
    static const struct bh_sense_who light[] = {{1, pids_a, 2, false, false}, {2, pids_b, 1, false, true}};
    struct bh_sense *s = begin();
    card.use_permille = 100;
    (void)bh_sense_read(s, light, 2, got);
    for (int i = 0; i < 2; i++) {
        card.doubted = i ? A2 : B;
        turn(A, 2 * MS);
        card.tape.now_ns += MS;
        turn(B, 3 * MS);
        card.tape.now_ns += MS;
        turn(A2, MS / 2);
        card.tape.now_ns += MS;
        (void)bh_sense_read(s, light, 2, got);
        CHECK(got[0].doubt == (i == 1) && got[1].doubt == (i == 0)); /* one of its processes is enough */
        CHECK(about(got[0].gpu_ns, i ? 200000 + MS / 2 : 250000));
        CHECK(about(got[1].gpu_ns, i ? 300000 : 3 * MS)); /* of one in doubt all counts */
    }
    card.doubted = 0;
    card.use_permille = 1000;
    turn(A, 2 * MS);
    card.tape.now_ns += MS;
    turn(B, 3 * MS);
    card.tape.now_ns += MS;
    (void)bh_sense_read(s, light, 2, got);
    CHECK(about(got[0].gpu_ns, 2 * MS) && about(got[1].gpu_ns, 3 * MS) && !got[0].doubt && !got[1].doubt);
    bh_sense_free(s);
}

TEST(lost_records_are_time_without_a_sample)
{
    struct bh_sense *s = begin();
    turn(A, TURN_NS);
    (void)bh_sense_read(s, who, 2, got);
    tape_add(&card.tape, &card.book, RM_TURN_BEGINS, A);
    bh_busy_book_lose(&card.book);
    card.tape.now_ns += 50 * MS;
    CHECK_EQ(bh_sense_read(s, who, 2, got), BH_OK);
    CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
    CHECK(is(&got[1], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
    tape_add(&card.tape, &card.book, RM_TURN_ENDS, A);
    card.tape.now_ns += CHANGE_NS;
    turn(A, TURN_NS);
    (void)bh_sense_read(s, who, 2, got);
    CHECK(about(got[0].gpu_ns, TURN_NS) &&
          got[0].state == BH_GOVERN_BUSY); /* not what it had before, again */
    bh_sense_free(s);
}

TEST(a_lease_begins_with_its_first_read)
{
    struct bh_sense *s = begin();
    turn(B, TURN_NS);
    turn(A, TURN_NS);
    (void)bh_sense_read(s, who + 1, 1, got);
    turn(A, TURN_NS);
    turn(B, TURN_NS);
    (void)bh_sense_read(s, who, 2, got);
    CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
    CHECK(about(got[1].gpu_ns, TURN_NS) && got[1].state == BH_GOVERN_BUSY);
    turn(A, TURN_NS);
    turn(7, TURN_NS); /* somebody who is in no lease */
    (void)bh_sense_read(s, who, 2, got);
    CHECK(about(got[0].gpu_ns, TURN_NS - 120000));
    (void)bh_sense_read(s, who + 1, 1, got);
    turn(A, TURN_NS);
    (void)bh_sense_read(s, who, 2, got);
    CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN)); /* it was forgotten */
    bh_sense_free(s);
}

TEST(where_nothing_can_be_watched_nothing_is_known)
{
    card.refuses = true;
    struct bh_sense *s = bh_sense_new(&driver, NULL, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(bh_sense_read(s, who, 2, got), BH_REFUSED);
        CHECK(is(&got[0], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
        CHECK(is(&got[1], BH_GOVERN_NO_SAMPLE, BH_GOVERN_UNKNOWN));
    }
    bh_sense_free(s);
    bh_sense_free(NULL);
}

/* Whatever the records say: what all leases got is never more than the time that passed. */
TEST(samples_never_exceed_the_clock)
{
    static uint8_t bytes[2048];
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_sense *s = begin();
        uint64_t sum = 0;
        while (c.left) {
            static const uint32_t pids[] = {A, A2, B, 7, UINT32_MAX};
            card.tape.seq = (uint16_t)(card.tape.seq + (bh_choose(&c, 20) == 0));
            tape_add(&card.tape, &card.book, (uint8_t)(RM_TURN_BEGINS + bh_choose(&c, 2)),
                     pids[bh_choose(&c, BH_COUNT_OF(pids))]);
            card.tape.now_ns += bh_choose(&c, 16) ? bh_choose(&c, 4000000) : 500 * MS;
            if (bh_choose(&c, 3))
                continue;
            CHECK_EQ(bh_sense_read(s, who, 2, got), BH_OK);
            for (size_t k = 0; k < 2; k++)
                sum += got[k].gpu_ns == BH_GOVERN_NO_SAMPLE ? 0 : got[k].gpu_ns;
            CHECK(sum <= card.tape.now_ns - BEGAN_NS);
        }
        bh_sense_free(s);
    }
}

TEST_MAIN
