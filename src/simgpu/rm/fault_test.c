/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

#include <errno.h>

TEST(what_is_not_understood_is_told_what_is)
{
    static const char *const bad[] = {
        "",
        "gpu",
        "gpu x lost",
        "gpu 0 lost now",
        "gpu -1 lost",
        "calls fail zz every 3",
        "one two three four five six seven eight nine",
        "driver aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        CHECK_EQ(bh_sim_rm_break(rm, bad[i], &err), BH_INVALID);
        CHECK(strstr(err.msg, "gpu # lost") && strstr(err.msg, "mend"));
    }
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 7 lost", &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "GPU 7"));
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 link 18 down", &err), BH_NOT_FOUND);
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 throttle wind", &err), BH_INVALID);
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 hot 0", &err), BH_INVALID);
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 ecc 0", &err), BH_INVALID);
    CHECK_EQ(bh_sim_rm_break(rm, "calls fail 0 every 3", &err), BH_INVALID);
    CHECK_EQ(bh_sim_rm_break(rm, "calls fail 51 every 0", &err), BH_INVALID);
    CHECK_EQ(bh_sim_rm_break(rm, "calls slow 99999999", &err), BH_INVALID);
    CHECK_EQ(bh_sim_rm_break(rm, "library fail 0", &err), BH_INVALID);
    CHECK_EQ(bh_sim_rm_break(rm, "driver five", &err), BH_INVALID);
    static const char *const no_function[] = {"nosuch", "nvml", "nvmlx", "nvmlDevice-GetName",
                                              "cuInit", "**"};
    for (size_t i = 0; i < BH_COUNT_OF(no_function); i++) {
        char words[80];
        (void)snprintf(words, sizeof(words), "library fail 3 in %s", no_function[i]);
        CHECK_EQ(bh_sim_rm_break(rm, words, &err), BH_INVALID);
        CHECK(strstr(err.msg, "is no function"));
    }
    CHECK_EQ(bh_sim_rm_break(rm, "library fail 3 in nvmlDeviceGetPciInfo_v3", &err), BH_OK);
    CHECK_EQ(bh_sim_rm_break(rm, "library fail 3 in *", &err), BH_OK);
    CHECK(bh_sim_rm_scrubs(rm));
    CHECK_EQ(bh_sim_rm_break(rm, "scrub off", &err), BH_OK);
    CHECK(!bh_sim_rm_scrubs(rm));
    bh_sim_rm_free(rm);
}

