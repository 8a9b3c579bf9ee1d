/* SPDX-License-Identifier: Apache-2.0 */
/* job_bind_test.c - what queues pay for a job from its start to its end, and what going costs. */
#include "core/sched/sched_fixture.h"

static struct bh_sched *one_node(void)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 1, 8);
    add_queue(s, 1, 0, 0, 8);
    return s;
}

TEST(an_elastic_gang_pays_for_what_it_has)
{
    struct bh_sched *s = one_node();
    struct bh_gang_spec j = job_of(1, 1, 2, 1);
    j.firm = true;
    j.roles[0].max = 5;
    submit(s, j);
    bh_sched_settle(s);
    CHECK_EQ(s->queues.at.at[1].pending.at[BH_RES_GPU], 5 * GPU);
    cycle(s, 1);
    CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_GPU], 5 * GPU);
    CHECK_EQ(s->queues.at.at[1].used_firm.at[BH_RES_GPU], 2 * GPU); /* the rest may be interrupted */
    CHECK_EQ(s->queues.at.at[1].pending.at[BH_RES_GPU], 0);
    CHECK_EQ(bh_gang_charge(s, bh_sched_job(s, 1), false).amount.at[BH_RES_GPU], 2 * GPU);
    tell(s, BH_SCHED_GONE, 1, 2); /* it failed */
    bh_sched_settle(s);
    CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_GPU], 0);
    CHECK_EQ(s->queues.at.at[1].pending.at[BH_RES_GPU], 5 * GPU);
    tell(s, BH_SCHED_CANCEL, 1, 3);
    bh_sched_settle(s);
    CHECK_EQ(s->queues.at.at[1].pending.at[BH_RES_GPU], 0);
    bh_sched_free(s);
}

TEST(a_model_is_paid_for_when_it_is_known)
{
    struct bh_sched_config c = plain_config();
    c.model_class[0] = 0;
    struct bh_sched *s = bh_sched_new(&c);
    add_fleet(s, 1, 8);
    add_queue(s, 1, 0, 0, 8);
    submit(s, job_of(1, 1, 1, 2));
    bh_sched_settle(s);
    CHECK_EQ(s->queues.at.at[1].pending.at[BH_RES_MODEL0], 0);
    cycle(s, 1);
    CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_MODEL0], 2 * GPU);
    tell(s, BH_SCHED_FINISH, 1, 2);
    cycle(s, 2);
    CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_MODEL0], 0);
    CHECK_EQ(s->queues.at.at[1].pending.at[BH_RES_GPU], 0);
    bh_sched_free(s);
}

TEST(what_going_costs)
{
    struct bh_sched *s = one_node();
    struct bh_gang_spec j = job_of(1, 1, 2, 2);
    j.can = BH_CAN_SUSPEND | BH_CAN_REQUEUE;
    j.roles[0].image_mib = 2700;
    submit(s, j);
    cycle(s, 1000);
    tell(s, BH_SCHED_CHECKPOINT, 1, 4000);
    tell(s, BH_SCHED_TICK, 0, 6000);
    const struct bh_gang *g = bh_sched_job(s, 1);
    CHECK_EQ(bh_gang_price(s, g, BH_RUNG_NARROW), 0);
    CHECK_EQ(bh_gang_price(s, g, BH_RUNG_PAUSE), 0);
    CHECK_EQ(bh_gang_price(s, g, BH_RUNG_SUSPEND), 4 * GPU * 2000); /* two seconds for 2.7 GiB */
    CHECK_EQ(bh_gang_price(s, g, BH_RUNG_REQUEUE), 4 * GPU * 2000);
    CHECK_EQ(bh_gang_price(s, g, BH_RUNG_KILL), 4 * GPU * 5000);
    bh_sched_free(s);
}

TEST(what_is_left_is_not_free_before_it_is_gone)
{
    struct bh_sched *s = one_node();
    submit(s, job_of(1, 1, 2, 2));
    cycle(s, 1);
    const uint32_t job = bh_idmap_find(&s->gang_ids, 1);
    bh_gang_unpaid(s, job, false);
    bh_gang_leave(s, job);
    CHECK_EQ(s->shelf.nodes.at[0].n_whole, 4);
    CHECK_EQ(s->gangs.at[job].n_holds, 0);
    bh_left_add(s, job, BH_NONE, 0);
    CHECK_EQ(s->leaving.at[0], 1);
    const uint64_t clock = s->gain[0];
    bh_left_gone(s, job);
    CHECK_EQ(s->shelf.nodes.at[0].n_whole, 8);
    CHECK_EQ(s->leaving.at[0], 0);
    CHECK(s->gain[0] > clock); /* who waits for room may look again */
    bh_sched_free(s);
}

