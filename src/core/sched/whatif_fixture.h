/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_fixture.h - small schedulers, by hand and at random, with some work that runs and some that waits. */
#ifndef BH_CORE_SCHED_WHATIF_FIXTURE_H
#define BH_CORE_SCHED_WHATIF_FIXTURE_H

#include "base/choice.h"
#include "core/sched/whatif_search.h"

enum { TOWN_BYTES = 4096, TOWN_SECOND = 1000 };

struct town {
    struct bh_choice choice;
    struct bh_sched *s;
    struct bh_reserve *reserve; /* or NULL */
    uint64_t now_ms;
    uint32_t n_queues, n_nodes, n_domains; /* with the root */
    uint64_t n_jobs;
};

static inline void town_tell(struct town *t, struct bh_sched_event e)
{
    e.at_ms = t->now_ms;
    if (bh_sched_apply(t->s, &e, NULL) < 0)
        abort();
}

/* Only what a reader can follow: nothing fades, nothing is paid for starting, GPUs alone are divided. */
static inline void town_open(struct town *t, uint32_t models)
{
    struct bh_sched_config c;
    bh_sched_config_init(&c);
    c.queues.divided = 1u << BH_RES_GPU;
    c.queues.half_life_ms = c.queues.entry_ms = c.queues.slack_ms = 0;
    c.score = BH_SCORE_BESTFIT;
    *t = (struct town){.s = bh_sched_new(&c), .now_ms = TOWN_SECOND, .n_queues = 1};
    for (uint32_t i = 0; i < models; i++)
        town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = i});
}

static const struct bh_reserve_config town_reservations = {.most = 2};

/* Rooms that large jobs wait for are kept for them. */
static inline void town_reserve(struct town *t)
{
    t->reserve = bh_reserve_new(&town_reservations);
    bh_sched_set_veto(t->s, bh_reserve_veto, t->reserve);
}

static inline void town_close(struct town *t)
{
    bh_reserve_free(t->reserve);
    bh_sched_free(t->s);
}

static inline uint32_t town_domain(struct town *t, enum bh_level level, uint32_t parent)
{
    town_tell(t, (struct bh_sched_event){
                     .kind = BH_SCHED_DOMAIN, .id = t->n_domains, .level = level, .parent = parent});
    return t->n_domains++;
}

static inline uint32_t town_node(struct town *t, uint32_t domain, uint32_t gpus, uint32_t model)
{
    const struct bh_node_spec spec = {.model = model,
                                      .domain = domain,
                                      .rank = t->n_nodes,
                                      .n_gpus = gpus,
                                      .n_numa = 1,
                                      .cpu_milli = 64000,
                                      .mem_mib = 65536};
    town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = t->n_nodes, .node = &spec});
    return t->n_nodes++;
}

static inline uint32_t town_queue(struct town *t, uint32_t parent, uint64_t deserved, uint64_t limit)
{
    struct bh_queue_config c;
    bh_queue_config_init(&c);
    c.deserved.at[BH_RES_GPU] = deserved * BH_GPU_MILLI;
    c.limit.at[BH_RES_GPU] = limit == BH_AMOUNT_ANY ? limit : limit * BH_GPU_MILLI;
    town_tell(
        t, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = t->n_queues, .parent = parent, .queue = &c});
    return t->n_queues++;
}

/* So many members of so many whole GPUs each. */
static inline struct bh_gang_spec town_job(uint32_t queue, uint32_t members, uint8_t gpus)
{
    return (struct bh_gang_spec){
        .queue = queue,
        .n_roles = 1,
        .within = BH_LEVEL_ANY,
        .prefer = BH_LEVEL_LINK,
        .band = BH_PRIORITY_NORMAL,
        .can = BH_CAN_REQUEUE,
        .deadline_ms = BH_TURN_NO_DEADLINE,
        .roles = {{.request = {.form = BH_FORM_WHOLE,
                               .n_gpus = gpus,
                               .gpu_milli = BH_GPU_MILLI,
                               .apart = BH_APART_NOTHING,
                               .cpu_milli = 1000,
                               .mem_mib = 1024},
                   .min = members,
                   .max = members}},
    };
}

