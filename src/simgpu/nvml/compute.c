/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute.c - compute instances: the parts of a GPU instance that run work of their own and share its memory.
 *
 * A profile of them is a number of compute slices. An instance of one slice with twice the memory has a profile of
 * its own (7), as was seen on real cards.
 */
#include "simgpu/nvml/api.h"

#include <stdio.h>
#include <string.h>

/* By the library's number of the profile, which is its id as well. */
static const uint8_t slices_of[NVML_CI_PROFILES_MAX] = {1, 2, 3, 4, 7, 8, 6, 1};
enum { ONE_SLICE_WITH_MORE_MEMORY = 7, GI_ONE_SLICE_WITH_MORE_MEMORY = 9 };

/* Is there such a profile in this instance? Only as many slices as it has, and what makes a part of them. */
static bool offers(const struct bh_nv_profile *gi, unsigned id)
{
    bool is_wide = gi->nvml_enum == GI_ONE_SLICE_WITH_MORE_MEMORY;
    if (id >= NVML_CI_PROFILES_MAX || is_wide != (id == ONE_SLICE_WITH_MORE_MEMORY))
        return false;
    return slices_of[id] <= gi->catalog->compute_slices;
}

static struct bh_nv_call enter(const char *function, nvml_gpu_instance_t gi, struct bh_nv_profile *ret,
                               bool arguments_ok)
{
    struct bh_nv_call c = bh_nv_enter_gi(function, gi, arguments_ok);
    if (c.status == NVML_OK && !bh_nv_profile_by_id(c.model, c.gi->profile_id, ret))
        c.status = NVML_UNKNOWN;
    return c;
}

static struct nvml_ci_profile_v3 describe(const struct bh_nv_call *c, const struct bh_nv_profile *gi,
                                          unsigned id)
{
    uint32_t slices = slices_of[id], all = gi->catalog->compute_slices;
    struct nvml_ci_profile_v3 info = {.id = id,
                                      .slice_count = slices,
                                      .instance_count = all / slices,
                                      .multiprocessor_count = bh_nv_profile_sm(c, gi->catalog) * slices / all,
                                      .shared_copy = gi->copy,
                                      .shared_decoder = gi->decoder,
                                      .shared_encoder = gi->encoder,
                                      .shared_jpeg = gi->jpeg,
                                      .shared_ofa = gi->ofa};
    if (slices == all)
        (void)snprintf(info.name, sizeof(info.name), "MIG %s", gi->catalog->name);
    else
        (void)snprintf(info.name, sizeof(info.name), "MIG %uc.%s", slices, gi->catalog->name);
    return info;
}

/* engine: which engines it shares; there is one way only, 0. */
API(nvmlGpuInstanceGetComputeInstanceProfileInfo, nvml_gpu_instance_t gi, unsigned profile, unsigned engine,
    struct nvml_ci_profile_v1 *info)
{
    struct bh_nv_profile p;
    BH_NV_CALL c = enter(__func__, gi, &p, info && profile < NVML_CI_PROFILES_MAX && engine == 0);
    if (c.status == NVML_OK && !offers(&p, profile))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK)
        return c.status;
    /* The first form is what stands between the version and the name. */
    struct nvml_ci_profile_v3 all = describe(&c, &p, profile);
    memcpy(info, &all.id, sizeof(*info));
    return NVML_OK;
}

API(nvmlGpuInstanceGetComputeInstanceProfileInfoV, nvml_gpu_instance_t gi, unsigned profile, unsigned engine,
    void *info)
{
    struct bh_nv_profile p;
    BH_NV_CALL c = enter(__func__, gi, &p, info && profile < NVML_CI_PROFILES_MAX && engine == 0);
    uint32_t version;
    if (c.status == NVML_OK && !offers(&p, profile))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK)
        return c.status;
    memcpy(&version, info, sizeof(version));
    if (version != NVML_CI_PROFILE_V2 && version != NVML_CI_PROFILE_V3)
        return NVML_ARGUMENT_VERSION;
    struct nvml_ci_profile_v3 all = describe(&c, &p, profile);
    all.version = version;
    memcpy(info, &all, version & 0xffffff);
    return NVML_OK;
}

/* How many runs of `slices` free ones there are. */
static uint32_t room_for(const struct bh_sim_gi_view *gi, uint32_t all, uint32_t slices)
{
    uint32_t taken = 0, room = 0, run = 0;
    for (uint32_t i = 0; i < gi->n_cis && i < BH_SIM_VIEW_CIS; i++)
        taken |= ((1u << gi->cis[i].slices) - 1) << gi->cis[i].start;
    for (uint32_t at = 0; at < all; at++) {
        run = taken >> at & 1 ? 0 : run + 1;
        if (run == slices) {
            room++;
            run = 0;
        }
    }
    return room;
}

API(nvmlGpuInstanceGetComputeInstanceRemainingCapacity, nvml_gpu_instance_t gi, unsigned profile_id,
    unsigned *count)
{
    struct bh_nv_profile p;
    BH_NV_CALL c = enter(__func__, gi, &p, count != NULL);
    if (c.status == NVML_OK && !offers(&p, profile_id))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK)
        return c.status;
    if (bh_nv_may_see_cut(&c) == NVML_OK)
        *count = room_for(c.gi, p.catalog->compute_slices, slices_of[profile_id]);
    return c.status;
}

