/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"

static struct fixture f;
static struct bh_admit *a;
static struct bh_admit_grant g;
static struct bh_admit_refusal why;

static void end(void)
{
    bh_admit_free(a);
    fixture_fini(&f);
}

static enum bh_admit_code ask_(struct bh_admit_ask ask)
{
    ask.gang = true;
    return bh_admit_job(a, &ask, &g, &why) ? BH_ADMIT_OK : why.code;
}
#define ASK(...) ask_((struct bh_admit_ask){.id = 1, __VA_ARGS__})

/* Every refusal says what was needed, what was there and what to do. */
static bool speaks(void)
{
    return *why.what && *why.needed && *why.there && *why.next;
}

TEST(codes_have_words)
{
    for (int i = 0; i < BH_ADMIT_CODES; i++)
        CHECK(*bh_admit_code_str((enum bh_admit_code)i));
}

TEST(who_is_not_in_the_policy_gets_nothing)
{
    lab(&f);
    (void)add_tenant(&f, "poolless", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "nobody"), BH_ADMIT_NO_TENANT);
    CHECK(speaks());
    CHECK_EQ(ASK(.pool = "whole"), BH_ADMIT_NO_TENANT);
    CHECK_EQ(ASK(.tenant = "ops", .pool = "nowhere"), BH_ADMIT_NO_POOL);
    CHECK(speaks());
    CHECK_EQ(ASK(.tenant = "ops", .pool = "cut"), BH_ADMIT_NOT_YOURS);
    CHECK(speaks());
    CHECK_EQ(ASK(.tenant = "poolless"), BH_ADMIT_NO_POOL);
    CHECK(speaks());
    end();
}

TEST(the_first_pool_that_takes_it)
{
    lab(&f);
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "research"), BH_ADMIT_OK);
    CHECK_EQ(g.pool, 0);
    CHECK_EQ(ASK(.tenant = "research", .profile = "3g.40gb"), BH_ADMIT_OK);
    CHECK_EQ(g.pool, 1);
    CHECK_EQ(ASK(.tenant = "research", .share_milli = 200), BH_ADMIT_OK);
    CHECK_EQ(g.pool, 2);
    /* Nobody takes it: told by the pool that came furthest. */
    CHECK_EQ(ASK(.tenant = "research", .gpus = 9, .can = BH_CAN_REQUEUE), BH_ADMIT_SIZE);
    CHECK(speaks());
    end();
}

TEST(priority_has_a_ceiling)
{
    lab(&f);
    f.policy.tenants.at[1].priority.ceiling = BH_PRIORITY_LOW;
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "research", .has_priority = true, .priority = BH_PRIORITY_HIGH),
             BH_ADMIT_PRIORITY);
    CHECK(speaks());
    CHECK_EQ(ASK(.tenant = "research", .has_priority = true, .priority = BH_PRIORITY_LOW), BH_ADMIT_OK);
    CHECK_EQ(g.job.band, BH_PRIORITY_LOW);
    CHECK_EQ(ASK(.tenant = "ops"), BH_ADMIT_OK);
    CHECK_EQ(g.job.band, BH_PRIORITY_LOW); /* who says nothing gets no more than it may */
    end();
}

TEST(a_weaker_tier_than_the_pools_is_refused_and_a_stronger_one_judged)
{
    lab(&f);
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "research", .pool = "whole", .has_tier = true, .tier = BH_TIER_PROCESS),
             BH_ADMIT_TIER);
    CHECK(speaks());
    CHECK_EQ(ASK(.tenant = "research", .pool = "whole", .has_tier = true, .tier = BH_TIER_VM), BH_ADMIT_OK);
    CHECK_EQ(g.tier, BH_TIER_VM);
    CHECK_EQ(ASK(.tenant = "research", .pool = "shares", .has_tier = true, .tier = BH_TIER_VM),
             BH_ADMIT_RULE);
    CHECK_STR(why.rule->id, "BH-013"); /* no share can be given to a VM */
    CHECK(speaks());
    end();
}

