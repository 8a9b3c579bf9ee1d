/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin_mig.c - a library that speaks NVML and has one A100 behind it that can be cut. For tests only.
 *
 * It keeps the rules the driver keeps: places do not overlap, an instance with something in it does not go, the
 * mode does not change under instances. A test tells it through standin_fail() and standin_set() what to refuse.
 */
#include "gpu/abi/nvml.h"

#include <stdio.h>
#include <string.h>

#define API(name, ...)     \
    int name(__VA_ARGS__); \
    int name(__VA_ARGS__)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { GIS = 8, CIS = 7, SLICES = 8 };

struct nvml_device {
    int unused;
};
struct nvml_compute_instance {
    int made;
    uint32_t id, profile;
    struct nvml_placement at;
    struct nvml_gpu_instance *gi;
};
struct nvml_gpu_instance {
    int made;
    uint32_t id, profile;
    struct nvml_placement at;
    struct nvml_compute_instance cis[CIS];
};

/* By the number the library gives a profile; id is what instances are made with. */
static const struct {
    uint32_t number, id, slices, sms, size, n_starts, starts[7];
    uint64_t mb;
    const char *name;
} profiles[] = {
    {0, 19, 1, 14, 1, 7, {0, 1, 2, 3, 4, 5, 6}, 4864, "MIG 1g.5gb"},
    {1, 14, 2, 28, 2, 3, {0, 2, 4}, 9856, "MIG 2g.10gb"},
    {2, 9, 3, 42, 4, 2, {0, 4}, 19968, "MIG 3g.20gb"},
    {3, 5, 4, 56, 4, 1, {0}, 19968, "MIG 4g.20gb"},
    {4, 0, 7, 98, 8, 1, {0}, 40192, "MIG 7g.40gb"},
    {9, 15, 1, 14, 2, 4, {0, 2, 4, 6}, 9856, "MIG 1g.10gb"},
};
/* number is the id as well; the last is the wider one-slice profile of an instance with more memory */
static const struct {
    uint32_t number, slices;
} ci_profiles[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 7}, {7, 1}};

static struct nvml_device gpu;
static struct nvml_gpu_instance gis[GIS];
static int mode = 1, pending = 1, activation, pids, capable = 1, stuck;
static int open_for; /* so many more changes of the mode find somebody who has the card open */
static char fail_call[64];
static int fail_after, fail_status;

extern const int bulkhead_simulated;
const int bulkhead_simulated = 1;

void standin_fail(const char *call, int after, int status);
void standin_set(const char *what, int v);
int standin_left(void);

/* Is a refusal still waiting for its call? */
int standin_left(void)
{
    return fail_call[0] != '\0';
}

/* The call after `after` more of its kind answers with status, and every one behind it. */
void standin_fail(const char *call, int after, int status)
{
    (void)snprintf(fail_call, sizeof(fail_call), "%s", call);
    fail_after = after;
    fail_status = status;
}

void standin_set(const char *what, int v)
{
    static const struct {
        const char *name;
        int *at;
    } table[] = {{"mode", &mode},       {"pending", &pending}, {"activation", &activation}, {"pids", &pids},
                 {"capable", &capable}, {"stuck", &stuck},     {"open", &open_for}};
    for (size_t i = 0; i < COUNT(table); i++)
        if (strcmp(table[i].name, what) == 0)
            *table[i].at = v;
    if (strcmp(what, "clear") == 0)
        memset(gis, 0, sizeof(gis));
}

/* Once it fails it goes on failing, except when it was told to fail one time only (status below 0). */
static int refused(const char *call)
{
    if (strcmp(call, fail_call) != 0 || fail_after-- > 0)
        return NVML_OK;
    int status = fail_status;
    if (status < 0) {
        fail_call[0] = '\0';
        return -status;
    }
    fail_after = 0;
    return status;
}

API(nvmlInit_v2, void)
{
    return NVML_OK;
}

API(nvmlShutdown, void)
{
    return NVML_OK;
}

API(nvmlDeviceGetCount_v2, unsigned *count)
{
    *count = 1;
    return NVML_OK;
}

API(nvmlDeviceGetHandleByIndex_v2, unsigned index, struct nvml_device **ret)
{
    *ret = &gpu;
    return index == 0 ? NVML_OK : NVML_INVALID_ARGUMENT;
}

API(nvmlDeviceGetUUID, struct nvml_device *d, char *buf, unsigned size)
{
    (void)d;
    (void)snprintf(buf, size, "GPU-00000000-0000-4000-8000-00000000a100");
    return NVML_OK;
}

API(nvmlDeviceGetName, struct nvml_device *d, char *buf, unsigned size)
{
    (void)d;
    (void)snprintf(buf, size, "NVIDIA A100-SXM4-40GB");
    return NVML_OK;
}

