/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan.h"

#include "core/policy/plan_refuse.h"
#include "core/policy/plan_why.h"

enum { CANDIDATES_MAX = 40, WISHES_MAX = 64 };
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

/* ---- what was chosen ---- */

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
    BH_EACH (at, &c->ground->index.tenant_pools, c->tenant_index) {
        const struct bh_pool *p = &c->ground->index.p->pools.at[*at];
        if (p->mechanism == plan->mechanism && p->tier == plan->tier &&
            (p->mechanism != BH_MECH_FRACTIONAL || p->backing == plan->backing) &&
            (!plan->model || bh_ground_pool_takes(c->ground, *at, plan->model)) &&
            (!plan->profile || pool_cuts(p, plan->model, plan->profile)))
            return *at;
    }
    return BH_NONE;
}

/* Draws the guarantee from the fleet: nobody else gets it after that. */
static void choose(struct bh_tenant_plan *p, struct bh_arena *a, const struct bh_case *c,
                   const struct bh_candidate *k)
{
    enum bh_mechanism m = bh_candidate_effective(k);
    const char *const *shared = bh_mech_stays_shared(m, k->tier);
    struct bh_allotment x = bh_case_allot(c, k, true);

    p->possible = true;
    p->mechanism = k->mechanism;
    p->backing = k->backing;
    p->tier = k->tier;
    p->quota_model = (uint8_t)bh_tenant_quota(c->tenant);
    p->model = x.hand ? x.hand->model : NULL;
    p->profile = bh_mech_cuts_mig(m) ? bh_case_slice(c, k).profile : NULL;
    p->cost_ppm = x.cost_ppm;
    p->units = x.units;
    p->pool = pool_find(c, p);
    for (size_t i = 0; shared[i] && i + 1 < BH_PLAN_SHARED_MAX; i++)
        p->shared[i] = shared[i];
    p->bounded_by = bh_mech_bounded_by(m);
    p->why = bh_plan_why(a, c, p);
}

/* ---- the walk ---- */

static enum bh_refusal first_of(uint32_t refusals)
{
    int r = 0;
    while (!(refusals >> r & 1))
        r++;
    return (enum bh_refusal)r;
}

/* What the planning of one policy works with. */
struct maker {
    struct bh_plan *plan;
    struct bh_ground ground;
    struct candidates all;
    struct bh_map reasons; /* each text once: thousands of tenants are refused the same things */
};

static const char *reason_keep(struct maker *m, const char *text)
{
    uint32_t at = bh_map_find(&m->reasons, text);
    if (at == BH_MAP_NONE) {
        at = (uint32_t)m->plan->reasons.n;
        *bh_vec_push(&m->plan->reasons) = bh_arena_str(&m->plan->arena, text);
        (void)bh_map_add(&m->reasons, m->plan->reasons.at[at], at);
    }
    return m->plan->reasons.at[at];
}

/* What stands against each candidate of one tenant, as far as it was looked at. */
struct verdicts {
    uint32_t at[CANDIDATES_MAX];
    size_t n;
};

/* The cheapest candidate that nothing stands against; all->n: there is none. */
static size_t cheapest(struct verdicts *v, const struct bh_case *c, const struct candidates *all,
                       uint32_t overlooked)
{
    for (size_t i = 0; i < all->n; i++) {
        if (i == v->n)
            v->at[v->n++] = bh_case_refusals(c, &all->at[i]);
        if (!(v->at[i] & ~overlooked))
            return i;
    }
    return all->n;
}

