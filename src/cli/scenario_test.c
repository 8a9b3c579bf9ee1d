/* SPDX-License-Identifier: Apache-2.0 */
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
    char path[4096];
    struct bh_cli cli = {.cmd = &cmd};
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(path, sizeof(path), "%s/scenario.XXXXXX", tmp ? tmp : P_tmpdir);
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    (void)close(fd);
    const int status = bh_scenario_open(&cli, path, s);
    (void)unlink(path);
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

TEST(names_must_be_there_once)
{
    static const char *const wrong[] = {
        HEAD "  - {name: j, queue: nowhere, gpus: 1}\n",
        HEAD "  - {name: j, queue: q, gpus: 1}\n  - {name: j, queue: q, gpus: 1}\n",
        HEAD "  - {name: j, queue: g, gpus: 1}\n",
        HEAD "  - {name: j, queue: q, gpus: 1, within: room}\n",
        "bulkhead: 1\nnodes: []\nqueues:\n  - {name: q, parent: r}\n  - {name: r}\njobs: []\n",
        "bulkhead: 1\nnodes: []\nqueues:\n  - {name: q}\n  - {name: q}\njobs: []\n",
    };
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++) {
        struct bh_scenario s;
        CHECK_EQ(open_text(wrong[i], &s), BH_EXIT_UNREADABLE);
        bh_scenario_fini(&s);
    }
}

TEST_MAIN
