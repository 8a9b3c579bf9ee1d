/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.c - a store's life: opened, checked, brought up to date, changed in transactions, closed.
 *
 * Transactions nest by SQLite's savepoints; `depth` counts them. Where the disk fails SQLite may undo everything on its
 * own, and then nothing that is done afterwards may be taken for a part of the transaction: `broken` holds until the
 * outermost end.
 */
#include "store/db.h"

#include "base/mem.h"
#include "store/db_inside.h"
#include "store/db_open.h"
#include "store/db_schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUSY_MS = 5000, PATH_BYTES = 4096 };

/* ---- opening ---- */

/* SQLite would make it readable for everybody; its log and index take the rights of the file. */
static int make_private(const char *path, struct bh_err *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    else if (errno != EEXIST)
        return bh_fail(err, errno == EACCES || errno == EROFS ? BH_DENIED : BH_SYSTEM, "'%s': %s", path,
                       strerror(errno));
    return 0;
}

/* As a URI, the only way to say `immutable`; whatever means something in one is written as %XX. */
static int uri_of(const char *path, char *buf, size_t size, struct bh_err *err)
{
    size_t n = (size_t)snprintf(buf, size, "file:");
    for (const char *p = path; *p; p++) {
        const bool plain = strchr("%?#", *p) == NULL;
        if (n + 24 > size)
            return bh_fail(err, BH_TOO_LARGE, "the path of the store is too long");
        n += (size_t)snprintf(buf + n, size - n, plain ? "%c" : "%%%02X", (unsigned char)*p);
    }
    (void)snprintf(buf + n, size - n, "?immutable=1");
    return 0;
}

uint64_t bh_store_log_bytes(const struct bh_store *s)
{
    char name[PATH_BYTES];
    struct stat st;
    const bool there = snprintf(name, sizeof(name), "%s-wal", s->path) < (int)sizeof(name) &&
                       stat(name, &st) == 0 && st.st_size > 0;
    return there ? (uint64_t)st.st_size : 0;
}

static int connect_to(struct bh_store *s, const char *file, int flags, const struct bh_store_options *o,
                      struct bh_err *err)
{
    int64_t objects;
    const int code = sqlite3_open_v2(file, &s->db, flags | SQLITE_OPEN_EXRESCODE, o->vfs);
    int rc = code == SQLITE_OK ? 0 : bh_sqlite_fail(s->db, code, err);
    if (rc == 0) {
        s->busy_ms = (int)(o->busy_ms ? o->busy_ms : BUSY_MS);
        sqlite3_busy_timeout(s->db, s->busy_ms);
        /* The first read is what really opens it: the log is looked for, a file of another kind is found out. */
        rc = bh_sqlite_number(s->db, "SELECT count(*) FROM sqlite_schema", &objects, err);
    }
    const int why = sqlite3_errcode(s->db) & 0xff;
    s->no_index = rc < 0 && (why == SQLITE_CANTOPEN || why == SQLITE_READONLY);
    return rc < 0 ? bh_wrap(err, rc, "'%s'", s->path) : 0;
}

/* On a medium that takes no index of the log, a file without a log is all there is: it is read as it is. */
static int connect_read(struct bh_store *s, const struct bh_store_options *o, struct bh_err *err)
{
    char uri[PATH_BYTES];
    struct stat st;
    if (!o->vfs && stat(s->path, &st) < 0)
        return bh_fail(err,
                       errno == ENOENT   ? BH_NOT_FOUND
                       : errno == EACCES ? BH_DENIED
                                         : BH_SYSTEM,
                       "'%s': %s", s->path, strerror(errno));
    int rc = connect_to(s, s->path, SQLITE_OPEN_READONLY, o, err);
    if (rc < 0 && s->no_index && !bh_store_log_bytes(s)) {
        sqlite3_close(s->db);
        s->db = NULL;
        rc = uri_of(s->path, uri, sizeof(uri), err);
        if (rc == 0)
            rc = connect_to(s, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, o, err);
    }
    return rc;
}

/*
 * The step to the log is the last thing for which SQLite keeps a journal of the old kind: EXTRA makes sure that it is gone
 * before anything is written, lest it come back after a power failure and undo what followed.
 */
