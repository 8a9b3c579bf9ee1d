/* SPDX-License-Identifier: Apache-2.0 */
/* db_sql.c - statements kept ready, bound, stepped; and SQLite's codes in the project's own. */
#include "store/db_sql.h"

#include "store/db_inside.h"
#include "store/db_open.h"

#include <string.h>

/* ---- failures ---- */

static const struct {
    int sqlite; /* its primary code, or an extended one */
    enum bh_code code;
    const char *words;
} failures[] = {
    {SQLITE_CONSTRAINT_CHECK, BH_INVALID, "not a value that the store takes"},
    {SQLITE_CONSTRAINT_NOTNULL, BH_INVALID, "a value is missing"},
    {SQLITE_CONSTRAINT_DATATYPE, BH_INVALID, "not a value that the store takes"},
    {SQLITE_CONSTRAINT_TRIGGER, BH_CONFLICT, NULL},
    {SQLITE_CONSTRAINT_FOREIGNKEY, BH_CONFLICT, "it refers to something that is not there"},
    {SQLITE_CONSTRAINT, BH_CONFLICT, "it is there already"},
    {SQLITE_BUSY, BH_BUSY, "another process is writing to the store"},
    {SQLITE_LOCKED, BH_BUSY, "the store is being read"},
    {SQLITE_FULL, BH_SYSTEM, "the disk of the store is full"},
    {SQLITE_READONLY, BH_DENIED, "the store cannot be written to"},
    {SQLITE_PERM, BH_DENIED, "the store cannot be written to"},
    {SQLITE_AUTH, BH_DENIED, "the store cannot be written to"},
    {SQLITE_CANTOPEN, BH_SYSTEM, "the store cannot be opened"},
    {SQLITE_NOTADB, BH_REFUSED, "this is no store of Bulkhead's"},
    {SQLITE_CORRUPT, BH_REFUSED, "the store is damaged: restore a backup"},
    {SQLITE_TOOBIG, BH_TOO_LARGE, "too large for the store"},
};

int bh_sqlite_fail(sqlite3 *db, int sqlite_code, struct bh_err *err)
{
    const char *said = db ? sqlite3_errmsg(db) : sqlite3_errstr(sqlite_code);
    for (size_t i = 0; i < BH_COUNT_OF(failures); i++) {
        if (failures[i].sqlite != sqlite_code && failures[i].sqlite != (sqlite_code & 0xff))
            continue;
        if (!failures[i].words)
            return bh_fail(err, failures[i].code, "%s", said);
        return bh_fail(err, failures[i].code, "%s (%s)", failures[i].words, said);
    }
    return bh_fail(err, BH_SYSTEM, "the store: %s (code %d)", said, sqlite_code);
}

int bh_sql_fail(struct bh_store *s, int sqlite_code, struct bh_err *err)
{
    return bh_sqlite_fail(s->db, sqlite_code, err);
}

sqlite3 *bh_store_handle(struct bh_store *s)
{
    return s->db;
}

/* ---- statements ---- */

int bh_sql_get(struct bh_store *s, const char *text, struct bh_sql *ret, struct bh_err *err)
{
    const uint64_t key = (uintptr_t)text;
    uint32_t at = bh_idmap_find(&s->known, key);
    if (at == BH_IDMAP_NONE) {
        sqlite3_stmt *stmt = NULL;
        const int code = sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
        if (code != SQLITE_OK)
            return bh_sql_fail(s, code, err);
        at = (uint32_t)s->stmts.n;
        *bh_vec_push(&s->stmts) = stmt;
        bh_idmap_add(&s->known, key, at);
    }
    *ret = (struct bh_sql){.store = s, .stmt = s->stmts.at[at]};
    if (s->mode == BH_STORE_READ && !sqlite3_stmt_readonly(ret->stmt))
        return bh_fail(err, BH_DENIED, "'%s' is open to read only", s->path);
    /* One that a caller left in the middle. */
    sqlite3_reset(ret->stmt);
    return 0;
}

void bh_sql_forget(struct bh_store *s)
{
    for (size_t i = 0; i < s->stmts.n; i++)
        sqlite3_finalize(s->stmts.at[i]);
    bh_vec_fini(&s->stmts);
    bh_idmap_fini(&s->known);
}

static void bound(struct bh_sql *q, int code)
{
    if (code != SQLITE_OK && q->bad == SQLITE_OK)
        q->bad = code;
}

void bh_sql_int(struct bh_sql *q, int at, int64_t v)
{
    bound(q, sqlite3_bind_int64(q->stmt, at, v));
}

