/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig.c - MIG mode, GPU instances and the devices that stand for slices.
 *
 * What fits where is the node's to say: this file only brings the question there and the answer back. Who may ask is
 * the node's to say, too.
 */
#include "simgpu/drv.h"
#include "simgpu/nvml/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int bh_nv_mig(struct bh_nv_call *c, struct bh_sim_mig_order *order)
{
    order->gpu = c->gpu->index;
    c->status = bh_sim_mig(order) < 0 ? bh_nv_status_of_errno(errno) : order->status;
    return c->status;
}

/*
 * Those who may not change the cut may not see where instances lie either. The node knows who may: it is asked to
 * destroy what cannot be there (numbers begin at 1), and refuses some for what they are.
 */
int bh_nv_may_see_cut(struct bh_nv_call *c)
{
    struct bh_sim_mig_order order = {.verb = BH_SIM_MIG_GI_DESTROY, .start = -1};
    int status = bh_nv_mig(c, &order);
    if (status != NVML_NO_PERMISSION && status != NVML_GPU_IS_LOST && status != NVML_UNKNOWN)
        c->status = NVML_OK;
    return c->status;
}

static struct bh_nv_call enter_mig(const char *function, nvml_device_t device, bool arguments_ok)
{
    struct bh_nv_call c = bh_nv_enter_device(function, device, BH_NV_WHOLE, arguments_ok);
    if (c.status == NVML_OK && !c.gpu->mig_capable)
        c.status = NVML_NOT_SUPPORTED;
    return c;
}

/* The cut of a card that is not in MIG mode cannot be asked for, nor changed. */
static struct bh_nv_call enter_cut(const char *function, nvml_device_t device, bool arguments_ok)
{
    struct bh_nv_call c = enter_mig(function, device, arguments_ok);
    if (c.status == NVML_OK && c.gpu->mig_on != 1)
        c.status = NVML_NOT_SUPPORTED;
    return c;
}

API(nvmlDeviceGetMigMode, nvml_device_t device, unsigned *now, unsigned *pending)
{
    BH_NV_CALL c = enter_mig(__func__, device, now && pending);
    if (c.status == NVML_OK) {
        *now = c.gpu->mig_on;
        *pending = c.gpu->mig_pending;
    }
    return c.status;
}

/* Asked for is one thing, in force another: activation says why it must wait. */
API(nvmlDeviceSetMigMode, nvml_device_t device, unsigned mode, int *activation)
{
    BH_NV_CALL c = enter_mig(__func__, device, activation && mode <= 1);
    struct bh_sim_mig_order order = {.verb = BH_SIM_MIG_MODE, .profile_id = mode, .start = -1};
    if (c.status != NVML_OK)
        return c.status;
    bh_nv_client_close(); /* this library's own objects on the card are no reason to wait */
    if (bh_nv_mig(&c, &order) != NVML_OK || bh_nv_refresh(&c) != NVML_OK)
        return c.status;
    *activation = c.gpu->mig_on == mode ? NVML_OK : NVML_IN_USE;
    return NVML_OK;
}

static struct nvml_gi_profile_v2 describe(const struct bh_nv_call *c, const struct bh_nv_profile *p)
{
    struct nvml_gi_profile_v2 info = {.version = NVML_GI_PROFILE_V2,
                                      .id = p->catalog->gi_profile_id,
                                      .slice_count = p->catalog->compute_slices,
                                      .instance_count = p->catalog->max_instances,
                                      .multiprocessor_count = bh_nv_profile_sm(c, p->catalog),
                                      .copy_engine_count = p->copy,
                                      .decoder_count = p->decoder,
                                      .encoder_count = p->encoder,
                                      .jpeg_count = p->jpeg,
                                      .ofa_count = p->ofa,
                                      .memory_mb = bh_nv_profile_mib(c, p->catalog)};
    (void)snprintf(info.name, sizeof(info.name), "MIG %s", p->catalog->name);
    return info;
}

API(nvmlDeviceGetGpuInstanceProfileInfo, nvml_device_t device, unsigned profile,
    struct nvml_gi_profile_v1 *info)
{
    BH_NV_CALL c = enter_mig(__func__, device, info && profile < NVML_GI_PROFILES_MAX);
    struct bh_nv_profile p;
    if (c.status == NVML_OK && !bh_nv_profile_by_enum(c.model, profile, &p))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK)
        return c.status;
    struct nvml_gi_profile_v2 all = describe(&c, &p);
    memcpy(info, &all.id, offsetof(struct nvml_gi_profile_v1, memory_mb));
    info->memory_mb = all.memory_mb;
    return NVML_OK;
}

