/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience.h - whether to ask once more, where a governor ended before it answered.
 *
 * Whoever misses a governor has the socket of another made at once, and leases join that one in their own time. So an order that may
 * be repeated is repeated meanwhile, and is not told that nothing is governed or that there is no such lease.
 */
#ifndef BH_LAUNCH_PATIENCE_H
#define BH_LAUNCH_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { BH_PATIENCE_FOLLOWED_MS = 1000 }; /* for somebody to listen again */

struct bh_patience {
    int64_t until_ms;    /* for the answer, by bh_warden_now_ms() */
    int64_t followed_ms; /* 0: somebody listens; else by then somebody has to */
    bool brief; /* it has others to hear: one that ended is asked for once more, and nobody is waited for */
    bool lost;  /* one ended that was talked to */
    bool anew;  /* another one takes its place, or that of one that was killed before */
    bool young; /* who answers began a moment ago: leases of one before it may not have joined it yet */
};

struct bh_patience bh_patience_of(int ms);
/* After an answer of that code, or none: BH_BUSY where the governor ended, BH_NOT_FOUND where nobody listens. socket_left: a path
 * where nobody listens is there all the same; only one that was killed leaves it. Naps before it says yes. */
bool bh_patience_again(struct bh_patience *p, int rc, bool answered, bool socket_left);

#endif
