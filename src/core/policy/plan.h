/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the cheapest way to keep every promise.
 *
 * For each tenant the planner walks the (mechanism, tier) pairs from the cheapest up and
 * keeps the first that breaks no rule; every cheaper one is listed with the rule that
 * refused it. What stays shared is never empty: the planner says what each mode leaves open.
 *
 * With a fleet, guarantees are drawn from it in file order, hard ones first. That is no search:
 * another order might keep a promise that this one cannot, so who holds the GPUs is named.
 */
#ifndef BH_CORE_POLICY_PLAN_H
#define BH_CORE_POLICY_PLAN_H

#include "core/model/policy.h"
#include "core/policy/rule.h"

enum { BH_PLAN_REJECTED_MAX = 40, BH_PLAN_SHARED_MAX = 16 };

struct bh_plan_rejected {
    uint8_t mechanism, backing, tier;
    const struct bh_rule *rule; /* NULL: the fleet has too few GPUs */
    const char *reason;         /* one sentence */
};

struct bh_tenant_plan {
    uint32_t tenant; /* index into policy.tenants */
    bool possible;
    uint8_t mechanism, backing, quota_model, tier;
    const struct bh_gpu_model *model;       /* silicon chosen; NULL: any, or several */
    const struct bh_mig_profile *profile;   /* mig, mig-vgpu */
    uint32_t pool;                          /* a declared pool that already is this; BH_NONE: to be made */
    uint32_t cost_ppm;                      /* of a GPU, for each GPU, instance or workload */
    uint64_t units;                         /* how many of those the guarantee is; 0: none is given */
    const char *shared[BH_PLAN_SHARED_MAX]; /* what stays shared; never empty; NULL-terminated */
    const char *bounded_by;                 /* which layer bounds the noisy neighbour */
    const char *why;                        /* one sentence */
    BH_VEC(struct bh_plan_rejected) rejected;
    const char *needed; /* when not possible: what would keep the promise */
};

struct bh_plan {
    struct bh_arena arena;
    BH_VEC(struct bh_tenant_plan) tenants;
    BH_VEC(const char *) reasons; /* each distinct one once */
};

void bh_plan_fini(struct bh_plan *p);
/* fleet NULL: every catalogue model counts as at hand, and the plan says so. */
void bh_plan_make(const struct bh_policy *policy, const struct bh_fleet *fleet, struct bh_plan *ret);

#endif
