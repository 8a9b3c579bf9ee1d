/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/tree.h"

#include "base/buf.h"
#include "base/choice.h"
#include "base/test.h"

static struct bh_tree tree;
static struct bh_tree_error why;

static int parse_n(const char *text, size_t n)
{
    bh_tree_fini(&tree);
    why = (struct bh_tree_error){0};
    return bh_tree_parse(&tree, text, n, &why);
}

static int parse(const char *text)
{
    return parse_n(text, strlen(text));
}

#define CHECK_WHY(text_, line_, column_, message_) \
    do {                                           \
        CHECK_EQ(parse(text_), BH_INVALID);        \
        CHECK_STR(why.message, message_);          \
        CHECK_EQ(why.line, line_);                 \
        CHECK_EQ(why.column, column_);             \
        CHECK_EQ(tree.docs.n, 0);                  \
    } while (0)

TEST(places_of_everything)
{
    CHECK_EQ(parse("a: 1\nlist:\n  - name: x\n    n: [p, \"q\"]\n  - {y: z}\n"), 0);
    CHECK_EQ(tree.docs.n, 1);
    const struct bh_node *root = tree.docs.at[0];
    CHECK_EQ(root->kind, BH_NODE_MAP);
    CHECK_EQ(root->n, 2);
    const struct bh_node *list = bh_node_get(root, "list");
    CHECK_EQ(list->kind, BH_NODE_SEQ);
    CHECK_EQ(list->n, 2);
    CHECK_EQ(list->line, 3);
    CHECK_EQ(list->column, 3);
    const struct bh_node *item = list->u.first;
    CHECK_EQ(item->line, 3);
    CHECK_EQ(item->column, 5);
    const struct bh_node *q = bh_node_get(item, "n")->u.first->next;
    CHECK_STR(bh_node_text(q), "q");
    CHECK(q->quoted);
    CHECK_EQ(q->line, 4);
    CHECK_EQ(q->column, 12);
    CHECK(!bh_node_get(item, "n")->u.first->quoted);
    CHECK_STR(bh_node_text(bh_node_get(item->next, "y")), "z");
    CHECK_EQ(item->next->column, 5);
    CHECK_EQ(sizeof(struct bh_node), 32);
}

TEST(paths_and_words)
{
    CHECK_EQ(parse("a: {b: {c: d}}\nt: true\nf: OFF\nq: \"true\"\nn: ~\ne:\nnull: Null\ns: ''\n"), 0);
    const struct bh_node *r = tree.docs.at[0];
    CHECK_STR(bh_node_text(bh_node_path(r, "a", "b", "c", NULL)), "d");
    CHECK(bh_node_path(r, "a", "x", "c", NULL) == NULL);
    CHECK(bh_node_path(r, "t", "x", NULL) == NULL);
    CHECK(bh_node_get(NULL, "a") == NULL);
    CHECK(bh_node_text(bh_node_get(r, "a")) == NULL);
    CHECK_EQ(bh_node_bool(bh_node_get(r, "t")), 1);
    CHECK_EQ(bh_node_bool(bh_node_get(r, "f")), 0);
    CHECK_EQ(bh_node_bool(bh_node_get(r, "q")), -1);
    CHECK_EQ(bh_node_bool(bh_node_get(r, "a")), -1);
    CHECK(bh_node_is_null(bh_node_get(r, "n")));
    CHECK(bh_node_is_null(bh_node_get(r, "e")));
    CHECK(bh_node_is_null(bh_node_get(r, "null")));
    CHECK(bh_node_is_null(NULL));
    CHECK(!bh_node_is_null(bh_node_get(r, "s")));
    CHECK(!bh_node_is_null(bh_node_get(r, "t")));
}

TEST(documents_json_and_blocks)
{
    CHECK_EQ(parse("---\na: 1\n---\n# nothing\n---\n- x\n...\n"), 0);
    CHECK_EQ(tree.docs.n, 2);
    CHECK_EQ(tree.docs.at[1]->kind, BH_NODE_SEQ);
    CHECK_EQ(parse("{\n\t\"a\": [1, 2],\n\t\"b\": null\n}\n"), 0);
    CHECK_EQ(bh_node_get(tree.docs.at[0], "a")->n, 2);
    CHECK_EQ(parse("t: |\n  one\n  two\nu: >\n  three\n"), 0);
    const struct bh_node *t = bh_node_get(tree.docs.at[0], "t");
    CHECK(t->literal);
    CHECK(t->quoted);
    CHECK_EQ(t->line, 1);
    CHECK_STR(t->u.text, "one\ntwo\n");
    CHECK(!bh_node_get(tree.docs.at[0], "u")->literal);
    CHECK_EQ(parse("!!str 5"), 0);
    CHECK(tree.docs.at[0]->quoted);
}

