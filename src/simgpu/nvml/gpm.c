/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpm.c - what the card was busy with between two samples, and its link.
 *
 * From Hopper on, as with the vendor's library. Nothing crosses a simulated link, so that there is no count of it.
 */
#include "simgpu/nvml/api.h"

#include <stdlib.h>

struct nvml_gpm_sample {
    uint64_t now_ns, busy_ns;
    uint32_t gpu, memory_percent;
    bool taken;
};

static bool has_gpm(const struct bh_nv_call *c)
{
    return c->model && bh_nv_capability(c->model) >= 90 && c->gpu->mig_on != 1;
}

API(nvmlGpmQueryDeviceSupport, nvml_device_t device, struct nvml_gpm_support *ret)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, ret != NULL);
    if (c.status == NVML_OK && ret->version != NVML_GPM_VERSION)
        c.status = NVML_ARGUMENT_VERSION;
    if (c.status == NVML_OK)
        ret->supported = has_gpm(&c);
    return c.status;
}

API(nvmlGpmSampleAlloc, nvml_gpm_sample_t *ret)
{
    BH_NV_CALL c = bh_nv_enter(__func__, ret != NULL);
    if (c.status == NVML_OK)
        *ret = bh_alloc(1, sizeof(**ret));
    return c.status;
}

API(nvmlGpmSampleFree, nvml_gpm_sample_t sample)
{
    BH_NV_CALL c = bh_nv_enter(__func__, sample != NULL);
    if (c.status == NVML_OK)
        free(sample);
    return c.status;
}

API(nvmlGpmSampleGet, nvml_device_t device, nvml_gpm_sample_t sample)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, sample != NULL);
    if (c.status == NVML_OK && !has_gpm(&c))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK || bh_nv_poll(&c) != NVML_OK)
        return c.status;
    *sample = (struct nvml_gpm_sample){.now_ns = c.gpu->now_ns,
                                       .gpu = c.gpu->index,
                                       .memory_percent = c.gpu->memory_util_percent,
                                       .taken = true};
    for (uint32_t i = 0; i < c.gpu->n_processes; i++)
        sample->busy_ns += c.gpu->processes[i].busy_ns;
    return NVML_OK;
}

/* A process that ended took its time along. */
static double busy_percent(const struct nvml_gpm_sample *a, const struct nvml_gpm_sample *b)
{
    const double busy = b->busy_ns > a->busy_ns ? (double)(b->busy_ns - a->busy_ns) : 0;
    const double part = busy * 100 / (double)(b->now_ns - a->now_ns);
    return part > 100 ? 100 : part;
}

API(nvmlGpmMetricsGet, struct nvml_gpm_metrics *m)
{
    BH_NV_CALL c = bh_nv_enter(__func__, m && m->from && m->to && m->count <= NVML_GPM_MAX);
    if (c.status == NVML_OK && m->version != NVML_GPM_VERSION)
        c.status = NVML_ARGUMENT_VERSION;
    if (c.status == NVML_OK &&
        (!m->from->taken || !m->to->taken || m->from->gpu != m->to->gpu || m->from->now_ns >= m->to->now_ns))
        c.status = NVML_INVALID_ARGUMENT;
    for (uint32_t i = 0; c.status == NVML_OK && i < m->count; i++) {
        struct nvml_gpm_metric *at = &m->at[i];
        at->status = NVML_NOT_SUPPORTED;
        if (at->id != NVML_GPM_SM_UTIL && at->id != NVML_GPM_DRAM_UTIL)
            continue;
        at->status = NVML_OK;
        at->value = at->id == NVML_GPM_SM_UTIL ? busy_percent(m->from, m->to)
                                               : (m->from->memory_percent + m->to->memory_percent) / 2.0;
    }
    return c.status;
}

API(nvmlDeviceGetPcieThroughput, nvml_device_t device, unsigned counter, unsigned *ret)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, ret && counter <= NVML_PCIE_RX);
    return c.status == NVML_OK ? (int)NVML_NOT_SUPPORTED : c.status;
}

API(nvmlDeviceGetMaxPcieLinkGeneration, nvml_device_t device, unsigned *ret)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, ret != NULL);
    if (c.status == NVML_OK)
        *ret = c.model && bh_nv_capability(c.model) >= 90 ? 5 : 4;
    return c.status;
}

API(nvmlDeviceGetMaxPcieLinkWidth, nvml_device_t device, unsigned *ret)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, ret != NULL);
    if (c.status == NVML_OK)
        *ret = 16;
    return c.status;
}
