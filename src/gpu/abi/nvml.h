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
    NVML_TIMEOUT = 10,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_VERSION_MISMATCH = 18,
    NVML_IN_USE = 19,
    NVML_MEMORY = 20,
    NVML_NO_DATA = 21,
    NVML_INSUFFICIENT_RESOURCES = 23,
    NVML_ARGUMENT_VERSION = 25,
    NVML_UNKNOWN = 999,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };
enum { NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1 };
enum { NVML_ECC_VOLATILE = 0, NVML_ECC_AGGREGATE = 1 };
enum { NVML_LINKS_MAX = 36, NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2 };
enum { NVML_P2P_READ = 0, NVML_P2P_WRITE = 1, NVML_P2P_NVLINK = 2 };
enum { NVML_FABRIC_COMPLETED = 3 };
enum { NVML_GI_PROFILES_MAX = 32, NVML_CI_PROFILES_MAX = 8 };
enum {
    NVML_EVENT_ECC_SINGLE = 0x1,
    NVML_EVENT_ECC_DOUBLE = 0x2,
    NVML_EVENT_XID = 0x8,
    NVML_EVENT_MIG_CHANGE = 0x100,
    NVML_EVENT_ECC_STORM = 0x200,
    NVML_EVENT_DRAM_RETIRED = 0x400,
    NVML_EVENT_DRAM_FAILED = 0x800,
    NVML_EVENT_POISON = 0x1000,
    NVML_EVENT_POISON_FATAL = 0x2000,
    NVML_EVENT_UNAVAILABLE = 0x4000,
    NVML_EVENT_RECOVERY = 0x8000,
};

/* Fields, and how a value is held: of an unsigned int the first four bytes count. */
enum { NVML_FIELD_POWER_NOW = 186, NVML_VALUE_UINT = 1 };
enum { NVML_PCIE_TX = 0, NVML_PCIE_RX = 1 }; /* from the GPU; to it */
/* GPM: percent, but for PCIe, which is in MiB a second. A version word that carries no size. */
enum {
    NVML_GPM_VERSION = 1,
    NVML_GPM_SM_UTIL = 2,
    NVML_GPM_DRAM_UTIL = 10,
    NVML_GPM_PCIE_TX = 20,
    NVML_GPM_PCIE_RX = 21,
    NVML_GPM_MAX = 333,
};

typedef struct nvml_device *nvml_device_t;
typedef struct nvml_gpu_instance *nvml_gpu_instance_t;
typedef struct nvml_compute_instance *nvml_compute_instance_t;
typedef struct nvml_event_set *nvml_event_set_t;
typedef struct nvml_gpm_sample *nvml_gpm_sample_t;

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

struct nvml_process_info_v1 {
    uint32_t pid;
    uint64_t used_memory;
};

struct nvml_process_sample {
    uint32_t pid;
    uint64_t timestamp_us;
    uint32_t sm, memory, encoder, decoder; /* percent */
};

struct nvml_process_use {
    uint64_t timestamp_us;
    uint32_t pid, sm, memory, encoder, decoder, jpeg, ofa; /* percent */
};

struct nvml_processes_use {
    uint32_t version, count;
    uint64_t last_seen_us;
    struct nvml_process_use *list; /* the caller's; NULL asks for the count */
};

struct nvml_event_data {
    nvml_device_t device;
    uint64_t type, data;
    uint32_t gi, ci; /* all ones: not of a MIG instance */
};

struct nvml_placement {
    uint32_t start, size;
};

struct nvml_gpu_instance_info {
    nvml_device_t device;
    uint32_t id, profile_id;
    struct nvml_placement placement;
};

struct nvml_gi_profile_v1 {
    uint32_t id, is_p2p_supported, slice_count, instance_count, multiprocessor_count, copy_engine_count,
        decoder_count, encoder_count, jpeg_count, ofa_count;
    uint64_t memory_mb;
};

struct nvml_gi_profile_v2 {
    uint32_t version, id, is_p2p_supported, slice_count, instance_count, multiprocessor_count,
        copy_engine_count, decoder_count, encoder_count, jpeg_count, ofa_count;
    uint64_t memory_mb;
    char name[96];
};

