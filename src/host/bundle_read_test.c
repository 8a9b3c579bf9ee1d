/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle_read.h"

#include "base/mem.h"
#include "base/test.h"

struct seen {
    char a[8], items[4][8];
    size_t n;
    bool fits;
    char other[32];
};

static void read_a(struct bh_read *r)
{
    struct seen *s = r->into;
    s->fits = bh_read_text(r, s->a, sizeof(s->a));
}
static void read_one(struct bh_read *r)
{
    struct seen *s = r->into;
    if (s->n < 4)
        (void)bh_read_text(r, s->items[s->n++], sizeof(s->items[0]));
    else
        (void)bh_json_read_skip(&r->json);
}
static void read_items(struct bh_read *r)
{
    bh_read_list(r, read_one);
}
static void read_other(struct bh_read *r, const char *key)
{
    struct seen *s = r->into;
    const char *text;
    size_t n;
    bh_read_raw(r, &text, &n);
    (void)snprintf(s->other, sizeof(s->other), "%s:%.*s", key, (int)n, text);
}

static const char *take(const char *text, struct seen *s)
{
    static const struct bh_read_member members[] = {{"a", read_a}, {"items", read_items}};
    struct bh_read r = {.into = s};
    *s = (struct seen){0};
    bh_json_read_init(&r.json, text, strlen(text));
    bh_read_object(&r, members, BH_COUNT_OF(members), read_other);
    return bh_read_end(&r);
}

TEST(members)
{
    struct seen s;
    CHECK(!take("{\"a\": \"x\", \"items\": [\"p\", 3, \"q\"], \"z\": {\"k\": [1]} }", &s));
    CHECK(s.fits);
    CHECK_STR(s.a, "x");
    CHECK_STR(s.items[0], "p");
    CHECK_STR(s.items[1], ""); /* a number is no text */
    CHECK_STR(s.items[2], "q");
    CHECK_STR(s.other, "z:{\"k\": [1]}");
    /* what is something else than expected is passed over */
    CHECK(!take("{\"a\": [], \"items\": null}", &s));
    CHECK(!s.fits && s.n == 0);
    CHECK(!take("{\"a\": \"longer than it may be\"}", &s));
    CHECK(!s.fits && !*s.a);
    CHECK(!take("[]", &s));
}

TEST(what_runtimes_read_differently)
{
    struct seen s;
    CHECK_STR(take("{\"a\": 1, \"a\": 2}", &s), "a key stands there twice");
    CHECK(take("{\"A\": 1}", &s));
    CHECK(take("{\"itemS\": 1}", &s));
    CHECK(take("{\"item\\u017f\": 1}", &s)); /* which Go folds to an s */
    CHECK(!take("{\"b\": 1, \"b\": 2}", &s));
}

TEST(broken_text)
{
    struct seen s;
    const char *const bad[] = {"",
                               "{",
                               "{\"a\"",
                               "{\"a\":}",
                               "{\"a\":\"x\"",
                               "{\"a\":\"x\"} x",
                               "{\"items\":[1,]}",
                               "{\"a\":\"\\q\"}"};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        CHECK(take(bad[i], &s));
}

TEST_MAIN
