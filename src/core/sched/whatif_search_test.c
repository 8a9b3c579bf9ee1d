/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_search_test.c - the named change starts the job, always; and none that is cheaper does. */
#include "base/test.h"
#include "base/units.h"
#include "core/sched/whatif_fixture.h"

#include <stdlib.h>

/*
 * Each case copies a scheduler a hundred times over, which the sanitizers make ten times as dear. BH_CASES asks for another
 * number of them than the everyday one: 10000 take two minutes.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CASES = 30, TINY = 120 };
#else
enum { CASES = 1000, TINY = 500 };
#endif

static uint32_t cases(void)
{
    const char *word = getenv("BH_CASES");
    uint64_t n;
    return word && bh_uint_parse(word, 1000000, &n, NULL) == BH_OK ? (uint32_t)n : CASES;
}

static const char *const kinds[BH_CHANGES] = {"none", "wait", "move", "free", "quota", "add", "health"};

/* ---- another way to make a change: on a copy of its own, with the test's own host ---- */

static bool copy(const struct bh_whatif *w, struct town *t)
{
    memset(t, 0, sizeof(*t));
    t->now_ms = w->now_ms;
    if (bh_sched_load(w->saved.at, w->saved.n, &t->s, NULL) < 0)
        return false;
    if (w->reserve.most)
        town_reserve(t);
    return true;
}

/* Second by second; what said when it ends, ends then. */
static bool starts_by(const struct bh_whatif *w, uint64_t job, uint64_t until_ms, uint64_t step_ms,
                      uint64_t *ret_ms)
{
    struct town t;
    if (!copy(w, &t))
        return false;
    town_run(&t);
    while (!town_runs(&t, job) && t.now_ms < until_ms) {
        const uint64_t was = t.now_ms;
        uint64_t ids[64];
        size_t n = 0;
        t.now_ms += step_ms;
        for (size_t i = 0; i < bh_sched_slots(t.s); i++) {
            const struct bh_gang *g = bh_sched_slot(t.s, i);
            const uint64_t end = g->since_ms + g->runtime_ms;
            if (g->state == BH_GANG_RUNS && g->runtime_ms && end > was && end <= t.now_ms && n < 64)
                ids[n++] = g->id;
        }
        for (size_t i = 0; i < n; i++)
            town_tell(&t, (struct bh_sched_event){.kind = BH_SCHED_FINISH, .id = ids[i]});
        town_run(&t);
    }
    const bool ok = town_runs(&t, job);
    if (ret_ms)
        *ret_ms = t.now_ms;
    town_close(&t);
    return ok;
}

static void make(struct town *t, const struct bh_change *c)
{
    const struct bh_queues *queues = bh_sched_queues(t->s);
    const struct bh_shelf *shelf = bh_sched_shelf(t->s);
    struct bh_queue_config q;
    uint32_t domain = c->domain;
    switch (c->kind) {
    case BH_CHANGE_MOVE:
    case BH_CHANGE_FREE:
        town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_FINISH, .id = c->job});
        break;
    case BH_CHANGE_QUOTA:
        q = bh_queue_get(queues, c->queue)->config;
        if (c->part == BH_PART_LIMIT)
            q.limit.at[c->res] = c->to;
        else if (c->part == BH_PART_DESERVED)
            q.deserved.at[c->res] = c->to;
        else
            q.share_max_ppm = (uint32_t)c->to;
        town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_QUEUE,
                                             .id = c->queue,
                                             .parent = bh_queue_get(queues, c->queue)->parent,
                                             .queue = &q});
        break;
    case BH_CHANGE_ADD:
        t->n_nodes = (uint32_t)shelf->nodes.n;
        t->n_domains = (uint32_t)shelf->domains.n;
        if (domain == BH_CHANGE_NEW_DOMAIN)
            domain = town_domain(t, (enum bh_level)c->level, BH_NONE);
        for (uint32_t i = 0; i < c->nodes; i++) {
            const struct bh_shelf_node *like = &shelf->nodes.at[c->like];
            const struct bh_node_spec spec = {.model = c->model,
                                              .domain = domain,
                                              .rank = 1000 + t->n_nodes,
                                              .n_gpus = c->gpus,
                                              .cpu_milli =
                                                  c->cpu_milli ? (uint32_t)c->cpu_milli : like->cpu_all,
                                              .mem_mib = c->mem_mib ? c->mem_mib : like->mem_all,
                                              .features = c->features,
                                              .pools = like->pools | c->pools};
            town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = t->n_nodes++, .node = &spec});
        }
        break;
    default:
        abort();
    }
    bh_sched_settle(t->s);
}

