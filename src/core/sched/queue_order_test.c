/* SPDX-License-Identifier: Apache-2.0 */
/* queue_order_test.c - each key decides where it should, and siblings are in a total order. */
#include "core/sched/queue_order.h"

#include "core/sched/queue_fixture.h"

static struct bh_turn turn(uint32_t queue, const struct bh_resources *amount)
{
    return (struct bh_turn){.queue = queue,
                            .amount = amount,
                            .band = BH_PRIORITY_NORMAL,
                            .deadline_ms = BH_TURN_NO_DEADLINE,
                            .id = 1};
}

/* a goes before b, by this key; and b after a. */
static bool ahead(const struct bh_queues *t, const struct bh_turn *a, const struct bh_turn *b,
                  enum bh_turn_key key)
{
    enum bh_turn_key one, other;
    return bh_turn_compare(t, a, b, 1000, &one) < 0 && bh_turn_compare(t, b, a, 1000, &other) > 0 &&
           one == key && other == key;
}

TEST(between_queues)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    const struct bh_resources one = gpus(1), four = gpus(4);
    plain_tree(&t, 100);
    struct bh_queue_config c = leaf_config(0, 2, 1);
    const uint32_t a = put(&t, 0, c), b = put(&t, 0, c);
    c.model = BH_QUOTA_PRIORITY;
    const uint32_t p = put(&t, 0, c);
    c.priority = 1;
    const uint32_t q = put(&t, 0, c);
    bh_queues_refresh(&t, 0);
    struct bh_turn x = turn(a, &four), y = turn(b, &one), z = turn(p, &four);
    CHECK(ahead(&t, &y, &x, BH_TURN_ENTITLED));
    x.band = BH_PRIORITY_HIGH; /* of a queue that is not by priority: counts in it only */
    z.band = BH_PRIORITY_LOW;
    CHECK(ahead(&t, &x, &z, BH_TURN_BAND));
    z.band = BH_PRIORITY_HIGH;
    CHECK(ahead(&t, &z, &x, BH_TURN_BAND));
    z.band = BH_PRIORITY_NORMAL;
    z.deadline_ms = 5000;
    CHECK(ahead(&t, &x, &z, BH_TURN_QUEUE)); /* over its entitlement, so that the deadline does not count */
    z.amount = x.amount = &one;
    CHECK(ahead(&t, &z, &x, BH_TURN_DEADLINE));
    z.deadline_ms = 100 * HOUR;
    CHECK(ahead(&t, &x, &z, BH_TURN_QUEUE)); /* not critical yet */
    z.runtime_ms = 99 * HOUR + HOUR / 2;
    CHECK(ahead(&t, &z, &x, BH_TURN_DEADLINE));
    struct bh_turn v = turn(q, &one);
    CHECK(ahead(&t, &v, &x, BH_TURN_QUEUE_PRIORITY));
    event(&t, BH_CHARGE_FOUND, work(a, 1));
    CHECK(ahead(&t, &y, &x, BH_TURN_SHARE));
    const struct bh_resources two = gpus(2);
    event(&t, BH_CHARGE_FOUND, work(a, 3));
    event(&t, BH_CHARGE_FOUND, work(b, 3));
    x.amount = &one; /* 5 and 5 with the work, 4 and 3 without */
    y.amount = &two;
    CHECK(ahead(&t, &y, &x, BH_TURN_SHARE_NOW));
}

TEST(a_share_is_for_its_weight)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    const struct bh_resources one = gpus(1);
    plain_tree(&t, 100);
    const uint32_t a = put(&t, 0, leaf_config(0, 0, 1)), b = put(&t, 0, leaf_config(0, 0, 3)),
                   none = put(&t, 0, leaf_config(0, 0, 0));
    bh_queues_refresh(&t, 0);
    event(&t, BH_CHARGE_FOUND, work(a, 3));
    event(&t, BH_CHARGE_FOUND, work(b, 10));
    const struct bh_turn x = turn(a, &one), y = turn(b, &one), z = turn(none, &one);
    CHECK(ahead(&t, &y, &x, BH_TURN_SHARE)); /* 11 of weight 3 against 4 of weight 1 */
    CHECK(ahead(&t, &x, &z, BH_TURN_SHARE)); /* without weight: what the others leave */
}

TEST(in_one_queue)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    const struct bh_resources one = gpus(1);
    plain_tree(&t, 100);
    const uint32_t a = put(&t, 0, leaf_config(0, 0, 1));
    struct bh_turn x = turn(a, &one), y = x;
    enum bh_turn_key key;
    CHECK_EQ(bh_turn_compare(&t, &x, &y, 0, &key), 0);
    CHECK_EQ(key, BH_TURN_SAME);
    y.id = 2;
    CHECK(ahead(&t, &x, &y, BH_TURN_ID));
    x.submit_ms = 5;
    CHECK(ahead(&t, &y, &x, BH_TURN_SUBMIT));
    x.user_rank = 7;
    CHECK(ahead(&t, &x, &y, BH_TURN_USER));
    y.priority = 3;
    CHECK(ahead(&t, &y, &x, BH_TURN_PRIORITY));
    x.deadline_ms = 2000;
    CHECK(ahead(&t, &x, &y, BH_TURN_DEADLINE));
    y.band = BH_PRIORITY_HIGH;
    CHECK(ahead(&t, &y, &x, BH_TURN_BAND));
    for (int k = 0; k < BH_TURN_KEYS; k++)
        CHECK(strlen(bh_turn_key_text((enum bh_turn_key)k)) > 1);
}

