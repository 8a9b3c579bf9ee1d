/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_seccomp.c - do two seccomp objects make the same filter?
 *
 * Engines pass a profile on in their own writing: other order of keys, zeros and empty lists left out. Each is taken
 * apart into lines, one for each call and condition, sorted, and the lines are compared. A key that is not known is a line
 * too: nobody can say that it does nothing.
 */
#include "host/bundle_spec.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/bundle_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 8192, WORD_MAX = 512, ARGS_MAX = 6, LINE_MAX_BYTES = 4096 };

struct taken {
    struct bh_arena arena;
    BH_VEC(char *) lines;
    /* the rule being read */
    BH_VEC(char *) names;
    char action[WORD_MAX], error[32];
    char args[ARGS_MAX][160];
    size_t n_args;
    char part[4][WORD_MAX]; /* index, value, valueTwo, op */
};

static void line(struct bh_read *r, const char *key, const char *value, size_t n)
{
    struct taken *t = r->into;
    if (t->lines.n >= LINES_MAX || n > LINE_MAX_BYTES)
        r->wrong = "it has more rules, or longer ones, than any profile";
    else
        *bh_vec_push(&t->lines) = bh_arena_printf(&t->arena, "%s %.*s", key, (int)n, value);
}

/* A number or a word, as written, into buf; null and "" are nothing. */
static void word(struct bh_read *r, char *buf, size_t size)
{
    const char *text;
    size_t n;
    if (bh_json_read_peek(&r->json) == '"') {
        if (!bh_read_text(r, buf, size))
            r->wrong = "a word is too long";
        return;
    }
    bh_read_raw(r, &text, &n);
    if (n >= size)
        r->wrong = "a value is too long";
    else
        (void)snprintf(buf, size, "%.*s", n == 4 && memcmp(text, "null", 4) == 0 ? 0 : (int)n, text);
}

static void unknown(struct bh_read *r, const char *key)
{
    const char *text;
    size_t n;
    bh_read_raw(r, &text, &n);
    line(r, key, text, n);
}

/* ---- conditions ---- */

static void arg_index(struct bh_read *r)
{
    word(r, ((struct taken *)r->into)->part[0], WORD_MAX);
}
static void arg_value(struct bh_read *r)
{
    word(r, ((struct taken *)r->into)->part[1], WORD_MAX);
}
static void arg_value_two(struct bh_read *r)
{
    word(r, ((struct taken *)r->into)->part[2], WORD_MAX);
}
static void arg_op(struct bh_read *r)
{
    word(r, ((struct taken *)r->into)->part[3], WORD_MAX);
}
static void arg(struct bh_read *r)
{
    static const struct bh_read_member members[] = {
        {"index", arg_index}, {"value", arg_value}, {"valueTwo", arg_value_two}, {"op", arg_op}};
    struct taken *t = r->into;
    memset(t->part, 0, sizeof(t->part));
    bh_read_object(r, members, BH_COUNT_OF(members), unknown);
    if (t->n_args == ARGS_MAX) {
        r->wrong = "a rule has more conditions than a call has arguments";
        return;
    }
    const char *p[3];
    for (size_t i = 0; i < 3; i++)
        p[i] = *t->part[i] ? t->part[i] : "0";
    if (snprintf(t->args[t->n_args++], sizeof(t->args[0]), "[%s] %s %s %s", p[0], t->part[3], p[1], p[2]) >=
        (int)sizeof(t->args[0]))
        r->wrong = "a condition is too long";
}

/* ---- rules ---- */

static void rule_name(struct bh_read *r)
{
    struct taken *t = r->into;
    char name[BH_READ_KEY_MAX];
    if (!bh_read_text(r, name, sizeof(name)))
        r->wrong = "the name of a call is no word";
    else if (t->names.n >= LINES_MAX)
        r->wrong = "a rule has too many names";
    else
        *bh_vec_push(&t->names) = bh_arena_str(&t->arena, name);
}
static void rule_names(struct bh_read *r)
{
    bh_read_list(r, rule_name);
}
static void rule_action(struct bh_read *r)
{
    struct taken *t = r->into;
    word(r, t->action, sizeof(t->action));
}
static void rule_error(struct bh_read *r)
{
    struct taken *t = r->into;
    word(r, t->error, sizeof(t->error));
}
static void rule_args(struct bh_read *r)
{
    bh_read_list(r, arg);
}

