/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/run.h"

#include "core/sched/pick.h"
#include "replay/clock.h"
#include "replay/rng.h"

#include <inttypes.h>
#include <string.h>

enum { NODE_PODS_MAX = 1001, MILLION = 1000000, MEASURED_PERCENT = 100 };
#define FNV_START UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)
/* The order of nodes is drawn apart from the order of pods, so that neither depends on how long the other is. */
#define NODE_STREAM UINT64_C(0x6e6f6465)

/* ---- the order of arrival ---- */

static int by_name(const void *x, const void *y, void *arg)
{
    const struct bh_openb *o = arg;
    uint32_t a, b;
    memcpy(&a, x, sizeof(a));
    memcpy(&b, y, sizeof(b));
    const int order = strcmp(o->pods.at[a].name, o->pods.at[b].name);
    return order ? order : (a > b) - (a < b);
}

static uint64_t milli_of(const struct bh_openb_pod *p)
{
    return (uint64_t)p->gpu_milli * p->n_gpus;
}

int bh_run_arrivals(const struct bh_openb *o, uint64_t seed, uint32_t **ret, size_t *ret_n,
                    struct bh_err *err)
{
    BH_VEC(uint32_t) order = {0};
    struct bh_rng rng = {seed};
    const uint32_t n = (uint32_t)o->pods.n;
    const uint64_t most = bh_openb_gpus(o) * 1000 * BH_ARRIVE_PERCENT / 100;
    uint64_t milli = bh_openb_demand_milli(o);
    for (uint32_t i = 0; i < n; i++)
        *bh_vec_push(&order) = i;
    if (n)
        qsort_r(order.at, n, sizeof(*order.at), by_name, (void *)(uintptr_t)o);
    bh_rng_shuffle(&rng, order.at, n);
    for (; milli > most && order.n; order.n--)
        milli -= milli_of(&o->pods.at[order.at[order.n - 1]]);
    /* The published program compares with the share of one GPU, not with all that the pod asks for. */
    for (uint32_t i; n && milli && (i = bh_rng_below(&rng, n), milli + o->pods.at[i].gpu_milli <= most);) {
        if (order.n == BH_ARRIVALS_MAX) {
            bh_vec_fini(&order);
            return bh_fail(err, BH_TOO_LARGE,
                           "the pods ask for so little that %d of them do not fill the GPUs",
                           BH_ARRIVALS_MAX);
        }
        milli += milli_of(&o->pods.at[i]);
        *bh_vec_push(&order) = i;
    }
    *ret = order.at;
    *ret_n = order.n;
    return BH_OK;
}

/* ---- the fleet ---- */

struct place {
    const struct bh_openb *o;
    struct bh_requests requests;
    struct bh_shelf shelf;
    struct bh_score *score;
    struct bh_pick *pick;
    uint32_t *class_of; /* by pod */
};

static int add_nodes(struct place *p, uint64_t seed, struct bh_err *err)
{
    const size_t n = p->o->nodes.n;
    BH_AUTOFREE uint32_t *rank = bh_alloc(n + 1, sizeof(*rank));
    struct bh_rng rng = {bh_idmap_mix(seed ^ NODE_STREAM)};
    uint32_t id;
    int rc = BH_OK;
    for (uint32_t i = 0; i < n; i++)
        rank[i] = i;
    bh_rng_shuffle(&rng, rank, (uint32_t)n);
    for (uint32_t i = 0; i < p->o->n_models && rc == BH_OK; i++)
        rc = bh_shelf_add_model(&p->shelf, NULL, &id, err);
    for (size_t i = 0; i < n && rc == BH_OK; i++) {
        const struct bh_openb_node *node = &p->o->nodes.at[i];
        const struct bh_node_spec spec = {
            .model = node->model,
            .domain = BH_NONE,
            .rank = rank[i],
            .n_gpus = node->n_gpus,
            .cpu_milli = node->cpu_milli,
            .mem_mib = node->mem_mib,
            .holds_max = NODE_PODS_MAX,
        };
        if (node->n_gpus) /* nodes without GPUs are no part of the experiment */
            rc = bh_shelf_add_node(&p->shelf, &spec, &id, err);
    }
    return rc;
}

