/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "gpu/nvml_fixture.h"

static struct bh_nvml_fixture f;
static char root[BH_SCRATCH_PATH];

TEST(one_gpu_in_full)
{
    CHECK(bh_scratch_root(root, sizeof(root), "nvml"));
    bh_nvml_fixture_put("/sys/bus/pci/devices/0000:18:00.0/numa_node", "1\n");
    bh_nvml_fixture_take(&f, "h200");
    CHECK_EQ(f.s.devices.n, 1);
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    CHECK_STR(d->name, "NVIDIA H200");
    CHECK_STR(d->model->name, "H200-141GB");
    CHECK_STR(d->uuid, "GPU-00000000-0000-4000-8000-000000000000");
    CHECK_STR(d->serial, "1654300000000");
    CHECK_STR(d->pci, "0000:18:00.0");
    CHECK_STR(d->vbios, "96.00.BC.00.01");
    CHECK_STR(d->gsp, "580.159.03");
    CHECK_STR(d->inforom, "G525.0225.00.05");
    CHECK(d->minor == 0 && d->module_id == 1);
    CHECK_EQ(d->numa, 1); /* the library does not say; the kernel does */
    CHECK_EQ(d->total_bytes.v, UINT64_C(143771) * BH_MIB);
    CHECK(d->used_bytes.v == BH_GIB && d->reserved_bytes.v == 512 * BH_MIB);
    CHECK_EQ(d->free_bytes.v, d->total_bytes.v - d->used_bytes.v - d->reserved_bytes.v);
    CHECK(d->ecc_mode.v == 1 && d->ecc_corrected.v == 17 && d->ecc_uncorrected.v == 0 &&
          d->remapped_rows.v == 0);
    CHECK(d->temperature_c.v == 30 && d->power_mw.v == 70000 && d->power_limit_mw.v == 700000);
    CHECK(d->sm_mhz.v == 1980 && d->memory_mhz.v == 2619 && d->util_percent.v == 0 &&
          d->memory_util_percent.v == 3);
    CHECK(d->throttle.v == 1 && !d->trouble && d->alive);
    CHECK_EQ(f.s.cc_feature.v, 1);
    /* a library that refuses version 3 of the fabric's struct */
    CHECK_EQ(d->fabric_state.v, 3);
    CHECK_STR(d->fabric_key, "abababababababababababababababab.7");
}

TEST(trouble_is_seen)
{
    bh_nvml_fixture_take(&f, "h100x8");
    const struct bh_gpu_device *d = f.s.devices.at;
    CHECK(!d[0].trouble && !d[1].trouble);
    CHECK_STR(d[3].trouble, "2 uncorrected memory errors since the driver was loaded; drain and reset it");
    CHECK_EQ(d[3].ecc_uncorrected.v, 3);
    CHECK_STR(d[4].trouble, "a row remapping waits for a reset; drain and reset it");
    CHECK_STR(d[6].trouble, "NVLink runs at less than full bandwidth");
    CHECK_STR(d[7].trouble, "slowed down: hardware slowdown, too hot (hardware)");
    CHECK(d[0].numa == 0 && d[7].numa == 1 && !d[0].fabric_key);
}

TEST(a_fabric_that_could_not_be_joined)
{
    CHECK_EQ(setenv("STANDIN_FAIL", "fabric_status_of_1:999", 1), 0);
    bh_nvml_fixture_take(&f, "h100x8");
    CHECK_EQ(unsetenv("STANDIN_FAIL"), 0);
    const struct bh_gpu_device *d = &f.s.devices.at[1];
    CHECK(d->alive && d->fabric_error == 999 && d->fabric_health == 0);
    CHECK_STR(d->fabric_state.why, "joining the fabric failed: error 999");
    CHECK_STR(d->trouble, "it could not join the NVLink fabric: error 999");
    CHECK(f.s.devices.at[0].fabric_state.v == 3 && !f.s.devices.at[0].trouble);
}

TEST(an_older_library_is_asked_under_older_names)
{
    bh_nvml_fixture_take(&f, "old");
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    CHECK_STR(d->pci, "0000:18:00.0");
    CHECK_EQ(d->used_bytes.v, BH_GIB + 512 * BH_MIB);
    CHECK_STR(d->reserved_bytes.why, "not supported by this driver");
    CHECK_EQ(d->processes.n, 3);
}

TEST(odd_answers_are_bounded)
{
    bh_nvml_fixture_take(&f, "odd");
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    CHECK_EQ(strlen(d->name), 96); /* a string without end: what was asked for, no more */
    CHECK(!d->pci && !d->model);
    CHECK_STR(d->util_percent.why, "the driver's answer makes no sense");
    CHECK(f.s.paths.n == 1 && !f.s.paths.at[0].ancestor);
}

TEST(two_memory_nodes_are_none)
{
    bh_nvml_fixture_take(&f, "a100mig");
    CHECK_EQ(f.s.devices.at[0].numa, 1);
    CHECK_EQ(f.s.devices.at[1].numa, -1);
    CHECK_STR(f.s.devices.at[0].util_percent.why, "not supported by this GPU");
}

TEST(all_goes_back)
{
    bh_gpu_snapshot_fini(&f.s);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
