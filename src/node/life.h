/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.h - one lease from state to state: what is written first, what is done to the machine then, what is written after.
 *
 *   admitted    waits for the scheduler
 *   preparing   slices are its own; the keeper's spec is written, the keeper started
 *   active      the keeper keeps; its end is waited for
 *   draining    the keeper was told to stop, or is gone; the cgroup is emptied by a worker; then the job ends, if it does
 *   scrubbing   each slice is proved clean by a worker, or taken out of service
 *   over        its place is somebody else's to have; a job that comes back waits again under a new lease
 */
#ifndef BH_NODE_LIFE_H
#define BH_NODE_LIFE_H

#include "node/daemon.h"

struct bh_life *bh_life_of_job(const struct bh_daemon *d, uint64_t job);     /* or NULL */
struct bh_life *bh_life_of_lease(const struct bh_daemon *d, uint64_t lease); /* or NULL */
/* It was given nothing yet. */
static inline bool bh_life_waits(const struct bh_life *run)
{
    return run->state == BH_LEASE_REQUESTED || run->state == BH_LEASE_ADMITTED;
}
/* Takes it into the table. */
void bh_life_add(struct bh_daemon *d, struct bh_life *take_run);
void bh_life_free_all(struct bh_daemon *d);
/* Words that most never have: ten thousand wait, and each process that is started copies the table of their pages. */
void bh_life_note(char **to, const char *words);
/* Its job goes on under another lease. */
void bh_life_rename(struct bh_daemon *d, struct bh_life *run, uint64_t lease);

/* All leases that are not over, as the store has them, in place of what was in the table. */
int bh_life_load(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
/* Then: what their keepers do now is looked at, and each goes on where it stands. */
void bh_life_take_up(struct bh_daemon *d);
/* What a lease stands under in the table that is scrubbed once more and has no job to speak of. */
static inline uint64_t bh_life_no_job(uint64_t lease)
{
    return UINT64_C(1) << 63 | lease;
}

/* In the caller's transaction; the run's own state follows at once, so a caller that cannot commit loads all anew. */
int bh_life_write_grant(struct bh_daemon *d, struct bh_life *run, const struct bh_store_grant *grants,
                        size_t n, struct bh_err *err) BH_MUST_USE;
int bh_life_write_evict(struct bh_daemon *d, struct bh_life *run, enum bh_after after,
                        enum bh_lease_cause cause, const char *why, struct bh_err *err) BH_MUST_USE;

/* Nothing here fails for the caller: what goes wrong moves the lease on. */
void bh_life_prepare(struct bh_daemon *d, struct bh_life *run);
/* It has to make room, if it has any. */
void bh_life_evict(struct bh_daemon *d, struct bh_life *run, enum bh_after after, const char *why);
/* Its job may be begun again. */
bool bh_life_may_return(struct bh_daemon *d, const struct bh_life *run);
/* Whatever its state asks for next; also after a restart. */
void bh_life_go_on(struct bh_daemon *d, struct bh_life *run);
/* The policy in force refuses it: it ends, and its job with it. */
void bh_life_disallow(struct bh_daemon *d, struct bh_life *run, const char *why);
/* Now and then: what could not be done is tried again, what is past its time ends. */
void bh_life_tick(struct bh_daemon *d);

/* Its worker is done: what it found, and nobody waits for it any more. */
void bh_life_take_result(struct bh_life *run, struct bh_worker_result *ret);

/* ---- steps, for those who take a lease through its end, and for whoever writes at a time of his own ---- */

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
