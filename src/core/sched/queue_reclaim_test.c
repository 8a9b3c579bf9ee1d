/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_reclaim_test.c - each rule alone; and on random trees: no loop, nothing exceeded, and who is
 * entitled gets its due.
 */
#include "core/sched/queue_reclaim.h"

#include "core/sched/queue_fixture.h"

static bool takes(struct bh_queues *t, struct bh_charge taker, struct bh_charge victim,
                  struct bh_queue_reason *why)
{
    const struct bh_victim v = {&victim, 0};
    return bh_queue_may_reclaim(t, &taker, 1, &v, 1, why);
}

/* Ten GPUs; a and b deserve five each, b has all. */
static void lent(struct bh_queues *t, uint32_t *a, uint32_t *b)
{
    plain_tree(t, 10);
    *a = put(t, 0, leaf_config(0, 5, 1));
    *b = put(t, 0, leaf_config(0, 5, 1));
    event(t, BH_CHARGE_FOUND, work(*b, 10));
    event(t, BH_CHARGE_SUBMIT, work(*a, 8));
    bh_queues_refresh(t, 0);
}

TEST(what_was_lent_comes_back)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    uint32_t a, b;
    lent(&t, &a, &b);
    CHECK(takes(&t, work(a, 5), work(b, 5), &why));
    CHECK_EQ(why.why, BH_QUEUE_FREE);
    CHECK(!takes(&t, work(a, 6), work(b, 6), &why)); /* more than its share */
    CHECK_EQ(why.why, BH_RECLAIM_OVER);
    CHECK_EQ(why.queue, a);
    CHECK_EQ(why.bound, 5 * GPU);
    CHECK(!takes(&t, work(a, 5), work(b, 4), &why)); /* not enough room */
    CHECK_EQ(why.why, BH_QUEUE_TOTAL);
    CHECK_EQ(bh_queue_get(&t, b)->used.at[BH_RES_GPU], 10 * GPU); /* asked, not done */
    CHECK_EQ(bh_queue_get(&t, 0)->held.at[BH_RES_GPU], 10 * GPU);
}

TEST(nobody_within_its_share_loses)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 12);
    const uint32_t a = put(&t, 0, leaf_config(0, 4, 1)), b = put(&t, 0, leaf_config(0, 4, 1)),
                   c = put(&t, 0, leaf_config(0, 4, 1));
    event(&t, BH_CHARGE_FOUND, work(b, 4));
    event(&t, BH_CHARGE_FOUND, work(c, 8));
    event(&t, BH_CHARGE_SUBMIT, work(a, 4));
    bh_queues_refresh(&t, 0);
    CHECK(!takes(&t, work(a, 4), work(b, 4), &why));
    CHECK_EQ(why.why, BH_RECLAIM_WITHIN);
    CHECK_EQ(why.queue, b);
    CHECK_EQ(why.victim, 0);
    CHECK(takes(&t, work(a, 4), work(c, 4), &why));
    const struct bh_charge two = work(c, 4);
    const struct bh_victim both[] = {{&two, 0}, {&two, 0}};
    const struct bh_charge taker = work(a, 4);
    CHECK(!bh_queue_may_reclaim(&t, &taker, 0, both, 2, &why)); /* the second is no longer above */
    CHECK_EQ(why.why, BH_RECLAIM_WITHIN);
    CHECK_EQ(why.victim, 1);
}

/* A team is above its share because of one of its queues: only that one pays. */
TEST(the_queue_that_borrowed_pays_at_every_level)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 12);
    const uint32_t a = put(&t, 0, leaf_config(0, 6, 1)), team = put_group(&t, 0),
                   good = put(&t, team, leaf_config(0, 3, 1)), bad = put(&t, team, leaf_config(0, 3, 1));
    event(&t, BH_CHARGE_FOUND, work(good, 3));
    event(&t, BH_CHARGE_FOUND, work(bad, 9));
    event(&t, BH_CHARGE_SUBMIT, work(a, 3));
    bh_queues_refresh(&t, 0);
    CHECK(!takes(&t, work(a, 3), work(good, 3), &why));
    CHECK_EQ(why.why, BH_RECLAIM_WITHIN);
    CHECK_EQ(why.queue, good);
    CHECK(takes(&t, work(a, 3), work(bad, 3), &why));
}