TEST(a_lost_card_takes_its_work_along)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 2);
    struct fx_tenant t, other;
    struct bh_sim_gpu_view v;
    struct bh_sim_event e[4];
    uint64_t fence = 0, bytes = BH_MIB;
    uint32_t group = 0, channel = 0, memory = 0, ids[257] = {0};
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_user, 1, &other), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 1000000, &fence), 0);
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 lost", NULL), BH_OK);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, channel, &fence), -EIO);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 1, &fence), -EIO);
    CHECK_EQ(bh_sim_rm_next(rm), -1);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_GPU_IS_LOST);
    CHECK_EQ(fx_control(rm, t.file, t.who, t.client, t.subdevice, RM_CTRL_FB_GET_INFO_V2, ids, 1028),
             RM_GPU_IS_LOST);
    CHECK_EQ(fx_memory(rm, &other, &bytes, &memory), RM_OK);
    CHECK_EQ(bh_sim_rm_open(rm, BH_FILE_GPU, 0, &fx_user), -EIO);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v) && v.lost);
    CHECK_EQ(bh_sim_rm_events(rm, 0, e, 4), 1);
    CHECK(e[0].kind == BH_SIM_EVENT_XID && e[0].data == 79 && e[0].seq == 1);
    /* mended, the card works; what was on it does not come back */
    CHECK_EQ(bh_sim_rm_break(rm, "mend", NULL), BH_OK);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, channel, &fence), -EIO);
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, group), RM_OK);
    group = channel = 0;
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 1, &fence), 0);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST(faults_show)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct bh_sim_gpu_view v;
    struct bh_sim_node_view n;
    struct bh_sim_event e[8];
    static const char *const said[] = {"gpu 0 ecc 2",       "gpu 0 throttle power",
                                       "gpu 0 hot 95",      "gpu 0 link 4 down",
                                       "gpu 0 link 5 down", "gpu 0 link 5 up",
                                       "gpu 0 xid 31",      "library fail 15 in nvmlDeviceGetMemoryInfo",
                                       "calls slow 200"};
    for (size_t i = 0; i < BH_COUNT_OF(said); i++)
        CHECK_EQ(bh_sim_rm_break(rm, said[i], NULL), BH_OK);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK(v.ecc_uncorrected == 2 && v.ecc_uncorrected_now == 2 && v.remap_pending == 1);
    CHECK_EQ(v.throttle, 0x1 | 0x4 | 0x20);
    CHECK_EQ(v.temperature_c, 95);
    CHECK_EQ(v.links_down, 1 << 4);
    CHECK_EQ(v.fabric_health & 3, 1);
    CHECK(!v.lost);
    bh_sim_rm_view_node(rm, &n);
    CHECK_EQ(n.fail_status, 15);
    CHECK_STR(n.fail_call, "nvmlDeviceGetMemoryInfo");
    CHECK_EQ(bh_sim_rm_delay_ms(rm), 200);
    CHECK_EQ(bh_sim_rm_events(rm, 0, e, 8), 3);
    CHECK(e[0].kind == BH_SIM_EVENT_ECC && e[1].data == 48 && e[2].data == 31);
    CHECK_EQ(bh_sim_rm_events(rm, 2, e, 8), 1);
    CHECK_EQ(bh_sim_rm_events(rm, 3, e, 8), 0);
    CHECK_EQ(bh_sim_rm_break(rm, "library fail 9", NULL), BH_OK);
    bh_sim_rm_view_node(rm, &n);
    CHECK_STR(n.fail_call, "*");
    CHECK_EQ(bh_sim_rm_break(rm, "mend", NULL), BH_OK);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK(v.ecc_uncorrected == 0 && v.throttle == 1 && v.temperature_c < 95 && v.links_down == 0);
    bh_sim_rm_view_node(rm, &n);
    CHECK_EQ(n.fail_status, 0);
    CHECK_EQ(bh_sim_rm_delay_ms(rm), 0);
    bh_sim_rm_free(rm);
}

TEST(old_events_make_room)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    static struct bh_sim_event e[2000];
    for (uint32_t i = 0; i < 1500; i++)
        CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 xid 31", NULL), BH_OK);
    CHECK_EQ(bh_sim_rm_events(rm, 0, e, 2000), 1024);
    CHECK(e[0].seq == 477 && e[1023].seq == 1500);
    CHECK_EQ(bh_sim_rm_events(rm, 1499, e, 2000), 1);
    bh_sim_rm_free(rm);
}

TEST(calls_fail_as_told)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t failed = 0, freed = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(bh_sim_rm_break(rm, "calls fail 1a every 3", NULL), BH_OK);
    for (int i = 0; i < 9; i++) {
        uint32_t handle = 0, status = fx_make(rm, &t, t.device, RM_CLASS_EVENT, &handle);
        failed += status == RM_INSUFFICIENT_RESOURCES;
        freed += status == RM_OK && fx_free(rm, t.file, t.who, t.client, handle) == RM_OK;
    }
    CHECK_EQ(failed, 3);
    CHECK_EQ(freed, 6);
    bh_sim_rm_free(rm);
}

TEST(a_node_may_be_bad_from_the_start)
{
    struct bh_sim_node n = fx_node("H100-80GB", 2);
    struct fx_tenant t;
    n.slow_ms = 30;
    n.fail_every = 2;
    n.gpus[1].dead = true;
    struct bh_sim_rm *rm = bh_sim_rm_new(&n);
    uint64_t bytes = BH_MIB;
    uint32_t a = 0, b = 0, c = 0;
    CHECK_EQ(bh_sim_rm_delay_ms(rm), 30);
    CHECK_EQ(fx_tenant(rm, &fx_user, 1, &t), RM_GPU_IS_LOST);
    CHECK_EQ(bh_sim_rm_break(rm, "mend", NULL), BH_OK);
    CHECK_EQ(fx_tenant(rm, &fx_user, 1, &t), RM_GPU_IS_LOST);
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &a), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &b), RM_NO_MEMORY);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &c), RM_OK);
    bh_sim_rm_free(rm);
}

TEST_MAIN
