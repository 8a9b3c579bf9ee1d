/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice.h - one generator for property tests and fuzzers.
 *
 * A test draws numbers from a string of bytes. Under libFuzzer the bytes come
 * from the fuzzer; in a property test from bh_choice_fill() and a seed, which a
 * failure prints. When the bytes run out every draw is 0, so runs always end.
 */
#ifndef BH_BASE_CHOICE_H
#define BH_BASE_CHOICE_H

#include <stddef.h>
#include <stdint.h>

struct bh_choice {
    const uint8_t *at;
    size_t left;
};

static inline uint32_t bh_choose(struct bh_choice *c, uint32_t n) /* 0 .. n-1 */
{
    uint32_t v = 0;
    for (uint32_t span = n; span > 1 && c->left; span = span / 256 + (span % 256 != 0)) {
        v = v << 8 | *c->at++;
        c->left--;
    }
    return n ? v % n : 0;
}

/* splitmix64: any seed gives well mixed bytes. */
static inline void bh_choice_fill(uint8_t *buf, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        buf[i] = (uint8_t)(z ^ (z >> 31));
    }
}

#endif
