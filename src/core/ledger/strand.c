/* SPDX-License-Identifier: Apache-2.0 */
/* strand.c - what is left between the slices of a card. */
#include "core/ledger/strand.h"

#include "core/sched/request.h"

void bh_strand_step(struct bh_strand *s, uint64_t at_ms, int64_t milli, int64_t mib)
{
    const uint64_t ms = at_ms > s->at_ms ? at_ms - s->at_ms : 0;
    const int64_t left_milli = BH_GPU_MILLI - s->milli, left_mib = (int64_t)s->card_mib - s->mib;
    if (s->milli > 0 || s->mib > 0) {
        if (left_milli > 0 && left_mib * BH_STRAND_PART < s->card_mib)
            s->milli_ms += (bh_u128)(uint64_t)left_milli * ms;
        if (left_mib > 0 && left_milli * BH_STRAND_PART < BH_GPU_MILLI)
            s->mib_ms += (bh_u128)(uint64_t)left_mib * ms;
    }
    s->at_ms = at_ms;
    s->milli += milli;
    s->mib += mib;
}