TEST(within_a_team_that_is_full)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 8);
    const uint32_t team = put_group(&t, 0), a = put(&t, team, leaf_config(0, 2, 1)),
                   b = put(&t, team, leaf_config(0, 2, 1)), other = put(&t, 0, leaf_config(0, 4, 1));
    event(&t, BH_CHARGE_FOUND, work(b, 4));
    event(&t, BH_CHARGE_FOUND, work(other, 4));
    event(&t, BH_CHARGE_SUBMIT, work(a, 2));
    bh_queues_refresh(&t, 0);
    CHECK(takes(&t, work(a, 2), work(b, 2), &why)); /* the team as a whole does not grow */
    CHECK(!takes(&t, work(a, 2), work(other, 2), &why));
    CHECK_EQ(why.why, BH_RECLAIM_OVER);
    CHECK_EQ(why.queue, team);
}

TEST(protections)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 10);
    struct bh_queue_config c = leaf_config(4, 0, 1);
    c.serves = true;
    const uint32_t a = put(&t, 0, leaf_config(0, 5, 1)), b = put(&t, 0, leaf_config(4, 0, 1)),
                   slo = put(&t, 0, c);
    struct bh_charge firm = work(b, 3);
    firm.firm = true;
    event(&t, BH_CHARGE_FOUND, firm);
    event(&t, BH_CHARGE_FOUND, work(b, 3));
    event(&t, BH_CHARGE_FOUND, work(slo, 4));
    event(&t, BH_CHARGE_SUBMIT, work(a, 5));
    bh_queues_refresh(&t, 0);
    CHECK(!takes(&t, work(a, 2), firm, &why));
    CHECK_EQ(why.why, BH_RECLAIM_GUARANTEE); /* 6 - 3 is inside its guarantee of 4 */
    CHECK(!takes(&t, work(a, 2), work(b, 3), &why));
    CHECK_EQ(why.why, BH_RECLAIM_GUARANTEE);
    CHECK_EQ(why.bound, 4 * GPU);
    CHECK(takes(&t, work(a, 2), work(b, 2), &why));
    firm.amount = gpus(2);
    CHECK(!takes(&t, work(a, 2), firm, &why));
    CHECK_EQ(why.why, BH_RECLAIM_FIRM);
    event(&t, BH_CHARGE_END, work(b, 3));
    event(&t, BH_CHARGE_FOUND,
          work(slo, 2)); /* above its guarantee, and still not for a queue without an SLO */
    bh_queues_refresh(&t, 0);
    CHECK(!takes(&t, work(a, 2), work(slo, 2), &why));
    CHECK_EQ(why.why, BH_RECLAIM_SERVES);
}

TEST(in_its_own_queue_by_priority_and_without_growing)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 10);
    const uint32_t a = put(&t, 0, leaf_config(0, 6, 1));
    const struct bh_charge running = work(a, 4), taker = work(a, 4), large = work(a, 5);
    const struct bh_victim low = {&running, 0}, high = {&running, 2};
    event(&t, BH_CHARGE_FOUND, work(a, 10));
    event(&t, BH_CHARGE_SUBMIT, work(a, 9));
    bh_queues_refresh(&t, 0);
    CHECK(bh_queue_may_reclaim(&t, &taker, 1, &low, 1, &why));
    CHECK(!bh_queue_may_reclaim(&t, &taker, 1, &high, 1, &why));
    CHECK_EQ(why.why, BH_RECLAIM_PRIORITY);
    event(&t, BH_CHARGE_END, work(a, 1));
    bh_queues_refresh(&t, 0);
    CHECK(!bh_queue_may_reclaim(&t, &large, 1, &low, 1, &why)); /* 9 - 4 + 5: more borrowed than before */
    CHECK_EQ(why.why, BH_RECLAIM_PRIORITY);
}

TEST(a_margin_keeps_shares_from_being_fought_over)
{
    struct bh_queues t BH_AUTO(bh_queues_fini);
    struct bh_queue_reason why;
    plain_tree(&t, 10);
    const uint32_t a = put(&t, 0, leaf_config(0, 0, 1)), b = put(&t, 0, leaf_config(0, 0, 1));
    event(&t, BH_CHARGE_FOUND, work(a, 4));
    event(&t, BH_CHARGE_FOUND, work(b, 6));
    event(&t, BH_CHARGE_SUBMIT, work(a, 4));
    bh_queues_refresh(&t, 0);
    CHECK(takes(&t, work(a, 1), work(b, 1), &why));
    t.config.margin_ppm = 1200000;
    CHECK(!takes(&t, work(a, 1), work(b, 1), &why));
    CHECK_EQ(why.why, BH_RECLAIM_SATURATED);
}

