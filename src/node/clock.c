/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the time since boot, and how far it is from the time of day. */
#include "node/clock.h"

#include <time.h>

enum { STABLE_MS = 60000, STEP_MS = 1000 };

static uint64_t ms_of(clockid_t which)
{
    struct timespec t;
    (void)clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct bh_clock_reading bh_clock_read(void)
{
    return (struct bh_clock_reading){.wall_ms = ms_of(CLOCK_REALTIME), .boot_ms = ms_of(CLOCK_BOOTTIME)};
}

static int64_t offset_of(uint64_t at_ms, uint64_t boot_ms)
{
    return (int64_t)at_ms - (int64_t)boot_ms;
}

uint64_t bh_clock_now(struct bh_clock *c, struct bh_clock_reading r, uint64_t least_ms)
{
    if (!c->set)
        c->offset_ms = offset_of(r.wall_ms, r.boot_ms);
    if ((int64_t)r.boot_ms + c->offset_ms < (int64_t)least_ms)
        c->offset_ms = offset_of(least_ms, r.boot_ms);
    if (!c->set)
        c->apart_ms = offset_of(r.wall_ms, r.boot_ms) - c->offset_ms;
    c->set = true;
    return (uint64_t)((int64_t)r.boot_ms + c->offset_ms);
}

void bh_clock_resume(struct bh_clock *c, uint64_t boot_ms, uint64_t at_ms)
{
    c->offset_ms = offset_of(at_ms, boot_ms);
    c->set = true;
}

bool bh_clock_step(struct bh_clock *c, struct bh_clock_reading r, int64_t *ret_ms)
{
    const int64_t apart = offset_of(r.wall_ms, r.boot_ms) - c->offset_ms;
    *ret_ms = apart - c->apart_ms;
    if (*ret_ms > -STEP_MS && *ret_ms < STEP_MS)
        return false;
    c->apart_ms = apart;
    return true;
}

bool bh_clock_follow(struct bh_clock *c, struct bh_clock_reading r, bool charged)
{
    const int64_t offset = offset_of(r.wall_ms, r.boot_ms);
    if (charged || offset < c->offset_ms + STEP_MS) {
        c->since_ms = 0;
        return false;
    }
    if (!c->since_ms)
        c->since_ms = r.boot_ms;
    if (r.boot_ms - c->since_ms < STABLE_MS)
        return false;
    c->offset_ms = offset;
    c->apart_ms = 0;
    c->since_ms = 0;
    return true;
}
