/* SPDX-License-Identifier: Apache-2.0 */
/* db_open.h - the steps of opening a store that the backup and the restore take too. For the files of this folder only. */
#ifndef BH_STORE_DB_OPEN_H
#define BH_STORE_DB_OPEN_H

#include "store/db_sql.h"

/* "Blkh": tells our files from others' (file(1) reads it too). */
#define BH_STORE_APPLICATION_ID 0x426c6b68

/* Held until bh_store_unlock(); BH_BUSY says who has it. */
int bh_store_lock(const char *path, int *ret_fd, struct bh_err *err) BH_MUST_USE;
void bh_store_unlock(int fd); /* -1 is fine */

/* One number that a pragma or a query answers. */
int bh_sqlite_number(sqlite3 *db, const char *text, int64_t *ret, struct bh_err *err) BH_MUST_USE;
int bh_sqlite_run(sqlite3 *db, const char *text, struct bh_err *err) BH_MUST_USE;
/* Ours, and of a version we know; an empty file is version 0. BH_REFUSED says what it is instead. */
int bh_sqlite_known(sqlite3 *db, const char *path, uint32_t *ret_version, struct bh_err *err) BH_MUST_USE;
/* quick_check, or integrity_check and foreign_key_check. */
int bh_sqlite_sound(sqlite3 *db, const char *path, bool full, struct bh_err *err) BH_MUST_USE;
/* From what version it has up to `to`, each step a transaction of its own. */
int bh_sqlite_migrate(sqlite3 *db, uint32_t from, uint32_t to, struct bh_err *err) BH_MUST_USE;

#endif
