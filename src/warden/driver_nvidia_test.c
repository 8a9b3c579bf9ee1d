/* SPDX-License-Identifier: Apache-2.0 */
/* What of the real driver can be tested without it: the files around it, in a folder that stands for a machine. */
#include "warden/driver.h"

#include "base/scratch.h"
#include "base/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char root[128];

static void put(const char *path, const char *text)
{
    if (!bh_scratch_put(root, path, text))
        abort();
}

TEST(the_version_decides)
{
    struct bh_err err;
    char version[32];
    CHECK(bh_scratch_root(root, sizeof(root), "driver"));
    CHECK_EQ(bh_driver_nvidia.check(version, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "no NVIDIA driver is loaded"));
    put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@y)\nGCC version: 12.2.0\n");
    CHECK_EQ(bh_driver_nvidia.check(version, &err), BH_OK);
    CHECK_STR(version, "580.159.04");
    put("/sys/module/nvidia/version", "999.1\n");
    CHECK_EQ(bh_driver_nvidia.check(version, &err), BH_REFUSED);
    CHECK_STR(version, "999.1");
    char path[sizeof(root) + 64];
    CHECK(bh_scratch_path(path, sizeof(path), root, "sys/module/nvidia/version") && unlink(path) == 0);
    put("/proc/driver/nvidia/version", "nothing here 12 or x86_64\n");
    CHECK_EQ(bh_driver_nvidia.check(version, &err), BH_NOT_FOUND);
    CHECK(unsetenv("BULKHEAD_SYSROOT") == 0 && bh_scratch_remove(root));
}

/* A node that nobody serves can be made and named, but only by root, and on a file system that takes it. */
static int node(unsigned at, unsigned number)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/node", root);
    (void)unlink(path);
    if (mknod(path, S_IFCHR | 0600, makedev(at, number)) < 0)
        return -1;
    int fd = open(path, O_PATH | O_CLOEXEC);
    (void)unlink(path);
    return fd;
}

TEST(a_file_is_known_by_its_number)
{
    static const struct {
        unsigned major, minor;
        uint8_t kind;
    } files[] = {{195, 255, BH_FILE_CTL}, {195, 254, BH_FILE_MODESET}, {195, 3, BH_FILE_GPU},
                 {509, 0, BH_FILE_UVM},   {509, 1, BH_FILE_UVM_TOOLS}, {510, 2, BH_FILE_CAP},
                 {1, 3, BH_FILE_OTHER}};
    CHECK(bh_scratch_root(root, sizeof(root), "driver"));
    put("/proc/devices",
        "Character devices:\n  1 mem\n195 nvidia\n509 nvidia-uvm\n510 nvidia-caps\n511 nvidia-uvm-x\n");
    CHECK_EQ(bh_driver_nvidia.identify(-1).kind, BH_FILE_OTHER);
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(bh_driver_nvidia.identify(file).kind, BH_FILE_OTHER);
    close(file);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = node(files[i].major, files[i].minor);
        if (fd < 0)
            break;
        const struct bh_driver_file f = bh_driver_nvidia.identify(fd);
        close(fd);
        CHECK_EQ(f.kind, files[i].kind);
        CHECK(f.kind != BH_FILE_GPU || f.gpu == 3);
    }
    CHECK(unsetenv("BULKHEAD_SYSROOT") == 0 && bh_scratch_remove(root));
}

TEST_MAIN
