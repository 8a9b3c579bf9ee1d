/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - how much of certain files a process has mapped; read in pieces, without taking memory. */
#include "warden/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PIECE = 32 << 10 }; /* holds any line: a path has 4,096 bytes, each of which may be written as four */

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
static uint64_t line_bytes(const char *line, size_t n_line, const struct stat *files, size_t n,
                           const char *suffix)
{
    struct cursor c = {line, line + n_line};
    uint64_t from, to, on_major, on_minor, inode;
    const size_t n_suffix = strlen(suffix);
    if (!number(&c, 16, '-', &from) || !number(&c, 16, ' ', &to) || !skip_word(&c) || !skip_word(&c) ||
        !number(&c, 16, ':', &on_major) || !number(&c, 16, ' ', &on_minor) || !number(&c, 10, ' ', &inode) ||
        to < from)
        return 0;
    bool is = (size_t)(c.end - c.at) >= n_suffix && memcmp(c.end - n_suffix, suffix, n_suffix) == 0;
    for (size_t i = 0; i < n && !is; i++)
        is = inode == files[i].st_ino && on_major == major(files[i].st_dev) &&
             on_minor == minor(files[i].st_dev);
    return is ? to - from : 0;
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

int64_t bh_maps_bytes(uint32_t pid, const struct stat *files, size_t n, const char *suffix)
{
    char path[32], piece[PIECE];
    size_t have = 0;
    uint64_t sum = 0;
    ssize_t got;
    (void)snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while ((got = read(fd, piece + have, sizeof(piece) - have)) > 0) {
        have += (size_t)got;
        const char *last = memrchr(piece, '\n', have);
        const size_t whole = last ? (size_t)(last - piece) + 1 : 0;
        sum += bh_maps_text_bytes(piece, whole, files, n, suffix);
        have -= whole;
        memmove(piece, piece + whole, have);
    }
    const int error = got < 0 ? errno : 0;
    close(fd);
    return error ? -error : sum > INT64_MAX ? -ERANGE : (int64_t)sum;
}