/* Every cheaper candidate with its first reason. */
static void reject(struct maker *m, struct bh_tenant_plan *p, const struct bh_case *c,
                   const struct verdicts *v, size_t n, uint32_t overlooked)
{
    struct bh_arena scratch = {.head = NULL};
    for (size_t i = 0; i < n; i++) {
        const struct bh_candidate *k = &m->all.at[i];
        enum bh_refusal r = first_of(v->at[i] & ~overlooked);
        *bh_vec_push(&p->rejected) = (struct bh_plan_rejected){
            .mechanism = k->mechanism,
            .backing = k->backing,
            .tier = k->tier,
            .rule = bh_refusal_rule(c, r),
            .reason = reason_keep(m, bh_refusal_reason(&scratch, c, k, r)),
        };
    }
    bh_arena_fini(&scratch);
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
static const char *needed_text(struct bh_arena *a, const struct bh_case *c, const struct candidates *all,
                               struct verdicts *v)
{
    size_t best = all->n;
    unsigned least = 0;
    for (size_t i = 0; i < all->n; i++) {
        unsigned effort = effort_of(v->at[i]);
        if (!effort || (best < all->n && effort >= least))
            continue;
        /* Whatever else would be lifted, the GPUs must be there too. */
        v->at[i] |= bh_case_shortage(c, &all->at[i]);
        effort = effort_of(v->at[i]);
        if (best == all->n || effort < least) {
            best = i;
            least = effort;
        }
    }
    const struct bh_candidate *k = &all->at[best];
    struct bh_arena parts = {.head = NULL};
    const char *text = "";
    for (int r = 0; r < BH_N_REFUSALS; r++) {
        if (v->at[best] >> r & 1)
            text = bh_arena_printf(&parts, "%s%s%s", text, *text ? ", and " : "",
                                   bh_refusal_needed(&parts, c, k, (enum bh_refusal)r));
    }
    text = bh_arena_printf(a, "%s: then %s behind a %s keeps every promise", text,
                           bh_word(mechanism, bh_candidate_effective(k)), bh_word(tier, k->tier));
    bh_arena_fini(&parts);
    return text;
}

static const char *no_silicon_text(struct bh_arena *a, const struct bh_case *c)
{
    const struct bh_tenant *t = c->tenant;
    const char *drivers = "";
    if (t->site && !c->silicon->site_exists)
        return bh_arena_printf(a, "a node in site %s: the fleet has none", t->site);
    for (size_t i = 0; i < t->drivers.n; i++)
        drivers = bh_arena_printf(a, "%s%s%s", drivers, *drivers ? " or " : "", t->drivers.at[i].s);
    return bh_arena_printf(a, "a node with GPUs%s%s%s%s: the fleet has none%s", t->site ? " in site " : "",
                           t->site ? t->site : "", *drivers ? " and driver " : "", drivers,
                           *drivers ? ", and one kernel loads one driver (BH-050)" : "");
}

static void plan_tenant(struct maker *m, uint32_t tenant)
{
    /*
     * Warnings yield to anything better, not to nothing: first a time-sliced vGPU for somebody from outside
     * (BH-011), then what the class does not list (BH-046).
     */
    static const uint32_t overlooked[] = {0, 1u << BH_REFUSE_VGPU_TURNS, 1u << BH_REFUSE_CLASS,
                                          1u << BH_REFUSE_VGPU_TURNS | 1u << BH_REFUSE_CLASS};
    struct bh_tenant_plan *p = &m->plan->tenants.at[tenant];
    struct bh_case c;
    struct verdicts v = {.n = 0};
    size_t found = m->all.n, pass = 0;

    bh_case_open(&c, &m->ground, tenant);
    if (!c.silicon->models.n) {
        p->needed = no_silicon_text(&m->plan->arena, &c);
        return;
    }
    for (size_t i = 0; found == m->all.n && i < BH_COUNT_OF(overlooked); i++) {
        found = cheapest(&v, &c, &m->all, overlooked[i]);
        pass = found < m->all.n ? i : 0;
    }
    reject(m, p, &c, &v, found, overlooked[pass]);
    if (found < m->all.n)
        choose(p, &m->plan->arena, &c, &m->all.at[found]);
    else
        p->needed = needed_text(&m->plan->arena, &c, &m->all, &v);
}

/* ---- drivers ---- */

static bool drives_its_own(const struct bh_plan *plan, const struct bh_policy *policy, size_t i)
{
    return plan->tenants.at[i].possible && plan->tenants.at[i].tier < BH_TIER_VM &&
           policy->tenants.at[i].drivers.n;
}

/*
 * A fleet says which node has which driver; without one, whoever stands in a container beside somebody who
 * needs another driver is told. So many different lists are remembered: more than a fleet has drivers.
 */
static void tell_drivers(struct bh_plan *plan, const struct bh_policy *policy)
{
    const struct bh_tenant *seen[WISHES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < policy->tenants.n; i++) {
        const struct bh_tenant *t = &policy->tenants.at[i];
        bool known = false;
        if (!drives_its_own(plan, policy, i))
            continue;
        for (size_t k = 0; !known && k < n; k++)
            known = seen[k]->drivers.n == t->drivers.n && bh_tenants_agree_on_driver(seen[k], t);
        if (!known && n < WISHES_MAX)
            seen[n++] = t;
    }
    for (size_t i = 0; n > 1 && i < policy->tenants.n; i++) {
        const struct bh_tenant *t = &policy->tenants.at[i], *other = NULL;
        if (!drives_its_own(plan, policy, i))
            continue;
        for (size_t k = 0; !other && k < n; k++)
            other = bh_tenants_agree_on_driver(seen[k], t) ? NULL : seen[k];
        if (other)
            plan->tenants.at[i].why = bh_plan_why_driver(&plan->arena, plan->tenants.at[i].why, other);
    }
}

void bh_plan_make(const struct bh_policy *policy, const struct bh_fleet *fleet, struct bh_plan *ret)
{
    struct maker m = {.plan = ret};

    *ret = (struct bh_plan){.arena = {.head = NULL}};
    candidates_list(&m.all);
    bh_ground_init(&m.ground, policy, fleet);
    for (uint32_t i = 0; i < policy->tenants.n; i++)
        *bh_vec_push(&ret->tenants) = (struct bh_tenant_plan){.tenant = i, .pool = BH_NONE};
    /* What is guaranteed hard is nobody else's; what is only shared comes after it. */
    for (int hard = 1; hard >= 0; hard--) {
        for (uint32_t i = 0; i < policy->tenants.n; i++) {
            if ((bh_tenant_quota(&policy->tenants.at[i]) == BH_QUOTA_HARD) == hard)
                plan_tenant(&m, i);
        }
    }
    if (!fleet)
        tell_drivers(ret, policy);
    bh_ground_fini(&m.ground);
    bh_map_fini(&m.reasons);
}

void bh_plan_fini(struct bh_plan *p)
{
    for (size_t i = 0; i < p->tenants.n; i++)
        bh_vec_fini(&p->tenants.at[i].rejected);
    bh_vec_fini(&p->tenants);
    bh_vec_fini(&p->reasons);
    bh_arena_fini(&p->arena);
}
