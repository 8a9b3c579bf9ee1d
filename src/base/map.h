/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - from a string to a number (usually an index into a vector).
 *
 * Open addressing, linear probing, at most three quarters full. Keys are
 * borrowed: they must outlive the map (they live in the document's arena).
 * Shaped for build-once, look-up-often with up to a few hundred thousand names.
 * Names may come from a hostile file, so the hash (SipHash-1-3) takes a key that a
 * program sets at start; nothing ever walks a map in slot order, so the key
 * changes the speed of an attack and never an answer.
 */
#ifndef BH_BASE_MAP_H
#define BH_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bh_map_slot {
    const char *key; /* NULL = empty */
    uint32_t hash, value;
};

struct bh_map {
    struct bh_map_slot *slots;
    size_t n, cap;
};

#define BH_MAP_NONE UINT32_MAX

void bh_map_fini(struct bh_map *m); /* a zeroed struct is an empty map */
/* Add key -> value. Returns the value already there, or BH_MAP_NONE when it was added. */
uint32_t bh_map_add(struct bh_map *m, const char *key, uint32_t value);
uint32_t bh_map_find(const struct bh_map *m, const char *key); /* or BH_MAP_NONE */
void bh_map_key(uint64_t k0, uint64_t k1); /* once, before the first map; without it the key is 0 */
uint32_t bh_hash(const char *s, size_t n);

#endif