/* The third form has no word on peer access, and one on capabilities behind the name. */
static int write_profile(const struct bh_nv_call *c, const struct bh_nv_profile *p, void *info)
{
    struct nvml_gi_profile_v2 all = describe(c, p);
    uint32_t version;
    memcpy(&version, info, sizeof(version));
    if (version == NVML_GI_PROFILE_V2) {
        memcpy(info, &all, sizeof(all));
        return NVML_OK;
    }
    if (version != NVML_GI_PROFILE_V3)
        return NVML_ARGUMENT_VERSION;
    struct nvml_gi_profile_v3 v3 = {.version = NVML_GI_PROFILE_V3, .id = all.id, .memory_mb = all.memory_mb};
    memcpy(&v3.slice_count, &all.slice_count,
           offsetof(struct nvml_gi_profile_v3, memory_mb) - offsetof(struct nvml_gi_profile_v3, slice_count));
    memcpy(v3.name, all.name, sizeof(v3.name));
    memcpy(info, &v3, sizeof(v3));
    return NVML_OK;
}

API(nvmlDeviceGetGpuInstanceProfileInfoV, nvml_device_t device, unsigned profile, void *info)
{
    BH_NV_CALL c = enter_mig(__func__, device, info && profile < NVML_GI_PROFILES_MAX);
    struct bh_nv_profile p;
    if (c.status == NVML_OK && !bh_nv_profile_by_enum(c.model, profile, &p))
        c.status = NVML_NOT_SUPPORTED;
    return c.status == NVML_OK ? write_profile(&c, &p, info) : c.status;
}

API(nvmlDeviceGetGpuInstanceProfileInfoByIdV, nvml_device_t device, unsigned id, void *info)
{
    BH_NV_CALL c = enter_mig(__func__, device, info != NULL);
    struct bh_nv_profile p;
    if (c.status == NVML_OK && !bh_nv_profile_by_id(c.model, id, &p))
        c.status = NVML_NOT_SUPPORTED;
    return c.status == NVML_OK ? write_profile(&c, &p, info) : c.status;
}

API(nvmlDeviceGetGpuInstanceRemainingCapacity, nvml_device_t device, unsigned profile_id, unsigned *count)
{
    BH_NV_CALL c = enter_cut(__func__, device, count != NULL);
    struct bh_sim_mig_order order = {.verb = BH_SIM_MIG_GI_ROOM, .profile_id = profile_id, .start = -1};
    struct bh_nv_profile p;
    if (c.status == NVML_OK && !bh_nv_profile_by_id(c.model, profile_id, &p))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status == NVML_OK && bh_nv_may_see_cut(&c) == NVML_OK && bh_nv_mig(&c, &order) == NVML_OK)
        *count = order.room;
    return c.status;
}

/* Where one could ever lie, whatever lies there now. */
API(nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvml_device_t device, unsigned profile_id,
    struct nvml_placement *list, unsigned *count)
{
    BH_NV_CALL c = enter_cut(__func__, device, count && (list || *count == 0));
    struct bh_nv_profile p;
    if (c.status == NVML_OK && !bh_nv_profile_by_id(c.model, profile_id, &p))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK || bh_nv_may_see_cut(&c) != NVML_OK)
        return c.status;
    unsigned room = *count;
    *count = p.catalog->n_starts;
    /* Without a list only the number is wanted. */
    if (list && room < *count)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; list && i < *count; i++)
        list[i] = (struct nvml_placement){p.catalog->starts[i], p.catalog->placement_size};
    return NVML_OK;
}

static int create(struct bh_nv_call *c, unsigned profile_id, int32_t start, nvml_gpu_instance_t *ret)
{
    struct bh_sim_mig_order order = {.verb = BH_SIM_MIG_GI_CREATE, .profile_id = profile_id, .start = start};
    if (c->status == NVML_OK && bh_nv_mig(c, &order) == NVML_OK)
        *ret = bh_nv_gi(c->gpu->index, order.gi);
    return c->status;
}

API(nvmlDeviceCreateGpuInstance, nvml_device_t device, unsigned profile_id, nvml_gpu_instance_t *ret)
{
    BH_NV_CALL c = enter_cut(__func__, device, ret != NULL);
    return create(&c, profile_id, -1, ret);
}

API(nvmlDeviceCreateGpuInstanceWithPlacement, nvml_device_t device, unsigned profile_id,
    const struct nvml_placement *placement, nvml_gpu_instance_t *ret)
{
    BH_NV_CALL c = enter_cut(__func__, device, placement && ret && placement->start <= INT32_MAX);
    struct bh_nv_profile p;
    if (c.status == NVML_OK && bh_nv_profile_by_id(c.model, profile_id, &p) &&
        placement->size != p.catalog->placement_size)
        c.status = NVML_INVALID_ARGUMENT;
    return c.status == NVML_OK ? create(&c, profile_id, (int32_t)placement->start, ret) : c.status;
}

/* The list has room for as many as the profile allows; there is no other bound in the interface. */
API(nvmlDeviceGetGpuInstances, nvml_device_t device, unsigned profile_id, nvml_gpu_instance_t *list,
    unsigned *count)
{
    BH_NV_CALL c = enter_cut(__func__, device, list && count);
    if (c.status != NVML_OK || bh_nv_may_see_cut(&c) != NVML_OK)
        return c.status;
    *count = 0;
    for (uint32_t i = 0; i < c.gpu->n_gis && i < BH_SIM_VIEW_GIS; i++)
        if (c.gpu->gis[i].profile_id == profile_id)
            list[(*count)++] = bh_nv_gi(c.gpu->index, c.gpu->gis[i].id);
    return NVML_OK;
}

