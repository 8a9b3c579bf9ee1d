/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.h - the one file in which a node keeps its state: opening it, and changing it all or not at all.
 *
 * SQLite with a write-ahead log and synchronous=FULL: what bh_store_commit() answered with 0 is still there after the
 * process is killed or the power fails. One daemon at a time: PATH.lock is held with flock(2) by whoever may write. A lock
 * of SQLite's own would shut out the readers as well (an exclusive one) or vanish with any other descriptor of the
 * file that this process closes (its POSIX locks); the kernel lets go of this one when its holder dies, however it dies.
 *
 * The schema is of a version; older ones are brought up to date when the file is opened to write, a newer one is refused.
 * What must never be is refused by the schema itself (src/store/schema), whoever writes.
 *
 * One thread, one connection. Strings given are borrowed for the call, strings returned belong to the caller's arena.
 */
#ifndef BH_STORE_DB_H
#define BH_STORE_DB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_store;

enum bh_store_mode {
    BH_STORE_WRITE, /* the daemon: made when it is not there, migrated, locked against a second one */
    BH_STORE_READ,  /* offline tools, beside a living daemon or not: never changes or locks anything */
};

struct bh_store_options {
    enum bh_store_mode mode;
    bool full_check;  /* every page, index and reference; else what can be seen without comparing indexes */
    bool no_check;    /* to read: neither; whoever has it open found it sound, and it is long */
    bool spill;       /* to read: what there is to sort goes to files where it is too much for memory */
    uint32_t busy_ms; /* how long to wait for another process; 0: five seconds */
    const char *vfs;  /* a registered sqlite3_vfs, for tests; NULL: the system's */
    uint32_t to_version; /* migrate only so far, for tests of migrations; 0: all the way */
};

/*
 * BH_NOT_FOUND (to read, and it is not there), BH_BUSY (another daemon has it; says its pid), BH_REFUSED (not
 * Bulkhead's, of a newer schema, or damaged; says which and how to go on), BH_DENIED, BH_SYSTEM.
 */
int bh_store_open(const char *path, const struct bh_store_options *options, struct bh_store **ret,
                  struct bh_err *err) BH_MUST_USE;
void bh_store_close(struct bh_store *take_store); /* NULL is fine; an open transaction is rolled back */

const char *bh_store_path(const struct bh_store *s);
uint32_t bh_store_schema_version(const struct bh_store *s); /* of the file */
uint32_t bh_store_schema_newest(void);                      /* that this program knows */

/*
 * Nested: an inner begin marks a place, an inner rollback undoes what came after it, and only the outermost commit makes
 * anything durable. So several commands of one turn of the loop can share one sync, and one of them may fail alone.
 * When the disk fails, SQLite undoes the whole transaction at once: every commit until the outermost rollback (or
 * commit, which then fails and rolls back) answers BH_SYSTEM.
 *
 * A commit that failed is undone for good, also when power is lost afterwards: something harmless is written over what
 * may have reached the disk. Where that fails too (bh_store_unsure), it is tried again by the next begin; only if the
 * machine dies before one succeeds may the failed commit be found to have happened.
 */
int bh_store_begin(struct bh_store *s, struct bh_err *err) BH_MUST_USE;
int bh_store_commit(struct bh_store *s, struct bh_err *err) BH_MUST_USE; /* on failure it is rolled back */
void bh_store_rollback(struct bh_store *s);
bool bh_store_in_transaction(const struct bh_store *s);
bool bh_store_unsure(const struct bh_store *s);
/*
 * Several questions about one moment: until the release all are answered from the state as it is now, and the locks of the file are
 * taken once instead of for each. For a few milliseconds; whoever begins a transaction meanwhile ends it. Nothing is wrong where it
 * cannot be had (false): each question stands for itself then.
 */
bool bh_store_hold(struct bh_store *s);
void bh_store_release(struct bh_store *s);
/* Grows with every row that is written here, whatever becomes of it: what was read at the same number still holds. */
uint64_t bh_store_changes(const struct bh_store *s);
/* Grows with every time that something is taken out of the books here, whatever becomes of it; for state_history.c to say so. */
uint64_t bh_store_drops(const struct bh_store *s);
void bh_store_drops_add(struct bh_store *s);

/* The file itself: pages, indexes, references. BH_REFUSED with the first findings. */
int bh_store_verify(struct bh_store *s, bool full, struct bh_err *err) BH_MUST_USE;

/* Move what the log holds into the file, as far as readers let it; called when idle. Never needed for safety. */
int bh_store_checkpoint(struct bh_store *s, struct bh_err *err) BH_MUST_USE;
/* How long the log is; and begin it anew, which takes that nobody reads: nobody is waited for. False: it is as it was, or shorter. */
uint64_t bh_store_log_bytes(const struct bh_store *s);
bool bh_store_log_empty(struct bh_store *s);

#endif
