/* SPDX-License-Identifier: Apache-2.0 */
/* audit_keyfile.c - reads and writes the secret key; refuses one that somebody else could have read or put there. */
#include "store/audit_keyfile.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(struct bh_err *err, const char *path)
{
    const enum bh_code code = errno == ENOENT                                       ? BH_NOT_FOUND
                              : errno == EACCES || errno == EPERM || errno == ELOOP ? BH_DENIED
                                                                                    : BH_SYSTEM;
    return bh_fail(err, code, "the audit key '%.200s': %s", path, strerrordesc_np(errno));
}

static int look_at(int fd, const char *path, struct bh_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return failed(err, path);
    if (!S_ISREG(st.st_mode))
        return bh_fail(err, BH_DENIED, "the audit key '%.200s' is no plain file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return bh_fail(err, BH_DENIED, "the audit key '%.200s' belongs to user %u", path,
                       (unsigned)st.st_uid);
    if (st.st_mode & 077)
        return bh_fail(
            err, BH_DENIED,
            "the audit key '%.200s' has mode %04o: others may read it; chmod 600 it, and rotate the key when "
            "they may have",
            path, (unsigned)st.st_mode & 07777);
    return BH_OK;
}

int bh_audit_keyfile_load(const char *path, struct bh_audit_secret *ret, struct bh_err *err)
{
    char text[BH_KEY_TEXT_MAX + 2];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return failed(err, path);
    int rc = look_at(fd, path, err);
    if (rc == BH_OK) {
        const ssize_t n = read(fd, text, sizeof(text));
        if (n < 0)
            rc = failed(err, path);
        else
            rc = bh_audit_secret_parse(text, (size_t)n, &ret->key, &ret->secret, err);
        if (rc == BH_INVALID)
            rc = bh_wrap(err, rc, "the audit key '%.200s'", path);
    }
    explicit_bzero(text, sizeof(text));
    (void)close(fd);
    return rc;
}

/* What was renamed is there for good only when its folder is written too. */
static int sync_folder(const char *path, struct bh_err *err)
{
    char copy[PATH_MAX];
    (void)snprintf(copy, sizeof(copy), "%s", path);
    const int fd = open(dirname(copy), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    const int bad = fd < 0 || fsync(fd) < 0;
    const int rc = bad ? failed(err, path) : BH_OK;
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

int bh_audit_keyfile_move(const char *from, const char *to, struct bh_err *err)
{
    return rename(from, to) < 0 ? failed(err, to) : sync_folder(to, err);
}

int bh_audit_keyfile_save(const char *path, const struct bh_audit_secret *k, struct bh_err *err)
{
    char part[PATH_MAX], text[BH_KEY_TEXT_MAX + 1];
    if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
        return bh_fail(err, BH_TOO_LARGE, "the path of the audit key is too long");
    if (unlink(part) < 0 && errno != ENOENT)
        return failed(err, part);
    const int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return failed(err, part);
    bh_audit_secret_format(&k->key, &k->secret, text);
    const size_t n = strlen(text);
    text[n] = '\n';
    const bool bad = write(fd, text, n + 1) != (ssize_t)n + 1 || fsync(fd) < 0;
    int rc = bad ? failed(err, part) : BH_OK;
    explicit_bzero(text, sizeof(text));
    if (close(fd) < 0 && rc == BH_OK)
        rc = failed(err, part);
    if (rc == BH_OK)
        rc = bh_audit_keyfile_move(part, path, err);
    if (rc < 0)
        (void)unlink(part);
    return rc;
}
