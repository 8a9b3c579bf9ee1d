/* SPDX-License-Identifier: Apache-2.0 */
/* gpus_fixture.h - a small machine by hand: a GPU cut in two with one tenant, and one that is lost. Test code only. */
#ifndef BH_CLI_GPUS_FIXTURE_H
#define BH_CLI_GPUS_FIXTURE_H

#include "base/test.h"
#include "base/units.h"
#include "gpu/gpu.h"

static inline void bh_gpus_fixture_init(struct bh_gpu_snapshot *s)
{
    const struct bh_reading none = {0, "not supported by this GPU"}, lost = {0, "the GPU is lost"};
    *s = (struct bh_gpu_snapshot){.simulated = true,
                                  .library = "stand\x1b[in.so",
                                  .driver = "580.159.03",
                                  .cuda = "13.0",
                                  .cc_environment = none,
                                  .cc_feature = none,
                                  .cc_devtools = none};
    struct bh_gpu_device *d = bh_vec_push(&s->devices);
    *d = (struct bh_gpu_device){.alive = true,
                                .name = "NVIDIA H200",
                                .model = bh_catalog_find("H200"),
                                .uuid = "GPU-1",
                                .pci = "0000:18:00.0",
                                .module_id = -1,
                                .minor = 0,
                                .numa = 1,
                                .total_bytes = {UINT64_C(143771) * BH_MIB, NULL},
                                .used_bytes = {3 * BH_GIB + BH_GIB / 2, NULL},
                                .mig_mode = {1, NULL},
                                .util_percent = none,
                                .domain = "nvl-0",
                                .links = {1, NULL},
                                .processes_seen = {3, NULL}};
    *bh_vec_push(&d->up) = (struct bh_gpu_link){.remote = BH_LINK_SWITCH, .remote_pci = "0000:05:00.0"};
    *bh_vec_push(&d->instances) = (struct bh_gpu_instance){.gi = 1,
                                                           .profile = "3g.71gb",
                                                           .uuid = "MIG-1",
                                                           .start = {4, NULL},
                                                           .size = {4, NULL},
                                                           .total_bytes = {70 * BH_GIB, NULL},
                                                           .used_bytes = {BH_GIB, NULL}};
    *bh_vec_push(&d->instances) = (struct bh_gpu_instance){.gi = 9,
                                                           .ci = BH_NO_ID,
                                                           .profile = "1g.18gb",
                                                           .start = none,
                                                           .size = none,
                                                           .used_bytes = none,
                                                           .total_bytes = none};
    *bh_vec_push(&d->processes) = (struct bh_gpu_process){.pid = 42,
                                                          .gi = 1,
                                                          .kind = "compute",
                                                          .name = "python3",
                                                          .user = "ada",
                                                          .memory_bytes = {BH_GIB, NULL},
                                                          .sm_percent = none,
                                                          .memory_percent = none};
    *bh_vec_push(&d->processes) = (struct bh_gpu_process){.pid = 43,
                                                          .gi = 1,
                                                          .kind = "compute",
                                                          .user = "bob",
                                                          .memory_bytes = {2 * BH_GIB + 205 * BH_MIB, NULL},
                                                          .sm_percent = {35, NULL},
                                                          .memory_percent = {12, NULL}};
    *bh_vec_push(&d->processes) = (struct bh_gpu_process){
        .pid = 44, .gi = BH_NO_ID, .ci = BH_NO_ID, .kind = "mps", .memory_bytes = none, .sm_percent = none};
    d = bh_vec_push(&s->devices);
    *d = (struct bh_gpu_device){.index = 1,
                                .trouble = "lost: it fell off the bus",
                                .module_id = -1,
                                .minor = -1,
                                .numa = -1,
                                .total_bytes = lost,
                                .used_bytes = lost,
                                .util_percent = lost,
                                .throttle = lost,
                                .processes_seen = lost};
    *bh_vec_push(&s->notes) = "one thing is odd";
}

/* One more, of another maker. */
static inline void bh_gpus_fixture_amd(struct bh_gpu_snapshot *s)
{
    struct bh_gpu_device *d = bh_vec_push(&s->devices);
    *d = (struct bh_gpu_device){.index = 2,
                                .vendor = BH_GPU_AMD,
                                .alive = true,
                                .name = "MI300X",
                                .pci = "0000:c1:00.0",
                                .module_id = -1,
                                .minor = 1,
                                .numa = 1,
                                .total_bytes = {192 * BH_GIB, NULL},
                                .util_percent = {42, NULL},
                                .compute_partition = "SPX",
                                .compute_partitions = "SPX, CPX",
                                .memory_partition = "NPS1",
                                .domain = "xgmi-7",
                                .links = {0, "amdgpu does not say"},
                                .throttle = {0, "amdgpu does not say"},
                                .processes_seen = {0, "amdgpu does not say"}};
    s->amdgpu = "6.10.5";
}

#endif
