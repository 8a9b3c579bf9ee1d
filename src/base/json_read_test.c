/* SPDX-License-Identifier: Apache-2.0 */
/* json_read_test.c - what is JSON, what is not, and what is not over yet. */
#include "base/json_read.h"

#include "base/mem.h"
#include "base/test.h"

#include <string.h>

/* The whole text as one value: 'y' right, 's' too short, 'n' wrong. */
static char verdict(const char *text)
{
    struct bh_json_reader r;
    bh_json_read_init(&r, text, strlen(text));
    if (bh_json_read_skip(&r) && bh_json_read_end(&r))
        return 'y';
    return r.is_short ? 's' : 'n';
}

TEST(values)
{
    static const struct {
        const char *text;
        char verdict;
    } cases[] = {
        {"{}", 'y'},
        {" [ ] ", 'y'},
        {"[1, -0.5e+7, 0, 10E2, true, false, null, \"x\", {\"a\": []}]\r\n\t", 'y'},
        {"{\"a\": {\"b\": [[{}], 1]}, \"c\": \"\\u00e4\\ud83d\\ude00\\n\\/\"}", 'y'},
        {"\"plain\"", 'y'},
        {"", 's'},
        {" ", 's'},
        {"{", 's'},
        {"[1", 's'},
        {"[1,", 's'},
        {"[-", 's'},
        {"[1.", 's'},
        {"[1e", 's'},
        {"[tru", 's'},
        {"{\"a", 's'},
        {"{\"a\"", 's'},
        {"{\"a\":", 's'},
        {"[\"\\", 's'},
        {"[\"\\u12", 's'},
        {"[\"\\ud83d", 's'},
        {"[\"\\ud83d\\ude", 's'},
        {"]", 'n'},
        {"[1 2]", 'n'},
        {"[,]", 'n'},
        {"[1,]", 'n'},
        {"{\"a\":1,}", 'n'},
        {"{\"a\" 1}", 'n'},
        {"{a:1}", 'n'},
        {"{1:1}", 'n'},
        {"[01]", 'n'},
        {"[+1]", 'n'},
        {"[.5]", 'n'},
        {"[1.e]", 'n'},
        {"[1e+]", 'n'},
        {"[truth]", 'n'},
        {"[\"\\x\"]", 'n'},
        {"[\"\\u12g4\"]", 'n'},
        {"[\"\\ude00\"]", 'n'},
        {"[\"\\ud83dx\"]", 'n'},
        {"[\"\\ud83d\\u0041\"]", 'n'},
        {"[\"a\nb\"]", 'n'},
        {"{} {}", 'n'},
        {"[}", 'n'},
        {"{]", 'n'},
        {"'a'", 'n'},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        const char got = verdict(cases[i].text);
        if (got != cases[i].verdict)
            printf("# %s\n", cases[i].text);
        CHECK_EQ(got, cases[i].verdict);
    }
}

TEST(depth_has_an_end)
{
    char text[256] = "";
    memset(text, '[', BH_JSON_READ_DEPTH_MAX);
    memset(text + BH_JSON_READ_DEPTH_MAX, ']', BH_JSON_READ_DEPTH_MAX);
    CHECK_EQ(verdict(text), 'y');
    memset(text, '[', BH_JSON_READ_DEPTH_MAX + 1);
    CHECK_EQ(verdict(text), 'n');
}

TEST(a_nul_is_no_blank)
{
    struct bh_json_reader r;
    bh_json_read_init(&r, "[\0]", 3);
    CHECK(!bh_json_read_skip(&r) && r.wrong && !r.is_short);
    bh_json_read_init(&r, "\"a\0b\"", 5);
    CHECK(!bh_json_read_skip(&r) && r.wrong && !r.is_short);
    char buf[8];
    bh_json_read_init(&r, "\"a\\u0000b\"", 10);
    CHECK(!bh_json_read_str(&r, buf, sizeof(buf)) && r.wrong);
}

