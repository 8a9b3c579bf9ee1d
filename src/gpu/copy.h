/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - a snapshot into other memory, whole: what the child saw is carried over to the one who asked. */
#ifndef BH_GPU_COPY_H
#define BH_GPU_COPY_H

#include "gpu/gpu.h"

/* A stretch of memory that is only ever added to. */
struct bh_gpu_room {
    char *at;
    size_t left;
};

/*
 * *ret becomes a copy of *from. room NULL: on the heap, as any snapshot (bh_gpu_snapshot_fini). Otherwise every
 * byte lies in the room; false: it is too small, and *ret is of no use.
 */
bool bh_gpu_snapshot_copy(struct bh_gpu_snapshot *ret, const struct bh_gpu_snapshot *from,
                          struct bh_gpu_room *room);

#endif
