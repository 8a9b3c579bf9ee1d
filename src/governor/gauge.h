/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge.h - the governor's second thread: asks for a card's counters and judges who slows whom (noise.h).
 *
 * The vendor's library may take milliseconds, or never come back, and judging many leases takes long as well. None of that
 * may keep whoever is paused from its turn, so the loop only leaves an interval here and picks up lines, and never waits for that
 * either: a thread that holds the lock may itself wait for a processor. The thread begins with the first interval; the
 * library is not loaded before.
 */
#ifndef BH_GOVERNOR_GAUGE_H
#define BH_GOVERNOR_GAUGE_H

#include "governor/noise.h"

/* Where counters come from. */
struct bh_gauge_source {
    int (*open)(void *arg, uint32_t gpu, void **ret, struct bh_err *err);
    void (*look)(void *card, struct bh_noise_look *ret);
    void (*close)(void *card);
    void *arg;
    bool at_once; /* for tests: there is no thread, and bh_gauge_post() does it all */
};
/* The vendor's library: gpu/pressure.h. */
extern const struct bh_gauge_source bh_gauge_driver;

struct bh_gauge;
struct bh_gauge *bh_gauge_new(const struct bh_gauge_source *source);
/* A thread that does not come back from the library is left behind, and said so: false. */
bool bh_gauge_free(struct bh_gauge *g);
/* An interval of that card is over. Where the last one is still being looked at, this one is in its place. */
void bh_gauge_post(struct bh_gauge *g, uint32_t gpu, const struct bh_tally *t);
/* What that lease uses while it holds the card, as it was judged last: permille by enum bh_culprit_resource, else
 * BH_CULPRIT_UNKNOWN. */
void bh_gauge_uses(struct bh_gauge *g, uint32_t gpu, uint64_t now_ns, uint64_t lease,
                   uint32_t ret[BH_CULPRIT_RESOURCES]);
/* What was judged last, line by line, with its age where that is seconds; nothing where it is long ago. */
void bh_gauge_report(struct bh_gauge *g, uint32_t gpu, uint64_t now_ns, struct bh_buf *out);
/* For tests: the thread has the lock, and keeps it. */
void bh_gauge_hold_lock(struct bh_gauge *g, bool held);

#endif
