/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_ground.h - what the planner stands on: who meets whom, what is asked, which silicon may be used.
 *
 * Built once per policy in time and memory linear in it; every question after that is answered from
 * summaries, so planning ten thousand tenants does not compare them pair by pair.
 */
#ifndef BH_CORE_POLICY_PLAN_GROUND_H
#define BH_CORE_POLICY_PLAN_GROUND_H

#include "core/policy/lint.h"
#include "core/policy/predicate.h"

enum { BH_HOLDERS_MAX = 3 };

/* Units of one GPU that a tenant left over and another may still take. */
struct bh_opened {
    uint8_t mechanism;
    bool vm;
    const struct bh_mig_profile *profile; /* NULL: no slices */
    const char *domain;                   /* NULL: of any trust domain */
    uint64_t left;
};

/* GPUs that no tenant can tell apart: one model, site and driver, and the same walls around them. */
struct bh_lot {
    const struct bh_gpu_model *model; /* NULL: the catalogue does not know them */
    const char *site, *driver;
    bool iommu, acs, vgpu_manager;               /* iommu, acs: not denied */
    uint64_t gpus, free;                         /* free: nobody was given a part of them */
    uint32_t holders[BH_HOLDERS_MAX], n_holders; /* the first tenants that were given some */
    BH_VEC(struct bh_opened) opened;
};

struct bh_at_hand {
    const struct bh_gpu_model *model; /* NULL: GPUs that the catalogue does not know */
    bool for_vm;                      /* on some node that can isolate it by IOMMU (or does not deny it) */
    bool confidential;                /* has a mode that takes one GPU into one confidential VM */
    BH_VEC(uint32_t) lots;            /* indices into the ground's; none without a fleet */
};

/* The silicon that a tenant's site and drivers leave. */
struct bh_silicon {
    BH_VEC(struct bh_at_hand) models; /* in order of first appearance */
    bool site_exists;                 /* some node is in the site */
    bool vgpu_manager;                /* some node has one */
    bool mixed;                       /* for a tenant whom others distrust: a VM needs ACS too */
};

/* What one tenant's pools and workloads say about it. */
struct bh_asks {
    uint32_t claim_pool;      /* the first of its pools that claims a boundary; BH_NONE */
    uint32_t nvlink_workload; /* the first that needs NVLink; BH_NONE */
    uint64_t memory_bytes;    /* the largest one workload needs; 0: nobody said */
    uint64_t cap_bytes;       /* the largest cap of its pools; 0: none */
    uint32_t share_ppm;       /* of a GPU that one unit takes when it is shared */
};

struct bh_ground {
    struct bh_lint index;     /* the policy, the fleet and the look-ups that the rules use */
    struct bh_report scratch; /* where the index keeps its texts */
    struct bh_domains everyone;
    struct bh_domains *neighbours;    /* one for each pool: everyone on the nodes it touches */
    BH_VEC(struct bh_domains) places; /* kernels of the fleet; without one, node names of the policy */
    struct bh_map place_by_name;
    BH_VEC(struct bh_lot) lots; /* the fleet, in order of first appearance */
    BH_VEC(struct bh_silicon) silicon;
    struct bh_map silicon_by_key;
};

void bh_ground_init(struct bh_ground *g, const struct bh_policy *policy, const struct bh_fleet *fleet);
void bh_ground_fini(struct bh_ground *g);

enum bh_meeting {
    BH_MEETS_NOBODY,      /* the policy has no tenant it distrusts */
    BH_MEETS_NOBODY_HERE, /* there are such tenants, and its nodes hold none of them */
    BH_MEETS_VMS,         /* one of the operator's own: whoever distrusts it is put behind a VM beside it */
    BH_MEETS_OTHERS,      /* a shared kernel would be shared with one of them */
};
enum bh_meeting bh_ground_meeting(const struct bh_ground *g, uint32_t tenant);
struct bh_asks bh_ground_asks(const struct bh_ground *g, uint32_t tenant);
/* May this pool's work land on the model? A pool that names none takes any. */
bool bh_ground_pool_takes(const struct bh_ground *g, uint32_t pool, const struct bh_gpu_model *m);
/* Can a VM of such a tenant be given the lot's GPUs? */
bool bh_lot_for_vm(const struct bh_lot *lot, bool mixed);
/* Valid until the next call: what is worked out once is kept. */
const struct bh_silicon *bh_ground_silicon(struct bh_ground *g, uint32_t tenant);

#endif
