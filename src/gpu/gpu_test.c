/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include "base/test.h"

static int closed;

static int open_well(void **ret, struct bh_err *err)
{
    (void)err;
    *ret = &closed;
    return BH_OK;
}

static int open_badly(void **ret, struct bh_err *err)
{
    (void)ret;
    return bh_fail(err, BH_NOT_FOUND, "nothing there");
}

static int take_well(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)self, (void)err;
    struct bh_gpu_device *d = bh_vec_push(&s->devices);
    *d = (struct bh_gpu_device){.index = 3};
    bh_vec_push(&d->processes)->pid = 1;
    return BH_OK;
}

static int take_badly(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)take_well(self, s, err);
    return bh_fail(err, BH_SYSTEM, "it broke");
}

static void close_it(void *self)
{
    (*(int *)self)++;
}

TEST(a_backend_is_opened_read_and_closed)
{
    const struct bh_gpu_backend well = {open_well, take_well, close_it, BH_GPU_USERS};
    struct bh_gpu_snapshot s;
    CHECK_EQ(bh_gpu_read_here(&well, &s, NULL), BH_OK);
    CHECK_EQ(closed, 1);
    CHECK(s.devices.n == 1 && s.devices.at[0].index == 3 && s.depth == BH_GPU_USERS);
    bh_gpu_snapshot_fini(&s);
}

TEST(a_failure_leaves_nothing)
{
    const struct bh_gpu_backend absent = {open_badly, take_well, close_it, BH_GPU_ALL},
                                broken = {open_well, take_badly, close_it, BH_GPU_ALL};
    struct bh_gpu_snapshot s;
    struct bh_err err;
    closed = 0;
    CHECK_EQ(bh_gpu_read_here(&absent, &s, &err), BH_NOT_FOUND);
    CHECK(closed == 0 && s.devices.n == 0);
    CHECK_EQ(bh_gpu_read_here(&broken, &s, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "it broke");
    CHECK(closed == 1 && s.devices.n == 0 && !s.devices.at);
}

TEST(a_note_is_said_once)
{
    struct bh_gpu_snapshot s = {0};
    for (int i = 0; i < 3; i++)
        bh_gpu_note(&s, "GPU %d is odd", i / 2);
    CHECK_EQ(s.notes.n, 2);
    CHECK_STR(s.notes.at[1], "GPU 1 is odd");
    bh_gpu_snapshot_fini(&s);
}

TEST_MAIN
