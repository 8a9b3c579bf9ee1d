/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c - many who ask at once, in every way in which a process or a thread can be made. */
#include "bypass.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 24, STACK = 256 << 10 };

/* What all of an attempt's processes have got. */
static struct {
    _Atomic uint64_t got;
    atomic_uint done, failed;
} *all;

static void share(void)
{
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        bp_cannot("no shared page");
}

/* Quietly: takes until refused. */
static void take_all(struct rm *r)
{
    uint64_t got = 0;
    while (got < BP_TIMES * bp.cap && rm_take(r, bp.piece / 2 / (2 * MIB) * (2 * MIB), NULL) == RM_OK)
        got += bp.piece / 2 / (2 * MIB) * (2 * MIB);
    atomic_fetch_add(&all->got, got);
}

static void open_and_take(void)
{
    struct rm r;
    if (rm_open(&r) != 0)
        atomic_fetch_add(&all->failed, 1);
    else
        take_all(&r);
    atomic_fetch_add(&all->done, 1);
}

static int sum_up(const char *what, unsigned n)
{
    for (int i = 0; i < 60000 && atomic_load(&all->done) < n; i++)
        (void)usleep(1000);
    if (atomic_load(&all->done) < n)
        bp_bad("%s: only %u of %u came to an end", what, atomic_load(&all->done), n);
    if (atomic_load(&all->got) == 0)
        bp_cannot("%s: nobody got anything, %u had no client", what, atomic_load(&all->failed));
    bp_how("%s: %u got %llu MiB together", what, n, (unsigned long long)(atomic_load(&all->got) / MIB));
    bp_got(atomic_load(&all->got));
    return bp_hold();
}

static int fork_storm(void)
{
    share();
    for (int i = 0; i < MANY; i++)
        if (fork() == 0) {
            open_and_take();
            bp_until_told();
            _exit(0);
        }
    return sum_up("forked", MANY);
}

/* One that was executed: it takes what it can and stays. */
static int stay(void)
{
    struct rm r;
    uint64_t got = 0;
    rm_must_open(&r);
    while (got < BP_TIMES * bp.cap && rm_take(&r, bp.piece / 2, NULL) == RM_OK)
        got += bp.piece / 2;
    bp_got(got);
    bp_until_told();
    return BP_MADE;
}

static int stay_last(void)
{
    (void)!write(STDOUT_FILENO, "holding\n", 8);
    return stay();
}

static void run_self(const char *name)
{
    char cap[24];
    (void)snprintf(cap, sizeof(cap), "%llu", (unsigned long long)bp.cap);
    execl(bp.self, bp.self, name, cap, (char *)NULL);
    _exit(127);
}

/* Each becomes the program anew, again and again, and the last one stays. */
static int exec_storm(void)
{
    for (int i = 0; i < MANY; i++)
        if (fork() == 0)
            run_self("stay");
    bp_how("%d executed anew", MANY);
    (void)sleep(1);
    return bp_hold();
}

/* What it had open before the exec is closed by it (the driver's files are close-on-exec), or is not. */
static int exec_keeps_files(void)
{
    struct rm r;
    rm_must_open(&r);
    (void)bp_fill_rm("before the exec", &r);
    if (fcntl(r.ctl, F_SETFD, 0) < 0 || fcntl(r.gpu, F_SETFD, 0) < 0)
        bp_cannot("fcntl: %s", strerror(errno));
    run_self("stay-last");
    return BP_BAD;
}

static int entered(void *arg)
{
    (void)arg;
    open_and_take();
    bp_until_told();
    _exit(0);
}

