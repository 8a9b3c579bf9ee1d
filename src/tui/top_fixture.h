/* SPDX-License-Identifier: Apache-2.0 */
/* top_fixture.h - a node as a daemon would tell of it, for the tests of the screen. */
#ifndef BH_TUI_TOP_FIXTURE_H
#define BH_TUI_TOP_FIXTURE_H

#include "base/test.h"
#include "tui/top.h"

enum { FIX_GPUS = 16, FIX_NOW_MS = 10000000 };

static struct bh_a_slice fix_slices[2] = {{.kind = "share",
                                           .state = "owned",
                                           .lease = "L3",
                                           .tenant = "red",
                                           .milli = 500,
                                           .memory_mib = 40960,
                                           .since_ms = FIX_NOW_MS - 5000},
                                          {.kind = "share",
                                           .key = "b",
                                           .state = "quarantined",
                                           .why = "the canary was there",
                                           .milli = 250,
                                           .memory_mib = 20480,
                                           .since_ms = 1000}};
static struct bh_a_gpu fix_gpu[FIX_GPUS];
static char fix_uuid[FIX_GPUS][16];
static const struct bh_a_job fix_jobs[] = {{.id = "J1",
                                            .tenant = "red",
                                            .user = "ada",
                                            .name = "train",
                                            .state = "running",
                                            .priority = "normal",
                                            .why = "runs",
                                            .gpus = 2,
                                            .milli = 1000,
                                            .state_ms = FIX_NOW_MS - 3600000},
                                           {.id = "J2",
                                            .tenant = "blue",
                                            .user = "bob",
                                            .state = "waiting",
                                            .priority = "high",
                                            .why = "no room: 1 GPU is needed, 0.25 are free",
                                            .gpus = 1,
                                            .milli = 500,
                                            .state_ms = FIX_NOW_MS - 61000}};
static const struct bh_a_quota fix_quotas[] = {
    {.tenant = "red", .model = "hard", .guaranteed_milli = 2000, .max_milli = 2000, .used_milli = 2000},
    {.tenant = "blue",
     .model = "fairshare",
     .guaranteed_milli = 0,
     .max_milli = 4000,
     .used_milli = 500,
     .borrowed_milli = 500,
     .waiting_jobs = 1}};

static inline struct bh_top_data fix_data(size_t n_gpus)
{
    struct bh_top_data d = {.here = true, .at_ms = FIX_NOW_MS};
    d.status = (struct bh_a_status){.node = "node-1",
                                    .health = "ok",
                                    .simulated = true,
                                    .now_ms = FIX_NOW_MS,
                                    .policy_version = 3,
                                    .gpus = n_gpus};
    for (size_t i = 0; i < n_gpus && i < FIX_GPUS; i++) {
        (void)snprintf(fix_uuid[i], sizeof(fix_uuid[i]), "GPU-%02zu", i);
        fix_gpu[i] = (struct bh_a_gpu){.index = i,
                                       .uuid = fix_uuid[i],
                                       .model = "NVIDIA H100 80GB HBM3",
                                       .pool = "cards",
                                       .state = i == 3 ? "quarantined" : "ok",
                                       .layout = "shared",
                                       .memory_mib = 81559,
                                       .used_mib = i == 2 ? BH_ANSWER_UNKNOWN : i * 1000,
                                       .util_percent = i == 2 ? BH_ANSWER_UNKNOWN : i * 6,
                                       .temperature_c = 40 + i,
                                       .power_mw = 300000};
    }
    fix_gpu[0].slices.at = fix_slices;
    fix_gpu[0].slices.n = 2;
    d.gpus.gpus.at = fix_gpu;
    d.gpus.gpus.n = n_gpus;
    d.jobs.jobs.at = fix_jobs;
    d.jobs.jobs.n = BH_COUNT_OF(fix_jobs);
    d.quotas.quotas.at = fix_quotas;
    d.quotas.quotas.n = BH_COUNT_OF(fix_quotas);
    for (int i = 0; i < 3; i++)
        bh_top_remember(&d);
    return d;
}

#endif
