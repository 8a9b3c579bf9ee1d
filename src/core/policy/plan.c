/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan.h"

#include "base/str.h"
#include "base/units.h"
#include "core/policy/plan_refuse.h"

enum { ALL_PPM = 1000000, CANDIDATES_MAX = 40 };
_Static_assert((int)CANDIDATES_MAX == (int)BH_PLAN_REJECTED_MAX, "every candidate may be rejected");

/*
 * What a unit costs, cheapest first: how tightly the mechanism packs a GPU, and what the tier adds to run it.
 * The ranks only order; what a unit takes of a GPU is cost_ppm. A vGPU exists only for a VM.
 */
static const struct {
    uint8_t mechanism, backing;
    uint8_t rank;
    uint8_t least_tier;
} mechanisms[] = {
    {BH_MECH_FRACTIONAL, BH_MECH_GATE, 10, BH_TIER_CONTAINER}, /* any share, memory held, nothing reserved */
    {BH_MECH_TIMESLICE, BH_MECH_UNSET, 20, BH_TIER_CONTAINER}, /* equal replicas, a tenth lost to switching */
    {BH_MECH_MPS, BH_MECH_UNSET, 30, BH_TIER_CONTAINER},       /* a server for each trust domain */
    {BH_MECH_MIG, BH_MECH_UNSET, 40, BH_TIER_CONTAINER},       /* fixed sizes, reserved even when idle */
    {BH_MECH_FRACTIONAL, BH_MECH_MIG, 50, BH_TIER_CONTAINER},  /* the same, and a fraction to account for */
    {BH_MECH_VGPU, BH_MECH_UNSET, 60, BH_TIER_VM},             /* a licence and a manager on the host */
    {BH_MECH_MIG_VGPU, BH_MECH_UNSET, 70, BH_TIER_VM},         /* both: fixed sizes and a licence */
    {BH_MECH_WHOLE, BH_MECH_UNSET, 80, BH_TIER_CONTAINER},     /* one tenant, all of it */
};
static const struct {
    uint8_t tier, rank;
} tiers[] = {
    {BH_TIER_CONTAINER, 1}, /* no overhead; less than a container is not offered */
    {BH_TIER_SANDBOX, 2},   /* system calls pass a filter */
    {BH_TIER_VM, 3},        /* a guest kernel and pinned memory */
    {BH_TIER_CVM, 4},       /* encrypted memory, bounce buffers, attestation before each start */
};

struct candidates {
    struct bh_candidate at[CANDIDATES_MAX];
    unsigned cost[CANDIDATES_MAX];
    size_t n;
};

static void candidates_list(struct candidates *c)
{
    c->n = 0;
    for (size_t m = 0; m < BH_COUNT_OF(mechanisms); m++) {
        for (size_t t = 0; t < BH_COUNT_OF(tiers); t++) {
            if (tiers[t].tier < mechanisms[m].least_tier)
                continue;
            unsigned cost = (unsigned)mechanisms[m].rank + tiers[t].rank;
            size_t i = c->n++;
            for (; i > 0 && c->cost[i - 1] > cost; i--) {
                c->at[i] = c->at[i - 1];
                c->cost[i] = c->cost[i - 1];
            }
            c->at[i] = (struct bh_candidate){mechanisms[m].mechanism, mechanisms[m].backing, tiers[t].tier};
            c->cost[i] = cost;
        }
    }
}

/* ---- the quota model ---- */

static bool floor_missing(const struct bh_tenant *t, enum bh_quota_model q)
{
    return q == BH_QUOTA_FAIRSHARE && t->trust == BH_TRUST_EXTERNAL &&
           !(t->quota.has_gpus && t->quota.gpus_milli);
}

static enum bh_quota_model quota_wanted(const struct bh_case *c)
{
    /* The surest first: capacity of its own, then an order, then a share of what is there. */
    static const enum bh_quota_model surest[] = {BH_QUOTA_HARD, BH_QUOTA_PRIORITY, BH_QUOTA_FAIRSHARE};
    const struct bh_tenant *t = c->tenant;
    uint32_t accepted = c->class_ ? c->class_->quotas : 0;

