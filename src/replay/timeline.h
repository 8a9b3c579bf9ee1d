/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - jobs over time on a number of GPUs, under a policy that says what starts and what stops.
 *
 * The simulator owns the clock and the truth: what has arrived, what runs, how much of each job is left. A policy is a
 * struct of functions: it is told of arrivals and ends, and once for each second in which something happened it is asked
 * for its moves. A move that is not possible (more GPUs than there are, a job that is not waiting) ends the run as a
 * fault of the policy, so no table can be filled by cheating. A job that is stopped keeps what it has done and, when it
 * goes on, pays the restart.
 *
 * The baselines are rows of a table in baselines.c; the scheduler itself plugs in at the same place.
 */
#ifndef BH_REPLAY_TIMELINE_H
#define BH_REPLAY_TIMELINE_H

#include "base/err.h"
#include "base/mem.h"
#include "replay/jobs.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_estate;
struct bh_timeline_setup {
    uint32_t gpus;
    uint64_t restart_s;    /* added to what is left of a job each time it goes on after a stop */
    bool shares_by_demand; /* a tenant's share: by the GPU time it asks for in the trace; else all alike */
    const struct bh_estate
        *estate; /* NULL: one pool. Else the jobs' tenants are its own, and its quotas the shares */
};

typedef BH_VEC(uint32_t) bh_job_ids;
/* Stops are carried out before starts. */
struct bh_moves {
    bh_job_ids stop, start;
};

#define BH_NEVER_S UINT64_MAX
struct bh_timeline_policy {
    const char *name;
    /* weight: a share for each tenant, in any unit. All three are borrowed. */
    void *(*new_)(const struct bh_timeline_policy *policy, const struct bh_jobs *jobs,
                  const struct bh_timeline_setup *setup, const uint64_t *weight);
    void (*free_)(void *self);
    void (*arrived)(void *self, uint32_t job, uint64_t now_s);
    void (*ended)(void *self, uint32_t job, uint64_t now_s);
    void (*decide)(void *self, uint64_t now_s, struct bh_moves *ret);
    /* When to be asked again although nothing arrives or ends, or BH_NEVER_S. NULL: never. */
    uint64_t (*wake)(void *self, uint64_t now_s);
    const void *row; /* the policy's own */
};
enum { BH_BASELINES = 4 };
extern const struct bh_timeline_policy bh_baselines[BH_BASELINES]; /* fifo, edf, srtf, las */
/* Every policy there is, in the order tables show them; NULL-terminated. */
extern const struct bh_timeline_policy *const bh_timeline_policies[];
const struct bh_timeline_policy *bh_timeline_find(const char *name); /* or NULL */

enum { BH_TIMELINE_BUCKETS = 240 };

struct bh_tenant_result {
    uint64_t used_gpu_s, fair_gpu_s; /* while jobs still arrive */
    uint64_t off_gpu_s;              /* integral of |used - fair| */
    uint64_t short_gpu_s;            /* of it, what it had too little */
    uint32_t jobs, deadlines, missed;
    uint64_t wait_s; /* of all its jobs */
};

struct bh_timeline_result {
    uint32_t jobs, too_large; /* run; asking for more GPUs than it could ever have: left out */
    uint32_t deadlines, missed;
    uint64_t wait_mean_s, wait_p50_s, wait_p99_s, wait_max_s; /* all the time it was there and did not run */
    uint64_t window_s;                                        /* first to last arrival */
    uint64_t makespan_s;                                      /* first arrival to last end */
    uint64_t used_gpu_s;                                      /* within the window */
    uint64_t starts, stops;
    uint64_t restart_gpu_s; /* paid for going on after stops */
    uint64_t digest;        /* of every move and its time */
    uint64_t decides, decide_p50_ns, decide_p99_ns;
    struct bh_tenant_result *tenant; /* by index */
    size_t n_tenants;
    uint64_t *waits; /* of each job that ran, ascending: `jobs` of them */
    uint64_t *used;  /* [bucket * n_tenants + tenant], GPU seconds */
    uint64_t bucket_s;
};

int bh_timeline_run(const struct bh_jobs *jobs, const struct bh_timeline_setup *setup,
                    const struct bh_timeline_policy *policy, struct bh_timeline_result *ret,
                    struct bh_err *err) BH_MUST_USE;
void bh_timeline_result_fini(struct bh_timeline_result *r);

/*
 * Max-min fair: ret[i] (thousandths of a GPU) of gpus, in proportion to weight, nobody gets more than it wants.
 * For the measure of shares, and for policies that need the same answer.
 */
void bh_fair_shares(uint32_t gpus, const uint64_t *weight, const uint64_t *wanted_gpus, size_t n,
                    uint64_t *ret_milli);

#endif
