/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_refuse.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>

/* ---- the rules, one question each ---- */

static bool class_accepts(const struct bh_class *class_, const struct bh_candidate *k)
{
    /* The planner chooses the quota model, so the class is asked about the other two. */
    return bh_class_accepts(class_, k->mechanism, BH_N_quota_model, k->tier) ||
           bh_class_accepts(class_, bh_candidate_effective(k), BH_N_quota_model, k->tier);
}

static uint32_t bit(enum bh_refusal r, bool refused)
{
    return refused ? 1u << r : 0;
}

static uint32_t tier_refusals(const struct bh_case *c, const struct bh_candidate *k)
{
    enum bh_mechanism m = bh_candidate_effective(k);
    bool vm = k->tier >= BH_TIER_VM, cvm = k->tier == BH_TIER_CVM;

    /* A sandbox hands the GPU driver's calls to the host's kernel, so for strangers it is a container. */
    return bit(BH_REFUSE_KERNEL, !vm && c->meeting == BH_MEETS_OTHERS) |
           bit(BH_REFUSE_SLICE_IN_VM, vm && !bh_mech_fits_vm(m)) |
           bit(BH_REFUSE_OPERATOR, !cvm && c->tenant->operator_untrusted) |
           bit(BH_REFUSE_CONFIDENTIAL_SLICE, cvm && m != BH_MECH_WHOLE) |
           bit(BH_REFUSE_CONFIDENTIAL_SILICON,
               cvm && m == BH_MECH_WHOLE && c->vm_possible && !bh_case_suited(c, k, false)) |
           bit(BH_REFUSE_IOMMU, vm && !c->vm_possible);
}

static uint32_t silicon_refusals(const struct bh_case *c, const struct bh_candidate *k)
{
    enum bh_mechanism m = bh_candidate_effective(k);
    bool slices = bh_mech_cuts_mig(m), reachable = k->tier < BH_TIER_VM || c->vm_possible;
    bool sliced = slices && bh_case_slice(c, k).hand;
    bool held = slices || bh_case_suited(c, k, true);

    return bit(BH_REFUSE_PROFILE, c->profile && !slices) | bit(BH_REFUSE_MIG, slices && !sliced) |
           bit(BH_REFUSE_MEMORY, reachable && !held && bh_case_suited(c, k, false));
}

uint32_t bh_case_shortage(const struct bh_case *c, const struct bh_candidate *k)
{
    bool counted = bh_mech_cuts_mig(bh_candidate_effective(k)) ? bh_case_slice(c, k).hand != NULL
                                                               : bh_case_suited(c, k, true);
    return bit(BH_REFUSE_CAPACITY, counted && bh_case_allot(c, k, false).lacking);
}

/* Without partitions a neighbour reaches caches and faults; only colleagues may be such neighbours. */
static bool takes_turns(enum bh_mechanism m)
{
    return m == BH_MECH_TIMESLICE || m == BH_MECH_MPS || m == BH_MECH_GATE;
}

uint32_t bh_case_refusals(const struct bh_case *c, const struct bh_candidate *k)
{
    const struct bh_tenant *t = c->tenant;
    enum bh_mechanism m = bh_candidate_effective(k);
    bool boundary_false = m != BH_MECH_WHOLE && m != BH_MECH_MIG_VGPU && k->tier < BH_TIER_VM;
    bool outside = t->trust != BH_TRUST_INTERNAL;
    uint32_t warnings = bit(BH_REFUSE_VGPU_TURNS, outside && m == BH_MECH_VGPU) |
                        bit(BH_REFUSE_CLASS, c->class_ && !class_accepts(c->class_, k));
    uint32_t errors = tier_refusals(c, k) | silicon_refusals(c, k) |
                      bit(BH_REFUSE_HARD_SLO, t->slo.kind == BH_SLO_HARD && !bh_mech_keeps_hard_slo(m)) |
                      bit(BH_REFUSE_UNTRUSTED_TURNS, outside && takes_turns(m)) |
                      bit(BH_REFUSE_REGULATED, t->regimes && !bh_mech_fits_regulated(m)) |
                      bit(BH_REFUSE_CLAIM, c->asks.claim_pool != BH_NONE && boundary_false) |
                      bit(BH_REFUSE_NVLINK, c->asks.nvlink_workload != BH_NONE && m != BH_MECH_WHOLE);
    /* GPUs are counted last: only what nothing else stands against is worth it. */
    return warnings | (errors ? errors : bh_case_shortage(c, k));
}