static const char set_up[] = "PRAGMA synchronous=EXTRA;"
                             "PRAGMA journal_mode=WAL;"
                             "PRAGMA synchronous=FULL;"
                             "PRAGMA foreign_keys=ON;"
                             "PRAGMA recursive_triggers=ON;"
                             "PRAGMA trusted_schema=OFF;"
                             "PRAGMA cell_size_check=ON;"
                             "PRAGMA cache_size=-8192;"
                             "PRAGMA journal_size_limit=16777216;"
                             "PRAGMA temp_store=MEMORY";

static int write_ahead_works(struct bh_store *s, struct bh_err *err)
{
    int64_t full;
    int rc =
        bh_sqlite_number(s->db, "SELECT (SELECT journal_mode FROM pragma_journal_mode) = 'wal'", &full, err);
    if (rc == 0 && !full)
        rc = bh_fail(err, BH_REFUSED, "'%s': no write-ahead log can be kept there", s->path);
    return rc;
}

static int open_write(struct bh_store *s, const struct bh_store_options *o, struct bh_err *err)
{
    const uint32_t to = o->to_version ? o->to_version : bh_migrations_n;
    int rc = bh_store_lock(s->path, &s->lock, err);
    if (rc == 0)
        rc = make_private(s->path, err);
    if (rc == 0)
        rc = connect_to(s, s->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, o, err);
    if (rc == 0)
        rc = bh_sqlite_known(s->db, s->path, &s->version, err);
    if (rc == 0)
        rc = bh_sqlite_sound(s->db, s->path, o->full_check, err);
    if (rc == 0)
        rc = bh_sqlite_run(s->db, set_up, err);
    if (rc == 0)
        rc = write_ahead_works(s, err);
    if (rc == 0 && s->version < to) {
        rc = bh_sqlite_migrate(s->db, s->version, to, err);
        s->version = to;
    }
    return rc;
}

static int open_read(struct bh_store *s, const struct bh_store_options *o, struct bh_err *err)
{
    int rc = connect_read(s, o, err);
    if (rc == 0)
        rc = bh_sqlite_run(s->db,
                           "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA query_only=ON;"
                           "PRAGMA temp_store=MEMORY",
                           err);
    if (rc == 0 && o->spill)
        rc = bh_sqlite_run(s->db, "PRAGMA temp_store=FILE; PRAGMA cache_size=-32768", err);
    if (rc == 0)
        rc = bh_sqlite_known(s->db, s->path, &s->version, err);
    if (rc == 0 && s->version == 0)
        rc = bh_fail(err, BH_REFUSED, "'%s' is empty: no daemon ever used it", s->path);
    if (rc == 0 && s->version < bh_migrations_n && s->version < (o->to_version ? o->to_version : UINT32_MAX))
        rc = bh_fail(
            err, BH_REFUSED,
            "'%s' is of an older schema (%u, this Bulkhead reads %u): start the daemon once to bring it up to date",
            s->path, s->version, bh_migrations_n);
    if (rc == 0 && !o->no_check)
        rc = bh_sqlite_sound(s->db, s->path, o->full_check, err);
    return rc;
}

