/* SPDX-License-Identifier: Apache-2.0 */
/* plan_fixture.h - small policies and fleets for the planner's tests. Texts are literals that nobody owns. */
#ifndef BH_CORE_POLICY_PLAN_FIXTURE_H
#define BH_CORE_POLICY_PLAN_FIXTURE_H

#include "core/model/policy.h"

struct fixture {
    struct bh_policy policy;
    struct bh_fleet fleet;
    bh_unresolved_vec problems;
};

static inline void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.problems = {.n = 0}};
    bh_policy_init(&f->policy, BH_SOURCE_POLICY);
}

static inline void fixture_fini(struct fixture *f)
{
    bh_vec_fini(&f->problems);
    bh_policy_fini(&f->policy);
    bh_fleet_fini(&f->fleet);
}

/* class_name NULL: the tenant does not say. */
static inline struct bh_tenant *fixture_tenant(struct fixture *f, const char *name, enum bh_trust trust,
                                               const char *class_name)
{
    struct bh_tenant *t = bh_policy_add_tenant(&f->policy);
    t->name = name;
    t->trust = (uint8_t)trust;
    t->class_name = class_name;
    t->class_pos.line = class_name ? 1 : 0;
    return t;
}

/* nodes and the tenants may be NULL. */
static inline struct bh_pool *fixture_pool(struct fixture *f, const char *name, enum bh_mechanism m,
                                           enum bh_tier tier, const char *nodes, const char *tenant,
                                           const char *second)
{
    struct bh_pool *p = bh_policy_add_pool(&f->policy);
    p->name = name;
    p->mechanism = (uint8_t)m;
    p->tier = (uint8_t)tier;
    if (nodes)
        *bh_vec_push(&p->match.nodes) = (struct bh_text){.s = nodes};
    if (tenant)
        *bh_vec_push(&p->tenant_names) = (struct bh_text){.s = tenant};
    if (second)
        *bh_vec_push(&p->tenant_names) = (struct bh_text){.s = second};
    return p;
}

static inline struct bh_workload *fixture_workload(struct fixture *f, const char *name, const char *tenant)
{
    struct bh_workload *w = bh_policy_add_workload(&f->policy);
    w->name = name;
    w->tenant_name.s = tenant;
    return w;
}

static inline struct bh_fleet_node *fixture_node(struct fixture *f, const char *name, const char *model,
                                                 uint32_t n_gpus)
{
    (void)bh_map_add(&f->fleet.by_name, name, (uint32_t)f->fleet.nodes.n);
    struct bh_fleet_node *n = bh_vec_push(&f->fleet.nodes);
    *n = (struct bh_fleet_node){.name = name, .kernel = name};
    for (uint32_t i = 0; i < n_gpus; i++)
        *bh_vec_push(&n->gpus) =
            (struct bh_gpu){.model_name = model, .model = bh_catalog_find(model), .index = i, .numa = -1};
    return n;
}

/* Links against the fleet when it has nodes; returns it or NULL, as bh_plan_make wants it. */
static inline const struct bh_fleet *fixture_link(struct fixture *f)
{
    const struct bh_fleet *fleet = f->fleet.nodes.n ? &f->fleet : NULL;
    bh_policy_link(&f->policy, fleet, &f->problems);
    return fleet;
}

#endif
