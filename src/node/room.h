/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h - how much may wait on a node. Every job that waits is durable and lies in the daemon's memory, so that one user who submits
 * in a loop would fill the disk of all and slow each decision down.
 */
#ifndef BH_NODE_ROOM_H
#define BH_NODE_ROOM_H

#include "base/err.h"
#include "store/state_room.h"

#include <stdbool.h>

struct bh_room {
    uint64_t waiting, tenant_waiting, user_waiting; /* jobs: in all, of a tenant, of one user of it */
    uint64_t job_bytes,
        tenant_bytes; /* of command and environment: of a job, of a tenant's that have not ended */
};
enum { BH_ROOM_WAITING = 20000 };

/* So many in all; three quarters of that of one tenant, one quarter of one user. */
struct bh_room bh_room_of(uint64_t waiting);
/* BULKHEAD_WAITING_JOBS of the environment, where it is a number. */
struct bh_room bh_room_as_told(void);
/* May a job with so many bytes be added to what there is? An operator acts for others: no bound of one user holds him. */
int bh_room_check(const struct bh_room *r, const struct bh_store_load *now, uint64_t bytes, bool is_operator,
                  struct bh_err *err) BH_MUST_USE;

#endif