API(nvmlDeviceGetMigMode, struct nvml_device *d, unsigned *now, unsigned *next)
{
    (void)d;
    *now = (unsigned)mode;
    *next = (unsigned)pending;
    return capable ? refused("mig_mode") : NVML_NOT_SUPPORTED;
}

API(nvmlDeviceSetMigMode, struct nvml_device *d, unsigned wanted, int *status)
{
    (void)d;
    for (int i = 0; i < GIS; i++)
        if (gis[i].made)
            return NVML_IN_USE;
    int status_of_call = refused("set_mode");
    if (status_of_call != NVML_OK || stuck)
        return status_of_call;
    pending = (int)wanted;
    *status = open_for ? NVML_IN_USE : activation;
    open_for -= open_for > 0;
    if (*status == NVML_OK)
        mode = pending;
    return NVML_OK;
}

static int profile_of(uint32_t id)
{
    for (size_t i = 0; i < COUNT(profiles); i++)
        if (profiles[i].id == id)
            return (int)i;
    return -1;
}

API(nvmlDeviceGetGpuInstanceProfileInfoV, struct nvml_device *d, unsigned number,
    struct nvml_gi_profile_v2 *p)
{
    (void)d;
    int status = refused("gi_profile");
    if (status != NVML_OK || p->version != NVML_GI_PROFILE_V2)
        return status != NVML_OK ? status : NVML_ARGUMENT_VERSION;
    for (size_t i = 0; i < COUNT(profiles); i++)
        if (profiles[i].number == number) {
            p->id = profiles[i].id;
            p->slice_count = profiles[i].slices;
            p->multiprocessor_count = profiles[i].sms;
            p->memory_mb = profiles[i].mb;
            (void)snprintf(p->name, sizeof(p->name), "%s", profiles[i].name);
            return NVML_OK;
        }
    return NVML_NOT_SUPPORTED;
}

API(nvmlDeviceGetGpuInstancePossiblePlacements_v2, struct nvml_device *d, unsigned id,
    struct nvml_placement *list, unsigned *count)
{
    (void)d;
    int p = profile_of(id), status = refused("gi_places");
    if (status != NVML_OK)
        return status;
    if (p < 0 || *count < profiles[p].n_starts)
        return p < 0 ? NVML_INVALID_ARGUMENT : NVML_INSUFFICIENT_SIZE;
    *count = profiles[p].n_starts;
    for (unsigned i = 0; i < *count; i++)
        list[i] = (struct nvml_placement){profiles[p].starts[i], profiles[p].size};
    return NVML_OK;
}

static int is_free(uint32_t start, uint32_t size)
{
    for (int i = 0; i < GIS; i++)
        if (gis[i].made && start < gis[i].at.start + gis[i].at.size && gis[i].at.start < start + size)
            return 0;
    return start + size <= SLICES;
}

API(nvmlDeviceGetGpuInstanceRemainingCapacity, struct nvml_device *d, unsigned id, unsigned *count)
{
    (void)d;
    int p = profile_of(id);
    *count = 0;
    for (unsigned i = 0; p >= 0 && i < profiles[p].n_starts; i++)
        *count += (unsigned)is_free(profiles[p].starts[i], profiles[p].size);
    return p < 0 ? NVML_INVALID_ARGUMENT : refused("gi_room");
}

API(nvmlDeviceCreateGpuInstanceWithPlacement, struct nvml_device *d, unsigned id,
    const struct nvml_placement *at, struct nvml_gpu_instance **ret)
{
    (void)d;
    int p = profile_of(id), status = refused("gi_create");
    if (status != NVML_OK || p < 0)
        return p < 0 ? NVML_INVALID_ARGUMENT : status;
    if (!mode)
        return NVML_NOT_SUPPORTED;
    if (!is_free(at->start, profiles[p].size))
        return NVML_INSUFFICIENT_RESOURCES;
    for (uint32_t i = 0; i < GIS; i++)
        if (!gis[i].made) {
            gis[i] = (struct nvml_gpu_instance){1, i + 1, id, {at->start, profiles[p].size}, {{0}}};
            *ret = &gis[i];
            return NVML_OK;
        }
    return NVML_INSUFFICIENT_RESOURCES;
}

API(nvmlDeviceGetGpuInstances, struct nvml_device *d, unsigned id, struct nvml_gpu_instance **list,
    unsigned *count)
{
    (void)d;
    *count = 0;
    for (int i = 0; i < GIS; i++)
        if (gis[i].made && gis[i].profile == id)
            list[(*count)++] = &gis[i];
    return refused("gi_list");
}

