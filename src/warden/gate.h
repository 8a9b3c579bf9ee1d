/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - the memory cap of one lease, held at the system call.
 *
 * The tenant's processes carry a seccomp filter (host/filter.h) that sends the calls which can obtain video memory to a
 * listener. The gate copies their arguments, decides with the ledger, issues the call itself on a duplicate of the
 * tenant's descriptor and writes the answer back: nothing is checked in memory the tenant can still change. A call that
 * must run in the tenant (it pins the tenant's own pages, or makes a client) is continued, and what came of it is
 * checked against the driver's own count; a tenant that has more than it was granted is killed.
 */
#ifndef BH_WARDEN_GATE_H
#define BH_WARDEN_GATE_H

#include "base/err.h"
#include "warden/driver.h"
#include "warden/ledger.h"

struct bh_link_config;
struct bh_gate_config {
    int listener; /* owned by the caller */
    int root;     /* pidfd of the first process; the lease ends when no process of it is left */
    uint32_t root_pid;
    uint64_t cap_bytes;
    uint32_t tick_ms; /* how often the driver's count is compared; 0: 20 */
    uint32_t view;    /* enum bh_lease_view of wire/lease.h; but for CARD the filter must send controls */
    bool rdma;        /* its memory may be made known to other devices (GPUDirect) */
    int journal;      /* memfd that outlives this process (warden/journal.h); -1: none is kept */
    bool adopted;     /* the journal is another warden's: go on from there */
    const struct bh_link_config *governed; /* warden/link.h; NULL: its share is nobody's to hold */
    const struct bh_driver *driver;
    void (*ready)(void *arg); /* it serves from here on; NULL: nobody wants to know */
    void *ready_arg;
};

struct bh_gate_stats {
    uint64_t seen, emulated, continued, refused_memory, denied, checks, killed;
    uint64_t peak_bytes;
    uint64_t no_room;     /* calls that failed because this process could open no more files */
    char why_killed[160]; /* "": nobody was */
    uint64_t slices_set, tampered, governors; /* of a governed lease, as in struct bh_lease_end */
    uint64_t lease;                           /* the governor's number for it; 0: none yet */
};

/* Serves until the lease is over. 0, or why it could not go on (the tenants then fail closed: ENOSYS). */
int bh_gate_serve(const struct bh_gate_config *config, struct bh_gate_stats *ret,
                  struct bh_err *err) BH_MUST_USE;

#endif
