/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/bind.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { SUBJECT_MAX = 400, KNOWN_MAX = 600 };

struct bh_pos bh_bind_pos(const struct bh_bind *b, const struct bh_node *n)
{
    return (struct bh_pos){b->file, n->line, n->column};
}

/* ---- what is said ---- */

/* ` of \`quota\` of tenant 'acme'`: the maps around a key, the innermost first. */
static void subject(const struct bh_bind *b, struct bh_buf *out)
{
    for (const struct bh_bind_scope *s = b->scope; s; s = s->up) {
        const struct bh_node *name = s->kind ? bh_node_get(s->map, "name") : NULL;
        if (!s->kind)
            bh_buf_printf(out, " of `%.60s`", s->key);
        else if (bh_node_text(name) && name->n && !bh_node_is_null(name))
            bh_buf_printf(out, " of %s '%.63s'", s->kind, name->u.text);
        else
            bh_buf_printf(out, " of the %s on line %" PRIu32, s->kind, s->map->line);
        if (s->kind)
            break; /* an element is known by its name; what lists it adds nothing */
    }
}

static void describe(const struct bh_node *n, char *out, size_t size)
{
    if (n->kind == BH_NODE_SEQ)
        (void)snprintf(out, size, "a list");
    else if (n->kind == BH_NODE_MAP)
        (void)snprintf(out, size, "a map");
    else if (bh_node_is_null(n))
        (void)snprintf(out, size, "nothing");
    else
        (void)snprintf(out, size, n->quoted ? "the text '%.60s'" : "'%.60s'", n->u.text);
}

static void complain(struct bh_bind *b, const struct bh_node *key, struct bh_pos pos, const char *joint,
                     const char *words)
{
    struct bh_buf s;
    if (bh_diags_full(b->d))
        return;
    bh_buf_init(&s, SUBJECT_MAX);
    subject(b, &s);
    bh_diag_error(b->d, pos, "`%.60s`%s%s%s", key->u.text, bh_buf_text(&s), joint, words);
    bh_buf_fini(&s);
}

void bh_bind_need(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, const char *fmt, ...)
{
    char need[KNOWN_MAX], found[100], words[KNOWN_MAX + 120];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(need, sizeof(need), fmt, ap);
    va_end(ap);
    describe(n, found, sizeof(found));
    (void)snprintf(words, sizeof(words), "%s; found %s", need, found);
    complain(b, key, bh_bind_pos(b, n), " needs ", words);
}

void bh_bind_refuse(struct bh_bind *b, const struct bh_node *key, struct bh_pos pos, const char *why)
{
    complain(b, key, pos, ": ", why);
}

/* Returns the field it was probably meant to be, as a bit of `seen`: a misspelt key is not missing as well. */
static uint64_t unknown_key(struct bh_bind *b, const struct bh_table *t, const struct bh_node *key)
{
    struct bh_pos pos = bh_bind_pos(b, key);
    const char *known[64];
    if (bh_diags_full(b->d))
        return 0;
    for (size_t i = 0; i < t->n; i++)
        known[i] = t->fields[i].key;
    if (strcmp(key->u.text, "<<") == 0) {
        bh_diag_error(b->d, pos, "`<<` is unknown here: maps are not merged, write their keys out");
        return 0;
    }
    const char *nearest = bh_str_nearest(key->u.text, known, t->n);
    if (nearest) {
        bh_diag_error(b->d, pos, "`%.60s` is unknown here; did you mean `%s`?", key->u.text, nearest);
        size_t i = 0;
        while (known[i] != nearest)
            i++;
        return UINT64_C(1) << i;
    }
    struct bh_buf list;
    bh_buf_init(&list, KNOWN_MAX);
    for (size_t i = 0; i < t->n; i++)
        bh_buf_printf(&list, "%s`%s`", i ? ", " : "", known[i]);
    bh_diag_error(b->d, pos, "`%.60s` is unknown here; known are %s", key->u.text, bh_buf_text(&list));
    bh_buf_fini(&list);
    return 0;
}

