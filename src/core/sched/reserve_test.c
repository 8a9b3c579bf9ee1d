/* SPDX-License-Identifier: Apache-2.0 */
/* reserve_test.c - a blocked gang keeps its place in the future, and others use it until then. */
#include "base/test.h"
#include "core/sched/explain.h"
#include "core/sched/reserve.h"
#include "core/sched/whatif_fixture.h"

enum { HOUR = 3600 * TOWN_SECOND };

/* Two nodes of four GPUs, one is busy for two hours; all queues deserve everything. */
struct street {
    struct town t;
    struct bh_reserve *r;
    uint64_t busy, gang;
};

static void cycle(struct street *x)
{
    bh_sched_settle(x->t.s);
    bh_reserve_refresh(x->r, x->t.s, x->t.now_ms);
    town_run(&x->t);
}

static uint64_t submit(struct street *x, uint32_t queue, uint8_t gpus, uint64_t runtime_ms)
{
    struct bh_gang_spec spec = town_job(queue, 1, gpus);
    spec.runtime_ms = runtime_ms;
    const uint64_t id = town_submit(&x->t, spec);
    cycle(x);
    return id;
}

static void open_street(struct street *x, uint64_t assumed_ms, uint64_t busy_ms)
{
    const struct bh_reserve_config c = {.most = 2, .assumed_ms = assumed_ms};
    town_open(&x->t, 1);
    x->r = bh_reserve_new(&c);
    bh_sched_set_veto(x->t.s, bh_reserve_veto, x->r);
    const uint32_t rack = town_domain(&x->t, BH_LEVEL_RACK, BH_NONE);
    for (uint32_t i = 0; i < 2; i++)
        (void)town_node(&x->t, rack, 4, 0);
    for (uint32_t i = 0; i < 2; i++)
        (void)town_queue(&x->t, BH_QUEUE_ROOT, 8, BH_AMOUNT_ANY);
    x->busy = submit(x, 1, 4, busy_ms);
    struct bh_gang_spec gang = town_job(1, 2, 4);
    gang.within = BH_LEVEL_RACK;
    x->gang = town_submit(&x->t, gang);
    cycle(x); /* finds it blocked */
    cycle(x); /* and keeps its place from now on */
}

static void close_street(struct street *x)
{
    town_close(&x->t);
    bh_reserve_free(x->r);
}

