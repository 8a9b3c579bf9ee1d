/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle.h"

#include "base/scratch.h"
#include "base/sysfile.h"
#include "base/test.h"
#include "host/bundle_host.h"

#include <sys/sysmacros.h>

static struct bh_err err;
static const char *const argv[] = {"true"};
static char at[BH_SCRATCH_PATH], folder[BH_SCRATCH_PATH + 16];

static struct bh_bundle plain(void)
{
    return (struct bh_bundle){.lease = 17, .tenant = "acme", .argv = argv, .n_argv = 1, .first_id = 200000};
}

static bool exists(const char *name)
{
    struct stat st;
    char path[BH_SCRATCH_PATH * 2];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return lstat(path, &st) == 0;
}

TEST(made_and_removed)
{
    const struct bh_bundle b = plain();
    struct stat st;
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(folder, sizeof(folder), "%s/bundle", at);
    CHECK_EQ(bh_bundle_remove(folder, &err), BH_OK); /* none there */
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(bh_bundle_make(&b, folder, &err), BH_OK);
        CHECK(exists("config.json") && exists("rootfs/usr") && exists("rootfs/proc") && exists("rootfs/tmp"));
    }
    CHECK(stat(folder, &st) == 0 && (st.st_mode & 0777) == 0711);
    CHECK_EQ(bh_bundle_remove(folder, &err), BH_OK);
    CHECK(!exists(""));
    bh_scratch_remove(at);
}

TEST(what_is_not_ours_stays)
{
    const struct bh_bundle b = plain();
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(folder, sizeof(folder), "%s/bundle", at);
    CHECK_EQ(bh_bundle_make(&b, folder, &err), BH_OK);
    CHECK(bh_scratch_put(folder, "rootfs/tmp/left", "x"));
    CHECK(bh_bundle_remove(folder, &err) < 0);
    CHECK(exists("rootfs/tmp/left") && strstr(err.msg, folder));
    bh_scratch_remove(at);
}

TEST(what_must_be_there)
{
    struct bh_bundle b = plain();
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(folder, sizeof(folder), "%s/bundle", at);
    b.rootfs = "/no-such-root";
    CHECK_EQ(bh_bundle_make(&b, folder, &err), BH_NOT_FOUND);
    b.rootfs = at;
    CHECK_EQ(bh_bundle_make(&b, folder, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "/dev"));
    b = plain();
    b.home = "/no-such-home";
    CHECK_EQ(bh_bundle_make(&b, folder, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "acme"));
    const struct bh_net net = {.lease = 17, .tenant = "acme"};
    b = plain();
    b.net = &net;
    b.hook = "/no-such-hook";
    CHECK_EQ(bh_bundle_make(&b, folder, &err), BH_NOT_FOUND);
    CHECK(!exists(""));
    b = plain();
    CHECK_EQ(bh_bundle_make(&b, "/no-such-folder/b", &err), BH_NOT_FOUND);
    bh_scratch_remove(at);
}

TEST(who_counts_swap)
{
    CHECK(bh_scratch_root(at, sizeof(at), "bundle"));
    CHECK(!bh_host_counts_swap());
    CHECK(bh_scratch_put(at, "sys/fs/cgroup/cgroup.controllers", "memory\n"));
    CHECK(bh_host_counts_swap());
    CHECK(unsetenv("BULKHEAD_SYSROOT") == 0);
    bh_scratch_remove(at);
}

TEST_MAIN
