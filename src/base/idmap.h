/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap.h - from a 64-bit key to a slot number, with removal.
 *
 * Handles are chosen by tenants, so keys are mixed with a seed before they pick a place. Only a seed that a tenant cannot
 * know keeps it from choosing keys that fall together: whoever serves tenants draws one. Nothing walks a map in its own
 * order, so the seed never changes an answer. Open addressing, linear probing, at most half full.
 */
#ifndef BH_BASE_IDMAP_H
#define BH_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BH_IDMAP_NONE UINT32_MAX

struct bh_idmap_slot {
    uint64_t key;
    uint32_t value_1; /* the value plus one; 0: empty */
};

struct bh_idmap { /* zeroed: empty, seed 0 */
    struct bh_idmap_slot *slots;
    size_t n, cap;
    uint64_t seed;
};

void bh_idmap_fini(struct bh_idmap *m);
bool bh_idmap_add(struct bh_idmap *m, uint64_t key, uint32_t value); /* false: the key is there already */
uint32_t bh_idmap_find(const struct bh_idmap *m, uint64_t key);      /* or BH_IDMAP_NONE */
bool bh_idmap_remove(struct bh_idmap *m, uint64_t key);              /* false: it was not there */
uint64_t bh_idmap_mix(uint64_t x);                                   /* splitmix64's last step */

#endif
