/* SPDX-License-Identifier: Apache-2.0 */
/* mig_fixture.h - the stand-in whose GPU can be cut, and the strings by which a test pulls it. Test code only. */
#ifndef BH_GPU_MIG_FIXTURE_H
#define BH_GPU_MIG_FIXTURE_H

#include "base/sysfile.h"
#include "base/test.h"
#include "gpu/abi/nvml.h"
#include "gpu/mig.h"

#include <dlfcn.h>

#define MIG_UUID "GPU-00000000-0000-4000-8000-00000000a100"
enum { MIG_1G = 19, MIG_1G_WIDE = 15, MIG_2G = 14, MIG_3G = 9, MIG_4G = 5, MIG_7G = 0 };

struct bh_mig_fixture {
    void *library; /* held, so that it keeps its state */
    void (*fail)(const char *call, int after, int status);
    void (*set)(const char *what, int v);
    int (*left)(void); /* is a refusal still waiting for its call? */
    struct bh_gpu_mig *m;
    struct bh_err err;
};

static inline bool bh_mig_fixture_open(struct bh_mig_fixture *f, bool with_right)
{
    static const struct bh_gpu_mig_right right = {MIG_UUID, "the test"};
    char path[BH_SYSPATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/mig.so", BH_STANDINS);
    *f = (struct bh_mig_fixture){.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!f->library || setenv("BULKHEAD_NVML", path, 1) != 0)
        return false;
    void *at = dlsym(f->library, "standin_fail");
    memcpy(&f->fail, &at, sizeof(at));
    at = dlsym(f->library, "standin_set");
    memcpy(&f->set, &at, sizeof(at));
    at = dlsym(f->library, "standin_left");
    memcpy(&f->left, &at, sizeof(at));
    return f->fail && f->set && f->left &&
           bh_gpu_mig_open(&f->m, MIG_UUID, with_right ? &right : NULL, &f->err) == BH_OK;
}

static inline void bh_mig_fixture_close(struct bh_mig_fixture *f)
{
    bh_gpu_mig_close(f->m);
    (void)dlclose(f->library);
}

/* The layout in words. */
static inline const char *bh_mig_fixture_words(struct bh_mig_fixture *f)
{
    static char words[256];
    struct bh_gpu_mig_layout l;
    if (bh_gpu_mig_read(f->m, &l, &f->err) < 0)
        return f->err.msg;
    bh_gpu_mig_words(&l, words, sizeof(words));
    return words;
}

#endif
