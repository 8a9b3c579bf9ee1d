/* SPDX-License-Identifier: Apache-2.0 */
/* audit_rows.c - statements over the audit log's tables; what they mean is audit.c's and audit_verify.c's. */
#include "store/audit_rows.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/db_open.h"
#include "store/db_sql.h"

#include <stdio.h>
#include <string.h>

static const char SQL_HEAD[] =
    "SELECT origin, size, chain, edge, signed, signed_ms, cut, cut_chain, cut_edge FROM audit_head";
static const char SQL_HEAD_ADD[] =
    "INSERT INTO audit_head (id, size, chain, edge, signed, signed_ms, cut, cut_chain, cut_edge, origin) "
    "VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
static const char SQL_HEAD_SET[] = "UPDATE audit_head SET size = ?1, chain = ?2, edge = ?3, signed = ?4, "
                                   "signed_ms = ?5, cut = ?6, cut_chain = ?7, cut_edge = ?8";
static const char SQL_ADD[] = "INSERT INTO audit_record (seq, at_ms, event, tenant, body, hash) "
                              "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
#define ROW "SELECT seq, at_ms, event, tenant, CAST(body AS BLOB), hash FROM audit_record "
static const char SQL_OLDEST[] = ROW "WHERE seq > ?1 AND seq <= ?2 ORDER BY seq";
static const char SQL_NEWEST[] = ROW "WHERE seq > ?1 AND seq <= ?2 ORDER BY seq DESC";
static const char SQL_TENANT_OLDEST[] = ROW "WHERE tenant = ?3 AND seq > ?1 AND seq <= ?2 ORDER BY seq";
static const char SQL_TENANT_NEWEST[] = ROW "WHERE tenant = ?3 AND seq > ?1 AND seq <= ?2 ORDER BY seq DESC";
static const char SQL_KEY[] = ROW "WHERE event IN ('audit.key', 'audit.key-change') AND seq <= ?1 "
                                  "ORDER BY seq DESC LIMIT 1";
static const char SQL_DROP[] = "DELETE FROM audit_record WHERE seq <= ?1 "
                               "AND event NOT IN ('audit.key', 'audit.key-change')";
static const char SQL_CHECKPOINT_ADD[] = "INSERT INTO audit_checkpoint (size, note) VALUES (?1, ?2)";
static const char SQL_CHECKPOINT_FROM[] =
    "SELECT size, note FROM audit_checkpoint WHERE size >= ?1 ORDER BY size LIMIT 1";
static const char SQL_CHECKPOINT_TO[] =
    "SELECT size, note FROM audit_checkpoint WHERE size <= ?1 ORDER BY size DESC LIMIT 1";
static const char SQL_GUARDS[] = "SELECT name, sql FROM sqlite_schema WHERE tbl_name LIKE 'audit\\_%' "
                                 "ESCAPE '\\' AND sql IS NOT NULL ORDER BY name";

/* ---- the head ---- */

/* A hash in a column; what is not 32 bytes is none. */
static bool col_hash(const struct bh_sql *q, int at, struct bh_hash *ret)
{
    if (sqlite3_column_type(q->stmt, at) != SQLITE_BLOB || sqlite3_column_bytes(q->stmt, at) != BH_HASH_BYTES)
        return false;
    memcpy(ret->at, sqlite3_column_blob(q->stmt, at), BH_HASH_BYTES);
    return true;
}

static bool col_edge(const struct bh_sql *q, int at, uint64_t n, struct bh_merkle *ret)
{
    const void *bytes = sqlite3_column_blob(q->stmt, at);
    return bh_merkle_load(ret, n, bytes, (size_t)sqlite3_column_bytes(q->stmt, at));
}

static bool take_head(const struct bh_sql *q, struct bh_audit_head *h)
{
    struct bh_arena arena = {0};
    const char *origin = bh_sql_col_text(q, 0, &arena);
    const bool fits = origin && snprintf(h->origin, sizeof(h->origin), "%s", origin) < (int)sizeof(h->origin);
    bh_arena_fini(&arena);
    h->signed_size = bh_sql_col_uint(q, 4);
    h->signed_ms = bh_sql_col_int(q, 5);
    return fits && col_hash(q, 2, &h->chain) && col_edge(q, 3, bh_sql_col_uint(q, 1), &h->edge) &&
           col_hash(q, 7, &h->cut_chain) && col_edge(q, 8, bh_sql_col_uint(q, 6), &h->cut) &&
           h->cut.n <= h->edge.n;
}

