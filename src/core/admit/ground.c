/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ground.c - machines become parts: GPUs that are alike in model, pools and fabric, each a node of the scheduler.
 *
 * Pools with the same GPUs are one bit, so that the scheduler's 64 go far. What a tenant or a pool demands of a machine
 * (site, drivers) is a bit only where some machine lacks it. Parts of one kernel or one fabric hang in one domain.
 */
#include "core/admit/admit_inside.h"

#include "base/str.h"
#include "core/model/advisory.h"

enum { BITS = 64 };

/* ---- pools as bits ---- */

static bool same_gpus(const struct bh_pool *a, const struct bh_pool *b)
{
    return a->gpus.n == b->gpus.n &&
           (a->gpus.at == b->gpus.at || memcmp(a->gpus.at, b->gpus.at, a->gpus.n * sizeof(*a->gpus.at)) == 0);
}

static int number_pools(struct bh_admit *a, struct bh_err *err)
{
    const struct bh_policy *p = a->policy;
    uint32_t first[BITS];
    unsigned n = 0, servers = BH_N_mechanism;
    for (uint32_t i = 0; i < p->pools.n; i++) {
        unsigned k = 0;
        if (bh_pool_effective(&p->pools.at[i]) == BH_MECH_MPS) {
            if (servers > UINT8_MAX)
                return bh_fail(err, BH_TOO_LARGE, "pool '%s': more than %d pools are of MPS",
                               p->pools.at[i].name, UINT8_MAX - BH_N_mechanism + 1);
            a->pools[i].server = (uint8_t)servers++;
        }
        if (!p->pools.at[i].gpus.n)
            continue;
        while (k < n && !same_gpus(&p->pools.at[first[k]], &p->pools.at[i]))
            k++;
        if (k == BITS)
            return bh_fail(err, BH_TOO_LARGE, "pool '%s': more than %d different sets of GPUs are pools",
                           p->pools.at[i].name, BITS);
        if (k == n)
            first[n++] = i;
        a->pools[i].bit = UINT64_C(1) << k;
    }
    return 0;
}

/* GPU of the fleet, in order of machines -> pools it is in. */
static uint64_t *pools_of_gpus(const struct bh_admit *a, size_t n)
{
    uint64_t *set = bh_alloc(n, sizeof(*set));
    for (size_t i = 0; i < a->policy->pools.n; i++) {
        const struct bh_pool *p = &a->policy->pools.at[i];
        for (size_t k = 0; k < p->gpus.n; k++)
            set[a->first_gpu[p->gpus.at[k].node] + p->gpus.at[k].gpu] |= a->pools[i].bit;
    }
    return set;
}

/* ---- parts ---- */

static int find_model(struct bh_admit *a, const struct bh_gpu *g, uint32_t *ret, struct bh_err *err)
{
    uint32_t i = 0;
    while (i < a->models.n && (a->models.at[i].known != g->model ||
                               (!g->model && !bh_str_eq(a->models.at[i].name, g->model_name))))
        i++;
    if (i == BH_MODELS_MAX)
        return bh_fail(err, BH_TOO_LARGE, "more than %d models of GPUs", BH_MODELS_MAX);
    if (i == a->models.n)
        *bh_vec_push(&a->models) =
            (struct bh_admit_model){g->model, g->model ? g->model->name : g->model_name};
    *ret = i;
    return 0;
}

static uint32_t gpu_memory(const struct bh_admit *a, uint32_t machine, const struct bh_gpu *g)
{
    const struct bh_admit_host *hosts = a->config.hosts;
    /* The card's own word first: what is sold as 80 GiB has less, and whoever keeps the books counts what there is. */
    if (g->memory_mib)
        return g->memory_mib;
    return hosts && hosts[machine].gpu_mib ? hosts[machine].gpu_mib : g->model ? g->model->memory_mib : 0;
}

