/* SPDX-License-Identifier: Apache-2.0 */
/* cycle_order_test.c - whose turn it is, against looking at everybody. */
#include "core/sched/sched_life_fixture.h"

/* Of a queue the best line below it, by the definition: the best child by its best work. */
static uint32_t best_of(const struct bh_sched *s, uint32_t queue)
{
    const struct bh_queue *q = &s->queues.at.at[queue];
    enum bh_turn_key key;
    uint32_t best = BH_NONE;
    if (q->first_child == BH_QUEUE_NONE) {
        for (uint32_t i = 0; i < s->lines.n; i++) {
            struct bh_line *l = &s->lines.at[i];
            if (l->queue != queue || !l->heap.n || bh_line_stuck(s, l))
                continue;
            const struct bh_turn x = bh_line_turn(s, l);
            const struct bh_turn y = best == BH_NONE ? x : bh_line_turn(s, &s->lines.at[best]);
            if (best == BH_NONE || bh_turn_compare(&s->queues, &x, &y, s->now_ms, &key) < 0)
                best = i;
        }
        return best;
    }
    for (uint32_t c = q->first_child; c != BH_QUEUE_NONE; c = s->queues.at.at[c].next_sibling) {
        const uint32_t line = best_of(s, c);
        if (line == BH_NONE)
            continue;
        const struct bh_turn x = bh_line_turn(s, &s->lines.at[line]);
        const struct bh_turn y = bh_line_turn(s, &s->lines.at[best == BH_NONE ? line : best]);
        if (best == BH_NONE || bh_turn_compare(&s->queues, &x, &y, s->now_ms, &key) < 0)
            best = line;
    }
    return best;
}

/* Many lines; each in turn is taken out, and the next must be the best of those that are left. */
TEST(the_best_of_all_levels_is_next)
{
    static uint8_t bytes[LIFE_BYTES];
    static struct life l;
    uint32_t turns = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        life_begin(&l, bytes, sizeof(bytes), 1);
        CHECK(life_live(&l, 6));
        for (uint32_t i = 0; i < 60; i++)
            life_event(&l);
        tell_all(&l);
        struct bh_sched *s = l.s[0];
        bh_sched_settle(s);
        bh_queues_refresh(&s->queues, s->now_ms);
        s->reclaiming = false;
        bh_order_all(s);
        for (uint32_t line; (line = s->rooms.at[BH_QUEUE_ROOT].best) != BH_NONE; turns++) {
            enum bh_turn_key key;
            CHECK_EQ(line, best_of(s, BH_QUEUE_ROOT));
            const uint32_t rival = bh_order_rival(s, line, &key);
            CHECK(rival == BH_NONE ? key == BH_TURN_SAME : key != BH_TURN_SAME && rival != line);
            /* Out of the way, as if it had been found stuck. */
            s->lines.at[line].stuck = BH_STUCK_VETO;
            s->lines.at[line].at = s->stats.cycles;
            bh_order_leaf(s, s->lines.at[line].queue);
        }
        life_end(&l);
    }
    CHECK(turns > 1000);
}

TEST(what_is_stuck_is_looked_at_again_when_something_eased)
{
    struct bh_sched *s = plain_sched();
    struct bh_queue_config c;
    add_fleet(s, 1, 8);
    bh_queue_config_init(&c);
    c.deserved.at[BH_RES_GPU] = 8 * GPU;
    c.limit.at[BH_RES_GPU] = 2 * GPU;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .parent = 0, .queue = &c});
    add_queue(s, 2, 0, 0, 8);
    submit(s, job_of(1, 1, 1, 2));
    submit(s, job_of(2, 2, 1, 6));
    cycle(s, 1);
    submit(s, job_of(3, 1, 1, 1));
    submit(s, job_of(4, 2, 1, 1));
    cycle(s, 2);
    struct bh_line *over_limit = &s->lines.at[bh_sched_job(s, 3)->line];
    struct bh_line *no_room = &s->lines.at[bh_sched_job(s, 4)->line];
    CHECK_EQ(over_limit->stuck, BH_STUCK_QUOTA);
    CHECK_EQ(over_limit->why.queue, 1);
    CHECK_EQ(no_room->stuck, BH_STUCK_ROOM);
    CHECK(bh_line_stuck(s, over_limit) && bh_line_stuck(s, no_room));
    tell(s, BH_SCHED_FINISH, 2, 3); /* another queue's: no quota for the first */
    bh_sched_settle(s);
    CHECK(bh_line_stuck(s, over_limit));
    CHECK(!bh_line_stuck(s, no_room));
    tell(s, BH_SCHED_FINISH, 1, 3);
    bh_sched_settle(s);
    CHECK(!bh_line_stuck(s, over_limit));
    cycle(s, 4);
    CHECK_EQ(s->stats.runs, 2);
    bh_sched_free(s);
}

TEST_MAIN
