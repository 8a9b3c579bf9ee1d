/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_fixture.h - a snapshot of a stand-in through the real backend, over a machine made of a few files. */
#ifndef BH_GPU_NVML_FIXTURE_H
#define BH_GPU_NVML_FIXTURE_H

#include "base/scratch.h"
#include "base/sysfile.h"
#include "base/test.h"
#include "gpu/gpu.h"

struct bh_nvml_fixture {
    struct bh_gpu_snapshot s;
    struct bh_err err;
    int rc;
};

/* BH_STANDINS: where the stand-ins were built. */
static inline void bh_nvml_fixture_take(struct bh_nvml_fixture *f, const char *scene)
{
    char path[BH_SYSPATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s.so", BH_STANDINS, scene);
    bh_gpu_snapshot_fini(&f->s);
    *f = (struct bh_nvml_fixture){0};
    f->rc =
        setenv("BULKHEAD_NVML", path, 1) == 0 ? bh_gpu_read_here(&bh_gpu_nvml, &f->s, &f->err) : BH_SYSTEM;
}

/* A file below the root, which a test has made, with its folders. */
static inline void bh_nvml_fixture_put(const char *path, const char *text)
{
    if (!bh_scratch_put(bh_sysroot(), path, text))
        abort();
}

#endif