void bh_sql_uint(struct bh_sql *q, int at, uint64_t v)
{
    bound(q, v > INT64_MAX ? SQLITE_TOOBIG : sqlite3_bind_int64(q->stmt, at, (int64_t)v));
}

void bh_sql_text(struct bh_sql *q, int at, const char *v)
{
    bound(q, v ? sqlite3_bind_text64(q->stmt, at, v, strlen(v), SQLITE_STATIC, SQLITE_UTF8)
               : sqlite3_bind_null(q->stmt, at));
}

void bh_sql_blob(struct bh_sql *q, int at, const void *v, size_t n)
{
    /* No bytes are still a blob; SQLite takes a NULL pointer for its null. */
    bound(q, sqlite3_bind_blob64(q->stmt, at, n ? v : "", n, SQLITE_STATIC));
}

void bh_sql_null(struct bh_sql *q, int at)
{
    bound(q, sqlite3_bind_null(q->stmt, at));
}

void bh_sql_done(struct bh_sql *q)
{
    sqlite3_reset(q->stmt);
    sqlite3_clear_bindings(q->stmt);
}

/* Those after which SQLite itself undoes what was begun. */
static bool disk_failed(int sqlite_code)
{
    const int code = sqlite_code & 0xff;
    return code == SQLITE_IOERR || code == SQLITE_FULL || code == SQLITE_CANTOPEN || code == SQLITE_NOMEM;
}

int bh_store_seal(struct bh_store *s, struct bh_err *err)
{
    char text[64];
    (void)sqlite3_snprintf(sizeof(text), text, "PRAGMA application_id=%d", BH_STORE_APPLICATION_ID);
    const int rc = bh_sqlite_run(s->db, text, err);
    s->unsure = rc < 0;
    return rc;
}

int bh_sql_step(struct bh_sql *q, struct bh_err *err)
{
    int rc = 0, code = SQLITE_OK;
    if (q->bad != SQLITE_OK) {
        rc = bh_fail(err, BH_TOO_LARGE, "too large for the store (%s)", sqlite3_errstr(q->bad));
    } else if (q->store->broken) {
        rc = bh_fail(err, BH_SYSTEM, "the transaction was undone when the disk failed");
    } else {
        code = sqlite3_step(q->stmt);
        if (code == SQLITE_ROW)
            return 1;
        if (code != SQLITE_DONE)
            rc = bh_sql_fail(q->store, code, err);
    }
    bh_sql_done(q);
    if (disk_failed(code) && sqlite3_get_autocommit(q->store->db) && q->store->mode == BH_STORE_WRITE)
        (void)bh_store_seal(q->store, NULL);
    /* A failing disk undoes the transaction; what is written next must not be taken for a part of it. */
    if (q->store->depth && sqlite3_get_autocommit(q->store->db) && rc < 0)
        q->store->broken = true;
    return rc;
}

int bh_sql_run(struct bh_sql *q, uint64_t *ret_changed, struct bh_err *err)
{
    const int rc = bh_sql_step(q, err);
    if (rc < 0)
        return rc;
    if (rc > 0)
        bh_sql_done(q);
    if (ret_changed)
        *ret_changed = (uint64_t)sqlite3_changes64(q->store->db);
    return 0;
}

int64_t bh_sql_col_int(const struct bh_sql *q, int at)
{
    return sqlite3_column_int64(q->stmt, at);
}

uint64_t bh_sql_col_uint(const struct bh_sql *q, int at)
{
    const int64_t v = sqlite3_column_int64(q->stmt, at);
    return v > 0 ? (uint64_t)v : 0;
}

bool bh_sql_col_null(const struct bh_sql *q, int at)
{
    return sqlite3_column_type(q->stmt, at) == SQLITE_NULL;
}

const void *bh_sql_col_blob(const struct bh_sql *q, int at, struct bh_arena *arena, size_t *ret_n)
{
    const void *v = sqlite3_column_blob(q->stmt, at);
    const size_t n = (size_t)sqlite3_column_bytes(q->stmt, at);
    /* The arena's bytes are zero: a NUL stands behind. */
    char *copy = bh_arena_alloc(arena, n + 1);
    if (n)
        memcpy(copy, v, n);
    *ret_n = n;
    return copy;
}

const char *bh_sql_col_text(const struct bh_sql *q, int at, struct bh_arena *arena)
{
    size_t n;
    return bh_sql_col_null(q, at) ? NULL : bh_sql_col_blob(q, at, arena, &n);
}

int64_t bh_sql_last_id(const struct bh_sql *q)
{
    return sqlite3_last_insert_rowid(q->store->db);
}
