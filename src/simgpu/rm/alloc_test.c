/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

#include <errno.h>

TEST(what_is_asked_wrongly_has_a_status_of_its_own)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 2);
    struct fx_tenant t;
    uint32_t h = 0, bad[3] = {0}, device[14] = {2}, none[14];
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_make(rm, &t, t.device, 0x1234, &h), RM_INVALID_CLASS);
    CHECK_EQ(fx_make(rm, &t, t.device, 0x73, &h), RM_NOT_SUPPORTED); /* displays */
    CHECK_EQ(fx_alloc(rm, t.file, t.who, 0xbad, t.device, &h, RM_CLASS_EVENT, NULL, 0), RM_INVALID_CLIENT);
    CHECK_EQ(fx_make(rm, &t, 0xbad, RM_CLASS_EVENT, &h), RM_INVALID_OBJECT_PARENT);
    CHECK_EQ(fx_make(rm, &t, t.client, RM_CLASS_SUBDEVICE, &h), RM_INVALID_OBJECT_PARENT);
    CHECK_EQ(fx_alloc(rm, t.file, t.who, t.client, t.device, &h, RM_CLASS_SUBDEVICE, bad, sizeof(bad)),
             RM_INVALID_PARAM_STRUCT);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_MEMORY_LOCAL, &h), RM_INVALID_PARAM_STRUCT);
    CHECK_EQ(fx_alloc(rm, t.file, t.who, t.client, t.client, &h, RM_CLASS_DEVICE, device, sizeof(device)),
             RM_INVALID_DEVICE);
    memset(none, 0xff, sizeof(none));
    CHECK_EQ(fx_alloc(rm, t.file, t.who, t.client, t.client, &h, RM_CLASS_DEVICE, none, sizeof(none)),
             RM_INVALID_DEVICE);
    CHECK_EQ(h, 0);
    CHECK_EQ(bh_sim_rm_held(rm).objects, 3);
    bh_sim_rm_free(rm);
}

TEST(the_size_of_parameters_may_be_left_out)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    struct rm_memory_params p = {.size = BH_MIB};
    struct rm_alloc a = {.client = t.client, .parent = t.device, .class = RM_CLASS_MEMORY_LOCAL};
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, RM_IOC(RM_ALLOC, sizeof(a)), &a, sizeof(a), &p, sizeof(p)),
             0);
    CHECK_EQ(a.status, RM_OK);
    CHECK(a.object != 0);
    a.params_size = 64; /* another one than came along */
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, RM_IOC(RM_ALLOC, sizeof(a)), &a, sizeof(a), &p, sizeof(p)),
             0);
    CHECK_EQ(a.status, RM_INVALID_PARAM_STRUCT);
    bh_sim_rm_free(rm);
}

TEST(the_short_forms_make_the_same)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    struct rm_memory_params p = {.size = 1};
    struct rm_alloc_short a = {.client = t.client,
                               .parent = t.device,
                               .class = RM_CLASS_MEMORY_LOCAL,
                               .params_size = sizeof(p),
                               .status = 9};
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, RM_IOC(RM_ALLOC, sizeof(a)), &a, sizeof(a), &p, sizeof(p)),
             0);
    CHECK_EQ(a.status, RM_OK);
    CHECK_EQ(p.size, 64 * 1024);
    CHECK(a.object != 0 && a.params_size == sizeof(p));
    uint32_t old[5] = {t.client, t.device, 0, RM_CLASS_EVENT, 9};
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, RM_IOC(RM_ALLOC_OBJECT, 20), old, 20, NULL, 0), 0);
    CHECK(old[2] != 0 && old[4] == RM_OK);
    bh_sim_rm_free(rm);
}

TEST(only_video_memory_takes_memory)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t h = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    struct rm_memory_params host = {.size = BH_GIB, .attr = 1u << 25},
                            space = {.size = BH_GIB, .flags = 0x80000};
    CHECK_EQ(fx_alloc(rm, t.file, t.who, t.client, t.device, &h, RM_CLASS_MEMORY_LOCAL, &host, sizeof(host)),
             RM_OK);
    h = 0;
    CHECK_EQ(
        fx_alloc(rm, t.file, t.who, t.client, t.device, &h, RM_CLASS_MEMORY_LOCAL, &space, sizeof(space)),
        RM_OK);
    h = 0;
    CHECK_EQ(fx_alloc(rm, t.file, t.who, t.client, t.device, &h, RM_CLASS_MEMORY_SYSTEM, &host, sizeof(host)),
             RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0);
    bh_sim_rm_free(rm);
}

