/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "core/sched/whatif_fixture.h"

/* Two nodes of four GPUs, one queue that deserves all of them. */
static void open_two(struct town *t)
{
    town_open(t, 1);
    for (uint32_t i = 0; i < 2; i++)
        (void)town_node(t, BH_NONE, 4, 0);
    (void)town_queue(t, BH_QUEUE_ROOT, 8, BH_AMOUNT_ANY);
}

TEST(a_copy_leaves_the_scheduler_alone)
{
    struct town t;
    struct bh_whatif w;
    open_two(&t);
    const uint64_t first = town_submit(&t, town_job(1, 2, 4));
    town_run(&t);
    const uint64_t second = town_submit(&t, town_job(1, 1, 4));
    town_run(&t);
    CHECK(town_runs(&t, first) && town_waits(&t, second));
    bh_whatif_init(&w, t.s, NULL, t.now_ms);
    const uint64_t digest = bh_sched_digest(t.s);
    const struct bh_change end = {.kind = BH_CHANGE_FREE, .job = first};
    CHECK(!bh_whatif_starts(&w, NULL, 0, second));
    CHECK(bh_whatif_starts(&w, &end, 1, second));
    CHECK_EQ(w.tries, 2);
    CHECK(bh_sched_digest(t.s) == digest && town_runs(&t, first) && town_waits(&t, second));
    bh_whatif_fini(&w);
    town_close(&t);
}

TEST(changes_that_cannot_be_are_refused)
{
    struct town t;
    struct bh_whatif w;
    struct bh_trial trial;
    struct bh_err err;
    const struct bh_change wrong[] = {
        {.kind = BH_CHANGE_FREE, .job = 99},
        {.kind = BH_CHANGE_QUOTA, .queue = 99},
        {.kind = BH_CHANGE_ADD, .like = 99, .nodes = 1, .gpus = 4},
        {.kind = BH_CHANGE_ADD, .like = 0, .nodes = 1, .gpus = 99},
        {.kind = BH_CHANGE_HEALTH, .node = 99, .gpu = BH_NONE},
    };
    open_two(&t);
    bh_whatif_init(&w, t.s, NULL, t.now_ms);
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++)
        CHECK(bh_trial_begin(&w, &wrong[i], 1, &trial, &err) < 0);
    bh_whatif_fini(&w);
    town_close(&t);
}

TEST(time_goes_to_what_is_known)
{
    struct town t;
    struct bh_whatif w;
    struct bh_trial trial;
    struct bh_err err;
    open_two(&t);
    struct bh_gang_spec hour = town_job(1, 1, 4), two = town_job(1, 1, 4);
    hour.runtime_ms = 3600 * TOWN_SECOND;
    two.runtime_ms = 7200 * TOWN_SECOND;
    (void)town_submit(&t, hour);
    (void)town_submit(&t, two);
    town_run(&t);
    const uint64_t waits = town_submit(&t, town_job(1, 2, 4));
    town_run(&t);
    bh_whatif_init(&w, t.s, NULL, t.now_ms);
    CHECK_EQ(bh_trial_begin(&w, NULL, 0, &trial, &err), 0);
    while (!bh_trial_runs(&trial, waits))
        CHECK(bh_trial_next(&trial, BH_NEVER_MS - 1));
    CHECK_EQ(trial.now_ms, t.now_ms + 7200 * TOWN_SECOND);
    while (bh_trial_next(&trial, BH_NEVER_MS - 1)) /* its minimum run time; then nothing is known any more */
        CHECK(bh_trial_runs(&trial, waits));
    bh_trial_end(&trial);
    bh_whatif_fini(&w);
    town_close(&t);
}

TEST(who_can_go_elsewhere_moves)
{
    struct town t;
    struct bh_whatif w;
    struct bh_trial trial;
    struct bh_err err;
    open_two(&t);
    /* Three on one node, one on the other: four fit nowhere, but would if the one went to the three. */
    const uint64_t three = town_submit(&t, town_job(1, 1, 3));
    town_run(&t);
    const uint64_t beside = town_submit(&t, town_job(1, 1, 1));
    town_run(&t);
    const uint64_t one = town_submit(&t, town_job(1, 1, 1));
    town_run(&t);
    town_tell(&t, (struct bh_sched_event){.kind = BH_SCHED_FINISH, .id = beside});
    const uint64_t four = town_submit(&t, town_job(1, 1, 4));
    town_run(&t);
    CHECK(town_runs(&t, three) && town_runs(&t, one) && town_waits(&t, four));
    const struct bh_change ends[] = {{.kind = BH_CHANGE_FREE, .job = one},
                                     {.kind = BH_CHANGE_FREE, .job = three}};
    bh_whatif_init(&w, t.s, NULL, t.now_ms);
    CHECK_EQ(bh_trial_begin(&w, &ends[0], 1, &trial, &err), 0);
    CHECK(bh_trial_runs(&trial, four));
    CHECK(bh_trial_return(&trial, t.s, &one, 1));
    bh_trial_end(&trial);
    CHECK_EQ(bh_trial_begin(&w, &ends[1], 1, &trial, &err), 0);
    CHECK(bh_trial_runs(&trial, four));
    CHECK(bh_trial_return(&trial, t.s, &three, 1));
    const uint64_t both[] = {one, three};
    bh_trial_end(&trial);
    CHECK_EQ(bh_trial_begin(&w, ends, 2, &trial, &err), 0);
    CHECK(bh_trial_return(&trial, t.s, both, 2));
    bh_trial_end(&trial);
    bh_whatif_fini(&w);
    town_close(&t);
}

TEST(who_starts_anyway_needs_nobody_to_end)
{
    struct bh_remedy_config c;
    struct bh_remedy r = {0};
    struct bh_whatif w;
    struct town t;
    bh_remedy_config_init(&c);
    town_open(&t, 1);
    town_node(&t, BH_NONE, 2, 0);
    const uint64_t job = town_submit(&t, town_job(town_queue(&t, 0, 2, BH_AMOUNT_ANY), 1, 1));
    (void)town_submit(&t, town_job(1, 1, 1));
    bh_whatif_init(&w, t.s, NULL, t.now_ms);
    CHECK(bh_remedy_clear(&w, t.s, job, NULL, 0, &c, &r));
    CHECK_EQ(r.steps.n, 0);
    bh_remedy_fini(&r);
    bh_whatif_fini(&w);
    town_close(&t);
}

TEST(a_job_as_it_came)
{
    struct town t;
    struct bh_gang_spec spec;
    open_two(&t);
    struct bh_gang_spec came = town_job(1, 2, 3);
    came.priority = 7;
    came.firm = true;
    came.within = BH_LEVEL_RACK;
    const uint64_t id = town_submit(&t, came);
    bh_sched_settle(t.s);
    bh_gang_spec_of(t.s, bh_sched_job(t.s, id), &spec);
    CHECK_EQ(spec.id, id);
    CHECK_EQ(spec.priority, 7);
    CHECK_EQ(spec.within, BH_LEVEL_RACK);
    CHECK(spec.firm);
    CHECK_EQ(spec.roles[0].min, 2);
    CHECK_EQ(spec.roles[0].request.n_gpus, 3);
    CHECK_EQ(bh_pending_below(t.s, BH_QUEUE_ROOT, BH_RES_GPU), 6000);
    town_close(&t);
}

TEST_MAIN
