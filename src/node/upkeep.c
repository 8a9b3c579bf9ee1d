/* SPDX-License-Identifier: Apache-2.0 */
/* upkeep.c - the audit log kept as the policy says, and the state put back from a backup. */
#include "node/upkeep.h"

#include "base/units.h"
#include "node/life.h"
#include "node/spec.h"
#include "store/audit_db.h"
#include "store/backup.h"
#include "store/db_open.h"
#include "store/state_history.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EVERY_MS = 3600 * 1000, SOON_MS = 5000, AT_ONCE = 200, DAY_MS = 86400 * 1000 };

/* ---- as the policy says ---- */

void bh_upkeep_policy(struct bh_daemon *d)
{
    const struct bh_policy *p = d->book.policy;
    if (p)
        bh_audit_set_exclude(d->audit, p->audit.enabled, (const char *const *)p->audit.exclude.at,
                             p->audit.exclude.n);
}

/* Records past their time go up to the last checkpoint before it; the log says that they did. */
static void prune(struct bh_daemon *d, uint64_t keep_ms)
{
    char why[96];
    struct bh_err err;
    uint64_t dropped = 0;
    (void)snprintf(why, sizeof(why), "audit.retention of the policy in force: %llu days",
                   (unsigned long long)(keep_ms / DAY_MS));
    const struct bh_audit_event who = {.sub = "service:bulkheadd", .reason = why};
    if (bh_audit_prune(d->audit, (int64_t)(d->last_ms - keep_ms), &who, &dropped, &err) < 0)
        bh_daemon_say(d, "the audit log could not be pruned: %s", err.msg);
    else if (dropped)
        bh_daemon_say(d, "%llu audit records were dropped: %s", (unsigned long long)dropped, why);
}

/* ---- what is long over ---- */

/* Its output and what its keeper was told; the folder has no folders. */
static void drop_folder(struct bh_daemon *d, uint64_t lease)
{
    struct bh_arena arena = {0};
    const struct dirent *e;
    const char *path = bh_arena_printf(&arena, "%s/%llu", d->leases_dir, (unsigned long long)lease);
    DIR *folder = opendir(path);
    while (folder && (e = readdir(folder)))
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(folder), e->d_name, 0);
    if (folder)
        (void)closedir(folder);
    if (rmdir(path) < 0 && errno != ENOENT)
        bh_daemon_say(d, "%s stays: %s", path, strerror(errno));
    bh_arena_fini(&arena);
}

static int write_drop(struct bh_daemon *d, uint64_t keep_ms, struct bh_store_dropped *ret, struct bh_err *err)
{
    char what[160];
    int rc = bh_store_history_drop(d->store, d->last_ms - keep_ms, AT_ONCE, ret, err);
    if (rc < 0 || !ret->jobs)
        return rc;
    (void)snprintf(what, sizeof(what), "%llu jobs, %llu leases and %llu intervals of usage",
                   (unsigned long long)ret->jobs, (unsigned long long)ret->leases,
                   (unsigned long long)ret->usages);
    const struct bh_audit_event e = {.event = BH_AUDIT_HISTORY_PRUNE,
                                     .sub = "service:bulkheadd",
                                     .object_type = "history",
                                     .before = what,
                                     .reason = "audit.history of the policy in force"};
    return bh_audit_append(d->audit, &e, err);
}

/* True: there may be more. */
static bool drop_history(struct bh_daemon *d, uint64_t keep_ms)
{
    struct bh_store_dropped gone = {.jobs = 0};
    struct bh_err err;
    int rc = bh_meter_read(d, &err); /* its counters have all that goes */
    if (rc == BH_OK)
        rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, write_drop(d, keep_ms, &gone, &err), &err);
    if (rc < 0)
        bh_daemon_say(d, "what is long over could not be dropped: %s", err.msg);
    for (size_t i = 0; rc == BH_OK && i < gone.lease_ids.n; i++)
        drop_folder(d, gone.lease_ids.at[i]);
    if (rc == BH_OK && gone.jobs)
        bh_daemon_say(d, "%llu jobs that are long over were dropped: audit.history of the policy",
                      (unsigned long long)gone.jobs);
    bh_vec_fini(&gone.lease_ids);
    return rc == BH_OK && gone.jobs == AT_ONCE;
}

void bh_upkeep_tick(struct bh_daemon *d)
{
    const struct bh_policy *p = d->book.policy;
    const uint64_t now = bh_daemon_now(d);
    if (!d->upkeep_ms)
        d->upkeep_ms = now + SOON_MS;
    if (!p || now < d->upkeep_ms || d->broken_until_ms || bh_store_in_transaction(d->store))
        return;
    d->upkeep_ms = now + EVERY_MS;
    if (p->audit.retention_ms && p->audit.retention_ms < now)
        prune(d, p->audit.retention_ms);
    if (p->audit.history_ms && p->audit.history_ms < now && drop_history(d, p->audit.history_ms))
        d->upkeep_ms = now + SOON_MS;
}

/* ---- a backup in the place of the state ---- */

