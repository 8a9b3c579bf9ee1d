/* SPDX-License-Identifier: Apache-2.0 */
/* json_read.c - a strict reader of JSON (RFC 8259) for messages from outside. */
#include "base/json_read.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static bool fail(struct bh_json_reader *r, const char *wrong)
{
    if (!r->wrong)
        r->wrong = wrong;
    r->at = r->end;
    return false;
}

static bool ran_out(struct bh_json_reader *r)
{
    if (!r->wrong)
        r->is_short = true;
    return fail(r, "it ends in the middle");
}

void bh_json_read_init(struct bh_json_reader *r, const char *text, size_t n)
{
    *r = (struct bh_json_reader){.start = text, .at = text, .end = text + n};
}

static void blanks(struct bh_json_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* The next byte that is not blank, not taken; 0: there is none. */
static char next(struct bh_json_reader *r)
{
    if (r->wrong)
        return '\0';
    blanks(r);
    if (r->at == r->end) {
        (void)ran_out(r);
        return '\0';
    }
    if (*r->at == '\0')
        (void)fail(r, "a NUL is in it");
    return r->wrong ? '\0' : *r->at;
}

char bh_json_read_peek(struct bh_json_reader *r)
{
    const char c = next(r);
    return c == '-' || bh_is_digit(c) ? '0' : c;
}

bool bh_json_read_open(struct bh_json_reader *r, char bracket)
{
    const char c = next(r);
    if (!c)
        return false;
    if (c != bracket)
        return fail(r, bracket == '{' ? "an object was expected" : "a list was expected");
    if (r->depth == BH_JSON_READ_DEPTH_MAX)
        return fail(r, "it is nested too deep");
    r->at++;
    r->depth++;
    r->first = true;
    return true;
}

/* Steps over the comma before the next element, or out through the closing bracket. */
static bool more(struct bh_json_reader *r, char closing)
{
    const char c = next(r);
    if (!c)
        return false;
    if (c == closing) {
        r->at++;
        r->depth--;
        r->first = false;
        return false;
    }
    if (!r->first) {
        if (c != ',')
            return fail(r, "a comma was expected");
        r->at++;
    }
    r->first = false;
    return next(r) != '\0';
}

bool bh_json_read_item(struct bh_json_reader *r)
{
    return more(r, ']');
}

/* ---- strings ---- */

struct text {
    char *at; /* NULL: not wanted */
    size_t n, size;
    bool cut; /* a longer one is cut rather than wrong */
};

static bool put(struct bh_json_reader *r, struct text *t, const char *bytes, size_t n)
{
    if (!t->at)
        return true;
    if (t->n + n >= t->size) {
        t->size = t->n + 1; /* once it is cut nothing more is added */
        return t->cut || fail(r, "a string is longer than any that is known");
    }
    memcpy(t->at + t->n, bytes, n);
    t->n += n;
    return true;
}

static bool put_point(struct bh_json_reader *r, struct text *t, uint32_t c)
{
    char u[4];
    if (c == 0)
        return fail(r, "a string has a NUL in it");
    if (c < 0x80) {
        u[0] = (char)c;
        return put(r, t, u, 1);
    }
    if (c < 0x800) {
        u[0] = (char)(0xc0 | c >> 6);
        u[1] = (char)(0x80 | (c & 0x3f));
        return put(r, t, u, 2);
    }
    if (c < 0x10000) {
        u[0] = (char)(0xe0 | c >> 12);
        u[1] = (char)(0x80 | (c >> 6 & 0x3f));
        u[2] = (char)(0x80 | (c & 0x3f));
        return put(r, t, u, 3);
    }
    u[0] = (char)(0xf0 | c >> 18);
    u[1] = (char)(0x80 | (c >> 12 & 0x3f));
    u[2] = (char)(0x80 | (c >> 6 & 0x3f));
    u[3] = (char)(0x80 | (c & 0x3f));
    return put(r, t, u, 4);
}

static bool hex4(struct bh_json_reader *r, uint32_t *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at == r->end)
            return ran_out(r);
        const char c = bh_to_lower(*r->at);
        if (!bh_is_digit(c) && (c < 'a' || c > 'f'))
            return fail(r, "a \\u has no four hexadecimal digits");
        *ret = *ret << 4 | (uint32_t)(bh_is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* Behind a `\u`; two of them for what is past the first plane. */
static bool escaped_point(struct bh_json_reader *r, struct text *t)
{
    uint32_t c, low;
    if (!hex4(r, &c))
        return false;
    if (c >= 0xdc00 && c <= 0xdfff)
        return fail(r, "a \\u is half of a pair");
    if (c < 0xd800 || c > 0xdbff)
        return put_point(r, t, c);
    for (const char *want = "\\u"; *want; want++, r->at++) {
        if (r->at == r->end)
            return ran_out(r);
        if (*r->at != *want)
            return fail(r, "a \\u is half of a pair");
    }
    if (!hex4(r, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return fail(r, "a \\u is half of a pair");
    return put_point(r, t, 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00)));
}

static bool escape(struct bh_json_reader *r, struct text *t)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return ran_out(r);
    const char c = *r->at++;
    if (c == 'u')
        return escaped_point(r, t);
    const char *at = c ? strchr(from, c) : NULL;
    return at ? put(r, t, &to[at - from], 1) : fail(r, "an escape that is none");
}

static bool string(struct bh_json_reader *r, struct text *t)
{
    const char c = next(r);
    if (!c)
        return false;
    if (c != '"')
        return fail(r, "a string was expected");
    r->at++;
    while (r->at < r->end) {
        const char b = *r->at++;
        if (b == '"') {
            if (t->at)
                t->at[t->n] = '\0';
            return true;
        }
        if ((unsigned char)b < 0x20)
            return fail(r, "a control character in a string");
        if (!(b == '\\' ? escape(r, t) : put(r, t, &b, 1)))
            return false;
    }
    return ran_out(r);
}

bool bh_json_read_str(struct bh_json_reader *r, char *buf, size_t size)
{
    struct text t = {.at = buf, .size = size};
    return string(r, &t);
}

bool bh_json_read_member(struct bh_json_reader *r, char *key, size_t size)
{
    struct text t = {.at = key, .size = size, .cut = true};
    if (!more(r, '}') || !string(r, &t))
        return false;
    const char c = next(r);
    if (!c)
        return false;
    if (c != ':')
        return fail(r, "a colon was expected");
    r->at++;
    return true;
}

/* ---- the other values ---- */

static bool digits(struct bh_json_reader *r)
{
    const char *first = r->at;
    while (r->at < r->end && bh_is_digit(*r->at))
        r->at++;
    if (r->at == r->end)
        return ran_out(r); /* the message is an object: no number is its end */
    return r->at > first || fail(r, "a number was expected");
}

bool bh_json_read_u64(struct bh_json_reader *r, uint64_t *ret)
{
    if (!next(r))
        return false;
    const char *first = r->at;
    if (!digits(r))
        return false;
    *ret = 0;
    for (const char *p = first; p < r->at; p++)
        if (__builtin_mul_overflow(*ret, 10, ret) || __builtin_add_overflow(*ret, (uint64_t)(*p - '0'), ret))
            return fail(r, "a number is too large");
    if ((*first == '0' && r->at - first > 1) || strchr(".eE", *r->at))
        return fail(r, "a whole number was expected");
    return true;
}

bool bh_json_read_i64(struct bh_json_reader *r, int64_t *ret)
{
    const bool below = next(r) == '-';
    uint64_t v;
    if (below)
        r->at++;
    /* Between a sign and its digits nothing may stand, not even a blank. */
    if (below && r->at < r->end && !bh_is_digit(*r->at))
        return fail(r, "a number was expected");
    if (!bh_json_read_u64(r, &v))
        return false;
    if (v > (uint64_t)INT64_MAX + below)
        return fail(r, "a number is too large");
    *ret = below ? (int64_t)(UINT64_C(0) - v) : (int64_t)v;
    return true;
}

static bool skip_number(struct bh_json_reader *r)
{
    if (*r->at == '-')
        r->at++;
    const char *first = r->at;
    if (!digits(r))
        return false;
    if (*first == '0' && r->at - first > 1)
        return fail(r, "a number begins with 0");
    if (*r->at == '.') {
        r->at++;
        if (!digits(r))
            return false;
    }
    if (*r->at != 'e' && *r->at != 'E')
        return true;
    r->at++;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
        r->at++;
    return digits(r);
}

static bool skip_word(struct bh_json_reader *r)
{
    static const char *const words[] = {"true", "false", "null"};
    const size_t left = (size_t)(r->end - r->at);
    for (size_t i = 0; i < BH_COUNT_OF(words); i++) {
        const size_t n = strlen(words[i]);
        if (left >= n && memcmp(r->at, words[i], n) == 0) {
            r->at += n;
            return true;
        }
        if (left < n && memcmp(r->at, words[i], left) == 0)
            return ran_out(r);
    }
    return fail(r, "a value was expected");
}

bool bh_json_read_bool(struct bh_json_reader *r, bool *ret)
{
    const char c = next(r);
    if (!c)
        return false;
    if (c != 't' && c != 'f')
        return fail(r, "true or false was expected");
    *ret = c == 't';
    return skip_word(r);
}

/* One value, or the beginning of an object or list. */
static bool skip_one(struct bh_json_reader *r)
{
    struct text none = {.at = NULL};
    switch (bh_json_read_peek(r)) {
    case '\0':
        return false;
    case '{':
        return bh_json_read_open(r, '{');
    case '[':
        return bh_json_read_open(r, '[');
    case '"':
        return string(r, &none);
    case '0':
        return skip_number(r);
    default:
        return skip_word(r);
    }
}

/* Not recursive: what comes from outside must not decide how deep the stack goes. */
bool bh_json_read_skip(struct bh_json_reader *r)
{
    char kind[BH_JSON_READ_DEPTH_MAX + 1] = {0};
    const unsigned outside = r->depth;
    for (;;) {
        const char c = bh_json_read_peek(r);
        if (!skip_one(r))
            return false;
        if (r->depth > outside && (c == '{' || c == '['))
            kind[r->depth] = c;
        /* On to the next element that has a value; out of all that end here. */
        for (;;) {
            if (r->depth == outside)
                return true;
            if (kind[r->depth] == '{' ? bh_json_read_member(r, NULL, 0) : bh_json_read_item(r))
                break;
            if (r->wrong)
                return false;
        }
    }
}

bool bh_json_read_raw(struct bh_json_reader *r, const char **ret, size_t *ret_n)
{
    if (!next(r))
        return false;
    const char *first = r->at;
    if (!bh_json_read_skip(r))
        return false;
    *ret = first;
    *ret_n = (size_t)(r->at - first);
    return true;
}

bool bh_json_read_end(struct bh_json_reader *r)
{
    blanks(r);
    if (!r->wrong && r->at < r->end)
        (void)fail(r, "something stands behind its end");
    return !r->wrong;
}
