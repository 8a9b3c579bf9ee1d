/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_test.c - the tree and its account: sums on the path, events and their opposites, undo bit for bit,
 * the entry fee.
 */
#include "core/sched/queue.h"

#include "core/sched/queue_fixture.h"

static uint64_t used(const struct bh_queues *t, uint32_t queue)
{
    return bh_queue_get(t, queue)->used.at[BH_RES_GPU] / GPU;
}

static uint64_t wanted(const struct bh_queues *t, uint32_t queue)
{
    return bh_queue_get(t, queue)->wanted.at[BH_RES_GPU] / GPU;
}

TEST(events_count_on_the_whole_path)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 100);
    const uint32_t team = put_group(&t, 0), a = put(&t, team, leaf_config(0, 4, 1)),
                   b = put(&t, team, leaf_config(0, 4, 1));
    struct bh_charge firm = work(a, 3);
    firm.firm = true;
    event(&t, BH_CHARGE_SUBMIT, work(a, 5));
    event(&t, BH_CHARGE_SUBMIT, work(b, 2));
    CHECK_EQ(used(&t, team), 0);
    CHECK_EQ(wanted(&t, 0), 7);
    event(&t, BH_CHARGE_START, work(a, 5));
    event(&t, BH_CHARGE_FOUND, firm);
    CHECK_EQ(used(&t, a), 8);
    CHECK_EQ(used(&t, team), 8);
    CHECK_EQ(used(&t, 0), 8);
    CHECK_EQ(bh_queue_get(&t, team)->used_firm.at[BH_RES_GPU], 3 * GPU);
    CHECK_EQ(wanted(&t, team), 10);
    event(&t, BH_CHARGE_EVICT, work(a, 5));
    CHECK_EQ(used(&t, 0), 3);
    CHECK_EQ(wanted(&t, team), 10);
    event(&t, BH_CHARGE_END, firm);
    event(&t, BH_CHARGE_WITHDRAW, work(a, 5));
    event(&t, BH_CHARGE_WITHDRAW, work(b, 2));
    CHECK_EQ(wanted(&t, 0), 0);
    CHECK_EQ(used(&t, 0), 0);
}

TEST(models_are_a_way_to_read_the_same_numbers)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 100);
    struct bh_queue_config c = leaf_config(2, 6, 1);
    const uint32_t fair = put(&t, 0, c);
    c.model = BH_QUOTA_HARD;
    const uint32_t hard = put(&t, 0, c);
    c.model = BH_QUOTA_PRIORITY;
    c.share_max_ppm = 250000;
    const uint32_t prio = put(&t, 0, c);
    CHECK_EQ(bh_queue_get(&t, fair)->kept.at[BH_RES_GPU], 2 * GPU);
    CHECK(bh_queue_get(&t, fair)->ceiling.at[BH_RES_GPU] == BH_AMOUNT_ANY);
    CHECK_EQ(bh_queue_get(&t, hard)->kept.at[BH_RES_GPU], 8 * GPU); /* never lent */
    CHECK_EQ(bh_queue_get(&t, hard)->ceiling.at[BH_RES_GPU], 8 * GPU);
    CHECK_EQ(bh_queue_get(&t, prio)->entitled.at[BH_RES_GPU], 8 * GPU);
    CHECK_EQ(bh_queue_get(&t, prio)->ceiling.at[BH_RES_GPU], 25 * GPU);
    CHECK_EQ(bh_queue_get(&t, 0)->kept.at[BH_RES_GPU], 12 * GPU);
    event(&t, BH_CHARGE_FOUND, work(hard, 3));
    CHECK_EQ(bh_queue_stranded(bh_queue_get(&t, hard), BH_RES_GPU), 5 * GPU);
    const struct bh_resources smaller = gpus(20);
    bh_queues_total(&t, &smaller);
    CHECK_EQ(bh_queue_get(&t, prio)->ceiling.at[BH_RES_GPU], 5 * GPU);
}

