/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - what an operator declared: tenants, pools, fabric, workloads, promises.
 *
 * One model for every source. A policy file fills all of it; a folder of Kubernetes
 * manifests or a slurm.conf fills the part it can speak about, and `source` tells the
 * rules which silences are answers and which are only silence.
 *
 * Everything is held by index; names are resolved by bh_policy_link(). Strings belong
 * to the policy's arena. Amounts are integers with their unit in the name.
 */
#ifndef BH_CORE_MODEL_POLICY_H
#define BH_CORE_MODEL_POLICY_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/model/catalog.h"
#include "core/model/fleet.h"
#include "core/model/pos.h"
#include "core/model/vocab.h"

#include <stdbool.h>
#include <stdint.h>

enum bh_source { BH_SOURCE_POLICY, BH_SOURCE_KUBERNETES, BH_SOURCE_SLURM };

#define BH_NONE UINT32_MAX /* an index that points nowhere */

/* A string with its place; s NULL: not written. */
struct bh_text {
    const char *s;
    struct bh_pos pos;
};
typedef BH_VEC(struct bh_text) bh_text_vec;

struct bh_amount {
    const char *resource; /* `nvidia.com/mig-1g.18gb` */
    uint64_t milli;
    struct bh_pos pos;
};

enum { BH_STATED_ALSO_MAX = 7 };

/*
 * What the text beside a quota states (a comment, a description). One per text: it disagrees
 * with the quota only where none of its numbers is enforced.
 */
struct bh_stated {
    uint64_t milli;                    /* the first number, which a message shows */
    uint64_t also[BH_STATED_ALSO_MAX]; /* the others, in their order */
    uint8_t n_also;
    const char *words; /* `limits to five GPUs` */
    struct bh_pos pos;
};

struct bh_quota {
    struct bh_pos pos; /* line 0: no quota was declared */
    uint8_t model;     /* enum bh_quota_model */
    bool has_model, has_gpus, has_max, borrow;
    uint64_t gpus_milli;   /* guaranteed */
    uint64_t max_milli;    /* ceiling, when has_max */
    uint64_t memory_bytes; /* 0: not given */
    uint32_t weight;       /* default 100 */
    BH_VEC(struct bh_amount) resources;
    BH_VEC(struct bh_stated) stated;
};

/* Bytes a second for each whole GPU of a lease, each way; 0: not limited. */
struct bh_bandwidth {
    struct bh_pos pos;
    uint64_t network, disk;
};

struct bh_tenant {
    struct bh_pos pos;
    const char *name;
    const char *domain;             /* trust domain, defaulted */
    const char *parent;             /* NULL: the root */
    const char *class_name;         /* defaulted to `research` for a policy */
    const char *site, *cost_center; /* NULL: none */
    const char *object; /* where it came from: `ResourceQuota/team-a/gpu-quota`; NULL for a policy */
    uint8_t trust;      /* enum bh_trust */
    uint8_t source;     /* enum bh_source */
    bool operator_untrusted;
    uint32_t regimes; /* bit: enum bh_regime */
    bh_text_vec drivers, images;
    struct bh_quota quota;
    struct {
        struct bh_pos pos;
        uint8_t kind;                /* enum bh_slo_kind */
        const char *metric, *target; /* as written; NULL: not given */
    } slo;
    struct {
        struct bh_pos pos;
        bool has_target;
        uint32_t target_ppm;
        const char *under_contention; /* NULL: not given */
    } share;
    struct {
        struct bh_pos pos;
        uint8_t ceiling; /* enum bh_priority */
        bool has_budget;
        uint64_t budget_ms; /* of high-priority GPU time */
    } priority;
    struct {
        struct bh_pos pos;
        uint8_t policy; /* enum bh_net_policy */
        uint8_t rdma;   /* enum bh_rdma */
    } network;
    struct {
        struct bh_pos pos;
        uint64_t quota_bytes; /* 0: none */
    } storage;
    struct {
        struct bh_pos pos;
        uint64_t sleep_after_ms; /* that it agreed to be idle before it sleeps; 0: it did not */
    } idle;
    struct bh_bandwidth bandwidth;
    struct bh_pos parent_pos, class_pos; /* class_pos.line 0: the class is a default */

    const struct bh_class *class_; /* filled by bh_policy_link; NULL: none, or one nobody declared */
};

struct bh_layout_item {
    const char *profile;
    uint32_t count;
    struct bh_pos pos;
};

/* A GPU of the fleet, by index. */
struct bh_gpu_ref {
    uint32_t node, gpu;
};

