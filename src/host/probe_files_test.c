/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probe_files.h"

#include "base/scratch.h"
#include "base/sysfile.h"
#include "base/test.h"

#include <sys/stat.h>
#include <unistd.h>

static char root[BH_SYSPATH_MAX / 2];
static struct bh_node node;
static const char *const gpus[] = {"0000:18:00.0"};
static const uint32_t minors[] = {0, 3}, caps[] = {66};
static const struct bh_node_ask ask = {
    .pci = gpus, .n_pci = 1, .minors = minors, .n_minors = 2, .caps = caps, .n_caps = 1};

static bool below(char *at, const char *path)
{
    return bh_scratch_path(at, BH_SYSPATH_MAX, root, path);
}

static void put(const char *path, const char *text, mode_t mode)
{
    char at[BH_SYSPATH_MAX];
    FILE *f = below(at, path) ? fopen(at, "w") : NULL;
    if (!f)
        return;
    (void)fputs(text, f);
    (void)fclose(f);
    (void)chmod(at, mode);
}

static bool put_link(const char *path, const char *to)
{
    char at[BH_SYSPATH_MAX];
    return below(at, path) && symlink(to, at) == 0;
}

static void read_again(void)
{
    bh_node_fini(&node);
    bh_node_read(&node, &ask);
}

TEST(an_empty_machine)
{
    CHECK(bh_scratch_root(root, sizeof(root), "node"));
    bh_node_read(&node, &ask);
    for (size_t i = 0; i < BH_N_LINES; i++)
        CHECK(!node.lines[i].text && node.lines[i].why && node.lines[i].is_absent);
    for (size_t i = 0; i < BH_N_FILES; i++)
        CHECK(!node.files[i].path && !node.files[i].text);
    for (size_t i = 0; i < BH_N_PROGRAMS; i++)
        CHECK(!node.programs[i].path && !node.programs[i].version);
    CHECK(node.gpus.n == 2 && node.caps.n == 1 && !node.gpus.at[0].exists && !node.ctl.exists &&
          node.ctl.mode == 0);
    CHECK_STR(node.gpus.at[1].path, "/dev/nvidia3");
    CHECK(node.cdi.n == 0 && node.groups.n == 1 && !node.groups.at[0].id);
    CHECK(!node.persistenced && !node.vfio && !node.mps_running);
    CHECK_STR(node.state_folder, "/");
}

TEST(lines_files_and_programs)
{
    put("/proc/sys/kernel/yama/ptrace_scope", "1\n", 0644);
    put("/etc/slurm-llnl/slurm.conf", "ClusterName=x\n", 0644);
    put("/usr/bin/runc", "", 0755);
    put("/usr/bin/crun", "", 0755);
    put("/var/lib/dpkg/status",
        "Package: runc\nStatus: install ok installed\nVersion: 1.1.5+ds1-1+deb12u1\n\n"
        "Package: kubelet\nStatus: install ok installed\nVersion: 1.36.4-1\n",
        0644);
    put("/var/lib/x", "", 0644);
    read_again();
    CHECK_STR(node.lines[BH_LINE_PTRACE_SCOPE].text, "1");
    CHECK_STR(node.files[BH_FILE_SLURM].path, "/etc/slurm-llnl/slurm.conf");
    CHECK_STR(node.files[BH_FILE_SLURM].text, "ClusterName=x\n");
    CHECK_STR(node.programs[BH_PROGRAM_RUNC].version, "1.1.5+ds1");
    CHECK(node.programs[BH_PROGRAM_CRUN].path && !node.programs[BH_PROGRAM_CRUN].version);
    /* a package whose program is not there is no program */
    CHECK(!node.programs[BH_PROGRAM_KUBELET].path && !node.programs[BH_PROGRAM_KUBELET].version);
    CHECK_STR(node.state_folder, "/var/lib");
}

TEST(devices_and_their_modes)
{
    put("/dev/nvidiactl", "", 0666);
    put("/dev/nvidia3", "", 0660);
    put("/dev/nvidia-caps/nvidia-cap66", "", 0444);
    put("/tmp/nvidia-mps/control", "", 0666);
    put("/sys/module/vfio_pci/x", "", 0644);
    put("/run/nvidia-persistenced/socket", "", 0644);
    read_again();
    CHECK(node.ctl.exists && node.ctl.is_device);
    CHECK_EQ(node.ctl.mode, 0666);
    CHECK(!node.gpus.at[0].exists);
    CHECK_EQ(node.gpus.at[1].mode, 0660);
    CHECK_EQ(node.caps.at[0].mode, 0444);
    CHECK(node.mps_running && node.vfio && node.persistenced);
    CHECK_EQ(node.mps_folder_mode, 0700);
    CHECK(!node.mps_hidden && node.ctl.uid == geteuid() && node.ctl.gid == getegid());
}

