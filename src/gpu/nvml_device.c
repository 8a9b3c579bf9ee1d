/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_device.c - one GPU by itself: who it is, where it sits, its memory, its health and its clocks. */
#include "base/sysfile.h"
#include "base/units.h"
#include "gpu/nvml.h"
#include "gpu/text.h"

#include <stdio.h>

enum { TEXT = 256, ASKED = 96, NODES = 1024, NUMA_MAX = NODES - 1 };
#define LONG_BITS (8 * sizeof(unsigned long))

typedef int (*text_call)(nvml_device_t, char *, unsigned);

/* The buffer is larger than what is asked for: a library that counts wrongly finds room. */
static const char *text_of(const struct bh_nvml *n, struct bh_arena *a, text_call call, const char *name,
                           nvml_device_t h)
{
    char text[TEXT] = {0};
    bh_gpu_asking(name);
    int status = call ? bh_nvml_hear(n, call(h, text, ASKED)) : (int)NVML_FUNCTION_NOT_FOUND;
    return bh_nvml_text(a, status, text, sizeof(text));
}

const char *bh_nvml_pci(struct bh_arena *a, int status, const struct nvml_pci_info *pci)
{
    return status == NVML_OK ? bh_gpu_pci(a, pci->domain, pci->bus, pci->device) : NULL;
}

/* The node of the processor it is attached to: one set bit, else what the kernel says. */
static int32_t numa_of(const struct bh_nvml *n, nvml_device_t h, const char *pci)
{
    unsigned long set[NODES / LONG_BITS] = {0};
    int32_t found = -1;
    if (BH_NVML_CALL(n, memory_affinity, h, BH_COUNT_OF(set), set, 0) == NVML_OK) {
        unsigned bits = 0;
        for (unsigned i = 0; i < NODES; i++)
            if (set[i / LONG_BITS] >> i % LONG_BITS & 1) {
                found = (int32_t)i;
                bits++;
            }
        if (bits == 1)
            return found;
    }
    char path[BH_SYSPATH_MAX], text[16];
    uint64_t node;
    if (!pci)
        return -1;
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", pci);
    if (bh_sysfile_line(path, text, sizeof(text), NULL) < 0 || bh_uint_parse(text, NUMA_MAX, &node, NULL) < 0)
        return -1; /* the kernel writes -1 for unknown */
    return (int32_t)node;
}

static int32_t small_number(int status, unsigned v)
{
    return status == NVML_OK && v <= INT32_MAX ? (int32_t)v : -1;
}

static void read_identity(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                          struct bh_gpu_device *d)
{
    struct nvml_pci_info pci;
    struct bh_nvml_room room;
    char gsp[TEXT] = {0};
    unsigned number = 0;

    d->name = text_of(n, a, n->api.name, n->names.name, h);
    d->serial = text_of(n, a, n->api.serial, n->names.serial, h);
    d->vbios = text_of(n, a, n->api.vbios, n->names.vbios, h);
    d->inforom = text_of(n, a, n->api.inforom, n->names.inforom, h);
    int status = BH_NVML_CALL(n, gsp, h, gsp);
    d->gsp = bh_nvml_text(a, status, gsp, sizeof(gsp));
    status = BH_NVML_FILL(n, pci, &room, &pci, offsetof(struct nvml_pci_info, device_id), h);
    d->pci = bh_nvml_pci(a, status, &pci);
    status = BH_NVML_CALL(n, minor, h, &number);
    d->minor = small_number(status, number);
    status = BH_NVML_CALL(n, module_id, h, &number);
    d->module_id = small_number(status, number);
    d->numa = numa_of(n, h, d->pci);
    if (d->pci && (pci.device_id & 0xffff) == 0x10de)
        d->model = bh_catalog_by_device((uint16_t)(pci.device_id >> 16));
    if (!d->model && d->name)
        d->model = bh_catalog_find(d->name);
}

