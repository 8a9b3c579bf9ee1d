/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/rm/rm.h"

#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

#include <errno.h>

TEST(files_that_do_not_exist_are_refused)
{
    struct bh_sim_node n = fx_node("H100-80GB", 2);
    n.gpus[1].dead = true;
    struct bh_sim_rm *rm = bh_sim_rm_new(&n);
    CHECK(bh_sim_rm_open(rm, BH_FILE_GPU, 0, &fx_user) > 0);
    CHECK_EQ(bh_sim_rm_open(rm, BH_FILE_GPU, 1, &fx_user), -EIO);
    CHECK_EQ(bh_sim_rm_open(rm, BH_FILE_GPU, 2, &fx_user), -ENODEV);
    CHECK_EQ(bh_sim_rm_open(rm, BH_FILE_MODESET, 0, &fx_user), -ENODEV);
    CHECK(bh_sim_rm_open(rm, BH_FILE_UVM, 0, &fx_user) > 0);
    uint32_t word = 0;
    CHECK_EQ(bh_sim_rm_ioctl(rm, 99, &fx_user, RM_IOC(RM_REGISTER_FD, 4), &word, 4, NULL, 0), -EBADF);
    bh_sim_rm_close(rm, 99);
    CHECK_EQ(bh_sim_rm_held(rm).files, 2);
    bh_sim_rm_free(rm);
}

TEST(closing_a_file_frees_what_was_made_on_it)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = 3 * BH_MIB;
    uint32_t memory = 0, group = 0, channel = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_write(rm, t.file, t.client, memory, 5, "abc", 3), 0);
    struct bh_sim_held h = bh_sim_rm_held(rm);
    CHECK_EQ(h.files, 1);
    CHECK_EQ(h.clients, 1);
    CHECK_EQ(h.objects, 6);
    CHECK_EQ(h.groups, 1);
    CHECK_EQ(h.channels, 1);
    CHECK_EQ(h.chunks, 1);
    CHECK_EQ(h.bytes, 4 * BH_MIB + BH_MIB + 128 * 1024);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_close(rm, t.file);
    CHECK(fx_nothing_held(rm));
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

/* It only decides where things lie in tables: whatever it is, the answers are the same. */
TEST(no_answer_depends_on_the_salt)
{
    struct bh_sim_held first = {0};
    uint32_t handles[4] = {0};
    for (uint64_t salt = 0; salt < 4; salt++) {
        struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
        struct fx_tenant t;
        uint64_t bytes = 2 * BH_MIB;
        bh_sim_rm_salt(rm, salt * UINT64_C(0x123456789abcdef));
        uint32_t memory = 0, group = 0, channel = 0;
        CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
        CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
        CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
        CHECK_EQ(bh_sim_rm_write(rm, t.file, t.client, memory, 5, "abc", 3), 0);
        const uint32_t now[4] = {t.client, memory, group, channel};
        const struct bh_sim_held held = bh_sim_rm_held(rm);
        CHECK(salt == 0 ||
              (memcmp(now, handles, sizeof(now)) == 0 && memcmp(&held, &first, sizeof(held)) == 0));
        memcpy(handles, now, sizeof(now));
        first = held;
        CHECK(!bh_sim_rm_check(rm));
        bh_sim_rm_free(rm);
    }
}

TEST(files_are_limited)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    int64_t id = 1;
    uint32_t n = 0;
    for (; id > 0 && n <= 65536; n += id > 0)
        id = bh_sim_rm_open(rm, BH_FILE_CTL, 0, &fx_user);
    CHECK_EQ(id, -ENFILE);
    CHECK_EQ(n, 65536);
    bh_sim_rm_close(rm, 7);
    CHECK(bh_sim_rm_open(rm, BH_FILE_CTL, 0, &fx_user) > 65536);
    bh_sim_rm_free(rm);
}

TEST(a_node_without_cards_answers)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 0);
    struct bh_sim_gpu_view v;
    struct fx_tenant t;
    CHECK(!bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_INVALID_DEVICE);
    CHECK_EQ(bh_sim_rm_next(rm), -1);
    bh_sim_rm_advance(rm, 5);
    CHECK_EQ(bh_sim_rm_break(rm, "mend", NULL), BH_OK);
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 lost", NULL), BH_NOT_FOUND);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
    bh_sim_rm_free(NULL);
}

TEST_MAIN
