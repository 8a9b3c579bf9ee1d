/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim_test.c - who goes and how, case by case, and against every set of victims there could be. */
#include "core/sched/reclaim.h"

#include "core/sched/sched_fixture.h"

/* One node of eight; a borrower that deserves nothing, and an owner that deserves all. */
static struct bh_sched *borrower(void)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 1, 8);
    add_queue(s, 1, 0, 0, 0);
    add_queue(s, 2, 0, 0, 8);
    return s;
}

static struct bh_gang_spec can(struct bh_gang_spec j, uint8_t what, uint32_t image_mib)
{
    j.can = what;
    j.roles[0].image_mib = image_mib;
    return j;
}

/* A borrower with this job; then the owner wants the other. How the borrower went. */
static int rung_for(struct bh_gang_spec victim, struct bh_gang_spec taker, uint64_t *ret_price)
{
    struct bh_sched *s = borrower();
    victim.queue = 1;
    taker.queue = 2;
    submit(s, victim);
    cycle(s, 1000);
    tell(s, BH_SCHED_CHECKPOINT, victim.id, 1500);
    submit(s, taker);
    cycle(s, 2000);
    const struct bh_decision *d = decision_of(s, BH_DECIDE_EVICT, victim.id);
    const int rung = d ? d->rung : -1;
    *ret_price = d ? d->price : 0;
    cycle(s, 2001);
    const bool ok = state_of(s, taker.id) == BH_GANG_RUNS && sched_is_sound(s) &&
                    state_of(s, victim.id) == (rung == BH_RUNG_KILL ? BH_GANG_FREE : BH_GANG_PENDING);
    bh_sched_free(s);
    return ok ? rung : -2;
}

TEST(the_cheapest_rung_that_frees_what_is_needed)
{
    const uint8_t all = BH_CAN_PAUSE | BH_CAN_SUSPEND | BH_CAN_REQUEUE;
    uint64_t price;
    struct bh_gang_spec whole = job_of(1, 1, 8, 1), shares = share_of(1, 1, 600, 50000);
    shares.roles[0].min = shares.roles[0].max = 8;
    struct bh_gang_spec small = share_of(9, 2, 600, 10000), large = share_of(9, 2, 600, 40000);
    /* Time is enough for the small one; the large one needs the memory. */
    CHECK_EQ(rung_for(can(shares, all, 0), small, &price), BH_RUNG_PAUSE);
    CHECK_EQ(price, 0);
    CHECK_EQ(rung_for(can(shares, all, 270), large, &price), BH_RUNG_SUSPEND);
    CHECK_EQ(price, 8 * 200 * 600);
    CHECK_EQ(rung_for(can(shares, all, 0), large, &price), BH_RUNG_REQUEUE); /* its image is all its memory */
    CHECK_EQ(price, 8 * 500 * 600);
    CHECK_EQ(rung_for(can(shares, BH_CAN_SUSPEND, 0), large, &price),
             BH_RUNG_SUSPEND); /* not killed for that */
    CHECK_EQ(rung_for(can(shares, BH_CAN_SUSPEND | BH_CAN_REQUEUE, 1 << 19), large, &price), BH_RUNG_REQUEUE);
    CHECK_EQ(rung_for(can(whole, all, 500), job_of(9, 2, 1, 8), &price), BH_RUNG_SUSPEND);
    CHECK_EQ(rung_for(can(whole, all, 0), job_of(9, 2, 1, 8), &price), BH_RUNG_REQUEUE); /* no image known */
    CHECK_EQ(price, 8 * 500 * GPU); /* since its checkpoint */
    CHECK_EQ(rung_for(can(whole, 0, 0), job_of(9, 2, 1, 8), &price), BH_RUNG_KILL);
    CHECK_EQ(price, 8 * 1000 * GPU);
}

