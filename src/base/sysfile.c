/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sysfile.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 4096, LINE_FILE_MAX = 1 << 16 };

const char *bh_sysroot(void)
{
    const char *root = secure_getenv("BULKHEAD_SYSROOT");
    return root ? root : "";
}

bool bh_syspath(char buf[BH_SYSPATH_MAX], const char *path)
{
    int n = snprintf(buf, BH_SYSPATH_MAX, "%s%s", bh_sysroot(), path);
    return n >= 0 && n < BH_SYSPATH_MAX;
}

bool bh_sysfile_exists(const char *path)
{
    char at[BH_SYSPATH_MAX];
    return bh_syspath(at, path) && access(at, F_OK) == 0;
}

static int fail_errno(const char *path, int error, struct bh_err *err)
{
    enum bh_code code = error == ENOENT || error == ENOTDIR ? BH_NOT_FOUND
                        : error == EACCES || error == EPERM ? BH_DENIED
                                                            : BH_SYSTEM;
    return bh_fail(err, code, "%.300s: %s", path, strerror(error));
}

/* /proc says 0 for a size, so it is read until it ends. */
static int read_all(int fd, const char *path, size_t max, char **ret, size_t *ret_n, struct bh_err *err)
{
    BH_AUTOFREE char *text = NULL;
    size_t n = 0, cap = 0;
    for (;;) {
        if (n + CHUNK + 1 > cap)
            text = bh_grow_(text, &cap, n + CHUNK + 1, 1);
        ssize_t got = read(fd, text + n, CHUNK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(path, errno, err);
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > max)
            return bh_fail(err, BH_TOO_LARGE, "%.300s: more than %zu bytes", path, max);
    }
    text[n] = '\0';
    *ret = bh_steal(&text);
    if (ret_n)
        *ret_n = n;
    return BH_OK;
}

int bh_sysfile_read(const char *path, size_t max, char **ret, size_t *ret_n, struct bh_err *err)
{
    char at[BH_SYSPATH_MAX];
    struct stat st;
    if (!bh_syspath(at, path))
        return bh_fail(err, BH_TOO_LARGE, "%.300s: the path is too long", path);
    int fd = open(at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail_errno(path, errno, err);
    int rc;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        rc = read_all(fd, path, max, ret, ret_n, err);
    else
        rc = bh_fail(err, BH_SYSTEM, "%.300s: not a file", path);
    close(fd);
    return rc;
}

int bh_sysfile_line(const char *path, char *buf, size_t size, struct bh_err *err)
{
    BH_AUTOFREE char *text = NULL;
    int rc = bh_sysfile_read(path, LINE_FILE_MAX, &text, NULL, err);
    if (rc < 0)
        return rc;
    const char *from = text;
    while (bh_is_space(*from) && *from != '\n')
        from++;
    size_t n = strcspn(from, "\n");
    while (n && bh_is_space(from[n - 1]))
        n--;
    n = n < size ? n : size - 1;
    memcpy(buf, from, n);
    buf[n] = '\0';
    return BH_OK;
}
