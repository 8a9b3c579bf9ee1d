/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_bench.c - what a call costs at the gate, against no gate and against the simplest gate that would do.
 *
 * A tenant on simulated silicon takes 2 MiB and gives them back, over and over: without a filter; with the filter and a
 * supervisor as one writes it first (a pidfd and the tenant's descriptor fetched and closed for each call, nothing
 * remembered, nothing counted); and with the gate. In turns, so that a busy machine slows all of them alike. Simulated
 * silicon answers by a message to another process, so times by themselves say little: what is compared is what was
 * added to them. With each allocation goes a control as CUDA makes one, which the default view looks at and lets through.
 *
 * Then a crowd starts at once, and what is told is how often the driver was asked to count for each process: it does that
 * under a lock that everybody waits for. Exit status 1: a bound was passed. Needs root; exit status 77 without.
 */
#include "warden/gate_fixture.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/uio.h>
#include <time.h>

/* CLIENT: none that the driver picks by itself. */
enum { ROUNDS = 7, CALLS = 2000, WARM = 100, SKIPPED = 77, CLIENT = 0x7be00001, CROWD = 32 };
#define PIECE UINT64_C(0x200000)
/* The gate does more than the simple one: it keeps a ledger, and asks the driver whether memory is really gone. Here each
 * question is a message to another process. */
#define RATIO_MAX 2.0
/* By the clock (5 ms here, so four times as often as by default), at each name that goes and is not known, and at the end. */
#define COUNTS_MAX 4.0

enum way { NATIVE, SIMPLE, GATE, WAYS };
enum what { ALLOC, CONTROL, FREE, WHATS };
static const char *const way_names[] = {"no gate", "simple gate", "gate"};

/* ---- the tenant ---- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static uint64_t median(uint64_t *at, size_t n)
{
    qsort(at, n, sizeof(*at), by_value);
    return at[n / 2];
}

/* What CUDA asks with each allocation; simulated silicon knows no such thing, which takes as long. */
static void ask(int fd)
{
    struct rm_control a = {.client = CLIENT, .object = T_DEV, .command = 0x503c0104};
    (void)bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(a)), &a);
}

static void take_and_give(void)
{
    static uint64_t took[WHATS][CALLS];
    const int fd = tenant_open(CLIENT);
    for (int i = -WARM; i < CALLS; i++) {
        const size_t at = i < 0 ? 0 : (size_t)i;
        const uint64_t a = now_ns();
        HOLDS(tenant_take(fd, CLIENT, T_MEM, PIECE) == RM_OK);
        const uint64_t b = now_ns();
        ask(fd);
        const uint64_t c = now_ns();
        HOLDS(tenant_free(fd, CLIENT, T_MEM) == RM_OK);
        took[ALLOC][at] = b - a;
        took[CONTROL][at] = c - b;
        took[FREE][at] = now_ns() - c;
    }
    for (int k = 0; k < WHATS; k++)
        shared->number[k] = median(took[k], CALLS);
}

static int native(void)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        take_and_give();
        _exit(0);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- the simple gate ---- */

/* The struct, and what an allocation points to; true: the call was made and its answer is where the tenant looks. */
static bool issue(const struct seccomp_notif *n, int fd)
{
    const uint32_t cmd = (uint32_t)n->data.args[1];
    const bool allocates = _IOC_NR(cmd) == RM_ALLOC;
    struct rm_memory_params params = {0};
    struct rm_alloc a = {0}; /* the larger of the two */
    struct iovec here[] = {{&a, _IOC_SIZE(cmd)}, {&params, sizeof(params)}};
    struct iovec there[] = {{(void *)(uintptr_t)n->data.args[2], _IOC_SIZE(cmd)}, {NULL, sizeof(params)}};
    if (_IOC_SIZE(cmd) > sizeof(a) || process_vm_readv((pid_t)n->pid, here, 1, there, 1, 0) < 0)
        return false;
    const uint64_t at = a.params;
    if (allocates) {
        there[1].iov_base = (void *)(uintptr_t)at;
        if (a.class != RM_CLASS_MEMORY_LOCAL ||
            process_vm_readv((pid_t)n->pid, &here[1], 1, &there[1], 1, 0) < 0)
            return false;
        a.params = (uintptr_t)&params;
    }
    if (bh_sim_ioctl_direct(fd, cmd, &a) < 0)
        return false;
    if (allocates)
        a.params = at;
    return process_vm_writev((pid_t)n->pid, here, allocates ? 2 : 1, there, allocates ? 2 : 1, 0) > 0;
}

