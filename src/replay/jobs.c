/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/jobs.h"

#include "replay/chronus.h"
#include "replay/gavel.h"
#include "replay/table.h"

#include <string.h>

const char *const bh_jobs_format_names[BH_JOBS_FORMATS] = {
    [BH_JOBS_CHRONUS] = "chronus",
    [BH_JOBS_GAVEL] = "gavel",
};

void bh_jobs_fini(struct bh_jobs *j)
{
    bh_vec_fini(&j->tenants);
    bh_vec_fini(&j->at);
    bh_arena_fini(&j->arena);
    *j = (struct bh_jobs){0};
}

int bh_jobs_tenant(struct bh_jobs *j, const char *name, size_t n)
{
    for (size_t i = 0; i < j->tenants.n; i++)
        if (strlen(j->tenants.at[i]) == n && memcmp(j->tenants.at[i], name, n) == 0)
            return (int)i;
    if (j->tenants.n == BH_JOB_TENANTS)
        return -1;
    *bh_vec_push(&j->tenants) = bh_arena_strn(&j->arena, name, n);
    return (int)j->tenants.n - 1;
}

int bh_jobs_add(struct bh_jobs *j, const struct bh_table *t, const struct bh_job *job, struct bh_err *err)
{
    if (j->at.n == BH_JOBS_MAX)
        return bh_table_fail(t, 0, err, "needs at most %d jobs, this is one more", BH_JOBS_MAX);
    if (job->gpus == 0)
        j->n_without_gpu++;
    else
        *bh_vec_push(&j->at) = *job;
    return BH_OK;
}

enum bh_jobs_format bh_jobs_detect(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    return memchr(text, '\t', end ? (size_t)(end - text) : n) ? BH_JOBS_GAVEL : BH_JOBS_CHRONUS;
}

/* `some/folder/0e4a51.trace` is of tenant 0e4a51. */
static struct bh_cell stem_of(const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file, *dot = strrchr(name, '.');
    return (struct bh_cell){name, dot && dot > name ? (size_t)(dot - name) : strlen(name)};
}

int bh_jobs_read(struct bh_jobs *j, enum bh_jobs_format format, const char *file, const char *text, size_t n,
                 struct bh_err *err)
{
    struct bh_table t;
    struct bh_cell stem = stem_of(file);
    bh_table_open(&t, file, text, n, format == BH_JOBS_GAVEL ? '\t' : ',');
    return format == BH_JOBS_GAVEL ? bh_gavel_read(j, &t, stem.at, stem.n, err) : bh_chronus_read(j, &t, err);
}

static int by_submission(const void *x, const void *y)
{
    const struct bh_job *a = x, *b = y;
    if (a->submit_s != b->submit_s)
        return a->submit_s < b->submit_s ? -1 : 1;
    return 0;
}

/* A merge sort: jobs of one second stay in the order they were read in. */
static void sort(struct bh_job *at, struct bh_job *spare, size_t n)
{
    if (n < 2)
        return;
    const size_t half = n / 2;
    sort(at, spare, half);
    sort(at + half, spare, n - half);
    for (size_t i = 0, a = 0, b = half; i < n; i++)
        spare[i] = b == n || (a < half && by_submission(&at[a], &at[b]) <= 0) ? at[a++] : at[b++];
    memcpy(at, spare, n * sizeof(*at));
}

void bh_jobs_order(struct bh_jobs *j)
{
    BH_AUTOFREE struct bh_job *spare = bh_alloc(j->at.n + 1, sizeof(*spare));
    sort(j->at.at, spare, j->at.n);
}
