/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - which GPUs there are and who each is: handles, names, addresses, modes. */
#include "base/str.h"
#include "simgpu/drv.h"
#include "simgpu/nvml/api.h"

#include <stdio.h>
#include <string.h>

static int count(const char *function, unsigned *ret)
{
    BH_NV_CALL c = bh_nv_enter(function, ret != NULL);
    if (c.status == NVML_OK)
        *ret = c.node->n_gpus;
    return c.status;
}

API(nvmlDeviceGetCount_v2, unsigned *ret)
{
    return count(__func__, ret);
}

API(nvmlDeviceGetCount, unsigned *ret)
{
    return count(__func__, ret);
}

static int by_index(const char *function, unsigned index, nvml_device_t *ret)
{
    BH_NV_CALL c = bh_nv_enter(function, ret != NULL);
    const struct bh_sim_gpu_view *gpu;
    if (c.status == NVML_OK)
        c.status = bh_nv_peer_at(index, &gpu);
    if (c.status == NVML_OK)
        *ret = bh_nv_device(index);
    return c.status;
}

API(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device_t *ret)
{
    return by_index(__func__, index, ret);
}

API(nvmlDeviceGetHandleByIndex, unsigned index, nvml_device_t *ret)
{
    return by_index(__func__, index, ret);
}

/* What a GPU, or a slice of it, may be asked for by. */
typedef nvml_device_t (*match)(const struct bh_sim_gpu_view *gpu, const char *word);

static nvml_device_t match_uuid(const struct bh_sim_gpu_view *gpu, const char *word)
{
    if (bh_str_eq_nocase(gpu->uuid, word))
        return bh_nv_device(gpu->index);
    for (uint32_t i = 0; i < gpu->n_gis; i++)
        for (uint32_t k = 0; k < gpu->gis[i].n_cis; k++)
            if (bh_str_eq_nocase(gpu->gis[i].cis[k].uuid, word))
                return bh_nv_slice(gpu->index, gpu->gis[i].id, gpu->gis[i].cis[k].id);
    return NULL;
}

static nvml_device_t match_serial(const struct bh_sim_gpu_view *gpu, const char *word)
{
    return strcmp(gpu->serial, word) == 0 ? bh_nv_device(gpu->index) : NULL;
}

/* `0000:18:00.0` and `00000000:18:00.0` are the same place: zeros in front do not count. */
static nvml_device_t match_pci(const struct bh_sim_gpu_view *gpu, const char *word)
{
    const char *own = gpu->pci;
    while (*own == '0')
        own++;
    while (*word == '0')
        word++;
    return bh_str_eq_nocase(own, word) ? bh_nv_device(gpu->index) : NULL;
}

static int by_word(const char *function, match matches, const char *word, nvml_device_t *ret)
{
    BH_NV_CALL c = bh_nv_enter(function, word && ret);
    if (c.status != NVML_OK)
        return c.status;
    for (uint32_t i = 0; i < c.node->n_gpus; i++) {
        const struct bh_sim_gpu_view *gpu;
        int status = bh_nv_peer_at(i, &gpu);
        if (status != NVML_OK && status != NVML_GPU_IS_LOST)
            return status;
        nvml_device_t found = matches(gpu, word);
        if (found && status == NVML_OK)
            *ret = found;
        if (found)
            return status;
    }
    return NVML_NOT_FOUND;
}

API(nvmlDeviceGetHandleByUUID, const char *uuid, nvml_device_t *ret)
{
    return by_word(__func__, match_uuid, uuid, ret);
}

API(nvmlDeviceGetHandleBySerial, const char *serial, nvml_device_t *ret)
{
    return by_word(__func__, match_serial, serial, ret);
}

API(nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, nvml_device_t *ret)
{
    return by_word(__func__, match_pci, bus_id, ret);
}

API(nvmlDeviceGetHandleByPciBusId, const char *bus_id, nvml_device_t *ret)
{
    return by_word(__func__, match_pci, bus_id, ret);
}

