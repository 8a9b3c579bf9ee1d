/* SPDX-License-Identifier: Apache-2.0 */
/* move_test.c - who stands elsewhere: by hand, in random lives, and against every single move there is. */
#include "core/sched/sched_fixture.h"

enum { FLEETS = 3000 };

static struct bh_gang_spec movable(struct bh_gang_spec j)
{
    j.can |= BH_CAN_MOVE;
    return j;
}

/* Two nodes of four GPUs; on each a job of one GPU and one of two. The one of four finds no node. */
static struct bh_sched *two_halves(bool may_move)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 2, 4);
    add_queue(s, 1, 0, 0, 8);
    for (uint64_t id = 1; id <= 4; id++) {
        struct bh_gang_spec j = job_of(id, 1, 1, id % 2 ? 3 : 1);
        submit(s, may_move ? movable(j) : j);
        cycle(s, 10);
    }
    tell(s, BH_SCHED_FINISH, 1, 11);
    tell(s, BH_SCHED_FINISH, 3, 11);
    submit(s, job_of(9, 1, 1, 4));
    return s;
}

TEST(one_moves_and_the_job_starts_when_it_has_left)
{
    struct bh_sched *s = two_halves(true);
    size_t n;
    const struct bh_decision *d = bh_sched_decide(s, 20, 0, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(d->kind, BH_DECIDE_MOVE);
    CHECK_EQ(d->why, BH_FOR_JOB);
    CHECK_EQ(d->other, 9);
    CHECK(d->job == 2 || d->job == 4);
    CHECK(bh_decision_leaves(d));
    CHECK_EQ(d->price, 10 * GPU);
    const uint64_t mover = d->job;
    CHECK_EQ(state_of(s, 9), BH_GANG_BOUND);
    CHECK_EQ(state_of(s, mover), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    CHECK_EQ(cycle(s, 21), 0); /* it has not left */
    tell(s, BH_SCHED_GONE, mover, 22);
    CHECK_EQ(cycle(s, 22), 1);
    CHECK_EQ(state_of(s, 9), BH_GANG_RUNS);
    CHECK_EQ(state_of(s, mover), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(who_did_not_say_so_is_not_moved)
{
    struct bh_sched *s = two_halves(false);
    CHECK_EQ(cycle(s, 20), 0);
    CHECK_EQ(state_of(s, 9), BH_GANG_PENDING);
    bh_sched_free(s);

    s = plain_sched(); /* nor one that must not be interrupted, nor one within its minimum */
    add_fleet(s, 2, 4);
    add_queue(s, 1, 0, 0, 8);
    struct bh_gang_spec a = movable(job_of(1, 1, 1, 1)), b = movable(job_of(2, 1, 1, 1));
    a.firm = true;
    b.min_run_ms = 1000;
    submit(s, job_of(3, 1, 1, 3));
    cycle(s, 1);
    submit(s, a);
    cycle(s, 1);
    submit(s, job_of(4, 1, 1, 3));
    cycle(s, 1);
    submit(s, b);
    cycle(s, 1);
    tell(s, BH_SCHED_FINISH, 3, 2);
    tell(s, BH_SCHED_FINISH, 4, 2);
    submit(s, job_of(9, 1, 1, 4));
    CHECK_EQ(cycle(s, 20), 0);
    CHECK_EQ(state_of(s, 9), BH_GANG_PENDING);
    CHECK_EQ(cycle(s, 1001), 1); /* now the second may be asked */
    CHECK_EQ(s->decisions.at[0].job, 2);
    bh_sched_free(s);
}

/* Nothing where the job does not start by it: of three halves two would have to go to the same place. */
TEST(all_or_nothing)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 3, 2);
    add_queue(s, 1, 0, 0, 6);
    for (uint64_t id = 1; id <= 3; id++) {
        submit(s, movable(job_of(id, 1, 1, 1)));
        cycle(s, id);
        submit(s, job_of(10 + id, 1, 1, 1));
        cycle(s, id);
    }
    for (uint64_t id = 11; id <= 13; id++)
        tell(s, BH_SCHED_FINISH, id, 9);
    submit(s, job_of(20, 1, 2, 2)); /* two nodes: four GPUs, and three are idle */
    CHECK_EQ(cycle(s, 10), 0);
    submit(s, job_of(21, 1, 1, 2));
    CHECK_EQ(cycle(s, 11), 1);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 0), 1);
    CHECK_EQ(state_of(s, 21), BH_GANG_BOUND);
    bh_sched_free(s);
}