static bool starts_with(const struct bh_whatif *w, const struct bh_change *c, size_t n, uint64_t job)
{
    struct town t;
    if (!copy(w, &t))
        return false;
    for (size_t i = 0; i < n; i++)
        make(&t, &c[i]);
    town_run(&t);
    const bool ok = town_runs(&t, job);
    town_close(&t);
    return ok;
}

static bool holds_good(const struct bh_whatif *w, const struct bh_remedy *r, uint64_t job)
{
    if (r->kind == BH_CHANGE_NONE)
        return false;
    if (r->kind == BH_CHANGE_WAIT) /* milliseconds matter here: nobody goes in the one it started in */
        return starts_by(w, job, r->steps.at[0].at_ms, r->cost % TOWN_SECOND ? 1 : TOWN_SECOND, NULL);
    return starts_with(w, r->steps.at, r->steps.n, job);
}

TEST(the_named_change_starts_the_job)
{
    const uint32_t wanted = cases();
    uint32_t n = 0, by_kind[BH_CHANGES] = {0}, not_least = 0, combined = 0;
    for (uint64_t seed = 0; n < wanted; seed++) {
        static uint8_t bytes[TOWN_BYTES];
        struct town t;
        struct bh_whatif w;
        struct bh_remedy r;
        struct bh_remedy_config c;
        bh_remedy_config_init(&c);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        town_random(&t, bytes, sizeof(bytes), 5, 10);
        const uint64_t job = town_pending(&t, town_draw(&t, 64));
        if (job) {
            bh_whatif_init(&w, t.s, t.reserve ? &town_reservations : NULL, t.now_ms);
            bh_remedy_find(&w, t.s, job, &c, &r);
            const bool ok = holds_good(&w, &r, job);
            if (!ok)
                printf("# seed %" PRIu64 ": job %" PRIu64 ", %s\n", seed, job, kinds[r.kind]);
            by_kind[r.kind]++;
            not_least += !r.least;
            combined += r.steps.n > 1 && r.steps.at[0].kind == BH_CHANGE_QUOTA;
            bh_remedy_fini(&r);
            bh_whatif_fini(&w);
            n++;
            CHECK(ok);
        }
        town_close(&t);
    }
    for (uint32_t k = 0; k < BH_CHANGES; k++)
        printf("# %s %" PRIu32 "\n", kinds[k], by_kind[k]);
    printf("# of them %" PRIu32 " of several kinds together, %" PRIu32 " not shown to be the least\n",
           combined, not_least);
    for (uint32_t k = BH_CHANGE_WAIT; k <= BH_CHANGE_ADD; k++)
        CHECK(by_kind[k] > wanted / 100);
}

/* ---- every other change, on tiny fleets ---- */

enum { FAR_MS = 40 * TOWN_SECOND, FINE = 100 };

static uint64_t least_wait(const struct bh_whatif *w, uint64_t job)
{
    uint64_t at;
    return starts_by(w, job, w->now_ms + FAR_MS, TOWN_SECOND, &at) ? at - w->now_ms : UINT64_MAX;
}

