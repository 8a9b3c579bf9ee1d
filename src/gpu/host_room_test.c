/* SPDX-License-Identifier: Apache-2.0 */
/* host_room_test.c - a machine made of a few files: what is free, and whose limit is the nearest. */
#include "gpu/host_room.h"

#include "base/units.h"
#include "gpu/nvml_fixture.h"

static bool root(void)
{
    static char at[80];
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(at, sizeof(at), "%.40s/bh-room-XXXXXX", tmp ? tmp : P_tmpdir);
    return bh_nvml_fixture_root(at);
}

TEST(what_the_machine_has)
{
    uint64_t bytes = 7;
    CHECK(root());
    CHECK(!bh_host_available(&bytes));
    bh_nvml_fixture_put("/proc/meminfo", "MemTotal:  100 kB\n");
    CHECK(!bh_host_available(&bytes));
    bh_nvml_fixture_put("/proc/meminfo", "MemTotal:  100 kB\nMemAvailable:    2048 kB\n");
    CHECK(bh_host_available(&bytes));
    CHECK_EQ(bytes, 2 * BH_MIB);
    bh_nvml_fixture_put("/proc/meminfo", "MemAvailable: 99999999999999999999 kB\n");
    CHECK(!bh_host_available(&bytes));
    CHECK_EQ(bytes, 2 * BH_MIB);
    CHECK(bh_nvml_fixture_clear());
}

TEST(the_nearest_limit_counts)
{
    struct bh_host_group g;
    CHECK(root());
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
    CHECK(bh_nvml_fixture_clear());
}

TEST_MAIN
