/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_usage.h - who had what from when to when: half-open intervals, one open for each slice in use.
 *
 * Intervals are opened and closed by the steps of leases (state_lease.h) and never changed afterwards, so that the sum over
 * tenants is what was granted, exactly. A clock that went back closes an interval where it began, never before.
 */
#ifndef BH_STORE_STATE_USAGE_H
#define BH_STORE_STATE_USAGE_H

#include "store/state.h"
#include "store/state_slice.h"

struct bh_store_usage {
    uint64_t id, lease, grant, job;
    const char *tenant, *user;
    struct bh_slice_name slice;
    uint8_t mechanism;       /* enum bh_mechanism */
    uint32_t milli, mib;     /* milli: of the card */
    uint64_t from_ms, to_ms; /* to_ms 0: still open */
    bool lost;               /* the attempt was ended to make room: its work is lost or was saved by itself */
};
typedef BH_VEC(struct bh_store_usage) bh_store_usages;

struct bh_store_usage_filter {
    const char *tenant;      /* NULL: any */
    uint64_t lease;          /* 0: any */
    uint64_t from_ms, to_ms; /* those that touch it; to_ms 0: no end */
    uint64_t upto;           /* of a list: no id past it; 0: any */
};

/* Added to ret. */
int bh_store_usage_list(struct bh_store *s, struct bh_arena *arena,
                        const struct bh_store_usage_filter *filter, const struct bh_store_page *page,
                        bh_store_usages *ret, struct bh_err *err) BH_MUST_USE;

/* The id up to which a list that begins behind `after` looks at `most` intervals of that tenant, or of all, whatever of them is in the
 * time that is asked for; 0: there are fewer. */
int bh_store_usage_upto(struct bh_store *s, const struct bh_store_usage_filter *filter, uint64_t after,
                        uint64_t most, uint64_t *ret, struct bh_err *err) BH_MUST_USE;

/* Besides tenant and mechanism. */
enum bh_store_usage_by { BH_USAGE_OF_TENANT, BH_USAGE_OF_USER, BH_USAGE_OF_GPU, BH_USAGE_OFS };

struct bh_store_usage_sum {
    const char *tenant, *of;   /* of: the user or the card; "": not asked for */
    uint8_t mechanism;         /* enum bh_mechanism */
    uint64_t milli_ms, mib_ms; /* thousandths of a card × ms, MiB × ms */
    uint64_t lost_milli_ms;    /* of them, of attempts that were ended to make room */
    uint64_t leases;
    uint64_t first_ms; /* when the first of them begins, in that time */
};
typedef BH_VEC(struct bh_store_usage_sum) bh_store_usage_sums;

/* What lies within [from_ms, to_ms), open intervals counted up to to_ms; by tenant, `by` and mechanism, in their order. */
int bh_store_usage_sum(struct bh_store *s, struct bh_arena *arena, const struct bh_store_usage_filter *filter,
                       enum bh_store_usage_by by, bh_store_usage_sums *ret, struct bh_err *err) BH_MUST_USE;

struct bh_store_usage_card {
    const char *gpu;
    uint32_t index, memory_mib;
    uint64_t milli_ms;                           /* given away */
    uint64_t stranded_milli_ms, stranded_mib_ms; /* core/ledger/strand.h */
};
typedef BH_VEC(struct bh_store_usage_card) bh_store_usage_cards;

/* Every card, in the order of their numbers. Of the filter the time counts alone. */
int bh_store_usage_cards_list(struct bh_store *s, struct bh_arena *arena,
                              const struct bh_store_usage_filter *filter, bh_store_usage_cards *ret,
                              struct bh_err *err) BH_MUST_USE;

#endif
