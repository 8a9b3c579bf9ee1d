/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lint_bench.c - what it costs to judge a large estate.
 *
 * Generates a policy and a fleet in memory (tenants, as many nodes, pools, workloads), then
 * measures libyaml alone reading both texts, our reading of them (tree, model, link) and the
 * rules, taking turns so that a busy machine slows all of them alike. Prints medians, the
 * ratio to libyaml, findings a second, and bytes for each tenant at two sizes: they stay the
 * same when memory is linear. Exit status 1: a bound was passed.
 */
#include "base/buf.h"
#include "base/choice.h"
#include "conf/read.h"
#include "core/policy/report.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <yaml.h>

enum { ROUNDS = 5, GPUS_PER_NODE = 8, POOL_EVERY = 25, NODES_PER_POOL = 25, TODAY = 20454 };
#define TEXT_MAX   ((size_t)64 << 20)
#define RATIO_MAX  3.0
#define GROWTH_MAX 1.25 /* bytes a tenant, large against small */

struct texts {
    struct bh_buf policy, fleet;
    unsigned n;
};

static const char *pick(struct bh_choice *c, const char *const *words, uint32_t n)
{
    return words[bh_choose(c, n)];
}
#define PICK(c, ...) \
    pick(c, (const char *const[]){__VA_ARGS__}, (uint32_t)BH_COUNT_OF(((const char *const[]){__VA_ARGS__})))

/* ---- the estate ---- */

static void write_tenant(struct bh_buf *b, struct bh_choice *c, unsigned i)
{
    const char *trust = PICK(c, "internal", "internal", "partner", "external");
    bh_buf_printf(b, "  - name: tenant-%05u\n    trust: %s\n    parent: division-%u\n    class: %s\n", i,
                  trust, i % 40, PICK(c, "training", "serving", "research", "batch"));
    if (bh_choose(c, 10))
        bh_buf_printf(b, "    costCenter: cc-%u\n", 1000 + i);
    if (bh_choose(c, 8) == 0)
        bh_buf_str(b, "    regulated: [hipaa, soc2]\n");
    if (bh_choose(c, 4) == 0)
        bh_buf_str(b, "    drivers: [\"580\"]\n");
    unsigned gpus = 1 + bh_choose(c, 8);
    bh_buf_printf(b, "    quota:%s\n      model: %s\n      gpus: %u\n      memory: %uGiB\n      weight: %u\n",
                  bh_choose(c, 20) ? "" : "   # at most four GPUs", PICK(c, "hard", "fairshare"), gpus,
                  gpus * 80, 50 + bh_choose(c, 100));
    if (bh_choose(c, 3) == 0)
        bh_buf_printf(b, "      max: %u\n      borrow: true\n", gpus * 2);
    bh_buf_printf(b, "    slo: {kind: %s, metric: p99, target: 50ms}\n", PICK(c, "none", "soft", "hard"));
    bh_buf_str(b, "    share: {target: 25%, underContention: \"proportional to weight\"}\n");
    if (bh_choose(c, 10))
        bh_buf_printf(b, "    network: {policy: default-deny, rdma: %s}\n", PICK(c, "none", "partitioned"));
    if (bh_choose(c, 10))
        bh_buf_str(b, "    storage: {quota: 2TiB}\n");
    bh_buf_printf(b, "    images: [\"registry.example/tenant-%05u/*\"]\n", i);
}

static void write_pool(struct bh_buf *b, struct bh_choice *c, unsigned p, unsigned n)
{
    unsigned first = p * NODES_PER_POOL, last = first + NODES_PER_POOL - 1;
    const char *mechanism = PICK(c, "whole", "mig", "mig-vgpu", "mps", "timeslice", "fractional");
    bh_buf_printf(
        b, "  - name: pool-%04u\n    match: {model: H200, nodes: \"gpu-[%05u-%05u]\"}\n    mechanism: %s\n",
        p, first, last < n ? last : n - 1, mechanism);
    if (mechanism[0] == 'f')
        bh_buf_str(b, "    backing: gate\n");
    if (mechanism[0] == 'm' && mechanism[1] == 'i')
        bh_buf_str(b, "    profiles: [1g.18gb]\n    layout: {1g.18gb: 7}\n");
    if (mechanism[0] == 't')
        bh_buf_str(
            b,
            "    replicas: 4\n    resource: nvidia.com/gpu.shared\n    failRequestsGreaterThanOne: true\n");
    bh_buf_printf(b, "    tier: %s\n    caps: {memory: 20GiB, compute: 25%%}\n    tenants: [",
                  PICK(c, "container", "container", "vm"));
    for (unsigned i = 0; i < POOL_EVERY && p * POOL_EVERY + i < n; i++)
        bh_buf_printf(b, "%stenant-%05u", i ? ", " : "", p * POOL_EVERY + i);
    bh_buf_str(b, "]\n    drivers: [\"580.159.03\"]\n    description: \"shared by one division\"\n");
}

