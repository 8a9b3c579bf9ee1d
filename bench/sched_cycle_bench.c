/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_cycle_bench.c - what a whole cycle of the scheduler costs.
 *
 *   fleet    100,000 GPUs in 12,500 nodes, 1,000 queues in four levels, 100,000 jobs running and 100,000
 *            pending: everything looked at for the first time, then cycles in which a hundred end and a hundred come;
 *            saved and loaded. Then "cannot be placed, because": the verdict on some of those that wait.
 *   reclaim  KAI's shape: 500 x 8 GPUs full of 4,000 jobs of a queue that deserves nothing, 4,000 pending of one
 *            that deserves all of it. Exactly 4,000 must go. And one gang of 250 x 8, for which 2,000 must.
 *   gang     1,024 x 8 GPUs, eight in a rack each, on a fleet that is half in use; then one that cannot be placed.
 *
 * Time is processor time, as other processes are none of ours; time passed is printed beside it, with the load of the
 * machine. Exit status 1: a bound for a busy machine (three times that for an idle one) was passed, or an
 * answer was wrong.
 */
#include "core/sched/explain.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

enum { NODES = 12500, JOBS = 100000, CHURN = 100, ROUNDS = 30, VERDICTS = 400 };
#define BUSY 3.0

static int failed;

static void must(int ok)
{
    if (!ok) {
        fprintf(stderr, "sched_cycle_bench: a wrong answer\n");
        exit(1);
    }
}

static double clock_ms(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct watch {
    double cpu, wall;
};

static struct watch start(void)
{
    return (struct watch){clock_ms(CLOCK_PROCESS_CPUTIME_ID), clock_ms(CLOCK_MONOTONIC)};
}

static struct watch stop(struct watch from)
{
    const struct watch now = start();
    return (struct watch){now.cpu - from.cpu, now.wall - from.wall};
}

/* bound_ms 0: none. */
static void report(const char *what, struct watch took, double bound_ms)
{
    const bool bad = bound_ms > 0 && took.cpu > bound_ms * BUSY;
    printf("  %-46s %9.3f ms  (passed %9.3f)", what, took.cpu, took.wall);
    if (bound_ms > 0)
        printf("   bound %g%s", bound_ms,
               bad                   ? "  PASSED"
               : took.cpu > bound_ms ? "  (over, within busy)"
                                     : "");
    printf("\n");
    failed |= bad;
}

/* ---- telling ---- */

static uint64_t state = 42;

static uint32_t draw(uint32_t n)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}

static void say(struct bh_sched *s, struct bh_sched_event e)
{
    must(bh_sched_apply(s, &e, NULL) == 0);
}

static void tell(struct bh_sched *s, enum bh_sched_event_kind kind, uint64_t id, uint64_t at_ms)
{
    say(s, (struct bh_sched_event){.kind = kind, .id = id, .at_ms = at_ms});
}

static void add_node(struct bh_sched *s, uint32_t id, uint32_t domain, uint32_t model)
{
    const struct bh_node_spec spec = {.model = model,
                                      .domain = domain,
                                      .rank = (uint32_t)((uint64_t)id * 7919 % NODES),
                                      .n_gpus = 8,
                                      .gpu_mib = 80000,
                                      .n_numa = 2,
                                      .cpu_milli = 96000,
                                      .mem_mib = 1 << 20};
    say(s, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = id, .node = &spec});
}

/* Two nodes in an NVLink domain, four of these in a rack, 25 racks in a block. */
static void add_fleet(struct bh_sched *s, uint32_t nodes)
{
    uint32_t id = 0, block = 0, rack = 0, link = 0;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = 0});
    say(s, (struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = 1});
    say(s, (struct bh_sched_event){
               .kind = BH_SCHED_DOMAIN, .id = id++, .level = BH_LEVEL_REGION, .parent = BH_NONE});
    for (uint32_t i = 0; i < nodes; i++) {
        if (i % 200 == 0)
            say(s, (struct bh_sched_event){
                       .kind = BH_SCHED_DOMAIN, .id = block = id++, .level = BH_LEVEL_BLOCK, .parent = 0});
        if (i % 8 == 0)
            say(s, (struct bh_sched_event){
                       .kind = BH_SCHED_DOMAIN, .id = rack = id++, .level = BH_LEVEL_RACK, .parent = block});
        if (i % 2 == 0)
            say(s, (struct bh_sched_event){
                       .kind = BH_SCHED_DOMAIN, .id = link = id++, .level = BH_LEVEL_LINK, .parent = rack});
        add_node(s, i, link, i / 8 % 8 == 7);
    }
}

