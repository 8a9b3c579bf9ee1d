/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_job.h - jobs: what somebody asked for, and how it ended.
 *
 *     waiting ⇄ running → ended,  waiting → ended
 *
 * A job that has to go and may come back waits again; each attempt is a lease of its own. An ended job stays as it is.
 */
#ifndef BH_STORE_STATE_JOB_H
#define BH_STORE_STATE_JOB_H

#include "store/state.h"

enum bh_job_state { BH_JOB_WAITING, BH_JOB_RUNNING, BH_JOB_ENDED, BH_JOB_STATES };

enum bh_job_end {
    BH_JOB_END_NONE,      /* not ended */
    BH_JOB_END_EXITED,    /* by itself: status */
    BH_JOB_END_KILLED,    /* by a signal: signal */
    BH_JOB_END_REFUSED,   /* never allowed */
    BH_JOB_END_CANCELLED, /* its owner or an operator wanted it no more */
    BH_JOB_END_FAILED,    /* could not be set up */
    BH_JOB_END_LOST,      /* what ran it is gone without a word */
    BH_JOB_ENDS
};
const char *bh_job_state_str(enum bh_job_state s);
const char *bh_job_end_str(enum bh_job_end e);
int bh_job_state_find(const char *word); /* -1: no such word */

/* What bh_store_job_add() takes, but for id, state, leases and the end; texts that are not NULL's business are never NULL. */
struct bh_store_job {
    uint64_t id;
    const char *tenant, *user, *pool;
    const char *name; /* "" : none */
    uint32_t uid, gid;
    uint32_t gpus;                        /* slices, each of what follows */
    uint32_t milli;                       /* of a card's time for each; 1000: all of it */
    uint32_t memory_mib;                  /* for each; 0: as much as the slice has */
    const char *profile;                  /* of MIG; "": any */
    uint8_t tier;                         /* enum bh_tier */
    uint8_t priority;                     /* enum bh_priority */
    uint8_t can;                          /* enum bh_gang_can */
    bool firm;                            /* never interrupted */
    int32_t order;                        /* among the tenant's own; higher is first */
    uint64_t duration_ms, deadline_ms;    /* 0: not known; 0: none */
    const char *cwd, *image;              /* image "": no container's */
    const char *const *argv, *const *env; /* end with NULL; env may be NULL */
    uint64_t submit_ms;

    enum bh_job_state state;
    uint64_t state_ms;
    enum bh_job_end end;
    int32_t status, signal;
    const char *why; /* of its state, in words */
};
typedef BH_VEC(struct bh_store_job) bh_store_jobs;

/* Which jobs: all that is given must be so. */
struct bh_store_job_filter {
    const char *tenant, *user; /* NULL: any */
    uint32_t states;           /* bits 1 << enum bh_job_state; 0: any */
    bool brief;                /* leave argv and env out: a list of thousands need not carry them */
};

int bh_store_job_add(struct bh_store *s, const struct bh_store_job *job, uint64_t *ret_id,
                     struct bh_err *err) BH_MUST_USE;
/* Compare and set: BH_CONFLICT where it is in another state, BH_NOT_FOUND. `from` may equal `to`: another reason. */
int bh_store_job_step(struct bh_store *s, uint64_t id, enum bh_job_state from, enum bh_job_state to,
                      uint64_t at_ms, const char *why, struct bh_err *err) BH_MUST_USE;
/* To ENDED, from WAITING or RUNNING. */
int bh_store_job_end(struct bh_store *s, uint64_t id, enum bh_job_end end, int32_t status, int32_t signal,
                     uint64_t at_ms, const char *why, struct bh_err *err) BH_MUST_USE;
int bh_store_job_get(struct bh_store *s, struct bh_arena *arena, uint64_t id, struct bh_store_job *ret,
                     struct bh_err *err) BH_MUST_USE;
/* Added to ret. */
int bh_store_jobs_list(struct bh_store *s, struct bh_arena *arena, const struct bh_store_job_filter *filter,
                       const struct bh_store_page *page, bh_store_jobs *ret, struct bh_err *err) BH_MUST_USE;
int bh_store_jobs_count(struct bh_store *s, const struct bh_store_job_filter *filter, uint64_t *ret,
                        struct bh_err *err) BH_MUST_USE;

#endif
