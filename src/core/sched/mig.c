/* SPDX-License-Identifier: Apache-2.0 */
/* mig.c - instances on one GPU: what fits beside what is held, and which place breaks up the least. */
#include "core/sched/mig.h"

static const struct bh_mig_profile *instance_at(const struct bh_gpu_model *m, const struct bh_shelf_gpu *gpu,
                                                uint32_t start)
{
    return gpu->mig_stale || !gpu->mig_at[start] ? NULL : &m->profiles[gpu->mig_at[start] - 1];
}

/* Media engines go to one instance, or all to one. */
static bool media_agree(uint8_t a, uint8_t b)
{
    if (a == BH_MEDIA_ME_ALL || b == BH_MEDIA_ME_ALL)
        return a == BH_MEDIA_NO_ME || b == BH_MEDIA_NO_ME;
    return a != BH_MEDIA_ME || b != BH_MEDIA_ME;
}

static bool is_start(const struct bh_mig_profile *p, uint32_t start)
{
    for (uint32_t i = 0; i < p->n_starts; i++) {
        if (p->starts[i] == start)
            return true;
    }
    return false;
}

bool bh_mig_room(const struct bh_gpu_model *m, const struct bh_shelf_gpu *gpu, uint32_t profile,
                 uint32_t start)
{
    if (profile >= m->n_profiles)
        return false;
    const struct bh_mig_profile *p = &m->profiles[profile];
    if (!is_start(p, start) || (gpu->mig_held & bh_mig_mask(p, start)))
        return false;
    if (gpu->mig_compute + p->compute_slices > m->compute_slices)
        return false;
    uint32_t same = 0;
    for (uint32_t i = 0; i < BH_MIG_SLICES_MAX; i++) {
        const struct bh_mig_profile *other = gpu->mig_held >> i & 1 ? instance_at(m, gpu, i) : NULL;
        if (other && !media_agree(other->media, p->media))
            return false;
        same += other == p;
    }
    return same < p->max_instances;
}

uint32_t bh_mig_fragment(const struct bh_gpu_model *m, uint32_t held, uint32_t compute_held)
{
    const uint32_t free_memory = m->memory_slices - bh_bits(held);
    const uint32_t free_compute = m->compute_slices - compute_held;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < m->n_profiles; i++) {
        const struct bh_mig_profile *p = &m->profiles[i];
        if (p->media != BH_MEDIA_PLAIN || p->gfx || !p->placement_size || !p->compute_slices)
            continue;
        uint32_t ideal = free_memory / p->placement_size;
        ideal = ideal < free_compute / p->compute_slices ? ideal : free_compute / p->compute_slices;
        ideal = ideal < p->max_instances ? ideal : p->max_instances;
        /* Intervals of one length, leftmost first: no other choice places more. Starts are ascending. */
        uint32_t fit = 0, taken = held;
        for (uint32_t k = 0; k < p->n_starts && fit < ideal; k++) {
            const uint32_t mask = bh_mig_mask(p, p->starts[k]);
            if (!(taken & mask)) {
                taken |= mask;
                fit++;
            }
        }
        sum += (ideal - fit) * p->placement_size;
    }
    return sum;
}

bool bh_mig_best(const struct bh_gpu_model *m, const struct bh_shelf_gpu *gpu, uint32_t profile,
                 struct bh_mig_place *ret)
{
    if (profile >= m->n_profiles)
        return false;
    const struct bh_mig_profile *p = &m->profiles[profile];
    const uint32_t before = bh_mig_fragment(m, gpu->mig_held, gpu->mig_compute);
    bool found = false;
    for (uint32_t i = 0; i < p->n_starts; i++) {
        const uint32_t start = p->starts[i];
        if (!bh_mig_room(m, gpu, profile, start))
            continue;
        const uint32_t after = bh_mig_fragment(m, gpu->mig_held | bh_mig_mask(p, start),
                                               (uint32_t)gpu->mig_compute + p->compute_slices);
        const struct bh_mig_place place = {.growth = after > before ? after - before : 0,
                                           .start = (uint8_t)start,
                                           .recut = instance_at(m, gpu, start) != p};
        /* As good without cutting is better; then the later start, which leaves the low ones to the large. */
        if (!found || place.growth < ret->growth ||
            (place.growth == ret->growth && place.recut <= ret->recut))
            *ret = place;
        found = true;
    }
    return found;
}

bool bh_mig_cut(const struct bh_gpu_model *m, struct bh_shelf_gpu *gpu, uint32_t profile, uint32_t start)
{
    const struct bh_mig_profile *p = &m->profiles[profile];
    if (gpu->mig_stale)
        memset(gpu->mig_at, 0, sizeof(gpu->mig_at));
    gpu->mig_stale = 0;
    if (instance_at(m, gpu, start) == p)
        return false;
    uint32_t compute = (uint32_t)gpu->mig_compute + p->compute_slices;
    for (uint32_t i = 0; i < BH_MIG_SLICES_MAX; i++) {
        const struct bh_mig_profile *idle = gpu->mig_held >> i & 1 ? NULL : instance_at(m, gpu, i);
        if (!idle)
            continue;
        if ((bh_mig_mask(idle, i) & bh_mig_mask(p, start)) || !media_agree(idle->media, p->media) ||
            compute + idle->compute_slices > m->compute_slices)
            gpu->mig_at[i] = 0;
        else
            compute += idle->compute_slices;
    }
    gpu->mig_at[start] = (uint8_t)(profile + 1);
    return true;
}
