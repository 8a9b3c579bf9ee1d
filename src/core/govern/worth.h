/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worth.h - how much work a second on the card does, by a tenant's own word (own.h): alone, and beside others.
 *
 * Time on the card is measured from outside, the work is what the tenant says. So a tenant that is given less time has the
 * same worth, and one whose turns do less (memory bandwidth, caches, clocks) has a smaller one. It is compared with
 * nobody's but its own.
 */
#ifndef BH_CORE_GOVERN_WORTH_H
#define BH_CORE_GOVERN_WORTH_H

#include <stdbool.h>
#include <stdint.h>

struct bh_worth { /* zeroed: nothing yet */
    uint64_t done, lines;
    uint64_t gpu_us; /* that it was done in */
};

/* What is older counts less: it fades by halves, each time that this much time on the card has come together. */
void bh_worth_add(struct bh_worth *w, uint64_t done, uint64_t lines, uint64_t gpu_us, uint64_t fade_us);
/* Enough to be compared: several words, and some time on the card. */
bool bh_worth_is_known(const struct bh_worth *w);
/* Thousandths of a unit for each second on the card. */
uint64_t bh_worth_milli(const struct bh_worth *w);
/* What a second on the card does beside others, of what it does alone; 1000: as much. 0: that cannot be told. */
uint32_t bh_worth_permille(uint64_t alone_milli, uint64_t beside_milli);

#endif
