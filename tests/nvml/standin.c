/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin.c - a library that speaks NVML's binary interface and has no GPU behind it.
 *
 * Built once per scene (-DSCENE=...), for tests only. It answers as the vendor's library does: statuses,
 * version words, count-then-fill. Some scenes are broken on purpose. It exports `bulkhead_simulated`, so that
 * whatever shows its GPUs says that they are simulated. STANDIN_FAIL=call:status, where a call asks for it, makes
 * that one call answer so.
 */
#include "gpu/abi/nvml.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The preprocessor asks for some of them, so they are macros. */
#define H100X8    0
#define H200      1
#define A100MIG   2
#define NONE      3
#define MANY      4
#define LOST      5
#define DENIED    6
#define STRIDE32  7
#define STRIDE16  8
#define LIAR      9
#define ODD       10
#define OLD       11
#define BARE      12
#define MISMATCH  13
#define UNLOADED  14
#define UNINIT    15
#define LONGSIZE  16
#define SHORTSIZE 17
#define SLOW      18
#define CRASH     19
#define NOEVENTS  20
#define FORBIDDEN 21

/* A function of the interface, with its own prototype. */
#define API(name, ...)     \
    int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

struct nvml_device {
    uint32_t index, mig; /* mig: 1 + place of the instance; 0: the GPU itself */
};
struct nvml_gpu_instance {
    uint32_t place;
};

struct scene {
    unsigned n, device_id, links;
    const char *name, *vbios;
    uint64_t total_mib;
};

static const struct scene h100 = {8, 0x233010de, 18, "NVIDIA H100 80GB HBM3", "96.00.99.00.01", 81559};
static const struct scene h200 = {1, 0x233510de, 18, "NVIDIA H200", "96.00.BC.00.01", 143771};
static const struct scene a100 = {2, 0x20b010de, 12, "NVIDIA A100-SXM4-40GB", "92.00.45.00.03", 40960};

/* MIG devices: which instance, which compute instance in it. */
static const struct {
    uint32_t place, ci;
} mig_devices[] = {{0, 0}, {0, 1}, {1, 0}};
static struct nvml_device gpus[256], migs[3];
static struct nvml_gpu_instance gis[3];

extern const int bulkhead_simulated;
const int bulkhead_simulated = 1;

static const struct scene *scene(void)
{
    if (SCENE == A100MIG || SCENE == DENIED)
        return &a100;
    return SCENE == H200 || SCENE == STRIDE32 || SCENE == STRIDE16 ? &h200 : &h100;
}

/* What STANDIN_FAIL says this call shall answer; NVML_OK: nothing. */
static int told(const char *call)
{
    const char *fail = getenv("STANDIN_FAIL");
    size_t n = strlen(call);
    int status = 0;
    if (!fail || strncmp(fail, call, n) != 0 || fail[n] != ':')
        return NVML_OK;
    for (const char *c = fail + n + 1; *c >= '0' && *c <= '9'; c++)
        status = status * 10 + (*c - '0');
    return status;
}
#define FAIL_IF_TOLD(call)      \
    do {                        \
        int told_ = told(call); \
        if (told_ != NVML_OK)   \
            return told_;       \
    } while (0)

static unsigned n_gpus(void)
{
    return SCENE == NONE ? 0 : SCENE == MANY ? 64 : SCENE == LIAR || SCENE == ODD ? 2 : scene()->n;
}

API(nvmlInit_v2, void)
{
    for (uint32_t i = 0; i < 256; i++)
        gpus[i].index = i;
    for (uint32_t i = 0; i < 3; i++) {
        migs[i] = (struct nvml_device){0, i + 1};
        gis[i].place = i;
    }
    return SCENE == MISMATCH    ? NVML_VERSION_MISMATCH
           : SCENE == UNLOADED  ? NVML_DRIVER_NOT_LOADED
           : SCENE == FORBIDDEN ? NVML_NO_PERMISSION
                                : NVML_OK;
}

API(nvmlDeviceGetCount_v2, unsigned *count)
{
    FAIL_IF_TOLD("count");
    *count = SCENE == LIAR ? 5 : SCENE == ODD ? 4000000000u : n_gpus();
    return SCENE == UNINIT ? NVML_UNINITIALIZED : NVML_OK;
}

