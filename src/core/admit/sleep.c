/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleep.c - when an idle lease is moved to host memory.
 *
 * Only who agreed sleeps, only who can be suspended, and only while somebody wants what it has: moving costs, and an idle
 * lease that nobody waits for harms nobody. Who has just woken is left alone for a quarter of the agreed time, so that
 * one that is used now and then is not moved to and fro.
 */
#include "core/admit/admit.h"

enum {
    WOKEN_PARTS = 4,
    AWAKE_CPU_PERMIL =
        50,        /* of a processor: who uses more is at work. More is not to be had where many want one */
    LOOK_MS = 500, /* in less than that a single process that begins and ends looks like work */
};

enum bh_sleep bh_admit_sleep(const struct bh_admit_idle *i, uint64_t *ret_at_ms)
{
    uint64_t idle_at, woken_at = 0;
    if (!i->agreed_ms || !(i->can & BH_CAN_SUSPEND) || i->image_mib > i->host_free_mib)
        return BH_SLEEP_NOT;
    if (__builtin_add_overflow(i->active_ms, i->agreed_ms, &idle_at) ||
        __builtin_add_overflow(i->woken_ms, i->agreed_ms / WOKEN_PARTS, &woken_at))
        return BH_SLEEP_NOT;
    if (!i->woken_ms)
        woken_at = 0;
    const uint64_t at = idle_at > woken_at ? idle_at : woken_at;
    if (i->now_ms < at) {
        *ret_at_ms = at;
        return BH_SLEEP_LATER;
    }
    return i->wanted ? BH_SLEEP_NOW : BH_SLEEP_NOT;
}

/* Moving a lease takes time of its own processes, which is no work. */
enum bh_awake bh_admit_awake(const struct bh_admit_use *u)
{
    if (u->span_ms < LOOK_MS)
        return BH_AWAKE_UNTOLD;
    return !u->moved && u->cpu_ns / AWAKE_CPU_PERMIL / 1000 > u->span_ms ? BH_AWAKE_WORKS : BH_AWAKE_NOT;
}
