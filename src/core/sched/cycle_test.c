/* SPDX-License-Identifier: Apache-2.0 */
/* cycle_test.c - the phases of a cycle: broken gangs, elastic ones, the order they come in. */
#include "core/sched/sched_fixture.h"

static struct bh_sched *nodes(uint32_t n)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, n, 8);
    add_queue(s, 1, 0, 0, 8 * n);
    return s;
}

static uint32_t node_of_job(const struct bh_sched *s, uint64_t id)
{
    return s->shelf.holds.at[bh_sched_job(s, id)->first_hold].node;
}

TEST(a_broken_gang_is_repaired_before_others_start)
{
    struct bh_sched *s = nodes(3);
    submit(s, job_of(1, 1, 2, 8));
    cycle(s, 1);
    const uint32_t lost = node_of_job(s, 1);
    submit(s, job_of(2, 1, 1, 8)); /* would have the last node */
    health(s, lost, BH_NONE, BH_HEALTH_FAILED, 2);
    cycle(s, 2);
    const struct bh_decision *d = decision_of(s, BH_DECIDE_MOVE, 1);
    CHECK(d != NULL);
    CHECK_EQ(d->n_places, 1);
    CHECK(bh_sched_places(s, d)->spot.node != lost);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK_EQ(state_of(s, 2), BH_GANG_PENDING);
    CHECK_EQ(bh_sched_job(s, 1)->broken_ms, 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_broken_gang_is_evicted_whole_after_a_while)
{
    struct bh_sched *s = nodes(2);
    submit(s, job_of(1, 1, 2, 8));
    cycle(s, 1);
    health(s, 0, 3, BH_HEALTH_FAILED, 1000); /* one GPU is enough */
    cycle(s, 1000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 0);
    CHECK_EQ(bh_sched_job(s, 1)->broken_ms, 1000);
    cycle(s, 1000 + s->config.grace_ms - 1);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 0);
    cycle(s, 1000 + s->config.grace_ms);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 1), 1);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 1)->why, BH_FOR_BROKEN);
    cycle(s, 1001 + s->config.grace_ms);
    CHECK_EQ(state_of(s, 1), BH_GANG_PENDING);
    CHECK_EQ(s->shelf.n_taken, 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_node_that_comes_back_in_time_breaks_nothing)
{
    struct bh_sched *s = nodes(2);
    submit(s, job_of(1, 1, 2, 8));
    cycle(s, 1);
    health(s, 0, BH_NONE, BH_HEALTH_FAILED, 10);
    cycle(s, 10);
    health(s, 0, BH_NONE, BH_HEALTH_OK, 20);
    cycle(s, 20);
    cycle(s, 10 + 2 * s->config.grace_ms);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK_EQ(bh_sched_job(s, 1)->broken_ms, 0);
    CHECK_EQ(s->stats.evictions, 0);
    bh_sched_free(s);
}

TEST(a_repair_stays_in_its_domain)
{
    struct bh_sched *s = plain_sched();
    add_model(s, 0, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        add_domain(s, i, BH_LEVEL_RACK, BH_NONE);
        for (uint32_t k = 0; k < 3; k++)
            add_node(s, 3 * i + k, 8, i);
    }
    add_queue(s, 1, 0, 0, 48);
    struct bh_gang_spec j = job_of(1, 1, 2, 8);
    j.within = j.prefer = BH_LEVEL_RACK;
    submit(s, j);
    cycle(s, 1);
    const uint32_t lost = node_of_job(s, 1), rack = lost / 3;
    health(s, lost, BH_NONE, BH_HEALTH_FAILED, 2);
    cycle(s, 2);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 1), 1);
    CHECK_EQ(bh_sched_places(s, decision_of(s, BH_DECIDE_MOVE, 1))->spot.node / 3, rack);
    health(s, node_of_job(s, 1), BH_NONE, BH_HEALTH_FAILED, 3); /* the third is the last of the rack */
    cycle(s, 3);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 1), 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(elastic_gangs_share_what_is_left)
{
    struct bh_sched *s = nodes(1);
    for (uint32_t i = 1; i <= 2; i++) {
        struct bh_gang_spec j = job_of(i, 1, 1, 1);
        j.roles[0].max = 8;
        submit(s, j);
    }
    submit(s, job_of(3, 1, 1, 2));
    cycle(s, 1);
    CHECK_EQ(state_of(s, 3), BH_GANG_RUNS);
    CHECK_EQ(bh_sched_job(s, 1)->extra, 2); /* one each in turn */
    CHECK_EQ(bh_sched_job(s, 2)->extra, 2);
    tell(s, BH_SCHED_FINISH, 3, 2);
    cycle(s, 2);
    CHECK_EQ(bh_sched_job(s, 1)->extra + bh_sched_job(s, 2)->extra, 6);
    submit(s, job_of(4, 1, 1,
                     1)); /* a job of the same queue and priority comes before members above a minimum */
    cycle(s, 3);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 1);
    cycle(s, 4);
    CHECK_EQ(state_of(s, 4), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(the_key_that_decided_is_said)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 1, 8);
    add_queue(s, 1, 0, 0, 2);
    add_queue(s, 2, 0, 0, 6);
    submit(s, job_of(1, 1, 1, 4)); /* over what its queue deserves */
    submit(s, job_of(2, 2, 1, 4));
    cycle(s, 1);
    CHECK_EQ(s->decisions.at[0].job, 2);
    CHECK_EQ(s->decisions.at[0].key, BH_TURN_ENTITLED);
    CHECK_EQ(s->decisions.at[0].other, 1);
    bh_sched_free(s);
}