TEST(when_and_where)
{
    struct street x;
    size_t n;
    open_street(&x, 0, 2 * HOUR);
    const struct bh_reservation *r = bh_reserve_list(x.r, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(r->job, x.gang);
    CHECK_EQ(r->shadow.start_ms, x.t.now_ms + 2 * HOUR);
    CHECK_EQ(r->shadow.domain, 0);
    close_street(&x);
}

TEST(who_has_ended_by_then_may_run)
{
    struct street x;
    struct bh_verdict v;
    open_street(&x, 0, 2 * HOUR);
    const uint64_t brief = submit(&x, 1, 1, 2 * HOUR), lengthy = submit(&x, 1, 1, 2 * HOUR + 1),
                   unknown = submit(&x, 1, 2, 0);
    CHECK(town_runs(&x.t, brief));
    CHECK(town_waits(&x.t, lengthy) && town_waits(&x.t, unknown));
    CHECK_EQ(bh_sched_line(x.t.s, bh_sched_job(x.t.s, lengthy))->stuck, BH_STUCK_VETO);
    CHECK(bh_explain(x.t.s, x.r, lengthy, x.t.now_ms, &v));
    CHECK_EQ(v.tier, BH_WAIT_RESERVED);
    CHECK_EQ(v.reserved_for, x.gang);
    CHECK_EQ(v.until_ms, x.t.now_ms + 2 * HOUR);
    /* The time comes: the gang starts, and nobody is in its way. */
    x.t.now_ms += 2 * HOUR;
    town_tell(&x.t, (struct bh_sched_event){.kind = BH_SCHED_FINISH, .id = x.busy});
    town_tell(&x.t, (struct bh_sched_event){.kind = BH_SCHED_FINISH, .id = brief});
    cycle(&x);
    CHECK(town_runs(&x.t, x.gang));
    CHECK(town_waits(&x.t, lengthy));
    close_street(&x);
}

TEST(who_comes_first_is_not_held_back)
{
    struct street x;
    open_street(&x, 0, 2 * HOUR);
    /* The other queue has nothing yet: its smaller share puts it before the gang. */
    const uint64_t other = submit(&x, 2, 4, 0);
    CHECK(town_runs(&x.t, other));
    close_street(&x);
}

TEST(what_does_not_say_when_it_ends)
{
    struct street x;
    size_t n;
    open_street(&x, 0, 0);
    (void)bh_reserve_list(x.r, &n);
    CHECK_EQ(n, 0); /* nobody knows when, so nobody is held back */
    CHECK(town_runs(&x.t, submit(&x, 1, 4, 0)));
    close_street(&x);
    open_street(&x, HOUR, 0);
    const struct bh_reservation *r = bh_reserve_list(x.r, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(r->shadow.start_ms, x.t.now_ms + HOUR);
    CHECK(town_waits(&x.t, submit(&x, 1, 4, 0)));
    close_street(&x);
}

/* Whatever is let through, the gang never starts later than it was promised, when jobs keep to what they say. */
TEST(a_promise_is_kept)
{
    uint32_t promised = 0, backfilled = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        static uint8_t bytes[TOWN_BYTES];
        struct street x;
        size_t n;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        open_street(&x, 0, (1 + seed % 7) * HOUR);
        x.t.choice = (struct bh_choice){bytes, sizeof(bytes)};
        const uint64_t promise = bh_reserve_list(x.r, &n)->shadow.start_ms;
        CHECK_EQ(n, 1);
        promised++;
        while (!town_runs(&x.t, x.gang)) {
            CHECK(x.t.now_ms <= promise);
            const uint64_t id = submit(&x, 1, (uint8_t)(1 + town_draw(&x.t, 4)),
                                       town_draw(&x.t, 4) ? HOUR * (1 + town_draw(&x.t, 5)) / 2 : 0);
            backfilled += town_runs(&x.t, id);
            x.t.now_ms += HOUR / 4;
            for (uint64_t job = 1; job <= x.t.n_jobs; job++) {
                const struct bh_gang *g = bh_sched_job(x.t.s, job);
                if (g && g->state == BH_GANG_RUNS && g->runtime_ms &&
                    g->since_ms + g->runtime_ms <= x.t.now_ms)
                    town_tell(&x.t, (struct bh_sched_event){.kind = BH_SCHED_FINISH, .id = job});
            }
            cycle(&x);
        }
        close_street(&x);
    }
    CHECK(promised == 300 && backfilled > 100);
}

/* Two queues by priority that may have this much of it, and in each a job that finds no room; who gets the only place. */
static uint64_t reserved_for(enum bh_priority most, enum bh_quota_model model)
{
    static const struct bh_reserve_config only = {.most = 1};
    struct town t;
    struct bh_reserve *r = bh_reserve_new(&only);
    uint64_t jobs[2];
    size_t n;
    town_open(&t, 1);
    bh_sched_set_veto(t.s, bh_reserve_veto, r);
    for (uint32_t i = 0; i < 2; i++)
        (void)town_node(&t, BH_NONE, 8, 0);
    for (uint32_t i = 1; i <= 2; i++) {
        struct bh_queue_config c;
        bh_queue_config_init(&c);
        c.model = model;
        c.deserved.at[BH_RES_GPU] = 8 * BH_GPU_MILLI;
        c.band_max = most;
        c.budget = BH_BUDGET_ANY;
        town_tell(&t, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = i, .queue = &c});
        t.n_queues++;
        struct bh_gang_spec busy = town_job(i, 1, 7);
        busy.firm = true;
        busy.runtime_ms = HOUR;
        (void)town_submit(&t, busy);
    }
    town_run(&t);
    for (uint32_t i = 0; i < 2; i++) {
        struct bh_gang_spec j = town_job(1 + i, 1, 8);
        j.band = i ? BH_PRIORITY_CRITICAL : BH_PRIORITY_NORMAL;
        j.submit_ms = 5 + i;
        jobs[i] = town_submit(&t, j);
    }
    town_run(&t);
    bh_sched_settle(t.s);
    bh_reserve_refresh(r, t.s, t.now_ms);
    const struct bh_reservation *list = bh_reserve_list(r, &n);
    const uint64_t job = n == 1 ? list->job : 0;
    bh_sched_set_veto(t.s, NULL, NULL);
    town_close(&t);
    bh_reserve_free(r);
    return job == jobs[0] ? 1 : job == jobs[1] ? 2 : 0;
}

TEST(to_ask_for_a_priority_is_not_to_have_it)
{
    CHECK_EQ(reserved_for(BH_PRIORITY_CRITICAL, BH_QUOTA_PRIORITY), 2);
    CHECK_EQ(reserved_for(BH_PRIORITY_NORMAL, BH_QUOTA_PRIORITY),
             1); /* no more than its queue may: asked later */
    CHECK_EQ(reserved_for(BH_PRIORITY_CRITICAL, BH_QUOTA_FAIRSHARE), 1); /* counts in its own queue only */
}

TEST_MAIN
