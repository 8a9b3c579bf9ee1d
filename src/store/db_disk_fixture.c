/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_disk_fixture.h"

#include <string.h>

enum { SECTOR = 512 };

struct opened {
    sqlite3_file base;
    struct disk *disk;
    struct disk_file *file;
};

static uint64_t draw(struct disk *d, uint64_t n)
{
    uint64_t z = d->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return n ? (z ^ (z >> 31)) % n : 0;
}

static void resize(struct disk_bytes *b, size_t want)
{
    if (want > b->cap) {
        const size_t cap = want * 2;
        uint8_t *more = bh_alloc(cap, 1);
        if (b->n)
            memcpy(more, b->at, b->n);
        free(b->at);
        b->at = more;
        b->cap = cap;
    }
    if (want < b->n)
        memset(b->at + want, 0, b->n - want);
    b->n = want;
}

static void put(struct disk_bytes *b, uint64_t offset, const uint8_t *bytes, size_t count)
{
    if (!count)
        return;
    if (offset + count > b->n)
        resize(b, (size_t)offset + count);
    memcpy(b->at + offset, bytes, count);
}

/* ---- faults ---- */

/* What becomes of the call that changes something. */
static enum disk_fault judge(struct disk *d, bool sync)
{
    if (d->dead)
        return DISK_OUTAGE;
    const uint64_t now = d->calls++;
    const bool due = d->fault != DISK_FINE && (now == d->fail_at || (d->stays && now > d->fail_at));
    if (!due)
        return DISK_FINE;
    if ((d->fault == DISK_NO_SYNC || d->fault == DISK_OUTAGE_AT_SYNC) && !sync) {
        /* it waits for one */
        d->fail_at++;
        return DISK_FINE;
    }
    d->hit = true;
    d->dead = d->fault == DISK_OUTAGE || d->fault == DISK_OUTAGE_AT_SYNC;
    return d->fault;
}

void disk_plan(struct disk *d, enum disk_fault fault, uint64_t after, bool stays)
{
    d->fault = fault;
    d->fail_at = d->calls + after;
    d->stays = stays;
    d->hit = false;
}

static void remember(struct disk_file *f, bool truncate, uint64_t at, const uint8_t *bytes, size_t n)
{
    struct disk_op *op = bh_vec_push(&f->pending);
    *op = (struct disk_op){.truncate = truncate, .at = at, .n = n};
    if (n) {
        op->bytes = bh_alloc(n, 1);
        memcpy(op->bytes, bytes, n);
    }
}

static void forget(struct disk_file *f)
{
    for (size_t i = 0; i < f->pending.n; i++)
        free(f->pending.at[i].bytes);
    f->pending.n = 0;
}

/* So much of a write; a truncation as a whole. */
static void happen(struct disk_bytes *b, const struct disk_op *op, size_t n)
{
    if (op->truncate)
        resize(b, (size_t)op->at);
    else
        put(b, op->at, op->bytes, n);
}

static void make_safe(struct disk_file *f)
{
    for (size_t i = 0; i < f->pending.n; i++)
        happen(&f->kept, &f->pending.at[i], f->pending.at[i].n);
    f->safe = true;
    forget(f);
}

static void lose_index(struct disk_file *f)
{
    for (size_t i = 0; i < f->index.n; i++)
        free(f->index.at[i]);
    bh_vec_fini(&f->index);
}

static void restart_file(struct disk *d, struct disk_file *f)
{
    /* All, nothing, or any of them. */
    const uint64_t luck = draw(d, 3);
    for (size_t i = 0; i < f->pending.n; i++) {
        const struct disk_op *op = &f->pending.at[i];
        if (luck == 0 || (luck == 2 && draw(d, 2)))
            continue;
        size_t n = op->n;
        if (luck == 2 && draw(d, 4) == 0)
            n = draw(d, 2) ? n / SECTOR * SECTOR / 2 : draw(d, n + 1);
        happen(&f->kept, op, n);
    }
    f->seen = f->safe || (f->seen && f->pending.n && luck);
    f->safe = f->seen;
    forget(f);
    lose_index(f);
    resize(&f->now, 0);
    put(&f->now, 0, f->kept.at, f->kept.n);
}

