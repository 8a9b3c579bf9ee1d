/* SPDX-License-Identifier: Apache-2.0 */
/* disks_test.c - a machine's disks, from a folder that stands for it. */
#include "host/disks.h"

#include "base/scratch.h"
#include "base/test.h"

static char at[BH_SCRATCH_PATH];

static bool put(const char *name, const char *text)
{
    return bh_scratch_put(at, name, text);
}

TEST(those_with_hardware_behind_them)
{
    bh_disks disks = {0};
    struct bh_err err;
    CHECK(bh_scratch_make(at, sizeof(at), "disks"));
    CHECK_EQ(bh_disks_list(at, &disks, &err), BH_OK);
    CHECK_EQ(disks.n, 0);
    CHECK(put("sys/block/vda/device/x", "") && put("sys/block/vda/dev", "254:0\n"));
    CHECK(put("sys/block/loop0/dev", "7:0\n") && put("sys/block/dm-0/dev", "253:0\n"));
    CHECK(put("sys/block/nvme0n1/device/x", "") && put("sys/block/nvme0n1/dev", "259:3\n"));
    CHECK(put("sys/block/gone/device/x", ""));
    CHECK_EQ(bh_disks_list(at, &disks, &err), BH_OK);
    CHECK_EQ(disks.n, 2);
    CHECK(disks.at[0].major == 259 && disks.at[0].minor == 3);
    CHECK(disks.at[1].major == 254 && disks.at[1].minor == 0);
    for (const char *const *bad = (const char *const[]){"254\n", "x:1\n", "1:\n", "4294967296:0\n", NULL};
         *bad; bad++) {
        CHECK(put("sys/block/vda/dev", *bad));
        CHECK_EQ(bh_disks_list(at, &disks, &err), BH_SYSTEM);
        CHECK(strstr(err.msg, "vda"));
    }
    bh_vec_fini(&disks);
    bh_scratch_remove(at);
}

TEST_MAIN