TEST(who_was_paused_goes_on_where_it_was)
{
    struct bh_sched *s = borrower();
    struct bh_gang_spec j = can(share_of(1, 1, 900, 50000), BH_CAN_PAUSE, 0);
    j.roles[0].min = j.roles[0].max = 8;
    submit(s, j);
    cycle(s, 1);
    submit(s, share_of(2, 2, 900, 1000));
    cycle(s, 10);
    cycle(s, 11);
    CHECK_EQ(state_of(s, 1), BH_GANG_PENDING);
    CHECK_EQ(state_of(s, 2), BH_GANG_RUNS);
    CHECK_EQ(s->shelf.n_taken, 9); /* its memory is still there */
    CHECK(sched_is_sound(s));
    tell(s, BH_SCHED_FINISH, 2, 20);
    cycle(s, 20);
    CHECK_EQ(told_of(s, BH_DECIDE_RESUME, 1), 1);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    CHECK_EQ(s->shelf.n_taken, 8);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(elastic_members_go_first_and_only_as_many_as_needed)
{
    struct bh_sched *s = borrower();
    struct bh_gang_spec j = job_of(1, 1, 2, 1);
    j.roles[0].max = 6;
    submit(s, j);
    submit(s, job_of(2, 1, 1, 2));
    cycle(s, 1);
    CHECK_EQ(told_of(s, BH_DECIDE_GROW, 1), 4);
    CHECK_EQ(bh_sched_job(s, 1)->extra, 4);
    submit(s, job_of(3, 2, 3, 1));
    cycle(s, 10);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 1), 3);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 2), 0);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 1)->rung, BH_RUNG_NARROW);
    CHECK_EQ(bh_sched_job(s, 1)->extra, 1);
    CHECK_EQ(state_of(s, 1), BH_GANG_RUNS);
    cycle(s, 11);
    CHECK_EQ(state_of(s, 3), BH_GANG_RUNS);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

TEST(whole_gangs_go_and_few_rather_than_many)
{
    struct bh_sched *s = borrower();
    submit(s, job_of(1, 1, 4, 1)); /* a gang */
    for (uint32_t i = 2; i <= 5; i++)
        submit(s, job_of(i, 1, 1, 1));
    cycle(s, 1);
    submit(s, job_of(9, 2, 1, 1));
    cycle(s, 10);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 1);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 5), 1); /* the youngest that leaves enough, not the gang */
    bh_sched_free(s);
}

TEST(in_one_queue_the_higher_priority_wins)
{
    struct bh_sched *s = borrower();
    for (uint32_t i = 1; i <= 8; i++) {
        struct bh_gang_spec j = job_of(i, 2, 1, 1);
        j.priority = (int32_t)(i % 2);
        submit(s, j);
    }
    cycle(s, 1);
    struct bh_gang_spec same = job_of(20, 2, 1, 1), higher = job_of(21, 2, 2, 1);
    higher.priority = 1;
    submit(s, same);
    cycle(s, 10);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 0);
    submit(s, higher);
    cycle(s, 20);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 2);
    for (uint32_t i = 1; i <= 8; i += 2)
        CHECK_EQ(state_of(s, i), BH_GANG_RUNS);
    bh_sched_free(s);
}

TEST(room_made_for_a_job_is_its_own)
{
    struct bh_sched *s = borrower();
    submit(s, job_of(1, 1, 1, 8));
    cycle(s, 1);
    submit(s, job_of(2, 2, 1, 3));
    size_t n;
    bh_sched_decide(s, 10, 0, &n);
    CHECK_EQ(state_of(s, 2), BH_GANG_BOUND);
    submit(s, job_of(3, 2, 1, 3)); /* the rest of the room may be had too, but not before it is free */
    submit(s, job_of(4, 2, 1, 3));
    bh_sched_decide(s, 11, 0, &n);
    CHECK_EQ(n, 0);
    CHECK_EQ(state_of(s, 3), BH_GANG_BOUND);
    CHECK_EQ(state_of(s, 4), BH_GANG_PENDING);
    tell(s, BH_SCHED_GONE, 1, 12);
    bh_sched_decide(s, 12, 0, &n);
    CHECK_EQ(told_of(s, BH_DECIDE_START, 2), 1);
    CHECK_EQ(told_of(s, BH_DECIDE_START, 3), 1);
    CHECK(sched_is_sound(s));
    bh_sched_free(s);
}

/* ---- against all sets of victims ---- */

enum { SMALL = 10, WORLDS = 3000 };

struct small {
    struct bh_choice choice;
    struct bh_sched *s;
    uint64_t now_ms;
};

