/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/line_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { ENOUGH = 4096, LARGEST = 1 << 20 };

/* false: it took no more, and what it took of the last line is taken back. */
static bool flush(struct bh_line_file *f)
{
    const size_t n = f->waiting.n;
    const ssize_t wrote = n ? write(f->fd, bh_buf_text(&f->waiting), n) : 0;
    size_t whole = wrote > 0 ? (size_t)wrote : 0;
    while (whole < n && whole > 0 && bh_buf_text(&f->waiting)[whole - 1] != '\n')
        whole--;
    f->size += (int64_t)whole;
    bh_buf_fini(&f->waiting);
    bh_buf_init(&f->waiting, LARGEST);
    if (whole == n)
        return true;
    (void)!ftruncate(f->fd, f->size);
    return false;
}

void bh_line_file_open(struct bh_line_file *f, const char *path, int64_t max)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *f = (struct bh_line_file){.open = fd >= 0, .fd = fd, .max = max};
    bh_buf_init(&f->waiting, LARGEST);
}

void bh_line_file_add(struct bh_line_file *f, const char *line)
{
    if (!f->open)
        return;
    bh_buf_str(&f->waiting, line);
    bh_buf_str(&f->waiting, "\n");
    if (f->waiting.n >= ENOUGH && (!flush(f) || f->size > f->max))
        bh_line_file_close(f);
}

void bh_line_file_close(struct bh_line_file *f)
{
    if (!f->open)
        return;
    (void)flush(f);
    bh_buf_fini(&f->waiting);
    close(f->fd);
    *f = (struct bh_line_file){0};
}
