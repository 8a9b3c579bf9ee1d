/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c - the tenant's system call filter, in classic BPF.
 *
 * Kept as plain as a filter can be: nothing here depends on what the kernel would follow a pointer to, because a
 * filter cannot, and whoever could change it meanwhile would win. It sends too much rather than too little: which file
 * a descriptor is, is the gate's to find out. A system call that no branch below names is told by its number alone, and
 * the kernel remembers that (since 5.11), so the tenant's other calls do not pay.
 *
 * Refused with ENOSYS, so that programs fall back: io_uring, and calls of another architecture. Refused with EPERM: what
 * writes into, or takes from, another process, and pages that whoever reads them waits for (the gate reads pages). A tenant
 * may install filters of its own behind this one; its own listener gets EBUSY from the kernel, which allows one in a chain.
 *
 * The program for AArch64 is built from the same rules and has been run in a test's interpreter only.
 */
#include "host/filter.h"

#include "base/mem.h"
#include "gpu/abi/rm.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* ---- the rules ---- */

const char *const bh_filter_call_names[BH_FILTER_CALLS] = {
    [BH_CALL_IOCTL] = "ioctl",
    [BH_CALL_MMAP] = "mmap",
    [BH_CALL_IO_URING_SETUP] = "io_uring_setup",
    [BH_CALL_IO_URING_ENTER] = "io_uring_enter",
    [BH_CALL_IO_URING_REGISTER] = "io_uring_register",
    [BH_CALL_PTRACE] = "ptrace",
    [BH_CALL_PIDFD_GETFD] = "pidfd_getfd",
    [BH_CALL_PROCESS_VM_WRITEV] = "process_vm_writev",
    [BH_CALL_PROCESS_MADVISE] = "process_madvise",
    [BH_CALL_USERFAULTFD] = "userfaultfd",
};

/* The driver looks at these eight bits of a command and at nothing else of it, so neither does the filter. */
#define GATED(nr) {.call = BH_CALL_IOCTL, .arg = 1, .mask = UINT8_MAX, .value = (nr)}

static const struct bh_filter_rule rules[] = {
    GATED(RM_ALLOC_MEMORY),
    GATED(RM_ALLOC_OBJECT),
    GATED(RM_FREE),
    GATED(RM_ALLOC),
    GATED(RM_DUP_OBJECT),
    GATED(RM_VID_HEAP_CONTROL),
    GATED(RM_XFER_CMD),
    {.call = BH_CALL_IOCTL, .flags = BH_FILTER_CONTROLS, .arg = 1, .mask = UINT8_MAX, .value = RM_CONTROL},
    /* MAP_SHARED_VALIDATE has MAP_SHARED's bit; what the kernel does not know among the types it refuses itself. */
    {.call = BH_CALL_MMAP, .arg = 3, .mask = MAP_SHARED | MAP_ANONYMOUS, .value = MAP_SHARED},
    {.call = BH_CALL_IO_URING_SETUP, .error = ENOSYS},
    {.call = BH_CALL_IO_URING_ENTER, .error = ENOSYS},
    {.call = BH_CALL_IO_URING_REGISTER, .error = ENOSYS},
    {.call = BH_CALL_PTRACE, .error = EPERM},
    {.call = BH_CALL_PIDFD_GETFD, .error = EPERM},
    {.call = BH_CALL_PROCESS_VM_WRITEV, .error = EPERM},
    {.call = BH_CALL_PROCESS_MADVISE, .error = EPERM},
    {.call = BH_CALL_USERFAULTFD, .error = EPERM},
};

size_t bh_filter_rules(const struct bh_filter_rule **ret)
{
    *ret = rules;
    return BH_COUNT_OF(rules);
}

/* ---- architectures ---- */

const struct bh_filter_arch bh_filter_archs[BH_FILTER_MACHINES] = {
    [BH_MACHINE_X86_64] = {.name = "x86-64",
                           .scmp = "SCMP_ARCH_X86_64",
                           .audit = AUDIT_ARCH_X86_64,
                           .foreign_bit = 0x40000000,
                           .nr = {16, 9, 425, 426, 427, 101, 438, 311, 440, 323}},
    [BH_MACHINE_AARCH64] = {.name = "AArch64",
                            .scmp = "SCMP_ARCH_AARCH64",
                            .audit = AUDIT_ARCH_AARCH64,
                            .nr = {29, 222, 425, 426, 427, 117, 438, 271, 440, 282}},
};

const struct bh_filter_arch *bh_filter_here(void)
{
#if defined(__x86_64__) && !defined(__ILP32__)
    return &bh_filter_archs[BH_MACHINE_X86_64];
#elif defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(__ILP32__)
    return &bh_filter_archs[BH_MACHINE_AARCH64];
#else
    return NULL;
#endif
}

/* ---- the program ---- */

struct program {
    struct sock_filter *at;
    size_t n;
};

