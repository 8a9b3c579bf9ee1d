/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - which system calls of a tenant go to the gate, which are refused, and which it keeps.
 *
 * Only what can obtain video memory, and what could get around that: ioctls whose low eight bits are one of the driver's
 * allocating numbers (the driver looks at nothing else), shared mappings of a file, calls of another architecture, io_uring,
 * reaching into another process, and pages that whoever reads them waits for. Everything else runs at full speed. The
 * filter is inherited by fork and exec.
 *
 * The rules are data, used twice: for the program that `bulkhead run` installs, and for the profile by which a container
 * runtime makes one itself (host/profile.h).
 */
#ifndef BH_HOST_FILTER_H
#define BH_HOST_FILTER_H

#include "base/err.h"

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_FILTER_MAX = 160 };
enum bh_filter_flags {
    BH_FILTER_CONTROLS =
        1, /* controls go to the gate as well, which answers some of them itself (warden/view.h) */
};

/* The system calls that are looked at. */
enum bh_filter_call {
    BH_CALL_IOCTL,
    BH_CALL_MMAP,
    BH_CALL_IO_URING_SETUP,
    BH_CALL_IO_URING_ENTER,
    BH_CALL_IO_URING_REGISTER,
    BH_CALL_PTRACE,
    BH_CALL_PIDFD_GETFD,
    BH_CALL_PROCESS_VM_WRITEV,
    BH_CALL_PROCESS_MADVISE,
    BH_CALL_USERFAULTFD,
    BH_FILTER_CALLS
};
extern const char *const bh_filter_call_names[BH_FILTER_CALLS];

/* A call, and what comes of it; where none of a call's rules fits, it is the tenant's own. Rules of one call stand together. */
struct bh_filter_rule {
    uint8_t call;         /* enum bh_filter_call */
    uint8_t flags;        /* only where these were asked for */
    uint8_t arg;          /* which argument decides; with mask 0, none does */
    uint32_t mask, value; /* of its lower half: (argument & mask) == value */
    int error;            /* refused with this; 0: to the gate */
};
/* How many there are; *ret is static. */
size_t bh_filter_rules(const struct bh_filter_rule **ret);

/* What differs from one architecture to the next. Both have the lower half of an argument first. */
struct bh_filter_arch {
    const char *name, *scmp; /* in words; as libseccomp calls it */
    uint32_t audit;          /* AUDIT_ARCH_* */
    uint32_t foreign_bit;    /* a bit of the call's number that makes it another one's (x32); 0: none */
    uint32_t nr[BH_FILTER_CALLS];
};
enum bh_filter_machine { BH_MACHINE_X86_64, BH_MACHINE_AARCH64, BH_FILTER_MACHINES };
extern const struct bh_filter_arch bh_filter_archs[BH_FILTER_MACHINES];
/* The one this program was built for; NULL: the gate does not know it. */
const struct bh_filter_arch *bh_filter_here(void);

/* The program, and how many instructions it has. flags: of enum bh_filter_flags. */
size_t bh_filter_build(const struct bh_filter_arch *arch, unsigned flags,
                       struct sock_filter ret[BH_FILTER_MAX]);
/* Puts it on the calling thread (before exec, single-threaded). The listener is close-on-exec. */
int bh_filter_install(unsigned flags, int *ret_listener, struct bh_err *err) BH_MUST_USE;

#endif
