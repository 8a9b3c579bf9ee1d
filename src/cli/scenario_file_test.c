/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "cli/scenario_file.h"

static struct bh_scenario_file read_text(const char *text)
{
    struct bh_scenario_file f = {0};
    bh_scenario_file_read(text, strlen(text), &f);
    return f;
}

TEST(all_that_may_stand_in_one)
{
    struct bh_scenario_file f = read_text(
        "bulkhead: 1\n"
        "now: 90m\n"
        "nodes:\n"
        "  - {name: a, model: H200, gpus: 8, count: 4, rack: r, link: l, cpu: 64, memory: 512GiB}\n"
        "queues:\n"
        "  - {name: q, guarantee: 1, deserved: 8, limit: 16, weight: 3, serves: true}\n"
        "  - {name: p, parent: q}\n"
        "jobs:\n"
        "  - {name: j, queue: p, gpus: 4, members: 2, within: link, model: H200, tenant: t, alone: true, cpu: 0.5,\n"
        "     memory: 1GiB, priority: 5, firm: true, submitted: 10m, runtime: 2h, minRuntime: 5m}\n"
        "  - {name: k, queue: p, share: 0.25}\n");
    CHECK_EQ(f.diags.n_errors, 0);
    CHECK_EQ(f.now_ms, 90 * 60 * 1000);
    CHECK_EQ(f.nodes.n, 1);
    CHECK_EQ(f.nodes.at[0].count, 4);
    CHECK_EQ(f.nodes.at[0].cpu_milli, 64000);
    CHECK_STR(f.nodes.at[0].link, "l");
    CHECK_EQ(f.queues.n, 2);
    CHECK(f.queues.at[0].has_limit && f.queues.at[0].serves && !f.queues.at[1].has_limit);
    CHECK_EQ(f.queues.at[0].limit_milli, 16000);
    CHECK_EQ(f.queues.at[1].weight, 1);
    CHECK_STR(f.queues.at[1].parent, "q");
    CHECK_EQ(f.jobs.n, 2);
    CHECK_EQ(f.jobs.at[0].members, 2);
    CHECK_EQ(f.jobs.at[0].runtime_ms, 2 * 3600 * 1000);
    CHECK_EQ(f.jobs.at[0].min_runtime_ms, 5 * 60 * 1000);
    CHECK(f.jobs.at[0].firm && f.jobs.at[0].alone);
    CHECK_EQ(f.jobs.at[1].share_milli, 250);
    CHECK_EQ(f.jobs.at[1].members, 1);
    bh_scenario_file_fini(&f);
}

TEST(what_is_wrong_has_its_place)
{
    static const struct {
        const char *text;
        uint32_t line;
    } cases[] = {
        {"bulkhead: 1\nnodes: [}\n", 2},
        {"bulkhead: 1\nnodes: []\nqueues: []\njobs:\n  - {name: a, queue: q, gpus: 17}\n", 5},
        {"bulkhead: 1\nnodes: []\nqueues:\n  - {name: a, limmit: 4}\njobs: []\n", 4},
        {"bulkhead: 1\nnodes: []\nqueues: []\n", 1},
        {"bulkhead: 1\nnodes:\n  - {name: a, gpus: 8}\nqueues: []\njobs: []\n", 3},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_scenario_file f = read_text(cases[i].text);
        CHECK(f.diags.n_errors > 0);
        CHECK_EQ(f.diags.at.at[0].pos.line, cases[i].line);
        bh_scenario_file_fini(&f);
    }
}

TEST_MAIN
