/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_refuse.h - which rules stand against one (mechanism, tier) for one tenant.
 *
 * Refusals are bits in the order in which they are named: what nobody can waive first, the class's own
 * set last, so that the reader sees the strongest reason. A combination may have several.
 */
#ifndef BH_CORE_POLICY_PLAN_REFUSE_H
#define BH_CORE_POLICY_PLAN_REFUSE_H

#include "core/policy/plan_ground.h"
#include "core/policy/rule.h"

enum bh_refusal {
    BH_REFUSE_HARD_SLO,
    BH_REFUSE_UNTRUSTED_TURNS,
    BH_REFUSE_KERNEL,
    BH_REFUSE_SLICE_IN_VM,
    BH_REFUSE_OPERATOR,
    BH_REFUSE_CONFIDENTIAL_SLICE,
    BH_REFUSE_CONFIDENTIAL_SILICON,
    BH_REFUSE_REGULATED,
    BH_REFUSE_CLAIM,
    BH_REFUSE_NVLINK,
    BH_REFUSE_MIG,
    BH_REFUSE_IOMMU,
    BH_REFUSE_VGPU_TURNS,
    BH_REFUSE_CLASS,
    BH_N_REFUSALS,
};

struct bh_candidate {
    uint8_t mechanism, backing, tier;
};
/* A fraction's backing, else the mechanism itself. */
enum bh_mechanism bh_candidate_effective(const struct bh_candidate *c);

/* The instance to cut: on the silicon at hand with the least waste. model NULL: nothing at hand can. */
struct bh_slice_choice {
    const struct bh_gpu_model *model;
    const struct bh_mig_profile *profile;
};

/* One tenant as the planner sees it. */
struct bh_case {
    const struct bh_ground *ground;
    const struct bh_tenant *tenant;
    uint32_t tenant_index;
    struct bh_asks asks;
    const struct bh_silicon *silicon;
    const struct bh_class *class_; /* NULL: none was written, so none is held against a choice */
    enum bh_meeting meeting;
    uint64_t need_mib; /* what one instance has to hold; 0: nobody said */
    bool vm_possible;  /* some node at hand isolates its GPUs by IOMMU, or does not deny it */
    struct bh_slice_choice slice, vgpu_slice;
};
void bh_case_open(struct bh_case *c, struct bh_ground *g, uint32_t tenant);
/* What a candidate that cuts MIG would cut. */
struct bh_slice_choice bh_case_slice(const struct bh_case *c, const struct bh_candidate *k);
/* A model that can hold the tenant's confidential VM, its pools' own before others; NULL: none at hand. */
const struct bh_gpu_model *bh_case_confidential_model(const struct bh_case *c);

uint32_t bh_case_refusals(const struct bh_case *c, const struct bh_candidate *k); /* bit: enum bh_refusal */
const struct bh_rule *bh_refusal_rule(const struct bh_case *c, enum bh_refusal r);
/* One sentence in the arena. */
const char *bh_refusal_reason(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k,
                              enum bh_refusal r);
/*
 * How much it would take to lift a refusal. Keeping the promise (a setting, nodes, silicon) is cheaper
 * than giving one up. 0: nothing can, it lies in the mechanism itself.
 */
unsigned bh_refusal_effort(enum bh_refusal r);
/* What would lift it, as a phrase in the arena: `a GPU with MIG in site eu-de-1`. */
const char *bh_refusal_needed(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k,
                              enum bh_refusal r);

#endif
