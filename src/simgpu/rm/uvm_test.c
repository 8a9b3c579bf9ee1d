/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

#include <errno.h>

struct words {
    uint64_t w[10];
};

static uint32_t status_at(const void *arg, size_t at)
{
    uint32_t v;
    memcpy(&v, (const char *)arg + at, sizeof(v));
    return v;
}

static uint32_t uvm(struct bh_sim_rm *rm, uint32_t file, uint32_t number, void *arg, size_t n, size_t at)
{
    int rc = bh_sim_rm_ioctl(rm, file, &fx_user, number, arg, n, NULL, 0);
    return rc < 0 ? (uint32_t)rc : status_at(arg, at);
}

static uint32_t register_gpu(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint8_t uuid_end)
{
    uint8_t arg[40] = {[15] = uuid_end};
    memcpy(arg + 28, &client, sizeof(client));
    return uvm(rm, file, UVM_REGISTER_GPU, arg, sizeof(arg), 36);
}

static uint32_t ready(struct bh_sim_rm *rm)
{
    uint32_t file = (uint32_t)bh_sim_rm_open(rm, BH_FILE_UVM, 0, &fx_user);
    struct words init = {0};
    return uvm(rm, file, UVM_INITIALIZE, &init, 16, 8) == RM_OK ? file : 0;
}

TEST(managed_memory_counts_when_touched_and_for_nobody)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 2);
    struct fx_tenant t;
    struct bh_sim_gpu_view v;
    uint64_t range = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    uint32_t file = ready(rm);
    CHECK(file != 0);
    CHECK_EQ(register_gpu(rm, file, t.client, 1), RM_OK);
    CHECK_EQ(register_gpu(rm, file, t.client, 9), RM_INVALID_DEVICE);
    CHECK_EQ(bh_sim_rm_map(rm, file, &fx_user, &(struct bh_sim_map){3 * BH_MIB, 3, 1}, &range), 0);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0);
    struct bh_sim_what what;
    CHECK_EQ(bh_sim_rm_what(rm, file, &what), 0);
    CHECK_EQ(what.kind, BH_FILE_UVM);
    CHECK_EQ(what.managed_bytes, 3 * BH_MIB);
    CHECK_EQ(bh_sim_rm_what(rm, file + 100, &what), -EBADF);
    CHECK_EQ(bh_sim_rm_mapped(rm, fx_user.pid), what.managed_bytes);
    CHECK_EQ(bh_sim_rm_mapped(rm, fx_other.pid), 0);
    CHECK_EQ(bh_sim_rm_touch(rm, file, range, 1), -EINVAL); /* not registered */
    CHECK_EQ(bh_sim_rm_touch(rm, file, range, 0), 0);
    CHECK_EQ(bh_sim_rm_touch(rm, file, range, 0), 0);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 4 * BH_MIB);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK_EQ(v.used_bytes, 4 * BH_MIB);
    CHECK_EQ(v.n_processes, 0);
    CHECK(!bh_sim_rm_check(rm));
    /* it moves to the card that touches it */
    CHECK_EQ(register_gpu(rm, file, 0, 2), RM_OK);
    CHECK_EQ(bh_sim_rm_touch(rm, file, range, 1), 0);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v) && v.used_bytes == 0);
    CHECK(bh_sim_rm_view_gpu(rm, 1, &v) && v.used_bytes == 4 * BH_MIB);
    CHECK(!bh_sim_rm_check(rm));
    CHECK_EQ(bh_sim_rm_unmap(rm, file, range), 0);
    CHECK_EQ(bh_sim_rm_unmap(rm, file, range), -EINVAL);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0);
    bh_sim_rm_free(rm);
}

TEST(more_than_there_is_has_no_room)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    uint64_t range = 0;
    uint32_t file = ready(rm);
    CHECK_EQ(register_gpu(rm, file, 0, 1), RM_OK);
    CHECK_EQ(bh_sim_rm_map(rm, file, &fx_user, &(struct bh_sim_map){200 * BH_GIB, 3, 1}, &range), 0);
    CHECK_EQ(bh_sim_rm_touch(rm, file, range, 0), -ENOMEM);
    CHECK_EQ(bh_sim_rm_map(rm, file, &fx_user, &(struct bh_sim_map){0, 3, 1}, &range), -EINVAL);
    CHECK_EQ(bh_sim_rm_map(rm, file, &fx_user, &(struct bh_sim_map){UINT64_MAX, 3, 1}, &range), -ENOMEM);
    uint32_t fresh = (uint32_t)bh_sim_rm_open(rm, BH_FILE_UVM, 0, &fx_user);
    CHECK_EQ(bh_sim_rm_map(rm, fresh, &fx_user, &(struct bh_sim_map){4096, 3, 1}, &range), -EBADFD);
    CHECK_EQ(bh_sim_rm_touch(rm, fresh, 1, 0), -EINVAL); /* another file's range */
    bh_sim_rm_free(rm);
}

