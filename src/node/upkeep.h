/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upkeep.h - what the books need now and then: what the policy in force says of the audit log, and the way back from a backup.
 *
 * Nothing goes silently: what is dropped is counted in a record of its own, and a restore is in the log that it brought back.
 */
#ifndef BH_NODE_UPKEEP_H
#define BH_NODE_UPKEEP_H

#include "node/daemon.h"

/* A policy is in force: which classes of events are recorded. */
void bh_upkeep_policy(struct bh_daemon *d);
/* Every tick; does something once an hour, and soon after a start. */
void bh_upkeep_tick(struct bh_daemon *d);

/*
 * Puts a backup in the place of the state, when it and its audit log hold and nobody uses the state: no daemon, and no work that it would
 * know nothing of. BH_BUSY; BH_REFUSED: the backup, its log or its key is not what it should be. Nothing was changed then.
 */
int bh_upkeep_restore(const struct bh_daemon_options *o, const char *from, struct bh_err *err) BH_MUST_USE;

#endif
