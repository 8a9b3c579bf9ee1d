/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/refused.h"

#include "base/test.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = 100 };
static struct bh_refused r;

static bool begin(void)
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    bh_refused_init(&r, epoll, FIRST);
    return epoll >= 0;
}

static void end(void)
{
    bh_refused_fini(&r);
    close(r.epoll);
}

/* Its end of a connection on which it has said something, and was answered. */
static int comes(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0 ||
        send(pair[0], "order", 5, 0) != 5 || send(pair[1], "no", 2, 0) != 2)
        return -1;
    bh_refused_add(&r, pair[1]);
    return pair[0];
}

static void hear_all(void)
{
    struct epoll_event e[BH_REFUSED_PLACES];
    for (int n; (n = epoll_wait(r.epoll, e, BH_REFUSED_PLACES, 0)) > 0;)
        for (int i = 0; i < n; i++)
            bh_refused_hear(&r, e[i].data.u32 - FIRST);
}

TEST(it_hears_the_answer_whatever_it_says)
{
    char word[8];
    CHECK(begin());
    const int fd = comes();
    hear_all();
    CHECK_EQ(send(fd, "more", 4, MSG_NOSIGNAL), 4);
    hear_all();
    CHECK_EQ(recv(fd, word, sizeof(word), 0), 2);
    CHECK_EQ(recv(fd, word, sizeof(word), 0), 0);
    CHECK(r.fds[0] >= 0);
    close(fd);
    hear_all();
    CHECK_EQ(r.fds[0], -1);
    end();
}

TEST(the_one_that_was_there_longest_makes_room)
{
    int fds[BH_REFUSED_PLACES + 1];
    char word[8];
    CHECK(begin());
    for (uint32_t i = 0; i <= BH_REFUSED_PLACES; i++)
        CHECK((fds[i] = comes()) >= 0);
    CHECK(recv(fds[0], word, sizeof(word), 0) < 0 && errno == ECONNRESET);
    hear_all();
    for (uint32_t i = 1; i <= BH_REFUSED_PLACES; i++)
        CHECK_EQ(recv(fds[i], word, sizeof(word), 0), 2);
    bh_refused_hear(&r, BH_REFUSED_PLACES); /* there is none */
    for (uint32_t i = 0; i <= BH_REFUSED_PLACES; i++)
        close(fds[i]);
    end();
}

TEST_MAIN