static void missing(struct bh_bind *b, const struct bh_node *map, const char *key)
{
    struct bh_buf s;
    if (bh_diags_full(b->d))
        return;
    bh_buf_init(&s, SUBJECT_MAX);
    subject(b, &s);
    const char *who = bh_buf_text(&s);
    bh_diag_error(b->d, bh_bind_pos(b, map), "`%s`%s is required", key, who);
    bh_buf_fini(&s);
}

/* ---- scalars ---- */

static const char *scalar(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n,
                          const char *need)
{
    if (n->kind == BH_NODE_SCALAR && !bh_node_is_null(n))
        return n->u.text;
    bh_bind_need(b, key, n, "%s", need);
    return NULL;
}

static const char *keep(struct bh_bind *b, const struct bh_node *n)
{
    return bh_arena_strn(b->arena, n->u.text, n->n);
}

const char *bh_bind_text(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n)
{
    return scalar(b, key, n, "a text") ? keep(b, n) : NULL;
}

bool bh_bind_uint(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, uint64_t min,
                  uint64_t max, uint64_t *ret)
{
    uint64_t v;
    if (n->kind == BH_NODE_SCALAR && bh_uint_parse(n->u.text, max, &v, NULL) == 0 && v >= min) {
        *ret = v;
        return true;
    }
    bh_bind_need(b, key, n, "a whole number from %" PRIu64 " to %" PRIu64, min, max);
    return false;
}

struct bh_keyed bh_bind_keyed(struct bh_bind *b, const struct bh_node *key, const struct bh_node *value)
{
    /* a null here is a value like any other: it was written beside a key the language does not know */
    if (value->kind != BH_NODE_SCALAR)
        bh_bind_need(b, key, value, "a text or a number");
    const char *text = value->kind == BH_NODE_SCALAR ? keep(b, value) : "";
    return (struct bh_keyed){keep(b, key), text, bh_bind_pos(b, key)};
}

static bool label_valid(const char *s)
{
    size_t n = 0;
    for (; s[n]; n++)
        if (!bh_is_alpha(s[n]) && !bh_is_digit(s[n]) && !strchr("._-", s[n]))
            return false;
    return n > 0 && n <= 253;
}

/* What is wrong with a name is said, and the name kept: what refers to it is then not wrong as well. */
static void set_text(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                     const struct bh_node *n, const char **ret)
{
    bool name = f->type == BH_BIND_NAME || f->type == BH_BIND_LABEL;
    if (!scalar(b, key, n, name ? "a name" : "a text"))
        return;
    if (f->type == BH_BIND_NAME && !bh_name_valid(n->u.text))
        bh_bind_need(b, key, n, "a name of at most 63 lower-case letters, digits and inner dashes");
    else if (f->type == BH_BIND_LABEL && !label_valid(n->u.text))
        bh_bind_need(b, key, n, "a name of letters, digits, `.`, `_` and `-`");
    if (n->n)
        *ret = keep(b, n);
}

static void add_text(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, bh_text_vec *ret)
{
    if (n->kind != BH_NODE_SCALAR || n->n == 0 || bh_node_is_null(n))
        bh_bind_need(b, key, n, "a text, or a list of texts");
    else
        *bh_vec_push(ret) = (struct bh_text){keep(b, n), bh_bind_pos(b, n)};
}

void bh_bind_texts(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, bh_text_vec *ret)
{
    if (n->kind != BH_NODE_SEQ) {
        add_text(b, key, n, ret);
        return;
    }
    BH_EACH_ITEM (i, n) {
        add_text(b, key, i, ret);
    }
}

static bool set_bool(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, bool *ret)
{
    int v = bh_node_bool(n);
    if (v < 0)
        bh_bind_need(b, key, n, "true or false");
    else
        *ret = v;
    return v >= 0;
}

/* ---- words ---- */

