/* SPDX-License-Identifier: Apache-2.0 */
/* A lease whose memory is off the card, or half off, and what becomes of it; and two leases with one process number. */
#include "base/test.h"
#include "governor/serve_joined_fixture.h"

#include <unistd.h>

/* Of one that joined: another process of it comes to the card. */
static bool brings(int fd, uint32_t pid)
{
    const struct bh_govern_channels m = {
        .op = BH_GOVERN_HAS, .pid = pid, .client = pid, .n = 1, .names = {1}};
    (void)fake_make(&fake, 0, pid, (struct bh_driver_channel){pid, 1});
    fake_pid(&fake, pid)->busy = true;
    return say(fd, &m, sizeof(m));
}

static bool takes_away(int fd, uint32_t pid)
{
    const struct bh_govern_channels m = {
        .op = BH_GOVERN_LOST, .pid = pid, .client = pid, .n = 1, .names = {1}};
    const bool said = say(fd, &m, sizeof(m));
    fake_unmake(&fake, fake_find(&fake, 0, (struct bh_driver_channel){pid, 1}));
    return said;
}

static uint64_t permille_of(uint32_t pid, uint64_t ns)
{
    const uint64_t before = fake_pid(&fake, pid)->ns[0];
    work(ns);
    return (fake_pid(&fake, pid)->ns[0] - before) * 1000 / ns;
}

/* A worker that is started while the others' memory is on the host is the same lease's. */
TEST(what_comes_after_a_suspension_shares_as_ever)
{
    CHECK(begin());
    const int a = joins(100, "a"), b = joins(200, "b"), o = dial();
    CHECK(a >= 0 && b >= 0 && o >= 0);
    bh_state_find(bh_serve_state(s), 100)->cap_permille = 100;
    work(3000 * MS);
    CHECK(permille_of(100, 3000 * MS) <= 120);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "a"), BH_OK);
    CHECK(takes_away(a, 100));
    CHECK_EQ(orders(o, BH_GOVERN_SUSPENDED, "a"), BH_OK);
    work(1000 * MS);
    CHECK(brings(a, 101));
    work(3000 * MS);
    CHECK(permille_of(101, 3000 * MS) <= 120);
    /* It is brought back: meanwhile nobody pauses it. */
    CHECK_EQ(orders(o, BH_GOVERN_PAUSE, "a"), BH_CONFLICT);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "a"), BH_OK);
    for (int i = 0; i < 100; i++) {
        work(5 * MS);
        CHECK(!fake_is_paused(&fake, 0, 101, 1));
    }
    const int r = dial();
    CHECK(r >= 0 && orders(r, BH_GOVERN_RESUME, "a") == BH_OK);
    close(o);
    work(2000 * MS);
    CHECK(permille_of(101, 3000 * MS) <= 120);
    close(a), close(b), close(r);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

/* Whoever brought it back was killed over it: it is suspended still. */
TEST(half_brought_back_is_away)
{
    CHECK(begin());
    const int a = joins(100, "a"), o = dial(), again = dial();
    CHECK(a >= 0 && o >= 0 && again >= 0);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "a"), BH_OK);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPENDED, "a"), BH_OK);
    CHECK_EQ(orders(again, BH_GOVERN_SUSPEND, "a"), BH_OK);
    close(again);
    bh_serve_round(s, now);
    CHECK_EQ(bh_state_find(bh_serve_state(s), 100)->hold, BH_HOLD_AWAY);
    close(a), close(o);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

/* The command that suspends is killed in the moment in which the lease has no warden. */
TEST(half_suspended_is_put_back_while_the_warden_is_replaced)
{
    for (int paused = 0; paused < 2; paused++) {
        CHECK(begin());
        int a = joins(100, "a");
        const int b = joins(200, "b"), o = dial(), p = dial();
        CHECK(a >= 0 && b >= 0 && o >= 0 && p >= 0);
        work(1000 * MS);
        CHECK_EQ(paused ? orders(p, BH_GOVERN_PAUSE, "a") : BH_OK, BH_OK);
        CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "a"), BH_OK);
        close(a);
        bh_serve_round(s, now);
        close(o);
        bh_serve_round(s, now);
        a = comes_back(100, "a");
        CHECK(a >= 0);
        const struct bh_governed *l = bh_state_find(bh_serve_state(s), 100);
        CHECK(l && l->hold == (paused ? BH_HOLD_PAUSED : BH_HOLD_NONE));
        close(a), close(b), close(p);
        bh_serve_round(s, now);
        CHECK_EQ(bh_serve_free(s), 0);
    }
}

static bool has_processes(int fd, uint32_t first, uint32_t second)
{
    const struct bh_govern_pids m = {.op = BH_GOVERN_PIDS, .n = 1 + (second != 0), .pids = {first, second}};
    return say(fd, &m, sizeof(m));
}

static size_t ends_heard(int fd)
{
    struct bh_govern_answer said;
    size_t n = 0;
    while (recv(fd, &said, sizeof(said), MSG_DONTWAIT) > 0)
        n += said.op == BH_GOVERN_END;
    return n;
}

/* What is left on the card of a process that is gone is booked on whoever has its number now: nobody is ended for that. */
TEST(a_number_that_was_given_again_ends_nobody)
{
    CHECK(begin());
    const int a = joins(100, "a"), b = joins(200, "b"), o = dial();
    CHECK(a >= 0 && b >= 0 && o >= 0 && has_processes(b, 100, 200));
    work(3000 * MS);
    CHECK_EQ(orders(o, BH_GOVERN_PAUSE, "b"), BH_OK);
    work(4000 * MS);
    CHECK_EQ(ends_heard(b), 0);
    close(a), close(b), close(o);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

/* It has a channel that nobody was told of. Two that work together send a file from one to the other, so that a process is of both. */
TEST(a_file_that_was_handed_over_hides_nobody)
{
    for (int handed = 0; handed < 2; handed++) {
        CHECK(begin());
        const int a = joins(100, "a"), b = joins(200, "b"), o = dial();
        CHECK(a >= 0 && b >= 0 && o >= 0);
        CHECK(has_processes(a, 100, 0) && has_processes(b, 200, handed ? 100 : 0));
        (void)fake_make(&fake, 0, 100, (struct bh_driver_channel){100, 77});
        work(1000 * MS);
        CHECK_EQ(orders(o, BH_GOVERN_PAUSE, "a"), BH_OK);
        work(4000 * MS);
        CHECK(ends_heard(a) > 0);
        CHECK_EQ(ends_heard(b), 0);
        close(a), close(b), close(o);
        bh_serve_round(s, now);
        CHECK_EQ(bh_serve_free(s), 0);
    }
}

/* Whose memory is just leaving runs for that, and may have what is left of a process whose number is another's now. */
TEST(a_number_of_one_that_is_being_suspended_ends_nobody)
{
    CHECK(begin());
    const int a = joins(100, "a"), b = joins(200, "b"), o = dial(), p = dial();
    CHECK(a >= 0 && b >= 0 && o >= 0 && p >= 0);
    CHECK(has_processes(a, 100, 200) && has_processes(b, 201, 0));
    CHECK_EQ(orders(p, BH_GOVERN_PAUSE, "a"), BH_OK);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "b"), BH_OK);
    work(4000 * MS);
    CHECK_EQ(ends_heard(a), 0);
    close(a), close(b), close(o), close(p);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST_MAIN
