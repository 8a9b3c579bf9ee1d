/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.h - records of the audit log that belong to no step of a lease: the node itself, its silicon being cut, what became of
 * jobs, who came in, what somebody signed for, and who laid hands on another's work.
 */
#ifndef BH_NODE_NOTE_H
#define BH_NODE_NOTE_H

#include "node/daemon.h"
#include "store/state_policy.h"

/* `node.start` with what it found, `node.stop`. In transactions of their own; what fails is said, and owed. */
void bh_note_node(struct bh_daemon *d, bool starts);
/* `mig.create`, `mig.destroy`, `mig.mode`: an instance of that name, or the card as a whole. In the caller's transaction, with the row. */
int bh_note_mig(struct bh_daemon *d, enum bh_audit_kind event, const char *gpu, const char *key,
                const char *why, struct bh_err *err) BH_MUST_USE;
/* `mps.start`, `mps.stop`, likewise. */
int bh_note_mps(struct bh_daemon *d, enum bh_audit_kind event, uint64_t number, const char *gpus,
                struct bh_err *err) BH_MUST_USE;
/* Of a job, by the daemon itself; tenant and after may be NULL. In the caller's transaction. */
int bh_note_job(struct bh_daemon *d, enum bh_audit_kind event, uint64_t job, const char *tenant,
                const char *after, const char *why, struct bh_err *err) BH_MUST_USE;
/* What a policy changes for whom (promise.h). before: the one that it follows, NULL: none. In the caller's transaction. */
int bh_note_policy(struct bh_daemon *d, const char *who, const struct bh_store_policy *before,
                   const char *text, size_t n, struct bh_err *err) BH_MUST_USE;

/* Of what bh_ops_owe could not write, on standard error: once for all of them until the log takes something. */
void bh_note_not_yet(struct bh_daemon *d, const char *what, const struct bh_err *why);
/* What somebody asked for: the parts of a record that say who. */
struct bh_audit_event bh_note_by(const struct bh_api_caller *by, enum bh_audit_kind kind);
/* `auth.success`: the first time since the start that this token, or this user of the machine, asks for something. */
void bh_note_came_in(void *self, const struct bh_api_caller *by);
/* `auth.failure`, `auth.lockout`. */
void bh_note_auth_failed(void *self, const char *from, bool locked_out, const char *why);
/* Then `override.work` is to be written: the job is another's. */
bool bh_note_is_anothers(struct bh_daemon *d, const struct bh_api_caller *by, uint64_t job);

#endif