TEST(memory_by_its_own_number)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    struct rm_alloc_memory a = {
        .client = t.client, .parent = t.device, .class = RM_CLASS_MEMORY_LOCAL, .limit = 3 * BH_MIB - 1};
    uint32_t cmd = RM_IOC(RM_ALLOC_MEMORY, sizeof(a));
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &a, sizeof(a), NULL, 0), 0);
    CHECK_EQ(a.status, RM_OK);
    CHECK_EQ(a.limit, 4 * BH_MIB - 1);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 4 * BH_MIB);
    a.object = 0;
    a.limit = UINT64_MAX;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &a, sizeof(a), NULL, 0), 0);
    CHECK_EQ(a.status, RM_INVALID_LIMIT);
    a.limit = UINT64_MAX - 1;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &a, sizeof(a), NULL, 0), 0);
    CHECK_EQ(a.status, RM_NO_MEMORY);
    a.class = RM_CLASS_DEVICE;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &a, sizeof(a), NULL, 0), 0);
    CHECK_EQ(a.status, RM_INVALID_CLASS);
    a.class = RM_CLASS_MEMORY_SYSTEM;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &a, sizeof(a), NULL, 0), 0);
    CHECK_EQ(a.status, RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 4 * BH_MIB);
    bh_sim_rm_free(rm);
}

TEST(memory_from_the_heap)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    struct rm_vid_heap h = {
        .client = t.client, .parent = t.device, .function = RM_HEAP_ALLOC_SIZE, .size = BH_MIB};
    uint32_t cmd = RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h));
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK_EQ(h.status, RM_OK);
    CHECK(h.memory != 0 && h.total - h.free == BH_MIB);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, BH_MIB);
    h.function = 5;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK(h.status == RM_OK && h.total - h.free == BH_MIB);
    h.function = RM_HEAP_FREE;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK_EQ(h.status, RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0);
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK_EQ(h.status, RM_OBJECT_NOT_FOUND);
    h.function = RM_HEAP_ALLOC_SIZE;
    h.memory = 0;
    h.attr = 1u << 25; /* the machine's memory, then addresses only */
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK_EQ(h.status, RM_OK);
    h.memory = 0;
    h.flags = 0x80000;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK_EQ(h.status, RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0);
    h.client = 0xbad;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK_EQ(h.status, RM_INVALID_CLIENT);
    h.client = t.client;
    h.function = 27;
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, cmd, &h, sizeof(h), NULL, 0), 0);
    CHECK_EQ(h.status, RM_NOT_SUPPORTED);
    bh_sim_rm_free(rm);
}

TEST(a_duplicate_needs_leave)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant a, b;
    uint64_t bytes = BH_MIB;
    uint32_t memory = 0, copy = 0, group = 0, channel = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &a), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &b), RM_OK);
    CHECK_EQ(fx_memory(rm, &a, &bytes, &memory), RM_OK);
    CHECK_EQ(fx_dup(rm, b.file, b.who, b.client, b.device, &copy, a.client, memory),
             RM_INSUFFICIENT_PERMISSIONS);
    CHECK_EQ(fx_dup(rm, b.file, b.who, b.client, b.device, &copy, 0xbad, memory), RM_INVALID_CLIENT);
    CHECK_EQ(fx_dup(rm, b.file, b.who, b.client, b.device, &copy, a.client, 0xbad), RM_OBJECT_NOT_FOUND);
    CHECK_EQ(fx_share(rm, a.file, a.who, a.client, memory, b.client, 0), RM_OK);
    CHECK_EQ(fx_dup(rm, b.file, b.who, b.client, b.device, &copy, a.client, memory), RM_OK);
    CHECK_EQ(fx_share(rm, a.file, a.who, a.client, memory, b.client, RM_SHARE_REVOKE), RM_OK);
    copy = 0;
    CHECK_EQ(fx_dup(rm, b.file, b.who, b.client, b.device, &copy, a.client, memory),
             RM_INSUFFICIENT_PERMISSIONS);
    /* root has no more leave than others; one for the whole client is one for each of its objects */
    CHECK_EQ(fx_dup(rm, b.file, &fx_admin, b.client, b.device, &copy, a.client, memory),
             RM_INSUFFICIENT_PERMISSIONS);
    CHECK_EQ(fx_share(rm, a.file, a.who, a.client, a.client, b.client, RM_SHARE_ADD), RM_OK);
    CHECK_EQ(fx_dup(rm, b.file, b.who, b.client, b.device, &copy, a.client, memory), RM_OK);
    CHECK_EQ(fx_channel(rm, &a, &group, &channel), RM_OK);
    copy = 0;
    CHECK_EQ(fx_dup(rm, a.file, a.who, a.client, a.device, &copy, a.client, group), RM_NOT_SUPPORTED);
    CHECK_EQ(fx_dup(rm, a.file, a.who, a.client, a.client, &copy, a.client, memory),
             RM_INVALID_OBJECT_PARENT);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

/* A channel made on a device has a group of its own. */
TEST(a_channel_without_a_group)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t channel = 0;
    uint8_t enable[3] = {1};
    uint64_t fence = 0, done = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_CHANNEL_HOPPER, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).groups, 1);
    CHECK_EQ(fx_control(rm, t.file, t.who, t.client, channel, 0xa06f0103, enable, 3), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 1000, &fence), 0);
    bh_sim_rm_advance(rm, 1000000000);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, channel, &done), 0);
    CHECK_EQ(done, fence);
    CHECK(!bh_sim_rm_check(rm));
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, channel), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).groups, 0);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST_MAIN
