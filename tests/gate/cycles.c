/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycles.c - frees that should not be: twice, of what is somebody else's, after a fork. Runs below a gate, speaks to the driver
 * without a library.
 *
 *     cycles VERB CAP_MIB
 *
 * Afterwards what can still be had of the cap is counted piece by piece and said: a ledger that believed one of the
 * frees gives more than there is, one that missed one gives less.
 */
#include "base/mem.h"
#include "base/units.h"
#include "gpu/abi/rm.h"
#include "simgpu/drv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEVICE = 0x5c000001, MEMORY = 0x5d000001, TIMES = 1000, PIECES_MAX = 1 << 16 };
#define PIECE (2 * BH_MIB)

struct tenant {
    int ctl;
    uint32_t client;
};

static _Noreturn void fail(int line, const char *what)
{
    fprintf(stderr, "cycles: line %d: %s\n", line, what);
    _exit(1);
}
#define WANT(e)                 \
    do {                        \
        if (!(e))               \
            fail(__LINE__, #e); \
    } while (0)

static uint32_t make(const struct tenant *t, uint32_t parent, uint32_t *object, uint32_t class, void *params)
{
    struct rm_alloc a = {.client = t->client,
                         .parent = parent,
                         .object = *object,
                         .class = class,
                         .params = (uintptr_t)params};
    WANT(bh_sim_ioctl(t->ctl, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0);
    *object = a.object;
    return a.status;
}

static struct tenant begin(void)
{
    struct tenant t = {.ctl = bh_sim_open("/dev/nvidiactl")};
    struct rm_device_params params = {0};
    uint32_t client = 0, device = DEVICE;
    WANT(t.ctl >= 0 && make(&t, 0, &client, RM_CLASS_CLIENT, NULL) == RM_OK);
    t.client = client;
    WANT(make(&t, t.client, &device, RM_CLASS_DEVICE, &params) == RM_OK);
    return t;
}

static uint32_t take(const struct tenant *t, uint32_t object, uint64_t bytes)
{
    struct rm_memory_params p = {.size = bytes};
    return make(t, DEVICE, &object, RM_CLASS_MEMORY_LOCAL, &p);
}

/* Through `by`'s file, of any client. */
static uint32_t give(const struct tenant *by, uint32_t client, uint32_t object)
{
    struct rm_free f = {.client = client, .object = object};
    WANT(bh_sim_ioctl(by->ctl, RM_IOC(RM_FREE, sizeof(f)), &f) == 0);
    return f.status;
}

/* Takes pieces until there are none, says how much that was, and gives them back. */
static void say_left(const struct tenant *t)
{
    uint32_t n = 0, status = RM_OK;
    while (n < PIECES_MAX && (status = take(t, MEMORY + 0x10000 + n, PIECE)) == RM_OK)
        n++;
    printf("left %llu\nstatus 0x%x\n", (unsigned long long)(n * PIECE), status);
    (void)fflush(stdout);
    while (n-- > 0)
        WANT(give(t, t->client, MEMORY + 0x10000 + n) == RM_OK);
}

static void await(pid_t pid)
{
    int status;
    WANT(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- the verbs ---- */

static void twice(uint64_t cap)
{
    const struct tenant t = begin();
    for (uint32_t i = 0; i < TIMES; i++) {
        WANT(take(&t, MEMORY, cap / 2) == RM_OK && give(&t, t.client, MEMORY) == RM_OK);
        (void)give(&t, t.client, MEMORY);
        (void)give(&t, t.client, MEMORY + 1);
    }
    say_left(&t);
}

/* The whole client twice, and its device before what is below it. */
static void trees(uint64_t cap)
{
    for (uint32_t i = 0; i < TIMES / 10; i++) {
        const struct tenant t = begin();
        WANT(take(&t, MEMORY, cap / 2) == RM_OK && give(&t, t.client, DEVICE) == RM_OK);
        (void)give(&t, t.client, MEMORY);
        WANT(give(&t, t.client, t.client) == RM_OK);
        (void)give(&t, t.client, t.client);
        close(t.ctl);
    }
    const struct tenant t = begin();
    say_left(&t);
}

/* Another process of the lease frees what is not its own. Half of the cap stays held. */
static void foreign(uint64_t cap)
{
    const struct tenant t = begin();
    WANT(take(&t, MEMORY, cap / 2) == RM_OK);
    const pid_t pid = fork();
    if (pid == 0) {
        const struct tenant other = begin();
        for (uint32_t i = 0; i < TIMES; i++)
            WANT(give(&other, t.client, MEMORY) != RM_OK && give(&other, t.client, t.client) != RM_OK);
        say_left(&other);
        _exit(0);
    }
    await(pid);
}

/* A child has its parent's files, and frees by them what the parent took. */
static void after_fork(uint64_t cap)
{
    const struct tenant t = begin();
    for (uint32_t i = 0; i < TIMES / 20; i++) {
        WANT(take(&t, MEMORY, cap / 2) == RM_OK);
        const pid_t pid = fork();
        if (pid == 0)
            _exit(give(&t, t.client, MEMORY) != RM_OK);
        await(pid);
        (void)give(&t, t.client, MEMORY);
    }
    say_left(&t);
}

/* The parent is gone; its memory stays with the child that has its files, and counts. */
static void orphaned(uint64_t cap)
{
    int done[2];
    char byte;
    WANT(pipe(done) == 0);
    const pid_t middle = fork();
    if (middle == 0) {
        const pid_t parent = getpid();
        const struct tenant t = begin();
        WANT(take(&t, MEMORY, cap / 2) == RM_OK);
        const pid_t pid = fork();
        if (pid == 0) {
            close(done[0]);
            while (getppid() == parent)
                (void)usleep(1000);
            (void)usleep(100000); /* several looks of the gate after the parent's end */
            const struct tenant own = begin();
            say_left(&own);
            WANT(give(&t, t.client, MEMORY) == RM_OK); /* it is the child's to give back */
            WANT(take(&own, MEMORY, cap) == RM_OK);
            _exit(write(done[1], "x", 1) != 1);
        }
        _exit(pid < 0);
    }
    close(done[1]);
    await(middle);
    WANT(read(done[0], &byte, 1) == 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(uint64_t cap);
    } verbs[] = {{"twice", twice},
                 {"trees", trees},
                 {"foreign", foreign},
                 {"after-fork", after_fork},
                 {"orphaned", orphaned}};
    uint64_t mib;
    for (size_t i = 0; argc == 3 && i < BH_COUNT_OF(verbs); i++)
        if (strcmp(argv[1], verbs[i].name) == 0 && bh_uint_parse(argv[2], UINT32_MAX, &mib, NULL) == BH_OK) {
            verbs[i].fn(mib * BH_MIB);
            (void)fflush(stdout);
            _exit(0); /* a leak check would ask for ptrace, which is refused here */
        }
    fprintf(stderr, "usage: cycles twice|trees|foreign|after-fork|orphaned CAP_MIB\n");
    return 2;
}
