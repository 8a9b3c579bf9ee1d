/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine and its indexes promise; each rule's own meaning is held by data/rules. */
#include "core/policy/lint.h"

#include "base/choice.h"
#include "base/str.h"
#include "base/test.h"
#include "core/policy/lint_fixture.h"

enum { TODAY = 20000, ROUNDS = 400 };

TEST(nothing_declared_nothing_found)
{
    struct world w;
    world_init(&w);
    judge(&w, NULL, TODAY);
    CHECK_EQ(w.report.findings.n, 0);
    CHECK(w.report.unchecked.n > 0);
    world_fini(&w);
}

/* Every rule is found, passed or unchecked; what no file can answer is never passed in silence. */
TEST(live_and_fleet_rules_are_unchecked_without_their_facts)
{
    struct world w;
    world_init(&w);
    judge(&w, NULL, TODAY);
    for (size_t i = 0; i < bh_rule_count(); i++) {
        const struct bh_rule *r = bh_rule_at(i);
        size_t n = 0;
        for (size_t k = 0; k < w.report.unchecked.n; k++)
            n += w.report.unchecked.at[k].rule == r;
        CHECK(n <= 1);
        if (r->needs != BH_NEEDS_POLICY)
            CHECK_EQ(n, 1);
    }
    world_fini(&w);
}

TEST(findings_come_in_file_order_with_counts)
{
    struct world w;
    world_init(&w);
    add_tenant(&w, "first", BH_TRUST_INTERNAL)->cost_center = NULL;
    struct bh_tenant *t = add_tenant(&w, "second", BH_TRUST_INTERNAL);
    t->cost_center = NULL;
    t->network.policy = BH_NET_UNSET;
    judge(&w, NULL, TODAY);
    CHECK_EQ(w.report.findings.n, 3);
    CHECK_STR(w.report.findings.at[0].subject, "tenant:first");
    CHECK_STR(w.report.findings.at[1].rule->id, "BH-073");
    CHECK_STR(w.report.findings.at[2].rule->id, "BH-082");
    CHECK_EQ(w.report.n_errors, 1);
    CHECK_EQ(w.report.n_warnings, 2);
    world_fini(&w);
}

TEST(pools_that_meet_on_a_node_are_judged_together)
{
    struct world w;
    world_init(&w);
    add_tenant(&w, "acme", BH_TRUST_EXTERNAL);
    add_tenant(&w, "globex", BH_TRUST_EXTERNAL);
    struct bh_pool *p = add_pool(&w, "left", BH_MECH_WHOLE, BH_TIER_CONTAINER);
    pool_takes(&w, p, "acme");
    *bh_vec_push(&p->match.nodes) = (struct bh_text){.s = "gpu-[01-04]"};
    p = add_pool(&w, "right", BH_MECH_WHOLE, BH_TIER_CONTAINER);
    pool_takes(&w, p, "globex");
    *bh_vec_push(&p->match.nodes) = (struct bh_text){.s = "gpu-[04-08]"};
    judge(&w, NULL, TODAY);
    CHECK(finding(&w, "BH-001", "pool:left") == NULL);
    const struct bh_finding *f = finding(&w, "BH-001", "pool:right");
    CHECK(f != NULL);
    CHECK(strstr(f->message, "kernel gpu-04") != NULL);
    world_fini(&w);
}

TEST(a_source_that_cannot_say_is_not_blamed)
{
    struct world w;
    world_init(&w);
    w.policy.source = BH_SOURCE_KUBERNETES;
    struct bh_tenant *t = add_tenant(&w, "team-a", BH_TRUST_INTERNAL);
    t->source = BH_SOURCE_KUBERNETES;
    t->cost_center = NULL;
    t->storage.quota_bytes = 0;
    judge(&w, NULL, TODAY);
    CHECK(finding(&w, "BH-082", "tenant:team-a") == NULL);
    CHECK(finding(&w, "BH-074", "tenant:team-a") == NULL);
    size_t n = 0;
    for (size_t k = 0; k < w.report.unchecked.n; k++)
        n += strcmp(w.report.unchecked.at[k].rule->id, "BH-082") == 0;
    CHECK_EQ(n, 1);
    world_fini(&w);
}

/* ---- against the definition, pair by pair ---- */

