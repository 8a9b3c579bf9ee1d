/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker.h"

#include "base/mem.h"
#include "base/test.h"
#include "host/limits.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void adds(const void *arg, struct bh_worker_result *ret)
{
    const uint64_t *n = arg;
    ret->probed_bytes = n[0] + n[1];
    ret->code = BH_REFUSED;
    memset(ret->text, 'x', sizeof(ret->text)); /* one that is not ended is, by the reader */
}

static void dies(const void *arg, struct bh_worker_result *ret)
{
    (void)arg;
    (void)ret;
    (void)kill(getpid(), SIGKILL);
}

static void waits(const void *arg, struct bh_worker_result *ret)
{
    (void)arg;
    (void)ret;
    pause();
}

/* How many of the daemon's descriptors are open there. */
static void counts(const void *arg, struct bh_worker_result *ret)
{
    const int *last = arg;
    for (int fd = STDERR_FILENO + 2; fd <= *last; fd++)
        ret->verdict += fcntl(fd, F_GETFD) >= 0;
}

/* It is not waited for by whoever takes its result, so it may take a moment. */
static bool nobody_is_left(void)
{
    struct bh_worker_seen seen;
    size_t at = 0;
    for (int i = 0; i < 1000 && (at = 0, bh_worker_next(&at, &seen)); i++) {
        (void)poll(NULL, 0, 10);
        bh_worker_tick();
    }
    at = 0;
    return !bh_worker_next(&at, &seen) && waitpid(-1, NULL, WNOHANG) < 0;
}

/* As one whose child has hung in the driver for good: ending it does not close the other end. */
static void hangs(const void *arg, struct bh_worker_result *ret)
{
    (void)arg;
    (void)ret;
    if (fork() == 0) {
        (void)poll(NULL, 0, 20000);
        _exit(0);
    }
    pause();
}

static void tells_its_files(const void *arg, struct bh_worker_result *ret)
{
    struct rlimit now = {0};
    (void)arg;
    (void)getrlimit(RLIMIT_NOFILE, &now);
    ret->total_bytes = now.rlim_cur;
}

/* The daemon takes all the descriptors that it may have; whoever it starts has what it was given itself. */
TEST(as_many_files_as_the_daemon_was_given)
{
    struct bh_worker w;
    struct bh_worker_result r;
    struct bh_err err = {0};
    struct rlimit low, now = {0};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &low), 0);
    low.rlim_cur = 100;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    bh_limits_raise_files();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
    CHECK(now.rlim_cur > 100);
    CHECK_EQ(bh_worker_start(tells_its_files, NULL, &w, &err), 0);
    bh_worker_finish(&w, &r);
    CHECK_EQ(r.total_bytes, 100);
    CHECK(nobody_is_left());
}

TEST(one_result)
{
    const uint64_t n[2] = {40, 2};
    struct bh_worker w;
    struct bh_worker_result r;
    struct bh_err err;
    CHECK_EQ(bh_worker_start(adds, n, &w, &err), BH_OK);
    struct pollfd at = {.fd = w.fd, .events = POLLIN};
    CHECK_EQ(poll(&at, 1, 60000), 1);
    bh_worker_finish(&w, &r);
    CHECK_EQ(r.probed_bytes, 42);
    CHECK_EQ(r.code, BH_REFUSED);
    CHECK_EQ(strlen(r.text), sizeof(r.text) - 1);
    CHECK_EQ(w.pid, 0);
    CHECK(nobody_is_left());
}

TEST(one_that_dies_is_a_failure)
{
    struct bh_worker w;
    struct bh_worker_result r = {0};
    struct bh_err err;
    CHECK_EQ(bh_worker_start(dies, NULL, &w, &err), BH_OK);
    bh_worker_finish(&w, &r);
    CHECK_EQ(r.code, BH_SYSTEM);
    CHECK(strstr(r.text, "died") != NULL);
    CHECK(nobody_is_left());
}

TEST(one_that_is_not_wanted_any_more)
{
    struct bh_worker w;
    struct bh_err err;
    CHECK_EQ(bh_worker_start(waits, NULL, &w, &err), BH_OK);
    bh_worker_kill(&w);
    CHECK_EQ(w.pid, 0);
    CHECK_EQ(w.fd, -1);
    bh_worker_kill(&w); /* none: fine */
    CHECK(nobody_is_left());
}