int bh_store_open(const char *path, const struct bh_store_options *options, struct bh_store **ret,
                  struct bh_err *err)
{
    static const struct bh_store_options plain = {0};
    const struct bh_store_options *o = options ? options : &plain;
    struct bh_store *s = bh_alloc(1, sizeof(*s));
    s->path = bh_alloc(1, strlen(path) + 1);
    memcpy(s->path, path, strlen(path));
    s->lock = -1;
    s->mode = o->mode;
    const int rc = o->mode == BH_STORE_WRITE ? open_write(s, o, err) : open_read(s, o, err);
    if (rc < 0) {
        bh_store_close(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void bh_store_close(struct bh_store *take_store)
{
    struct bh_store *s = take_store;
    if (!s)
        return;
    while (s->depth)
        bh_store_rollback(s);
    bh_store_release(s);
    bh_sql_forget(s);
    sqlite3_close(s->db);
    bh_store_unlock(s->lock);
    free(s->path);
    free(s);
}

const char *bh_store_path(const struct bh_store *s)
{
    return s->path;
}

uint32_t bh_store_schema_version(const struct bh_store *s)
{
    return s->version;
}

uint32_t bh_store_schema_newest(void)
{
    return bh_migrations_n;
}

/* ---- transactions ---- */

/* SQLite undid all of it by itself: after a failure of the disk, or of memory. */
static bool undone(struct bh_store *s)
{
    if (s->depth && sqlite3_get_autocommit(s->db))
        s->broken = true;
    return s->broken;
}

static int run_cached(struct bh_store *s, const char *text, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, text, &q, err);
    return rc < 0 ? rc : bh_sql_run(&q, NULL, err);
}

/* A question that was begun and has more to say keeps its moment, and all others are asked of the same one. */
bool bh_store_hold(struct bh_store *s)
{
    struct bh_sql q;
    struct bh_err err;
    if (s->depth || s->held || bh_sql_get(s, "SELECT 1 FROM sqlite_schema", &q, &err) < 0)
        return s->depth || s->held;
    if (bh_sql_step(&q, &err) > 0)
        s->held = q.stmt;
    return s->held != NULL;
}

void bh_store_release(struct bh_store *s)
{
    if (s->held)
        sqlite3_reset(s->held);
    s->held = NULL;
}

/* Savepoints of one name stack: the innermost is meant. */
int bh_store_begin(struct bh_store *s, struct bh_err *err)
{
    if (s->mode == BH_STORE_READ)
        return bh_fail(err, BH_DENIED, "'%s' is open to read only", s->path);
    if (undone(s))
        return bh_fail(err, BH_SYSTEM, "the transaction was undone when the disk failed");
    bh_store_release(s); /* what is written is written to what is there now */
    int rc = s->unsure ? bh_store_seal(s, err) : 0;
    if (rc == 0)
        rc = run_cached(s, s->depth ? "SAVEPOINT inner" : "BEGIN IMMEDIATE", err);
    if (rc == 0)
        s->depth++;
    return rc;
}

int bh_store_commit(struct bh_store *s, struct bh_err *err)
{
    if (!s->depth)
        return bh_fail(err, BH_CONFLICT, "no transaction is open");
    int rc;
    if (undone(s))
        rc = bh_fail(err, BH_SYSTEM, "the transaction was undone when the disk failed");
    else
        rc = run_cached(s, s->depth > 1 ? "RELEASE inner" : "COMMIT", err);
    if (rc < 0) {
        bh_store_rollback(s);
        return rc;
    }
    s->depth--;
    return 0;
}

void bh_store_rollback(struct bh_store *s)
{
    if (!s->depth)
        return;
    if (!undone(s)) {
        const bool inner = s->depth > 1;
        int rc = run_cached(s, inner ? "ROLLBACK TO inner" : "ROLLBACK", NULL);
        if (rc == 0 && inner)
            rc = run_cached(s, "RELEASE inner", NULL);
        /* What cannot be undone in part is undone as a whole. */
        if (rc < 0) {
            if (!sqlite3_get_autocommit(s->db))
                (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
            s->broken = true;
        }
    }
    if (--s->depth == 0)
        s->broken = false;
}

bool bh_store_unsure(const struct bh_store *s)
{
    return s->unsure;
}

bool bh_store_in_transaction(const struct bh_store *s)
{
    return s->depth > 0;
}

uint64_t bh_store_changes(const struct bh_store *s)
{
    return (uint64_t)sqlite3_total_changes64(s->db);
}

uint64_t bh_store_drops(const struct bh_store *s)
{
    return s->drops;
}

void bh_store_drops_add(struct bh_store *s)
{
    s->drops++;
}

int bh_store_verify(struct bh_store *s, bool full, struct bh_err *err)
{
    return bh_sqlite_sound(s->db, s->path, full, err);
}

int bh_store_checkpoint(struct bh_store *s, struct bh_err *err)
{
    const int code = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return code == SQLITE_OK || code == SQLITE_BUSY ? 0 : bh_sql_fail(s, code, err);
}

bool bh_store_log_empty(struct bh_store *s)
{
    if (s->depth || s->held || s->unsure)
        return false;
    sqlite3_busy_timeout(s->db, 0);
    const int code = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(s->db, s->busy_ms);
    return code == SQLITE_OK;
}