static int add_classes(struct place *p, struct bh_err *err)
{
    int rc = BH_OK;
    for (size_t i = 0; i < p->o->pods.n && rc == BH_OK; i++) {
        const struct bh_openb_pod *pod = &p->o->pods.at[i];
        const struct bh_request r = {
            .form = !pod->n_gpus                     ? BH_FORM_CPU
                    : pod->gpu_milli == BH_GPU_MILLI ? BH_FORM_WHOLE
                                                     : BH_FORM_SHARE,
            .n_gpus = pod->n_gpus,
            .apart = BH_APART_NOTHING,
            .gpu_milli = pod->gpu_milli,
            .cpu_milli = pod->cpu_milli,
            .mem_mib = pod->mem_mib,
            .models = pod->models,
        };
        rc = bh_request_intern(&p->requests, &r, &p->class_of[i], err);
        if (rc < 0)
            return bh_wrap(err, rc, "pod '%.60s'", pod->name);
    }
    return rc;
}

static void set_typical(struct place *p)
{
    BH_AUTOFREE struct bh_typical *typical = bh_alloc(p->requests.at.n + 1, sizeof(*typical));
    for (size_t i = 0; i < p->o->pods.n; i++)
        typical[p->class_of[i]].count++;
    for (uint32_t i = 0; i < p->requests.at.n; i++)
        typical[i].class_ = i;
    bh_score_set_typical(p->score, typical, p->requests.at.n);
}

static void place_fini(struct place *p)
{
    bh_pick_free(p->pick);
    bh_score_free(p->score);
    bh_shelf_fini(&p->shelf);
    bh_requests_fini(&p->requests);
    free(p->class_of);
}

static int place_init(struct place *p, const struct bh_openb *o, const struct bh_run_setup *setup,
                      size_t arrivals, struct bh_err *err)
{
    *p = (struct place){.o = o};
    p->class_of = bh_alloc(o->pods.n + 1, sizeof(*p->class_of));
    bh_shelf_init(&p->shelf, &p->requests);
    p->score = bh_score_new(setup->mode, &p->shelf, setup->seed);
    int rc = add_classes(p, err);
    if (rc == BH_OK)
        rc = add_nodes(p, setup->seed, err);
    if (rc < 0)
        return rc;
    bh_shelf_reserve(&p->shelf, arrivals, 0);
    set_typical(p);
    p->pick = bh_pick_new(&p->shelf, p->score);
    return BH_OK;
}

/* ---- the run ---- */

/* Sums over the arrivals of one per cent. */
struct sums {
    uint64_t allocated_milli, fragment_milli, measured;
    double ratio; /* of fragments to what is idle */
};

/* Fragments cost a look at every node: at 100 % after each arrival, elsewhere after the first. */
static void add_point(const struct place *p, uint64_t arrived_milli, struct bh_run_point *points,
                      struct sums *sums)
{
    const uint64_t all = p->shelf.milli_all, percent = (arrived_milli * 200 + all) / (2 * all);
    if (percent > BH_ARRIVE_PERCENT)
        return;
    struct sums *at = &sums[percent];
    points[percent].arrivals++;
    at->allocated_milli += p->shelf.milli_used;
    if (percent != MEASURED_PERCENT && at->measured)
        return;
    const struct bh_fragment f = bh_score_fragment(p->score);
    at->measured++;
    at->fragment_milli += f.fragment_milli;
    at->ratio += f.idle_milli ? (double)f.fragment_milli / (double)f.idle_milli : 0;
}

static uint32_t ppm(double part)
{
    return (uint32_t)(part * MILLION + 0.5);
}