TEST(mapped_memory_outlives_its_handle)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = 2 * BH_MIB;
    uint32_t memory = 0;
    static uint8_t map[9264];
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    uint32_t file = ready(rm);
    struct words range = {{0x700000000000, 2 * BH_MIB}};
    memcpy(map, range.w, 16);
    memcpy(map + 9252, &t.client, 4);
    memcpy(map + 9256, &memory, 4);
    CHECK_EQ(uvm(rm, file, UVM_MAP_EXTERNAL, map, sizeof(map), 9260), RM_INVALID_ARGUMENT);
    CHECK_EQ(uvm(rm, file, UVM_CREATE_EXTERNAL_RANGE, &range, 24, 16), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_CREATE_EXTERNAL_RANGE, &range, 24, 16), RM_STATE_IN_USE);
    CHECK_EQ(uvm(rm, file, UVM_MAP_EXTERNAL, map, sizeof(map), 9260), RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, memory), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, bytes);
    CHECK(!bh_sim_rm_check(rm));
    CHECK_EQ(uvm(rm, file, UVM_FREE, &range, 24, 16), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0);
    CHECK_EQ(uvm(rm, file, UVM_FREE, &range, 24, 16), RM_OBJECT_NOT_FOUND);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST(calls_come_in_order_and_whole)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    uint32_t file = (uint32_t)bh_sim_rm_open(rm, BH_FILE_UVM, 0, &fx_user);
    struct words a = {0};
    CHECK_EQ(uvm(rm, file, UVM_VALIDATE_VA_RANGE, &a, 24, 16), RM_INVALID_STATE);
    CHECK_EQ(uvm(rm, file, UVM_INITIALIZE, &a, 12, 8), (uint32_t)-EFAULT);
    CHECK_EQ(uvm(rm, file, 9999, &a, 16, 8), (uint32_t)-EINVAL);
    CHECK_EQ(uvm(rm, file, UVM_INITIALIZE, &a, 16, 8), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_INITIALIZE, &a, 16, 8), RM_INVALID_STATE);
    CHECK_EQ(bh_sim_rm_ioctl(rm, file, &fx_user, UVM_DEINITIALIZE, NULL, 0, NULL, 0), 0);
    bh_sim_rm_free(rm);
}

TEST(address_spaces_and_channels_are_handed_over_by_name)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t space = 0, group = 0, channel = 0, file = ready(rm);
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_VASPACE, &space), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    uint32_t arg[14] = {[3] = 0x01000000, [5] = t.client, [6] = space};
    CHECK_EQ(uvm(rm, file, UVM_REGISTER_GPU_VASPACE, arg, 32, 28), RM_INVALID_DEVICE);
    CHECK_EQ(register_gpu(rm, file, t.client, 1), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_REGISTER_GPU_VASPACE, arg, 32, 28), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_REGISTER_CHANNEL, arg, 56, 48), RM_OBJECT_NOT_FOUND);
    arg[6] = channel;
    CHECK_EQ(uvm(rm, file, UVM_REGISTER_CHANNEL, arg, 56, 48), RM_OK);
    arg[5] = 0xbad;
    CHECK_EQ(uvm(rm, file, UVM_REGISTER_CHANNEL, arg, 56, 48), RM_INVALID_CLIENT);
    CHECK_EQ(uvm(rm, file, UVM_UNREGISTER_GPU, arg, 20, 16), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_UNREGISTER_GPU, arg, 20, 16), RM_INVALID_DEVICE);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST(a_range_takes_another_mapping)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = 2 * BH_MIB;
    uint32_t first = 0, second = 0, host = 0;
    struct rm_memory_params p = {.size = BH_MIB, .attr = 1u << 25};
    static uint8_t map[9264];
    struct words range = {{0x700000000000, 2 * BH_MIB}}, bad = {{UINT64_MAX, 2}};
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &first), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &second), RM_OK);
    CHECK_EQ(fx_alloc(rm, t.file, t.who, t.client, t.device, &host, RM_CLASS_MEMORY_LOCAL, &p, sizeof(p)),
             RM_OK);
    uint32_t file = ready(rm);
    CHECK_EQ(uvm(rm, file, UVM_CREATE_EXTERNAL_RANGE, &bad, 24, 16), RM_INVALID_ARGUMENT);
    CHECK_EQ(uvm(rm, file, UVM_CREATE_EXTERNAL_RANGE, &range, 24, 16), RM_OK);
    memcpy(map, range.w, 16);
    memcpy(map + 9252, &t.client, 4);
    memcpy(map + 9256, &first, 4);
    CHECK_EQ(uvm(rm, file, UVM_MAP_EXTERNAL, map, sizeof(map), 9260), RM_OK);
    memcpy(map + 9256, &second, 4);
    CHECK_EQ(uvm(rm, file, UVM_MAP_EXTERNAL, map, sizeof(map), 9260), RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, first), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, bytes); /* the first is held by nobody any more */
    CHECK_EQ(uvm(rm, file, 66, map, 40, 32), RM_OK);
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, second), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0); /* so is the second, with the mapping gone */
    CHECK_EQ(uvm(rm, file, 66, &bad, 40, 32), RM_OBJECT_NOT_FOUND);
    memcpy(map, range.w, 40);
    memcpy(map + 9256, &host, 4);
    CHECK_EQ(uvm(rm, file, UVM_MAP_EXTERNAL, map, sizeof(map), 9260), RM_OK);
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 lost", NULL), BH_OK);
    CHECK_EQ(uvm(rm, file, UVM_MAP_EXTERNAL, map, sizeof(map), 9260), RM_GPU_IS_LOST);
    CHECK_EQ(register_gpu(rm, file, t.client, 1), RM_GPU_IS_LOST);
    bh_sim_rm_close(rm, t.file);
    bh_sim_rm_close(rm, file);
    CHECK(fx_nothing_held(rm) && !bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST(ranges_do_not_overlap)
{
    static const struct {
        uint64_t base, bytes;
        uint32_t status;
    } rows[] = {
        {0x10000, 0x10000, RM_OK},
        {0x10000, 0x10000, RM_STATE_IN_USE},
        {0x10000, 1, RM_STATE_IN_USE},
        {0x0f000, 0x1001, RM_STATE_IN_USE}, /* its last byte is the other's first */
        {0x0f000, 0x1000, RM_OK},
        {0x1ffff, 1, RM_STATE_IN_USE}, /* the other's last byte */
        {0x20000, 0x1000, RM_OK},
        {0x08000, 0x100000, RM_STATE_IN_USE}, /* around them all */
        {0x40000, 0x1000, RM_OK},
        {0x21000, 0x1f000, RM_OK}, /* just the gap */
        {(UINT64_C(1) << 57) - 0x1000, 0x1000, RM_OK},
        {(UINT64_C(1) << 57) - 0x800, 0x1000, RM_INVALID_ARGUMENT}, /* past the last address */
        {UINT64_C(1) << 57, 1, RM_INVALID_ARGUMENT},
        {0x90000, 0, RM_INVALID_ARGUMENT},
    };
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    uint32_t file = ready(rm), other = ready(rm);
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++) {
        struct words a = {{rows[i].base, rows[i].bytes}};
        CHECK_EQ(uvm(rm, file, UVM_CREATE_EXTERNAL_RANGE, &a, 24, 16), rows[i].status);
    }
    struct words a = {{0x10000, 0x10000}};
    CHECK_EQ(uvm(rm, other, UVM_CREATE_EXTERNAL_RANGE, &a, 24, 16),
             RM_OK); /* addresses are each file's own */
    CHECK_EQ(uvm(rm, file, UVM_FREE, &a, 24, 16), RM_OK);
    a.w[0] = 0x10800;
    a.w[1] = 0x1000;
    CHECK_EQ(uvm(rm, file, UVM_CREATE_EXTERNAL_RANGE, &a, 24, 16), RM_OK); /* there is room again */
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_close(rm, file);
    CHECK_EQ(bh_sim_rm_held(rm).ranges, 1);
    bh_sim_rm_free(rm);
}

