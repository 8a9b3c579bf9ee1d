/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/chronus.h"

#include "replay/table.h"

#include <inttypes.h>

enum { USER, GPUS, SUBMIT, DURATION, EXPECT, BEST_EFFORT, COLUMNS };
static const char *const columns[COLUMNS] = {"user",     "num_gpu",          "submit_time",
                                             "duration", "expect_time_list", "best_effort"};
enum { MINUTE_S = 60 };
#define MINUTES_MAX (BH_JOB_TIME_MAX / MINUTE_S / 4) /* sums of them stay below BH_JOB_TIME_MAX */

static int read_job(struct bh_jobs *j, const struct bh_table *t, const uint32_t *place, struct bh_err *err)
{
    static const uint64_t max[COLUMNS] = {
        [GPUS] = BH_JOB_GPUS_MAX, [SUBMIT] = MINUTES_MAX, [DURATION] = MINUTES_MAX,
        [EXPECT] = MINUTES_MAX,   [BEST_EFFORT] = 1,
    };
    uint64_t v[COLUMNS];
    struct bh_cell user;
    int rc = bh_table_name(t, place[USER], columns[USER], &user, err);
    for (size_t i = GPUS; i < COLUMNS && rc == BH_OK; i++)
        rc = bh_table_uint(t, place[i], columns[i], i == DURATION ? 1 : 0, max[i], &v[i], err);
    if (rc < 0)
        return rc;
    int tenant = bh_jobs_tenant(j, user.at, user.n);
    if (tenant < 0)
        return bh_table_fail(t, place[USER], err, "needs at most %d users, '%.*s' is one more",
                             BH_JOB_TENANTS, (int)user.n, user.at);
    return bh_jobs_add(
        j, t,
        &(struct bh_job){
            .tenant = (uint32_t)tenant,
            .gpus = (uint32_t)v[GPUS],
            .submit_s = v[SUBMIT] * MINUTE_S,
            .duration_s = v[DURATION] * MINUTE_S,
            .deadline_s = v[BEST_EFFORT] ? BH_JOB_NO_DEADLINE : (v[SUBMIT] + v[EXPECT]) * MINUTE_S,
        },
        err);
}

int bh_chronus_read(struct bh_jobs *j, struct bh_table *t, struct bh_err *err)
{
    uint32_t place[COLUMNS];
    int rc = bh_table_next(t, err);
    if (rc == 0)
        return bh_fail(err, BH_INVALID, "%.120s:1:1: needs a row of names (user, num_gpu, ...), is empty",
                       t->file);
    if (rc > 0)
        rc = bh_table_header(t, columns, COLUMNS, COLUMNS, place, err);
    while (rc >= 0 && (rc = bh_table_next(t, err)) > 0)
        rc = read_job(j, t, place, err);
    return rc;
}

static uint64_t minutes(uint64_t s)
{
    return (s + MINUTE_S - 1) / MINUTE_S;
}

void bh_chronus_write(const struct bh_jobs *j, struct bh_buf *out)
{
    bh_buf_str(out, "job_id,user,num_gpu,submit_time,duration,expect_time_list,best_effort\n");
    for (size_t i = 0; i < j->at.n; i++) {
        const struct bh_job *x = &j->at.at[i];
        const bool best = x->deadline_s == BH_JOB_NO_DEADLINE;
        bh_buf_printf(out, "%zu,%s,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n", i,
                      j->tenants.at[x->tenant], x->gpus, minutes(x->submit_s), minutes(x->duration_s),
                      minutes(best ? x->submit_s : x->deadline_s - x->submit_s), best);
    }
}
