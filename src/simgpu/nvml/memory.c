/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - how much video memory a GPU or a slice has, and how much of it is free: asked of the kernel driver. */
#include "gpu/abi/rm.h"
#include "simgpu/nvml/api.h"

struct amounts {
    uint64_t total, usable, free;
};

/* gi BH_NV_NO_ID: of the whole card. */
static int ask_one(uint32_t gpu, uint32_t gi, struct amounts *ret)
{
    enum { TOTAL, USABLE, FREE, N };
    struct rm_fb_info q = {.count = N};
    q.at[TOTAL].index = RM_FB_TOTAL_RAM;
    q.at[USABLE].index = RM_FB_HEAP_SIZE;
    q.at[FREE].index = RM_FB_HEAP_FREE;
    int status = bh_nv_control(gpu, gi, RM_CTRL_FB_GET_INFO_V2, &q, sizeof(q));
    *ret = (struct amounts){(uint64_t)q.at[TOTAL].value << 10, (uint64_t)q.at[USABLE].value << 10,
                            (uint64_t)q.at[FREE].value << 10};
    /* Whoever answers in the driver's place may hold back some of it; never is there more than there is. */
    if (ret->usable > ret->total)
        ret->usable = ret->total;
    if (ret->free > ret->usable)
        ret->free = ret->usable;
    return status;
}

/* A card that is cut has no memory of its own to give: what its instances use is added up. */
static int ask(const struct bh_nv_call *c, struct amounts *ret)
{
    int status = ask_one(c->gpu->index, c->gi ? c->gi->id : (uint32_t)BH_NV_NO_ID, ret);
    if (status != NVML_OK || c->gi || c->gpu->mig_on != 1)
        return status;
    ret->usable = ret->total - (c->gpu->reserved_bytes < ret->total ? c->gpu->reserved_bytes : 0);
    ret->free = ret->usable;
    for (uint32_t i = 0; status == NVML_OK && i < c->gpu->n_gis && i < BH_SIM_VIEW_GIS; i++) {
        struct amounts part;
        status = ask_one(c->gpu->index, c->gpu->gis[i].id, &part);
        uint64_t used = part.usable - part.free;
        ret->free -= used < ret->free ? used : ret->free;
    }
    return status;
}

/* The old form counts what the driver keeps for itself as used. */
API(nvmlDeviceGetMemoryInfo, nvml_device_t device, struct nvml_memory *memory)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, memory != NULL);
    struct amounts a;
    if (c.status == NVML_OK)
        c.status = ask(&c, &a);
    if (c.status == NVML_OK)
        *memory = (struct nvml_memory){a.total, a.free, a.total - a.free};
    return c.status;
}

API(nvmlDeviceGetMemoryInfo_v2, nvml_device_t device, struct nvml_memory_v2 *memory)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, memory != NULL);
    struct amounts a;
    if (c.status == NVML_OK && memory->version != NVML_MEMORY_V2)
        c.status = NVML_ARGUMENT_VERSION;
    if (c.status == NVML_OK)
        c.status = ask(&c, &a);
    if (c.status == NVML_OK)
        *memory =
            (struct nvml_memory_v2){NVML_MEMORY_V2, a.total, a.total - a.usable, a.free, a.usable - a.free};
    return c.status;
}

struct bar1 {
    uint64_t total, free, used;
};

/* The window through which the processor sees the card. */
API(nvmlDeviceGetBAR1MemoryInfo, nvml_device_t device, struct bar1 *bar1)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, bar1 != NULL);
    struct rm_fb_info q = {.count = 2, .at = {{.index = RM_FB_BAR1_SIZE}, {.index = RM_FB_BAR1_FREE}}};
    if (c.status == NVML_OK)
        c.status = bh_nv_control(c.gpu->index, BH_NV_NO_ID, RM_CTRL_FB_GET_INFO_V2, &q, sizeof(q));
    if (c.status != NVML_OK)
        return c.status;
    const uint64_t total = (uint64_t)q.at[0].value << 10, left = (uint64_t)q.at[1].value << 10;
    *bar1 = (struct bar1){total, left, total - left};
    return NVML_OK;
}
