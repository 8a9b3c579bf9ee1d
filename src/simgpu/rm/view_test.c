/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"
#include "simgpu/rm/sched.h"

#define SECOND UINT64_C(1000000000)

TEST(an_idle_card)
{
    struct bh_sim_rm *rm = fx_new("H200-141GB", 2);
    struct bh_sim_gpu_view v;
    bh_sim_rm_advance(rm, 3 * SECOND);
    CHECK(bh_sim_rm_view_gpu(rm, 1, &v));
    CHECK_STR(v.model, "H200-141GB");
    CHECK_EQ(v.index, 1);
    CHECK_EQ(v.used_bytes, 0);
    CHECK_EQ(v.util_percent, 0);
    CHECK_EQ(v.throttle, 1);
    CHECK_EQ(v.power_limit_mw, 700000);
    CHECK(v.mig_capable && !v.mig_on && v.ecc_on);
    CHECK_EQ(v.fabric_health, 0x1aa);
    CHECK(!bh_sim_rm_view_gpu(rm, 2, &v));
    bh_sim_rm_free(rm);
}

TEST(processes_show_their_memory_and_time)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t, watcher;
    struct bh_sim_gpu_view v;
    uint64_t bytes = BH_GIB, fence;
    uint32_t memory = 0, group = 0, channel = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &watcher), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, SECOND / 2, &fence), 0);
    bh_sim_rm_advance(rm, SECOND);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK_EQ(v.n_processes, 1);
    CHECK_EQ(v.processes[0].pid, 100);
    CHECK_EQ(v.processes[0].bytes, BH_GIB);
    CHECK(v.used_bytes > BH_GIB); /* with what the channel takes, which is nobody's */
    CHECK_EQ(v.processes[0].busy_ns, SECOND / 2);
    CHECK_EQ(v.processes[0].gi, UINT32_MAX);
    /* time of groups that are gone still counts for the process */
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, group), RM_OK);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK_EQ(v.processes[0].busy_ns, SECOND / 2);
    bh_sim_rm_free(rm);
}

TEST(who_had_the_card_is_told_by_process)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 2);
    struct fx_tenant t, other;
    struct bh_sim_busy busy[4];
    uint64_t fence, now;
    uint32_t group = 0, channel = 0, second = 0, its = 0;
    CHECK_EQ(bh_sim_rm_busy(rm, 0, busy, 4, &now), 0);
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &other), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(fx_channel(rm, &other, &second, &its), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, SECOND / 2, &fence), 0);
    CHECK_EQ(bh_sim_rm_submit(rm, other.file, other.client, its, 10 * SECOND, &fence), 0);
    bh_sim_rm_advance(rm, 3 * SECOND);
    CHECK_EQ(bh_sim_rm_busy(rm, 0, busy, 4, &now), 2);
    CHECK_EQ(now, 3 * SECOND);
    const struct bh_sim_busy *a = busy[0].pid == 100 ? &busy[0] : &busy[1],
                             *b = busy[0].pid == 100 ? &busy[1] : &busy[0];
    CHECK(a->pid == 100 && b->pid == 200 && !a->on && b->on);
    CHECK_EQ(a->ns, SECOND / 2);
    CHECK_EQ(a->turns, SECOND / 2 / (BH_SIM_SLICE_DEFAULT_US * 1000));
    CHECK(b->ns > 2 * SECOND && a->ns + b->ns <= now);
    CHECK_EQ(bh_sim_rm_busy(rm, 0, busy, 1, &now), 1);
    CHECK_EQ(bh_sim_rm_busy(rm, 1, busy, 4, &now), 0);
    CHECK_EQ(bh_sim_rm_busy(rm, 2, busy, 4, &now), 0);
    bh_sim_rm_free(rm);
}

TEST(utilization_is_that_of_the_last_second)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    struct bh_sim_gpu_view v;
    uint64_t fence;
    uint32_t group = 0, channel = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 10 * SECOND, &fence), 0);
    bh_sim_rm_advance(rm, 5 * SECOND);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK(v.util_percent >= 99 && v.util_percent <= 100);
    CHECK(!(v.throttle & 1) && v.power_mw > v.power_limit_mw / 2);
    bh_sim_rm_advance(rm, 10 * SECOND + SECOND / 2 + 500000);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK(v.util_percent >= 45 && v.util_percent <= 55);
    bh_sim_rm_advance(rm, 1000 * SECOND);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK_EQ(v.util_percent, 0);
    bh_sim_rm_free(rm);
}

TEST(the_node_names_its_driver)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 4);
    struct bh_sim_node_view v;
    bh_sim_rm_view_node(rm, &v);
    CHECK_EQ(v.n_gpus, 4);
    CHECK_STR(v.driver, "580.159.04");
    CHECK_STR(v.nvml, "13.580.159.04");
    CHECK_EQ(v.cuda, 13000);
    CHECK_EQ(v.fail_status, 0);
    CHECK_EQ(bh_sim_rm_break(rm, "driver 535.104.05", NULL), BH_OK);
    bh_sim_rm_view_node(rm, &v);
    CHECK_STR(v.nvml, "12.535.104.05");
    CHECK_EQ(v.cuda, 12020);
    bh_sim_rm_free(rm);
}

TEST_MAIN