static void add_queue(struct bh_sched *s, uint32_t id, uint32_t parent, bool leaf, uint64_t deserved)
{
    struct bh_queue_config c;
    if (leaf)
        bh_queue_config_init(&c);
    else
        bh_queue_config_group(&c);
    if (leaf)
        c.deserved.at[BH_RES_GPU] = deserved * BH_GPU_MILLI;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = id, .parent = parent, .queue = &c});
}

static struct bh_gang_spec job_of(uint64_t id, uint32_t queue, uint32_t n, uint32_t n_gpus, uint32_t milli)
{
    struct bh_gang_spec j = {.id = id,
                             .queue = queue,
                             .user = (uint32_t)(id % 50),
                             .n_roles = 1,
                             .within = BH_LEVEL_ANY,
                             .prefer = BH_LEVEL_ANY,
                             .band = BH_PRIORITY_NORMAL,
                             .can = BH_CAN_REQUEUE,
                             .submit_ms = id,
                             .deadline_ms = BH_TURN_NO_DEADLINE};
    j.roles[0] = (struct bh_gang_role_spec){.min = n, .max = n};
    j.roles[0].request = (struct bh_request){.form = milli < BH_GPU_MILLI ? BH_FORM_SHARE : BH_FORM_WHOLE,
                                             .n_gpus = (uint8_t)n_gpus,
                                             .gpu_milli = (uint16_t)milli,
                                             .cpu_milli = 2000,
                                             .apart = BH_APART_NOTHING};
    return j;
}

static void submit(struct bh_sched *s, struct bh_gang_spec j)
{
    say(s, (struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .job = &j});
}

static struct bh_sched *new_sched(enum bh_score_mode mode)
{
    struct bh_sched_config c;
    bh_sched_config_init(&c);
    c.queues.divided = 1u << BH_RES_GPU;
    c.score = mode;
    return bh_sched_new(&c);
}

/* ---- the fleet ---- */

enum { LEVEL1 = 5, LEVEL2 = 25, LEVEL3 = 125, QUEUES = 1000, LEAVES = QUEUES - LEVEL1 - LEVEL2 - LEVEL3 };

static void add_tree(struct bh_sched *s)
{
    uint32_t id = 1;
    for (uint32_t i = 0; i < LEVEL1; i++)
        add_queue(s, id++, 0, false, 0);
    for (uint32_t i = 0; i < LEVEL2; i++)
        add_queue(s, id++, 1 + i % LEVEL1, false, 0);
    for (uint32_t i = 0; i < LEVEL3; i++)
        add_queue(s, id++, 1 + LEVEL1 + i % LEVEL2, false, 0);
    for (uint32_t i = 0; i < LEAVES; i++)
        add_queue(s, id++, 1 + LEVEL1 + LEVEL2 + i % LEVEL3, true, NODES * 8 / LEAVES);
}

/* In parts of 1,000: one GPU for each job on average. */
static const struct {
    uint32_t part, n, n_gpus, milli;
} shapes[] = {{390, 1, 1, 1000}, {300, 1, 1, 500}, {180, 1, 1, 250}, {70, 1, 2, 1000},
              {35, 1, 4, 1000},  {5, 1, 8, 1000},  {15, 2, 1, 1000}, {5, 2, 4, 1000}};

static struct bh_gang_spec some_job(uint64_t id)
{
    uint32_t left = draw(1000), i = 0;
    while (i + 1 < BH_COUNT_OF(shapes) && left >= shapes[i].part)
        left -= shapes[i++].part;
    struct bh_gang_spec j =
        job_of(id, 1 + QUEUES - LEAVES + draw(LEAVES), shapes[i].n, shapes[i].n_gpus, shapes[i].milli);
    j.firm = !draw(10);
    if (!draw(4))
        j.roles[0].request.models = 1;
    return j;
}

