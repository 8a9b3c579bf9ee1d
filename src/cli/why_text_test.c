/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "cli/why_text.h"

static struct bh_scenario_job jobs[] = {{.name = "train"}, {.name = "small"}};
static struct bh_scenario_queue queues[] = {{.name = "team"}};
static const char *models[] = {"H200"}, *domains[] = {"l1"}, *nodes[] = {"gpu-07"};

static struct bh_scenario world(void)
{
    struct bh_scenario s = {.trial = {.now_ms = 1000}};
    s.file.jobs.at = jobs;
    s.file.jobs.n = 2;
    s.file.queues.at = queues;
    s.file.queues.n = 1;
    s.model_names.at = models;
    s.domain_names.at = domains;
    s.node_names.at = nodes;
    s.model_names.n = s.domain_names.n = s.node_names.n = 1;
    return s;
}

TEST(amounts_and_times)
{
    static const struct {
        uint64_t n;
        const char *gpus, *time;
    } cases[] = {{0, "0 GPUs", "0ms"},
                 {1000, "1 GPU", "1s"},
                 {500, "0.500 GPUs", "500ms"},
                 {90000, "90 GPUs", "1m 30s"},
                 {7500000, "7500 GPUs", "2h 5m"}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_buf b BH_AUTO(bh_buf_fini), t BH_AUTO(bh_buf_fini);
        bh_buf_init(&b, 100);
        bh_buf_init(&t, 100);
        bh_why_gpus(&b, cases[i].n);
        bh_why_time(&t, cases[i].n);
        CHECK_STR(bh_buf_text(&b), cases[i].gpus);
        CHECK_STR(bh_buf_text(&t), cases[i].time);
    }
}

TEST(changes_in_words)
{
    const struct {
        struct bh_change c;
        const char *words;
    } cases[] = {
        {{.kind = BH_CHANGE_WAIT, .at_ms = 61000}, "wait 1m 0s"},
        {{.kind = BH_CHANGE_MOVE, .job = 2, .milli = 2000}, "move small (2 GPUs) elsewhere"},
        {{.kind = BH_CHANGE_FREE, .job = 2, .milli = 1000}, "end small (1 GPU)"},
        {{.kind = BH_CHANGE_QUOTA, .queue = 1, .part = BH_PART_LIMIT, .from = 4000, .to = 6000},
         "raise the limit of team from 4 GPUs to 6 GPUs"},
        {{.kind = BH_CHANGE_QUOTA, .queue = 1, .part = BH_PART_DESERVED, .from = 4000, .to = 2000},
         "lower the deserved share of team from 4 GPUs to 2 GPUs"},
        {{.kind = BH_CHANGE_QUOTA, .queue = 1, .part = BH_PART_SHARE_MAX, .to = 250000},
         "raise the largest share of team to 25.0000 %"},
        {{.kind = BH_CHANGE_ADD, .nodes = 2, .gpus = 8, .domain = BH_NONE}, "add 2 nodes with 8 H200 each"},
        {{.kind = BH_CHANGE_ADD, .nodes = 1, .gpus = 4}, "add 1 node with 4 H200 in l1"},
        {{.kind = BH_CHANGE_ADD,
          .nodes = 1,
          .gpus = 4,
          .domain = BH_CHANGE_NEW_DOMAIN,
          .level = BH_LEVEL_LINK},
         "add 1 node with 4 H200 in a new NVLink domain"},
        {{.kind = BH_CHANGE_ADD,
          .nodes = 2,
          .gpus = 1,
          .domain = BH_NONE,
          .cpu_milli = 96500,
          .mem_mib = 2048},
         "add 2 nodes with 1 H200 each and with 96.500 processors, 2048 MiB of memory"},
        {{.kind = BH_CHANGE_ADD, .nodes = 1, .domain = BH_NONE, .pools = 1},
         "add 1 node without GPUs and with a place in its pool"},
        {{.kind = BH_CHANGE_HEALTH, .health = BH_HEALTH_CORDON}, "cordon gpu-07"},
    };
    const struct bh_scenario s = world();
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_buf b BH_AUTO(bh_buf_fini);
        bh_buf_init(&b, 200);
        bh_why_change(&b, &s, &cases[i].c);
        CHECK_STR(bh_buf_text(&b), cases[i].words);
    }
}

TEST(every_tier_has_a_sentence)
{
    const struct bh_scenario s = world();
    for (int tier = 0; tier < BH_WAITS; tier++) {
        const struct bh_verdict v = {.tier = (enum bh_wait)tier,
                                     .until_ms = 5000,
                                     .level = BH_LEVEL_NODE,
                                     .free = 1000,
                                     .group = 1000};
        struct bh_buf b BH_AUTO(bh_buf_fini);
        bh_buf_init(&b, 400);
        bh_why_sentence(&b, &s, &v);
        CHECK(b.n > 5 && !b.full);
        CHECK(bh_wait_names[tier] && *bh_wait_names[tier]);
    }
}

TEST(whatever_refuses_it_has_words)
{
    const struct bh_scenario s = world();
    for (int hinder = 1; hinder < BH_HINDERS; hinder++) {
        const struct bh_verdict v = {.tier = BH_WAIT_WITHHELD,
                                     .need = 1000,
                                     .withheld = 2000,
                                     .hinder = (enum bh_hinder)hinder,
                                     .hinder_need = 7000};
        struct bh_buf b BH_AUTO(bh_buf_fini);
        bh_buf_init(&b, 400);
        bh_why_sentence(&b, &s, &v);
        CHECK(!b.full && strstr(bh_buf_text(&b),
                                "it needs 1 GPU, and 2 GPUs are free, of which it cannot use 2 GPUs: "));
        CHECK(strstr(bh_buf_text(&b), "(gpu-07)"));
        CHECK(bh_hinder_names[hinder] && *bh_hinder_names[hinder]);
    }
}

TEST_MAIN
