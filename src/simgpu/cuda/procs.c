/* SPDX-License-Identifier: Apache-2.0 */
/* procs.c - functions by name, in the version that a caller was built for. */
#include "simgpu/cuda/internal.h"

#include "base/str.h"

static const struct {
    const char *name;
    void (*symbol)(void);
    int version;
} procs[] = {
#define PROC(name_, symbol_, version_) {#name_, (void (*)(void))symbol_, version_},
#include "simgpu/cuda/procs.def"
#undef PROC
};

void *bh_cu_proc_find(const char *name, int version, int *ret_found)
{
    void *best = NULL;
    *ret_found = CU_PROC_NOT_FOUND;
    for (size_t i = 0; i < BH_COUNT_OF(procs); i++) {
        if (!bh_str_eq(procs[i].name, name))
            continue;
        if (procs[i].version <= version)
            memcpy(&best, &procs[i].symbol, sizeof(best)); /* later versions come later */
        *ret_found = best ? CU_PROC_FOUND : CU_PROC_TOO_OLD;
    }
    return best;
}
