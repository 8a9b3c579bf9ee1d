/* SPDX-License-Identifier: Apache-2.0 */
/* audit_rows.h - the audit log's tables: its head, its records, its checkpoints. For the files of the audit log. */
#ifndef BH_STORE_AUDIT_ROWS_H
#define BH_STORE_AUDIT_ROWS_H

#include "store/audit_merkle.h"
#include "store/audit_note.h"
#include "store/audit_record.h"
#include "store/db.h"

/* Where the log ends, and where what is left of it begins. */
struct bh_audit_head {
    char origin[BH_NOTE_NAME_MAX];
    struct bh_hash chain;     /* of the last record; zeros when there is none */
    struct bh_merkle edge;    /* of all records; edge.n is how many */
    uint64_t signed_size;     /* records under the last checkpoint */
    int64_t signed_ms;        /* when its record was written */
    int64_t last_ms;          /* when the last record was written; not stored, 0 until one is */
    struct bh_hash cut_chain; /* the same of the records that were dropped */
    struct bh_merkle cut;     /* cut.n: records 1 to cut.n are gone */
};

struct bh_audit_row {
    uint64_t seq;
    int64_t at_ms;
    const char *event, *tenant; /* as the columns have them; tenant may be NULL */
    const char *body;
    size_t n_body;
    struct bh_hash hash; /* as it was stored */
    bool odd;            /* a column is not of its kind: nothing of ours wrote it */
};

/* BH_NOT_FOUND: no log was begun. BH_INVALID: what is there is none of ours. */
int bh_audit_head_load(struct bh_store *s, struct bh_audit_head *ret, struct bh_err *err) BH_MUST_USE;
int bh_audit_head_begin(struct bh_store *s, const struct bh_audit_head *h, struct bh_err *err) BH_MUST_USE;
int bh_audit_head_save(struct bh_store *s, const struct bh_audit_head *h, struct bh_err *err) BH_MUST_USE;

int bh_audit_row_add(struct bh_store *s, const struct bh_audit_row *row, struct bh_err *err) BH_MUST_USE;
/* The records after `after` up to `last`, in order (with newest the other way round); what a row borrows ends with the call.
 * Stops where fn answers something else than 0, and answers that. tenant: only those of one, NULL: all. */
struct bh_audit_range {
    uint64_t after, last;
    const char *tenant;
    bool newest;
};
typedef int (*bh_audit_row_fn)(void *arg, const struct bh_audit_row *row, struct bh_err *err);
int bh_audit_rows(struct bh_store *s, const struct bh_audit_range *range, bh_audit_row_fn fn, void *arg,
                  struct bh_err *err) BH_MUST_USE;
/* The record of the newest key: of the log, or up to a record. */
int bh_audit_key_row(struct bh_store *s, uint64_t up_to, struct bh_arena *arena, struct bh_audit_record *ret,
                     struct bh_err *err) BH_MUST_USE;
/* Drops records up to `last`, but those of keys. */
int bh_audit_rows_drop(struct bh_store *s, uint64_t last, uint64_t *ret_n, struct bh_err *err) BH_MUST_USE;

int bh_audit_checkpoint_add(struct bh_store *s, uint64_t size, const char *note,
                            struct bh_err *err) BH_MUST_USE;
/* The first checkpoint of at least `size` records (newest: the last of at most that many); BH_NOT_FOUND. */
int bh_audit_checkpoint_find(struct bh_store *s, uint64_t size, bool newest, struct bh_arena *arena,
                             uint64_t *ret_size, const char **ret_note, struct bh_err *err) BH_MUST_USE;

/* Are the tables and what guards them as they were made? Each that is not is a line in words. */
int bh_audit_schema_check(struct bh_store *s, struct bh_buf *words, struct bh_err *err) BH_MUST_USE;

#endif
