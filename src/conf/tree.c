/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - libyaml's events become nodes; aliases share what they stand for.
 *
 * An alias costs one node whatever it stands for: its children are the anchor's own.
 * What it would be written out is only counted, so memory stays linear in the text
 * while a reader that walks the tree never sees more than four times its nodes, and one
 * that copies the scalars never more than four times its text (a few MiB are free: one
 * long description may well serve many pools).
 */
#include "conf/tree.h"

#include "base/map.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

enum { TEXT_MAX = 64 << 20, DEPTH_MAX = 32, EXPANSION_MAX = 4, FEW_PAIRS = 24, BYTES_FREE = 16 << 20 };

struct anchor {
    struct bh_node *node;
    uint64_t expanded; /* nodes it stands for, itself included */
    uint64_t bytes;    /* of the scalars in it */
    uint32_t height;   /* levels of lists and maps in it */
    bool open;         /* its end was not seen yet */
};

struct frame {
    struct bh_node *node;
    struct bh_node **tail;
    uint64_t expanded, bytes;
    uint32_t height; /* of the highest child */
    uint32_t anchor; /* BH_MAP_NONE: none */
    bool want_value; /* in a map: a key stands alone so far */
};

struct builder {
    struct bh_tree *t;
    struct bh_tree_error *error;
    struct frame stack[DEPTH_MAX];
    size_t depth;
    struct bh_map anchor_by_name; /* of this document */
    BH_VEC(struct anchor) anchors;
    uint64_t own, expanded; /* nodes of the whole file */
    uint64_t bytes;         /* of its scalars, aliases written out */
    uint64_t largest;       /* alias so far, and where */
    uint32_t largest_line, largest_column;
    bool failed;
};

static void fail_at(struct builder *b, uint32_t line, uint32_t column, const char *fmt, ...) BH_PRINTF(4, 5);
static void fail_at(struct builder *b, uint32_t line, uint32_t column, const char *fmt, ...)
{
    va_list ap;
    if (b->failed)
        return;
    b->failed = true;
    b->error->line = line;
    b->error->column = column;
    va_start(ap, fmt);
    (void)vsnprintf(b->error->message, sizeof(b->error->message), fmt, ap);
    va_end(ap);
}

static uint32_t line_of(const yaml_mark_t *m)
{
    return (uint32_t)m->line + 1;
}

static uint32_t column_of(const yaml_mark_t *m)
{
    return (uint32_t)m->column + 1;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t v;
    return __builtin_add_overflow(a, b, &v) ? UINT64_MAX : v;
}

static struct bh_node *node_new(struct builder *b, const yaml_mark_t *m, enum bh_node_kind kind)
{
    struct bh_node *n = bh_arena_alloc(&b->t->arena, sizeof(*n));
    n->line = line_of(m);
    n->column = column_of(m);
    n->kind = (uint8_t)kind;
    return n;
}

/* Hang a node below what is open, or make it a document's root. */
static void attach(struct builder *b, struct bh_node *n, uint64_t expanded, uint64_t bytes, uint32_t height)
{
    if (!b->depth) {
        if (n->kind != BH_NODE_SCALAR || n->n || n->quoted)
            *bh_vec_push(&b->t->docs) = n;
        return;
    }
    struct frame *f = &b->stack[b->depth - 1];
    if (f->node->kind == BH_NODE_MAP) {
        f->want_value = !f->want_value;
        if (f->want_value && n->kind != BH_NODE_SCALAR)
            fail_at(b, n->line, n->column, "a key must be a word or a text, not a list or a map");
    }
    f->node->n += f->node->kind == BH_NODE_SEQ || f->want_value;
    *f->tail = n;
    f->tail = &n->next;
    f->expanded = add_capped(f->expanded, expanded);
    f->bytes = add_capped(f->bytes, bytes);
    if (height > f->height)
        f->height = height;
}

/* A second anchor of the same name replaces the first, as YAML has it. */
static uint32_t anchor_add(struct builder *b, const yaml_char_t *name, struct bh_node *n)
{
    if (!name)
        return BH_MAP_NONE;
    uint32_t i = bh_map_find(&b->anchor_by_name, (const char *)name);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)b->anchors.n;
        (void)bh_vec_push(&b->anchors);
        (void)bh_map_add(&b->anchor_by_name, bh_arena_str(&b->t->arena, (const char *)name), i);
    }
    b->anchors.at[i] = (struct anchor){.node = n, .expanded = 1, .open = true};
    return i;
}