API(nvmlGpuInstanceGetInfo, struct nvml_gpu_instance *gi, struct nvml_gpu_instance_info *info)
{
    int status = refused("gi_info");
    if (status == NVML_OK)
        *info = (struct nvml_gpu_instance_info){&gpu, gi->id, gi->profile, gi->at};
    return status;
}

API(nvmlGpuInstanceDestroy, struct nvml_gpu_instance *gi)
{
    for (int i = 0; i < CIS; i++)
        if (gi->cis[i].made)
            return NVML_IN_USE;
    int status = refused("gi_destroy");
    gi->made = status != NVML_OK;
    return status;
}

API(nvmlGpuInstanceGetComputeInstanceProfileInfoV, struct nvml_gpu_instance *gi, unsigned number,
    unsigned engines, struct nvml_ci_profile_v2 *p)
{
    int of = profile_of(gi->profile), status = refused("ci_profile");
    if (status != NVML_OK)
        return status;
    if (engines != 0 || p->version != NVML_CI_PROFILE_V2)
        return NVML_ARGUMENT_VERSION;
    for (size_t i = 0; i < COUNT(ci_profiles); i++)
        if (ci_profiles[i].number == number && ci_profiles[i].slices <= profiles[of].slices &&
            (number != 7 || gi->profile == 15)) {
            p->id = number;
            p->slice_count = ci_profiles[i].slices;
            p->multiprocessor_count = number == 7 ? 26 : 14 * p->slice_count;
            return NVML_OK;
        }
    return NVML_NOT_SUPPORTED;
}

static int make_ci(struct nvml_gpu_instance *gi, uint32_t profile, int start,
                   struct nvml_compute_instance **ret)
{
    uint32_t size = 0, used = 0, all = profiles[profile_of(gi->profile)].slices;
    int status = refused("ci_create");
    for (size_t i = 0; i < COUNT(ci_profiles); i++)
        if (ci_profiles[i].number == profile)
            size = ci_profiles[i].slices;
    for (int i = 0; i < CIS; i++)
        used += gi->cis[i].made ? gi->cis[i].at.size : 0;
    if (status != NVML_OK || !size || used + size > all)
        return status != NVML_OK ? status : !size ? NVML_INVALID_ARGUMENT : NVML_INSUFFICIENT_RESOURCES;
    for (uint32_t i = 0; i < CIS; i++)
        if (!gi->cis[i].made) {
            gi->cis[i] =
                (struct nvml_compute_instance){1, i, profile, {start < 0 ? used : (uint32_t)start, size}, gi};
            *ret = &gi->cis[i];
            return NVML_OK;
        }
    return NVML_INSUFFICIENT_RESOURCES;
}

API(nvmlGpuInstanceCreateComputeInstance, struct nvml_gpu_instance *gi, unsigned profile,
    struct nvml_compute_instance **ret)
{
    return make_ci(gi, profile, -1, ret);
}

API(nvmlGpuInstanceCreateComputeInstanceWithPlacement, struct nvml_gpu_instance *gi, unsigned profile,
    const struct nvml_placement *at, struct nvml_compute_instance **ret)
{
    return make_ci(gi, profile, (int)at->start, ret);
}

API(nvmlGpuInstanceGetComputeInstances, struct nvml_gpu_instance *gi, unsigned profile,
    struct nvml_compute_instance **list, unsigned *count)
{
    *count = 0;
    for (int i = 0; i < CIS; i++)
        if (gi->cis[i].made && gi->cis[i].profile == profile)
            list[(*count)++] = &gi->cis[i];
    return refused("ci_list");
}

API(nvmlComputeInstanceGetInfo_v2, struct nvml_compute_instance *ci, struct nvml_compute_instance_info *info)
{
    int status = refused("ci_info");
    if (status == NVML_OK)
        *info = (struct nvml_compute_instance_info){&gpu, ci->gi, ci->id, ci->profile, ci->at};
    return status;
}

API(nvmlComputeInstanceDestroy, struct nvml_compute_instance *ci)
{
    int status = refused("ci_destroy");
    ci->made = status != NVML_OK;
    return status;
}

API(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct nvml_device *d, unsigned *count, void *out)
{
    (void)d, (void)out;
    *count = 0;
    return refused("mps");
}

API(nvmlDeviceGetComputeRunningProcesses_v3, struct nvml_device *d, unsigned *count, void *out)
{
    unsigned room = *count;
    int status = refused("processes");
    (void)d;
    *count = (unsigned)pids;
    if (status != NVML_OK || room < *count)
        return status != NVML_OK ? status : NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) {
        struct nvml_process_info p = {4001 + i, 1 << 20, UINT32_MAX, UINT32_MAX};
        memcpy((char *)out + i * sizeof(p), &p, sizeof(p));
    }
    return NVML_OK;
}
