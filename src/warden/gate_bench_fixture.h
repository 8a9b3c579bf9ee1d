/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_bench_fixture.h - a lease with everything in one process but its tenants, as fast as it will go.
 *
 * The gate is the real one (bh_gate_serve). The kernel's part is played here: poll, the listener and the clock are the
 * linker's (--wrap), so that a test says what comes next and nothing waits. Tenants are processes that do nothing but hold
 * descriptors and memory: what the gate finds out about them is real.
 */
#ifndef BH_WARDEN_GATE_BENCH_FIXTURE_H
#define BH_WARDEN_GATE_BENCH_FIXTURE_H

#include "warden/gate_bench_driver_fixture.h"
#include "warden/watchdog.h"

/* ---- tenants ---- */

enum bench_order { ORDER_PUT, ORDER_CLOSE, ORDER_DUP, ORDER_FORK };
struct bench_words {
    int32_t order, a, b;
};

/* As a lease's processes are told from others: they carry a filter. */
static inline void tenant_filter(void)
{
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = BH_COUNT_OF(all), .filter = all};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        __real_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        _exit(3);
}

static inline void tenant_alone(int control)
{
    if (dup2(control, BENCH_CONTROL_FD) < 0)
        _exit(4);
    (void)__real_syscall(SYS_close_range, BENCH_FIRST_FD + BENCH_FDS, ~0U, 0);
}

static inline int tenant_obeys(struct bench_words w, int came)
{
    int rc = 0;
    if (w.order == ORDER_PUT)
        rc = dup2(came, w.a);
    else if (w.order == ORDER_CLOSE)
        rc = close(w.a);
    else if (w.order == ORDER_DUP)
        rc = dup2(w.a, w.b);
    else if (w.order == ORDER_FORK) {
        rc = (int)fork();
        if (rc == 0)
            tenant_alone(came);
    }
    if (came >= 0)
        close(came);
    return rc;
}

static inline void tenant_lives(void)
{
    struct bench_words w;
    struct bh_err err;
    int came;
    for (;;) {
        came = -1;
        if (bh_fds_recv(BENCH_CONTROL_FD, &w, sizeof(w), &came, 1, &err) < 0)
            _exit(0);
        int rc = tenant_obeys(w, came);
        if (write(BENCH_CONTROL_FD, &rc, sizeof(rc)) != (ssize_t)sizeof(rc))
            _exit(0);
    }
}

static inline bool bench_lives(uint32_t tenant)
{
    return bench.tenants[tenant].pid != 0;
}

/* What the tenant says: a descriptor, a pid, 0; or -1. */
static inline int bench_tell(uint32_t tenant, enum bench_order order, int a, int b, int with)
{
    const struct bench_words w = {.order = (int32_t)order, .a = a, .b = b};
    struct bh_err err;
    int rc = -1, nothing = -1;
    /* one always goes along, so that there is one form of message */
    if (with < 0)
        with = nothing = eventfd(0, EFD_CLOEXEC);
    if (bh_fds_send(bench.tenants[tenant].control, &w, sizeof(w), &with, 1, &err) < 0 ||
        read(bench.tenants[tenant].control, &rc, sizeof(rc)) != (ssize_t)sizeof(rc))
        rc = -1;
    if (nothing >= 0)
        close(nothing);
    return rc;
}

static inline void bench_adopt(uint32_t tenant, pid_t pid, int control)
{
    bench.tenants[tenant] = (struct bench_tenant){
        .pid = pid, .pidfd = (int)__real_syscall(SYS_pidfd_open, pid, 0), .control = control};
}

static inline void bench_start(uint32_t tenant)
{
    int ends[2], ready = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        tenant_alone(ends[1]);
        (void)__real_syscall(SYS_close_range, 3, BENCH_CONTROL_FD - 1, 0);
        (void)__real_syscall(SYS_close_range, BENCH_FIRST_FD, ~0U, 0);
        (void)signal(SIGCHLD, SIG_IGN);
        tenant_filter();
        if (munmap(bench.memory + BENCH_PAGE, BENCH_PAGE) < 0 ||
            mprotect(bench.memory + 2 * BENCH_PAGE, BENCH_PAGE, PROT_READ) < 0 ||
            write(BENCH_CONTROL_FD, &ready, sizeof(ready)) < 0)
            _exit(5);
        tenant_lives();
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], &ready, sizeof(ready)) != (ssize_t)sizeof(ready))
        abort();
    bench_adopt(tenant, pid, ends[0]);
}

