/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_property_test.c - what holds for any groups, any work and any pauses.
 *
 * Two schedulers get the same orders at the same times; one is stepped through every odd instant between them.
 */
#include "simgpu/rm/sched.h"

#include "base/mem.h"
#include "base/test.h"

enum { RUNS = 150, ORDERS = 220, GROUPS = 6, PER_GROUP = 3, CHANNELS = GROUPS * PER_GROUP };

struct world {
    struct bh_sim_sched *s;
    uint64_t fences[CHANNELS]; /* the last one given, and the last one seen done */
    uint64_t done[CHANNELS];
};

struct run {
    uint64_t grain; /* all times are multiples of it: with a coarse one many things end at the same instant */
    uint64_t state, now, submitted, group_work[GROUPS];
    uint32_t level[GROUPS];
    bool paused[CHANNELS];
};

static uint64_t draw(struct run *r, uint64_t below)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static uint64_t draw_time(struct run *r, uint64_t below)
{
    return draw(r, below / r->grain + 1) * r->grain;
}

static uint64_t group_of(uint64_t channel)
{
    return channel / PER_GROUP + 1;
}

static void group_make(struct world *w, uint64_t g)
{
    bh_sim_group_add(w->s, g);
    bh_sim_group_schedule(w->s, g);
    for (uint64_t c = (g - 1) * PER_GROUP; c < g * PER_GROUP; c++)
        bh_sim_channel_add(w->s, g, c + 1);
}

static void world_make(struct world *w, uint64_t switch_ns)
{
    *w = (struct world){.s = bh_sim_sched_new(switch_ns)};
    for (uint64_t g = 1; g <= GROUPS; g++)
        group_make(w, g);
}

/* NULL, or what is wrong: fences only grow, and never past what was given. */
static const char *look(struct world *w)
{
    for (uint64_t c = 0; c < CHANNELS; c++) {
        uint64_t done = bh_sim_fence_done(w->s, c + 1);
        if (done < w->done[c])
            return "a fence went back";
        if (done > w->fences[c])
            return "a fence is done that was not given";
        w->done[c] = done;
    }
    return NULL;
}

static const char *step_to(struct world *w, struct run *r, uint64_t from, uint64_t to)
{
    for (uint64_t t = from; t < to;) {
        uint64_t next = bh_sim_sched_next(w->s), before = bh_sim_sched_busy_ns(w->s);
        uint64_t d = draw_time(r, (to - from) / 8) + r->grain;
        uint64_t until = to - t > d ? t + d : to;
        bool due = next <= until;
        if (due && next > t) { /* one short of it nothing is done */
            bh_sim_sched_advance(w->s, next - 1);
            for (uint64_t c = 0; c < CHANNELS; c++)
                if (bh_sim_fence_done(w->s, c + 1) != w->done[c])
                    return "work was done before next() said";
            until = next;
        }
        bh_sim_sched_advance(w->s, until);
        uint64_t had[CHANNELS];
        memcpy(had, w->done, sizeof(had));
        const char *wrong = look(w);
        if (wrong)
            return wrong;
        if (due == (memcmp(had, w->done, sizeof(had)) == 0))
            return "work was not done when next() said";
        if (bh_sim_sched_busy_ns(w->s) - before > until - t)
            return "more time was used than passed";
        t = until;
    }
    return NULL;
}

static void order_submit(struct run *r, struct world *w, size_t n)
{
    uint64_t c = draw(r, CHANNELS), work = draw_time(r, draw(r, 3) ? 5000 : 9000000);
    for (size_t i = 0; i < n; i++)
        w[i].fences[c] = bh_sim_submit(w[i].s, c + 1, work);
    r->submitted += work ? work : 1;
    r->group_work[group_of(c) - 1] += work ? work : 1;
}

static void order_pause(struct run *r, struct world *w, size_t n)
{
    uint64_t c = draw(r, CHANNELS);
    r->paused[c] = !r->paused[c];
    for (size_t i = 0; i < n; i++)
        bh_sim_channel_enable(w[i].s, c + 1, !r->paused[c]);
}

static void order_slice(struct run *r, struct world *w, size_t n)
{
    uint64_t g = draw(r, GROUPS) + 1, us = 1 + draw(r, draw(r, 2) ? 3000 : 3);
    for (size_t i = 0; i < n; i++)
        (void)bh_sim_group_set_slice(w[i].s, g, us);
}

static void order_level(struct run *r, struct world *w, size_t n)
{
    uint64_t g = draw(r, GROUPS);
    r->level[g] = (uint32_t)draw(r, 3);
    for (size_t i = 0; i < n; i++)
        (void)bh_sim_group_set_level(w[i].s, g + 1, r->level[g]);
}

