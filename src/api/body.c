/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - JSON objects and query strings into structs, by the same tables. */
#include "api/body.h"

#include "api/ops.h"
#include "base/json_read.h"
#include "base/str.h"
#include "base/units.h"

#include <stdio.h>

enum { KEY_MAX = 64, FIELDS_MAX = 32 };

bool bh_api_id_parse(const char *s, char letter, uint64_t *ret)
{
    if (letter && *s == letter)
        s++;
    /* Ids begin at 1 and fit what SQLite counts in. */
    return bh_uint_parse(s, INT64_MAX, ret, NULL) == 0 && *ret > 0;
}

/* ---- what is wrong ---- */

static int unknown(const struct bh_api_shape *shape, const char *name, struct bh_api_problem *p)
{
    const char *known[FIELDS_MAX];
    char list[240] = "";
    size_t used = 0;
    for (size_t i = 0; i < shape->n; i++) {
        known[i] = shape->fields[i].name;
        const int n = snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", known[i]);
        if (n > 0 && (size_t)n < sizeof(list) - used)
            used += (size_t)n;
    }
    const char *near = bh_str_nearest(name, known, shape->n);
    bh_api_hint(p, list, name, NULL);
    if (near)
        return bh_api_refuse(p, BH_INVALID, "there is no field '%s'; '%s' was perhaps meant", name, near);
    return bh_api_refuse(p, BH_INVALID, "there is no field '%s'", name);
}

/* What a field must be, in words. */
static const char *needs(const struct bh_api_field *f, char buf[240])
{
    size_t used = 0;
    switch (f->type) {
    case BH_API_U64:
        (void)snprintf(buf, 240, "a whole number from 0 to %llu", (unsigned long long)f->max);
        break;
    case BH_API_I64:
        (void)snprintf(buf, 240, "a whole number from -%llu to %llu", (unsigned long long)f->max,
                       (unsigned long long)f->max);
        break;
    case BH_API_BOOL:
        (void)snprintf(buf, 240, "true or false");
        break;
    case BH_API_ID:
        (void)snprintf(buf, 240, "an id like %c17", f->letter);
        break;
    case BH_API_NAME:
        (void)snprintf(buf, 240, "a name of lower-case letters, digits and dashes, at most 63");
        break;
    case BH_API_WORD:
        used = (size_t)snprintf(buf, 240, "one of");
        for (size_t i = 0; i < f->words->n && used < 240; i++)
            used += (size_t)snprintf(buf + used, 240 - used, "%s %s", i ? "," : "", f->words->text[i]);
        break;
    case BH_API_TEXTS:
        (void)snprintf(buf, 240, "a list of at most %u texts of at most %llu bytes each", f->most,
                       (unsigned long long)f->max);
        break;
    case BH_API_ONE:
        (void)snprintf(buf, 240, "an object");
        break;
    case BH_API_MANY:
        (void)snprintf(buf, 240, "a list of at most %u objects", f->most);
        break;
    default:
        (void)snprintf(buf, 240, "a text of 1 to %llu bytes of UTF-8 without NUL",
                       (unsigned long long)f->max);
    }
    return buf;
}

static int wrong(const struct bh_api_field *f, const char *had, struct bh_api_problem *p)
{
    char buf[240];
    bh_api_hint(p, needs(f, buf), had, NULL);
    return bh_api_refuse(p, BH_INVALID, "field '%s' is not %s", f->name, buf);
}

/* ---- values that were decoded ---- */

static bool is_utf8(const char *s)
{
    for (size_t n; *s; s += n)
        if (!(n = bh_utf8_len((const unsigned char *)s)))
            return false;
    return true;
}

static const char *word_find(const struct bh_api_field *f, const char *s)
{
    const int i = bh_words_find(f->words, s);
    return i < 0 ? NULL : f->words->text[i];
}

/* A text of any of the kinds that are texts. */
static int put_text(const struct bh_api_field *f, const char *s, struct bh_arena *arena, void *base,
                    struct bh_api_problem *p)
{
    char *at = (char *)base + f->at;
    const char *kept = NULL;
    uint64_t id;
    switch (f->type) {
    case BH_API_ID:
        if (!bh_api_id_parse(s, f->letter, &id))
            return wrong(f, s, p);
        memcpy(at, &id, sizeof(id));
        return 0;
    case BH_API_NAME:
        kept = bh_name_valid(s) ? bh_arena_str(arena, s) : NULL;
        break;
    case BH_API_WORD:
        kept = word_find(f, s);
        break;
    default:
        kept = *s && strlen(s) <= f->max && is_utf8(s) ? bh_arena_str(arena, s) : NULL;
    }
    if (!kept)
        return wrong(f, s, p);
    memcpy(at, &kept, sizeof(kept)); /* by bytes: the member's alignment is its struct's affair */
    return 0;
}

