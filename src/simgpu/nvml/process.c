/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - who uses a GPU, how much memory each has and how busy each keeps it.
 *
 * Who and how much is asked of the kernel driver, and who was seen running; of what kind a process is and its GPU time
 * stand in the node's view.
 */
#include "gpu/abi/rm.h"
#include "simgpu/drv.h"
#include "simgpu/nvml/api.h"

#include <string.h>
#include <time.h>

enum { COMPUTE, GRAPHICS, MPS };
enum { PIDS = BH_COUNT_OF(((struct rm_pids *)0)->pids), BATCH = BH_COUNT_OF(((struct rm_pid_info *)0)->at) };

struct process {
    uint32_t pid, gi, ci;
    uint64_t bytes;
};
static struct process list[PIDS]; /* of the call that holds the lock */

static uint32_t kind_of(const struct bh_nv_call *c, uint32_t pid)
{
    for (uint32_t i = 0; i < c->gpu->n_processes && i < BH_SIM_VIEW_PROCESSES; i++)
        if (c->gpu->processes[i].pid == pid)
            return c->gpu->processes[i].kind;
    return COMPUTE;
}

/* Asks for the memory of n processes and keeps those of this kind, and of this slice. */
static int add(const struct bh_nv_call *c, uint32_t gi, uint32_t kind, const uint32_t *pids, uint32_t n,
               unsigned *count)
{
    static struct rm_pid_info q;
    q = (struct rm_pid_info){.count = n};
    for (uint32_t i = 0; i < n; i++)
        q.at[i].pid = pids[i];
    int status = bh_nv_control(c->gpu->index, gi, RM_CTRL_GPU_GET_PID_INFO, &q, sizeof(q));
    for (uint32_t i = 0; status == NVML_OK && i < n; i++) {
        bool here = !c->ci || (q.at[i].gi == c->gi->id && q.at[i].ci == c->ci->id);
        /* one that ended meanwhile has no result */
        if (q.at[i].result == RM_OK && here && kind_of(c, q.at[i].pid) == kind)
            list[(*count)++] =
                (struct process){q.at[i].pid, q.at[i].gi, q.at[i].ci, q.at[i].own + q.at[i].shared_owned};
    }
    return status;
}

static int gather(const struct bh_nv_call *c, uint32_t kind, unsigned *count)
{
    static struct rm_pids q;
    uint32_t gi = c->gi ? c->gi->id : (uint32_t)BH_NV_NO_ID;
    /* Who has channels runs work; a process that merely asks about the GPU, as this library does, has none. */
    q = (struct rm_pids){.id = RM_CLASS_CHANNEL_GROUP};
    *count = 0;
    int status = bh_nv_control(c->gpu->index, gi, RM_CTRL_GPU_GET_PIDS, &q, sizeof(q));
    uint32_t n = q.count < PIDS ? q.count : PIDS;
    for (uint32_t at = 0; status == NVML_OK && at < n; at += BATCH)
        status = add(c, gi, kind, q.pids + at, n - at < BATCH ? n - at : BATCH, count);
    return status;
}

/* stride: 16 in the first form, 24 in the others. */
static int processes(const char *function, nvml_device_t device, unsigned *count, void *out, size_t stride,
                     uint32_t kind)
{
    BH_NV_CALL c = bh_nv_enter_device(function, device, BH_NV_EITHER, count && (out || *count == 0));
    unsigned n = 0;
    if (c.status == NVML_OK)
        c.status = gather(&c, kind, &n);
    if (c.status != NVML_OK)
        return c.status;
    unsigned room = *count;
    *count = n;
    if (room < n)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        struct nvml_process_info entry = {list[i].pid, list[i].bytes, list[i].gi, list[i].ci};
        memcpy((char *)out + i * stride, &entry, stride);
    }
    return NVML_OK;
}

#define PROCESS_LIST(name, entry, kind)                                             \
    API(name, nvml_device_t device, unsigned *count, void *out)                     \
    {                                                                               \
        return processes(__func__, device, count, out, sizeof(struct entry), kind); \
    }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_info_v1, COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process_info, COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process_info, COMPUTE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_info_v1, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process_info, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process_info, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_info_v1, MPS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process_info, MPS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process_info, MPS)

/* GPU time at the last look, to tell how busy somebody was since. */
static struct {
    uint64_t now_ns;
    uint32_t n;
    struct {
        uint32_t pid;
        uint64_t busy_ns;
    } at[BH_SIM_VIEW_PROCESSES];
} before[BH_NV_GPUS];

static void remember(const struct bh_sim_gpu_view *gpu)
{
    uint32_t n = gpu->n_processes < BH_SIM_VIEW_PROCESSES ? gpu->n_processes : BH_SIM_VIEW_PROCESSES;
    before[gpu->index].now_ns = gpu->now_ns;
    before[gpu->index].n = n;
    for (uint32_t i = 0; i < n; i++) {
        before[gpu->index].at[i].pid = gpu->processes[i].pid;
        before[gpu->index].at[i].busy_ns = gpu->processes[i].busy_ns;
    }
}

