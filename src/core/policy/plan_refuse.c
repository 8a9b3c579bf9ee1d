/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_refuse.h"

#include "base/str.h"
#include "base/units.h"

enum { GFX_PROFILES_MAX = 8 };

enum bh_mechanism bh_candidate_effective(const struct bh_candidate *c)
{
    return c->mechanism == BH_MECH_FRACTIONAL ? c->backing : c->mechanism;
}

/* Memory that one instance must hold: said by a workload, a pool's cap, or a quota of at most one GPU. */
static uint64_t needed_mib(const struct bh_tenant *t, const struct bh_asks *a)
{
    uint64_t bytes = a->memory_bytes ? a->memory_bytes : a->cap_bytes;
    if (!bytes && t->quota.has_gpus && t->quota.gpus_milli <= 1000)
        bytes = t->quota.memory_bytes;
    return bytes / BH_MIB + (bytes % BH_MIB != 0);
}

/* ---- silicon ---- */

/* Where a model has graphics profiles, only those carry a vGPU. */
static struct bh_mig_fit smallest_on(const struct bh_gpu_model *m, uint64_t need_mib, bool vgpu)
{
    const char *gfx[GFX_PROFILES_MAX];
    size_t n = 0;
    for (size_t i = 0; vgpu && i < m->n_profiles && n < GFX_PROFILES_MAX; i++) {
        if (m->profiles[i].gfx)
            gfx[n++] = m->profiles[i].name;
    }
    return bh_mig_smallest(m, need_mib, gfx, n);
}

/* The models that the tenant's own pools take are what the operator has in mind for it. */
static bool is_meant(const struct bh_case *c, const struct bh_gpu_model *m)
{
    BH_EACH(pool, &c->ground->index.tenant_pools, c->tenant_index)
    {
        if (bh_ground_pool_takes(c->ground, *pool, m))
            return true;
    }
    return false;
}

static struct bh_slice_choice find_slice(const struct bh_case *c, bool vgpu)
{
    bool for_vm = vgpu && c->vm_possible, best_meant = false;
    struct bh_slice_choice best = {NULL, NULL};
    uint32_t best_waste = 0;

    for (size_t i = 0; i < c->silicon->models.n; i++) {
        const struct bh_at_hand *h = &c->silicon->models.at[i];
        if (!h->model || !bh_model_has_mig(h->model) || (for_vm && !h->for_vm))
            continue;
        struct bh_mig_fit fit = smallest_on(h->model, c->need_mib, vgpu);
        bool meant = is_meant(c, h->model);
        if (!fit.profile || (best.model && best_meant && !meant))
            continue;
        if (!best.model || (meant && !best_meant) || fit.waste_mib < best_waste) {
            best = (struct bh_slice_choice){h->model, fit.profile};
            best_waste = fit.waste_mib;
            best_meant = meant;
        }
    }
    return best;
}

struct bh_slice_choice bh_case_slice(const struct bh_case *c, const struct bh_candidate *k)
{
    return bh_candidate_effective(k) == BH_MECH_MIG_VGPU ? c->vgpu_slice : c->slice;
}

static bool some_for_vm(const struct bh_silicon *s)
{
    for (size_t i = 0; i < s->models.n; i++) {
        if (s->models.at[i].for_vm)
            return true;
    }
    return false;
}

void bh_case_open(struct bh_case *c, struct bh_ground *g, uint32_t tenant)
{
    const struct bh_tenant *t = &g->index.p->tenants.at[tenant];
    *c = (struct bh_case){
        .ground = g,
        .tenant = t,
        .tenant_index = tenant,
        .asks = bh_ground_asks(g, tenant),
        .silicon = bh_ground_silicon(g, tenant),
        .class_ = t->class_pos.line ? t->class_ : NULL,
        .meeting = bh_ground_meeting(g, tenant),
    };
    c->need_mib = needed_mib(t, &c->asks);
    c->vm_possible = some_for_vm(c->silicon);
    c->slice = find_slice(c, false);
    c->vgpu_slice = find_slice(c, true);
}

/* Models with a confidential mode that takes one GPU into one VM. MIG together with it is not offered. */
static bool is_confidential(const struct bh_gpu_model *m)
{
    static const char *const names[] = {"H100", "H200", "B200", "B300", "RTX-PRO-6000"};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++) {
        if (bh_catalog_matches(names[i], m))
            return true;
    }
    return false;
}

const struct bh_gpu_model *bh_case_confidential_model(const struct bh_case *c)
{
    const struct bh_gpu_model *first = NULL;
    for (size_t i = 0; i < c->silicon->models.n; i++) {
        const struct bh_at_hand *h = &c->silicon->models.at[i];
        if (!h->model || !h->for_vm || !is_confidential(h->model))
            continue;
        if (is_meant(c, h->model))
            return h->model;
        first = first ? first : h->model;
    }
    return first;
}

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
               cvm && m == BH_MECH_WHOLE && c->vm_possible && !bh_case_confidential_model(c)) |
           bit(BH_REFUSE_IOMMU, vm && !c->vm_possible);
}

