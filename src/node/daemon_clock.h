/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_clock.h - private to src/node. */
#ifndef BH_NODE_DAEMON_CLOCK_H
#define BH_NODE_DAEMON_CLOCK_H

#include "node/daemon.h"

/* Where something is live it goes on as the daemon before this one had it, of the same boot. */
int bh_daemon_clock_take_up(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
/* Has the time of day been set? And while nothing is charged it is followed. */
void bh_daemon_clock_tick(struct bh_daemon *d);

#endif