/* ---- what is said about a refusal ---- */

static const struct {
    const char *rule;
    uint8_t effort;
} refusals[BH_N_REFUSALS] = {
    [BH_REFUSE_HARD_SLO] = {"BH-020", 40},
    [BH_REFUSE_UNTRUSTED_TURNS] = {"BH-003", 0},
    [BH_REFUSE_KERNEL] = {"BH-001", 2},
    [BH_REFUSE_SLICE_IN_VM] = {"BH-013", 0},
    [BH_REFUSE_OPERATOR] = {"BH-006", 60},
    [BH_REFUSE_CONFIDENTIAL_SLICE] = {"BH-007", 0},
    [BH_REFUSE_CONFIDENTIAL_SILICON] = {"BH-007", 3},
    [BH_REFUSE_REGULATED] = {"BH-008", 60},
    [BH_REFUSE_CLAIM] = {"BH-005", 20},
    [BH_REFUSE_NVLINK] = {"BH-042", 40},
    [BH_REFUSE_PROFILE] = {"BH-031", 40},
    [BH_REFUSE_MIG] = {"BH-047", 3},
    [BH_REFUSE_MEMORY] = {"BH-033", 2},
    [BH_REFUSE_IOMMU] = {"BH-057", 1},
    [BH_REFUSE_CAPACITY] = {NULL, 3},
    [BH_REFUSE_VGPU_TURNS] = {"BH-011", 40},
    [BH_REFUSE_CLASS] = {"BH-046", 20},
};

const struct bh_rule *bh_refusal_rule(const struct bh_case *c, enum bh_refusal r)
{
    bool confidential = r == BH_REFUSE_CONFIDENTIAL_SLICE || r == BH_REFUSE_CONFIDENTIAL_SILICON;
    if (!refusals[r].rule)
        return NULL;
    /* For a tenant that excludes the operator this is the promise that fails, not only its proof. */
    return bh_rule_find(confidential && c->tenant->operator_untrusted ? "BH-006" : refusals[r].rule);
}

unsigned bh_refusal_effort(enum bh_refusal r)
{
    return refusals[r].effort;
}

static const char *where(struct bh_arena *a, const struct bh_case *c)
{
    return c->tenant->site ? bh_arena_printf(a, " in site %s", c->tenant->site) : "";
}

static const char *size_text(struct bh_arena *a, uint64_t mib)
{
    struct bh_unit_text t;
    uint64_t bytes = mib > UINT64_MAX / BH_MIB ? UINT64_MAX : mib * BH_MIB;
    return bh_arena_printf(a, "%s", bh_size_format(bytes, &t));
}

static const char *holding(struct bh_arena *a, const struct bh_case *c)
{
    const char *size = c->need_mib ? size_text(a, c->need_mib) : NULL;
    if (c->profile && size)
        return bh_arena_printf(a, " and profile %s holding %s", c->profile, size);
    if (c->profile)
        return bh_arena_printf(a, " and profile %s", c->profile);
    return size ? bh_arena_printf(a, " and a profile of %s", size) : "";
}

/* What a GPU must hold: the largest workload, or its part of the memory guarantee. */
static const char *gpu_size(struct bh_arena *a, const struct bh_case *c)
{
    return size_text(a, c->need_mib > c->gpu_mib ? c->need_mib : c->gpu_mib);
}