static void small_queues(struct small *w, uint32_t gpus)
{
    struct bh_queue_config c;
    const bool grouped = bh_choose(&w->choice, 2);
    bh_queue_config_group(&c);
    say(w->s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .parent = 0, .queue = &c});
    for (uint32_t i = 2; i <= 4; i++) {
        bh_queue_config_init(&c);
        c.deserved.at[BH_RES_GPU] = bh_choose(&w->choice, gpus + 1) * GPU;
        if (!bh_choose(&w->choice, 4))
            c.guarantee.at[BH_RES_GPU] = bh_choose(&w->choice, 3) * GPU;
        if (!bh_choose(&w->choice, 4))
            c.limit.at[BH_RES_GPU] = c.guarantee.at[BH_RES_GPU] + bh_choose(&w->choice, gpus + 1) * GPU;
        c.serves = !bh_choose(&w->choice, 6);
        say(w->s, (struct bh_sched_event){
                      .kind = BH_SCHED_QUEUE, .id = i, .parent = grouped || i == 2 ? 1 : 0, .queue = &c});
    }
}

static struct bh_gang_spec small_job(struct small *w, uint64_t id)
{
    const uint32_t members = bh_choose(&w->choice, 3) ? 1 : 2;
    struct bh_gang_spec j = job_of(id, 2 + bh_choose(&w->choice, 3), members, 1u << bh_choose(&w->choice, 3));
    j.firm = !bh_choose(&w->choice, 5);
    j.priority = (int32_t)bh_choose(&w->choice, 3);
    j.min_run_ms = bh_choose(&w->choice, 6) ? 0 : 1000;
    return j;
}

/* Full, and nobody has gone for anybody yet: looking at victims is not allowed until the last moment. */
static void small_begin(struct small *w, const uint8_t *bytes, size_t n)
{
    struct bh_sched_config c = plain_config();
    uint32_t gpus = 0;
    size_t k;
    *w = (struct small){.choice = {bytes, n}, .now_ms = 100};
    c.victims_max = 0;
    w->s = bh_sched_new(&c);
    add_model(w->s, 0, NULL);
    const uint32_t nodes = 1 + bh_choose(&w->choice, 3);
    for (uint32_t i = 0; i < nodes; i++) {
        const uint32_t size = 2u << bh_choose(&w->choice, 2);
        add_node(w->s, i, size, BH_NONE);
        gpus += size;
    }
    small_queues(w, gpus);
    for (uint64_t i = 1; i <= SMALL; i++) {
        submit(w->s, small_job(w, i));
        bh_sched_decide(w->s, i, 0, &k);
    }
    for (uint64_t i = SMALL + 1; i <= SMALL + 4; i++)
        submit(w->s, small_job(w, i));
    bh_sched_decide(w->s, w->now_ms, 0, &k);
    w->s->config.victims_max = 64;
    bh_sched_room(w->s);
    bh_queues_refresh(&w->s->queues, w->now_ms);
    w->s->decisions.n = w->s->places.n = 0;
    w->s->stats.cycles++;
    w->s->round++;
    w->s->victims.n = 0;
    w->s->reclaiming = true;
    w->s->steps_left = UINT64_MAX;
    bh_reclaim_prepare(w->s);
    bh_order_all(w->s);
}

/* Can so many more members of k GPUs each be placed? Members are alike, so counting is exact. */
static bool could_place(const struct bh_sched *s, const uint32_t *free_gpus, uint32_t members, uint32_t k)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->shelf.nodes.n; i++)
        n += free_gpus[i] / k;
    return n >= members;
}

struct oracle {
    uint32_t jobs[SMALL + 4], n; /* who may go at all */
    struct bh_charge charges[SMALL + 4];
};

static bool fits_without(const struct bh_sched *s, const struct oracle *o, uint32_t set,
                         const struct bh_shape *shape)
{
    uint32_t free_gpus[8] = {0};
    for (size_t i = 0; i < s->shelf.nodes.n; i++)
        free_gpus[i] = s->shelf.nodes.at[i].n_whole;
    for (uint32_t v = 0; v < o->n; v++) {
        if (!(set >> v & 1))
            continue;
        for (uint32_t h = s->gangs.at[o->jobs[v]].first_hold; h != BH_NONE; h = s->owners.at[h].next)
            free_gpus[s->shelf.holds.at[h].node] += bh_bits(s->shelf.holds.at[h].gpus);
    }
    return could_place(s, free_gpus, shape->members, s->requests.at.at[shape->roles[0].class_].n_gpus);
}

