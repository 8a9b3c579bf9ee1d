/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/aside.h"

#include "base/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct bh_aside aside;
static int kept, end; /* this program's stderr; the other end of what is in its place */

static bool put(int pair[2])
{
    end = pair[0];
    aside = (struct bh_aside){0};
    kept = dup(STDERR_FILENO);
    (void)signal(SIGPIPE, SIG_IGN);
    const bool ok = kept >= 0 && dup2(pair[1], STDERR_FILENO) >= 0;
    close(pair[1]);
    return ok;
}

static void take_back(void)
{
    (void)dup2(kept, STDERR_FILENO);
    close(kept);
}

/* Everything that is there now. */
static size_t empty(char *ret, size_t size)
{
    size_t n = 0;
    ssize_t got;
    (void)fcntl(end, F_SETFL, O_NONBLOCK);
    while (n < size && (got = read(end, ret + n, size - n)) > 0)
        n += (size_t)got;
    return n;
}

static bool fill(void)
{
    static const char junk[4096];
    const int flags = fcntl(STDERR_FILENO, F_GETFL);
    (void)fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDERR_FILENO, junk, sizeof(junk)) > 0)
        continue;
    while (write(STDERR_FILENO, junk, 1) > 0)
        continue;
    return fcntl(STDERR_FILENO, F_SETFL, flags) == 0;
}

static bool waits_and_comes(int pair[2])
{
    static char got[1 << 20];
    const bool was_put = put(pair) && fill();
    bh_aside_say(&aside, "one\n"); /* does not hang */
    const size_t waited = aside.waiting.n, junk = empty(got, sizeof(got));
    bh_aside_say(&aside, "two\n");
    const size_t n = empty(got, sizeof(got));
    bh_aside_end(&aside);
    take_back();
    close(end);
    return was_put && waited == 4 && junk > 4096 && n == 8 && memcmp(got, "one\ntwo\n", 8) == 0;
}

TEST(a_full_pipe_is_not_waited_for)
{
    int pair[2];
    CHECK(pipe(pair) == 0);
    CHECK(waits_and_comes(pair));
}

TEST(nor_is_a_full_socket)
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(waits_and_comes(pair));
}

TEST(the_rest_comes_at_the_end)
{
    static char got[1 << 20];
    int pair[2];
    CHECK(pipe(pair) == 0 && put(pair) && fill());
    bh_aside_say(&aside, "late\n");
    const size_t junk = empty(got, sizeof(got));
    bh_aside_end(&aside);
    const size_t n = empty(got, sizeof(got));
    take_back();
    close(end);
    CHECK(junk > 0 && n == 5 && memcmp(got, "late\n", 5) == 0);
}

TEST(what_nobody_reads_is_let_go)
{
    int pair[2];
    CHECK(pipe(pair) == 0 && put(pair));
    close(end);
    bh_aside_say(&aside, "gone\n");
    const size_t left = aside.waiting.n;
    bh_aside_end(&aside);
    take_back();
    CHECK_EQ(left, 0);
}

TEST(what_waits_has_a_bound)
{
    int pair[2];
    CHECK(pipe(pair) == 0 && put(pair) && fill());
    for (int i = 0; i < 100000; i++)
        bh_aside_say(&aside, "again\n");
    const size_t waiting = aside.waiting.n;
    close(end);
    bh_aside_end(&aside);
    take_back();
    CHECK(waiting > 60000 && waiting <= 65536);
}

TEST_MAIN
