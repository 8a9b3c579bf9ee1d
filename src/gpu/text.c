/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/text.h"

#include "base/str.h"

#include <string.h>

/* The length of what may stand at s as it is; 0: it may not. */
static size_t printable(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = bh_utf8_len(u);
    if (n == 1)
        return u[0] >= 0x20 && u[0] != 0x7f;
    /* U+0080..009F are controls, U+2028..202E and U+2066..2069 break or turn lines, U+200B..200F are not seen */
    if (n == 2 && u[0] == 0xc2 && u[1] < 0xa0)
        return 0;
    if (n == 3 && u[0] == 0xe2 &&
        ((u[1] == 0x80 && ((u[2] >= 0x8b && u[2] <= 0x8f) || (u[2] >= 0xa8 && u[2] <= 0xae))) ||
         (u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9)))
        return 0;
    return n;
}

const char *bh_gpu_text(struct bh_arena *a, const char *buf, size_t size)
{
    const char *end = buf + strnlen(buf, size);
    while (buf < end && bh_is_space(*buf))
        buf++;
    while (end > buf && bh_is_space(end[-1]))
        end--;
    if (buf == end)
        return NULL;
    /* With a NUL behind it a sequence that is cut at the end is seen to be. */
    char *text = bh_arena_strn(a, buf, (size_t)(end - buf)), *to = text;
    for (const char *from = text; *from;) {
        size_t n = printable(from);
        if (n)
            memmove(to, from, n);
        else
            *to = '?';
        to += n ? n : 1;
        from += n ? n : 1;
    }
    *to = '\0';
    return text;
}

const char *bh_gpu_pci(struct bh_arena *a, unsigned domain, unsigned bus, unsigned device)
{
    if (bus > 0xff || device > 0x1f)
        return NULL;
    return bh_arena_printf(a, "%04x:%02x:%02x.0", domain, bus, device);
}