static bool above_share(const struct bh_queues *t, uint32_t queue)
{
    const struct bh_queue *q = bh_queue_get(t, queue);
    return q->used.at[BH_RES_GPU] > q->fair.at[BH_RES_GPU] ||
           q->used.at[BH_RES_GPU] > q->entitled.at[BH_RES_GPU];
}

/* Some that run, most of them of queues that have more than they should. */
static uint32_t draw_victims(struct world *w, struct bh_choice *c, const struct job *taker,
                             uint32_t picked[6])
{
    const uint32_t want = 1 + bh_choose(c, 6), step = 1 + 2 * bh_choose(c, 20),
                   first = bh_choose(c, w->n_jobs);
    const bool any = !bh_choose(c, 8), own = !bh_choose(c, 4);
    uint32_t n = 0;
    for (uint32_t i = first, tried = 0; tried < w->n_jobs && n < want; tried++, i = (i + step) % w->n_jobs) {
        const struct job *j = &w->jobs[i];
        const bool fits = own ? j->charge.queue == taker->charge.queue && j->priority < taker->priority
                              : any || above_share(&w->t, j->charge.queue);
        bool again = j->state != RUNS || j->charge.firm || !fits;
        for (uint32_t k = 0; k < n; k++)
            again |= picked[k] == i;
        if (!again)
            picked[n++] = i;
    }
    return n;
}

/* A random move, applied if it is legal. *ret_own: all victims were of the taker's queue. */
static bool random_reclaim(struct world *w, struct bh_choice *c, bool *ret_own)
{
    struct bh_victim victims[6];
    uint32_t picked[6];
    struct bh_queue_reason why;
    struct job *j = &w->jobs[bh_choose(c, w->n_jobs)];
    if (j->state != PENDING)
        return false;
    const uint32_t n = draw_victims(w, c, j, picked);
    *ret_own = true;
    for (uint32_t k = 0; k < n; k++) {
        const struct job *v = &w->jobs[picked[k]];
        victims[k] = (struct bh_victim){&v->charge, v->priority};
        *ret_own = *ret_own && v->charge.queue == j->charge.queue;
    }
    if (!n || !bh_queue_may_reclaim(&w->t, &j->charge, j->priority, victims, n, &why))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        bh_queue_apply(&w->t, BH_CHARGE_EVICT, &w->jobs[picked[k]].charge, 0);
        w->jobs[picked[k]].state = PENDING;
    }
    bh_queue_apply(&w->t, BH_CHARGE_START, &j->charge, 0);
    j->state = RUNS;
    return true;
}

/* GPUs that run at each priority, the highest first: what a move inside a queue makes larger. */
static int cmp_by_priority(const uint64_t a[3], const uint64_t b[3])
{
    for (int i = 2; i >= 0; i--)
        if (a[i] != b[i])
            return a[i] > b[i] ? 1 : -1;
    return 0;
}

static void by_priority(const struct world *w, uint64_t out[3])
{
    memset(out, 0, 3 * sizeof(*out));
    for (uint32_t i = 0; i < w->n_jobs; i++)
        if (w->jobs[i].state == RUNS)
            out[w->jobs[i].priority] += w->jobs[i].charge.amount.at[BH_RES_GPU];
}

static bool within_bounds(const struct bh_queues *t)
{
    for (size_t i = 0; i < t->at.n; i++)
        BH_EACH_RES(r)
        {
            const struct bh_queue *q = &t->at.at[i];
            if (q->used.at[r] > q->ceiling.at[r] ||
                (q->entitled.at[r] != BH_AMOUNT_ANY && q->used_firm.at[r] > q->entitled.at[r]))
                return false;
        }
    return true;
}

/* The fair shares of one moment, whatever is evicted: they follow from what is wanted. */
static bool shares_stay(struct bh_queues *t)
{
    struct bh_potential before, after;
    bh_queues_potential(t, &before);
    memset(t->dirty, 1, t->at.n);
    bh_queues_refresh(t, 0);
    bh_queues_potential(t, &after);
    return bh_potential_cmp(&before, &after) == 0;
}