static bool any_pair_distrusts(const struct bh_policy *p, const struct bh_pool *pool)
{
    for (size_t i = 0; i < pool->tenants.n; i++)
        for (size_t k = 0; k < i; k++)
            if (bh_tenants_distrust(&p->tenants.at[pool->tenants.at[i]], &p->tenants.at[pool->tenants.at[k]]))
                return true;
    return false;
}

static bool many_domains(const struct bh_policy *p, const struct bh_pool *pool)
{
    for (size_t i = 1; i < pool->tenants.n; i++)
        if (!bh_str_eq(p->tenants.at[pool->tenants.at[i]].domain, p->tenants.at[pool->tenants.at[0]].domain))
            return true;
    return false;
}

static void random_world(struct world *w, struct bh_choice *c)
{
    static const char *const domains[] = {NULL, "red", "blue", "green"};
    static const uint8_t mechanisms[] = {BH_MECH_WHOLE, BH_MECH_MIG, BH_MECH_MPS, BH_MECH_TIMESLICE,
                                         BH_MECH_FRACTIONAL};
    char name[16];
    uint32_t n_tenants = bh_choose(c, 7), n_pools = bh_choose(c, 4);
    world_init(w);
    for (uint32_t i = 0; i < n_tenants; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        struct bh_tenant *t = add_tenant(w, name, (enum bh_trust)bh_choose(c, 3));
        t->domain = domains[bh_choose(c, 4)];
        t->slo.kind = (uint8_t)bh_choose(c, 3);
        t->regimes = bh_choose(c, 8);
        t->operator_untrusted = bh_choose(c, 4) == 0;
    }
    for (uint32_t i = 0; i < n_pools; i++) {
        (void)snprintf(name, sizeof(name), "p%u", i);
        struct bh_pool *p =
            add_pool(w, name, mechanisms[bh_choose(c, 5)], (enum bh_tier)bh_choose(c, BH_N_tier));
        for (uint32_t k = 0; k < n_tenants; k++)
            if (bh_choose(c, 2))
                pool_takes(w, p, w->policy.tenants.at[k].name);
    }
}

TEST(trust_rules_agree_with_their_definition)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        uint8_t bytes[256];
        char subject[32];
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct world w;
        random_world(&w, &c);
        judge(&w, NULL, TODAY);
        for (size_t i = 0; i < w.policy.pools.n; i++) {
            const struct bh_pool *p = &w.policy.pools.at[i];
            (void)snprintf(subject, sizeof(subject), "pool:%s", p->name);
            bool kernel = bh_tier_shares_kernel(p->tier) && any_pair_distrusts(&w.policy, p);
            bool mps = p->mechanism == BH_MECH_MPS && many_domains(&w.policy, p);
            if ((finding(&w, "BH-001", subject) != NULL) != kernel ||
                (finding(&w, "BH-002", subject) != NULL) != mps)
                printf("# seed %" PRIu64 ", %s\n", seed, subject);
            CHECK_EQ(finding(&w, "BH-001", subject) != NULL, kernel);
            CHECK_EQ(finding(&w, "BH-002", subject) != NULL, mps);
        }
        world_fini(&w);
    }
}

TEST(the_same_policy_gives_the_same_report_and_a_finding_once_per_rule_and_subject)
{
    for (uint64_t seed = 1; seed <= ROUNDS / 4; seed++) {
        uint8_t bytes[256];
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)}, d = c;
        struct world a, b;
        random_world(&a, &c);
        random_world(&b, &d);
        judge(&a, NULL, TODAY);
        judge(&b, NULL, TODAY);
        CHECK_EQ(a.report.findings.n, b.report.findings.n);
        for (size_t i = 0; i < a.report.findings.n; i++) {
            const struct bh_finding *f = &a.report.findings.at[i], *g = &b.report.findings.at[i];
            CHECK(f->rule == g->rule);
            CHECK_STR(f->subject, g->subject);
            CHECK_STR(f->message, g->message);
            CHECK(finding(&a, f->rule->id, f->subject) == f);
            if (i)
                CHECK(a.report.findings.at[i - 1].pos.line <= f->pos.line);
        }
        world_fini(&a);
        world_fini(&b);
    }
}

TEST_MAIN
