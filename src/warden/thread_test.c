/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/thread.h"

#include "base/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
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

TEST_MAIN
