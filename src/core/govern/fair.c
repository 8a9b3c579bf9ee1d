/* SPDX-License-Identifier: Apache-2.0 */
/* fair.c - the water level is found by bisection: no sorting, no division, the same bits everywhere. */
#include "core/govern/fair.h"

/* A level carries 20 bits behind the point; a weight of 1 reaches the whole card at the highest one. */
#define LEVEL_BITS 20u
#define LEVEL_MAX  ((uint64_t)BH_FAIR_WHOLE << LEVEL_BITS)

static uint32_t clamp(uint64_t v, uint32_t low, uint32_t high)
{
    if (v < low)
        v = low;
    return v > high ? high : (uint32_t)v;
}

static uint64_t fill(struct bh_fair *at, size_t n, uint64_t level)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        at[i].share_ppm = clamp((at[i].weight * level) >> LEVEL_BITS, at[i].floor_ppm, at[i].limit_ppm);
        sum += at[i].share_ppm;
    }
    return sum;
}

static void fit_floors(struct bh_fair *at, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (at[i].floor_ppm > at[i].limit_ppm)
            at[i].floor_ppm = at[i].limit_ppm;
        sum += at[i].floor_ppm;
    }
    if (sum <= BH_FAIR_WHOLE)
        return;
    for (size_t i = 0; i < n; i++)
        at[i].floor_ppm = (uint32_t)((uint64_t)at[i].floor_ppm * BH_FAIR_WHOLE / sum);
}

void bh_fair_divide(struct bh_fair *at, size_t n)
{
    uint64_t low = 0, high = LEVEL_MAX, sum;
    fit_floors(at, n);
    if (fill(at, n, LEVEL_MAX) <= BH_FAIR_WHOLE)
        return;
    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        if (fill(at, n, mid) <= BH_FAIR_WHOLE)
            low = mid;
        else
            high = mid;
    }
    sum = fill(at, n, low);
    /* What rounding left, less than one part for each tenant, goes to the first who would rise next. */
    for (size_t i = 0; i < n && sum < BH_FAIR_WHOLE; i++) {
        if (clamp((at[i].weight * high) >> LEVEL_BITS, at[i].floor_ppm, at[i].limit_ppm) > at[i].share_ppm) {
            at[i].share_ppm++;
            sum++;
        }
    }
}
