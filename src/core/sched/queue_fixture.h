/* SPDX-License-Identifier: Apache-2.0 */
/* queue_fixture.h - small trees, random trees, and work to put into them, for the tests of the queues. */
#ifndef BH_CORE_SCHED_QUEUE_FIXTURE_H
#define BH_CORE_SCHED_QUEUE_FIXTURE_H

#include "base/choice.h"
#include "base/test.h"
#include "core/sched/queue_inside.h"

#define GPU  1000u
#define HOUR (UINT64_C(3600) * 1000)

static inline struct bh_resources gpus(uint64_t n)
{
    return (struct bh_resources){{[BH_RES_GPU] = n * GPU}};
}

/* GPUs only, nothing fades, nothing is paid for starting: numbers that a reader can follow. */
static inline struct bh_queues_config plain_config(void)
{
    struct bh_queues_config c;
    bh_queues_config_init(&c);
    c.divided = 1u << BH_RES_GPU;
    c.half_life_ms = c.entry_ms = 0;
    return c;
}

static inline void plain_tree(struct bh_queues *t, uint64_t n_gpus)
{
    const struct bh_queues_config c = plain_config();
    const struct bh_resources total = gpus(n_gpus);
    bh_queues_init(t, &c);
    bh_queues_total(t, &total);
}

static inline struct bh_queue_config leaf_config(uint64_t guarantee, uint64_t deserved, uint32_t weight)
{
    struct bh_queue_config c;
    bh_queue_config_init(&c);
    c.guarantee.at[BH_RES_GPU] = guarantee * GPU;
    c.deserved.at[BH_RES_GPU] = deserved * GPU;
    c.weight = weight;
    return c;
}

static inline uint32_t put(struct bh_queues *t, uint32_t parent, struct bh_queue_config c)
{
    uint32_t i = BH_QUEUE_NONE;
    if (bh_queues_add(t, parent, &c, &i, NULL))
        abort();
    return i;
}

static inline uint32_t put_group(struct bh_queues *t, uint32_t parent)
{
    struct bh_queue_config c;
    bh_queue_config_group(&c);
    return put(t, parent, c);
}

static inline struct bh_charge work(uint32_t queue, uint64_t n_gpus)
{
    return (struct bh_charge){.queue = queue, .band = BH_PRIORITY_NORMAL, .amount = gpus(n_gpus)};
}

static inline void event(struct bh_queues *t, enum bh_charge_event e, struct bh_charge c)
{
    bh_queue_apply(t, e, &c, 0);
}

static inline uint64_t fair_gpus(const struct bh_queues *t, uint32_t queue)
{
    return bh_queue_get(t, queue)->fair.at[BH_RES_GPU] / GPU;
}

/* --- random trees --- */

#define JOBS_MAX 160

enum job_state {
    ABSENT,
    PENDING,
    RUNS,
};

struct job {
    struct bh_charge charge;
    int32_t priority;
    enum job_state state;
};

struct world {
    struct bh_queues t;
    uint32_t leaves[64], n_leaves;
    struct job jobs[JOBS_MAX];
    uint32_t n_jobs;
};

static inline struct bh_queue_config draw_config(struct bh_choice *c, bool leaf)
{
    struct bh_queue_config q;
    if (leaf || !bh_choose(c, 3))
        bh_queue_config_init(&q);
    else
        bh_queue_config_group(&q);
    for (unsigned r = 0; r < BH_RES_COUNT; r++) {
        if (r != BH_RES_GPU && bh_choose(c, 20))
            continue;
        q.guarantee.at[r] = bh_choose(c, 6) ? 0 : bh_choose(c, 9) * 500u;
        if (leaf || q.deserved.at[r] != BH_AMOUNT_ANY)
            q.deserved.at[r] = bh_choose(c, 17) * 500u;
        if (!bh_choose(c, 5))
            q.limit.at[r] = q.guarantee.at[r] + bh_choose(c, 40) * 500u;
    }
    q.model = (enum bh_quota_model)(leaf ? bh_choose(c, 3) : BH_QUOTA_FAIRSHARE);
    q.weight = bh_choose(c, 5);
    q.priority = (int32_t)bh_choose(c, 3);
    q.share_max_ppm = bh_choose(c, 6) ? BH_SHARE_WHOLE : 100000 + bh_choose(c, 900000);
    q.serves = !bh_choose(c, 6);
    q.band_max = (enum bh_priority)bh_choose(c, 4);
    q.budget = bh_choose(c, 2) ? bh_choose(c, 100) * HOUR * GPU : BH_BUDGET_ANY;
    q.budget_period_ms = bh_choose(c, 100) * HOUR;
    return q;
}

