/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - what this kernel lets this process do, found out by asking it.
 *
 * A version number says what a kernel may have; a build option, a security module or a container's filter
 * decides what is really there. So each question is put as the gate would put it, to a child of our own
 * that ends at once. Nothing outlives the call. "Not permitted here" is kept apart from "this kernel does
 * not have it".
 */
#ifndef BH_HOST_PROBE_H
#define BH_HOST_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum bh_probe_state {
    BH_PROBE_SKIPPED, /* not asked, or what it builds on did not work */
    BH_PROBE_WORKS,
    BH_PROBE_ABSENT, /* this kernel does not have it */
    BH_PROBE_DENIED, /* not permitted to this process; whether the kernel has it is not known */
    BH_PROBE_FAILED, /* anything else: see error */
};

struct bh_probe {
    uint8_t state; /* enum bh_probe_state */
    int error;     /* errno, 0 when it works */
    uint64_t value;
};

struct bh_probes {
    const char *skipped;      /* why nothing was asked; NULL: everything was */
    uint64_t caps;            /* effective capabilities, a bit each */
    bool is_root;             /* effective user 0 */
    bool is_filtered;         /* a seccomp filter is on this process already: a container, perhaps */
    struct bh_probe notify;   /* seccomp has the action "user notification"; value: size of a notification */
    struct bh_probe listen;   /* a filter with a listener can be installed */
    struct bh_probe sync;     /* the listener can ask for the wake-up on the same processor */
    struct bh_probe pidfd;    /* a process can be held by descriptor */
    struct bh_probe getfd;    /* a descriptor can be taken over from another process */
    struct bh_probe vm_read;  /* the memory of another process can be read */
    struct bh_probe memfd;    /* memory that is a sealed file */
    struct bh_probe landlock; /* value: its version */
    struct bh_probe bpf_device; /* device rules of cgroup v2 can be loaded */
    struct bh_probe userns;     /* a user namespace can be made */
};

/* Asks all of it. Forks one child and waits for it. */
void bh_probes_run(struct bh_probes *ret);
/* What an errno of a system call says about it; 0 works. */
enum bh_probe_state bh_probe_state_of(int error);

#endif
