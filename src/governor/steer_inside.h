/* SPDX-License-Identifier: Apache-2.0 */
/* steer_inside.h - what the parts of steer know of each other. Not for anybody else. */
#ifndef BH_GOVERNOR_STEER_INSIDE_H
#define BH_GOVERNOR_STEER_INSIDE_H

#include "core/govern/govern_log.h"
#include "core/govern/pace.h"
#include "governor/line_file.h"
#include "governor/sense.h"
#include "governor/steer.h"

struct card {
    struct bh_govern *govern; /* NULL: nobody was ever here */
    struct bh_sense *sense;   /* NULL: nobody is here now */
    uint64_t last_ns, due_ns;
    struct bh_govern_in in;
    struct bh_govern_out out;
    struct bh_sense_got got[BH_GOVERN_TENANTS]; /* in the order of in */
    struct bh_tally_card tally;
    struct bh_pace pace;
    struct bh_line_file log;
};

struct orphan {
    uint32_t gpu, tries;
    struct bh_driver_channel name;
};

struct bh_steer {
    struct bh_steer_config config;
    struct bh_govern_config tuning;
    struct bh_steer_counts counts;
    struct card *cards[BH_STATE_GPUS]; /* NULL: nobody was ever here */
    BH_VEC(struct orphan) orphans;
    uint64_t orphans_due_ns;
    uint32_t orphans_failures;             /* in a row */
    uint64_t now_ns;                       /* of the last step */
    BH_VEC(struct bh_driver_channel) call; /* what is in one call to the driver */
    struct bh_tally tally;
    char line[BH_GOVERN_LINE_MAX];
};

/* Nobody has ordered that it is left out of the shares. */
static inline bool bh_steer_is_shared(const struct bh_governed *l)
{
    return l->hold == BH_HOLD_NONE || l->hold == BH_HOLD_AWAY;
}

static inline bool bh_steer_is_to_pause(const struct bh_governed *l, const struct bh_seat *seat)
{
    return l->hold == BH_HOLD_PAUSED || (bh_steer_is_shared(l) && seat->told.paused);
}

#endif
