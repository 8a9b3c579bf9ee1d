/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - the audit log of a node: written in the transaction of what it tells of, or that does not happen.
 *
 *     bh_store_begin(store)
 *       ...the change...
 *       bh_audit_append(audit, &event)      fails: the whole transaction is undone at once, and cannot be committed
 *     bh_store_commit(store)
 *
 * Records are numbered, hashed and chained (audit_record.h); a Merkle tree stands over the hashes; its root is signed every
 * few hundred records or seconds and at the end (audit_note.h). The tables take no change and no deletion. A checkpoint is
 * itself a record, the last one that it covers, so a checkpoint that is taken out is missed.
 *
 * What this cannot do alone: whoever has the key and the file can write another history, and the tail after the last
 * checkpoint can be cut (and further back, when the checkpoints go with it). Against that, keep checkpoints somewhere else
 * (`bulkhead audit checkpoint`) and hold the log against them.
 *
 * Nothing of the log is kept in memory but the key: a transaction that is rolled back takes its records with it.
 */
#ifndef BH_STORE_AUDIT_H
#define BH_STORE_AUDIT_H

#include "store/audit_note.h"
#include "store/audit_record.h"
#include "store/db.h"

struct bh_audit;

struct bh_audit_options {
    const char *key_path;            /* made with mode 0600 when the log begins */
    const char *component, *version; /* who writes: `bulkheadd`, its version */
    uint32_t checkpoint_records;     /* at most so many without a checkpoint; 0: 256 */
    uint32_t checkpoint_ms;          /* at most so long; 0: one minute */
    bool
        replace_lost_key; /* the key file is gone: go on with a new key, and leave a mark that verify shows */
    int64_t (*clock_ns)(void *arg); /* for tests: since 1970; NULL: the system's */
    void *clock_arg;
};

enum { BH_AUDIT_CHECKPOINT_RECORDS = 256, BH_AUDIT_CHECKPOINT_MS = 60000 };

/*
 * Begins the log where there is none: a key, and the record that names it. Writes `audit.start`. The store is borrowed and
 * must outlive it; no transaction may be open. BH_REFUSED: the key file is gone or of another log (says what to do);
 * BH_DENIED: others could read it.
 */
int bh_audit_open(struct bh_store *store, const struct bh_audit_options *options, struct bh_audit **ret,
                  struct bh_err *err) BH_MUST_USE;
void bh_audit_close(struct bh_audit *take_audit); /* NULL is fine. Writes nothing: see bh_audit_stop. */

/*
 * Inside an open transaction. BH_OK also where the policy leaves the event out. On any failure the transaction, the
 * outermost one, is undone: none of it can be committed.
 */
int bh_audit_append(struct bh_audit *a, const struct bh_audit_event *event, struct bh_err *err) BH_MUST_USE;

/* Of the policy in force. Mandatory classes stay, whatever it says; and so does what was denied or failed. */
void bh_audit_set_exclude(struct bh_audit *a, bool enabled, const char *const *classes, size_t n);
bool bh_audit_keeps(const struct bh_audit *a, enum bh_audit_kind kind, enum bh_audit_outcome outcome);

/* A signed checkpoint of all there is; nothing new since the last: none. In the caller's transaction or one of its own. */
int bh_audit_checkpoint(struct bh_audit *a, struct bh_err *err) BH_MUST_USE;
/* The same when it is time for one. *ret_wait_ms: when to ask again; UINT64_MAX: after the next record. */
int bh_audit_tick(struct bh_audit *a, uint64_t *ret_wait_ms, struct bh_err *err) BH_MUST_USE;
/* `audit.stop` and a last checkpoint. */
int bh_audit_stop(struct bh_audit *a, struct bh_err *err) BH_MUST_USE;

/* A new key, vouched for by the one before; who: sub, uid, reason and so on of the event. No transaction may be open. */
int bh_audit_rotate(struct bh_audit *a, const struct bh_audit_event *who, struct bh_err *err) BH_MUST_USE;
/*
 * Drops records up to the last checkpoint that is wholly before an instant (ms since 1970). Records of keys, and
 * all checkpoints, stay; so does the edge of the tree there, from which the rest is verified on. *ret_dropped may be 0.
 */
int bh_audit_prune(struct bh_audit *a, int64_t before_ms, const struct bh_audit_event *who,
                   uint64_t *ret_dropped, struct bh_err *err) BH_MUST_USE;

/* The key that signs now. */
const struct bh_audit_key *bh_audit_current_key(const struct bh_audit *a);

#endif
