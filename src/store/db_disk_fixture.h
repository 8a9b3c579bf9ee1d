/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_disk_fixture.h - a disk in memory below SQLite that fails, fills up, tears writes and loses power.
 *
 * Each file has what programs see and what is safe. A write is seen at once and safe after a sync. When power is lost, any of
 * the writes since the last sync may have reached the disk, in any combination, and one of them in part; what is left
 * is what the machine starts with. A file that was made and never synced may be gone, one that was deleted may be back.
 *
 * A disk of our own rather than a layer over the system's: only so can what was not synced be lost.
 */
#ifndef BH_STORE_DB_DISK_FIXTURE_H
#define BH_STORE_DB_DISK_FIXTURE_H

#include "base/mem.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { DISK_FILES = 8, DISK_NAME = 512 };

enum disk_fault {
    DISK_FINE,
    DISK_IOERR,          /* the call fails, and did nothing */
    DISK_TORN,           /* it fails, and did half of it */
    DISK_FULL,           /* no room */
    DISK_NO_SYNC,        /* only a sync fails; the write before it is seen */
    DISK_OUTAGE,         /* power is lost right then: all that follows fails until disk_restart() */
    DISK_OUTAGE_AT_SYNC, /* the same, at the next sync: all was written, nothing is safe */
    DISK_FAULTS
};

struct disk_op { /* not safe yet */
    bool truncate;
    uint64_t at;
    size_t n;
    uint8_t *bytes;
};

struct disk_bytes {
    uint8_t *at; /* zero past n */
    size_t n, cap;
};

struct disk_file {
    char name[DISK_NAME]; /* "": no file */
    bool seen, safe;      /* it exists for programs; for the disk */
    struct disk_bytes now, kept;
    BH_VEC(struct disk_op) pending;
    BH_VEC(uint8_t *) index; /* shared memory of the log */
};

struct disk {
    sqlite3_vfs vfs;
    struct disk_file files[DISK_FILES];
    uint64_t seed;  /* of what is lost */
    uint64_t calls; /* that change something, so far */
    uint64_t fail_at;
    enum disk_fault fault;
    bool stays; /* it goes on failing */
    bool hit;   /* it did fail */
    bool dead;  /* power is gone */
};

void disk_init(struct disk *d, const char *name, uint64_t seed); /* registered under that name */
void disk_fini(struct disk *d);
/* The call that follows so many others fails. */
void disk_plan(struct disk *d, enum disk_fault fault, uint64_t after, bool stays);
/* Power is lost and comes back: nobody may have a file open. */
void disk_restart(struct disk *d);

#endif
