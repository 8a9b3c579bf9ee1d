/* SPDX-License-Identifier: Apache-2.0 */
/* queue_share_test.c - divisions done by hand, and what holds for every division. */
#include "core/sched/queue.h"

#include "core/sched/queue_fixture.h"

/* A queue that asks for so many GPUs. */
static uint32_t asking(struct bh_queues *t, uint32_t parent, struct bh_queue_config c, uint64_t n)
{
    const uint32_t q = put(t, parent, c);
    event(t, BH_CHARGE_SUBMIT, work(q, n));
    return q;
}

TEST(what_is_deserved_first_then_by_weight)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 20);
    const uint32_t a = asking(&t, 0, leaf_config(0, 4, 1), 100), b = asking(&t, 0, leaf_config(0, 4, 3), 100),
                   c = asking(&t, 0, leaf_config(0, 8, 1),
                              4); /* wants less than it deserves: the rest is lent */
    CHECK_EQ(bh_queues_refresh(&t, 0), 1);
    CHECK_EQ(fair_gpus(&t, a), 4 + 2);
    CHECK_EQ(fair_gpus(&t, b), 4 + 6);
    CHECK_EQ(fair_gpus(&t, c), 4);
}

TEST(who_wants_little_leaves_the_rest_to_the_others)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 30);
    const uint32_t a = asking(&t, 0, leaf_config(0, 0, 1), 2), b = asking(&t, 0, leaf_config(0, 0, 1), 12),
                   c = asking(&t, 0, leaf_config(0, 0, 1), 50);
    bh_queues_refresh(&t, 0);
    CHECK_EQ(fair_gpus(&t, a), 2);
    CHECK_EQ(fair_gpus(&t, b), 12);
    CHECK_EQ(fair_gpus(&t, c), 16);
}

TEST(a_guarantee_is_a_share_also_when_idle)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 10);
    const uint32_t idle = put(&t, 0, leaf_config(3, 0, 1)), busy = asking(&t, 0, leaf_config(0, 0, 1), 50);
    bh_queues_refresh(&t, 0);
    CHECK_EQ(fair_gpus(&t, idle), 3);
    CHECK_EQ(fair_gpus(&t, busy), 7);
}

TEST(queues_of_higher_priority_share_the_rest_first)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 10);
    struct bh_queue_config c = leaf_config(0, 1, 1);
    const uint32_t low = asking(&t, 0, c, 50);
    c.priority = 5;
    const uint32_t high = asking(&t, 0, c, 6);
    bh_queues_refresh(&t, 0);
    CHECK_EQ(fair_gpus(&t, high), 6);
    CHECK_EQ(fair_gpus(&t, low), 4);
}

TEST(more_promised_than_there_is_is_cut_in_proportion)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 12);
    const uint32_t a = asking(&t, 0, leaf_config(0, 16, 1), 50), b = asking(&t, 0, leaf_config(0, 8, 9), 50);
    bh_queues_refresh(&t, 0);
    CHECK_EQ(fair_gpus(&t, a), 8);
    CHECK_EQ(fair_gpus(&t, b), 4);
    const uint32_t kept = put(&t, 0, leaf_config(9, 0, 1));
    bh_queues_refresh(&t, 0);
    CHECK_EQ(fair_gpus(&t, kept), 9); /* guarantees before what is merely deserved */
    CHECK_EQ(fair_gpus(&t, a), 2);
    CHECK_EQ(fair_gpus(&t, b), 1);
}

