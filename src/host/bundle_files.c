/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int bh_file_fail(const char *path, int error, struct bh_err *err)
{
    const enum bh_code code = error == ENOENT || error == ENOTDIR                   ? BH_NOT_FOUND
                              : error == EACCES || error == EPERM || error == EROFS ? BH_DENIED
                                                                                    : BH_SYSTEM;
    return bh_fail(err, code, "%.300s: %s", path, strerror(error));
}

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t did = write(fd, text, n);
        if (did < 0 && errno == EINTR)
            continue;
        if (did < 0)
            return -1;
        text += did;
        n -= (size_t)did;
    }
    return 0;
}

int bh_file_put(int at, const char *name, const char *text, size_t n, mode_t mode, struct bh_err *err)
{
    char fresh[NAME_MAX + 1];
    if (strchr(name, '/') || snprintf(fresh, sizeof(fresh), ".%s.new", name) >= (int)sizeof(fresh))
        return bh_fail(err, BH_INVALID, "'%.200s' is no name for a file", name);
    /* One that a crash left behind; whoever may write here is us, so nothing else can be meant by it. */
    (void)unlinkat(at, fresh, 0);
    const int fd = openat(at, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return bh_file_fail(name, errno, err);
    int error = write_all(fd, text, n) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 ? errno : 0;
    if (close(fd) < 0 && !error)
        error = errno;
    if (!error && (renameat(at, fresh, at, name) < 0 || fsync(at) < 0))
        error = errno;
    if (!error)
        return BH_OK;
    (void)unlinkat(at, fresh, 0);
    return bh_file_fail(name, error, err);
}

int bh_folder_open(const char *path, mode_t mode, int *ret_fd, struct bh_err *err)
{
    const int made = mode ? mkdir(path, mode) : -1;
    if (mode && made < 0 && errno != EEXIST)
        return bh_file_fail(path, errno, err);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return bh_file_fail(path, errno, err);
    if (made == 0 && fchmod(fd, mode) < 0) { /* whatever the umask is: the tenant's users must get through */
        const int error = errno;
        close(fd);
        return bh_file_fail(path, error, err);
    }
    *ret_fd = fd;
    return BH_OK;
}
