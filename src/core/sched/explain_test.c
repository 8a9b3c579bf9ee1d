/* SPDX-License-Identifier: Apache-2.0 */
/* explain_test.c - each reason by hand, and that what is said of random schedulers is true. */
#include "base/test.h"
#include "core/sched/explain.h"
#include "core/sched/whatif_fixture.h"

enum { TOWNS = 2000 };

/* A rack of two NVLink domains, each with two nodes of four GPUs; two queues. */
static void open_rack(struct town *t, uint64_t deserved_a, uint64_t limit_a)
{
    town_open(t, 2);
    const uint32_t rack = town_domain(t, BH_LEVEL_RACK, BH_NONE);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t link = town_domain(t, BH_LEVEL_LINK, rack);
        (void)town_node(t, link, 4, 0);
        (void)town_node(t, link, 4, 0);
    }
    (void)town_queue(t, BH_QUEUE_ROOT, deserved_a, limit_a);
    (void)town_queue(t, BH_QUEUE_ROOT, 16, BH_AMOUNT_ANY);
}

static struct bh_verdict why(struct town *t, uint64_t job)
{
    struct bh_verdict v;
    town_run(t);
    if (!bh_explain(t->s, NULL, job, t->now_ms, &v))
        v.tier = BH_WAITS;
    return v;
}

TEST(the_job_itself)
{
    struct town t;
    open_rack(&t, 16, BH_AMOUNT_ANY);
    struct bh_gang_spec of_another_model = town_job(1, 1, 1);
    of_another_model.roles[0].request.models = 2;
    CHECK_EQ(why(&t, town_submit(&t, of_another_model)).tier, BH_WAIT_MISCONFIGURED);
    CHECK_EQ(why(&t, town_submit(&t, town_job(1, 1, 5))).tier, BH_WAIT_MISCONFIGURED);
    struct bh_gang_spec twelve = town_job(1, 3, 4);
    twelve.within = BH_LEVEL_LINK;
    CHECK_EQ(why(&t, town_submit(&t, twelve)).tier, BH_WAIT_EXCEEDS);
    const struct bh_verdict v = why(&t, town_submit(&t, town_job(1, 1, 4)));
    CHECK_EQ(v.tier, BH_WAIT_NOT);
    struct bh_verdict none;
    CHECK(!bh_explain(t.s, NULL, 99, t.now_ms, &none));
    town_close(&t);
}

TEST(its_queue)
{
    struct town t;
    open_rack(&t, 4, 8);
    const uint64_t runs = town_submit(&t, town_job(1, 1, 4));
    town_run(&t);
    struct bh_verdict v = why(&t, town_submit(&t, town_job(1, 2, 4)));
    CHECK_EQ(v.tier, BH_WAIT_LIMIT);
    CHECK_EQ(v.quota.queue, 1);
    CHECK_EQ(v.quota.used, 4000);
    CHECK_EQ(v.quota.asked, 8000);
    CHECK_EQ(v.quota.bound, 8000);
    CHECK_EQ(v.n_holders, 1);
    CHECK_EQ(v.holders[0].job, runs);
    CHECK_EQ(v.holders[0].milli, 4000);
    struct bh_gang_spec firm = town_job(1, 2, 3);
    firm.firm = true;
    t.now_ms++;
    (void)town_submit(&t, firm);
    town_close(&t);

    open_rack(&t, 4, BH_AMOUNT_ANY);
    v = why(&t, town_submit(&t, firm));
    CHECK_EQ(v.tier, BH_WAIT_FIRM);
    CHECK_EQ(v.quota.asked, 6000);
    CHECK_EQ(v.quota.bound, 4000);
    town_close(&t);
}

TEST(its_turn)
{
    struct town t;
    open_rack(&t, 16, BH_AMOUNT_ANY);
    (void)town_submit(&t, town_job(1, 4, 4));
    town_run(&t);
    const uint64_t first = town_submit(&t, town_job(1, 1, 4)), second = town_submit(&t, town_job(1, 1, 4));
    CHECK_EQ(why(&t, first).ahead, 0);
    const struct bh_verdict v = why(&t, second);
    CHECK_EQ(v.tier, BH_WAIT_TURN);
    CHECK_EQ(v.ahead, 1);
    CHECK_EQ(v.next_job, first);
    CHECK_EQ(v.key, BH_TURN_ID);
    town_close(&t);
}

