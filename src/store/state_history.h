/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_history.h - what is long over, dropped where the policy says so.
 *
 * A job goes with its leases, what these were given, used and left, and how they came where they were; never a part of it.
 * Nothing of it can be deleted in any other way: the schema asks for a permit, which this puts in and takes out.
 */
#ifndef BH_STORE_STATE_HISTORY_H
#define BH_STORE_STATE_HISTORY_H

#include "store/state.h"

struct bh_store_dropped {
    uint64_t jobs, leases, usages;
    BH_VEC(uint64_t) lease_ids; /* the caller's to free (bh_vec_fini) */
};

/*
 * In the caller's transaction, in which the audit log is told too: at most `most` jobs that ended before the instant (ms since
 * 1970) and whose leases were all over before it. *ret: what went.
 */
int bh_store_history_drop(struct bh_store *s, uint64_t before_ms, uint32_t most, struct bh_store_dropped *ret,
                          struct bh_err *err) BH_MUST_USE;
/* From when on all that was used is still there: what was dropped was over before that. 0: nothing was ever dropped. */
int bh_store_history_whole_from(struct bh_store *s, uint64_t *ret_ms, struct bh_err *err) BH_MUST_USE;

#endif
