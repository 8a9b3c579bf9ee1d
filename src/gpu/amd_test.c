/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "gpu/nvml_fixture.h"

static char root[BH_SCRATCH_PATH];
static struct bh_gpu_snapshot s;
static struct bh_err err;

static void put(unsigned card, const char *file, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "/sys/class/drm/card%u/device/%s", card, file);
    bh_nvml_fixture_put(path, text);
}

/* Two of a hive of two, tied by four links. */
static void put_card(unsigned card, const char *bus, const char *links)
{
    char text[96];
    (void)snprintf(text, sizeof(text), "DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_SLOT_NAME=0000:%s:00.0\n", bus);
    put(card, "uevent", text);
    put(card, "vendor", "0x1002\n");
    put(card, "device", "0x74a1\n");
    (void)snprintf(text, sizeof(text), "1F8B2C3D4E5F60%s\n", bus);
    put(card, "unique_id", text);
    put(card, "product_name", "AMD Instinct MI300X OAM\n");
    put(card, "numa_node", "1\n");
    put(card, "mem_info_vram_total", "206141652992\n");
    put(card, "mem_info_vram_used", "1073741824\n");
    put(card, "gpu_busy_percent", "42\n");
    put(card, "vbios_version", "113-M3000100-102\n");
    put(card, "current_compute_partition", "SPX\n");
    put(card, "available_compute_partition", "SPX, DPX, QPX, CPX\n");
    put(card, "current_memory_partition", "NPS1\n");
    put(card, "available_memory_partition", "NPS1, NPS4\n");
    put(card, "enforce_isolation", "0\n");
    put(card, "xgmi_hive_info/xgmi_hive_id", "8675309\n");
    put(card, "xgmi_hive_info/node1/uevent", "PCI_SLOT_NAME=0000:05:00.0\n");
    put(card, "xgmi_hive_info/node2/uevent", "PCI_SLOT_NAME=0000:26:00.0\n");
    put(card, "xgmi_num_links", links);
}

TEST(two_gpus_of_one_hive)
{
    CHECK(bh_scratch_root(root, sizeof(root), "amd"));
    put_card(1, "05", "00 04 \n");
    put_card(12, "26", "04 00 \n");
    bh_nvml_fixture_put("/sys/class/drm/card1-DP-1/status", "connected\n");
    bh_nvml_fixture_put("/sys/class/drm/version", "drm\n");
    bh_nvml_fixture_put("/sys/module/amdgpu/version", "6.10.5\n");
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_amd, &s, &err), BH_OK);
    CHECK_EQ(s.devices.n, 2);
    const struct bh_gpu_device *d = &s.devices.at[1];
    CHECK(d->index == 1 && d->minor == 12 && d->vendor == BH_GPU_AMD && d->alive && !d->trouble && !d->model);
    CHECK_STR(d->name, "AMD Instinct MI300X OAM");
    CHECK_STR(d->uuid, "GPU-1f8b2c3d4e5f6026");
    CHECK_STR(d->pci, "0000:26:00.0");
    CHECK_STR(d->vbios, "113-M3000100-102");
    CHECK(d->numa == 1 && d->module_id == -1);
    CHECK(d->total_bytes.v == UINT64_C(206141652992) && d->used_bytes.v == BH_GIB &&
          d->free_bytes.v == UINT64_C(206141652992) - BH_GIB && d->util_percent.v == 42);
    CHECK_STR(d->memory_util_percent.why, "amdgpu does not say");
    CHECK_STR(d->mig_mode.why, "amdgpu does not say");
    CHECK_STR(d->compute_partition, "SPX");
    CHECK_STR(d->compute_partitions, "SPX, DPX, QPX, CPX");
    CHECK_STR(d->memory_partition, "NPS1");
    CHECK_STR(d->memory_partitions, "NPS1, NPS4");
    CHECK(!d->isolation.why && d->isolation.v == 0);
    CHECK_STR(d->domain, "xgmi-8675309");
    CHECK(d->links.v == 4 && d->up.n == 4 && d->up.at[3].link == 3 && d->up.at[0].remote == BH_LINK_GPU);
    CHECK_STR(d->up.at[0].remote_pci, "0000:05:00.0");
    CHECK(s.paths.n == 1 && s.paths.at[0].n_direct == 4);
    CHECK_STR(s.amdgpu, "6.10.5");
    CHECK(s.simulated && !s.library);
}

