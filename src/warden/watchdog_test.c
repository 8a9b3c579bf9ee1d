/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watchdog.h"

#include "base/scratch.h"
#include "base/test.h"
#include "warden/child_fixture.h"
#include "warden/served_page_fixture.h"
#include "warden/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 100 }; /* after as much again it aborts: long enough for a busy machine */

static struct child start(void)
{
    struct child c;
    (void)child_start(NULL, NULL, &c);
    return c;
}

TEST(who_keeps_the_warden_is_ended)
{
    struct bh_watchdog *w;
    struct child known = start(), gone = start(), who = start();
    CHECK_EQ(bh_watchdog_start(LIMIT_MS, &w, NULL), BH_OK);
    bh_watchdog_add(w, known.pidfd);
    bh_watchdog_add(w, gone.pidfd);
    bh_watchdog_remove(w, gone.pidfd);
    CHECK(!bh_watchdog_bit(w));
    bh_watchdog_enter(w, (uint32_t)who.pid);
    CHECK(child_ends(&who) && child_ends(&known));
    bh_watchdog_leave(w);
    CHECK(bh_watchdog_bit(w));
    bh_watchdog_stop(w);
    CHECK(!child_is_ended(&gone));
    CHECK(child_end(&gone));
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint32_t patience(uint64_t own_bytes, uint64_t mapped_bytes)
{
    return bh_watchdog_patience(200, &(struct bh_watchdog_memory){own_bytes, mapped_bytes});
}

TEST(who_has_much_memory_may_take_longer)
{
    const uint64_t gib = UINT64_C(1) << 30;
    CHECK_EQ(patience(0, 0), 200);
    CHECK_EQ(patience(gib, 0), 320);
    CHECK_EQ(patience(10 * gib, 0), 1400); /* a fork was seen to take 582 ms */
    CHECK_EQ(patience(64 * gib, 0), patience(UINT64_MAX, 0));
    /* what can be mapped many times over buys a fifth of that, and not for long */
    CHECK_EQ(patience(0, 10 * gib), 440);
    CHECK_EQ(patience(gib, 10 * gib), 560);
    CHECK_EQ(patience(0, 16 * gib), patience(0, UINT64_MAX));
    CHECK_EQ(patience(UINT64_MAX, UINT64_MAX), 200 + 7680 + 384);
}

struct memory {
    uint64_t own_bytes, pieces;
};

/* So much memory, of its own or that many times a file of the kernel's; NULL: there is none. */
static void *has_memory(const void *arg)
{
    enum { PIECE = 64 << 20 };
    const struct memory *m = arg;
    static char yes;
    const int fd = memfd_create("gigabytes", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, PIECE) < 0)
        return NULL;
    if (m->own_bytes && mmap(NULL, m->own_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED)
        return NULL;
    for (uint64_t i = 0; i < m->pieces; i++)
        if (mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0) == MAP_FAILED)
            return NULL;
    return &yes;
}

static void *goes_on(void *arg)
{
    for (;;)
        (void)pause();
    return arg;
}

/* Who lives is asked: else one with much memory would have no more patience than one without. */
TEST(memory_is_known_without_the_first_thread)
{
    enum { BYTES = 16 << 20 };
    struct bh_thread_seen seen = {.state = '?'};
    pthread_t thread;
    const pid_t child = fork();
    if (child == 0) {
        if (mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) ==
                MAP_FAILED ||
            pthread_create(&thread, NULL, goes_on, NULL) != 0)
            _exit(1);
        (void)syscall(SYS_exit, 0); /* the first thread alone */
    }
    for (int i = 0; i < 5000 && seen.state; i++) {
        (void)usleep(1000);
        bh_thread_look((uint32_t)child, (uint32_t)child, &seen);
    }
    const struct bh_watchdog_memory has = bh_watchdog_memory_of((uint32_t)child);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    CHECK(!seen.state && has.own_bytes >= BYTES);
    CHECK_EQ(bh_watchdog_memory_of((uint32_t)child).own_bytes, 0);
}

/* After how long one with such memory is ended, by a watchdog of 200 ms; 0: it could not be tried. */
static uint64_t ended_after_ms(struct memory has, struct bh_watchdog_memory *ret)
{
    struct bh_watchdog *w;
    struct child who;
    const bool good = child_start(has_memory, &has, &who) && who.made;
    *ret = bh_watchdog_memory_of((uint32_t)who.pid);
    if (!good || bh_watchdog_start(200, &w, NULL) < 0) {
        (void)child_end(&who);
        return 0;
    }
    const uint64_t from = now_ms();
    bh_watchdog_enter(w, (uint32_t)who.pid);
    while (!bh_watchdog_bit(w) && now_ms() - from < 10000)
        (void)usleep(1000);
    bh_watchdog_leave(w); /* at once: how long the kernel takes to free all that is not the question */
    const uint64_t took = now_ms() - from;
    bh_watchdog_stop(w);
    return child_ends(&who) ? took : 0;
}

/* No load makes it sooner, as the watchdog waits between its looks. */
TEST(one_with_much_memory_is_not_ended_at_once)
{
    struct bh_watchdog_memory m;
    const uint64_t own_bytes = UINT64_C(512) << 20, took = ended_after_ms((struct memory){own_bytes, 0}, &m);
    printf("# %u ms\n", (unsigned)took);
    CHECK(m.own_bytes >= own_bytes && m.mapped_bytes < own_bytes / 2);
    CHECK(took >= 250); /* without it: 200 */
}

