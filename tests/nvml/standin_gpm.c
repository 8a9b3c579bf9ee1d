/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin_gpm.c - a library with one GPU whose counters are numbers from a file.
 *
 * STANDIN_GPM names the file: what GPM says of multiprocessors, memory, PCIe to and from (or a minus: that one metric is
 * not there), then the older PCIe call, power, reasons for lower clocks, and the power of the moment (0: the
 * call fails; -1: the field is not there, -2: it is no such number). Read at each call, so that a test can change it.
 */
#include "gpu/abi/nvml.h"

#include <stdio.h>
#include <stdlib.h>

#define API(name, ...)     \
    int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

/* Whatever shows its GPU says that it is simulated. */
extern const int bulkhead_simulated;
const int bulkhead_simulated = 1;

struct nvml_gpm_sample {
    int taken;
};
struct numbers {
    double sm, dram, rx, tx;
    double throughput, power, reasons, power_now;
};

static int allocated;

static struct numbers numbers(void)
{
    struct numbers n = {0};
    double *to[] = {&n.sm, &n.dram, &n.rx, &n.tx, &n.throughput, &n.power, &n.reasons, &n.power_now};
    const char *path = getenv("STANDIN_GPM");
    FILE *f = path ? fopen(path, "r") : NULL;
    for (size_t i = 0; f && i < sizeof(to) / sizeof(to[0]); i++)
        if (fscanf(f, "%lf", to[i]) != 1)
            *to[i] = 0;
    if (f)
        (void)fclose(f);
    return n;
}

API(nvmlInit_v2, void)
{
    return NVML_OK;
}
API(nvmlShutdown, void)
{
    return allocated ? NVML_IN_USE : NVML_OK;
}
API(nvmlDeviceGetCount_v2, unsigned *ret)
{
    *ret = 1;
    return NVML_OK;
}
API(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device_t *ret)
{
    *ret = (nvml_device_t)(void *)&allocated;
    return index == 0 ? NVML_OK : NVML_INVALID_ARGUMENT;
}
API(nvmlGpmQueryDeviceSupport, nvml_device_t device, struct nvml_gpm_support *ret)
{
    (void)device;
    ret->supported = !getenv("STANDIN_GPM_NONE");
    return ret->version == NVML_GPM_VERSION ? NVML_OK : NVML_ARGUMENT_VERSION;
}
API(nvmlGpmSampleAlloc, nvml_gpm_sample_t *ret)
{
    *ret = calloc(1, sizeof(**ret));
    allocated++;
    return *ret ? NVML_OK : NVML_MEMORY;
}
API(nvmlGpmSampleFree, nvml_gpm_sample_t sample)
{
    free(sample);
    allocated--;
    return NVML_OK;
}
API(nvmlGpmSampleGet, nvml_device_t device, nvml_gpm_sample_t sample)
{
    (void)device;
    sample->taken = 1;
    return NVML_OK;
}
API(nvmlGpmMetricsGet, struct nvml_gpm_metrics *m)
{
    const struct numbers n = numbers();
    if (m->version != NVML_GPM_VERSION || !m->from->taken || !m->to->taken || m->from == m->to)
        return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < m->count; i++) {
        m->at[i].value = m->at[i].id == NVML_GPM_SM_UTIL     ? n.sm
                         : m->at[i].id == NVML_GPM_DRAM_UTIL ? n.dram
                         : m->at[i].id == NVML_GPM_PCIE_RX   ? n.rx
                                                             : n.tx;
        m->at[i].status = m->at[i].value < 0 ? NVML_NOT_SUPPORTED : NVML_OK;
    }
    return NVML_OK;
}
API(nvmlDeviceGetPcieThroughput, nvml_device_t device, unsigned counter, unsigned *ret)
{
    (void)device;
    *ret = (unsigned)numbers().throughput + counter;
    return NVML_OK;
}
API(nvmlDeviceGetMaxPcieLinkGeneration, nvml_device_t device, unsigned *ret)
{
    (void)device;
    *ret = 5;
    return NVML_OK;
}
API(nvmlDeviceGetMaxPcieLinkWidth, nvml_device_t device, unsigned *ret)
{
    (void)device;
    *ret = 16;
    return NVML_OK;
}
API(nvmlDeviceGetPowerUsage, nvml_device_t device, unsigned *ret)
{
    (void)device;
    *ret = (unsigned)numbers().power;
    return NVML_OK;
}
API(nvmlDeviceGetCurrentClocksEventReasons, nvml_device_t device, unsigned long long *ret)
{
    (void)device;
    *ret = (unsigned long long)numbers().reasons;
    return NVML_OK;
}
API(nvmlDeviceGetFieldValues, nvml_device_t device, int n, struct nvml_field *ret)
{
    const double now = numbers().power_now;
    (void)device;
    if (now == 0 || n != 1 || ret->id != NVML_FIELD_POWER_NOW)
        return NVML_INVALID_ARGUMENT;
    ret->type = now == -2 ? 0 : NVML_VALUE_UINT;
    ret->status = now == -1 ? NVML_NOT_SUPPORTED : NVML_OK;
    ret->value.u32 = now > 0 ? (unsigned)now : 1;
    return NVML_OK;
}
API(nvmlDeviceGetEnforcedPowerLimit, nvml_device_t device, unsigned *ret)
{
    (void)device;
    *ret = 700000;
    return NVML_OK;
}
