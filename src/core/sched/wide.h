/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.h - products that need more than 64 bits, so that ratios are compared exactly.
 *
 * Two ratios are compared by multiplying across; nothing is rounded and no order depends on how a quotient
 * was rounded. A division of 128 bits would call the compiler's runtime, which the pure core does not link
 * to; the one that is needed, with a quotient of 64 bits, is here.
 */
#ifndef BH_CORE_SCHED_WIDE_H
#define BH_CORE_SCHED_WIDE_H

#include <stdint.h>

__extension__ typedef unsigned __int128 bh_u128;

static inline bh_u128 bh_wide_mul(uint64_t a, uint64_t b)
{
    return (bh_u128)a * b;
}

/*
 * One digit of 32 bits of n / d, for a normalised d (its highest bit is set) and n < d << 32; *n becomes
 * the rest.
 */
static inline uint64_t bh_wide_digit_(bh_u128 *n, uint64_t d)
{
    uint64_t q = (uint64_t)(*n >> 32) / (d >> 32);
    if (q > UINT32_MAX)
        q = UINT32_MAX;
    while ((bh_u128)q * d > *n) /* the guess from the upper half is at most two too high */
        q--;
    *n -= (bh_u128)q * d;
    return q;
}

/* n / d rounded down; the quotient must fit, that is n >> 64 < d. */
static inline uint64_t bh_wide_div(bh_u128 n, uint64_t d, uint64_t *ret_rest)
{
    uint64_t q;
    if (!(n >> 64)) {
        q = (uint64_t)n / d;
        *ret_rest = (uint64_t)n % d;
    } else {
        const int shift = __builtin_clzll(d);
        const uint64_t high = d << shift;
        bh_u128 rest = (n << shift) >> 32;
        q = bh_wide_digit_(&rest, high) << 32;
        rest = rest << 32 | (uint32_t)((uint64_t)n << shift);
        q |= bh_wide_digit_(&rest, high);
        *ret_rest = (uint64_t)(rest >> shift);
    }
    return q;
}

/* a * b / c rounded down; the largest number when it does not fit. */
static inline uint64_t bh_wide_scale(uint64_t a, uint64_t b, uint64_t c)
{
    const bh_u128 n = bh_wide_mul(a, b);
    uint64_t rest;
    return (uint64_t)(n >> 64) >= c ? UINT64_MAX : bh_wide_div(n, c, &rest);
}

struct bh_u256 {
    bh_u128 high, low;
};

static inline struct bh_u256 bh_wide_mul2(bh_u128 a, bh_u128 b)
{
    const uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
    const bh_u128 low = bh_wide_mul(a0, b0), x = bh_wide_mul(a0, b1), y = bh_wide_mul(a1, b0);
    const bh_u128 middle = (low >> 64) + (uint64_t)x + (uint64_t)y;
    return (struct bh_u256){bh_wide_mul(a1, b1) + (x >> 64) + (y >> 64) + (middle >> 64),
                            middle << 64 | (uint64_t)low};
}

static inline int bh_wide_cmp(bh_u128 a, bh_u128 b)
{
    return (a > b) - (a < b);
}

/* A fraction; {1, 0} is infinite, {0, n} is nothing. {0, 0} is not one. */
struct bh_ratio {
    bh_u128 num, den;
};

static inline int bh_ratio_cmp(struct bh_ratio a, struct bh_ratio b)
{
    const struct bh_u256 x = bh_wide_mul2(a.num, b.den), y = bh_wide_mul2(b.num, a.den);
    return x.high != y.high ? bh_wide_cmp(x.high, y.high) : bh_wide_cmp(x.low, y.low);
}

#endif
