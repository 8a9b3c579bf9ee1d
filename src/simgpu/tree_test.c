/* SPDX-License-Identifier: Apache-2.0 */
/* tree_test.c - the simulated machine's files say what the machine is, and go away without a trace. */
#include "simgpu/tree.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/str.h"
#include "base/test.h"
#include "base/units.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT = 1 << 18 };
#define EFI "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

static char scratch[PATH_MAX / 4], folder[PATH_MAX / 2];
static struct bh_sim_node node;
static struct bh_err err;
static char text[TEXT];

/* One scratch folder for all tests; the last one removes it. */
static bool start(const char *scene)
{
    if (!*scratch) {
        if (!bh_scratch_make(scratch, sizeof(scratch), "tree"))
            return false;
        (void)snprintf(folder, sizeof(folder), "%s/sysroot", scratch);
    }
    return bh_sim_node_make(&node, scene, 11, &err) == BH_OK;
}

static void path_of(char *ret, size_t size, const char *path)
{
    (void)snprintf(ret, size, "%s/%s", folder, path);
}

/* The bytes of a file in `text`; -1: none. */
static ssize_t slurp(const char *path)
{
    char at[PATH_MAX];
    path_of(at, sizeof(at), path);
    int fd = open(at, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0, got = 1;
    while (fd >= 0 && got > 0 && n < TEXT - 1)
        if ((got = read(fd, text + n, (size_t)(TEXT - 1 - n))) > 0)
            n += got;
    if (fd < 0)
        return -1;
    close(fd);
    text[n] = '\0';
    return n;
}

static const char *content(const char *path)
{
    return slurp(path) < 0 ? "(none)" : text;
}

static const char *gpu_content(uint32_t gpu, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/%s", node.gpus[gpu].pci, name);
    return content(path);
}

static bool has_line(const char *path, const char *line)
{
    const char *at = content(path);
    size_t n = strlen(line);
    while ((at = strstr(at, line)))
        if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
            return true;
        else
            at++;
    return false;
}

static bool exists(const char *path)
{
    char at[PATH_MAX];
    struct stat st;
    path_of(at, sizeof(at), path);
    return lstat(at, &st) == 0;
}

/* Does what a link names exist, below the folder? */
static bool leads_to(const char *path, const char *end)
{
    char at[PATH_MAX];
    path_of(at, sizeof(at), path);
    BH_AUTOFREE char *real = realpath(at, NULL);
    BH_AUTOFREE char *root = realpath(folder, NULL);
    return real && root && bh_str_starts(real, root) && bh_str_ends(real, end);
}

static bool make(const char *scene)
{
    return start(scene) && bh_sim_tree_write(&node, folder, &err) == BH_OK;
}

TEST(the_kernel_and_the_driver)
{
    CHECK(make("h100x8"));
    CHECK_STR(content("proc/sys/kernel/hostname"), "sim-h100x8\n");
    CHECK_STR(content("proc/sys/kernel/osrelease"), "6.8.0-60-generic\n");
    CHECK_STR(content("sys/module/nvidia/version"), "580.159.04\n");
    CHECK(bh_str_starts(content("proc/driver/nvidia/version"),
                        "NVRM version: NVIDIA UNIX Open Kernel Module "));
    CHECK(strstr(text, "  580.159.04  ") && strstr(text, "simulated"));
    CHECK(has_line("proc/driver/nvidia/params", "RmProfilingAdminOnly: 1"));
    CHECK(has_line("proc/driver/nvidia/params", "RegistryDwords: \"\""));
    CHECK(has_line("proc/driver/nvidia/params", "CreateImexChannel0: 0"));
    CHECK(has_line("proc/devices", "195 nvidia"));
    CHECK(has_line("proc/devices", "236 nvidia-caps"));
    CHECK_EQ(slurp(EFI), 5);
    CHECK(memcmp(text, "\6\0\0\0\1", 5) == 0);
    CHECK_STR(content("sys/kernel/security/lockdown"), "none [integrity] confidentiality\n");
    CHECK(strstr(content("sys/kernel/security/lsm"), "landlock"));
    CHECK(strstr(content("sys/fs/cgroup/cgroup.controllers"), "memory"));
    CHECK_STR(content("sys/devices/system/node/online"), "0-1\n");
    CHECK(has_line("var/lib/dpkg/status", "Package: nvidia-container-toolkit"));
    CHECK(has_line("var/lib/dpkg/status", "Version: 1.19.1-1"));
    CHECK(has_line("var/lib/dpkg/status", "Package: nvidia-fabricmanager"));
}

TEST(every_gpu_in_proc_and_dev)
{
    char path[PATH_MAX], line[128];
    struct stat st;
    for (uint32_t i = 0; i < node.n_gpus; i++) {
        (void)snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", node.gpus[i].pci);
        (void)snprintf(line, sizeof(line), "GPU UUID: \t %s", node.gpus[i].uuid);
        CHECK(has_line(path, line));
        (void)snprintf(line, sizeof(line), "Device Minor: \t %u", (unsigned)node.gpus[i].minor);
        CHECK(has_line(path, line));
        (void)snprintf(path, sizeof(path), "%s/dev/nvidia%u", folder, (unsigned)node.gpus[i].minor);
        CHECK(stat(path, &st) == 0 && S_ISREG(st.st_mode));
        CHECK_EQ(st.st_mode & 07777, 0666);
    }
    path_of(path, sizeof(path), "dev/nvidia-caps/nvidia-cap1");
    CHECK(stat(path, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0400);
    CHECK(exists("dev/nvidiactl") && exists("dev/nvidia-uvm"));
}

TEST(switches_that_have_a_driver)
{
    CHECK_STR(content("proc/driver/nvidia-nvswitch/devices/0000:f0:00.0/information"),
              "BIOS Version: 96.10.57.00.01\n");
    CHECK(exists("proc/driver/nvidia-nvswitch/devices/0000:f3:00.0/information"));
    CHECK(!exists("proc/driver/nvidia-nvswitch/devices/0000:f4:00.0"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK(make("b200x8"));
    CHECK(exists("proc/driver/nvidia-nvswitch/devices"));
    CHECK(!exists("proc/driver/nvidia-nvswitch/devices/0000:f0:00.0"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK(make("h100x8"));
}

/* 3 + 135 per GPU + 9 per instance + 1 for each compute instance, as the driver counts. */
TEST(capabilities_are_numbered_as_the_driver_does)
{
    CHECK(has_line("proc/driver/nvidia-caps/mig-minors", "config 1"));
    CHECK(has_line("proc/driver/nvidia-caps/mig-minors", "monitor 2"));
    CHECK(has_line("proc/driver/nvidia-caps/mig-minors", "gpu0/gi0/access 3"));
    CHECK(has_line("proc/driver/nvidia-caps/mig-minors", "gpu0/gi0/ci0/access 4"));
    CHECK(has_line("proc/driver/nvidia-caps/mig-minors", "gpu0/gi14/ci7/access 137"));
    CHECK(has_line("proc/driver/nvidia-caps/mig-minors", "gpu1/gi0/access 138"));
    CHECK(has_line("proc/driver/nvidia-caps/mig-minors", "gpu7/gi13/ci0/access 1066"));
    CHECK(!strstr(text, "gpu8/"));
    CHECK(has_line("proc/driver/nvidia/capabilities/mig/config", "DeviceFileMinor: 1"));
    CHECK(has_line("proc/driver/nvidia/capabilities/mig/config", "DeviceFileMode: 256"));
    CHECK(has_line("proc/driver/nvidia/capabilities/mig/monitor", "DeviceFileMode: 292"));
    CHECK(has_line("proc/driver/nvidia/capabilities/fabric-imex-mgmt", "DeviceFileMinor: 4323"));
    CHECK(has_line("proc/driver/nvidia-caps/nvlink-minors", "fabric-mgmt 0"));
}

/* The port type and the control word of access control in a bridge's configuration; -1: none. */
static int port_type(const char *path)
{
    return slurp(path) == 4096 && (uint8_t)text[0x40] == 0x10 ? (uint8_t)text[0x42] >> 4 : -1;
}

TEST(the_way_from_a_gpu_to_the_processor)
{
    static const char chain[] = "/sys/devices/pci0000:18/0000:18:01.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0";
    CHECK_STR(node.gpus[0].pci, "0000:1b:00.0");
    CHECK(leads_to("sys/bus/pci/devices/0000:1b:00.0", chain));
    CHECK(leads_to("sys/bus/pci/drivers/nvidia/0000:1b:00.0", chain));
    CHECK(leads_to("sys/bus/pci/devices/0000:1b:00.0/driver", "/sys/bus/pci/drivers/nvidia"));
    CHECK(leads_to("sys/bus/pci/devices/0000:18:01.0", "/sys/devices/pci0000:18/0000:18:01.0"));
    CHECK_STR(gpu_content(0, "vendor"), "0x10de\n");
    CHECK_STR(gpu_content(0, "device"), "0x2330\n");
    CHECK_STR(gpu_content(0, "class"), "0x030200\n");
    CHECK_STR(gpu_content(0, "numa_node"), "0\n");
    CHECK_STR(gpu_content(7, "numa_node"), "1\n");
    CHECK_STR(gpu_content(7, "local_cpulist"), "56-111,168-223\n");
    CHECK_STR(content("sys/bus/pci/devices/0000:1a:00.0/class"), "0x060400\n");
    CHECK_EQ(port_type("sys/bus/pci/devices/0000:18:01.0/config"), 4);
    CHECK_EQ((uint8_t)text[0x100], 0x0d);
    CHECK_EQ(text[0x106] & 0x1c, 0x1c);
    CHECK_EQ(port_type("sys/bus/pci/devices/0000:19:00.0/config"), 5);
    CHECK_EQ(port_type("sys/bus/pci/devices/0000:1a:00.0/config"), 6);
    CHECK_EQ(text[0x106] & 0x1c, 0x1c);
    CHECK_EQ(port_type("sys/bus/pci/devices/0000:1b:00.0/config"), 0);
    CHECK(memcmp(text, "\xde\x10\x30\x23", 4) == 0);
}

TEST(every_gpu_has_a_group_of_its_own)
{
    char path[128];
    for (uint32_t i = 0; i < node.n_gpus; i++) {
        (void)snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/iommu_group/devices/%s", node.gpus[i].pci,
                       node.gpus[i].pci);
        CHECK(leads_to(path, node.gpus[i].pci));
        (void)snprintf(path, sizeof(path), "sys/kernel/iommu_groups/%u/type", (unsigned)i + 1);
        CHECK_STR(content(path), "DMA-FQ\n");
    }
    CHECK(leads_to("sys/bus/pci/devices/0000:1b:00.0/iommu_group", "/sys/kernel/iommu_groups/1"));
    CHECK(!exists("sys/kernel/iommu_groups/1/devices/0000:1a:00.0"));
}

TEST(labels_of_the_node)
{
    static const char gfd[] = "etc/kubernetes/node-feature-discovery/features.d/gfd";
    CHECK(has_line(gfd, "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3"));
    CHECK(has_line(gfd, "nvidia.com/gpu.count=8"));
    CHECK(has_line(gfd, "nvidia.com/gpu.memory=81559"));
    CHECK(has_line(gfd, "nvidia.com/gpu.family=hopper"));
    CHECK(has_line(gfd, "nvidia.com/mig.capable=true"));
    CHECK(has_line(gfd, "nvidia.com/mig.strategy=none"));
    CHECK(has_line(gfd, "nvidia.com/cuda.driver-version.full=580.159.04"));
    CHECK(!strstr(text, "clique"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK(make("drifted"));
    CHECK(has_line(gfd, "nvidia.com/gpu.product=NVIDIA-L40S"));
    CHECK(has_line(gfd, "nvidia.com/mig.capable=false"));
    CHECK(has_line(gfd, "nvidia.com/mig.strategy=none"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK(make("mig"));
    CHECK(has_line(gfd, "nvidia.com/mig.strategy=mixed"));
    CHECK(exists("proc/driver/nvidia/capabilities/gpu3/mig"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK(make("gb200x4"));
    CHECK(strstr(content(gfd), "nvidia.com/gpu.clique=") && strstr(text, ".32766\n"));
    CHECK(leads_to("sys/bus/pci/devices/0008:01:00.0", "/pci0008:00/0008:00:00.0/0008:01:00.0"));
    CHECK_EQ(port_type("sys/bus/pci/devices/0008:00:00.0/config"), 4);
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK(make("two-domains"));
    CHECK(!strstr(content(gfd), "clique")); /* two of them: no label is right */
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
}

/* A capability's node and its text, there or both gone. */
static bool has_cap(const char *cap, const char *access)
{
    char dev[64], proc[128];
    (void)snprintf(dev, sizeof(dev), "dev/nvidia-caps/nvidia-cap%s", cap);
    (void)snprintf(proc, sizeof(proc), "proc/driver/nvidia/capabilities/gpu0/mig/%s/access", access);
    return exists(dev) && exists(proc);
}

TEST(the_files_follow_the_machine)
{
    static const char gfd[] = "etc/kubernetes/node-feature-discovery/features.d/gfd";
    struct bh_sim_gpu_view *gpus = bh_alloc(BH_SIM_GPUS_MAX, sizeof(*gpus));
    struct bh_sim_tree_state now = {.scrubs = true, .gpus = gpus};
    CHECK(make("mig"));
    for (uint32_t i = 0; i < node.n_gpus; i++) {
        gpus[i].minor = node.gpus[i].minor;
        gpus[i].mig_on = 1;
    }
    CHECK_EQ(bh_sim_tree_follow(&node, folder, &now, &err), BH_OK);
    CHECK(!has_cap("12", "gi1"));
    gpus[0].n_gis = 1;
    gpus[0].gis[0] = (struct bh_sim_gi_view){
        .id = 1, .profile_id = bh_mig_find(node.gpus[0].model, "3g.40gb")->gi_profile_id, .n_cis = 1};
    gpus[0].gis[0].cis[0].id = 2;
    now.scrubs = false;
    CHECK_EQ(bh_sim_tree_follow(&node, folder, &now, &err), BH_OK);
    CHECK(has_cap("12", "gi1") && has_cap("15", "gi1/ci2") && !exists("dev/nvidia-caps/nvidia-cap13"));
    CHECK(has_line("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12"));
    CHECK(has_line(gfd, "nvidia.com/mig-3g.40gb.count=1"));
    CHECK(has_line("proc/driver/nvidia/params", "RegistryDwords: \"RMDisableScrubOnFree=1\""));
    CHECK(!exists("proc/driver/nvidia/params.new"));
    gpus[0].n_gis = 0;
    now.scrubs = true;
    CHECK_EQ(bh_sim_tree_follow(&node, folder, &now, &err), BH_OK);
    CHECK(!exists("dev/nvidia-caps/nvidia-cap12") && !exists("dev/nvidia-caps/nvidia-cap15"));
    CHECK(!exists("proc/driver/nvidia/capabilities/gpu0/mig/gi1"));
    CHECK(exists("dev/nvidia-caps/nvidia-cap1") && exists("proc/driver/nvidia/capabilities/gpu0/mig"));
    CHECK(has_line("proc/driver/nvidia/params", "RegistryDwords: \"\"") && !strstr(content(gfd), "mig-3g"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK_EQ(bh_sim_tree_follow(&node, folder, &now, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_sim_tree_follow(&node, scratch, &now, &err), BH_REFUSED);
    free(gpus);
}

TEST(a_machine_without_its_guards)
{
    CHECK(start("a30x4"));
    node.acs = node.secure_boot = false;
    CHECK_EQ(bh_sim_tree_write(&node, folder, &err), BH_OK);
    CHECK_EQ(port_type("sys/bus/pci/devices/0000:18:01.0/config"), 4);
    CHECK_EQ(text[0x106], 0);
    CHECK(exists("sys/kernel/iommu_groups/1/devices/0000:1a:00.0")); /* one group for all above the GPU */
    CHECK_EQ(slurp(EFI), 5);
    CHECK_EQ(text[4], 0);
    CHECK_STR(content("sys/kernel/security/lockdown"), "[none] integrity confidentiality\n");
    CHECK(!exists("usr/bin/nv-fabricmanager"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    node.iommu = false;
    CHECK_EQ(bh_sim_tree_write(&node, folder, &err), BH_OK);
    CHECK(exists("sys/kernel/iommu_groups") && !exists("sys/kernel/iommu_groups/0"));
    CHECK(!exists("sys/bus/pci/devices/0000:1b:00.0/iommu_group"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
}

/* Everything below a folder, depth first: how many entries, and how many links lead nowhere. */
static void survey(const char *at, size_t *entries, size_t *broken)
{
    DIR *d = opendir(at);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char path[PATH_MAX];
        struct stat st;
        if (bh_str_eq(e->d_name, ".") || bh_str_eq(e->d_name, ".."))
            continue;
        (void)snprintf(path, sizeof(path), "%.3000s/%.255s", at, e->d_name);
        ++*entries;
        *broken += stat(path, &st) < 0;
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            survey(path, entries, broken);
    }
    if (d)
        closedir(d);
}

TEST(no_link_of_any_scene_leads_nowhere)
{
    for (size_t i = 0; bh_sim_scenes[i].name; i++) {
        size_t entries = 0, broken = 0;
        CHECK(make(bh_sim_scenes[i].name));
        survey(folder, &entries, &broken);
        CHECK(entries > 50 + 20 * node.n_gpus);
        CHECK_EQ(broken, 0);
        CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
        CHECK(access(folder, F_OK) < 0);
    }
}

TEST(a_folder_that_is_not_ours_stays)
{
    char at[PATH_MAX];
    CHECK(start("h200") && mkdir(folder, 0755) == 0);
    path_of(at, sizeof(at), "precious");
    int fd = open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_REFUSED);
    CHECK_EQ(bh_sim_tree_write(&node, folder, &err), BH_CONFLICT);
    CHECK(exists("precious") && !exists("proc"));
    CHECK(unlink(at) == 0);
    CHECK_EQ(bh_sim_tree_write(&node, folder, &err), BH_OK); /* empty: it may be there already */
    CHECK_EQ(bh_sim_tree_write(&node, folder, &err), BH_CONFLICT);
    /* a mark that is a link, or says something else, is none */
    char saved[PATH_MAX];
    (void)snprintf(saved, sizeof(saved), "%s/saved", scratch);
    path_of(at, sizeof(at), ".bulkhead-simulated");
    CHECK(rename(at, saved) == 0 && symlink(saved, at) == 0);
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_REFUSED);
    CHECK(unlink(at) == 0);
    fd = open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, "mine", 4) == 4 && close(fd) == 0);
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_REFUSED);
    CHECK(exists("proc/devices"));
    CHECK(rename(saved, at) == 0);
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_sim_tree_write(&node, "", &err), BH_NOT_FOUND);
}

TEST(removal_follows_no_link)
{
    char kept[PATH_MAX], file[PATH_MAX], link[PATH_MAX];
    CHECK(make("a30x4"));
    (void)snprintf(kept, sizeof(kept), "%s/kept", scratch);
    (void)snprintf(file, sizeof(file), "%s/kept/file", scratch);
    CHECK(mkdir(kept, 0755) == 0);
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    path_of(link, sizeof(link), "sys/elsewhere");
    CHECK(symlink("../../kept", link) == 0);
    path_of(link, sizeof(link), "sys/self");
    CHECK(symlink(".", link) == 0);
    (void)snprintf(link, sizeof(link), "%s/link", scratch);
    CHECK(symlink("sysroot", link) == 0);
    CHECK(bh_sim_tree_remove(link, &err) < 0); /* the folder itself as a link */
    CHECK(exists("proc/devices"));
    CHECK_EQ(bh_sim_tree_remove(folder, &err), BH_OK);
    CHECK(access(folder, F_OK) < 0);
    CHECK(access(file, F_OK) == 0);
    CHECK(unlink(link) == 0 && unlink(file) == 0 && rmdir(kept) == 0);
    CHECK(rmdir(scratch) == 0);
}

TEST_MAIN