static void write_workload(struct bh_buf *b, struct bh_choice *c, unsigned i, unsigned n)
{
    unsigned tenant = i * 2 < n ? i * 2 : n - 1,
             node = tenant / POOL_EVERY * NODES_PER_POOL + bh_choose(c, NODES_PER_POOL);
    bh_buf_printf(
        b, "  - name: job-%05u\n    tenant: tenant-%05u\n    pool: pool-%04u\n    gpus: %u\n    gang: %s\n",
        i, tenant, tenant / POOL_EVERY, 1 + bh_choose(c, 8), PICK(c, "true", "true", "false"));
    bh_buf_printf(b, "    memory: 18GiB\n    checkpointable: %s\n    duration: %s\n    priority: %s\n",
                  PICK(c, "true", "false"), PICK(c, "long", "long", "bursty"), PICK(c, "normal", "high"));
    bh_buf_printf(b, "    image: registry.example/tenant-%05u/train:1\n    assigned: [\"gpu-%05u:%u\"]\n",
                  tenant, node < n ? node : 0, bh_choose(c, GPUS_PER_NODE));
    bh_buf_str(b, "    env: {NCCL_DEBUG: WARN, OMP_NUM_THREADS: 8}\n");
}

static void write_node(struct bh_buf *b, struct bh_choice *c, unsigned i)
{
    bh_buf_printf(
        b, "  - name: gpu-%05u\n    site: eu-de-%u\n    driver: %s\n    toolkit: %s\n    operator: 25.3.2\n",
        i, i % 3, PICK(c, "580.159.03", "580.159.03", "570.133.20"), PICK(c, "1.17.8", "1.17.8", "1.17.4"));
    bh_buf_printf(b, "    iommu: true\n    acs: true\n    secureBoot: true\n    ecc: %s\n",
                  bh_choose(c, 50) ? "true" : "false");
    bh_buf_printf(
        b,
        "    params: {RmProfilingAdminOnly: 1, RMDisableScrubOnFree: 0}\n    labels: {fabric-domain: F%u}\n",
        i);
    bh_buf_str(b, "    gpus:\n");
    for (unsigned g = 0; g < GPUS_PER_NODE; g++)
        bh_buf_printf(b, "      - {index: %u, uuid: GPU-%05u-%u, model: H200, numa: %u, fabric: F%u}\n", g, i,
                      g, g / 4, i);
}

static void generate(struct texts *t, unsigned n)
{
    enum { DRAWS = 1 << 16 };
    uint8_t *draws = bh_alloc(DRAWS, 1);
    *t = (struct texts){.n = n};
    bh_buf_init(&t->policy, TEXT_MAX);
    bh_buf_init(&t->fleet, TEXT_MAX);
    bh_buf_str(&t->policy, "bulkhead: 1\ntenants:\n");
    bh_buf_str(&t->fleet, "bulkhead: 1\nnodes:\n");
    for (unsigned i = 0; i < n; i++) {
        bh_choice_fill(draws, 64, i);
        struct bh_choice c = {draws, 64};
        write_tenant(&t->policy, &c, i);
        c = (struct bh_choice){draws, 64};
        write_node(&t->fleet, &c, i);
    }
    bh_choice_fill(draws, DRAWS, n);
    struct bh_choice c = {draws, DRAWS};
    bh_buf_str(&t->policy, "pools:\n");
    for (unsigned p = 0; p < (n + POOL_EVERY - 1) / POOL_EVERY; p++)
        write_pool(&t->policy, &c, p, n);
    bh_buf_str(&t->policy, "workloads:\n");
    for (unsigned i = 0; i < n / 2; i++)
        write_workload(&t->policy, &c, i, n);
    bh_buf_str(&t->policy, "prices: {gpuHour: 2.50, memoryGiBHour: 0.02, currency: EUR, borrowed: 60%}\n");
    free(draws);
    if (t->policy.full || t->fleet.full)
        exit(2);
}

/* ---- what is measured ---- */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void yaml_alone(const struct bh_buf *b)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        exit(2);
    yaml_parser_set_input_string(&parser, (const unsigned char *)b->at, b->n);
    for (bool more = true; more;) {
        yaml_event_t e;
        if (!yaml_parser_parse(&parser, &e))
            exit(2);
        more = e.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
}

struct estate {
    struct bh_policy policy;
    struct bh_fleet fleet;
    struct bh_diags diags;
    bh_unresolved_vec problems;
    size_t tree_bytes; /* while reading, the larger of the two */
};

static struct bh_tree parse(struct estate *e, const struct bh_buf *b)
{
    struct bh_tree t;
    struct bh_tree_error why;
    if (bh_tree_parse(&t, b->at, b->n, &why) < 0) {
        (void)fprintf(stderr, "%u:%u: %s\n", why.line, why.column, why.message);
        exit(2);
    }
    if (t.arena.total_bytes > e->tree_bytes)
        e->tree_bytes = t.arena.total_bytes;
    return t;
}