static uint64_t mib_used(const struct bh_sched *s)
{
    return s->queues.at.at[1].used.at[BH_RES_MIB];
}

/* What is kept from others is paid for, however it was asked for. */
TEST(memory_is_paid_for_in_every_form)
{
    const struct bh_gpu_model *a100 = bh_catalog_find("A100");
    struct bh_sched *s = plain_sched();
    struct bh_node_spec spec = node_of(0, 8, BH_NONE);
    struct bh_gang_spec mig = job_of(4, 1, 1, 1);
    add_model(s, 0, "A100");
    spec.gpu_mib = 40000;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = 0, .node = &spec});
    add_queue(s, 1, 0, 0, 8);
    submit(s, job_of(1, 1, 1, 3));
    cycle(s, 1);
    CHECK_EQ(mib_used(s), 3 * 40000);
    submit(s, share_of(2, 1, 999, 0));
    cycle(s, 2);
    CHECK_EQ(mib_used(s), 3 * 40000 + 39960);
    submit(s, share_of(3, 1, 250, 1234));
    cycle(s, 3);
    CHECK_EQ(mib_used(s), 3 * 40000 + 39960 + 1234);
    mig.roles[0].request.form = BH_FORM_MIG;
    mig.roles[0].request.gpu_milli = 0;
    mig.roles[0].request.models = 1;
    while (a100->profiles[mig.roles[0].request.mig_profile].memory_slices != 2)
        mig.roles[0].request.mig_profile++;
    submit(s, mig);
    cycle(s, 4);
    CHECK_EQ(state_of(s, 4), BH_GANG_RUNS);
    CHECK_EQ(mib_used(s), 3 * 40000 + 39960 + 1234 + 10000);
    for (uint64_t id = 1; id <= 4; id++)
        tell(s, BH_SCHED_FINISH, id, 5);
    cycle(s, 5);
    CHECK_EQ(mib_used(s), 0);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_limit_of_memory_holds_for_every_form)
{
    struct bh_sched *s = plain_sched();
    struct bh_queue_config c;
    add_fleet(s, 1, 8);
    bh_queue_config_init(&c);
    c.deserved.at[BH_RES_GPU] = 8 * GPU;
    c.limit.at[BH_RES_MIB] = 40000;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .queue = &c});
    submit(s, share_of(1, 1, 500, 50000));
    submit(s, job_of(2, 1, 1, 7));
    submit(s, share_of(3, 1, 999, 0));
    submit(s, share_of(4, 1, 500, 0));
    cycle(s, 1);
    for (uint64_t id = 1; id <= 3; id++) {
        CHECK_EQ(state_of(s, id), BH_GANG_PENDING);
        CHECK_EQ(bh_sched_line(s, bh_sched_job(s, id))->why.res, BH_RES_MIB);
    }
    CHECK_EQ(state_of(s, 4), BH_GANG_RUNS);
    CHECK_EQ(mib_used(s), 40000);
    bh_sched_free(s);
}

/* The least of all places, where they differ: what is asked before there is a place. */
TEST(what_a_shape_asks_for)
{
    struct bh_sched *s = plain_sched();
    add_model(s, 0, NULL);
    add_model(s, 1, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        struct bh_node_spec spec = node_of(i, 8, BH_NONE);
        spec.model = i / 2;
        spec.gpu_mib = 1000 * (3 - i);
        say(s, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = i, .node = &spec});
    }
    add_queue(s, 1, 0, 0, 24);
    struct bh_gang_spec any = job_of(1, 1, 2, 4), first = any;
    first.id = 2;
    first.roles[0].request.models = 1;
    submit(s, any);
    submit(s, first);
    cycle(s, 1);
    CHECK_EQ(bh_shape_asks(s, bh_sched_shape(s, bh_sched_job(s, 1))).at[BH_RES_MIB], 8 * 1000);
    CHECK_EQ(bh_shape_asks(s, bh_sched_shape(s, bh_sched_job(s, 2))).at[BH_RES_MIB], 8 * 2000);
    CHECK_EQ(bh_shape_asks(s, bh_sched_shape(s, bh_sched_job(s, 2))).at[BH_RES_GPU], 8 * GPU);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST_MAIN