TEST(what_cannot_be_set_up_here_is_refused)
{
    lab(&f);
    const struct bh_admit_config config = {.today = TODAY,
                                           .tiers = 1u << BH_TIER_PROCESS,
                                           .mechanisms = 1u << BH_MECH_GATE | 1u << BH_MECH_WHOLE};
    (void)fixture_link(&f);
    CHECK_EQ(bh_admit_new(&f.policy, &f.fleet, &config, NULL, &a, NULL), 0);
    CHECK_EQ(ASK(.tenant = "research", .pool = "whole"), BH_ADMIT_NOT_HERE); /* a container */
    CHECK_EQ(ASK(.tenant = "research", .pool = "mps"), BH_ADMIT_NOT_HERE);
    /* What runs does not need to be set up any more; the policy still holds for it. */
    CHECK_EQ(ASK(.tenant = "research", .pool = "whole", .runs = true), BH_ADMIT_OK);
    CHECK_EQ(ASK(.tenant = "research", .pool = "mps", .runs = true), BH_ADMIT_OK);
    CHECK_EQ(ASK(.tenant = "ops", .pool = "mps", .runs = true), BH_ADMIT_NOT_YOURS);
    CHECK_EQ(ASK(.tenant = "research", .pool = "shares"), BH_ADMIT_OK);
    end();
}

TEST(more_than_the_quota_is_refused_at_once)
{
    lab(&f);
    f.policy.tenants.at[1].quota.gpus_milli = 1000;
    f.policy.tenants.at[0].quota.gpus_milli = 1000;
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "ops", .pool = "whole", .gpus = 2, .can = BH_CAN_REQUEUE), BH_ADMIT_QUOTA);
    CHECK(speaks());
    CHECK_EQ(ASK(.tenant = "research", .pool = "whole", .gpus = 2),
             BH_ADMIT_QUOTA); /* borrowed, and not interruptible */
    CHECK(strstr(why.next, "paused"));
    CHECK_EQ(ASK(.tenant = "research", .pool = "whole", .gpus = 2, .can = BH_CAN_PAUSE), BH_ADMIT_OK);
    CHECK(!g.job.firm);
    end();
}

TEST(a_quota_above_counts_too)
{
    lab(&f);
    struct bh_tenant *t = add_tenant(&f, "dept", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 1000);
    t->quota.has_max = true;
    t->quota.max_milli = 1000;
    f.policy.tenants.at[1].parent = "dept";
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "ops", .pool = "whole", .gpus = 2, .can = BH_CAN_REQUEUE), BH_ADMIT_QUOTA);
    CHECK(strstr(why.what, "dept"));
    end();
}

TEST(sites_and_drivers_are_named)
{
    lab(&f);
    f.policy.tenants.at[0].site = "eu";
    *bh_vec_push(&f.policy.tenants.at[1].drivers) = (struct bh_text){.s = "535"};
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "research", .pool = "whole"), BH_ADMIT_SITE);
    CHECK(speaks());
    CHECK_EQ(ASK(.tenant = "ops", .pool = "whole"), BH_ADMIT_DRIVER);
    CHECK_STR(why.rule->id, "BH-050");
    CHECK(speaks());
    CHECK_STR(why.there, "driver 580.159.03");
    end();
}

TEST(what_needs_one_fabric_stays_in_one)
{
    fixture_init(&f);
    (void)add_tenant(&f, "t", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 16000);
    static const char *const names[] = {"n0", "n1"};
    for (int i = 0; i < 2; i++) {
        struct bh_fleet_node *n = fixture_node(&f, names[i], "H100-80GB", 4);
        for (int k = 0; k < 4; k++)
            n->gpus.at[k].fabric = i ? "B" : "A";
    }
    (void)add_pool(&f, "p", BH_MECH_WHOLE, BH_TIER_CONTAINER, 0, 4, "t", NULL);
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "t", .gpus = 8), BH_ADMIT_SPAN);
    CHECK_STR(why.rule->id, "BH-040");
    CHECK(speaks());
    CHECK_EQ(ASK(.tenant = "t", .gpus = 8, .allow_span = true), BH_ADMIT_OK);
    CHECK_EQ(g.job.roles[0].min, 2);
    CHECK_EQ(g.job.within, BH_LEVEL_ANY);
    CHECK_EQ(ASK(.tenant = "t", .gpus = 8, .allow_span = true, .needs_nvlink = true), BH_ADMIT_SPAN);
    CHECK_EQ(ASK(.tenant = "t", .gpus = 4, .needs_nvlink = true), BH_ADMIT_OK);
    end();
}

TEST_MAIN
