/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_bench.c - what a placement costs in a fleet of 100,000 GPUs, against the scan one writes first.
 *
 * 12,500 nodes of 8 in racks and NVLink domains; five models; twenty tenants that do not trust each other, half
 * of which share no kernel, a quarter no GPU. Each tenant has five teams, and four tenants a division: a tree of queues of
 * three levels with what they deserve, with limits, one of them a hard partition, a tenth of the work not to be
 * interrupted. Work of the shapes of a public trace (shares, one GPU, few large
 * ones, some without GPU) comes until more was asked for than there is; then some ends and other work comes.
 * Each decision is timed alone: prices learn of it, its queue and those above are asked, the best node is found, the
 * GPUs are taken, the queues pay; fair shares are divided anew after every thousand. In between the
 * same question is put to a full scan, which must answer the same; a scan is cheap where most nodes are full, so
 * the ratio is that of filling. Prints decisions a second (of processor time, as other processes are none of
 * ours), percentiles (of time passed), how that changes as the fleet fills, and the load of the machine
 * beside it. On a fleet of a twentieth of the size every answer is held against the scan's. Exit status 1: a bound for
 * a busy machine was passed, or an answer differed.
 */
#include "core/sched/pick.h"
#include "core/sched/queue.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 12500, GPUS = 8, MODELS = 5, TENANTS = 20, DECILES = 11, CHURN = 200000, SCAN_EVERY = 997 };
enum { DIVISIONS = 5, TEAMS = 5, REFRESH_EVERY = 1000 };
enum { SMALL_NODES = NODES / 20, SMALL_CHURN = CHURN / 20 };
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
    uint32_t n_nodes, n_churn, scan_every;
    struct bh_requests requests;
    struct bh_shelf shelf;
    struct bh_score *score;
    struct bh_pick *pick;
    struct bh_queues queues;
    uint32_t teams[TENANTS][TEAMS]; /* leaves */
    uint32_t classes[TENANTS][sizeof(shapes) / sizeof(shapes[0])];
    struct live {
        uint32_t hold;
        struct bh_charge charge;
    } *live;
    uint32_t n_live;
    uint64_t made, by_quota; /* decisions; of them, no for the sake of a quota */
};