static void serve_simply(int listener)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    struct seccomp_notif n;
    while (poll(&wait, 1, -1) > 0 && (wait.revents & POLLIN)) {
        memset(&n, 0, sizeof(n));
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
            continue;
        const uint32_t number = _IOC_NR((uint32_t)n.data.args[1]);
        struct seccomp_notif_resp answer = {.id = n.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (n.data.nr == SYS_ioctl && (number == RM_ALLOC || number == RM_FREE)) {
            const int process = (int)syscall(SYS_pidfd_open, n.pid, 0);
            const int fd = (int)syscall(SYS_pidfd_getfd, process, (int)n.data.args[0], 0);
            if (issue(&n, fd))
                answer.flags = 0;
            close(fd);
            close(process);
        }
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

static int simple(void)
{
    int to_gate[2], from_gate[2], its[2], status;
    if (pipe(to_gate) < 0 || pipe(from_gate) < 0)
        return -1;
    const pid_t launcher = launch(take_and_give, to_gate, from_gate);
    close(to_gate[1]);
    close(from_gate[0]);
    if (read(to_gate[0], its, sizeof(its)) != (ssize_t)sizeof(its))
        return -1;
    const int root = (int)syscall(SYS_pidfd_open, its[0], 0);
    const int listener = (int)syscall(SYS_pidfd_getfd, root, its[1], 0);
    if (listener < 0 || write(from_gate[1], "x", 1) != 1)
        return -1;
    close(to_gate[0]);
    close(from_gate[1]);
    serve_simply(listener);
    close(listener);
    close(root);
    return waitpid(launcher, &status, 0) == launcher && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- a crowd ---- */

static uint64_t n_counts;

static int count_counted(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                         struct bh_err *err)
{
    n_counts++;
    return bh_driver_simulated.count(self, pids, n_pids, bytes, n_gpus, err);
}

/* As CUDA begins: a client that is made and given back with its file, and then the one that stays. */
static void begin_as_cuda(uint32_t client)
{
    int fd = bh_sim_open("/dev/nvidiactl");
    HOLDS(fd >= 0 && sim_alloc(fd, client, client, client, RM_CLASS_CLIENT, NULL, 0) == RM_OK);
    HOLDS(tenant_free(fd, client, client) == RM_OK);
    close(fd);
    fd = tenant_open(client);
    for (uint32_t i = 0; i < 8; i++)
        HOLDS(tenant_take(fd, client, T_MEM + i, PIECE) == RM_OK);
}

static void crowd(void)
{
    int status;
    for (uint32_t i = 0; i < CROWD; i++)
        if (fork() == 0) {
            begin_as_cuda(CLIENT + i);
            __atomic_fetch_add(&shared->number[0], 1, __ATOMIC_SEQ_CST);
            while (shared->number[0] < CROWD) /* all are there at once */
                (void)usleep(1000);
            _exit(0);
        }
    while (wait(&status) > 0)
        HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* How often it was counted for each process that came and went; negative: it did not work. */
static double counts_of_a_crowd(void)
{
    struct bh_gate_stats stats;
    struct bh_driver driver = bh_driver_simulated;
    driver.count = count_counted;
    lease_driver = &driver;
    const int rc = lease(UINT64_C(1) << 33, crowd, &stats);
    lease_driver = NULL;
    return rc == 0 && stats.killed == 0 ? (double)n_counts / CROWD : -1;
}

/* ---- in turns ---- */

static int one(enum way way)
{
    struct bh_gate_stats stats;
    memset(shared, 0, sizeof(*shared));
    shared->warden = getpid();
    if (!holds_nothing_soon()) /* of the one before */
        return -1;
    return way == NATIVE   ? native()
           : way == SIMPLE ? simple()
                           : lease(UINT64_C(1) << 33, take_and_give, &stats);
}

static int by_size(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Of each round by itself: what disturbed one disturbed its neighbours. */
static double ratio_of(uint64_t (*times)[ROUNDS])
{
    double ratios[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++)
        ratios[i] = (double)times[GATE][i] / (double)times[SIMPLE][i];
    qsort(ratios, ROUNDS, sizeof(ratios[0]), by_size);
    return ratios[ROUNDS / 2];
}

static int report(uint64_t (*times)[WAYS][ROUNDS])
{
    static const char *const what_names[] = {"2 MiB taken", "a control let through", "2 MiB given back"};
    int passed = 0;
    for (int what = 0; what < WHATS; what++) {
        const double ratio = ratio_of(times[what]);
        double us[WAYS];
        for (int way = 0; way < WAYS; way++)
            us[way] = (double)median(times[what][way], ROUNDS) / 1e3;
        printf("%s\n", what_names[what]);
        for (int way = 0; way < WAYS; way++)
            printf("  %-18s %8.2f us   added %+8.2f us\n", way_names[way], us[way], us[way] - us[NATIVE]);
        printf("  gate / simple gate %8.2f      (at most %.1f); of what was added %.2f\n", ratio, RATIO_MAX,
               (us[GATE] - us[NATIVE]) / (us[SIMPLE] - us[NATIVE]));
        passed += ratio > RATIO_MAX;
    }
    return passed;
}

int main(void)
{
    static uint64_t times[WHATS][WAYS][ROUNDS];
    int rc = 0;
    if (geteuid() != 0) {
        printf("needs root\n");
        return SKIPPED;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sim_begin();
    lease_view = BH_VIEW_SLICE;
    for (int round = 0; round < ROUNDS && rc == 0; round++)
        for (int i = 0; i < WAYS && rc == 0; i++) {
            const enum way way = (enum way)((round + i) % WAYS);
            rc = one(way);
            for (int what = 0; what < WHATS; what++)
                times[what][way][round] = shared->number[what];
            if (rc)
                printf("%s: the tenant ended with %d, line %d\n", way_names[way], rc, shared->line);
        }
    const double counts = rc ? -1 : counts_of_a_crowd();
    (void)sim_end();
    if (rc || counts < 0)
        return 2;
    const int passed = report(times);
    printf("%d processes at once\n  %-18s %8.2f      (at most %.1f)\n", CROWD, "counts a process", counts,
           COUNTS_MAX);
    if (passed || counts > COUNTS_MAX) {
        printf("a bound was passed\n");
        return 1;
    }
    return 0;
}
