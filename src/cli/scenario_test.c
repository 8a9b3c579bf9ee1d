/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"
#include "base/test.h"
#include "cli/scenario.h"

#include <unistd.h>

#define HEAD                                                            \
    "bulkhead: 1\n"                                                     \
    "now: 1h\n"                                                         \
    "nodes:\n"                                                          \
    "  - {name: a, model: H200, gpus: 4, count: 2, rack: r, link: l}\n" \
    "queues:\n"                                                         \
    "  - {name: q, deserved: 8}\n"                                      \
    "  - {name: g}\n"                                                   \
    "  - {name: below, parent: g}\n"                                    \
    "jobs:\n"

static const struct bh_cmd cmd = {.name = "why"};

static int open_text(const char *text, struct bh_scenario *s)
{
    char folder[BH_SCRATCH_PATH], path[BH_SCRATCH_PATH + 8];
    struct bh_cli cli = {.cmd = &cmd};
    if (!bh_scratch_make(folder, sizeof(folder), "scenario") || !bh_scratch_put(folder, "s.yaml", text))
        abort();
    (void)snprintf(path, sizeof(path), "%s/s.yaml", folder);
    const int status = bh_scenario_open(&cli, path, s);
    (void)bh_scratch_remove(folder);
    return status;
}

TEST(jobs_are_played_up_to_now)
{
    struct bh_scenario s;
    CHECK_EQ(open_text(HEAD "  - {name: ended, queue: q, gpus: 4, runtime: 30m}\n"
                            "  - {name: runs, queue: q, gpus: 4, members: 2, submitted: 10m}\n"
                            "  - {name: waits, queue: below, gpus: 4, within: rack, submitted: 20m}\n"
                            "  - {name: later, queue: q, gpus: 1, submitted: 2h}\n",
                       &s),
             BH_EXIT_OK);
    CHECK(!bh_sched_job(s.trial.sched, bh_scenario_job(&s, "ended")));
    CHECK(!bh_sched_job(s.trial.sched, bh_scenario_job(&s, "later")));
    const struct bh_gang *runs = bh_sched_job(s.trial.sched, bh_scenario_job(&s, "runs"));
    CHECK(runs && bh_trial_runs(&s.trial, bh_scenario_job(&s, "runs")));
    CHECK_EQ(runs->since_ms, 30 * 60 * 1000); /* when the first had ended */
    CHECK(bh_sched_job(s.trial.sched, bh_scenario_job(&s, "waits")));
    CHECK_EQ(s.trial.now_ms, 3600 * 1000);
    CHECK_EQ(bh_scenario_job(&s, "nobody"), 0);
    CHECK_STR(bh_scenario_job_name(&s, 2), "runs");
    CHECK_STR(bh_scenario_queue_name(&s, 1), "q");
    CHECK_STR(bh_scenario_queue_name(&s, 0), "the fleet");
    CHECK_EQ(s.node_names.n, 2);
    CHECK_STR(s.node_names.at[1], "a-1");
    bh_scenario_fini(&s);
}

#define TWICE                               \
    "bulkhead: 1\nnodes:\n"                 \
    "  - {name: a, model: H200, gpus: 1}\n" \
    "  - {name: a, model: H200, gpus: 1}\n" \
    "queues:\n  - {name: q}\njobs: []\n"

TEST(names_must_be_there_once)
{
    static const char *const wrong[] = {
        HEAD "  - {name: j, queue: nowhere, gpus: 1}\n",
        HEAD "  - {name: j, queue: q, gpus: 1}\n  - {name: j, queue: q, gpus: 1}\n",
        HEAD "  - {name: j, queue: g, gpus: 1}\n",
        HEAD "  - {name: j, queue: q, gpus: 1, within: room}\n",
        "bulkhead: 1\nnodes: []\nqueues:\n  - {name: q, parent: r}\n  - {name: r}\njobs: []\n",
        "bulkhead: 1\nnodes: []\nqueues:\n  - {name: q}\n  - {name: q}\njobs: []\n",
        TWICE,
    };
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++) {
        struct bh_scenario s;
        CHECK_EQ(open_text(wrong[i], &s), BH_EXIT_UNREADABLE);
        bh_scenario_fini(&s);
    }
}

#define NODE "bulkhead: 1\nnodes:\n  - {name: a, model: H200, gpus: 8}\n"

/* What the scheduler refuses only once it has seen all of it: said with its place, and not played without it. */
TEST(what_the_scheduler_refuses_is_said)
{
    static const struct {
        const char *text, *words;
        uint32_t line;
    } cases[] = {
        {NODE "queues:\n  - {name: q, guarantee: 8, limit: 4}\n  - {name: r}\n"
              "jobs:\n  - {name: j, queue: r, gpus: 1}\n",
         "guarantee", 5},
        {NODE "queues:\n  - {name: q0}\n  - {name: q1, parent: q0}\n  - {name: q2, parent: q1}\n"
              "  - {name: q3, parent: q2}\n  - {name: q4, parent: q3}\n  - {name: q5, parent: q4}\n"
              "  - {name: q6, parent: q5}\n  - {name: q7, parent: q6}\n  - {name: q8, parent: q7}\n"
              "jobs:\n  - {name: j, queue: q8, gpus: 1}\n",
         "levels", 13},
        {NODE
         "queues:\n  - {name: q}\njobs:\n  - {name: j, queue: q, gpus: 1, members: 4096, memory: 16777215TiB}\n",
         "more than", 7},
        {"bulkhead: 1\nnodes:\n  - {name: a, model: H200, gpus: 8, rack: r1, link: l1}\n"
         "  - {name: b, model: H200, gpus: 8, rack: r2, link: l1}\nqueues:\n  - {name: q}\njobs: []\n",
         "two racks", 4},
        {"bulkhead: 1\nnodes:\n  - {name: a, model: H200, gpus: 8, rack: x}\n"
         "  - {name: b, model: H200, gpus: 8, link: x}\nqueues:\n  - {name: q}\njobs: []\n",
         "as a rack and as a link", 4},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_scenario s;
        CHECK_EQ(open_text(cases[i].text, &s), BH_EXIT_UNREADABLE);
        CHECK_EQ(s.file.diags.n_errors, 1);
        CHECK_EQ(s.file.diags.at.at[0].pos.line, cases[i].line);
        CHECK(strstr(s.file.diags.at.at[0].message, cases[i].words) != NULL);
        bh_scenario_fini(&s);
    }
}

/* Models are bits of a word: the sixty-fifth is no other name for the first. */
TEST(one_model_too_many)
{
    for (int in_job = 0; in_job < 2; in_job++) {
        struct bh_scenario s;
        struct bh_buf b BH_AUTO(bh_buf_fini);
        bh_buf_init(&b, 1 << 14);
        bh_buf_str(&b, "bulkhead: 1\nnodes:\n");
        for (int i = 0; i < 65 - in_job; i++)
            bh_buf_printf(&b, "  - {name: n%d, model: m%d, gpus: 1}\n", i, i);
        bh_buf_printf(&b, "queues:\n  - {name: q}\njobs:\n  - {name: j, queue: q, gpus: 1, model: %s}\n",
                      in_job ? "extra" : "m0");
        CHECK_EQ(open_text(bh_buf_text(&b), &s), BH_EXIT_UNREADABLE);
        CHECK(strstr(s.file.diags.at.at[0].message, "at most 64 GPU models") != NULL);
        bh_scenario_fini(&s);
    }
}

TEST_MAIN