static bool part_takes(const struct bh_part *p, uint32_t model, uint64_t pools, const char *fabric)
{
    return p->model == model && p->pools == pools && bh_str_eq(p->fabric, fabric) && p->n_gpus < BH_NODE_GPUS;
}

static int lay_gpu(struct bh_admit *a, uint32_t machine, uint32_t gpu, uint64_t pools, size_t first_part,
                   struct bh_err *err)
{
    const struct bh_fleet_node *n = &a->fleet->nodes.at[machine];
    const struct bh_gpu *g = &n->gpus.at[gpu];
    const char *fabric = bh_fleet_gpu_fabric(&a->index, n, g);
    uint32_t model = 0;
    size_t i = first_part;
    const int rc = find_model(a, g, &model, err);
    if (rc < 0)
        return rc;
    while (i < a->parts.n && !part_takes(&a->parts.at[i], model, pools, fabric))
        i++;
    if (i == a->parts.n)
        *bh_vec_push(&a->parts) = (struct bh_part){.machine = machine,
                                                   .model = model,
                                                   .pools = pools,
                                                   .fabric = fabric,
                                                   .gpu_mib = gpu_memory(a, machine, g)};
    struct bh_part *p = &a->parts.at[i];
    /* One number for all of a part: what each of them has. Two of a model differ by what their modes keep. */
    const uint32_t mib = gpu_memory(a, machine, g);
    p->gpu_mib = mib < p->gpu_mib ? mib : p->gpu_mib;
    /* GPUs are spread over the NUMA nodes in order: a new one begins where it differs from the one before. */
    p->n_numa += !p->n_gpus || n->gpus.at[p->gpus[p->n_gpus - 1]].numa != g->numa;
    p->gpus[p->n_gpus++] = gpu;
    a->part_of[a->first_gpu[machine] + gpu] = (uint32_t)i;
    return 0;
}

/* A part has the share of its machine's processors and memory that its GPUs are of the machine's. */
static void share_host(struct bh_admit *a, uint32_t machine, size_t first_part)
{
    const struct bh_admit_host *h = a->counts_hosts ? &a->config.hosts[machine] : NULL;
    const uint64_t all = a->fleet->nodes.at[machine].gpus.n;
    for (size_t i = first_part; h && i < a->parts.n; i++) {
        struct bh_part *p = &a->parts.at[i];
        p->cpu_milli = (uint32_t)((uint64_t)h->cpu_milli * p->n_gpus / all);
        p->mem_mib = h->mem_mib / all * p->n_gpus;
    }
}

static int lay_parts(struct bh_admit *a, const uint64_t *pools, struct bh_err *err)
{
    for (uint32_t m = 0; m < a->fleet->nodes.n; m++) {
        const size_t first = a->parts.n;
        for (uint32_t g = 0; g < a->fleet->nodes.at[m].gpus.n; g++) {
            const uint64_t set = pools[a->first_gpu[m] + g];
            a->part_of[a->first_gpu[m] + g] = BH_NONE;
            const int rc = set ? lay_gpu(a, m, g, set, first, err) : 0;
            if (rc < 0)
                return rc;
        }
        share_host(a, m, first);
    }
    return 0;
}

/* ---- what is one domain ---- */