void disk_restart(struct disk *d)
{
    for (size_t i = 0; i < DISK_FILES; i++) {
        if (d->files[i].name[0])
            restart_file(d, &d->files[i]);
    }
    d->dead = false;
    d->fault = DISK_FINE;
}

/* ---- files ---- */

static struct opened *opened_of(sqlite3_file *file)
{
    return (struct opened *)(void *)file;
}

static int do_close(sqlite3_file *file)
{
    (void)file;
    return SQLITE_OK;
}

static int do_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    const struct disk_file *f = opened_of(file)->file;
    const size_t want = (size_t)n, offset = (size_t)at;
    const size_t there = offset < f->now.n ? f->now.n - offset : 0;
    memset(to, 0, want);
    if (there)
        memcpy(to, f->now.at + offset, there < want ? there : want);
    return there < want ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int do_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    struct opened *o = opened_of(file);
    const enum disk_fault fault = judge(o->disk, false);
    size_t count = (size_t)n;
    if (fault == DISK_TORN || fault == DISK_FULL || (fault == DISK_OUTAGE && o->disk->hit))
        count /= 2;
    else if (fault != DISK_FINE)
        return SQLITE_IOERR_WRITE;
    put(&o->file->now, (uint64_t)at, from, count);
    remember(o->file, false, (uint64_t)at, from, count);
    return fault == DISK_FINE ? SQLITE_OK : fault == DISK_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int do_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct opened *o = opened_of(file);
    if (judge(o->disk, false) != DISK_FINE)
        return SQLITE_IOERR_TRUNCATE;
    resize(&o->file->now, (size_t)size);
    remember(o->file, true, (uint64_t)size, NULL, 0);
    return SQLITE_OK;
}

static int do_sync(sqlite3_file *file, int flags)
{
    struct opened *o = opened_of(file);
    (void)flags;
    if (judge(o->disk, true) != DISK_FINE)
        return SQLITE_IOERR_FSYNC;
    make_safe(o->file);
    /* File systems write what happened to names in its order: with this, earlier deletions are for good. */
    for (size_t i = 0; i < DISK_FILES; i++) {
        struct disk_file *f = &o->disk->files[i];
        if (!f->seen && f->safe) {
            resize(&f->kept, 0);
            f->safe = false;
        }
    }
    return SQLITE_OK;
}

static int do_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)opened_of(file)->file->now.n;
    return SQLITE_OK;
}

/* One connection: every lock is to be had. */
static int do_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int do_reserved(sqlite3_file *file, int *ret)
{
    (void)file;
    *ret = 0;
    return SQLITE_OK;
}

static int do_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int do_sector(sqlite3_file *file)
{
    (void)file;
    return SECTOR;
}

/* As the system's own claims: a torn write harms no byte outside of it. */
static int do_traits(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int do_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    struct disk_file *f = opened_of(file)->file;
    *ret = NULL;
    while (extend && f->index.n <= (size_t)region)
        *bh_vec_push(&f->index) = bh_alloc((size_t)size, 1);
    if (f->index.n > (size_t)region)
        *ret = f->index.at[region];
    return SQLITE_OK;
}

static int do_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    (void)file;
    (void)offset;
    (void)n;
    (void)flags;
    return SQLITE_OK;
}

static void do_shm_barrier(sqlite3_file *file)
{
    (void)file;
}

