/* SPDX-License-Identifier: Apache-2.0 */
/* link_probe_test.c - whoever sends there, and whatever: so much is read at a time, and numbers come of it or nothing. */
#include "warden/link_probe.h"

#include "base/mem.h"
#include "base/test.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bh_link_probe probe;
static struct bh_govern_own own;
static int in, out; /* where it is sent, and read */
static int64_t now;

static bool begin(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    out = ends[0];
    bh_link_probe_init(&probe, out);
    in = ends[1];
    now = 100000;
    own = (struct bh_govern_own){0};
    return true;
}

static void end(void)
{
    if (in >= 0)
        close(in);
    bh_link_probe_fini(&probe);
    CHECK(close(out) == 0); /* it does not: one that is the last could take long */
}

static bool say(const char *text)
{
    return write(in, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool look(void)
{
    now += BH_LINK_PROBE_MS;
    return bh_link_probe_read(&probe, now, &own);
}

TEST(nothing_is_read_before_something_was_said)
{
    CHECK(begin());
    CHECK(!look() && !probe.own);
    CHECK(bh_link_probe_wake(&probe));
    CHECK(look() && own.op == BH_GOVERN_OWN && !probe.hot); /* it was nothing */
    end();
    CHECK(!bh_link_probe_wake(&probe)); /* there is none */
}

TEST(lines_become_numbers_until_it_is_silent)
{
    CHECK(begin() && bh_link_probe_wake(&probe));
    for (int i = 0; i < 30; i++) {
        CHECK(say("done 50\nlatency 412us\n"));
        CHECK(look());
        CHECK(!bh_link_probe_read(&probe, now + 1, &own)); /* no oftener, whatever wakes it */
    }
    CHECK(own.done == 30 * 50 && own.lines == 30 && own.garbage == 0);
    CHECK(own.has_rate && own.rate_milli > 480000 && own.rate_milli < 540000);
    CHECK(own.p50_us >= 400 && own.p99_us <= 424);
    int silent = 0;
    while (probe.hot && silent++ < 100)
        CHECK(look());
    CHECK(silent >= 40 && silent <= 60); /* the window of five seconds */
    CHECK(!own.has_rate && own.p50_us == UINT32_MAX && own.done == 30 * 50);
    CHECK(!look());
    end();
}

/* A datagram is lines, and its last one needs no end; half a line is not continued by the next. */
TEST(a_datagram_stands_alone)
{
    char much[BH_LINK_PROBE_LONGEST + 2];
    CHECK(begin() && bh_link_probe_wake(&probe));
    CHECK(say("done 5") && say("done 6\n") && say("done 7\ndone 8") && look());
    CHECK(own.done == 26 && own.lines == 4 && own.garbage == 0);
    CHECK(say("done ") && say("9") && look() && own.done == 26 && own.garbage == 2);
    CHECK(say("") && look() && own.garbage == 3);
    /* as long as may be, and one byte more: that is one that is ignored, whatever is in it */
    for (size_t i = 0; i + 7 <= sizeof(much); i += 7)
        memcpy(much + i, "done 1\n", 7);
    CHECK(write(in, much, BH_LINK_PROBE_LONGEST - 2) == BH_LINK_PROBE_LONGEST - 2 && look());
    CHECK(own.lines == 4 + (BH_LINK_PROBE_LONGEST - 2) / 7 && own.garbage == 3);
    CHECK(write(in, much, BH_LINK_PROBE_LONGEST + 1) == BH_LINK_PROBE_LONGEST + 1 && look());
    CHECK(own.lines == 4 + (BH_LINK_PROBE_LONGEST - 2) / 7 && own.garbage == 4);
    end();
}

/* Whose descriptors we would have to close, and wait for. */
TEST(who_sends_descriptors_is_not_heard_any_more)
{
    CHECK(begin() && bh_link_probe_wake(&probe));
    CHECK(say("done 5") && bh_fds_send(in, "done 6", 6, &in, 1, NULL) == BH_OK && say("done 7"));
    CHECK(look() && own.done == 5 && own.garbage == 1 && probe.hot);
    for (int i = 0; i < 100 && probe.hot; i++)
        CHECK(look());
    CHECK(!probe.hot && own.done == 5 && own.garbage == 1);
    CHECK(!bh_link_probe_wake(&probe) && !look());
    end();
}

/* A launcher from before an upgrade has a FIFO: to read it is to wait for whoever writes. */
TEST(what_is_no_socket_is_never_read)
{
    int ends[2], n = 0;
    CHECK(begin());
    CHECK(pipe2(ends, O_CLOEXEC) == 0 && write(ends[1], "done 5\n", 7) == 7);
    probe.fd = ends[0];
    CHECK(bh_link_probe_wake(&probe) && look() && own.done == 0 && own.garbage == 1);
    CHECK(look() && !probe.hot && !bh_link_probe_wake(&probe));
    CHECK(ioctl(ends[0], FIONREAD, &n) == 0 && n == 7);
    close(ends[0]);
    close(ends[1]);
    end();
}

/* It is full, whoever sends waits or is told so, and we read no more than ever. */
TEST(a_flood_costs_whoever_sends_it)
{
    char junk[BH_LINK_PROBE_LONGEST];
    memset(junk, 'x', sizeof(junk));
    for (size_t i = 15; i < sizeof(junk); i += 16)
        junk[i] = '\n';
    CHECK(begin() && bh_link_probe_wake(&probe));
    for (int i = 0; i < 50; i++) {
        uint64_t wrote = 0;
        while (write(in, junk, sizeof(junk)) == (ssize_t)sizeof(junk))
            wrote += sizeof(junk);
        CHECK(errno == EAGAIN && wrote > 0 && (i == 0 || wrote <= BH_LINK_PROBE_BYTES));
        const uint64_t before = own.garbage;
        CHECK(look());
        CHECK(own.garbage > before && own.garbage - before <= BH_LINK_PROBE_BYTES / 16);
    }
    CHECK(own.done == 0 && own.lines == 0);
    /* and afterwards it is heard as ever */
    for (int i = 0; i < 10 && probe.hot; i++)
        CHECK(look());
    CHECK(!probe.hot && bh_link_probe_wake(&probe));
    CHECK(say("done 7\n") && look() && own.done == 7);
    end();
}

/* Senders that refill it while it is read: it ends all the same. */
TEST(it_reads_no_more_than_its_part_whoever_sends_meanwhile)
{
    pid_t sender;
    uint64_t before;
    CHECK(begin() && bh_link_probe_wake(&probe));
    CHECK(fcntl(in, F_SETFL, 0) == 0); /* it waits */
    sender = fork();
    CHECK(sender >= 0);
    if (sender == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (sender == 0 && say("\n"))
        continue;
    if (sender == 0)
        _exit(0);
    for (int i = 0; i < 50; i++) {
        before = own.garbage;
        (void)bh_link_probe_wake(&probe);
        CHECK(look() && own.garbage - before <= BH_LINK_PROBE_DATAGRAMS);
    }
    CHECK(kill(sender, SIGKILL) == 0 && waitpid(sender, NULL, 0) == sender);
    end();
}

TEST(huge_numbers_and_garbage_are_bounded)
{
    CHECK(begin() && bh_link_probe_wake(&probe));
    for (int i = 0; i < 100; i++)
        CHECK(say("done 1000000000000\n") && look());
    CHECK(own.done == UINT64_C(100) * 1000000000000 && own.rate_milli <= UINT64_C(2300) * 1000000000000);
    CHECK(say("done 99999999999999999999999999\nlatency 18446744073709551616us\n") && look());
    CHECK(own.garbage == 2 && own.p99_us == UINT32_MAX);
    CHECK(write(in, "\0\xff\x80\n", 4) == 4 && look() && own.garbage == 3);
    end();
}

/* Each line is one datagram, and none is torn or lost. */
TEST(many_writers_are_added_up)
{
    enum { WRITERS = 8, LINES = 500 };
    pid_t at[WRITERS];
    CHECK(begin() && bh_link_probe_wake(&probe));
    CHECK(fcntl(in, F_SETFL, 0) == 0); /* they wait */
    for (int i = 0; i < WRITERS; i++) {
        at[i] = fork();
        CHECK(at[i] >= 0);
        for (int k = 0; at[i] == 0 && k < LINES; k++)
            if (!say("done 3\n"))
                _exit(1);
        if (at[i] == 0)
            _exit(0);
    }
    for (int i = 0; i < 100000 && own.lines < WRITERS * LINES; i++) {
        (void)bh_link_probe_wake(&probe);
        CHECK(look());
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        CHECK(waitpid(at[i], &status, 0) == at[i] && status == 0);
    }
    CHECK(own.done == UINT64_C(3) * WRITERS * LINES && own.garbage == 0);
    end();
}

TEST(all_writers_gone_is_silence)
{
    CHECK(begin() && bh_link_probe_wake(&probe));
    CHECK(say("done 5\ndone 6"));
    close(in);
    CHECK(look() && own.done == 11 && probe.hot);
    for (int i = 0; i < 100 && probe.hot; i++)
        CHECK(look());
    CHECK(!probe.hot && own.done == 11);
    in = -1;
    end();
}

TEST_MAIN