static uint32_t root_of(uint32_t *up, uint32_t i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

/* Joins the part with the first one that bears the same name of a kernel or of a fabric. */
static void join(struct bh_map *by_name, struct bh_arena *keys, uint32_t *up, uint32_t part, const char *kind,
                 const char *name)
{
    const uint32_t other = bh_map_add(by_name, bh_arena_printf(keys, "%s %s", kind, name), part);
    if (other != BH_MAP_NONE) {
        const uint32_t x = root_of(up, other), y = root_of(up, part);
        up[x > y ? x : y] = x < y ? x : y;
    }
}

static void lay_links(struct bh_admit *a)
{
    struct bh_map by_name = {0};
    struct bh_arena keys = {0};
    uint32_t *up = bh_alloc(a->parts.n, sizeof(*up));
    for (uint32_t i = 0; i < a->parts.n; i++) {
        const struct bh_part *p = &a->parts.at[i];
        up[i] = i;
        join(&by_name, &keys, up, i, "kernel", a->fleet->nodes.at[p->machine].kernel);
        if (p->fabric)
            join(&by_name, &keys, up, i, "fabric", p->fabric);
    }
    for (uint32_t i = 0; i < a->parts.n; i++) {
        const uint32_t r = root_of(up, i); /* the smallest of its set */
        a->parts.at[i].link = r == i ? a->n_links++ : a->parts.at[r].link;
    }
    free(up);
    bh_map_fini(&by_name);
    bh_arena_fini(&keys);
}

/* ---- sites and drivers ---- */

static bool same_list(const bh_text_vec *a, const bh_text_vec *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = bh_str_eq(a->at[i].s, b->at[i].s);
    return same;
}

/* What is not known is not there: a driver or a site that nobody stated keeps no promise. */
static bool machine_has(const struct bh_fleet_node *n, const struct bh_feature *f)
{
    if (f->site)
        return bh_str_eq(n->site, f->site);
    for (size_t i = 0; n->driver && i < f->drivers->n; i++)
        if (bh_str_eq(f->drivers->at[i].s, n->driver) || bh_version_accepts(f->drivers->at[i].s, n->driver))
            return true;
    return false;
}

static bool everybody_has(const struct bh_admit *a, const struct bh_feature *f)
{
    for (size_t i = 0; i < a->parts.n; i++)
        if (!machine_has(&a->fleet->nodes.at[a->parts.at[i].machine], f))
            return false;
    return true;
}

static int add_feature(struct bh_admit *a, const struct bh_feature *want, uint64_t *set, struct bh_err *err)
{
    size_t i = 0, bits = 0;
    for (; i < a->features.n; i++) {
        const struct bh_feature *f = &a->features.at[i];
        if (want->site ? bh_str_eq(f->site, want->site) : !f->site && same_list(f->drivers, want->drivers))
            break;
        bits += f->bit != 0;
    }
    if (i == a->features.n) {
        struct bh_feature *f = bh_vec_push(&a->features);
        *f = *want;
        if (!everybody_has(a, f)) {
            if (bits == BITS)
                return bh_fail(err, BH_TOO_LARGE, "more than %d sites and lists of drivers to tell apart",
                               BITS);
            f->bit = UINT64_C(1) << bits;
        }
    }
    *set |= a->features.at[i].bit;
    return 0;
}

static int lay_features(struct bh_admit *a, struct bh_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < a->policy->tenants.n; i++) {
        const struct bh_tenant *t = &a->policy->tenants.at[i];
        if (t->site)
            rc = add_feature(a, &(struct bh_feature){.site = t->site}, &a->needs[i], err);
        if (rc >= 0 && t->drivers.n)
            rc = add_feature(a, &(struct bh_feature){.drivers = &t->drivers}, &a->needs[i], err);
    }
    for (size_t i = 0; rc >= 0 && i < a->policy->pools.n; i++) {
        const struct bh_pool *p = &a->policy->pools.at[i];
        if (p->drivers.n)
            rc = add_feature(a, &(struct bh_feature){.drivers = &p->drivers}, &a->pools[i].features, err);
    }
    for (size_t i = 0; i < a->parts.n; i++)
        for (size_t k = 0; k < a->features.n; k++)
            if (machine_has(&a->fleet->nodes.at[a->parts.at[i].machine], &a->features.at[k]))
                a->parts.at[i].features |= a->features.at[k].bit;
    return rc;
}

/* ---- who trusts whom ---- */

/*
 * Colleagues are 0: they do not distrust each other, whatever their domains are called. A domain that has somebody from
 * outside is one of its own, for all who are in it.
 */
