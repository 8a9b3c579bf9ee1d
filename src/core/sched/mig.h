/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig.h - where on a GPU an instance goes, by the geometry of its model.
 *
 * Instances that are held never move and are never touched. One that was cut and is held by nobody may be
 * cut anew: only idle silicon is re-cut. Of the places that are possible, the one after which the fewest
 * instances of any profile have become impossible.
 */
#ifndef BH_CORE_SCHED_MIG_H
#define BH_CORE_SCHED_MIG_H

#include "core/model/catalog.h"
#include "core/sched/fleet.h"

struct bh_mig_place {
    uint32_t growth; /* of bh_mig_fragment() */
    uint8_t start;
    bool recut; /* no idle instance of this profile stands just there */
};
/* May it stand at this start, beside what is held? */
bool bh_mig_room(const struct bh_gpu_model *m, const struct bh_shelf_gpu *gpu, uint32_t profile,
                 uint32_t start);
/* The best start; false: none. */
bool bh_mig_best(const struct bh_gpu_model *m, const struct bh_shelf_gpu *gpu, uint32_t profile,
                 struct bh_mig_place *ret);
/*
 * How broken up what is free is: for each plain profile, the instances that would fit by the number of free
 * slices and do not fit by their places, in slices, summed. 0 for a GPU that is empty or full.
 */
uint32_t bh_mig_fragment(const struct bh_gpu_model *m, uint32_t held, uint32_t compute_held);
/* Make it stand there: idle instances in its way are gone. True: something was cut. */
bool bh_mig_cut(const struct bh_gpu_model *m, struct bh_shelf_gpu *gpu, uint32_t profile, uint32_t start);
/* The slices of the instance as a mask. */
static inline uint16_t bh_mig_mask(const struct bh_mig_profile *p, uint32_t start)
{
    return (uint16_t)(((1u << p->placement_size) - 1) << start);
}
/* What an instance is of a GPU, in thousandths: by compute slices. */
static inline uint32_t bh_mig_milli(const struct bh_gpu_model *m, uint32_t profile)
{
    return (uint32_t)BH_GPU_MILLI * m->profiles[profile].compute_slices / m->compute_slices;
}

#endif