TEST(nvidia_and_amd_stand_together)
{
    char path[BH_SYSPATH_MAX];
    bh_gpu_snapshot_fini(&s);
    (void)snprintf(path, sizeof(path), "%s/h200.so", BH_STANDINS);
    CHECK_EQ(setenv("BULKHEAD_NVML", path, 1), 0);
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine, &s, &err), BH_OK);
    CHECK_EQ(s.devices.n, 3);
    CHECK(s.devices.at[0].vendor == BH_GPU_NVIDIA && s.devices.at[1].vendor == BH_GPU_AMD);
    CHECK(s.devices.at[1].index == 1 && s.devices.at[2].index == 2);
    CHECK(s.paths.n == 1 && s.paths.at[0].a == 1 && s.paths.at[0].b == 2 && s.notes.n == 0);
    CHECK(s.driver && s.amdgpu);
    /* a driver that is there and broken is said; one that is not there is not */
    bh_gpu_snapshot_fini(&s);
    (void)snprintf(path, sizeof(path), "%s/mismatch.so", BH_STANDINS);
    CHECK_EQ(setenv("BULKHEAD_NVML", path, 1), 0);
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine, &s, &err), BH_OK);
    CHECK(s.devices.n == 2 && s.notes.n == 1 && strstr(s.notes.at[0], "are of different versions"));
    CHECK_STR(s.cc_feature.why, "no NVIDIA driver was asked");
    bh_gpu_snapshot_fini(&s);
    (void)snprintf(path, sizeof(path), "%s/longsize.so", BH_STANDINS);
    CHECK_EQ(setenv("BULKHEAD_NVML", path, 1), 0);
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine, &s, &err), BH_OK);
    CHECK(s.devices.n == 2 && s.devices.at[0].vendor == BH_GPU_AMD && s.devices.at[0].index == 0 &&
          s.paths.n == 1);
    CHECK(s.notes.n == 1 && strstr(s.notes.at[0], "has another interface than it should"));
    CHECK(!s.library && !s.driver && s.cc_environment.why); /* of a maker that failed nothing is kept */
    bh_gpu_snapshot_fini(&s);
    CHECK_EQ(setenv("BULKHEAD_NVML", "no/such.so", 1), 0);
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine, &s, &err), BH_OK);
    CHECK(s.devices.n == 2 && s.notes.n == 0 && s.devices.at[0].index == 0);
}

TEST(files_that_say_nothing_or_nonsense)
{
    bh_gpu_snapshot_fini(&s);
    put(12, "unique_id", "not a number\n");
    put(12, "product_name", "\n");
    put(12, "numa_node", "-1\n");
    put(12, "mem_info_vram_used", "99999999999999999999999999\n");
    put(12, "gpu_busy_percent", "400\n");
    put(12, "current_compute_partition", "\x1b[31m\n");
    put(12, "enforce_isolation", "maybe\n");
    put(12, "xgmi_num_links", "ff 00\n");
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_amd, &s, &err), BH_OK);
    const struct bh_gpu_device *d = &s.devices.at[1];
    CHECK(!d->uuid && d->numa == -1 && !d->compute_partition && d->alive);
    CHECK_STR(d->name, "AMD GPU 0x74a1");
    CHECK_STR(d->used_bytes.why, "amdgpu's answer makes no sense");
    CHECK_STR(d->util_percent.why, "amdgpu's answer makes no sense");
    CHECK_STR(d->isolation.why, "amdgpu's answer makes no sense");
    CHECK_STR(d->links.why, "amdgpu's answer makes no sense");
    CHECK_STR(d->domain, "xgmi-8675309");
    CHECK(d->up.n == 0 && d->free_bytes.why);
    /* memory that cannot be read: a driver that lost its card */
    bh_gpu_snapshot_fini(&s);
    put(12, "mem_info_vram_total", "oops\n");
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_amd, &s, &err), BH_OK);
    CHECK(!s.devices.at[1].alive && s.devices.at[0].alive);
    CHECK_STR(s.devices.at[1].trouble, "its memory cannot be read: amdgpu's answer makes no sense");
}

TEST(other_cards_are_none_of_ours)
{
    bh_gpu_snapshot_fini(&s);
    put(1, "vendor", "0x10de\n");
    put(12, "uevent", "DRIVER=radeon\n");
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_amd, &s, &err), BH_NOT_FOUND);
    CHECK_STR(err.msg, "no AMD GPU on this machine: amdgpu drives no card below /sys/class/drm");
    /* with neither maker the sentence is NVIDIA's */
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine, &s, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "no NVIDIA driver library on this machine"));
    /* one that opens and then cannot count its GPUs is a failure, whatever the code */
    char path[BH_SYSPATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/h200.so", BH_STANDINS);
    CHECK(setenv("BULKHEAD_NVML", path, 1) == 0 && setenv("STANDIN_FAIL", "count:9", 1) == 0);
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine, &s, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "simulated: the NVIDIA kernel driver is not loaded; load it with"));
    CHECK(s.simulated && s.devices.n == 0);
    CHECK_EQ(unsetenv("STANDIN_FAIL"), 0);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
