/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what a warden knows, kept where its death does not reach: the next one goes on from there.
 *
 * A memfd that whoever starts wardens keeps too. It holds records, one for each change of the ledger, of a tenant's open
 * file or of a process; the call being served, where the kernel itself wrote it; and one word that says which of the two
 * halves is in force, how many of its records count, and how far the call has come. All that a call changed comes into
 * force together with its answer, by one store. So a warden killed at any instruction has, for its successor, either
 * answered a call or not begun with it; what it may have asked of the driver in between is said beside the call.
 *
 * When a half has grown, the state as it is goes into the other one. Both together, and the ledger, are a warden's memory in a
 * lease of many processes, so records are packed (journal_pack.h). Nothing is written to a disk, and nothing is
 * allocated but pages of the memfd that are written for the first time.
 */
#ifndef BH_WARDEN_JOURNAL_H
#define BH_WARDEN_JOURNAL_H

#include "base/err.h"
#include "base/mem.h"
#include "warden/gate.h"
#include "warden/ledger.h"

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

struct bh_journal;

enum bh_journal_stage {
    BH_JOURNAL_IDLE,     /* no call, or one that was not begun with: flight.notif.id says which */
    BH_JOURNAL_ISSUING,  /* the driver may have been asked */
    BH_JOURNAL_ANSWERED, /* flight.answer may have been sent */
    BH_JOURNAL_LOST,     /* there was no room: nobody can go on from here */
};

/* The call being served. Lies in the memfd; zeroed before the kernel writes to it. */
struct bh_journal_flight {
    struct seccomp_notif notif;
    struct seccomp_notif_resp answer;
    /* From ISSUING on: what the driver was asked for, on which file. object 0: it chooses the name. */
    uint64_t file;
    uint32_t pid, number, client, object;
};

/* A process has a file of the driver's open under a number. */
struct bh_journal_slot {
    uint32_t pid;
    int32_t fd;
    uint64_t file;      /* the warden's number for it */
    uint32_t kind, gpu; /* of struct bh_driver_file */
    uint64_t inode;     /* tells two files apart where it differs */
};
struct bh_journal_process {
    uint32_t pid;
    uint64_t started; /* as the kernel says it: a number given again is another process */
};
/* A thread was granted managed memory: until it calls again it may be about to map it. */
struct bh_journal_mapping {
    uint32_t pid, tid;
    uint64_t bytes;
};

/* What was found. Owned by whoever asked. */
struct bh_journal_found {
    struct bh_ledger *ledger;
    BH_VEC(struct bh_journal_slot) slots; /* pid 0: was closed */
    BH_VEC(struct bh_journal_process) processes;
    BH_VEC(struct bh_journal_mapping) mappings; /* the last one of each thread */
    uint64_t last_file;
};

/* fd -1: a memfd of its own, which nobody inherits. */
int bh_journal_new(int fd, uint64_t cap_bytes, struct bh_journal **ret, struct bh_err *err) BH_MUST_USE;
/* Takes over what another one left; seed: of the ledger. BH_CONFLICT: it is none, of another version or cap, damaged, or was lost. */
int bh_journal_adopt(int fd, uint64_t cap_bytes, uint64_t seed, struct bh_journal **ret,
                     struct bh_journal_found *found, struct bh_err *err) BH_MUST_USE;
void bh_journal_free(struct bh_journal *j); /* the memfd's content stays */
void bh_journal_found_fini(struct bh_journal_found *found);

/* From now on it hears the ledger. rest: tells the slots, processes and mappings there are, when a half is written anew. */
void bh_journal_attach(struct bh_journal *j, struct bh_ledger *ledger,
                       void (*rest)(void *arg, struct bh_journal *j), void *arg);
void bh_journal_slot(struct bh_journal *j, const struct bh_journal_slot *slot);
void bh_journal_slot_gone(struct bh_journal *j, uint32_t pid, int fd);
void bh_journal_process(struct bh_journal *j, const struct bh_journal_process *process);
void bh_journal_mapping(struct bh_journal *j, const struct bh_journal_mapping *mapping);

struct bh_journal_flight *bh_journal_flight(struct bh_journal *j);
struct bh_gate_stats *bh_journal_stats(struct bh_journal *j); /* they outlive a warden too */
enum bh_journal_stage bh_journal_stage(const struct bh_journal *j);
/* How far the call has come, and nothing more: what was written since the last commit does not count yet. */
void bh_journal_set_stage(struct bh_journal *j, enum bh_journal_stage stage);
/* Everything written so far counts from here on. */
void bh_journal_commit(struct bh_journal *j, enum bh_journal_stage stage);
/* The same, and the half is written anew first. */
void bh_journal_compact(struct bh_journal *j, enum bh_journal_stage stage);
/* The call is over: nothing of it is left, and the kernel may write the next one. */
void bh_journal_clear_flight(struct bh_journal *j);

#endif
