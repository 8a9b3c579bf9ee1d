/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - node and GPU patterns: `gpu-[01-04]`, `gpu-[1,3]x`, `a,b`, `gpu-01:0-3`.
 *
 * A pattern is checked and counted whole before the first name is handed out, so a
 * caller never sees part of a bad one and a large range costs nothing to refuse.
 * What comes out is not made unique: `a,a` is `a` twice.
 */
#include "base/str.h"
#include "core/model/policy.h"

#include <inttypes.h>
#include <stdio.h>

/* A name as long as DNS allows; a number short enough that no sum of two can wrap. */
enum { NAME_MAX_BYTES = 253, DIGITS_MAX = 18 };

struct span {
    const char *at, *end;
};

/* One name of a pattern: `head[ranges]tail`; ranges.at NULL: no brackets. */
struct piece {
    struct span head, ranges, tail;
};

struct range {
    uint64_t lo, hi;
    int width; /* digits to pad to */
};

static bool name_char(char c)
{
    return bh_is_alpha(c) || bh_is_digit(c) || c == '-' || c == '.' || c == '_';
}

static int refuse(struct bh_err *err, struct span whole, const char *why)
{
    int shown = whole.end - whole.at > 60 ? 60 : (int)(whole.end - whole.at);
    return bh_fail(err, BH_INVALID, "'%.*s': %s", shown, whole.at, why);
}

static void skip_comma(struct span *s)
{
    s->at++;
    while (s->at < s->end && *s->at == ' ')
        s->at++;
}

static bool number(struct span *s, uint64_t *ret)
{
    const char *first = s->at;
    uint64_t v = 0;
    for (; s->at < s->end && bh_is_digit(*s->at); s->at++) {
        if (s->at - first == DIGITS_MAX)
            return false;
        v = v * 10 + (uint64_t)(*s->at - '0');
    }
    *ret = v;
    return s->at > first;
}

static const char *number_missing(const struct span *s, const char *otherwise)
{
    return s->at < s->end && bh_is_digit(*s->at) ? "a number is too long" : otherwise;
}

/* `7` or `01-04` at the start of *s, and the comma behind it. NULL, or why not. */
static const char *range_next(struct span *s, struct range *ret)
{
    const char *lo = s->at;
    if (!number(s, &ret->lo))
        return number_missing(s, "a number or a range like 1-4 is needed");
    ptrdiff_t n_lo = s->at - lo;
    ret->hi = ret->lo;
    ret->width = (int)n_lo;
    if (s->at < s->end && *s->at == '-') {
        const char *hi = ++s->at;
        if (!number(s, &ret->hi))
            return number_missing(s, "a range has no end");
        ptrdiff_t n_hi = s->at - hi;
        if (ret->hi < ret->lo)
            return "a range runs backwards";
        /* 001-10 and 1-010 leave open how many zeros are meant */
        if ((*hi == '0' && n_hi > 1 && n_hi != n_lo) || n_hi < n_lo)
            return "both ends of a range must be padded alike";
    }
    if (s->at == s->end)
        return NULL;
    if (*s->at != ',')
        return "a number or a range like 1-4 is needed";
    skip_comma(s);
    return s->at == s->end ? "a comma has nothing behind it" : NULL;
}

static const char *ranges_count(struct span s, uint64_t *ret)
{
    uint64_t n = 0;
    struct range r;
    do {
        const char *why = range_next(&s, &r);
        if (why)
            return why;
        if (__builtin_add_overflow(n, r.hi - r.lo + 1, &n))
            n = UINT64_MAX;
    } while (s.at < s.end);
    *ret = n;
    return NULL;
}

/* The next name of the pattern in *s, and the comma behind it. NULL, or why not. */
static const char *piece_next(struct span *s, struct piece *ret)
{
    const char *begin = s->at;
    *ret = (struct piece){.head = {begin, begin}};
    struct span *part = &ret->head;
    for (; s->at < s->end && *s->at != ','; s->at++) {
        if (*s->at == '[') {
            if (ret->ranges.at)
                return "only one pair of brackets is allowed in a name";
            ret->ranges.at = ++s->at;
            while (s->at < s->end && *s->at != ']' && *s->at != '[')
                s->at++;
            if (s->at == s->end)
                return "a bracket is not closed";
            if (*s->at == '[')
                return "brackets do not nest";
            ret->ranges.end = s->at;
            part = &ret->tail;
            part->at = s->at + 1;
        } else if (*s->at == ']') {
            return "a bracket closes that was not opened";
        } else if (!name_char(*s->at)) {
            return "a node name takes letters, digits, '-', '.' and '_'";
        }
        part->end = s->at + 1;
    }
    if (s->at == begin)
        return "a name is empty";
    if (s->at < s->end) {
        skip_comma(s);
        return s->at == s->end ? "a comma has nothing behind it" : NULL;
    }
    return NULL;
}