static void on_scalar(struct builder *b, const yaml_event_t *e)
{
    struct bh_node *n = node_new(b, &e->start_mark, BH_NODE_SCALAR);
    const char *text = (const char *)e->data.scalar.value;
    const char *tag = (const char *)e->data.scalar.tag;
    n->n = (uint32_t)e->data.scalar.length;
    if (n->n && memchr(text, '\0', n->n))
        fail_at(b, n->line, n->column, "a text may not hold a NUL character");
    n->u.text = n->n ? bh_arena_strn(&b->t->arena, text, n->n) : "";
    n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || (tag && strcmp(tag, YAML_STR_TAG) == 0);
    n->literal = e->data.scalar.style == YAML_LITERAL_SCALAR_STYLE;
    b->own++;
    b->expanded = add_capped(b->expanded, 1);
    b->bytes = add_capped(b->bytes, n->n);
    uint32_t a = anchor_add(b, e->data.scalar.anchor, n);
    if (a != BH_MAP_NONE) {
        b->anchors.at[a].open = false;
        b->anchors.at[a].bytes = n->n;
    }
    attach(b, n, 1, n->n, 0);
}

static void on_alias(struct builder *b, const yaml_event_t *e)
{
    const char *name = (const char *)e->data.alias.anchor;
    uint32_t line = line_of(&e->start_mark), column = column_of(&e->start_mark);
    uint32_t i = bh_map_find(&b->anchor_by_name, name);
    if (i == BH_MAP_NONE) {
        fail_at(b, line, column, "`*%.60s` repeats nothing: no `&%.60s` stands before it", name, name);
        return;
    }
    const struct anchor *a = &b->anchors.at[i];
    if (a->open) {
        fail_at(b, line, column, "`*%.60s` repeats what it stands in, without end", name);
        return;
    }
    if (b->depth + a->height > DEPTH_MAX) {
        fail_at(b, line, column, "`*%.60s` makes the file deeper than %d levels", name, DEPTH_MAX);
        return;
    }
    struct bh_node *n = node_new(b, &e->start_mark, (enum bh_node_kind)a->node->kind);
    n->u = a->node->u;
    n->n = a->node->n;
    n->quoted = a->node->quoted;
    n->literal = a->node->literal;
    b->own++;
    b->expanded = add_capped(b->expanded, a->expanded);
    b->bytes = add_capped(b->bytes, a->bytes);
    if (a->expanded > b->largest) {
        b->largest = a->expanded;
        b->largest_line = line;
        b->largest_column = column;
    }
    attach(b, n, a->expanded, a->bytes, a->height);
}

static void on_open(struct builder *b, const yaml_event_t *e, enum bh_node_kind kind,
                    const yaml_char_t *anchor)
{
    struct bh_node *n = node_new(b, &e->start_mark, kind);
    if (b->depth == DEPTH_MAX) {
        fail_at(b, n->line, n->column, "the file is deeper than %d levels", DEPTH_MAX);
        return;
    }
    b->own++;
    b->expanded = add_capped(b->expanded, 1);
    b->stack[b->depth++] =
        (struct frame){.node = n, .tail = &n->u.first, .expanded = 1, .anchor = anchor_add(b, anchor, n)};
}

static void fail_twice(struct builder *b, const struct bh_node *first, const struct bh_node *second)
{
    fail_at(b, second->line, second->column,
            "`%.60s` is written twice here: on line %" PRIu32 " and on line %" PRIu32, second->u.text,
            first->line, second->line);
}

static bool same_key(const struct bh_node *x, const struct bh_node *y)
{
    return x->n == y->n && memcmp(x->u.text, y->u.text, x->n) == 0;
}

/* Equal keys come to stand side by side, in file order. */
static int by_key(const void *a, const void *b)
{
    const struct bh_node *x = *(const struct bh_node *const *)a, *y = *(const struct bh_node *const *)b;
    int c = strcmp(x->u.text, y->u.text);
    if (c == 0)
        c = x->line != y->line ? (x->line > y->line) - (x->line < y->line)
                               : (x->column > y->column) - (x->column < y->column);
    return c;
}

