/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm.c - lines of `Key=Value` as Slurm reads them.
 *
 * Keys in any letter case, blanks around `=` allowed, values in double quotes where they
 * hold blanks, `#` starts a comment wherever it stands unless a backslash is before it, and
 * a backslash at the end of a line continues it. A line that is none of this is an error.
 */
#include "conf/slurm_cluster.h"

#include "base/str.h"

enum { KEY_MAX = 64 };

struct bh_slurm *bh_slurm_new(struct bh_policy *p, struct bh_diags *d)
{
    struct bh_slurm *s = bh_alloc(1, sizeof(*s));
    s->p = p;
    s->d = d;
    return s;
}

void bh_slurm_free(struct bh_slurm *s)
{
    if (!s)
        return;
    bh_vec_fini(&s->pairs);
    bh_vec_fini(&s->records);
    bh_vec_fini(&s->files);
    bh_vec_fini(&s->lines);
    bh_vec_fini(&s->nodes);
    bh_arena_fini(&s->arena);
    free(s);
}

/* ---- reading lines ---- */

struct cursor {
    const char *at, *end;
    struct bh_pos pos;
};

static char peek(const struct cursor *c)
{
    return c->at < c->end ? *c->at : '\n';
}

static void step(struct cursor *c)
{
    if (c->at == c->end)
        return;
    if (*c->at == '\n') {
        c->pos.line++;
        c->pos.column = 1;
    } else if (((unsigned char)*c->at & 0xc0) != 0x80) {
        c->pos.column++;
    }
    c->at++;
}

static bool is_blank(char ch)
{
    return bh_is_space(ch) && ch != '\n';
}

/* A backslash and only blanks up to the end of the line: the next line belongs to this one. */
static bool at_continuation(const struct cursor *c)
{
    const char *p = c->at;
    if (p == c->end || *p != '\\')
        return false;
    for (p++; p < c->end && is_blank(*p);)
        p++;
    return p < c->end && *p == '\n';
}

static void skip_blanks(struct cursor *c)
{
    for (;;) {
        if (at_continuation(c)) {
            while (peek(c) != '\n')
                step(c);
            step(c);
        } else if (c->at < c->end && is_blank(*c->at)) {
            step(c);
        } else {
            return;
        }
    }
}

static void skip_line(struct cursor *c)
{
    while (c->at < c->end && *c->at != '\n')
        step(c);
}

static bool is_key_char(char ch)
{
    return bh_is_alpha(ch) || bh_is_digit(ch) || ch == '_' || ch == '.';
}

static const char *lower_key(struct bh_slurm *s, const char *at, size_t n)
{
    char *key = bh_arena_strn(&s->arena, at, n);
    for (char *p = key; *p; p++)
        *p = bh_to_lower(*p);
    return key;
}

static const char *read_value(struct bh_slurm *s, struct cursor *c)
{
    const char *from = c->at;
    if (peek(c) == '"') {
        step(c);
        from = c->at;
        while (peek(c) != '"' && peek(c) != '\n')
            step(c);
        const char *value = bh_arena_strn(&s->arena, from, (size_t)(c->at - from));
        if (peek(c) == '"')
            step(c);
        else
            bh_diag_error(s->d, c->pos, "a quoted value is not closed on its line");
        return value;
    }
    while (c->at < c->end && !bh_is_space(*c->at) && !at_continuation(c) &&
           (*c->at != '#' || (c->at > from && c->at[-1] == '\\')))
        step(c);
    return bh_arena_strn(&s->arena, from, (size_t)(c->at - from));
}

/* One `Key=Value`; false: the rest of the line cannot be read. */
static bool read_pair(struct bh_slurm *s, struct cursor *c, bool first)
{
    struct bh_slurm_pair pair = {.pos = c->pos};
    const char *from = c->at;
    while (c->at < c->end && is_key_char(*c->at))
        step(c);
    size_t n = (size_t)(c->at - from);
    pair.key = lower_key(s, from, n <= KEY_MAX ? n : KEY_MAX);
    skip_blanks(c);
    if (first && strcmp(pair.key, "include") == 0 && peek(c) != '=') {
        bh_diag_note(s->d, pair.pos, "an Include is not followed; name the file it means as well");
        return false;
    }
    if (n > 0 && peek(c) != '\n' && strchr("+-*/", peek(c)) && c->at + 1 < c->end && c->at[1] == '=')
        step(c);
    if (n == 0 || peek(c) != '=') {
        bh_diag_error(s->d, pair.pos, "`Key=Value` was expected here");
        return false;
    }
    step(c);
    skip_blanks(c);
    pair.value = read_value(s, c);
    *bh_vec_push(&s->pairs) = pair;
    return true;
}