/* A gang of two nodes, for which two members must stand elsewhere at once. */
TEST(several_move_together)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 4, 2);
    add_queue(s, 1, 0, 0, 8);
    for (uint64_t id = 1; id <= 4; id++) {
        submit(s, movable(job_of(id, 1, 1, 1)));
        cycle(s, id);
        submit(s, job_of(10 + id, 1, 1, 1));
        cycle(s, id);
    }
    for (uint64_t id = 11; id <= 14; id++)
        tell(s, BH_SCHED_FINISH, id, 9);
    submit(s, job_of(20, 1, 2, 2));
    CHECK_EQ(cycle(s, 10), 2);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 0), 2);
    CHECK_EQ(state_of(s, 20), BH_GANG_BOUND);
    CHECK(sched_is_sound(s));
    CHECK_EQ(cycle(s, 11), 1);
    CHECK_EQ(state_of(s, 20), BH_GANG_RUNS);
    bh_sched_free(s);
}

/* ---- drained ---- */

TEST(work_leaves_what_is_drained)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 2, 4);
    add_queue(s, 1, 0, 0, 8);
    struct bh_gang_spec firm = job_of(2, 1, 1, 1), once = job_of(3, 1, 1, 1);
    firm.firm = true;
    once.can = 0;
    submit(s, job_of(1, 1, 1, 1));
    submit(s, firm);
    submit(s, once);
    cycle(s, 10);
    const uint32_t node = s->shelf.holds.at[bh_sched_job(s, 1)->first_hold].node;
    health(s, node, BH_NONE, BH_HEALTH_DRAIN, 20);
    CHECK_EQ(cycle(s, 20), 1); /* it may be started again; the others are left in peace */
    const struct bh_decision *d = decision_of(s, BH_DECIDE_MOVE, 1);
    CHECK(d && d->why == BH_FOR_DRAIN && bh_decision_leaves(d));
    CHECK(s->shelf.holds.at[bh_sched_job(s, 1)->first_hold].node != node);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    CHECK_EQ(cycle(s, 30), 0);
    bh_sched_free(s);
}

TEST(without_another_place_it_stays)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 2, 2);
    add_queue(s, 1, 0, 0, 4);
    for (uint64_t id = 1; id <= 2; id++) {
        submit(s, job_of(id, 1, 1, 2));
        cycle(s, id);
    }
    health(s, 0, BH_NONE, BH_HEALTH_DRAIN, 20);
    CHECK_EQ(cycle(s, 20), 0);
    const uint64_t other = s->shelf.holds.at[bh_sched_job(s, 1)->first_hold].node == 0 ? 2 : 1;
    tell(s, BH_SCHED_FINISH, other, 30); /* now there is one */
    CHECK_EQ(cycle(s, 30), 1);
    CHECK_EQ(told_of(s, BH_DECIDE_MOVE, 3 - other), 1);
    bh_sched_free(s);
}