TEST(nothing_is_no_document)
{
    CHECK_EQ(parse(""), 0);
    CHECK_EQ(tree.docs.n, 0);
    CHECK_EQ(parse("\n# only words\n"), 0);
    CHECK_EQ(tree.docs.n, 0);
    CHECK_EQ(parse_n(NULL, 0), 0);
    CHECK(bh_tree_comment(&tree, 1) == NULL);
}

TEST(byte_order_mark_and_carriage_returns)
{
    CHECK_EQ(parse("\xef\xbb\xbf"
                   "a: b\r\nc: d # five\r\n"),
             0);
    const struct bh_node *a = tree.docs.at[0]->u.first;
    CHECK_STR(a->u.text, "a");
    CHECK_EQ(a->column, 1);
    CHECK_EQ(a->next->next->line, 2);
    CHECK_STR(bh_node_text(bh_node_get(tree.docs.at[0], "c")), "d");
    CHECK_STR(bh_tree_comment(&tree, 2), "five");
    CHECK_EQ(parse_n("\xff\xfe"
                     "a\0",
                     4),
             BH_INVALID);
    CHECK_STR(why.message, "the text is UTF-16; save it as UTF-8");
}

TEST(what_is_not_yaml)
{
    CHECK_WHY("a: 1\n\tb: 2\n", 2, 1, "a tab cannot indent; use spaces");
    CHECK_WHY("\xc3\xa4: 1\n\tb: 2\n", 2, 1, "a tab cannot indent; use spaces");
    CHECK_WHY("a: b: c\n", 1, 5,
              "a `:` cannot stand here; check the indentation, or quote the text that holds it");
    CHECK_WHY("a: [1, 2\nb: 3\n", 2, 2,
              "a `,` or the closing `]` was expected here (the list begins on line 1)");
    CHECK_WHY("a: \"x\n", 2, 1, "the file ends inside a quoted text (the text begins on line 1)");
    CHECK_WHY("a: 1\nb: \xff\n", 2, 4, "the text is not UTF-8 here");
    CHECK_WHY("a: \xc3\xa4 \xc3(\n", 1, 7, "the text is not UTF-8 here");
    CHECK_WHY("a: \"b\\0c\"\n", 1, 4, "a text may not hold a NUL character");
    CHECK_WHY("? [a, b]\n: c\n", 1, 3, "a key must be a word or a text, not a list or a map");
    CHECK_EQ(parse_n("a: b\0c", 6), BH_INVALID);
    CHECK_STR(why.message, "a control character or a NUL stands in the text");
    CHECK_EQ(why.line, 1);
    CHECK_EQ(why.column, 5);
}

TEST(a_key_stands_once)
{
    CHECK_WHY("a: 1\nb: 2\na: 3\n", 3, 1, "`a` is written twice here: on line 1 and on line 3");
    CHECK_WHY("x:\n  - {p: 1, q: 2, p: 3}\n", 2, 18, "`p` is written twice here: on line 2 and on line 2");
    struct bh_buf b;
    bh_buf_init(&b, 1 << 20);
    for (int i = 0; i < 5000; i++)
        bh_buf_printf(&b, "key-%d: %d\n", i, i);
    CHECK_EQ(parse(bh_buf_text(&b)), 0);
    CHECK_EQ(tree.docs.at[0]->n, 5000);
    bh_buf_str(&b, "key-77: again\n");
    CHECK_EQ(parse(bh_buf_text(&b)), BH_INVALID);
    CHECK_STR(why.message, "`key-77` is written twice here: on line 78 and on line 5001");
    bh_buf_fini(&b);
}

