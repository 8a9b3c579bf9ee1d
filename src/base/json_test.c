/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer puts out is read back by a small strict checker below, so that
 * balance, commas, escapes and UTF-8 are held by something other than the writer.
 */
#include "base/choice.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/test.h"

struct reader {
    const unsigned char *at;
    struct bh_buf *text; /* the strings found, unescaped, one after the other, each ended by | */
};

static void blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\n')
        r->at++;
}

static bool utf8(struct reader *r)
{
    static const struct {
        unsigned char lo, hi, second_lo, second_hi, more;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 0}, {0xe0, 0xe0, 0xa0, 0xbf, 1}, {0xe1, 0xec, 0x80, 0xbf, 1},
        {0xed, 0xed, 0x80, 0x9f, 1}, {0xee, 0xef, 0x80, 0xbf, 1}, {0xf0, 0xf0, 0x90, 0xbf, 2},
        {0xf1, 0xf3, 0x80, 0xbf, 2}, {0xf4, 0xf4, 0x80, 0x8f, 2},
    };
    for (size_t i = 0; i < BH_COUNT_OF(forms); i++) {
        if (*r->at < forms[i].lo || *r->at > forms[i].hi)
            continue;
        size_t n = 2u + forms[i].more;
        if (r->at[1] < forms[i].second_lo || r->at[1] > forms[i].second_hi)
            return false;
        for (size_t k = 2; k < n; k++)
            if (r->at[k] < 0x80 || r->at[k] > 0xbf)
                return false;
        bh_buf_add(r->text, (const char *)r->at, n);
        r->at += n;
        return true;
    }
    return false;
}

static bool escape(struct reader *r)
{
    r->at++;
    if (*r->at == 'n' || *r->at == '"' || *r->at == '\\') {
        bh_buf_add(r->text, *r->at == 'n' ? "\n" : (const char *)r->at, 1);
        r->at++;
        return true;
    }
    if (*r->at++ != 'u')
        return false;
    unsigned v = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const char *digits = "0123456789abcdef", *d = *r->at ? strchr(digits, *r->at) : NULL;
        if (!d)
            return false;
        v = v * 16 + (unsigned)(d - digits);
    }
    char c = (char)v;
    bh_buf_add(r->text, &c, 1);
    return v > 0 && v < 0x20; /* the writer escapes nothing else this way */
}

static bool string(struct reader *r)
{
    if (*r->at++ != '"')
        return false;
    while (*r->at != '"') {
        if (*r->at < 0x20)
            return false;
        if (*r->at == '\\' || *r->at >= 0x80) {
            if (!(*r->at == '\\' ? escape(r) : utf8(r)))
                return false;
        } else {
            bh_buf_add(r->text, (const char *)r->at++, 1);
        }
    }
    r->at++;
    bh_buf_str(r->text, "|");
    return true;
}