static void estate_read(struct estate *e, const struct texts *t)
{
    *e = (struct estate){0};
    bh_policy_init(&e->policy, BH_SOURCE_POLICY);
    struct bh_tree tree = parse(e, &t->policy);
    bh_policy_read(&e->policy, &tree, 0, &e->diags);
    bh_tree_fini(&tree);
    tree = parse(e, &t->fleet);
    bh_fleet_read(&e->fleet, &tree, 1, &e->diags);
    bh_tree_fini(&tree);
    bh_policy_link(&e->policy, &e->fleet, &e->problems);
    if (e->diags.n_errors || e->problems.n) {
        (void)fprintf(stderr, "the generated files are wrong: %s\n",
                      e->diags.n_errors ? e->diags.at.at[0].message : e->problems.at[0].name);
        exit(2);
    }
}

static void estate_fini(struct estate *e)
{
    bh_policy_fini(&e->policy);
    bh_fleet_fini(&e->fleet);
    bh_diags_fini(&e->diags);
    bh_vec_fini(&e->problems);
}

static int by_value(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static double median(double *at, size_t n)
{
    qsort(at, n, sizeof(*at), by_value);
    return at[n / 2];
}

struct result {
    double yaml_ms, read_ms, lint_ms, ratio;
    uint64_t findings, model_bytes, report_bytes, tree_bytes;
};

/* Large blocks come from mmap and are counted apart from the heap. */
static uint64_t bytes_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void measure(const struct texts *t, struct result *r)
{
    double yaml[ROUNDS], read[ROUNDS], lint[ROUNDS], ratio[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct estate e;
        struct bh_report report = {0};
        double t0 = now_ms();
        yaml_alone(&t->policy);
        yaml_alone(&t->fleet);
        double t1 = now_ms();
        uint64_t before = bytes_in_use();
        estate_read(&e, t);
        double t2 = now_ms();
        uint64_t with_model = bytes_in_use();
        bh_lint(&e.policy, &e.fleet, TODAY, &report);
        double t3 = now_ms();
        r->model_bytes = with_model - before;
        r->report_bytes = bytes_in_use() - with_model;
        r->tree_bytes = e.tree_bytes;
        r->findings = report.findings.n;
        yaml[i] = t1 - t0;
        read[i] = t2 - t1;
        lint[i] = t3 - t2;
        ratio[i] = (t3 - t1) / (t1 - t0);
        bh_report_fini(&report);
        estate_fini(&e);
    }
    r->yaml_ms = median(yaml, ROUNDS);
    r->read_ms = median(read, ROUNDS);
    r->lint_ms = median(lint, ROUNDS);
    r->ratio = median(ratio, ROUNDS);
}

static double bytes_per_tenant(const struct result *r, unsigned n)
{
    return (double)(r->model_bytes + r->report_bytes + r->tree_bytes) / n;
}

static void print(const struct texts *t, const struct result *r)
{
    printf("%u tenants, %u nodes, %u GPUs: policy %.1f MiB, fleet %.1f MiB\n", t->n, t->n,
           t->n * GPUS_PER_NODE, (double)t->policy.n / 1048576, (double)t->fleet.n / 1048576);
    printf("  libyaml alone   %9.1f ms\n", r->yaml_ms);
    printf("  read and link   %9.1f ms\n", r->read_ms);
    printf("  rules           %9.1f ms   %" PRIu64 " findings, %.0f findings/s\n", r->lint_ms, r->findings,
           (double)r->findings * 1e3 / r->lint_ms);
    printf("  total / libyaml %9.2f      (at most %.1f)\n", r->ratio, RATIO_MAX);
    printf("  memory          %9.0f bytes a tenant: model %.0f, findings %.0f, tree while reading %.0f\n",
           bytes_per_tenant(r, t->n), (double)r->model_bytes / t->n, (double)r->report_bytes / t->n,
           (double)r->tree_bytes / t->n);
}

int main(void)
{
    static const unsigned sizes[] = {1000, 10000};
    struct result r[BH_COUNT_OF(sizes)];
    for (size_t i = 0; i < BH_COUNT_OF(sizes); i++) {
        struct texts t;
        generate(&t, sizes[i]);
        measure(&t, &r[i]);
        print(&t, &r[i]);
        bh_buf_fini(&t.policy);
        bh_buf_fini(&t.fleet);
    }
    double growth = bytes_per_tenant(&r[1], sizes[1]) / bytes_per_tenant(&r[0], sizes[0]);
    printf("bytes a tenant at %u against %u: %.2f (at most %.2f)\n", sizes[1], sizes[0], growth, GROWTH_MAX);
    if (r[1].ratio > RATIO_MAX || growth > GROWTH_MAX) {
        printf("a bound was passed\n");
        return 1;
    }
    return 0;
}
