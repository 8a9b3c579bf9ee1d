/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_fixture.h - reads what the writer wrote, by the grammar of the formats and not by the writer's code.
 *
 * Strict: a line that a scraper would refuse, a family that comes twice, a sample that is not of the family above it, and a
 * series that comes twice are each a failure, told in `why`.
 */
#ifndef BH_METRICS_READ_FIXTURE_H
#define BH_METRICS_READ_FIXTURE_H

#include "base/map.h"
#include "base/str.h"
#include "metrics/metrics.h"

#include <stdio.h>

struct read_sample {
    const char *family, *type, *series; /* series: the name with its labels, as written */
    const char *name;
    const char *keys[BH_METRIC_LABELS + 1], *values[BH_METRIC_LABELS + 1];
    size_t n_labels;
    const char *value;
};

struct read_text {
    struct bh_arena arena;
    BH_VEC(struct read_sample) samples;
    struct bh_map families, series;
    const char *family, *type;
    bool open, ended;
    const char *why; /* NULL: sound */
};

static inline void read_fini(struct read_text *r)
{
    bh_vec_fini(&r->samples);
    bh_map_fini(&r->families);
    bh_map_fini(&r->series);
    bh_arena_fini(&r->arena);
}

static inline bool read_wrong(struct read_text *r, const char *why, const char *line)
{
    r->why = bh_arena_printf(&r->arena, "%s: %.200s", why, line);
    return false;
}

static inline bool read_is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(bh_is_alpha(s[i]) || s[i] == '_' || (i && bh_is_digit(s[i]))))
            return false;
    return n > 0;
}

/* `# TYPE name word`, HELP before it, UNIT after it. */
static inline bool read_head(struct read_text *r, const char *line)
{
    const bool help = bh_str_starts(line, "# HELP "), type = bh_str_starts(line, "# TYPE ");
    if (!help && !type && !(r->open && bh_str_starts(line, "# UNIT ")))
        return read_wrong(r, "an unknown comment", line);
    const char *name = line + 7;
    const size_t n = strcspn(name, " ");
    if (!read_is_name(name, n) || name[n] != ' ' || !name[n + 1])
        return read_wrong(r, "a head without a name or a text", line);
    const char *copy = bh_arena_strn(&r->arena, name, n);
    if (help) {
        if (bh_map_add(&r->families, copy, 0) != BH_MAP_NONE)
            return read_wrong(r, "a family comes twice", line);
        r->family = copy;
        r->type = NULL;
        return true;
    }
    if (!bh_str_eq(copy, r->family))
        return read_wrong(r, "a head of another family", line);
    if (type)
        r->type = bh_arena_str(&r->arena, name + n + 1);
    else if (!bh_str_ends(copy, bh_arena_printf(&r->arena, "_%s", name + n + 1)))
        return read_wrong(r, "a unit that the name does not end with", line);
    return true;
}

/* `key="va\"lue"`; at: behind it. */
static inline bool read_label(struct read_text *r, const char **at, struct read_sample *s)
{
    const size_t n = strcspn(*at, "=");
    char *value = bh_arena_alloc(&r->arena, strlen(*at) + 1);
    size_t used = 0;
    if (!read_is_name(*at, n) || (*at)[n] != '=' || (*at)[n + 1] != '"' || s->n_labels > BH_METRIC_LABELS)
        return false;
    const char *c = *at + n + 2;
    for (; *c && *c != '"'; c++) {
        if (*c == '\\') {
            c++;
            if (*c != 'n' && *c != '\\' && *c != '"')
                return false;
            value[used++] = *c;
            if (*c == 'n')
                value[used - 1] = '\n';
        } else {
            value[used++] = *c;
        }
    }
    if (*c != '"')
        return false;
    s->keys[s->n_labels] = bh_arena_strn(&r->arena, *at, n);
    s->values[s->n_labels++] = value;
    *at = c + 1;
    return true;
}

static inline bool read_is_number(const char *s)
{
    s += *s == '-';
    size_t whole = strspn(s, "0123456789");
    s += whole;
    if (*s == '.')
        s += 1 + strspn(s + 1, "0123456789");
    return whole && !*s;
}

/* Is a sample of this name one of a family of this type? */
static inline bool read_belongs(const struct read_text *r, const char *name)
{
    static const char *const of[][5] = {{"counter", "_total"},
                                        {"info", "_info"},
                                        {"histogram", "_bucket", "_count", "_sum"},
                                        {"summary", "_count", "_sum"},
                                        {"gauge", ""},
                                        {"unknown", ""},
                                        {"untyped", ""}};
    if (!r->family || !r->type || !bh_str_starts(name, r->family))
        return false;
    const char *suffix = name + strlen(r->family);
    const bool plain = !r->open && (bh_str_eq(r->type, "counter"));
    for (size_t i = 0; i < BH_COUNT_OF(of); i++)
        for (size_t k = 1; bh_str_eq(of[i][0], r->type) && k < 5 && of[i][k]; k++)
            if (bh_str_eq(suffix, plain ? "" : of[i][k]))
                return !plain || bh_str_ends(name, "_total");
    return false;
}

static inline bool read_sample_line(struct read_text *r, const char *line)
{
    struct read_sample s = {.family = r->family, .type = r->type};
    const size_t n = strcspn(line, "{ ");
    const char *at = line + n;
    s.name = bh_arena_strn(&r->arena, line, n);
    if (!read_is_name(line, n) || !read_belongs(r, s.name))
        return read_wrong(r, "a sample of no family", line);
    if (*at == '{') {
        do {
            at++;
            if (!read_label(r, &at, &s))
                return read_wrong(r, "a label", line);
        } while (*at == ',');
        if (*at++ != '}')
            return read_wrong(r, "labels that do not end", line);
    }
    s.series = bh_arena_strn(&r->arena, line, (size_t)(at - line));
    if (*at != ' ' || !read_is_number(at + 1))
        return read_wrong(r, "no number", line);
    s.value = bh_arena_str(&r->arena, at + 1);
    if (bh_map_add(&r->series, s.series, 0) != BH_MAP_NONE)
        return read_wrong(r, "a series comes twice", line);
    *bh_vec_push(&r->samples) = s;
    return true;
}

static inline bool read_all(struct read_text *r, const char *text, bool open)
{
    r->open = open;
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "\n");
        const char *line = bh_arena_strn(&r->arena, at, n);
        if (at[n] != '\n')
            return read_wrong(r, "a line without an end", line);
        if (r->ended)
            return read_wrong(r, "something behind the end", line);
        at += n + 1;
        if (open && bh_str_eq(line, "# EOF"))
            r->ended = true;
        else if (!(*line == '#' ? read_head(r, line) : read_sample_line(r, line)))
            return false;
    }
    return r->ended == open || read_wrong(r, "no end", "");
}

/* The value of a series as it is written; NULL: there is none. */
static inline const char *read_value(const struct read_text *r, const char *series)
{
    for (size_t i = 0; i < r->samples.n; i++)
        if (bh_str_eq(r->samples.at[i].series, series))
            return r->samples.at[i].value;
    return NULL;
}

#endif
