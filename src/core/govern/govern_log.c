/* SPDX-License-Identifier: Apache-2.0 */
/* govern_log.c - lines of numbers by the tables of fields.c, both ways. */
#include "core/govern/govern_log.h"

#include "base/str.h"
#include "core/govern/fields.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* ---- writing ---- */

struct line {
    char *at;
    size_t n, size;
    bool full;
};

static void add(struct line *l, const char *s, size_t n)
{
    if (l->full || n >= l->size - l->n) {
        l->full = true;
        return;
    }
    memcpy(l->at + l->n, s, n);
    l->n += n;
}

static void add_number(struct line *l, uint64_t v)
{
    char digits[24];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    digits[--at] = ' ';
    add(l, digits + at, sizeof(digits) - at);
}

static void add_fields(struct line *l, const struct bh_fields *fs, const void *from)
{
    for (size_t i = 0; i < fs->n; i++)
        add_number(l, bh_field_get(&fs->at[i], from));
}

static int finish(struct line *l, struct bh_err *err)
{
    if (l->full)
        return bh_fail(err, BH_TOO_LARGE, "a log line does not fit %zu bytes", l->size);
    l->at[l->n] = '\0';
    return 0;
}

int bh_govern_log_config(const struct bh_govern_config *config, char *line, size_t size, struct bh_err *err)
{
    struct line l = {.at = line, .size = size, .full = size == 0};
    add(&l, "govern 4", 8);
    add_fields(&l, &bh_govern_config_fields, config);
    return finish(&l, err);
}

int bh_govern_log_step(const struct bh_govern_in *in, const struct bh_govern_out *out, char *line,
                       size_t size, struct bh_err *err)
{
    struct line l = {.at = line, .size = size, .full = size == 0};
    if (in->n != out->n || in->n > BH_GOVERN_TENANTS)
        return bh_fail(err, BH_INVALID, "an input for %" PRIu32 " and an output for %" PRIu32, in->n, out->n);
    add(&l, "step", 4);
    add_fields(&l, &bh_govern_in_fields, in);
    add_fields(&l, &bh_govern_out_fields, out);
    for (uint32_t i = 0; i < in->n; i++) {
        add(&l, " |", 2);
        add_fields(&l, &bh_govern_asked_fields, &in->at[i]);
        add(&l, " >", 2);
        add_fields(&l, &bh_govern_told_fields, &out->at[i]);
    }
    return finish(&l, err);
}

/* ---- reading ---- */

static bool take(const char **at, const char *word)
{
    if (!bh_str_starts(*at, word))
        return false;
    *at += strlen(word);
    return true;
}

static bool take_number(const char **at, uint64_t *ret)
{
    const char *s = *at;
    uint64_t v = 0;
    if (*s++ != ' ' || !bh_is_digit(*s) || (*s == '0' && bh_is_digit(s[1])))
        return false;
    for (; bh_is_digit(*s); s++) {
        const uint64_t d = (uint64_t)(*s - '0');
        if (v > (UINT64_MAX - d) / 10)
            return false;
        v = v * 10 + d;
    }
    *at = s;
    *ret = v;
    return true;
}

static int take_fields(const char **at, const char *line, const struct bh_fields *fs, void *to,
                       struct bh_err *err)
{
    for (size_t i = 0; i < fs->n; i++) {
        const struct bh_field *f = &fs->at[i];
        const char *from = *at;
        uint64_t v;
        if (!take_number(at, &v))
            return bh_fail(err, BH_INVALID, "column %zu: %s is not a number", (size_t)(from - line) + 1,
                           f->name);
        if (v < f->min || v > f->max)
            return bh_fail(err, BH_INVALID, "column %zu: %s is out of range", (size_t)(from - line) + 1,
                           f->name);
        bh_field_put(f, to, v);
    }
    return 0;
}

static int expect(const char **at, const char *line, const char *word, struct bh_err *err)
{
    if (!take(at, word))
        return bh_fail(err, BH_INVALID, "column %zu: no \"%s\"", (size_t)(*at - line) + 1, word);
    return 0;
}

static int expect_end(const char *at, const char *line, struct bh_err *err)
{
    return *at ? bh_fail(err, BH_INVALID, "column %zu: more than belongs here", (size_t)(at - line) + 1) : 0;
}

int bh_govern_log_read_config(const char *line, struct bh_govern_config *ret, struct bh_err *err)
{
    const char *at = line;
    int rc = expect(&at, line, "govern 4", err);
    if (rc == 0)
        rc = take_fields(&at, line, &bh_govern_config_fields, ret, err);
    return rc == 0 ? expect_end(at, line, err) : rc;
}

static int read_tenants(const char **at, const char *line, struct bh_govern_in *in, struct bh_govern_out *out,
                        struct bh_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < in->n; i++) {
        rc = expect(at, line, " |", err);
        if (rc == 0)
            rc = take_fields(at, line, &bh_govern_asked_fields, &in->at[i], err);
        if (rc == 0)
            rc = expect(at, line, " >", err);
        if (rc == 0)
            rc = take_fields(at, line, &bh_govern_told_fields, &out->at[i], err);
        if (rc == 0 && in->at[i].id != out->at[i].id)
            rc = bh_fail(err, BH_INVALID, "tenant %" PRIu64 " was told %" PRIu64 "'s part", in->at[i].id,
                         out->at[i].id);
    }
    return rc;
}

int bh_govern_log_read_step(const char *line, struct bh_govern_in *ret_in, struct bh_govern_out *ret_out,
                            struct bh_err *err)
{
    const char *at = line;
    int rc = expect(&at, line, "step", err);
    if (rc == 0)
        rc = take_fields(&at, line, &bh_govern_in_fields, ret_in, err);
    if (rc == 0)
        rc = take_fields(&at, line, &bh_govern_out_fields, ret_out, err);
    if (rc == 0 && ret_in->n != ret_out->n)
        rc = bh_fail(err, BH_INVALID, "an input for %" PRIu32 " and an output for %" PRIu32, ret_in->n,
                     ret_out->n);
    if (rc == 0)
        rc = read_tenants(&at, line, ret_in, ret_out, err);
    return rc == 0 ? expect_end(at, line, err) : rc;
}

static const struct bh_field *first_difference(const struct bh_fields *fs, const void *a, const void *b)
{
    for (size_t i = 0; i < fs->n; i++) {
        if (bh_field_get(&fs->at[i], a) != bh_field_get(&fs->at[i], b))
            return &fs->at[i];
    }
    return NULL;
}

int bh_govern_log_replay(struct bh_govern *g, const char *line, struct bh_err *err)
{
    struct bh_govern_in in = {0};
    struct bh_govern_out was = {0}, now = {0};
    const struct bh_field *f;
    int rc = bh_govern_log_read_step(line, &in, &was, err);
    if (rc == 0)
        rc = bh_govern_step(g, &in, &now, err);
    if (rc < 0)
        return rc;
    f = first_difference(&bh_govern_out_fields, &was, &now);
    for (uint32_t i = 0; !f && i < now.n; i++) {
        f = first_difference(&bh_govern_told_fields, &was.at[i], &now.at[i]);
        if (f)
            return bh_fail(err, BH_CONFLICT, "tenant %" PRIu64 ": %s was %" PRIu64 " and is %" PRIu64,
                           now.at[i].id, f->name, bh_field_get(f, &was.at[i]), bh_field_get(f, &now.at[i]));
    }
    if (f)
        return bh_fail(err, BH_CONFLICT, "%s was %" PRIu64 " and is %" PRIu64, f->name, bh_field_get(f, &was),
                       bh_field_get(f, &now));
    return 0;
}