/* One that works for a lease that the backup may know nothing of has a GPU that would be given away. */
static int no_keepers(const struct bh_daemon_options *o, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const struct dirent *e;
    const char *runs = bh_arena_printf(&arena, "%s/leases", o->run_dir);
    DIR *folder = opendir(runs);
    int rc = BH_OK;
    while (rc == BH_OK && folder && (e = readdir(folder))) {
        char *dot = strrchr(e->d_name, '.');
        struct bh_keeper_look look = {.pidfd = -1};
        uint64_t lease = 0;
        if (!dot || strcmp(dot, ".lock") != 0 ||
            bh_uint_parse(bh_arena_strn(&arena, e->d_name, (size_t)(dot - e->d_name)), INT64_MAX, &lease,
                          NULL) < 0)
            continue;
        const struct bh_keeper_place at = {
            .folder = bh_arena_printf(&arena, "%s/leases/%llu", o->state_dir, (unsigned long long)lease),
            .run_dir = runs,
            .lease = lease};
        rc = bh_keeper_look(&at, &look, err);
        if (rc == BH_INVALID) /* it has ended */
            rc = BH_OK;
        if (rc == BH_OK && look.found == BH_KEEPER_LIVES)
            rc = bh_fail(err, BH_BUSY, "work of L%llu runs, and the backup may not know of it: end it first",
                         (unsigned long long)lease);
        if (look.pidfd >= 0)
            (void)close(look.pidfd);
    }
    if (folder)
        (void)closedir(folder);
    bh_arena_fini(&arena);
    return rc;
}

static void take_finding(void *arg, const struct bh_audit_finding *f)
{
    char *first = arg;
    if (!*first)
        (void)snprintf(first, sizeof(f->text), "%s", f->text);
}

/* The backup's log, from its first record to its last. */
static int check_log(const char *from, struct bh_err *err)
{
    const struct bh_store_options read = {.mode = BH_STORE_READ, .full_check = true, .to_version = 1};
    struct bh_audit_verifier v = {.found = take_finding};
    char first[sizeof(((struct bh_audit_finding *)NULL)->text)] = "";
    struct bh_store *s = NULL;
    int rc = bh_store_open(from, &read, &s, err);
    if (rc < 0)
        return rc;
    v.arg = first;
    rc = bh_audit_db_verify(s, &v, err);
    if (rc == BH_OK && v.findings)
        rc = bh_fail(err, BH_REFUSED, "the audit log of the backup does not hold: %.300s", first);
    bh_audit_verify_fini(&v);
    bh_store_close(s);
    return rc;
}

/* The restore is a record of the log that it brings back, before anybody uses it. */
static int record_restore(const struct bh_daemon_options *o, const char *path, const char *from,
                          struct bh_err *err)
{
    struct bh_arena arena = {0};
    const struct bh_store_options write = {.mode = BH_STORE_WRITE};
    const struct bh_audit_options audit = {.key_path = bh_arena_printf(&arena, "%s/audit.key", o->state_dir),
                                           .component = "bulkheadd",
                                           .version = BH_VERSION,
                                           .replace_lost_key = o->replace_audit_key};
    const struct bh_audit_event e = {.event = BH_AUDIT_BACKUP_RESTORE,
                                     .sub = "user:root",
                                     .has_uid = true,
                                     .uid = getuid(),
                                     .object_type = "backup",
                                     .object_id = from,
                                     .reason = "bulkheadd --restore"};
    struct bh_audit *log = NULL;
    struct bh_store *s = NULL;
    int rc = bh_store_open(path, &write, &s, err);
    if (rc == BH_OK)
        rc = bh_audit_open(s, &audit, &log, err);
    if (rc == BH_OK)
        rc = bh_store_begin(s, err);
    if (rc == BH_OK) {
        rc = bh_audit_append(log, &e, err);
        if (rc == BH_OK)
            rc = bh_store_commit(s, err);
        else
            bh_store_rollback(s);
    }
    if (rc == BH_OK)
        rc = bh_audit_stop(log, err);
    bh_audit_close(log);
    bh_store_close(s);
    bh_arena_fini(&arena);
    return rc;
}

static int nobody_has(const char *path, struct bh_err *err)
{
    int lock = -1;
    const int rc = bh_store_lock(path, &lock, err);
    bh_store_unlock(lock);
    return rc;
}

static void drop(struct bh_arena *arena, const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < BH_COUNT_OF(ends); i++)
        (void)unlink(bh_arena_printf(arena, "%s%s", path, ends[i]));
}

int bh_upkeep_restore(const struct bh_daemon_options *o, const char *from, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const char *path = bh_arena_printf(&arena, "%s/bulkhead.db", o->state_dir);
    const char *beside = bh_arena_printf(&arena, "%s/bulkhead.db.incoming", o->state_dir);
    int rc = nobody_has(path, err);
    if (rc == BH_OK)
        rc = no_keepers(o, err);
    if (rc == BH_OK)
        rc = check_log(from, err);
    drop(&arena, beside); /* of a restore that was cut off */
    if (rc == BH_OK)
        rc = bh_store_restore(from, beside, false, err);
    if (rc == BH_OK)
        rc = record_restore(o, beside, from, err);
    if (rc == BH_OK)
        rc = bh_store_restore(beside, path, true, err);
    drop(&arena, beside);
    bh_arena_fini(&arena);
    return rc;
}