API(nvmlDeviceGetHandleByIndex_v2, unsigned index, struct nvml_device **ret)
{
    if (index >= n_gpus())
        return NVML_INVALID_ARGUMENT;
    if (SCENE == LOST && index == 5)
        return NVML_GPU_IS_LOST;
    if (SCENE == DENIED && index == 1)
        return NVML_NO_PERMISSION;
    *ret = &gpus[index];
    return NVML_OK;
}

static int say(char *buf, unsigned size, const char *text)
{
    if (SCENE == ODD) {
        memset(buf, 'A', size); /* no end */
        return NVML_OK;
    }
    if (strlen(text) >= size)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(buf, text, strlen(text) + 1);
    return NVML_OK;
}

API(nvmlDeviceGetName, struct nvml_device *d, char *buf, unsigned size)
{
    char text[128];
    if (!d->mig)
        return say(buf, size, scene()->name);
    (void)snprintf(text, sizeof(text), "%s %s", scene()->name,
                   mig_devices[d->mig - 1].place == 0 ? "MIG 1c.3g.20gb" : "MIG 1g.5gb");
    return say(buf, size, text);
}

#if SCENE != BARE
/* Two compute instances in one GPU instance, one GPU instance without any, one plain. */
static const struct {
    uint32_t gi, profile, start, size;
} instances[] = {{1, 9, 4, 4}, {7, 19, 0, 1}, {8, 19, 1, 1}};
/* Nothing is cut from the second. */
static const struct {
    uint32_t id, slices, sms;
    uint64_t mb;
    const char *name;
} profiles[] = {
    {19, 1, 14, 4864, "MIG 1g.5gb"}, {14, 2, 28, 9856, "MIG 2g.10gb"}, {9, 3, 42, 19968, "MIG 3g.20gb"}};

API(nvmlShutdown, void)
{
    return NVML_OK;
}

API(nvmlSystemGetDriverVersion, char *buf, unsigned size)
{
    return say(buf, size, "580.159.03");
}

API(nvmlSystemGetNVMLVersion, char *buf, unsigned size)
{
    return say(buf, size, "13.580.159.03");
}

API(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
    *version = 13000;
    return NVML_OK;
}

API(nvmlSystemGetConfComputeState, struct nvml_cc_state *s)
{
    *s = (struct nvml_cc_state){2, SCENE == H200, 0};
    return NVML_OK;
}

API(nvmlDeviceGetUUID, struct nvml_device *d, char *buf, unsigned size)
{
    if (SCENE == LOST && d->index == 6)
        return NVML_GPU_IS_LOST; /* a handle was given all the same */
    char text[64];
    (void)snprintf(text, sizeof(text), "%s-00000000-0000-4000-8000-%012u", d->mig ? "MIG" : "GPU",
                   d->mig ? d->mig : d->index);
    return say(buf, size, text);
}

API(nvmlDeviceGetSerial, struct nvml_device *d, char *buf, unsigned size)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "16543%08u", d->index);
    return say(buf, size, text);
}

API(nvmlDeviceGetVbiosVersion, struct nvml_device *d, char *buf, unsigned size)
{
    return d->mig ? NVML_NOT_SUPPORTED : say(buf, size, scene()->vbios);
}

API(nvmlDeviceGetGspFirmwareVersion, struct nvml_device *d, char *buf)
{
    return d->mig ? NVML_NOT_SUPPORTED : say(buf, 64, "580.159.03");
}

API(nvmlDeviceGetInforomImageVersion, struct nvml_device *d, char *buf, unsigned size)
{
    return d->mig ? NVML_NOT_SUPPORTED : say(buf, size, "G525.0225.00.05");
}

static int pci(struct nvml_pci_info *p, uint32_t domain, uint32_t bus, uint32_t id)
{
    *p = (struct nvml_pci_info){.domain = domain, .bus = SCENE == ODD ? 0x1000 : bus, .device_id = id};
    (void)snprintf(p->bus_id, sizeof(p->bus_id), "%08X:%02X:00.0", domain, bus);
    return NVML_OK;
}

