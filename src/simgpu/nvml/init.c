/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.c - start and end of the library, the lock, the handles, and what holds for every call.
 *
 * What the node says is asked anew in each call, so that a GPU that is lost or cut meanwhile is seen at once, as it
 * would be with the vendor's library, which asks the kernel driver each time.
 */
#include "base/str.h"
#include "simgpu/drv.h"
#include "simgpu/nvml/api.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Whoever loads the library can tell by this name that no card stands behind it. */
EXPORTED extern const int bulkhead_simulated;
const int bulkhead_simulated = 1;

/* Places of a handle: the GPU itself, then its instances' compute instances. */
enum { PLACES = 1 + BH_NV_GIS * BH_NV_CIS };
struct nvml_device {
    char place;
};
struct nvml_gpu_instance {
    char place;
};
struct nvml_compute_instance {
    char place;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct bh_sim_node_view node;
static struct bh_sim_gpu_view view, peer;
static struct nvml_device devices[BH_NV_GPUS * PLACES];
static struct nvml_gpu_instance gis[BH_NV_GPUS * BH_NV_GIS];
static struct nvml_compute_instance cis[BH_NV_GPUS * BH_NV_GIS * BH_NV_CIS];

static void take(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void give(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* A fork while another thread is in a call must not leave the child with a lock that nobody will give back. */
__attribute__((constructor)) static void loaded(void)
{
    (void)pthread_atfork(take, give, give);
}

void bh_nv_leave(struct bh_nv_call *c)
{
    (void)c;
    give();
}

static bool is_broken(const char *function)
{
    return node.fail_status != 0 &&
           (strcmp(node.fail_call, "*") == 0 || strcmp(node.fail_call, function) == 0);
}

/* gone: what a call answers when the driver is there no more. */
static struct bh_nv_call enter(const char *function, bool arguments_ok, int gone)
{
    take();
    struct bh_nv_call c = {.node = &node};
    if (users == 0)
        c.status = NVML_UNINITIALIZED;
    else if (bh_sim_hello(&node) < 0)
        c.status = errno == ENODEV ? gone : bh_nv_status_of_errno(errno);
    else if (is_broken(function))
        c.status = (int)node.fail_status;
    else if (!arguments_ok)
        c.status = NVML_INVALID_ARGUMENT;
    return c;
}

struct bh_nv_call bh_nv_enter_(const char *function, bool arguments_ok)
{
    return enter(function, arguments_ok, NVML_UNKNOWN);
}

static int look(uint32_t gpu, struct bh_sim_gpu_view *ret)
{
    if (gpu >= node.n_gpus)
        return NVML_INVALID_ARGUMENT;
    if (bh_sim_view(gpu, ret) < 0)
        return errno == EINVAL ? NVML_INVALID_ARGUMENT : bh_nv_status_of_errno(errno);
    return ret->lost ? NVML_GPU_IS_LOST : NVML_OK;
}

/* The GPU of the call, and the instance in it. A handle to what was destroyed is a wrong argument. */
static void find(struct bh_nv_call *c, uint32_t gpu, uint32_t gi, uint32_t ci)
{
    if (c->status != NVML_OK)
        return;
    c->status = look(gpu, &view);
    c->gpu = &view;
    c->model = bh_catalog_find(view.model);
    for (uint32_t i = 0; gi != BH_NV_NO_ID && i < view.n_gis && i < BH_SIM_VIEW_GIS; i++) {
        if (view.gis[i].id != gi)
            continue;
        c->gi = &view.gis[i];
        for (uint32_t k = 0; ci != BH_NV_NO_ID && k < c->gi->n_cis && k < BH_SIM_VIEW_CIS; k++)
            if (c->gi->cis[k].id == ci)
                c->ci = &c->gi->cis[k];
    }
    if (c->status == NVML_OK && ((gi != BH_NV_NO_ID && !c->gi) || (ci != BH_NV_NO_ID && !c->ci)))
        c->status = NVML_INVALID_ARGUMENT;
}

/* The same GPU and instance once more; they may stand elsewhere in the view by now. */
int bh_nv_refresh(struct bh_nv_call *c)
{
    uint32_t gi = c->gi ? c->gi->id : (uint32_t)BH_NV_NO_ID, ci = c->ci ? c->ci->id : (uint32_t)BH_NV_NO_ID;
    c->gi = NULL;
    c->ci = NULL;
    find(c, c->gpu->index, gi, ci);
    return c->status;
}

/* Where a handle stands in its table; false: it is none of ours. */
static bool place_of(const void *handle, const void *table, size_t size, size_t one, uint32_t *ret)
{
    uintptr_t at = (uintptr_t)handle, first = (uintptr_t)table;
    if (at < first || at >= first + size || (at - first) % one)
        return false;
    *ret = (uint32_t)((at - first) / one);
    return true;
}

struct bh_nv_call bh_nv_enter_device_(const char *function, nvml_device_t device, unsigned kinds,
                                      bool arguments_ok)
{
    uint32_t at = 0;
    bool known = place_of(device, devices, sizeof(devices), sizeof(*devices), &at);
    struct bh_nv_call c = enter(function, arguments_ok && known, NVML_GPU_IS_LOST);
    uint32_t slice = at % PLACES;
    if (slice == 0)
        find(&c, at / PLACES, BH_NV_NO_ID, BH_NV_NO_ID);
    else
        find(&c, at / PLACES, (slice - 1) / BH_NV_CIS, (slice - 1) % BH_NV_CIS);
    if (c.status == NVML_OK && !(kinds & (slice == 0 ? BH_NV_WHOLE : BH_NV_SLICE)))
        c.status = NVML_NOT_SUPPORTED;
    return c;
}

struct bh_nv_call bh_nv_enter_gi_(const char *function, nvml_gpu_instance_t gi, bool arguments_ok)
{
    uint32_t at = 0;
    bool known = place_of(gi, gis, sizeof(gis), sizeof(*gis), &at);
    struct bh_nv_call c = enter(function, arguments_ok && known, NVML_GPU_IS_LOST);
    find(&c, at / BH_NV_GIS, at % BH_NV_GIS, BH_NV_NO_ID);
    return c;
}

struct bh_nv_call bh_nv_enter_ci_(const char *function, nvml_compute_instance_t ci, bool arguments_ok)
{
    uint32_t at = 0;
    bool known = place_of(ci, cis, sizeof(cis), sizeof(*cis), &at);
    struct bh_nv_call c = enter(function, arguments_ok && known, NVML_GPU_IS_LOST);
    find(&c, at / (BH_NV_GIS * BH_NV_CIS), at / BH_NV_CIS % BH_NV_GIS, at % BH_NV_CIS);
    return c;
}

int bh_nv_peer_at(uint32_t gpu, const struct bh_sim_gpu_view **ret)
{
    *ret = &peer;
    return look(gpu, &peer);
}

int bh_nv_peer(nvml_device_t device, const struct bh_sim_gpu_view **ret)
{
    uint32_t at = 0;
    if (!place_of(device, devices, sizeof(devices), sizeof(*devices), &at))
        return NVML_INVALID_ARGUMENT;
    return at % PLACES ? (int)NVML_NOT_SUPPORTED : bh_nv_peer_at(at / PLACES, ret);
}

nvml_device_t bh_nv_device(uint32_t gpu)
{
    return &devices[gpu * PLACES];
}

nvml_device_t bh_nv_slice(uint32_t gpu, uint32_t gi, uint32_t ci)
{
    return &devices[gpu * PLACES + 1 + gi % BH_NV_GIS * BH_NV_CIS + ci % BH_NV_CIS];
}

nvml_gpu_instance_t bh_nv_gi(uint32_t gpu, uint32_t gi)
{
    return &gis[gpu * BH_NV_GIS + gi % BH_NV_GIS];
}

nvml_compute_instance_t bh_nv_ci(uint32_t gpu, uint32_t gi, uint32_t ci)
{
    return &cis[(gpu * BH_NV_GIS + gi % BH_NV_GIS) * BH_NV_CIS + ci % BH_NV_CIS];
}

int bh_nv_say(char *buf, unsigned size, const char *text)
{
    size_t n = strlen(text) + 1;
    if (n > size)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(buf, text, n);
    return NVML_OK;
}

int bh_nv_number(struct bh_nv_call *c, uint32_t value, unsigned *ret)
{
    if (c->status == NVML_OK && value == UINT32_MAX)
        c->status = NVML_NOT_SUPPORTED;
    if (c->status == NVML_OK)
        *ret = value;
    return c->status;
}

static int start(const char *function)
{
    take();
    int status = NVML_OK;
    if (bh_sim_hello(&node) < 0)
        status = errno == ENODEV ? (int)NVML_DRIVER_NOT_LOADED : bh_nv_status_of_errno(errno);
    else if (is_broken(function))
        status = (int)node.fail_status;
    else
        users++;
    give();
    return status;
}

API(nvmlInit_v2, void)
{
    return start(__func__);
}

API(nvmlInit, void)
{
    return start(__func__);
}

API(nvmlInitWithFlags, unsigned flags)
{
    (void)flags; /* whether GPUs are attached at once or later makes no difference here */
    return start(__func__);
}

/* The last of those who started it ends it. */
API(nvmlShutdown, void)
{
    take();
    int status = users ? NVML_OK : NVML_UNINITIALIZED;
    if (users && --users == 0)
        bh_nv_client_close();
    give();
    return status;
}

EXPORTED const char *nvmlErrorString(int status);
const char *nvmlErrorString(int status)
{
    static const struct {
        int status;
        const char *words;
    } known[] = {
        {NVML_OK, "Success"},
        {NVML_UNINITIALIZED, "Uninitialized"},
        {NVML_INVALID_ARGUMENT, "Invalid Argument"},
        {NVML_NOT_SUPPORTED, "Not Supported"},
        {NVML_NO_PERMISSION, "Insufficient Permissions"},
        {NVML_NOT_FOUND, "Not Found"},
        {NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
        {NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {NVML_TIMEOUT, "Timeout"},
        {NVML_FUNCTION_NOT_FOUND, "Function Not Found"},
        {NVML_GPU_IS_LOST, "GPU is lost"},
        {NVML_RESET_REQUIRED, "GPU requires reset"},
        {NVML_VERSION_MISMATCH, "Driver/library version mismatch"},
        {NVML_IN_USE, "In use by another client"},
        {NVML_MEMORY, "Insufficient Memory"},
        {NVML_NO_DATA, "No data"},
        {NVML_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
        {NVML_ARGUMENT_VERSION, "Argument version mismatch"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(known); i++)
        if (known[i].status == status)
            return known[i].words;
    return "Unknown Error";
}

API(nvmlSystemGetDriverVersion, char *version, unsigned size)
{
    BH_NV_CALL c = bh_nv_enter(__func__, version != NULL);
    return c.status == NVML_OK ? bh_nv_say(version, size, c.node->driver) : c.status;
}

API(nvmlSystemGetNVMLVersion, char *version, unsigned size)
{
    BH_NV_CALL c = bh_nv_enter(__func__, version != NULL);
    return c.status == NVML_OK ? bh_nv_say(version, size, c.node->nvml) : c.status;
}

static int cuda_version(const char *function, int *version)
{
    BH_NV_CALL c = bh_nv_enter(function, version != NULL);
    if (c.status == NVML_OK)
        *version = (int)c.node->cuda;
    return c.status;
}

API(nvmlSystemGetCudaDriverVersion, int *version)
{
    return cuda_version(__func__, version);
}

API(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
    return cuda_version(__func__, version);
}

/* Confidential computing needs a processor that has it; a simulated machine has none. */
API(nvmlSystemGetConfComputeState, struct nvml_cc_state *state)
{
    BH_NV_CALL c = bh_nv_enter(__func__, state != NULL);
    if (c.status == NVML_OK)
        *state = (struct nvml_cc_state){0};
    return c.status;
}

API(nvmlSystemGetConfComputeCapabilities, struct nvml_cc_capabilities *capabilities)
{
    BH_NV_CALL c = bh_nv_enter(__func__, capabilities != NULL);
    if (c.status == NVML_OK)
        *capabilities = (struct nvml_cc_capabilities){0};
    return c.status;
}

API(nvmlSystemGetConfComputeSettings, struct nvml_cc_settings *settings)
{
    BH_NV_CALL c = bh_nv_enter(__func__, settings != NULL);
    if (c.status != NVML_OK)
        return c.status;
    if (settings->version != NVML_CC_SETTINGS_V1)
        return NVML_ARGUMENT_VERSION;
    *settings = (struct nvml_cc_settings){.version = NVML_CC_SETTINGS_V1};
    return NVML_OK;
}
