/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_fault_fixture.h - system calls of the warden that fail when a test says so.
 *
 * The linker puts these in the place of the C library's (--wrap): nothing in the warden knows. The orders lie in memory
 * that a tenant of the test shares, so that it says itself at which point of its life the warden's calls begin to fail; they
 * fail in the warden's process only.
 */
#ifndef BH_WARDEN_GATE_FAULT_FIXTURE_H
#define BH_WARDEN_GATE_FAULT_FIXTURE_H

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum fault_call {
    FAULT_NONE,
    FAULT_GETFD, /* pidfd_getfd */
    FAULT_PIDFD, /* pidfd_open */
    FAULT_KCMP,
    FAULT_SIGNAL, /* pidfd_send_signal */
    FAULT_TGKILL,
    FAULT_READ,  /* process_vm_readv */
    FAULT_WRITE, /* process_vm_writev */
    FAULT_EPOLL, /* epoll_ctl */
    FAULT_TIMER, /* timerfd_settime */
    FAULT_DUPFD, /* fcntl */
    FAULT_OPEN,
    FAULT_OPENDIR,
    FAULT_CALLS
};

struct fault {
    atomic_uint calls; /* bits by enum fault_call: these fail ... */
    atomic_uint after; /* ... once this many have worked ... */
    atomic_uint times; /* ... so many times */
    atomic_int error;
    atomic_uint hits; /* how often one did */
    pid_t pid;        /* whose; 0: nobody's */
};
static struct fault *fault;

/* What is shared with every tenant forked later. */
static inline void fault_begin(void)
{
    if (!fault)
        fault = mmap(NULL, sizeof(*fault), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fault == MAP_FAILED)
        abort();
    *fault = (struct fault){.pid = getpid()};
}

static inline void fault_order(uint32_t calls, uint32_t after, uint32_t times, int error)
{
    atomic_store(&fault->calls, 0);
    atomic_store(&fault->after, after);
    atomic_store(&fault->times, times);
    atomic_store(&fault->error, error);
    atomic_store(&fault->calls, calls);
}

static inline bool fault_now(enum fault_call call)
{
    if (!fault || !(atomic_load(&fault->calls) & 1U << call) || fault->pid != getpid())
        return false;
    if (atomic_load(&fault->after)) {
        atomic_fetch_sub(&fault->after, 1);
        return false;
    }
    if (!atomic_load(&fault->times))
        return false;
    atomic_fetch_sub(&fault->times, 1);
    atomic_fetch_add(&fault->hits, 1);
    errno = atomic_load(&fault->error);
    return true;
}

/* ---- in the C library's place ---- */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    static const struct {
        long number;
        enum fault_call call;
    } known[] = {{SYS_pidfd_getfd, FAULT_GETFD},
                 {SYS_pidfd_open, FAULT_PIDFD},
                 {SYS_kcmp, FAULT_KCMP},
                 {SYS_pidfd_send_signal, FAULT_SIGNAL},
                 {SYS_tgkill, FAULT_TGKILL}};
    for (size_t i = 0; i < BH_COUNT_OF(known); i++)
        if (known[i].number == number && fault_now(known[i].call))
            return -1;
    return __real_syscall(number, a, b, c, d, e, f);
}

int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *ev)
{
    return op == EPOLL_CTL_ADD && fault_now(FAULT_EPOLL) ? -1 : __real_epoll_ctl(epoll, op, fd, ev);
}

int __real_fcntl64(int fd, int command, long arg);
int __wrap_fcntl64(int fd, int command, long arg);
int __wrap_fcntl64(int fd, int command, long arg)
{
    return command == F_DUPFD_CLOEXEC && fault_now(FAULT_DUPFD) ? -1 : __real_fcntl64(fd, command, arg);
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, unsigned mode);
int __wrap_open64(const char *path, int flags, unsigned mode)
{
    return fault_now(FAULT_OPEN) ? -1 : __real_open64(path, flags, mode);
}

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
    return fault_now(FAULT_TIMER) ? -1 : __real_timerfd_settime(fd, flags, at, old);
}

/* Who looks on: after the tenant's memory was read, and before it is written to. */
static struct {
    void (*read)(pid_t pid, const struct iovec *piece, const void *got);
    void (*write)(pid_t pid, const struct iovec *local, const struct iovec *remote, unsigned long n);
} fault_watch;

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
                                const struct iovec *remote, unsigned long n_remote, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
                                const struct iovec *remote, unsigned long n_remote, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
                                const struct iovec *remote, unsigned long n_remote, unsigned long flags)
{
    if (fault_now(FAULT_READ))
        return -1;
    ssize_t n = __real_process_vm_readv(pid, local, n_local, remote, n_remote, flags);
    if (n >= 0 && fault_watch.read)
        fault_watch.read(pid, remote, local->iov_base);
    return n;
}

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
                                 const struct iovec *remote, unsigned long n_remote, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
                                 const struct iovec *remote, unsigned long n_remote, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
                                 const struct iovec *remote, unsigned long n_remote, unsigned long flags)
{
    if (fault_watch.write)
        fault_watch.write(pid, local, remote, n_local);
    if (fault_now(FAULT_WRITE))
        return -1;
    return __real_process_vm_writev(pid, local, n_local, remote, n_remote, flags);
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    return fault_now(FAULT_OPENDIR) ? NULL : __real_opendir(path);
}

#endif
