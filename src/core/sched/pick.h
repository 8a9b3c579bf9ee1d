/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick.h - the best node for a class of requests, without looking at all nodes.
 *
 * Per class: a score for each node in a tree of maxima over the nodes' rank, and a position in the shelf's
 * change log. A question first brings the class up to date (only nodes changed since it was last asked for),
 * then reads the answer at the root. Decisions are those of a full scan, which is here too, for tests and for
 * comparison.
 *
 * The trees are one per GPU model, so that the price of a model is applied at the roots and may change with
 * each arrival at no cost.
 */
#ifndef BH_CORE_SCHED_PICK_H
#define BH_CORE_SCHED_PICK_H

#include "core/sched/fleet.h"
#include "core/sched/request.h"
#include "core/sched/score.h"

struct bh_pick;
/* Both are borrowed and must outlive it; score is of the same shelf. */
struct bh_pick *bh_pick_new(const struct bh_shelf *shelf, struct bh_score *score);
void bh_pick_free(struct bh_pick *p);
/* Memory for a class, and its scores up to date: so that deciding allocates nothing. Done by the others on
 * first use when it was not asked for. */
void bh_pick_prepare(struct bh_pick *p, uint32_t class_);
/* The best place in the fleet; false: none. Take it with bh_shelf_take(). */
bool bh_pick_best(struct bh_pick *p, uint32_t class_, struct bh_spot *ret);
/* The best place below a fabric domain; same scores, same ties. */
bool bh_pick_within(struct bh_pick *p, uint32_t class_, uint32_t domain, struct bh_spot *ret);
/* Nodes it would fit on now, each by itself. */
uint32_t bh_pick_count(struct bh_pick *p, uint32_t class_);
/* The same answers by a full scan. With BH_SCORE_RANDOM it draws as the others do: ask one or the other. */
bool bh_pick_naive(struct bh_pick *p, uint32_t class_, struct bh_spot *ret);
/* How many nodes were scored so far, by any of the above. */
uint64_t bh_pick_scored(const struct bh_pick *p);

#endif
