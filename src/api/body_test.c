/* SPDX-License-Identifier: Apache-2.0 */
/* body_test.c - what the tables let in and what they refuse, with the words of it; problems as JSON. */
#include "api/body.h"

#include "api/ops.h"
#include "base/test.h"

static const char *const colours[] = {"red", "green"};
static const struct bh_words colour_words = {colours, 2};

struct inner {
    uint64_t n;
};
struct outer {
    const char *text, *name, *word;
    uint64_t n, id;
    int64_t i;
    bool yes;
    struct bh_api_texts texts;
    void *one;
    struct bh_api_objects many;
};
static const struct bh_api_field inner_fields[] = {
    {BH_API_FIELD("n", U64, struct inner, n), .required = true, .max = 9, .doc = "a digit"},
};
static const struct bh_api_shape inner_shape = {"Inner", inner_fields, 1, sizeof(struct inner)};
static const struct bh_api_field outer_fields[] = {
    {BH_API_FIELD("text", TEXT, struct outer, text), .max = 8, .doc = "some"},
    {BH_API_FIELD("name", NAME, struct outer, name), .doc = "a name"},
    {BH_API_FIELD("word", WORD, struct outer, word), .words = &colour_words, .doc = "a colour"},
    {BH_API_FIELD("n", U64, struct outer, n), .max = 100, .doc = "a number"},
    {BH_API_FIELD("i", I64, struct outer, i), .max = 5, .doc = "with a sign"},
    {BH_API_FIELD("id", ID, struct outer, id), .letter = 'J', .doc = "a job"},
    {BH_API_FIELD("yes", BOOL, struct outer, yes), .doc = "or no"},
    {BH_API_FIELD("texts", TEXTS, struct outer, texts), .most = 12, .max = 4, .doc = "several"},
    {BH_API_FIELD("one", ONE, struct outer, one), .of = &inner_shape, .doc = "an inner one"},
    {BH_API_FIELD("many", MANY, struct outer, many), .most = 2, .of = &inner_shape, .doc = "inner ones"},
};
static const struct bh_api_shape outer_shape = {"Outer", outer_fields, BH_COUNT_OF(outer_fields),
                                                sizeof(struct outer)};

TEST(everything_at_once)
{
    static const char text[] =
        "{\"text\": \"\\u00e4\", \"name\": \"a-1\", \"word\": \"green\", \"n\": 100, \"i\": -5, \"id\": \"J17\","
        " \"yes\": true, \"texts\": [\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"\"],"
        " \"one\": {\"n\": 9}, \"many\": [{\"n\": 1}, {\"n\": 2}]}";
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct bh_api_problem p = {0};
    struct outer o;
    CHECK_EQ(bh_api_body_read(&outer_shape, text, strlen(text), &arena, &o, &p), 0);
    CHECK_STR(o.text, "\xc3\xa4");
    CHECK_STR(o.name, "a-1");
    CHECK_STR(o.word, "green");
    CHECK(o.n == 100 && o.i == -5 && o.id == 17 && o.yes);
    CHECK_EQ(o.texts.n, 10);
    CHECK_STR(o.texts.at[8], "9");
    CHECK_STR(o.texts.at[9], "");
    CHECK_EQ(((struct inner *)o.one)->n, 9);
    CHECK_EQ(o.many.n, 2);
    CHECK_EQ(((struct inner *)o.many.at)[1].n, 2);
    CHECK_EQ(bh_api_body_read(&outer_shape, "{}", 2, &arena, &o, &p), 0);
    CHECK(!o.text && !o.n && !o.one && !o.texts.n);
}

/* Whoever has the list may walk it to its NULL, however many there are. */
TEST(a_list_of_texts_ends_with_null)
{
    for (size_t n = 1; n <= 12; n++) {
        BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
        struct bh_api_problem p = {0};
        struct outer o;
        char text[128];
        size_t at = (size_t)snprintf(text, sizeof(text), "{\"texts\": [");
        for (size_t i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\"abc\"", i ? "," : "");
        at += (size_t)snprintf(text + at, sizeof(text) - at, "]}");
        CHECK_EQ(bh_api_body_read(&outer_shape, text, at, &arena, &o, &p), 0);
        CHECK_EQ(o.texts.n, n);
        CHECK(o.texts.at[n] == NULL);
    }
}

