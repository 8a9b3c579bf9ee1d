/* SPDX-License-Identifier: Apache-2.0 */
/*
 * home.h - where simulated nodes live, which there are, and which of them run.
 *
 * A node is a folder under its name: `lock` is held by the process that serves it for as long as it lives, so that one
 * that was killed is told from one that runs; `node` says what it is, in lines of `key value`, the first of which,
 * `simulated yes`, marks the folder as one that may be emptied and removed; `rm.sock` is where it
 * answers; `sysroot` stands for the machine's /proc, /sys and /var; `lib` holds the stand-ins for the vendor's two
 * libraries. A folder whose lock is free is a node that died: it may be removed, or started again.
 */
#ifndef BH_SIMGPU_HOME_H
#define BH_SIMGPU_HOME_H

#include "base/err.h"
#include "base/mem.h"
#include "simgpu/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A socket's path has 108 bytes, and `/rm.sock` is part of it. */
enum { BH_SIM_FOLDER_MAX = 100 };

struct bh_sim_place {
    char name[64], folder[BH_SIM_FOLDER_MAX];
    uint32_t uid; /* whose it is */
    bool runs;
    /* as `node` says; empty and 0 when it does not */
    char scene[32];
    uint64_t seed, started_s, gpus;
    uint32_t pid;
};
typedef BH_VEC(struct bh_sim_place) bh_sim_places;

/* The folder new nodes go to: BULKHEAD_SIM_HOME, else below XDG_RUNTIME_DIR, else a place of this user's. */
int bh_sim_home(char ret[BH_SIM_FOLDER_MAX], struct bh_err *err) BH_MUST_USE;
/* By name: those of this user's home, then those of the machine's that are not hidden by one of the same name. */
int bh_sim_place_list(bh_sim_places *ret, struct bh_err *err) BH_MUST_USE;
/* BH_NOT_FOUND names the nearest, or what there is. */
int bh_sim_place_find(const char *name, struct bh_sim_place *ret, struct bh_err *err) BH_MUST_USE;

/*
 * Take the name: the folder is made where there is none, emptied where a node died. The lock comes back as a descriptor;
 * it is free again when its last duplicate is closed. BH_CONFLICT: a node of this name runs, or there is something that
 * is no node. BH_DENIED: the home or the folder belongs to somebody else, or others can write there.
 */
int bh_sim_place_take(const char *name, struct bh_sim_place *ret, int *ret_lock,
                      struct bh_err *err) BH_MUST_USE;
/* Write everything but the socket. To be called by the process that is going to serve it. */
int bh_sim_place_fill(struct bh_sim_place *place, const struct bh_sim_node *node,
                      struct bh_err *err) BH_MUST_USE;
bool bh_sim_place_runs(const struct bh_sim_place *place); /* now */
/* The folder and all that is in it; the lock must be held. */
int bh_sim_place_remove(const struct bh_sim_place *place, struct bh_err *err) BH_MUST_USE;
/* Remove what a node that died has left; BH_CONFLICT: it runs, or is no node; BH_DENIED: it is somebody else's. */
int bh_sim_place_sweep(const struct bh_sim_place *place, struct bh_err *err) BH_MUST_USE;

/* `libnvidia-ml.so.1` or `libcuda.so.1`: where its stand-in is. BH_NOT_FOUND says where it was looked for. */
int bh_sim_library(const char *name, char *ret, size_t size, struct bh_err *err) BH_MUST_USE;

#endif