/* Sorted, not hashed: no choice of keys makes it slow. */
static void refuse_twins_of_many(struct builder *b, const struct bh_node *map)
{
    BH_AUTOFREE const struct bh_node **keys = bh_alloc(map->n, sizeof(const struct bh_node *));
    size_t n = 0;
    BH_EACH_PAIR (k, v, map) {
        keys[n++] = k;
    }
    qsort(keys, n, sizeof(*keys), by_key);
    for (size_t i = 1; i < n; i++)
        if (same_key(keys[i - 1], keys[i])) {
            fail_twice(b, keys[i - 1], keys[i]);
            return;
        }
}

static void refuse_twins(struct builder *b, const struct bh_node *map)
{
    if (map->n > FEW_PAIRS) {
        refuse_twins_of_many(b, map);
        return;
    }
    BH_EACH_PAIR (k, v, map) {
        for (const struct bh_node *e = map->u.first; e != k; e = e->next->next)
            if (same_key(e, k)) {
                fail_twice(b, e, k);
                return;
            }
    }
}

static void on_close(struct builder *b)
{
    struct frame f = b->stack[--b->depth];
    if (f.node->kind == BH_NODE_MAP && !b->failed)
        refuse_twins(b, f.node);
    if (f.anchor != BH_MAP_NONE && b->anchors.at[f.anchor].node == f.node) {
        struct anchor *a = &b->anchors.at[f.anchor];
        a->expanded = f.expanded;
        a->bytes = f.bytes;
        a->height = f.height + 1;
        a->open = false;
    }
    attach(b, f.node, f.expanded, f.bytes, f.height + 1);
}

/* libyaml speaks of tokens and contexts; these are its phrases that a person meets. */
static const char *plain_words(const char *problem, char found)
{
    static const struct {
        const char *theirs, *ours;
    } table[] = {
        {"mapping values are not allowed in this context",
         "a `:` cannot stand here; check the indentation, or quote the text that holds it"},
        {"did not find expected key", "a key was expected here; check the indentation"},
        {"did not find expected '-' indicator", "a `-` was expected here; check the indentation"},
        {"could not find expected ':'", "a `:` was expected after the key"},
        {"did not find expected ',' or '}'", "a `,` or the closing `}` was expected here"},
        {"did not find expected ',' or ']'", "a `,` or the closing `]` was expected here"},
        {"found unexpected end of stream", "the file ends inside a quoted text"},
        {"did not find expected <document start>",
         "only one document was begun; separate two by a line `---`"},
        {"block sequence entries are not allowed in this context",
         "a `-` cannot stand here; check the indentation"},
        {"did not find expected node content", "a value was expected here"},
        {"control characters are not allowed", "a control character or a NUL stands in the text"},
        {"found a tab character that violates indentation", "a tab cannot indent; use spaces"},
    };
    if (found == '\t' && strstr(problem, "cannot start any token"))
        return "a tab cannot indent; use spaces";
    for (size_t i = 0; i < BH_COUNT_OF(table); i++)
        if (strcmp(problem, table[i].theirs) == 0)
            return table[i].ours;
    return problem;
}

/* What was begun and not ended, where naming it helps. */
static const char *begun(const char *context)
{
    static const struct {
        const char *theirs, *ours;
    } table[] = {
        {"while parsing a flow sequence", "the list"},    {"while parsing a flow mapping", "the map"},
        {"while parsing a block collection", "the list"}, {"while parsing a block mapping", "the map"},
        {"while scanning a quoted scalar", "the text"},
    };
    for (size_t i = 0; context && i < BH_COUNT_OF(table); i++)
        if (strcmp(context, table[i].theirs) == 0)
            return table[i].ours;
    return NULL;
}

