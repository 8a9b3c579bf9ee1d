/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_sql.h - statements, for the files of this folder only.
 *
 * A statement's text is a constant; what comes from outside is bound, never written into it. Prepared once and kept:
 * the key is the text's address, so a text is a static const or a literal that stays where it is.
 *
 *     struct bh_sql q;
 *     rc = bh_sql_get(s, SQL_FIND, &q, err);
 *     if (rc < 0) return rc;
 *     bh_sql_int(&q, 1, id);
 *     while ((rc = bh_sql_step(&q, err)) > 0) ...bh_sql_col_int(&q, 0)...
 *     return rc;            step resets the statement when it is through or fails; bh_sql_done() leaves early
 */
#ifndef BH_STORE_DB_SQL_H
#define BH_STORE_DB_SQL_H

#include "store/db.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct bh_sql {
    struct bh_store *store;
    sqlite3_stmt *stmt;
    int bad; /* of the first binding that failed; told by the next step */
};

sqlite3 *bh_store_handle(struct bh_store *s);
/* BH_DENIED in a store opened to read when the text would write. */
int bh_sql_get(struct bh_store *s, const char *text, struct bh_sql *ret, struct bh_err *err) BH_MUST_USE;

/* Parameters count from 1. Borrowed until the statement is through. */
void bh_sql_int(struct bh_sql *q, int at, int64_t v);
void bh_sql_uint(struct bh_sql *q, int at, uint64_t v);    /* past INT64_MAX: the step answers BH_TOO_LARGE */
void bh_sql_text(struct bh_sql *q, int at, const char *v); /* NULL: SQL's null */
void bh_sql_blob(struct bh_sql *q, int at, const void *v, size_t n);
void bh_sql_null(struct bh_sql *q, int at);

/* 1: a row; 0: no more; negative: BH_CONFLICT (the schema forbids it, in its words), BH_INVALID, BH_SYSTEM... */
int bh_sql_step(struct bh_sql *q, struct bh_err *err) BH_MUST_USE;
/* For what returns no rows; *ret_changed (may be NULL): rows it changed, those of triggers not counted. */
int bh_sql_run(struct bh_sql *q, uint64_t *ret_changed, struct bh_err *err) BH_MUST_USE;
void bh_sql_done(struct bh_sql *q);

/* Columns count from 0. */
int64_t bh_sql_col_int(const struct bh_sql *q, int at);
uint64_t bh_sql_col_uint(const struct bh_sql *q, int at);
bool bh_sql_col_null(const struct bh_sql *q, int at);
const char *bh_sql_col_text(const struct bh_sql *q, int at, struct bh_arena *arena); /* NULL for null */
/* Into the arena; *ret_n is its length. */
const void *bh_sql_col_blob(const struct bh_sql *q, int at, struct bh_arena *arena, size_t *ret_n);
int64_t bh_sql_last_id(const struct bh_sql *q);

/* What SQLite's code means here, with its words. */
int bh_sql_fail(struct bh_store *s, int sqlite_code, struct bh_err *err);
/* The same about a connection that is no store yet (or no longer). */
int bh_sqlite_fail(sqlite3 *db, int sqlite_code, struct bh_err *err);

#endif
