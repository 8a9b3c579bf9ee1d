/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

void bh_buf_init(struct bh_buf *b, size_t max)
{
    *b = (struct bh_buf){.max = max};
}

void bh_buf_fini(struct bh_buf *b)
{
    free(b->at);
    *b = (struct bh_buf){0};
}

static bool reserve(struct bh_buf *b, size_t n)
{
    if (b->full || n > b->max || b->n > b->max - n) {
        b->full = true;
        return false;
    }
    if (b->n + n + 1 > b->cap)
        b->at = bh_grow_(b->at, &b->cap, b->n + n + 1, 1);
    return true;
}

void bh_buf_add(struct bh_buf *b, const char *s, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->at + b->n, s, n);
    b->n += n;
    b->at[b->n] = '\0';
}

void bh_buf_str(struct bh_buf *b, const char *s)
{
    bh_buf_add(b, s, strlen(s));
}

void bh_buf_u64(struct bh_buf *b, uint64_t v)
{
    char digits[20]; /* UINT64_MAX has as many */
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    bh_buf_add(b, digits + at, sizeof(digits) - at);
}

void bh_buf_printf(struct bh_buf *b, const char *fmt, ...)
{
    va_list ap;
    const size_t room = b->full || b->n >= b->cap ? 0 : b->cap - b->n; /* most of the time it is enough */
    va_start(ap, fmt);
    int n = vsnprintf(room ? b->at + b->n : NULL, room, fmt, ap);
    va_end(ap);
    if (n < 0)
        b->full = true; /* what cannot be formatted is missing, and the caller must see it */
    if (n < 0 || !reserve(b, (size_t)n)) {
        if (room)
            b->at[b->n] = '\0'; /* nothing was added */
        return;
    }
    if ((size_t)n >= room) {
        va_start(ap, fmt);
        (void)vsnprintf(b->at + b->n, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    b->n += (size_t)n;
}

const char *bh_buf_text(const struct bh_buf *b)
{
    return b->at ? b->at : "";
}
