/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/report.h"

#include "base/test.h"

static struct bh_run_result run_of(enum bh_score_mode mode, uint64_t seed, uint32_t allocated_ppm)
{
    struct bh_run_result r = {
        .mode = mode, .seed = seed, .placed = 900, .failed = 100, .decide_ns = 2000000, .digest = 0xab};
    r.p50_ns = 1500;
    r.p99_ns = 20000;
    r.at[100] = (struct bh_run_point){
        .arrivals = 3, .allocated_ppm = allocated_ppm, .ratio_ppm = 990000, .fragment_ppm = 40000};
    return r;
}

static void trace(struct bh_openb *o)
{
    *o = (struct bh_openb){0};
    o->models[o->n_models++] = "G2";
    *bh_vec_push(&o->nodes) = (struct bh_openb_node){.name = "n", .n_gpus = 8};
    *bh_vec_push(&o->pods) = (struct bh_openb_pod){.name = "p", .n_gpus = 1, .gpu_milli = 500};
}

TEST(means_and_spread)
{
    bh_run_results runs = {0};
    *bh_vec_push(&runs) = run_of(BH_SCORE_FGD, 1, 950000);
    *bh_vec_push(&runs) = run_of(BH_SCORE_FGD, 2, 930000);
    *bh_vec_push(&runs) = run_of(BH_SCORE_RANDOM, 1, 860000);
    struct bh_run_mean m = bh_run_mean(&runs, 0);
    CHECK_EQ(m.n, 2);
    CHECK(m.allocated > 93.999 && m.allocated < 94.001);
    CHECK(m.allocated_sd > 1.414 && m.allocated_sd < 1.415);
    CHECK_EQ(m.decisions_per_s, 500000);
    m = bh_run_mean(&runs, 2);
    CHECK_EQ(m.n, 1);
    CHECK(m.allocated_sd == 0);
    bh_vec_fini(&runs);
}

TEST(one_run_is_one_object)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_buf out BH_AUTO(bh_buf_fini);
    bh_run_results runs = {0};
    trace(&o);
    bh_buf_init(&out, 1 << 16);
    *bh_vec_push(&runs) = run_of(BH_SCORE_FGD, 42, 952345);
    bh_report_openb_json(&out, &o, &runs);
    CHECK_STR(bh_buf_text(&out), "{\n"
                                 "  \"version\": 1,\n"
                                 "  \"nodes\": 1,\n"
                                 "  \"gpus\": 8,\n"
                                 "  \"pods\": 1,\n"
                                 "  \"policy\": \"fgd\",\n"
                                 "  \"seed\": 42,\n"
                                 "  \"allocated_pct_at_100\": 95.2345,\n"
                                 "  \"fragment_ratio_at_100\": 99.0000,\n"
                                 "  \"fragment_pct_at_100\": 4.0000,\n"
                                 "  \"placed\": 900,\n"
                                 "  \"failed\": 100,\n"
                                 "  \"decisions_per_s\": 500000,\n"
                                 "  \"p50_us\": 1.500,\n"
                                 "  \"p99_us\": 20.000,\n"
                                 "  \"max_us\": 0.000,\n"
                                 "  \"prepare_ms\": 0.000000,\n"
                                 "  \"digest\": \"00000000000000ab\"\n"
                                 "}\n");
    bh_vec_fini(&runs);
}

TEST(a_table_has_a_row_for_each_policy)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_buf out BH_AUTO(bh_buf_fini);
    bh_run_results runs = {0};
    trace(&o);
    bh_buf_init(&out, 1 << 16);
    *bh_vec_push(&runs) = run_of(BH_SCORE_FGD, 1, 950000);
    *bh_vec_push(&runs) = run_of(BH_SCORE_FGD, 2, 930000);
    *bh_vec_push(&runs) = run_of(BH_SCORE_RANDOM, 1, 860000);
    bh_report_openb_text(&out, &o, &runs);
    CHECK_STR(
        bh_buf_text(&out),
        "1 nodes with 8 GPUs; 1 pods that ask for 0.5 (6.2 %), in drawn order to 130 %\n\n"
        "POLICY  SEEDS  ALLOCATED AT 100 %    +-  FRAGMENTS OF IDLE  PLACED  FAILED  DECISIONS/S  P50 us  P99 us\n"
        "fgd         2             94.00 %  1.41             99.0 %     900     100      500,000     1.5    20.0\n"
        "random      1             86.00 %     -             99.0 %     900     100      500,000     1.5    20.0\n");
    bh_vec_fini(&runs);
}

