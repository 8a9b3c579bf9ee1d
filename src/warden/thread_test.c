/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/thread.h"

#include "base/test.h"
#include "base/units.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
    _Atomic uint32_t tid;
    atomic_bool spin;
    int in[2];
} at;

static uint64_t own_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *lives(void *arg)
{
    (void)arg;
    atomic_store(&at.tid, (uint32_t)syscall(SYS_gettid));
    while (atomic_load(&at.spin))
        continue;
    (void)!read(at.in[0], &(char){0}, 1);
    return NULL;
}

TEST(a_thread_runs_waits_and_is_gone)
{
    struct bh_thread_seen seen, later;
    pthread_t thread;
    const uint32_t self = (uint32_t)getpid();
    CHECK_EQ(pipe(at.in), 0);
    atomic_store(&at.spin, true);
    CHECK_EQ(pthread_create(&thread, NULL, lives, NULL), 0);
    while (!atomic_load(&at.tid))
        (void)usleep(100);
    bh_thread_look(self, at.tid, &seen);
    CHECK_EQ(seen.state, 'R');
    CHECK_EQ(bh_thread_in(self, at.tid, SYS_mmap), BH_THREAD_MAY_BE_IN);
    do
        bh_thread_look(self, at.tid, &later);
    while (later.cpu_ns <= seen.most_ns);
    atomic_store(&at.spin, false);
    do
        bh_thread_look(self, at.tid, &seen);
    while (seen.state == 'R');
    CHECK_EQ(seen.state, 'S');
    CHECK(seen.cpu_ns >= later.cpu_ns && seen.cpu_ns <= seen.most_ns);
    CHECK_EQ(bh_thread_in(self, at.tid, SYS_mmap), BH_THREAD_ELSEWHERE);
    CHECK_EQ(bh_thread_in(self, at.tid, SYS_read), BH_THREAD_MAY_BE_IN);
    close(at.in[1]);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(at.in[0]);
    do
        bh_thread_look(self, at.tid, &seen);
    while (seen.state);
    CHECK_EQ(bh_thread_in(self, at.tid, SYS_mmap), BH_THREAD_UNTOLD);
}

TEST(its_time_is_not_less_than_it_was)
{
    struct bh_thread_seen seen;
    const uint64_t from = own_ns();
    while (own_ns() - from < 30000000)
        continue;
    (void)usleep(1000); /* the kernel sums it up when it stops */
    bh_thread_look((uint32_t)getpid(), (uint32_t)getpid(), &seen);
    CHECK(seen.most_ns >= from + 30000000);
    CHECK(seen.cpu_ns <= own_ns());
}

TEST(when_a_process_began)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK(bh_thread_started((uint32_t)child) >= bh_thread_started((uint32_t)getpid()));
    CHECK(bh_thread_started((uint32_t)getpid()) > 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(bh_thread_started((uint32_t)child), 0);
}

static void *stays(void *arg)
{
    (void)pause();
    return arg;
}

static char state_of(pid_t pid)
{
    struct bh_thread_seen seen;
    bh_thread_look((uint32_t)pid, (uint32_t)pid, &seen);
    return seen.state;
}

TEST(a_process_ends_when_all_its_threads_do)
{
    siginfo_t ended;
    pthread_t thread;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK_EQ(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    CHECK_EQ(bh_thread_living((uint32_t)child), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(bh_thread_living((uint32_t)child), (uint32_t)child);
    CHECK_EQ(bh_thread_living((uint32_t)getpid()), (uint32_t)getpid());
    child = fork();
    if (child == 0) {
        if (pthread_create(&thread, NULL, stays, NULL) != 0)
            _exit(1);
        (void)syscall(SYS_exit, 0); /* the first thread alone */
    }
    for (int i = 0; i < 5000 && state_of(child); i++)
        (void)usleep(1000);
    const bool gone = !state_of(child);
    const uint32_t living = bh_thread_living((uint32_t)child);
    const bool is_its = syscall(SYS_tgkill, child, (pid_t)living, 0) == 0;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    CHECK(gone && living != 0 && living != (uint32_t)child && is_its);
}

enum { LINGER = 80 };
static struct {
    atomic_bool ready, end;
    _Atomic pid_t last;
} *their;

static void *ends_when_told(void *arg)
{
    while (!their->end)
        (void)usleep(1000);
    (void)syscall(SYS_exit, 0);
    return arg;
}

static void *comes_last(void *arg)
{
    their->last = (pid_t)syscall(SYS_gettid);
    their->ready = true;
    return stays(arg);
}

/* Threads that are traced are there until the tracer has waited for them; so are those that wait to close a file of their own. */
static bool trace_but_the_last(pid_t pid)
{
    char path[32];
    bool good = true;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *e; tasks && (e = readdir(tasks));) {
        uint64_t tid;
        if (bh_uint_parse(e->d_name, INT32_MAX, &tid, NULL) == BH_OK && (pid_t)tid != pid &&
            (pid_t)tid != their->last)
            good = good && ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL) == 0;
    }
    if (tasks)
        (void)closedir(tasks);
    return tasks && good;
}

/* How many have begun to end and stay is a tenant's choice: one behind them must be found, or nobody sees what it maps. */
TEST(one_that_lives_is_found_behind_many_that_end)
{
    pthread_t thread;
    uint32_t living = 0;
    their = mmap(NULL, sizeof(*their), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(their != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < LINGER; i++)
            if (pthread_create(&thread, NULL, ends_when_told, NULL) != 0)
                _exit(1);
        if (pthread_create(&thread, NULL, comes_last, NULL) != 0)
            _exit(1);
        (void)ends_when_told(NULL);
    }
    while (!their->ready && waitpid(child, NULL, WNOHANG) == 0)
        (void)usleep(1000);
    const bool traced = trace_but_the_last(child);
    their->end = true;
    for (int i = 0; i < 5000 && living != (uint32_t)their->last; i++) {
        (void)usleep(1000);
        living = bh_thread_living((uint32_t)child);
    }
    CHECK(kill(child, SIGKILL) == 0);
    while (waitpid(-1, NULL, __WALL) > 0)
        continue;
    CHECK(traced);
    CHECK_EQ(living, (uint32_t)their->last);
    CHECK_EQ(munmap(their, sizeof(*their)), 0);
}

TEST_MAIN
