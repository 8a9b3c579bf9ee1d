/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/paint.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_MIN = 40, WIDTH_MAX = 100 };

static const char *const sequences[] = {
    [BH_PAINT_PLAIN] = "",         [BH_PAINT_BOLD] = "\x1b[1m",    [BH_PAINT_DIM] = "\x1b[2m",
    [BH_PAINT_RED] = "\x1b[1;31m", [BH_PAINT_YELLOW] = "\x1b[33m", [BH_PAINT_CYAN] = "\x1b[36m",
    [BH_PAINT_GREEN] = "\x1b[32m",
};

bool bh_paint_wanted(const char *word, bool is_tty, const char *no_color, const char *term)
{
    if (word && !bh_str_eq(word, "auto"))
        return bh_str_eq(word, "always");
    return is_tty && !(no_color && *no_color) && term && *term && !bh_str_eq(term, "dumb");
}

unsigned bh_paint_width(int fd)
{
    struct winsize w = {0};
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &w) < 0 || w.ws_col == 0 || w.ws_col > WIDTH_MAX)
        return WIDTH_MAX;
    return w.ws_col < WIDTH_MIN ? WIDTH_MIN : w.ws_col;
}

/*
 * Bytes of a printable UTF-8 character at s, 0 for anything else. C1 controls (U+0080 to
 * U+009F) are as good as an escape to some terminals, so they do not count as printable.
 */
static size_t printable_len(const unsigned char *s)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    return s[0] == 0xc2 && s[1] < 0xa0 ? 0 : bh_utf8_len(s);
}

/* The code point of the n bytes that printable_len counted. */
static uint32_t code_point(const unsigned char *s, size_t n)
{
    uint32_t c = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3fu);
    return c;
}

/* Characters without a shape of their own that reorder, hide or break what stands around them. */
static bool deceives(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < BH_COUNT_OF(ranges); i++)
        if (c >= ranges[i].from && c <= ranges[i].to)
            return true;
    return false;
}

static void add_n(struct bh_buf *b, const char *str, size_t len)
{
    const unsigned char *s = (const unsigned char *)str, *end = s + len;
    while (s < end) {
        size_t n = printable_len(s);
        uint32_t c = n > 1 ? code_point(s, n) : 0;
        if (c && deceives(c))
            bh_buf_printf(b, "\\u%04x", c);
        else if (n)
            bh_buf_add(b, (const char *)s, n);
        else
            bh_buf_printf(b, "\\x%02x", *s);
        s += n ? n : 1;
    }
}

void bh_text_add(struct bh_buf *b, const char *s)
{
    add_n(b, s, strlen(s));
}

void bh_paint_add(struct bh_buf *b, bool on, enum bh_paint color, const char *s)
{
    on = on && color != BH_PAINT_PLAIN;
    if (on)
        bh_buf_str(b, sequences[color]);
    bh_text_add(b, s);
    if (on)
        bh_buf_str(b, "\x1b[0m");
}

static size_t width_n(const char *s, size_t n)
{
    size_t w = 0;
    for (size_t i = 0; i < n; i++)
        w += ((unsigned char)s[i] & 0xc0) != 0x80;
    return w;
}

size_t bh_text_width(const char *s)
{
    return width_n(s, strlen(s));
}

void bh_text_blanks(struct bh_buf *b, size_t n)
{
    while (n--)
        bh_buf_add(b, " ", 1);
}

void bh_text_wrap(struct bh_buf *b, const char *s, unsigned at, unsigned indent, unsigned width)
{
    size_t column = at;
    bool first = true; /* on its line */
    for (s += strspn(s, " \n"); *s; s += strspn(s, " \n")) {
        size_t n = strcspn(s, " \n"), w = width_n(s, n);
        if (!first && column + 1 + w > width) {
            bh_buf_str(b, "\n");
            bh_text_blanks(b, indent);
            column = indent;
            first = true;
        }
        if (!first) {
            bh_buf_str(b, " ");
            column++;
        }
        add_n(b, s, n);
        column += w;
        first = false;
        s += n;
    }
    bh_buf_str(b, "\n");
}

void bh_text_block(struct bh_buf *b, const char *s, unsigned indent)
{
    while (*s) {
        size_t n = strcspn(s, "\n");
        if (n)
            bh_text_blanks(b, indent);
        add_n(b, s, n);
        bh_buf_str(b, "\n");
        s += n + (s[n] == '\n');
    }
}

void bh_text_shell(struct bh_buf *b, const char *s)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
    if (*s && s[strspn(s, plain)] == '\0') {
        bh_buf_str(b, s);
        return;
    }
    bh_buf_str(b, "'");
    for (;;) {
        size_t n = strcspn(s, "'");
        add_n(b, s, n);
        s += n;
        if (!*s)
            break;
        bh_buf_str(b, "'\\''");
        s++;
    }
    bh_buf_str(b, "'");
}
