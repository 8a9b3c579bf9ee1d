/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - how long a decision took; never an input to one. */
#ifndef BH_REPLAY_CLOCK_H
#define BH_REPLAY_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline uint64_t bh_clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline int bh_by_value_(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static inline void bh_sort_values(uint64_t *at, size_t n)
{
    if (n)
        qsort(at, n, sizeof(*at), bh_by_value_);
}

/* Of values in ascending order: the smallest that at least so many per cent of them do not pass. 0 when there are none. */
static inline uint64_t bh_percentile(const uint64_t *at, size_t n, unsigned percent)
{
    return n ? at[(n * percent + 99) / 100 - 1] : 0;
}

#endif
