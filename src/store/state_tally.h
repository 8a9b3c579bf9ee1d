/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_tally.h - what everybody had so far, without adding up all of the past each time.
 *
 * Intervals that were closed do not change: each is added once, and a question costs as much as there is open and was closed since
 * the one before. The answer is that of bh_store_usage_sum() by tenant, from the beginning to now (state_tally_test.c).
 *
 * For one process that alone writes to the store, by a clock that does not go back while it runs: nothing is closed at a time before
 * one that was asked for. Whatever is dropped of the books makes it begin anew.
 */
#ifndef BH_STORE_STATE_TALLY_H
#define BH_STORE_STATE_TALLY_H

#include "store/state_usage.h"

struct bh_store_tally {
    struct bh_arena arena;
    bh_store_usage_sums sums; /* of what was closed before closed_ms; names are in the arena */
    uint64_t closed_ms;       /* 0: nothing is added up yet */
    uint64_t steps;           /* of leases that were looked at for those that had to make room */
    uint64_t drops;           /* from the books, when it began */
};

/* A zeroed one has nothing added up. */
void bh_store_tally_fini(struct bh_store_tally *t);
/* Added to ret, in the order of bh_store_usage_sum(). now_ms: not 0. */
int bh_store_tally_sum(struct bh_store *s, struct bh_arena *arena, struct bh_store_tally *t, uint64_t now_ms,
                       bh_store_usage_sums *ret, struct bh_err *err) BH_MUST_USE;

#endif