static bool allowed(const struct bh_field *f, size_t word)
{
    return f->allow ? f->allow >> word & 1 : strcmp(f->of.words->text[word], "unset") != 0;
}

static void unknown_word(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                         const struct bh_node *n)
{
    const char *may[32];
    size_t n_may = 0;
    if (bh_diags_full(b->d))
        return;
    struct bh_buf list;
    bh_buf_init(&list, KNOWN_MAX);
    for (size_t i = 0; i < f->of.words->n; i++)
        if (allowed(f, i)) {
            bh_buf_printf(&list, "%s%s", n_may ? ", " : "", f->of.words->text[i]);
            may[n_may++] = f->of.words->text[i];
        }
    const char *nearest = n->kind == BH_NODE_SCALAR ? bh_str_nearest(n->u.text, may, n_may) : NULL;
    if (nearest) {
        char found[100], words[KNOWN_MAX + 240];
        describe(n, found, sizeof(found));
        (void)snprintf(words, sizeof(words), "one of %s; found %s; did you mean %s?", bh_buf_text(&list),
                       found, nearest);
        complain(b, key, bh_bind_pos(b, n), " needs ", words);
    } else {
        bh_bind_need(b, key, n, "one of %s", bh_buf_text(&list));
    }
    bh_buf_fini(&list);
}

static bool word(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                 const struct bh_node *n, unsigned *ret)
{
    int w = n->kind == BH_NODE_SCALAR ? bh_words_find(f->of.words, n->u.text) : -1;
    if (w < 0 || !allowed(f, (size_t)w)) {
        unknown_word(b, f, key, n);
        return false;
    }
    *ret = (unsigned)w;
    return true;
}

static void set_words(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                      const struct bh_node *n, uint32_t *ret)
{
    unsigned w;
    if (n->kind != BH_NODE_SEQ) {
        if (word(b, f, key, n, &w))
            *ret |= UINT32_C(1) << w;
        return;
    }
    BH_EACH_ITEM (i, n) {
        if (word(b, f, key, i, &w))
            *ret |= UINT32_C(1) << w;
    }
}

/* ---- amounts ---- */

static void too_much(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                     const struct bh_node *n)
{
    struct bh_unit_text min, max;
    bool size = f->type == BH_BIND_SIZE;
    bh_bind_need(b, key, n, "%s from %s to %s", size ? "a size" : "a count",
                 size ? bh_size_format(f->min, &min) : bh_count_format(f->min, &min),
                 size ? bh_size_format(f->max, &max) : bh_count_format(f->max, &max));
}

typedef int (*parse_u64_fn)(const char *s, uint64_t *ret, struct bh_err *err);

static bool set_u64(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                    const struct bh_node *n, uint64_t *ret)
{
    static const struct {
        parse_u64_fn parse;
        const char *need;
    } how[] = {
        [BH_BIND_COUNT] = {bh_count_parse, "a count like 4 or 0.5"},
        [BH_BIND_SIZE] = {bh_size_parse, "a size like 20GiB"},
        [BH_BIND_DURATION] = {bh_duration_parse, "a duration like 50ms, 10m or 7d"},
        [BH_BIND_MONEY] = {bh_money_parse, "a price like 2.50"},
    };
    struct bh_err err;
    uint64_t v;
    const char *text = scalar(b, key, n, how[f->type].need);
    if (!text)
        return false;
    if (how[f->type].parse(text, &v, &err) < 0) {
        bh_bind_refuse(b, key, bh_bind_pos(b, n), err.msg);
        return false;
    }
    if (v < f->min || (f->max && v > f->max)) {
        too_much(b, f, key, n);
        return false;
    }
    *ret = v;
    return true;
}

static bool set_share(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                      const struct bh_node *n, uint32_t *ret)
{
    struct bh_err err;
    uint32_t v;
    const char *text = scalar(b, key, n, "a share like 25% or 0.25");
    if (!text)
        return false;
    if (bh_share_parse(text, &v, &err) < 0) {
        bh_bind_refuse(b, key, bh_bind_pos(b, n), err.msg);
        return false;
    }
    if (v < f->min) {
        bh_bind_need(b, key, n, "a share above 0%%");
        return false;
    }
    *ret = v;
    return true;
}