static void run_jobs(struct bh_jobs *j, const struct bh_timeline_setup *setup, bh_jobs_runs *runs)
{
    struct bh_err err;
    *j = (struct bh_jobs){.n_without_gpu = 3};
    (void)bh_jobs_tenant(j, "a", 1);
    (void)bh_jobs_tenant(j, "b", 1);
    *bh_vec_push(&j->at) = (struct bh_job){.gpus = 2, .duration_s = 7200, .deadline_s = 7300};
    *bh_vec_push(&j->at) = (struct bh_job){.tenant = 1, .gpus = 2, .duration_s = 3600, .deadline_s = 4000};
    *bh_vec_push(&j->at) = (struct bh_job){
        .tenant = 1, .gpus = 1, .submit_s = 10800, .duration_s = 60, .deadline_s = BH_JOB_NO_DEADLINE};
    struct bh_jobs_run run = {.policy = bh_timeline_find("fifo")};
    if (bh_timeline_run(j, setup, run.policy, &run.result, &err) == BH_OK)
        *bh_vec_push(runs) = run;
}

TEST(jobs_and_whose_share_was_short)
{
    const struct bh_timeline_setup setup = {.gpus = 2};
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_buf text BH_AUTO(bh_buf_fini), json BH_AUTO(bh_buf_fini);
    bh_jobs_runs runs = {0};
    double percent;
    bh_buf_init(&text, 1 << 16);
    bh_buf_init(&json, 1 << 16);
    run_jobs(&j, &setup, &runs);
    CHECK_EQ(runs.n, 1);
    const struct bh_timeline_result *r = &runs.at[0].result;
    /* for two hours one GPU each would be fair and a has both; then b is alone */
    CHECK_EQ(bh_share_worst(r, &percent), 1);
    CHECK(percent > 49.9 && percent < 50.1); /* 2 of its 2 + 2 GPU hours */
    CHECK(bh_share_error(r, 2) > 33.3 && bh_share_error(r, 2) < 33.4);
    CHECK(bh_used_percent(r, 2) > 99.9);
    bh_report_jobs_text(&text, &j, &setup, &runs);
    CHECK_STR(
        bh_buf_text(&text),
        "3 jobs of 2 tenants arrive in 3.0 h and ask for 6 GPU hours, 100 % of 2 GPUs\n"
        "3 more ask for no GPU and are left out\n\n"
        "POLICY  MISSED DEADLINES  SHARE ERROR  WORST OFF  MEAN WAIT      P50    P99     USED  STOPS  LAST END\n"
        "fifo          1 (50.0 %)       33.3 %    b -50 %   40.0 min  0.0 min  2.0 h  100.0 %      0     3.0 h\n");
    bh_report_jobs_json(&json, &j, &setup, &runs);
    CHECK(strstr(bh_buf_text(&json), "\"missed_pct\": 50.000"));
    CHECK(strstr(bh_buf_text(&json),
                 "{\"tenant\": \"b\", \"jobs\": 2, \"deadlines\": 1, \"missed\": 1, \"used_gpu_h\": 2.0, "
                 "\"fair_gpu_h\": 4.0, \"share_error_pct\": 50.000, \"short_pct\": 50.000, "
                 "\"wait_mean_s\": 3600}"));
    bh_timeline_result_fini(&runs.at[0].result);
    bh_vec_fini(&runs);
}

TEST_MAIN
