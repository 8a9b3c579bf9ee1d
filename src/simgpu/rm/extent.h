/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extent.h - which addresses of a stretch of memory are free.
 *
 * First fit: what is taken has the lowest address that fits, so the same requests give the same addresses. Free
 * ranges stand in a treap that knows the largest range below each node; a tenant that cuts memory into a million holes
 * still pays by the logarithm.
 */
#ifndef BH_SIMGPU_RM_EXTENT_H
#define BH_SIMGPU_RM_EXTENT_H

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_extent { /* a free range */
    uint64_t base, bytes, largest, rank;
    uint32_t left, right; /* 0: none */
};

struct bh_extents {
    BH_VEC(struct bh_extent) nodes; /* [0] is nobody */
    uint32_t root, spare;           /* spare: nodes to use again, linked by left */
    uint64_t base, total_bytes, free_bytes;
};

void bh_extents_init(struct bh_extents *e, uint64_t base, uint64_t bytes);
void bh_extents_fini(struct bh_extents *e);
bool bh_extents_take(struct bh_extents *e, uint64_t bytes,
                     uint64_t *ret_base); /* false: no range is long enough */
/* Back what was taken, whole. */
void bh_extents_give(struct bh_extents *e, uint64_t base, uint64_t bytes);
uint64_t bh_extents_largest(const struct bh_extents *e);
/* Every free range in order of address; *at starts at 0. false: no more. */
bool bh_extents_next(const struct bh_extents *e, uint64_t *at, uint64_t *ret_base, uint64_t *ret_bytes);

#endif
