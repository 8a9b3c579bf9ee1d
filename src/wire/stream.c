/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - reading what a keeper writes while it writes: a part may be replaced between two looks. */
#include "wire/stream.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 8 }; /* a part lasts for many megabytes: it is not replaced as often as that */

void bh_stream_before(const char *name, uint64_t to, char ret[BH_STREAM_NAME_MAX])
{
    (void)snprintf(ret, BH_STREAM_NAME_MAX, "%.20s.to-%llu", name, (unsigned long long)to);
}

bool bh_stream_is_before(const char *file, const char *name, uint64_t *ret_to)
{
    const size_t n = strlen(name);
    return bh_str_starts(file, name) && bh_str_starts(file + n, ".to-") &&
           bh_uint_parse(file + n + 4, INT64_MAX, ret_to, NULL) == BH_OK && *ret_to > 0;
}

/* Where the newest part begins: 0 where none was before it. The folder's descriptor is taken. */
static uint64_t turn_of(int folder, const char *name)
{
    uint64_t greatest = 0, to;
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !dir)
        close(fd);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        if (bh_stream_is_before(e->d_name, name, &to) && to > greatest)
            greatest = to;
    if (dir)
        closedir(dir);
    return greatest;
}

/* -1: it is not there, or is no file. */
static int open_part(int folder, const char *name, struct stat *ret)
{
    *ret = (struct stat){0};
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode)))
        return fd;
    close(fd);
    *ret = (struct stat){0};
    errno = EINVAL;
    return -1;
}

static int read_part(int fd, uint64_t at, size_t most, struct bh_buf *out, struct bh_err *err)
{
    BH_AUTOFREE char *buf = bh_alloc(1, most ? most : 1);
    const ssize_t n = pread(fd, buf, most, (off_t)at);
    if (n < 0)
        return bh_fail(err, BH_SYSTEM, "the log cannot be read: %s", strerrordesc_np(errno));
    bh_buf_add(out, buf, (size_t)n);
    return BH_OK;
}

/* Both parts, open, as they were at one moment. */
struct parts {
    int newest, before;
    uint64_t turn;
    struct stat newest_at, before_at;
};

static void close_parts(struct parts *p)
{
    if (p->newest >= 0)
        close(p->newest);
    if (p->before >= 0)
        close(p->before);
}

static int open_parts(int folder, const char *name, struct parts *ret, struct bh_err *err)
{
    char before[BH_STREAM_NAME_MAX];
    for (int i = 0; i < TRIES; i++) {
        *ret = (struct parts){.newest = -1, .before = -1, .turn = turn_of(folder, name)};
        bh_stream_before(name, ret->turn, before);
        ret->newest = open_part(folder, name, &ret->newest_at);
        const bool wrong = ret->newest < 0 && errno != ENOENT;
        if (ret->turn)
            ret->before = open_part(folder, before, &ret->before_at);
        if (turn_of(folder, name) == ret->turn)
            return wrong ? bh_fail(err, BH_SYSTEM, "the log cannot be read") : BH_OK;
        close_parts(ret);
    }
    return bh_fail(err, BH_BUSY, "it is written faster than it can be read");
}

int bh_stream_read(const char *folder, const char *name, uint64_t offset, size_t most, struct bh_buf *out,
                   struct bh_stream_got *ret, struct bh_err *err)
{
    struct parts p;
    *ret = (struct bh_stream_got){.next = offset, .end = true};
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT
                   ? BH_OK
                   : bh_fail(err, BH_SYSTEM, "the log cannot be read: %s", strerrordesc_np(errno));
    int rc = open_parts(dir, name, &p, err);
    close(dir);
    if (rc < 0)
        return rc;
    const uint64_t kept = (uint64_t)p.before_at.st_size < p.turn ? (uint64_t)p.before_at.st_size : p.turn;
    const uint64_t first = p.turn - kept, end = p.turn + (uint64_t)p.newest_at.st_size;
    const size_t had = out->n;
    if (offset < first) {
        ret->dropped = first - offset;
        offset = first;
    }
    if (offset < p.turn)
        rc = read_part(p.before, offset - first, most, out, err);
    else if (offset < end)
        rc = read_part(p.newest, offset - p.turn, most, out, err);
    ret->next = offset + (out->n - had);
    ret->end = ret->next >= end;
    ret->mark = (struct bh_stream_mark){.size = (uint64_t)p.newest_at.st_size, .inode = p.newest_at.st_ino};
    close_parts(&p);
    return rc;
}

bool bh_stream_has_moved(const char *folder, const char *name, const struct bh_stream_mark *mark)
{
    char path[4096];
    struct stat st = {0};
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return stat(path, &st) == 0 && ((uint64_t)st.st_size != mark->size || st.st_ino != mark->inode);
}
