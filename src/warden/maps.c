/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maps.c - how much of certain files a process has mapped, without taking memory.
 *
 * A GPU program has hundreds of mappings, of which a few are shared ones of files. The kernel can be asked for these alone
 * (6.11); where it cannot, the whole list is read as text, in pieces.
 */
#include "warden/maps.h"

#include "warden/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PIECE = 32 << 10 }; /* holds any line: a path has 4,096 bytes, each of which may be written as four */

/* ---- one line, or one answer ---- */

struct one {
    uint64_t from, to, on_major, on_minor, inode;
    const char *name;
    size_t n_name;
};

static uint64_t bytes_of(const struct one *m, const struct stat *files, size_t n, const char *suffix)
{
    const size_t n_suffix = strlen(suffix);
    bool is = m->n_name >= n_suffix && memcmp(m->name + m->n_name - n_suffix, suffix, n_suffix) == 0;
    for (size_t i = 0; i < n && !is; i++)
        is = m->inode == files[i].st_ino && m->on_major == major(files[i].st_dev) &&
             m->on_minor == minor(files[i].st_dev);
    return is ? m->to - m->from : 0;
}

/* ---- asked for ---- */

/* struct procmap_query of linux/fs.h, which older headers do not have. */
struct query {
    uint64_t size, flags, at;                        /* in */
    uint64_t from, to, vma_flags, page_size, offset; /* out */
    uint64_t inode;
    uint32_t on_major, on_minor;
    uint32_t n_name, n_build_id;
    uint64_t name, build_id;
};
_Static_assert(sizeof(struct query) == 104, "the kernel's structure");
#define QUERY _IOWR('f', 17, struct query)
enum { SHARED = 0x08, COVERING_OR_NEXT = 0x10, FILE_BACKED = 0x20, NAME_MAX_BYTES = 4096 };

/* Negative: it cannot be asked for. */
static int64_t ask(int fd, const struct stat *files, size_t n, const char *suffix)
{
    char name[NAME_MAX_BYTES];
    uint64_t sum = 0;
    struct query q = {0};
    do {
        q = (struct query){.size = sizeof(q),
                           .flags = SHARED | COVERING_OR_NEXT | FILE_BACKED,
                           .at = q.to,
                           .name = (uintptr_t)name,
                           .n_name = sizeof(name)};
        if (ioctl(fd, QUERY, &q) < 0)
            return errno == ENOENT ? (int64_t)sum : -errno;
        const struct one m = {
            q.from, q.to, q.on_major, q.on_minor, q.inode, name, strnlen(name, sizeof(name))};
        sum += bytes_of(&m, files, n, suffix);
    } while (q.to > q.from && sum <= INT64_MAX);
    return -ERANGE;
}

/* ---- read ---- */

struct cursor {
    const char *at, *end;
};

static bool number(struct cursor *c, unsigned base, char after, uint64_t *ret)
{
    const char *from = c->at;
    uint64_t v = 0;
    for (; c->at < c->end; c->at++) {
        const char ch = *c->at;
        unsigned digit = ch >= '0' && ch <= '9'   ? (unsigned)(ch - '0')
                         : ch >= 'a' && ch <= 'f' ? (unsigned)(ch - 'a') + 10
                                                  : base;
        if (digit >= base)
            break;
        if (v > (UINT64_MAX - digit) / base)
            return false;
        v = v * base + digit;
    }
    if (c->at == from || c->at == c->end || *c->at != after)
        return false;
    c->at++;
    *ret = v;
    return true;
}

static bool skip_word(struct cursor *c)
{
    while (c->at < c->end && *c->at != ' ')
        c->at++;
    return c->at < c->end && c->at++;
}

/* `from-to rwxp offset major:minor inode   path` */
static bool read_line(const char *line, size_t n_line, struct one *ret)
{
    struct cursor c = {line, line + n_line};
    if (!number(&c, 16, '-', &ret->from) || !number(&c, 16, ' ', &ret->to) || !skip_word(&c) ||
        !skip_word(&c) || !number(&c, 16, ':', &ret->on_major) || !number(&c, 16, ' ', &ret->on_minor) ||
        !number(&c, 10, ' ', &ret->inode) || ret->to < ret->from)
        return false;
    ret->name = c.at;
    ret->n_name = (size_t)(c.end - c.at);
    return true;
}

