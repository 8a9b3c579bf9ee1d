/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_refuse.h - which rules stand against one (mechanism, tier) for one tenant.
 *
 * Refusals are bits in the order in which they are named: what nobody can waive first, the class's own
 * set last, so that the reader sees the strongest reason. A combination may have several.
 */
#ifndef BH_CORE_POLICY_PLAN_REFUSE_H
#define BH_CORE_POLICY_PLAN_REFUSE_H

#include "core/policy/plan_case.h"
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
    BH_REFUSE_PROFILE,
    BH_REFUSE_MIG,
    BH_REFUSE_MEMORY,
    BH_REFUSE_IOMMU,
    BH_REFUSE_CAPACITY,
    BH_REFUSE_VGPU_TURNS,
    BH_REFUSE_CLASS,
    BH_N_REFUSALS,
};

/* bit: enum bh_refusal. Too few GPUs is looked at only where no rule refuses but those that only warn. */
uint32_t bh_case_refusals(const struct bh_case *c, const struct bh_candidate *k);
/* Too few GPUs, whatever else is refused: that bit or 0. */
uint32_t bh_case_shortage(const struct bh_case *c, const struct bh_candidate *k);
/* NULL: no rule but arithmetic, the fleet has too few GPUs. */
const struct bh_rule *bh_refusal_rule(const struct bh_case *c, enum bh_refusal r);
/* One sentence in the arena; it names no tenant, so that many tenants can share it. */
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