static bool word(struct reader *r, const char *w)
{
    size_t n = strlen(w);
    if (strncmp((const char *)r->at, w, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool value(struct reader *r, int depth);

static bool container(struct reader *r, bool object, int depth)
{
    unsigned char end = object ? '}' : ']';
    r->at++;
    blanks(r);
    if (*r->at == end) {
        r->at++;
        return true;
    }
    for (;;) {
        blanks(r);
        if (object && (!string(r) || !word(r, ": ")))
            return false;
        if (!value(r, depth + 1))
            return false;
        blanks(r);
        if (*r->at == end) {
            r->at++;
            return true;
        }
        if (*r->at++ != ',')
            return false;
    }
}

static bool value(struct reader *r, int depth)
{
    if (depth > BH_JSON_DEPTH_MAX)
        return false;
    if (*r->at == '{' || *r->at == '[')
        return container(r, *r->at == '{', depth);
    if (*r->at == '"')
        return string(r);
    if (*r->at >= '0' && *r->at <= '9') {
        bool zero = *r->at++ == '0';
        if (zero)
            return !(*r->at >= '0' && *r->at <= '9');
        while (*r->at >= '0' && *r->at <= '9')
            r->at++;
        return true;
    }
    return word(r, "true") || word(r, "false") || word(r, "null");
}

/* Is this one JSON document and a newline? Its strings go to *text. */
static bool valid(const char *json, struct bh_buf *text)
{
    struct reader r = {(const unsigned char *)json, text};
    return value(&r, 0) && strcmp((const char *)r.at, "\n") == 0;
}

struct doc {
    struct bh_buf out, text;
    struct bh_json j;
};

static void doc_init(struct doc *d, size_t max)
{
    bh_buf_init(&d->out, max);
    bh_buf_init(&d->text, 1 << 22);
    bh_json_init(&d->j, &d->out);
}

static void doc_fini(struct doc *d)
{
    bh_buf_fini(&d->out);
    bh_buf_fini(&d->text);
}

TEST(nested_document_is_laid_out_for_people)
{
    struct doc d BH_AUTO(doc_fini);
    doc_init(&d, 4096);
    bh_json_open(&d.j, '{');
    bh_json_key_u64(&d.j, "version", 1);
    bh_json_key(&d.j, "findings");
    bh_json_open(&d.j, '[');
    bh_json_open_flat(&d.j, '{');
    bh_json_key_str(&d.j, "rule", "BH-020");
    bh_json_key(&d.j, "refs");
    bh_json_open(&d.j, '['); /* inside a flat one: flat too */
    bh_json_str(&d.j, "R110");
    bh_json_str(&d.j, NULL);
    bh_json_close(&d.j, ']');
    bh_json_key_bool(&d.j, "waived", false);
    bh_json_close(&d.j, '}');
    bh_json_close(&d.j, ']');
    bh_json_key(&d.j, "none");
    bh_json_open(&d.j, '[');
    bh_json_close(&d.j, ']');
    bh_json_close(&d.j, '}');
    static const char expected[] =
        "{\n"
        "  \"version\": 1,\n"
        "  \"findings\": [\n"
        "    {\"rule\": \"BH-020\", \"refs\": [\"R110\", null], \"waived\": false}\n"
        "  ],\n"
        "  \"none\": []\n"
        "}\n";
    CHECK_STR(bh_buf_text(&d.out), expected);
    CHECK(valid(bh_buf_text(&d.out), &d.text));
}

TEST(numbers_reach_their_ends)
{
    struct doc d BH_AUTO(doc_fini);
    doc_init(&d, 4096);
    bh_json_open_flat(&d.j, '[');
    bh_json_u64(&d.j, 0);
    bh_json_u64(&d.j, UINT64_MAX);
    bh_json_bool(&d.j, true);
    bh_json_fixed(&d.j, 12345, 3);
    bh_json_fixed(&d.j, 5, 4);
    bh_json_fixed(&d.j, UINT64_MAX, 19);
    bh_json_close(&d.j, ']');
    CHECK_STR(bh_buf_text(&d.out),
              "[0, 18446744073709551615, true, 12.345, 0.0005, 1.8446744073709551615]\n");
}

static bool writes(const char *s, const char *expected)
{
    struct doc d BH_AUTO(doc_fini);
    doc_init(&d, 4096);
    bh_json_open_flat(&d.j, '[');
    bh_json_str(&d.j, s);
    bh_json_close(&d.j, ']');
    bool same = strcmp(bh_buf_text(&d.out), expected) == 0;
    if (!same)
        printf("# %s#   expected %s", bh_buf_text(&d.out), expected);
    return same && valid(bh_buf_text(&d.out), &d.text);
}

TEST(hostile_strings_stay_strings)
{
    CHECK(writes("", "[\"\"]\n"));
    CHECK(writes("a\"b\\c", "[\"a\\\"b\\\\c\"]\n"));
    CHECK(writes("\x1b[31m\r\n\t\x01", "[\"\\u001b[31m\\u000d\\n\\u0009\\u0001\"]\n"));
    CHECK(writes("\x7f", "[\"\x7f\"]\n"));
    CHECK(writes("caf\xc3\xa9 \xe2\x82\xac", "[\"caf\xc3\xa9 \xe2\x82\xac\"]\n"));
    CHECK(writes("\xf0\x9f\x98\x80", "[\"\xf0\x9f\x98\x80\"]\n"));
}

#define FFFD "\xef\xbf\xbd"
TEST(what_is_not_utf8_is_replaced)
{
    CHECK(writes("\xff", "[\"" FFFD "\"]\n"));
    CHECK(writes("\xc3", "[\"" FFFD "\"]\n"));                            /* cut short */
    CHECK(writes("\xe2\x82", "[\"" FFFD FFFD "\"]\n"));                   /* cut short */
    CHECK(writes("\xf0\x9f\x98", "[\"" FFFD FFFD FFFD "\"]\n"));          /* cut short */
    CHECK(writes("\xc0\xaf", "[\"" FFFD FFFD "\"]\n"));                   /* overlong '/' */
    CHECK(writes("\xe0\x80\xaf", "[\"" FFFD FFFD FFFD "\"]\n"));          /* overlong */
    CHECK(writes("\xed\xa0\x80", "[\"" FFFD FFFD FFFD "\"]\n"));          /* a surrogate */
    CHECK(writes("\xf4\x90\x80\x80", "[\"" FFFD FFFD FFFD FFFD "\"]\n")); /* past U+10FFFF */
    CHECK(writes("\xf4\x8f\xbf\xbf", "[\"\xf4\x8f\xbf\xbf\"]\n"));
    CHECK(writes("\xc3\"", "[\"" FFFD "\\\"\"]\n")); /* the quote after it is still escaped */
    CHECK(writes("\x80"
                 "abc",
                 "[\"" FFFD "abc\"]\n"));
}

TEST(a_buffer_too_small_says_so)
{
    for (size_t max = 0; max < 40; max++) {
        struct doc d BH_AUTO(doc_fini);
        doc_init(&d, max);
        bh_json_open(&d.j, '{');
        bh_json_key_str(&d.j, "message", "a \"quoted\" word");
        bh_json_close(&d.j, '}');
        CHECK_EQ(d.out.full, max < 37);
        CHECK(d.out.n <= max);
    }
}

static void write_string(struct bh_choice *c, struct doc *d, struct bh_buf *expected, bool key)
{
    static const unsigned char letters[] = {
        'a', '"', '\\', '\n', 1, 0x1f, 0x7f, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xff,
    };
    char s[9];
    uint32_t n = bh_choose(c, sizeof(s));
    bool ascii = true;
    for (uint32_t i = 0; i < n; i++) {
        s[i] = (char)letters[bh_choose(c, sizeof(letters))];
        ascii &= (unsigned char)s[i] < 0x80;
    }
    s[n] = '\0';
    if (!ascii) { /* the replacement rule has its own test: here only what comes back unchanged */
        s[0] = 'z';
        s[1] = '\0';
    }
    bh_buf_printf(expected, "%s|", s);
    if (key)
        bh_json_key(&d->j, s);
    else
        bh_json_str(&d->j, s);
}

static void write_value(struct bh_choice *c, struct doc *d, struct bh_buf *expected)
{
    uint32_t what = bh_choose(c, d->j.depth + 1 < BH_JSON_DEPTH_MAX ? 8 : 4);
    bool object = what & 1;
    switch (what) {
    case 0:
        bh_json_u64(&d->j, bh_choose(c, UINT32_MAX));
        return;
    case 1:
        bh_json_bool(&d->j, bh_choose(c, 2));
        return;
    case 2:
    case 3:
        write_string(c, d, expected, false);
        return;
    default:
        if (what < 6)
            bh_json_open(&d->j, object ? '{' : '[');
        else
            bh_json_open_flat(&d->j, object ? '{' : '[');
    }
    for (uint32_t n = bh_choose(c, 6); n && c->left; n--) {
        if (object)
            write_string(c, d, expected, true);
        write_value(c, d, expected);
    }
    bh_json_close(&d->j, object ? '}' : ']');
}

/* Whatever is written in whatever shape, a strict reader takes it and finds the same strings. */
TEST(any_document_reads_back)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint8_t bytes[600];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct doc d BH_AUTO(doc_fini);
        struct bh_buf expected BH_AUTO(bh_buf_fini);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        doc_init(&d, 1 << 22);
        bh_buf_init(&expected, 1 << 22);
        bh_json_open(&d.j, '[');
        while (c.left)
            write_value(&c, &d, &expected);
        bh_json_close(&d.j, ']');
        if (!valid(bh_buf_text(&d.out), &d.text)) {
            printf("# seed %" PRIu64 "\n", seed);
            CHECK_STR(bh_buf_text(&d.out), "valid JSON");
        }
        CHECK_STR(bh_buf_text(&d.text), bh_buf_text(&expected));
    }
}

TEST(deepest_document)
{
    struct doc d BH_AUTO(doc_fini);
    doc_init(&d, 1 << 16);
    for (int i = 0; i < BH_JSON_DEPTH_MAX - 1; i++) {
        bh_json_open(&d.j, '[');
        bh_json_u64(&d.j, 1);
    }
    for (int i = 0; i < BH_JSON_DEPTH_MAX - 1; i++)
        bh_json_close(&d.j, ']');
    CHECK(valid(bh_buf_text(&d.out), &d.text));
}

TEST(numbers_below_zero)
{
    struct bh_buf out;
    struct bh_json j;
    bh_buf_init(&out, 4096);
    bh_json_init(&j, &out);
    bh_json_open_flat(&j, '{');
    bh_json_key_i64(&j, "least", INT64_MIN);
    bh_json_key_i64(&j, "error", -4);
    bh_json_key_i64(&j, "more", 4);
    bh_json_close(&j, '}');
    CHECK(strstr(bh_buf_text(&out), "\"least\": -9223372036854775808") != NULL);
    CHECK(strstr(bh_buf_text(&out), "\"error\": -4") != NULL &&
          strstr(bh_buf_text(&out), "\"more\": 4") != NULL);
    bh_buf_fini(&out);
}

TEST_MAIN