struct bh_pool {
    struct bh_pos pos;
    const char *name;
    const char *object; /* `ConfigMap/gpu-operator/time-slicing-config#any`; NULL for a policy */
    uint8_t source;
    struct {
        struct bh_pos pos;
        struct bh_text model, fabric; /* s NULL: any */
        bh_text_vec nodes;            /* patterns as written, `gpu-[01-04]` */
        BH_VEC(uint32_t) gpus;        /* indices; none: all */
    } match;
    uint8_t mechanism, backing; /* enum bh_mechanism; backing BH_MECH_UNSET unless fractional */
    uint8_t strategy;           /* enum bh_strategy */
    uint8_t tier;               /* enum bh_tier */
    uint8_t pace;               /* enum bh_pace, `duration` in the file */
    struct bh_pos mechanism_pos, tier_pos, layout_pos, caps_pos, resource_pos, fail_pos;
    bh_text_vec profiles;
    BH_VEC(struct bh_layout_item) layout;
    bh_text_vec tenant_names;
    uint32_t replicas;         /* 0: not given */
    uint64_t cap_memory_bytes; /* per workload; 0: none */
    uint32_t cap_compute_ppm;  /* per workload; 0: none */
    bool oversubscribe;
    bool any_tenant; /* a cluster's pool: whoever may submit may use it */
    const char
        *copy_of; /* a cluster's pool seen at another tier or on named nodes: the pool whose settings these
                            are, so that what is wrong with the settings is said there alone; NULL: none */
    const char *resource; /* exposed name; NULL: not given */
    bh_text_vec
        exposes; /* manifests: every resource name pods or jobs see of it (a mixed MIG layout has several) */
    bool
        caps_by_plugin; /* MPS under the device plugin: it sets both per-client limits to 1/replicas itself */
    uint8_t fail_requests_greater_than_one; /* enum bh_fact */
    bh_text_vec drivers;
    uint32_t claims;         /* bit: enum bh_claim */
    const char *description; /* NULL: none */
    struct bh_pos description_pos;

    /* filled by bh_policy_link; cap 0: lent by the policy or by a pool with the same match */
    BH_VEC(uint32_t) tenants;         /* indices into policy.tenants, in file order, no doubles */
    BH_VEC(struct bh_gpu_ref) gpus;   /* what it takes of the fleet; empty without a fleet */
    BH_VEC(uint32_t) nodes;           /* fleet nodes it touches, ascending */
    const struct bh_gpu_model *model; /* of match.model, or of its GPUs when they all agree; NULL: unknown */
};

struct bh_fabric {
    struct bh_pos pos;
    const char *name;
    uint8_t kind, mode;    /* enum bh_fabric_kind, bh_fabric_mode */
    bh_text_vec gpus;      /* `gpu-01:0-3` as written */
    struct bh_text tenant; /* s NULL: nobody's */
};

/* One GPU by name, `gpu-01:1`. */
struct bh_assigned {
    const char *node;
    uint32_t index;
    struct bh_pos pos;
};

struct bh_workload {
    struct bh_pos pos;
    const char *name;
    const char *object; /* `Deployment/team-a/web`; NULL for a policy */
    struct bh_text tenant_name, pool_name;
    uint8_t source;
    uint8_t pace;     /* enum bh_pace */
    uint8_t priority; /* enum bh_priority */
    bool has_priority;
    uint8_t tier; /* enum bh_tier, by the pod's runtime class; only when has_tier */
    bool has_tier;
    bool gang, allow_span, needs_nvlink, privileged, host_pid, host_ipc, host_network;
    uint8_t checkpointable; /* enum bh_fact */
    uint64_t gpus_milli;    /* 0: not given */
    uint64_t
        pods; /* Kubernetes: how many run at once, each asking for `requests`; 0: unknown, or counted elsewhere */
    uint64_t memory_bytes; /* of GPU memory; 0: not given */
    bool has_deadline;
    int64_t deadline_s;
    struct bh_text image;
    bh_text_vec mounts, devices;
    BH_VEC(struct bh_assigned) assigned;
    BH_VEC(struct bh_keyed) env;
    BH_VEC(struct bh_amount) requests; /* Kubernetes: GPU resource names and amounts */
    struct bh_pos gang_pos;

    /* filled by bh_policy_link; BH_NONE: not declared */
    uint32_t tenant, pool;
};

struct bh_class {
    struct bh_pos pos;
    const char *name;
    uint32_t mechanisms; /* bit: enum bh_mechanism; 0: any */
    uint32_t tiers;      /* bit: enum bh_tier; 0: any */
    uint32_t quotas;     /* bit: enum bh_quota_model; 0: any */
    uint32_t slos;       /* bit: enum bh_slo_kind; 0: any */
    struct bh_bandwidth bandwidth;
    bool built_in;
};