API(nvmlDeviceGetGpuInstanceById, nvml_device_t device, unsigned id, nvml_gpu_instance_t *ret)
{
    BH_NV_CALL c = enter_cut(__func__, device, ret != NULL);
    if (c.status != NVML_OK || bh_nv_may_see_cut(&c) != NVML_OK)
        return c.status;
    for (uint32_t i = 0; i < c.gpu->n_gis && i < BH_SIM_VIEW_GIS; i++)
        if (c.gpu->gis[i].id == id) {
            *ret = bh_nv_gi(c.gpu->index, id);
            return NVML_OK;
        }
    return NVML_NOT_FOUND;
}

API(nvmlGpuInstanceGetInfo, nvml_gpu_instance_t gi, struct nvml_gpu_instance_info *info)
{
    BH_NV_CALL c = bh_nv_enter_gi(__func__, gi, info != NULL);
    if (c.status == NVML_OK)
        *info = (struct nvml_gpu_instance_info){
            bh_nv_device(c.gpu->index), c.gi->id, c.gi->profile_id, {c.gi->start, c.gi->size}};
    return c.status;
}

API(nvmlGpuInstanceDestroy, nvml_gpu_instance_t gi)
{
    BH_NV_CALL c = bh_nv_enter_gi(__func__, gi, true);
    if (c.status != NVML_OK)
        return c.status;
    struct bh_sim_mig_order order = {.verb = BH_SIM_MIG_GI_DESTROY, .start = -1, .gi = c.gi->id};
    return bh_nv_mig(&c, &order);
}

/* How many slices there can be as long as MIG is on; none otherwise. */
API(nvmlDeviceGetMaxMigDeviceCount, nvml_device_t device, unsigned *count)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, count != NULL);
    if (c.status == NVML_OK)
        *count = c.gpu->mig_on == 1 && c.model ? c.model->compute_slices : 0;
    return c.status;
}

API(nvmlDeviceGetMigDeviceHandleByIndex, nvml_device_t device, unsigned index, nvml_device_t *ret)
{
    BH_NV_CALL c = enter_mig(__func__, device, ret != NULL);
    if (c.status != NVML_OK)
        return c.status;
    for (uint32_t i = 0; i < c.gpu->n_gis && i < BH_SIM_VIEW_GIS; i++) {
        const struct bh_sim_gi_view *gi = &c.gpu->gis[i];
        if (index < gi->n_cis) {
            *ret = bh_nv_slice(c.gpu->index, gi->id, gi->cis[index].id);
            return NVML_OK;
        }
        index -= gi->n_cis;
    }
    return NVML_NOT_FOUND;
}

API(nvmlDeviceIsMigDeviceHandle, nvml_device_t device, unsigned *is_slice)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, is_slice != NULL);
    if (c.status == NVML_OK)
        *is_slice = c.ci != NULL;
    return c.status;
}

API(nvmlDeviceGetGpuInstanceId, nvml_device_t device, unsigned *id)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_SLICE, id != NULL);
    if (c.status == NVML_OK)
        *id = c.gi->id;
    return c.status;
}

API(nvmlDeviceGetComputeInstanceId, nvml_device_t device, unsigned *id)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_SLICE, id != NULL);
    if (c.status == NVML_OK)
        *id = c.ci->id;
    return c.status;
}

API(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvml_device_t device, nvml_device_t *ret)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_SLICE, ret != NULL);
    if (c.status == NVML_OK)
        *ret = bh_nv_device(c.gpu->index);
    return c.status;
}

static int attributes(const char *function, nvml_device_t device, struct nvml_attributes *ret)
{
    BH_NV_CALL c = bh_nv_enter_device(function, device, BH_NV_SLICE, ret != NULL);
    struct bh_nv_profile p;
    if (c.status == NVML_OK && !bh_nv_profile_by_id(c.model, c.gi->profile_id, &p))
        c.status = NVML_UNKNOWN;
    if (c.status != NVML_OK)
        return c.status;
    *ret = (struct nvml_attributes){.multiprocessor_count = bh_nv_profile_sm(&c, p.catalog) * c.ci->slices /
                                                            p.catalog->compute_slices,
                                    .shared_copy = p.copy,
                                    .shared_decoder = p.decoder,
                                    .shared_encoder = p.encoder,
                                    .shared_jpeg = p.jpeg,
                                    .shared_ofa = p.ofa,
                                    .gi_slices = p.catalog->compute_slices,
                                    .ci_slices = c.ci->slices,
                                    .memory_mb = c.gi->total_bytes >> 20};
    return NVML_OK;
}

API(nvmlDeviceGetAttributes_v2, nvml_device_t device, struct nvml_attributes *ret)
{
    return attributes(__func__, device, ret);
}

API(nvmlDeviceGetAttributes, nvml_device_t device, struct nvml_attributes *ret)
{
    return attributes(__func__, device, ret);
}
