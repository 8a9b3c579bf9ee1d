/* SPDX-License-Identifier: Apache-2.0 */
/* score_inside.h - what the files of the score share with each other and with nobody else. */
#ifndef BH_CORE_SCHED_SCORE_INSIDE_H
#define BH_CORE_SCHED_SCORE_INSIDE_H

#include "core/sched/score.h"

enum { BH_MILLIS_MAX = BH_TYPICAL_MAX, BH_MASKS_MAX = 64 };

/* One kind of typical work that uses GPUs, as a node of one model sees it. */
struct bh_kind {
    uint32_t cpu_milli;
    uint32_t weight;
    uint16_t milli; /* index into millis */
    uint16_t n_gpus;
};

/* Typical work, laid out for the one loop that asks about it. */
struct bh_frag {
    struct bh_kind *kinds;             /* by model: those that may run on it */
    uint32_t first[BH_MODELS_MAX + 1]; /* kinds[first[m] .. first[m + 1]) are model m's */
    uint16_t millis[BH_MILLIS_MAX];    /* different sizes, ascending */
    uint32_t n_millis, n_kinds;        /* n_kinds: all, with CPU-only ones */
    uint32_t weight;                   /* of all kinds */
    int64_t steps[100];                /* the least weighted fall of fragments that is worth so many points */
};

/* Who asked for which models, so far. */
struct bh_price {
    struct {
        uint64_t models, milli;
    } masks[BH_MASKS_MAX];
    uint32_t n_masks;
    uint64_t milli; /* asked for in all */
    int32_t price_milli[BH_MODELS_MAX];
};

struct bh_score {
    enum bh_score_mode mode;
    const struct bh_shelf *shelf;
    uint64_t epoch, state;
    struct bh_frag frag;
    struct bh_price price;
    /* Fragments of each node as it is, and the change of the node after which that was computed, plus one. */
    struct {
        uint64_t at, weighted;
    } *known;
    size_t n_known;
};

void bh_frag_fini(struct bh_frag *f);
void bh_frag_set(struct bh_frag *f, const struct bh_requests *requests, const struct bh_typical *at,
                 size_t n);
/* What is idle and of no use, in thousandths times weight. open has BH_NODE_GPUS entries. */
uint64_t bh_frag_of(const struct bh_frag *f, uint32_t model, uint32_t cpu_free, const uint16_t *open);
/* Points for a fall of fragments from before to after. */
uint32_t bh_frag_points(const struct bh_frag *f, uint64_t before, uint64_t after);

void bh_price_arrived(struct bh_price *p, const struct bh_shelf *shelf, const struct bh_request *r);

#endif
