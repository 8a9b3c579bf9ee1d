/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_files.h - what lies on a node around its GPUs: device nodes, programs, configuration, groups.
 *
 * Read below BULKHEAD_SYSROOT where that is set; nothing is run and nothing is changed. Reading says what
 * is there, never whether that is good.
 */
#ifndef BH_HOST_PROBE_FILES_H
#define BH_HOST_PROBE_FILES_H

#include "base/arena.h"
#include "base/mem.h"
#include "host/platform.h"

/* Files whose first line is all there is to know. */
enum bh_node_line {
    BH_LINE_MODULE_VERSION,
    BH_LINE_MODULE_TAINT,
    BH_LINE_UVM_DISABLE_HMM,
    BH_LINE_PTRACE_SCOPE,
    BH_LINE_IO_URING_DISABLED,
    BH_LINE_CGROUP_CONTROLLERS,
    BH_LINE_UNSAFE_INTERRUPTS,
    BH_LINE_UNSAFE_NOIOMMU,
    BH_LINE_NUMA_ONLINE,
    BH_LINE_SEV_SNP,
    BH_LINE_TDX,
    BH_N_LINES,
};

/* Files that are judged by what stands in them. */
enum bh_node_file_id {
    BH_FILE_DRIVER_VERSION,
    BH_FILE_MEMINFO,
    BH_FILE_FABRIC_CONFIG,
    BH_FILE_TOOLKIT_CONFIG,
    BH_FILE_CONTAINERD_CONFIG,
    BH_FILE_DOCKER_CONFIG,
    BH_FILE_SLURM,
    BH_FILE_SLURM_CGROUP,
    BH_FILE_SLURM_GRES,
    BH_FILE_LABELS,
    BH_N_FILES,
};

enum bh_node_program_id {
    BH_PROGRAM_CRUN,
    BH_PROGRAM_RUNC,
    BH_PROGRAM_CONTAINERD,
    BH_PROGRAM_DOCKER,
    BH_PROGRAM_QEMU,
    BH_PROGRAM_KUBELET,
    BH_PROGRAM_SLURMD,
    BH_PROGRAM_FABRIC_MANAGER,
    BH_PROGRAM_MPS_CONTROL,
    BH_PROGRAM_MPS_SERVER,
    BH_N_PROGRAMS,
};

/* A line that is not there tells something about the node; one that may not be read tells nothing. */
struct bh_node_value {
    const char *text; /* NULL: there is none */
    const char *why;  /* why */
    bool is_absent;   /* no such file, as against one that cannot be read */
};

struct bh_node_file {
    const char *path; /* NULL: none of the places has it */
    const char *text; /* NULL: it is there, or may be, and cannot be read */
    const char *why;  /* why there is no text */
};

struct bh_node_program {
    const char *path;    /* NULL: not in any of the usual places */
    const char *version; /* of its package; NULL: not known */
};

struct bh_devnode {
    const char *path;
    bool exists;
    bool is_device; /* a character device; below a root that stands for a machine any file will do */
    uint32_t mode;  /* permissions, 0 when it is not there */
    uint32_t uid, gid;
};

/* The devices that cannot be told apart from a GPU by the IOMMU. */
struct bh_node_group {
    const char *gpu;    /* its PCI address */
    const char *id;     /* NULL: in no group */
    const char *others; /* addresses of strangers in it; NULL: none */
    const char *why;    /* why its members are not known; NULL: they are */
};

/* What to look for: the GPUs' PCI addresses, the minors of their nodes and of their MIG capabilities. */
struct bh_node_ask {
    const char *const *pci;
    size_t n_pci;
    const uint32_t *minors, *caps;
    size_t n_minors, n_caps;
};

struct bh_node {
    struct bh_arena arena;
    struct bh_node_value lines[BH_N_LINES];
    struct bh_node_file files[BH_N_FILES];
    struct bh_node_program programs[BH_N_PROGRAMS];
    struct bh_devnode ctl, uvm, mig_config, imex_channel0, kvm;
    BH_VEC(struct bh_devnode) gpus, caps; /* in the order they were asked for */
    BH_VEC(struct bh_node_file) cdi; /* a folder that cannot be read stands there as a file that cannot */
    BH_VEC(struct bh_node_group) groups;
    bool persistenced, vfio;
    bool mps_running;         /* a control daemon's pipe is in NVIDIA's default place */
    bool mps_hidden;          /* that place may not be looked into */
    uint32_t mps_folder_mode; /* of that place */
    const char *state_folder; /* the daemon's, or the nearest that exists; NULL: none */
    uint64_t state_free_bytes;
};

void bh_node_read(struct bh_node *ret, const struct bh_node_ask *ask);
void bh_node_fini(struct bh_node *n);

#endif