static bool set_time(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                     const struct bh_node *n, void *at)
{
    struct bh_err err;
    bool date = f->type == BH_BIND_DATE;
    const char *text =
        scalar(b, key, n, date ? "a date like 2026-12-31" : "an instant like 2026-12-31T23:59:59Z");
    if (!text)
        return false;
    if ((date ? bh_date_parse(text, at, &err) : bh_instant_parse(text, at, &err)) == 0)
        return true;
    bh_bind_refuse(b, key, bh_bind_pos(b, n), err.msg);
    return false;
}

/* ---- maps and lists ---- */

static void bind_inner(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                       const struct bh_node *n, void *base)
{
    if (n->kind != BH_NODE_MAP) {
        bh_bind_need(b, key, n, "a map of settings");
        return;
    }
    struct bh_bind_scope scope = {b->scope, NULL, key->u.text, n};
    b->scope = &scope;
    bh_bind_map(b, f->of.table, n, base);
    b->scope = scope.up;
}

void bh_bind_pairs(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, const char *need,
                   bh_bind_fn fn, void *base)
{
    if (n->kind != BH_NODE_MAP) {
        bh_bind_need(b, key, n, "%s", need);
        return;
    }
    struct bh_bind_scope scope = {b->scope, NULL, key->u.text, n};
    b->scope = &scope;
    BH_EACH_PAIR (k, v, n) {
        fn(b, k, v, base);
    }
    b->scope = scope.up;
}

static void bind_each(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                      const struct bh_node *n, void *base)
{
    const struct bh_each *e = f->of.each;
    if (n->kind != BH_NODE_SEQ) {
        bh_bind_need(b, key, n, "a list, each %s a map", e->kind);
        return;
    }
    BH_EACH_ITEM (i, n) {
        if (bh_diags_full(b->d))
            return;
        if (i->kind != BH_NODE_MAP) {
            bh_bind_need(b, key, i, "each %s to be a map", e->kind);
            continue;
        }
        struct bh_bind_scope scope = {b->scope, e->kind, key->u.text, i};
        void *element = e->add(b, base, bh_bind_pos(b, i));
        b->scope = &scope;
        bh_bind_map(b, e->table, i, element);
        if (e->done)
            e->done(b, i, element);
        b->scope = scope.up;
    }
}

static bool bind_word(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                      const struct bh_node *n, uint8_t *ret)
{
    unsigned w;
    bool ok = word(b, f, key, n, &w);
    if (ok)
        *ret = (uint8_t)w;
    return ok;
}

static bool bind_fact(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, uint8_t *ret)
{
    bool yes, ok = set_bool(b, key, n, &yes);
    if (ok)
        *ret = yes ? BH_FACT_YES : BH_FACT_NO;
    return ok;
}

static bool bind_uint(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                      const struct bh_node *n, uint32_t *ret)
{
    uint64_t v;
    bool ok = bh_bind_uint(b, key, n, f->min, f->max, &v);
    if (ok)
        *ret = (uint32_t)v;
    return ok;
}

