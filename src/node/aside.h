/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aside.h - whoever reads is answered while the disk is waited for (store/beside.h).
 *
 * A commit, or the files of a keeper, may take as long as the disk likes, in the middle of anything. What is read
 * then comes from what was durable before and from the daemon's memory as it stands; nothing is begun, forgotten or
 * written (daemon.h: `aside`). Commands that come meanwhile are put off by the API until the loop turns again.
 */
#ifndef BH_NODE_ASIDE_H
#define BH_NODE_ASIDE_H

#include "node/daemon.h"

enum { BH_ASKED_MS = 30000 }; /* for so long after a question somebody wants to know */

/* The thread, for the store that is open. Where there is none all is as safe, and readers wait for the disk too. */
void bh_aside_start(struct bh_daemon *d);
/* Somebody asks: what the API goes by is of now. The daemon's time is returned. */
uint64_t bh_aside_asked(struct bh_daemon *d);

#endif
