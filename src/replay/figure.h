/* SPDX-License-Identifier: Apache-2.0 */
/* figure.h - the charts of a replay: what was measured, laid out as plots. */
#ifndef BH_REPLAY_FIGURE_H
#define BH_REPLAY_FIGURE_H

#include "base/buf.h"
#include "replay/report.h"

/* Allocated GPUs over what was asked for, near and past full: a faint line for each seed, a bold one for their mean. */
void bh_figure_allocation(struct bh_buf *out, const bh_run_results *runs);
/* How much of what is idle no typical work can use. */
void bh_figure_fragments(struct bh_buf *out, const bh_run_results *runs);
/* GPUs in use over time, one area for each tenant; the smallest together. */
void bh_figure_shares(struct bh_buf *out, const struct bh_jobs *jobs, const struct bh_timeline_setup *setup,
                      const struct bh_jobs_run *run);
/* What part of the jobs waited at most so long, a line for each policy. */
void bh_figure_waits(struct bh_buf *out, const bh_jobs_runs *runs);

#endif
