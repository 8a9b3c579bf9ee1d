/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_fixture.h - a snapshot of a stand-in through the real backend, over a machine made of a few files. */
#ifndef BH_GPU_NVML_FIXTURE_H
#define BH_GPU_NVML_FIXTURE_H

#include "base/sysfile.h"
#include "base/test.h"
#include "gpu/gpu.h"

#include <ftw.h>
#include <sys/stat.h>

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

/* A file below the root, with its folders. */
static inline void bh_nvml_fixture_put(const char *path, const char *text)
{
    char at[BH_SYSPATH_MAX];
    if (!bh_syspath(at, path))
        return;
    for (char *c = at + strlen(bh_sysroot()) + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            (void)mkdir(at, 0700);
            *c = '/';
        }
    FILE *f = fopen(at, "w");
    if (f) {
        fputs(text, f);
        (void)fclose(f);
    }
}

static inline bool bh_nvml_fixture_root(char *template)
{
    return mkdtemp(template) && setenv("BULKHEAD_SYSROOT", template, 1) == 0;
}

static inline int bh_nvml_fixture_unlink_(const char *path, const struct stat *st, int kind, struct FTW *w)
{
    (void)st, (void)kind, (void)w;
    return remove(path);
}

static inline bool bh_nvml_fixture_clear(void)
{
    return nftw(bh_sysroot(), bh_nvml_fixture_unlink_, 16, FTW_DEPTH | FTW_PHYS) == 0;
}

#endif
