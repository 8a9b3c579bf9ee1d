/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls of the warden's that fail, at every point of a lease: what it cannot find out it refuses, or it ends the
 * lease; it never grants. Out of memory is not among them: bh_alloc ends the process then, and the tenants get ENOSYS.
 */
#include "warden/gate_fault_fixture.h"
#include "warden/gate_fixture.h"

static const uint64_t cap = 64 * BH_MIB;
enum { PIECE = 8 << 20, PIECES = 8, ROUNDS = 2 };

/* In `shared->number`. */
enum { MOST, GRANTED, ORDER_CALLS, ORDER_AFTER, ORDER_TIMES, ORDER_ERROR, CHILD, AFTERWARDS };

static void note_most(void)
{
    const uint64_t now = sim_held().bytes;
    if (now > shared->number[MOST])
        shared->number[MOST] = now;
}

static void takes(int fd, uint32_t client)
{
    for (uint32_t i = 0; i < PIECES + 2; i++) {
        shared->number[GRANTED] += tenant_take(fd, client, T_MEM + i, PIECE) == RM_OK;
        note_most();
    }
}

static void frees(int fd, uint32_t client)
{
    for (uint32_t i = 0; i < PIECES + 2; i++)
        (void)tenant_free(fd, client, T_MEM + i);
}

/* Takes without asking whether its client could be made: any of it may have failed. */
static void child_takes(void)
{
    struct rm_device_params device = {0};
    int fd = bh_sim_open("/dev/nvidiactl");
    (void)sim_alloc(fd, T_CLIENT + 1, T_CLIENT + 1, T_CLIENT + 1, RM_CLASS_CLIENT, NULL, 0);
    (void)sim_alloc(fd, T_CLIENT + 1, T_CLIENT + 1, T_DEV, RM_CLASS_DEVICE, &device, 0);
    takes(fd, T_CLIENT + 1);
    _exit(0);
}

static void maps_some(int uvm)
{
    uint64_t range;
    for (int i = 0; i < 3; i++) {
        void *at = bh_sim_mmap(uvm, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, &range);
        if (at != MAP_FAILED)
            (void)bh_sim_munmap(uvm, at, PIECE, range);
    }
}

static void lives(void)
{
    uint64_t init[2] = {0};
    int fd = tenant_open(T_CLIENT), uvm = bh_sim_open("/dev/nvidia-uvm");
    HOLDS(uvm >= 0 && bh_sim_ioctl(uvm, UVM_INITIALIZE, init) == 0);
    fault_order((uint32_t)shared->number[ORDER_CALLS], (uint32_t)shared->number[ORDER_AFTER],
                (uint32_t)shared->number[ORDER_TIMES], (int)shared->number[ORDER_ERROR]);
    for (int i = 0; i < ROUNDS; i++) {
        takes(fd, T_CLIENT);
        maps_some(uvm);
        pid_t child = fork();
        if (child == 0)
            child_takes();
        (void)waitpid(child, NULL, 0);
        (void)usleep(12000); /* ticks go by */
        note_most();
        frees(fd, T_CLIENT);
    }
    fault_order(0, 0, 0, 0);
    /* Once it is over, all is as before. */
    uint32_t status = UINT32_MAX;
    for (int i = 0; i < 300 && status != RM_OK; i++) {
        frees(fd, T_CLIENT);
        status = tenant_take(fd, T_CLIENT, T_MEM, cap);
        (void)usleep(2000);
    }
    shared->number[AFTERWARDS] = status == RM_OK;
}

static const char *const names[] = {
    [FAULT_GETFD] = "pidfd_getfd",
    [FAULT_PIDFD] = "pidfd_open",
    [FAULT_KCMP] = "kcmp",
    [FAULT_SIGNAL] = "signal",
    [FAULT_TGKILL] = "tgkill",
    [FAULT_READ] = "process_vm_readv",
    [FAULT_EPOLL] = "epoll_ctl",
    [FAULT_WRITE] = "process_vm_writev",
    [FAULT_TIMER] = "timerfd_settime",
    [FAULT_DUPFD] = "fcntl",
    [FAULT_OPEN] = "open",
    [FAULT_OPENDIR] = "opendir",
};