TEST(aliases_share_what_they_repeat)
{
    CHECK_EQ(parse("a: &x {n: 1, l: [1, 2]}\nb: *x\nc: *x\nd: &x 5\ne: *x\nf: {*x : *x}\n"), 0);
    const struct bh_node *r = tree.docs.at[0], *b = bh_node_get(r, "b");
    CHECK_STR(bh_node_text(bh_node_get(b, "n")), "1");
    CHECK_EQ(b->line, 2);
    CHECK_EQ(b->column, 4);
    CHECK(b->u.first == bh_node_get(r, "a")->u.first);
    CHECK_STR(bh_node_text(bh_node_get(r, "e")), "5");
    CHECK_STR(bh_node_text(bh_node_path(r, "f", "5", NULL)), "5");
    CHECK_WHY("a: *y\n", 1, 4, "`*y` repeats nothing: no `&y` stands before it");
    CHECK_WHY("a: &y [1, *y]\n", 1, 11, "`*y` repeats what it stands in, without end");
    CHECK_WHY("a: &x 1\n---\nb: *x\n", 3, 4, "`*x` repeats nothing: no `&x` stands before it");
}

TEST(aliases_may_not_blow_up)
{
    CHECK_WHY("a: &a [l,l,l,l,l,l,l,l,l]\n"
              "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
              "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
              "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
              4, 8, "aliases expand the file to more than 4 times its own 45 nodes");
    /* 50 doublings: the count alone would pass 64 bits soon after */
    struct bh_buf b;
    bh_buf_init(&b, 1 << 20);
    bh_buf_str(&b, "a0: &a0 [x, x]\n");
    for (int i = 1; i < 31; i++)
        bh_buf_printf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1,
                      i - 1);
    CHECK_EQ(parse(bh_buf_text(&b)), BH_INVALID);
    CHECK(strstr(why.message, "aliases expand"));
    bh_buf_fini(&b);
    /* 3 + 10 times 5 nodes, and 13 of its own besides: within four times */
    CHECK_EQ(parse("a: &a [1, 2, 3, 4]\nb: [*a, *a, *a, *a]\n"), 0);
}

/* Few nodes, much text: one long scalar that everything repeats. */
TEST(aliases_may_not_repeat_text_without_end)
{
    struct bh_buf b;
    bh_buf_init(&b, 4 << 20);
    bh_buf_str(&b, "a: &a ");
    for (int i = 0; i < 1 << 16; i++)
        bh_buf_str(&b, "long text ");
    bh_buf_str(&b, "\nb: [*a, *a, *a, *a]\nc: [");
    CHECK_EQ(parse_n(b.at, b.n - 4), 0);
    for (int i = 0; i < 100; i++)
        bh_buf_str(&b, "*a, ");
    bh_buf_str(&b, "]\n");
    CHECK_EQ(parse(bh_buf_text(&b)), BH_INVALID);
    CHECK_STR(why.message, "aliases repeat more than 4 times the file's own text");
    CHECK_EQ(why.line, 2);
    bh_buf_fini(&b);
}

TEST(depth_is_limited)
{
    char text[200] = "";
    for (int i = 0; i < 32; i++) {
        text[i] = '[';
        text[32 + i] = ']';
    }
    CHECK_EQ(parse(text), 0);
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    CHECK_WHY(text, 1, 33, "the file is deeper than 32 levels");
    /* an alias deep down brings its own levels along */
    struct bh_buf b;
    bh_buf_init(&b, 4096);
    bh_buf_str(&b, "a: &a ");
    for (int i = 0; i < 20; i++)
        bh_buf_str(&b, "[");
    for (int i = 0; i < 20; i++)
        bh_buf_str(&b, "]");
    bh_buf_str(&b, "\nb: [[[[[[[[[[[*a]]]]]]]]]]]\n");
    CHECK_EQ(parse(bh_buf_text(&b)), 0);
    bh_buf_str(&b, "c: [[[[[[[[[[[[*a]]]]]]]]]]]]\n");
    CHECK_EQ(parse(bh_buf_text(&b)), BH_INVALID);
    CHECK_STR(why.message, "`*a` makes the file deeper than 32 levels");
    CHECK_EQ(why.line, 3);
    bh_buf_fini(&b);
}

TEST(size_is_limited)
{
    size_t n = (size_t)65 << 20;
    char *text = bh_alloc(n, 1);
    memset(text, '\n', n);
    CHECK_EQ(parse_n(text, n), BH_TOO_LARGE);
    CHECK_STR(why.message, "the file is larger than 64 MiB");
    CHECK_EQ(why.line, 1);
    free(text);
}

