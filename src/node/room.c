/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - bounds on what waits, in words. */
#include "node/room.h"

#include "base/units.h"

#include <stdlib.h>

enum { JOB_BYTES = 128 << 10, TENANT_BYTES = 128 << 20, KIB = 1 << 10, MIB = 1 << 20 };

struct bh_room bh_room_of(uint64_t waiting)
{
    return (struct bh_room){.waiting = waiting,
                            .tenant_waiting = waiting - waiting / 4,
                            .user_waiting = waiting / 4,
                            .job_bytes = JOB_BYTES,
                            .tenant_bytes = TENANT_BYTES};
}

struct bh_room bh_room_as_told(void)
{
    const char *text = getenv("BULKHEAD_WAITING_JOBS");
    uint64_t waiting = BH_ROOM_WAITING;
    if (text && bh_uint_parse(text, UINT32_MAX, &waiting, NULL) < 0)
        waiting = BH_ROOM_WAITING;
    return bh_room_of(waiting);
}

static int full(struct bh_err *err, const char *whose, uint64_t n, uint64_t most)
{
    return bh_fail(err, BH_QUOTA,
                   "%llu jobs %s wait already, and no more than %llu may; wait for some, or cancel them",
                   (unsigned long long)n, whose, (unsigned long long)most);
}

int bh_room_check(const struct bh_room *r, const struct bh_store_load *now, uint64_t bytes, bool is_operator,
                  struct bh_err *err)
{
    if (bytes > r->job_bytes)
        return bh_fail(
            err, BH_TOO_LARGE,
            "command and environment are %llu KiB, and no more than %llu KiB are kept for a job; put it "
            "into a file",
            (unsigned long long)(bytes / KIB), (unsigned long long)(r->job_bytes / KIB));
    if (!is_operator && now->user_waiting >= r->user_waiting)
        return full(err, "of yours", now->user_waiting, r->user_waiting);
    if (now->tenant_waiting >= r->tenant_waiting)
        return full(err, "of this tenant", now->tenant_waiting, r->tenant_waiting);
    if (now->waiting >= r->waiting) /* how many others have is not the caller's to know */
        return bh_fail(err, BH_QUOTA, "no more than %llu jobs may wait on this node, and so many do",
                       (unsigned long long)r->waiting);
    if (now->tenant_bytes + bytes > r->tenant_bytes)
        return bh_fail(
            err, BH_QUOTA,
            "commands and environments of this tenant's jobs take %llu MiB already, and no more than %llu "
            "MiB may; wait for some, or cancel them",
            (unsigned long long)(now->tenant_bytes / MIB), (unsigned long long)(r->tenant_bytes / MIB));
    return BH_OK;
}