TEST(a_group_has_what_is_below_it)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 100);
    const uint32_t team = put_group(&t, 0);
    put(&t, team, leaf_config(2, 3, 1));
    put(&t, team, leaf_config(0, 7, 1));
    CHECK_EQ(bh_queue_get(&t, team)->entitled.at[BH_RES_GPU], 12 * GPU);
    CHECK_EQ(bh_queue_get(&t, team)->kept.at[BH_RES_GPU], 2 * GPU);
    CHECK(bh_queue_get(&t, team)->entitled.at[BH_RES_CPU] == BH_AMOUNT_ANY);
}

TEST(refusals)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 8);
    struct bh_queue_config c = leaf_config(4, 0, 1);
    uint32_t ret = 77, deep = 0;
    c.limit.at[BH_RES_GPU] = 3 * GPU;
    CHECK_EQ(bh_queues_add(&t, 0, &c, &ret, NULL), BH_INVALID); /* guarantees more than its limit */
    c = leaf_config(0, 0, BH_WEIGHT_MAX + 1);
    CHECK_EQ(bh_queues_add(&t, 0, &c, &ret, NULL), BH_INVALID);
    c = leaf_config(0, 0, 1);
    c.share_max_ppm = BH_SHARE_WHOLE + 1;
    CHECK_EQ(bh_queues_add(&t, 0, &c, &ret, NULL), BH_INVALID);
    c = leaf_config(0, 0, 1);
    c.deserved.at[BH_RES_MEM] = BH_AMOUNT_MAX + 1;
    CHECK_EQ(bh_queues_add(&t, 0, &c, &ret, NULL), BH_INVALID);
    c = leaf_config(0, 0, 1);
    CHECK_EQ(bh_queues_add(&t, 5, &c, &ret, NULL), BH_NOT_FOUND);
    CHECK_EQ(bh_queues_change(&t, 0, &c, 0, NULL), BH_NOT_FOUND);
    const uint32_t leaf = put(&t, 0, c);
    event(&t, BH_CHARGE_SUBMIT, work(leaf, 1));
    CHECK_EQ(bh_queues_add(&t, leaf, &c, &ret, NULL), BH_CONFLICT); /* work stands in leaves */
    CHECK_EQ(ret, 77);
    for (unsigned i = 0; i < BH_QUEUE_DEPTH; i++)
        deep = put_group(&t, deep);
    CHECK_EQ(bh_queues_add(&t, deep, &c, &ret, NULL), BH_INVALID);
}

TEST(a_changed_queue_keeps_its_work)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    plain_tree(&t, 8);
    struct bh_queue_config c = leaf_config(0, 4, 1);
    const uint32_t q = put(&t, 0, c);
    struct bh_charge high = work(q, 6);
    high.band = BH_PRIORITY_HIGH;
    event(&t, BH_CHARGE_FOUND, high);
    c.limit.at[BH_RES_GPU] = 5 * GPU;
    c.budget = 1000;
    c.budget_period_ms = 10;
    CHECK_EQ(bh_queues_change(&t, q, &c, 100, NULL), 0);
    CHECK_EQ(used(&t, q), 6);
    CHECK_EQ(bh_queue_get(&t, q)->budget.rate_milli, 6 * GPU); /* what runs drains the new budget */
    CHECK_EQ(bh_queue_get(&t, q)->budget.level, 1000);
    struct bh_queue_reason why;
    const struct bh_charge one = work(q, 1);
    CHECK(!bh_queue_may_start(&t, &one, &why));
    CHECK_EQ(why.why, BH_QUEUE_LIMIT);
}