TEST(one_that_hangs_has_its_time)
{
    struct bh_worker w;
    struct bh_worker_result r = {0};
    struct bh_worker_seen seen;
    struct bh_err err;
    size_t at = 0;
    CHECK_EQ(setenv("BULKHEAD_WORKER_TIMEOUT", "1", 1), 0);
    CHECK_EQ(bh_worker_start(hangs, NULL, &w, &err), BH_OK);
    bh_worker_name(&w, "L%d is scrubbing", 7);
    CHECK(bh_worker_next(&at, &seen));
    CHECK_STR(seen.what, "L7 is scrubbing");
    CHECK_EQ(seen.limit_ms, 1000);
    CHECK(!seen.over && !bh_worker_next(&at, &seen));
    bh_worker_wait(&w, &r);
    CHECK_EQ(r.code, BH_BUSY);
    CHECK(strstr(r.text, "not done after 1 s") != NULL);
    CHECK_EQ(w.pid, 0);
    CHECK(nobody_is_left());
    CHECK_EQ(unsetenv("BULKHEAD_WORKER_TIMEOUT"), 0);
}

TEST(one_that_does_not_go_is_not_waited_for)
{
    struct bh_worker w;
    struct bh_worker_seen seen;
    struct bh_err err;
    size_t at = 0;
    CHECK_EQ(bh_worker_start(waits, NULL, &w, &err), BH_OK);
    const pid_t pid = w.pid;
    CHECK_EQ(kill(pid, SIGSTOP), 0);
    bh_worker_kill(&w);
    /* It is listed as over until it is gone, however long that takes. */
    CHECK(!bh_worker_next(&at, &seen) || (seen.over && seen.pid == pid));
    CHECK(nobody_is_left());
}

TEST(it_has_no_file_of_the_daemons)
{
    struct bh_worker w;
    struct bh_worker_result r;
    struct bh_err err;
    int last = -1;
    int mine[8];
    for (size_t i = 0; i < BH_COUNT_OF(mine); i++)
        last = mine[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    last += 8;
    CHECK_EQ(bh_worker_start(counts, &last, &w, &err), BH_OK);
    bh_worker_finish(&w, &r);
    CHECK_EQ(r.code, BH_OK);
    CHECK_EQ(r.verdict, 0);
    for (size_t i = 0; i < BH_COUNT_OF(mine); i++)
        close(mine[i]);
}

/* Says through the one descriptor what it read from the other, and which others there are. */
static void passes_on(const void *arg, struct bh_worker_result *ret)
{
    (void)arg;
    (void)!pread(BH_WORKER_WITH_FD, ret->text, sizeof(ret->text) - 1, 0);
    (void)!pwrite(BH_WORKER_WITH_FD, "back", 4, 0);
    ret->verdict = (uint32_t)(fcntl(BH_WORKER_WITH_FD + 1, F_GETFD) >= 0);
    /* Both are there for another program, too. */
    ret->probed_bytes = (uint64_t)(fcntl(BH_WORKER_WITH_FD, F_GETFD) | fcntl(BH_WORKER_RESULT_FD, F_GETFD));
}

TEST(one_file_goes_with_it)
{
    struct bh_worker w;
    struct bh_worker_result r = {0};
    struct bh_err err;
    char text[8] = "";
    /* Whatever number it has here: also those that it and the result have there. */
    for (int at = BH_WORKER_RESULT_FD; at < BH_WORKER_RESULT_FD + 4; at++) {
        const int made = memfd_create("test", MFD_CLOEXEC), fd = fcntl(made, F_DUPFD_CLOEXEC, at);
        CHECK_EQ(close(made), 0);
        CHECK_EQ(pwrite(fd, "there", 5, 0), 5);
        CHECK_EQ(bh_worker_start_with(passes_on, NULL, fd, &w, &err), BH_OK);
        bh_worker_finish(&w, &r);
        CHECK_EQ(r.code, BH_OK);
        CHECK_STR(r.text, "there");
        CHECK_EQ(r.verdict, 0);
        CHECK_EQ(r.probed_bytes, 0);
        CHECK_EQ(pread(fd, text, 4, 0), 4);
        CHECK_STR(text, "back");
        CHECK_EQ(close(fd), 0);
    }
    CHECK(nobody_is_left());
}

TEST_MAIN
