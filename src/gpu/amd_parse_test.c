/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd_parse.h"

#include "base/test.h"
#include "gpu/gpu.h"

TEST(uevent_lines)
{
    char buf[BH_AMD_PCI_MAX];
    static const char text[] = "DRIVER=amdgpu\nPCI_SLOT_NAMES=no\nPCI_SLOT_NAME=0000:c1:00.0\nEMPTY=\nLAST=x";
    CHECK(bh_amd_uevent(text, "PCI_SLOT_NAME", buf, sizeof(buf)));
    CHECK_STR(buf, "0000:c1:00.0");
    CHECK(bh_amd_uevent(text, "DRIVER", buf, sizeof(buf)) && bh_amd_uevent(text, "LAST", buf, sizeof(buf)));
    CHECK(!bh_amd_uevent(text, "EMPTY", buf, sizeof(buf)) && !bh_amd_uevent(text, "LAS", buf, sizeof(buf)));
    CHECK(!bh_amd_uevent("PCI_SLOT_NAME=0123456789012345678901", "PCI_SLOT_NAME", buf, sizeof(buf)));
    CHECK(!bh_amd_uevent("", "DRIVER", buf, sizeof(buf)));
}

TEST(pci_addresses)
{
    CHECK(bh_amd_is_pci("0000:c1:00.0") && bh_amd_is_pci("10000:FF:1f.7"));
    CHECK(!bh_amd_is_pci("000:c1:00.0") && !bh_amd_is_pci("0000:c1:00.8") &&
          !bh_amd_is_pci("0000:c1:00.0 ") && !bh_amd_is_pci("0000:c1:0.0") && !bh_amd_is_pci("") &&
          !bh_amd_is_pci("../../etc"));
}

TEST(unique_ids)
{
    char id[17];
    CHECK(bh_amd_unique_id("1F8B2C3D4E5F6071", id));
    CHECK_STR(id, "1f8b2c3d4e5f6071");
    CHECK(bh_amd_unique_id("1", id) && !bh_amd_unique_id("", id) && !bh_amd_unique_id("0000", id));
    CHECK(!bh_amd_unique_id("1f8b2c3d4e5f60711", id) && !bh_amd_unique_id("12 34", id) &&
          !bh_amd_unique_id("0x1", id));
}

TEST(partition_modes)
{
    char modes[BH_AMD_MODES_MAX];
    CHECK(bh_amd_modes("SPX, DPX, QPX, CPX", modes));
    CHECK_STR(modes, "SPX, DPX, QPX, CPX");
    CHECK(bh_amd_modes(" NPS1,NPS4\n", modes));
    CHECK_STR(modes, "NPS1, NPS4");
    CHECK(!bh_amd_modes("", modes) && !bh_amd_modes(" , ", modes) && !bh_amd_modes("SPX; rm", modes) &&
          !bh_amd_modes("spx", modes));
    CHECK(!bh_amd_modes("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", modes));
}

TEST(link_counts)
{
    uint8_t n[BH_AMD_NODES_MAX];
    char many[BH_AMD_NODES_MAX * 3 + 4];
    CHECK(bh_amd_counts("00 01 01 0a \n", n) == 4 && n[0] == 0 && n[3] == 10);
    CHECK(bh_amd_counts("", n) == 0 && bh_amd_counts("1 2", n) == 0 && bh_amd_counts("00 0g", n) == 0 &&
          bh_amd_counts("000", n) == 0);
    /* a file of ff is no hive with 255 links */
    CHECK(bh_amd_counts("00 ff", n) == 0 && bh_amd_counts("00 11", n) == 0 && bh_amd_counts("00 10", n) == 2);
    for (size_t i = 0; i < sizeof(many) - 1; i++)
        many[i] = "01 "[i % 3];
    many[sizeof(many) - 1] = '\0';
    CHECK_EQ(bh_amd_counts(many, n), 0);
    many[BH_AMD_NODES_MAX * 3 - 1] = '\0';
    CHECK_EQ(bh_amd_counts(many, n), BH_AMD_NODES_MAX);
}

TEST(isolation)
{
    CHECK_EQ(bh_amd_isolation("1"), BH_ISOLATION_ON);
    CHECK_EQ(bh_amd_isolation("1 2 1 1\n"), BH_ISOLATION_ON);
    CHECK_EQ(bh_amd_isolation("1 0 1 1"), BH_ISOLATION_OFF);
    CHECK_EQ(bh_amd_isolation("0"), BH_ISOLATION_OFF);
    CHECK_EQ(bh_amd_isolation("3"), BH_ISOLATION_UNWIPED);
    CHECK_EQ(bh_amd_isolation("1 3 1"), BH_ISOLATION_UNWIPED);
    CHECK_EQ(bh_amd_isolation("3 0"), BH_ISOLATION_OFF);
    CHECK_EQ(bh_amd_isolation("4"), -1);
    CHECK_EQ(bh_amd_isolation(""), -1);
    CHECK_EQ(bh_amd_isolation("on"), -1);
    CHECK_EQ(bh_amd_isolation("1 10"), -1);
    CHECK_EQ(bh_amd_isolation("0 x"), -1);
}

TEST_MAIN
