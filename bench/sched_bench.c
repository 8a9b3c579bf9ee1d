/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_bench.c - what a placement costs in a fleet of 100,000 GPUs, against the scan one writes first.
 *
 * 12,500 nodes of 8 in racks and NVLink domains; five models; twenty tenants that do not trust each other, half
 * of which share no kernel, a quarter no GPU. Work of the shapes of a public trace (shares, one GPU, few large
 * ones, some without GPU) comes until more was asked for than there is; then some ends and other work comes.
 * Each decision is timed alone: prices learn of it, the best node is found, the GPUs are taken. In between the
 * same question is put to a full scan, which must answer the same; a scan is cheap where most nodes are full, so
 * the ratio is that of filling. Prints decisions a second (of processor time, as other processes are none of
 * ours), percentiles (of time passed), how that changes as the fleet fills, and the load of the machine
 * beside it. Exit status 1: a bound for a busy machine was passed, or an answer differed.
 */
#include "core/sched/pick.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 12500, GPUS = 8, MODELS = 5, TENANTS = 20, DECILES = 11, CHURN = 200000, SCAN_EVERY = 997 };
/* On an idle core; on a busy one BUSY times worse. */
#define PER_S  50000.0
#define P50_US 5.0
#define P99_US 250.0
#define RATIO  100.0
#define BUSY   3.0

static uint64_t state = 42;

static uint32_t draw(uint32_t n)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* ---- the fleet and the work ---- */

/* In parts of 1,000: how often. */
static const struct {
    uint32_t part, n_gpus, milli, cpu_milli;
} shapes[] = {
    {180, 1, 1000, 4000}, {120, 1, 1000, 8000}, {100, 1, 1000, 12000}, {60, 1, 1000, 10000},
    {20, 1, 1000, 6000},  {110, 1, 810, 8000},  {20, 1, 810, 4000},    {70, 1, 470, 6000},
    {20, 1, 470, 4000},   {40, 1, 320, 4000},   {30, 1, 650, 8000},    {20, 1, 230, 2000},
    {15, 1, 550, 4000},   {15, 1, 590, 6000},   {15, 1, 160, 2000},    {12, 1, 110, 1000},
    {10, 1, 460, 6000},   {10, 1, 370, 4000},   {60, 0, 0, 8000},      {40, 0, 0, 4000},
    {15, 0, 0, 16000},    {6, 8, 1000, 64000},  {3, 4, 1000, 32000},   {4, 2, 1000, 16000},
    {5, 1, 200, 2000},
};

struct fleet {
    struct bh_requests requests;
    struct bh_shelf shelf;
    struct bh_score *score;
    struct bh_pick *pick;
    uint32_t classes[TENANTS][sizeof(shapes) / sizeof(shapes[0])];
    uint32_t *live; /* holds */
    uint32_t n_live;
};

static void must(int rc)
{
    if (rc < 0)
        abort();
}

/* Four NVLink domains of two nodes in a rack, 25 racks in a block. */
static void build_nodes(struct fleet *f)
{
    static const uint32_t model_of[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4};
    uint32_t region, block = 0, rack = 0, link = 0, id;
    bh_shelf_init(&f->shelf, &f->requests);
    for (uint32_t m = 0; m < MODELS; m++)
        must(bh_shelf_add_model(&f->shelf, NULL, &id, NULL));
    must(bh_shelf_add_domain(&f->shelf, BH_LEVEL_REGION, BH_NONE, &region, NULL));
    for (uint32_t i = 0; i < NODES; i++) {
        if (i % 200 == 0)
            must(bh_shelf_add_domain(&f->shelf, BH_LEVEL_BLOCK, region, &block, NULL));
        if (i % 8 == 0)
            must(bh_shelf_add_domain(&f->shelf, BH_LEVEL_RACK, block, &rack, NULL));
        if (i % 2 == 0)
            must(bh_shelf_add_domain(&f->shelf, BH_LEVEL_LINK, rack, &link, NULL));
        const struct bh_node_spec spec = {.model = model_of[i / 8 % 16],
                                          .domain = link,
                                          .rank = (uint32_t)((uint64_t)i * 7919 % NODES),
                                          .n_gpus = GPUS,
                                          .n_numa = 2,
                                          .cpu_milli = 96000,
                                          .mem_mib = 1 << 20};
        must(bh_shelf_add_node(&f->shelf, &spec, &id, NULL));
    }
}

