/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_bill.h - one bill as a whole: its sums, what became of the cards, and from when on the books are whole.
 *
 * A question and its bill also go as bytes from one process to another of the same program, so that a long bill can be added up
 * beside the daemon (node/bill.h) and is the one that the daemon would have made itself. What comes as bytes is not trusted to be
 * whole.
 */
#ifndef BH_STORE_STATE_BILL_H
#define BH_STORE_STATE_BILL_H

#include "store/state_tally.h"

/* Zeroed it asks for nothing of nobody. */
struct bh_store_bill_ask {
    uint64_t from_ms, to_ms; /* the later one not included */
    enum bh_store_usage_by by;
    bool all;       /* of every tenant; else of those below */
    bool cards;     /* what became of the cards, besides */
    bool past;      /* all of everybody by tenant, from the beginning: with the tally that it is made from */
    uint64_t drops; /* bh_store_drops() then: a tally is good for as long as that is the same */
    BH_VEC(const char *) tenants; /* in their order, each once */
};
void bh_store_bill_ask_fini(struct bh_store_bill_ask *ask);

struct bh_store_bill {
    uint64_t from_ms, to_ms;
    bh_store_usage_sums sums;
    bh_store_usage_cards cards;
    uint64_t whole_from_ms;      /* bh_store_history_whole_from() */
    struct bh_store_tally tally; /* of one that was made elsewhere and asked for `past`; else zeroed */
};
void bh_store_bill_fini(struct bh_store_bill *bill);

/* How many intervals it would read, at most: counted up to `most` and one more, which is quick. tally: as below. */
int bh_store_bill_rows(struct bh_store *s, const struct bh_store_bill_ask *ask,
                       const struct bh_store_tally *tally, uint64_t most, uint64_t *ret,
                       struct bh_err *err) BH_MUST_USE;
/* Names are in the arena. tally: for `past`, and goes on with it. On failure there is nothing to free. */
int bh_store_bill_make(struct bh_store *s, struct bh_arena *arena, const struct bh_store_bill_ask *ask,
                       struct bh_store_tally *tally, struct bh_store_bill *ret,
                       struct bh_err *err) BH_MUST_USE;

/* Added to out; where that is full there is no telling what was left out. */
void bh_store_bill_ask_put(struct bh_buf *out, const struct bh_store_bill_ask *ask);
void bh_store_bill_put(struct bh_buf *out, const struct bh_store_bill *bill);
/* BH_INVALID: it is not what was put, or not all of it. On failure there is nothing to free. */
int bh_store_bill_ask_get(const char *bytes, size_t n, struct bh_arena *arena, struct bh_store_bill_ask *ret,
                          struct bh_err *err) BH_MUST_USE;
int bh_store_bill_get(const char *bytes, size_t n, struct bh_arena *arena, struct bh_store_bill *ret,
                      struct bh_err *err) BH_MUST_USE;

#endif
