/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mech.h - what divides the silicon for a lease: made before its work begins, named to it, taken back after it.
 *
 *   whole               nothing is made: the card is its own
 *   time slices, gate   nothing is made: the lease's warden and the governor hold it
 *   mig                 an instance is cut where the scheduler said (mech/mig.c)
 *   mps                 a server for its trust domain, pool and user runs on the card (mech/mps.c)
 *
 * A lease is set up step by step, each in a worker, because a driver may take its time. What is to be made is written before,
 * and every step can be done again.
 */
#ifndef BH_NODE_MECH_MECH_H
#define BH_NODE_MECH_MECH_H

#include "node/daemon.h"

/* At the start, before a policy is read: what of it this machine has. */
int bh_mech_find(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;

/* ---- before ---- */

/* Where an instance of MIG is to stand. */
struct bh_mech_cut {
    char gpu[96], key[48]; /* as the store names the slice */
    uint32_t profile_id, start, size;
};
/* What an MPS server is started with, or found by (host/mps.h). */
struct bh_mech_server {
    uint64_t number; /* 0: no server */
    const struct bh_daemon *of;
    uint32_t uid, gid;
    char gpus[1600];       /* uuids, with commas */
    uint32_t most_percent; /* of the pool's caps; 0: none */
    uint64_t most_mib;
};
/* One of the two. */
struct bh_mech_step {
    struct bh_mech_cut cut;
    struct bh_mech_server server;
};
/* What has to be made next before the lease's work can begin. BH_NOT_FOUND: nothing (more). */
int bh_mech_next(struct bh_daemon *d, struct bh_life *run, struct bh_mech_step *ret,
                 struct bh_err *err) BH_MUST_USE;
/* In a worker. */
void bh_mech_work(const void *step, struct bh_worker_result *ret);
/* What a worker said on the step that bh_mech_next named. */
int bh_mech_made(struct bh_daemon *d, struct bh_life *run, const struct bh_worker_result *result,
                 struct bh_err *err) BH_MUST_USE;

/* The row of a slice before it is granted, in the transaction that grants it: an instance that is not cut yet has none, and one
 * that is free and in its way has one that must go. Texts of *ret are the arena's. */
int bh_mech_name(struct bh_daemon *d, const struct bh_admit_slice *slice, struct bh_arena *arena,
                 struct bh_slice_name *ret, struct bh_err *err) BH_MUST_USE;
/* Where an instance of that name stands; false: it is none. */
bool bh_mech_start_of(const char *key, uint8_t *ret_start);

/* What the work is given of it; texts are the arena's. */
struct bh_mech_gift {
    const char *visible;             /* for CUDA_VISIBLE_DEVICES */
    uint32_t caps[2 * BH_NODE_GPUS]; /* minors below /dev/nvidia-caps */
    size_t n_caps;
    const char *const *env; /* NAME=value that nobody overrides; NULL: none */
};
int bh_mech_gift(struct bh_daemon *d, const struct bh_life *run, const bh_store_grants *grants,
                 struct bh_arena *arena, struct bh_mech_gift *ret, struct bh_err *err) BH_MUST_USE;
/* `mig 3g.71gb`, `mps 25 %, 20 GiB`: the layers, from the silicon up. */
const char *bh_mech_stack(const struct bh_admit_grant *grant, struct bh_arena *arena);

/* ---- after, and at other times ---- */

/* Where a slice is to be scrubbed: an instance of MIG as the order of the one who makes sure that it is there. */
int bh_mech_cut_of(const struct bh_daemon *d, const struct bh_slice_name *name, struct bh_mech_cut *ret,
                   struct bh_err *err) BH_MUST_USE;
/* In a worker: the instance is there, and is called so. */
struct bh_mech_device {
    char uuid[80];
    uint32_t gi_cap, ci_cap; /* BH_NO_ID: not known */
};
int bh_mech_cut_here(const struct bh_mech_cut *c, struct bh_mech_device *ret, struct bh_err *err) BH_MUST_USE;

/* At the start, before leases are taken up: what the store says is cut is cut again where it is gone (a reboot forgets it), and servers
 * are found again, or their leases fail. */
void bh_mech_restore(struct bh_daemon *d);
/* Every now and then: a server that nobody uses any more ends. */
void bh_mech_tick(struct bh_daemon *d);
void bh_mech_fini(struct bh_daemon *d);
/* Of a lease in which nobody is left: nothing that worked for it alone has its card open any more. A server ends with its last lease,
 * and its share is not proved clean before. */
bool bh_mech_gone(const struct bh_daemon *d, const struct bh_life *run);
/* When the GPUs were looked at: instances that somebody else took away are not believed in any more. */
void bh_mech_look(struct bh_daemon *d);

#endif
