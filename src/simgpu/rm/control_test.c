/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

static uint32_t control(struct bh_sim_rm *rm, const struct fx_tenant *t, uint32_t object, uint32_t command,
                        void *p, uint32_t n)
{
    return fx_control(rm, t->file, t->who, t->client, object, command, p, n);
}

TEST(refusals_have_statuses_of_their_own)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t p[257] = {0};
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_control(rm, t.file, t.who, 0xbad, t.subdevice, RM_CTRL_FB_GET_INFO_V2, p, 1028),
             RM_INVALID_CLIENT);
    CHECK_EQ(control(rm, &t, 0xbad, RM_CTRL_FB_GET_INFO_V2, p, 1028), RM_OBJECT_NOT_FOUND);
    CHECK_EQ(control(rm, &t, t.subdevice, 0x2080ffff, p, 4), RM_INVALID_COMMAND);
    CHECK_EQ(control(rm, &t, t.device, RM_CTRL_FB_GET_INFO_V2, p, 1028), RM_INVALID_OBJECT_HANDLE);
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FB_GET_INFO_V2, p, 1024), RM_INVALID_PARAM_STRUCT);
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FB_GET_INFO_V2, NULL, 1028), RM_INVALID_PARAM_STRUCT);
    CHECK_EQ(control(rm, &t, t.subdevice, 0x20800194, p, 8), RM_INSUFFICIENT_PERMISSIONS);
    CHECK_EQ(fx_control(rm, t.file, &fx_admin, t.client, t.subdevice, 0x20800194, p, 8), RM_OK);
    bh_sim_rm_free(rm);
}

TEST(a_canned_answer_leaves_the_parameters)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t p[4] = {1, 2, 3, 4}, was[4] = {1, 2, 3, 4}, plain = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(control(rm, &t, t.subdevice, 0x20801701, p, sizeof(p)), RM_OK);
    CHECK(memcmp(p, was, sizeof(p)) == 0);
    CHECK_EQ(fx_make(rm, &t, t.client, 0xcb33, &plain), RM_OK);
    CHECK_EQ(control(rm, &t, plain, 0xcb330101, p, 6), RM_OK);
    CHECK_EQ(control(rm, &t, t.subdevice, 0x20801357, p, 4), RM_NOT_SUPPORTED);
    bh_sim_rm_free(rm);
}

TEST(memory_is_told_by_index)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = BH_GIB;
    uint32_t memory = 0, p[257] = {3, 0x08, 0, 0x09, 0, 0x16, 0}, total = 80u << 20,
             usable = total - (512 << 10);
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    total = (uint32_t)(bh_catalog_find("H100-80GB")->memory_mib) << 10;
    usable = total - (512 << 10);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FB_GET_INFO_V2, p, sizeof(p)), RM_OK);
    CHECK_EQ(p[2], total);
    CHECK_EQ(p[4], usable);
    CHECK_EQ(p[6], usable - (1 << 20));
    p[0] = 129;
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FB_GET_INFO_V2, p, sizeof(p)), RM_INVALID_ARGUMENT);
    p[0] = 1;
    p[1] = 0x1000;
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FB_GET_INFO_V2, p, sizeof(p)), RM_INVALID_ARGUMENT);
    bh_sim_rm_free(rm);
}