static size_t allocated(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* A cycle, and how much memory it took. */
static size_t decide(struct bh_sched *s, uint64_t now_ms, struct watch *took)
{
    size_t n;
    const size_t before = allocated();
    const struct watch w = start();
    (void)bh_sched_decide(s, now_ms, 0, &n);
    *took = stop(w);
    if (allocated() > before)
        printf("  (a cycle allocated %zu bytes)\n", allocated() - before);
    return n;
}

static void gone(struct bh_sched *s, uint64_t now_ms)
{
    for (size_t i = 0; i < bh_sched_slots(s); i++) {
        const struct bh_gang *g = bh_sched_slot(s, i);
        if (g->state == BH_GANG_LEAVES || g->state == BH_GANG_ENDS)
            tell(s, BH_SCHED_GONE, g->id, now_ms);
    }
}

static uint64_t any_running(const struct bh_sched *s)
{
    for (;;) {
        const struct bh_gang *g = bh_sched_slot(s, draw((uint32_t)bh_sched_slots(s)));
        if (g->state == BH_GANG_RUNS)
            return g->id;
    }
}

static int by_cpu(const void *a, const void *b)
{
    const struct watch *x = a, *y = b;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static void settle(struct bh_sched *s, uint64_t now_ms, const char *what)
{
    const struct watch w = start();
    tell(s, BH_SCHED_TICK, 0, now_ms);
    report(what, stop(w), 0);
}

static void churn(struct bh_sched *s, uint64_t *next)
{
    struct watch took[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        const uint64_t now = 200000 + 1000 * (uint64_t)r;
        for (int i = 0; i < CHURN; i++) {
            tell(s, BH_SCHED_FINISH, any_running(s), now);
            submit(s, some_job((*next)++));
        }
        gone(s, now);
        tell(s, BH_SCHED_TICK, 0, now);
        decide(s, now, &took[r]);
    }
    qsort(took, ROUNDS, sizeof(*took), by_cpu);
    report("a cycle with 100 ends and 100 new, median", took[ROUNDS / 2], 10);
    report("... the slowest", took[ROUNDS - 1], 0);
}

/* Of those that wait, drawn: why each does. Those with others of their kind before them are another question. */
static void explain(const struct bh_sched *s, bool turn, const char *what, uint64_t now_ms)
{
    static struct watch took[VERDICTS];
    char worst[64];
    for (int i = 0; i < VERDICTS;) {
        const struct bh_gang *g = bh_sched_slot(s, draw((uint32_t)bh_sched_slots(s)));
        struct bh_verdict v;
        if (g->state != BH_GANG_PENDING)
            continue;
        const struct watch w = start();
        must(bh_explain(s, NULL, g->id, now_ms, &v) && v.tier != BH_WAIT_NOT);
        took[i] = stop(w);
        i += (v.tier == BH_WAIT_TURN) == turn;
    }
    qsort(took, VERDICTS, sizeof(*took), by_cpu);
    (void)snprintf(worst, sizeof(worst), "... 99 of 100 of %d in", VERDICTS);
    report(what, took[VERDICTS / 2], 1);
    report(worst, took[VERDICTS * 99 / 100], 1);
}

static void keep(struct bh_sched **s)
{
    struct bh_sched_bytes b;
    struct bh_sched *again;
    struct watch w = start();
    bh_sched_save(*s, &b);
    report("save", stop(w), 0);
    w = start();
    must(bh_sched_load(b.at, b.n, &again, NULL) == 0);
    report("restart: load what was saved", stop(w), 500);
    printf("  (%.1f MB)\n", (double)b.n / 1e6);
    free(b.at);
    bh_sched_free(*s);
    *s = again;
}

static void bench_fleet(void)
{
    struct bh_sched *s = new_sched(BH_SCORE_BULKHEAD);
    struct bh_gang_spec typical[BH_COUNT_OF(shapes)];
    uint32_t counts[BH_COUNT_OF(shapes)];
    struct watch took;
    uint64_t next = 1;
    printf("fleet: %d GPUs, %d queues in 4 levels, %d running, %d pending\n", NODES * 8, QUEUES, JOBS, JOBS);
    for (size_t i = 0; i < BH_COUNT_OF(shapes); i++) {
        typical[i] = job_of(1, 1, shapes[i].n, shapes[i].n_gpus, shapes[i].milli);
        counts[i] = shapes[i].part;
    }
    bh_sched_typical(s, typical, counts, BH_COUNT_OF(shapes));
    add_fleet(s, NODES);
    add_tree(s);
    settle(s, 1, "the fleet and the queues");
    while (next <= JOBS)
        submit(s, some_job(next++));
    settle(s, 2, "100,000 submitted");
    decide(s, 2, &took);
    report("a cycle that starts most of them", took, 0);
    printf("  (%u run, %u wait, %" PRIu64 " went)\n", bh_sched_stats(s).runs, bh_sched_stats(s).pending,
           bh_sched_stats(s).evictions);
    while (bh_sched_stats(s).runs + bh_sched_stats(s).bound + bh_sched_stats(s).pending < 2 * JOBS) {
        for (int i = 0; i < JOBS / 10 && next <= 3 * JOBS; i++)
            submit(s, some_job(next++));
        gone(s, 3);
        tell(s, BH_SCHED_TICK, 0, 3);
    }
    decide(s, 100000, &took);
    printf("  (%u run, %u wait, %" PRIu64 " went)\n", bh_sched_stats(s).runs, bh_sched_stats(s).pending,
           bh_sched_stats(s).evictions);
    report("the first cycle with 100,000 more", took, 250);
    keep(&s);
    decide(s, 100001, &took);
    report("the first cycle after loading", took, 250);
    churn(s, &next);
    explain(s, false, "\"cannot be placed, because\", median", 300000);
    explain(s, true, "\"waits its turn behind\", median", 300000);
    bh_sched_free(s);
}

/* ---- reclaim ---- */

static struct bh_sched *kai(uint32_t pending, uint32_t members, uint32_t n_gpus)
{
    struct bh_sched *s = new_sched(BH_SCORE_PACKING);
    struct watch took;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_MODEL, .id = 0});
    for (uint32_t i = 0; i < 500; i++)
        add_node(s, i, BH_NONE, 0);
    add_queue(s, 1, 0, true, 0);
    add_queue(s, 2, 0, true, 4000);
    for (uint32_t i = 1; i <= 4000; i++)
        submit(s, job_of(i, 1, 1, 1, 1000));
    tell(s, BH_SCHED_TICK, 0, 1000);
    decide(s, 1000, &took);
    must(bh_sched_stats(s).runs == 4000);
    for (uint32_t i = 0; i < pending; i++)
        submit(s, job_of(10000 + i, 2, members, n_gpus, 1000));
    tell(s, BH_SCHED_TICK, 0, 2000);
    return s;
}