static inline uint64_t town_submit(struct town *t, struct bh_gang_spec spec)
{
    spec.id = ++t->n_jobs;
    spec.submit_ms = t->now_ms;
    town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .id = spec.id, .job = &spec});
    return spec.id;
}

/* Decide, and let the host obey, until nothing more happens. */
static inline void town_run(struct town *t)
{
    for (uint32_t round = 0; round < 64; round++) {
        struct bh_sched_event answers[128];
        size_t n, k = 0;
        bh_sched_settle(t->s);
        if (t->reserve)
            bh_reserve_refresh(t->reserve, t->s, t->now_ms);
        const struct bh_decision *d = bh_sched_decide(t->s, t->now_ms, 0, &n);
        if (!n)
            return;
        for (size_t i = 0; i < n && k < BH_COUNT_OF(answers); i++)
            if (bh_decision_leaves(&d[i]) || d[i].kind == BH_DECIDE_START || d[i].kind == BH_DECIDE_RESUME)
                answers[k++] = (struct bh_sched_event){
                    .kind = bh_decision_leaves(&d[i]) ? BH_SCHED_GONE : BH_SCHED_STARTED, .id = d[i].job};
        for (size_t i = 0; i < k; i++)
            town_tell(t, answers[i]);
    }
}

static inline bool town_runs(const struct town *t, uint64_t job)
{
    const struct bh_gang *g = bh_sched_job(t->s, job);
    return g && (g->state == BH_GANG_RUNS || g->state == BH_GANG_BOUND);
}

static inline bool town_waits(const struct town *t, uint64_t job)
{
    const struct bh_gang *g = bh_sched_job(t->s, job);
    return g && g->state == BH_GANG_PENDING;
}

/* ---- at random ---- */

static inline uint32_t town_draw(struct town *t, uint32_t n)
{
    return bh_choose(&t->choice, n);
}

static inline struct bh_gang_spec town_draw_job(struct town *t, uint32_t first_leaf)
{
    static const uint8_t gpus[] = {1, 1, 2, 3};
    static const uint8_t withins[] = {BH_LEVEL_ANY, BH_LEVEL_ANY, BH_LEVEL_ANY, BH_LEVEL_LINK, BH_LEVEL_RACK};
    struct bh_gang_spec spec =
        town_job(first_leaf + town_draw(t, t->n_queues - first_leaf),
                 1 + (town_draw(t, 3) == 0) * town_draw(t, 3), gpus[town_draw(t, sizeof(gpus))]);
    struct bh_request *r = &spec.roles[0].request;
    spec.within = withins[town_draw(t, sizeof(withins))];
    spec.firm = town_draw(t, 8) == 0;
    spec.priority = (int32_t)town_draw(t, 3);
    spec.runtime_ms = town_draw(t, 4) ? 0 : TOWN_SECOND * (1 + town_draw(t, 8));
    spec.min_run_ms = town_draw(t, 4) ? 0 : TOWN_SECOND * (1 + town_draw(t, 4));
    r->trust = town_draw(t, 2);
    r->apart = town_draw(t, 5) ? BH_APART_NOTHING : BH_APART_NODE;
    r->models = town_draw(t, 12) ? 0 : 1u << town_draw(t, 2);
    r->cpu_milli = 1000 * town_draw(t, 6);
    if (town_draw(t, 6) == 0) {
        r->form = BH_FORM_SHARE;
        r->gpu_milli = town_draw(t, 2) ? 500 : 300;
        r->n_gpus = 1;
    }
    if (town_draw(t, 40) == 0)
        r->features = 1; /* that no node has */
    if (town_draw(t, 12) == 0)
        r->pools = UINT64_C(1) << town_draw(t, 3); /* the last: that no node is in */
    if (town_draw(t, 4) == 0)
        spec.roles[0].max += town_draw(t, 4);
    if (town_draw(t, 4) == 0) {
        spec.can |= BH_CAN_SUSPEND;
        spec.roles[0].image_mib = 100;
    }
    return spec;
}

