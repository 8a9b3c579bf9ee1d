/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_test.c - the filter against a plain statement of the policy, and then in the kernel.
 *
 * The program is run by a small interpreter of our own over every low byte and type byte of an ioctl, every kind of mapping
 * and every system call number, in each architecture, and over random calls. What the kernel makes of it is asked in
 * a child process with a real listener.
 */
#include "host/filter.h"

#include "base/choice.h"
#include "base/mem.h"
#include "base/test.h"
#include "host/filter_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The policy in words of C, from filter.h and the issue; numbers as the driver's headers and the kernel's have them. */
static uint32_t policy(const struct seccomp_data *d, uint32_t arch, unsigned flags)
{
    const bool x86 = arch == AUDIT_ARCH_X86_64;
    if (d->arch != arch || (x86 && (uint32_t)d->nr & 0x40000000))
        return SECCOMP_RET_ERRNO | ENOSYS;
    if (d->nr == (x86 ? 16 : 29)) /* ioctl */
        switch (d->args[1] & 0xff) {
        case 0x27:
        case 0x28:
        case 0x29:
        case 0x2b:
        case 0x34:
        case 0x4a:
        case 211:
            return SECCOMP_RET_USER_NOTIF;
        case 0x2a:
            return flags & BH_FILTER_CONTROLS ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
        default:
            return SECCOMP_RET_ALLOW;
        }
    if (d->nr == (x86 ? 9 : 222)) { /* mmap */
        const bool shared = (d->args[3] & 3) == 1 || (d->args[3] & 3) == 3;
        return shared && !(d->args[3] & 0x20) ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
    }
    if (d->nr >= 425 && d->nr <= 427) /* io_uring_setup, _enter, _register */
        return SECCOMP_RET_ERRNO | ENOSYS;
    /* ptrace, process_vm_writev, userfaultfd, pidfd_getfd, process_madvise */
    if (d->nr == (x86 ? 101 : 117) || d->nr == (x86 ? 311 : 271) || d->nr == (x86 ? 323 : 282) ||
        d->nr == 438 || d->nr == 440)
        return SECCOMP_RET_ERRNO | EPERM;
    return SECCOMP_RET_ALLOW;
}

/* Every program there is: each architecture, with and without controls. */
static struct {
    const struct bh_filter_arch *arch;
    unsigned flags;
    struct sock_filter filter[BH_FILTER_MAX];
    size_t n;
} programs[BH_FILTER_MACHINES * 2];

static bool agree(const struct seccomp_data *d)
{
    for (size_t i = 0; i < BH_COUNT_OF(programs); i++) {
        const uint32_t got = interpret(programs[i].filter, programs[i].n, d);
        const uint32_t want = policy(d, programs[i].arch->audit, programs[i].flags);
        if (got == want)
            continue;
        printf("# %s flags %u: arch %x nr %d args %llx %llx %llx: %x, not %x\n", programs[i].arch->name,
               programs[i].flags, d->arch, d->nr, (unsigned long long)d->args[1],
               (unsigned long long)d->args[3], (unsigned long long)d->args[4], got, want);
        return false;
    }
    return true;
}

static const uint32_t archs[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, 0,
                                 UINT32_MAX};
static const uint32_t abi[] = {0, 0x40000000, 0x80000000};

TEST(the_programs_fit)
{
    for (size_t i = 0; i < BH_COUNT_OF(programs); i++) {
        programs[i].arch = &bh_filter_archs[i / 2];
        programs[i].flags = i % 2 ? BH_FILTER_CONTROLS : 0;
        programs[i].n = bh_filter_build(programs[i].arch, programs[i].flags, programs[i].filter);
        CHECK(programs[i].n > 0 && programs[i].n <= BH_FILTER_MAX);
    }
}

/* What the table says of this machine is what the kernel's headers say. */
TEST(the_numbers_are_the_kernels)
{
    static const uint32_t here[BH_FILTER_CALLS] = {
        [BH_CALL_IOCTL] = SYS_ioctl,
        [BH_CALL_MMAP] = SYS_mmap,
        [BH_CALL_IO_URING_SETUP] = SYS_io_uring_setup,
        [BH_CALL_IO_URING_ENTER] = SYS_io_uring_enter,
        [BH_CALL_IO_URING_REGISTER] = SYS_io_uring_register,
        [BH_CALL_PTRACE] = SYS_ptrace,
        [BH_CALL_PIDFD_GETFD] = SYS_pidfd_getfd,
        [BH_CALL_PROCESS_VM_WRITEV] = SYS_process_vm_writev,
        [BH_CALL_PROCESS_MADVISE] = SYS_process_madvise,
        [BH_CALL_USERFAULTFD] = SYS_userfaultfd,
    };
    const struct bh_filter_arch *arch = bh_filter_here();
    CHECK(arch != NULL);
    for (size_t i = 0; i < BH_FILTER_CALLS; i++)
        CHECK_EQ(arch->nr[i], here[i]);
}