TEST(saturation)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 10);
    const uint32_t a = put(&t, 0, leaf_config(0, 4, 0)), b = put(&t, 0, leaf_config(0, 0, 0));
    event(&t, BH_CHARGE_FOUND, work(a, 6));
    event(&t, BH_CHARGE_FOUND, work(b, 1));
    bh_queues_refresh(&t, 0);
    CHECK_EQ(bh_ratio_cmp(bh_queue_saturation(&t, bh_queue_get(&t, a)), (struct bh_ratio){3, 2}), 0);
    CHECK_EQ(bh_ratio_cmp(bh_queue_saturation(&t, bh_queue_get(&t, b)), (struct bh_ratio){1, 0}), 0);
    CHECK_EQ(bh_ratio_cmp(bh_queue_dominant(&t, bh_queue_get(&t, a), NULL), (struct bh_ratio){6, 10}), 0);
}

static struct bh_turn draw_turn(const struct world *w, struct bh_choice *c, uint64_t id)
{
    struct bh_turn x = turn(0, NULL);
    const struct job *j = &w->jobs[bh_choose(c, w->n_jobs)];
    x.queue = j->charge.queue;
    x.amount = &j->charge.amount;
    x.band = (enum bh_priority)bh_choose(c, 4);
    x.deadline_ms = bh_choose(c, 2) ? bh_choose(c, 5) * HOUR : BH_TURN_NO_DEADLINE;
    x.runtime_ms = bh_choose(c, 3) * HOUR;
    x.priority = (int32_t)bh_choose(c, 3);
    x.user_rank = bh_choose(c, 3);
    x.submit_ms = bh_choose(c, 3);
    x.id = id;
    return x;
}

/* Level by level: of any three, one for each of three siblings or all of one queue, the order is one. */
TEST(siblings_are_in_a_total_order)
{
    static struct world w;
    uint8_t bytes[32768];
    uint32_t compared = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        bool good = true;
        draw_world(&w, &c, false);
        fill_world(&w, 0);
        bh_queues_refresh(&w.t, HOUR);
        for (int i = 0; i < 300; i++) {
            struct bh_turn x[3];
            enum bh_turn_key key;
            uint32_t p[6];
            for (uint32_t k = 0; k < 3; k++)
                x[k] = draw_turn(&w, &c, k);
            for (uint32_t k = 0; k < 6; k++) /* 0 1, 1 2, 2 0 */
                p[k] = x[(k / 2 + k % 2) % 3].queue;
            bh_queue_fork(&w.t, &p[0], &p[1]);
            bh_queue_fork(&w.t, &p[2], &p[3]);
            bh_queue_fork(&w.t, &p[4], &p[5]);
            if (p[1] != p[2] || p[3] != p[4] || p[5] != p[0] || (p[0] == p[1]) != (p[2] == p[3]) ||
                (p[0] == p[1]) != (p[4] == p[5]))
                continue; /* they part at different places, or one queue stands for two */
            const int ab = bh_turn_compare(&w.t, &x[0], &x[1], HOUR, &key),
                      bc = bh_turn_compare(&w.t, &x[1], &x[2], HOUR, &key),
                      ca = bh_turn_compare(&w.t, &x[2], &x[0], HOUR, &key);
            good = good && ab && bc && ca && !(ab == bc && bc == ca);
            compared++;
        }
        bh_queues_fini(&w.t);
        CHECK(good);
    }
    CHECK(compared > 1000);
}

/* A deadline counts inside the entitlements of the whole path, not only of the queue at its end. */
TEST(a_deadline_counts_below_a_team_that_is_within_its_own)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    const struct bh_resources one = gpus(1);
    struct bh_queue_config c = leaf_config(0, 100, 1);
    plain_tree(&t, 200);
    c.model = BH_QUOTA_PRIORITY;
    const uint32_t team = put(&t, 0, leaf_config(0, 2, 1)), a = put(&t, team, c), b = put(&t, team, c),
                   other = put(&t, 0, leaf_config(0, 2, 1)), d = put(&t, other, c);
    event(&t, BH_CHARGE_FOUND, work(a, 3)); /* more than the team deserves */
    event(&t, BH_CHARGE_FOUND, work(d, 2));
    bh_queues_refresh(&t, 0);
    struct bh_turn x = turn(a, &one), y = turn(d, &one), z = turn(b, &one);
    x.deadline_ms = 2000;
    CHECK(ahead(&t, &y, &x, BH_TURN_SHARE));
    CHECK(ahead(&t, &x, &z, BH_TURN_DEADLINE)); /* inside the team it still does */
    event(&t, BH_CHARGE_END, work(a, 2));
    event(&t, BH_CHARGE_END, work(d, 2));
    CHECK(ahead(&t, &x, &y, BH_TURN_DEADLINE));
}

TEST_MAIN
