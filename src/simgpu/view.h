/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - what a simulated card shows of itself: fixed layouts that go over a socket as they are.
 *
 * Numbers follow the driver library's conventions (gpu/abi/nvml.h); UINT32_MAX means that there is no such value.
 */
#ifndef BH_SIMGPU_VIEW_H
#define BH_SIMGPU_VIEW_H

#include <stdint.h>

enum {
    BH_SIM_VIEW_PROCESSES = 128,
    BH_SIM_VIEW_GIS = 16,
    BH_SIM_VIEW_CIS = 8,
    BH_SIM_VIEW_LINKS = 18,
};

struct bh_sim_process_view {
    uint32_t pid, gi, ci, kind; /* kind: 0 compute, 1 graphics, 2 MPS */
    uint64_t bytes, busy_ns;    /* busy_ns: GPU time ever */
};
struct bh_sim_ci_view {
    uint32_t id, slices, start, pad;
    char uuid[48];
};
struct bh_sim_gi_view {
    uint32_t id, profile_id, start, size, n_cis, pad;
    uint64_t total_bytes, used_bytes;
    struct bh_sim_ci_view cis[BH_SIM_VIEW_CIS];
};

struct bh_sim_gpu_view {
    uint32_t index, minor, module_id, device_id;
    int32_t numa;
    uint32_t lost; /* 1: every call on it answers GPU is lost */
    char model[32], name[64], uuid[48], serial[24], pci[16], vbios[20], pad0[4];
    uint64_t total_bytes, reserved_bytes, used_bytes;
    uint32_t sm, util_percent, memory_util_percent, temperature_c, power_mw, power_limit_mw, sm_mhz,
        memory_mhz;
    uint32_t throttle;
    uint32_t ecc_on;
    uint64_t ecc_corrected, ecc_uncorrected, ecc_uncorrected_now;
    uint32_t remapped_rows, remap_pending, remap_failed;
    uint32_t mig_capable, mig_on, mig_pending;
    uint32_t links, switch_group; /* links: how many the card has */
    uint32_t links_down;          /* bit l: link l is down */
    uint32_t clique, fabric_state, fabric_health;
    uint8_t cluster[16];
    uint32_t n_gis, n_processes;
    uint64_t now_ns;
    struct bh_sim_gi_view gis[BH_SIM_VIEW_GIS];
    struct bh_sim_process_view processes[BH_SIM_VIEW_PROCESSES];
};

/* Who had a GPU's engines how long: reply of BH_SIM_OP_BUSY. */
enum { BH_SIM_BUSY_MAX = 512 };
struct bh_sim_busy {
    uint32_t pid, on;   /* on: it is its turn */
    uint64_t ns, turns; /* ever, of what it has now or had while it kept something there */
};

struct bh_sim_node_view {
    uint32_t n_gpus, pad;
    char scene[32], hostname[48], driver[20], nvml[20];
    uint32_t cuda;        /* 13000 */
    uint32_t fail_status; /* the library's call `fail_call` answers with this; 0: none is broken */
    char fail_call[64];   /* `*`: all */
};

enum bh_sim_event_kind { BH_SIM_EVENT_XID = 1, BH_SIM_EVENT_ECC = 2 };
struct bh_sim_event {
    uint64_t seq, now_ns, data; /* data: the Xid, or how many errors */
    uint32_t gpu, kind, gi, ci;
};

enum bh_sim_mig_verb {
    BH_SIM_MIG_MODE,
    BH_SIM_MIG_GI_CREATE,
    BH_SIM_MIG_GI_DESTROY,
    BH_SIM_MIG_GI_ROOM,
    BH_SIM_MIG_CI_CREATE,
    BH_SIM_MIG_CI_DESTROY
};
struct bh_sim_mig_order {
    uint32_t verb, gpu;
    uint32_t profile_id; /* of the GPU instance; or slices of a compute instance; or the mode */
    int32_t start;       /* -1: anywhere */
    uint32_t gi, ci;     /* in or out */
    uint32_t room;       /* out */
    int32_t status;      /* out: an NVML status */
};

#endif
