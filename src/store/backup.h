/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backup.h - a copy of a store that somebody uses, and the way back.
 *
 * A backup is one file that is complete in itself, the state as of its last step. It is written under another name and renamed
 * when it was found sound and is on disk: a file with the wanted name is a good backup or not there. Writing goes on between the
 * steps; what the same connection writes is carried into the copy.
 *
 * A restore replaces a store that no daemon has. What was there is kept beside it as PATH.replaced. Ids that were given
 * after the backup are not given again. What was done after the backup is not in it: slices, leases and the audit chain
 * are as they were then, and the daemon's next start compares them with the machine.
 */
#ifndef BH_STORE_BACKUP_H
#define BH_STORE_BACKUP_H

#include "store/db.h"

struct bh_backup;

/* path must not exist: BH_CONFLICT. */
int bh_backup_new(struct bh_store *s, const char *path, struct bh_backup **ret,
                  struct bh_err *err) BH_MUST_USE;
/* So many pages more (0: 256). 1: done, the file is there; 0: call again; negative: failed, nothing is left of it. */
int bh_backup_step(struct bh_backup *b, uint32_t pages, struct bh_err *err) BH_MUST_USE;
uint32_t bh_backup_percent(const struct bh_backup *b);
void bh_backup_free(struct bh_backup *take_backup); /* one that is not done is given up */

/* All of it at once. */
int bh_store_backup(struct bh_store *s, const char *path, struct bh_err *err) BH_MUST_USE;

/*
 * BH_BUSY: a daemon has the store at `path`; BH_REFUSED: the backup is damaged, not Bulkhead's, of a newer schema, or its
 * books do not add up; nothing was changed then. BH_CONFLICT: a store is there and replace is false.
 */
int bh_store_restore(const char *from, const char *path, bool replace, struct bh_err *err) BH_MUST_USE;

#endif
