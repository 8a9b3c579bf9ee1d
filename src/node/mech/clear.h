/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clear.h - from the end of the work to slices that somebody else may have: nobody is left, nothing is left, that is written.
 *
 * And the steps that life.c shares with it.
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

/* A transaction of its own, whatever waited for its commit before. */
int bh_life_begin(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
/* rc of what was done inside: committed, or undone. */
int bh_life_end(struct bh_daemon *d, int rc, struct bh_err *err) BH_MUST_USE;
/* Its keeper's end is waited for. */
void bh_life_watch(struct bh_daemon *d, struct bh_life *run, int pidfd);

/* What its keeper does cannot be known now. That decides nothing: it is asked again. */
void bh_life_doubt(struct bh_daemon *d, struct bh_life *run, const struct bh_err *why);

int bh_life_write(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause,
                  enum bh_audit_kind event, const char *why, struct bh_err *err) BH_MUST_USE;
bool bh_life_step(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause,
                  enum bh_audit_kind event, const char *why);
/* What is to become of the job is written with the step: a restart must know. */
int bh_life_write_after(struct bh_daemon *d, struct bh_life *run, enum bh_after after,
                        struct bh_err *err) BH_MUST_USE;
int bh_life_write_leave(struct bh_daemon *d, struct bh_life *run, enum bh_after after,
                        enum bh_lease_cause cause, enum bh_audit_kind event, const char *why,
                        struct bh_err *err) BH_MUST_USE;
bool bh_life_leave(struct bh_daemon *d, struct bh_life *run, enum bh_after after, enum bh_lease_cause cause,
                   const char *why);
void bh_life_forget(struct bh_daemon *d, struct bh_life *run);

#endif