static void add(struct program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    assert(p->n < BH_FILTER_MAX);
    p->at[p->n++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct program *p, size_t offset)
{
    add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void give(struct program *p, uint32_t action)
{
    add(p, BPF_RET | BPF_K, action, 0, 0);
}

/* if (loaded TEST k) return action; */
static void give_if(struct program *p, uint16_t test, uint32_t k, uint32_t action)
{
    add(p, BPF_JMP | BPF_K | test, k, 0, 1);
    give(p, action);
}

static uint32_t verdict(const struct bh_filter_rule *r)
{
    return r->error ? SECCOMP_RET_ERRNO | (uint32_t)r->error : SECCOMP_RET_USER_NOTIF;
}

/* One rule, with the argument loaded and masked as the rule before it (NULL: none) left it. */
static void judge(struct program *p, const struct bh_filter_rule *r, const struct bh_filter_rule *before)
{
    if (!r->mask) {
        give(p, verdict(r));
        return;
    }
    if (!before || before->arg != r->arg || before->mask != r->mask) {
        load(p, offsetof(struct seccomp_data, args) + r->arg * sizeof(uint64_t));
        add(p, BPF_ALU | BPF_AND | BPF_K, r->mask, 0, 0);
    }
    give_if(p, BPF_JEQ, r->value, verdict(r));
}

/* All rules of one call: entered only with its number loaded, and always ends in a verdict. Returns where the next begin. */
static size_t judge_call(struct program *p, const struct bh_filter_arch *arch, unsigned flags, size_t first)
{
    const struct bh_filter_rule *before = NULL;
    const size_t jump = p->n;
    size_t i = first;
    add(p, BPF_JMP | BPF_JEQ | BPF_K, arch->nr[rules[first].call], 0, 0);
    for (; i < BH_COUNT_OF(rules) && rules[i].call == rules[first].call; i++) {
        if ((rules[i].flags & flags) != rules[i].flags)
            continue;
        judge(p, &rules[i], before);
        before = &rules[i];
    }
    if (!before || before->mask)
        give(p, SECCOMP_RET_ALLOW);
    p->at[jump].jf = (uint8_t)(p->n - jump - 1);
    return i;
}

size_t bh_filter_build(const struct bh_filter_arch *arch, unsigned flags,
                       struct sock_filter ret[BH_FILTER_MAX])
{
    struct program p = {ret, 0};
    load(&p, offsetof(struct seccomp_data, arch));
    add(&p, BPF_JMP | BPF_JEQ | BPF_K, arch->audit, 1, 0);
    give(&p, SECCOMP_RET_ERRNO | ENOSYS);
    load(&p, offsetof(struct seccomp_data, nr));
    if (arch->foreign_bit)
        give_if(&p, BPF_JSET, arch->foreign_bit, SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < BH_COUNT_OF(rules);)
        i = judge_call(&p, arch, flags, i);
    give(&p, SECCOMP_RET_ALLOW);
    return p.n;
}

/* ---- in the kernel ---- */

static int say_refused(int error, struct bh_err *err)
{
    switch (error) {
    case EBUSY:
        return bh_fail(
            err, BH_CONFLICT,
            "a system call filter with a listener is here already (bulkhead run inside bulkhead run, or "
            "a container runtime's); the kernel allows one: start it outside of that");
    case ENOSYS:
    case EINVAL:
        return bh_fail(err, BH_REFUSED,
                       "this kernel has no seccomp user notification (%s); Linux 5.6 or newer with "
                       "CONFIG_SECCOMP_FILTER is needed",
                       strerrordesc_np(error));
    default:
        return bh_fail(err, BH_REFUSED,
                       "the system call filter was refused: %s; a container's seccomp profile may forbid "
                       "seccomp(2): allow it there, or start outside of the container",
                       strerrordesc_np(error));
    }
}

int bh_filter_install(unsigned flags, int *ret_listener, struct bh_err *err)
{
    const struct bh_filter_arch *arch = bh_filter_here();
    struct sock_filter filter[BH_FILTER_MAX];
    /* Killable: a signal cannot take a call back that the gate has begun to carry out. */
    static const unsigned long ways[] = {SECCOMP_FILTER_FLAG_NEW_LISTENER |
                                             SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                                         SECCOMP_FILTER_FLAG_NEW_LISTENER};
    long fd = -1;
    if (!arch)
        return bh_fail(err, BH_REFUSED,
                       "the gate knows the system calls of x86-64 and AArch64; this is another architecture");
    struct sock_fprog program = {.len = (unsigned short)bh_filter_build(arch, flags, filter),
                                 .filter = filter};
    /* Also for root: the rights of what runs inside can only shrink then, so the warden's stay enough. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return bh_fail(err, BH_REFUSED, "giving up new privileges: %s", strerrordesc_np(errno));
    for (size_t i = 0; i < BH_COUNT_OF(ways) && fd < 0; i++) {
        fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, ways[i], &program);
        if (fd < 0 && errno != EINVAL)
            break;
    }
    if (fd < 0)
        return say_refused(errno, err);
    *ret_listener = (int)fd;
    return BH_OK;
}
