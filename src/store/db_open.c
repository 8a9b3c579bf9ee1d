/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_open.c - whose file it is, of which version, whether it is sound, and who may write to it.
 *
 * Nothing here trusts the file: it may be somebody else's database, a text, half a copy, or of a later release.
 */
#include "store/db_open.h"

#include "base/mem.h"
#include "store/db_schema.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the lock ---- */

static void say_holder(int fd, char *buf, size_t size)
{
    const ssize_t n = pread(fd, buf, size - 1, 0);
    size_t end = 0;
    while (n > 0 && end < (size_t)n && buf[end] >= '0' && buf[end] <= '9')
        end++;
    buf[end] = '\0';
}

/* Whoever removes a lock file opens the door to a second holder: what is locked must be what is there. */
static bool still_there(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

int bh_store_lock(const char *path, int *ret_fd, struct bh_err *err)
{
    char name[4096], holder[24];
    if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name))
        return bh_fail(err, BH_TOO_LARGE, "the path of the store is too long");
    for (int tries = 0; tries < 100; tries++) {
        const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return bh_fail(err, errno == EACCES || errno == EROFS ? BH_DENIED : BH_SYSTEM, "'%s': %s", name,
                           strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            const int why = errno;
            say_holder(fd, holder, sizeof(holder));
            close(fd);
            if (why != EWOULDBLOCK)
                return bh_fail(err, BH_SYSTEM, "'%s': %s", name, strerror(why));
            return bh_fail(err, BH_BUSY, "'%s' is in use by process %s; a store has one daemon", path,
                           holder[0] ? holder : "(unknown)");
        }
        if (still_there(fd, name)) {
            /* Only for people: the lock is what counts, so a full disk does not matter here. */
            const int n = snprintf(holder, sizeof(holder), "%ld\n", (long)getpid());
            if (ftruncate(fd, 0) < 0 || pwrite(fd, holder, (size_t)n, 0) < 0)
                errno = 0;
            *ret_fd = fd;
            return 0;
        }
        close(fd);
    }
    return bh_fail(err, BH_SYSTEM, "'%s' is being replaced all the time", name);
}

void bh_store_unlock(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* ---- asking a connection ---- */

int bh_sqlite_run(sqlite3 *db, const char *text, struct bh_err *err)
{
    const int code = sqlite3_exec(db, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : bh_sqlite_fail(db, code, err);
}

int bh_sqlite_number(sqlite3 *db, const char *text, int64_t *ret, struct bh_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, text, -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        *ret = sqlite3_column_int64(stmt, 0);
        code = SQLITE_OK;
    }
    /* The message goes with the statement. */
    const int rc = code == SQLITE_OK ? 0 : bh_sqlite_fail(db, code, err);
    sqlite3_finalize(stmt);
    return rc;
}

int bh_sqlite_known(sqlite3 *db, const char *path, uint32_t *ret_version, struct bh_err *err)
{
    int64_t id = 0, version = 0, objects = 0;
    int rc = bh_sqlite_number(db, "PRAGMA application_id", &id, err);
    if (rc == 0)
        rc = bh_sqlite_number(db, "PRAGMA user_version", &version, err);
    if (rc == 0)
        rc = bh_sqlite_number(db, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (rc < 0)
        return bh_wrap(err, rc, "'%s'", path);
    const bool fresh = id == 0 && version == 0 && objects == 0;
    if (!fresh && id != BH_STORE_APPLICATION_ID)
        return bh_fail(err, BH_REFUSED, "'%s' is a database of another program", path);
    if (version < 0 || version > bh_migrations_n)
        return bh_fail(err, BH_REFUSED,
                       "'%s' was written by a newer Bulkhead (schema %" PRId64
                       ", this one knows up to %u): install that version, or restore a backup",
                       path, version, bh_migrations_n);
    *ret_version = (uint32_t)version;
    return 0;
}

/* The rows of a check, the first few into one line; 0 rows of trouble: it is sound. */
static int check_rows(sqlite3 *db, const char *path, const char *text, bool says_ok, struct bh_err *err)
{
    char said[300] = "";
    size_t n = 0, rows = 0;
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, text, -1, &stmt, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(stmt);
        if (code != SQLITE_ROW)
            break;
        const char *row = (const char *)sqlite3_column_text(stmt, 0);
        if (says_ok && row && strcmp(row, "ok") == 0)
            continue;
        rows++;
        if (n < sizeof(said)) {
            const int add =
                snprintf(said + n, sizeof(said) - n, "%s%s", n ? "; " : "", row ? row : "a broken reference");
            n += add > 0 ? (size_t)add : 0;
        }
    }
    int rc = 0;
    if (code != SQLITE_DONE)
        rc = bh_wrap(err, bh_sqlite_fail(db, code, err), "'%s'", path);
    else if (rows)
        rc = bh_fail(err, BH_REFUSED, "'%s' is damaged (%zu findings): %s; restore a backup", path, rows,
                     said);
    sqlite3_finalize(stmt);
    return rc;
}

int bh_sqlite_sound(sqlite3 *db, const char *path, bool full, struct bh_err *err)
{
    int rc = check_rows(db, path, full ? "PRAGMA integrity_check(20)" : "PRAGMA quick_check(20)", true, err);
    if (rc == 0 && full)
        rc = check_rows(db, path,
                        "SELECT 'a row of ' || \"table\" || ' refers to nothing in ' || parent "
                        "FROM pragma_foreign_key_check LIMIT 20",
                        false, err);
    return rc;
}

/* ---- migrations ---- */

static int migrate_one(sqlite3 *db, uint32_t to, struct bh_err *err)
{
    char mark[96];
    int rc = bh_sqlite_run(db, "BEGIN IMMEDIATE", err);
    if (rc < 0)
        return rc;
    /* A pragma takes no parameter; these are our own numbers. */
    (void)snprintf(mark, sizeof(mark), "PRAGMA application_id=%d; PRAGMA user_version=%u",
                   BH_STORE_APPLICATION_ID, to);
    rc = bh_sqlite_run(db, bh_migrations[to - 1].sql, err);
    if (rc == 0)
        rc = bh_sqlite_run(db, mark, err);
    if (rc == 0)
        rc = check_rows(db, "the store",
                        "SELECT 'a row of ' || \"table\" FROM pragma_foreign_key_check LIMIT 1", false, err);
    if (rc == 0)
        rc = bh_sqlite_run(db, "COMMIT", err);
    if (rc < 0 && !sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int bh_sqlite_migrate(sqlite3 *db, uint32_t from, uint32_t to, struct bh_err *err)
{
    for (uint32_t v = from + 1; v <= to; v++) {
        const int rc = migrate_one(db, v, err);
        if (rc < 0)
            return bh_wrap(err, rc, "bringing the store to version %u (%s)", v, bh_migrations[v - 1].name);
    }
    return 0;
}