TEST(room_and_its_shape)
{
    struct town t;
    open_rack(&t, 16, BH_AMOUNT_ANY);
    uint64_t small[4];
    for (uint32_t i = 0; i < 4; i++) { /* three on each node: one is free everywhere */
        struct bh_gang_spec three = town_job(1, 1, 3);
        three.runtime_ms = (uint64_t)(i + 1) * 3600 * TOWN_SECOND;
        small[i] = town_submit(&t, three);
        town_run(&t);
    }
    struct bh_verdict v = why(&t, town_submit(&t, town_job(1, 2, 2)));
    CHECK_EQ(v.tier, BH_WAIT_SHAPE);
    CHECK_EQ(v.need, 4000);
    CHECK_EQ(v.free, 4000);
    CHECK_EQ(v.group, 1000);
    CHECK_EQ(v.level, BH_LEVEL_NODE);
    CHECK_EQ(v.n_holders, 4);
    CHECK_EQ(v.holders[0].job, small[0]);
    CHECK_EQ(v.holders[0].end_ms, t.now_ms + 3600 * TOWN_SECOND);
    struct bh_gang_spec in_link = town_job(1, 3, 1);
    in_link.within = BH_LEVEL_LINK;
    v = why(&t, town_submit(&t, in_link));
    CHECK_EQ(v.tier, BH_WAIT_SHAPE);
    CHECK_EQ(v.group, 2000);
    CHECK_EQ(v.level, BH_LEVEL_LINK);
    CHECK_EQ(v.n_holders, 2); /* of one NVLink domain */
    v = why(&t, town_submit(&t, town_job(1, 2, 4)));
    CHECK_EQ(v.tier, BH_WAIT_ROOM);
    CHECK_EQ(v.need, 8000);
    CHECK_EQ(v.free, 4000);
    town_close(&t);
}

TEST(who_may_go_but_not_yet)
{
    struct town t;
    open_rack(&t, 8, BH_AMOUNT_ANY);
    struct bh_gang_spec all = town_job(1, 4, 4);
    all.min_run_ms = 60 * TOWN_SECOND;
    (void)town_submit(&t, all);
    town_run(&t);
    t.now_ms += TOWN_SECOND;
    const uint64_t job = town_submit(&t, town_job(2, 1, 4));
    const struct bh_verdict v = why(&t, job);
    CHECK_EQ(v.tier, BH_WAIT_VICTIMS);
    CHECK_EQ(v.until_ms, 61 * TOWN_SECOND);
    t.now_ms = v.until_ms;
    town_run(&t);
    CHECK(town_runs(&t, job));
    town_close(&t);
}

/* The numbers against the shelf and the account, worked out in another way. */
TEST(what_is_said_is_true)
{
    uint32_t tiers[BH_WAITS] = {0};
    for (uint64_t seed = 0; seed < TOWNS; seed++) {
        static uint8_t bytes[TOWN_BYTES];
        struct town t;
        struct bh_verdict v;
        bh_choice_fill(bytes, sizeof(bytes), 900000 + seed);
        town_random(&t, bytes, sizeof(bytes), 5, 10);
        for (uint64_t job = 1; job <= t.n_jobs; job++) {
            const struct bh_gang *g = bh_sched_job(t.s, job);
            CHECK_EQ(bh_explain(t.s, t.reserve, job, t.now_ms, &v), g != NULL);
            if (!g)
                continue;
            tiers[v.tier]++;
            CHECK_EQ(v.tier == BH_WAIT_NOT, g->state == BH_GANG_RUNS);
            struct bh_whatif w;
            bh_whatif_init(&w, t.s, t.reserve ? &town_reservations : NULL, t.now_ms);
            const bool alone = bh_whatif_alone(&w, t.s, NULL, 0, job);
            bh_whatif_fini(&w);
            /* Alone it fails for just three reasons: itself, the fleet, its quota. */
            if (v.tier == BH_WAIT_MISCONFIGURED || v.tier == BH_WAIT_EXCEEDS)
                CHECK(!alone);
            if (!alone)
                CHECK(v.tier == BH_WAIT_MISCONFIGURED || v.tier == BH_WAIT_EXCEEDS ||
                      v.tier == BH_WAIT_LIMIT || v.tier == BH_WAIT_FIRM);
            if (v.tier == BH_WAIT_LIMIT || v.tier == BH_WAIT_FIRM)
                CHECK(v.quota.used + v.quota.asked + v.quota.kept > v.quota.bound);
            if (v.tier == BH_WAIT_SHAPE)
                CHECK(v.free >= v.need && v.group < v.need);
            if (v.tier == BH_WAIT_ROOM)
                CHECK(v.free + v.withheld < v.need);
            if (v.tier == BH_WAIT_WITHHELD)
                CHECK(v.hinder != BH_HINDER_NOT && v.hinder != BH_HINDER_PARTS);
            uint64_t held = v.more_milli;
            for (uint32_t i = 0; i < v.n_holders; i++) {
                CHECK(town_runs(&t, v.holders[i].job));
                held += v.holders[i].milli;
            }
            CHECK(held <= bh_sched_shelf(t.s)->milli_used);
        }
        town_close(&t);
    }
    for (uint32_t i = 0; i < BH_WAITS; i++)
        printf("# %s %" PRIu32 "\n", bh_wait_names[i], tiers[i]);
    CHECK(tiers[BH_WAIT_MISCONFIGURED] && tiers[BH_WAIT_EXCEEDS] && tiers[BH_WAIT_LIMIT] &&
          tiers[BH_WAIT_FIRM]);
    CHECK(tiers[BH_WAIT_TURN] && tiers[BH_WAIT_ROOM] && tiers[BH_WAIT_SHAPE] && tiers[BH_WAIT_VICTIMS] &&
          tiers[BH_WAIT_WITHHELD] && tiers[BH_WAIT_RESERVED]);
}

TEST_MAIN