/* Somebody who was not there at the last look had no GPU time then. */
static uint32_t percent(const struct bh_sim_gpu_view *gpu, const struct bh_sim_process_view *p)
{
    uint64_t busy = p->busy_ns, span = gpu->now_ns - before[gpu->index].now_ns;
    for (uint32_t i = 0; i < before[gpu->index].n; i++)
        if (before[gpu->index].at[i].pid == p->pid && before[gpu->index].at[i].busy_ns <= p->busy_ns)
            busy = p->busy_ns - before[gpu->index].at[i].busy_ns;
    uint64_t v = span ? busy * 100 / span : 0;
    return v > 100 ? 100 : (uint32_t)v;
}

/* A first look has nothing to compare with: it waits for one period, as the driver's own sampling does. */
static int measure(struct bh_nv_call *c)
{
    static const struct timespec period = {0, 20000000};
    if (c->gpu->mig_on == 1)
        return NVML_NOT_SUPPORTED;
    if (before[c->gpu->index].now_ns == 0) {
        remember(c->gpu);
        (void)nanosleep(&period, NULL);
        return bh_nv_refresh(c);
    }
    return NVML_OK;
}

static uint64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Processes of the node's view whom the kernel driver names too: nobody is told of others. */
static const struct bh_sim_process_view *shown[BH_SIM_VIEW_PROCESSES]; /* of the call that holds the lock */

static bool is_named(const struct rm_use_samples *s, uint32_t pid)
{
    for (size_t i = 0; i < BH_COUNT_OF(s->samples); i++)
        for (size_t e = 0; s->samples[i].at && e < BH_COUNT_OF(s->samples[i].engines); e++)
            if (s->samples[i].engines[e].pid == pid)
                return true;
    return false;
}

static int who(const struct bh_nv_call *c, unsigned *count)
{
    static struct rm_use_samples q;
    q = (struct rm_use_samples){.bytes = sizeof(q.samples)};
    *count = 0;
    int status = bh_nv_control(c->gpu->index, BH_NV_NO_ID, RM_CTRL_PERF_USE_SAMPLES, &q, sizeof(q));
    for (uint32_t i = 0; status == NVML_OK && i < c->gpu->n_processes && i < BH_SIM_VIEW_PROCESSES; i++)
        if (is_named(&q, c->gpu->processes[i].pid))
            shown[(*count)++] = &c->gpu->processes[i];
    return status;
}

/* Room for all there are, or how many that is. No process: not found. */
static int fits(const struct bh_nv_call *c, unsigned *count, bool has_list)
{
    unsigned room = *count, n;
    int status = who(c, &n);
    if (status != NVML_OK)
        return status;
    if (n == 0)
        return NVML_NOT_FOUND;
    *count = n;
    return !has_list || room < n ? (int)NVML_INSUFFICIENT_SIZE : (int)NVML_OK;
}

API(nvmlDeviceGetProcessUtilization, nvml_device_t device, struct nvml_process_sample *samples,
    unsigned *count, unsigned long long last_seen_us)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, count != NULL);
    uint64_t at = now_us();
    if (c.status == NVML_OK)
        c.status = measure(&c);
    if (c.status == NVML_OK)
        c.status = fits(&c, count, samples != NULL);
    if (c.status == NVML_OK && at <= last_seen_us)
        c.status = NVML_NOT_FOUND;
    if (c.status != NVML_OK)
        return c.status;
    for (uint32_t i = 0; i < *count; i++)
        samples[i] = (struct nvml_process_sample){
            .pid = shown[i]->pid, .timestamp_us = at, .sm = percent(c.gpu, shown[i])};
    remember(c.gpu);
    return NVML_OK;
}

API(nvmlDeviceGetProcessesUtilizationInfo, nvml_device_t device, struct nvml_processes_use *use)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, use != NULL);
    uint64_t at = now_us();
    if (c.status == NVML_OK && use->version != NVML_PROC_USE_V1)
        c.status = NVML_ARGUMENT_VERSION;
    if (c.status == NVML_OK)
        c.status = measure(&c);
    if (c.status == NVML_OK)
        c.status = fits(&c, &use->count, use->list != NULL);
    if (c.status == NVML_OK && at <= use->last_seen_us)
        c.status = NVML_NOT_FOUND;
    if (c.status != NVML_OK)
        return c.status;
    for (uint32_t i = 0; i < use->count; i++)
        use->list[i] = (struct nvml_process_use){
            .timestamp_us = at, .pid = shown[i]->pid, .sm = percent(c.gpu, shown[i])};
    remember(c.gpu);
    return NVML_OK;
}