/* LONGSIZE, SHORTSIZE: a library that has another struct in mind. */
static int gpu_pci(const struct nvml_device *d, struct nvml_pci_info *p)
{
    if (SCENE == LONGSIZE || told("long"))
        memset(p, 0, sizeof(*p) + 32);
    if (SCENE == SHORTSIZE) {
        memset(p->bus_id_legacy, 0, sizeof(p->bus_id_legacy));
        return NVML_OK;
    }
    return pci(p, d->index / 32, 0x18 + d->index % 32, scene()->device_id);
}

#if SCENE == OLD
API(nvmlDeviceGetPciInfo_v2, struct nvml_device *d, struct nvml_pci_info *p)
{
    return gpu_pci(d, p);
}
#else
API(nvmlDeviceGetPciInfo_v3, struct nvml_device *d, struct nvml_pci_info *p)
{
    return gpu_pci(d, p);
}

API(nvmlDeviceGetMemoryInfo_v2, struct nvml_device *d, struct nvml_memory_v2 *m)
{
    if (m->version != NVML_MEMORY_V2)
        return NVML_ARGUMENT_VERSION;
    m->total = d->mig ? UINT64_C(4864) << 20 : scene()->total_mib << 20;
    m->reserved = UINT64_C(512) << 20;
    m->used = (uint64_t)(d->index + 1) << 30;
    m->free = m->total - m->used - m->reserved;
    return NVML_OK;
}
#endif

API(nvmlDeviceGetMemoryInfo, struct nvml_device *d, struct nvml_memory *m)
{
    m->total = scene()->total_mib << 20;
    m->used = ((uint64_t)(d->index + 1) << 30) +
              (UINT64_C(512) << 20); /* with what is reserved, as the old call has it */
    m->free = m->total - m->used;
    return NVML_OK;
}

API(nvmlDeviceGetMinorNumber, struct nvml_device *d, unsigned *minor)
{
    *minor = d->index;
    return NVML_OK;
}

API(nvmlDeviceGetModuleId, struct nvml_device *d, unsigned *id)
{
    *id = d->index % 8 + 1;
    return NVML_OK;
}

API(nvmlDeviceGetMemoryAffinity, struct nvml_device *d, unsigned size, unsigned long *set, unsigned scope)
{
    if (scope != 0 || size == 0)
        return NVML_INVALID_ARGUMENT;
    if (SCENE == H200)
        return NVML_NOT_SUPPORTED;
    set[0] = SCENE == A100MIG ? 3 : d->index % 8 < 4 ? 1 : 2;
    return NVML_OK;
}

API(nvmlDeviceGetEccMode, struct nvml_device *d, unsigned *now, unsigned *pending)
{
    *now = *pending = 1;
    return d->mig ? NVML_NOT_SUPPORTED : NVML_OK;
}

API(nvmlDeviceGetTotalEccErrors, struct nvml_device *d, unsigned type, unsigned counter,
    unsigned long long *v)
{
    *v = type == NVML_ECC_CORRECTED ? 17 : SCENE == H100X8 && d->index == 3 ? 2 + counter : 0;
    return NVML_OK;
}

API(nvmlDeviceGetRemappedRows, struct nvml_device *d, unsigned *corrected, unsigned *uncorrected,
    unsigned *pending, unsigned *failed)
{
    *corrected = d->index;
    *uncorrected = 0;
    *pending = SCENE == H100X8 && d->index == 4;
    *failed = 0;
    return NVML_OK;
}

/* SLOW: the third GPU never answers. CRASH: it takes the process with it. */
API(nvmlDeviceGetTemperature, struct nvml_device *d, unsigned sensor, unsigned *v)
{
    while (SCENE == SLOW && d->index == 2)
        (void)pause();
    if (SCENE == CRASH && d->index == 2)
        (void)raise(SIGKILL);
    *v = 30 + d->index;
    return sensor == 0 ? NVML_OK : NVML_INVALID_ARGUMENT;
}

API(nvmlDeviceGetPowerUsage, struct nvml_device *d, unsigned *v)
{
    if (d->index == 1)
        FAIL_IF_TOLD("power_of_1");
    *v = 70000 + d->index;
    return NVML_OK;
}

