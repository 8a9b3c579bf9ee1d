/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.h - the part of NVML's binary interface that is used here, and no more.
 *
 * Written for this project from the facts in data/nvml_abi.json; no vendor header is needed to build. Each
 * layout is asserted below, and a test compares those lines with the facts. A struct that carries a version
 * word carries its own size in it, so a library of another age refuses it instead of writing past its end.
 */
#ifndef BH_GPU_ABI_NVML_H
#define BH_GPU_ABI_NVML_H

#include <stddef.h>
#include <stdint.h>

enum nvml_status {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_VERSION_MISMATCH = 18,
    NVML_NO_DATA = 21,
    NVML_ARGUMENT_VERSION = 25,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };
enum { NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1 };
enum { NVML_ECC_VOLATILE = 0, NVML_ECC_AGGREGATE = 1 };
enum { NVML_LINKS_MAX = 36, NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2 };
enum { NVML_P2P_READ = 0, NVML_P2P_WRITE = 1, NVML_P2P_NVLINK = 2 };
enum { NVML_FABRIC_COMPLETED = 3 };
enum { NVML_GI_PROFILES_MAX = 32 };

typedef struct nvml_device *nvml_device_t;
typedef struct nvml_gpu_instance *nvml_gpu_instance_t;

struct nvml_pci_info {
    char bus_id_legacy[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct nvml_memory {
    uint64_t total, free, used;
};

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct nvml_utilization {
    uint32_t gpu, memory;
};

struct nvml_process_info {
    uint32_t pid;
    uint64_t used_memory; /* all ones: not available */
    uint32_t gi, ci;      /* all ones: not on a MIG instance */
};

struct nvml_placement {
    uint32_t start, size;
};

struct nvml_gpu_instance_info {
    nvml_device_t device;
    uint32_t id, profile_id;
    struct nvml_placement placement;
};

struct nvml_gi_profile_v2 {
    uint32_t version, id, is_p2p_supported, slice_count, instance_count, multiprocessor_count,
        copy_engine_count, decoder_count, encoder_count, jpeg_count, ofa_count;
    uint64_t memory_mb;
    char name[96];
};

struct nvml_attributes {
    uint32_t multiprocessor_count, shared_copy, shared_decoder, shared_encoder, shared_jpeg, shared_ofa,
        gi_slices, ci_slices;
    uint64_t memory_mb;
};

struct nvml_fabric_v2 {
    uint32_t version;
    uint8_t cluster_uuid[16];
    uint32_t status, clique_id;
    uint8_t state;
    uint32_t health_mask;
};

struct nvml_fabric_v3 {
    uint32_t version;
    uint8_t cluster_uuid[16];
    uint32_t status, clique_id;
    uint8_t state;
    uint32_t health_mask;
    uint8_t health_summary;
};

struct nvml_cc_state {
    uint32_t environment, cc_feature, dev_tools;
};

/* Vendor's name, ours, and what data/nvml_abi.json says of it. */
#define BH_NVML_SIZE(vendor, ours, size) _Static_assert(sizeof(ours) == (size), #vendor " has another size")
#define BH_NVML_AT(vendor, ours, field, off) \
    _Static_assert(offsetof(ours, field) == (off), #vendor " is laid out otherwise")
#define BH_NVML_VERSION(vendor, name, word, ours) \
    enum { name = (word) };                       \
    _Static_assert(((word) & 0xffffff) == sizeof(ours), #vendor " carries another size")

BH_NVML_SIZE(nvmlPciInfo_t, struct nvml_pci_info, 68);
BH_NVML_AT(nvmlPciInfo_t.domain, struct nvml_pci_info, domain, 16);
BH_NVML_AT(nvmlPciInfo_t.bus, struct nvml_pci_info, bus, 20);
BH_NVML_AT(nvmlPciInfo_t.device, struct nvml_pci_info, device, 24);
BH_NVML_AT(nvmlPciInfo_t.pciDeviceId, struct nvml_pci_info, device_id, 28);
BH_NVML_AT(nvmlPciInfo_t.busId, struct nvml_pci_info, bus_id, 36);
BH_NVML_SIZE(nvmlMemory_t, struct nvml_memory, 24);
BH_NVML_SIZE(nvmlMemory_v2_t, struct nvml_memory_v2, 40);
BH_NVML_AT(nvmlMemory_v2_t.total, struct nvml_memory_v2, total, 8);
BH_NVML_AT(nvmlMemory_v2_t.reserved, struct nvml_memory_v2, reserved, 16);
BH_NVML_AT(nvmlMemory_v2_t.free, struct nvml_memory_v2, free, 24);
BH_NVML_AT(nvmlMemory_v2_t.used, struct nvml_memory_v2, used, 32);
BH_NVML_SIZE(nvmlUtilization_t, struct nvml_utilization, 8);
BH_NVML_SIZE(nvmlProcessInfo_t, struct nvml_process_info, 24);
BH_NVML_AT(nvmlProcessInfo_t.usedGpuMemory, struct nvml_process_info, used_memory, 8);
BH_NVML_AT(nvmlProcessInfo_t.gpuInstanceId, struct nvml_process_info, gi, 16);
BH_NVML_AT(nvmlProcessInfo_t.computeInstanceId, struct nvml_process_info, ci, 20);
BH_NVML_SIZE(nvmlGpuInstancePlacement_t, struct nvml_placement, 8);
BH_NVML_SIZE(nvmlGpuInstanceInfo_t, struct nvml_gpu_instance_info, 24);
BH_NVML_AT(nvmlGpuInstanceInfo_t.id, struct nvml_gpu_instance_info, id, 8);
BH_NVML_AT(nvmlGpuInstanceInfo_t.profileId, struct nvml_gpu_instance_info, profile_id, 12);
BH_NVML_AT(nvmlGpuInstanceInfo_t.placement, struct nvml_gpu_instance_info, placement, 16);
BH_NVML_SIZE(nvmlGpuInstanceProfileInfo_v2_t, struct nvml_gi_profile_v2, 152);
BH_NVML_SIZE(nvmlDeviceAttributes_t, struct nvml_attributes, 40);
BH_NVML_SIZE(nvmlGpuFabricInfo_v2_t, struct nvml_fabric_v2, 36);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.clusterUuid, struct nvml_fabric_v2, cluster_uuid, 4);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.status, struct nvml_fabric_v2, status, 20);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.cliqueId, struct nvml_fabric_v2, clique_id, 24);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.state, struct nvml_fabric_v2, state, 28);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.healthMask, struct nvml_fabric_v2, health_mask, 32);
BH_NVML_SIZE(nvmlGpuFabricInfo_v3_t, struct nvml_fabric_v3, 40);
BH_NVML_SIZE(nvmlConfComputeSystemState_t, struct nvml_cc_state, 12);

BH_NVML_VERSION(nvmlMemory_v2, NVML_MEMORY_V2, 0x02000028, struct nvml_memory_v2);
BH_NVML_VERSION(nvmlGpuInstanceProfileInfo_v2, NVML_GI_PROFILE_V2, 0x02000098, struct nvml_gi_profile_v2);
BH_NVML_VERSION(nvmlGpuFabricInfo_v2, NVML_FABRIC_V2, 0x02000024, struct nvml_fabric_v2);
BH_NVML_VERSION(nvmlGpuFabricInfo_v3, NVML_FABRIC_V3, 0x03000028, struct nvml_fabric_v3);

#endif
