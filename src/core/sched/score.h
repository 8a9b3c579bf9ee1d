/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score.h - how good a node is for a request, and which of its GPUs to take.
 *
 * A score is a whole number from 0 to 100, quantised on purpose: near-equal nodes tie, and ties go to the
 * smallest rank, which packs. The modes:
 *   fgd         fragmentation gradient: the node whose idle GPU loses the least use for typical work
 *   bestfit     least left over, processors and GPUs weighed alike
 *   packing     a GPU in use before a free one on a used node before an idle node
 *   dotprod     alignment of what is asked with what is left
 *   clustering  nodes that run work of the same size
 *   random      any node that fits
 *   bulkhead    fgd, less a price for GPU models that others cannot do without (learnt from what was asked for
 *               so far, no look-ahead), less a penalty for breaking into an empty NVLink domain or rack
 */
#ifndef BH_CORE_SCHED_SCORE_H
#define BH_CORE_SCHED_SCORE_H

#include "core/sched/fleet.h"
#include "core/sched/request.h"

enum bh_score_mode {
    BH_SCORE_FGD,
    BH_SCORE_BESTFIT,
    BH_SCORE_PACKING,
    BH_SCORE_DOTPROD,
    BH_SCORE_CLUSTERING,
    BH_SCORE_RANDOM,
    BH_SCORE_BULKHEAD,
    BH_SCORE_MODES
};
extern const char *const bh_score_mode_names[BH_SCORE_MODES];

enum {
    BH_TYPICAL_MAX = 512,   /* kinds of typical work, at most */
    BH_SCORE_NONE = 0,      /* does not fit; else a score is one more than its points */
    BH_SCORE_MAX = 100 + 1, /* points plus one */
};

/* Work to expect, for fgd and bulkhead and for the measure of fragments. */
struct bh_typical {
    uint32_t class_;
    uint32_t count; /* how often */
};

struct bh_score;
/* shelf is borrowed. seed: for BH_SCORE_RANDOM. */
struct bh_score *bh_score_new(enum bh_score_mode mode, const struct bh_shelf *shelf, uint64_t seed);
void bh_score_free(struct bh_score *s);
/*
 * The most frequent of these until 95 % of all are covered. Requests that differ in nothing but memory, trust
 * and the like are one kind. Changes every score, so that indexes start anew. Without it fgd knows of no
 * work to keep room for, and all nodes tie.
 */
void bh_score_set_typical(struct bh_score *s, const struct bh_typical *at, size_t n);
size_t bh_score_typical_count(const struct bh_score *s); /* kinds kept */
/* A request of this class came: the price of models learns from it. Once for each, placed or not. */
void bh_score_arrived(struct bh_score *s, uint32_t class_);

/* What it has learnt, and how far it is in drawing: to be kept over a restart. Bytes of this build. */
struct bh_score_memory {
    uint64_t at[192];
};
void bh_score_save(const struct bh_score *s, struct bh_score_memory *ret);
void bh_score_restore(struct bh_score *s, const struct bh_score_memory *m);

/* What is idle, and what of it typical work cannot use. */
struct bh_fragment {
    uint64_t idle_milli;
    uint64_t fragment_milli;
};
struct bh_fragment bh_score_fragment(const struct bh_score *s); /* of the whole shelf; looks at every node */

/* ---- for pick.c ---- */

/* A request on a node: BH_SCORE_NONE, or points plus one. */
uint8_t bh_score_node(struct bh_score *s, const struct bh_request *r, uint32_t node);
/* Must two nodes have the same score, for a request that gets on with everybody? False: not known. */
bool bh_score_alike(const struct bh_score *s, const struct bh_request *r, uint32_t a, uint32_t b);
/* bh_score_node() from nothing: no number kept from before is used. */
uint8_t bh_score_afresh(struct bh_score *s, const struct bh_request *r, uint32_t node);
/* Which GPUs to take on a node that fits. */
struct bh_spot bh_score_spot(struct bh_score *s, const struct bh_request *r, uint32_t node);
/* What taking this model costs now, in thousandths of a point. */
int32_t bh_score_price_milli(const struct bh_score *s, const struct bh_request *r, uint32_t model);
enum bh_score_mode bh_score_mode(const struct bh_score *s);
uint64_t bh_score_epoch(const struct bh_score *s);      /* changes when all scores do */
void bh_score_grow(struct bh_score *s);                 /* room for the nodes there are; allocates */
uint32_t bh_score_draw(struct bh_score *s, uint32_t n); /* 0 .. n-1, the next of its seed */

#endif