static int do_shm_unmap(sqlite3_file *file, int remove)
{
    (void)remove;
    lose_index(opened_of(file)->file);
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {.iVersion = 2,
                                           .xClose = do_close,
                                           .xRead = do_read,
                                           .xWrite = do_write,
                                           .xTruncate = do_truncate,
                                           .xSync = do_sync,
                                           .xFileSize = do_size,
                                           .xLock = do_lock,
                                           .xUnlock = do_lock,
                                           .xCheckReservedLock = do_reserved,
                                           .xFileControl = do_control,
                                           .xSectorSize = do_sector,
                                           .xDeviceCharacteristics = do_traits,
                                           .xShmMap = do_shm_map,
                                           .xShmLock = do_shm_lock,
                                           .xShmBarrier = do_shm_barrier,
                                           .xShmUnmap = do_shm_unmap};

/* ---- the disk ---- */

static struct disk_file *find(struct disk *d, const char *name)
{
    for (size_t i = 0; i < DISK_FILES; i++) {
        if (strcmp(d->files[i].name, name) == 0)
            return &d->files[i];
    }
    return NULL;
}

static struct disk_file *make(struct disk *d, const char *name)
{
    struct disk_file *f = find(d, "");
    if (f)
        (void)sqlite3_snprintf(DISK_NAME, f->name, "%s", name);
    return f;
}

static int do_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    struct disk *d = vfs->pAppData;
    struct opened *o = opened_of(file);
    struct disk_file *f = name ? find(d, name) : NULL;
    o->base.pMethods = NULL;
    if (!name || (!(f && f->seen) && !(flags & SQLITE_OPEN_CREATE)))
        return SQLITE_CANTOPEN;
    if (!(f && f->seen) && judge(d, false) != DISK_FINE)
        return SQLITE_CANTOPEN;
    if (!f)
        f = make(d, name);
    if (!f)
        return SQLITE_CANTOPEN;
    /* A new file of an old name: what may have come back of the old one does not any more. */
    if (!f->seen) {
        resize(&f->kept, 0);
        f->safe = false;
    }
    f->seen = true;
    *o = (struct opened){.base = {&methods}, .disk = d, .file = f};
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int do_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    struct disk *d = vfs->pAppData;
    struct disk_file *f = find(d, name);
    if (!f || !f->seen)
        return SQLITE_IOERR_DELETE_NOENT;
    if (judge(d, false) != DISK_FINE)
        return SQLITE_IOERR_DELETE;
    resize(&f->now, 0);
    f->seen = false;
    forget(f);
    lose_index(f);
    /* without a sync of the folder it may be back */
    if (sync || draw(d, 2)) {
        resize(&f->kept, 0);
        f->safe = false;
    }
    return SQLITE_OK;
}

static int do_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    const struct disk_file *f = find(vfs->pAppData, name);
    (void)flags;
    *ret = f && f->seen;
    return SQLITE_OK;
}

static int do_full_path(sqlite3_vfs *vfs, const char *name, int n, char *ret)
{
    (void)vfs;
    (void)sqlite3_snprintf(n, ret, "%s", name);
    return SQLITE_OK;
}

void disk_init(struct disk *d, const char *name, uint64_t seed)
{
    const sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    memset(d, 0, sizeof(*d));
    d->seed = seed;
    d->vfs = (sqlite3_vfs){.iVersion = 2,
                           .szOsFile = sizeof(struct opened),
                           .mxPathname = DISK_NAME - 1,
                           .zName = name,
                           .pAppData = d,
                           .xOpen = do_open,
                           .xDelete = do_delete,
                           .xAccess = do_access,
                           .xFullPathname = do_full_path,
                           .xRandomness = real->xRandomness,
                           .xSleep = real->xSleep,
                           .xCurrentTime = real->xCurrentTime,
                           .xGetLastError = real->xGetLastError,
                           .xCurrentTimeInt64 = real->xCurrentTimeInt64};
    (void)sqlite3_vfs_register(&d->vfs, 0);
}

void disk_fini(struct disk *d)
{
    (void)sqlite3_vfs_unregister(&d->vfs);
    for (size_t i = 0; i < DISK_FILES; i++) {
        struct disk_file *f = &d->files[i];
        forget(f);
        bh_vec_fini(&f->pending);
        lose_index(f);
        free(f->now.at);
        free(f->kept.at);
    }
}
