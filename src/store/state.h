/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what the rooms of the state share: how lists are asked for, the store's notes, and the books' own audit.
 *
 *   state_job.h      what somebody asked for
 *   state_lease.h    attempts to run it: grants of slices, steps, history
 *   state_slice.h    cards, their slices and who has them, scrub verdicts, cordons, health
 *   state_usage.h    who had what from when to when
 *   state_policy.h   versions of the policy
 *   state_token.h    tokens of the API
 *
 * Ids come from the store, count from 1 and are never given again. Times are milliseconds since 1970 that the caller took.
 * Every function works inside the caller's transaction, or alone as one of its own.
 */
#ifndef BH_STORE_STATE_H
#define BH_STORE_STATE_H

#include "base/mem.h"
#include "store/db.h"

enum { BH_STORE_PAGE = 200, BH_STORE_PAGE_MAX = 100000 };

/* Part of a list, in the order of ids. */
struct bh_store_page {
    uint64_t after; /* the last id of the page before; 0: from the start (or from the end) */
    uint32_t limit; /* 0: BH_STORE_PAGE */
    bool newest;    /* the highest id first */
};

/* ---- notes: boot id, driver of the last canary test, layouts of MIG... ---- */

struct bh_store_note {
    const char *key;
    const void *value; /* a NUL stands behind it */
    size_t n;
};
typedef BH_VEC(struct bh_store_note) bh_store_notes;

int bh_store_note_set(struct bh_store *s, const char *key, const void *value, size_t n,
                      struct bh_err *err) BH_MUST_USE;
int bh_store_note_set_text(struct bh_store *s, const char *key, const char *value,
                           struct bh_err *err) BH_MUST_USE;
/* BH_NOT_FOUND */
int bh_store_note_get(struct bh_store *s, struct bh_arena *arena, const char *key, struct bh_store_note *ret,
                      struct bh_err *err) BH_MUST_USE;
int bh_store_note_remove(struct bh_store *s, const char *key,
                         struct bh_err *err) BH_MUST_USE; /* none: fine */
/* Keys that start with prefix, in their order, added to ret. */
int bh_store_notes_list(struct bh_store *s, struct bh_arena *arena, const char *prefix, bh_store_notes *ret,
                        struct bh_err *err) BH_MUST_USE;

/* ---- the books ---- */

/*
 * Every invariant of the state, looked at as if no trigger held it: each broken one is a line in words, and counted. Of a
 * sound store words stays empty. Used by tests, by reconciliation and by `bulkhead doctor`.
 */
int bh_store_check(struct bh_store *s, struct bh_buf *words, uint32_t *ret_broken,
                   struct bh_err *err) BH_MUST_USE;

#endif