static void build_classes(struct fleet *f)
{
    static const uint8_t aparts[4] = {BH_APART_NODE, BH_APART_NODE, BH_APART_GPU, BH_APART_NOTHING};
    struct bh_typical typical[TENANTS * sizeof(shapes) / sizeof(shapes[0])];
    size_t n = 0;
    for (uint32_t t = 0; t < TENANTS; t++) {
        for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            struct bh_request r = {.form = BH_FORM_CPU,
                                   .cpu_milli = shapes[i].cpu_milli,
                                   .mem_mib = shapes[i].cpu_milli,
                                   .trust = t,
                                   .apart = aparts[t % 4]};
            if (shapes[i].n_gpus) {
                r.form = shapes[i].milli == BH_GPU_MILLI ? BH_FORM_WHOLE : BH_FORM_SHARE;
                r.n_gpus = (uint8_t)shapes[i].n_gpus;
                r.gpu_milli = (uint16_t)shapes[i].milli;
                r.models = t == 7 ? 2 : t == 8 ? 12 : 0; /* two tenants cannot do without theirs */
            }
            must(bh_request_intern(&f->requests, &r, &f->classes[t][i], NULL));
            typical[n++] = (struct bh_typical){f->classes[t][i], shapes[i].part};
        }
    }
    f->score = bh_score_new(BH_SCORE_BULKHEAD, &f->shelf, 1);
    bh_score_set_typical(f->score, typical, n);
    f->pick = bh_pick_new(&f->shelf, f->score);
}

static uint32_t next_class(const struct fleet *f)
{
    const uint32_t tenant = draw(TENANTS);
    uint32_t left = draw(1000), i = 0;
    while (i + 1 < sizeof(shapes) / sizeof(shapes[0]) && left >= shapes[i].part)
        left -= shapes[i++].part;
    return f->classes[tenant][i];
}

/* ---- measuring ---- */

struct times {
    uint32_t *ns;
    size_t n;
    double sum, cpu; /* nanoseconds; cpu: of this thread, or 0 where it was not asked for */
};

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double percentile(struct times *t, double part)
{
    qsort(t->ns, t->n, sizeof(*t->ns), by_value);
    return t->n ? t->ns[(size_t)((double)(t->n - 1) * part)] / 1000.0 : 0;
}

static double per_second(const struct times *t)
{
    const double ns = t->cpu > 0 ? t->cpu : t->sum;
    return ns > 0 ? (double)t->n * 1e9 / ns : 0;
}