/* A child of a tenant, which has its files and asks for nothing until it is told to. */
static inline void bench_fork(uint32_t parent, uint32_t tenant)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    int pid = bench_tell(parent, ORDER_FORK, 0, 0, ends[1]), rc = 0;
    close(ends[1]);
    /* both answer: the child on its own line */
    if (pid > 0 && read(ends[0], &rc, sizeof(rc)) == (ssize_t)sizeof(rc))
        bench_adopt(tenant, pid, ends[0]);
    else
        close(ends[0]);
}

/* Gone with all it had when this returns. */
static inline void bench_kill(uint32_t tenant)
{
    struct bench_tenant *t = &bench.tenants[tenant];
    struct pollfd p = {.fd = t->pidfd, .events = POLLIN};
    if (!bench_lives(tenant))
        return;
    (void)kill(t->pid, SIGKILL);
    while (__real_poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
    (void)waitpid(t->pid, NULL, 0);
    for (size_t i = 0; i < BENCH_RANGES; i++)
        if (bench.ranges[i].pid == t->pid)
            bench_unmap(i);
    close(t->pidfd);
    close(t->control);
    *t = (struct bench_tenant){0};
    bench_hang_up();
}

/* Whoever the gate has ended is no longer told anything. */
static inline void bench_reap(void)
{
    for (uint32_t i = 0; i < BENCH_TENANTS; i++) {
        struct pollfd p = {.fd = bench.tenants[i].pidfd, .events = POLLIN};
        if (bench_lives(i) && __real_poll(&p, 1, 0) == 1)
            bench_kill(i);
    }
}

/* The file under a number of the tenant's, as the manager knows it; NULL: none of the driver's. */
static inline const struct bench_file *bench_at(uint32_t tenant, int fd)
{
    int own = (int)__real_syscall(SYS_pidfd_getfd, bench.tenants[tenant].pidfd, fd, 0);
    const struct bench_file *f = own < 0 ? NULL : bench_file_of(own);
    if (own >= 0)
        close(own);
    return f;
}

static inline bool bench_give(uint32_t tenant, int fd, uint8_t kind, uint32_t gpu)
{
    int end = bench_open(kind, gpu, (uint32_t)bench.tenants[tenant].pid);
    if (end < 0)
        return false;
    const bool good = bench_tell(tenant, ORDER_PUT, fd, 0, end) == fd;
    close(end);
    bench_hang_up();
    return good;
}

/* ---- in the kernel's place ---- */

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_timerfd_create(int clock, int flags);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
struct bh_ledger *__real_bh_ledger_new(uint64_t cap_bytes);
struct bh_ledger *__wrap_bh_ledger_new(uint64_t cap_bytes);
void __real_bh_ledger_free(struct bh_ledger *l);
void __wrap_bh_ledger_free(struct bh_ledger *l);
void __wrap_bh_peek_close(int fd, struct bh_watchdog *w, uint32_t who);

enum { BENCH_TICK_MS = 20 };
static int64_t bench_passed_ms; /* by ticks, which nobody waits for */

static inline void bench_tick(void)
{
    const uint64_t one = 1;
    bench_passed_ms += BENCH_TICK_MS;
    if (write(bench.timer, &one, sizeof(one)) != (ssize_t)sizeof(one))
        abort();
}

/* The gate waits only as long as it takes to think of the next step. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    const bool serving = n == 2 && fds[0].fd == bench.listener;
    if (!serving && timeout_ms == 0)
        return __real_poll(fds, n, timeout_ms);
    if (!serving) { /* the last ones end, and time goes by */
        bench_tick();
        return __real_poll(fds, n, -1);
    }
    bench_reap();
    fds[0].revents = 0;
    const enum bench_next next = bench.why ? BENCH_OVER : bench.next();
    bench.calls = next == BENCH_CALLS;
    if (next == BENCH_OVER) {
        for (uint32_t i = 0; i < BENCH_TENANTS; i++)
            bench_kill(i);
        bench.over = true;
        fds[0].revents = POLLHUP;
    } else if (bench.calls) {
        fds[0].revents = POLLIN;
    }
    fds[1].revents = 0;
    if (__real_poll(&fds[1], 1, 0) < 0)
        abort();
    return 1;
}