static void add_by_priority(struct bh_sched *s, uint32_t id, uint64_t deserved)
{
    struct bh_queue_config c;
    bh_queue_config_init(&c);
    c.model = BH_QUOTA_PRIORITY;
    c.deserved.at[BH_RES_GPU] = deserved * GPU;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = id, .queue = &c});
}

/* A deadline puts work before that of other queues, as long as its own queue stays within what is its own. */
TEST(a_deadline_takes_nothing_from_others)
{
    struct bh_sched_config config = plain_config();
    config.queues.slack_ms = 1000;
    for (uint32_t within = 0; within < 2; within++) {
        struct bh_sched *s = bh_sched_new(&config);
        add_fleet(s, 1, 4);
        add_by_priority(s, 1, 2);
        add_by_priority(s, 2, 2);
        submit(s, job_of(1, 2, 1, within ? 1 : 2)); /* half of what the second deserves, or all of it */
        submit(s, job_of(2, 1, 1, 1));
        cycle(s, 1);
        CHECK_EQ(bh_sched_stats(s).runs, 2);
        struct bh_gang_spec late = job_of(3, 2, 1, 1);
        late.runtime_ms = 100;
        late.deadline_ms = 500; /* critical now */
        submit(s, late);
        submit(s, job_of(4, 1, 1, 1));
        cycle(s, 2);
        CHECK_EQ(s->decisions.at[0].kind, BH_DECIDE_START);
        CHECK_EQ(s->decisions.at[0].job, within ? 3 : 4);
        CHECK_EQ(s->decisions.at[0].key, within ? BH_TURN_DEADLINE : BH_TURN_ENTITLED);
        bh_sched_free(s);
    }
}

/* Nor does one that is past evict anybody who is within his own. */
TEST(a_deadline_evicts_nobody_within_his_own)
{
    struct bh_sched_config config = plain_config();
    config.queues.slack_ms = 1000;
    struct bh_sched *s = bh_sched_new(&config);
    add_fleet(s, 1, 4);
    add_by_priority(s, 1, 2);
    add_by_priority(s, 2, 2);
    for (uint64_t id = 1; id <= 4; id++)
        submit(s, job_of(id, 1 + (uint32_t)(id > 2), 1, 1));
    cycle(s, 1);
    CHECK_EQ(bh_sched_stats(s).runs, 4);
    struct bh_gang_spec late = job_of(5, 2, 1, 1);
    late.deadline_ms = 10;
    submit(s, late);
    CHECK_EQ(cycle(s, 2000), 0);
    CHECK_EQ(state_of(s, 5), BH_GANG_PENDING);
    bh_sched_free(s);
}