TEST(every_ioctl_number_and_type_byte)
{
    static const uint64_t upper[] = {0, UINT64_C(0xc0300000), UINT64_C(0xffffffffffff0000)};
    static const uint32_t nrs[] = {16, 29};
    for (size_t a = 0; a < BH_COUNT_OF(archs); a++)
        for (size_t x = 0; x < BH_COUNT_OF(abi) * BH_COUNT_OF(nrs); x++)
            for (uint32_t low = 0; low < 0x10000; low++) {
                struct seccomp_data d = {.nr = (int)(nrs[x % 2] | abi[x / 2]), .arch = archs[a]};
                d.args[1] = upper[low % BH_COUNT_OF(upper)] | low;
                CHECK(agree(&d));
            }
}

TEST(every_mapping)
{
    static const uint64_t fds[] = {
        0, 3, UINT32_MAX, UINT64_MAX, INT32_MAX, UINT64_C(0x100000003), UINT32_MAX - 1};
    static const int nrs[] = {9, 222};
    for (size_t a = 0; a < BH_COUNT_OF(archs); a++)
        for (size_t f = 0; f < BH_COUNT_OF(fds) * BH_COUNT_OF(nrs); f++)
            for (uint64_t flags = 0; flags < 0x1000; flags++) {
                struct seccomp_data d = {.nr = nrs[f % 2], .arch = archs[a]};
                d.args[3] = flags | (flags & 1 ? UINT64_C(0x100000020) << 32 : 0);
                d.args[4] = fds[f / 2];
                CHECK(agree(&d));
            }
}

TEST(every_system_call)
{
    for (size_t a = 0; a < BH_COUNT_OF(archs); a++)
        for (size_t x = 0; x < BH_COUNT_OF(abi); x++)
            for (uint32_t nr = 0; nr < 1024; nr++) {
                struct seccomp_data d = {.nr = (int)(nr | abi[x]), .arch = archs[a]};
                CHECK(agree(&d));
            }
    struct seccomp_data d = {.nr = -1, .arch = AUDIT_ARCH_X86_64};
    CHECK(agree(&d));
}

TEST(random_calls)
{
    static const int near[] = {16, 9, 425, 101, 438, 29, 222, 117, 271, 311};
    for (uint64_t seed = 1; seed <= 200000; seed++) {
        uint8_t bytes[sizeof(struct seccomp_data) + 4];
        struct seccomp_data d;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes + sizeof(d), 4};
        memcpy(&d, bytes, sizeof(d));
        if (bh_choose(&c, 8))
            d.arch = archs[bh_choose(&c, 3)];
        if (bh_choose(&c, 4))
            d.nr = near[bh_choose(&c, (uint32_t)BH_COUNT_OF(near))];
        CHECK(agree(&d));
    }
}

/* ---- in the kernel ---- */

/* Each makes one call and returns what came: 0 or more, or -errno. */
static long result(long rc)
{
    return rc < 0 ? -errno : rc;
}

