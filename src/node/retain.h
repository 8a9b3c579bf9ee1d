/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain.h - what ended jobs leave behind, and how long it stays: their output, their folders, their commands and environments.
 *
 * All of it lies on the disk that the store needs. It goes when it is old, and the oldest of a tenant goes when the tenant's
 * comes to more than it may, whoever else still has room. Files are removed by a worker, then it is recorded.
 */
#ifndef BH_NODE_RETAIN_H
#define BH_NODE_RETAIN_H

#include "node/daemon.h"

#define BH_RETAIN_MS    (UINT64_C(7) * 24 * 3600 * 1000)
#define BH_RETAIN_BYTES (UINT64_C(1) << 30) /* of a tenant */

/* Now and then. */
void bh_retain_tick(struct bh_daemon *d);
void bh_retain_fini(struct bh_daemon *d);

#endif