/* A piece of work that comes. */
struct work {
    uint32_t class_;
    struct bh_charge charge;
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
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        if (i % 200 == 0)
            must(bh_shelf_add_domain(&f->shelf, BH_LEVEL_BLOCK, region, &block, NULL));
        if (i % 8 == 0)
            must(bh_shelf_add_domain(&f->shelf, BH_LEVEL_RACK, block, &rack, NULL));
        if (i % 2 == 0)
            must(bh_shelf_add_domain(&f->shelf, BH_LEVEL_LINK, rack, &link, NULL));
        const struct bh_node_spec spec = {.model = model_of[i / 8 % 16],
                                          .domain = link,
                                          .rank = (uint32_t)((uint64_t)i * 7919 % f->n_nodes),
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

static uint32_t add_queue(struct fleet *f, uint32_t parent, uint64_t deserved, uint64_t limit, bool hard)
{
    struct bh_queue_config c;
    uint32_t id;
    if (deserved)
        bh_queue_config_init(&c);
    else
        bh_queue_config_group(&c);
    if (deserved)
        c.deserved.at[BH_RES_GPU] = deserved;
    if (limit)
        c.limit.at[BH_RES_GPU] = limit;
    if (hard)
        c.model = BH_QUOTA_HARD;
    must(bh_queues_add(&f->queues, parent, &c, &id, NULL));
    return id;
}

/* A quarter of the tenants may have no more than nine tenths of their part of the fleet, the others whatever is left. */
static void build_queues(struct fleet *f)
{
    const uint64_t part = (uint64_t)f->n_nodes * GPUS * BH_GPU_MILLI / TENANTS;
    struct bh_queues_config c;
    struct bh_resources total = {{0}};
    bh_queues_config_init(&c);
    c.divided = 1u << BH_RES_GPU;
    bh_queues_init(&f->queues, &c);
    total.at[BH_RES_GPU] = part * TENANTS;
    total.at[BH_RES_MIB] = BH_AMOUNT_MAX;
    total.at[BH_RES_CPU] = (uint64_t)f->n_nodes * 96000;
    total.at[BH_RES_MEM] = (uint64_t)f->n_nodes << 20;
    bh_queues_total(&f->queues, &total);
    for (uint32_t d = 0; d < DIVISIONS; d++) {
        const uint32_t division = add_queue(f, BH_QUEUE_ROOT, 0, 0, false);
        for (uint32_t t = d; t < TENANTS; t += DIVISIONS) {
            const uint32_t tenant = add_queue(f, division, 0, t % 4 ? 0 : part - part / 10, false);
            for (uint32_t i = 0; i < TEAMS; i++)
                f->teams[t][i] = add_queue(f, tenant, part / TEAMS, 0, t == 3);
        }
    }
}

static struct work next_work(const struct fleet *f)
{
    const uint32_t tenant = draw(TENANTS);
    uint32_t left = draw(1000), i = 0;
    while (i + 1 < sizeof(shapes) / sizeof(shapes[0]) && left >= shapes[i].part)
        left -= shapes[i++].part;
    struct work w = {
        .class_ = f->classes[tenant][i],
        .charge = {.queue = f->teams[tenant][draw(TEAMS)], .firm = !draw(10), .band = BH_PRIORITY_NORMAL}};
    w.charge.amount.at[BH_RES_GPU] = (uint64_t)shapes[i].n_gpus * shapes[i].milli;
    w.charge.amount.at[BH_RES_CPU] = w.charge.amount.at[BH_RES_MEM] = shapes[i].cpu_milli;
    return w;
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

/* What the scan says to the same question. */
static void ask_scan(const struct fleet *f, uint32_t class_, bool found, const struct bh_spot *spot,
                     struct scan *scan)
{
    struct bh_spot naive;
    const uint64_t from = cpu_ns();
    const bool also = bh_pick_naive(f->pick, class_, &naive);
    scan->scan_ns += (double)(cpu_ns() - from);
    scan->n++;
    scan->differ += found != also || (found && (spot->node != naive.node || spot->gpus != naive.gpus));
}

/* One decision, timed; now and then the same by a scan. */
static void decide(struct fleet *f, const struct work *w, struct times *t, struct scan *scan, bool ask_both)
{
    struct bh_spot spot;
    struct bh_queue_reason why;
    const uint64_t cpu = ask_both ? cpu_ns() : 0, a = now_ns();
    if (++f->made % REFRESH_EVERY == 0)
        (void)bh_queues_refresh(&f->queues, f->made);
    bh_score_arrived(f->score, w->class_);
    const bool may = bh_queue_may_start(&f->queues, &w->charge, &why);
    const bool found = may && bh_pick_best(f->pick, w->class_, &spot);
    const uint64_t b = now_ns();
    if (ask_both && may) {
        scan->ours_ns += (double)(cpu_ns() - cpu);
        ask_scan(f, w->class_, found, &spot, scan);
    }
    const uint64_t c = now_ns();
    if (found) {
        struct live *live = &f->live[f->n_live++];
        live->charge = w->charge;
        live->charge.started_ms = f->made;
        must(bh_shelf_take(&f->shelf, w->class_, &spot, &live->hold, NULL));
        bh_queue_apply(&f->queues, BH_CHARGE_FOUND, &live->charge, f->made);
    }
    f->by_quota += !may;
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
    printf("%-28s %8zu decisions %9.0f /s   p50 %6.1f us  p99 %7.1f us  p99.9 %8.1f us\n", what, t->n, rate,
           percentile(t, 0.5), percentile(t, 0.99), percentile(t, 0.999));
}

static void fill(struct fleet *f, struct times *at, struct times *all, struct scan *scan)
{
    uint64_t asked = 0, n = 0;
    const uint64_t cpu = cpu_ns();
    while (asked < f->shelf.milli_all + f->shelf.milli_all / 50) {
        const struct work w = next_work(f);
        const size_t decile = (size_t)(f->shelf.milli_used * 10 / f->shelf.milli_all);
        const size_t before = at[decile].n;
        decide(f, &w, &at[decile], scan, ++n % f->scan_every == 0);
        note(all, at[decile].ns[before]);
        asked += w.charge.amount.at[BH_RES_GPU];
    }
    all->cpu = (double)(cpu_ns() - cpu) - scan->scan_ns;
}

/* Two decisions for each end, so that it stays full and some find nothing. */
static void churn(struct fleet *f, struct times *t, struct scan *scan)
{
    const uint64_t cpu = cpu_ns();
    for (uint32_t i = 0; i < f->n_churn; i++) {
        if (i % 2 == 0 && f->n_live) {
            const uint32_t k = draw(f->n_live);
            bh_shelf_free(&f->shelf, f->live[k].hold);
            bh_queue_apply(&f->queues, BH_CHARGE_END, &f->live[k].charge, f->made);
            f->live[k] = f->live[--f->n_live];
        }
        const struct work w = next_work(f);
        decide(f, &w, t, scan, i % f->scan_every == 0);
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

static void build(struct fleet *f, uint32_t nodes, uint32_t n_churn, uint32_t scan_every)
{
    const size_t most = (size_t)nodes * GPUS * 3;
    f->n_nodes = nodes;
    f->n_churn = n_churn;
    f->scan_every = scan_every;
    f->live = bh_alloc(most + n_churn, sizeof(*f->live));
    build_nodes(f);
    build_classes(f);
    build_queues(f);
    bh_shelf_reserve(&f->shelf, most, 0);
}

static void tear_down(struct fleet *f)
{
    free(f->live);
    bh_queues_fini(&f->queues);
    bh_pick_free(f->pick);
    bh_score_free(f->score);
    bh_shelf_fini(&f->shelf);
    bh_requests_fini(&f->requests);
}

/* Every answer against the scan's. */
static int compare_all(struct times *at, struct times *all, struct times *later)
{
    static struct fleet f;
    struct scan scan = {0};
    for (uint32_t i = 0; i < DECILES; i++)
        at[i].n = 0;
    all->n = later->n = 0;
    build(&f, SMALL_NODES, SMALL_CHURN, 1);
    fill(&f, at, all, &scan);
    churn(&f, later, &scan);
    printf("%d GPUs: each of %" PRIu32 " answers compared with a full scan, %" PRIu32
           " differ (%zu refused by a quota)\n",
           SMALL_NODES * GPUS, scan.n, scan.differ, (size_t)f.by_quota);
    const bool ok = !scan.differ && scan.n + f.by_quota == f.made;
    tear_down(&f);
    return !ok;
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
    build(&f, NODES, CHURN, SCAN_EVERY);
    printf("%d GPUs, %zu classes of requests, %d tenants apart, %zu queues in 3 levels, load %.2f\n",
           NODES * GPUS, f.requests.at.n, TENANTS, f.queues.at.n - 1, load());
    fill(&f, at, &all, &scan);
    for (uint32_t i = 0; i < DECILES; i++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "  %3" PRIu32 " %% used", i * 10);
        if (at[i].n)
            print(what, &at[i]);
    }
    printf("%.2f %% of the fleet used, load %.2f\n",
           100.0 * (double)f.shelf.milli_used / (double)f.shelf.milli_all, load());
    print("filling, all of it on", &all);
    int bad = judge(&all, &scan, RATIO);
    scan = (struct scan){0};
    churn(&f, &later, &scan);
    print("ends and comes, all of it on", &later);
    bad |= judge(&later, &scan, 0);
    printf("%.1f nodes scored a decision, %.1f %% refused by a quota, load %.2f\n",
           (double)(bh_pick_scored(f.pick)) / (double)(all.n + later.n),
           100.0 * (double)f.by_quota / (double)f.made, load());
    if (!f.by_quota) {
        printf("  no quota ever said no: they were not on\n");
        bad = 1;
    }
    bad |= compare_all(at, &all, &later);
    for (uint32_t i = 0; i < DECILES; i++)
        free(at[i].ns);
    free(all.ns);
    free(later.ns);
    tear_down(&f);
    return bad;
}