TEST(what_is_refused)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "ends in the middle"},
        {"{", "ends in the middle"},
        {"[]", "an object was expected"},
        {"{} {}", "behind its end"},
        {"{\"txt\": \"x\"}", "there is no field 'txt'; 'text' was perhaps meant"},
        {"{\"zzzzzzzz\": 1}", "there is no field 'zzzzzzzz'"},
        {"{\"n\": 1, \"n\": 1}", "'n' is given twice"},
        {"{\"n\": null}", "field 'n' is not a whole number from 0 to 100"},
        {"{\"n\": 101}", "field 'n' is not a whole number from 0 to 100"},
        {"{\"n\": 1.5}", "a whole number was expected"},
        {"{\"n\": -1}", "field 'n': a number was expected"},
        {"{\"i\": -6}", "from -5 to 5"},
        {"{\"i\": 9223372036854775808}", "a number is too large"},
        {"{\"text\": \"\"}", "a text of 1 to 8 bytes"},
        {"{\"text\": \"123456789\"}", "a text of 1 to 8 bytes"},
        {"{\"text\": \"\xff\"}", "a text of 1 to 8 bytes of UTF-8"},
        {"{\"text\": [\"x\"]}", "a text"},
        {"{\"name\": \"A\"}", "a name of lower-case"},
        {"{\"word\": \"blue\"}", "one of red, green"},
        {"{\"id\": \"L17\"}", "an id like J17"},
        {"{\"id\": \"J0\"}", "an id like J17"},
        {"{\"id\": \"J9223372036854775808\"}", "an id like J17"},
        {"{\"id\": 17}", "an id like J17"},
        {"{\"yes\": \"true\"}", "true or false"},
        {"{\"texts\": [1]}", "a list of at most 12 texts"},
        {"{\"texts\": [\"12345\"]}", "a list of at most 12 texts of at most 4 bytes"},
        {"{\"texts\": [\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]}",
         "a list of at most 12"},
        {"{\"texts\": [\"a\"", "ends in the middle"},
        {"{\"one\": {}}", "field 'n' is missing: a digit"},
        {"{\"one\": {\"m\": 1}}", "there is no field 'm'"},
        {"{\"one\": []}", "an object"},
        {"{\"many\": [{\"n\": 1}, {\"n\": 1}, {\"n\": 1}]}", "a list of at most 2 objects"},
        {"{\"many\": [7]}", "an object was expected"},
        {"{\"\xff\": 1}", "is not UTF-8"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
        struct bh_api_problem p = {0};
        struct outer o;
        const int rc = bh_api_body_read(&outer_shape, cases[i].text, strlen(cases[i].text), &arena, &o, &p);
        if (rc != BH_INVALID || !strstr(p.err.msg, cases[i].words))
            printf("# %s\n#   %s\n", cases[i].text, p.err.msg);
        CHECK_EQ(rc, BH_INVALID);
        CHECK_EQ(p.err.code, BH_INVALID);
        CHECK(strstr(p.err.msg, cases[i].words));
    }
}

static int query(const char *name, const char *value, uint32_t *seen, struct outer *o,
                 struct bh_api_problem *p)
{
    static struct bh_arena arena; /* goes with the process */
    return bh_api_query_read(&outer_shape, name, value, seen, &arena, o, p);
}

TEST(queries)
{
    struct bh_api_problem p = {0};
    struct outer o = {0};
    uint32_t seen = 0;
    CHECK_EQ(query("n", "7", &seen, &o, &p), 0);
    CHECK_EQ(query("yes", "true", &seen, &o, &p), 0);
    CHECK_EQ(query("id", "9", &seen, &o, &p), 0);
    CHECK_EQ(query("word", "red", &seen, &o, &p), 0);
    CHECK(o.n == 7 && o.yes && o.id == 9);
    CHECK_STR(o.word, "red");
    CHECK_EQ(query("n", "7", &seen, &o, &p), BH_INVALID); /* twice */
    seen = 0;
    CHECK_EQ(query("n", "101", &seen, &o, &p), BH_INVALID);
    seen = 0;
    CHECK_EQ(query("n", "", &seen, &o, &p), BH_INVALID);
    CHECK_EQ(query("yes", "1", &seen, &o, &p), BH_INVALID);
    CHECK_EQ(query("nn", "1", &seen, &o, &p), BH_INVALID);
    CHECK_EQ(bh_api_shape_done(&inner_shape, 0, &p), BH_INVALID);
    CHECK_EQ(bh_api_shape_done(&inner_shape, 1, &p), 0);
}

TEST(problems_as_json)
{
    struct bh_api_problem p = {0};
    struct bh_buf out;
    bh_buf_init(&out, 4096);
    CHECK_EQ(bh_api_refuse(&p, BH_QUOTA, "no \"%s\"", "more"), BH_QUOTA);
    CHECK_EQ(bh_api_problem_http(&p), 409);
    bh_api_hint(&p, "2", NULL, "wait");
    bh_api_problem_json(&out, &p);
    CHECK_STR(bh_buf_text(&out),
              "{\n  \"error\": {\n    \"code\": \"quota_exceeded\",\n    \"message\": \"no \\\"more\\\"\",\n"
              "    \"needed\": \"2\",\n    \"next\": \"wait\"\n  }\n}\n");
    p.http = 405;
    CHECK_EQ(bh_api_problem_http(&p), 405);
    bh_buf_fini(&out);
}

TEST_MAIN
