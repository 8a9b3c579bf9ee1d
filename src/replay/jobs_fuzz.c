/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a trace of jobs: reading them ends with jobs inside the stated bounds, or with a complaint that names a
 * line. What was read runs under every policy to its end.
 */
#include "replay/timeline.h"

enum { JOBS_PLAYED = 64, GPUS = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct bh_jobs *j)
{
    for (size_t i = 0; i < j->at.n; i++) {
        const struct bh_job *x = &j->at.at[i];
        if (x->tenant >= j->tenants.n || x->gpus == 0 || x->gpus > BH_JOB_GPUS_MAX || x->duration_s == 0 ||
            x->submit_s > BH_JOB_TIME_MAX || x->duration_s > BH_JOB_TIME_MAX ||
            (x->deadline_s != BH_JOB_NO_DEADLINE &&
             (x->deadline_s < x->submit_s || x->deadline_s > BH_JOB_TIME_MAX)))
            abort();
    }
}

static void play(const struct bh_jobs *j)
{
    struct bh_timeline_result r;
    for (size_t p = 0; bh_timeline_policies[p]; p++) {
        if (bh_timeline_run(j, &(struct bh_timeline_setup){.gpus = GPUS, .restart_s = p},
                            bh_timeline_policies[p], &r, NULL) < 0)
            abort();
        if (r.jobs + r.too_large != j->at.n)
            abort();
        bh_timeline_result_fini(&r);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int format = 0; format < BH_JOBS_FORMATS; format++) {
        struct bh_jobs j BH_AUTO(bh_jobs_fini);
        struct bh_err err = {0};
        j = (struct bh_jobs){0};
        const int rc = bh_jobs_read(&j, (enum bh_jobs_format)format, "f.csv", (const char *)data, size, &err);
        if (rc < 0 && strncmp(err.msg, "f.csv:", 6) != 0)
            abort();
        check(&j);
        bh_jobs_order(&j);
        if (rc == BH_OK && j.at.n && j.at.n <= JOBS_PLAYED)
            play(&j);
    }
    return 0;
}