static uint64_t least_freed(const struct bh_whatif *w, const struct bh_sched *s, uint64_t job)
{
    struct bh_change running[16], chosen[16];
    uint64_t best = UINT64_MAX;
    uint32_t n = 0;
    for (size_t i = 0; i < bh_sched_slots(s) && n < 16; i++) {
        const struct bh_gang *g = bh_sched_slot(s, i);
        if (g->state == BH_GANG_RUNS)
            running[n++] =
                (struct bh_change){.kind = BH_CHANGE_FREE, .job = g->id, .milli = bh_gang_milli(s, g)};
    }
    for (uint32_t bits = 1; bits < 1u << n; bits++) {
        uint64_t milli = 0;
        size_t k = 0;
        for (uint32_t i = 0; i < n; i++)
            if (bits >> i & 1) {
                milli += running[i].milli;
                chosen[k++] = running[i];
            }
        if (milli < best && starts_with(w, chosen, k, job))
            best = milli;
    }
    return best;
}

static uint64_t least_raised(const struct bh_whatif *w, const struct bh_sched *s, uint64_t job)
{
    const struct bh_queues *q = bh_sched_queues(s);
    const uint64_t most = q->total.at[BH_RES_GPU] + 12 * BH_GPU_MILLI;
    uint64_t best = UINT64_MAX;
    for (uint32_t i = bh_sched_job(s, job)->queue; i != BH_QUEUE_ROOT; i = bh_queue_get(q, i)->parent)
        for (int part = BH_PART_LIMIT; part <= BH_PART_DESERVED; part++) {
            const struct bh_queue_config *c = &bh_queue_get(q, i)->config;
            const uint64_t from =
                part == BH_PART_LIMIT ? c->limit.at[BH_RES_GPU] : c->deserved.at[BH_RES_GPU];
            for (uint64_t by = FINE; from != BH_AMOUNT_ANY && from + by <= most && by < best; by += FINE) {
                const struct bh_change change = {.kind = BH_CHANGE_QUOTA,
                                                 .queue = i,
                                                 .part = (enum bh_quota_part)part,
                                                 .res = BH_RES_GPU,
                                                 .to = from + by};
                if (starts_with(w, &change, 1, job))
                    best = by;
            }
        }
    return best;
}

/* Every way to cut n GPUs into nodes, the largest first, all in one place. */
static bool added(const struct bh_whatif *w, uint64_t job, struct bh_change *at, size_t n, uint32_t left,
                  uint32_t largest)
{
    if (!left)
        return starts_with(w, at, n, job);
    for (uint32_t gpus = left < largest ? left : largest; gpus; gpus--) {
        at[n] = at[0];
        at[n].gpus = gpus;
        if (n && at[0].domain == BH_CHANGE_NEW_DOMAIN)
            at[n].domain = (uint32_t)at[0].at_ms; /* the one that the first makes */
        if (added(w, job, at, n + 1, left - gpus, gpus))
            return true;
    }
    return false;
}

static uint64_t least_added(const struct bh_whatif *w, const struct bh_sched *s, uint64_t job, uint32_t most)
{
    const struct bh_shelf *shelf = bh_sched_shelf(s);
    for (uint32_t n = 1; n < most; n++)
        for (uint32_t model = 0; model < 2; model++)
            for (uint32_t d = 0; d < shelf->domains.n + 3; d++) {
                const uint32_t other = d - (uint32_t)shelf->domains.n;
                struct bh_change at[16] = {{.kind = BH_CHANGE_ADD,
                                            .nodes = 1,
                                            .model = model,
                                            .domain = d,
                                            .level = (uint8_t)(other == 1 ? BH_LEVEL_LINK : BH_LEVEL_RACK),
                                            .features = UINT64_MAX,
                                            .pools = UINT64_MAX,
                                            .cpu_milli = 64000,
                                            .at_ms = shelf->domains.n}};
                /* As many GPUs as a node of that model has, or as one member needs. */
                uint32_t largest =
                    shelf->requests->at.at[bh_sched_shape(s, bh_sched_job(s, job))->roles[0].class_].n_gpus;
                for (size_t i = 0; i < shelf->nodes.n; i++)
                    if (shelf->nodes.at[i].model == model && shelf->nodes.at[i].n_gpus > largest)
                        largest = shelf->nodes.at[i].n_gpus;
                if (d >= shelf->domains.n)
                    at[0].domain = other ? BH_CHANGE_NEW_DOMAIN : BH_NONE;
                if (added(w, job, at, 0, n, largest))
                    return n;
            }
    return UINT64_MAX;
}