struct nvml_gi_profile_v3 {
    uint32_t version, id, slice_count, instance_count, multiprocessor_count, copy_engine_count, decoder_count,
        encoder_count, jpeg_count, ofa_count;
    uint64_t memory_mb;
    char name[96];
    uint32_t capabilities;
};

struct nvml_ci_profile_v1 {
    uint32_t id, slice_count, instance_count, multiprocessor_count, shared_copy, shared_decoder,
        shared_encoder, shared_jpeg, shared_ofa;
};

struct nvml_ci_profile_v2 {
    uint32_t version, id, slice_count, instance_count, multiprocessor_count, shared_copy, shared_decoder,
        shared_encoder, shared_jpeg, shared_ofa;
    char name[96];
};

struct nvml_ci_profile_v3 {
    uint32_t version, id, slice_count, instance_count, multiprocessor_count, shared_copy, shared_decoder,
        shared_encoder, shared_jpeg, shared_ofa;
    char name[96];
    uint32_t capabilities;
};

struct nvml_compute_instance_info {
    nvml_device_t device;
    nvml_gpu_instance_t gi;
    uint32_t id, profile_id;
    struct nvml_placement placement;
};

struct nvml_attributes {
    uint32_t multiprocessor_count, shared_copy, shared_decoder, shared_encoder, shared_jpeg, shared_ofa,
        gi_slices, ci_slices;
    uint64_t memory_mb;
};

struct nvml_fabric_v1 {
    uint8_t cluster_uuid[16];
    uint32_t status, clique_id;
    uint8_t state;
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

struct nvml_cc_capabilities {
    uint32_t cpu, gpus;
};

struct nvml_cc_settings {
    uint32_t version, environment, cc_feature, dev_tools, multi_gpu;
};

struct nvml_field {
    uint32_t id, scope;
    int64_t at_us, took_us;
    uint32_t type;
    int32_t status; /* of this one alone */
    union {
        uint32_t u32;
        uint64_t u64;
    } value;
};

struct nvml_gpm_support {
    uint32_t version, supported;
};

struct nvml_gpm_metric {
    uint32_t id;
    int32_t status; /* of this one alone */
    double value;
    const char *short_name, *long_name, *unit;
};

struct nvml_gpm_metrics {
    uint32_t version, count;
    nvml_gpm_sample_t from, to;
    struct nvml_gpm_metric at[NVML_GPM_MAX];
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
BH_NVML_SIZE(nvmlProcessInfo_v1_t, struct nvml_process_info_v1, 16);
BH_NVML_SIZE(nvmlProcessUtilizationSample_t, struct nvml_process_sample, 32);
BH_NVML_AT(nvmlProcessUtilizationSample_t.timeStamp, struct nvml_process_sample, timestamp_us, 8);
BH_NVML_AT(nvmlProcessUtilizationSample_t.smUtil, struct nvml_process_sample, sm, 16);
BH_NVML_AT(nvmlProcessUtilizationSample_t.memUtil, struct nvml_process_sample, memory, 20);
BH_NVML_SIZE(nvmlProcessUtilizationInfo_v1_t, struct nvml_process_use, 40);
BH_NVML_SIZE(nvmlProcessesUtilizationInfo_t, struct nvml_processes_use, 24);
BH_NVML_SIZE(nvmlEventData_t, struct nvml_event_data, 32);
BH_NVML_AT(nvmlEventData_t.eventType, struct nvml_event_data, type, 8);
BH_NVML_AT(nvmlEventData_t.eventData, struct nvml_event_data, data, 16);
BH_NVML_AT(nvmlEventData_t.gpuInstanceId, struct nvml_event_data, gi, 24);
BH_NVML_AT(nvmlEventData_t.computeInstanceId, struct nvml_event_data, ci, 28);
BH_NVML_SIZE(nvmlGpuInstancePlacement_t, struct nvml_placement, 8);
BH_NVML_SIZE(nvmlGpuInstanceInfo_t, struct nvml_gpu_instance_info, 24);
BH_NVML_AT(nvmlGpuInstanceInfo_t.id, struct nvml_gpu_instance_info, id, 8);
BH_NVML_AT(nvmlGpuInstanceInfo_t.profileId, struct nvml_gpu_instance_info, profile_id, 12);
BH_NVML_AT(nvmlGpuInstanceInfo_t.placement, struct nvml_gpu_instance_info, placement, 16);
BH_NVML_SIZE(nvmlGpuInstanceProfileInfo_t, struct nvml_gi_profile_v1, 48);
BH_NVML_SIZE(nvmlGpuInstanceProfileInfo_v2_t, struct nvml_gi_profile_v2, 152);
BH_NVML_SIZE(nvmlGpuInstanceProfileInfo_v3_t, struct nvml_gi_profile_v3, 152);
BH_NVML_SIZE(nvmlComputeInstanceProfileInfo_t, struct nvml_ci_profile_v1, 36);
BH_NVML_SIZE(nvmlComputeInstanceInfo_t, struct nvml_compute_instance_info, 32);
BH_NVML_SIZE(nvmlDeviceAttributes_t, struct nvml_attributes, 40);
BH_NVML_SIZE(nvmlGpuFabricInfo_t, struct nvml_fabric_v1, 28);
BH_NVML_SIZE(nvmlGpuFabricInfo_v2_t, struct nvml_fabric_v2, 36);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.clusterUuid, struct nvml_fabric_v2, cluster_uuid, 4);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.status, struct nvml_fabric_v2, status, 20);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.cliqueId, struct nvml_fabric_v2, clique_id, 24);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.state, struct nvml_fabric_v2, state, 28);
BH_NVML_AT(nvmlGpuFabricInfo_v2_t.healthMask, struct nvml_fabric_v2, health_mask, 32);
BH_NVML_SIZE(nvmlGpuFabricInfo_v3_t, struct nvml_fabric_v3, 40);
BH_NVML_SIZE(nvmlConfComputeSystemState_t, struct nvml_cc_state, 12);
BH_NVML_SIZE(nvmlConfComputeSystemCaps_t, struct nvml_cc_capabilities, 8);
BH_NVML_SIZE(nvmlSystemConfComputeSettings_v1_t, struct nvml_cc_settings, 20);
BH_NVML_SIZE(nvmlFieldValue_t, struct nvml_field, 40);
BH_NVML_AT(nvmlFieldValue_t.valueType, struct nvml_field, type, 24);
BH_NVML_AT(nvmlFieldValue_t.nvmlReturn, struct nvml_field, status, 28);
BH_NVML_AT(nvmlFieldValue_t.value, struct nvml_field, value, 32);
BH_NVML_SIZE(nvmlGpmSupport_t, struct nvml_gpm_support, 8);
BH_NVML_SIZE(nvmlGpmMetric_t, struct nvml_gpm_metric, 40);
BH_NVML_SIZE(nvmlGpmMetricsGet_t, struct nvml_gpm_metrics, 13344);