static void means(const struct place *p, struct bh_run_point *points, const struct sums *sums)
{
    const double all = (double)p->shelf.milli_all;
    for (size_t i = 0; i <= BH_ARRIVE_PERCENT; i++) {
        if (points[i].arrivals == 0)
            continue;
        const double measured = (double)sums[i].measured;
        points[i].allocated_ppm = ppm((double)sums[i].allocated_milli / points[i].arrivals / all);
        points[i].fragment_ppm = ppm((double)sums[i].fragment_milli / measured / all);
        points[i].ratio_ppm = ppm(sums[i].ratio / measured);
    }
}

/* The decision itself, and how long it took. */
static int decide(struct place *p, const struct bh_run_setup *setup, uint32_t class_,
                  struct bh_spot *ret_spot, bool *ret_found, uint64_t *ret_ns, struct bh_err *err)
{
    uint32_t hold;
    int rc = BH_OK;
    const uint64_t began = bh_clock_ns();
    bh_score_arrived(p->score, class_);
    *ret_found =
        setup->scans_all ? bh_pick_naive(p->pick, class_, ret_spot) : bh_pick_best(p->pick, class_, ret_spot);
    if (*ret_found)
        rc = bh_shelf_take(&p->shelf, class_, ret_spot, &hold, err);
    *ret_ns = bh_clock_ns() - began;
    return rc;
}

static void note(uint64_t *digest, uint64_t pod, uint64_t node, uint64_t gpus)
{
    const uint64_t words[] = {pod, node, gpus};
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        *digest = (*digest ^ words[i]) * FNV_PRIME;
}

static int play(struct place *p, const struct bh_run_setup *setup, const uint32_t *arrivals, size_t n,
                struct bh_run_result *ret, struct bh_err *err)
{
    BH_AUTOFREE uint64_t *ns = bh_alloc(n + 1, sizeof(*ns));
    BH_AUTOFREE struct sums *sums = bh_alloc(BH_ARRIVE_PERCENT + 1, sizeof(*sums));
    uint64_t arrived = 0, began = bh_clock_ns();
    for (uint32_t c = 0; c < p->requests.at.n && !setup->scans_all; c++)
        bh_pick_prepare(p->pick, c);
    ret->prepare_ns = bh_clock_ns() - began;
    for (size_t i = 0; i < n; i++) {
        const uint32_t pod = arrivals[i];
        struct bh_spot spot = {.node = BH_NONE};
        bool found = false;
        int rc = decide(p, setup, p->class_of[pod], &spot, &found, &ns[i], err);
        if (rc < 0)
            return rc;
        ret->decide_ns += ns[i];
        ret->placed += found;
        ret->failed += !found;
        note(&ret->digest, pod, found ? spot.node : BH_NONE, found ? spot.gpus : 0);
        arrived += milli_of(&p->o->pods.at[pod]);
        add_point(p, arrived, ret->at, sums);
    }
    means(p, ret->at, sums);
    bh_sort_values(ns, n);
    ret->p50_ns = bh_percentile(ns, n, 50);
    ret->p99_ns = bh_percentile(ns, n, 99);
    ret->max_ns = bh_percentile(ns, n, 100);
    return BH_OK;
}

int bh_run_openb(const struct bh_openb *o, const struct bh_run_setup *setup, struct bh_run_result *ret,
                 struct bh_err *err)
{
    struct bh_run_result result = {.mode = setup->mode, .seed = setup->seed, .digest = FNV_START};
    struct place p;
    uint32_t *found = NULL;
    size_t n = 0;
    int rc = bh_run_arrivals(o, setup->seed, &found, &n, err);
    if (rc < 0)
        return rc;
    BH_AUTOFREE uint32_t *arrivals = found;
    rc = place_init(&p, o, setup, n, err);
    if (rc == BH_OK)
        rc = play(&p, setup, arrivals, n, &result, err);
    place_fini(&p);
    if (rc == BH_OK)
        *ret = result;
    return rc;
}
