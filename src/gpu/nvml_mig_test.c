/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "gpu/nvml_fixture.h"

static struct bh_nvml_fixture f;
static char root[BH_SCRATCH_PATH];

TEST(instances_have_places_and_devices)
{
    CHECK(bh_scratch_root(root, sizeof(root), "nvml"));
    bh_nvml_fixture_take(&f, "a100mig");
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    static const struct {
        uint32_t gi, ci, start, size, profile_id;
        const char *profile, *uuid;
        int gi_cap, ci_cap;
    } want[] = {
        {7, 0, 0, 1, 19, "1g.5gb", "MIG-00000000-0000-4000-8000-000000000003", 66, 67},
        {8, BH_NO_ID, 1, 1, 19, "1g.5gb", NULL, 75, -1},
        {1, 0, 4, 4, 9, "3g.20gb", "MIG-00000000-0000-4000-8000-000000000001", 12, 13},
        {1, 1, 4, 4, 9, "3g.20gb", "MIG-00000000-0000-4000-8000-000000000002", 12, 14},
    };
    CHECK(d->mig_mode.v == 1 && !d->mig_mode.why);
    CHECK_EQ(d->instances.n, BH_COUNT_OF(want));
    for (size_t i = 0; i < BH_COUNT_OF(want); i++) {
        const struct bh_gpu_instance *at = &d->instances.at[i];
        CHECK_EQ(at->gi, want[i].gi);
        CHECK_EQ(at->ci, want[i].ci);
        CHECK_EQ(at->start.v, want[i].start);
        CHECK_EQ(at->size.v, want[i].size);
        CHECK_EQ(at->gi_profile_id.v, want[i].profile_id);
        CHECK_STR(at->profile, want[i].profile);
        CHECK(want[i].uuid ? at->uuid && strcmp(at->uuid, want[i].uuid) == 0 : !at->uuid);
        CHECK_EQ(at->gi_cap.v, want[i].gi_cap);
        CHECK_EQ(at->ci_cap.why ? -1 : (int)at->ci_cap.v, want[i].ci_cap);
        CHECK_EQ(at->total_bytes.v, 4864 * BH_MIB);
    }
    CHECK_STR(d->instances.at[1].used_bytes.why, "no compute instance is made in it");
    CHECK(d->instances.at[2].used_bytes.v == BH_GIB && d->instances.at[2].sm.v == 14);
    CHECK(f.s.devices.at[1].mig_mode.v == 0 && f.s.devices.at[1].instances.n == 0);
    CHECK_EQ(f.s.notes.n, 0);
}

TEST(the_drivers_list_of_minors_comes_first)
{
    bh_nvml_fixture_put("/proc/driver/nvidia-caps/mig-minors",
                        "gpu0/gi7/access 500\ngpu0/gi7/ci0/access 501\n");
    bh_nvml_fixture_take(&f, "a100mig");
    const struct bh_gpu_instance *at = f.s.devices.at[0].instances.at;
    CHECK(at[0].gi_cap.v == 500 && at[0].ci_cap.v == 501);
    CHECK_STR(at[2].gi_cap.why, "not in the driver's list");
}

TEST(without_permission_the_devices_are_still_seen)
{
    bh_nvml_fixture_take(&f, "denied");
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    CHECK_EQ(d->instances.n, 3);
    CHECK_STR(d->instances.at[0].profile, "1c.3g.20gb");
    CHECK_STR(d->instances.at[0].start.why, "not permitted; try as root");
    CHECK_STR(d->instances.at[2].uuid, "MIG-00000000-0000-4000-8000-000000000003");
    CHECK_EQ(f.s.notes.n, 1);
    CHECK_STR(f.s.notes.at[0],
              "where the MIG instances of GPU 0 lie is not known: not permitted; try as root");
}

static void take_with(const char *fail)
{
    if (setenv("STANDIN_FAIL", fail, 1) == 0)
        bh_nvml_fixture_take(&f, "a100mig");
    (void)unsetenv("STANDIN_FAIL");
}

/* An instance is without a device only where all devices could be asked for. */
TEST(a_list_that_is_not_whole_says_so)
{
    bh_nvml_fixture_take(&f, "a100mig");
    CHECK(!f.s.devices.at[0].instances_seen.why && f.s.devices.at[0].instances_seen.v == 4);
    CHECK(!f.s.devices.at[1].instances_seen.why && f.s.devices.at[1].instances_seen.v == 0);
    static const char *const calls[] = {"mig_max:999", "mig_handle:999", "gi_list:999", "mig_mode:999"};
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++) {
        take_with(calls[i]);
        CHECK_STR(f.s.devices.at[0].instances_seen.why, "the driver answered with error 999");
        CHECK_EQ(f.s.devices.at[0].processes.n, 3);
    }
    take_with("mig_max:999");
    CHECK_STR(f.s.notes.at[0], "the MIG devices of GPU 0 are not known: the driver answered with error 999");
    take_with("gi_list:999");
    CHECK_STR(f.s.notes.at[0],
              "where the MIG instances of GPU 0 lie is not known: the driver answered with error 999");
    take_with("mig_mode:3"); /* a GPU without MIG has no instances, and that is known */
    CHECK(!f.s.devices.at[0].instances_seen.why && f.s.devices.at[0].instances.n == 0);
}

TEST(all_goes_back)
{
    bh_gpu_snapshot_fini(&f.s);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
