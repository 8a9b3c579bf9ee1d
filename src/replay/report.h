/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what the runs gave, as tables for people and as JSON for programs. */
#ifndef BH_REPLAY_REPORT_H
#define BH_REPLAY_REPORT_H

#include "base/buf.h"
#include "base/mem.h"
#include "replay/jobs.h"
#include "replay/openb.h"
#include "replay/run.h"
#include "replay/timeline.h"

typedef BH_VEC(struct bh_run_result) bh_run_results;

struct bh_jobs_run {
    const struct bh_timeline_policy *policy;
    struct bh_timeline_result result;
};
typedef BH_VEC(struct bh_jobs_run) bh_jobs_runs;

/* Over the seeds of one policy. */
struct bh_run_mean {
    enum bh_score_mode mode;
    uint32_t n;
    double allocated, allocated_sd, ratio; /* per cent, at 100 % of arrival */
    double placed, failed, decisions_per_s, p50_us, p99_us;
};
/* Of the runs of this mode, which follow each other from `first` on. */
struct bh_run_mean bh_run_mean(const bh_run_results *runs, size_t first);
uint64_t bh_run_decisions_per_s(const struct bh_run_result *r);

/* A row for each policy; one run alone is written out. */
void bh_report_openb_text(struct bh_buf *out, const struct bh_openb *o, const bh_run_results *runs);
/* One run: an object. Several: `runs`, and `means` over the seeds of each policy. */
void bh_report_openb_json(struct bh_buf *out, const struct bh_openb *o, const bh_run_results *runs);

void bh_report_jobs_text(struct bh_buf *out, const struct bh_jobs *jobs,
                         const struct bh_timeline_setup *setup, const bh_jobs_runs *runs);
void bh_report_jobs_json(struct bh_buf *out, const struct bh_jobs *jobs,
                         const struct bh_timeline_setup *setup, const bh_jobs_runs *runs);

/* Half the integral of |used - fair| while jobs arrived, as a part of the GPUs in per cent: what was in the wrong hands. */
double bh_share_error(const struct bh_timeline_result *r, uint32_t gpus);
/* The tenant that fell shortest of its fair share, and by how much of it, in per cent. */
size_t bh_share_worst(const struct bh_timeline_result *r, double *ret_percent);
double bh_used_percent(const struct bh_timeline_result *r, uint32_t gpus);

#endif