/* The notification is one that the kernel would have made; it is taken back when the one who asked is gone. */
int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
    if (fd != bench.listener)
        return __real_ioctl(fd, request, arg);
    if (request == SECCOMP_IOCTL_NOTIF_RECV && bench.calls) {
        *(struct seccomp_notif *)arg = bench.notif;
        bench.calls = false;
        return 0;
    }
    if (request == SECCOMP_IOCTL_NOTIF_ID_VALID || request == SECCOMP_IOCTL_NOTIF_SEND) {
        if (bench.vanishes == (request == SECCOMP_IOCTL_NOTIF_SEND ? GONE_AFTER : GONE_BEFORE))
            bench_kill(bench.caller);
        if (bench_lives(bench.caller)) {
            const struct seccomp_notif_resp *resp = arg;
            if (request == SECCOMP_IOCTL_NOTIF_SEND)
                bench.answered(resp->error, resp->flags & SECCOMP_USER_NOTIF_FLAG_CONTINUE);
            return 0;
        }
    }
    errno = ENOENT;
    return -1;
}

int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock;
    (void)flags;
    return bench.timer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    const int rc = __real_clock_gettime(clock, ret);
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
        return rc; /* the fuzzer's own */
    const int64_t ns = ret->tv_nsec + bench_passed_ms % 1000 * 1000000;
    ret->tv_sec += bench_passed_ms / 1000 + ns / 1000000000;
    ret->tv_nsec = ns % 1000000000;
    return rc;
}

struct bh_ledger *__wrap_bh_ledger_new(uint64_t cap_bytes)
{
    return bench.ledger = __real_bh_ledger_new(cap_bytes);
}

void __wrap_bh_ledger_free(struct bh_ledger *l)
{
    if (l == bench.ledger)
        bench.ledger = NULL;
    __real_bh_ledger_free(l);
}

/* At once: a thread that closes it later, as the real one has, may be the last to hold the file when everybody is gone. */
void __wrap_bh_peek_close(int fd, struct bh_watchdog *w, uint32_t who)
{
    (void)w;
    (void)who;
    close(fd);
}

/* ---- a lease from beginning to end ---- */

static inline void bench_begin(uint64_t cap)
{
    static uint8_t *memory;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!memory)
        memory =
            mmap(NULL, BENCH_PAGES * BENCH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    bench_passed_ms = 0;
    fault_begin();
    bench_driver_begin();
    bench = (struct bench){.rm = fx_new("H200-141GB", BENCH_GPUS), .memory = memory, .cap = cap};
    memset(memory, 0, BENCH_PAGES * BENCH_PAGE);
    bench.listener = eventfd(0, EFD_CLOEXEC);
    for (size_t i = 0; i < BENCH_FILES; i++)
        bench.files[i].peer = -1;
}

/* Serves until a step says that it is over. What did not hold, or NULL. */
static inline const char *bench_serve(struct bh_gate_stats *ret)
{
    struct bh_err err = {0};
    bench_start(0);
    int root = (int)__real_syscall(SYS_pidfd_open, bench.tenants[0].pid, 0);
    const struct bh_gate_config config = {.listener = bench.listener,
                                          .root = root,
                                          .root_pid = (uint32_t)bench.tenants[0].pid,
                                          .cap_bytes = bench.cap,
                                          .tick_ms = BENCH_TICK_MS,
                                          .journal = -1,
                                          .driver = &bench_driver};
    static char said[sizeof(err.msg)];
    if (bh_gate_serve(&config, ret, &err) < 0) {
        memcpy(said, err.msg, sizeof(said));
        bench_fail(said);
    }
    for (uint32_t i = 0; i < BENCH_TENANTS; i++)
        bench_kill(i);
    close(root);
    close(bench.listener);
    bench_hang_up();
    if (!fx_nothing_held(bench.rm))
        bench_fail("the driver holds something when everybody is gone");
    bh_sim_rm_free(bench.rm);
    return bench.why;
}

#endif
