/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/timeline.h"

#include "base/choice.h"
#include "base/test.h"

static void add(struct bh_jobs *j, const char *tenant, uint32_t gpus, uint64_t submit, uint64_t duration,
                uint64_t deadline)
{
    *bh_vec_push(&j->at) = (struct bh_job){.tenant = (uint32_t)bh_jobs_tenant(j, tenant, strlen(tenant)),
                                           .gpus = gpus,
                                           .submit_s = submit,
                                           .duration_s = duration,
                                           .deadline_s = deadline ? deadline : BH_JOB_NO_DEADLINE};
}

/* ---- a policy of the test: does what a script says ---- */

struct script {
    uint64_t at_s;
    uint32_t job;
    char verb; /* + or - */
};
static const struct script *script;
static size_t n_script, next_line;
static char told[400];

static void *script_new(const struct bh_timeline_policy *p, const struct bh_jobs *j,
                        const struct bh_timeline_setup *s, const uint64_t *weight)
{
    (void)p, (void)j, (void)s, (void)weight;
    next_line = 0;
    told[0] = '\0';
    return told;
}
static void script_free(void *self)
{
    (void)self;
}
static void tell(const char *what, uint32_t job, uint64_t now)
{
    const size_t n = strlen(told);
    (void)snprintf(told + n, sizeof(told) - n, "%s%u@%u ", what, (unsigned)job, (unsigned)now);
}
static void script_arrived(void *self, uint32_t job, uint64_t now)
{
    (void)self;
    tell("a", job, now);
}
static void script_ended(void *self, uint32_t job, uint64_t now)
{
    (void)self;
    tell("e", job, now);
}
static void script_decide(void *self, uint64_t now, struct bh_moves *ret)
{
    (void)self;
    for (; next_line < n_script && script[next_line].at_s == now; next_line++)
        *bh_vec_push(script[next_line].verb == '+' ? &ret->start : &ret->stop) = script[next_line].job;
}
static uint64_t script_wake(void *self, uint64_t now)
{
    (void)self, (void)now;
    return next_line < n_script ? script[next_line].at_s : BH_NEVER_S;
}
static const struct bh_timeline_policy scripted = {"scripted",   script_new,    script_free, script_arrived,
                                                   script_ended, script_decide, script_wake, NULL};

static int follow(const struct bh_jobs *j, const struct bh_timeline_setup *setup, const struct script *lines,
                  size_t n, struct bh_timeline_result *ret, struct bh_err *err)
{
    script = lines;
    n_script = n;
    return bh_timeline_run(j, setup, &scripted, ret, err);
}

TEST(time_waits_deadlines_and_use)
{
    static const struct script lines[] = {{100, 0, '+'}, {100, 1, '+'}, {110, 1, '-'}, {130, 1, '+'}};
    const struct bh_timeline_setup setup = {.gpus = 4, .restart_s = 3};
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_timeline_result r;
    struct bh_err err;
    j = (struct bh_jobs){0};
    add(&j, "a", 2, 100, 20, 120); /* ends at 120: just in time */
    add(&j, "b", 2, 100, 30, 150); /* ten, then a stop, then twenty and the restart: ends at 153 */
    add(&j, "a", 9, 100, 30, 150); /* never fits */
    add(&j, "b", 1, 200, 5, 0);
    struct script all[5];
    memcpy(all, lines, sizeof(lines));
    all[4] = (struct script){200, 3, '+'};
    CHECK_EQ(follow(&j, &setup, all, 5, &r, &err), BH_OK);
    CHECK_STR(told, "a0@100 a1@100 e0@120 e1@153 a3@200 e3@205 ");
    CHECK_EQ(r.jobs, 3);
    CHECK_EQ(r.too_large, 1);
    CHECK_EQ(r.deadlines, 2);
    CHECK_EQ(r.missed, 1);
    CHECK_EQ(r.tenant[1].missed, 1);
    CHECK_EQ(r.waits[2], 23);
    CHECK_EQ(r.wait_max_s, 23);
    CHECK_EQ(r.wait_p50_s, 0);
    CHECK_EQ(r.window_s, 100);
    CHECK_EQ(r.makespan_s, 105);
    CHECK_EQ(r.used_gpu_s, 2 * 20 + 2 * 33); /* the last job runs after the window */
    CHECK_EQ(r.starts, 4);
    CHECK_EQ(r.stops, 1);
    CHECK_EQ(r.restart_gpu_s, 6);
    /* both want two of four while both are there: the ten seconds without b, and its wait, are off */
    CHECK_EQ(r.tenant[0].fair_gpu_s, 2 * 20);
    CHECK_EQ(r.tenant[0].off_gpu_s, 0);
    CHECK_EQ(r.tenant[1].fair_gpu_s, 2 * 53);
    CHECK_EQ(r.tenant[1].off_gpu_s, 2 * 20);
    CHECK_EQ(r.tenant[1].short_gpu_s, 2 * 20);
    uint64_t in_buckets = 0;
    for (size_t i = 0; i < 2 * BH_TIMELINE_BUCKETS; i++)
        in_buckets += r.used[i];
    CHECK_EQ(in_buckets, r.used_gpu_s);
    bh_timeline_result_fini(&r);
}

