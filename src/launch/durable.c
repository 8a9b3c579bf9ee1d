/* SPDX-License-Identifier: Apache-2.0 */
/* durable.c - write, sync, rename, sync. */
#include "launch/durable.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0600 };

static int fail_errno(struct bh_err *err, int error, const char *name)
{
    return bh_fail(err,
                   error == ENOENT   ? BH_NOT_FOUND
                   : error == EEXIST ? BH_CONFLICT
                                     : BH_SYSTEM,
                   "'%.200s': %s", name, strerrordesc_np(error));
}

static bool write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        text += done;
        n -= (size_t)done;
    }
    return true;
}

/* In its place; `beside` is gone after that. A link takes no name that somebody has, on every file system. */
static bool put(int folder, const char *beside, const char *name, bool is_new)
{
    if (!is_new)
        return renameat(folder, beside, folder, name) == 0;
    return linkat(folder, beside, folder, name, 0) == 0 && unlinkat(folder, beside, 0) == 0;
}

enum how { PLACE, WRITE, CREATE };

static int write_file(int folder, const char *name, const char *text, size_t n, enum how how,
                      struct bh_err *err)
{
    char beside[NAME_MAX + 1];
    (void)snprintf(beside, sizeof(beside), "%.200s.new", name);
    const int fd = openat(folder, beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return fail_errno(err, errno, name);
    const bool written = write_all(fd, text, n) && (how == PLACE || fsync(fd) == 0);
    int error = written ? 0 : errno;
    close(fd);
    if (!error && (!put(folder, beside, name, how == CREATE) || (how != PLACE && fsync(folder) < 0)))
        error = errno;
    if (error)
        (void)unlinkat(folder, beside, 0);
    return error ? fail_errno(err, error, name) : BH_OK;
}

int bh_durable_place(int folder, const char *name, const char *text, size_t n, struct bh_err *err)
{
    return write_file(folder, name, text, n, PLACE, err);
}

int bh_durable_write(int folder, const char *name, const char *text, size_t n, struct bh_err *err)
{
    return write_file(folder, name, text, n, WRITE, err);
}

int bh_durable_create(int folder, const char *name, const char *text, size_t n, struct bh_err *err)
{
    return write_file(folder, name, text, n, CREATE, err);
}

static int read_all(int fd, const char *name, size_t max, char **ret, size_t *ret_n, struct bh_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fail_errno(err, errno, name);
    if (!S_ISREG(st.st_mode))
        return bh_fail(err, BH_INVALID, "'%.200s' is no plain file", name);
    if (st.st_size < 0 || (size_t)st.st_size > max)
        return bh_fail(err, BH_TOO_LARGE, "'%.200s' is longer than %zu bytes", name, max);
    BH_AUTOFREE char *text = bh_alloc(1, (size_t)st.st_size + 1);
    size_t n = 0;
    while (n < (size_t)st.st_size) {
        const ssize_t got = read(fd, text + n, (size_t)st.st_size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(err, errno, name);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret = bh_steal(&text);
    *ret_n = n;
    return BH_OK;
}

int bh_durable_read(int folder, const char *name, size_t max, char **ret, size_t *ret_n, struct bh_err *err)
{
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, errno, name);
    const int rc = read_all(fd, name, max, ret, ret_n, err);
    close(fd);
    return rc;
}