/* The reader below libyaml's scanner knows only the byte. */
static void fail_reader(struct builder *b, const yaml_parser_t *p, const char *text, size_t n)
{
    uint32_t line = 1, column = 1;
    size_t stop = p->problem_offset < n ? p->problem_offset : n;
    for (size_t i = 0; i < stop; i++) {
        if (text[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    if (strstr(p->problem, "UTF-8"))
        fail_at(b, line, column, "the text is not UTF-8 here");
    else
        fail_at(b, line, column, "%s", plain_words(p->problem, '\0'));
}

/* libyaml's marks count characters, not bytes. */
static char char_at(const char *text, size_t n, size_t index)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80 && index-- == 0)
            return text[i];
    return '\0';
}

static void fail_yaml(struct builder *b, const yaml_parser_t *p, const char *text, size_t n)
{
    if (p->error == YAML_READER_ERROR && p->problem) {
        fail_reader(b, p, text, n);
        return;
    }
    const yaml_mark_t *m = &p->problem_mark;
    const char *problem = p->problem ? p->problem : "the text is not YAML";
    const char *said = plain_words(problem, char_at(text, n, m->index));
    const char *what = begun(p->context);
    if (what && p->context_mark.line != m->line)
        fail_at(b, line_of(m), column_of(m), "%s (%s begins on line %" PRIu32 ")", said, what,
                line_of(&p->context_mark));
    else
        fail_at(b, line_of(m), column_of(m), "%s", said);
}

static void document_end(struct builder *b)
{
    bh_map_fini(&b->anchor_by_name);
    b->anchors.n = 0;
}

/* False: the stream has ended. */
static bool on_event(struct builder *b, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        on_scalar(b, e);
        break;
    case YAML_ALIAS_EVENT:
        on_alias(b, e);
        break;
    case YAML_SEQUENCE_START_EVENT:
        on_open(b, e, BH_NODE_SEQ, e->data.sequence_start.anchor);
        break;
    case YAML_MAPPING_START_EVENT:
        on_open(b, e, BH_NODE_MAP, e->data.mapping_start.anchor);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_close(b);
        break;
    case YAML_DOCUMENT_END_EVENT:
        document_end(b);
        break;
    case YAML_STREAM_END_EVENT:
        return false;
    default:
        break;
    }
    return true;
}

static void build(struct builder *b, const char *text, size_t n)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        abort(); /* out of memory: see base/mem.h */
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    for (bool more = true; more && !b->failed;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            fail_yaml(b, &parser, text, n);
            break;
        }
        more = on_event(b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (b->expanded / EXPANSION_MAX > b->own || b->expanded > b->own * EXPANSION_MAX)
        fail_at(b, b->largest_line, b->largest_column,
                "aliases expand the file to more than %d times its own %" PRIu64 " nodes", EXPANSION_MAX,
                b->own);
    if (b->bytes > (uint64_t)n * EXPANSION_MAX + BYTES_FREE)
        fail_at(b, b->largest_line, b->largest_column,
                "aliases repeat more than %d times the file's own text", EXPANSION_MAX);
}

int bh_tree_parse(struct bh_tree *t, const char *text, size_t n, struct bh_tree_error *ret_error)
{
    static const char utf8_mark[] = "\xef\xbb\xbf";
    struct builder b = {.t = t, .error = ret_error};
    *t = (struct bh_tree){0};
    if (n > TEXT_MAX) {
        fail_at(&b, 1, 1, "the file is larger than %d MiB", TEXT_MAX >> 20);
        return BH_TOO_LARGE;
    }
    if (n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0)) {
        fail_at(&b, 1, 1, "the text is UTF-16; save it as UTF-8");
        return BH_INVALID;
    }
    if (n >= 3 && memcmp(text, utf8_mark, 3) == 0) {
        text += 3;
        n -= 3;
    }
    t->text = n ? text : "";
    t->n_text = n;
    build(&b, t->text, n);
    bh_map_fini(&b.anchor_by_name);
    bh_vec_fini(&b.anchors);
    if (!b.failed)
        return BH_OK;
    bh_tree_fini(t);
    return BH_INVALID;
}

void bh_tree_fini(struct bh_tree *t)
{
    bh_vec_fini(&t->docs);
    free(t->line_at);
    bh_arena_fini(&t->arena);
    *t = (struct bh_tree){0};
}

const struct bh_node *bh_node_get(const struct bh_node *map, const char *key)
{
    if (!map || map->kind != BH_NODE_MAP)
        return NULL;
    BH_EACH_PAIR (k, v, map) {
        if (strcmp(k->u.text, key) == 0)
            return v;
    }
    return NULL;
}

const struct bh_node *bh_node_path(const struct bh_node *map, ...)
{
    va_list ap;
    va_start(ap, map);
    for (const char *key; map && (key = va_arg(ap, const char *));)
        map = bh_node_get(map, key);
    va_end(ap);
    return map;
}