static void reclaim(const char *what, uint32_t pending, uint32_t members, uint32_t n_gpus, uint32_t victims,
                    double bound_ms)
{
    struct bh_sched *s = kai(pending, members, n_gpus);
    struct watch took;
    size_t n = decide(s, 2000, &took);
    size_t k;
    report(what, took, bound_ms);
    must(n == victims && bh_sched_stats(s).bound == pending);
    for (size_t i = 0; i < bh_sched_slots(s); i++) {
        const struct bh_gang *g = bh_sched_slot(s, i);
        must(g->queue == 1 ? g->state == BH_GANG_LEAVES || victims < 4000 : g->state == BH_GANG_BOUND);
    }
    gone(s, 3000);
    const struct bh_decision *d = bh_sched_decide(s, 3000, 0, &k);
    for (size_t i = 0; i < k; i++)
        must(d[i].kind == BH_DECIDE_START && d[i].job >= 10000);
    must(k == pending);
    bh_sched_free(s);
}

/* ---- one large gang ---- */

static void bench_gang(void)
{
    struct bh_sched *s = new_sched(BH_SCORE_BULKHEAD);
    struct watch took;
    add_fleet(s, NODES);
    add_queue(s, 1, 0, true, NODES * 8);
    for (uint32_t i = 1; i <= NODES / 2; i++)
        submit(s, job_of(i, 1, 1, 8, 1000));
    tell(s, BH_SCHED_TICK, 0, 1);
    decide(s, 1, &took);
    struct bh_gang_spec j = job_of(20000, 1, 1024, 8, 1000);
    j.within = j.prefer = BH_LEVEL_REGION;
    j.roles[0].slice = 8;
    j.roles[0].slice_level = BH_LEVEL_RACK;
    submit(s, j);
    tell(s, BH_SCHED_TICK, 0, 2);
    must(decide(s, 2, &took) == 1);
    report("1,024 x 8, eight nodes of a rack each", took, 5);
    j.id++;
    j.roles[0].slice = 2;
    j.roles[0].slice_level = BH_LEVEL_LINK;
    submit(s, j);
    tell(s, BH_SCHED_TICK, 0, 3);
    must(decide(s, 3, &took) == 1);
    report("1,024 x 8, two nodes of an NVLink domain each", took, 5);
    j = job_of(30000, 1, 250, 8, 1000); /* there is room for ten of these, but not in one block */
    j.within = j.prefer = BH_LEVEL_BLOCK;
    submit(s, j);
    tell(s, BH_SCHED_TICK, 0, 4);
    must(decide(s, 4, &took) == 0 && bh_sched_line(s, bh_sched_job(s, 30000))->stuck == BH_STUCK_ROOM);
    report("250 x 8 in one block cannot be placed", took, 1);
    must(decide(s, 5, &took) == 0);
    report("... asked again", took, 1);
    struct bh_verdict v;
    const struct watch w = start();
    must(bh_explain(s, NULL, 30000, 5, &v) && v.tier == BH_WAIT_EXCEEDS);
    report("... why, with numbers and holders", stop(w), 1);
    bh_sched_free(s);
}

static void print_load(void)
{
    double load[3] = {0};
    if (getloadavg(load, 3) == 3)
        printf("load average %.2f %.2f %.2f\n", load[0], load[1], load[2]);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    print_load();
    bench_fleet();
    printf("reclaim: 500 x 8 GPUs, 4,000 running, the queue deserves nothing\n");
    reclaim("4,000 jobs of one GPU: 4,000 victims", 4000, 1, 1, 4000, 50);
    reclaim("a gang of 250 x 8: 2,000 victims", 1, 250, 8, 2000, 0);
    printf("gang: %d GPUs, half in use\n", NODES * 8);
    bench_gang();
    print_load();
    return failed;
}