static uint64_t line_bytes(const char *line, size_t n_line, const struct stat *files, size_t n,
                           const char *suffix)
{
    struct one m;
    return read_line(line, n_line, &m) ? bytes_of(&m, files, n, suffix) : 0;
}

uint64_t bh_maps_text_bytes(const char *text, size_t n_text, const struct stat *files, size_t n,
                            const char *suffix)
{
    uint64_t sum = 0;
    const char *at = text, *end = text + n_text, *stop;
    for (; at < end && (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1)
        sum += line_bytes(at, (size_t)(stop - at), files, n, suffix);
    return sum;
}

static int64_t read_all(int fd, const struct stat *files, size_t n, const char *suffix)
{
    char piece[PIECE];
    size_t have = 0;
    uint64_t sum = 0;
    ssize_t got;
    bool any = false;
    while ((got = read(fd, piece + have, sizeof(piece) - have)) > 0) {
        have += (size_t)got;
        any = true;
        const char *last = memrchr(piece, '\n', have);
        const size_t whole = last ? (size_t)(last - piece) + 1 : 0;
        sum += bh_maps_text_bytes(piece, whole, files, n, suffix);
        have -= whole;
        memmove(piece, piece + whole, have);
    }
    if (got == 0 && !any)
        return -ESRCH; /* who has memory has something mapped */
    return got < 0 ? -errno : sum > INT64_MAX ? -ERANGE : (int64_t)sum;
}

static int open_maps(uint32_t tid)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%u/maps", tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int64_t look_at(uint32_t tid, const struct stat *files, size_t n, const char *suffix, bool may_ask)
{
    const int fd = open_maps(tid);
    if (fd < 0)
        return fd;
    int64_t sum = may_ask ? ask(fd, files, n, suffix) : -1;
    if (sum < 0)
        sum = read_all(fd, files, n, suffix);
    close(fd);
    return sum;
}

/* A thread that has begun to end has no memory any more; its process has as long as another lives. */
static int64_t look(uint32_t pid, const struct stat *files, size_t n, const char *suffix, bool may_ask)
{
    const int64_t sum = look_at(pid, files, n, suffix, may_ask);
    const uint32_t other = sum == -ESRCH ? bh_thread_living(pid) : 0;
    return other && other != pid ? look_at(other, files, n, suffix, may_ask) : sum;
}

int64_t bh_maps_bytes(uint32_t pid, const struct stat *files, size_t n, const char *suffix)
{
    return look(pid, files, n, suffix, true);
}

int64_t bh_maps_read_bytes(uint32_t pid, const struct stat *files, size_t n, const char *suffix)
{
    return look(pid, files, n, suffix, false);
}

/* ---- one address ---- */

int bh_maps_file_at(uint32_t pid, uint64_t at, struct bh_maps_file *ret)
{
    struct query q = {.size = sizeof(q), .at = at};
    const int fd = open_maps(pid);
    if (fd < 0)
        return fd;
    const int error = ioctl(fd, QUERY, &q) < 0 ? errno : 0;
    close(fd);
    if (error == ENOENT)
        return -error;
    if (error)
        return bh_maps_read_file_at(pid, at, ret);
    *ret = (struct bh_maps_file){q.inode, q.on_major, q.on_minor};
    return 0;
}

int bh_maps_read_file_at(uint32_t pid, uint64_t at, struct bh_maps_file *ret)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    int rc = -ENOENT;
    const int fd = open_maps(pid);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (!f)
        return fd;
    while (rc == -ENOENT && (n = getline(&line, &size, f)) > 0) {
        struct one m;
        if (!read_line(line, (size_t)n, &m) || at < m.from || at >= m.to)
            continue;
        *ret = (struct bh_maps_file){m.inode, m.on_major, m.on_minor};
        rc = 0;
    }
    (void)fclose(f);
    free(line);
    return rc;
}
