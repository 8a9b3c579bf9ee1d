/* SPDX-License-Identifier: Apache-2.0 */
/* db_inside.h - what a store is, for db.c and db_sql.c only. */
#ifndef BH_STORE_DB_INSIDE_H
#define BH_STORE_DB_INSIDE_H

#include "base/idmap.h"
#include "base/mem.h"
#include "store/db_sql.h"

struct bh_store {
    sqlite3 *db;
    char *path;
    int lock; /* descriptor, or -1 */
    enum bh_store_mode mode;
    uint32_t version;
    uint32_t depth;        /* transactions begun and not ended */
    bool broken;           /* SQLite undid them all */
    bool no_index;         /* opening failed because the log's index could not be made */
    sqlite3_stmt *held;    /* what keeps bh_store_hold(); NULL: nothing does */
    uint64_t drops;        /* times that something was taken out of the books */
    int busy_ms;           /* how long another process is waited for */
    bool unsure;           /* a commit failed, and nothing was written over it yet */
    struct bh_idmap known; /* a text's address -> index into stmts */
    BH_VEC(sqlite3_stmt *) stmts;
};

void bh_sql_forget(struct bh_store *s); /* every statement */
/*
 * A commit that fails at its sync may have reached the log all the same, and a power failure would bring it back long
 * after its caller was told that it is undone. The next commit writes over it: one that changes nothing, at once.
 */
int bh_store_seal(struct bh_store *s, struct bh_err *err);

#endif
