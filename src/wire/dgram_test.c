/* SPDX-License-Identifier: Apache-2.0 */
/* dgram_test.c - whatever a stranger sends is taken at once, or left where it is: its descriptors are never closed by us. */
#include "wire/dgram.h"

#include "base/test.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int at, from;
static char got[8];

static bool begin(void)
{
    int ends[2];
    const bool ok =
        socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0; /* one that blocks, and we do not */
    at = ok ? ends[0] : -1;
    from = ok ? ends[1] : -1;
    return ok;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* The other end of a pipe is in the socket, and nowhere else. True: somebody has it still. */
static bool is_held(int pipe)
{
    char byte;
    return read(pipe, &byte, 1) < 0 && errno == EAGAIN;
}

static bool send_pipe(int *ret)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    const bool ok = bh_fds_send(from, "x", 1, &ends[1], 1, NULL) == BH_OK;
    close(ends[1]);
    *ret = ends[0];
    return ok;
}

TEST(each_is_taken_once_and_never_waited_for)
{
    CHECK(begin());
    CHECK(bh_dgram_take(at, got, sizeof(got)) < 0 && errno == EAGAIN);
    CHECK(send(from, "one", 3, 0) == 3 && send(from, "", 0, 0) == 0 &&
          send(from, "longer than it", 14, 0) == 14);
    CHECK(bh_dgram_take(at, got, sizeof(got)) == 3 && memcmp(got, "one", 3) == 0);
    CHECK_EQ(bh_dgram_take(at, got, sizeof(got)), 0);
    CHECK_EQ(bh_dgram_take(at, got, sizeof(got)), 14);
    CHECK(bh_dgram_take(at, got, sizeof(got)) < 0 && errno == EAGAIN);
    bh_dgram_end(at);
    CHECK(!is_open(at));
    close(from);
}

TEST(one_with_descriptors_stays_where_it_is)
{
    int pipe;
    CHECK(begin());
    CHECK(send(from, "one", 3, 0) == 3 && send_pipe(&pipe) && send(from, "two", 3, 0) == 3);
    CHECK_EQ(bh_dgram_take(at, got, sizeof(got)), 3);
    for (int i = 0; i < 3; i++)
        CHECK(bh_dgram_take(at, got, sizeof(got)) < 0 && errno == EPERM && is_held(pipe));
    bh_dgram_end(at); /* left to the end of this process */
    CHECK(is_open(at) && is_held(pipe));
    CHECK(send(from, "three", 5, MSG_NOSIGNAL) < 0 && errno == EPIPE);
    close(at);
    CHECK(!is_held(pipe));
    close(pipe);
    close(from);
}

TEST(what_waits_is_thrown_away_at_the_end)
{
    CHECK(begin());
    while (send(from, "more", 4, MSG_DONTWAIT) == 4)
        continue;
    CHECK_EQ(errno, EAGAIN);
    bh_dgram_end(at);
    CHECK(!is_open(at));
    CHECK(send(from, "more", 4, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED);
    close(from);
}

TEST(senders_are_told_where_the_kernel_can)
{
    int pipe = -1;
    socklen_t n = sizeof(int);
    int on = -1;
    enum { PASSRIGHTS = 83 };
    CHECK(begin());
    const bool can = getsockopt(at, SOL_SOCKET, PASSRIGHTS, &on, &n) == 0;
    bh_dgram_no_fds(at);
    CHECK(send_pipe(&pipe) == !can);
    close(pipe);
    CHECK(send(from, "x", 1, MSG_DONTWAIT) == 1);
    close(at);
    close(from);
}

TEST_MAIN