/* Beyond those that run, or with a quota besides: the last thing that is tried. */
static bool ends_waiting(const struct bh_sched *s, const struct bh_remedy *r)
{
    bool waiting = false;
    for (size_t i = 0; i < r->steps.n && r->kind == BH_CHANGE_FREE; i++)
        waiting |= r->steps.at[i].kind != BH_CHANGE_FREE ||
                   bh_sched_job(s, r->steps.at[i].job)->state != BH_GANG_RUNS;
    return waiting;
}

/* What brute force has for the kinds before the answer's, and for its own. */
static bool is_least(const struct bh_whatif *w, const struct bh_sched *s, uint64_t job,
                     const struct bh_remedy *r)
{
    const uint64_t wait = least_wait(w, job);
    if (r->kind == BH_CHANGE_WAIT)
        return r->cost <= wait;
    if (wait != UINT64_MAX)
        return false;
    const uint64_t freed = least_freed(w, s, job);
    const bool waiting = ends_waiting(s, r);
    if (!waiting && (r->kind == BH_CHANGE_FREE || r->kind == BH_CHANGE_MOVE))
        return r->cost == freed;
    if (freed != UINT64_MAX)
        return false;
    const uint64_t raised = least_raised(w, s, job);
    if (r->kind == BH_CHANGE_QUOTA && r->steps.n == 1)
        return r->steps.at[0].res != BH_RES_GPU || r->cost <= raised;
    if (raised != UINT64_MAX)
        return false;
    const bool together = waiting || r->steps.at[0].kind == BH_CHANGE_QUOTA;
    const uint32_t most = together ? 5 : r->cost < 6 ? (uint32_t)r->cost : 6;
    return least_added(w, s, job, most) == UINT64_MAX;
}

TEST(brute_force_finds_nothing_cheaper)
{
    uint32_t n = 0, by_kind[BH_CHANGES] = {0};
    for (uint64_t seed = 500000; n < TINY; seed++) {
        static uint8_t bytes[TOWN_BYTES];
        struct town t;
        struct bh_whatif w;
        struct bh_remedy r;
        struct bh_remedy_config c;
        bh_remedy_config_init(&c);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        town_random(&t, bytes, sizeof(bytes), 3, 6);
        const uint64_t job = town_pending(&t, town_draw(&t, 64));
        if (job) {
            bh_whatif_init(&w, t.s, t.reserve ? &town_reservations : NULL, t.now_ms);
            bh_remedy_find(&w, t.s, job, &c, &r);
            const bool ok = r.kind != BH_CHANGE_NONE && is_least(&w, t.s, job, &r);
            if (!ok)
                printf("# seed %" PRIu64 ": job %" PRIu64 ", %s, cost %" PRIu64 "\n", seed, job,
                       kinds[r.kind], r.cost);
            by_kind[r.kind]++;
            bh_remedy_fini(&r);
            bh_whatif_fini(&w);
            n++;
            CHECK(ok);
        }
        town_close(&t);
    }
    CHECK(by_kind[BH_CHANGE_WAIT] && by_kind[BH_CHANGE_MOVE] && by_kind[BH_CHANGE_FREE]);
    CHECK(by_kind[BH_CHANGE_QUOTA] && by_kind[BH_CHANGE_ADD]);
}

TEST_MAIN
