/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backup.c - copying a store while it is used, and putting a copy in a store's place.
 *
 * Both ways end with one rename or link of a file that is complete, checked and synced: whatever happens before it,
 * what had the name before still has it.
 */
#include "store/backup.h"

#include "base/mem.h"
#include "store/db_open.h"
#include "store/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_PAGES = 256, PATH_BYTES = 4096, WORDS_BYTES = 4096, SKIPPED_IDS = 1000000 };

/* ---- files ---- */

static int path_with(char buf[PATH_BYTES], const char *path, const char *suffix, struct bh_err *err)
{
    if (snprintf(buf, PATH_BYTES, "%s%s", path, suffix) >= PATH_BYTES)
        return bh_fail(err, BH_TOO_LARGE, "the path '%.60s...' is too long", path);
    return 0;
}

static int sys_fail(const char *path, struct bh_err *err)
{
    const enum bh_code code = errno == EACCES || errno == EROFS ? BH_DENIED : BH_SYSTEM;
    return bh_fail(err, code, "'%s': %s", path, strerror(errno));
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int sync_path(const char *path, int flags, struct bh_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    int rc = 0;
    if (fd < 0 || fsync(fd) < 0)
        rc = sys_fail(path, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int sync_folder_of(const char *path, struct bh_err *err)
{
    char folder[PATH_BYTES];
    int rc = path_with(folder, path, "", err);
    if (rc < 0)
        return rc;
    char *slash = strrchr(folder, '/');
    if (!slash)
        return sync_path(".", O_DIRECTORY, err);
    slash[slash == folder] = '\0';
    return sync_path(folder, O_DIRECTORY, err);
}

/* What SQLite and the lock may have left beside a file of ours. */
static void remove_all(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock"};
    char name[PATH_BYTES];
    for (size_t i = 0; i < BH_COUNT_OF(suffixes); i++) {
        if (path_with(name, path, suffixes[i], NULL) == 0)
            (void)unlink(name);
    }
}

/* ---- backup ---- */

struct bh_backup {
    struct bh_store *store;
    sqlite3 *to;
    sqlite3_backup *copy;
    uint32_t percent;
    char path[PATH_BYTES], part[PATH_BYTES];
};

void bh_backup_free(struct bh_backup *take_backup)
{
    struct bh_backup *b = take_backup;
    if (!b)
        return;
    if (b->copy)
        (void)sqlite3_backup_finish(b->copy);
    sqlite3_close(b->to);
    if (b->part[0])
        remove_all(b->part);
    free(b);
}

static int start_copy(struct bh_backup *b, struct bh_err *err)
{
    /* Left by one that was killed. */
    remove_all(b->part);
    const int fd = open(b->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return sys_fail(b->part, err);
    close(fd);
    const int code = sqlite3_open_v2(b->part, &b->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return bh_sqlite_fail(b->to, code, err);
    b->copy = sqlite3_backup_init(b->to, "main", bh_store_handle(b->store), "main");
    return b->copy ? 0 : bh_sqlite_fail(b->to, sqlite3_extended_errcode(b->to), err);
}

int bh_backup_new(struct bh_store *s, const char *path, struct bh_backup **ret, struct bh_err *err)
{
    struct bh_backup *b = bh_alloc(1, sizeof(*b));
    b->store = s;
    int rc = path_with(b->path, path, "", err);
    if (rc == 0 && is_there(path))
        rc = bh_fail(err, BH_CONFLICT, "'%s' is there already", path);
    if (rc == 0)
        rc = path_with(b->part, path, ".part", err);
    if (rc == 0)
        rc = start_copy(b, err);
    if (rc < 0) {
        bh_backup_free(b);
        return bh_wrap(err, rc, "backup");
    }
    *ret = b;
    return 0;
}

/* One file without a log beside it, sound, on disk, and only then under its name. */
static int finish(struct bh_backup *b, struct bh_err *err)
{
    uint32_t version;
    const int code = sqlite3_backup_finish(b->copy);
    b->copy = NULL;
    int rc = code == SQLITE_OK ? 0 : bh_sqlite_fail(b->to, code, err);
    if (rc == 0)
        rc = bh_sqlite_run(b->to, "PRAGMA journal_mode=DELETE", err);
    if (rc == 0)
        rc = bh_sqlite_known(b->to, b->part, &version, err);
    if (rc == 0)
        rc = bh_sqlite_sound(b->to, b->part, false, err);
    sqlite3_close(b->to);
    b->to = NULL;
    if (rc == 0)
        rc = sync_path(b->part, 0, err);
    /* Unlike a rename, a link never takes the place of what somebody made meanwhile. */
    if (rc == 0 && link(b->part, b->path) < 0)
        rc = errno == EEXIST ? bh_fail(err, BH_CONFLICT, "'%s' is there already", b->path)
                             : sys_fail(b->path, err);
    if (rc == 0)
        rc = sync_folder_of(b->path, err);
    return rc;
}

int bh_backup_step(struct bh_backup *b, uint32_t pages, struct bh_err *err)
{
    if (!b->copy)
        return bh_fail(err, BH_CONFLICT, "the backup is over");
    const int code = sqlite3_backup_step(b->copy, pages ? (int)(pages & INT32_MAX) : STEP_PAGES);
    const int all = sqlite3_backup_pagecount(b->copy), left = sqlite3_backup_remaining(b->copy);
    b->percent = all > 0 ? (uint32_t)((int64_t)(all - left) * 100 / all) : 0;
    /* In the middle of a transaction, or another process writes. */
    if (code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED)
        return 0;
    const int rc = code == SQLITE_DONE ? finish(b, err) : bh_sqlite_fail(b->to, code, err);
    return rc < 0 ? bh_wrap(err, rc, "backup to '%s'", b->path) : 1;
}

uint32_t bh_backup_percent(const struct bh_backup *b)
{
    return b->percent;
}

int bh_store_backup(struct bh_store *s, const char *path, struct bh_err *err)
{
    struct bh_backup *b;
    if (bh_store_in_transaction(s))
        return bh_fail(err, BH_CONFLICT, "a backup is made between transactions");
    int rc = bh_backup_new(s, path, &b, err);
    if (rc < 0)
        return rc;
    do
        rc = bh_backup_step(b, INT32_MAX, err);
    while (rc == 0);
    bh_backup_free(b);
    return rc < 0 ? rc : 0;
}

/* ---- restore ---- */

struct ids {
    int64_t jobs, leases;
    bool known;
};

static const char ask_jobs[] = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0)";
static const char ask_leases[] =
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'leases'), 0)";

/* To read only at first: closing a connection that may write would move or remove the log of a damaged store. */
static bool ask_old(const char *path, struct ids *ret)
{
    sqlite3 *db = NULL;
    uint32_t version;
    const bool known = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                       bh_sqlite_known(db, path, &version, NULL) == 0 &&
                       bh_sqlite_sound(db, path, false, NULL) == 0 &&
                       bh_sqlite_number(db, ask_jobs, &ret->jobs, NULL) == 0 &&
                       bh_sqlite_number(db, ask_leases, &ret->leases, NULL) == 0;
    sqlite3_close(db);
    return known;
}

/* The last ids of the store that is to be replaced, and its log moved into it. One that is damaged has neither. */
static void look_at_old(const char *path, struct ids *ret)
{
    sqlite3 *db = NULL;
    ret->known = ask_old(path, ret);
    if (ret->known && sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        (void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_close(db);
}

static int raise_id(struct bh_store *s, const char *table, const char *ask, int64_t at_least,
                    struct bh_err *err)
{
    static const char set[] = "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1";
    static const char add[] = "INSERT INTO sqlite_sequence(name, seq) VALUES (?1, ?2)";
    struct bh_sql q;
    int64_t now = 0;
    uint64_t changed = 0;
    int rc = bh_sqlite_number(bh_store_handle(s), ask, &now, err);
    if (at_least < 0)
        at_least = now + SKIPPED_IDS;
    for (int i = 0; i < 2 && rc == 0 && now < at_least && !changed; i++) {
        rc = bh_sql_get(s, i ? add : set, &q, err);
        if (rc < 0)
            return rc;
        bh_sql_text(&q, 1, table);
        bh_sql_int(&q, 2, at_least);
        rc = bh_sql_run(&q, &changed, err);
    }
    return rc;
}

/* Brought up to date, its books looked through, and no id that was given since is given again. */
static int make_ready(const char *part, const struct ids *old, struct bh_err *err)
{
    const struct bh_store_options full = {.mode = BH_STORE_WRITE, .full_check = true};
    struct bh_buf words;
    struct bh_store *s = NULL;
    uint32_t broken = 0;
    int rc = bh_store_open(part, &full, &s, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&words, WORDS_BYTES);
    rc = bh_store_check(s, &words, &broken, err);
    if (rc == 0 && broken)
        rc = bh_fail(err, BH_REFUSED, "the books of the backup do not add up (%u findings): %.300s", broken,
                     bh_buf_text(&words));
    if (rc == 0)
        rc = raise_id(s, "jobs", ask_jobs, old->known ? old->jobs : -1, err);
    if (rc == 0)
        rc = raise_id(s, "leases", ask_leases, old->known ? old->leases : -1, err);
    bh_buf_fini(&words);
    /* Closing moves the log into the file. */
    bh_store_close(s);
    return rc == 0 ? sync_path(part, 0, err) : rc;
}

/* The old one under another name. A log that could not be moved into it goes along: it must never meet the new file. */
static int put_aside(const char *path, struct bh_err *err)
{
    char aside[PATH_BYTES], log[PATH_BYTES], aside_log[PATH_BYTES], index[PATH_BYTES];
    struct stat st;
    int rc = path_with(aside, path, ".replaced", err);
    if (rc == 0)
        rc = path_with(aside_log, aside, "-wal", err);
    if (rc == 0)
        rc = path_with(log, path, "-wal", err);
    if (rc == 0)
        rc = path_with(index, path, "-shm", err);
    if (rc < 0)
        return rc;
    remove_all(aside);
    if (link(path, aside) < 0)
        return sys_fail(aside, err);
    if (stat(log, &st) == 0 && (st.st_size ? rename(log, aside_log) : unlink(log)) < 0)
        return sys_fail(log, err);
    if (unlink(index) < 0 && errno != ENOENT)
        return sys_fail(index, err);
    return sync_folder_of(path, err);
}

static int copy_of(const char *from, const char *part, struct bh_err *err)
{
    /* A backup of an older schema is brought up to date once it is copied. */
    const struct bh_store_options any = {.mode = BH_STORE_READ, .full_check = true, .to_version = 1};
    struct bh_store *source = NULL;
    int rc = bh_store_open(from, &any, &source, err);
    if (rc == 0)
        rc = bh_store_backup(source, part, err);
    bh_store_close(source);
    return rc;
}

static int restore_locked(const char *from, const char *path, bool replace, struct bh_err *err)
{
    char part[PATH_BYTES];
    struct ids old = {0};
    const bool was_there = is_there(path);
    int rc = path_with(part, path, ".restore", err);
    if (rc < 0)
        return rc;
    if (was_there && !replace)
        return bh_fail(err, BH_CONFLICT, "'%s' is there already; it has to be replaced on purpose", path);
    remove_all(part);
    rc = copy_of(from, part, err);
    if (rc == 0 && was_there)
        look_at_old(path, &old);
    if (rc == 0)
        rc = make_ready(part, &old, err);
    if (rc == 0 && was_there)
        rc = put_aside(path, err);
    if (rc == 0 && rename(part, path) < 0)
        rc = sys_fail(path, err);
    if (rc == 0)
        rc = sync_folder_of(path, err);
    remove_all(part);
    return rc;
}

int bh_store_restore(const char *from, const char *path, bool replace, struct bh_err *err)
{
    int lock = -1;
    int rc = bh_store_lock(path, &lock, err);
    if (rc == 0)
        rc = restore_locked(from, path, replace, err);
    bh_store_unlock(lock);
    return rc < 0 ? bh_wrap(err, rc, "restore") : 0;
}
