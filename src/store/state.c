/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - notes, and the small things that every room of the state needs. */
#include "store/state.h"

#include "base/str.h"
#include "store/state_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int bh_state_word(const struct bh_words *words, unsigned value, const char *what, const char **ret,
                  struct bh_err *err)
{
    if (value >= words->n)
        return bh_fail(err, BH_INVALID, "%u is no %s", value, what);
    *ret = words->text[value];
    return 0;
}

int bh_state_value(const struct bh_words *words, const char *word, const char *what, uint8_t *ret,
                   struct bh_err *err)
{
    const int v = word ? bh_words_find(words, word) : -1;
    if (v < 0)
        return bh_fail(err, BH_REFUSED, "the store says '%s', which is no %s that this Bulkhead knows",
                       word ? word : "", what);
    *ret = (uint8_t)v;
    return 0;
}

void bh_state_page(struct bh_sql *q, int at_after, int at_limit, const struct bh_store_page *page)
{
    static const struct bh_store_page first = {0};
    const struct bh_store_page *p = page ? page : &first;
    const uint32_t limit = p->limit ? p->limit : BH_STORE_PAGE;
    bh_sql_uint(q, at_after, p->newest && !p->after ? INT64_MAX : p->after);
    bh_sql_uint(q, at_limit, limit < BH_STORE_PAGE_MAX ? limit : BH_STORE_PAGE_MAX);
}

void bh_state_mask(const struct bh_words *words, uint32_t bits, struct bh_buf *buf)
{
    for (size_t i = 0; i < words->n; i++) {
        if (!bits || bits >> i & 1)
            bh_buf_printf(buf, " %s ", words->text[i]);
    }
}

BH_PRINTF(2, 0) static int none(struct bh_err *err, const char *what, va_list args)
{
    char text[240];
    (void)vsnprintf(text, sizeof(text), what, args);
    return bh_fail(err, BH_NOT_FOUND, "there is no %s", text);
}

int bh_state_one(struct bh_sql *q, struct bh_err *err, const char *what, ...)
{
    uint64_t changed;
    int rc = bh_sql_run(q, &changed, err);
    if (rc == 0 && !changed) {
        va_list args;
        va_start(args, what);
        rc = none(err, what, args);
        va_end(args);
    }
    return rc;
}

int bh_state_first(struct bh_sql *q, struct bh_err *err, const char *what, ...)
{
    int rc = bh_sql_step(q, err);
    if (rc == 0) {
        va_list args;
        va_start(args, what);
        rc = none(err, what, args);
        va_end(args);
    }
    return rc < 0 ? rc : 0;
}

int bh_state_end(struct bh_store *s, int rc, struct bh_err *err)
{
    if (rc >= 0)
        return bh_store_commit(s, err);
    bh_store_rollback(s);
    return rc;
}

/* ---- notes ---- */

int bh_store_note_set(struct bh_store *s, const char *key, const void *value, size_t n, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s,
                              "INSERT INTO notes(key, value) VALUES (?1, ?2)"
                              " ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                              &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, key);
    bh_sql_blob(&q, 2, value, n);
    return bh_sql_run(&q, NULL, err);
}

int bh_store_note_set_text(struct bh_store *s, const char *key, const char *value, struct bh_err *err)
{
    return bh_store_note_set(s, key, value, strlen(value), err);
}

static int read_note(struct bh_sql *q, struct bh_arena *arena, struct bh_store_note *ret, struct bh_err *err)
{
    (void)err;
    ret->key = bh_sql_col_text(q, 0, arena);
    ret->value = bh_sql_col_blob(q, 1, arena, &ret->n);
    return 0;
}

int bh_store_note_get(struct bh_store *s, struct bh_arena *arena, const char *key, struct bh_store_note *ret,
                      struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT key, value FROM notes WHERE key = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, key);
    rc = bh_state_first(&q, err, "note '%s'", key);
    if (rc < 0)
        return rc;
    rc = read_note(&q, arena, ret, err);
    bh_sql_done(&q);
    return rc;
}

int bh_store_note_remove(struct bh_store *s, const char *key, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, "DELETE FROM notes WHERE key = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, key);
    return bh_sql_run(&q, NULL, err);
}

int bh_store_notes_list(struct bh_store *s, struct bh_arena *arena, const char *prefix, bh_store_notes *ret,
                        struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s, "SELECT key, value FROM notes WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 ORDER BY key",
        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, prefix);
    bh_state_rows(&q, arena, ret, read_note, rc, err);
    return rc;
}
