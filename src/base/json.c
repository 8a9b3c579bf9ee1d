/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void bh_json_init(struct bh_json *j, struct bh_buf *out)
{
    *j = (struct bh_json){.out = out};
}

static uint32_t bit(const struct bh_json *j)
{
    return UINT32_C(1) << j->depth;
}

static void newline(struct bh_json *j)
{
    char line[1 + 2 * BH_JSON_DEPTH_MAX];
    line[0] = '\n';
    memset(line + 1, ' ', sizeof(line) - 1);
    bh_buf_add(j->out, line, 1 + 2 * (size_t)j->depth);
}

/* What stands before any element: nothing after a key, else comma and line. */
static void separate(struct bh_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->has_item & bit(j))
        bh_buf_str(j->out, j->is_flat & bit(j) ? ", " : ",");
    j->has_item |= bit(j);
    if (j->depth && !(j->is_flat & bit(j)))
        newline(j);
}

static void open_as(struct bh_json *j, char bracket, bool flat)
{
    separate(j);
    bool inherited = j->is_flat & bit(j);
    bh_buf_add(j->out, &bracket, 1);
    assert(j->depth + 1 < BH_JSON_DEPTH_MAX);
    j->depth++;
    j->has_item &= ~bit(j);
    j->is_flat &= ~bit(j);
    if (flat || inherited)
        j->is_flat |= bit(j);
}

void bh_json_open(struct bh_json *j, char bracket)
{
    open_as(j, bracket, false);
}

void bh_json_open_flat(struct bh_json *j, char bracket)
{
    open_as(j, bracket, true);
}

void bh_json_close(struct bh_json *j, char bracket)
{
    assert(j->depth > 0 && !j->after_key);
    bool lines = (j->has_item & bit(j)) && !(j->is_flat & bit(j));
    j->depth--;
    if (lines)
        newline(j);
    bh_buf_add(j->out, &bracket, 1);
    if (j->depth == 0)
        bh_buf_add(j->out, "\n", 1);
}

/* Bytes from here on that stand for themselves: nearly all there ever is, and added at once. */
static size_t plain(const unsigned char *s)
{
    size_t n = 0;
    while (s[n] >= 0x20 && s[n] < 0x80 && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

static void quoted(struct bh_json *j, const char *str)
{
    const unsigned char *s = (const unsigned char *)str;
    bh_buf_add(j->out, "\"", 1);
    while (*s) {
        size_t n = plain(s);
        if (n == 0)
            n = bh_utf8_len(s);
        if (n == 0) {
            bh_buf_str(j->out, "\xef\xbf\xbd");
            s++;
        } else if (*s == '"' || *s == '\\') {
            bh_buf_printf(j->out, "\\%c", *s++);
        } else if (*s == '\n') {
            bh_buf_str(j->out, "\\n");
            s++;
        } else if (*s < 0x20) {
            bh_buf_printf(j->out, "\\u%04x", *s++);
        } else {
            bh_buf_add(j->out, (const char *)s, n);
            s += n;
        }
    }
    bh_buf_add(j->out, "\"", 1);
}

void bh_json_key(struct bh_json *j, const char *key)
{
    separate(j);
    quoted(j, key);
    bh_buf_str(j->out, ": ");
    j->after_key = true;
}

void bh_json_str(struct bh_json *j, const char *s)
{
    separate(j);
    if (s)
        quoted(j, s);
    else
        bh_buf_str(j->out, "null");
}

void bh_json_u64(struct bh_json *j, uint64_t v)
{
    separate(j);
    bh_buf_u64(j->out, v);
}

void bh_json_i64(struct bh_json *j, int64_t v)
{
    separate(j);
    bh_buf_printf(j->out, "%" PRId64, v);
}

void bh_json_fixed(struct bh_json *j, uint64_t v, unsigned decimals)
{
    uint64_t unit = 1;
    assert(decimals && decimals < 20);
    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    separate(j);
    bh_buf_printf(j->out, "%" PRIu64 ".%0*" PRIu64, v / unit, (int)decimals, v % unit);
}

void bh_json_bool(struct bh_json *j, bool v)
{
    separate(j);
    bh_buf_str(j->out, v ? "true" : "false");
}

void bh_json_key_str(struct bh_json *j, const char *key, const char *s)
{
    bh_json_key(j, key);
    bh_json_str(j, s);
}

void bh_json_key_u64(struct bh_json *j, const char *key, uint64_t v)
{
    bh_json_key(j, key);
    bh_json_u64(j, v);
}

void bh_json_key_i64(struct bh_json *j, const char *key, int64_t v)
{
    bh_json_key(j, key);
    bh_json_i64(j, v);
}

void bh_json_key_fixed(struct bh_json *j, const char *key, uint64_t v, unsigned decimals)
{
    bh_json_key(j, key);
    bh_json_fixed(j, v, decimals);
}

void bh_json_key_bool(struct bh_json *j, const char *key, bool v)
{
    bh_json_key(j, key);
    bh_json_bool(j, v);
}
