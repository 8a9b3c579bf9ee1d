/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle_gear.h"

#include "base/scratch.h"
#include "base/test.h"

#include <sys/sysmacros.h>

TEST(paths)
{
    char long_path[BH_GEAR_PATH_MAX + 8];
    CHECK(bh_gear_path_valid("/a") && bh_gear_path_valid("/a/b.c/..d/e..") && bh_gear_path_valid("/a b"));
    const char *const bad[] = {"",       "/",       "a",   "./a",  "/a/",   "//a",   "/a//b",
                               "/a/./b", "/a/../b", "/..", "/a/.", "/a\nb", "/\x7f", "/\xff"};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        CHECK(!bh_gear_path_valid(bad[i]));
    memset(long_path, 'x', sizeof(long_path));
    long_path[0] = '/';
    long_path[BH_GEAR_PATH_MAX] = '\0';
    CHECK(!bh_gear_path_valid(long_path));
    long_path[BH_GEAR_PATH_MAX - 1] = '\0';
    CHECK(bh_gear_path_valid(long_path));
}

TEST(nodes)
{
    struct bh_gear g = {0};
    struct bh_err err = {0};
    CHECK_EQ(bh_gear_node(&g, "/dev/null", "/dev/nvidia0", false, &err), BH_OK);
    CHECK_EQ(bh_gear_node(&g, "/dev/null", "/dev/nvidia0", false, &err), BH_OK); /* the same again */
    CHECK_EQ(g.nodes.n, 1);
    CHECK(g.nodes.at[0].major == 1 && g.nodes.at[0].minor == 3);
    CHECK_EQ(bh_gear_node(&g, "/dev/zero", "/dev/nvidia0", false, &err), BH_CONFLICT);
    CHECK_EQ(bh_gear_node(&g, "/dev/null", "/dev/nvidia0", true, &err), BH_CONFLICT);
    CHECK_EQ(bh_gear_node(&g, "/dev/null", NULL, true, &err), BH_OK);
    CHECK_STR(g.nodes.at[1].inside, "/dev/null");
    CHECK_EQ(bh_gear_node(&g, "/dev/null", "/etc/x", true, &err), BH_INVALID);
    CHECK_EQ(bh_gear_node(&g, "/dev/null", "/dev/../x", true, &err), BH_INVALID);
    CHECK_EQ(bh_gear_node(&g, "/etc", "/dev/x", true, &err), BH_INVALID);
    CHECK_EQ(bh_gear_node(&g, "/dev/no-such-device", NULL, true, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "/dev/no-such-device"));
    bh_gear_fini(&g);
}

TEST(variables)
{
    struct bh_gear g = {0};
    struct bh_err err = {0};
    char name[32];
    CHECK_EQ(bh_gear_env(&g, "A", "1=2", &err), BH_OK);
    CHECK_EQ(bh_gear_env(&g, "A", "1=2", &err), BH_OK);
    CHECK_EQ(bh_gear_env(&g, "A", "3", &err), BH_CONFLICT);
    CHECK_EQ(bh_gear_env(&g, "AB", "", &err), BH_OK);
    CHECK_STR(g.env.at[0], "A=1=2");
    CHECK_EQ(bh_gear_env(&g, "", "x", &err), BH_INVALID);
    CHECK_EQ(bh_gear_env(&g, "A=B", "x", &err), BH_INVALID);
    CHECK_EQ(bh_gear_env(&g, "B", "\xc3", &err), BH_INVALID);
    char *big = bh_alloc(BH_GEAR_PATH_MAX * 32 + 1, 1);
    memset(big, 'x', BH_GEAR_PATH_MAX * 32);
    CHECK_EQ(bh_gear_env(&g, "B", big, &err), BH_TOO_LARGE);
    free(big);
    int rc = BH_OK;
    for (unsigned i = 0; rc == BH_OK && i <= BH_GEAR_MAX; i++) {
        (void)snprintf(name, sizeof(name), "V%u", i);
        rc = bh_gear_env(&g, name, "", &err);
    }
    CHECK_EQ(rc, BH_TOO_LARGE);
    CHECK_EQ(g.env.n, BH_GEAR_MAX);
    bh_gear_fini(&g);
}

