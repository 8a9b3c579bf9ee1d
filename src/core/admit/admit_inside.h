/* SPDX-License-Identifier: Apache-2.0 */
/* admit_inside.h - what the parts of admission know of each other. Private to core/admit. */
#ifndef BH_CORE_ADMIT_ADMIT_INSIDE_H
#define BH_CORE_ADMIT_ADMIT_INSIDE_H

#include "core/admit/admit.h"
#include "core/policy/lint.h"

/* GPUs of one machine that are alike: a node of the scheduler. */
struct bh_part {
    uint32_t machine; /* of the fleet */
    uint32_t model;   /* into bh_admit.models */
    uint32_t link;    /* domain */
    uint32_t n_gpus, n_numa, gpu_mib, cpu_milli;
    uint64_t mem_mib, pools, features;
    const char *fabric;          /* NULL: none is known */
    uint32_t gpus[BH_NODE_GPUS]; /* of the machine */
};

struct bh_admit_model {
    const struct bh_gpu_model *known; /* NULL: the catalogue has none */
    const char *name;
};

/* Something a node must have: to be at a site, or one of these drivers. */
struct bh_feature {
    const char *site; /* NULL: drivers */
    const bh_text_vec *drivers;
    uint64_t bit; /* 0: every machine has it */
};

/* A queue: a tenant's, around all of it; the own work of one that has others below it; a name that only groups. */
enum bh_row_kind { BH_ROW_TENANT, BH_ROW_OWN, BH_ROW_GROUP };
struct bh_admit_row {
    const char *name; /* in our own arena */
    uint8_t kind;     /* enum bh_row_kind */
    bool inner;       /* has others below it */
    uint32_t tenant;  /* BH_NONE: gone, or a group */
    uint32_t parent;  /* queue */
    struct bh_queue_config config;
};

/* What lint says against a pool, or against one tenant in it. */
struct bh_standing {
    uint32_t tenant; /* BH_NONE: the pool itself */
    const struct bh_rule *rule;
    const char *message, *fix;
};

struct bh_admit_pool {
    uint8_t server;    /* of an MPS pool: what its shares are told from those of others by */
    uint64_t bit;      /* in a part's pools; 0: it has no GPU */
    uint64_t features; /* its drivers */
    BH_VEC(struct bh_standing) standing;
    BH_VEC(struct bh_fleet_node) sample; /* machines that stand for all it has; borrowed from the fleet */
    BH_VEC(struct bh_gpu_ref) sampled;   /* its GPUs there */
    BH_VEC(uint32_t) sample_nodes;
};

struct bh_admit {
    const struct bh_policy *policy;
    const struct bh_fleet *fleet;
    struct bh_admit_config config;
    bool counts_hosts; /* processors and memory of every machine are known */
    struct bh_lint index;
    struct bh_report scratch; /* where the index keeps its texts */
    struct bh_arena arena;
    BH_VEC(struct bh_admit_model) models;
    BH_VEC(struct bh_part) parts;
    uint32_t n_links;
    size_t *first_gpu; /* machine -> place of its first GPU in part_of */
    uint32_t *part_of; /* GPU of the fleet -> part, BH_NONE */
    BH_VEC(struct bh_feature) features;
    struct bh_admit_pool *pools;      /* as the policy's */
    uint32_t *trust;                  /* tenant -> trust domain: 0 for colleagues */
    uint64_t *needs;                  /* tenant -> features */
    BH_VEC(struct bh_admit_row) rows; /* by queue; the root is the first */
    uint32_t *leaf;                   /* tenant -> queue */
};

int bh_admit_ground(struct bh_admit *a, struct bh_err *err) BH_MUST_USE;
bool bh_admit_same_ground(const struct bh_admit *a, const struct bh_admit *b);
int bh_admit_rows(struct bh_admit *a, const struct bh_admit *before, struct bh_err *err) BH_MUST_USE;
/* What of the rules stands against each pool and its tenants, whatever is asked. */
void bh_admit_stand(struct bh_admit *a);
/* The first unwaived error that lint finds with this work in this pool, behind this tier; into the arena. */
bool bh_admit_judge(const struct bh_admit *a, uint32_t tenant, uint32_t pool, uint8_t tier,
                    const struct bh_admit_ask *ask, uint64_t gpus_milli, struct bh_arena *arena,
                    struct bh_standing *ret);
/* The most that a queue may have, or BH_AMOUNT_ANY; and what is its own. */
uint64_t bh_admit_most(const struct bh_queue_config *c);
uint64_t bh_admit_entitled(const struct bh_queue_config *c);

#endif
