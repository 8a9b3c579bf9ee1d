/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strand.h - how much of a card nobody can use beside the slices that are given away.
 *
 * Stranded is what is left of one resource of a card while none is left of the other: compute beside memory that is all
 * given away, or memory beside compute that is. None left means less than a sixteenth: no instance and hardly any share is
 * that small. A card of which nothing is given away is idle, not stranded.
 */
#ifndef BH_CORE_LEDGER_STRAND_H
#define BH_CORE_LEDGER_STRAND_H

#include "core/sched/wide.h"

#include <stdint.h>

enum { BH_STRAND_PART = 16 };

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