/* start -1: anywhere. Where it came to lie is looked up afterwards: another place than asked for is no success. */
static int create(struct bh_nv_call *c, const struct bh_nv_profile *p, unsigned profile_id, int32_t start,
                  nvml_compute_instance_t *ret)
{
    if (c->status == NVML_OK && !offers(p, profile_id))
        c->status = NVML_NOT_SUPPORTED;
    if (c->status != NVML_OK)
        return c->status;
    uint32_t gi = c->gi->id;
    struct bh_sim_mig_order order = {
        .verb = BH_SIM_MIG_CI_CREATE, .profile_id = slices_of[profile_id], .start = start, .gi = gi};
    if (bh_nv_mig(c, &order) != NVML_OK || bh_nv_refresh(c) != NVML_OK)
        return c->status;
    for (uint32_t i = 0; start >= 0 && i < c->gi->n_cis && i < BH_SIM_VIEW_CIS; i++)
        if (c->gi->cis[i].id == order.ci && c->gi->cis[i].start != (uint32_t)start) {
            struct bh_sim_mig_order back = {
                .verb = BH_SIM_MIG_CI_DESTROY, .start = -1, .gi = gi, .ci = order.ci};
            return bh_nv_mig(c, &back) == NVML_OK ? (int)NVML_INSUFFICIENT_RESOURCES : c->status;
        }
    *ret = bh_nv_ci(c->gpu->index, gi, order.ci);
    return NVML_OK;
}

API(nvmlGpuInstanceCreateComputeInstance, nvml_gpu_instance_t gi, unsigned profile_id,
    nvml_compute_instance_t *ret)
{
    struct bh_nv_profile p;
    BH_NV_CALL c = enter(__func__, gi, &p, ret != NULL);
    return create(&c, &p, profile_id, -1, ret);
}

API(nvmlGpuInstanceCreateComputeInstanceWithPlacement, nvml_gpu_instance_t gi, unsigned profile_id,
    const struct nvml_placement *placement, nvml_compute_instance_t *ret)
{
    struct bh_nv_profile p;
    BH_NV_CALL c = enter(__func__, gi, &p, placement && ret && placement->start <= INT32_MAX);
    if (c.status == NVML_OK && profile_id < NVML_CI_PROFILES_MAX && placement->size != slices_of[profile_id])
        c.status = NVML_INVALID_ARGUMENT;
    return c.status == NVML_OK ? create(&c, &p, profile_id, (int32_t)placement->start, ret) : c.status;
}

static unsigned profile_of(const struct bh_nv_profile *gi, uint32_t slices)
{
    for (unsigned i = 0; i < NVML_CI_PROFILES_MAX; i++)
        if (offers(gi, i) && slices_of[i] == slices)
            return i;
    return NVML_CI_PROFILES_MAX;
}

API(nvmlGpuInstanceGetComputeInstances, nvml_gpu_instance_t gi, unsigned profile_id,
    nvml_compute_instance_t *list, unsigned *count)
{
    struct bh_nv_profile p;
    BH_NV_CALL c = enter(__func__, gi, &p, list && count);
    if (c.status == NVML_OK && !offers(&p, profile_id))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK || bh_nv_may_see_cut(&c) != NVML_OK)
        return c.status;
    *count = 0;
    for (uint32_t i = 0; i < c.gi->n_cis && i < BH_SIM_VIEW_CIS; i++)
        if (profile_of(&p, c.gi->cis[i].slices) == profile_id)
            list[(*count)++] = bh_nv_ci(c.gpu->index, c.gi->id, c.gi->cis[i].id);
    return NVML_OK;
}

API(nvmlGpuInstanceGetComputeInstanceById, nvml_gpu_instance_t gi, unsigned id, nvml_compute_instance_t *ret)
{
    struct bh_nv_profile p;
    BH_NV_CALL c = enter(__func__, gi, &p, ret != NULL);
    if (c.status != NVML_OK || bh_nv_may_see_cut(&c) != NVML_OK)
        return c.status;
    for (uint32_t i = 0; i < c.gi->n_cis && i < BH_SIM_VIEW_CIS; i++)
        if (c.gi->cis[i].id == id) {
            *ret = bh_nv_ci(c.gpu->index, c.gi->id, id);
            return NVML_OK;
        }
    return NVML_NOT_FOUND;
}

API(nvmlComputeInstanceGetInfo_v2, nvml_compute_instance_t ci, struct nvml_compute_instance_info *info)
{
    BH_NV_CALL c = bh_nv_enter_ci(__func__, ci, info != NULL);
    struct bh_nv_profile p;
    if (c.status == NVML_OK && !bh_nv_profile_by_id(c.model, c.gi->profile_id, &p))
        c.status = NVML_UNKNOWN;
    if (c.status == NVML_OK)
        *info = (struct nvml_compute_instance_info){bh_nv_device(c.gpu->index),
                                                    bh_nv_gi(c.gpu->index, c.gi->id),
                                                    c.ci->id,
                                                    profile_of(&p, c.ci->slices),
                                                    {c.ci->start, c.ci->slices}};
    return c.status;
}

API(nvmlComputeInstanceDestroy, nvml_compute_instance_t ci)
{
    BH_NV_CALL c = bh_nv_enter_ci(__func__, ci, true);
    if (c.status != NVML_OK)
        return c.status;
    struct bh_sim_mig_order order = {
        .verb = BH_SIM_MIG_CI_DESTROY, .start = -1, .gi = c.gi->id, .ci = c.ci->id};
    return bh_nv_mig(&c, &order);
}
