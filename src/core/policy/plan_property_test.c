/* SPDX-License-Identifier: Apache-2.0 */
/* plan_property_test.c - whatever the policy and the fleet: what is planned keeps its promises and fits. */
#include "core/policy/plan.h"

#include "base/choice.h"
#include "base/str.h"
#include "base/test.h"
#include "base/units.h"
#include "core/policy/plan_fixture.h"
#include "core/policy/predicate.h"

static const char *const names[] = {"t0", "t1", "t2", "t3", "t4", "t5"};
static const char *const node_names[] = {"n0", "n1", "n2", "n3"};
static const char *const models[] = {"H200", "A100-80GB", "L40S", "unknown-gpu", "RTX-PRO-6000"};
static const char *const class_names[] = {NULL, "training", "serving", "research", "batch"};

static void random_policy(struct fixture *f, struct bh_choice *c)
{
    uint32_t n = 1 + bh_choose(c, BH_COUNT_OF(names));
    fixture_init(f);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_tenant *t = fixture_tenant(f, names[i], (enum bh_trust)bh_choose(c, BH_N_trust),
                                             class_names[bh_choose(c, BH_COUNT_OF(class_names))]);
        t->slo.kind = (uint8_t)bh_choose(c, BH_N_slo_kind);
        t->operator_untrusted = bh_choose(c, 6) == 0;
        t->regimes = bh_choose(c, 5) == 0 ? 1u << BH_REGIME_PCI : 0;
        t->site = bh_choose(c, 4) == 0 ? "eu" : NULL;
        t->quota.has_model = bh_choose(c, 2);
        t->quota.model = (uint8_t)bh_choose(c, BH_N_quota_model);
        t->quota.has_gpus = bh_choose(c, 2);
        t->quota.gpus_milli = bh_choose(c, 9) * 250;
        t->quota.memory_bytes = bh_choose(c, 4) == 0 ? 50 * BH_GIB : 0;
        if (bh_choose(c, 8) == 0)
            *bh_vec_push(&t->quota.resources) =
                (struct bh_amount){.resource = "nvidia.com/mig-1g.18gb", .milli = bh_choose(c, 3) * 1000};
    }
    for (uint32_t i = 0; i < n; i++) {
        if (bh_choose(c, 2))
            continue;
        struct bh_pool *p =
            fixture_pool(f, names[i], (enum bh_mechanism)(1 + bh_choose(c, BH_MECH_FRACTIONAL)),
                         (enum bh_tier)bh_choose(c, BH_N_tier), node_names[bh_choose(c, 4)],
                         names[bh_choose(c, n)], names[bh_choose(c, n)]);
        p->backing = p->mechanism == BH_MECH_FRACTIONAL ? BH_MECH_GATE : BH_MECH_UNSET;
        p->claims = bh_choose(c, 1u << BH_N_claim);
        p->cap_memory_bytes = bh_choose(c, 3) * 20 * BH_GIB;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct bh_workload *w = fixture_workload(f, names[i], names[bh_choose(c, n)]);
        w->memory_bytes = bh_choose(c, 8) * 24 * BH_GIB;
        w->needs_nvlink = bh_choose(c, 5) == 0;
    }
    for (uint32_t i = 0, m = bh_choose(c, 5); i < m; i++) {
        struct bh_fleet_node *node = fixture_node(f, node_names[i], models[bh_choose(c, 5)], bh_choose(c, 3));
        node->iommu = (uint8_t)bh_choose(c, 3);
        node->acs = (uint8_t)bh_choose(c, 3);
        node->site = bh_choose(c, 2) ? "eu" : NULL;
    }
}