    if (t->quota.has_model && (!accepted || accepted >> t->quota.model & 1))
        return t->quota.model;
    for (size_t i = 0; i < BH_COUNT_OF(surest); i++) {
        if (accepted >> surest[i] & 1)
            return surest[i];
    }
    return t->trust != BH_TRUST_INTERNAL || t->slo.kind == BH_SLO_HARD ? BH_QUOTA_HARD : BH_QUOTA_FAIRSHARE;
}

/* ---- what was chosen ---- */

static uint32_t part_ppm(unsigned part, unsigned whole)
{
    return whole ? (uint32_t)((uint64_t)part * ALL_PPM / whole) : 0;
}

/* A slice costs what it keeps others from using: SMs or memory, whichever is more. */
static uint32_t slice_ppm(const struct bh_gpu_model *m, const struct bh_mig_profile *p)
{
    uint32_t memory = part_ppm(p->memory_slices, m->memory_slices);
    uint32_t compute =
        p->sm && m->total_sm ? part_ppm(p->sm, m->total_sm) : part_ppm(p->compute_slices, m->compute_slices);
    return memory > compute ? memory : compute;
}

static bool pool_cuts(const struct bh_pool *p, const struct bh_gpu_model *m,
                      const struct bh_mig_profile *want)
{
    for (size_t i = 0; i < p->profiles.n; i++) {
        if (bh_mig_find(m, p->profiles.at[i].s) == want)
            return true;
    }
    for (size_t i = 0; i < p->layout.n; i++) {
        if (bh_mig_find(m, p->layout.at[i].profile) == want)
            return true;
    }
    return !p->profiles.n && !p->layout.n;
}

/* The first of the tenant's pools that already is what was chosen. */
static uint32_t pool_find(const struct bh_case *c, const struct bh_tenant_plan *plan)
{
    BH_EACH(at, &c->ground->index.tenant_pools, c->tenant_index)
    {
        const struct bh_pool *p = &c->ground->index.p->pools.at[*at];
        if (p->mechanism == plan->mechanism && p->tier == plan->tier &&
            (p->mechanism != BH_MECH_FRACTIONAL || p->backing == plan->backing) &&
            (!plan->model || bh_ground_pool_takes(c->ground, *at, plan->model)) &&
            (!plan->profile || pool_cuts(p, plan->model, plan->profile)))
            return *at;
    }
    return BH_NONE;
}

static const char *choice_text(struct bh_arena *a, const struct bh_tenant_plan *p)
{
    const char *on = p->profile ? bh_arena_printf(a, " (%s on %s)", p->profile->name, p->model->name) : "";
    switch (p->mechanism) {
    case BH_MECH_WHOLE:
        return "A whole GPU";
    case BH_MECH_MIG:
        return bh_arena_printf(a, "A MIG slice%s", on);
    case BH_MECH_MPS:
        return "An MPS client of its trust domain's own server";
    case BH_MECH_TIMESLICE:
        return "A time-sliced replica";
    case BH_MECH_VGPU:
        return "A time-sliced vGPU";
    case BH_MECH_MIG_VGPU:
        return bh_arena_printf(a, "A MIG-backed vGPU%s", on);
    default:
        return bh_arena_printf(a, "A fraction backed by %s%s", bh_word(mechanism, p->backing), on);
    }
}

/* A target is said to be one, wherever a soft mechanism was chosen. */
static const char *softness_text(struct bh_arena *a, const struct bh_tenant *t, enum bh_mechanism m)
{
    struct bh_unit_text text;
    if (!bh_mech_is_soft(m))
        return "";
    if (t->share.has_target)
        return bh_arena_printf(a, "; QoS is soft: %s is a target, not a guarantee",
                               bh_share_format(t->share.target_ppm, &text));
    return "; QoS is soft, and no share is declared: "
           "a target and its behaviour under contention belong there (BH-022)";
}

