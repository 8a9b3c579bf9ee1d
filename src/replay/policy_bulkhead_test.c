/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "replay/policy_bulkhead.h"
#include "replay/synth.h"

static struct bh_jobs jobs_of(const struct bh_job *at, size_t n, uint32_t tenants)
{
    static const char *const names[] = {"a", "b", "c"};
    struct bh_jobs j = {0};
    for (uint32_t i = 0; i < tenants; i++)
        (void)bh_jobs_tenant(&j, names[i], 1);
    for (size_t i = 0; i < n; i++)
        *bh_vec_push(&j.at) = at[i];
    bh_jobs_order(&j);
    return j;
}

static struct bh_timeline_result play(struct bh_jobs *jobs, uint32_t gpus, uint64_t restart_s)
{
    const struct bh_timeline_setup setup = {.gpus = gpus, .restart_s = restart_s};
    struct bh_timeline_result r = {0};
    struct bh_err err;
    if (bh_timeline_run(jobs, &setup, &bh_policy_bulkhead, &r, &err) < 0) {
        printf("# %s\n", err.msg);
        r.jobs = 0;
    }
    bh_jobs_fini(jobs);
    return r;
}

TEST(it_is_one_of_them)
{
    CHECK(bh_timeline_find("bulkhead") == &bh_policy_bulkhead);
}

TEST(what_fits_runs_at_once)
{
    const struct bh_job at[] = {{0, 4, 0, 100, BH_JOB_NO_DEADLINE}, {1, 4, 0, 50, BH_JOB_NO_DEADLINE}};
    struct bh_jobs jobs = jobs_of(at, 2, 2);
    struct bh_timeline_result r = play(&jobs, 8, 0);
    CHECK_EQ(r.jobs, 2);
    CHECK_EQ(r.wait_max_s, 0);
    CHECK_EQ(r.stops, 0);
    CHECK_EQ(r.makespan_s, 100);
    bh_timeline_result_fini(&r);
}

/* a has borrowed all; b comes and is entitled to half. a's job is stopped once it has run for its minimum, and goes on later. */
TEST(a_tenant_gets_its_share_back)
{
    const struct bh_job at[] = {{0, 4, 0, 5000, BH_JOB_NO_DEADLINE},
                                {0, 4, 0, 5000, BH_JOB_NO_DEADLINE},
                                {1, 4, 100, 1000, BH_JOB_NO_DEADLINE}};
    struct bh_jobs jobs = jobs_of(at, 3, 2);
    struct bh_timeline_result r = play(&jobs, 8, 60);
    CHECK_EQ(r.jobs, 3);
    CHECK_EQ(r.stops, 1);
    CHECK_EQ(r.restart_gpu_s, 60 * 4);
    CHECK_EQ(r.tenant[1].wait_s, 500); /* asked at 100, a's jobs began at 0 and are safe for 600 */
    CHECK_EQ(r.makespan_s, 5000 + 1000 + 60);
    bh_timeline_result_fini(&r);
}

/* Small jobs do not keep a large one of as much work waiting: one in its way when it could start is held back. */
TEST(a_large_job_is_not_starved)
{
    struct bh_job at[41] = {{0, 8, 10, 50, BH_JOB_NO_DEADLINE}};
    for (uint32_t i = 0; i < 40; i++)
        at[i + 1] = (struct bh_job){0, 4, 50 * i, 100, BH_JOB_NO_DEADLINE};
    struct bh_jobs jobs = jobs_of(at, 41, 1);
    struct bh_timeline_result r = play(&jobs, 8, 0);
    CHECK_EQ(r.jobs, 41);
    CHECK_EQ(r.stops, 0);
    /* Without a reservation it would wait for the last of them, 2040 seconds. */
    CHECK(r.wait_max_s < 400);
    bh_timeline_result_fini(&r);
}

/* The largest job that is read runs, too. */
TEST(a_job_of_the_largest_size)
{
    const struct bh_job at[] = {{0, BH_JOB_GPUS_MAX, 0, 5, BH_JOB_NO_DEADLINE},
                                {1, 1, 0, 5, BH_JOB_NO_DEADLINE}};
    struct bh_jobs jobs = jobs_of(at, 2, 2);
    struct bh_timeline_result r = play(&jobs, BH_REPLAY_GPUS_MAX, 0);
    CHECK_EQ(r.jobs, 2);
    CHECK_EQ(r.too_large, 0);
    bh_timeline_result_fini(&r);
}

/* Three jobs of five centuries each: nothing changes between their starts and ends, and nobody looks for it. */
TEST(it_wakes_when_something_can_change)
{
    const uint64_t long_s = UINT64_C(286331153) * 60;
    const struct bh_job at[] = {{0, 8, 0, long_s, long_s},
                                {1, 8, long_s, long_s, long_s + 60},
                                {0, 8, long_s, long_s, BH_JOB_NO_DEADLINE}};
    struct bh_jobs jobs = jobs_of(at, 3, 2);
    struct bh_timeline_result r = play(&jobs, 8, 0);
    CHECK_EQ(r.jobs, 3);
    CHECK(r.decides < 200);
    bh_timeline_result_fini(&r);
}

/* b's deadline is of use only from an hour before it must start on; a's work, which is due later, goes on until then. */
TEST(a_deadline_is_seen_when_it_comes_close)
{
    const uint64_t far = UINT64_C(40) * 86400;
    const struct bh_job at[] = {{0, 8, 0, far, BH_JOB_NO_DEADLINE}, {1, 4, 10, 1000, far / 2}};
    struct bh_jobs jobs = jobs_of(at, 2, 2);
    struct bh_timeline_result r = play(&jobs, 8, 0);
    CHECK_EQ(r.jobs, 2);
    CHECK_EQ(r.missed, 0);
    bh_timeline_result_fini(&r);
}

TEST(traces_run_to_their_end_and_the_same_each_time)
{
    static const char *const shapes[] = {"chronus,jobs=300", "gavel,jobs=300,tenants=4"};
    for (size_t i = 0; i < 2; i++) {
        uint64_t digest[2];
        for (size_t k = 0; k < 2; k++) {
            struct bh_synth synth;
            struct bh_jobs jobs = {0};
            CHECK_EQ(bh_synth_parse(shapes[i], &synth, NULL), 0);
            bh_synth_jobs(&synth, &jobs);
            struct bh_timeline_result r = play(&jobs, synth.gpus, 30);
            CHECK_EQ(r.jobs + r.too_large, 300);
            digest[k] = r.digest;
            bh_timeline_result_fini(&r);
        }
        CHECK(digest[0] == digest[1]);
    }
}

TEST_MAIN
