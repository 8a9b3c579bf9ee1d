/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include "base/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static int nothing(void **ret, struct bh_err *err)
{
    (void)err;
    *ret = NULL;
    return BH_OK;
}

static void forget(void *self)
{
    (void)self;
}

static int take_two(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)self, (void)err;
    for (uint32_t i = 0; i < 2; i++) {
        struct bh_gpu_device *d = bh_vec_push(&s->devices);
        *d = (struct bh_gpu_device){.index = i,
                                    .name = bh_arena_printf(&s->arena, "GPU of process %d", (int)getpid())};
    }
    bh_gpu_note(s, "seen");
    return BH_OK;
}

static int take_badly(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)take_two(self, s, err);
    return bh_fail(err, BH_DENIED, "it may not");
}

static int take_for_ever(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)self, (void)s, (void)err;
    bh_gpu_asking_of(3);
    bh_gpu_asking("nvmlDeviceGetTemperature");
    while (getpid() > 0)
        (void)pause();
    return BH_OK;
}

/* Each call is answered, none soon. */
static int take_slowly(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)self, (void)s, (void)err;
    for (unsigned i = 0; i < 1000; i++) {
        bh_gpu_asking("nvmlDeviceGetPowerUsage");
        (void)poll(NULL, 0, 100);
    }
    return BH_OK;
}

/* Longer than one GPU may take, and the tenth is being asked. */
static int take_ten_slowly(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    bh_gpu_asking_of(9);
    for (unsigned i = 0; i < 70; i++) {
        bh_gpu_asking("nvmlDeviceGetPowerUsage");
        (void)poll(NULL, 0, 100);
    }
    return take_two(self, s, err);
}

/* After the time an ended child is waited for. */
static int take_late(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)poll(NULL, 0, 900);
    return take_two(self, s, err);
}

static int take_simulated(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    bh_gpu_asking_simulated(true);
    return take_for_ever(self, s, err);
}

static int take_to_death(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)self, (void)s, (void)err;
    bh_gpu_asking("nvmlInit_v2");
    (void)raise(SIGKILL);
    return BH_OK;
}

static int take_and_leave(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)self, (void)s, (void)err;
    _exit(3);
}

static int read_with(int (*take)(void *, struct bh_gpu_snapshot *, struct bh_err *),
                     struct bh_gpu_snapshot *s, struct bh_err *err)
{
    const struct bh_gpu_backend b = {nothing, take, forget, BH_GPU_ALL};
    return bh_gpu_read(&b, s, err);
}

TEST(another_process_reads_and_the_snapshot_is_ours)
{
    struct bh_gpu_snapshot s;
    char mine[40];
    CHECK_EQ(read_with(take_two, &s, NULL), BH_OK);
    CHECK(s.devices.n == 2 && s.devices.at[1].index == 1);
    (void)snprintf(mine, sizeof(mine), "GPU of process %d", (int)getpid());
    CHECK(strncmp(s.devices.at[0].name, mine, 15) == 0 && strcmp(s.devices.at[0].name, mine) != 0);
    CHECK_STR(s.notes.at[0], "seen");
    bh_gpu_snapshot_fini(&s);
}

TEST(its_failure_is_ours)
{
    struct bh_gpu_snapshot s;
    struct bh_err err;
    CHECK_EQ(read_with(take_badly, &s, &err), BH_DENIED);
    CHECK_STR(err.msg, "it may not");
    CHECK(s.devices.n == 0 && !s.devices.at);
}

TEST(a_hang_is_named_and_left_behind)
{
    struct bh_gpu_snapshot s;
    struct bh_err err;
    CHECK_EQ(setenv("BULKHEAD_GPU_TIMEOUT", "1", 1), 0);
    CHECK_EQ(read_with(take_for_ever, &s, &err), BH_BUSY);
    CHECK_STR(err.msg,
              "the driver has not answered for 1 s; it was asked for nvmlDeviceGetTemperature of GPU 3 "
              "(BULKHEAD_GPU_TIMEOUT sets how long to wait)");
    CHECK_EQ(s.devices.n, 0);
}

TEST(a_driver_that_crawls_is_not_said_to_stand)
{
    struct bh_gpu_snapshot s;
    struct bh_err err;
    CHECK_EQ(setenv("BULKHEAD_GPU_TIMEOUT", "1", 1), 0);
    CHECK_EQ(read_with(take_slowly, &s, &err), BH_BUSY);
    CHECK(strncmp(err.msg, "the driver answers slowly: ", 27) == 0);
    CHECK(strstr(err.msg, " calls in 6 s, the last nvmlDeviceGetPowerUsage; it was given up "
                          "(BULKHEAD_GPU_TIMEOUT sets how long to wait)"));
    CHECK_EQ(read_with(take_ten_slowly, &s, &err), BH_OK);
    CHECK_EQ(s.devices.n, 2);
    bh_gpu_snapshot_fini(&s);
}

TEST(what_is_simulated_is_called_so_when_it_hangs)
{
    struct bh_gpu_snapshot s;
    struct bh_err err;
    CHECK_EQ(setenv("BULKHEAD_GPU_TIMEOUT", "1", 1), 0);
    CHECK_EQ(read_with(take_simulated, &s, &err), BH_BUSY);
    CHECK(s.simulated && strncmp(err.msg, "simulated: the driver has not answered", 38) == 0);
    CHECK_EQ(read_with(take_for_ever, &s, &err), BH_BUSY);
    CHECK(!s.simulated && strncmp(err.msg, "the driver has not answered", 27) == 0);
}

/* A process without standard descriptors: the pipe to the child must not lie where the child puts its own. */
TEST(without_standard_descriptors)
{
    struct bh_gpu_snapshot s;
    int kept[3], rc;
    (void)fflush(stdout);
    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        (void)close(i);
    }
    rc = read_with(take_late, &s, NULL);
    for (int i = 0; i < 3; i++) {
        (void)dup2(kept[i], i);
        (void)close(kept[i]);
    }
    CHECK_EQ(rc, BH_OK);
    CHECK_EQ(s.devices.n, 2);
    bh_gpu_snapshot_fini(&s);
}

TEST(a_crash_is_named)
{
    struct bh_gpu_snapshot s;
    struct bh_err err;
    CHECK_EQ(read_with(take_to_death, &s, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "the driver's library crashed (signal 9); it was asked for nvmlInit_v2");
    CHECK_EQ(read_with(take_and_leave, &s, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "the driver's library ended the process; it was asked for nothing yet");
}

TEST(a_time_that_is_none)
{
    static const char *const bad[] = {"0", "soon", "-1", "3601", "1.5"};
    struct bh_gpu_snapshot s;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        CHECK_EQ(setenv("BULKHEAD_GPU_TIMEOUT", bad[i], 1), 0);
        CHECK_EQ(read_with(take_two, &s, &err), BH_USAGE);
        CHECK(strstr(err.msg, "BULKHEAD_GPU_TIMEOUT takes seconds from 1 to 3600, not '"));
    }
    CHECK_EQ(setenv("BULKHEAD_GPU_TIMEOUT", "", 1), 0);
    CHECK_EQ(read_with(take_two, &s, &err), BH_OK);
    bh_gpu_snapshot_fini(&s);
}

TEST_MAIN