static const char *silicon_text(const struct bh_case *c, enum bh_mechanism m)
{
    if (!c->ground->index.fleet)
        return "; no fleet was given, so every catalogued model counts as at hand";
    if ((m == BH_MECH_VGPU || m == BH_MECH_MIG_VGPU) && !c->silicon->vgpu_manager)
        return "; no node at hand has the vGPU manager installed yet";
    return "";
}

static const char *why_text(struct bh_arena *a, const struct bh_case *c, const struct bh_tenant_plan *p,
                            enum bh_mechanism m, bool no_floor)
{
    bool apart = p->tier < BH_TIER_VM && c->meeting == BH_MEETS_NOBODY_HERE;
    bool last_resort = m == BH_MECH_VGPU && c->tenant->trust == BH_TRUST_EXTERNAL;
    return bh_arena_printf(
        a, "%s behind a %s is the cheapest choice that breaks no rule%s%s%s%s%s%s.", choice_text(a, p),
        bh_word(tier, p->tier), apart ? ", on nodes of its own: they hold only trust domain " : "",
        apart ? c->tenant->domain : "", softness_text(a, c->tenant, m),
        no_floor ? "; the quota is hard because fair share sets an external tenant no floor (BH-026)" : "",
        last_resort ? "; it shares SMs and caches in turns (BH-011), and nothing better is at hand" : "",
        silicon_text(c, m));
}

static void choose(struct bh_tenant_plan *p, struct bh_arena *a, const struct bh_case *c,
                   const struct bh_candidate *k)
{
    enum bh_mechanism m = bh_candidate_effective(k);
    enum bh_quota_model wanted = quota_wanted(c);
    bool no_floor = floor_missing(c->tenant, wanted);
    const char *const *shared = bh_mech_stays_shared(m, k->tier);

    p->possible = true;
    p->mechanism = k->mechanism;
    p->backing = k->backing;
    p->tier = k->tier;
    p->quota_model = (uint8_t)(no_floor ? BH_QUOTA_HARD : wanted);
    p->cost_ppm = m == BH_MECH_WHOLE ? ALL_PPM : c->asks.share_ppm;
    if (c->silicon->models.n == 1)
        p->model = c->silicon->models.at[0].model;
    if (bh_mech_cuts_mig(m)) {
        struct bh_slice_choice s = bh_case_slice(c, k);
        p->model = s.model;
        p->profile = s.profile;
        p->cost_ppm = slice_ppm(s.model, s.profile);
    }
    if (k->tier == BH_TIER_CVM)
        p->model = bh_case_confidential_model(c);
    p->pool = pool_find(c, p);
    for (size_t i = 0; shared[i] && i + 1 < BH_PLAN_SHARED_MAX; i++)
        p->shared[i] = shared[i];
    p->bounded_by = bh_mech_bounded_by(m);
    p->why = why_text(a, c, p, m, no_floor);
}

/* ---- the walk ---- */

static enum bh_refusal first_of(uint32_t refusals)
{
    int r = 0;
    while (!(refusals >> r & 1))
        r++;
    return (enum bh_refusal)r;
}

/* The cheapest candidate nothing stands against; every cheaper one is listed with its first reason. */
static bool walk(struct bh_tenant_plan *p, struct bh_arena *a, const struct bh_case *c,
                 const struct candidates *all, uint32_t overlooked)
{
    p->rejected.n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct bh_candidate *k = &all->at[i];
        uint32_t refusals = bh_case_refusals(c, k) & ~overlooked;
        if (!refusals) {
            choose(p, a, c, k);
            return true;
        }
        enum bh_refusal r = first_of(refusals);
        *bh_vec_push(&p->rejected) = (struct bh_plan_rejected){
            .mechanism = k->mechanism,
            .backing = k->backing,
            .tier = k->tier,
            .rule = bh_refusal_rule(c, r),
            .reason = bh_refusal_reason(a, c, k, r),
        };
    }
    return false;
}

