/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - who is on the cards of the policy's pools, held against the leases, whenever the driver was asked.
 *
 * A process that belongs to no lease of the card it is on is written down, spoken of by doctor, and stopped at the next look,
 * where that is ours to do (who.h). What is not ours to stop keeps the card from everybody. A lease that has more memory than its
 * share by the driver's own count, whatever its gate or its server let through, ends as failed.
 */
#ifndef BH_NODE_WATCH_WATCHDOG_H
#define BH_NODE_WATCH_WATCHDOG_H

#include "base/mem.h"
#include "gpu/gpu.h"
#include "node/who.h"

struct bh_daemon;

/* One that has no business on a card. */
struct bh_stranger {
    uint32_t pid;
    uint64_t bytes;
    struct bh_who who;
    char gpu[96];
    char card[16]; /* `GPU 3` */
    bool here;     /* at the look that goes on */
    bool stopped;
    bool told; /* it is not ours to stop: written down, and its card is nobody's */
};

/* What a lease has of a card by the driver's count. */
struct bh_watch_use {
    uint64_t lease, bytes;
    uint32_t processes;
    char gpu[96];
};
/* More than so much memory of the card is more than its share with all that the driver adds to it. */
uint64_t bh_watch_most(uint64_t share_bytes, uint32_t processes);

struct bh_watch {
    BH_VEC(struct bh_stranger) strangers;
    BH_VEC(struct bh_watch_use) uses;
    BH_VEC(uint64_t) over; /* leases that had too much at the last look */
    uint64_t began;        /* of this very process, as in bh_who; 0: not read yet */
    bool reachable;
};

/* What the driver said just now, or when the daemon started. */
void bh_watch_looked(struct bh_daemon *d, const struct bh_gpu_snapshot *seen);
/* How many ticks may pass between two looks at who is on the cards, and at all of them. */
unsigned bh_watch_ticks(const struct bh_daemon *d, bool idle);
unsigned bh_watch_ticks_deep(bool idle);
void bh_watch_fini(struct bh_watch *w);

#endif