TEST(mounts)
{
    struct bh_gear g = {0};
    struct bh_err err = {0};
    CHECK_EQ(bh_gear_mount(&g, "/etc", "/a", false, &err), BH_OK);
    CHECK_EQ(bh_gear_mount(&g, "/etc", "/a", false, &err), BH_OK);
    CHECK_EQ(bh_gear_mount(&g, "/etc", "/a", true, &err), BH_CONFLICT);
    CHECK_EQ(bh_gear_mount(&g, "/usr", "/a", false, &err), BH_CONFLICT);
    CHECK_EQ(bh_gear_mount(&g, "/dev/null", "/b", false, &err),
             BH_INVALID); /* a device, past the list of devices */
    CHECK_EQ(bh_gear_mount(&g, "/no-such-folder", "/b", false, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_gear_mount(&g, "etc", "/b", false, &err), BH_INVALID);
    CHECK_EQ(g.mounts.n, 1);
    bh_gear_fini(&g);
}

TEST(a_socket_need_not_be_there_yet)
{
    struct bh_gear g = {0};
    struct bh_err err = {0};
    CHECK_EQ(bh_gear_socket(&g, "/no-such-folder/s", "/a", &err), BH_OK);
    CHECK_EQ(bh_gear_socket(&g, "/no-such-folder/s", "/a", &err), BH_OK);
    CHECK_EQ(bh_gear_socket(&g, "/no-such-folder/t", "/a", &err), BH_CONFLICT);
    CHECK_EQ(bh_gear_mount(&g, "/etc", "/a", false, &err), BH_CONFLICT);
    CHECK_EQ(bh_gear_socket(&g, "s", "/b", &err), BH_INVALID);
    CHECK_EQ(bh_gear_socket(&g, "/s", "/b/../c", &err), BH_INVALID);
    CHECK_EQ(g.mounts.n, 1);
    CHECK(g.mounts.at[0].is_socket && !g.mounts.at[0].is_writable);
    bh_gear_fini(&g);
}

TEST(management_is_no_tenants)
{
    struct bh_gear g = {0};
    struct bh_err err = {0};
    const uint32_t never[] = {0, 1, 2, 4323};
    for (size_t i = 0; i < BH_COUNT_OF(never); i++)
        CHECK_EQ(bh_gear_cap(&g, never[i], &err), BH_DENIED);
    CHECK_EQ(g.nodes.n, 0);
    bh_gear_fini(&g);
}

static const char *mount_of(const struct bh_gear *g, const char *inside)
{
    for (size_t i = 0; i < g->mounts.n; i++)
        if (strcmp(g->mounts.at[i].inside, inside) == 0)
            return strrchr(g->mounts.at[i].host, '/') + 1;
    return NULL;
}

TEST(a_card_and_its_libraries)
{
    char root[BH_SCRATCH_PATH], at[BH_SCRATCH_PATH + 64];
    struct bh_gear g = {0};
    struct bh_err err = {0};
    CHECK(bh_scratch_root(root, sizeof(root), "bundle"));
    CHECK(bh_scratch_put(root, "usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04", "new"));
    CHECK(bh_scratch_put(root, "usr/lib/x86_64-linux-gnu/libcuda.so.570.1", "old"));
    CHECK(bh_scratch_put(root, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04", "new"));
    CHECK(bh_scratch_put(root, "usr/lib/x86_64-linux-gnu/libGLX_nvidia.so.580.159.04", "display"));
    (void)snprintf(at, sizeof(at), "%s/usr/lib/x86_64-linux-gnu/libcuda.so.1", root);
    CHECK(symlink("libcuda.so.580.159.04", at) == 0);
    (void)snprintf(at, sizeof(at), "%s/usr/lib/x86_64-linux-gnu/libnvidia-nvvm.so.4", root);
    CHECK(symlink("libcuda.so.570.1", at) == 0); /* of another driver: not mixed in */
    CHECK_EQ(bh_gear_driver(&g, "580.159.04", &err), BH_OK);
    CHECK_STR(mount_of(&g, BH_GEAR_LIBRARIES "/libcuda.so.1"), "libcuda.so.580.159.04");
    CHECK_STR(mount_of(&g, BH_GEAR_LIBRARIES "/libcuda.so.580.159.04"), "libcuda.so.580.159.04");
    CHECK_STR(mount_of(&g, BH_GEAR_LIBRARIES "/libnvidia-ml.so.580.159.04"), "libnvidia-ml.so.580.159.04");
    CHECK_EQ(g.mounts.n, 3);
    CHECK_STR(g.env.at[0], "LD_LIBRARY_PATH=" BH_GEAR_LIBRARIES);
    CHECK_EQ(bh_gear_driver(&g, "999.1", &err), BH_NOT_FOUND);
    CHECK_EQ(bh_gear_driver(&g, "", &err), BH_INVALID);
    CHECK_EQ(bh_gear_driver(&g, "5*", &err), BH_INVALID);
    CHECK_EQ(bh_gear_gpu(&g, 0, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "/dev/nvidia0"));
    bh_gear_fini(&g);
    CHECK(unsetenv("BULKHEAD_SYSROOT") == 0);
    bh_scratch_remove(root);
}

TEST(nodes_of_a_slice)
{
    char root[BH_SCRATCH_PATH], at[BH_SCRATCH_PATH + 64];
    const char *const names[] = {"dev/nvidia3", "dev/nvidiactl", "dev/nvidia-uvm",
                                 "dev/nvidia-caps/nvidia-cap12"};
    struct bh_gear g = {0};
    struct bh_err err = {0};
    CHECK(bh_scratch_make(root, sizeof(root), "bundle") && bh_scratch_put(root, "dev/nvidia-caps/x", ""));
    bool made = true;
    for (unsigned i = 0; i < BH_COUNT_OF(names); i++) {
        (void)snprintf(at, sizeof(at), "%s/%s", root, names[i]);
        made = made && mknod(at, S_IFCHR | 0666, makedev(4, 40 + i)) == 0;
    }
    if (!made)
        printf("# no device node can be made here (not root)\n");
    else {
        CHECK(setenv("BULKHEAD_SYSROOT", root, 1) == 0);
        CHECK_EQ(bh_gear_gpu(&g, 3, &err), BH_OK);
        CHECK_EQ(bh_gear_cap(&g, 12, &err), BH_OK);
        CHECK_EQ(bh_gear_gpu(&g, 3, &err), BH_OK);
        CHECK_EQ(g.nodes.n, 4);
        CHECK_STR(g.nodes.at[0].inside, "/dev/nvidia3");
        CHECK(!g.nodes.at[0].is_read_only && g.nodes.at[0].minor == 40);
        CHECK_STR(g.nodes.at[3].inside, "/dev/nvidia-caps/nvidia-cap12");
        CHECK(g.nodes.at[3].is_read_only);
        CHECK_EQ(bh_gear_cap(&g, 13, &err), BH_NOT_FOUND);
        CHECK(unsetenv("BULKHEAD_SYSROOT") == 0);
    }
    CHECK_EQ(g.nodes.n, made ? 4 : 0);
    bh_gear_fini(&g);
    bh_scratch_remove(root);
}

TEST(a_simulated_node)
{
    char at[BH_SCRATCH_PATH];
    struct bh_gear g = {0};
    struct bh_err err = {0};
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    CHECK_EQ(bh_gear_simulated(&g, at, &err), BH_NOT_FOUND);
    CHECK(bh_scratch_put(at, "lib/libcuda.so.1", "x") && bh_scratch_put(at, "lib/libnvidia-ml.so.1", "x"));
    CHECK_EQ(bh_gear_simulated(&g, at, &err), BH_OK);
    CHECK_STR(mount_of(&g, BH_GEAR_LIBRARIES "/libcuda.so.1"), "libcuda.so.1");
    CHECK_EQ(g.mounts.n, 3);
    CHECK_STR(g.env.at[0], "BULKHEAD_SIM=" BH_GEAR_INSIDE "/sim");
    bh_gear_fini(&g);
    bh_scratch_remove(at);
}

TEST_MAIN
