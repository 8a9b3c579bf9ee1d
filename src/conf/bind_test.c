/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/bind.h"

#include "base/test.h"

struct part {
    const char *name;
    uint32_t n;
};

struct thing {
    const char *name, *label, *text;
    struct bh_text placed;
    bh_text_vec texts;
    bool yes, has_n;
    uint8_t fact, word;
    uint32_t words, n, share;
    int32_t numa, day;
    int64_t instant;
    uint64_t count, size, duration, money;
    struct bh_pos n_pos, inner_pos;
    struct {
        uint32_t deep;
    } inner;
    BH_VEC(struct part) parts;
    unsigned n_fn;
};

static void *add_part(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct thing *t = base;
    struct part *p = bh_vec_push(&t->parts);
    *p = (struct part){.n = pos.line};
    return p;
}

static unsigned n_done;
static void part_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    (void)item;
    n_done += b->scope && strcmp(b->scope->kind, "part") == 0 && ((struct part *)base)->name;
}

static void count_call(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    (void)b;
    (void)key;
    (void)v;
    ((struct thing *)base)->n_fn++;
}

static const struct bh_field part_fields[] = {{BH_FIELD("name", NAME, struct part, name), .required = true}};
BH_TABLE(part_table, part_fields);
static const struct bh_each each_part = {"part", &part_table, add_part, part_done};

static const struct bh_field inner_fields[] = {
    {BH_FIELD("deep", UINT, struct thing, inner.deep), .min = 2, .max = 9}};
BH_TABLE(inner_table, inner_fields);

static const struct bh_field thing_fields[] = {
    {BH_FIELD("name", NAME, struct thing, name)},
    {BH_FIELD("label", LABEL, struct thing, label)},
    {BH_FIELD("text", TEXT, struct thing, text)},
    {BH_FIELD("placed", PLACED, struct thing, placed)},
    {BH_FIELD("texts", TEXTS, struct thing, texts)},
    {BH_FIELD("yes", BOOL, struct thing, yes)},
    {BH_FIELD("fact", FACT, struct thing, fact)},
    {BH_FIELD("word", WORD, struct thing, word), .of.words = &bh_words_pace},
    {BH_FIELD("words", WORDS, struct thing, words), .of.words = &bh_words_tier},
    {BH_FIELD("n", UINT, struct thing, n), .max = 10, BH_HAS(struct thing, has_n),
     BH_POS(struct thing, n_pos)},
    {BH_FIELD("share", SHARE, struct thing, share)},
    {BH_FIELD("numa", INT, struct thing, numa), .max = 7},
    {BH_FIELD("day", DATE, struct thing, day)},
    {BH_FIELD("instant", INSTANT, struct thing, instant)},
    {BH_FIELD("count", COUNT, struct thing, count), .max = 5000},
    {BH_FIELD("size", SIZE, struct thing, size)},
    {BH_FIELD("duration", DURATION, struct thing, duration)},
    {BH_FIELD("money", MONEY, struct thing, money)},
    {BH_FIELD_MAP("inner", &inner_table), BH_POS(struct thing, inner_pos)},
    {BH_FIELD_EACH("parts", &each_part)},
    {BH_FIELD_FN("fn", count_call)},
};
BH_TABLE(thing_table, thing_fields);

static struct thing thing;
static struct bh_arena arena;
static struct bh_diags diags;
static char all[2048];