TEST(what_is_not_possible_is_the_policys_fault)
{
    static const struct {
        struct script line;
        const char *message;
    } cases[] = {
        {{0, 1, '+'},
         "policy 'scripted' wants to start job 1 at second 0, which is not possible"}, /* not there yet */
        {{0, 9, '+'}, "policy 'scripted' wants to start job 9 at second 0, which is not possible"},
        {{0, 2, '+'},
         "policy 'scripted' wants to start job 2 at second 0, which is not possible"}, /* too large */
        {{0, 0, '-'}, "policy 'scripted' wants to stop job 0 at second 0, which is not possible"},
        {{0, 7, '-'}, "policy 'scripted' wants to stop job 7 at second 0, which is not possible"},
    };
    const struct bh_timeline_setup setup = {.gpus = 4};
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_timeline_result r;
    struct bh_err err;
    j = (struct bh_jobs){0};
    add(&j, "a", 2, 0, 20, 0);
    add(&j, "a", 2, 5, 20, 0);
    add(&j, "a", 5, 5, 20, 0);
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        CHECK_EQ(follow(&j, &setup, &cases[i].line, 1, &r, &err), BH_CONFLICT);
        CHECK_STR(err.msg, cases[i].message);
    }
    const struct script twice[] = {{5, 0, '+'}, {5, 1, '+'}, {5, 0, '+'}};
    CHECK_EQ(follow(&j, &setup, twice, 3, &r, &err), BH_CONFLICT);
    CHECK_EQ(follow(&j, &setup, twice, 1, &r, &err), BH_CONFLICT);
    CHECK_STR(err.msg, "policy 'scripted' never ends 1 of 2 jobs");
    j.at.n = 0;
    CHECK_EQ(follow(&j, &setup, twice, 1, &r, &err), BH_INVALID);
}

TEST(policies_are_found_by_name)
{
    CHECK(bh_timeline_find("fifo") == &bh_baselines[0]);
    CHECK(bh_timeline_find("las") == &bh_baselines[3]);
    CHECK(bh_timeline_find("lottery") == NULL);
}

/* ---- fair shares ---- */

TEST(shares_by_hand)
{
    uint64_t milli[3];
    bh_fair_shares(12, (const uint64_t[]){1, 1, 1}, (const uint64_t[]){2, 20, 20}, 3, milli);
    CHECK_EQ(milli[0], 2000);
    CHECK_EQ(milli[1], 5000);
    CHECK_EQ(milli[2], 5000);
    bh_fair_shares(12, (const uint64_t[]){1, 1, 2}, (const uint64_t[]){0, 20, 20}, 3, milli);
    CHECK_EQ(milli[0], 0);
    CHECK_EQ(milli[1], 4000);
    CHECK_EQ(milli[2], 8000);
    bh_fair_shares(12, (const uint64_t[]){1, 1, 1}, (const uint64_t[]){2, 3, 4}, 3, milli);
    CHECK_EQ(milli[0] + milli[1] + milli[2], 9000);
}

/* Nobody has more than it wants, nothing is left while somebody wants, and who wants more has no less for its weight than
 * anybody else. */
TEST(shares_are_max_min_fair)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint8_t bytes[64];
        struct bh_choice c = {bytes, sizeof(bytes)};
        uint64_t weight[8], wanted[8], got[8], all = 0, want = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        const size_t n = 1 + bh_choose(&c, 8);
        const uint32_t gpus = 1 + bh_choose(&c, 200);
        for (size_t i = 0; i < n; i++) {
            weight[i] = 1 + bh_choose(&c, 9);
            wanted[i] = bh_choose(&c, 60);
            want += wanted[i];
        }
        bh_fair_shares(gpus, weight, wanted, n, got);
        for (size_t i = 0; i < n; i++) {
            CHECK(got[i] <= wanted[i] * 1000);
            all += got[i];
            for (size_t k = 0; k < n; k++)
                if (got[i] < wanted[i] * 1000)
                    CHECK((got[i] + 2) * weight[k] >= got[k] * weight[i]);
        }
        const uint64_t most = (want < gpus ? want : gpus) * 1000;
        CHECK(all <= most && all + n >= most);
    }
}

TEST_MAIN
