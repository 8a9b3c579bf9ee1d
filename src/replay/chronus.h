/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chronus.h - the job lists of the Chronus artefact: CSV with a row of names, times in minutes.
 *
 * Read: user (the tenant), num_gpu, submit_time, duration, expect_time_list (the deadline, counted from submission) and
 * best_effort (1: there is no deadline, whatever that column says).
 */
#ifndef BH_REPLAY_CHRONUS_H
#define BH_REPLAY_CHRONUS_H

#include "replay/jobs.h"

struct bh_table;
int bh_chronus_read(struct bh_jobs *j, struct bh_table *t, struct bh_err *err) BH_MUST_USE;
/* The same columns. Times that are no whole minutes are rounded up. */
void bh_chronus_write(const struct bh_jobs *j, struct bh_buf *out);

#endif
