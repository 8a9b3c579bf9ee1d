/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_totals.h - the books as running totals: what was added to them since somebody last looked, read by index.
 *
 * Verdicts and the history of leases are only ever added to, usage is closed once and never at a time before one that was seen:
 * so whoever keeps sums reads the whole books once, when it starts, and then only their tail. What is open is little
 * at any time, and read afresh. What was dropped is kept in sums, which whoever starts adds; it must have read the tail
 * before anything is dropped.
 *
 * Outside of a transaction alone: what is rolled back was never counted.
 */
#ifndef BH_STORE_STATE_TOTALS_H
#define BH_STORE_STATE_TOTALS_H

#include "store/state.h"
#include "store/state_slice.h"

/* How far the books were read: all steps and verdicts up to these ids, all usage that was closed before this time. */
struct bh_store_tail {
    uint64_t steps, scrubs, closed_ms;
};
/* How far they go. BH_BUSY inside a transaction. */
int bh_store_tail_now(struct bh_store *s, uint64_t now_ms, struct bh_store_tail *ret,
                      struct bh_err *err) BH_MUST_USE;

/* Between two of these: leases that were given what they asked for (and how long they had waited), or had to make room. */
struct bh_store_turn {
    uint64_t id; /* of the step */
    const char *tenant;
    bool evicted;
    uint64_t waited_ms; /* of one that was not evicted */
};
typedef BH_VEC(struct bh_store_turn) bh_store_turns;
int bh_store_tail_turns(struct bh_store *s, struct bh_arena *arena, const struct bh_store_tail *from,
                        const struct bh_store_tail *to, bh_store_turns *ret, struct bh_err *err) BH_MUST_USE;
/* Added to ret. */
int bh_store_tail_scrubs(struct bh_store *s, const struct bh_store_tail *from, const struct bh_store_tail *to,
                         uint64_t ret[BH_SLICE_KINDS][BH_SCRUB_VERDICTS], struct bh_err *err) BH_MUST_USE;

/* Dropped: so many waits of a tenant, none longer than upto_ms, or leases that had to make room. */
struct bh_store_gone_turn {
    const char *tenant;
    bool evicted;
    uint64_t upto_ms, n, waited_ms; /* waited: together */
};
typedef BH_VEC(struct bh_store_gone_turn) bh_store_gone_turns;
int bh_store_gone_turns_list(struct bh_store *s, struct bh_arena *arena, bh_store_gone_turns *ret,
                             struct bh_err *err) BH_MUST_USE;
/* Added to ret. */
int bh_store_gone_scrubs(struct bh_store *s, uint64_t ret[BH_SLICE_KINDS][BH_SCRUB_VERDICTS],
                         struct bh_err *err) BH_MUST_USE;

struct bh_store_used {
    const char *tenant;
    uint8_t mechanism; /* enum bh_mechanism */
    const char *gpu;
    const char *instance; /* the key of the instance of MIG, or of the one it is a share of; "": none */
    uint64_t milli_ms, mib_ms;
};
typedef BH_VEC(struct bh_store_used) bh_store_useds;
/* Closed in [from, to); added up by tenant, mechanism, card and instance. */
int bh_store_tail_used(struct bh_store *s, struct bh_arena *arena, uint64_t from_ms, uint64_t to_ms,
                       bh_store_useds *ret, struct bh_err *err) BH_MUST_USE;

int bh_store_gone_used(struct bh_store *s, struct bh_arena *arena, bh_store_useds *ret,
                       struct bh_err *err) BH_MUST_USE;

/* What is still open, up to now; and the time of the same lease's slice before that, which is in the closed sums already. */
struct bh_store_using {
    struct bh_store_used used;
    uint64_t lease, before_milli_ms;
};
typedef BH_VEC(struct bh_store_using) bh_store_usings;
int bh_store_usage_open(struct bh_store *s, struct bh_arena *arena, uint64_t now_ms, bh_store_usings *ret,
                        struct bh_err *err) BH_MUST_USE;

#endif