/* `1c.3g.20gb` where a compute instance is less than the instance it stands in. */
static void slice_name(const struct bh_nv_call *c, char *text, size_t size)
{
    struct bh_nv_profile p;
    if (!c->model || !bh_nv_profile_by_id(c->model, c->gi->profile_id, &p))
        (void)snprintf(text, size, "%s MIG", c->gpu->name);
    else if (c->ci->slices < p.catalog->compute_slices)
        (void)snprintf(text, size, "%s MIG %uc.%s", c->gpu->name, c->ci->slices, p.catalog->name);
    else
        (void)snprintf(text, size, "%s MIG %s", c->gpu->name, p.catalog->name);
}

API(nvmlDeviceGetName, nvml_device_t device, char *name, unsigned size)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, name != NULL);
    char text[128];
    if (c.status != NVML_OK)
        return c.status;
    if (!c.ci)
        return bh_nv_say(name, size, c.gpu->name);
    slice_name(&c, text, sizeof(text));
    return bh_nv_say(name, size, text);
}

API(nvmlDeviceGetUUID, nvml_device_t device, char *uuid, unsigned size)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, uuid != NULL);
    return c.status == NVML_OK ? bh_nv_say(uuid, size, c.ci ? c.ci->uuid : c.gpu->uuid) : c.status;
}

API(nvmlDeviceGetSerial, nvml_device_t device, char *serial, unsigned size)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, serial != NULL);
    return c.status == NVML_OK ? bh_nv_say(serial, size, c.gpu->serial) : c.status;
}

API(nvmlDeviceGetVbiosVersion, nvml_device_t device, char *version, unsigned size)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, version != NULL);
    return c.status == NVML_OK ? bh_nv_say(version, size, c.gpu->vbios) : c.status;
}

/* The firmware comes with the driver and has its version; cards before Turing have none. */
API(nvmlDeviceGetGspFirmwareVersion, nvml_device_t device, char *version)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, version != NULL);
    if (c.status == NVML_OK && c.model && bh_nv_capability(c.model) < 75)
        c.status = NVML_NOT_SUPPORTED;
    return c.status == NVML_OK ? bh_nv_say(version, 64, c.node->driver) : c.status;
}

/* A simulated card carries no such chip. */
API(nvmlDeviceGetInforomImageVersion, nvml_device_t device, char *version, unsigned size)
{
    (void)size;
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, version != NULL);
    return c.status == NVML_OK ? (int)NVML_NOT_SUPPORTED : c.status;
}

static uint32_t hex(const char **s)
{
    uint32_t v = 0;
    for (; **s; (*s)++) {
        char ch = bh_to_lower(**s);
        if (bh_is_digit(ch))
            v = v * 16 + (uint32_t)(ch - '0');
        else if (ch >= 'a' && ch <= 'f')
            v = v * 16 + (uint32_t)(ch - 'a') + 10;
        else
            break;
    }
    *s += **s != '\0';
    return v;
}

void bh_nv_pci(const char *address, uint32_t device_id, struct nvml_pci_info *ret)
{
    *ret = (struct nvml_pci_info){.device_id = device_id};
    ret->domain = hex(&address);
    ret->bus = hex(&address) & 0xff;
    ret->device = hex(&address) & 0x1f;
    (void)snprintf(ret->bus_id_legacy, sizeof(ret->bus_id_legacy), "%04X:%02X:%02X.0", ret->domain & 0xffff,
                   ret->bus, ret->device);
    (void)snprintf(ret->bus_id, sizeof(ret->bus_id), "%08X:%02X:%02X.0", ret->domain, ret->bus, ret->device);
}

static int pci_info(const char *function, nvml_device_t device, struct nvml_pci_info *pci)
{
    BH_NV_CALL c = bh_nv_enter_device(function, device, BH_NV_EITHER, pci != NULL);
    if (c.status == NVML_OK)
        bh_nv_pci(c.gpu->pci, c.gpu->device_id, pci);
    return c.status;
}

API(nvmlDeviceGetPciInfo_v3, nvml_device_t device, struct nvml_pci_info *pci)
{
    return pci_info(__func__, device, pci);
}

API(nvmlDeviceGetPciInfo_v2, nvml_device_t device, struct nvml_pci_info *pci)
{
    return pci_info(__func__, device, pci);
}