/* Everything said, a line each, without its place. */
static const char *bind(const char *text)
{
    struct bh_tree t;
    struct bh_tree_error why;
    struct bh_bind b = {.arena = &arena, .d = &diags};
    bh_vec_fini(&thing.texts);
    bh_vec_fini(&thing.parts);
    bh_diags_fini(&diags);
    bh_arena_fini(&arena);
    thing = (struct thing){.numa = -1};
    n_done = 0;
    if (bh_tree_parse(&t, text, strlen(text), &why) < 0)
        return "not YAML";
    bh_bind_map(&b, &thing_table, t.docs.at[0], &thing);
    bh_tree_fini(&t); /* what was kept must not point into it */
    size_t n = 0;
    all[0] = '\0';
    for (size_t i = 0; i < diags.at.n; i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s\n", diags.at.at[i].message);
    return all;
}

TEST(every_kind_of_value)
{
    CHECK_STR(
        bind(
            "name: a-1\nlabel: A.b_c\ntext: 5\nplaced: here\ntexts: [x, 'y']\nyes: on\nfact: no\nword: bursty\n"
            "words: [vm, cvm]\nn: 10\nshare: 12.5%\nnuma: 0\nday: 1970-01-02\ninstant: 1970-01-01T00:00:07Z\n"
            "count: 0.125\nsize: 1.5MiB\nduration: 2s\nmoney: 0.000001\ninner: {deep: 9}\n"
            "parts: [{name: p}, {name: q}]\nfn: [anything]\n"),
        "");
    CHECK_STR(thing.name, "a-1");
    CHECK_STR(thing.label, "A.b_c");
    CHECK_STR(thing.text, "5");
    CHECK_STR(thing.placed.s, "here");
    CHECK_EQ(thing.placed.pos.line, 4);
    CHECK_EQ(thing.placed.pos.column, 9);
    CHECK_EQ(thing.texts.n, 2);
    CHECK_STR(thing.texts.at[1].s, "y");
    CHECK(thing.yes && thing.has_n);
    CHECK_EQ(thing.fact, BH_FACT_NO);
    CHECK_EQ(thing.word, BH_PACE_BURSTY);
    CHECK_EQ(thing.words, 1u << BH_TIER_VM | 1u << BH_TIER_CVM);
    CHECK_EQ(thing.n, 10);
    CHECK_EQ(thing.n_pos.line, 10);
    CHECK_EQ(thing.n_pos.column, 1);
    CHECK_EQ(thing.share, 125000);
    CHECK_EQ(thing.numa, 0);
    CHECK_EQ(thing.day, 1);
    CHECK_EQ(thing.instant, 7);
    CHECK_EQ(thing.count, 125);
    CHECK_EQ(thing.size, 3 << 19);
    CHECK_EQ(thing.duration, 2000);
    CHECK_EQ(thing.money, 1);
    CHECK_EQ(thing.inner.deep, 9);
    CHECK_EQ(thing.inner_pos.line, 19);
    CHECK_EQ(thing.parts.n, 2);
    CHECK_STR(thing.parts.at[1].name, "q");
    CHECK_EQ(n_done, 2);
    CHECK_EQ(thing.n_fn, 1);
}

TEST(nulls_are_not_written)
{
    CHECK_STR(bind("name: ~\nn: null\nparts:\ninner: ~\nfn: ~\ntext: ''\n"), "");
    CHECK(!thing.has_n && !thing.name && !thing.text && !thing.n_fn);
    CHECK_EQ(thing.n_pos.line, 0);
}

TEST(a_refused_value_is_not_given)
{
    CHECK_STR(bind("n: 11\ncount: 6\nsize: 1\nyes: 1\n"),
              "`n` needs a whole number from 0 to 10; found '11'\n"
              "`count` needs a count from 0 to 5; found '6'\n"
              "`size`: '1' is not a size; write it like 20GiB (MiB, GiB, TiB, MB, GB, TB)\n"
              "`yes` needs true or false; found '1'\n");
    CHECK(!thing.has_n);
    CHECK_EQ(thing.n_pos.line, 1);
    CHECK_EQ(thing.count, 0);
}

TEST(where_it_happened)
{
    CHECK_STR(bind("inner: {deep: 1}\nparts: [{name: p, x: 1}, {}, 5]\n"),
              "`deep` of `inner` needs a whole number from 2 to 9; found '1'\n"
              "`x` is unknown here; known are `name`\n"
              "`name` of the part on line 2 is required\n"
              "`parts` needs each part to be a map; found '5'\n");
}

TEST(memory_goes_back)
{
    (void)bind("{}");
    bh_diags_fini(&diags);
    bh_arena_fini(&arena);
    CHECK(arena.head == NULL);
}

TEST_MAIN