int bh_audit_head_load(struct bh_store *s, struct bh_audit_head *ret, struct bh_err *err)
{
    struct bh_audit_head h = {0};
    struct bh_sql q;
    int rc = bh_sql_get(s, SQL_HEAD, &q, err);
    if (rc < 0)
        return rc;
    rc = bh_sql_step(&q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return bh_fail(err, BH_NOT_FOUND, "no audit log was begun here");
    const bool ok = take_head(&q, &h);
    bh_sql_done(&q);
    if (!ok)
        return bh_fail(err, BH_INVALID, "the head of the audit log does not fit together: it was changed");
    *ret = h;
    return BH_OK;
}

static int write_head(struct bh_store *s, const char *text, const struct bh_audit_head *h, bool with_origin,
                      struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, h->edge.n);
    bh_sql_blob(&q, 2, h->chain.at, BH_HASH_BYTES);
    bh_sql_blob(&q, 3, h->edge.peak, bh_merkle_peaks(&h->edge) * BH_HASH_BYTES);
    bh_sql_uint(&q, 4, h->signed_size);
    bh_sql_int(&q, 5, h->signed_ms);
    bh_sql_uint(&q, 6, h->cut.n);
    bh_sql_blob(&q, 7, h->cut_chain.at, BH_HASH_BYTES);
    bh_sql_blob(&q, 8, h->cut.peak, bh_merkle_peaks(&h->cut) * BH_HASH_BYTES);
    if (with_origin)
        bh_sql_text(&q, 9, h->origin);
    return bh_sql_run(&q, NULL, err);
}

int bh_audit_head_begin(struct bh_store *s, const struct bh_audit_head *h, struct bh_err *err)
{
    return write_head(s, SQL_HEAD_ADD, h, true, err);
}

int bh_audit_head_save(struct bh_store *s, const struct bh_audit_head *h, struct bh_err *err)
{
    return write_head(s, SQL_HEAD_SET, h, false, err);
}

/* ---- records ---- */

int bh_audit_row_add(struct bh_store *s, const struct bh_audit_row *row, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, SQL_ADD, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, row->seq);
    bh_sql_int(&q, 2, row->at_ms);
    bh_sql_text(&q, 3, row->event);
    bh_sql_text(&q, 4, row->tenant);
    bh_sql_text(&q, 5, row->body);
    bh_sql_blob(&q, 6, row->hash.at, BH_HASH_BYTES);
    return bh_sql_run(&q, NULL, err);
}

static void take_row(const struct bh_sql *q, struct bh_arena *arena, struct bh_audit_row *ret)
{
    *ret = (struct bh_audit_row){
        .seq = bh_sql_col_uint(q, 0),
        .at_ms = bh_sql_col_int(q, 1),
        .event = bh_sql_col_text(q, 2, arena),
        .tenant = bh_sql_col_text(q, 3, arena),
    };
    ret->body = bh_sql_col_blob(q, 4, arena, &ret->n_body);
    ret->odd = !col_hash(q, 5, &ret->hash) || !ret->event || !ret->body;
    if (!ret->body)
        ret->body = "";
    if (!ret->event)
        ret->event = "";
}

int bh_audit_rows(struct bh_store *s, const struct bh_audit_range *range, bh_audit_row_fn fn, void *arg,
                  struct bh_err *err)
{
    const char *text = range->tenant ? (range->newest ? SQL_TENANT_NEWEST : SQL_TENANT_OLDEST)
                                     : (range->newest ? SQL_NEWEST : SQL_OLDEST);
    struct bh_sql q;
    int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, range->after);
    bh_sql_uint(&q, 2, range->last < INT64_MAX ? range->last : INT64_MAX);
    if (range->tenant)
        bh_sql_text(&q, 3, range->tenant);
    while ((rc = bh_sql_step(&q, err)) > 0) {
        struct bh_arena arena = {0};
        struct bh_audit_row row;
        take_row(&q, &arena, &row);
        rc = fn(arg, &row, err);
        bh_arena_fini(&arena);
        if (rc != 0) {
            bh_sql_done(&q);
            return rc;
        }
    }
    return rc;
}