/* True: the value was taken, or what it holds was looked at one by one. */
static bool bind_value(struct bh_bind *b, const struct bh_field *f, const struct bh_node *key,
                       const struct bh_node *n, void *base)
{
    void *at = (char *)base + f->at;
    struct bh_text *placed = at;
    switch ((enum bh_bind_type)f->type) {
    case BH_BIND_TEXT:
    case BH_BIND_NAME:
    case BH_BIND_LABEL:
        set_text(b, f, key, n, at);
        return true;
    case BH_BIND_PLACED:
        placed->pos = bh_bind_pos(b, n);
        set_text(b, f, key, n, &placed->s);
        return true;
    case BH_BIND_TEXTS:
        bh_bind_texts(b, key, n, at);
        return true;
    case BH_BIND_BOOL:
        return set_bool(b, key, n, at);
    case BH_BIND_FACT:
        return bind_fact(b, key, n, at);
    case BH_BIND_WORD:
        return bind_word(b, f, key, n, at);
    case BH_BIND_WORDS:
        set_words(b, f, key, n, at);
        return true;
    case BH_BIND_UINT:
    case BH_BIND_INT:
        return bind_uint(b, f, key, n, at);
    case BH_BIND_COUNT:
    case BH_BIND_SIZE:
    case BH_BIND_DURATION:
    case BH_BIND_MONEY:
        return set_u64(b, f, key, n, at);
    case BH_BIND_SHARE:
        return set_share(b, f, key, n, at);
    case BH_BIND_DATE:
    case BH_BIND_INSTANT:
        return set_time(b, f, key, n, at);
    case BH_BIND_MAP:
        bind_inner(b, f, key, n, base);
        return true;
    case BH_BIND_EACH:
        bind_each(b, f, key, n, base);
        return true;
    case BH_BIND_FN:
        f->of.fn(b, key, n, base);
        return true;
    }
    return false;
}

/* Keys mostly come in the table's order, so the search goes on from the last one found. */
static const struct bh_field *find_field(const struct bh_table *t, const char *key, size_t *from)
{
    for (size_t i = 0; i < t->n; i++) {
        size_t at = *from + i < t->n ? *from + i : *from + i - t->n;
        if (strcmp(t->fields[at].key, key) == 0) {
            *from = at + 1 < t->n ? at + 1 : 0;
            return &t->fields[at];
        }
    }
    return NULL;
}

void bh_bind_map(struct bh_bind *b, const struct bh_table *t, const struct bh_node *map, void *base)
{
    uint64_t seen = 0;
    size_t from = 0;
    BH_EACH_PAIR (k, v, map) {
        const struct bh_field *f = find_field(t, k->u.text, &from);
        if (!f) {
            seen |= unknown_key(b, t, k);
            continue;
        }
        if (bh_node_is_null(v))
            continue;
        seen |= UINT64_C(1) << (f - t->fields);
        if (f->pos)
            *(struct bh_pos *)(void *)((char *)base + f->pos - 1) = bh_bind_pos(b, k);
        if (bind_value(b, f, k, v, base) && f->has)
            *(bool *)((char *)base + f->has - 1) = true;
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->fields[i].required && !(seen >> i & 1))
            missing(b, map, t->fields[i].key);
}

const struct bh_node *bh_bind_root(struct bh_bind *b, const struct bh_tree *t, const char *kind)
{
    const struct bh_node *root = t->docs.n ? t->docs.at[0] : NULL;
    if (!root) {
        bh_diag_error(b->d, (struct bh_pos){b->file, 1, 1},
                      "the file is empty; a %s begins with `bulkhead: 1`", kind);
        return NULL;
    }
    if (t->docs.n > 1)
        bh_diag_error(b->d, bh_bind_pos(b, t->docs.at[1]), "a %s is one document; a second one begins here",
                      kind);
    if (root->kind != BH_NODE_MAP) {
        char found[100];
        describe(root, found, sizeof(found));
        bh_diag_error(b->d, bh_bind_pos(b, root), "a %s is a map that begins with `bulkhead: 1`; found %s",
                      kind, found);
        return NULL;
    }
    if (bh_node_is_null(bh_node_get(root, "bulkhead")))
        bh_diag_error(b->d, bh_bind_pos(b, root), "`bulkhead: 1` is required: the version of the language");
    return root;
}

void bh_bind_version(struct bh_bind *b, const struct bh_node *key, const struct bh_node *value, void *base)
{
    (void)base;
    if (!bh_str_eq(bh_node_text(value), "1"))
        bh_bind_need(b, key, value, "the version of the language, and 1 is the only one supported");
}