static int by_text(const void *a, const void *b)
{
    const char *x, *y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return strcmp(x, y);
}
static int by_bytes(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void rule(struct bh_read *r)
{
    static const struct bh_read_member members[] = {
        {"names", rule_names}, {"action", rule_action}, {"errnoRet", rule_error}, {"args", rule_args}};
    struct taken *t = r->into;
    char text[WORD_MAX + 32 + ARGS_MAX * 164];
    t->names.n = t->n_args = 0;
    t->action[0] = t->error[0] = '\0';
    bh_read_object(r, members, BH_COUNT_OF(members), unknown);
    qsort(t->args, t->n_args, sizeof(t->args[0]), by_bytes);
    size_t n = (size_t)snprintf(text, sizeof(text), "%s %s", t->action, t->error);
    for (size_t i = 0; i < t->n_args; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", t->args[i]);
    for (size_t i = 0; i < t->names.n && !r->wrong; i++)
        line(r, t->names.at[i], text, n);
}

/* ---- the whole ---- */

static void rules(struct bh_read *r)
{
    bh_read_list(r, rule);
}
static void architecture(struct bh_read *r)
{
    char name[WORD_MAX] = "";
    word(r, name, sizeof(name));
    line(r, "architecture", name, strlen(name));
}
static void architectures(struct bh_read *r)
{
    bh_read_list(r, architecture);
}
static void flag(struct bh_read *r)
{
    char name[WORD_MAX] = "";
    word(r, name, sizeof(name));
    line(r, "flag", name, strlen(name));
}
static void flags(struct bh_read *r)
{
    bh_read_list(r, flag);
}
static void top(struct bh_read *r, const char *key)
{
    char value[BH_SPEC_TEXT_MAX] = "";
    word(r, value, sizeof(value));
    if (*value)
        line(r, key, value, strlen(value));
}
static void default_action(struct bh_read *r)
{
    top(r, "defaultAction");
}
static void listener_path(struct bh_read *r)
{
    top(r, "listenerPath");
}
static void listener_metadata(struct bh_read *r)
{
    top(r, "listenerMetadata");
}

static int take(const char *text, size_t n, struct taken *t, const char *what, struct bh_err *err)
{
    static const struct bh_read_member members[] = {
        {"defaultAction", default_action}, {"architectures", architectures},        {"flags", flags},
        {"listenerPath", listener_path},   {"listenerMetadata", listener_metadata}, {"syscalls", rules},
    };
    struct bh_read r = {.into = t};
    bh_json_read_init(&r.json, text, n);
    if (bh_json_read_peek(&r.json) != '{')
        return bh_fail(err, BH_REFUSED, "%s is no JSON object", what);
    bh_read_object(&r, members, BH_COUNT_OF(members), unknown);
    const char *wrong = bh_read_end(&r);
    if (wrong)
        return bh_fail(err, BH_REFUSED, "%s cannot be used: %s", what, wrong);
    if (t->lines.n)
        qsort(t->lines.at, t->lines.n, sizeof(t->lines.at[0]), by_text);
    return BH_OK;
}

static int compare(const struct taken *want, const struct taken *have, struct bh_err *err)
{
    for (size_t i = 0; i < want->lines.n || i < have->lines.n; i++) {
        const char *w = i < want->lines.n ? want->lines.at[i] : NULL;
        const char *h = i < have->lines.n ? have->lines.at[i] : NULL;
        if (bh_str_eq(w, h))
            continue;
        const bool missing = w && (!h || strcmp(w, h) < 0);
        return bh_fail(err, BH_REFUSED, "its seccomp profile is not the lease's: %s '%.160s'",
                       missing ? "it lacks" : "it has", missing ? w : h);
    }
    return BH_OK;
}

static void taken_fini(struct taken *t)
{
    bh_vec_fini(&t->lines);
    bh_vec_fini(&t->names);
    bh_arena_fini(&t->arena);
}

int bh_spec_same_seccomp(const char *want, size_t n_want, const char *have, size_t n_have, struct bh_err *err)
{
    struct taken *t = bh_alloc(2, sizeof(*t));
    int rc = take(want, n_want, &t[0], "the lease's seccomp profile", err);
    rc = rc < 0 ? rc : take(have, n_have, &t[1], "the container's seccomp profile", err);
    rc = rc < 0 ? rc : compare(&t[0], &t[1], err);
    taken_fini(&t[0]);
    taken_fini(&t[1]);
    free(t);
    return rc;
}