/* In one order of the set at least. */
static bool allowed(struct bh_sched *s, const struct oracle *o, uint32_t set, const struct bh_line *l,
                    struct bh_victim *at, uint32_t n)
{
    struct bh_queue_reason why;
    const struct bh_charge taker = {.queue = l->queue,
                                    .firm = s->shapes.at[l->shape].firm,
                                    .band = (enum bh_priority)l->band,
                                    .started_ms = s->now_ms,
                                    .amount = s->shapes.at[l->shape].least};
    if (!set)
        return bh_queue_may_reclaim(&s->queues, &taker, l->turn.priority, at, n, &why);
    for (uint32_t v = 0; v < o->n; v++) {
        if (!(set >> v & 1))
            continue;
        at[n] = (struct bh_victim){&o->charges[v], s->gangs.at[o->jobs[v]].priority};
        if (allowed(s, o, set & ~(1u << v), l, at, n + 1))
            return true;
    }
    return false;
}

static void fill_oracle(const struct bh_sched *s, struct oracle *o)
{
    o->n = 0;
    for (uint32_t i = 0; i < s->gangs.n; i++) {
        const struct bh_gang *g = &s->gangs.at[i];
        if (g->state != BH_GANG_RUNS || s->shapes.at[g->shape].firm ||
            s->now_ms - g->since_ms < g->min_run_ms || s->now_ms == g->since_ms)
            continue;
        o->charges[o->n] = bh_gang_charge(s, g, true);
        o->jobs[o->n++] = i;
    }
}

/* The smallest number of victims of any allowed set that makes it fit; 0: there is none. */
static uint32_t fewest(struct bh_sched *s, const struct oracle *o, const struct bh_line *l)
{
    struct bh_victim at[SMALL + 4];
    uint32_t best = 0;
    for (uint32_t set = 1; set < 1u << o->n; set++) {
        const uint32_t n = bh_bits(set);
        if (n <= 4 && (!best || n < best) && fits_without(s, o, set, &s->shapes.at[l->shape]) &&
            allowed(s, o, set, l, at, 0))
            best = n;
    }
    return best;
}

struct score {
    uint32_t found, none, missed, same, more;
};

/* What went, as a set of the oracle's. */
static uint32_t who_went(const struct bh_sched *s, const struct oracle *o)
{
    uint32_t set = 0;
    for (uint32_t v = 0; v < o->n; v++) {
        for (size_t i = 0; i < s->decisions.n; i++) {
            if (s->decisions.at[i].kind == BH_DECIDE_EVICT &&
                s->decisions.at[i].job == s->gangs.at[o->jobs[v]].id)
                set |= 1u << v;
        }
    }
    return set;
}

static struct bh_sched *copy(struct bh_sched *s)
{
    struct bh_sched_bytes b;
    struct bh_sched *c = NULL;
    bh_sched_save(s, &b);
    if (bh_sched_load(b.at, b.n, &c, NULL) < 0)
        abort();
    free(b.at);
    return c;
}

/* One line: false when something is wrong. */
static bool try_one(struct small *w, uint32_t line, struct score *score)
{
    struct bh_sched *s = w->s, *before = copy(s);
    const struct bh_line *l = &before->lines.at[line];
    const struct bh_shape *shape = &before->shapes.at[l->shape];
    struct bh_potential was, is;
    struct bh_victim at[SMALL + 4];
    struct oracle o;
    fill_oracle(before, &o);
    bh_queues_potential(&s->queues, &was);
    s->decisions.n = 0;
    /* In a cycle it would be started in the room that others left over. */
    const bool starts = fits_without(before, &o, 0, shape) && allowed(before, &o, 0, l, at, 0);
    const bool found = !starts && bh_reclaim(s, line);
    const uint32_t went = who_went(s, &o), best = starts ? 0 : fewest(before, &o, l);
    bool ok = sched_is_sound(s);
    if (found) {
        bh_queues_potential(&s->queues, &is);
        ok = ok && went && fits_without(before, &o, went, shape) && bh_potential_cmp(&is, &was) <= 0;
        for (uint32_t v = 0; v < o.n && ok; v++) /* nobody went for nothing */
            ok = !(went >> v & 1) || !fits_without(before, &o, went & ~(1u << v), shape) ||
                 !allowed(before, &o, went & ~(1u << v), l, at, 0);
        score->found++;
        score->same += bh_bits(went) == best;
        score->more += best && bh_bits(went) > best;
        ok = ok && (best || bh_bits(went) > 4);
    } else {
        score->none += !best;
        score->missed += best != 0;
    }
    bh_sched_free(before);
    return ok;
}