struct bh_role_binding {
    struct bh_pos pos;
    const char *subject;   /* `group:platform` */
    uint8_t role;          /* enum bh_role */
    struct bh_text tenant; /* s NULL: all */
};

struct bh_waiver {
    struct bh_pos pos;
    const char *rule, *scope, *approver, *reason; /* NULL: not given */
    bool has_expiry;
    int32_t expires_day; /* last day it holds */
};

struct bh_policy {
    struct bh_arena arena; /* owns every string */
    uint8_t source;
    BH_VEC(struct bh_tenant) tenants;
    BH_VEC(struct bh_pool) pools;
    BH_VEC(struct bh_fabric) fabrics;
    BH_VEC(struct bh_workload) workloads;
    BH_VEC(struct bh_class) classes;
    BH_VEC(struct bh_role_binding) roles;
    BH_VEC(struct bh_waiver) waivers;
    struct {
        struct bh_pos pos; /* line 0: no price list */
        uint64_t gpu_hour_micro, memory_gib_hour_micro;
        uint32_t borrowed_ppm;
        const char *currency;
    } prices;
    struct {
        struct bh_pos pos;
        bool enabled;          /* default true */
        uint64_t retention_ms; /* default 365 d */
        uint64_t history_ms;   /* jobs, leases and usage that are over for so long go; 0: they are kept */
        bh_text_vec exclude;
    } audit;
    struct bh_map tenant_by_name, pool_by_name, class_by_name; /* filled by bh_policy_link */
    BH_VEC(uint32_t) every_tenant; /* likewise: lent to the pools that any tenant may use */
};

void bh_policy_init(struct bh_policy *p, enum bh_source source); /* the defaults of the language */
void bh_policy_fini(struct bh_policy *p);

/* New elements with the language's defaults; valid until the next one is added. */
struct bh_tenant *bh_policy_add_tenant(struct bh_policy *p);
struct bh_pool *bh_policy_add_pool(struct bh_policy *p);
struct bh_workload *bh_policy_add_workload(struct bh_policy *p);

/*
 * A problem bh_policy_link found: a name that nothing bears. Two are of another kind: `parent`, where
 * the parents form a ring, and `match`, where pools overlap so much that together they name more GPUs
 * than the size of the fleet allows (name: the pool or the pattern that went past it).
 */
struct bh_unresolved {
    struct bh_pos pos;
    const char *what; /* `tenant`, `pool`, `class`, `parent`, `node`, `match` */
    const char *name;
    const char *nearest; /* or NULL */
};
typedef BH_VEC(struct bh_unresolved) bh_unresolved_vec;
/*
 * Resolve names to indices, pools to GPUs of the fleet (NULL: none given), classes to the
 * built-in ones. Appends to *problems what could not be resolved and goes on.
 */
void bh_policy_link(struct bh_policy *p, const struct bh_fleet *fleet, bh_unresolved_vec *problems);

/* ---- questions every rule asks ---- */

/* A fractional pool's backing, else the mechanism itself. BH_MECH_UNSET: fractional without backing. */
enum bh_mechanism bh_pool_effective(const struct bh_pool *p);
/* More than one tenant, or a mechanism other than whole. */
bool bh_pool_is_shared(const struct bh_pool *p);
/* Different domain, at least one of them not internal. */
bool bh_tenants_distrust(const struct bh_tenant *a, const struct bh_tenant *b);
const struct bh_class *bh_policy_class(const struct bh_policy *p, const char *name); /* or NULL */
/* Its own, else its class's: each of the two by itself. */
struct bh_bandwidth bh_tenant_bandwidth(const struct bh_tenant *t);
bool bh_tenant_is_serving(const struct bh_tenant *t); /* class serving, or a class whose SLO is hard */

/*
 * Walk `gpu-[01-04]`, `gpu-[1,3]`, `gpu-[1-2,7]x`, `a,b`: calls fn with each name.
 * Fails on a malformed pattern or one of more than `max` names. One bracket pair per name.
 */
typedef void (*bh_node_name_fn)(void *ctx, const char *name);
int bh_nodes_expand(const char *pattern, size_t max, bh_node_name_fn fn, void *ctx,
                    struct bh_err *err) BH_MUST_USE;
/* `gpu-01:0-3`, `gpu-01:1`, `gpu-[01-02]:0,2-3`; calls fn with each (node, index). */
typedef void (*bh_gpu_name_fn)(void *ctx, const char *node, uint32_t index);
int bh_gpus_expand(const char *pattern, size_t max, bh_gpu_name_fn fn, void *ctx,
                   struct bh_err *err) BH_MUST_USE;

#endif
