/* SPDX-License-Identifier: Apache-2.0 */
/* lint_fixture.h - policies built by hand for the tests of core/policy, one object a line. */
#ifndef BH_CORE_POLICY_LINT_FIXTURE_H
#define BH_CORE_POLICY_LINT_FIXTURE_H

#include "core/policy/lint.h"

struct world {
    struct bh_policy policy;
    struct bh_report report;
    uint32_t line;
};

static inline void world_init(struct world *w)
{
    *w = (struct world){.line = 0};
    bh_policy_init(&w->policy, BH_SOURCE_POLICY);
}

static inline void world_fini(struct world *w)
{
    bh_report_fini(&w->report);
    bh_policy_fini(&w->policy);
}

static inline struct bh_pos next_line(struct world *w)
{
    return (struct bh_pos){.file = 0, .line = ++w->line, .column = 5};
}

/* A tenant nobody can object to: quota, network, storage and cost centre are there. */
static inline struct bh_tenant *add_tenant(struct world *w, const char *name, enum bh_trust trust)
{
    struct bh_tenant *t = bh_policy_add_tenant(&w->policy);
    t->name = bh_arena_str(&w->policy.arena, name);
    t->pos = next_line(w);
    t->trust = (uint8_t)trust;
    t->cost_center = "cc-1";
    t->storage.quota_bytes = 1;
    t->network.policy = BH_NET_DEFAULT_DENY;
    t->quota.pos = t->pos;
    t->quota.has_gpus = true;
    t->quota.gpus_milli = 1000;
    return t;
}

static inline struct bh_pool *add_pool(struct world *w, const char *name, enum bh_mechanism m,
                                       enum bh_tier tier)
{
    struct bh_pool *p = bh_policy_add_pool(&w->policy);
    p->name = bh_arena_str(&w->policy.arena, name);
    p->pos = next_line(w);
    p->mechanism = (uint8_t)m;
    p->tier = (uint8_t)tier;
    return p;
}

static inline void pool_takes(struct world *w, struct bh_pool *p, const char *tenant)
{
    *bh_vec_push(&p->tenant_names) =
        (struct bh_text){.s = bh_arena_str(&w->policy.arena, tenant), .pos = p->pos};
}

static inline void judge(struct world *w, const struct bh_fleet *fleet, int32_t today)
{
    bh_unresolved_vec problems = {0};
    bh_policy_link(&w->policy, fleet, &problems);
    bh_vec_fini(&problems);
    bh_lint(&w->policy, fleet, today, &w->report);
}

/* The finding of a rule about a subject, or NULL. */
static inline const struct bh_finding *finding(const struct world *w, const char *rule, const char *subject)
{
    for (size_t i = 0; i < w->report.findings.n; i++) {
        const struct bh_finding *f = &w->report.findings.at[i];
        if (strcmp(f->rule->id, rule) == 0 && strcmp(f->subject, subject) == 0)
            return f;
    }
    return NULL;
}

#endif