static inline uint32_t put_drawn(struct bh_queues *t, struct bh_choice *c, uint32_t parent, bool leaf)
{
    return put(t, parent, draw_config(c, leaf));
}

static inline void draw_jobs(struct world *w, struct bh_choice *c)
{
    w->n_jobs = 10 + bh_choose(c, JOBS_MAX - 10);
    for (uint32_t i = 0; i < w->n_jobs; i++) {
        struct job *j = &w->jobs[i];
        const uint64_t milli = bh_choose(c, 4) ? 1000u << bh_choose(c, 3) : 100u + bh_choose(c, 900);
        *j = (struct job){.priority = (int32_t)bh_choose(c, 3), .state = ABSENT};
        j->charge.queue = w->leaves[bh_choose(c, w->n_leaves)];
        j->charge.firm = !bh_choose(c, 4);
        j->charge.band = (enum bh_priority)bh_choose(c, 4);
        j->charge.amount.at[BH_RES_GPU] = milli;
        j->charge.amount.at[BH_RES_CPU] = bh_choose(c, 5) * milli;
        j->charge.amount.at[BH_RES_MEM] = bh_choose(c, 5000);
        j->charge.amount.at[BH_RES_MODEL0 + bh_choose(c, 3)] = milli;
    }
}

/* A fleet of GPUs alone when simple; else three divided resources, quanta, history. */
static inline void draw_world(struct world *w, struct bh_choice *c, bool simple)
{
    struct bh_queues_config config = plain_config();
    struct bh_resources total = {{0}};
    if (!simple) {
        config.divided |= 1u << BH_RES_CPU | 1u << BH_RES_MEM;
        config.history_k = bh_choose(c, 3) * BH_HISTORY_ONE / 2;
        config.half_life_ms = 24 * HOUR;
        config.entry_ms = bh_choose(c, 2) * HOUR / 12;
        config.quantum[BH_RES_GPU] = bh_choose(c, 2) ? 1000 : 1;
        config.margin_ppm = BH_SHARE_WHOLE + bh_choose(c, 3) * 100000;
    }
    for (unsigned r = 0; r < BH_RES_COUNT; r++)
        total.at[r] = (16 + bh_choose(c, 80)) * (uint64_t)GPU * (r == BH_RES_CPU || r == BH_RES_MEM ? 3 : 1);
    bh_queues_init(&w->t, &config);
    bh_queues_total(&w->t, &total);
    w->n_leaves = 0;
    const uint32_t teams = 1 + bh_choose(c, 5);
    for (uint32_t i = 0; i < teams; i++) {
        const uint32_t team = put_drawn(&w->t, c, BH_QUEUE_ROOT, false), groups = 1 + bh_choose(c, 3);
        for (uint32_t k = 0; k < groups; k++) {
            const uint32_t group = bh_choose(c, 2) ? put_drawn(&w->t, c, team, false) : team;
            const uint32_t leaves = 1 + bh_choose(c, 3);
            for (uint32_t l = 0; l < leaves; l++)
                w->leaves[w->n_leaves++] = put_drawn(&w->t, c, group, true);
        }
    }
    draw_jobs(w, c);
}

/* Everything is asked for, and started where it may. */
static inline void fill_world(struct world *w, uint64_t now_ms)
{
    struct bh_queue_reason why;
    for (uint32_t i = 0; i < w->n_jobs; i++) {
        struct job *j = &w->jobs[i];
        bh_queue_apply(&w->t, BH_CHARGE_SUBMIT, &j->charge, now_ms);
        j->state = PENDING;
        if (bh_queue_may_start(&w->t, &j->charge, &why)) {
            j->charge.started_ms = now_ms;
            bh_queue_apply(&w->t, BH_CHARGE_START, &j->charge, now_ms);
            j->state = RUNS;
        }
    }
}

#endif