/* A gang that must stay in one rack leaves it whole; a member above the minimum is given up. */
TEST(gangs_leave_whole_where_they_must)
{
    struct bh_sched *s = plain_sched();
    add_model(s, 0, NULL);
    for (uint32_t i = 0; i < 2; i++)
        add_domain(s, i, BH_LEVEL_RACK, BH_NONE);
    for (uint32_t i = 0; i < 4; i++)
        add_node(s, i, 2, i / 2);
    add_queue(s, 1, 0, 0, 8);
    struct bh_gang_spec j = job_of(1, 1, 2, 2);
    j.within = j.prefer = BH_LEVEL_RACK;
    submit(s, j);
    cycle(s, 10);
    const uint32_t node = s->shelf.holds.at[bh_sched_job(s, 1)->first_hold].node;
    health(s, node, BH_NONE, BH_HEALTH_DRAIN, 20);
    CHECK_EQ(cycle(s, 20), 1);
    CHECK_EQ(decision_of(s, BH_DECIDE_MOVE, 1)->n_places, 2);
    CHECK(s->shelf.holds.at[bh_sched_job(s, 1)->first_hold].node / 2 != node / 2);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);

    s = plain_sched();
    add_fleet(s, 2, 1);
    add_queue(s, 1, 0, 0, 2);
    j = job_of(1, 1, 1, 1);
    j.roles[0].max = 2;
    submit(s, j);
    cycle(s, 10);
    const struct bh_gang *g = bh_sched_job(s, 1);
    CHECK_EQ(g->n_holds, 2);
    const uint32_t more =
        s->owners.at[g->first_hold].extra ? g->first_hold : s->owners.at[g->first_hold].next;
    health(s, s->shelf.holds.at[more].node, BH_NONE, BH_HEALTH_DRAIN, 20);
    CHECK_EQ(cycle(s, 20), 1);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 1)->rung, BH_RUNG_NARROW);
    CHECK_EQ(bh_sched_job(s, 1)->n_holds, 1);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

/* ---- every single move ---- */

static bool asks_to_move(const struct bh_sched *s, uint32_t hold)
{
    const struct bh_owner *o = &s->owners.at[hold];
    if (s->shelf.holds.at[hold].state != BH_HOLD_TAKEN || o->job == BH_NONE)
        return false;
    const struct bh_gang *g = &s->gangs.at[o->job];
    const struct bh_shape *shape = &s->shapes.at[g->shape];
    return g->state == BH_GANG_RUNS && !shape->firm && (shape->can & BH_CAN_MOVE) &&
           g->first_left == BH_NONE && s->now_ms > g->since_ms;
}

/* With this hold anywhere else, does the shape find room? */
static bool helps(struct bh_sched *s, uint32_t hold, const struct bh_shape *shape)
{
    const struct bh_hold was = s->shelf.holds.at[hold];
    bool found = false;
    for (uint32_t node = 0; node < s->shelf.nodes.n && !found; node++) {
        for (uint32_t gpus = 1; gpus < 1u << s->shelf.nodes.at[node].n_gpus && !found; gpus++) {
            const struct bh_spot spot = {.node = node, .gpus = (uint16_t)gpus};
            if (bh_bits(gpus) != bh_bits(was.gpus) || (node == was.node && gpus == was.gpus))
                continue;
            const struct bh_mark mark = bh_shelf_mark(&s->shelf);
            uint32_t at;
            bh_shelf_free(&s->shelf, hold);
            found = bh_shelf_take(&s->shelf, was.class_, &spot, &at, NULL) >= 0 && bh_gang_place(s, shape);
            bh_shelf_rollback(&s->shelf, mark);
        }
    }
    return found;
}

static bool any_helps(struct bh_sched *s, uint64_t job)
{
    const struct bh_shape *shape = bh_shape_of(s, bh_sched_job(s, job));
    bool found = false;
    s->steps_left = UINT64_MAX;
    for (uint32_t h = 0; h < s->shelf.holds.n && h < s->owners.n && !found; h++)
        found = asks_to_move(s, h) && helps(s, h, shape);
    return found;
}

