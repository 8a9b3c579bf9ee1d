/* SPDX-License-Identifier: Apache-2.0 */
/* Who is turned away hears why, what one connection may hold, and a governor that nobody finds. */
#include "base/test.h"
#include "governor/serve_joined_fixture.h"

#include <unistd.h>

/* Its end of a connection on which it has already said something. */
static int comes_with_an_order(void)
{
    const struct bh_govern_order o = order_of(BH_GOVERN_PAUSE, "it");
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0 ||
        send(pair[0], &o, sizeof(o), 0) != sizeof(o) || bh_serve_connect(s, pair[1], NULL) != BH_BUSY)
        return -1;
    return pair[0];
}

TEST(who_finds_no_room_hears_so)
{
    int fds[BH_SERVE_CONNECTIONS];
    const struct bh_govern_order more = order_of(BH_GOVERN_RESUME, "it");
    char c;
    CHECK(begin());
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        CHECK((fds[i] = dial()) >= 0);
    const int late = comes_with_an_order();
    CHECK(late >= 0);
    bh_serve_round(s, now);
    CHECK(say(late, &more, sizeof(more))); /* whatever it says */
    CHECK_EQ(answered(late), BH_BUSY);
    CHECK_EQ(recv(late, &c, 1, 0), 0);
    close(late);
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        close(fds[i]);
    bh_serve_round(s, now);
    const int fd = dial(); /* and there is room again */
    CHECK(fd >= 0);
    close(fd);
    CHECK_EQ(bh_serve_free(s), 0);
}

static uint32_t hold_of(uint64_t lease)
{
    for (size_t i = 0; i < bh_serve_state(s)->n; i++)
        if (bh_serve_state(s)->at[i]->id == lease)
            return bh_serve_state(s)->at[i]->hold;
    return UINT32_MAX;
}

TEST(a_connection_suspends_one_at_a_time)
{
    CHECK(begin());
    const int a = joins(1, "a"), b = joins(2, "b"), o = dial();
    CHECK(a >= 0 && b >= 0 && o >= 0);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "a"), BH_OK);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "b"), BH_BUSY);
    CHECK(hold_of(1) == BH_HOLD_SUSPENDED && hold_of(2) == BH_HOLD_NONE);
    CHECK_EQ(orders(o, BH_GOVERN_SUSPENDED, "a"), BH_OK); /* then the next one */
    CHECK_EQ(orders(o, BH_GOVERN_SUSPEND, "b"), BH_OK);
    CHECK_EQ(hold_of(2), BH_HOLD_SUSPENDED);
    close(o);
    bh_serve_round(s, now);
    CHECK(hold_of(1) == BH_HOLD_AWAY && hold_of(2) == BH_HOLD_NONE);
    close(a), close(b);
    CHECK_EQ(bh_serve_free(s), 0);
}

/* Its list goes with it: what is left is for a sanitizer to find. */
TEST(it_ends_while_somebody_does_not_read_its_list)
{
    enum { MESSAGES = 40 };
    const struct bh_govern_order list = {.op = BH_GOVERN_LIST, .version = BH_GOVERN_WIRE_VERSION};
    struct bh_govern_pids m = {.op = BH_GOVERN_PIDS, .n = BH_GOVERN_SOME_PIDS};
    const int small = 1;
    int pair[2];
    CHECK(begin());
    const int a = joins(1, "a");
    CHECK(a >= 0);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        for (uint32_t k = 0; k < BH_GOVERN_SOME_PIDS; k++)
            m.pids[k] = 1 + i * BH_GOVERN_SOME_PIDS + k;
        m.more = i + 1 < MESSAGES;
        CHECK(say(a, &m, sizeof(m)));
    }
    CHECK_EQ(bh_serve_state(s)->at[0]->pids.n, MESSAGES * BH_GOVERN_SOME_PIDS);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    CHECK_EQ(bh_serve_connect(s, pair[1], NULL), BH_OK);
    CHECK(say(pair[0], &list, sizeof(list)));
    CHECK_EQ(bh_serve_free(s), 0);
    close(a), close(pair[0]);
}

static uint32_t looks;
static bool found;

static bool is_found(void *arg)
{
    (void)arg;
    looks++;
    return found;
}

TEST(one_that_nobody_finds_lets_go_and_ends)
{
    found = true;
    looks = 0;
    CHECK(begin_with((struct bh_serve_config){.listener = -1, .stop = -1, .is_found = is_found}));
    const int a = joins(1, "a"), o = dial();
    CHECK(a >= 0 && o >= 0);
    CHECK_EQ(orders(o, BH_GOVERN_PAUSE, "a"), BH_OK);
    work(5000 * MS);
    CHECK(looks >= 4 && looks <= 6 && !bh_serve_is_over(s) && fake_paused(&fake) == 1);
    found = false;
    work(1100 * MS);
    CHECK(bh_serve_is_over(s));
    CHECK_EQ(bh_serve_free(s), 0);
    CHECK_EQ(fake_paused(&fake), 0);
    close(a), close(o);
}

TEST_MAIN
