/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"

#include "base/str.h"

static struct fixture f, h;
static bh_admit_changes changes;

static void begin(void)
{
    lab(&f);
    lab(&h);
    bh_vec_fini(&changes);
}

static bool compare(const struct bh_admit_ask *live, size_t n)
{
    struct bh_admit *a = lab_admit(&f, NULL), *b = lab_admit(&h, a);
    if (a && b)
        bh_admit_diff(a, b, live, n, &changes);
    bh_admit_free(b);
    bh_admit_free(a);
    return a && b;
}

static void end(void)
{
    bh_vec_fini(&changes);
    fixture_fini(&f);
    fixture_fini(&h);
}

static const struct bh_admit_change *find(enum bh_admit_change_kind kind, const char *tenant,
                                          const char *pool, const char *field)
{
    for (size_t i = 0; i < changes.n; i++) {
        const struct bh_admit_change *x = &changes.at[i];
        if (x->kind == kind && bh_str_eq(x->tenant, tenant) && bh_str_eq(x->pool, pool) &&
            bh_str_eq(x->field, field))
            return x;
    }
    return NULL;
}

TEST(changes_have_words)
{
    for (int i = 0; i < BH_CHANGEDS; i++)
        CHECK(*bh_admit_change_str((enum bh_admit_change_kind)i));
}

TEST(the_same_policy_changes_nothing)
{
    begin();
    const struct bh_admit_ask live = {.id = 1, .tenant = "ops", .pool = "whole"};
    CHECK(compare(&live, 1));
    CHECK_EQ(changes.n, 0);
    end();
}

TEST(quotas_are_raised_and_lowered)
{
    begin();
    h.policy.tenants.at[0].quota.gpus_milli = 5000;
    h.policy.tenants.at[1].quota.gpus_milli = 1000;
    h.policy.tenants.at[1].priority.ceiling = BH_PRIORITY_HIGH;
    CHECK(compare(NULL, 0));
    const struct bh_admit_change *x = find(BH_CHANGED_QUOTA_RAISED, "research", NULL, "gpus");
    CHECK(x && x->from == 4000 && x->to == 5000 && !x->worse);
    x = find(BH_CHANGED_QUOTA_LOWERED, "ops", NULL, "max");
    CHECK(x && x->from == 2000 && x->to == 1000 && x->worse);
    x = find(BH_CHANGED_TERMS, "ops", NULL, "priority");
    CHECK(x && bh_str_eq(x->from_text, "normal") && bh_str_eq(x->to_text, "high"));
    CHECK_EQ(changes.n, 4);
    end();
}

TEST(a_speed_that_is_limited_is_less_than_one_that_is_not)
{
    begin();
    h.policy.tenants.at[0].bandwidth.disk = BH_GIB;
    CHECK(compare(NULL, 0));
    const struct bh_admit_change *x = find(BH_CHANGED_QUOTA_LOWERED, "research", NULL, "bandwidth.disk");
    CHECK(x && x->from == BH_AMOUNT_ANY && x->to == BH_GIB && x->worse);
    CHECK_EQ(changes.n, 1);
    end();
}

TEST(tenants_and_pools_come_and_go)
{
    begin();
    h.policy.tenants.at[1].name = "newcomer";
    h.policy.pools.at[0].tenant_names.at[1].s = "newcomer";
    h.policy.pools.at[2].tenant_names.n = 1;
    h.policy.pools.at[3].name = "mps2";
    h.policy.pools.at[1].tier = BH_TIER_SANDBOX;
    CHECK(compare(NULL, 0));
    CHECK(find(BH_CHANGED_TENANT_ADDED, "newcomer", NULL, NULL));
    CHECK(find(BH_CHANGED_TENANT_REMOVED, "ops", NULL, NULL));
    CHECK(find(BH_CHANGED_POOL_ADDED, NULL, "mps2", NULL));
    CHECK(find(BH_CHANGED_POOL_REMOVED, NULL, "mps", NULL));
    CHECK(find(BH_CHANGED_POOL_JOINED, "research", "mps2", NULL));
    CHECK(find(BH_CHANGED_POOL_LEFT, "research", "mps", NULL));
    CHECK(find(BH_CHANGED_TERMS, NULL, "cut", "tier"));
    end();
}

TEST(work_that_would_be_refused_is_named_with_its_reason)
{
    begin();
    h.policy.pools.at[0].match.gpus.n = 1;
    h.policy.tenants.at[1].priority.ceiling = BH_PRIORITY_LOW;
    const struct bh_admit_ask live[] = {
        {.id = 7, .tenant = "research", .pool = "whole", .gpus = 2, .gang = true},
        {.id = 8, .tenant = "ops", .has_priority = true, .priority = BH_PRIORITY_NORMAL},
        {.id = 9, .tenant = "research", .pool = "shares"},
    };
    CHECK(compare(live, BH_COUNT_OF(live)));
    const struct bh_admit_change *x = find(BH_CHANGED_WORK, "research", "whole", NULL);
    CHECK(x && x->job == 7 && x->why.code == BH_ADMIT_SIZE);
    x = find(BH_CHANGED_WORK, "ops", NULL, NULL);
    CHECK(x && x->job == 8 && x->why.code == BH_ADMIT_PRIORITY);
    CHECK(!find(BH_CHANGED_WORK, "research", "shares", NULL));
    x = find(BH_CHANGED_GPUS, NULL, "whole", "gpus");
    CHECK(x && x->from == 2 && x->to == 1);
    CHECK(find(BH_CHANGED_MACHINE, NULL, NULL, NULL));
    end();
}

TEST_MAIN
