/* SPDX-License-Identifier: Apache-2.0 */
/* part.c - slices as parts of their card, and what is left between them. */
#include "core/ledger/part.h"

#include "base/str.h"
#include "core/sched/mig.h"

#include <string.h>

uint32_t bh_ledger_card_milli(const char *model, const char *instance, uint32_t milli)
{
    static const char prefix[] = "mig:";
    const char *name = bh_str_starts(instance, prefix) ? instance + sizeof(prefix) - 1 : instance;
    const size_t n = strcspn(name, "@");
    char profile[32];
    if (n == 0 || n >= sizeof(profile))
        return milli;
    memcpy(profile, name, n);
    profile[n] = '\0';
    const struct bh_gpu_model *m = bh_catalog_find(model);
    const struct bh_mig_profile *p = m ? bh_mig_find(m, profile) : NULL;
    return p ? bh_mig_milli(m, (uint32_t)(p - m->profiles)) * milli / BH_GPU_MILLI : milli;
}

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