TEST(whole_gpus_and_the_last_ones_by_remainder)
{
    struct bh_queues_config config = plain_config();
    struct bh_queues t BH_AUTO(bh_queues_fini);
    const struct bh_resources total = gpus(10);
    config.quantum[BH_RES_GPU] = GPU;
    bh_queues_init(&t, &config);
    bh_queues_total(&t, &total);
    const uint32_t a = asking(&t, 0, leaf_config(0, 0, 5), 50), b = asking(&t, 0, leaf_config(0, 0, 7), 50),
                   c = asking(&t, 0, leaf_config(0, 0, 3), 50); /* 3.33, 4.67, 2.00 */
    bh_queues_refresh(&t, 0);
    CHECK_EQ(bh_queue_get(&t, a)->fair.at[BH_RES_GPU], 3 * GPU);
    CHECK_EQ(bh_queue_get(&t, b)->fair.at[BH_RES_GPU], 5 * GPU);
    CHECK_EQ(bh_queue_get(&t, c)->fair.at[BH_RES_GPU], 2 * GPU);
    const struct bh_resources odd = {{10500}}; /* a piece smaller than a quantum is not lost */
    bh_queues_total(&t, &odd);
    bh_queues_refresh(&t, 0);
    CHECK_EQ(bh_queue_get(&t, a)->fair.at[BH_RES_GPU] + bh_queue_get(&t, b)->fair.at[BH_RES_GPU] +
                 bh_queue_get(&t, c)->fair.at[BH_RES_GPU],
             10500);
}

/* Two alike; one had the whole fleet for long. */
TEST(history_moves_the_shares)
{
    struct bh_queues_config config = plain_config();
    struct bh_queues t BH_AUTO(bh_queues_fini);
    const struct bh_resources total = gpus(100);
    config.half_life_ms = HOUR;
    config.history_k = BH_HISTORY_ONE / 2;
    config.sample_ms = HOUR;
    bh_queues_init(&t, &config);
    bh_queues_total(&t, &total);
    const uint32_t a = asking(&t, 0, leaf_config(0, 0, 1), 400), b = asking(&t, 0, leaf_config(0, 0, 1), 400);
    struct bh_charge all = work(a, 100);
    bh_queue_apply(&t, BH_CHARGE_FOUND, &all, 0);
    bh_queues_refresh(&t, 0);
    CHECK_EQ(fair_gpus(&t, a), 50);
    CHECK_EQ(bh_queues_refresh(&t, HOUR / 2), 0); /* not looked at again yet */
    CHECK_EQ(bh_queues_refresh(&t, 100 * HOUR), 1);
    /* w' = 1/2 each, past usage 1 and 0: 1/2 + (1/2 - 1)/2 = 1/4 against 1/2 + 1/4 = 3/4 */
    CHECK_EQ(fair_gpus(&t, a), 25);
    CHECK_EQ(fair_gpus(&t, b), 75);
    bh_queue_apply(&t, BH_CHARGE_END, &all, 100 * HOUR);
    bh_queues_refresh(&t, 101 * HOUR); /* half of it is forgotten: 1/2, so 1/2 + 0 against 3/4 */
    CHECK_EQ(fair_gpus(&t, a), 40);
    CHECK_EQ(fair_gpus(&t, b), 60);
}

TEST(history_leaves_nothing_idle)
{
    struct bh_queues_config config = plain_config();
    struct bh_queues t BH_AUTO(bh_queues_fini);
    const struct bh_resources total = gpus(10);
    config.half_life_ms = HOUR;
    config.history_k = BH_HISTORY_MAX;
    bh_queues_init(&t, &config);
    bh_queues_total(&t, &total);
    const uint32_t a = asking(&t, 0, leaf_config(0, 0, 1), 400), b = asking(&t, 0, leaf_config(0, 0, 1), 3);
    struct bh_charge all = work(a, 10);
    bh_queue_apply(&t, BH_CHARGE_FOUND, &all, 0);
    bh_queues_refresh(&t, 100 * HOUR);
    CHECK_EQ(bh_queue_get(&t, a)->pull, 0); /* it had so much that it has no pull left */
    CHECK_EQ(fair_gpus(&t, b), 3);
    CHECK_EQ(fair_gpus(&t, a), 7); /* yet nobody else wants this */
}