TEST(against_every_set_of_victims)
{
    static uint8_t bytes[512];
    struct score score = {0};
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct small w;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        small_begin(&w, bytes, sizeof(bytes));
        bool ok = true;
        while (ok && w.s->rooms.at[BH_QUEUE_ROOT].best != BH_NONE) {
            const uint32_t line = w.s->rooms.at[BH_QUEUE_ROOT].best, queue = w.s->lines.at[line].queue;
            const uint32_t had = score.found;
            ok = try_one(&w, line, &score);
            if (score.found == had)
                w.s->lines.at[line].tried_at = w.s->round;
            bh_order_leaf(w.s, queue);
        }
        w.s->reclaiming = false;
        bh_sched_free(w.s);
        if (!ok)
            printf("# seed %" PRIu64 "\n", seed);
        CHECK(ok);
    }
    printf("# found %u (as few as possible %u, more %u), rightly none %u, missed %u\n", score.found,
           score.same, score.more, score.none, score.missed);
    CHECK(score.found > WORLDS / 10);
    CHECK(score.more * 50 <= score.found);    /* the order of victims counts more than their number */
    CHECK(score.missed * 200 <= score.found); /* bisection and one pass are no search of all sets */
}

/* A group that serves under an SLO protects whoever is below it, for as long as it does. */
TEST(who_serves_below_a_group_loses_nothing_to_training)
{
    for (uint32_t serving = 0; serving < 2; serving++) {
        struct bh_sched *s = plain_sched();
        struct bh_queue_config c;
        add_fleet(s, 1, 8);
        bh_queue_config_group(&c);
        c.serves = true;
        say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .queue = &c});
        add_queue(s, 2, 1, 0, 0);
        add_queue(s, 3, 0, 0, 8);
        struct bh_gang_spec j = job_of(1, 2, 2, 1);
        j.roles[0].max = 8;
        submit(s, j);
        cycle(s, 1);
        CHECK_EQ(bh_sched_job(s, 1)->n_holds, 8);
        submit(s, job_of(2, 3, 1, 8));
        c.serves = serving;
        say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .queue = &c});
        cycle(s, 10);
        CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 1), serving ? 0 : 7); /* six members, and then the rest of it */
        CHECK_EQ(state_of(s, 2), serving ? BH_GANG_PENDING : BH_GANG_BOUND);
        bh_sched_free(s);
    }
}

/* Two that could go, each on its own GPU: one that can be paused and ran long, one that can nothing and is young. */
static struct bh_sched *long_and_young(void)
{
    struct bh_sched *s = plain_sched();
    add_fleet(s, 2, 1);
    add_queue(s, 1, 0, 0, 0);
    add_queue(s, 2, 0, 0, 2);
    submit(s, can(share_of(1, 1, 900, 1000), BH_CAN_PAUSE | BH_CAN_REQUEUE, 0));
    cycle(s, 1);
    submit(s, can(share_of(2, 1, 900, 1000), 0, 0));
    cycle(s, 1000000);
    return s;
}

TEST(who_can_be_paused_for_nothing_goes_before_who_is_killed)
{
    struct bh_sched *s = long_and_young();
    CHECK_EQ(bh_sched_stats(s).runs, 2);
    submit(s, share_of(3, 2, 900, 1000));
    cycle(s, 1100000);
    const struct bh_decision *d = decision_of(s, BH_DECIDE_EVICT, 1);
    CHECK(d != NULL);
    CHECK_EQ(d->rung, BH_RUNG_PAUSE);
    CHECK_EQ(d->price, 0);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 1);
    bh_sched_free(s);
    s = long_and_young();
    submit(s, job_of(3, 2, 1, 1)); /* all of a GPU: a pause would leave the memory there */
    cycle(s, 1100000);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 1);
    CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 2)->price, 900 * 100000);
    bh_sched_free(s);
}