static void read_line(struct bh_slurm *s, struct cursor *c)
{
    struct bh_slurm_record r = {.first = (uint32_t)s->pairs.n};
    for (;;) {
        skip_blanks(c);
        if (c->at == c->end || *c->at == '\n' || *c->at == '#')
            break;
        if (!read_pair(s, c, s->pairs.n == r.first))
            break;
    }
    skip_line(c);
    step(c);
    r.n = (uint32_t)s->pairs.n - r.first;
    if (r.n)
        *bh_vec_push(&s->records) = r;
}

/* ---- which file it is ---- */

static bool is_cgroup_key(const char *key)
{
    static const char *const keys[] = {
        "allowedramspace",         "allowedswapspace",       "enablecontrollers",
        "ignoresystemd",           "ignoresystemdonfailure", "maxrampercent",
        "maxswappercent",          "memoryswappiness",       "minramspace",
        "signalchildrenprocesses", "systemdtimeout",         "taskaffinity",
        "enableextracontrollers",
    };
    for (size_t i = 0; i < BH_COUNT_OF(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return bh_str_starts(key, "constrain") || bh_str_starts(key, "cgroup");
}

static enum bh_slurm_kind kind_of(const struct bh_slurm *s, uint32_t first_record)
{
    bool gres = false, cgroup = false;
    for (size_t i = first_record; i < s->records.n; i++) {
        const struct bh_slurm_record *r = &s->records.at[i];
        const char *key = s->pairs.at[r->first].key;
        if (bh_slurm_get(s, r, "name") || strcmp(key, "autodetect") == 0 || bh_slurm_get(s, r, "autodetect"))
            gres = true;
        else if (is_cgroup_key(key))
            cgroup = true;
        else
            return BH_SLURM_CONF;
    }
    return gres ? BH_SLURM_GRES : cgroup ? BH_SLURM_CGROUP : BH_SLURM_CONF;
}

void bh_slurm_add(struct bh_slurm *s, const char *text, size_t n, uint32_t file)
{
    uint32_t first = (uint32_t)s->records.n;
    struct cursor c = {text, text + n, {file, 1, 1}};
    while (c.at < c.end)
        read_line(s, &c);
    if (s->records.n == first)
        return;
    *bh_vec_push(&s->files) = (struct bh_slurm_file){.kind = (uint8_t)kind_of(s, first),
                                                     .first = s->pairs.at[s->records.at[first].first].pos};
}

/* ---- asking ---- */

const struct bh_slurm_pair *bh_slurm_get(const struct bh_slurm *s, const struct bh_slurm_record *r,
                                         const char *key)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (strcmp(s->pairs.at[r->first + i].key, key) == 0)
            return &s->pairs.at[r->first + i];
    return NULL;
}

/* Lines that describe a node, a partition or a device set nothing for the cluster. */
static bool is_about_one_thing(const struct bh_slurm *s, const struct bh_slurm_record *r)
{
    static const char *const keys[] = {"nodename", "partitionname", "name",
                                       "nodeset",  "downnodes",     "frontendname"};
    const char *key = s->pairs.at[r->first].key;
    for (size_t i = 0; i < BH_COUNT_OF(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

const struct bh_slurm_pair *bh_slurm_global(const struct bh_slurm *s, const char *key)
{
    const struct bh_slurm_pair *found = NULL;
    for (size_t i = 0; i < s->records.n; i++) {
        const struct bh_slurm_record *r = &s->records.at[i];
        const struct bh_slurm_pair *p = is_about_one_thing(s, r) ? NULL : bh_slurm_get(s, r, key);
        found = p ? p : found;
    }
    return found;
}

bool bh_slurm_has(const struct bh_slurm_pair *p, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = p ? p->value : ""; *at;) {
        size_t len = strcspn(at, ",");
        size_t same = 0;
        while (same < n && same < len && bh_to_lower(at[same]) == bh_to_lower(word[same]))
            same++;
        if (same == n && len == n)
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}