TEST(only_what_changed_is_divided)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    uint32_t leaves[4][4];
    plain_tree(&t, 64);
    for (int i = 0; i < 4; i++) {
        struct bh_queue_config c = leaf_config(0, 16, 1);
        c.limit.at[BH_RES_GPU] = 16 * GPU;
        const uint32_t team = put(&t, 0, c);
        for (int k = 0; k < 4; k++)
            leaves[i][k] = asking(&t, team, leaf_config(0, 4, 1), 20);
    }
    CHECK_EQ(bh_queues_refresh(&t, 0), 5);
    CHECK_EQ(bh_queues_refresh(&t, 0), 0);
    event(&t, BH_CHARGE_START, work(leaves[1][2], 20)); /* started: wanted as before */
    CHECK_EQ(bh_queues_refresh(&t, 0), 0);
    event(&t, BH_CHARGE_WITHDRAW, work(leaves[2][0], 20));
    CHECK_EQ(bh_queues_refresh(&t, 0), 1); /* its team wants more than its limit in any case */
    CHECK_EQ(fair_gpus(&t, leaves[2][0]), 0);
    CHECK_EQ(fair_gpus(&t, leaves[2][1]), 5);
}

static bool divisions_hold(const struct bh_queues *t)
{
    for (size_t i = 0; i < t->at.n; i++) {
        const struct bh_queue *q = &t->at.at[i];
        BH_EACH_RES(r)
        {
            uint64_t sum = 0, short_of = 0;
            if (!(t->config.divided >> r & 1) || bh_queue_leaf(q))
                continue;
            for (uint32_t c = q->first_child; c != BH_QUEUE_NONE; c = t->at.at[c].next_sibling) {
                const struct bh_queue *ch = &t->at.at[c];
                sum += ch->fair.at[r];
                if (ch->fair.at[r] > bh_most(ch->wanted.at[r], ch->kept.at[r]))
                    return false; /* more than it could use */
                short_of += ch->config.weight && ch->wanted.at[r] > ch->fair.at[r];
            }
            if (sum > q->fair.at[r] || (short_of && sum < q->fair.at[r]))
                return false; /* given twice, or idle beside somebody who wants it */
        }
    }
    return true;
}

/*
 * The claims come before the rest: below its entitlement only if all of it went to guarantees and
 * entitlements.
 */
static bool claims_come_first(const struct bh_queues *t)
{
    for (size_t i = 0; i < t->at.n; i++) {
        const struct bh_queue *q = &t->at.at[i];
        BH_EACH_RES(r)
        {
            bool below = false, above = false;
            if (!(t->config.divided >> r & 1))
                continue;
            for (uint32_t c = q->first_child; c != BH_QUEUE_NONE; c = t->at.at[c].next_sibling) {
                const struct bh_queue *ch = &t->at.at[c];
                const uint64_t entitled = ch->entitled.at[r] == BH_AMOUNT_ANY ? 0 : ch->entitled.at[r];
                below |= ch->fair.at[r] < bh_least(entitled, ch->wanted.at[r]);
                above |= ch->fair.at[r] > bh_most(entitled, ch->kept.at[r]);
            }
            if (below && above)
                return false;
        }
    }
    return true;
}

TEST(random_trees)
{
    static struct world w;
    uint8_t bytes[16384];
    for (uint64_t seed = 0; seed < 400; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        draw_world(&w, &c, false);
        fill_world(&w, 0);
        bh_queues_refresh(&w.t, HOUR);
        bool good = divisions_hold(&w.t) && claims_come_first(&w.t);
        for (int i = 0; i < 20; i++) { /* and after changes the same as from the beginning */
            struct job *j = &w.jobs[bh_choose(&c, w.n_jobs)];
            if (j->state == ABSENT)
                continue;
            bh_queue_apply(&w.t, j->state == RUNS ? BH_CHARGE_END : BH_CHARGE_WITHDRAW, &j->charge, HOUR);
            j->state = ABSENT;
        }
        bh_queues_refresh(&w.t, HOUR);
        const size_t size = w.t.at.n * sizeof(struct bh_queue);
        struct bh_queue *before BH_AUTOFREE = bh_alloc(1, size);
        memcpy(before, w.t.at.at, size);
        memset(w.t.dirty, 1, w.t.at.n);
        bh_queues_refresh(&w.t, HOUR);
        good = good && divisions_hold(&w.t) && !memcmp(before, w.t.at.at, size);
        bh_queues_fini(&w.t);
        CHECK(good);
    }
}

TEST_MAIN
