/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.h - tier container: what a lease's container is made of, and what is taken away after it.
 *
 * The walls are host/bundle.h's; here is what stands inside of them for this lease, in RUN/bundles/L<ID>. The container is
 * started and held by the lease's keeper. Everything that is made is found again by its name alone, so that whoever cleans up
 * need not know how far it had come.
 */
#ifndef BH_NODE_MECH_TIER_H
#define BH_NODE_MECH_TIER_H

#include "host/cgroup.h"
#include "launch/keeper.h"
#include "store/state_job.h"
#include "store/state_lease.h"

struct bh_daemon;
struct bh_life;

/* How containers are run on this machine. */
struct bh_containers {
    const char *runtime;   /* `runc`, `crun`; NULL: none can */
    const char *why_not;   /* ... and why, for people */
    char hook[4000];       /* bulkhead-oci; "": it is not there */
    char cdi[4000];        /* where engines look for leases (host/cdi.h) */
    char bundles[4000];    /* RUN/bundles */
    char containers[4000]; /* the runtime's own folder */
    char probes[4000];     /* RUN/probes: where containers say what they do (launch/probe.h); root's alone */
};
/* cgroups NULL: this machine has none. Folders are made here. */
int bh_tier_find(struct bh_containers *t, const struct bh_cgroups *cgroups, const char *run_dir,
                 struct bh_err *err) BH_MUST_USE;

/* The image of a job whose container somebody else's engine starts: no folder is called so. */
#define BH_TIER_EXTERNAL_IMAGE "cdi"
bool bh_tier_is_external(const struct bh_store_job *job);

/* What a keeper's spec is made of (spec.c); for the container it becomes the bundle instead. */
struct bh_tier_parts {
    const struct bh_store_job *job;
    const bh_store_grants *grants;
    const char *const *env; /* NAME=value, ended by NULL */
    const uint32_t *caps;   /* minors below /dev/nvidia-caps, of instances of MIG */
    size_t n_caps;
};
/* The bundle is written, and the spec says where. `spec` has its gate already. */
int bh_tier_container(struct bh_daemon *d, const struct bh_life *run, const struct bh_tier_parts *parts,
                      struct bh_arena *arena, struct bh_keeper_spec *spec, struct bh_err *err) BH_MUST_USE;

/* The CDI file and its profile are written, and the spec says that whoever comes by them is held. `spec` has gate and devices. */
int bh_tier_external(struct bh_daemon *d, const struct bh_life *run, const struct bh_tier_parts *parts,
                     struct bh_arena *arena, struct bh_keeper_spec *spec, struct bh_err *err) BH_MUST_USE;
/* Its policy lets other devices reach the memory that this tenant has on a card. */
bool bh_tier_may_have_rdma(const struct bh_daemon *d, const char *tenant);
/* This machine's cgroups have that controller. */
bool bh_tier_can_limit(const struct bh_daemon *d, enum bh_cgroup_controller what);
/* Tier process: the same bounds on processes and memory, where this machine's cgroups can hold them. A fork or a malloc without end
 * ends in its lease, and not with the machine. */
int bh_tier_process_limits(const struct bh_daemon *d, const struct bh_tier_parts *parts,
                           struct bh_arena *arena, struct bh_keeper_limits *ret,
                           struct bh_err *err) BH_MUST_USE;

/* What is to be cleaned up after a lease; of one that was no container it is nothing. */
struct bh_tier_rest {
    const char *runtime; /* NULL: none */
    uint64_t lease;
    char tenant[64];
    char bundle[4096], container[4096], listener[4096], probe[4096], cdi[4096];
};
void bh_tier_rest(const struct bh_daemon *d, const struct bh_life *run, struct bh_tier_rest *ret);
/* A container may have left something, which takes a while to clean up. */
bool bh_tier_left_container(const struct bh_tier_rest *r);
/* When nobody is in the lease's cgroup any more: the runtime's own notes, the network's port, the bundle; in a worker, where a container
 * left something. Again: nothing. */
int bh_tier_clean(const struct bh_tier_rest *r, struct bh_err *err) BH_MUST_USE;

/* At the start, when the leases are loaded: ports, rules and CDI files of those that live, and of nobody else. */
int bh_tier_reconcile(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;

#endif
