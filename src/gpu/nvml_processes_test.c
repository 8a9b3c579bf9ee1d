/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "gpu/nvml_fixture.h"

#include <pwd.h>
#include <unistd.h>

static struct bh_nvml_fixture f;
static char root[BH_SCRATCH_PATH];

/* Three entries, each of a size of its own: the pids decide. */
TEST(entries_of_every_size_are_read)
{
    static const char *const scenes[] = {"h100x8", "stride32", "stride16"};
    CHECK(bh_scratch_root(root, sizeof(root), "nvml"));
    bh_nvml_fixture_put("/proc/101/comm", "python3\n");
    bh_nvml_fixture_put("/proc/202/comm", "trtllm\n");
    bh_nvml_fixture_put("/proc/303/comm", "nvidia-cuda-mps\n");
    for (size_t i = 0; i < BH_COUNT_OF(scenes); i++) {
        bh_nvml_fixture_take(&f, scenes[i]);
        const struct bh_gpu_device *d = &f.s.devices.at[0];
        CHECK_EQ(d->processes.n, 3);
        CHECK(!d->processes_seen.why && d->processes_seen.v == 3);
        CHECK(d->processes.at[0].pid == 101 && d->processes.at[1].pid == 202 &&
              d->processes.at[2].pid == 303);
        CHECK_EQ(d->processes.at[1].memory_bytes.v, 2 * BH_GIB);
        CHECK_STR(d->processes.at[2].memory_bytes.why, "the driver has no value");
        CHECK_STR(d->processes.at[0].name, "python3");
        CHECK_STR(d->processes.at[0].kind, "compute");
        CHECK_EQ(d->processes.at[0].gi, BH_NO_ID);
    }
}

TEST(whose_they_are)
{
    const struct passwd *me = getpwuid(getuid());
    CHECK(me && f.s.devices.n);
    CHECK_STR(f.s.devices.at[0].processes.at[0].user, me->pw_name);
}

TEST(how_busy_each_keeps_it)
{
    bh_nvml_fixture_take(&f, "h100x8");
    const struct bh_gpu_process *p = f.s.devices.at[0].processes.at;
    CHECK(!p[0].sm_percent.why && p[0].sm_percent.v == 35 && p[0].memory_percent.v == 12); /* the newest */
    CHECK(p[1].sm_percent.v == 7 && p[1].memory_percent.v == 3);
    CHECK_STR(p[2].sm_percent.why, "the driver has no value");
    bh_nvml_fixture_take(&f, "stride32");
    CHECK_STR(f.s.devices.at[0].processes.at[1].sm_percent.why, "the driver's answer makes no sense");
    CHECK_EQ(f.s.devices.at[0].processes.at[1].sm_percent.v, 0);
    bh_nvml_fixture_take(&f, "a100mig");
    CHECK_STR(f.s.devices.at[0].processes.at[0].memory_percent.why,
              "the driver does not measure it while MIG is on");
}

TEST(on_which_instance)
{
    bh_nvml_fixture_take(&f, "a100mig");
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    CHECK(d->processes.at[0].gi == 1 && d->processes.at[0].ci == 0 && d->processes.at[1].gi == 7);
}

TEST(processes_that_cannot_be_seen_from_here_are_still_listed)
{
    CHECK(bh_scratch_remove(root));
    bh_nvml_fixture_take(&f, "stride32");
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    CHECK_EQ(d->processes.n, 3);
    CHECK(d->processes.at[2].pid == 303 && !d->processes.at[2].name && !d->processes.at[2].user);
}

TEST(a_list_that_may_not_be_had_says_why)
{
    bh_nvml_fixture_take(&f, "denied");
    CHECK_STR(f.s.devices.at[0].processes_seen.why, "not permitted; try as root");
    CHECK_EQ(f.s.devices.at[0].processes.n, 0);
}

static const char *seen_with(const char *fail)
{
    if (setenv("STANDIN_FAIL", fail, 1) < 0)
        return "no room in the environment";
    bh_nvml_fixture_take(&f, "h200");
    (void)unsetenv("STANDIN_FAIL");
    const char *why = f.s.devices.n ? f.s.devices.at[0].processes_seen.why : "no GPU";
    return why ? why : "";
}

/* Only a list that does not exist is an empty one. */
TEST(any_list_that_fails_leaves_the_processes_unknown)
{
    CHECK_STR(seen_with("graphics:3"), "");
    CHECK_STR(seen_with("graphics:13"), "");
    CHECK_STR(seen_with("graphics:999"), "the driver answered with error 999");
    CHECK_STR(seen_with("graphics:4"), "not permitted; try as root");
    CHECK_STR(seen_with("graphics:2"), "refused by the driver as a wrong argument");
    CHECK_STR(seen_with("graphics_count:70000"), "the driver's process count makes no sense");
}

/* What was not asked says so, and is not 0. */
TEST(who_is_on_them_can_be_asked_alone)
{
    struct bh_gpu_snapshot s;
    bh_nvml_fixture_take(&f, "h100x8");
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine_users, &s, &f.err), BH_OK);
    CHECK_EQ(s.devices.n, 8);
    const struct bh_gpu_device *d = &s.devices.at[0];
    CHECK_STR(d->uuid, f.s.devices.at[0].uuid);
    CHECK(d->alive && d->processes.n == 3 && d->processes_seen.v == 3 && !d->processes_seen.why);
    CHECK_EQ(d->processes.at[1].memory_bytes.v, 2 * BH_GIB);
    CHECK_STR(d->temperature_c.why, "it was not asked");
    CHECK_STR(d->mig_mode.why, "it was not asked");
    CHECK_STR(s.driver, f.s.driver);
    bh_gpu_snapshot_fini(&s);
    bh_nvml_fixture_take(&f, "lost"); /* one that is gone is seen to be */
    size_t alive = 0, seen = 0;
    for (size_t i = 0; i < f.s.devices.n; i++)
        alive += f.s.devices.at[i].alive;
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine_users, &s, &f.err), BH_OK);
    for (size_t i = 0; i < s.devices.n; i++)
        seen += s.devices.at[i].alive;
    CHECK(alive < f.s.devices.n && seen == alive);
    bh_gpu_snapshot_fini(&s);
}

TEST(a_count_past_the_room_is_not_believed)
{
    bh_nvml_fixture_take(&f, "liar");
    CHECK_STR(f.s.devices.at[0].processes_seen.why, "the driver's process count makes no sense");
    CHECK_EQ(f.s.devices.at[0].processes.n, 0);
    bh_gpu_snapshot_fini(&f.s);
}

TEST_MAIN
