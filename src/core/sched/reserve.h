/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - a place in the future for a gang that finds none now, and who may use it until then.
 *
 * A large gang never finds its room where small jobs take whatever becomes free. So the first few that are blocked
 * get a *shadow start*: from the known (or assumed) ends of what runs, the earliest time at which the whole gang
 * fits, and the fabric domain where it does. Work that comes later in the order of service still runs there
 * if it will have ended by then, or if the gang fits beside it; otherwise it waits (the scheduler's veto). A gang is
 * protected from the cycle on that follows the one which found it blocked.
 *
 * The upper half are pure functions of a shelf and of ends. What a node has left at a time is exact for whole GPUs, shares,
 * processors, memory and trust. Two things are not, and err to the later: instances count one for each GPU that is
 * wholly idle by then, and several roles are laid out node by node without going back. Roles in slices are counted each
 * by itself.
 */
#ifndef BH_CORE_SCHED_RESERVE_H
#define BH_CORE_SCHED_RESERVE_H

#include "core/sched/sched.h"

#define BH_NEVER_MS UINT64_MAX

/* ---- when and where ---- */

struct bh_shadow {
    uint64_t start_ms;
    uint32_t domain; /* BH_NONE: anywhere */
};

/*
 * How many more of a class the node has room for at this time. end_ms: by hold, BH_NEVER_MS where not known; NULL: on an
 * empty fleet.
 */
uint32_t bh_shadow_room(const struct bh_shelf *s, const uint64_t *end_ms, uint32_t class_, uint32_t node,
                        uint64_t at_ms);
/* Will the least of the gang fit below the domain then? BH_NONE: anywhere. */
bool bh_shadow_fits(const struct bh_shelf *s, const uint64_t *end_ms, const struct bh_shape *shape,
                    uint32_t domain, uint64_t at_ms);
/*
 * The earliest of the times (ascending) at which it fits, and of the domains that have it then the one with the smallest
 * id. False: at none of them.
 */
bool bh_shadow_find(const struct bh_shelf *s, const uint64_t *end_ms, const uint64_t *times, size_t n_times,
                    const struct bh_shape *shape, struct bh_shadow *ret);

/* ---- reservations of one scheduler ---- */

struct bh_reserve_config {
    uint32_t most;       /* reservations at once; each is found as if there were no other */
    uint64_t assumed_ms; /* how long work runs that does not say; 0: it never ends, and nobody counts on it */
};

struct bh_reservation {
    uint64_t job; /* the first of its line; the next one inherits it */
    uint32_t line;
    struct bh_shadow shadow;
};

struct bh_reserve;
struct bh_reserve *bh_reserve_new(const struct bh_reserve_config *c);
void bh_reserve_free(struct bh_reserve *r);
/* Before each cycle, when the tick is settled: who is blocked, and until when. The one place that allocates. */
void bh_reserve_refresh(struct bh_reserve *r, const struct bh_sched *s, uint64_t now_ms);
bool bh_reserve_veto(void *reserve, const struct bh_sched *s, const struct bh_gang *g,
                     const struct bh_place *places, uint32_t n, uint64_t now_ms); /* bh_sched_set_veto() */
const struct bh_reservation *bh_reserve_list(const struct bh_reserve *r, size_t *ret_n);
/* For whom its line was held back in the last cycle; NULL: for nobody. */
const struct bh_reservation *bh_reserve_before(const struct bh_reserve *r, uint32_t line);

#endif