static int put_u64(const struct bh_api_field *f, uint64_t v, void *base, struct bh_api_problem *p)
{
    struct bh_unit_text t;
    (void)snprintf(t.s, sizeof(t.s), "%llu", (unsigned long long)v);
    if (v > f->max)
        return wrong(f, t.s, p);
    memcpy((char *)base + f->at, &v, sizeof(v));
    return 0;
}

static int put_i64(const struct bh_api_field *f, int64_t v, void *base, struct bh_api_problem *p)
{
    struct bh_unit_text t;
    (void)snprintf(t.s, sizeof(t.s), "%lld", (long long)v);
    if (v > (int64_t)f->max || v < -(int64_t)f->max)
        return wrong(f, t.s, p);
    memcpy((char *)base + f->at, &v, sizeof(v));
    return 0;
}

/* ---- JSON ---- */

struct reading {
    struct bh_json_reader r;
    struct bh_arena *arena;
    char *scratch; /* as large as the whole text: no string in it is longer */
    size_t n_scratch;
    struct bh_api_problem *p;
};

static int syntax(struct reading *g, const struct bh_api_field *f)
{
    const char *words = g->r.wrong ? g->r.wrong : "it is not JSON";
    if (f)
        return bh_api_refuse(g->p, BH_INVALID, "field '%s': %s", f->name, words);
    return bh_api_refuse(g->p, BH_INVALID, "the body is no JSON object: %s", words);
}

static const char *kind_words(char peeked)
{
    switch (peeked) {
    case '{':
        return "an object";
    case '[':
        return "a list";
    case '"':
        return "a text";
    case '0':
        return "a number";
    case 't':
    case 'f':
        return "true or false";
    default:
        return "null";
    }
}

static int read_object(struct reading *g, const struct bh_api_shape *shape, void *ret);

static int read_texts(struct reading *g, const struct bh_api_field *f, void *base)
{
    struct bh_api_texts list = {.at = NULL};
    size_t cap = 0;
    if (!bh_json_read_open(&g->r, '['))
        return syntax(g, f);
    while (bh_json_read_item(&g->r)) {
        if (list.n == f->most)
            return wrong(f, "more items", g->p);
        if (bh_json_read_peek(&g->r) != '"')
            return wrong(f, kind_words(bh_json_read_peek(&g->r)), g->p);
        if (!bh_json_read_str(&g->r, g->scratch, g->n_scratch))
            return syntax(g, f);
        if (strlen(g->scratch) > f->max || !is_utf8(g->scratch))
            return wrong(f, "a text that is none of them", g->p);
        if (list.n + 1 >=
            cap) { /* in the arena: what is left behind goes with it; a NULL stands at the end */
            const char **more = bh_arena_alloc(g->arena, (cap = cap ? cap * 2 : 8) * sizeof(*more));
            if (list.n)
                memcpy(more, list.at, list.n * sizeof(*more));
            list.at = more;
        }
        list.at[list.n++] = bh_arena_str(g->arena, g->scratch);
    }
    if (g->r.wrong)
        return syntax(g, f);
    memcpy((char *)base + f->at, &list, sizeof(list));
    return 0;
}

static int read_many(struct reading *g, const struct bh_api_field *f, void *base)
{
    struct bh_api_objects list = {.at = bh_arena_alloc(g->arena, f->most * f->of->size)};
    if (!bh_json_read_open(&g->r, '['))
        return syntax(g, f);
    while (bh_json_read_item(&g->r)) {
        if (list.n == f->most)
            return wrong(f, "more items", g->p);
        const int rc = read_object(g, f->of, (char *)list.at + list.n++ * f->of->size);
        if (rc < 0)
            return rc;
    }
    if (g->r.wrong)
        return syntax(g, f);
    memcpy((char *)base + f->at, &list, sizeof(list));
    return 0;
}

static int read_one(struct reading *g, const struct bh_api_field *f, void *base)
{
    void *one = bh_arena_alloc(g->arena, f->of->size);
    const int rc = read_object(g, f->of, one);
    if (rc == 0)
        memcpy((char *)base + f->at, &one, sizeof(one));
    return rc;
}