/* What no rule may be found against, said independently of how the planner looks for it. */
static bool keeps_promises(const struct bh_tenant *t, const struct bh_tenant_plan *p)
{
    enum bh_mechanism m = p->mechanism == BH_MECH_FRACTIONAL ? p->backing : p->mechanism;
    const struct bh_class *c = t->class_pos.line ? t->class_ : NULL;
    bool vm = p->tier >= BH_TIER_VM;
    return !(t->slo.kind == BH_SLO_HARD && !bh_mech_keeps_hard_slo(m)) &&
           !(t->operator_untrusted && p->tier != BH_TIER_CVM) && !(vm && !bh_mech_fits_vm(m)) &&
           !(t->regimes && !bh_mech_fits_regulated(m)) &&
           !(t->trust != BH_TRUST_INTERNAL &&
             (m == BH_MECH_TIMESLICE || m == BH_MECH_MPS || m == BH_MECH_GATE)) &&
           !(t->trust == BH_TRUST_EXTERNAL && p->quota_model != BH_QUOTA_HARD) &&
           !(bh_mech_cuts_mig(m) && (!p->profile || !p->model || !p->model->memory_slices)) &&
           (!c || bh_class_accepts(c, p->mechanism, p->quota_model, p->tier) ||
            bh_class_accepts(c, m, p->quota_model, p->tier) || strstr(p->why, "BH-046")) &&
           p->shared[0] && p->bounded_by && p->why && !p->needed && p->cost_ppm > 0 && p->cost_ppm <= 1000000;
}

static bool same_plan(const struct bh_tenant_plan *a, const struct bh_tenant_plan *b)
{
    return a->possible == b->possible && a->mechanism == b->mechanism && a->tier == b->tier &&
           a->cost_ppm == b->cost_ppm && a->rejected.n == b->rejected.n && bh_str_eq(a->why, b->why) &&
           bh_str_eq(a->needed, b->needed);
}

static bool explains_itself(const struct bh_tenant_plan *p)
{
    for (size_t i = 0; i < p->rejected.n; i++) {
        const struct bh_plan_rejected *r = &p->rejected.at[i];
        /* The one ground that is no rule says what it counted. */
        if (!r->reason || !*r->reason || (!r->rule && !strstr(r->reason, "still free")))
            return false;
    }
    return p->rejected.n <= BH_PLAN_REJECTED_MAX && (p->possible || (p->needed && *p->needed));
}

/* All that was promised, in thousandths of a GPU, is no more than there is. */
static bool fits_the_fleet(const struct fixture *f, const struct bh_plan *p)
{
    uint64_t promised = 0, there = 0;
    if (!f->fleet.nodes.n)
        return true;
    for (size_t i = 0; i < f->fleet.nodes.n; i++)
        there += f->fleet.nodes.at[i].gpus.n * 1000;
    for (size_t i = 0; i < p->tenants.n; i++) {
        const struct bh_tenant_plan *t = &p->tenants.at[i];
        const struct bh_quota *q = &f->policy.tenants.at[i].quota;
        if (t->possible && q->has_gpus)
            promised += t->mechanism == BH_MECH_WHOLE ? t->units * 1000 : q->gpus_milli;
        if (t->possible && t->profile &&
            t->units * t->profile->memory_slices > there / 1000 * t->model->memory_slices)
            return false;
    }
    return promised <= there;
}

TEST(any_policy_gets_a_plan_that_keeps_its_promises)
{
    enum { ROUNDS = 3000 };
    uint8_t bytes[256];
    size_t possible = 0, impossible = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct fixture f;
        struct bh_plan p, again;
        random_policy(&f, &c);
        const struct bh_fleet *fleet = fixture_link(&f);
        bh_plan_make(&f.policy, fleet, &p);
        bh_plan_make(&f.policy, fleet, &again);
        bool good = p.tenants.n == f.policy.tenants.n && fits_the_fleet(&f, &p);
        for (size_t i = 0; good && i < p.tenants.n; i++) {
            const struct bh_tenant_plan *t = &p.tenants.at[i];
            good = explains_itself(t) && same_plan(t, &again.tenants.at[i]) &&
                   (!t->possible || keeps_promises(&f.policy.tenants.at[i], t));
            possible += t->possible;
            impossible += !t->possible;
        }
        bh_plan_fini(&again);
        bh_plan_fini(&p);
        fixture_fini(&f);
        if (!good)
            printf("# seed %" PRIu64 "\n", seed);
        CHECK(good);
    }
    CHECK(possible > ROUNDS / 2); /* both kinds were met */
    CHECK(impossible > ROUNDS / 2);
}

TEST_MAIN