API(nvmlDeviceGetEnforcedPowerLimit, struct nvml_device *d, unsigned *v)
{
    *v = 700000;
    return d->mig ? NVML_NOT_SUPPORTED : NVML_OK;
}

API(nvmlDeviceGetClockInfo, struct nvml_device *d, unsigned type, unsigned *v)
{
    *v = type == NVML_CLOCK_SM ? 1980 : 2619;
    return d->mig ? NVML_NOT_SUPPORTED : NVML_OK;
}

API(nvmlDeviceGetUtilizationRates, struct nvml_device *d, struct nvml_utilization *u)
{
    *u = (struct nvml_utilization){SCENE == ODD ? 4000 : d->index * 10 % 100, 3};
    return SCENE == A100MIG && d->index == 0 ? NVML_NOT_SUPPORTED : NVML_OK;
}

API(nvmlDeviceGetCurrentClocksThrottleReasons, struct nvml_device *d, unsigned long long *v)
{
    *v = SCENE == H100X8 && d->index == 7 ? 0x48 : d->index == 0 ? 1 : 4;
    return NVML_OK;
}

API(nvmlDeviceGetMigMode, struct nvml_device *d, unsigned *now, unsigned *pending)
{
    FAIL_IF_TOLD("mig_mode");
    *now = *pending = (SCENE == A100MIG || SCENE == DENIED) && d->index == 0;
    return NVML_OK;
}

API(nvmlDeviceGetMaxMigDeviceCount, struct nvml_device *d, unsigned *max)
{
    FAIL_IF_TOLD("mig_max");
    *max = d->mig ? 0 : 7;
    return NVML_OK;
}

API(nvmlDeviceGetMigDeviceHandleByIndex, struct nvml_device *d, unsigned index, struct nvml_device **ret)
{
    FAIL_IF_TOLD("mig_handle");
    if (d->mig || index >= 3)
        return NVML_NOT_FOUND;
    *ret = &migs[index];
    return NVML_OK;
}

API(nvmlDeviceGetGpuInstanceId, struct nvml_device *d, unsigned *id)
{
    *id = d->mig ? instances[mig_devices[d->mig - 1].place].gi : 0;
    return d->mig ? NVML_OK : NVML_NOT_SUPPORTED;
}

API(nvmlDeviceGetComputeInstanceId, struct nvml_device *d, unsigned *id)
{
    *id = d->mig ? mig_devices[d->mig - 1].ci : 0;
    return d->mig ? NVML_OK : NVML_NOT_SUPPORTED;
}

API(nvmlDeviceGetAttributes_v2, struct nvml_device *d, struct nvml_attributes *a)
{
    *a = (struct nvml_attributes){.multiprocessor_count = 14, .memory_mb = 4864};
    return d->mig ? NVML_OK : NVML_NOT_SUPPORTED;
}

API(nvmlDeviceGetGpuInstanceProfileInfoV, struct nvml_device *d, unsigned i, struct nvml_gi_profile_v2 *p)
{
    if (d->mig || p->version != NVML_GI_PROFILE_V2)
        return NVML_ARGUMENT_VERSION;
    if (i >= 3)
        return i < 16 ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
    p->id = profiles[i].id;
    p->slice_count = profiles[i].slices;
    p->multiprocessor_count = profiles[i].sms;
    p->memory_mb = profiles[i].mb;
    (void)snprintf(p->name, sizeof(p->name), "%s", profiles[i].name);
    return NVML_OK;
}

API(nvmlDeviceGetGpuInstances, struct nvml_device *d, unsigned profile, struct nvml_gpu_instance **list,
    unsigned *count)
{
    FAIL_IF_TOLD("gi_list");
    if (SCENE == DENIED)
        return NVML_NO_PERMISSION;
    *count = 0;
    for (uint32_t i = 0; !d->mig && i < 3; i++)
        if (instances[i].profile == profile)
            list[(*count)++] = &gis[i];
    return NVML_OK;
}