static struct bh_gang_spec any_job(struct bh_choice *c, uint64_t id)
{
    struct bh_gang_spec j = job_of(id, 1, 1 + !bh_choose(c, 5), 1 + bh_choose(c, 3));
    if (!bh_choose(c, 3))
        j = share_of(id, 1, 100 * (2 + bh_choose(c, 7)), 0);
    if (bh_choose(c, 3))
        j.can |= BH_CAN_MOVE;
    j.firm = !bh_choose(c, 6);
    return j;
}

/* A small fleet with holes in it. */
static struct bh_sched *town(struct bh_choice *c)
{
    struct bh_sched *s = plain_sched();
    add_model(s, 0, NULL);
    for (uint32_t i = 0; i < 2 + bh_choose(c, 3); i++)
        add_node(s, (uint32_t)s->in_nodes.n, 1 + bh_choose(c, 4), BH_NONE);
    add_queue(s, 1, 0, 0, 64);
    uint64_t id = 1;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 6; i++)
            submit(s, any_job(c, id++));
        cycle(s, 10 + round);
        for (uint64_t k = 1; k < id; k++) {
            if (state_of(s, k) == BH_GANG_PENDING)
                tell(s, BH_SCHED_CANCEL, k, 10 + round);
            else if (state_of(s, k) == BH_GANG_RUNS && !bh_choose(c, 3))
                tell(s, BH_SCHED_FINISH, k, 10 + round);
        }
    }
    while (cycle(s, 20)) /* who was bound starts */
        continue;
    return s;
}

TEST(no_single_move_is_missed_and_nobody_is_lost)
{
    uint32_t there = 0, more = 0;
    for (uint64_t seed = 1; seed <= FLEETS; seed++) {
        static uint8_t bytes[512];
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_sched *s = town(&c);
        struct bh_gang_spec j = job_of(1000, 1, 1 + !bh_choose(&c, 3), 1 + bh_choose(&c, 4));
        size_t n;
        submit(s, j);
        bh_sched_settle(s);
        s->now_ms = 100; /* as the cycle will be */
        const struct bh_mark mark = bh_shelf_mark(&s->shelf);
        s->steps_left = UINT64_MAX;
        const bool fits = bh_gang_place(s, bh_shape_of(s, bh_sched_job(s, 1000)));
        bh_shelf_rollback(&s->shelf, mark);
        const bool could = !fits && any_helps(s, 1000);
        const uint32_t runs = bh_sched_stats(s).runs;
        const struct bh_decision *d = bh_sched_decide(s, 100, 0, &n);
        const bool has = state_of(s, 1000) != BH_GANG_PENDING;
        uint32_t moves = 0;
        bool ok = sched_is_sound(s) && bh_sched_stats(s).evictions == 0 &&
                  bh_sched_stats(s).runs == runs + (fits ? 1 : 0) && (!could || has) && (!fits || has);
        for (size_t i = 0; i < n && ok; i++) {
            const struct bh_shape *shape = bh_shape_of(s, bh_sched_job(s, d[i].job));
            moves += d[i].kind == BH_DECIDE_MOVE;
            ok = d[i].kind == BH_DECIDE_START || (d[i].kind == BH_DECIDE_MOVE && d[i].other == 1000 &&
                                                  (shape->can & BH_CAN_MOVE) && !shape->firm);
        }
        ok = ok && (moves != 0) == (has && !fits); /* nobody moves for nothing: one job fewer waits */
        for (size_t i = 0; i < n && ok; i++)
            if (bh_decision_leaves(&d[i]))
                tell(s, BH_SCHED_GONE, d[i].job, 101);
        cycle(s, 101);
        ok = ok && sched_is_sound(s) && state_of(s, 1000) == (has ? BH_GANG_RUNS : BH_GANG_PENDING);
        there += could;
        more += has && !fits && !could;
        if (!ok)
            printf("# seed %" PRIu64 "\n", seed);
        bh_sched_free(s);
        CHECK(ok);
    }
    printf("# one move was enough in %u fleets, several in %u\n", there, more);
    CHECK(there > FLEETS / 100 && more > 3);
}

TEST_MAIN
