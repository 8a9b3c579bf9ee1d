/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/test.h"
#include "replay/synth.h"
#include "replay/timeline.h"

/* ---- the same rules, second by second and without any list: slow, and short enough to be believed ---- */

enum { JOBS = 14, GPUS = 8, NAIVE_END = 4000 };

struct naive {
    uint64_t left, attained, end;
    bool running;
};

static uint64_t naive_key(const char *policy, const struct bh_job *j, const struct naive *n)
{
    if (strcmp(policy, "edf") == 0)
        return j->deadline_s;
    if (strcmp(policy, "srtf") == 0)
        return n->left;
    if (strcmp(policy, "las") == 0) {
        uint64_t level = 0;
        for (uint64_t hours = n->attained / 3600; hours; hours /= 2)
            level++;
        return level;
    }
    return j->submit_s;
}

/* One second of one policy. */
static void naive_second(const char *policy, const struct bh_job *jobs, struct naive *at, uint64_t now)
{
    const bool stops = strcmp(policy, "fifo") != 0;
    bool seen[JOBS] = {false};
    uint32_t left = GPUS;
    for (size_t i = 0; i < JOBS && !stops; i++)
        left -= at[i].running ? jobs[i].gpus : 0;
    for (;;) {
        size_t best = JOBS;
        for (size_t i = 0; i < JOBS; i++)
            if (!seen[i] && jobs[i].submit_s <= now && !at[i].end && (stops || !at[i].running) &&
                (best == JOBS ||
                 naive_key(policy, &jobs[i], &at[i]) < naive_key(policy, &jobs[best], &at[best])))
                best = i;
        if (best == JOBS)
            break;
        seen[best] = true;
        at[best].running = jobs[best].gpus <= left;
        left -= at[best].running ? jobs[best].gpus : 0;
        if (!at[best].running && !stops)
            break;
    }
    for (size_t i = 0; i < JOBS; i++)
        if (at[i].running) {
            at[i].attained += jobs[i].gpus;
            if (--at[i].left == 0) {
                at[i].running = false;
                at[i].end = now + 1;
            }
        }
}

static void draw(struct bh_jobs *j, uint64_t seed, uint32_t longest)
{
    uint8_t bytes[JOBS * 8];
    struct bh_choice c = {bytes, sizeof(bytes)};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    *j = (struct bh_jobs){0};
    (void)bh_jobs_tenant(j, "a", 1);
    for (size_t i = 0; i < JOBS; i++) {
        const uint64_t submit = bh_choose(&c, 60), duration = 1 + bh_choose(&c, longest);
        *bh_vec_push(&j->at) = (struct bh_job){
            .gpus = 1 + bh_choose(&c, GPUS),
            .submit_s = submit,
            .duration_s = duration,
            .deadline_s = bh_choose(&c, 3) ? submit + duration + bh_choose(&c, 80) : BH_JOB_NO_DEADLINE,
        };
    }
    bh_jobs_order(j);
}

static bool agrees(const struct bh_timeline_policy *policy, uint64_t seed, uint32_t longest)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct naive at[JOBS] = {0};
    struct bh_timeline_result r;
    struct bh_err err;
    uint64_t sum = 0, naive_sum = 0;
    uint32_t missed = 0;
    draw(&j, seed, longest);
    for (size_t i = 0; i < JOBS; i++)
        at[i].left = j.at.at[i].duration_s;
    for (uint64_t now = 0; now < (uint64_t)NAIVE_END * (longest / 100 + 1); now++)
        naive_second(policy->name, j.at.at, at, now);
    for (size_t i = 0; i < JOBS; i++) {
        naive_sum += at[i].end - j.at.at[i].submit_s - j.at.at[i].duration_s;
        missed += j.at.at[i].deadline_s != BH_JOB_NO_DEADLINE && at[i].end > j.at.at[i].deadline_s;
    }
    if (bh_timeline_run(&j, &(struct bh_timeline_setup){.gpus = GPUS}, policy, &r, &err) < 0) {
        printf("# %s\n", err.msg);
        return false;
    }
    for (size_t i = 0; i < JOBS; i++)
        sum += r.waits[i];
    const bool same = sum == naive_sum && missed == r.missed;
    if (!same)
        printf("# %s, seed %u: waits %u, naively %u; missed %u, naively %u\n", policy->name, (unsigned)seed,
               (unsigned)sum, (unsigned)naive_sum, (unsigned)r.missed, (unsigned)missed);
    bh_timeline_result_fini(&r);
    return same;
}

TEST(each_agrees_with_the_plain_form_of_its_rule)
{
    for (size_t p = 0; p < BH_BASELINES; p++)
        for (uint64_t seed = 0; seed < 150; seed++)
            CHECK(agrees(&bh_baselines[p], seed, 90));
}

/* Levels begin at one GPU hour: jobs must be long for them to matter. */
TEST(las_takes_turns_as_levels_pass)
{
    for (uint64_t seed = 0; seed < 8; seed++)
        CHECK(agrees(bh_timeline_find("las"), seed, 9000));
}

TEST(stops_cost_and_are_paid)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_timeline_result r;
    struct bh_err err;
    j = (struct bh_jobs){0};
    (void)bh_jobs_tenant(&j, "a", 1);
    *bh_vec_push(&j.at) = (struct bh_job){.gpus = 2, .duration_s = 100, .deadline_s = BH_JOB_NO_DEADLINE};
    *bh_vec_push(&j.at) =
        (struct bh_job){.gpus = 2, .submit_s = 10, .duration_s = 20, .deadline_s = BH_JOB_NO_DEADLINE};
    CHECK_EQ(bh_timeline_run(&j, &(struct bh_timeline_setup){.gpus = 2, .restart_s = 7},
                             bh_timeline_find("srtf"), &r, &err),
             BH_OK);
    CHECK_EQ(r.stops, 1);
    CHECK_EQ(r.makespan_s, 127);
    CHECK_EQ(r.restart_gpu_s, 14);
    CHECK_EQ(r.wait_max_s, 27);
    bh_timeline_result_fini(&r);
}

TEST(a_larger_trace_ends_and_repeats)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_err err;
    bh_synth_jobs(
        &(struct bh_synth){
            .shape = BH_SYNTH_CHRONUS, .seed = 2, .jobs = 800, .tenants = 5, .gpus = 40, .load = 120},
        &j);
    for (size_t p = 0; p < BH_BASELINES; p++) {
        const struct bh_timeline_setup setup = {.gpus = 40, .restart_s = 60, .shares_by_demand = p % 2};
        struct bh_timeline_result a, b;
        CHECK_EQ(bh_timeline_run(&j, &setup, &bh_baselines[p], &a, &err), BH_OK);
        CHECK_EQ(bh_timeline_run(&j, &setup, &bh_baselines[p], &b, &err), BH_OK);
        CHECK_EQ(a.jobs, 800);
        CHECK(a.digest == b.digest);
        CHECK(a.used_gpu_s <= a.window_s * 40);
        CHECK(p == 0 ? a.stops == 0 : a.stops > 0);
        bh_timeline_result_fini(&a);
        bh_timeline_result_fini(&b);
    }
}

TEST_MAIN