static int read_value(struct reading *g, const struct bh_api_field *f, void *base)
{
    static const char kinds[BH_API_TYPES] = {
        [BH_API_TEXT] = '"', [BH_API_NAME] = '"', [BH_API_WORD] = '"', [BH_API_U64] = '0',
        [BH_API_I64] = '0',  [BH_API_BOOL] = 't', [BH_API_ID] = '"',   [BH_API_TEXTS] = '[',
        [BH_API_ONE] = '{',  [BH_API_MANY] = '[',
    };
    const char c = bh_json_read_peek(&g->r);
    uint64_t v;
    int64_t i;
    if (!c)
        return syntax(g, f);
    if (c != kinds[f->type] && !(kinds[f->type] == 't' && c == 'f'))
        return wrong(f, kind_words(c), g->p);
    switch (f->type) {
    case BH_API_U64:
        return bh_json_read_u64(&g->r, &v) ? put_u64(f, v, base, g->p) : syntax(g, f);
    case BH_API_I64:
        return bh_json_read_i64(&g->r, &i) ? put_i64(f, i, base, g->p) : syntax(g, f);
    case BH_API_BOOL:
        return bh_json_read_bool(&g->r, (bool *)((char *)base + f->at)) ? 0 : syntax(g, f);
    case BH_API_TEXTS:
        return read_texts(g, f, base);
    case BH_API_ONE:
        return read_one(g, f, base);
    case BH_API_MANY:
        return read_many(g, f, base);
    default:
        return bh_json_read_str(&g->r, g->scratch, g->n_scratch)
                   ? put_text(f, g->scratch, g->arena, base, g->p)
                   : syntax(g, f);
    }
}

static int field_of(const struct bh_api_shape *shape, const char *name, uint32_t *seen,
                    const struct bh_api_field **ret, struct bh_api_problem *p)
{
    for (size_t i = 0; i < shape->n; i++) {
        if (!bh_str_eq(shape->fields[i].name, name))
            continue;
        if (*seen & UINT32_C(1) << i)
            return bh_api_refuse(p, BH_INVALID, "field '%s' is given twice", name);
        *seen |= UINT32_C(1) << i;
        *ret = &shape->fields[i];
        return 0;
    }
    return unknown(shape, name, p);
}

int bh_api_shape_done(const struct bh_api_shape *shape, uint32_t seen, struct bh_api_problem *p)
{
    char buf[240];
    for (size_t i = 0; i < shape->n; i++) {
        const struct bh_api_field *f = &shape->fields[i];
        if (!f->required || seen & UINT32_C(1) << i)
            continue;
        bh_api_hint(p, needs(f, buf), NULL, NULL);
        return bh_api_refuse(p, BH_INVALID, "field '%s' is missing: %s", f->name, f->doc);
    }
    return 0;
}

/* Shapes do not contain themselves, so the tables decide how deep this goes. */
static int read_object(struct reading *g, const struct bh_api_shape *shape, void *ret)
{
    const struct bh_api_field *f = NULL;
    uint32_t seen = 0;
    char key[KEY_MAX];
    int rc;
    if (!bh_json_read_open(&g->r, '{'))
        return syntax(g, NULL);
    while (bh_json_read_member(&g->r, key, sizeof(key))) {
        if (!is_utf8(key))
            return bh_api_refuse(g->p, BH_INVALID, "the name of a field is not UTF-8, or too long");
        if ((rc = field_of(shape, key, &seen, &f, g->p)) < 0 || (rc = read_value(g, f, ret)) < 0)
            return rc;
    }
    return g->r.wrong ? syntax(g, NULL) : bh_api_shape_done(shape, seen, g->p);
}

int bh_api_body_read(const struct bh_api_shape *shape, const char *text, size_t n, struct bh_arena *arena,
                     void *ret, struct bh_api_problem *p)
{
    struct reading g = {.arena = arena, .scratch = bh_alloc(1, n + 1), .n_scratch = n + 1, .p = p};
    bh_json_read_init(&g.r, text, n);
    memset(ret, 0, shape->size);
    int rc = read_object(&g, shape, ret);
    if (rc == 0 && !bh_json_read_end(&g.r))
        rc = syntax(&g, NULL);
    free(g.scratch);
    return rc;
}

/* ---- query strings ---- */

int bh_api_query_read(const struct bh_api_shape *shape, const char *name, const char *value, uint32_t *seen,
                      struct bh_arena *arena, void *ret, struct bh_api_problem *p)
{
    const struct bh_api_field *f = NULL;
    uint64_t v;
    const int rc = field_of(shape, name, seen, &f, p);
    if (rc < 0)
        return rc;
    switch (f->type) {
    case BH_API_U64:
        return bh_uint_parse(value, f->max, &v, NULL) == 0 ? put_u64(f, v, ret, p) : wrong(f, value, p);
    case BH_API_BOOL:
        if (!bh_str_eq(value, "true") && !bh_str_eq(value, "false"))
            return wrong(f, value, p);
        *(bool *)((char *)ret + f->at) = *value == 't';
        return 0;
    default: /* a query has no lists and no objects */
        return put_text(f, value, arena, ret, p);
    }
}