TEST(a_file_is_no_device_on_this_machine)
{
    CHECK(unsetenv("BULKHEAD_SYSROOT") == 0);
    read_again();
    CHECK(!node.ctl.exists || node.ctl.is_device);
    CHECK(setenv("BULKHEAD_SYSROOT", root, 1) == 0);
}

TEST(cdi_specs)
{
    put("/etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu\n", 0644);
    put("/etc/cdi/notes.txt", "", 0644);
    put("/var/run/cdi/a.json", "{}", 0644);
    read_again();
    CHECK_EQ(node.cdi.n, 2);
    CHECK_STR(node.cdi.at[0].path, "/etc/cdi/nvidia.yaml");
    CHECK_STR(node.cdi.at[1].text, "{}");
}

TEST(strangers_in_a_group)
{
    CHECK(put_link("/sys/bus/pci/devices/0000:18:00.0/iommu_group", "../../../../kernel/iommu_groups/7"));
    put("/sys/kernel/iommu_groups/7/devices/0000:18:00.0", "", 0644);
    put("/sys/kernel/iommu_groups/7/devices/0000:18:00.1", "", 0644);
    put("/sys/kernel/iommu_groups/7/devices/0000:17:01.0", "", 0644);
    put("/sys/bus/pci/devices/0000:17:01.0/class", "0x060400\n", 0644);
    read_again();
    CHECK_STR(node.groups.at[0].id, "7");
    CHECK(!node.groups.at[0].others);
    put("/sys/kernel/iommu_groups/7/devices/0000:19:00.0", "", 0644);
    put("/sys/bus/pci/devices/0000:19:00.0/class", "0x020000\n", 0644);
    put("/sys/kernel/iommu_groups/7/devices/0000:1a:00.0", "", 0644);
    read_again();
    CHECK_STR(node.groups.at[0].others, "0000:19:00.0, 0000:1a:00.0");
    CHECK(!node.groups.at[0].why);
}

TEST(a_group_whose_members_are_not_listed_is_not_known)
{
    char at[BH_SYSPATH_MAX];
    CHECK(below(at, "/sys/kernel/iommu_groups/7/devices/0000:18:00.0") && unlink(at) == 0);
    read_again();
    CHECK(node.groups.at[0].why && strstr(node.groups.at[0].why, "does not name all"));
    CHECK(below(at, "/sys/kernel/iommu_groups/7/devices/x"));
    *strrchr(at, '/') = '\0';
    char away[BH_SYSPATH_MAX + 8];
    (void)snprintf(away, sizeof(away), "%s.away", at);
    CHECK_EQ(rename(at, away), 0);
    read_again();
    CHECK(node.groups.at[0].why && strstr(node.groups.at[0].why, "No such file"));
}

/* Root may read everything, so what cannot be read is a folder in a file's place. */
TEST(what_cannot_be_read_is_not_absent)
{
    char at[BH_SYSPATH_MAX];
    CHECK(below(at, "/proc/sys/kernel/io_uring_disabled/x"));
    put("/var/run/cdi/closed.json/x", "", 0644);
    read_again();
    CHECK(!node.lines[BH_LINE_IO_URING_DISABLED].text && !node.lines[BH_LINE_IO_URING_DISABLED].is_absent);
    CHECK_EQ(node.cdi.n, 3);
    CHECK(!node.cdi.at[2].text && node.cdi.at[2].why);
    CHECK(below(at, "/etc/cdi/x"));
    *strrchr(at, '/') = '\0';
    char away[BH_SYSPATH_MAX + 8];
    (void)snprintf(away, sizeof(away), "%s.away", at);
    CHECK_EQ(rename(at, away), 0);
    put("/etc/cdi", "", 0644);
    read_again();
    CHECK(node.cdi.n == 3 && !node.cdi.at[0].text && strstr(node.cdi.at[0].why, "Not a directory"));
}

TEST(a_folder_in_a_files_place_says_why)
{
    char at[BH_SYSPATH_MAX];
    CHECK(below(at, "/proc/meminfo/x"));
    read_again();
    CHECK(node.files[BH_FILE_MEMINFO].path && !node.files[BH_FILE_MEMINFO].text &&
          node.files[BH_FILE_MEMINFO].why);
    bh_node_fini(&node);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