static bool too_long(const struct piece *p)
{
    ptrdiff_t n = (p->head.end - p->head.at) + (p->ranges.at ? p->tail.end - p->tail.at + DIGITS_MAX : 0);
    return n > NAME_MAX_BYTES;
}

static const char *pattern_count(struct span s, uint64_t *ret)
{
    uint64_t n = 0, more;
    struct piece p;
    do {
        const char *why = piece_next(&s, &p);
        if (why)
            return why;
        more = 1;
        if (p.ranges.at && (why = ranges_count(p.ranges, &more)))
            return why;
        if (too_long(&p))
            return "a name is too long";
        if (__builtin_add_overflow(n, more, &n))
            n = UINT64_MAX;
    } while (s.at < s.end);
    *ret = n;
    return NULL;
}

static void piece_each(const struct piece *p, bh_node_name_fn fn, void *ctx)
{
    char name[NAME_MAX_BYTES + 1];
    int n_head = (int)(p->head.end - p->head.at), n_tail = (int)(p->tail.end - p->tail.at);
    struct span s = p->ranges;
    struct range r;
    if (!s.at) {
        (void)snprintf(name, sizeof(name), "%.*s", n_head, p->head.at);
        fn(ctx, name);
        return;
    }
    while (s.at < s.end && !range_next(&s, &r))
        for (uint64_t i = r.lo; i <= r.hi; i++) {
            (void)snprintf(name, sizeof(name), "%.*s%0*" PRIu64 "%.*s", n_head, p->head.at, r.width, i,
                           n_tail, p->tail.at);
            fn(ctx, name);
        }
}

/* A pattern already counted. */
static void pattern_each(struct span s, bh_node_name_fn fn, void *ctx)
{
    struct piece p;
    while (s.at < s.end && !piece_next(&s, &p))
        piece_each(&p, fn, ctx);
}

int bh_nodes_expand(const char *pattern, size_t max, bh_node_name_fn fn, void *ctx, struct bh_err *err)
{
    struct span s = {pattern, pattern + strlen(pattern)};
    uint64_t n;
    const char *why = pattern_count(s, &n);
    if (why)
        return refuse(err, s, why);
    if (n > max)
        return bh_fail(err, BH_TOO_LARGE, "'%.60s' names %" PRIu64 " nodes, more than %zu", pattern, n, max);
    pattern_each(s, fn, ctx);
    return BH_OK;
}

struct on_each_gpu {
    struct span indices;
    bh_gpu_name_fn fn;
    void *ctx;
};

static void node_each_gpu(void *ctx, const char *node)
{
    const struct on_each_gpu *e = ctx;
    struct span s = e->indices;
    struct range r;
    while (s.at < s.end && !range_next(&s, &r))
        for (uint64_t i = r.lo; i <= r.hi; i++)
            e->fn(e->ctx, node, (uint32_t)i);
}

static const char *indices_check(struct span s)
{
    struct range r;
    while (s.at < s.end) {
        const char *why = range_next(&s, &r);
        if (why)
            return why;
        if (r.hi > UINT32_MAX)
            return "a GPU index is too large";
    }
    return NULL;
}

int bh_gpus_expand(const char *pattern, size_t max, bh_gpu_name_fn fn, void *ctx, struct bh_err *err)
{
    const char *colon = strchr(pattern, ':');
    struct span whole = {pattern, pattern + strlen(pattern)};
    if (!colon)
        return refuse(err, whole, "no GPU is named; write it like gpu-01:0 or gpu-01:0-3");
    struct span nodes = {pattern, colon};
    struct on_each_gpu each = {{colon + 1, whole.end}, fn, ctx};
    uint64_t n_nodes, n_indices, n;
    const char *why = pattern_count(nodes, &n_nodes);
    if (!why && strchr(colon + 1, ':'))
        why = "more than one ':'; give each node a pattern of its own";
    if (!why)
        why = ranges_count(each.indices, &n_indices);
    if (!why)
        why = indices_check(each.indices);
    if (why)
        return refuse(err, whole, why);
    if (__builtin_mul_overflow(n_nodes, n_indices, &n))
        n = UINT64_MAX;
    if (n > max)
        return bh_fail(err, BH_TOO_LARGE, "'%.60s' names %" PRIu64 " GPUs, more than %zu", pattern, n, max);
    pattern_each(nodes, node_each_gpu, &each);
    return BH_OK;
}