int bh_audit_key_row(struct bh_store *s, uint64_t up_to, struct bh_arena *arena, struct bh_audit_record *ret,
                     struct bh_err *err)
{
    struct bh_sql q;
    struct bh_audit_row row;
    int rc = bh_sql_get(s, SQL_KEY, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, up_to < INT64_MAX ? up_to : INT64_MAX);
    rc = bh_sql_step(&q, err);
    if (rc == 0)
        return bh_fail(err, BH_NOT_FOUND, "the audit log names no key");
    if (rc < 0)
        return rc;
    take_row(&q, arena, &row);
    bh_sql_done(&q);
    return bh_audit_decode(row.body, row.n_body, arena, ret, err);
}

int bh_audit_rows_drop(struct bh_store *s, uint64_t last, uint64_t *ret_n, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, SQL_DROP, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, last);
    return bh_sql_run(&q, ret_n, err);
}

/* ---- checkpoints ---- */

int bh_audit_checkpoint_add(struct bh_store *s, uint64_t size, const char *note, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, SQL_CHECKPOINT_ADD, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, size);
    bh_sql_text(&q, 2, note);
    return bh_sql_run(&q, NULL, err);
}

int bh_audit_checkpoint_find(struct bh_store *s, uint64_t size, bool newest, struct bh_arena *arena,
                             uint64_t *ret_size, const char **ret_note, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, newest ? SQL_CHECKPOINT_TO : SQL_CHECKPOINT_FROM, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, size < INT64_MAX ? size : INT64_MAX);
    rc = bh_sql_step(&q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return bh_fail(err, BH_NOT_FOUND, "the audit log has no such checkpoint");
    *ret_size = bh_sql_col_uint(&q, 0);
    *ret_note = bh_sql_col_text(&q, 1, arena);
    bh_sql_done(&q);
    return BH_OK;
}

/* ---- the guards ---- */

struct guard {
    const char *name, *sql;
};
typedef BH_VEC(struct guard) guards;

static const char *column(sqlite3_stmt *stmt, int at)
{
    const unsigned char *s = sqlite3_column_text(stmt, at);
    return s ? (const char *)s : "";
}

static int list_guards(sqlite3 *db, struct bh_arena *arena, guards *ret, struct bh_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, SQL_GUARDS, -1, &stmt, NULL);
    if (code == SQLITE_OK)
        while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
            *bh_vec_push(ret) =
                (struct guard){bh_arena_str(arena, column(stmt, 0)), bh_arena_str(arena, column(stmt, 1))};
    const int rc = code == SQLITE_DONE ? BH_OK : bh_sqlite_fail(db, code, err);
    sqlite3_finalize(stmt);
    return rc;
}

static const struct guard *find_guard(const guards *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (bh_str_eq(all->at[i].name, name))
            return &all->at[i];
    return NULL;
}

static void compare_guards(const guards *want, const guards *have, struct bh_buf *words)
{
    for (size_t i = 0; i < want->n; i++) {
        const struct guard *w = &want->at[i], *h = find_guard(have, w->name);
        if (!h)
            bh_buf_printf(words, "'%s' of the database is gone\n", w->name);
        else if (!bh_str_eq(h->sql, w->sql))
            bh_buf_printf(words, "'%s' of the database is not as it was made\n", w->name);
    }
    for (size_t i = 0; i < have->n; i++)
        if (!find_guard(want, have->at[i].name))
            bh_buf_printf(words, "'%.60s' of the database was added\n", have->at[i].name);
}

int bh_audit_schema_check(struct bh_store *s, struct bh_buf *words, struct bh_err *err)
{
    struct bh_arena arena = {0};
    guards want = {0}, have = {0};
    sqlite3 *fresh = NULL;
    const int code = sqlite3_open(":memory:", &fresh);
    int rc = code == SQLITE_OK ? BH_OK : bh_sqlite_fail(fresh, code, err);
    if (rc == BH_OK)
        rc = bh_sqlite_migrate(fresh, 0, bh_store_schema_version(s), err);
    if (rc == BH_OK)
        rc = list_guards(fresh, &arena, &want, err);
    if (rc == BH_OK)
        rc = list_guards(bh_store_handle(s), &arena, &have, err);
    if (rc == BH_OK)
        compare_guards(&want, &have, words);
    (void)sqlite3_close(fresh);
    bh_vec_fini(&want);
    bh_vec_fini(&have);
    bh_arena_fini(&arena);
    return rc;
}
