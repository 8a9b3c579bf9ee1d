/* SPDX-License-Identifier: Apache-2.0 */
/* state_inside.h - what the rooms of the state use of each other. For the files of this folder only. */
#ifndef BH_STORE_STATE_INSIDE_H
#define BH_STORE_STATE_INSIDE_H

#include "core/model/vocab.h"
#include "store/db_sql.h"
#include "store/state.h"
#include "store/state_slice.h"

/* Texts that may be left out are kept as "". */
static inline const char *bh_text_or_none(const char *s)
{
    return s ? s : "";
}

/* An enum's word; out of range is refused, since it would be kept for good. */
int bh_state_word(const struct bh_words *words, unsigned value, const char *what, const char **ret,
                  struct bh_err *err) BH_MUST_USE;
/* A word as it was kept; one that this program does not know is BH_REFUSED. */
int bh_state_value(const struct bh_words *words, const char *word, const char *what, uint8_t *ret,
                   struct bh_err *err) BH_MUST_USE;

/* Binds of a page: `after` and `limit`, for id > ? or id < ?, ORDER BY id LIMIT ?. */
void bh_state_page(struct bh_sql *q, int at_after, int at_limit, const struct bh_store_page *page);
/* " waiting running " for instr(): the words whose bits are set; all for 0. */
void bh_state_mask(const struct bh_words *words, uint32_t bits, struct bh_buf *buf);

/* A statement that must change one row: BH_NOT_FOUND with `what` when it changed none. */
int bh_state_one(struct bh_sql *q, struct bh_err *err, const char *what, ...) BH_PRINTF(3, 4) BH_MUST_USE;

/* The first row of a statement; BH_NOT_FOUND with `what` when there is none. bh_sql_done() when it was read. */
int bh_state_first(struct bh_sql *q, struct bh_err *err, const char *what, ...) BH_PRINTF(3, 4) BH_MUST_USE;
/* Every row into the vector `ret`, by `read(q, arena, row, err)`; rc is the outcome. */
#define bh_state_rows(q, arena, ret, read, rc, err)               \
    while (((rc) = bh_sql_step(q, err)) > 0) {                    \
        if (((rc) = read(q, arena, bh_vec_push(ret), err)) < 0) { \
            (ret)->n--;                                           \
            bh_sql_done(q);                                       \
            break;                                                \
        }                                                         \
    }

/* gpu, kind, key, base in four parameters from `at` on, or four columns. */
void bh_state_bind_name(struct bh_sql *q, int at, const struct bh_slice_name *name);
int bh_state_col_name(struct bh_sql *q, int at, struct bh_arena *arena, struct bh_slice_name *ret,
                      struct bh_err *err) BH_MUST_USE;
/* `instance '3g.71gb@0' of 'GPU-...'`, for messages. */
struct bh_slice_text {
    char s[200];
};
const char *bh_slice_format(const struct bh_slice_name *name, struct bh_slice_text *t);

extern const struct bh_words bh_words_slice_kind, bh_words_slice_state, bh_words_scrub_verdict,
    bh_words_card_health, bh_words_job_state, bh_words_job_end;

/* Open usage of what the lease has, close it (grant 0: all of the lease's). In state_usage.c, for the steps of a lease. */
int bh_usage_open(struct bh_store *s, uint64_t lease, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;
int bh_usage_close(struct bh_store *s, uint64_t lease, uint64_t grant, uint64_t at_ms,
                   struct bh_err *err) BH_MUST_USE;

/* Slices as a lease's steps move them: in state_slice.c. */
int bh_slices_take(struct bh_store *s, uint64_t lease, uint64_t grant, const struct bh_slice_name *name,
                   uint32_t milli, uint32_t mib, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;
int bh_slices_leave(struct bh_store *s, uint64_t lease, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;
int bh_slices_quarantine(struct bh_store *s, uint64_t lease, uint64_t at_ms, const char *why,
                         struct bh_err *err) BH_MUST_USE;
int bh_slices_retry(struct bh_store *s, uint64_t lease, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;

/* The grant by which a slice is had or was left; 0: none. */
int bh_slice_grant(struct bh_store *s, const struct bh_slice_name *name, uint64_t *ret,
                   struct bh_err *err) BH_MUST_USE;

/* The end of a function that began a transaction of its own: commit, or roll back and pass rc on. */
int bh_state_end(struct bh_store *s, int rc, struct bh_err *err) BH_MUST_USE;

#endif
