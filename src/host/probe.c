/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Since Linux 6.6; not in the headers of every distribution. */
#define NOTIF_SET_FLAGS _IOW('!', 4, uint64_t)
enum { NOTIF_SYNC_WAKE_UP = 1 };

/* What the child says of itself; -errno where a descriptor is missing. */
struct report {
    int listener, memfd;
};

/* The child writes CHILD here; reading it from outside proves that it is the child's memory. */
enum { PARENT = 1, CHILD = 2 };
static volatile uint64_t marker;

enum bh_probe_state bh_probe_state_of(int error)
{
    switch (error) {
    case 0:
        return BH_PROBE_WORKS;
    case ENOSYS:
    case EOPNOTSUPP:
    case EINVAL: /* an operation or a kind of program that this kernel does not know */
        return BH_PROBE_ABSENT;
    case EPERM:
    case EACCES:
        return BH_PROBE_DENIED;
    default:
        return BH_PROBE_FAILED;
    }
}

/* rc of a system call: negative means errno. */
static struct bh_probe answer(long rc, uint64_t value)
{
    int error = rc < 0 ? errno : 0;
    return (struct bh_probe){(uint8_t)bh_probe_state_of(error), error, error ? 0 : value};
}

static struct bh_probe answer_of(int minus_errno)
{
    int error = minus_errno < 0 ? -minus_errno : 0;
    return (struct bh_probe){(uint8_t)bh_probe_state_of(error), error, 0};
}

/* ---- of this process alone ---- */

static struct bh_probe ask_notify(void)
{
    uint32_t action = SECCOMP_RET_USER_NOTIF;
    struct seccomp_notif_sizes sizes = {0};
    struct bh_probe p = answer(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action), 0);
    if (p.state != BH_PROBE_WORKS)
        return p;
    p = answer(syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes), 0);
    p.value = p.state == BH_PROBE_WORKS ? sizes.seccomp_notif : 0;
    return p;
}

static struct bh_probe ask_landlock(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return answer(abi, abi > 0 ? (uint64_t)abi : 0);
}

/* A program that allows every device is loaded, attached to nothing, and dropped. */
static struct bh_probe ask_bpf_device(void)
{
    static const char license[] = "Apache-2.0";
    const struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
                           .insn_cnt = 2,
                           .insns = (uint64_t)(uintptr_t)program,
                           .license = (uint64_t)(uintptr_t)license};
    long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
    struct bh_probe p = answer(fd, 0);
    if (fd >= 0)
        close((int)fd);
    return p;
}

static void read_rights(struct bh_probes *p)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    p->is_root = geteuid() == 0;
    p->is_filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
    if (syscall(SYS_capget, &head, data) == 0)
        p->caps = (uint64_t)data[1].effective << 32 | data[0].effective;
}

/* ---- the child ---- */

static int minus_errno(long rc)
{
    return rc < 0 ? -errno : (int)rc;
}

/* Only system calls from here on: the parent may have threads, and a lock of theirs would stay locked. */
static _Noreturn void be_child(int in, int out)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    struct report r;
    char go;
    marker = CHILD;
    r.memfd = minus_errno(syscall(SYS_memfd_create, "bulkhead-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (r.memfd >= 0 && fcntl(r.memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        r.memfd = -errno;
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    r.listener = minus_errno(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    if (write(out, &r, sizeof(r)) != (ssize_t)sizeof(r) || read(in, &go, 1) != 1)
        _exit(1);
    int userns = minus_errno(unshare(CLONE_NEWUSER));
    _exit(write(out, &userns, sizeof(userns)) != (ssize_t)sizeof(userns));
}

/* Pipes give what was written in one piece; only a child that ended gives less. */
static bool hear(int fd, void *buf, size_t n)
{
    ssize_t got;
    do {
        got = read(fd, buf, n);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)n;
}

static struct bh_probe take_fd(int pidfd, int theirs, int *ret)
{
    long fd = syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
    *ret = (int)fd;
    return answer(fd, 0);
}

static struct bh_probe ask_vm_read(pid_t child)
{
    uint64_t seen = 0;
    struct iovec mine = {&seen, sizeof(seen)};
    struct iovec its = {(void *)(uintptr_t)&marker, sizeof(seen)};
    ssize_t n = process_vm_readv(child, &mine, 1, &its, 1, 0);
    struct bh_probe p = answer(n, 0);
    if (p.state == BH_PROBE_WORKS && (n != (ssize_t)sizeof(seen) || seen != CHILD))
        p = (struct bh_probe){BH_PROBE_FAILED, EIO, 0};
    return p;
}

static void ask_about_child(struct bh_probes *p, pid_t child, const struct report *r)
{
    p->memfd = answer_of(r->memfd);
    p->listen = answer_of(r->listener);
    p->vm_read = ask_vm_read(child);
    long pidfd = syscall(SYS_pidfd_open, child, 0);
    p->pidfd = answer(pidfd, 0);
    if (pidfd < 0)
        return;
    int fd = -1, theirs = r->listener >= 0 ? r->listener : r->memfd >= 0 ? r->memfd : STDIN_FILENO;
    p->getfd = take_fd((int)pidfd, theirs, &fd);
    if (fd >= 0 && r->listener >= 0)
        p->sync = answer(ioctl(fd, NOTIF_SET_FLAGS, (unsigned long)NOTIF_SYNC_WAKE_UP), 0);
    if (fd >= 0)
        close(fd);
    close((int)pidfd);
}

static void fail_child(struct bh_probes *p, int error)
{
    struct bh_probe failed = {BH_PROBE_FAILED, error, 0};
    p->memfd = p->listen = p->vm_read = p->pidfd = p->getfd = p->userns = failed;
}

static void talk(struct bh_probes *p, pid_t child, int in, int out)
{
    struct report r;
    int userns;
    if (!hear(in, &r, sizeof(r))) {
        fail_child(p, ECHILD);
        return;
    }
    ask_about_child(p, child, &r);
    if (write(out, "g", 1) == 1 && hear(in, &userns, sizeof(userns)))
        p->userns = answer_of(userns);
    else
        p->userns = (struct bh_probe){BH_PROBE_FAILED, ECHILD, 0};
}

static void ask_child(struct bh_probes *p)
{
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) < 0) {
        fail_child(p, errno);
        return;
    }
    if (pipe2(up, O_CLOEXEC) < 0) {
        fail_child(p, errno);
        close(down[0]);
        close(down[1]);
        return;
    }
    marker = PARENT;
    pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        close(up[0]);
        be_child(down[0], up[1]);
    }
    int error = errno;
    close(down[0]);
    close(up[1]);
    if (child < 0)
        fail_child(p, error);
    else
        talk(p, child, up[0], down[1]);
    close(down[1]);
    close(up[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

void bh_probes_run(struct bh_probes *ret)
{
    *ret = (struct bh_probes){0};
    read_rights(ret);
    ret->notify = ask_notify();
    ret->landlock = ask_landlock();
    ret->bpf_device = ask_bpf_device();
    ask_child(ret);
}