/* The first form had the short address only, and room for no more. */
API(nvmlDeviceGetPciInfo, nvml_device_t device, struct nvml_pci_info *pci)
{
    struct nvml_pci_info all;
    int status = pci_info(__func__, device, pci ? &all : NULL);
    if (status == NVML_OK)
        memcpy(pci, &all, offsetof(struct nvml_pci_info, subsystem_id));
    return status;
}

API(nvmlDeviceGetIndex, nvml_device_t device, unsigned *index)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, index != NULL);
    if (c.status == NVML_OK)
        *index = c.gpu->index;
    return c.status;
}

API(nvmlDeviceGetMinorNumber, nvml_device_t device, unsigned *minor)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, minor != NULL);
    return c.status == NVML_OK ? bh_nv_number(&c, c.gpu->minor, minor) : c.status;
}

API(nvmlDeviceGetModuleId, nvml_device_t device, unsigned *id)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, id != NULL);
    return c.status == NVML_OK ? bh_nv_number(&c, c.gpu->module_id, id) : c.status;
}

/* scope: 0 the node, 1 the socket; here they are one. */
API(nvmlDeviceGetMemoryAffinity, nvml_device_t device, unsigned n, unsigned long *set, unsigned scope)
{
    enum { BITS = 8 * sizeof(unsigned long) };
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, set && n && scope <= 1);
    if (c.status != NVML_OK)
        return c.status;
    if (c.gpu->numa < 0)
        return NVML_NOT_SUPPORTED;
    unsigned at = (unsigned)c.gpu->numa;
    if (at / BITS >= n)
        return NVML_INSUFFICIENT_SIZE;
    memset(set, 0, n * sizeof(*set));
    set[at / BITS] = 1UL << at % BITS;
    return NVML_OK;
}

API(nvmlDeviceGetCudaComputeCapability, nvml_device_t device, int *major, int *minor)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, major && minor);
    if (c.status != NVML_OK)
        return c.status;
    uint32_t both = c.model ? bh_nv_capability(c.model) : 0;
    if (!both)
        return NVML_NOT_SUPPORTED;
    *major = (int)(both / 10);
    *minor = (int)(both % 10);
    return NVML_OK;
}

/* By compute capability: the vendor's number of the generation, and how many cores a multiprocessor has. */
static const struct {
    uint32_t least, architecture, cores;
} generations[] = {{100, 10, 128}, {90, 9, 128}, {89, 8, 128}, {86, 7, 128},
                   {80, 7, 64},    {75, 6, 64},  {70, 5, 64}};

static int generation(const struct bh_nv_call *c, size_t *ret)
{
    uint32_t both = c->model ? bh_nv_capability(c->model) : 0;
    for (*ret = 0; *ret < BH_COUNT_OF(generations); (*ret)++)
        if (both >= generations[*ret].least)
            return NVML_OK;
    return NVML_NOT_SUPPORTED;
}

API(nvmlDeviceGetArchitecture, nvml_device_t device, unsigned *architecture)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_EITHER, architecture != NULL);
    size_t at;
    if (c.status == NVML_OK)
        c.status = generation(&c, &at);
    if (c.status == NVML_OK)
        *architecture = generations[at].architecture;
    return c.status;
}

API(nvmlDeviceGetNumGpuCores, nvml_device_t device, unsigned *cores)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, cores != NULL);
    size_t at;
    if (c.status == NVML_OK)
        c.status = generation(&c, &at);
    if (c.status == NVML_OK)
        *cores = c.gpu->sm * generations[at].cores;
    return c.status;
}

/* The driver stays loaded while nobody uses a card: 1. */
API(nvmlDeviceGetPersistenceMode, nvml_device_t device, unsigned *mode)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, mode != NULL);
    if (c.status == NVML_OK)
        *mode = 1;
    return c.status;
}

/* Any number of processes may use it: 0. */
API(nvmlDeviceGetComputeMode, nvml_device_t device, unsigned *mode)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, mode != NULL);
    if (c.status == NVML_OK)
        *mode = 0;
    return c.status;
}