static void note(struct times *t, uint64_t ns)
{
    t->ns[t->n++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    t->sum += (double)ns;
}

struct scan {
    double ours_ns, scan_ns; /* of processor time */
    uint32_t n, differ;
};

static uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* One decision, timed; now and then the same by a scan. */
static void decide(struct fleet *f, uint32_t class_, struct times *t, struct scan *scan, bool ask_both)
{
    struct bh_spot spot, naive;
    uint32_t hold;
    const uint64_t cpu = ask_both ? cpu_ns() : 0, a = now_ns();
    bh_score_arrived(f->score, class_);
    const bool found = bh_pick_best(f->pick, class_, &spot);
    const uint64_t b = now_ns();
    if (ask_both) {
        const uint64_t between = cpu_ns();
        const bool also = bh_pick_naive(f->pick, class_, &naive);
        scan->scan_ns += (double)(cpu_ns() - between);
        scan->ours_ns += (double)(between - cpu);
        scan->n++;
        scan->differ += found != also || (found && (spot.node != naive.node || spot.gpus != naive.gpus));
    }
    const uint64_t c = now_ns();
    if (found) {
        must(bh_shelf_take(&f->shelf, class_, &spot, &hold, NULL));
        f->live[f->n_live++] = hold;
    }
    note(t, b - a + (now_ns() - c));
}

static double load(void)
{
    double at[1] = {0};
    return getloadavg(at, 1) == 1 ? at[0] : -1;
}

static void print(const char *what, struct times *t)
{
    const double rate = per_second(t);
    printf("%-26s %8zu decisions %9.0f /s   p50 %6.1f us  p99 %7.1f us  p99.9 %8.1f us\n", what, t->n, rate,
           percentile(t, 0.5), percentile(t, 0.99), percentile(t, 0.999));
}

static void fill(struct fleet *f, struct times *at, struct times *all, struct scan *scan)
{
    uint64_t asked = 0, n = 0;
    const uint64_t cpu = cpu_ns();
    while (asked < f->shelf.milli_all + f->shelf.milli_all / 50) {
        const uint32_t class_ = next_class(f);
        const size_t decile = (size_t)(f->shelf.milli_used * 10 / f->shelf.milli_all);
        const size_t before = at[decile].n;
        decide(f, class_, &at[decile], scan, ++n % SCAN_EVERY == 0);
        note(all, at[decile].ns[before]);
        asked += bh_request_milli(&f->requests.at.at[class_]);
    }
    all->cpu = (double)(cpu_ns() - cpu) - scan->scan_ns;
}

/* Two decisions for each end, so that it stays full and some find nothing. */
static void churn(struct fleet *f, struct times *t, struct scan *scan)
{
    const uint64_t cpu = cpu_ns();
    for (uint32_t i = 0; i < CHURN; i++) {
        if (i % 2 == 0 && f->n_live) {
            const uint32_t k = draw(f->n_live);
            bh_shelf_free(&f->shelf, f->live[k]);
            f->live[k] = f->live[--f->n_live];
        }
        decide(f, next_class(f), t, scan, i % SCAN_EVERY == 0);
    }
    t->cpu = (double)(cpu_ns() - cpu) - scan->scan_ns;
}

/* ratio: what the scan must take, in times of ours; 0: whatever it takes. */
static int judge(struct times *t, const struct scan *scan, double ratio_min)
{
    const double rate = per_second(t), p50 = percentile(t, 0.5), p99 = percentile(t, 0.99);
    const double ratio = scan->ours_ns > 0 ? scan->scan_ns / scan->ours_ns : 0;
    const bool held = rate >= PER_S && p50 <= P50_US && p99 <= P99_US && ratio >= ratio_min;
    printf("full scan: %.0f us a decision, %.0f times ours; %" PRIu32 " answers compared, %" PRIu32
           " differ\n",
           scan->scan_ns / scan->n / 1000, ratio, scan->n, scan->differ);
    printf("bounds of an idle core (%.0f /s, p50 %.0f us, p99 %.0f us", PER_S, P50_US, P99_US);
    if (ratio_min > 0)
        printf(", scan %.0f times ours", ratio_min);
    printf("): %s\n", held ? "held" : "not held");
    if (rate >= PER_S / BUSY && p50 <= P50_US * BUSY && p99 <= P99_US * BUSY && ratio >= ratio_min / BUSY &&
        !scan->differ)
        return 0;
    printf("  over the bound: on a busy machine a third of each\n");
    return 1;
}

int main(void)
{
    static struct fleet f;
    static struct times at[DECILES], all, later;
    struct scan scan = {0};
    const size_t most = (size_t)NODES * GPUS * 3;
    for (uint32_t i = 0; i < DECILES; i++)
        at[i].ns = bh_alloc(most, sizeof(uint32_t));
    all.ns = bh_alloc(most, sizeof(uint32_t));
    later.ns = bh_alloc(CHURN, sizeof(uint32_t));
    f.live = bh_alloc(most + CHURN, sizeof(*f.live));
    build_nodes(&f);
    build_classes(&f);
    bh_shelf_reserve(&f.shelf, most, 0);
    printf("%d GPUs, %zu classes of requests, load %.2f\n", NODES * GPUS, f.requests.at.n, load());
    fill(&f, at, &all, &scan);
    for (uint32_t i = 0; i < DECILES; i++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "  %3" PRIu32 " %% used", i * 10);
        if (at[i].n)
            print(what, &at[i]);
    }
    printf("%.2f %% of the fleet used, load %.2f\n",
           100.0 * (double)f.shelf.milli_used / (double)f.shelf.milli_all, load());
    print("filling", &all);
    int bad = judge(&all, &scan, RATIO);
    scan = (struct scan){0};
    churn(&f, &later, &scan);
    print("work that ends and comes", &later);
    bad |= judge(&later, &scan, 0);
    printf("%.1f nodes scored a decision, load %.2f\n",
           (double)(bh_pick_scored(f.pick)) / (double)(all.n + later.n), load());
    for (uint32_t i = 0; i < DECILES; i++)
        free(at[i].ns);
    free(all.ns);
    free(later.ns);
    free(f.live);
    bh_pick_free(f.pick);
    bh_score_free(f.score);
    bh_shelf_fini(&f.shelf);
    bh_requests_fini(&f.requests);
    return bad;
}
