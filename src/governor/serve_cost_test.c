/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop asks of the kernel when a warden tells it what its tenants say, which eight of them do eighty times a second. */
#include "base/test.h"
#include "governor/serve_fixture.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { TURNS = 300 };

static int warden = -1, stop = -1;
static uint32_t turns, timers, reads;

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
ssize_t __real_recv(int fd, void *at, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *at, size_t n, int flags);

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
    timers++;
    return __real_timerfd_settime(fd, flags, at, old);
}

ssize_t __wrap_recv(int fd, void *at, size_t n, int flags)
{
    reads++;
    return __real_recv(fd, at, n, flags);
}

/* Once in each turn, after the wait: so another message waits for the next one. */
static uint64_t tell_and_say_time(void)
{
    const struct bh_govern_own own = {.op = BH_GOVERN_OWN, .done = turns};
    const uint64_t one = 1;
    if (warden >= 0 && turns++ < TURNS)
        (void)!send(warden, &own, sizeof(own), MSG_NOSIGNAL);
    else if (warden >= 0)
        (void)!write(stop, &one, sizeof(one));
    return now += MS;
}

TEST(what_tenants_say_costs_one_read_and_no_timer)
{
    const struct bh_govern_join join = {
        .op = BH_GOVERN_JOIN, .version = BH_GOVERN_WIRE_VERSION, .root_pid = 1, .weight = 10};
    stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(stop >= 0);
    CHECK(begin_with((struct bh_serve_config){.listener = -1, .stop = stop, .clock = tell_and_say_time}));
    const int fd = dial();
    CHECK(fd >= 0 && say(fd, &join, sizeof(join)));
    reads = timers = 0;
    warden = fd;
    const struct bh_govern_own first = {.op = BH_GOVERN_OWN};
    CHECK_EQ(send(fd, &first, sizeof(first), MSG_NOSIGNAL), (ssize_t)sizeof(first));
    CHECK_EQ(bh_serve_run(s, NULL), BH_OK);
    warden = -1;
    printf("# %u messages: %u reads, %u timers\n", turns, reads, timers);
    CHECK(turns > TURNS && bh_serve_state(s)->n == 1 && bh_serve_state(s)->at[0]->own.done == TURNS - 1);
    CHECK(reads <= TURNS + 10);
    CHECK(timers <= TURNS / 200 + 4); /* a sign of life is due every 200 ms */
    CHECK_EQ(bh_serve_free(s), 0);
    close(fd);
    close(stop);
}

TEST_MAIN
