/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - when to look at a card again, from what the last step took in and said.
 *
 * A look costs processor time: the driver's records are fetched, and of tenants that synchronize often there are thousands. Where
 * turns are taken somebody waits for the next look. By slices alone nobody does: slices hold by themselves, and what a look may find
 * is that somebody came, went, began or ceased to work, or that a share is off. After each of the first the looks are close together for
 * a second. An error is corrected as often by the slow pace as by the quick one: feedback needs an eighth of a second at least
 * (slices.c), so that of looks each tenth every second one was for nothing. So it is where pauses may be made but slices do: with many
 * that all have about their share it is looked seldom; who begins to give up its slices waits for some such looks.
 *
 * Pure. The time that passed is an input of the controller, so a log that is played back needs nothing of this.
 */
#ifndef BH_CORE_GOVERN_PACE_H
#define BH_CORE_GOVERN_PACE_H

#include "core/govern/govern.h"

#include <stdbool.h>

enum {
    BH_PACE_STEP_US = 5000,         /* while something competes */
    BH_PACE_EVEN_US = 40000,        /* by slices, when they have been right for a while */
    BH_PACE_CALM_US = 50000,        /* to see that something begins to */
    BH_PACE_ALONE_US = 100000,      /* by slices alone, where somebody came, went, began or ceased to work */
    BH_PACE_ALONE_EVEN_US = 250000, /* by slices alone, when that is a second ago */
    BH_PACE_MANY_EVEN_US = 125000,  /* by slices, more than a few: as often as they are corrected */
    BH_PACE_STIRRED_US = 1000000,
};

struct bh_pace {
    uint64_t crowd;     /* who was there and worked */
    uint32_t even_us;   /* for so long, up to BH_PACE_STIRRED_US */
    bool begun, seldom; /* seldom: by slices alone, and at least two compete */
};

/* After each step, with what it took in and said: how long until the next. */
uint32_t bh_pace_us(struct bh_pace *p, bool slices_only, const struct bh_govern_in *in,
                    const struct bh_govern_out *out);

#endif
