/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest_memo.c - that the self-test held, for as long as nothing changed: this boot, this driver, this build.
 *
 * The file says that a wall stands, so it counts only where nobody else can have written it: a folder and a file of our
 * own that only we can write. Whatever is odd about it is no memory at all, and the test runs again.
 */
#include "warden/selftest.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 256, FOLDER_MODE = 0755 };
static const char name[] = "selftest";

/* What must stand there, with its newline; false: this boot cannot be told from another. */
static bool line_of(const struct bh_driver *driver, const char *version, char line[LINE_MAX_BYTES])
{
    char boot[64] = {0};
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, boot, sizeof(boot) - 1) : -1;
    if (fd >= 0)
        close(fd);
    boot[strcspn(boot, "\n")] = '\0';
    const int len = snprintf(line, LINE_MAX_BYTES, "ok boot %s driver %s %s build %s\n", boot, driver->name,
                             version, BH_VERSION);
    return n > 0 && len > 0 && len < LINE_MAX_BYTES;
}

static bool is_ours(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* -1: there is none that can be trusted. */
static int open_folder(const struct bh_driver *driver, bool make)
{
    const char *folder = secure_getenv("BULKHEAD_RUN_DIR");
    if (!folder || !*folder)
        folder = driver == &bh_driver_nvidia ? "/run/bulkhead" : NULL;
    const bool made = folder && make && mkdir(folder, S_IRWXU) == 0;
    if (!folder || (make && !made && errno != EEXIST))
        return -1;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* Others pass through it: sockets of ours are there. */
    if (fd >= 0 && is_ours(fd, S_IFDIR) && (!made || fchmod(fd, FOLDER_MODE) == 0))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool bh_selftest_remembered(const struct bh_driver *driver, const char *version)
{
    char want[LINE_MAX_BYTES], have[LINE_MAX_BYTES] = {0};
    const int folder = line_of(driver, version, want) ? open_folder(driver, false) : -1;
    const int fd = folder >= 0 ? openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    const bool good =
        fd >= 0 && is_ours(fd, S_IFREG) && read(fd, have, sizeof(have) - 1) > 0 && strcmp(have, want) == 0;
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return good;
}

/* Under another name first: what is read is whole. */
void bh_selftest_remember(const struct bh_driver *driver, const char *version)
{
    char line[LINE_MAX_BYTES], other[64];
    const int folder = line_of(driver, version, line) ? open_folder(driver, true) : -1;
    if (folder < 0)
        return;
    (void)snprintf(other, sizeof(other), "%s.%ld", name, (long)getpid());
    const int fd =
        openat(folder, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    const ssize_t n = (ssize_t)strlen(line);
    if (fd >= 0 && (write(fd, line, (size_t)n) != n || renameat(folder, other, folder, name) < 0))
        (void)unlinkat(folder, other, 0);
    if (fd >= 0)
        close(fd);
    close(folder);
}
