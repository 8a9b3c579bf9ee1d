/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - how much of a card a slice is, and how much of a card nobody can use beside the slices that are given away.
 *
 * What a lease has is written down as thousandths of its slice: all of an instance of MIG is 1000. On a bill an instance is
 * the part of the card's compute that it is, as the scheduler counts it: of seven parts one is 142 thousandths, rounded
 * down, to the tenant's favour.
 *
 * Stranded is what is left of one resource of a card while none is left of the other: compute beside memory that is all
 * given away, or memory beside compute that is. None left means less than a sixteenth: no instance and hardly any share is
 * that small. A card of which nothing is given away is idle, not stranded.
 */
#ifndef BH_CORE_LEDGER_PART_H
#define BH_CORE_LEDGER_PART_H

#include "core/sched/wide.h"

#include <stdint.h>

enum { BH_STRAND_PART = 16 };

/* model: of the card; instance: the key of an instance, `mig:1g.10gb@0`, "" for none. What is not known counts as it is. */
uint32_t bh_ledger_card_milli(const char *model, const char *instance, uint32_t milli);

/* One card through time. */
struct bh_strand {
    uint32_t card_mib; /* its memory: set before the first step */
    uint64_t at_ms;    /* of the last step */
    int64_t milli, mib;
    bh_u128 milli_ms, mib_ms; /* stranded */
};
/* At that time so much more (or less) is given away; times do not fall. */
void bh_strand_step(struct bh_strand *s, uint64_t at_ms, int64_t milli, int64_t mib);

#endif
