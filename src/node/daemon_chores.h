/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_chores.h - private to src/node. */
#ifndef BH_NODE_DAEMON_CHORES_H
#define BH_NODE_DAEMON_CHORES_H

#include "node/daemon.h"

enum { BH_DAEMON_ASKED_MS = 30000 /* who asked the API before that does not want to know any more */ };

/* Once a second: begins them, or goes on with those of the second before. */
void bh_daemon_chores_tick(struct bh_daemon *d);

#endif
