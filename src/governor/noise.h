/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise.h - who slows whom on one card, judged from outside: what the tallies (tally.h) and the card's counters show together.
 *
 * A tenant may tell how much it does (core/govern/own.h). Then it is compared with itself: what a second on the card does beside
 * others, and what it did alone (core/govern/worth.h). That is its own word, and said as such. Of one that tells nothing, what
 * can be seen stands for it: time on the card, against the time that is its own, and how
 * long its turns take where they end because its work does. A turn that takes longer than the same tenant's turns otherwise
 * do is taken for work that is slowed, if somebody is there whenever that happens; else it may as well be more work, and
 * nothing is claimed. Time that others have because it is theirs slows nobody beyond what was promised; who has it is said all
 * the same, with what it uses meanwhile. How long a tenant waits for its turns cannot be seen: nobody tells when it began to
 * want one.
 */
#ifndef BH_GOVERNOR_NOISE_H
#define BH_GOVERNOR_NOISE_H

#include "base/buf.h"
#include "governor/tally.h"
#include "gpu/pressure.h"

/* What the counters said at the end of an interval. */
struct bh_noise_look {
    struct bh_pressure_sample sample;
    uint64_t link_kbps; /* 0: not known */
    uint32_t limit_mw;  /* of what the card may draw; 0: not known */
    char why[160];      /* "", or why something is missing */
};
/* Nothing could be had. */
void bh_noise_look_none(struct bh_noise_look *ret, const char *why);

struct bh_noise;
struct bh_noise *bh_noise_new(void);
void bh_noise_free(struct bh_noise *n);
void bh_noise_add(struct bh_noise *n, const struct bh_tally *t, const struct bh_noise_look *look);
/* What a lease uses while it holds the card, by enum bh_culprit_resource. */
struct bh_noise_uses {
    uint64_t lease;
    uint32_t
        permille[BH_CULPRIT_RESOURCES]; /* BH_CULPRIT_UNKNOWN: no counter, or not told apart from others' */
};
/* Judges what was added so far. ret: of those that are there, at most BH_TALLY_LEASES; how many. */
uint32_t bh_noise_judge(struct bh_noise *n, struct bh_noise_uses *ret);
/* What was judged last: the lines of the report (core/govern/culprit.h), and one on counters that are missing. */
void bh_noise_report(struct bh_noise *n, struct bh_buf *out);

#endif