static void lay_trust(struct bh_admit *a)
{
    struct bh_map domains = {0};
    const struct bh_policy *p = a->policy;
    bool *outside = bh_alloc(p->tenants.n + 1, sizeof(*outside));
    for (uint32_t i = 0; i < p->tenants.n; i++) {
        const uint32_t next = (uint32_t)domains.n + 1,
                       old = bh_map_add(&domains, p->tenants.at[i].domain, next);
        a->trust[i] = old == BH_MAP_NONE ? next : old;
        outside[a->trust[i]] |= p->tenants.at[i].trust != BH_TRUST_INTERNAL;
    }
    for (size_t i = 0; i < p->tenants.n; i++)
        a->trust[i] = outside[a->trust[i]] ? a->trust[i] : 0;
    free(outside);
    bh_map_fini(&domains);
}

int bh_admit_ground(struct bh_admit *a, struct bh_err *err)
{
    size_t n = 0;
    a->first_gpu = bh_alloc(a->fleet->nodes.n + 1, sizeof(*a->first_gpu));
    a->counts_hosts = a->config.hosts != NULL;
    for (size_t i = 0; i < a->fleet->nodes.n; i++) {
        a->first_gpu[i] = n;
        n += a->fleet->nodes.at[i].gpus.n;
        a->counts_hosts = a->counts_hosts && a->config.hosts[i].cpu_milli && a->config.hosts[i].mem_mib;
    }
    a->first_gpu[a->fleet->nodes.n] = n;
    a->part_of = bh_alloc(n, sizeof(*a->part_of));
    int rc = number_pools(a, err);
    uint64_t *pools = pools_of_gpus(a, n);
    if (rc >= 0)
        rc = lay_parts(a, pools, err);
    free(pools);
    if (rc < 0)
        return rc;
    lay_links(a);
    lay_trust(a);
    return lay_features(a, err);
}

/* Jobs that are in the scheduler carry numbers of pools, features and trust domains: these must mean what they meant. */
static bool same_numbers(const struct bh_admit *a, const struct bh_admit *b)
{
    for (size_t i = 0; i < a->policy->pools.n; i++) {
        const uint32_t k = bh_map_find(&b->policy->pool_by_name, a->policy->pools.at[i].name);
        if (k != BH_MAP_NONE &&
            (a->pools[i].bit != b->pools[k].bit || a->pools[i].features != b->pools[k].features ||
             a->pools[i].server != b->pools[k].server))
            return false;
    }
    for (size_t i = 0; i < a->policy->tenants.n; i++) {
        const uint32_t k = bh_map_find(&b->policy->tenant_by_name, a->policy->tenants.at[i].name);
        if (k != BH_MAP_NONE && (a->trust[i] != b->trust[k] || a->needs[i] != b->needs[k]))
            return false;
    }
    return true;
}

bool bh_admit_same_ground(const struct bh_admit *a, const struct bh_admit *b)
{
    bool same = same_numbers(a, b) && a->parts.n == b->parts.n && a->models.n == b->models.n &&
                a->n_links == b->n_links;
    for (size_t i = 0; same && i < a->models.n; i++)
        same = bh_str_eq(a->models.at[i].name, b->models.at[i].name);
    for (size_t i = 0; same && i < a->parts.n; i++) {
        const struct bh_part *x = &a->parts.at[i], *y = &b->parts.at[i];
        same = x->machine == y->machine && x->model == y->model && x->link == y->link &&
               x->n_gpus == y->n_gpus && x->n_numa == y->n_numa && x->gpu_mib == y->gpu_mib &&
               x->cpu_milli == y->cpu_milli && x->mem_mib == y->mem_mib && x->pools == y->pools &&
               x->features == y->features && memcmp(x->gpus, y->gpus, x->n_gpus * sizeof(*x->gpus)) == 0 &&
               bh_str_eq(a->fleet->nodes.at[x->machine].name, b->fleet->nodes.at[y->machine].name);
    }
    return same;
}