static int by_clone(const char *what, int flags)
{
    char *stacks = mmap(NULL, 4 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    share();
    if (stacks == MAP_FAILED || clone(entered, stacks + STACK, flags | SIGCHLD, NULL) < 0)
        bp_cannot("%s: %s", what, strerror(errno));
    /* The memory is one: whoever made it waits, for the C library does not know of the other. */
    while (atomic_load(&all->done) < 1)
        (void)syscall(SYS_sched_yield);
    open_and_take();
    return sum_up(what, 2);
}

static int clone_vm(void)
{
    return by_clone("CLONE_VM without exec", CLONE_VM);
}

static int clone_vm_files(void)
{
    return by_clone("CLONE_VM and CLONE_FILES without exec", CLONE_VM | CLONE_FILES);
}

static int vfork_taken(void *arg)
{
    (void)arg;
    open_and_take();
    _exit(0);
}

/* Its files go with it, so the memory does too: what is left must be the parent's share alone. */
static int by_vfork(void)
{
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    share();
    for (int i = 0; i < 4; i++)
        if (clone(vfork_taken, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) < 0)
            bp_cannot("vfork: %s", strerror(errno));
    const uint64_t before = atomic_load(&all->got);
    open_and_take();
    bp_how("four vforked took %llu MiB one after the other and are gone; then %llu MiB",
           (unsigned long long)(before / MIB), (unsigned long long)((atomic_load(&all->got) - before) / MIB));
    bp_got(atomic_load(&all->got) - before);
    return bp_hold();
}

/* ---- threads ---- */

static void *thread_takes(void *arg)
{
    if (arg)
        take_all(arg);
    else
        open_and_take();
    return NULL;
}

static int threads(void)
{
    pthread_t t[MANY];
    struct rm r[MANY];
    share();
    for (size_t i = 0; i < MANY; i++)
        rm_must_open(&r[i]);
    for (size_t i = 0; i < MANY; i++)
        if (pthread_create(&t[i], NULL, thread_takes, &r[i]) != 0)
            bp_cannot("no thread");
    for (size_t i = 0; i < MANY; i++)
        (void)pthread_join(t[i], NULL);
    atomic_fetch_add(&all->done, MANY);
    return sum_up("threads of one process", MANY);
}

/* Descriptors of its own: the same number is another file in the rest of the process. */
static void *thread_apart(void *arg)
{
    (void)arg;
    if (unshare(CLONE_FILES) < 0)
        bp_cannot("unshare: %s", strerror(errno));
    open_and_take();
    bp_until_told();
    return NULL;
}

static int unshare_files(void)
{
    pthread_t t;
    share();
    if (pthread_create(&t, NULL, thread_apart, NULL) != 0)
        bp_cannot("no thread");
    while (atomic_load(&all->done) < 1)
        (void)usleep(1000);
    bp_how("a thread with its own files: %llu MiB", (unsigned long long)(atomic_load(&all->got) / MIB));
    open_and_take();
    return sum_up("and the process", 2);
}

static void *without_leader(void *arg)
{
    (void)arg;
    (void)usleep(100000); /* the first thread has ended by then */
    open_and_take();
    bp_how("after the first thread ended: %llu MiB (%u without a client)",
           (unsigned long long)(atomic_load(&all->got) / MIB), atomic_load(&all->failed));
    bp_got(atomic_load(&all->got));
    (void)bp_hold();
    _exit(BP_MADE);
}

static int leader_gone(void)
{
    pthread_t t;
    share();
    if (pthread_create(&t, NULL, without_leader, NULL) != 0)
        bp_cannot("no thread");
    (void)syscall(SYS_exit, 0);
    return BP_BAD;
}

/* ---- outliving the command ---- */

static int daemon_stays(void)
{
    share();
    if (fork() == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        (void)usleep(200000); /* the command is over */
        open_and_take();
        bp_how("a daemon, after the command ended: %llu MiB",
               (unsigned long long)(atomic_load(&all->got) / MIB));
        bp_got(atomic_load(&all->got));
        (void)bp_hold();
        _exit(BP_MADE);
    }
    _exit(BP_MADE);
}

/* One has the client, another one the file: both take. */
static int pass_inside(void)
{
    int ends[2], fd;
    struct rm r;
    share();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        bp_cannot("no socket");
    if (fork() == 0) {
        if (bp_receive_fd(ends[1], &fd, &r, sizeof(r)) != (int)sizeof(r) || fd < 0)
            _exit(1);
        r.ctl = fd;
        r.last += 1 << 16;
        take_all(&r);
        atomic_fetch_add(&all->done, 1);
        bp_until_told();
        _exit(0);
    }
    rm_must_open(&r);
    if (bp_send_fd(ends[0], r.ctl, &r, sizeof(r)) < 0)
        bp_cannot("the file cannot be sent");
    take_all(&r);
    atomic_fetch_add(&all->done, 1);
    return sum_up("a file passed inside of the lease", 2);
}

const struct bp_attempt bp_processes[] = {
    {"fork-storm", fork_storm, BP_RAW, "24 processes at once"},
    {"exec-storm", exec_storm, BP_RAW, "24 programs executed at once"},
    {"exec-keeps-files", exec_keeps_files, BP_RAW, "filled, then executed anew with its files open"},
    {"clone-vm", clone_vm, BP_RAW, "a process in the same memory"},
    {"clone-vm-files", clone_vm_files, BP_RAW, "a process in the same memory with the same files"},
    {"vfork", by_vfork, BP_RAW, "vfork without exec"},
    {"threads", threads, BP_RAW, "24 threads at once"},
    {"unshare-files", unshare_files, BP_RAW, "a thread with descriptors of its own"},
    {"leader-gone", leader_gone, BP_RAW, "the first thread has ended"},
    {"daemon", daemon_stays, BP_RAW, "a daemon that outlives the command"},
    {"pass-inside", pass_inside, BP_RAW, "an open file passed between processes of the lease"},
    {"stay", stay, BP_RAW | BP_HIDDEN, "a part of the storms"},
    {"stay-last", stay_last, BP_RAW | BP_HIDDEN, "the same, and the last"},
    {0},
};
