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

TEST_MAIN
