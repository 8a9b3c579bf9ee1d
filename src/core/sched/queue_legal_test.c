/* SPDX-License-Identifier: Apache-2.0 */
/* queue_legal_test.c - each thing that can stand in the way, with its numbers; and what priority is worth. */
#include "core/sched/queue.h"

#include "core/sched/queue_fixture.h"

static bool asks(const struct bh_queues *t, struct bh_charge c, bool firm, struct bh_queue_reason *why)
{
    c.firm = firm;
    return bh_queue_may_start(t, &c, why);
}

static bool says(const struct bh_queue_reason *w, enum bh_queue_why why, uint32_t queue, uint64_t used,
                 uint64_t bound)
{
    return w->why == why && w->queue == queue && w->res == BH_RES_GPU && w->used == used * GPU &&
           w->bound == bound * GPU;
}

TEST(the_limit_that_binds_is_named)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 20);
    struct bh_queue_config c = leaf_config(0, 4, 1);
    c.limit.at[BH_RES_GPU] = 10 * GPU;
    const uint32_t team = put(&t, 0, c);
    const uint32_t a = put(&t, team, leaf_config(0, 4, 1));
    c = leaf_config(0, 3, 1);
    c.model = BH_QUOTA_HARD;
    const uint32_t hard = put(&t, 0, c);
    c = leaf_config(0, 0, 1);
    c.share_max_ppm = 300000;
    const uint32_t small = put(&t, 0, c);
    const uint32_t free = put(&t, 0, leaf_config(0, 0, 1));
    event(&t, BH_CHARGE_FOUND, work(a, 8));
    CHECK(asks(&t, work(a, 2), false, &why));
    CHECK_EQ(why.why, BH_QUEUE_FREE);
    CHECK(!asks(&t, work(a, 3), false, &why));
    CHECK(says(&why, BH_QUEUE_LIMIT, team, 8, 10));
    CHECK_EQ(why.asked, 3 * GPU);
    CHECK(!asks(&t, work(hard, 4), false, &why));
    CHECK(says(&why, BH_QUEUE_HARD, hard, 0, 3));
    CHECK(!asks(&t, work(small, 7), false, &why));
    CHECK(says(&why, BH_QUEUE_SHARE_MAX, small, 0, 6));
    CHECK(!asks(&t, work(free, 13), false, &why));
    CHECK(says(&why, BH_QUEUE_TOTAL, 0, 8, 20));
    for (int w = 0; w < BH_QUEUE_WHYS; w++)
        CHECK(strlen(bh_queue_why_text((enum bh_queue_why)w)) > 5);
}

TEST(a_guarantee_is_never_lent)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 10);
    const uint32_t a = put(&t, 0, leaf_config(4, 0, 1)), b = put(&t, 0, leaf_config(0, 2, 1));
    CHECK(asks(&t, work(b, 6), false, &why));
    CHECK(!asks(&t, work(b, 7), false, &why));
    CHECK(says(&why, BH_QUEUE_KEPT, 0, 0, 10));
    CHECK_EQ(why.kept, 4 * GPU);
    event(&t, BH_CHARGE_FOUND, work(b, 6));
    CHECK(asks(&t, work(a, 4), true, &why));
    event(&t, BH_CHARGE_FOUND, work(a, 4));
    CHECK(!asks(&t, work(a, 1), false, &why)); /* now the fleet is full */
    CHECK(says(&why, BH_QUEUE_TOTAL, 0, 10, 10));
}

TEST(a_guarantee_stands_when_the_fleet_shrinks)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 10);
    const uint32_t a = put(&t, 0, leaf_config(6, 0, 1)), b = put(&t, 0, leaf_config(6, 0, 1)),
                   c = put(&t, 0, leaf_config(0, 5, 1));
    CHECK(asks(&t, work(a, 6), true, &why)); /* more is promised than there is; its own part is its own */
    CHECK(!asks(&t, work(c, 1), false, &why));
    CHECK_EQ(why.why, BH_QUEUE_KEPT);
    event(&t, BH_CHARGE_FOUND, work(a, 6));
    CHECK(asks(&t, work(b, 4), true, &why));
    CHECK(!asks(&t, work(b, 5), true, &why));
    CHECK_EQ(why.why, BH_QUEUE_TOTAL);
}