BH_NVML_VERSION(nvmlMemory_v2, NVML_MEMORY_V2, 0x02000028, struct nvml_memory_v2);
BH_NVML_VERSION(nvmlGpuInstanceProfileInfo_v2, NVML_GI_PROFILE_V2, 0x02000098, struct nvml_gi_profile_v2);
BH_NVML_VERSION(nvmlGpuInstanceProfileInfo_v3, NVML_GI_PROFILE_V3, 0x03000098, struct nvml_gi_profile_v3);
BH_NVML_VERSION(nvmlProcessesUtilizationInfo_v1, NVML_PROC_USE_V1, 0x01000018, struct nvml_processes_use);
BH_NVML_VERSION(nvmlSystemConfComputeSettings_v1, NVML_CC_SETTINGS_V1, 0x01000014, struct nvml_cc_settings);
BH_NVML_VERSION(nvmlComputeInstanceProfileInfo_v2, NVML_CI_PROFILE_V2, 0x02000088, struct nvml_ci_profile_v2);
BH_NVML_VERSION(nvmlComputeInstanceProfileInfo_v3, NVML_CI_PROFILE_V3, 0x0300008c, struct nvml_ci_profile_v3);
BH_NVML_VERSION(nvmlGpuFabricInfo_v2, NVML_FABRIC_V2, 0x02000024, struct nvml_fabric_v2);
BH_NVML_VERSION(nvmlGpuFabricInfo_v3, NVML_FABRIC_V3, 0x03000028, struct nvml_fabric_v3);

#endif