/* Of who is paused the memory stays, and so does what is paid for it; up to a limit above both. */
TEST(who_is_paused_pays_for_its_memory)
{
    for (uint64_t limit = 100; limit <= 110; limit += 10) {
        struct bh_sched *s = plain_sched();
        struct bh_queue_config c;
        add_fleet(s, 1, 1);
        bh_queue_config_group(&c);
        c.limit.at[BH_RES_MIB] = limit * 500;
        say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .queue = &c});
        add_queue(s, 2, 1, 0, 0);
        add_queue(s, 3, 1, 0, 1);
        submit(s, can(share_of(1, 2, 900, 50000), BH_CAN_PAUSE | BH_CAN_REQUEUE, 0));
        cycle(s, 1);
        submit(s, share_of(2, 3, 900, 5000));
        cycle(s, 10);
        const bool pauses = limit == 110;
        CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 1)->rung, pauses ? BH_RUNG_PAUSE : BH_RUNG_REQUEUE);
        CHECK_EQ(s->queues.at.at[2].used.at[BH_RES_MIB], pauses ? 50000 : 0);
        CHECK_EQ(s->queues.at.at[2].used.at[BH_RES_GPU], 0);
        cycle(s, 11);
        CHECK(sched_is_sound(s));
        CHECK_EQ(state_of(s, 2), BH_GANG_RUNS);
        tell(s, BH_SCHED_FINISH, 2, 20);
        cycle(s, 20); /* it had the memory all the time, and needs no more of it to go on */
        CHECK_EQ(told_of(s, pauses ? BH_DECIDE_RESUME : BH_DECIDE_START, 1), 1);
        CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_MIB], 50000);
        CHECK(sched_is_sound(s));
        bh_sched_free(s);
    }
}

TEST(a_paused_job_that_ends_pays_no_more)
{
    static const enum bh_sched_event_kind ends[] = {BH_SCHED_FINISH, BH_SCHED_CANCEL};
    for (uint32_t i = 0; i < 4; i++) {
        struct bh_sched *s = borrower();
        size_t n;
        submit(s, can(share_of(1, 1, 900, 50000), BH_CAN_PAUSE, 0));
        submit(s, job_of(3, 1, 7, 1));
        cycle(s, 1);
        submit(s, share_of(2, 2, 900, 5000));
        (void)bh_sched_decide(s, 10, 0, &n);
        CHECK_EQ(decision_of(s, BH_DECIDE_EVICT, 1)->rung, BH_RUNG_PAUSE);
        if (i / 2) /* gone and waiting, or still to go */
            tell(s, BH_SCHED_GONE, 1, 11);
        CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_MIB], 7 * 80000 + 50000);
        tell(s, ends[i % 2], 1, 12);
        bh_sched_settle(s);
        CHECK_EQ(s->queues.at.at[1].used.at[BH_RES_MIB], 7 * 80000);
        cycle(s, 13);
        CHECK(sched_is_sound(s));
        bh_sched_free(s);
    }
}

/* Whole GPUs wait at a limit of memory; a higher priority of the queue gets what a lower one has of it. */
TEST(in_one_queue_memory_changes_hands)
{
    struct bh_sched *s = plain_sched();
    struct bh_queue_config c;
    add_fleet(s, 1, 8);
    bh_queue_config_init(&c);
    c.deserved.at[BH_RES_GPU] = 8 * GPU;
    c.limit.at[BH_RES_MIB] = 2 * 80000;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = 1, .queue = &c});
    submit(s, job_of(1, 1, 1, 1));
    submit(s, job_of(2, 1, 1, 1));
    submit(s, job_of(3, 1, 1, 1));
    cycle(s, 1);
    CHECK_EQ(bh_sched_stats(s).runs, 2);
    struct bh_gang_spec j = job_of(4, 1, 1, 1);
    j.priority = 1;
    submit(s, j);
    cycle(s, 10);
    CHECK_EQ(told_of(s, BH_DECIDE_EVICT, 0), 1);
    CHECK(state_of(s, 4) == BH_GANG_RUNS || state_of(s, 4) == BH_GANG_BOUND);
    bh_sched_free(s);
}

TEST_MAIN
