/* SPDX-License-Identifier: Apache-2.0 */
/* nvswitch_test.c - lines of a switch's file, and a machine with some switches. */
#include "gpu/nvswitch.h"

#include "base/scratch.h"
#include "base/sysfile.h"
#include "base/test.h"

static void put(const char *name, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", BH_NVSWITCH_FOLDER, name);
    if (!bh_scratch_put(bh_sysroot(), path, text))
        abort();
}

TEST(the_version_of_its_firmware)
{
    static const char *const none[] = {"",
                                       "BIOS Version: N/A\n",
                                       "BIOS Version:\n",
                                       "BIOS Version",
                                       " BIOS Version: 96.10\n",
                                       "VBIOS Version: 96.10\n",
                                       "BIOS Version: 96.10; reboot\n",
                                       "BIOS Version: 0123456789abcdef0123456789abcdef\n"};
    char bios[BH_NVSWITCH_BIOS_MAX];
    CHECK(bh_nvswitch_bios("BIOS Version: 96.10.6d.00.01\n", bios));
    CHECK_STR(bios, "96.10.6d.00.01");
    CHECK(bh_nvswitch_bios("Device: 3\nBIOS Version: \t 92.10.18.00.02 \r\nMore: 1\n", bios));
    CHECK_STR(bios, "92.10.18.00.02");
    for (size_t i = 0; i < BH_COUNT_OF(none); i++)
        CHECK(!bh_nvswitch_bios(none[i], bios));
}

TEST(the_name_of_its_folder)
{
    CHECK(bh_nvswitch_is_pci("0000:c1:00.0") && bh_nvswitch_is_pci("00AF:0e:1f.7"));
    CHECK(!bh_nvswitch_is_pci("") && !bh_nvswitch_is_pci("..") && !bh_nvswitch_is_pci("0000:c1:00.00") &&
          !bh_nvswitch_is_pci("0000:c1:00/0") && !bh_nvswitch_is_pci("permissions1") &&
          !bh_nvswitch_is_pci("g000:c1:00.0"));
}

TEST(a_machine_without_switches)
{
    char root[BH_SCRATCH_PATH];
    struct bh_gpu_snapshot s = {0};
    CHECK(bh_scratch_root(root, sizeof(root), "nvswitch"));
    bh_nvswitch_read(&s);
    CHECK(s.switches.n == 0 && s.notes.n == 0);
    put("../permissions", "DeviceFileMode: 438\n"); /* the driver is there, and has found none */
    put("not-an-address", "");
    bh_nvswitch_read(&s);
    CHECK(s.switches.n == 0 && s.notes.n == 0);
    bh_gpu_snapshot_fini(&s);
    CHECK(bh_scratch_remove(root));
}

TEST(in_the_order_of_their_addresses)
{
    char root[BH_SCRATCH_PATH];
    struct bh_gpu_snapshot s = {0};
    CHECK(bh_scratch_root(root, sizeof(root), "nvswitch"));
    put("0000:c3:00.0/information", "BIOS Version: 96.10.6d.00.01\n");
    put("0000:c1:00.0/information", "BIOS Version: 96.10.57.00.01\n");
    put("0000:c2:00.0/information", "BIOS Version: N/A\n");
    put("0000:c4:00.0/other", "");
    bh_nvswitch_read(&s);
    CHECK_EQ(s.switches.n, 4);
    CHECK_STR(s.switches.at[0].pci, "0000:c1:00.0");
    CHECK_STR(s.switches.at[0].bios, "96.10.57.00.01");
    CHECK_STR(s.switches.at[1].pci, "0000:c2:00.0");
    CHECK(!s.switches.at[1].bios && !s.switches.at[3].bios);
    CHECK_STR(s.switches.at[2].bios, "96.10.6d.00.01");
    CHECK_EQ(s.notes.n, 1);
    CHECK(strstr(s.notes.at[0], "NVSwitch 0000:c4:00.0"));
    bh_gpu_snapshot_fini(&s);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
