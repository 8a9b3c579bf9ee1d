/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/start.h"

/* Of version 4. Nothing follows the message, whatever its flags say; and memory could be made known to other devices by everybody:
 * one that runs may have done so, and is not to fail in the middle over an upgrade. */
static void take_4(struct bh_lease_start *start)
{
    start->flags &= ~(uint32_t)BH_LEASE_HAS_PROBE;
    if (start->adopted)
        start->flags |= BH_LEASE_RDMA;
}

int bh_start_take(struct bh_lease_start *start, struct bh_err *err)
{
    if (start->version < BH_LEASE_OLDEST || start->version > BH_LEASE_VERSION)
        return bh_fail(err, BH_CONFLICT,
                       "the warden speaks version %d, the launcher %u; install both from one package",
                       BH_LEASE_VERSION, start->version);
    if (start->version < 5)
        take_4(start);
    start->version = BH_LEASE_VERSION;
    return BH_OK;
}
