/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_case.h - one tenant as the planner sees it: what it is owed, and what would hold that.
 *
 * The guarantee is counted in whole GPUs; here it becomes GPUs, instances or shares of the silicon at
 * hand, and is held against what earlier tenants left of the fleet.
 */
#ifndef BH_CORE_POLICY_PLAN_CASE_H
#define BH_CORE_POLICY_PLAN_CASE_H

#include "core/policy/plan_stock.h"

struct bh_candidate {
    uint8_t mechanism, backing, tier;
};
/* A fraction's backing, else the mechanism itself. */
enum bh_mechanism bh_candidate_effective(const struct bh_candidate *c);

/* The instance to cut: in stock before not, at the least cost, then with the least waste. hand NULL: none. */
struct bh_slice_choice {
    const struct bh_at_hand *hand;
    const struct bh_gpu_model *model;
    const struct bh_mig_profile *profile;
    uint32_t cost_ppm; /* of a GPU, for each instance */
};

struct bh_case {
    struct bh_ground *ground;
    const struct bh_tenant *tenant;
    uint32_t tenant_index;
    struct bh_asks asks;
    const struct bh_silicon *silicon;
    const struct bh_class *class_; /* NULL: none was written, so none is held against a choice */
    enum bh_meeting meeting;
    uint64_t meant;      /* bit i: catalogue model i is one that its pools take */
    uint64_t need_mib;   /* what one instance or workload has to hold; 0: nobody said */
    uint64_t gpu_mib;    /* what the memory guarantee asks of each guaranteed GPU; 0: nothing */
    const char *profile; /* the MIG profile that the quota names; NULL: none */
    bool vm_possible;    /* some node at hand isolates its GPUs by IOMMU, or does not deny it */
    struct bh_slice_choice slice, vgpu_slice;
};
void bh_case_open(struct bh_case *c, struct bh_ground *g, uint32_t tenant);
/* What a candidate that cuts MIG would cut. */
struct bh_slice_choice bh_case_slice(const struct bh_case *c, const struct bh_candidate *k);
/* Is there a model at hand for the candidate's walls, and (with memory) one that holds what is asked? */
bool bh_case_suited(const struct bh_case *c, const struct bh_candidate *k, bool memory);

/* What a candidate takes of the fleet. */
struct bh_allotment {
    const struct bh_at_hand *hand; /* NULL: several models, or any */
    uint64_t units;                /* GPUs, instances or workloads that the guarantee is; 0: none is given */
    uint64_t gpus;                 /* that it takes, opened ones included */
    uint64_t lacking;              /* GPUs that are not there */
    uint32_t cost_ppm;             /* of a GPU, for each unit */
};
/* take: draw it from the fleet as well; only when nothing is lacking. */
struct bh_allotment bh_case_allot(const struct bh_case *c, const struct bh_candidate *k, bool take);
/* All models that the candidate could have drawn from, counted together. */
struct bh_holding bh_case_stock(const struct bh_case *c, const struct bh_candidate *k);
/* Their names, `H200-141GB or L40S`, in the arena. */
const char *bh_case_models(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k);

#endif