API(nvmlGpuInstanceGetInfo, struct nvml_gpu_instance *gi, struct nvml_gpu_instance_info *info)
{
    *info = (struct nvml_gpu_instance_info){&gpus[0],
                                            instances[gi->place].gi,
                                            instances[gi->place].profile,
                                            {instances[gi->place].start, instances[gi->place].size}};
    return NVML_OK;
}

API(nvmlDeviceGetNvLinkState, struct nvml_device *d, unsigned link, unsigned *up)
{
    if (link >= scene()->links)
        return NVML_INVALID_ARGUMENT;
    *up = !(SCENE == H100X8 && d->index == 2 && link == 17);
    return NVML_OK;
}

/* A100: two GPUs tied to each other. H100 and H200: to four switches. */
API(nvmlDeviceGetNvLinkRemoteDeviceType, struct nvml_device *d, unsigned link, unsigned *type)
{
    *type = SCENE == A100MIG ? NVML_REMOTE_GPU : NVML_REMOTE_SWITCH;
    return d->mig || link >= scene()->links ? NVML_INVALID_ARGUMENT : NVML_OK;
}

API(nvmlDeviceGetNvLinkRemotePciInfo_v2, struct nvml_device *d, unsigned link, struct nvml_pci_info *p)
{
    if (SCENE == A100MIG)
        return gpu_pci(&gpus[!d->index], p);
    return pci(p, d->index / 32, 0x05 + link % 4, 0x22a310de);
}

API(nvmlDeviceGetTopologyCommonAncestor, struct nvml_device *a, struct nvml_device *b, unsigned *level)
{
    *level = SCENE == ODD ? 77 : a->index / 4 == b->index / 4 ? 40 : 50;
    return NVML_OK;
}

/* MANY: two boards of 32 that do not reach each other. A100MIG: the driver does not say. */
API(nvmlDeviceGetP2PStatus, struct nvml_device *a, struct nvml_device *b, unsigned what, unsigned *status)
{
    *status = what == NVML_P2P_NVLINK && a->index / 32 != b->index / 32 ? 3 : 0;
    return SCENE == A100MIG ? NVML_NOT_SUPPORTED : NVML_OK;
}

API(nvmlDeviceGetGpuFabricInfoV, struct nvml_device *d, struct nvml_fabric_v3 *f)
{
    if (SCENE == A100MIG || d->mig)
        return NVML_NOT_SUPPORTED;
    if (SCENE == H200 && f->version != NVML_FABRIC_V2)
        return NVML_ARGUMENT_VERSION; /* a library that knows v2 only */
    f->state = NVML_FABRIC_COMPLETED;
    f->status = d->index == 1 ? (uint32_t)told("fabric_status_of_1") : NVML_OK;
    f->health_mask = SCENE == H100X8 && d->index == 6 ? 0x11a9 : 0x11aa; /* less bandwidth; all well */
    if (SCENE == H200)
        memset(f->cluster_uuid, 0xab, sizeof(f->cluster_uuid));
    f->clique_id = 7;
    return NVML_OK;
}

/* Entries as three generations of drivers wrote them. */
static int processes(const struct nvml_device *d, unsigned *count, void *out)
{
    enum { STRIDE = SCENE == STRIDE32 ? 32 : SCENE == STRIDE16 ? 16 : 24 };
    static const uint32_t pids[] = {101, 202, 303};
    unsigned room = *count, n = d->index == 0 ? 3 : 0;
    if (SCENE == DENIED)
        return NVML_NO_PERMISSION;
    *count = SCENE == LIAR ? room + 1000 : n;
    if (room < n || (SCENE == LIAR && !out))
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        struct nvml_process_info p = {pids[i], (uint64_t)(i + 1) << 30, UINT32_MAX, UINT32_MAX};
        uint8_t entry[32] = {0};
        if (SCENE == A100MIG)
            p.gi = i ? 7 : 1, p.ci = 0;
        if (i == 2)
            p.used_memory = UINT64_MAX;
        memcpy(entry, &p, STRIDE < sizeof(p) ? STRIDE : sizeof(p));
        memcpy((char *)out + (size_t)i * STRIDE, entry, STRIDE);
    }
    return NVML_OK;
}