/* How much it takes to make a candidate possible; 0: it never will be. */
static unsigned effort_of(uint32_t refusals)
{
    unsigned sum = 0;
    for (int r = 0; r < BH_N_REFUSALS; r++) {
        if (!(refusals >> r & 1))
            continue;
        unsigned effort = bh_refusal_effort((enum bh_refusal)r);
        if (!effort)
            return 0;
        sum += effort;
    }
    return sum;
}

/* Whole GPUs are refused by nothing that lies in the mechanism, so there is always an answer. */
static const char *needed_text(struct bh_arena *a, const struct bh_case *c, const struct candidates *all)
{
    size_t best = all->n;
    unsigned least = 0;
    for (size_t i = 0; i < all->n; i++) {
        unsigned effort = effort_of(bh_case_refusals(c, &all->at[i]));
        if (effort && (best == all->n || effort < least)) {
            best = i;
            least = effort;
        }
    }
    const struct bh_candidate *k = &all->at[best];
    uint32_t refusals = bh_case_refusals(c, k);
    const char *text = "";
    for (int r = 0; r < BH_N_REFUSALS; r++) {
        if (refusals >> r & 1)
            text = bh_arena_printf(a, "%s%s%s", text, *text ? ", and " : "",
                                   bh_refusal_needed(a, c, k, (enum bh_refusal)r));
    }
    return bh_arena_printf(a, "%s: then %s behind a %s keeps every promise", text,
                           bh_word(mechanism, bh_candidate_effective(k)), bh_word(tier, k->tier));
}

static const char *no_silicon_text(struct bh_arena *a, const struct bh_case *c)
{
    const struct bh_tenant *t = c->tenant;
    const char *drivers = "";
    if (t->site && !c->silicon->site_exists)
        return bh_arena_printf(a, "a node in site %s: the fleet has none", t->site);
    for (size_t i = 0; i < t->drivers.n; i++)
        drivers = bh_arena_printf(a, "%s%s%s", drivers, *drivers ? " or " : "", t->drivers.at[i].s);
    return bh_arena_printf(a, "a node with GPUs%s%s%s%s: the fleet has none", t->site ? " in site " : "",
                           t->site ? t->site : "", *drivers ? " and driver " : "", drivers);
}

static void plan_tenant(struct bh_plan *plan, struct bh_ground *g, uint32_t tenant,
                        const struct candidates *all)
{
    struct bh_tenant_plan *p = bh_vec_push(&plan->tenants);
    struct bh_case c;

    *p = (struct bh_tenant_plan){.tenant = tenant, .pool = BH_NONE};
    bh_case_open(&c, g, tenant);
    if (!c.silicon->models.n) {
        p->needed = no_silicon_text(&plan->arena, &c);
        return;
    }
    /* Time-sliced vGPU for an external tenant is a warning: it yields to anything better, not to nothing. */
    if (!walk(p, &plan->arena, &c, all, 0) && !walk(p, &plan->arena, &c, all, 1u << BH_REFUSE_VGPU_TURNS))
        p->needed = needed_text(&plan->arena, &c, all);
}

void bh_plan_make(const struct bh_policy *policy, const struct bh_fleet *fleet, struct bh_plan *ret)
{
    struct bh_ground ground;
    struct candidates all;

    *ret = (struct bh_plan){.arena = {.head = NULL}};
    candidates_list(&all);
    bh_ground_init(&ground, policy, fleet);
    for (uint32_t i = 0; i < policy->tenants.n; i++)
        plan_tenant(ret, &ground, i, &all);
    bh_ground_fini(&ground);
}

void bh_plan_fini(struct bh_plan *p)
{
    for (size_t i = 0; i < p->tenants.n; i++)
        bh_vec_fini(&p->tenants.at[i].rejected);
    bh_vec_fini(&p->tenants);
    bh_arena_fini(&p->arena);
}
