/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair.h - who gets how much of one card: max-min fair by weight, between a floor and a limit.
 *
 * Everybody's share is weight times one water level, raised to its floor and cut at its limit (what it can
 * use, or its cap). The level is as high as the card allows, so nobody can get more without somebody poorer
 * getting less.
 */
#ifndef BH_CORE_GOVERN_FAIR_H
#define BH_CORE_GOVERN_FAIR_H

#include <stddef.h>
#include <stdint.h>

#define BH_FAIR_WHOLE      1000000u /* the whole card, in parts per million */
#define BH_FAIR_WEIGHT_MAX 10000u

struct bh_fair {
    uint32_t weight; /* 1 to BH_FAIR_WEIGHT_MAX */
    /* A floor above the limit counts as the limit; floors that do not fit are cut in proportion. */
    uint32_t floor_ppm;
    uint32_t limit_ppm;
    uint32_t share_ppm; /* the answer */
};

/* Shares sum to the whole card, or to all limits when those are less. */
void bh_fair_divide(struct bh_fair *at, size_t n);

#endif
