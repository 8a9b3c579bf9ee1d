/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canary.h - the test of the driver that sharing rests on: what a process freed, the next one does not see.
 *
 * All of a card once for each driver and each boot of the machine; and shortly every card of which shares are given. A database that
 * comes from another machine, or another card in the slot, is believed in nothing.
 */
#ifndef BH_NODE_WATCH_CANARY_H
#define BH_NODE_WATCH_CANARY_H

#include "node/daemon.h"

/* At the start, before a policy is read: was this driver seen to clear what it frees? *ret_shares: sharing is allowed at all. */
int bh_canary_driver(struct bh_daemon *d, bool *ret_shares, struct bh_err *err) BH_MUST_USE;
/* When the policy is in force and leases are loaded: each card that is shared and that nobody has anything of. One that fails is
 * nobody's to have until a person says so. */
void bh_canary_cards(struct bh_daemon *d);
/* Which boot of this machine it is; "unknown". */
void bh_canary_boot(char ret[64]);

#endif