TEST(only_what_can_be_interrupted_borrows)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 100);
    const uint32_t team = put_group(&t, 0), a = put(&t, team, leaf_config(1, 3, 1));
    CHECK(asks(&t, work(a, 9), false, &why));
    CHECK(asks(&t, work(a, 4), true, &why));
    CHECK(!asks(&t, work(a, 5), true, &why));
    CHECK(says(&why, BH_QUEUE_FIRM, a, 0, 4));
    event(&t, BH_CHARGE_FOUND, work(a, 9));
    CHECK(asks(&t, work(a, 4), true, &why)); /* what borrows can be evicted for it */
    CHECK(!bh_queue_within(bh_queue_get(&t, a), &(struct bh_resources){{1}}));
    CHECK(bh_queue_within(bh_queue_get(&t, a),
                          &(struct bh_resources){{0, 0, 5}})); /* nothing is said about processors */
}

TEST(models_of_gpus_have_quotas_of_their_own)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 100);
    struct bh_resources total = gpus(100);
    total.at[BH_RES_MODEL0 + 2] = 8 * GPU;
    bh_queues_total(&t, &total);
    struct bh_queue_config c = leaf_config(0, 50, 1);
    c.limit.at[BH_RES_MODEL0 + 2] = 4 * GPU;
    const uint32_t a = put(&t, 0, c);
    struct bh_charge one = work(a, 6);
    one.amount.at[BH_RES_MODEL0 + 2] = 6 * GPU;
    CHECK(!bh_queue_may_start(&t, &one, &why));
    CHECK_EQ(why.why, BH_QUEUE_LIMIT);
    CHECK_EQ(why.res, BH_RES_MODEL0 + 2);
    CHECK_EQ(why.bound, 4 * GPU);
}

/* Who has a budget for two GPUs, and calls everything critical. */
TEST(calling_everything_high_is_worth_nothing)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    uint32_t by;
    plain_tree(&t, 100);
    struct bh_queue_config c = leaf_config(0, 10, 1);
    c.model = BH_QUOTA_PRIORITY;
    c.band_max = BH_PRIORITY_HIGH;
    c.budget = 2 * GPU * HOUR;
    c.budget_period_ms = 10 * HOUR;
    const uint32_t q = put(&t, 0, c), modest = put(&t, 0, leaf_config(0, 10, 1));
    CHECK_EQ(bh_queue_band(&t, modest, BH_PRIORITY_HIGH, GPU, 0, &by), BH_PRIORITY_NORMAL);
    CHECK_EQ(by, modest);
    CHECK_EQ(bh_queue_band(&t, q, BH_PRIORITY_LOW, GPU, 0, &by), BH_PRIORITY_LOW);
    CHECK_EQ(by, BH_QUEUE_NONE);
    unsigned high = 0;
    for (int i = 0; i < 50; i++) {
        struct bh_charge one = work(q, 1);
        one.band = bh_queue_band(&t, q, BH_PRIORITY_CRITICAL, GPU, 0, &by);
        CHECK_EQ(by, q);
        CHECK(one.band != BH_PRIORITY_CRITICAL); /* its highest is less */
        high += one.band == BH_PRIORITY_HIGH;
        event(&t, BH_CHARGE_FOUND, one);
    }
    CHECK_EQ(high, 2);
    CHECK_EQ(bh_queue_band(&t, q, BH_PRIORITY_HIGH, 1, 0, &by), BH_PRIORITY_NORMAL);
}

TEST(a_budget_above_counts_too)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    uint32_t by;
    plain_tree(&t, 100);
    struct bh_queue_config c = leaf_config(0, 10, 1);
    c.band_max = BH_PRIORITY_CRITICAL;
    c.budget = GPU * HOUR;
    const uint32_t team = put(&t, 0, c);
    c.budget = 100 * GPU * HOUR;
    const uint32_t q = put(&t, team, c);
    CHECK_EQ(bh_queue_band(&t, q, BH_PRIORITY_CRITICAL, GPU, 0, &by), BH_PRIORITY_CRITICAL);
    CHECK_EQ(bh_queue_band(&t, q, BH_PRIORITY_CRITICAL, 2 * GPU, 0, &by), BH_PRIORITY_NORMAL);
    CHECK_EQ(by, team);
}

TEST(where_paths_part)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 1);
    const uint32_t a = put_group(&t, 0), b = put_group(&t, 0), a1 = put_group(&t, a),
                   a2 = put(&t, a, leaf_config(0, 0, 1)), a11 = put(&t, a1, leaf_config(0, 0, 1)),
                   b1 = put(&t, b, leaf_config(0, 0, 1));
    const uint32_t cases[][4] = {
        {a11, b1, a, b}, {a11, a2, a1, a2}, {a2, a11, a2, a1}, {a11, a11, a11, a11}, {b1, a2, b, a}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        uint32_t x = cases[i][0], y = cases[i][1];
        bh_queue_fork(&t, &x, &y);
        CHECK_EQ(x, cases[i][2]);
        CHECK_EQ(y, cases[i][3]);
    }
}

TEST_MAIN
