/* SPDX-License-Identifier: Apache-2.0 */
/* mig_nvml.h - what mig.c and mig_apply.c share: one GPU through the library. */
#ifndef BH_GPU_MIG_NVML_H
#define BH_GPU_MIG_NVML_H

#include "gpu/mig.h"
#include "gpu/nvml.h"

struct bh_gpu_mig {
    struct bh_nvml *n;
    nvml_device_t gpu;
    char uuid[96];
    bool may_change;
};

/* A failed call as a sentence: `making 3g.20gb@4 on GPU-...: ...`. */
int bh_gpu_mig_fail(const struct bh_gpu_mig *m, int status, struct bh_err *err, const char *doing_fmt, ...)
    BH_PRINTF(4, 5);
/* BH_DENIED where no right was shown. */
int bh_gpu_mig_may(const struct bh_gpu_mig *m, struct bh_err *err) BH_MUST_USE;
/* BH_BUSY, with the pids, where a process is on the GPU; fails as well where that cannot be told. */
int bh_gpu_mig_idle(const struct bh_gpu_mig *m, struct bh_err *err) BH_MUST_USE;
/* The place of a wanted instance with its size, and its profile. BH_INVALID: the GPU has no such profile or place. */
int bh_gpu_mig_place(const struct bh_gpu_mig *m, struct bh_gpu_mig_want want, struct nvml_placement *ret,
                     struct nvml_gi_profile_v2 *ret_profile, struct bh_err *err) BH_MUST_USE;
/* A compute instance as it was. */
int bh_gpu_mig_restore_ci(struct bh_gpu_mig *m, uint32_t gi, const struct bh_gpu_mig_ci *as,
                          struct bh_err *err) BH_MUST_USE;

#endif