/* One lease in which this happens; what did not hold, or NULL. */
static const char *one(uint32_t calls, uint32_t after, uint32_t times, int error)
{
    struct bh_gate_stats s;
    uint64_t orders[8] = {
        [ORDER_CALLS] = calls, [ORDER_AFTER] = after, [ORDER_TIMES] = times, [ORDER_ERROR] = (uint64_t)error};
    sim_begin(); /* for each anew: the driver gives the warden names that could be the tenant's the next time */
    fault_begin();
    lease_numbers = orders;
    int rc = lease(cap, lives, &s);
    lease_numbers = NULL;
    const bool ended = rc == 128 + SIGKILL && s.killed;
    if (rc != 0 && !ended)
        return "the lease ended in another way";
    if (shared->number[MOST] > cap)
        return "more than the cap was had";
    if (!shared->number[GRANTED] && !ended && times < 100)
        return "nothing was ever granted";
    /* A file that cannot be compared is one that was closed: what was made on it is not known any more, and refused. */
    if (!ended && !shared->number[AFTERWARDS] && !(calls & 1U << FAULT_KCMP))
        return "it did not mend";
    if (!holds_nothing_soon())
        return "something is left";
    return sim_end() ? NULL : "the node did not end well";
}

TEST(a_system_call_that_fails_never_grants)
{
    static const uint32_t after[] = {0, 1, 3, 8, 20};
    static const uint32_t times[] = {1, 1000};
    static const int errors[] = {EMFILE, EPERM, ENOMEM, ESRCH};
    uint64_t hits = 0, bad = 0;
    for (uint32_t call = 1; call < FAULT_CALLS; call++)
        for (size_t i = 0; i < BH_COUNT_OF(after); i++)
            for (size_t k = 0; k < BH_COUNT_OF(times); k++) {
                const int error = errors[(call + i + k) % BH_COUNT_OF(errors)];
                const char *why = one(1U << call, after[i], times[k], error);
                if (why)
                    printf("# %s fails with %s, after %u, %u times: %s\n", names[call],
                           strerrorname_np(error), after[i], times[k], why);
                bad += why != NULL;
                hits += atomic_load(&fault->hits);
            }
    printf("# %" PRIu64 " calls failed\n", hits);
    CHECK_EQ(bad, 0);
    CHECK(hits > 1000);
}

/* Everything that needs a descriptor fails, for good, as when a tenant has used up the warden's. */
static const uint32_t descriptors =
    1U << FAULT_GETFD | 1U << FAULT_PIDFD | 1U << FAULT_DUPFD | 1U << FAULT_OPEN | 1U << FAULT_OPENDIR;

/* Who took it ends while the warden can look at nobody; a child that asked for nothing has the file. */
static void leaves_a_child(void)
{
    int fd = tenant_open(T_CLIENT);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 48 * BH_MIB) == RM_OK);
    if (fork() == 0) {
        shared->number[CHILD] = 1;
        while (shared->number[CHILD] == 1)
            (void)usleep(500);
        _exit(0);
    }
    while (shared->number[CHILD] == 0)
        (void)usleep(500);
    fault_order(descriptors, 0, UINT32_MAX, EMFILE);
    _exit(0);
}

static void outlived(void)
{
    int other = tenant_open(T_CLIENT + 1); /* known to the warden before it runs out */
    HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, 2 * BH_MIB) == RM_OK);
    pid_t child = fork();
    if (child == 0)
        leaves_a_child();
    HOLDS(waitpid(child, NULL, 0) == child);
    for (uint32_t i = 0; i < 100; i++) {
        (void)tenant_take(other, T_CLIENT + 1, T_MEM + 1 + i, 2 * BH_MIB);
        note_most();
        (void)usleep(1000);
    }
    fault_order(0, 0, 0, 0);
    shared->number[CHILD] = 2;
}

TEST(what_a_silent_child_keeps_is_not_given_away_when_descriptors_run_out)
{
    struct bh_gate_stats s;
    sim_begin();
    fault_begin();
    CHECK_EQ(lease(cap, outlived, &s), 0);
    CHECK(atomic_load(&fault->hits) > 0);
    CHECK(shared->number[MOST] >= 48 * BH_MIB);
    CHECK(shared->number[MOST] <= cap);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

TEST_MAIN