TEST(comments)
{
    CHECK_EQ(parse("# top  \n"
                   "a: 1 # at most five \n"
                   "b: \"x # no\" # yes\n"
                   "c: 'it''s # no'\n"
                   "d: don't # so\n"
                   "e: a#b\n"
                   "  ## two\n"
                   "f: \"q\\\" # no\"\n"
                   "#"),
             0);
    CHECK_STR(bh_tree_comment(&tree, 1), "top");
    CHECK_STR(bh_tree_comment(&tree, 2), "at most five");
    CHECK_STR(bh_tree_comment(&tree, 3), "yes");
    CHECK(bh_tree_comment(&tree, 4) == NULL);
    CHECK_STR(bh_tree_comment(&tree, 5), "so");
    CHECK(bh_tree_comment(&tree, 6) == NULL);
    CHECK_STR(bh_tree_comment(&tree, 7), "two");
    CHECK(bh_tree_comment(&tree, 8) == NULL);
    CHECK_STR(bh_tree_comment(&tree, 9), "");
    CHECK(bh_tree_comment(&tree, 0) == NULL);
    CHECK(bh_tree_comment(&tree, 10) == NULL);
    struct bh_comment c;
    CHECK(bh_tree_comment_find(&tree, 2, &c));
    CHECK_EQ(c.column, 6);
    CHECK(!c.alone);
    CHECK(bh_tree_comment_find(&tree, 7, &c));
    CHECK_EQ(c.column, 3);
    CHECK(c.alone);
}

TEST(lines_are_counted_as_libyaml_counts_them)
{
    CHECK_EQ(parse("a: 1 # A\rb: 2 # B\xe2\x80\xa8"
                   "c: 3 # C\xc2\x85"
                   "d: 4 # D\r\ne: 5 # E\n"),
             0);
    unsigned line = 0;
    BH_EACH_PAIR (k, v, tree.docs.at[0]) {
        char want[2] = {(char)('A' + line++), '\0'};
        CHECK_EQ(k->line, line);
        CHECK_STR(bh_tree_comment(&tree, k->line), want);
    }
    CHECK_EQ(line, 5);
}

/* Nodes reached by walking, aliases written out. */
static uint64_t walk(const struct bh_node *n, unsigned depth, unsigned *deepest)
{
    uint64_t total = 1;
    if (n->kind == BH_NODE_SCALAR)
        return strlen(n->u.text) == n->n ? 1 : UINT32_MAX;
    if (depth > *deepest)
        *deepest = depth;
    uint32_t children = 0;
    BH_EACH_ITEM (i, n) {
        total += walk(i, depth + 1, deepest);
        children++;
    }
    return children == (n->kind == BH_NODE_MAP ? 2 * n->n : n->n) ? total : UINT32_MAX;
}

TEST(any_text_stays_within_the_limits)
{
    static const char *const parts[] = {"[",   "]",     "{",   "}",   ", ",  ": ", "a",  "b",
                                        "&a ", "*a",    "&b ", "*b",  "\n",  "- ", "  ", "\"x\"",
                                        "# c", "---\n", "'",   "|\n", "!t ", "\t"};
    unsigned parsed = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        uint8_t bytes[48];
        char text[256];
        size_t n = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        uint32_t len = 1 + bh_choose(&c, 40);
        while (c.left && len--) {
            const char *p = parts[bh_choose(&c, BH_COUNT_OF(parts))];
            memcpy(text + n, p, strlen(p));
            n += strlen(p);
        }
        if (parse_n(text, n)) {
            CHECK(why.line >= 1 && why.column >= 1 && why.message[0]);
            continue;
        }
        unsigned deepest = 0;
        parsed++;
        for (size_t i = 0; i < tree.docs.n; i++)
            CHECK(walk(tree.docs.at[i], 1, &deepest) <= 4 * n);
        CHECK(deepest <= 32);
        for (uint32_t line = 0; line < 8; line++)
            (void)bh_tree_comment(&tree, line);
    }
    CHECK(parsed > 200);
}

TEST(memory_goes_back)
{
    bh_tree_fini(&tree);
    bh_tree_fini(&tree);
    CHECK(tree.arena.head == NULL);
}

TEST_MAIN