TEST(processes_are_listed_once)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 2);
    struct fx_tenant a, again, b, elsewhere;
    uint32_t p[953] = {0}, group = 0, channel = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &a), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &again), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &b), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_admin, 1, &elsewhere), RM_OK);
    p[1] = RM_CLASS_SUBDEVICE;
    CHECK_EQ(control(rm, &a, a.subdevice, RM_CTRL_GPU_GET_PIDS, p, sizeof(p)), RM_OK);
    CHECK_EQ(p[2], 2);
    CHECK(p[3] + p[4] == 300 && p[3] != p[4]);
    CHECK_EQ(fx_channel(rm, &b, &group, &channel), RM_OK);
    p[1] = RM_CLASS_CHANNEL_HOPPER;
    CHECK_EQ(control(rm, &a, a.subdevice, RM_CTRL_GPU_GET_PIDS, p, sizeof(p)), RM_OK);
    CHECK(p[2] == 1 && p[3] == 200);
    p[0] = 1;
    CHECK_EQ(control(rm, &a, a.subdevice, RM_CTRL_GPU_GET_PIDS, p, sizeof(p)), RM_INVALID_ARGUMENT);
    uint64_t bytes = 2 * BH_MIB;
    uint32_t memory = 0, info[14408 / 4] = {201};
    CHECK_EQ(fx_memory(rm, &b, &bytes, &memory), RM_OK);
    CHECK_EQ(control(rm, &a, a.subdevice, RM_CTRL_GPU_GET_PID_INFO, info, sizeof(info)), RM_INVALID_ARGUMENT);
    info[0] = 0;
    CHECK_EQ(control(rm, &a, a.subdevice, RM_CTRL_GPU_GET_PID_INFO, info, sizeof(info)), RM_INVALID_ARGUMENT);
    info[0] = 2; /* the same process twice, the second time for something else */
    info[2] = info[20] = 200;
    info[21] = 5;
    CHECK_EQ(control(rm, &a, a.subdevice, RM_CTRL_GPU_GET_PID_INFO, info, sizeof(info)), RM_OK);
    CHECK(info[4] == RM_OK && info[22] == RM_INVALID_ARGUMENT);
    CHECK(info[6] == bytes && info[6] == info[24]);
    bh_sim_rm_free(rm);
}

TEST(samples_name_who_uses_the_card)
{
    enum { MEMORY, COMPUTE };
    static struct rm_use_samples s;
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant a, looks;
    uint32_t group = 0, channel = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &a), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &looks), RM_OK);
    CHECK_EQ(control(rm, &looks, looks.subdevice, RM_CTRL_PERF_USE_SAMPLES, &s, sizeof(s)), RM_OK);
    CHECK_EQ(s.count, 0);
    CHECK_EQ(s.samples[0].engines[COMPUTE].pid, UINT32_MAX);
    CHECK_EQ(fx_channel(rm, &a, &group, &channel), RM_OK);
    CHECK_EQ(control(rm, &looks, looks.subdevice, RM_CTRL_PERF_USE_SAMPLES, &s, sizeof(s)), RM_OK);
    CHECK_EQ(s.count, 1);
    CHECK_EQ(s.samples[0].engines[COMPUTE].pid, 100);
    CHECK_EQ(s.samples[0].engines[MEMORY].pid, UINT32_MAX);
    CHECK(s.samples[0].at != 0 && s.samples[1].at == 0);
    CHECK_EQ(s.bytes, sizeof(s.samples));
    bh_sim_rm_free(rm);
}

TEST(the_window_is_a_power_of_two_and_nearly_free)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    struct rm_fb_info f = {
        .count = 3,
        .at = {{.index = RM_FB_BAR1_SIZE}, {.index = RM_FB_BAR1_FREE}, {.index = RM_FB_TOTAL_RAM}}};
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FB_GET_INFO_V2, &f, sizeof(f)), RM_OK);
    const uint32_t size = f.at[0].value;
    CHECK(size >= f.at[2].value && (size & (size - 1)) == 0);
    CHECK(f.at[1].value < size && size - f.at[1].value < 4096);
    bh_sim_rm_free(rm);
}

