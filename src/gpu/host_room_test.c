/* SPDX-License-Identifier: Apache-2.0 */
/* host_room_test.c - a machine made of a few files: what is free, and whose limit is the nearest. */
#include "gpu/host_room.h"

#include "base/units.h"
#include "gpu/nvml_fixture.h"

static char root[BH_SCRATCH_PATH];

TEST(what_the_machine_has)
{
    uint64_t bytes = 7;
    CHECK(bh_scratch_root(root, sizeof(root), "room"));
    CHECK(!bh_host_available(&bytes));
    bh_nvml_fixture_put("/proc/meminfo", "MemTotal:  100 kB\n");
    CHECK(!bh_host_available(&bytes));
    bh_nvml_fixture_put("/proc/meminfo", "MemTotal:  100 kB\nMemAvailable:    2048 kB\n");
    CHECK(bh_host_available(&bytes));
    CHECK_EQ(bytes, 2 * BH_MIB);
    bh_nvml_fixture_put("/proc/meminfo", "MemAvailable: 99999999999999999999 kB\n");
    CHECK(!bh_host_available(&bytes));
    CHECK_EQ(bytes, 2 * BH_MIB);
    CHECK(bh_scratch_remove(root));
}

TEST(the_nearest_limit_counts)
{
    struct bh_host_group g;
    CHECK(bh_scratch_root(root, sizeof(root), "room"));
    bh_host_group_read(5, &g);
    CHECK_STR(g.path, "");
    CHECK_EQ(g.room, UINT64_MAX);
    bh_nvml_fixture_put("/proc/5/cgroup", "12:cpu:/old\n0::/pods/one\n");
    bh_nvml_fixture_put("/sys/fs/cgroup/pods/one/memory.max", "max\n");
    bh_nvml_fixture_put("/sys/fs/cgroup/pods/one/memory.current", "100\n");
    bh_host_group_read(5, &g);
    CHECK_EQ(g.room, UINT64_MAX);
    bh_nvml_fixture_put("/sys/fs/cgroup/pods/memory.max", "1000\n");
    bh_nvml_fixture_put("/sys/fs/cgroup/pods/memory.current", "900\n");
    bh_host_group_read(5, &g);
    CHECK_STR(g.path, "/pods");
    CHECK_EQ(g.room, 100);
    bh_nvml_fixture_put("/sys/fs/cgroup/pods/memory.stat", "anon 1\ninactive_file 300\n");
    bh_host_group_read(5, &g);
    CHECK_EQ(g.room, 400);
    bh_nvml_fixture_put("/sys/fs/cgroup/pods/one/memory.max", "150\n");
    bh_host_group_read(5, &g);
    CHECK_STR(g.path, "/pods/one");
    CHECK_EQ(g.room, 50);
    bh_nvml_fixture_put("/sys/fs/cgroup/pods/one/memory.current", "200\n");
    bh_host_group_read(5, &g);
    CHECK_EQ(g.room, 0);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
