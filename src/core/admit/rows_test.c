/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"

static const struct bh_queue_config *config(const struct bh_admit *a, uint32_t tenant)
{
    return &a->rows.at[a->leaf[tenant]].config;
}

TEST(the_three_models_become_amounts)
{
    struct fixture f;
    fixture_init(&f);
    (void)add_tenant(&f, "hard", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 4000);
    struct bh_tenant *t = add_tenant(&f, "more", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 4000);
    t->quota.has_max = true;
    t->quota.max_milli = 6000;
    (void)add_tenant(&f, "fair", BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 2000);
    t = add_tenant(&f, "loan", BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 2000);
    t->quota.borrow = true;
    t->quota.weight = 7;
    t = add_tenant(&f, "prio", BH_TRUST_INTERNAL, BH_QUOTA_PRIORITY, 1000);
    t->priority.ceiling = BH_PRIORITY_HIGH;
    t->priority.has_budget = true;
    t->priority.budget_ms = 3600000;
    t->quota.has_max = true;
    t->quota.max_milli = 500;
    (void)fixture_node(&f, "n", "H100-80GB", 8);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(config(a, 0)->guarantee.at[BH_RES_GPU], 4000);
    CHECK_EQ(bh_admit_most(config(a, 0)), 4000);
    CHECK_EQ(config(a, 1)->model, BH_QUOTA_FAIRSHARE); /* kept, and more may be borrowed */
    CHECK_EQ(config(a, 1)->guarantee.at[BH_RES_GPU], 4000);
    CHECK_EQ(bh_admit_most(config(a, 1)), 6000);
    CHECK_EQ(config(a, 2)->deserved.at[BH_RES_GPU], 2000);
    CHECK_EQ(bh_admit_most(config(a, 2)), 2000);
    CHECK(bh_admit_most(config(a, 3)) == BH_AMOUNT_ANY);
    CHECK_EQ(config(a, 3)->weight, 7);
    CHECK_EQ(config(a, 4)->band_max, BH_PRIORITY_HIGH);
    CHECK_EQ(config(a, 4)->budget,
             UINT64_C(3600) * 1000000);             /* one GPU for an hour, in millionths of a second */
    CHECK_EQ(bh_admit_entitled(config(a, 4)), 500); /* no more is promised than may be had */
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(instances_that_a_quota_names_are_parts_of_gpus)
{
    struct fixture f;
    lab(&f);
    struct bh_tenant *t = add_tenant(&f, "slices", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 0);
    t->quota.has_gpus = false;
    *bh_vec_push(&t->quota.resources) =
        (struct bh_amount){.resource = "nvidia.com/mig-3g.40gb", .milli = 2000};
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(bh_admit_entitled(config(a, 2)), 2 * (3000 / 7));
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(parents_are_queues_and_their_own_work_has_a_leaf)
{
    struct fixture f;
    fixture_init(&f);
    add_tenant(&f, "leaf", BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 1000)->parent = "dept";
    add_tenant(&f, "dept", BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 4000)->parent = "campus";
    (void)fixture_node(&f, "n", "H100-80GB", 8);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(a->rows.n, 5); /* root, campus, dept, leaf, dept's own */
    const struct bh_admit_row *leaf = &a->rows.at[a->leaf[0]], *own = &a->rows.at[a->leaf[1]];
    CHECK_STR(leaf->name, "leaf");
    CHECK_EQ(own->kind, BH_ROW_OWN);
    CHECK_EQ(leaf->parent, own->parent);
    CHECK_STR(a->rows.at[leaf->parent].name, "dept");
    CHECK_EQ(bh_admit_entitled(&a->rows.at[leaf->parent].config), 4000);
    CHECK_STR(a->rows.at[a->rows.at[leaf->parent].parent].name, "campus");
    CHECK_EQ(bh_admit_queue_tenant(a, a->leaf[1]), 1);
    CHECK_EQ(bh_admit_queue_tenant(a, 1), BH_NONE);
    CHECK_EQ(bh_admit_queue_tenant(a, 99), BH_NONE);
    struct bh_sched *s = lab_sched(a);
    CHECK(s);
    bh_sched_free(s);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(too_deep_a_tree_is_refused)
{
    struct fixture f;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    fixture_init(&f);
    for (int i = 0; i < 10; i++)
        add_tenant(&f, names[i], BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 0)->parent = i ? names[i - 1] : NULL;
    (void)fixture_node(&f, "n", "H100-80GB", 1);
    const struct bh_admit_config c = {.today = TODAY};
    struct bh_admit *a = NULL;
    struct bh_err err = {0};
    (void)fixture_link(&f);
    CHECK_EQ(bh_admit_new(&f.policy, &f.fleet, &c, NULL, &a, &err), BH_TOO_LARGE);
    CHECK(strstr(err.msg, "levels deep"));
    fixture_fini(&f);
}

TEST(queues_stay_with_their_tenants_under_another_policy)
{
    struct fixture f, g;
    lab(&f);
    lab(&g);
    (void)add_tenant(&g, "new", BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 1000);
    g.policy.tenants.at[0].quota.gpus_milli = 1000;
    g.policy.tenants.at[1].name = "renamed"; /* ops is gone */
    struct bh_admit *a = lab_admit(&f, NULL), *b = lab_admit(&g, a);
    CHECK(a && b);
    CHECK_EQ(b->leaf[0], a->leaf[0]);
    CHECK_EQ(b->leaf[1], 3);
    CHECK_EQ(b->leaf[2], 4);
    CHECK_EQ(bh_admit_queue_tenant(b, a->leaf[1]), BH_NONE);
    CHECK_EQ(bh_admit_most(&b->rows.at[a->leaf[1]].config), 0);
    /* And comes back to where it was. */
    struct bh_admit *c = lab_admit(&f, b);
    CHECK(c);
    CHECK_EQ(c->leaf[1], a->leaf[1]);
    CHECK_EQ(c->rows.n, b->rows.n);
    bh_admit_free(c);
    bh_admit_free(b);
    bh_admit_free(a);
    fixture_fini(&f);
    fixture_fini(&g);
}

TEST(a_tenant_that_gets_others_below_it_gets_new_queues)
{
    struct fixture f, g;
    lab(&f);
    lab(&g);
    add_tenant(&g, "child", BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 500)->parent = "research";
    struct bh_admit *a = lab_admit(&f, NULL), *b = lab_admit(&g, a);
    CHECK(a && b);
    CHECK(b->leaf[0] != a->leaf[0]);
    CHECK_EQ(bh_admit_queue_tenant(b, a->leaf[0]), BH_NONE); /* work that is there stays there */
    CHECK_EQ(b->rows.at[b->leaf[0]].parent, b->rows.at[b->leaf[2]].parent);
    bh_admit_free(b);
    bh_admit_free(a);
    fixture_fini(&f);
    fixture_fini(&g);
}

TEST_MAIN
