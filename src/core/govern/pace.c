/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/pace.h"

#include <stddef.h>

static bool is_capped(const struct bh_govern_in *in)
{
    for (uint32_t i = 0; i < in->n; i++)
        if (in->at[i].cap_permille)
            return true;
    return false;
}

/* Each look asks the driver for what every one of them did. */
static bool many_compete(const struct bh_govern_out *out)
{
    uint32_t compete = 0;
    for (uint32_t i = 0; i < out->n; i++)
        compete += out->at[i].active && !out->at[i].light;
    return compete > BH_GOVERN_FEW;
}

/* Not what was corrected: that is no reason to look sooner. */
static uint64_t digest(const struct bh_govern_out *out)
{
    uint64_t d = UINT64_C(0xcbf29ce484222325) ^ out->mode;
    for (uint32_t i = 0; i < out->n; i++) {
        const struct bh_govern_told *t = &out->at[i];
        const uint64_t now[] = {t->id, (uint64_t)t->active << 1 | (uint64_t)t->light};
        for (size_t k = 0; k < sizeof(now) / sizeof(now[0]); k++)
            d = (d ^ now[k]) * UINT64_C(0x100000001b3);
    }
    return d;
}

static void watch(struct bh_pace *p, uint32_t elapsed_us, const struct bh_govern_out *out)
{
    const uint64_t crowd = digest(out);
    const uint32_t left = BH_PACE_STIRRED_US - p->even_us;
    if (!p->begun || crowd != p->crowd)
        p->even_us = 0;
    else
        p->even_us += elapsed_us < left ? elapsed_us : left;
    p->begun = true;
    p->crowd = crowd;
}

uint32_t bh_pace_us(struct bh_pace *p, bool slices_only, const struct bh_govern_in *in,
                    const struct bh_govern_out *out)
{
    watch(p, in->elapsed_us, out);
    p->seldom = slices_only && out->mode == BH_GOVERN_SLICES;
    if (out->mode == BH_GOVERN_FREE && !is_capped(in))
        return BH_PACE_CALM_US;
    if (slices_only)
        return p->even_us < BH_PACE_STIRRED_US ? BH_PACE_ALONE_US : BH_PACE_ALONE_EVEN_US;
    if (!out->settled)
        return BH_PACE_STEP_US;
    return out->mode == BH_GOVERN_SLICES && many_compete(out) ? BH_PACE_MANY_EVEN_US : BH_PACE_EVEN_US;
}