/* `; a, b and others hold the rest` */
static const char *held_by(struct bh_arena *a, const struct bh_case *c, const struct bh_holding *h)
{
    const char *names = "";
    uint32_t n = h->n_holders < BH_HOLDERS_MAX ? h->n_holders : BH_HOLDERS_MAX;
    for (uint32_t i = 0; i < n; i++) {
        bool last = i + 1 == h->n_holders;
        names = bh_arena_printf(a, "%s%s%s", names,
                                !i     ? ""
                                : last ? " and "
                                       : ", ",
                                c->ground->index.p->tenants.at[h->holders[i]].name);
    }
    if (!n)
        return "";
    return bh_arena_printf(a, "; %s%s hold%s the rest", names, h->n_holders > n ? " and others" : "",
                           h->n_holders == 1 ? "s" : "");
}

static const char *capacity_text(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k,
                                 bool needed)
{
    struct bh_allotment x = bh_case_allot(c, k, false);
    struct bh_holding h = bh_case_stock(c, k);
    const char *models = bh_case_models(a, c, k);
    if (needed)
        return bh_arena_printf(a,
                               "%" PRIu64 " more %s GPU%s%s (%" PRIu64 " guaranteed, %" PRIu64 " of %" PRIu64
                               " still free%s)",
                               x.lacking, models, x.lacking == 1 ? "" : "s", where(a, c), x.gpus, h.free,
                               h.gpus, held_by(a, c, &h));
    return bh_arena_printf(
        a, "The guarantee takes %" PRIu64 " %s GPU%s%s, and %" PRIu64 " of %" PRIu64 " are still free.",
        x.gpus, models, x.gpus == 1 ? "" : "s", where(a, c), h.free, h.gpus);
}

static const char *pool_name(const struct bh_case *c, uint32_t pool)
{
    return c->ground->index.p->pools.at[pool].name;
}

static const char *reason_of_silicon(struct bh_arena *a, const struct bh_case *c,
                                     const struct bh_candidate *k, enum bh_refusal r)
{
    switch (r) {
    case BH_REFUSE_CONFIDENTIAL_SLICE:
        return "Confidential mode takes a whole GPU; a part of one cannot be attested.";
    case BH_REFUSE_CONFIDENTIAL_SILICON:
        return bh_arena_printf(a, "No GPU at hand%s has a confidential mode to attest.", where(a, c));
    case BH_REFUSE_MIG:
        return bh_arena_printf(a, "No GPU at hand%s has MIG%s.", where(a, c), holding(a, c));
    case BH_REFUSE_PROFILE:
        return bh_arena_printf(a, "The quota names MIG profile %s, which %s does not give.", c->profile,
                               bh_word(mechanism, bh_candidate_effective(k)));
    case BH_REFUSE_MEMORY:
        return bh_arena_printf(a, "No GPU at hand%s holds %s.", where(a, c), gpu_size(a, c));
    case BH_REFUSE_CAPACITY:
        return capacity_text(a, c, k, false);
    default:
        return bh_arena_printf(a, "No node at hand%s isolates its GPUs by IOMMU.", where(a, c));
    }
}

/* Which half of the combination the class does not take. */
static const char *class_reason(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k)
{
    const char *m = bh_word(mechanism, k->mechanism), *tier = bh_word(tier, k->tier);
    struct bh_class any_tier = *c->class_;
    any_tier.tiers = 0;
    if (!class_accepts(&any_tier, k))
        return bh_arena_printf(a, "Class %s does not take %s.", c->class_->name, m);
    return bh_arena_printf(a, "Class %s does not take tier %s.", c->class_->name, tier);
}

const char *bh_refusal_reason(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k,
                              enum bh_refusal r)
{
    const char *m = bh_word(mechanism, bh_candidate_effective(k)), *tier = bh_word(tier, k->tier);
    const struct bh_tenant *t = c->tenant;

