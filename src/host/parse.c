/* SPDX-License-Identifier: Apache-2.0 */
#include "host/parse.h"

#include "base/str.h"

#include <string.h>

struct bh_span bh_span_trim(const char *at, size_t n)
{
    while (n && bh_is_space(*at)) {
        at++;
        n--;
    }
    while (n && bh_is_space(at[n - 1]))
        n--;
    return (struct bh_span){at, n};
}

bool bh_params_next(const char *text, size_t *pos, struct bh_span *ret_key, struct bh_span *ret_value)
{
    while (text[*pos]) {
        const char *line = text + *pos;
        size_t n = strcspn(line, "\n");
        *pos += n + (line[n] == '\n');
        const char *colon = memchr(line, ':', n);
        if (!colon)
            continue;
        struct bh_span key = bh_span_trim(line, (size_t)(colon - line));
        struct bh_span value = bh_span_trim(colon + 1, n - (size_t)(colon + 1 - line));
        if (!key.n)
            continue;
        if (value.n >= 2 && value.at[0] == '"' && value.at[value.n - 1] == '"')
            value = (struct bh_span){value.at + 1, value.n - 2};
        *ret_key = key;
        *ret_value = value;
        return true;
    }
    return false;
}

struct bh_span bh_lockdown_word(const char *text)
{
    const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    return close ? (struct bh_span){open + 1, (size_t)(close - open - 1)} : (struct bh_span){"", 0};
}

enum bh_known bh_secure_boot(const uint8_t *bytes, size_t n)
{
    if (n != 5 || bytes[4] > 1)
        return BH_KNOWN_NOT;
    return bytes[4] ? BH_KNOWN_YES : BH_KNOWN_NO;
}

/* `2:1.17.8~rc1-1` is version 1.17.8~rc1. */
static struct bh_span upstream(struct bh_span v)
{
    const char *colon = v.n ? memchr(v.at, ':', v.n) : NULL;
    if (colon)
        v = (struct bh_span){colon + 1, v.n - (size_t)(colon + 1 - v.at)};
    for (size_t i = v.n; i-- > 0;)
        if (v.at[i] == '-')
            return (struct bh_span){v.at, i};
    return v;
}

static bool field(const char *line, size_t n, const char *key, struct bh_span *ret)
{
    size_t k = strlen(key);
    if (n < k || memcmp(line, key, k) != 0)
        return false;
    *ret = bh_span_trim(line + k, n - k);
    return true;
}

static bool span_is(struct bh_span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

struct bh_span bh_dpkg_version(const char *text, const char *package)
{
    bool here = false, installed = false;
    struct bh_span version = {"", 0}, v;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        if (n == 0) {
            if (here && installed && version.n)
                break;
            here = installed = false;
            version.n = 0;
        } else if (field(line, n, "Package:", &v)) {
            here = span_is(v, package);
        } else if (field(line, n, "Status:", &v)) {
            installed = span_is(v, "install ok installed");
        } else if (field(line, n, "Version:", &v)) {
            version = upstream(v);
        }
        line += n + (line[n] == '\n');
    }
    return here && installed ? version : (struct bh_span){"", 0};
}

/* The first word of the first line that is digits and dots, with at least one dot. */
struct bh_span bh_driver_version(const char *text)
{
    const char *end = text + strcspn(text, "\n");
    for (const char *at = text; at < end;) {
        size_t n = 0, dots = 0;
        while (at + n < end && !bh_is_space(at[n]))
            n++;
        size_t good = 0;
        for (size_t i = 0; i < n; i++) {
            good += bh_is_digit(at[i]) || at[i] == '.';
            dots += at[i] == '.';
        }
        if (n && good == n && dots && dots < n && bh_is_digit(at[0]))
            return (struct bh_span){at, n};
        at += n ? n : 1;
    }
    return (struct bh_span){"", 0};
}

/* ---- PCI configuration space ---- */

enum {
    STATUS = 0x06,
    STATUS_CAPS = 0x10,
    CAPS = 0x34,
    CAP_EXPRESS = 0x10,
    TYPE_ROOT_PORT = 4,
    TYPE_DOWNSTREAM = 6,
    EXTENDED = 0x100,
    CAP_ACS = 0x000d,
    ACS_CONTROL = 6,
    ACS_REDIRECT = 0x04 | 0x08 | 0x10, /* request and completion redirect, upstream forwarding */
    HEAD = 64,
    WHOLE = 4096,
};

static unsigned word_at(const uint8_t *c, size_t at)
{
    return (unsigned)c[at] | (unsigned)c[at + 1] << 8;
}

/* The port type of a PCI Express device; -1: none is said. The list may be a loop, so its steps are counted. */
static int port_type(const uint8_t *c, size_t n)
{
    if (!(c[STATUS] & STATUS_CAPS))
        return -1;
    size_t at = c[CAPS] & ~3u;
    for (int steps = 0; steps < 48 && at >= HEAD && at + 4 <= n; steps++) {
        if (c[at] == CAP_EXPRESS)
            return c[at + 2] >> 4;
        at = c[at + 1] & ~3u;
    }
    return -1;
}

enum bh_known bh_acs_redirects(const uint8_t *config, size_t n, bool *ret_port)
{
    *ret_port = true; /* until it is known to be none, it may be one */
    if (n < HEAD)
        return BH_KNOWN_NOT;
    int type = port_type(config, n);
    if (type >= 0)
        *ret_port = type == TYPE_ROOT_PORT || type == TYPE_DOWNSTREAM;
    if (n < WHOLE)
        return BH_KNOWN_NOT; /* the extended part is for root only */
    size_t at = EXTENDED;
    for (int steps = 0; steps < 256 && at >= EXTENDED && at + 8 <= n; steps++) {
        unsigned id = word_at(config, at), next = word_at(config, at + 2) >> 4;
        if (id == CAP_ACS)
            return (word_at(config, at + ACS_CONTROL) & ACS_REDIRECT) == ACS_REDIRECT ? BH_KNOWN_YES
                                                                                      : BH_KNOWN_NO;
        at = next & ~3u;
    }
    return BH_KNOWN_NO;
}
