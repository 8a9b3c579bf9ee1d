/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_fixture.h - a node on which nothing is wrong: two H100 behind a switch, one of them cut, under
 * Slurm. Tests spoil one thing at a time. Test code only.
 */
#ifndef BH_CLI_DOCTOR_FIXTURE_H
#define BH_CLI_DOCTOR_FIXTURE_H

#include "base/test.h"
#include "base/units.h"
#include "cli/doctor.h"

struct bh_doctor_fixture {
    struct bh_gpu_snapshot gpus;
    struct bh_platform platform;
    struct bh_node node;
    struct bh_probes probes;
    struct bh_doctor_facts facts;
};

static inline void bh_fixture_gpu(struct bh_doctor_fixture *x, uint32_t index)
{
    struct bh_gpu_device *g = bh_vec_push(&x->gpus.devices);
    *g = (struct bh_gpu_device){.index = index,
                                .alive = true,
                                .name = "NVIDIA H100 80GB HBM3",
                                .uuid = index ? "GPU-1" : "GPU-0",
                                .pci = index ? "0000:19:00.0" : "0000:18:00.0",
                                .vbios = "96.00.99.00.01",
                                .gsp = "580.159.03",
                                .model = bh_catalog_find("H100-80GB-SXM"),
                                .minor = (int32_t)index,
                                .module_id = (int32_t)index + 1,
                                .numa = 0,
                                .total_bytes = {80 * BH_GIB, NULL},
                                .mig_mode = {index, NULL},
                                .mig_pending = {index, NULL},
                                .ecc_mode = {1, NULL},
                                .ecc_pending = {1, NULL},
                                .links = {18, NULL},
                                .fabric_state = {3, NULL},
                                .domain = "nvl-0"};
    *bh_vec_push(&g->up) = (struct bh_gpu_link){.remote = BH_LINK_SWITCH};
    if (index)
        *bh_vec_push(&g->instances) =
            (struct bh_gpu_instance){.gi = 1, .profile = "3g.40gb", .uuid = "MIG-1"};
}

static inline void bh_fixture_node(struct bh_node *n)
{
    static const char *const lines[BH_N_LINES] = {
        [BH_LINE_MODULE_VERSION] = "580.159.03",
        [BH_LINE_MODULE_TAINT] = "O",
        [BH_LINE_UVM_DISABLE_HMM] = "Y",
        [BH_LINE_PTRACE_SCOPE] = "1",
        [BH_LINE_IO_URING_DISABLED] = "2",
        [BH_LINE_UNSAFE_INTERRUPTS] = "N",
        [BH_LINE_CGROUP_CONTROLLERS] = "cpuset cpu io memory hugetlb pids rdma",
        [BH_LINE_UNSAFE_NOIOMMU] = "N",
        [BH_LINE_NUMA_ONLINE] = "0-1",
        [BH_LINE_SEV_SNP] = "Y",
        [BH_LINE_TDX] = NULL,
    };
    static const char *const files[BH_N_FILES] = {
        [BH_FILE_DRIVER_VERSION] = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03\n",
        [BH_FILE_MEMINFO] = "MemTotal:       2113929216 kB\n",
        [BH_FILE_FABRIC_CONFIG] = "FABRIC_MODE=1\n",
        [BH_FILE_TOOLKIT_CONFIG] = "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n",
        [BH_FILE_SLURM] = "GresTypes=gpu\nTaskPlugin=task/affinity,task/cgroup\n",
        [BH_FILE_SLURM_CGROUP] = "ConstrainDevices=yes\n",
        [BH_FILE_SLURM_GRES] = "Name=gpu File=/dev/nvidia[0-1]\n",
        [BH_FILE_LABELS] = "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3\nnvidia.com/gpu.count=2\n"
                           "nvidia.com/cuda.driver-version.full=580.159.03\nnvidia.com/mig.strategy=mixed\n"
                           "nvidia.com/mig-3g.40gb.count=1\n",
    };
    for (size_t i = 0; i < BH_N_LINES; i++)
        n->lines[i] = (struct bh_node_value){lines[i], lines[i] ? NULL : "not there", !lines[i]};
    for (size_t i = 0; i < BH_N_FILES; i++)
        if (files[i])
            n->files[i] = (struct bh_node_file){.path = "/f", .text = files[i]};
    n->programs[BH_PROGRAM_CRUN] = (struct bh_node_program){"/usr/bin/crun", "1.8.1"};
    n->programs[BH_PROGRAM_CONTAINERD] = (struct bh_node_program){"/usr/bin/containerd", "2.1.9"};
    n->programs[BH_PROGRAM_QEMU] = (struct bh_node_program){"/usr/bin/qemu-system-x86_64", "7.2"};
    n->programs[BH_PROGRAM_SLURMD] = (struct bh_node_program){"/usr/sbin/slurmd", "22.05.8"};
    n->programs[BH_PROGRAM_FABRIC_MANAGER] =
        (struct bh_node_program){"/usr/bin/nv-fabricmanager", "580.159.03"};
    n->programs[BH_PROGRAM_MPS_CONTROL] = (struct bh_node_program){"/usr/bin/nvidia-cuda-mps-control", NULL};
    n->programs[BH_PROGRAM_MPS_SERVER] = (struct bh_node_program){"/usr/bin/nvidia-cuda-mps-server", NULL};
    n->ctl = (struct bh_devnode){.path = "/dev/nvidiactl", .exists = true, .is_device = true, .mode = 0660};
    n->uvm = (struct bh_devnode){.path = "/dev/nvidia-uvm", .exists = true, .is_device = true, .mode = 0660};
    n->kvm = (struct bh_devnode){.path = "/dev/kvm", .exists = true, .is_device = true, .mode = 0660};
    n->mig_config = (struct bh_devnode){
        .path = "/dev/nvidia-caps/nvidia-cap1", .exists = true, .is_device = true, .mode = 0400};
    n->imex_channel0 = (struct bh_devnode){
        .path = "/dev/nvidia-caps-imex-channels/channel0", .exists = false, .is_device = false, .mode = 0};
    *bh_vec_push(&n->gpus) =
        (struct bh_devnode){.path = "/dev/nvidia0", .exists = true, .is_device = true, .mode = 0660};
    *bh_vec_push(&n->gpus) =
        (struct bh_devnode){.path = "/dev/nvidia1", .exists = true, .is_device = true, .mode = 0660};
    *bh_vec_push(&n->caps) = (struct bh_devnode){
        .path = "/dev/nvidia-caps/nvidia-cap147", .exists = true, .is_device = true, .mode = 0440};
    *bh_vec_push(&n->cdi) =
        (struct bh_node_file){.path = "/etc/cdi/nvidia.yaml", .text = "/dev/nvidia0 /dev/nvidia1"};
    *bh_vec_push(&n->groups) = (struct bh_node_group){.gpu = "0000:18:00.0", .id = "7"};
    *bh_vec_push(&n->groups) = (struct bh_node_group){.gpu = "0000:19:00.0", .id = "8"};
    n->persistenced = n->vfio = true;
    n->state_folder = "/var/lib/bulkhead";
    n->state_free_bytes = 50 * BH_GIB;
}

