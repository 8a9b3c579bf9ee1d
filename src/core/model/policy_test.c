/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults and the questions every rule asks. Names and GPUs are resolved in link_test.c. */
#include "base/test.h"
#include "core/model/policy.h"

TEST(defaults_of_the_language)
{
    struct bh_policy p BH_AUTO(bh_policy_fini);
    bh_policy_init(&p, BH_SOURCE_POLICY);
    CHECK(p.audit.enabled);
    CHECK_EQ(p.audit.retention_ms, INT64_C(31536000000));
    const struct bh_tenant *t = bh_policy_add_tenant(&p);
    CHECK_EQ(t->trust, BH_TRUST_INTERNAL);
    CHECK_EQ(t->slo.kind, BH_SLO_NONE);
    CHECK_EQ(t->priority.ceiling, BH_PRIORITY_NORMAL);
    CHECK_EQ(t->network.policy, BH_NET_UNSET);
    CHECK_EQ(t->network.rdma, BH_RDMA_UNSET);
    CHECK_EQ(t->quota.weight, 100);
    CHECK(!t->quota.has_gpus && !t->quota.has_max && !t->quota.borrow && !t->quota.pos.line);
    CHECK(!t->domain && !t->class_name && !t->class_ && !t->cost_center);
    const struct bh_pool *pool = bh_policy_add_pool(&p);
    CHECK_EQ(pool->tier, BH_TIER_CONTAINER);
    CHECK_EQ(pool->mechanism, BH_MECH_UNSET);
    CHECK_EQ(pool->fail_requests_greater_than_one, BH_FACT_UNKNOWN);
    const struct bh_workload *w = bh_policy_add_workload(&p);
    CHECK_EQ(w->tenant, BH_NONE);
    CHECK_EQ(w->pool, BH_NONE);
    CHECK_EQ(w->priority, BH_PRIORITY_NORMAL);
    CHECK_EQ(w->checkpointable, BH_FACT_UNKNOWN);
    CHECK(!w->gang && !w->has_priority && !w->has_deadline);
}

/* A manifest that does not speak of a thing has not denied it. */
TEST(silence_of_a_cluster_is_not_an_answer)
{
    struct bh_policy p BH_AUTO(bh_policy_fini);
    bh_policy_init(&p, BH_SOURCE_KUBERNETES);
    CHECK_EQ(bh_policy_add_workload(&p)->checkpointable, BH_FACT_UNKNOWN);
    CHECK_EQ(bh_policy_add_tenant(&p)->source, BH_SOURCE_KUBERNETES);
    CHECK_EQ(bh_policy_add_pool(&p)->source, BH_SOURCE_KUBERNETES);
}

TEST(everything_that_was_hung_up_is_freed)
{
    struct bh_policy p;
    bh_policy_init(&p, BH_SOURCE_POLICY);
    struct bh_tenant *t = bh_policy_add_tenant(&p);
    t->name = bh_arena_str(&p.arena, "acme");
    *bh_vec_push(&t->drivers) = (struct bh_text){.s = "580"};
    *bh_vec_push(&t->images) = (struct bh_text){.s = "*"};
    *bh_vec_push(&t->quota.resources) = (struct bh_amount){.resource = "nvidia.com/gpu"};
    *bh_vec_push(&t->quota.stated) = (struct bh_stated){.words = "five"};
    struct bh_pool *pool = bh_policy_add_pool(&p);
    *bh_vec_push(&pool->match.nodes) = (struct bh_text){.s = "a"};
    *bh_vec_push(&pool->match.gpus) = 0;
    *bh_vec_push(&pool->profiles) = (struct bh_text){.s = "1g.18gb"};
    *bh_vec_push(&pool->layout) = (struct bh_layout_item){.profile = "1g.18gb", .count = 7};
    *bh_vec_push(&pool->tenant_names) = (struct bh_text){.s = "acme"};
    *bh_vec_push(&pool->drivers) = (struct bh_text){.s = "580"};
    *bh_vec_push(&pool->tenants) = 0;
    *bh_vec_push(&pool->gpus) = (struct bh_gpu_ref){0, 0};
    *bh_vec_push(&pool->nodes) = 0;
    struct bh_fabric *f = bh_vec_push(&p.fabrics);
    *f = (struct bh_fabric){.name = "A"};
    *bh_vec_push(&f->gpus) = (struct bh_text){.s = "a:0"};
    struct bh_workload *w = bh_policy_add_workload(&p);
    *bh_vec_push(&w->mounts) = *bh_vec_push(&w->devices) = (struct bh_text){.s = "/data"};
    *bh_vec_push(&w->assigned) = (struct bh_assigned){.node = "a"};
    *bh_vec_push(&w->env) = (struct bh_keyed){.key = "A", .value = "1"};
    *bh_vec_push(&w->requests) = (struct bh_amount){.resource = "nvidia.com/gpu"};
    *bh_vec_push(&p.classes) = (struct bh_class){.name = "gold"};
    *bh_vec_push(&p.roles) = (struct bh_role_binding){.subject = "user:a"};
    *bh_vec_push(&p.waivers) = (struct bh_waiver){.rule = "BH-056"};
    *bh_vec_push(&p.audit.exclude) = (struct bh_text){.s = "login"};
    bh_policy_fini(&p);
    CHECK(!p.tenants.at && !p.pools.at && !p.workloads.at && !p.arena.head);
    bh_policy_fini(&p); /* twice is once */
}

