/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/worth.h"

enum { WORDS = 10, ENOUGH_US = 500000, WHOLE = 1000, MOST = 10000 };
#define SECOND UINT64_C(1000000000) /* in thousandths of microseconds */

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void bh_worth_add(struct bh_worth *w, uint64_t done, uint64_t lines, uint64_t gpu_us, uint64_t fade_us)
{
    w->done = sum(w->done, done);
    w->lines = sum(w->lines, lines);
    w->gpu_us = sum(w->gpu_us, gpu_us);
    if (w->gpu_us <= fade_us)
        return;
    w->done /= 2;
    w->lines /= 2;
    w->gpu_us /= 2;
}

bool bh_worth_is_known(const struct bh_worth *w)
{
    return w->lines >= WORDS && w->gpu_us >= ENOUGH_US;
}

uint64_t bh_worth_milli(const struct bh_worth *w)
{
    if (!w->gpu_us)
        return 0;
    if (w->done <= UINT64_MAX / SECOND)
        return w->done * SECOND / w->gpu_us;
    const uint64_t each = w->done / w->gpu_us;
    return each > UINT64_MAX / SECOND ? UINT64_MAX : each * SECOND;
}

uint32_t bh_worth_permille(uint64_t alone_milli, uint64_t beside_milli)
{
    uint64_t permille;
    if (!alone_milli)
        return 0;
    if (beside_milli <= UINT64_MAX / WHOLE)
        permille = beside_milli * WHOLE / alone_milli;
    else
        permille = alone_milli >= WHOLE ? beside_milli / (alone_milli / WHOLE) : MOST;
    return permille > MOST ? MOST : permille ? (uint32_t)permille : 1;
}