static inline void bh_doctor_fixture_init(struct bh_doctor_fixture *x)
{
    const struct bh_probe works = {BH_PROBE_WORKS, 0, 0};
    *x = (struct bh_doctor_fixture){
        .gpus = {.library = "libnvidia-ml.so.1",
                 .driver = "580.159.03",
                 .nvml = "13.580.159.03",
                 .cuda = "13.0",
                 .cc_environment = {2, NULL},
                 .cc_feature = {1, NULL}},
        .platform = {.hostname = {"gpu-01", NULL},
                     .kernel = {"6.8.0-60-generic", NULL},
                     .driver = {"580.159.03", NULL},
                     .toolkit = {"1.19.1", NULL},
                     .lockdown = {"integrity", NULL},
                     .cgroup = {"v2", NULL},
                     .iommu = {BH_KNOWN_YES, NULL},
                     .acs = {BH_KNOWN_YES, NULL},
                     .secure_boot = {BH_KNOWN_YES, NULL}},
        .probes = {.caps = UINT64_MAX,
                   .is_root = true,
                   .notify = {BH_PROBE_WORKS, 0, 80},
                   .listen = works,
                   .sync = works,
                   .pidfd = works,
                   .getfd = works,
                   .vm_read = works,
                   .memfd = works,
                   .landlock = {BH_PROBE_WORKS, 0, 7},
                   .bpf_device = works,
                   .userns = works},
    };
    bh_fixture_gpu(x, 0);
    bh_fixture_gpu(x, 1);
    bh_fixture_node(&x->node);
    *bh_vec_push(&x->platform.params) = (struct bh_platform_param){"RmProfilingAdminOnly", "1"};
    *bh_vec_push(&x->platform.params) = (struct bh_platform_param){"CreateImexChannel0", "0"};
    *bh_vec_push(&x->platform.params) = (struct bh_platform_param){"RegistryDwords", ""};
    x->facts = (struct bh_doctor_facts){.gpus = &x->gpus,
                                        .platform = &x->platform,
                                        .node = &x->node,
                                        .probes = &x->probes,
                                        .day = 20605}; /* 2026-06-01 */
}

static inline void bh_doctor_fixture_fini(struct bh_doctor_fixture *x)
{
    if (x->gpus.devices.at)
        x->gpus.devices.n = 2; /* a test may have hidden them */
    bh_gpu_snapshot_fini(&x->gpus);
    bh_platform_fini(&x->platform);
    bh_node_fini(&x->node);
}

#endif