/* Some queues were there first and borrowed; all the others come now. */
static void fill_unevenly(struct world *w)
{
    struct bh_queue_reason why;
    for (uint32_t i = 0; i < w->n_jobs; i++) {
        struct job *j = &w->jobs[i];
        j->charge.firm = j->charge.firm && i % 4 == 0;
        event(&w->t, BH_CHARGE_SUBMIT, j->charge);
        j->state = PENDING;
        if (j->charge.queue % 3 == 0 && bh_queue_may_start(&w->t, &j->charge, &why)) {
            event(&w->t, BH_CHARGE_START, j->charge);
            j->state = RUNS;
        }
    }
}

TEST(every_reclaim_makes_the_potential_fall)
{
    static struct world w;
    static uint8_t bytes[1 << 14];
    uint32_t legal = 0, own_queue = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_potential before, after;
        uint64_t prio[3], prio_after[3];
        bool good = true;
        draw_world(&w, &c, seed % 2);
        if (seed % 3)
            fill_unevenly(&w);
        else
            fill_world(&w, 0);
        bh_queues_refresh(&w.t, 0);
        bh_queues_potential(&w.t, &before);
        by_priority(&w, prio);
        while (c.left && good) {
            bool own;
            if (!random_reclaim(&w, &c, &own))
                continue;
            legal++;
            own_queue += own;
            bh_queues_potential(&w.t, &after);
            by_priority(&w, prio_after);
            const int fell = bh_potential_cmp(&after, &before);
            good = fell < 0 || (own && fell == 0 && cmp_by_priority(prio_after, prio) > 0);
            good = good && within_bounds(&w.t);
            before = after;
            memcpy(prio, prio_after, sizeof(prio));
        }
        good = good && shares_stay(&w.t);
        bh_queues_fini(&w.t);
        CHECK(good);
    }
    printf("# %" PRIu32 " legal reclaims, %" PRIu32 " of them in one queue\n", legal, own_queue);
    CHECK(legal > 1000);
    CHECK(own_queue > 20);
    CHECK(legal - own_queue > 500);
}

/*
 * One GPU each, all interruptible: whoever may have it by its share finds somebody to take it from, until
 * nobody is owed.
 */
TEST(who_is_owed_a_gpu_finds_a_victim)
{
    static struct world w;
    static uint8_t bytes[1 << 14];
    uint32_t moves = 0;
    for (uint64_t seed = 500; seed < 600; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        draw_world(&w, &c, true);
        for (uint32_t i = 0; i < w.t.at.n; i++) { /* whole GPUs in all promises, no guarantees */
            struct bh_queue_config q = w.t.at.at[i].config;
            memset(&q.guarantee, 0, sizeof(q.guarantee));
            BH_EACH_RES(r) q.limit.at[r] = BH_AMOUNT_ANY;
            q.model = BH_QUOTA_FAIRSHARE;
            q.share_max_ppm = BH_SHARE_WHOLE;
            q.serves = false;
            if (i && bh_queues_change(&w.t, i, &q, 0, NULL))
                abort();
        }
        for (uint32_t i = 0; i < w.n_jobs; i++)
            w.jobs[i].charge = work(w.jobs[i].charge.queue, 1);
        fill_world(&w, 0);
        bh_queues_refresh(&w.t, 0);
        bool found = true, good = true;
        const uint32_t most = moves + 10000; /* a loop must end as a failure */
        while (found && good) {
            found = false;
            for (uint32_t i = 0; i < w.n_jobs && good; i++) {
                struct job *j = &w.jobs[i];
                struct bh_queue_reason why;
                bool owed = j->state == PENDING && !bh_queue_may_start(&w.t, &j->charge, &why), got = false;
                for (uint32_t q = j->charge.queue; owed && q; q = w.t.at.at[q].parent)
                    owed = w.t.at.at[q].used.at[BH_RES_GPU] + GPU <= w.t.at.at[q].fair.at[BH_RES_GPU];
                for (uint32_t k = 0; owed && !got && k < w.n_jobs; k++) {
                    const struct bh_victim v = {&w.jobs[k].charge, 0};
                    got = w.jobs[k].state == RUNS && bh_queue_may_reclaim(&w.t, &j->charge, 0, &v, 1, &why);
                    if (!got)
                        continue;
                    event(&w.t, BH_CHARGE_EVICT, w.jobs[k].charge);
                    event(&w.t, BH_CHARGE_START, j->charge);
                    w.jobs[k].state = PENDING;
                    j->state = RUNS;
                    moves++;
                }
                good = (!owed || got) && moves < most;
                found |= got;
            }
        }
        bh_queues_fini(&w.t);
        CHECK(good);
    }
    CHECK(moves > 200);
}

TEST_MAIN