TEST(slices_are_set_and_read)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t, other;
    uint32_t group = 0, channel = 0, level = 2;
    uint64_t us = 9000;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &other), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(control(rm, &t, group, RM_CTRL_GROUP_SET_TIMESLICE, &us, sizeof(us)), RM_OK);
    us = 0;
    CHECK_EQ(control(rm, &t, group, RM_CTRL_GROUP_GET_TIMESLICE, &us, sizeof(us)), RM_OK);
    CHECK_EQ(us, 9000);
    us = 0;
    CHECK_EQ(control(rm, &t, group, RM_CTRL_GROUP_SET_TIMESLICE, &us, sizeof(us)), RM_INVALID_ARGUMENT);
    CHECK_EQ(control(rm, &t, group, RM_CTRL_GROUP_SET_INTERLEAVE, &level, sizeof(level)), RM_OK);
    level = 0;
    CHECK_EQ(control(rm, &t, group, 0xa06c0108, &level, sizeof(level)), RM_OK);
    CHECK_EQ(level, 2);
    level = 3;
    CHECK_EQ(control(rm, &t, group, RM_CTRL_GROUP_SET_INTERLEAVE, &level, sizeof(level)),
             RM_INVALID_ARGUMENT);
    /* root through the tenant's own file, as a governor does it; not through another's */
    us = 500;
    CHECK_EQ(fx_control(rm, t.file, &fx_admin, t.client, group, RM_CTRL_GROUP_SET_TIMESLICE, &us, 8), RM_OK);
    CHECK_EQ(fx_control(rm, other.file, &fx_admin, t.client, group, RM_CTRL_GROUP_SET_TIMESLICE, &us, 8),
             RM_INVALID_CLIENT);
    bh_sim_rm_free(rm);
}

/* As on the card: whoever knows the names, through a subdevice of its own. The gate is what keeps tenants from it. */
TEST(channels_are_paused_by_anybody_who_names_them)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t, other;
    uint32_t group = 0, channel = 0;
    uint64_t fence = 0, done = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &other), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    struct rm_disable_channels d = {.disable = 1, .count = 1, .clients = {t.client}, .channels = {channel}};
    CHECK_EQ(control(rm, &other, other.subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 1000, &fence), 0);
    bh_sim_rm_advance(rm, 1000000000);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, channel, &done), 0);
    CHECK(done < fence);
    d.disable = 0;
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)), RM_OK);
    bh_sim_rm_advance(rm, 2000000000);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, channel, &done), 0);
    CHECK_EQ(done, fence);
    d.count = 65;
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)), RM_INVALID_ARGUMENT);
    d.count = 1;
    d.channels[0] = group;
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)), RM_OBJECT_NOT_FOUND);
    d.clients[0] = 0xbad;
    CHECK_EQ(control(rm, &t, t.subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)), RM_INVALID_CLIENT);
    bh_sim_rm_free(rm);
}

TEST(cards_say_who_they_are)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 2);
    struct fx_tenant t;
    uint32_t ids[32], info[8] = {0}, name[33] = {0}, uuid[67] = {0};
    CHECK_EQ(fx_tenant(rm, &fx_user, 1, &t), RM_OK);
    CHECK_EQ(control(rm, &t, t.client, 0x201, ids, sizeof(ids)), RM_OK);
    CHECK(ids[0] == 0x1800 && ids[1] == 0x1900 && ids[2] == UINT32_MAX);
    info[0] = ids[1];
    CHECK_EQ(control(rm, &t, t.client, 0x205, info, sizeof(info)), RM_OK);
    CHECK_EQ(info[2], 1);
    info[0] = 5;
    CHECK_EQ(control(rm, &t, t.client, 0x205, info, sizeof(info)), RM_INVALID_ARGUMENT);
    CHECK_EQ(control(rm, &t, t.subdevice, 0x20800110, name, sizeof(name)), RM_OK);
    CHECK_STR((char *)name + 4, "NVIDIA H100-80GB");
    CHECK_EQ(control(rm, &t, t.subdevice, 0x2080014a, uuid, sizeof(uuid)), RM_OK);
    CHECK_STR((char *)uuid + 12, "GPU-00000000-0000-0000-0000-000000000002");
    CHECK_EQ(control(rm, &t, t.subdevice, 0x2080014a, uuid, 16), RM_INVALID_PARAM_STRUCT);
    uuid[1] = 2; /* as bytes */
    CHECK_EQ(control(rm, &t, t.subdevice, 0x2080014a, uuid, sizeof(uuid)), RM_OK);
    CHECK(uuid[2] == 16 && ((uint8_t *)uuid)[12 + 15] == 2);
    uint32_t longer[10] = {ids[1]};
    CHECK_EQ(control(rm, &t, t.client, 0x202, longer, sizeof(longer)), RM_OK);
    CHECK(longer[2] == 1 && longer[7] == ids[1]);
    bh_sim_rm_free(rm);
}

TEST_MAIN