static long gated_ioctl(void)
{
    int p[2];
    return pipe(p) < 0 ? -errno : result(ioctl(p[0], 0xc030462bUL, NULL));
}
static long other_type_ioctl(void)
{
    int p[2];
    return pipe(p) < 0 ? -errno : result(ioctl(p[0], 0xd3UL, NULL));
}
static long free_ioctl(void)
{
    int p[2], n;
    return pipe(p) < 0 ? -errno : result(ioctl(p[0], FIONREAD, &n));
}
static long map_memfd(int flags)
{
    int fd = memfd_create("filter", 0);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return -errno;
    return mmap(NULL, 4096, PROT_READ, flags, fd, 0) == MAP_FAILED ? -errno : 0;
}
static long shared_map(void)
{
    return map_memfd(MAP_SHARED);
}
static long validated_map(void)
{
    return map_memfd(MAP_SHARED_VALIDATE);
}
static long private_map(void)
{
    return map_memfd(MAP_PRIVATE);
}
static long anonymous_map(void)
{
    return mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -errno : 0;
}
static long uring(void)
{
    struct io_uring_params params = {0};
    return result(syscall(SYS_io_uring_setup, 4, &params));
}
static long trace(void)
{
    return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
static long write_to_parent(void)
{
    char from = 0;
    struct iovec here = {&from, 1}, there = {&from, 1};
    return result(process_vm_writev(getppid(), &here, 1, &there, 1, 0));
}
static long steal_fd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    return fd < 0 ? -errno : result(syscall(SYS_pidfd_getfd, fd, 0, 0));
}
static long own_faults(void)
{
    return result(syscall(SYS_userfaultfd, O_CLOEXEC));
}
#ifdef __x86_64__
static long x32(void)
{
    return result(syscall(0x40000000 | SYS_getpid));
}
/* The 32-bit entry; number 20 is getpid there. A kernel without it ends this process by a signal. */
static long compat(void)
{
    long rc;
    __asm__ volatile("int $0x80" : "=a"(rc) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return (int)rc > 0 ? 1 : rc;
}
#endif
static long second_listener(void)
{
    int fd;
    struct bh_err err;
    if (bh_filter_install(0, &fd, &err) == BH_CONFLICT && strstr(err.msg, "allows one"))
        return -EBUSY;
    return 0;
}
/* A filter of the tenant's own is no concern of ours. */
static long own_filter(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return -errno;
    return gated_ioctl();
}
static long grandchild(void)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(gated_ioctl() == 42 ? 3 : 4);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

static const struct {
    const char *name;
    long (*fn)(void);
    int notified; /* the number of the call that reached the listener; -1: none did */
    long got;
} probes[] = {
    {"a gated ioctl", gated_ioctl, SYS_ioctl, 42},
    {"a gated number of another type", other_type_ioctl, SYS_ioctl, 42},
    {"any other ioctl", free_ioctl, -1, 0},
    {"a shared mapping of a file", shared_map, SYS_mmap, -EXDEV},
    {"the same, validated", validated_map, SYS_mmap, -EXDEV},
    {"a private mapping of a file", private_map, -1, 0},
    {"a shared mapping of no file", anonymous_map, -1, 0},
    {"io_uring", uring, -1, -ENOSYS},
    {"ptrace", trace, -1, -EPERM},
    {"writing into another process", write_to_parent, -1, -EPERM},
    {"taking a descriptor", steal_fd, -1, -EPERM},
    {"pages that a process fills in itself", own_faults, -1, -EPERM},
#ifdef __x86_64__
    {"the x32 entry", x32, -1, -ENOSYS},
    {"the 32-bit entry", compat, -1, -ENOSYS},
#endif
    {"a second listener", second_listener, -1, -EBUSY},
    {"a filter of its own", own_filter, SYS_ioctl, 42},
    {"a child of its own", grandchild, SYS_ioctl, 3},
};

/* What the supervisor answers: 42 to an ioctl, EXDEV to a mapping. Returns the number that was asked, or -1. */
static int answer(int listener)
{
    struct seccomp_notif ask = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask) < 0)
        return -1;
    struct seccomp_notif_resp reply = {.id = ask.id};
    if (ask.data.nr == SYS_ioctl)
        reply.val = 42;
    else
        reply.error = -EXDEV;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) < 0 ? -1 : ask.data.nr;
}

struct saw {
    int notified, status;
    long got;
};

/* Runs one probe below the filter, which this process carries too, and answers for it. */
static struct saw probe(int listener, long (*fn)(void))
{
    struct saw saw = {.notified = -1, .got = -ECHILD};
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return saw;
    const pid_t pid = fork();
    if (pid == 0) {
        const long got = fn();
        _exit(write(p[1], &got, sizeof(got)) == sizeof(got) ? 0 : 1);
    }
    close(p[1]);
    struct pollfd at[2] = {{.fd = listener, .events = POLLIN}, {.fd = p[0], .events = POLLIN}};
    while (poll(at, 2, -1) > 0) {
        if (at[0].revents & POLLIN)
            saw.notified = answer(listener);
        else if (at[1].revents)
            break;
    }
    (void)!read(p[0], &saw.got, sizeof(saw.got));
    close(p[0]);
    (void)waitpid(pid, &saw.status, 0);
    return saw;
}

/* In the child that carries the filter; its exit status says how many probes went otherwise. */
static int run_probes(void)
{
    int listener, bad = 0;
    struct bh_err err;
    if (bh_filter_install(0, &listener, &err) < 0) {
        printf("# %s\n", err.msg);
        return 100;
    }
    bad += (fcntl(listener, F_GETFD) & FD_CLOEXEC) == 0;
    bad += prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
    for (size_t i = 0; i < BH_COUNT_OF(probes); i++) {
        const struct saw saw = probe(listener, probes[i].fn);
        if (saw.got == -ECHILD && WIFSIGNALED(saw.status)) {
            printf("# %s: this kernel has none\n", probes[i].name);
            bad += strcmp(probes[i].name, "the 32-bit entry") != 0;
            continue;
        }
        if (saw.notified != probes[i].notified || saw.got != probes[i].got) {
            bad++;
            printf("# %s: notified %d, got %ld\n", probes[i].name, saw.notified, saw.got);
        }
    }
    (void)fflush(stdout);
    return bad;
}

TEST(in_the_kernel)
{
    int status = -1;
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(run_probes());
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* Nobody holds the listener any more: the calls fail, they do not run. */
TEST(without_a_listener_calls_fail)
{
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0) {
        int listener;
        if (bh_filter_install(0, &listener, NULL) < 0)
            _exit(1);
        close(listener);
        _exit(gated_ioctl() == -ENOSYS && shared_map() == -ENOSYS && private_map() == 0 ? 0 : 2);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST_MAIN
