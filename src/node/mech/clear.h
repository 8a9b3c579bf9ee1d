/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clear.h - from the end of the work to slices that somebody else may have: nobody is left, nothing is left, that is written.
 */
#ifndef BH_NODE_MECH_CLEAR_H
#define BH_NODE_MECH_CLEAR_H

#include "node/life.h"

/* Of a lease that is draining, failed or scrubbing: the next thing that is to be done. */
void bh_clear_begin(struct bh_daemon *d, struct bh_life *run);
/* Of one that waits for something to happen: it has to leave, and its keeper does not know that, or takes too long. */
bool bh_clear_is_late(struct bh_daemon *d, const struct bh_life *run);
/* Of one that was given nothing: it and its job are over. The first in the caller's transaction, the second when that is
 * committed; or both. */
int bh_clear_write_refuse(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause,
                          enum bh_job_end how, const char *why, struct bh_err *err) BH_MUST_USE;
void bh_clear_refused(struct bh_daemon *d, struct bh_life *run);
void bh_clear_refuse(struct bh_daemon *d, struct bh_life *run, const char *why);
/* A person wants what is quarantined of the card looked at again. *ret_n: so many slices are. In the caller's transaction;
 * the next tick goes on. */
int bh_clear_write_retry(struct bh_daemon *d, const char *gpu, uint32_t *ret_n,
                         struct bh_err *err) BH_MUST_USE;

#endif
