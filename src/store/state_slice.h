/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_slice.h - cards and their slices: who has which, what was found when they were scrubbed, what is wrong with them.
 *
 *     free → owned → dirty → free (only by a clean verdict),  dirty → quarantined → dirty,  free → quarantined
 *
 * A whole card and an instance of MIG have a row for as long as they are there; a share has one while somebody has it, or
 * while it is not proved clean, and counts for all that time. Held by the schema: one owner; nothing beside a whole card
 * that is not free; no instance beside shares of its card or of itself; shares of a card (or of an instance) come to no
 * more than 1000 thousandths and its memory; nobody owns what is dirty or quarantined.
 */
#ifndef BH_STORE_STATE_SLICE_H
#define BH_STORE_STATE_SLICE_H

#include "core/lease/slice.h"
#include "store/state.h"

enum bh_slice_state {
    BH_SLICE_FREE,
    BH_SLICE_OWNED,
    BH_SLICE_DIRTY,       /* nobody's; has to be proved clean */
    BH_SLICE_QUARANTINED, /* nobody's, and nobody gets it */
    BH_SLICE_STATES
};
const char *bh_slice_kind_str(enum bh_slice_kind k);
const char *bh_slice_state_str(enum bh_slice_state s);

struct bh_slice_name {
    const char *gpu; /* uuid of the card */
    enum bh_slice_kind kind;
    const char
        *key; /* "" of a whole card; of an instance what the caller calls it; of a share the store's name */
    const char
        *base; /* of a share: "" the card, else the key of the instance it is a share of; "" of the others */
};

struct bh_store_slice {
    uint64_t id;
    struct bh_slice_name name;
    uint32_t milli, mib;
    const char *device; /* the driver's name of an instance; "": not known */
    enum bh_slice_state state;
    uint64_t owner;     /* the lease that has it; 0: nobody */
    uint64_t lease;     /* that has it or left it so; 0: none */
    const char *tenant; /* of that lease; "": none */
    uint64_t since_ms;  /* in this state */
    const char *why;    /* it is quarantined */
};
typedef BH_VEC(struct bh_store_slice) bh_store_slices;

/* ---- cards ---- */

enum bh_card_health { BH_CARD_OK, BH_CARD_SUSPECT, BH_CARD_BAD, BH_CARD_HEALTHS };
const char *bh_card_health_str(enum bh_card_health h);

struct bh_store_card {
    const char *uuid, *model;
    uint32_t index, memory_mib;
    uint64_t seen_ms;

    uint64_t cordoned_ms; /* 0: it is not */
    const char *cordon_by, *cordon_why;
    enum bh_card_health health;
    uint64_t health_ms;
    const char *health_why;
};
typedef BH_VEC(struct bh_store_card) bh_store_cards;

/* The first part: a card that was found, new or known. Its whole slice comes with it. BH_CONFLICT: less memory than given away. */
int bh_store_card_put(struct bh_store *s, const struct bh_store_card *card, struct bh_err *err) BH_MUST_USE;
/* Each BH_NOT_FOUND for an unknown card. Cordoned again: the new words. */
int bh_store_card_cordon(struct bh_store *s, const char *uuid, uint64_t at_ms, const char *by,
                         const char *why, struct bh_err *err) BH_MUST_USE;
int bh_store_card_uncordon(struct bh_store *s, const char *uuid, struct bh_err *err) BH_MUST_USE;
int bh_store_card_health(struct bh_store *s, const char *uuid, enum bh_card_health health, uint64_t at_ms,
                         const char *why, struct bh_err *err) BH_MUST_USE;
int bh_store_card_get(struct bh_store *s, struct bh_arena *arena, const char *uuid, struct bh_store_card *ret,
                      struct bh_err *err) BH_MUST_USE;
int bh_store_cards_list(struct bh_store *s, struct bh_arena *arena, bh_store_cards *ret,
                        struct bh_err *err) BH_MUST_USE;

/* ---- slices ---- */