/* Two nodes of two models that are counted apart; of the second the queue may have so many GPUs. */
static struct bh_sched *two_models(uint64_t limit)
{
    struct bh_sched_config config = plain_config();
    struct bh_queue_config c;
    config.model_class[0] = 0;
    config.model_class[1] = 1;
    struct bh_sched *s = bh_sched_new(&config);
    for (uint32_t i = 0; i < 2; i++) {
        struct bh_node_spec spec = node_of(i, 8, BH_NONE);
        spec.model = i;
        add_model(s, i, NULL);
        say(s, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = i, .node = &spec});
    }
    bh_queue_config_init(&c);
    c.deserved.at[BH_RES_GPU] = 16 * GPU;
    c.limit.at[BH_RES_MODEL0 + 1] = limit * GPU;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .queue = &c});
    submit(s, job_of(1, 1, 2, 4));
    cycle(s, 1);
    return s;
}

TEST(a_repair_keeps_to_the_limits)
{
    for (uint64_t limit = 7; limit <= 8; limit++) {
        struct bh_sched *s = two_models(limit);
        CHECK_EQ(node_of_job(s, 1), 0);
        health(s, 0, BH_NONE, BH_HEALTH_FAILED, 2);
        cycle(s, 2);
        CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 1), limit == 8);
        CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_MODEL0 + 1], limit == 8 ? 8 * GPU : 0);
        CHECK(sched_is_sound(s));
        cycle(s, 2 + s->config.grace_ms);
        CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 1), limit != 8);
        bh_sched_free(s);
    }
}

/* A limit that was lowered meanwhile is not in the way of a place that costs the same. */
TEST(a_repair_for_the_same_is_not_asked_about)
{
    struct bh_sched *s = nodes(2);
    struct bh_queue_config c;
    submit(s, job_of(1, 1, 1, 8));
    cycle(s, 1);
    bh_queue_config_init(&c);
    c.limit.at[BH_RES_GPU] = 4 * GPU;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .queue = &c});
    health(s, node_of_job(s, 1), BH_NONE, BH_HEALTH_FAILED, 2);
    cycle(s, 2);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 1), 1);
    bh_sched_free(s);
}

static bool never(void *asked, const struct bh_sched *s, const struct bh_gang *g,
                  const struct bh_place *places, uint32_t n, uint64_t now_ms)
{
    (void)s, (void)places, (void)now_ms;
    *(uint64_t *)asked = g->id * 100 + n;
    return false;
}

TEST(a_repair_takes_nothing_that_is_kept_for_others)
{
    struct bh_sched *s = nodes(3);
    uint64_t asked = 0;
    submit(s, job_of(1, 1, 2, 8));
    cycle(s, 1);
    bh_sched_set_veto(s, never, &asked);
    health(s, node_of_job(s, 1), BH_NONE, BH_HEALTH_FAILED, 2);
    cycle(s, 2);
    CHECK_EQ(asked, 101); /* job 1, one place */
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 0), 0);
    CHECK_EQ(bh_sched_job(s, 1)->broken_ms, 2);
    bh_sched_set_veto(s, NULL, NULL);
    cycle(s, 3);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 1), 1);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

/* Of a slice that grew one member is lost: the rest stays, and no other slice fits below the maximum any more. */
TEST(a_gang_in_slices_never_has_more_than_its_most)
{
    struct bh_sched *s = plain_sched();
    add_model(s, 0, NULL);
    add_domain(s, 0, BH_LEVEL_LINK, BH_NONE);
    for (uint32_t i = 0; i < 4; i++)
        add_node(s, i, 2, 0);
    add_queue(s, 1, 0, 0, 8);
    struct bh_gang_spec j = job_of(1, 1, 2, 1);
    j.roles[0].max = 4;
    j.roles[0].slice = 2;
    j.roles[0].slice_level = BH_LEVEL_LINK;
    submit(s, j);
    cycle(s, 1);
    CHECK_EQ(bh_sched_job(s, 1)->n_holds, 4);
    uint32_t h = bh_sched_job(s, 1)->first_hold;
    while (!s->owners.at[h].extra)
        h = s->owners.at[h].next;
    health(s, s->shelf.holds.at[h].node, (uint32_t)__builtin_ctz(s->shelf.holds.at[h].gpus), BH_HEALTH_FAILED,
           2);
    for (uint64_t now = 2; now < 5; now++) {
        cycle(s, now);
        CHECK(bh_sched_job(s, 1)->n_holds <= 4 && bh_sched_job(s, 1)->n_holds >= 2);
        CHECK(sched_is_sound(s));
    }
    bh_sched_free(s);
}

TEST_MAIN
