/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

struct usage {
    uint64_t private_bytes, owned, duped;
};

static uint32_t usage_of(struct bh_sim_rm *rm, const struct fx_tenant *t, uint32_t pid, struct usage *ret)
{
    struct rm_pid_info p = {.count = 1};
    p.at[0].pid = pid;
    uint32_t status =
        fx_control(rm, t->file, t->who, t->client, t->subdevice, RM_CTRL_GPU_GET_PID_INFO, &p, sizeof(p));
    *ret = (struct usage){p.at[0].own, p.at[0].shared_owned, p.at[0].shared_duped};
    return status;
}

TEST(sizes_are_rounded_and_said)
{
    static const uint64_t cases[][2] = {{1, 65536},
                                        {65536, 65536},
                                        {65537, 131072},
                                        {2 * BH_MIB - 1, 2 * BH_MIB},
                                        {2 * BH_MIB + 1, 4 * BH_MIB}};
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        uint64_t bytes = cases[i][0], before = bh_sim_rm_held(rm).bytes;
        uint32_t memory = 0;
        CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
        CHECK_EQ(bytes, cases[i][1]);
        CHECK_EQ(bh_sim_rm_held(rm).bytes - before, bytes);
    }
    uint64_t none = 0, huge = UINT64_MAX;
    uint32_t memory = 0;
    CHECK_EQ(fx_memory(rm, &t, &none, &memory), RM_INVALID_ARGUMENT);
    CHECK_EQ(fx_memory(rm, &t, &huge, &memory), RM_NO_MEMORY);
    bh_sim_rm_free(rm);
}

TEST(a_full_card_says_so_and_recovers)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t memory = 0, last = 0, n = 0;
    uint64_t bytes = BH_GIB;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    for (; fx_memory(rm, &t, &bytes, &memory) == RM_OK; n++, memory = 0)
        last = memory;
    CHECK(n >= 70 && n <= 80);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_NO_MEMORY);
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, last), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST(shared_memory_counts_once_for_its_owner)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant a, b;
    struct bh_sim_caller same_user = {.pid = 101, .uid = fx_user.uid};
    struct usage u;
    uint64_t bytes = 2 * BH_MIB;
    uint32_t memory = 0, copy = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &a), RM_OK);
    CHECK_EQ(fx_tenant(rm, &same_user, 0, &b), RM_OK);
    CHECK_EQ(fx_memory(rm, &a, &bytes, &memory), RM_OK);
    CHECK_EQ(usage_of(rm, &b, 100, &u), RM_OK);
    CHECK(u.private_bytes == bytes && u.owned == 0 && u.duped == 0);
    CHECK_EQ(fx_share(rm, a.file, a.who, a.client, memory, b.client, RM_SHARE_ADD), RM_OK);
    CHECK_EQ(fx_dup(rm, b.file, b.who, b.client, b.device, &copy, a.client, memory), RM_OK);
    CHECK_EQ(usage_of(rm, &b, 100, &u), RM_OK);
    CHECK(u.private_bytes == 0 && u.owned == bytes && u.duped == 0);
    CHECK_EQ(usage_of(rm, &b, 101, &u), RM_OK);
    CHECK(u.private_bytes == 0 && u.owned == 0 && u.duped == bytes);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, bytes);
    CHECK(!bh_sim_rm_check(rm));
    /* the owner goes: the memory stays, and is the other's */
    bh_sim_rm_close(rm, a.file);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, bytes);
    CHECK_EQ(usage_of(rm, &b, 101, &u), RM_OK);
    CHECK(u.private_bytes == bytes && u.owned == 0 && u.duped == 0);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_close(rm, b.file);
    CHECK(fx_nothing_held(rm));
    bh_sim_rm_free(rm);
}

TEST(what_the_manager_takes_is_nobodys)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    struct usage u;
    uint32_t space = 0, group = 0, channel = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_VASPACE, &space), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(usage_of(rm, &t, 100, &u), RM_OK);
    CHECK_EQ(u.private_bytes, 0);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, (512 + 1024 + 128) * 1024);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST_MAIN