/* Eight gigabytes that cost next to nothing. A machine with much to do makes it later, so one of a few has to be in time. */
TEST(what_is_mapped_many_times_over_buys_little)
{
    struct bh_watchdog_memory m;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5 && least >= 900; i++) {
        const uint64_t took = ended_after_ms((struct memory){0, 128}, &m);
        CHECK(took && m.mapped_bytes >= UINT64_C(8) << 30 && m.own_bytes < UINT64_C(1) << 30);
        least = took < least ? took : least;
    }
    printf("# %u ms\n", (unsigned)least);
    CHECK(least >= 390 && least < 900); /* as much of its own: 1160 */
}

/* A machine with too much to do lets the warden wait for a processor: that is no tenant's doing. */
TEST(a_warden_that_would_run_is_kept_by_nobody)
{
    struct bh_watchdog *w;
    struct child known = start();
    struct timespec now, from;
    CHECK_EQ(bh_watchdog_start(LIMIT_MS, &w, NULL), BH_OK);
    bh_watchdog_add(w, known.pidfd);
    bh_watchdog_enter(w, (uint32_t)known.pid);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    do
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < 4 * LIMIT_MS);
    bh_watchdog_leave(w);
    CHECK(!bh_watchdog_bit(w) && !child_is_ended(&known));
    bh_watchdog_stop(w);
    CHECK(child_end(&known));
}

static char folder[BH_SCRATCH_SOCKET_PATH];

static void *no_page(const void *arg)
{
    const int way = *(const int *)arg;
    void *page = way == 0 ? served_by_fault(false, -1) : served_by_file(folder, way == 2);
    if (!page)
        fprintf(stderr, "# no such page here: %s\n", strerror(errno));
    return page;
}

/* Much memory, and pages that never come: by a fault that it fills in, from a file system of its own, and from one that is read
 * ahead. Nobody needs the time that a fork or a disk is given for these. */
TEST(who_fills_in_its_pages_itself_is_ended_soon)
{
    enum { LONG_MS = 2000 };
    CHECK(bh_scratch_make(folder, sizeof(folder), "watchdog"));
    for (int way = 0; way < 3; way++) {
        struct bh_watchdog *w;
        struct child who;
        char to[8];
        CHECK(child_start(no_page, &way, &who));
        CHECK_EQ(bh_watchdog_start(LONG_MS, &w, NULL), BH_OK);
        const struct iovec local = {to, sizeof(to)}, remote = {who.made, sizeof(to)};
        const uint64_t from = now_ms();
        bh_watchdog_enter(w, (uint32_t)who.pid);
        if (who.made)
            (void)!process_vm_readv(who.pid, &local, 1, &remote, 1, 0);
        bh_watchdog_leave(w);
        const uint64_t took = now_ms() - from;
        printf("# way %d: %u ms of %d\n", way, (unsigned)took, LONG_MS);
        const bool bit = bh_watchdog_bit(w);
        bh_watchdog_stop(w);
        CHECK(who.made ? child_ends(&who) : child_end(&who));
        CHECK(!who.made || (bit && took < LONG_MS));
    }
    CHECK_EQ(rmdir(folder), 0);
}

/* It sleeps while nobody is looked at, and is there when somebody is. */
TEST(one_that_keeps_the_warden_after_a_long_quiet_is_ended)
{
    struct bh_watchdog *w;
    struct child who = start();
    CHECK_EQ(bh_watchdog_start(LIMIT_MS, &w, NULL), BH_OK);
    for (int i = 0; i < 3; i++) {
        (void)usleep(3 * LIMIT_MS * 1000);
        bh_watchdog_enter(w, (uint32_t)who.pid);
        bh_watchdog_leave(w);
    }
    (void)usleep(3 * LIMIT_MS * 1000);
    CHECK(!bh_watchdog_bit(w) && !child_is_ended(&who));
    bh_watchdog_enter(w, (uint32_t)who.pid);
    CHECK(child_ends(&who));
    bh_watchdog_leave(w);
    bh_watchdog_stop(w);
}

TEST(who_does_not_is_not)
{
    struct bh_watchdog *w;
    struct child known = start();
    CHECK_EQ(bh_watchdog_start(LIMIT_MS, &w, NULL), BH_OK);
    bh_watchdog_add(w, known.pidfd);
    for (int i = 0; i < 200; i++) {
        bh_watchdog_enter(w, (uint32_t)known.pid);
        bh_watchdog_leave(w);
        (void)usleep(500);
    }
    CHECK(!bh_watchdog_bit(w) && !child_is_ended(&known));
    bh_watchdog_stop(w);
    bh_watchdog_stop(NULL);
    bh_watchdog_enter(NULL, 1);
    bh_watchdog_leave(NULL);
    CHECK(child_end(&known));
}

/* Nothing helps: the warden goes, and another one can take over. */
TEST(a_warden_that_cannot_be_freed_ends)
{
    int status = 0;
    pid_t warden = fork();
    if (warden == 0) {
        struct bh_watchdog *w;
        (void)close(STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        if (bh_watchdog_start(LIMIT_MS, &w, NULL) < 0)
            _exit(1);
        struct child who = start();
        bh_watchdog_enter(w, (uint32_t)who.pid);
        for (;;)
            (void)pause();
    }
    CHECK_EQ(waitpid(warden, &status, 0), warden);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST_MAIN