#if SCENE == OLD
API(nvmlDeviceGetComputeRunningProcesses_v2, struct nvml_device *d, unsigned *count, void *out)
{
    return processes(d, count, out);
}
#else
API(nvmlDeviceGetComputeRunningProcesses_v3, struct nvml_device *d, unsigned *count, void *out)
{
    return processes(d, count, out);
}

API(nvmlDeviceGetGraphicsRunningProcesses_v3, struct nvml_device *d, unsigned *count, void *out)
{
    (void)d, (void)out;
    *count = (unsigned)told("graphics_count");
    return told("graphics");
}
#endif

/* Two samples of the first, one of the second, none of the third. */
API(nvmlDeviceGetProcessUtilization, struct nvml_device *d, struct nvml_process_sample *out, unsigned *count,
    unsigned long long since)
{
    static const struct nvml_process_sample samples[] = {{101, 1000, 90, 80, 0, 0},
                                                         {202, 2000, 7, 3, 0, 0},
                                                         {101, 3000, 35, 12, 0, 0},
                                                         {999, 3000, 1, 1, 0, 0}};
    enum { N = sizeof(samples) / sizeof(samples[0]) };
    unsigned room = *count;
    if (SCENE == A100MIG || since != 0)
        return NVML_NOT_SUPPORTED;
    if (d->index != 0)
        return NVML_NOT_FOUND;
    *count = N;
    if (!out || room < N)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(out, samples, sizeof(samples));
    if (SCENE == STRIDE32)
        out[1].sm = 4000; /* as drivers have been seen to write */
    return NVML_OK;
}

#if SCENE != NOEVENTS
struct nvml_event_set {
    unsigned n_waits;
};
static struct nvml_event_set events;

/* The seventh GPU reports no Xid, the eighth nothing at all. */
API(nvmlDeviceGetSupportedEventTypes, struct nvml_device *d, unsigned long long *types)
{
    *types = d->index == 7   ? 0
             : d->index == 6 ? NVML_EVENT_ECC_DOUBLE
                             : NVML_EVENT_XID | NVML_EVENT_ECC_DOUBLE | 0x4;
    return NVML_OK;
}

API(nvmlEventSetCreate, struct nvml_event_set **ret)
{
    events.n_waits = 0;
    *ret = &events;
    return SCENE == DENIED ? NVML_NO_PERMISSION : NVML_OK;
}

API(nvmlDeviceRegisterEvents, struct nvml_device *d, unsigned long long types, struct nvml_event_set *set)
{
    return d->mig || types & 0x4 || set != &events ? NVML_INVALID_ARGUMENT : NVML_OK;
}

API(nvmlEventSetWait_v2, struct nvml_event_set *set, struct nvml_event_data *ret, unsigned timeout_ms)
{
    static const struct {
        int gpu;
        uint64_t type, data;
        uint32_t gi, ci;
    } queue[] = {{3, NVML_EVENT_XID, 79, UINT32_MAX, UINT32_MAX},
                 {0, NVML_EVENT_XID, 13, 7, 0},
                 {1, NVML_EVENT_XID, 9999, 7, UINT32_MAX},
                 {4, NVML_EVENT_ECC_DOUBLE, 1, UINT32_MAX, UINT32_MAX},
                 {0, 0x10, 5, UINT32_MAX, UINT32_MAX},
                 {-1, NVML_EVENT_XID, 31, UINT32_MAX, UINT32_MAX}};
    unsigned i = set->n_waits++;
    (void)timeout_ms;
    if (i > sizeof(queue) / sizeof(queue[0]) + 1)
        return NVML_UNINITIALIZED;
    if (i >= sizeof(queue) / sizeof(queue[0]))
        return i == sizeof(queue) / sizeof(queue[0]) ? NVML_TIMEOUT : NVML_GPU_IS_LOST;
    *ret = (struct nvml_event_data){queue[i].gpu < 0 ? NULL : &gpus[queue[i].gpu], queue[i].type,
                                    queue[i].data, queue[i].gi, queue[i].ci};
    return NVML_OK;
}

API(nvmlEventSetFree, struct nvml_event_set *set)
{
    return set == &events ? NVML_OK : NVML_INVALID_ARGUMENT;
}
#endif
#endif
