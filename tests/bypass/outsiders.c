/* SPDX-License-Identifier: Apache-2.0 */
/* outsiders.c - with a process outside of the lease: of the same user, willing or not. */
#include "bypass.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A file with a client that was made outside: the gate did not see it, and the driver counts it for somebody else. */
static int outside_fd(void)
{
    struct bp_outside o;
    int fd;
    bp_ask_outside(&o, &fd);
    struct rm r = {.ctl = fd, .gpu = -1, .client = o.client, .device = o.device, .last = 0x0c000000};
    int rc = rm_take(&r, bp.piece, NULL);
    bp_how("below a device made outside: %s", bp_result(rc));
    struct rm_device_params d = {.client_share = r.client};
    r.device = rm_name(&r);
    rc = rm_alloc(&r, r.client, &r.device, RM_CLASS_DEVICE, &d);
    bp_how("a device of its own in the client made outside: %s", bp_result(rc));
    if (rc == RM_OK)
        (void)bp_fill_rm("below it", &r);
    return bp_hold();
}

static int outside_getfd(void)
{
    struct bp_outside o;
    int fd;
    bp_ask_outside(&o, &fd);
    close(fd);
    int pidfd = (int)syscall(SYS_pidfd_open, o.pid, 0);
    if (pidfd < 0)
        bp_cannot("pidfd_open: %s", strerror(errno));
    long rc = syscall(SYS_pidfd_getfd, pidfd, o.fd, 0);
    bp_expect("pidfd_getfd of an outside process", rc < 0 ? -errno : 0, -EPERM);
    return bp_hold();
}

static int outside_ptrace(void)
{
    struct bp_outside o;
    int fd;
    bp_ask_outside(&o, &fd);
    close(fd);
    bp_expect("PTRACE_ATTACH", ptrace(PTRACE_ATTACH, o.pid, NULL, NULL) < 0 ? -errno : 0, -EPERM);
    bp_expect("PTRACE_SEIZE", ptrace(PTRACE_SEIZE, o.pid, NULL, NULL) < 0 ? -errno : 0, -EPERM);
    bp_expect("PTRACE_TRACEME", ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? -errno : 0, -EPERM);
    uint64_t word = 1;
    const struct iovec mine = {&word, sizeof(word)}, its = {(void *)(uintptr_t)o.word, sizeof(word)};
    bp_expect("process_vm_writev", process_vm_writev(o.pid, &mine, 1, &its, 1, 0) < 0 ? -errno : 0, -EPERM);
    return bp_hold();
}

/* What ptrace would do can be done through a file: write code into somebody who is not in the lease. */
static int outside_proc_mem(void)
{
    struct bp_outside o;
    char path[40];
    int fd;
    bp_ask_outside(&o, &fd);
    close(fd);
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", o.pid);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        bp_how("/proc/PID/mem of an outside process: %s", strerrorname_np(errno));
        return bp_hold();
    }
    uint64_t word = 0x776f726c64;
    ssize_t n = pwrite(fd, &word, sizeof(word), (off_t)o.word);
    if (n == (ssize_t)sizeof(word))
        bp_bad("the memory of an outside process of the same user was written through /proc/PID/mem");
    bp_how("writing /proc/PID/mem of an outside process: %s", strerrorname_np(errno));
    return bp_hold();
}

/* The driver's files of an outside process, opened anew by their names in /proc. */
static int outside_reopen(void)
{
    struct bp_outside o;
    char path[48];
    int passed;
    bp_ask_outside(&o, &passed);
    close(passed);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", o.pid, o.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bp_how("/proc/PID/fd/N of an outside process: %s", fd < 0 ? strerrorname_np(errno) : "opened anew");
    if (fd >= 0) {
        struct rm r = {.ctl = fd, .gpu = -1, .client = o.client, .device = o.device, .last = 0x0c000000};
        bp_how("its client on that: %s", bp_result(rm_take(&r, bp.piece, NULL)));
    }
    struct rm own;
    rm_must_open(&own);
    (void)bp_fill_rm("then as it should be", &own);
    return bp_hold();
}

/* Memory that somebody outside has is duplicated; nothing more is taken from the card by it. */
static int outside_dup(void)
{
    struct bp_outside o;
    struct rm r;
    uint32_t copy;
    int fd;
    bp_ask_outside(&o, &fd);
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    bp_how("duplicating an outside client's device: %s", bp_result(rm_dup(&r, &copy, o.client, o.device)));
    bp_how("freeing an outside client: %s", bp_result(rm_free(&r, o.client, o.client)));
    struct rm look = {.ctl = fd, .gpu = -1, .client = o.client, .device = o.device, .last = 0x0c100000};
    int rc = rm_take(&look, bp.piece, NULL);
    if (rc == RM_OK)
        bp_bad("memory beyond the cap below an outside device");
    bp_how("and memory below its device: %s", bp_result(rc));
    return bp_hold();
}

const struct bp_attempt bp_outsiders[] = {
    {"outside-fd", outside_fd, BP_RAW | BP_OUTSIDE, "an open file with a client, passed in from outside"},
    {"outside-getfd", outside_getfd, BP_RAW | BP_OUTSIDE, "pidfd_getfd from an outside process"},
    {"outside-ptrace", outside_ptrace, BP_RAW | BP_OUTSIDE,
     "ptrace and process_vm_writev of an outside process"},
    {"outside-proc-mem", outside_proc_mem, BP_RAW | BP_OUTSIDE,
     "writing an outside process through /proc/PID/mem"},
    {"outside-reopen", outside_reopen, BP_RAW | BP_OUTSIDE, "an outside process's file opened anew"},
    {"outside-dup", outside_dup, BP_RAW | BP_OUTSIDE, "an outside client's objects duplicated and freed"},
    {0},
};
