/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h - numbers drawn from a seed: the same seed gives the same trace and the same order on every machine.
 *
 * splitmix64. Nothing secret is drawn from it.
 */
#ifndef BH_REPLAY_RNG_H
#define BH_REPLAY_RNG_H

#include "base/idmap.h"

#include <assert.h>
#include <stdint.h>

struct bh_rng {
    uint64_t state;
};

static inline uint64_t bh_rng_next(struct bh_rng *r)
{
    const uint64_t x = bh_idmap_mix(r->state);
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    return x;
}

/* 0 .. n-1, each as likely; n is not 0. The high half of a product, drawn again where it would be uneven. */
static inline uint32_t bh_rng_below(struct bh_rng *r, uint32_t n)
{
    assert(n);
    const uint32_t uneven = (uint32_t)(-n) % n;
    uint64_t product;
    do {
        product = (bh_rng_next(r) >> 32) * n;
    } while ((uint32_t)product < uneven);
    return (uint32_t)(product >> 32);
}

static inline void bh_rng_shuffle(struct bh_rng *r, uint32_t *at, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = bh_rng_below(r, i), was = at[i - 1];
        at[i - 1] = at[j];
        at[j] = was;
    }
}

#endif
