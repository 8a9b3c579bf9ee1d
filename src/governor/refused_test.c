/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/refused.h"

#include "base/test.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
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

static int listener_at(struct sockaddr_un *ret, socklen_t *ret_size)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    *ret_size = sizeof(*ret);
    /* without a name: the kernel finds one, which is no file's */
    return bind(fd, (const struct sockaddr *)ret, sizeof(ret->sun_family)) == 0 && listen(fd, 4) == 0 &&
                   getsockname(fd, (struct sockaddr *)ret, ret_size) == 0
               ? fd
               : -1;
}

/* From now on there is no descriptor left. */
static bool take_all(struct rlimit *ret_before)
{
    const int next = dup(STDERR_FILENO);
    close(next);
    const bool known = next >= 0 && getrlimit(RLIMIT_NOFILE, ret_before) == 0;
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = ret_before->rlim_max};
    return known && setrlimit(RLIMIT_NOFILE, &none) == 0;
}

TEST(who_comes_when_no_descriptor_is_left_does_not_stay_at_the_door)
{
    struct sockaddr_un at;
    struct rlimit before;
    socklen_t size;
    int fds[2];
    char word;
    CHECK(begin());
    const int listener = listener_at(&at, &size);
    CHECK(listener >= 0);
    for (size_t i = 0; i < 2; i++) {
        fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK_EQ(connect(fds[i], (const struct sockaddr *)&at, size), 0);
    }
    CHECK(take_all(&before));
    CHECK(accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EMFILE);
    CHECK(bh_refused_send_away(&r, listener));
    CHECK_EQ(recv(fds[0], &word, 1, 0), 0);
    CHECK(recv(fds[1], &word, 1, 0) < 0 && errno == EAGAIN);
    CHECK(bh_refused_send_away(&r, listener)); /* it has a spare one again */
    CHECK_EQ(recv(fds[1], &word, 1, 0), 0);
    CHECK(!bh_refused_send_away(&r, listener));
    CHECK_EQ(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 0), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(fds[0]);
    close(fds[1]);
    close(listener);
    end();
}

TEST_MAIN