    switch (r) {
    case BH_REFUSE_HARD_SLO:
        return bh_arena_printf(a, "A hard SLO needs silicon of its own; %s gives a target.", m);
    case BH_REFUSE_UNTRUSTED_TURNS:
        return bh_arena_printf(a,
                               "For %s tenants MIG is the minimum; %s separates neither caches nor faults.",
                               bh_word(trust, t->trust), m);
    case BH_REFUSE_KERNEL:
        return bh_arena_printf(a, "A %s %s the host's kernel, beside tenants that distrust this one.", tier,
                               k->tier == BH_TIER_SANDBOX ? "passes GPU calls to" : "runs on");
    case BH_REFUSE_SLICE_IN_VM:
        return bh_arena_printf(a, "What %s cuts cannot be given to a VM.", m);
    case BH_REFUSE_OPERATOR:
        return bh_arena_printf(
            a, "The operator is not trusted, and behind a %s the host can read the memory.", tier);
    case BH_REFUSE_REGULATED:
        return "A regulated tenant takes a whole GPU or a MIG-backed vGPU.";
    case BH_REFUSE_CLAIM:
        return bh_arena_printf(a, "Pool %s claims a boundary, and %s is one for QoS only.",
                               pool_name(c, c->asks.claim_pool), m);
    case BH_REFUSE_NVLINK:
        return bh_arena_printf(a, "Workload %s needs NVLink, which only whole GPUs give.",
                               c->ground->index.p->workloads.at[c->asks.nvlink_workload].name);
    case BH_REFUSE_VGPU_TURNS:
        return "Time-sliced vGPU shares SMs, caches and power in turns; only the framebuffer is partitioned.";
    case BH_REFUSE_CLASS:
        return class_reason(a, c, k);
    default:
        return reason_of_silicon(a, c, k, r);
    }
}

static const char *confidential_needed(struct bh_arena *a, const struct bh_case *c)
{
    return bh_arena_printf(a, "a GPU with confidential computing (H100, H200, B200, B300, RTX PRO 6000)%s%s",
                           where(a, c),
                           c->tenant->operator_untrusted ? " (or operatorUntrusted dropped)" : "");
}

const char *bh_refusal_needed(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k,
                              enum bh_refusal r)
{
    switch (r) {
    case BH_REFUSE_HARD_SLO:
        return "a soft SLO instead of the hard one";
    case BH_REFUSE_KERNEL:
        return bh_arena_printf(a, "nodes%s that hold only trust domain %s", where(a, c), c->tenant->domain);
    case BH_REFUSE_OPERATOR:
        return "operatorUntrusted dropped";
    case BH_REFUSE_CONFIDENTIAL_SILICON:
        return confidential_needed(a, c);
    case BH_REFUSE_REGULATED:
        return "the tenant's regulated list dropped";
    case BH_REFUSE_CLAIM:
        return bh_arena_printf(a, "the boundary claim of pool %s dropped", pool_name(c, c->asks.claim_pool));
    case BH_REFUSE_NVLINK:
        return bh_arena_printf(a, "workload %s without needsNvlink",
                               c->ground->index.p->workloads.at[c->asks.nvlink_workload].name);
    case BH_REFUSE_MIG:
        return bh_arena_printf(a, "a GPU with MIG%s%s", holding(a, c), where(a, c));
    case BH_REFUSE_PROFILE:
        return bh_arena_printf(a, "a quota that does not name MIG profile %s", c->profile);
    case BH_REFUSE_MEMORY:
        return bh_arena_printf(a, "a GPU of %s or more%s (or a smaller request)", gpu_size(a, c),
                               where(a, c));
    case BH_REFUSE_CAPACITY:
        return capacity_text(a, c, k, true);
    case BH_REFUSE_IOMMU:
        return bh_arena_printf(a, "IOMMU and ACS switched on at a node%s", where(a, c));
    case BH_REFUSE_VGPU_TURNS:
        return "time-sliced vGPU accepted for a tenant from outside";
    case BH_REFUSE_CLASS:
        return bh_arena_printf(a, "class %s extended by %s behind a %s", c->class_->name,
                               bh_word(mechanism, k->mechanism), bh_word(tier, k->tier));
    default:
        return "another mechanism";
    }
}
