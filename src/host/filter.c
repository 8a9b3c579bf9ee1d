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
 * writes into, or takes from, another process. A tenant may install filters of its own behind this one; its own listener
 * gets EBUSY from the kernel, which allows one in a chain.
 */
#include "host/filter.h"

#include "base/mem.h"
#include "gpu/abi/rm.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { X32 = 0x40000000 };

/* The driver looks at these eight bits of a command and at nothing else of it, so neither does the filter. */
static const uint8_t gated[] = {RM_ALLOC_MEMORY, RM_ALLOC_OBJECT,     RM_FREE,    RM_ALLOC,
                                RM_DUP_OBJECT,   RM_VID_HEAP_CONTROL, RM_XFER_CMD};

static const struct {
    uint32_t nr;
    int error;
} refused[] = {
    {SYS_io_uring_setup, ENOSYS}, {SYS_io_uring_enter, ENOSYS}, {SYS_io_uring_register, ENOSYS},
    {SYS_ptrace, EPERM},          {SYS_pidfd_getfd, EPERM},     {SYS_process_vm_writev, EPERM},
    {SYS_process_madvise, EPERM},
};

struct program {
    struct sock_filter *at;
    size_t n;
};

static void add(struct program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
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

/* The lower half of an argument: x86-64 has it first. */
static void load_arg(struct program *p, size_t i)
{
    load(p, offsetof(struct seccomp_data, args) + i * sizeof(uint64_t));
}

static void judge_ioctl(struct program *p)
{
    load_arg(p, 1);
    add(p, BPF_ALU | BPF_AND | BPF_K, UINT8_MAX, 0, 0);
    for (size_t i = 0; i < BH_COUNT_OF(gated); i++)
        give_if(p, BPF_JEQ, gated[i], SECCOMP_RET_USER_NOTIF);
    give(p, SECCOMP_RET_ALLOW);
}

/* MAP_SHARED_VALIDATE has MAP_SHARED's bit; what the kernel does not know among the types it refuses itself. */
static void judge_mmap(struct program *p)
{
    load_arg(p, 4);
    give_if(p, BPF_JEQ, UINT32_MAX, SECCOMP_RET_ALLOW);
    load_arg(p, 3);
    give_if(p, BPF_JSET, MAP_ANONYMOUS, SECCOMP_RET_ALLOW);
    give_if(p, BPF_JSET, MAP_SHARED, SECCOMP_RET_USER_NOTIF);
    give(p, SECCOMP_RET_ALLOW);
}

/* A part that is entered only with this number loaded, and that always ends in a verdict. */
static void for_number(struct program *p, uint32_t nr, void (*judge)(struct program *p))
{
    const size_t jump = p->n;
    add(p, BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 0);
    judge(p);
    p->at[jump].jf = (uint8_t)(p->n - jump - 1);
}

size_t bh_filter_build(struct sock_filter ret[BH_FILTER_MAX])
{
    struct program p = {ret, 0};
    load(&p, offsetof(struct seccomp_data, arch));
    add(&p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    give(&p, SECCOMP_RET_ERRNO | ENOSYS);
    load(&p, offsetof(struct seccomp_data, nr));
    give_if(&p, BPF_JSET, X32, SECCOMP_RET_ERRNO | ENOSYS);
    for_number(&p, SYS_ioctl, judge_ioctl);
    for_number(&p, SYS_mmap, judge_mmap);
    for (size_t i = 0; i < BH_COUNT_OF(refused); i++)
        give_if(&p, BPF_JEQ, refused[i].nr, SECCOMP_RET_ERRNO | (uint32_t)refused[i].error);
    give(&p, SECCOMP_RET_ALLOW);
    return p.n;
}

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

int bh_filter_install(int *ret_listener, struct bh_err *err)
{
    struct sock_filter filter[BH_FILTER_MAX];
    struct sock_fprog program = {.len = (unsigned short)bh_filter_build(filter), .filter = filter};
    /* Killable: a signal cannot take a call back that the gate has begun to carry out. */
    static const unsigned long flags[] = {SECCOMP_FILTER_FLAG_NEW_LISTENER |
                                              SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                                          SECCOMP_FILTER_FLAG_NEW_LISTENER};
    long fd = -1;
    /* Also for root: the rights of what runs inside can only shrink then, so the warden's stay enough. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return bh_fail(err, BH_REFUSED, "giving up new privileges: %s", strerrordesc_np(errno));
    for (size_t i = 0; i < BH_COUNT_OF(flags) && fd < 0; i++) {
        fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], &program);
        if (fd < 0 && errno != EINVAL)
            break;
    }
    if (fd < 0)
        return say_refused(errno, err);
    *ret_listener = (int)fd;
    return BH_OK;
}

#else

size_t bh_filter_build(struct sock_filter ret[BH_FILTER_MAX])
{
    (void)ret;
    return 0;
}

int bh_filter_install(int *ret_listener, struct bh_err *err)
{
    (void)ret_listener;
    return bh_fail(err, BH_REFUSED,
                   "the gate knows the system calls of x86-64 only; this is another architecture");
}

#endif
