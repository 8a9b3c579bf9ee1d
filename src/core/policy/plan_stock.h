/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_stock.h - what is left of the fleet while guarantees are handed out.
 *
 * A guarantee is drawn in units (whole GPUs, instances of one profile, thousandths of a shared GPU).
 * What an earlier tenant left of a GPU it opened is used up before another GPU is opened. A GPU serves
 * one mechanism and, where it is cut, one profile; a tenant whose wall is no VM shares none with
 * strangers. Layouts that mix profiles on one GPU are not looked for.
 */
#ifndef BH_CORE_POLICY_PLAN_STOCK_H
#define BH_CORE_POLICY_PLAN_STOCK_H

#include "core/policy/plan_ground.h"

struct bh_take {
    uint8_t mechanism;                    /* effective */
    bool vm;                              /* only GPUs that a VM can be given */
    const struct bh_mig_profile *profile; /* NULL: no slices */
    const char *domain;                   /* whose GPUs may be joined; NULL: anybody's */
    uint32_t per_gpu;                     /* units one GPU gives; never 0 */
    uint64_t units;
};

/* Draws from one model at hand for the tenant; BH_NONE: only asks. Returns the units that it lacks. */
uint64_t bh_stock_draw(struct bh_ground *g, const struct bh_silicon *s, const struct bh_at_hand *h,
                       const struct bh_take *take, uint32_t tenant);

/* How much of a model there is, and who was given the rest. */
struct bh_holding {
    uint64_t gpus, free;
    uint32_t holders[BH_HOLDERS_MAX], n_holders; /* n_holders may be more than are named */
};
void bh_stock_count(const struct bh_ground *g, const struct bh_silicon *s, const struct bh_at_hand *h,
                    bool vm, struct bh_holding *sum);

#endif
