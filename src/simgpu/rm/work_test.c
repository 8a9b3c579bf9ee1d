/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

#include <errno.h>

TEST(work_is_done_in_time)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t group = 0, channel = 0;
    uint64_t fence = 0, done = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_next(rm), -1);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 8000000, &fence), 0);
    uint64_t at = bh_sim_rm_next(rm);
    CHECK(at >= 8000000 && at < 9000000);
    bh_sim_rm_advance(rm, at - 1);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, channel, &done), 0);
    CHECK(done < fence);
    bh_sim_rm_advance(rm, at);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, channel, &done), 0);
    CHECK_EQ(done, fence);
    CHECK_EQ(bh_sim_rm_next(rm), -1);
    bh_sim_rm_free(rm);
}

TEST(refusals)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t, other;
    uint32_t group = 0, channel = 0, n = 0;
    uint64_t fence = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &other), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(bh_sim_rm_submit(rm, 99, t.client, channel, 1, &fence), -EBADF);
    CHECK_EQ(bh_sim_rm_submit(rm, other.file, t.client, channel, 1, &fence), -EINVAL);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, group, 1, &fence), -EINVAL);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, UINT64_MAX, &fence), -EINVAL);
    CHECK_EQ(bh_sim_rm_fence(rm, t.file, t.client, group, &fence), -EINVAL);
    while (n < 100000 && bh_sim_rm_submit(rm, t.file, t.client, channel, 1000, &fence) == 0)
        n++;
    CHECK_EQ(n, 4096);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 1000, &fence), -EAGAIN);
    bh_sim_rm_advance(rm, 1000000000);
    CHECK_EQ(bh_sim_rm_submit(rm, t.file, t.client, channel, 1000, &fence), 0);
    bh_sim_rm_free(rm);
}

TEST(time_never_goes_back)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct bh_sim_gpu_view v;
    bh_sim_rm_advance(rm, UINT64_C(3600000000000));
    bh_sim_rm_advance(rm, 5);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK_EQ(v.now_ns, UINT64_C(3600000000000));
    bh_sim_rm_free(rm);
}

TEST_MAIN