static void read_ecc(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a, struct bh_gpu_device *d)
{
    unsigned now = 0, pending = 0, corrected = 0, uncorrected = 0, waits = 0, failed = 0;
    unsigned long long v = 0;
    int status = BH_NVML_CALL(n, ecc_mode, h, &now, &pending);
    d->ecc_mode = bh_nvml_reading(a, status, now);
    d->ecc_pending = bh_nvml_reading(a, status, pending);
    status = BH_NVML_CALL(n, ecc_total, h, NVML_ECC_CORRECTED, NVML_ECC_AGGREGATE, &v);
    d->ecc_corrected = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, ecc_total, h, NVML_ECC_UNCORRECTED, NVML_ECC_AGGREGATE, &v);
    d->ecc_uncorrected = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, ecc_total, h, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &v);
    d->ecc_uncorrected_now = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, remapped, h, &corrected, &uncorrected, &waits, &failed);
    d->remapped_rows = bh_nvml_reading(a, status, (uint64_t)corrected + uncorrected);
    d->remap_pending = bh_nvml_reading(a, status, waits);
    d->remap_failed = bh_nvml_reading(a, status, failed);
}

static void read_clocks(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a, struct bh_gpu_device *d)
{
    struct nvml_utilization use;
    struct bh_nvml_room room;
    unsigned v = 0;
    unsigned long long bits = 0;
    int status = BH_NVML_CALL(n, temperature, h, 0, &v);
    d->temperature_c = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, power, h, &v);
    d->power_mw = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, power_limit, h, &v);
    d->power_limit_mw = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, clock, h, NVML_CLOCK_SM, &v);
    d->sm_mhz = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, clock, h, NVML_CLOCK_MEMORY, &v);
    d->memory_mhz = bh_nvml_reading(a, status, v);
    status = BH_NVML_CALL(n, throttle, h, &bits);
    d->throttle = bh_nvml_reading(a, status, bits);
    status = BH_NVML_FILL(n, utilization, &room, &use, offsetof(struct nvml_utilization, memory), h);
    d->util_percent = bh_nvml_reading(a, status, use.gpu);
    d->memory_util_percent = bh_nvml_reading(a, status, use.memory);
    if (!d->util_percent.why && use.gpu > 100)
        d->util_percent = (struct bh_reading){0, "the driver's answer makes no sense"};
}

static void read_fabric(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a, struct bh_gpu_device *d)
{
    static const uint8_t nowhere[16];
    struct nvml_fabric_v3 f = {.version = NVML_FABRIC_V3};
    int status = BH_NVML_CALL(n, fabric, h, &f);
    if (status != NVML_OK && status != NVML_FUNCTION_NOT_FOUND) {
        f = (struct nvml_fabric_v3){.version = NVML_FABRIC_V2};
        status = BH_NVML_CALL(n, fabric, h, &f);
    }
    d->fabric_state = bh_nvml_reading(a, status, f.state);
    if (status != NVML_OK || f.state != NVML_FABRIC_COMPLETED)
        return;
    /* completed is the attempt; its outcome stands apart */
    if (f.status != NVML_OK) {
        d->fabric_error = f.status;
        d->fabric_state.why = bh_arena_printf(a, "joining the fabric failed: error %u", f.status);
        d->fabric_state.v = 0;
        return;
    }
    d->fabric_health = f.health_mask;
    if (memcmp(f.cluster_uuid, nowhere, sizeof(nowhere)) == 0)
        return;
    char hex[2 * sizeof(f.cluster_uuid) + 1];
    for (size_t i = 0; i < sizeof(f.cluster_uuid); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", f.cluster_uuid[i]);
    d->fabric_key = bh_arena_printf(a, "%s.%u", hex, f.clique_id);
}

void bh_nvml_read_memory(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                         struct bh_gpu_device *d)
{
    struct nvml_memory_v2 m = {.version = NVML_MEMORY_V2};
    int status = BH_NVML_CALL(n, memory_v2, h, &m);
    d->reserved_bytes = bh_nvml_reading(a, status, m.reserved);
    if (status != NVML_OK) {
        struct nvml_memory old;
        struct bh_nvml_room room;
        status = BH_NVML_FILL(n, memory, &room, &old, offsetof(struct nvml_memory, used), h);
        m = (struct nvml_memory_v2){.total = old.total, .free = old.free, .used = old.used};
    }
    d->total_bytes = bh_nvml_reading(a, status, m.total);
    d->used_bytes = bh_nvml_reading(a, status, m.used);
    d->free_bytes = bh_nvml_reading(a, status, m.free);
}

void bh_nvml_read_device(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                         struct bh_gpu_device *d)
{
    read_identity(n, h, &s->arena, d);
    read_ecc(n, h, &s->arena, d);
    read_clocks(n, h, &s->arena, d);
    read_fabric(n, h, &s->arena, d);
}