const char *bh_node_text(const struct bh_node *n)
{
    return n && n->kind == BH_NODE_SCALAR ? n->u.text : NULL;
}

bool bh_node_is_null(const struct bh_node *n)
{
    if (!n)
        return true;
    if (n->kind != BH_NODE_SCALAR || n->quoted)
        return false;
    return n->n == 0 || strcmp(n->u.text, "~") == 0 || bh_str_eq_nocase(n->u.text, "null");
}

int bh_node_bool(const struct bh_node *n)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    if (!n || n->kind != BH_NODE_SCALAR || n->quoted)
        return -1;
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        if (bh_str_eq_nocase(n->u.text, words[i]))
            return (int)(i & 1);
    return -1;
}

/* Bytes of the line break at p, 0 when there is none: the breaks that libyaml counts lines by. */
static size_t break_at(const char *p, const char *end)
{
    if (*p == '\n')
        return 1;
    if (*p == '\r')
        return p + 1 < end && p[1] == '\n' ? 2 : 1;
    if (end - p >= 2 && memcmp(p, "\xc2\x85", 2) == 0)
        return 2;
    if (end - p >= 3 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0))
        return 3;
    return 0;
}

static void index_lines(struct bh_tree *t)
{
    const char *end = t->text + t->n_text;
    BH_VEC(uint32_t) at = {0};
    *bh_vec_push(&at) = 0;
    for (const char *p = t->text; p < end;) {
        size_t n = break_at(p, end);
        p += n ? n : 1;
        if (n)
            *bh_vec_push(&at) = (uint32_t)(p - t->text);
    }
    t->line_at = at.at;
    t->n_lines = at.n;
}

/* A quote opens a quoted text only where a value may begin: `don't # so` holds a comment. */
static bool value_may_begin(const char *line, const char *p)
{
    return p == line || strchr(" \t[{,:", p[-1]);
}

/* The `#` that begins a comment between line and end, or NULL. */
static const char *find_hash(const char *line, const char *end)
{
    char quote = '\0';
    for (const char *p = line; p < end && !break_at(p, end); p++) {
        if (quote == '"' && *p == '\\' && p + 1 < end)
            p++;
        else if (quote == '\'' && p + 1 < end && p[0] == '\'' && p[1] == '\'')
            p++;
        else if (quote)
            quote = *p == quote ? '\0' : quote;
        else if ((*p == '"' || *p == '\'') && value_may_begin(line, p))
            quote = *p;
        else if (*p == '#' && (p == line || p[-1] == ' ' || p[-1] == '\t'))
            return p;
    }
    return NULL;
}

enum { COMMENTED_LINE_MAX = 4096 };

bool bh_tree_comment_find(struct bh_tree *t, uint32_t line, struct bh_comment *ret)
{
    if (!t->text || line == 0)
        return false;
    if (!t->line_at)
        index_lines(t);
    if (line > t->n_lines)
        return false;
    const char *end = t->text + t->n_text, *start = t->text + t->line_at[line - 1];
    /* people comment on lines they can see; a megabyte of JSON on one line is not searched for every question */
    if ((line < t->n_lines ? t->text + t->line_at[line] : end) - start > COMMENTED_LINE_MAX)
        return false;
    const char *hash = find_hash(start, end);
    if (!hash)
        return false;
    *ret = (struct bh_comment){.column = 1, .alone = true};
    for (const char *p = start; p < hash; p++) {
        ret->column += ((unsigned char)*p & 0xc0) != 0x80;
        ret->alone &= *p == ' ' || *p == '\t';
    }
    const char *stop = hash;
    while (stop < end && !break_at(stop, end))
        stop++;
    while (hash < stop && *hash == '#')
        hash++;
    while (hash < stop && bh_is_space(*hash))
        hash++;
    while (stop > hash && bh_is_space(stop[-1]))
        stop--;
    ret->text = bh_arena_strn(&t->arena, hash, (size_t)(stop - hash));
    return true;
}

const char *bh_tree_comment(struct bh_tree *t, uint32_t line)
{
    struct bh_comment c;
    return bh_tree_comment_find(t, line, &c) ? c.text : NULL;
}