TEST(an_entry_fee_is_given_back_as_far_as_it_was_run)
{
    struct bh_queues_config config = plain_config();
    struct bh_queues t BH_AUTO(bh_queues_fini);
    config.entry_ms = 1000;
    bh_queues_init(&t, &config);
    const uint32_t q = put(&t, 0, leaf_config(0, 4, 1));
    struct bh_charge c = work(q, 1);
    bh_queue_apply(&t, BH_CHARGE_SUBMIT, &c, 500);
    bh_queue_apply(&t, BH_CHARGE_START, &c, 500);
    CHECK_EQ(bh_usage_at(&bh_queue_get(&t, q)->usage, 0, 500), 1000 * 1000); /* seen before it has run */
    c.started_ms = 500;
    bh_queue_apply(&t, BH_CHARGE_END, &c, 3500);
    CHECK_EQ(bh_usage_at(&bh_queue_get(&t, q)->usage, 0, 3500), 3000 * 1000); /* exactly its time */
    bh_queue_apply(&t, BH_CHARGE_FOUND, &c, 3500); /* counts as one that paid when it started */
    bh_queue_apply(&t, BH_CHARGE_END, &c, 3500);
    CHECK_EQ(bh_usage_at(&bh_queue_get(&t, q)->usage, 0, 3500), 3000 * 1000);
    c.started_ms = 4000;
    bh_queue_apply(&t, BH_CHARGE_SUBMIT, &c, 4000);
    bh_queue_apply(&t, BH_CHARGE_START, &c, 4000);
    bh_queue_apply(&t, BH_CHARGE_EVICT, &c, 4100);
    CHECK_EQ(bh_usage_at(&bh_queue_get(&t, 0)->usage, 0, 4100),
             4000 * 1000); /* a short one pays for entry_ms */
}

static void random_event(struct world *w, struct bh_choice *c, uint64_t now_ms)
{
    struct job *j = &w->jobs[bh_choose(c, w->n_jobs)];
    static const struct {
        enum bh_charge_event event;
        enum job_state from, to;
    } moves[] = {
        {BH_CHARGE_SUBMIT, ABSENT, PENDING},   {BH_CHARGE_FOUND, ABSENT, RUNS},
        {BH_CHARGE_WITHDRAW, PENDING, ABSENT}, {BH_CHARGE_START, PENDING, RUNS},
        {BH_CHARGE_EVICT, RUNS, PENDING},      {BH_CHARGE_END, RUNS, ABSENT},
    };
    const uint32_t k = bh_choose(c, (uint32_t)BH_COUNT_OF(moves));
    struct bh_queue_reason why;
    if (j->state != moves[k].from)
        return;
    if (moves[k].to == RUNS && !bh_queue_may_start(&w->t, &j->charge, &why))
        return;
    if (moves[k].to == RUNS)
        j->charge.started_ms = now_ms;
    bh_queue_apply(&w->t, moves[k].event, &j->charge, now_ms);
    j->state = moves[k].to;
}

/* Everything that is summed on the way, summed again from the leaves. */
static bool sums_hold(const struct world *w)
{
    const size_t n = w->t.at.n;
    for (size_t i = 0; i < n; i++) {
        const struct bh_queue *q = &w->t.at.at[i];
        BH_EACH_RES(r)
        {
            uint64_t in_use = 0, firm = 0, held = 0, want = 0;
            for (uint32_t k = 0; k < w->n_jobs; k++) {
                const struct job *j = &w->jobs[k];
                uint32_t up = j->charge.queue;
                while (up != i && up)
                    up = w->t.at.at[up].parent;
                in_use += j->state == RUNS && up == i ? j->charge.amount.at[r] : 0;
                firm += j->state == RUNS && up == i && j->charge.firm ? j->charge.amount.at[r] : 0;
            }
            for (uint32_t ch = q->first_child; ch != BH_QUEUE_NONE; ch = w->t.at.at[ch].next_sibling) {
                held += w->t.at.at[ch].held.at[r];
                want += w->t.at.at[ch].wanted.at[r];
            }
            if (q->used.at[r] != in_use || q->used_firm.at[r] != firm || q->held_below.at[r] != held ||
                q->wanted_below.at[r] != want || q->held.at[r] < q->used.at[r] ||
                q->held.at[r] < q->kept.at[r])
                return false;
            if (q->used.at[r] > q->ceiling.at[r] ||
                (q->entitled.at[r] != BH_AMOUNT_ANY && firm > q->entitled.at[r]))
                return false;
        }
    }
    return true;
}

