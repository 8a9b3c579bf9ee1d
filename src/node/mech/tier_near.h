/* SPDX-License-Identifier: Apache-2.0 */
/* tier_near.h - processors and memory beside a GPU: a lease that stays there does not cross sockets for its data. */
#ifndef BH_NODE_MECH_TIER_NEAR_H
#define BH_NODE_MECH_TIER_NEAR_H

#include "base/arena.h"
#include "gpu/gpu.h"

#include <sched.h>

/* Adds what a list of the kernel's (`0-3,8`) names; numbers past the set's are left out. False: it is no list. */
bool bh_near_parse(const char *list, cpu_set_t *ret);
/* The same list, in its shortest form; "" of an empty set. */
const char *bh_near_words(struct bh_arena *arena, const cpu_set_t *set);

struct bh_near {
    cpu_set_t cpus;  /* beside any of the GPUs */
    cpu_set_t nodes; /* of memory */
    bool all_known;  /* of each GPU; else the lease is better off anywhere */
};
void bh_near_add(struct bh_near *n, const struct bh_gpu_device *gpu);
/* What of it this machine has and this process may use; NULL: nothing, or it is not known for all of the GPUs. */
const char *bh_near_cpus(struct bh_arena *arena, const struct bh_near *n);
const char *bh_near_nodes(struct bh_arena *arena, const struct bh_near *n);

#endif
