/* SPDX-License-Identifier: Apache-2.0 */
/* sched_take_test.c - events one by one: what each does, and what is refused. */
#include "core/sched/sched_fixture.h"

/* Two queues that deserve half each of n nodes of eight. */
static struct bh_sched *halves(uint32_t n)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, n, 8);
    add_queue(s, 1, 0, 0, n * 4);
    add_queue(s, 2, 0, 0, n * 4);
    return s;
}

TEST(a_refused_event_is_named)
{
    struct bh_sched *s = halves(1);
    struct bh_gang_spec wrong = job_of(1, 1, 0, 1);
    struct bh_err err;
    size_t n;
    CHECK(bh_sched_apply(s, &(struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .job = &wrong}, &err) < 0);
    submit(s, job_of(2, 0, 1, 1)); /* the root is no leaf */
    submit(s, job_of(3, 1, 1, 1));
    submit(s, job_of(3, 2, 1, 1));
    tell(s, BH_SCHED_FINISH, 9, 0);
    tell(s, BH_SCHED_TICK, 0, 1);
    const struct bh_sched_refusal *r = bh_sched_refusals(s, &n);
    CHECK_EQ(n, 3);
    CHECK_EQ(r[0].id, 2);
    CHECK_EQ(r[1].id, 3);
    CHECK_EQ(r[1].why.code, BH_CONFLICT);
    CHECK_EQ(r[2].id, 9);
    CHECK_EQ(state_of(s, 3), BH_GANG_PENDING);
    bh_sched_free(s);
}

TEST(what_is_cancelled_is_told_to_end)
{
    struct bh_sched *s = halves(1);
    submit(s, job_of(1, 1, 1, 8));
    submit(s, job_of(2, 1, 1, 8));
    cycle(s, 1);
    tell(s, BH_SCHED_CANCEL, 1, 5);
    size_t n;
    bh_sched_decide(s, 5, 0, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 1)->why, BH_FOR_CANCEL);
    CHECK_EQ(state_of(s, 2), BH_GANG_PENDING); /* releasing is not free */
    tell(s, BH_SCHED_GONE, 1, 6);
    bh_sched_decide(s, 6, 0, &n);
    CHECK_EQ(state_of(s, 1), BH_GANG_FREE);
    CHECK_EQ(state_of(s, 2), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_running_job_is_found)
{
    struct bh_sched *s = halves(1);
    const struct bh_spot at[2] = {{.node = 0, .gpus = 3}, {.node = 0, .gpus = 12}};
    struct bh_gang_spec j = job_of(4, 1, 2, 2);
    say(s,
        (struct bh_sched_event){.kind = BH_SCHED_FOUND, .job = &j, .places = at, .n_places = 2, .at_ms = 3});
    j.id = 5;
    say(s,
        (struct bh_sched_event){.kind = BH_SCHED_FOUND, .job = &j, .places = at, .n_places = 2, .at_ms = 3});
    tell(s, BH_SCHED_TICK, 0, 4);
    size_t n;
    CHECK_EQ(bh_sched_refusals(s, &n)->id, 5); /* somebody is there */
    CHECK_EQ(n, 1);
    CHECK_EQ(state_of(s, 4), BH_GANG_RUNS);
    CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_GPU], 4 * GPU);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(a_failed_job_comes_back)
{
    struct bh_sched *s = halves(1);
    submit(s, job_of(1, 1, 1, 8));
    cycle(s, 1);
    tell(s, BH_SCHED_GONE, 1, 5);
    cycle(s, 5);
    CHECK_EQ(told_of(s, BH_DECIDE_START, 1), 1);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

/* The end of a job in every state it can be in; nothing is left behind. */
TEST(a_job_can_be_cancelled_at_any_time)
{
    for (uint32_t when = 0; when < 4; when++) {
        struct bh_sched *s = halves(1);
        size_t n;
        submit(s, job_of(1, 1, 1, 8));
        bh_sched_decide(s, 1, 0, &n);
        if (when)
            submit(s, job_of(2, 2, 1, 4));
        bh_sched_decide(s, 10, 0, &n); /* 1 leaves, 2 is bound */
        tell(s, BH_SCHED_CANCEL, when < 2 ? 1 : 2, 11);
        bh_sched_decide(s, 11, 0, &n);
        CHECK(sched_is_sound(s));
        tell(s, BH_SCHED_GONE, 1, 12);
        if (when == 3)
            tell(s, BH_SCHED_FINISH, 1, 12);
        bh_sched_decide(s, 12, 0, &n);
        CHECK(sched_is_sound(s));
        CHECK_EQ(state_of(s, when < 2 ? 1 : 2), BH_GANG_FREE);
        CHECK_EQ(s->leaving.at[0], 0);
        for (uint64_t id = 1; id <= 2; id++)
            tell(s, BH_SCHED_CANCEL, id, 13);
        bh_sched_decide(s, 13, 0, &n);
        for (uint64_t id = 1; id <= 2; id++)
            tell(s, BH_SCHED_GONE, id, 14);
        bh_sched_decide(s, 14, 0, &n);
        CHECK_EQ(s->shelf.n_taken, 0);
        CHECK_EQ(s->queues.at.at[0].used.at[BH_RES_GPU], 0);
        CHECK_EQ(s->queues.at.at[0].wanted.at[BH_RES_GPU], 0);
        bh_sched_free(s);
    }
}

TEST(queues_and_nodes_come_in_the_order_of_their_ids)
{
    struct bh_sched *s = plain_sched();
    size_t n;
    add_node(s, 1, 4, BH_NONE);
    add_node(s, 0, 8, BH_NONE);
    add_model(s, 0, NULL);
    add_queue(s, 2, 1, 0, 4);
    add_queue(s, 1, 0, 0, 4);
    add_queue(s, 7, 0, 0, 4);
    tell(s, BH_SCHED_TICK, 0, 1);
    CHECK_EQ(bh_sched_refusals(s, &n)->id, 7);
    CHECK_EQ(n, 1);
    CHECK_EQ(s->shelf.nodes.at[0].n_gpus, 8);
    CHECK_EQ(s->queues.at.at[2].parent, 1);
    CHECK_EQ(s->queues.total.at[BH_RES_GPU], 12 * GPU);
    health(s, 1, BH_NONE, BH_HEALTH_FAILED, 2);
    tell(s, BH_SCHED_TICK, 0, 2);
    CHECK_EQ(s->queues.total.at[BH_RES_GPU], 8 * GPU);
    bh_sched_free(s);
}

TEST_MAIN
