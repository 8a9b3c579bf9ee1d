/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_file.c - small files below a hierarchy's root, and the names of groups. */
#include "host/cgroup_file.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4 << 20 };

int bh_cgroup_fail(struct bh_err *err, int error, const char *name, const char *what)
{
    return bh_fail(err, error == EACCES || error == EPERM || error == EROFS ? BH_DENIED : BH_SYSTEM,
                   "cgroup '%.128s': %s: %s", name, what, strerrordesc_np(error));
}

char *bh_cgroup_read_at(int dir, const char *path)
{
    const int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    struct bh_buf text;
    char some[4096];
    ssize_t n = -1;
    if (fd < 0)
        return NULL;
    bh_buf_init(&text, TEXT_MAX);
    while ((n = read(fd, some, sizeof(some))) > 0)
        bh_buf_add(&text, some, (size_t)n);
    close(fd);
    if (n < 0 || text.full) {
        bh_buf_fini(&text);
        return NULL;
    }
    bh_buf_add(&text, "", 0);
    return text.at ? text.at : bh_alloc(1, 1);
}

static int write_at(int dir, const char *path, const char *text)
{
    const int fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_TRUNC);
    const size_t n = strlen(text);
    if (fd < 0)
        return errno;
    const int error = write(fd, text, n) == (ssize_t)n ? 0 : errno ? errno : EIO;
    close(fd);
    return error;
}

/* A file of a group. */
struct path {
    char text[BH_CGROUP_NAME_MAX + 64];
};
static const char *file_of(const char *name, const char *file, struct path *ret)
{
    (void)snprintf(ret->text, sizeof(ret->text), "%s/%s", name, file);
    return ret->text;
}

int bh_cgroup_set(const struct bh_cgroup_hierarchy *h, const char *name, const char *file, const char *text)
{
    struct path p;
    return write_at(h->fd, file_of(name, file, &p), text);
}

char *bh_cgroup_get(const struct bh_cgroup_hierarchy *h, const char *name, const char *file)
{
    struct path p;
    return bh_cgroup_read_at(h->fd, file_of(name, file, &p));
}

const struct bh_cgroup_hierarchy *bh_cgroup_holder(const struct bh_cgroups *c, unsigned controller)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].controllers & controller)
            return &c->at[i];
    return NULL;
}

bool bh_cgroup_name_valid(const char *name)
{
    bool first = true;
    if (strlen(name) >= BH_CGROUP_NAME_MAX)
        return false;
    for (const char *at = name; *at; at++) {
        const bool part = bh_is_alpha(*at) || bh_is_digit(*at) || *at == '_' || *at == '-';
        if (*at == '/' ? first : !part && (first || *at != '.'))
            return false;
        first = *at == '/';
    }
    return !first;
}

int bh_cgroup_check_name(const char *name, struct bh_err *err)
{
    return bh_cgroup_name_valid(name) ? BH_OK
                                      : bh_fail(err, BH_INVALID, "'%.128s' is no name of a cgroup", name);
}
