/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lint.h - what a rule's function gets: the policy, the fleet, and indexes over both.
 *
 * Private to core/policy. The indexes are built once, from what the files list; where pools
 * times tenants would be more than BH_PAIRS_MAX nothing is judged and that is said. A rule
 * speaks through bh_found(); where a fact it needs was not given it says so through
 * bh_unknown() and passes over the object.
 */
#ifndef BH_CORE_POLICY_LINT_H
#define BH_CORE_POLICY_LINT_H

#include "base/buf.h"
#include "core/policy/predicate.h"
#include "core/policy/report.h"

/* The first two distinct trust domains of a set: enough to tell whether it holds more than one. */
struct bh_domains {
    uint32_t any[2];     /* tenants whose domains differ; BH_NONE: no such */
    uint32_t foreign[2]; /* the same among tenants that are not internal */
};

/* What all the pools that touch a node amount to. Thousands of pools may touch every node, so nobody lists them. */
struct bh_node_use {
    struct bh_domains domains;
    uint32_t regulated; /* a regulated tenant that may run there; BH_NONE: none */
    uint32_t vm_tenant; /* one that gets VMs there; BH_NONE: none */
    bool vm_tenants;    /* and whether there are others */
    bool shared;        /* some pool there is shared */
};

/* Lists of numbers by owner: items of owner i are at[start[i]] .. at[start[i + 1] - 1]. */
struct bh_lists {
    size_t *start;
    uint32_t *at;
};
#define BH_EACH(v, lists, i)                                              \
    for (const uint32_t *v = (lists)->at + (lists)->start[i],             \
                        *v##_end = (lists)->at + (lists)->start[(i) + 1]; \
         v < v##_end; v++)

enum { BH_PAIRS_MAX = 1 << 26 };
enum { BH_NAMES_MAX = 1 << 21 }; /* two million node names: far more than a fleet has */

struct bh_lint {
    const struct bh_policy *p;
    const struct bh_fleet *fleet; /* NULL: none given */
    int32_t today;
    struct bh_report *out;
    const struct bh_rule *rule; /* the one being checked */
    const char *unknown;        /* first missing fact it met; NULL: none */
    size_t n_unknown;           /* how many it met */
    size_t names_left;          /* node names it may still walk */
    const char *too_large;      /* why nothing can be judged; NULL: it can */
    bool fabrics_cut;           /* the `fabric` section names more GPUs than are looked at */

    struct bh_lists tenant_pools;   /* tenant -> pools */
    struct bh_lists pool_workloads; /* pool -> workloads */
    struct bh_lists tenant_workloads;
    struct bh_node_use *node_use;    /* per fleet node: what its pools amount to; NULL without a fleet */
    struct bh_domains *pool_domains; /* per pool */
    uint64_t *pool_models;           /* per pool: bit i is catalogue model i */
    bool *waiver_idle;               /* per waiver: in force and matched nothing; made by bh_waivers_apply */
    struct bh_map fabric_by_gpu;     /* `node:index` -> policy fabric, from its `fabric` section */
};

/* BH_CHECK(020) { ... } defines the function that data/rules.json's BH-020 is bound to. */
#define BH_CHECK(n)                       \
    void bh_check_##n(struct bh_lint *l); \
    void bh_check_##n(struct bh_lint *l)

void bh_lint_index(struct bh_lint *l);
void bh_lint_unindex(struct bh_lint *l);

/* A finding about something named: subject `kind:name`. cause.line 0: the subject itself. */
struct bh_subject {
    const char *kind, *name; /* name NULL: the kind alone (`audit`) */
    struct bh_pos pos, cause;
    const char *object;
};
struct bh_subject bh_about_tenant(const struct bh_tenant *t);
struct bh_subject bh_about_pool(const struct bh_pool *p);
struct bh_subject bh_about_workload(const struct bh_workload *w);
struct bh_subject bh_about_node(const struct bh_fleet_node *n);

void bh_found(struct bh_lint *l, struct bh_subject s, const char *fmt, ...) BH_PRINTF(3, 4);
/* The same with a fix of its own instead of the rule's. */
void bh_found_fix(struct bh_lint *l, struct bh_subject s, const char *fix, const char *fmt, ...)
    BH_PRINTF(4, 5);
void bh_unknown(struct bh_lint *l, const char *fmt, ...) BH_PRINTF(2, 3);

/* ---- trust domains ---- */
extern const struct bh_domains bh_domains_none;
void bh_domains_add(const struct bh_policy *p, struct bh_domains *d, uint32_t tenant);
void bh_domains_join(const struct bh_policy *p, struct bh_domains *d, const struct bh_domains *more);
bool bh_domains_many(const struct bh_domains *d); /* more than one trust domain */
/* Is there a tenant in a and one in b that distrust each other? Sets *ret_a, *ret_b to such a pair. */
bool bh_domains_distrust(const struct bh_policy *p, const struct bh_domains *a, const struct bh_domains *b,
                         uint32_t *ret_a, uint32_t *ret_b);

/* ---- places ---- */
/*
 * Every kernel a pool's tenants may run on: fleet kernels, else the node names it matches. A few bytes of pattern
 * can name millions, so a rule may walk so many names and no more; past that the rule is unchecked, never passed.
 */
typedef void (*bh_kernel_fn)(void *ctx, const char *kernel);
void bh_pool_kernels(struct bh_lint *l, const struct bh_pool *pool, bh_kernel_fn fn, void *ctx);
/* The fabric domain of a GPU: the fleet's word, else the policy's; NULL: unknown. */
const char *bh_gpu_fabric(const struct bh_lint *l, const char *node, uint32_t index);
const char *bh_fleet_gpu_fabric(const struct bh_lint *l, const struct bh_fleet_node *n,
                                const struct bh_gpu *g);

/* How many workloads may share one GPU of the pool: replicas, else its tenants or declared workloads. */
uint32_t bh_pool_clients(const struct bh_lint *l, uint32_t pool);
/* The models a pool may run on, one at a time: for (m = NULL; (m = bh_pool_next_model(l, pool, m)); ) */
const struct bh_gpu_model *bh_pool_next_model(const struct bh_lint *l, uint32_t pool,
                                              const struct bh_gpu_model *after);

/* A list for a message, `a, b and 3 more`; in the report's arena. */
struct bh_naming {
    struct bh_buf text;
    size_t n, max;
};
void bh_naming_init(struct bh_naming *n, size_t max);
void bh_naming_add(struct bh_naming *n, const char *name);
const char *bh_naming_end(struct bh_lint *l, struct bh_naming *n);

#endif
