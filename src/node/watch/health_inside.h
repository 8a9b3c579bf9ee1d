/* SPDX-License-Identifier: Apache-2.0 */
/* health_inside.h - what the files of health share. */
#ifndef BH_NODE_WATCH_HEALTH_INSIDE_H
#define BH_NODE_WATCH_HEALTH_INSIDE_H

#include "node/daemon.h"

/* Something that is to be judged at the next tick, whoever saw it. */
void bh_health_add(struct bh_daemon *d, const struct bh_vigil_word *w);

#endif