TEST(random_events_keep_sums_and_limits)
{
    static struct world w;
    uint8_t bytes[16384];
    for (uint64_t seed = 0; seed < 60; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        draw_world(&w, &c, false);
        for (uint64_t step = 0; step < 600; step++)
            random_event(&w, &c, step * 777);
        const bool good = sums_hold(&w);
        for (uint32_t i = 0; i < w.n_jobs; i++) /* and everything taken out leaves nothing */
            if (w.jobs[i].state != ABSENT)
                bh_queue_apply(&w.t, w.jobs[i].state == RUNS ? BH_CHARGE_END : BH_CHARGE_WITHDRAW,
                               &w.jobs[i].charge, UINT64_C(1) << 30);
        uint64_t left = 0;
        for (size_t i = 0; i < w.t.at.n; i++)
            left |= w.t.at.at[i].usage.rate_milli | w.t.at.at[i].budget.rate_milli |
                    w.t.at.at[i].wanted.at[BH_RES_GPU] | w.t.at.at[i].used.at[BH_RES_GPU] |
                    w.t.at.at[i].used_firm.at[BH_RES_GPU];
        bh_queues_fini(&w.t);
        CHECK(good);
        CHECK_EQ(left, 0);
    }
}

TEST(what_follows_on_a_path_is_what_follows_for_the_tree)
{
    static struct world w;
    uint8_t bytes[16384];
    for (uint64_t seed = 200; seed < 260; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        draw_world(&w, &c, false);
        fill_world(&w, 0);
        for (int i = 0; i < 10; i++) {
            const uint32_t q = 1 + bh_choose(&c, (uint32_t)w.t.at.n - 1);
            const struct bh_queue_config config = draw_config(&c, bh_queue_leaf(bh_queue_get(&w.t, q)));
            if (bh_queues_change(&w.t, q, &config, 0, NULL))
                abort();
        }
        const size_t size = w.t.at.n * sizeof(struct bh_queue);
        struct bh_queue *before BH_AUTOFREE = bh_alloc(1, size);
        const struct bh_resources total = w.t.total;
        memcpy(before, w.t.at.at, size);
        bh_queues_total(&w.t, &total);
        const bool same = !memcmp(before, w.t.at.at, size);
        bh_queues_fini(&w.t);
        CHECK(same);
    }
}

TEST(a_rollback_is_bit_for_bit)
{
    static struct world w;
    uint8_t bytes[16384];
    for (uint64_t seed = 100; seed < 160; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        draw_world(&w, &c, false);
        for (uint64_t step = 0; step < 200; step++)
            random_event(&w, &c, step * 777);
        const size_t size = w.t.at.n * sizeof(struct bh_queue);
        struct bh_queue *before BH_AUTOFREE = bh_alloc(1, size);
        memcpy(before, w.t.at.at, size);
        bh_queues_reserve(&w.t, 4096);
        const size_t room = w.t.undo.cap, outer = bh_queues_mark(&w.t);
        for (uint64_t step = 0; step < 60; step++)
            random_event(&w, &c, 200000 + step * 7777);
        const size_t inner = bh_queues_mark(&w.t);
        for (uint64_t step = 0; step < 60; step++)
            random_event(&w, &c, 700000 + step * 7777);
        if (seed % 2)
            bh_queues_keep(&w.t, inner);
        else
            bh_queues_rollback(&w.t, inner);
        bh_queues_rollback(&w.t, outer);
        const bool same = !memcmp(before, w.t.at.at, size), in_room = w.t.undo.cap == room,
                   closed = !w.t.marks && !w.t.undo.n;
        bh_queues_fini(&w.t);
        CHECK(same);
        CHECK(in_room);
        CHECK(closed);
    }
}

TEST_MAIN
