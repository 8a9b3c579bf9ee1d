/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c - cells, and what they look like as text. */
#include "tui/screen.h"

#include "base/mem.h"

#include <string.h>

void bh_screen_init(struct bh_screen *s, unsigned rows, unsigned cols)
{
    *s = (struct bh_screen){.rows = rows, .cols = cols};
    s->cells = bh_alloc((size_t)rows * cols + 1, sizeof(*s->cells));
}

void bh_screen_fini(struct bh_screen *s)
{
    free(s->cells);
    *s = (struct bh_screen){0};
}

/* Bytes of the code point that begins here; 0: it is none. */
static size_t point_of(const char *text, uint32_t *ret)
{
    const unsigned char c = (unsigned char)*text;
    const size_t n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
    uint32_t point = n <= 1 ? c : c & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | ((unsigned char)text[i] & 0x3f);
    }
    *ret = point;
    return n;
}

/* One cell wide for certain: ASCII, Latin, and the signs that our own pictures are made of. */
static bool is_narrow(uint32_t point)
{
    return (point >= ' ' && point < 0x7f) || (point >= 0xa0 && point < 0x250) ||
           (point >= 0x2010 && point <= 0x2027) || (point >= 0x2500 && point <= 0x259f) ||
           (point >= 0x2190 && point <= 0x2193);
}

unsigned bh_screen_put(struct bh_screen *s, unsigned row, unsigned col, unsigned width, enum bh_style style,
                       const char *text)
{
    const unsigned end = width < s->cols - (col < s->cols ? col : s->cols) ? col + width : s->cols;
    if (row >= s->rows || !text)
        return col;
    while (*text && col < end) {
        struct bh_cell_at *cell = &s->cells[(size_t)row * s->cols + col++];
        uint32_t point = 0;
        const size_t n = point_of(text, &point);
        *cell = (struct bh_cell_at){.s = "?", .style = (uint8_t)style};
        if (n && is_narrow(point)) {
            memcpy(cell->s, text, n);
            cell->s[n] = '\0';
        }
        text += n ? n : 1;
    }
    return col;
}

void bh_screen_mark(struct bh_screen *s, unsigned row, unsigned col, unsigned width, enum bh_style style)
{
    for (unsigned i = col; row < s->rows && i < s->cols && i - col < width; i++)
        s->cells[(size_t)row * s->cols + i].style = (uint8_t)style;
}

void bh_screen_dim(struct bh_screen *s, unsigned first, unsigned last)
{
    for (unsigned row = first; row < last; row++)
        bh_screen_mark(s, row, 0, s->cols, BH_STYLE_DIM);
}

/* ---- as text ---- */

static const char *const codes[BH_STYLES] = {
    [BH_STYLE_PLAIN] = "0",      [BH_STYLE_HEAD] = "0;36",  [BH_STYLE_TITLE] = "0;1",
    [BH_STYLE_DIM] = "0;2",      [BH_STYLE_GOOD] = "0;32",  [BH_STYLE_WARN] = "0;33",
    [BH_STYLE_BAD] = "0;31",     [BH_STYLE_MARK] = "0;1;4", [BH_STYLE_KEY] = "0;36",
    [BH_STYLE_ACCENT] = "0;36;1"};

static bool blank(const struct bh_cell_at *c)
{
    return !c->s[0] || strcmp(c->s, " ") == 0;
}

static void row_text(const struct bh_screen *s, unsigned row, bool sgr, struct bh_buf *out)
{
    const struct bh_cell_at *cells = &s->cells[(size_t)row * s->cols];
    unsigned n = s->cols;
    uint8_t style = BH_STYLE_PLAIN;
    while (n && blank(&cells[n - 1]))
        n--;
    for (unsigned i = 0; i < n; i++) {
        if (sgr && cells[i].style != style) {
            style = cells[i].style;
            bh_buf_printf(out, "\x1b[%sm", codes[style]);
        }
        bh_buf_str(out, cells[i].s[0] ? cells[i].s : " ");
    }
    if (style != BH_STYLE_PLAIN)
        bh_buf_str(out, "\x1b[0m");
    bh_buf_str(out, "\n");
}

void bh_screen_text(const struct bh_screen *s, bool sgr, struct bh_buf *out)
{
    for (unsigned row = 0; row < s->rows; row++)
        row_text(s, row, sgr, out);
}

void bh_screen_styles(const struct bh_screen *s, struct bh_buf *out)
{
    static const char letters[BH_STYLES + 1] = ".htdgwbmka";
    for (unsigned row = 0; row < s->rows; row++) {
        for (unsigned col = 0; col < s->cols; col++)
            bh_buf_printf(out, "%c", letters[s->cells[(size_t)row * s->cols + col].style]);
        bh_buf_str(out, "\n");
    }
}

/* ---- small pictures ---- */

const char *bh_picture_bar(uint64_t value, uint64_t most, unsigned width, struct bh_picture *ret)
{
    const unsigned cells = width < 3 ? 0 : width > 200 ? 198 : width - 2;
    const uint64_t part = value < most ? value : most;
    const uint64_t full = most ? (part * cells + most - 1) / most : 0; /* anything at all is seen */
    size_t n = 0;
    ret->s[n++] = '[';
    for (unsigned i = 0; i < cells; i++)
        ret->s[n++] = i < full ? '|' : ' ';
    ret->s[n++] = ']';
    ret->s[n] = '\0';
    return ret->s;
}

const char *bh_picture_line(const uint8_t *values, unsigned n, unsigned width, bool ascii,
                            struct bh_picture *ret)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const plain[] = {"_", "_", ".", ".", "-", "=", "+", "#"};
    const unsigned shown = n < width ? n : width, most = (unsigned)sizeof(ret->s) / 4;
    size_t at = 0;
    for (unsigned i = n - shown; i < n && i - (n - shown) < most; i++) {
        const char *sign = " ";
        if (values[i] <= 100)
            sign = (ascii ? plain : blocks)[values[i] * 8 / 101];
        memcpy(ret->s + at, sign, strlen(sign));
        at += strlen(sign);
    }
    ret->s[at] = '\0';
    return ret->s;
}
