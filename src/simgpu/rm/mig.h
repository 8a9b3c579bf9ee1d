/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig.h - the cut of one GPU into instances, as the driver would allow it.
 *
 * Pure. Geometry is the catalogue's; statuses are the NVML library's, because that is who asks.
 */
#ifndef BH_SIMGPU_RM_MIG_H
#define BH_SIMGPU_RM_MIG_H

#include "core/model/catalog.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_SIM_GIS_MAX = 16, BH_SIM_CIS_MAX = 8 };

struct bh_sim_ci {
    bool made;
    uint32_t id, slices, start; /* compute slices, and the first of them within the instance */
    uint32_t users;             /* open contexts; > 0: in use */
    char uuid[48];              /* `MIG-...`, new at each making */
};

struct bh_sim_gi {
    bool made;
    uint32_t id; /* 1 and up; ids are used again */
    const struct bh_mig_profile *profile;
    uint32_t start;
    uint64_t total_bytes, used_bytes;
    struct bh_sim_ci cis[BH_SIM_CIS_MAX];
};

struct bh_sim_mig {
    const struct bh_gpu_model *model;
    bool on, pending;
    uint64_t seed, made; /* made: how many instances ever, for new UUIDs */
    struct bh_sim_gi gis[BH_SIM_GIS_MAX];
};

void bh_sim_mig_init(struct bh_sim_mig *m, const struct bh_gpu_model *model, uint64_t seed);
/* All return an NVML status (gpu/abi/nvml.h). busy: somebody uses the GPU, so the mode stays pending. */
int bh_sim_mig_set_mode(struct bh_sim_mig *m, bool on, bool busy);
/* start -1: the first place that fits, as the driver chooses it. */
int bh_sim_gi_create(struct bh_sim_mig *m, uint32_t profile_id, int start, uint32_t *ret_id);
int bh_sim_gi_destroy(struct bh_sim_mig *m, uint32_t gi);
struct bh_sim_gi *bh_sim_gi_find(struct bh_sim_mig *m, uint32_t gi);      /* NULL: none */
uint32_t bh_sim_gi_room(const struct bh_sim_mig *m, uint32_t profile_id); /* how many more of it */
int bh_sim_ci_create(struct bh_sim_mig *m, uint32_t gi, uint32_t slices, uint32_t *ret_id);
int bh_sim_ci_destroy(struct bh_sim_mig *m, uint32_t gi, uint32_t ci);
struct bh_sim_ci *bh_sim_ci_find(struct bh_sim_mig *m, uint32_t gi, uint32_t ci);

#endif
