/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/bundle.h"

#include "base/mem.h"
#include "host/bundle_files.h"
#include "host/bundle_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_fd(int fd, const char *path, size_t max, char **ret, size_t *ret_n, mode_t *ret_mode,
                   struct bh_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return bh_file_fail(path, errno, err);
    if (!S_ISREG(st.st_mode))
        return bh_fail(err, BH_INVALID, "%.300s is not a file", path);
    if (st.st_size < 0 || (size_t)st.st_size > max)
        return bh_fail(err, BH_TOO_LARGE, "%.300s is longer than %zu bytes", path, max);
    BH_AUTOFREE char *text = bh_alloc((size_t)st.st_size + 1, 1);
    size_t n = 0;
    while (n < (size_t)st.st_size) {
        const ssize_t got = read(fd, text + n, (size_t)st.st_size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bh_file_fail(path, errno, err);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret = bh_steal(&text);
    *ret_n = n;
    if (ret_mode)
        *ret_mode = st.st_mode & 0777;
    return BH_OK;
}

static int read_file(const char *path, size_t max, char **ret, size_t *ret_n, mode_t *ret_mode,
                     struct bh_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return bh_file_fail(path, errno, err);
    const int rc = read_fd(fd, path, max, ret, ret_n, ret_mode, err);
    close(fd);
    return rc;
}

int bh_oci_read_file(const char *path, size_t max, char **ret, size_t *ret_n, struct bh_err *err)
{
    return read_file(path, max, ret, ret_n, NULL, err);
}

int bh_oci_read_config(const char *bundle, char **ret, size_t *ret_n, mode_t *ret_mode, struct bh_err *err)
{
    char path[BH_SPEC_TEXT_MAX + 16];
    if (snprintf(path, sizeof(path), "%s/config.json", bundle) >= (int)sizeof(path))
        return bh_fail(err, BH_TOO_LARGE, "the path of the bundle is too long");
    return read_file(path, BH_SPEC_MAX, ret, ret_n, ret_mode, err);
}
