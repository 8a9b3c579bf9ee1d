/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_make.c - a bundle's folder: made, made anew, and taken away with nothing else. */
#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "host/bundle.h"
#include "host/bundle_files.h"
#include "host/bundle_host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char config_name[] = "config.json";
/* What every root must have to mount on. */
static const struct {
    const char *name;
    mode_t mode; /* runc gives it to the file system that it mounts there */
} places[] = {{"dev", 0755}, {"home", 0755}, {"proc", 0755}, {"run", 0755}, {"sys", 0755}, {"tmp", 01777}};

const char *const bh_host_folders[BH_HOST_FOLDERS] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
};

bool bh_host_folder_is_mounted(size_t i)
{
    struct stat st;
    return lstat(bh_host_folders[i], &st) == 0 && S_ISDIR(st.st_mode);
}

bool bh_host_counts_swap(void)
{
    return bh_sysfile_exists("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes") ||
           bh_sysfile_exists("/sys/fs/cgroup/cgroup.controllers");
}

/* A given root must have them: as the tenant's users, the runtime cannot make any in it. */
static int check_root(const char *rootfs, struct bh_err *err)
{
    int fd;
    int rc = bh_folder_open(rootfs, 0, &fd, err);
    if (rc < 0)
        return bh_wrap(err, rc, "the container's root");
    for (size_t i = 0; rc == BH_OK && i < BH_COUNT_OF(places); i++) {
        struct stat st;
        if (fstatat(fd, places[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
            rc =
                bh_fail(err, BH_NOT_FOUND, "the container's root %.200s has no folder /%s: make an empty one",
                        rootfs, places[i].name);
    }
    close(fd);
    return rc;
}

static int make_place(int root, const char *name, mode_t mode, struct bh_err *err)
{
    if (mkdirat(root, name, mode) < 0 && errno != EEXIST)
        return bh_file_fail(name, errno, err);
    return fchmodat(root, name, mode, 0) < 0 ? bh_file_fail(name, errno, err) : BH_OK;
}

/* As on the machine: a link, a folder, or not there. */
static int make_like(int root, size_t i, struct bh_err *err)
{
    char to[PATH_MAX];
    const char *name = bh_host_folders[i] + 1;
    if (bh_host_folder_is_mounted(i))
        return make_place(root, name, 0755, err);
    const ssize_t n = readlink(bh_host_folders[i], to, sizeof(to) - 1);
    if (n < 0)
        return BH_OK;
    to[n] = '\0';
    return symlinkat(to, root, name) < 0 && errno != EEXIST ? bh_file_fail(name, errno, err) : BH_OK;
}

static int make_root(int bundle, struct bh_err *err)
{
    int rc = make_place(bundle, BH_HOST_ROOTFS, 0755, err);
    if (rc < 0)
        return rc;
    const int root = openat(bundle, BH_HOST_ROOTFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (root < 0)
        return bh_file_fail(BH_HOST_ROOTFS, errno, err);
    for (size_t i = 0; rc == BH_OK && i < BH_COUNT_OF(places); i++)
        rc = make_place(root, places[i].name, places[i].mode, err);
    for (size_t i = 0; rc == BH_OK && i < BH_HOST_FOLDERS; i++)
        rc = make_like(root, i, err);
    close(root);
    return rc;
}

/* What the runtime would only fail on later, in its own words. */
static int check_there(const struct bh_bundle *b, struct bh_err *err)
{
    int fd;
    if (b->net && access(b->hook, X_OK) < 0)
        return bh_file_fail(b->hook, errno, err);
    if (!b->home)
        return b->rootfs ? check_root(b->rootfs, err) : BH_OK;
    int rc = bh_folder_open(b->home, 0, &fd, err);
    if (rc < 0)
        return bh_wrap(err, rc, "the home of %s", b->tenant);
    close(fd);
    return b->rootfs ? check_root(b->rootfs, err) : BH_OK;
}

int bh_bundle_make(const struct bh_bundle *b, const char *folder, struct bh_err *err)
{
    struct bh_buf text;
    int fd;
    bh_buf_init(&text, BH_BUNDLE_MAX);
    int rc = bh_bundle_write(b, &text, err);
    rc = rc < 0 ? rc : check_there(b, err);
    rc = rc < 0 ? rc : bh_folder_open(folder, 0711, &fd, err);
    if (rc == BH_OK) {
        rc = b->rootfs ? BH_OK : make_root(fd, err);
        /* It may carry a tenant's secrets in its environment: for the runtime alone. */
        rc = rc < 0 ? rc : bh_file_put(fd, config_name, text.at, text.n, 0600, err);
        close(fd);
        rc = rc < 0 ? bh_wrap(err, rc, "%.200s", folder) : rc;
    }
    bh_buf_fini(&text);
    return rc;
}

/* ---- away ---- */

static int away(int at, const char *name, struct bh_err *err)
{
    if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return BH_OK;
    if (errno == ENOTDIR && unlinkat(at, name, 0) == 0)
        return BH_OK;
    return bh_file_fail(name, errno, err);
}

static int remove_root(int bundle, struct bh_err *err)
{
    int rc = BH_OK;
    const int root = openat(bundle, BH_HOST_ROOTFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (root < 0)
        return errno == ENOENT ? BH_OK : bh_file_fail(BH_HOST_ROOTFS, errno, err);
    for (size_t i = 0; rc == BH_OK && i < BH_COUNT_OF(places); i++)
        rc = away(root, places[i].name, err);
    for (size_t i = 0; rc == BH_OK && i < BH_HOST_FOLDERS; i++)
        rc = away(root, bh_host_folders[i] + 1, err);
    close(root);
    return rc < 0 ? rc : away(bundle, BH_HOST_ROOTFS, err);
}

int bh_bundle_remove(const char *folder, struct bh_err *err)
{
    struct bh_err own = {0};
    int fd;
    int rc = bh_folder_open(folder, 0, &fd, &own);
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (rc == BH_OK) {
        rc = remove_root(fd, &own);
        rc = rc < 0 ? rc : away(fd, config_name, &own);
        close(fd);
        if (rc == BH_OK && rmdir(folder) < 0)
            rc = bh_file_fail("the folder", errno, &own);
    }
    return rc < 0 ? bh_fail(err, own.code, "%.200s: %s", folder, own.msg) : BH_OK;
}

/* ---- disks ---- */

/* `8:1` */