static inline void town_draw_node(struct town *t, bool scarce)
{
    static const uint8_t sizes[] = {4, 2, 1, 4};
    const uint32_t d = town_draw(t, 2 * t->n_domains + 1) / 2, gpus = sizes[town_draw(t, 4)];
    const struct bh_node_spec spec = {.model = town_draw(t, 6) == 0,
                                      .domain = d < t->n_domains ? d : BH_NONE,
                                      .rank = t->n_nodes,
                                      .n_gpus = gpus,
                                      .n_numa = 1,
                                      .cpu_milli = scarce ? 2000 * gpus : 64000,
                                      .mem_mib = 65536,
                                      .pools = town_draw(t, 4) ? 3 : 1 + town_draw(t, 2)};
    town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = t->n_nodes, .node = &spec});
    t->n_nodes++;
}

/* Amounts in GPUs; promises where drawn: guarantees, partitions, a largest share. */
static inline void town_draw_queue(struct town *t, uint32_t parent, uint32_t unlimited, bool promises,
                                   bool leaf)
{
    struct bh_queue_config c;
    uint64_t *guarantee = &c.guarantee.at[BH_RES_GPU], *limit = &c.limit.at[BH_RES_GPU];
    bh_queue_config_init(&c);
    c.deserved.at[BH_RES_GPU] = (uint64_t)town_draw(t, 6) * BH_GPU_MILLI;
    if (town_draw(t, unlimited) == 0)
        *limit = (uint64_t)(1 + town_draw(t, 6)) * BH_GPU_MILLI;
    if (promises && town_draw(t, 3) == 0)
        *guarantee = (uint64_t)town_draw(t, 4) * BH_GPU_MILLI;
    *limit = *limit < *guarantee ? *guarantee : *limit;
    if (promises && leaf && town_draw(t, 4) == 0)
        c.model = BH_QUOTA_HARD;
    if (promises && town_draw(t, 5) == 0)
        c.share_max_ppm = BH_SHARE_WHOLE / 10 * (1 + town_draw(t, 9));
    town_tell(
        t, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = t->n_queues, .parent = parent, .queue = &c});
    t->n_queues++;
}

static inline void town_random(struct town *t, const uint8_t *bytes, size_t n, uint32_t nodes_max,
                               uint32_t jobs_max)
{
    town_open(t, 2);
    t->choice = (struct bh_choice){bytes, n};
    const uint32_t rack = town_domain(t, BH_LEVEL_RACK, BH_NONE), links = 1 + town_draw(t, 2);
    const bool scarce = town_draw(t, 3) == 0, promises = town_draw(t, 2) == 0;
    if (town_draw(t, 3) == 0)
        town_reserve(t);
    for (uint32_t i = 0; i < links; i++)
        (void)town_domain(t, BH_LEVEL_LINK, rack);
    for (uint32_t i = 1 + town_draw(t, nodes_max); i; i--)
        town_draw_node(t, scarce);
    uint32_t parent = BH_QUEUE_ROOT;
    if (town_draw(t, 3) == 0) {
        parent = t->n_queues;
        town_draw_queue(t, BH_QUEUE_ROOT, 2, promises, false);
    }
    const uint32_t first_leaf = t->n_queues;
    for (uint32_t i = 1 + town_draw(t, 3); i; i--)
        town_draw_queue(t, town_draw(t, 2) ? parent : BH_QUEUE_ROOT, 5, promises, true);
    if (parent != BH_QUEUE_ROOT)
        town_draw_queue(t, parent, 5, promises, true); /* a group has somebody below it */
    struct bh_gang_spec spec = town_draw_job(t, first_leaf);
    for (uint32_t i = 2 + town_draw(t, jobs_max - 1); i; i--) {
        (void)town_submit(t, spec);
        if (town_draw(t, 5)) /* else one more of the same */
            spec = town_draw_job(t, first_leaf);
        if (town_draw(t, 2)) {
            town_run(t);
            t->now_ms += TOWN_SECOND * town_draw(t, 3);
        }
    }
    town_run(t);
}

/* One that waits, the k-th of them; 0: there is none. */
static inline uint64_t town_pending(const struct town *t, uint32_t k)
{
    uint64_t ids[64];
    uint32_t n = 0;
    for (uint64_t id = 1; id <= t->n_jobs && n < BH_COUNT_OF(ids); id++)
        if (town_waits(t, id))
            ids[n++] = id;
    return n ? ids[k % n] : 0;
}

#endif