TEST(strings_and_numbers)
{
    struct bh_json_reader r;
    char buf[8], key[4];
    uint64_t v = 1;
    const char *text = "{\"a\": \"\\u00e4\\u20ac\", \"long key\": 18446744073709551615, \"s\": \"1234567\"}";
    bh_json_read_init(&r, text, strlen(text));
    CHECK(bh_json_read_open(&r, '{'));
    CHECK(bh_json_read_member(&r, key, sizeof(key)));
    CHECK_STR(key, "a");
    CHECK_EQ(bh_json_read_peek(&r), '"');
    CHECK(bh_json_read_str(&r, buf, sizeof(buf)));
    CHECK_STR(buf, "\xc3\xa4\xe2\x82\xac");
    CHECK(bh_json_read_member(&r, key, sizeof(key)));
    CHECK_STR(key, "lon"); /* cut */
    CHECK(bh_json_read_u64(&r, &v) && v == UINT64_MAX);
    CHECK(bh_json_read_member(&r, key, sizeof(key)));
    CHECK(bh_json_read_str(&r, buf, sizeof(buf)));
    CHECK_STR(buf, "1234567");
    CHECK(!bh_json_read_member(&r, key, sizeof(key)));
    CHECK(bh_json_read_end(&r));
    static const char *const wrong[] = {
        "[18446744073709551616]", "[-1]", "[1.0]", "[1e3]", "[00]", "[\"1\"]"};
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++) {
        bh_json_read_init(&r, wrong[i], strlen(wrong[i]));
        CHECK(bh_json_read_open(&r, '[') && bh_json_read_item(&r));
        CHECK(!bh_json_read_u64(&r, &v) && r.wrong && !r.is_short);
    }
    bh_json_read_init(&r, "\"12345678\"", 10);
    CHECK(!bh_json_read_str(&r, buf, sizeof(buf)) && r.wrong && !r.is_short);
}

TEST(whole_numbers_with_a_sign)
{
    static const struct {
        const char *text;
        bool good;
        int64_t v;
    } cases[] = {
        {"[0]", true, 0},
        {"[-0]", true, 0},
        {"[-17]", true, -17},
        {"[9223372036854775807]", true, INT64_MAX},
        {"[-9223372036854775808]", true, INT64_MIN},
        {"[9223372036854775808]", false, 0},
        {"[-9223372036854775809]", false, 0},
        {"[- 1]", false, 0},
        {"[--1]", false, 0},
        {"[-]", false, 0},
        {"[-1.5]", false, 0},
        {"[-01]", false, 0},
        {"[true]", false, 0},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_json_reader r;
        int64_t v = 42;
        bh_json_read_init(&r, cases[i].text, strlen(cases[i].text));
        CHECK(bh_json_read_open(&r, '[') && bh_json_read_item(&r));
        CHECK_EQ(bh_json_read_i64(&r, &v), cases[i].good);
        CHECK_EQ(v, cases[i].good ? cases[i].v : 42);
        CHECK_EQ(r.wrong == NULL, cases[i].good);
    }
    struct bh_json_reader r;
    int64_t v;
    bh_json_read_init(&r, "[-", 2);
    CHECK(bh_json_read_open(&r, '[') && bh_json_read_item(&r));
    CHECK(!bh_json_read_i64(&r, &v) && r.is_short);
}

TEST(truth_and_raw_values)
{
    struct bh_json_reader r;
    const char *text = "[true,false, {\"a\": [1, \"]\"]} ,-1.5e3,null]", *raw;
    bool v = false;
    size_t n;
    bh_json_read_init(&r, text, strlen(text));
    CHECK(bh_json_read_open(&r, '['));
    CHECK(bh_json_read_item(&r) && bh_json_read_bool(&r, &v) && v);
    CHECK(bh_json_read_item(&r) && bh_json_read_bool(&r, &v) && !v);
    CHECK(bh_json_read_item(&r) && bh_json_read_raw(&r, &raw, &n));
    CHECK(n == strlen("{\"a\": [1, \"]\"]}") && memcmp(raw, "{\"a\": [1, \"]\"]}", n) == 0);
    CHECK(bh_json_read_item(&r) && bh_json_read_raw(&r, &raw, &n));
    CHECK(n == 6 && memcmp(raw, "-1.5e3", n) == 0);
    CHECK(bh_json_read_item(&r) && !bh_json_read_bool(&r, &v) && r.wrong);
    bh_json_read_init(&r, "[{\"a\": tru]", 11);
    CHECK(bh_json_read_open(&r, '[') && bh_json_read_item(&r) && !bh_json_read_raw(&r, &raw, &n) && r.wrong);
    bh_json_read_init(&r, "[tr", 3);
    CHECK(bh_json_read_open(&r, '[') && bh_json_read_item(&r) && !bh_json_read_bool(&r, &v) && r.is_short);
}

TEST(after_the_first_mistake_nothing_is_read)
{
    struct bh_json_reader r;
    char key[8];
    uint64_t v;
    bh_json_read_init(&r, "{\"a\" 1, \"b\": 2}", 15);
    CHECK(bh_json_read_open(&r, '{'));
    CHECK(!bh_json_read_member(&r, key, sizeof(key)));
    CHECK_STR(r.wrong, "a colon was expected");
    CHECK(!bh_json_read_member(&r, key, sizeof(key)) && !bh_json_read_u64(&r, &v) && !bh_json_read_item(&r));
    CHECK(!bh_json_read_open(&r, '[') && !bh_json_read_skip(&r) && !bh_json_read_end(&r));
    CHECK_EQ(bh_json_read_peek(&r), 0);
    CHECK_STR(r.wrong, "a colon was expected");
}

TEST_MAIN