/* An instance of MIG that was cut, free; milli: thousandths of its card. */
int bh_store_slice_add(struct bh_store *s, const char *gpu, const char *key, uint32_t milli, uint32_t mib,
                       const char *device, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;
/* One that is cut no more: BH_CONFLICT unless it is free and nobody shares it. */
int bh_store_slice_remove(struct bh_store *s, const char *gpu, const char *key,
                          struct bh_err *err) BH_MUST_USE;
/* Of one that is free. What a lease leaves is quarantined by the lease's own step. */
int bh_store_slice_quarantine(struct bh_store *s, const struct bh_slice_name *name, uint64_t at_ms,
                              const char *why, struct bh_err *err) BH_MUST_USE;
/* Quarantined without a lease, and to be scrubbed again. What a lease left goes back by BH_LEASE_BY_RETRY. */
int bh_store_slice_retry(struct bh_store *s, const struct bh_slice_name *name, uint64_t at_ms,
                         struct bh_err *err) BH_MUST_USE;
/* What it has (owned by it) becomes dirty now: parking leaves slices one by one. */
int bh_store_slice_leave(struct bh_store *s, const struct bh_slice_name *name, uint64_t lease, uint64_t at_ms,
                         struct bh_err *err) BH_MUST_USE;
/* BH_NOT_FOUND; a share is there only while it is not free. */
int bh_store_slice_get(struct bh_store *s, struct bh_arena *arena, const struct bh_slice_name *name,
                       struct bh_store_slice *ret, struct bh_err *err) BH_MUST_USE;
/* gpu NULL: of all cards; lease 0: whoever's. In the order of cards and keys, added to ret. */
int bh_store_slices_list(struct bh_store *s, struct bh_arena *arena, const char *gpu, uint64_t lease,
                         bh_store_slices *ret, struct bh_err *err) BH_MUST_USE;

/* Of all cards those that nobody gets, in the same order; added to ret. */
int bh_store_slices_quarantined(struct bh_store *s, struct bh_arena *arena, bh_store_slices *ret,
                                struct bh_err *err) BH_MUST_USE;

/* What the leases of a tenant have, or left and is not proved clean yet: added up by the schema. */
struct bh_store_held {
    const char *tenant;
    uint64_t milli, mib;
};
typedef BH_VEC(struct bh_store_held) bh_store_helds;
int bh_store_held_list(struct bh_store *s, struct bh_arena *arena, bh_store_helds *ret,
                       struct bh_err *err) BH_MUST_USE;

/* How many share a card, of those that somebody shares. */
struct bh_store_shared_card {
    const char *gpu;
    uint64_t n;
};
typedef BH_VEC(struct bh_store_shared_card) bh_store_shared_cards;
int bh_store_shared_cards_list(struct bh_store *s, struct bh_arena *arena, bh_store_shared_cards *ret,
                               struct bh_err *err) BH_MUST_USE;

/* ---- scrub verdicts ---- */

enum bh_scrub_verdict {
    BH_SCRUB_CLEAN,   /* all that can be looked at was, and nothing was found */
    BH_SCRUB_FOUND,   /* something of the one before was still there */
    BH_SCRUB_UNKNOWN, /* it could not be looked at */
    BH_SCRUB_VERDICTS
};
const char *bh_scrub_verdict_str(enum bh_scrub_verdict v);

struct bh_store_scrub {
    uint64_t id;
    uint64_t lease; /* 0: no lease's */
    struct bh_slice_name slice;
    enum bh_scrub_verdict verdict;
    const char *method;                 /* `overwrite+probe`, `driver, canary of ...` */
    uint64_t probed_bytes, total_bytes; /* the coverage */
    const char *words;
    uint64_t at_ms;
};
typedef BH_VEC(struct bh_store_scrub) bh_store_scrubs;

/*
 * The verdict on a dirty slice; a clean one frees it in the same transaction. Others leave it dirty: the lease's step
 * quarantines it, or another scrub follows. BH_CONFLICT: it is not dirty, or not of this lease. ret_id may be NULL.
 * A lease that is parking has a slice (core/lease): the verdict that frees its last one and the step by
 * BH_LEASE_BY_PARKED belong in one transaction.
 */
int bh_store_scrub_add(struct bh_store *s, const struct bh_store_scrub *scrub, uint64_t *ret_id,
                       struct bh_err *err) BH_MUST_USE;
/* lease 0: of all; added to ret. */
int bh_store_scrubs_list(struct bh_store *s, struct bh_arena *arena, uint64_t lease,
                         const struct bh_store_page *page, bh_store_scrubs *ret,
                         struct bh_err *err) BH_MUST_USE;

#endif
