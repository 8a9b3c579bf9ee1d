/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/figure.h"

#include "base/test.h"
#include "replay/synth.h"

static size_t count(const char *s, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(s, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

TEST(a_line_for_each_policy_and_a_faint_one_for_each_seed)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_buf allocation BH_AUTO(bh_buf_fini), fragments BH_AUTO(bh_buf_fini);
    bh_run_results runs = {0};
    struct bh_err err;
    bh_synth_openb(&(struct bh_synth){.shape = BH_SYNTH_OPENB, .seed = 1, .nodes = 10}, &o);
    bh_buf_init(&allocation, 1 << 20);
    bh_buf_init(&fragments, 1 << 20);
    for (uint64_t seed = 0; seed < 3; seed++)
        CHECK_EQ(
            bh_run_openb(&o, &(struct bh_run_setup){BH_SCORE_FGD, seed, false}, bh_vec_push(&runs), &err),
            BH_OK);
    CHECK_EQ(bh_run_openb(&o, &(struct bh_run_setup){BH_SCORE_RANDOM, 0, false}, bh_vec_push(&runs), &err),
             BH_OK);
    bh_figure_allocation(&allocation, &runs);
    bh_figure_fragments(&fragments, &runs);
    const char *svg[] = {bh_buf_text(&allocation), bh_buf_text(&fragments)};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(count(svg[i], "stroke-opacity"), 3);
        CHECK_EQ(count(svg[i], ">fgd: "), 1);
        CHECK_EQ(count(svg[i], ">random: "), 1);
        CHECK_EQ(count(svg[i], "nan"), 0);
        CHECK_EQ(count(svg[i], "inf"), 0);
    }
    CHECK_EQ(count(svg[0], ">all that is asked for<"), 1);
    bh_vec_fini(&runs);
}

TEST(tenants_are_areas_and_the_small_ones_one)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_buf shares BH_AUTO(bh_buf_fini), waits BH_AUTO(bh_buf_fini);
    const struct bh_timeline_setup setup = {.gpus = 30};
    bh_jobs_runs runs = {0};
    struct bh_err err;
    bh_synth_jobs(
        &(struct bh_synth){
            .shape = BH_SYNTH_GAVEL, .seed = 1, .jobs = 400, .tenants = 16, .gpus = 30, .load = 110},
        &j);
    bh_buf_init(&shares, 1 << 20);
    bh_buf_init(&waits, 1 << 20);
    for (size_t p = 0; p < 2; p++) {
        struct bh_jobs_run *run = bh_vec_push(&runs);
        run->policy = &bh_baselines[p];
        CHECK_EQ(bh_timeline_run(&j, &setup, run->policy, &run->result, &err), BH_OK);
    }
    bh_figure_shares(&shares, &j, &setup, &runs.at[0]);
    bh_figure_waits(&waits, &runs);
    CHECK_EQ(count(bh_buf_text(&shares), "Z\" fill="), 12);
    CHECK_EQ(count(bh_buf_text(&shares), ">5 others<"), 1);
    CHECK_EQ(count(bh_buf_text(&shares), ">all GPUs<"), 1);
    CHECK_EQ(count(bh_buf_text(&waits), ">fifo: mean "), 1);
    CHECK_EQ(count(bh_buf_text(&waits), ">edf: mean "), 1);
    CHECK_EQ(count(bh_buf_text(&waits), "nan"), 0);
    CHECK_EQ(count(bh_buf_text(&shares), "nan"), 0);
    for (size_t p = 0; p < runs.n; p++)
        bh_timeline_result_fini(&runs.at[p].result);
    bh_vec_fini(&runs);
}

TEST_MAIN
