/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - work over time, whatever trace it came from: who asked, when, for how many GPUs, for how long, until when.
 *
 * Two formats. Chronus (CSV with a row of names): Philly jobs with deadlines, times in minutes. Gavel (seven cells
 * between tabs, no names): Philly jobs of one virtual cluster a file; the work is given in steps of a model, which took
 * whole seconds on one kind of GPU when the trace was made, so that steps divided by the model's rate are seconds again.
 * A file adds to what is there: a Gavel trace is fifteen files.
 */
#ifndef BH_REPLAY_JOBS_H
#define BH_REPLAY_JOBS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_JOBS_MAX = 1 << 21,
    BH_JOB_GPUS_MAX = 1 << 16,    /* of one job: what the scheduler takes as one */
    BH_REPLAY_GPUS_MAX = 1 << 17, /* of the fleet they run on */
    BH_JOB_TENANTS = 256
};
#define BH_JOB_TIME_MAX    ((uint64_t)1 << 36) /* seconds: two thousand years */
#define BH_JOB_NO_DEADLINE UINT64_MAX

enum bh_jobs_format { BH_JOBS_CHRONUS, BH_JOBS_GAVEL, BH_JOBS_FORMATS };
extern const char *const bh_jobs_format_names[BH_JOBS_FORMATS];

struct bh_job {
    uint32_t tenant; /* index into tenants */
    uint32_t gpus;   /* at least 1 */
    uint64_t submit_s, duration_s;
    uint64_t deadline_s; /* in absolute time, or BH_JOB_NO_DEADLINE */
};

struct bh_jobs {
    struct bh_arena arena;
    BH_VEC(const char *) tenants;
    BH_VEC(struct bh_job) at; /* bh_jobs_order(): by submission, then as read */
    size_t n_without_gpu;     /* rows that ask for none: left out, and counted */
};

void bh_jobs_fini(struct bh_jobs *j); /* a zeroed struct is empty */
/* By what the first row looks like. */
enum bh_jobs_format bh_jobs_detect(const char *text, size_t n);
/* file: how complaints name it; Gavel: its name without folder and suffix is the tenant's. */
int bh_jobs_read(struct bh_jobs *j, enum bh_jobs_format format, const char *file, const char *text, size_t n,
                 struct bh_err *err) BH_MUST_USE;
/* After the last file. */
void bh_jobs_order(struct bh_jobs *j);
/* The index of a tenant, added where it is new; negative: there are BH_JOB_TENANTS already. */
int bh_jobs_tenant(struct bh_jobs *j, const char *name, size_t n);

struct bh_table;
/* For the readers: append a job; refuses one more than BH_JOBS_MAX. */
int bh_jobs_add(struct bh_jobs *j, const struct bh_table *t, const struct bh_job *job,
                struct bh_err *err) BH_MUST_USE;

#endif