/* A group goes, with what it had left, and comes back empty. */
static void order_remove(struct run *r, struct world *w, size_t n)
{
    uint64_t g = draw(r, GROUPS);
    r->submitted -= r->group_work[g] - bh_sim_group_busy_ns(w[0].s, g + 1);
    r->group_work[g] = 0;
    r->level[g] = 0;
    for (size_t i = 0; i < n; i++) {
        bh_sim_group_remove(w[i].s, g + 1);
        group_make(&w[i], g + 1);
    }
    for (uint64_t c = g * PER_GROUP; c < (g + 1) * PER_GROUP; c++) {
        r->paused[c] = false;
        for (size_t i = 0; i < n; i++)
            w[i].fences[c] = w[i].done[c] = 0;
    }
}

static void (*const orders[])(struct run *, struct world *, size_t) = {
    order_submit, order_submit, order_submit, order_submit, order_submit, order_submit,
    order_submit, order_pause,  order_pause,  order_slice,  order_level,  order_remove,
};

static bool same(const struct world *a, const struct world *b)
{
    for (uint64_t c = 1; c <= CHANNELS; c++)
        if (bh_sim_fence_done(a->s, c) != bh_sim_fence_done(b->s, c))
            return false;
    for (uint64_t g = 1; g <= GROUPS; g++)
        if (bh_sim_group_busy_ns(a->s, g) != bh_sim_group_busy_ns(b->s, g))
            return false;
    return bh_sim_sched_busy_ns(a->s) == bh_sim_sched_busy_ns(b->s) &&
           bh_sim_sched_next(a->s) == bh_sim_sched_next(b->s);
}

static const char *finish(struct run *r, struct world *w)
{
    for (size_t i = 0; i < 2; i++) {
        for (uint64_t c = 1; c <= CHANNELS; c++)
            bh_sim_channel_enable(w[i].s, c, true);
        while (bh_sim_sched_next(w[i].s) != UINT64_MAX)
            bh_sim_sched_advance(w[i].s, bh_sim_sched_next(w[i].s));
        if (bh_sim_sched_busy_ns(w[i].s) != r->submitted)
            return "work was lost or made up";
        for (uint64_t g = 0; g < GROUPS; g++)
            if (bh_sim_group_busy_ns(w[i].s, g + 1) != r->group_work[g])
                return "a group did not get all its work";
        for (uint64_t c = 0; c < CHANNELS; c++)
            if (bh_sim_fence_done(w[i].s, c + 1) != w[i].fences[c])
                return "a fence is not done although nothing runs";
    }
    return same(&w[0], &w[1]) ? NULL : "the two ended differently";
}

static const char *one_run(uint64_t seed)
{
    struct run r = {.state = seed, .grain = seed % 2 ? 1 : 1000}, steps = {.state = ~seed, .grain = r.grain};
    struct world w[2];
    const char *wrong = NULL;
    uint64_t switch_ns = draw(&r, 3) ? draw_time(&r, 200000) : 0;
    for (size_t i = 0; i < 2; i++)
        world_make(&w[i], switch_ns);
    for (int i = 0; i < ORDERS && !wrong; i++) {
        orders[draw(&r, BH_COUNT_OF(orders))](&r, w, 2);
        if (draw(&r, 2))
            continue; /* several at the same instant */
        uint64_t to = r.now + draw_time(&r, draw(&r, 4) ? 300000 : 30000000);
        wrong = step_to(&w[1], &steps, r.now, to);
        bh_sim_sched_advance(w[0].s, to);
        r.now = to;
        if (!wrong && !same(&w[0], &w[1]))
            wrong = "small steps and a large one differ";
        if (!wrong && bh_sim_sched_busy_ns(w[0].s) > r.now)
            wrong = "busy for longer than time went on";
    }
    if (!wrong)
        wrong = finish(&r, w);
    for (size_t i = 0; i < 2; i++)
        bh_sim_sched_free(w[i].s);
    return wrong;
}

TEST(any_orders_at_any_times)
{
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        const char *wrong = one_run(seed);
        if (wrong)
            printf("# seed %" PRIu64 ": %s\n", seed, wrong);
        CHECK(!wrong);
    }
}

/* Nobody waits longer than one turn of each of the others, as often as the levels let those come round. */
TEST(nobody_starves)
{
    enum { TURNS_MAX = GROUPS * GROUPS * GROUPS };
    struct run r = {.state = 4242};
    for (int i = 0; i < 40; i++) {
        struct world w;
        world_make(&w, 1000);
        uint64_t had[GROUPS] = {0};
        for (uint64_t g = 1; g <= GROUPS; g++) {
            CHECK(bh_sim_group_set_slice(w.s, g, 1 + draw(&r, 50)));
            CHECK(bh_sim_group_set_level(w.s, g, (uint32_t)draw(&r, 3)));
            CHECK(bh_sim_submit(w.s, g * PER_GROUP, UINT64_C(1) << 50));
        }
        for (uint64_t t = 1; t <= 5; t++) {
            bh_sim_sched_advance(w.s, t * TURNS_MAX * (50000 + 1000));
            for (uint64_t g = 1; g <= GROUPS; g++) {
                CHECK(bh_sim_group_busy_ns(w.s, g) > had[g - 1]);
                had[g - 1] = bh_sim_group_busy_ns(w.s, g);
            }
        }
        bh_sim_sched_free(w.s);
    }
}

TEST_MAIN
