/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"

TEST(a_machine_is_cut_into_parts_that_are_alike)
{
    struct fixture f;
    lab(&f);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(a->parts.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(a->parts.at[i].n_gpus, 2);
        CHECK_EQ(a->parts.at[i].link, 0); /* one kernel */
        CHECK_EQ(a->parts.at[i].pools, UINT64_C(1) << i);
        CHECK_EQ(a->parts.at[i].gpu_mib, bh_catalog_find("H100-80GB")->memory_mib);
    }
    CHECK_EQ(a->n_links, 1);
    CHECK_EQ(a->models.n, 1);
    CHECK_EQ(a->parts.at[2].gpus[1], 5);
    bh_admit_free(a);
    fixture_fini(&f);
}

/* 4 times 20 GiB are 80 GiB, and no card of that name has them: the fourth goes to the next card. */
TEST(a_card_has_the_memory_that_it_says)
{
    struct fixture f;
    lab(&f);
    for (uint32_t i = 0; i < 8; i++)
        f.fleet.nodes.at[0].gpus.at[i].memory_mib = i == 5 ? 81000 : 81559;
    struct bh_admit *a = lab_admit(&f, NULL);
    struct bh_sched *s = a ? lab_sched(a) : NULL;
    CHECK(s);
    CHECK_EQ(a->parts.n, 4);
    CHECK_EQ(a->parts.at[0].gpu_mib, 81559);
    CHECK_EQ(a->parts.at[2].gpu_mib, 81000); /* of 4 and 5 */
    for (uint32_t i = 0; i < 8; i++) {
        const struct bh_admit_ask ask = {.id = i + 1,
                                         .tenant = "research",
                                         .pool = "shares",
                                         .share_milli = 250,
                                         .can = BH_CAN_REQUEUE,
                                         .memory_bytes = 20 * BH_GIB};
        struct bh_admit_grant g;
        struct bh_admit_refusal why;
        CHECK(bh_admit_job(a, &ask, &g, &why));
        CHECK_EQ(lab_submit(s, &g), 0);
    }
    size_t n, on[2] = {0};
    const struct bh_decision *d = bh_sched_decide(s, 2, 1000000, &n);
    CHECK_EQ(n, 6); /* 61440 MiB of each */
    for (size_t i = 0; i < n; i++)
        on[bh_sched_places(s, &d[i])->spot.gpus >> 1 & 1]++;
    CHECK_EQ(on[0], 3);
    CHECK_EQ(on[1], 3);
    bh_sched_free(s);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(pools_with_the_same_gpus_are_one_bit)
{
    struct fixture f;
    lab(&f);
    (void)add_pool(&f, "again", BH_MECH_WHOLE, BH_TIER_CONTAINER, 0, 2, "research", NULL);
    (void)add_pool(&f, "wide", BH_MECH_WHOLE, BH_TIER_CONTAINER, 0, 4, "research", NULL);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(a->pools[4].bit, a->pools[0].bit);
    CHECK_EQ(a->parts.n, 4);
    CHECK_EQ(a->parts.at[0].pools, a->pools[0].bit | a->pools[5].bit);
    CHECK_EQ(a->parts.at[1].pools, a->pools[1].bit | a->pools[5].bit);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(a_gpu_of_no_pool_is_nobodys)
{
    struct fixture f;
    fixture_init(&f);
    (void)add_tenant(&f, "t", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    (void)fixture_node(&f, "n", "H100-80GB", 4);
    (void)add_pool(&f, "p", BH_MECH_WHOLE, BH_TIER_CONTAINER, 1, 2, "t", NULL);
    struct bh_admit *a = lab_admit(&f, NULL);
    uint32_t node = 9, gpu = 9;
    CHECK(a);
    CHECK(!bh_admit_locate(a, (struct bh_gpu_ref){0, 0}, &node, &gpu));
    CHECK(!bh_admit_locate(a, (struct bh_gpu_ref){0, 4}, &node, &gpu));
    CHECK(!bh_admit_locate(a, (struct bh_gpu_ref){1, 0}, &node, &gpu));
    CHECK(bh_admit_locate(a, (struct bh_gpu_ref){0, 2}, &node, &gpu));
    CHECK_EQ(node, 0);
    CHECK_EQ(gpu, 1);
    CHECK_EQ(bh_admit_gpu(a, 0, 1).gpu, 2);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(kernels_and_fabrics_join_parts_into_domains)
{
    struct fixture f;
    fixture_init(&f);
    (void)add_tenant(&f, "t", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    static const char *const names[] = {"n0", "n1", "n2", "n3"};
    for (int i = 0; i < 4; i++)
        (void)fixture_node(&f, names[i], "H100-80GB", 2);
    f.fleet.nodes.at[0].gpus.at[0].fabric = f.fleet.nodes.at[0].gpus.at[1].fabric = "A";
    f.fleet.nodes.at[1].gpus.at[0].fabric = "A";
    f.fleet.nodes.at[1].gpus.at[1].fabric = "B";
    f.fleet.nodes.at[3].kernel = "n2";
    (void)add_pool(&f, "p", BH_MECH_WHOLE, BH_TIER_CONTAINER, 0, 2, "t", NULL);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(a->parts.n, 5); /* n1 is two */
    CHECK_EQ(a->n_links, 2);
    CHECK_EQ(a->parts.at[0].link, a->parts.at[1].link); /* fabric A */
    CHECK_EQ(a->parts.at[1].link, a->parts.at[2].link); /* kernel n1 */
    CHECK_EQ(a->parts.at[3].link, a->parts.at[4].link); /* kernel n2 */
    CHECK(a->parts.at[0].link != a->parts.at[3].link);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(sites_and_drivers_are_bits_where_machines_differ)
{
    struct fixture f;
    fixture_init(&f);
    struct bh_tenant *t = add_tenant(&f, "t", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    t->site = "eu";
    *bh_vec_push(&t->drivers) = (struct bh_text){.s = "580"};
    (void)add_tenant(&f, "u", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    struct bh_fleet_node *n = fixture_node(&f, "n0", "H100-80GB", 1);
    n->site = "eu";
    n->driver = "580.1";
    n = fixture_node(&f, "n1", "H100-80GB", 1);
    n->driver = "580.2";
    (void)add_pool(&f, "p", BH_MECH_WHOLE, BH_TIER_CONTAINER, 0, 1, "t", "u");
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(a->features.n, 2);
    CHECK_EQ(a->needs[0], 1); /* the site; all have the driver */
    CHECK_EQ(a->needs[1], 0);
    CHECK_EQ(a->parts.at[0].features, 1);
    CHECK_EQ(a->parts.at[1].features, 0);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(colleagues_are_one_trust_domain_and_others_their_own)
{
    struct fixture f;
    fixture_init(&f);
    (void)add_tenant(&f, "a", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    add_tenant(&f, "b", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000)->domain = "lab";
    add_tenant(&f, "c", BH_TRUST_EXTERNAL, BH_QUOTA_HARD, 1000)->domain = "acme";
    add_tenant(&f, "d", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000)->domain = "acme";
    (void)fixture_node(&f, "n", "H100-80GB", 1);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(a->trust[0], 0);
    CHECK_EQ(a->trust[1], 0);
    CHECK(a->trust[2] != 0);
    CHECK_EQ(a->trust[2], a->trust[3]); /* one of them is from outside: the domain is */
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(the_same_ground_is_told_from_another)
{
    struct fixture f, g;
    lab(&f);
    lab(&g);
    g.policy.tenants.at[0].quota.gpus_milli = 1000;
    struct bh_admit *a = lab_admit(&f, NULL), *b = lab_admit(&g, NULL);
    CHECK(a && b);
    CHECK(bh_admit_same_ground(a, b));
    bh_admit_free(b);
    g.policy.pools.at[0].match.gpus.n = 1;
    b = lab_admit(&g, NULL);
    CHECK(b);
    CHECK(!bh_admit_same_ground(a, b));
    bh_admit_free(b);
    fixture_fini(&g);
    lab(&g);
    g.policy.tenants.at[0].trust = BH_TRUST_PARTNER;
    b = lab_admit(&g, NULL);
    CHECK(b);
    CHECK(!bh_admit_same_ground(a, b)); /* jobs that are there carry another trust domain */
    bh_admit_free(b);
    bh_admit_free(a);
    fixture_fini(&f);
    fixture_fini(&g);
}

TEST(more_sets_of_gpus_than_bits_are_refused)
{
    struct fixture f;
    static char names[65][8];
    fixture_init(&f);
    (void)add_tenant(&f, "t", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    (void)fixture_node(&f, "n", "H100-80GB", 8);
    for (uint32_t i = 0; i < 65; i++) {
        struct bh_pool *p;
        (void)snprintf(names[i], sizeof(names[i]), "p%u", i);
        p = add_pool(&f, names[i], BH_MECH_WHOLE, BH_TIER_CONTAINER, 0, 0, "t", NULL);
        for (uint32_t k = 0; k < 8; k++)
            if ((i + 1) >> k & 1)
                *bh_vec_push(&p->match.gpus) = k;
    }
    const struct bh_admit_config config = {.today = TODAY};
    struct bh_admit *a = NULL;
    struct bh_err err = {0};
    (void)fixture_link(&f);
    CHECK_EQ(bh_admit_new(&f.policy, &f.fleet, &config, NULL, &a, &err), BH_TOO_LARGE);
    CHECK(!a && strstr(err.msg, "p64"));
    fixture_fini(&f);
}

TEST_MAIN
