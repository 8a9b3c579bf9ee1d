/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/excerpt.h"

#include "base/str.h"
#include "cli/paint.h"
#include "conf/out.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GUTTER = 12 }; /* `      22 | ` and a little air */
#define TEXT_MAX ((off_t)64 << 20)

void bh_excerpts_init(struct bh_excerpts *e, const struct bh_input *in)
{
    e->in = in;
    e->files = bh_alloc(in->files.n + 1, sizeof(*e->files));
}

void bh_excerpts_fini(struct bh_excerpts *e)
{
    for (size_t i = 0; e->files && i < e->in->files.n; i++) {
        free(e->files[i].text);
        bh_vec_fini(&e->files[i].lines);
    }
    free(e->files);
    e->files = NULL;
}

/* O_NONBLOCK, and regular files only: a pipe was emptied by the first reading and would hang the second. */
static bool read_all(const char *path, char **ret, size_t *ret_n)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= TEXT_MAX;
    if (ok) {
        size_t size = (size_t)st.st_size, n = 0;
        char *text = bh_alloc(size + 1, 1);
        for (ssize_t got; n < size && (got = read(fd, text + n, size - n)) > 0;)
            n += (size_t)got;
        *ret = text;
        *ret_n = n;
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

static void load(struct bh_excerpt_file *f, const char *path)
{
    f->tried = true;
    if (bh_str_eq(path, "-") || !read_all(path, &f->text, &f->n))
        return;
    *bh_vec_push(&f->lines) = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->text[i] == '\n')
            *bh_vec_push(&f->lines) = i + 1;
}

/* The byte where the code point number `column` (from 0) of the line starts, or the line's end. */
static size_t offset_of(const char *line, size_t n, size_t column)
{
    size_t i = 0;
    for (; i < n; i++)
        if (((unsigned char)line[i] & 0xc0) != 0x80 && column-- == 0)
            break;
    return i;
}

/* Findings come in order, so the walk along a long line goes on from where the last one ended. */
static size_t window_start(struct bh_excerpt_file *f, uint32_t line_number, const char *line, size_t n,
                           size_t from)
{
    if (f->last_line != line_number || f->last_column > from)
        f->last_column = f->last_byte = 0;
    f->last_byte += offset_of(line + f->last_byte, n - f->last_byte, from - f->last_column);
    f->last_line = line_number;
    f->last_column = from;
    return f->last_byte;
}

static void add_window(struct bh_buf *b, const char *line, size_t n, size_t start, size_t columns)
{
    struct bh_buf part;
    size_t end = start + offset_of(line + start, n - start, columns);
    bh_buf_init(&part, 4 * columns + 8);
    bh_buf_add(&part, line + start, end - start);
    for (size_t i = 0; i < part.n; i++)
        if (part.at[i] == '\t')
            part.at[i] = ' '; /* one column each, so that the caret stays under its place */
    bh_text_add(b, bh_buf_text(&part));
    bh_buf_str(b, end < n ? "...\n" : "\n");
    bh_buf_fini(&part);
}

void bh_excerpt_add(struct bh_excerpts *e, struct bh_pos pos, unsigned width, struct bh_buf *b)
{
    if (pos.line == 0 || pos.file >= e->in->files.n)
        return;
    struct bh_excerpt_file *f = &e->files[pos.file];
    if (!f->tried)
        load(f, e->in->files.at[pos.file]);
    if (pos.line > f->lines.n)
        return;
    const char *line = f->text + f->lines.at[pos.line - 1];
    size_t n = (pos.line < f->lines.n ? f->lines.at[pos.line] - 1 : f->n) - f->lines.at[pos.line - 1];
    if (n && line[n - 1] == '\r')
        n--;
    size_t columns = width - GUTTER - 3, column = pos.column ? pos.column - 1 : 0;
    /* a place far to the right (JSON on one line) moves the window, keeping some of what stands before it */
    size_t from = column < columns - columns / 4 ? 0 : column - columns / 4;
    bh_buf_printf(b, "%*u | ", GUTTER - 4, pos.line);
    add_window(b, line, n, window_start(f, pos.line, line, n, from), columns);
    if (pos.column) {
        bh_buf_printf(b, "%*s | ", GUTTER - 4, "");
        bh_text_blanks(b, column - from);
        bh_buf_str(b, "^\n");
    }
}