TEST(a_mapping_stays_within_its_memory)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = 2 * BH_MIB;
    uint32_t memory = 0, file = ready(rm);
    static uint8_t map[9264];
    struct words range = {{0x700000000000, 16 * BH_MIB}};
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_CREATE_EXTERNAL_RANGE, &range, 24, 16), RM_OK);
    memcpy(map + 9252, &t.client, 4);
    memcpy(map + 9256, &memory, 4);
    const struct {
        uint64_t bytes, offset;
        uint32_t status;
    } rows[] = {
        {bytes, 0, RM_OK},
        {bytes + 1, 0, RM_INVALID_ARGUMENT},
        {bytes, 1, RM_INVALID_ARGUMENT},
        {1, bytes - 1, RM_OK},
        {0, bytes, RM_OK},
        {0, bytes + 1, RM_INVALID_ARGUMENT},
        {2, UINT64_MAX, RM_INVALID_ARGUMENT},
        {17 * BH_MIB, 0, RM_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++) {
        const uint64_t head[3] = {range.w[0], rows[i].bytes, rows[i].offset};
        memcpy(map, head, sizeof(head));
        CHECK_EQ(uvm(rm, file, UVM_MAP_EXTERNAL, map, sizeof(map), 9260), rows[i].status);
    }
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST(what_takes_nothing_is_accepted)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    uint32_t file = ready(rm);
    uint8_t a[80];
    memset(a, 0xee, sizeof(a));
    CHECK_EQ(uvm(rm, file, UVM_PAGEABLE_MEM_ACCESS, a, 8, 4), RM_OK);
    CHECK_EQ(a[0], 0);
    CHECK_EQ(uvm(rm, file, UVM_MIGRATE, a, 80, 72), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_CREATE_RANGE_GROUP, a, 16, 8), RM_OK);
    memset(a, 0, 36);
    a[15] = 1;
    CHECK_EQ(uvm(rm, file, UVM_ENABLE_PEER_ACCESS, a, 36, 32), RM_INVALID_DEVICE);
    CHECK_EQ(register_gpu(rm, file, 0, 1), RM_OK);
    CHECK_EQ(register_gpu(rm, file, 0, 1), RM_OK);
    CHECK_EQ(uvm(rm, file, UVM_ENABLE_PEER_ACCESS, a, 36, 32), RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST_MAIN