uint32_t bh_case_refusals(const struct bh_case *c, const struct bh_candidate *k)
{
    const struct bh_tenant *t = c->tenant;
    enum bh_mechanism m = bh_candidate_effective(k);
    bool boundary_false = m != BH_MECH_WHOLE && m != BH_MECH_MIG_VGPU && k->tier < BH_TIER_VM;

    return tier_refusals(c, k) |
           bit(BH_REFUSE_HARD_SLO, t->slo.kind == BH_SLO_HARD && !bh_mech_keeps_hard_slo(m)) |
           bit(BH_REFUSE_UNTRUSTED_TURNS, m == BH_MECH_TIMESLICE && t->trust != BH_TRUST_INTERNAL) |
           bit(BH_REFUSE_REGULATED, t->regimes && !bh_mech_fits_regulated(m)) |
           bit(BH_REFUSE_CLAIM, c->asks.claim_pool != BH_NONE && boundary_false) |
           bit(BH_REFUSE_NVLINK, c->asks.nvlink_workload != BH_NONE && m != BH_MECH_WHOLE) |
           bit(BH_REFUSE_MIG, bh_mech_cuts_mig(m) && !bh_case_slice(c, k).model) |
           bit(BH_REFUSE_VGPU_TURNS, m == BH_MECH_VGPU && t->trust == BH_TRUST_EXTERNAL) |
           bit(BH_REFUSE_CLASS, c->class_ && !class_accepts(c->class_, k));
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
    [BH_REFUSE_MIG] = {"BH-047", 3},
    [BH_REFUSE_IOMMU] = {"BH-057", 1},
    [BH_REFUSE_VGPU_TURNS] = {"BH-011", 40},
    [BH_REFUSE_CLASS] = {"BH-046", 20},
};

const struct bh_rule *bh_refusal_rule(const struct bh_case *c, enum bh_refusal r)
{
    bool confidential = r == BH_REFUSE_CONFIDENTIAL_SLICE || r == BH_REFUSE_CONFIDENTIAL_SILICON;
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

static const char *holding(struct bh_arena *a, const struct bh_case *c)
{
    struct bh_unit_text t;
    return c->need_mib ? bh_arena_printf(a, " and a profile of %s", bh_size_format(c->need_mib * BH_MIB, &t))
                       : "";
}

static const char *pool_name(const struct bh_case *c, uint32_t pool)
{
    return c->ground->index.p->pools.at[pool].name;
}

static const char *reason_of_silicon(struct bh_arena *a, const struct bh_case *c, enum bh_refusal r)
{
    switch (r) {
    case BH_REFUSE_CONFIDENTIAL_SLICE:
        return "Confidential mode takes a whole GPU; a part of one cannot be attested.";
    case BH_REFUSE_CONFIDENTIAL_SILICON:
        return bh_arena_printf(a, "No GPU at hand%s has a confidential mode to attest.", where(a, c));
    case BH_REFUSE_MIG:
        return bh_arena_printf(a, "No GPU at hand%s has MIG%s.", where(a, c), holding(a, c));
    default:
        return bh_arena_printf(a, "No node at hand%s isolates its GPUs by IOMMU.", where(a, c));
    }
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
        return bh_arena_printf(a, "Time-slicing gives %s tenant %s no memory, cache or fault separation.",
                               bh_word(trust, t->trust), t->name);
    case BH_REFUSE_KERNEL:
        return bh_arena_printf(a, "A %s %s the host's kernel, beside tenants that %s does not trust.", tier,
                               k->tier == BH_TIER_SANDBOX ? "passes GPU calls to" : "runs on", t->name);
    case BH_REFUSE_SLICE_IN_VM:
        return bh_arena_printf(a, "What %s cuts cannot be given to a VM.", m);
    case BH_REFUSE_OPERATOR:
        return bh_arena_printf(
            a, "%s excludes the operator from trust; behind a %s the host can read its memory.", t->name,
            tier);
    case BH_REFUSE_REGULATED:
        return bh_arena_printf(a, "Regulated tenant %s takes a whole GPU or a MIG-backed vGPU.", t->name);
    case BH_REFUSE_CLAIM:
        return bh_arena_printf(a, "Pool %s claims a boundary, and %s is one for QoS only.",
                               pool_name(c, c->asks.claim_pool), m);
    case BH_REFUSE_NVLINK:
        return bh_arena_printf(a, "Workload %s needs NVLink, which only whole GPUs give.",
                               c->ground->index.p->workloads.at[c->asks.nvlink_workload].name);
    case BH_REFUSE_VGPU_TURNS:
        return "Time-sliced vGPU shares SMs, caches and power in turns; only the framebuffer is partitioned.";
    case BH_REFUSE_CLASS:
        return bh_arena_printf(a, "Class %s does not take %s behind a %s.", c->class_->name,
                               bh_word(mechanism, k->mechanism), tier);
    default:
        return reason_of_silicon(a, c, r);
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
    case BH_REFUSE_IOMMU:
        return bh_arena_printf(a, "IOMMU and ACS switched on at a node%s", where(a, c));
    case BH_REFUSE_VGPU_TURNS:
        return "time-sliced vGPU accepted for an external tenant";
    case BH_REFUSE_CLASS:
        return bh_arena_printf(a, "class %s extended by %s behind a %s", c->class_->name,
                               bh_word(mechanism, k->mechanism), bh_word(tier, k->tier));
    default:
        return "another mechanism";
    }
}