TEST(a_fractional_pool_is_judged_by_its_backing)
{
    struct bh_pool p = {.mechanism = BH_MECH_FRACTIONAL, .backing = BH_MECH_GATE};
    CHECK_EQ(bh_pool_effective(&p), BH_MECH_GATE);
    p.backing = BH_MECH_UNSET;
    CHECK_EQ(bh_pool_effective(&p), BH_MECH_UNSET);
    p.mechanism = BH_MECH_MIG;
    p.backing = BH_MECH_MPS; /* means nothing here */
    CHECK_EQ(bh_pool_effective(&p), BH_MECH_MIG);
}

TEST(shared_is_many_tenants_or_a_sharing_mechanism)
{
    struct bh_pool p = {.mechanism = BH_MECH_WHOLE};
    CHECK(!bh_pool_is_shared(&p));
    p.tenants.n = 1;
    CHECK(!bh_pool_is_shared(&p));
    p.tenants.n = 2;
    CHECK(bh_pool_is_shared(&p));
    p.tenants.n = 0;
    p.mechanism = BH_MECH_TIMESLICE;
    CHECK(bh_pool_is_shared(&p));
}

TEST(distrust_needs_two_domains_and_an_outsider)
{
    struct bh_tenant a = {.domain = "internal", .trust = BH_TRUST_INTERNAL}, b = a;
    CHECK(!bh_tenants_distrust(&a, &b));
    b.domain = "research"; /* colleagues apart still trust each other */
    CHECK(!bh_tenants_distrust(&a, &b));
    b.trust = BH_TRUST_PARTNER;
    CHECK(bh_tenants_distrust(&a, &b) && bh_tenants_distrust(&b, &a));
    a = (struct bh_tenant){.domain = "acme", .trust = BH_TRUST_EXTERNAL};
    b = a;
    CHECK(!bh_tenants_distrust(&a, &b));
    b.domain = "globex";
    CHECK(bh_tenants_distrust(&a, &b));
}

TEST(the_four_classes_are_built_in_and_can_be_overridden)
{
    struct bh_policy p BH_AUTO(bh_policy_fini);
    bh_policy_init(&p, BH_SOURCE_POLICY);
    static const char *const names[] = {"training", "serving", "research", "batch"};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++) {
        const struct bh_class *c = bh_policy_class(&p, names[i]);
        CHECK(c != NULL && c->built_in);
        CHECK_STR(c->name, names[i]);
    }
    CHECK(bh_policy_class(&p, "gold") == NULL);
    CHECK(bh_policy_class(&p, NULL) == NULL);
    *bh_vec_push(&p.classes) = (struct bh_class){.name = "research", .mechanisms = 1u << BH_MECH_WHOLE};
    CHECK(bh_policy_class(&p, "research") == &p.classes.at[0]);
    bh_unresolved_vec problems = {0};
    bh_policy_link(&p, NULL, &problems);
    CHECK(bh_policy_class(&p, "research") == &p.classes.at[0]);
    CHECK(bh_policy_class(&p, "batch")->built_in);
    bh_vec_fini(&problems);
}

TEST(a_tenants_own_bandwidth_comes_before_its_classs)
{
    const struct bh_class bulk = {.bandwidth = {.network = 3, .disk = 1}};
    struct bh_tenant t = {.bandwidth = {.disk = 2}};
    CHECK(bh_tenant_bandwidth(&t).network == 0 && bh_tenant_bandwidth(&t).disk == 2);
    t.class_ = &bulk;
    CHECK(bh_tenant_bandwidth(&t).network == 3 && bh_tenant_bandwidth(&t).disk == 2);
}

TEST(serving_is_the_class_or_a_hard_promise)
{
    struct bh_class gold = {.name = "gold", .slos = 1u << BH_SLO_HARD};
    struct bh_class either = {.name = "either", .slos = 1u << BH_SLO_HARD | 1u << BH_SLO_SOFT};
    struct bh_tenant t = {.class_name = "serving"};
    CHECK(bh_tenant_is_serving(&t));
    t = (struct bh_tenant){.class_name = "gold", .class_ = &gold};
    CHECK(bh_tenant_is_serving(&t));
    t = (struct bh_tenant){.class_name = "either", .class_ = &either};
    CHECK(!bh_tenant_is_serving(&t));
    t = (struct bh_tenant){0};
    CHECK(!bh_tenant_is_serving(&t));
}

TEST_MAIN
