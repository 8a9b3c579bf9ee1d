/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/text.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>

/* Signs that are not seen, break a line or turn it around: with them two names look like one. */
static const struct {
    uint32_t first, last;
} unseen[] = {
    {0x80, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

/* The length of what may stand at s as it is; 0: it may not. */
static size_t printable(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = bh_utf8_len(u);
    if (n == 1)
        return u[0] >= 0x20 && u[0] != 0x7f;
    uint32_t c = n ? u[0] & 0x7fu >> n : 0;
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (u[i] & 0x3f);
    for (size_t i = 0; i < BH_COUNT_OF(unseen); i++)
        if (c >= unseen[i].first && c <= unseen[i].last)
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
