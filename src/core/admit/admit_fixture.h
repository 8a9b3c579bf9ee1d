/* SPDX-License-Identifier: Apache-2.0 */
/* admit_fixture.h - policies that lint has nothing against, a fleet, a scheduler told of both; for the tests here. */
#ifndef BH_CORE_ADMIT_ADMIT_FIXTURE_H
#define BH_CORE_ADMIT_ADMIT_FIXTURE_H

#include "base/choice.h"
#include "base/test.h"
#include "base/units.h"
#include "core/admit/admit_inside.h"
#include "core/policy/plan_fixture.h"

enum { TODAY = 20000 };

/* With quota, network, storage and cost centre. */
static inline struct bh_tenant *add_tenant(struct fixture *f, const char *name, enum bh_trust trust,
                                           enum bh_quota_model model, uint64_t gpus_milli)
{
    struct bh_tenant *t = fixture_tenant(f, name, trust, NULL);
    t->cost_center = "cc-1";
    t->storage.quota_bytes = 1;
    t->network.policy = BH_NET_DEFAULT_DENY;
    t->quota.pos.line = 1;
    t->quota.has_model = t->quota.has_gpus = true;
    t->quota.model = (uint8_t)model;
    t->quota.gpus_milli = gpus_milli;
    return t;
}

static inline struct bh_pool *add_pool(struct fixture *f, const char *name, enum bh_mechanism m,
                                       enum bh_tier tier, uint32_t first_gpu, uint32_t n_gpus,
                                       const char *tenant, const char *second)
{
    struct bh_pool *p = fixture_pool(f, name, m, tier, NULL, tenant, second);
    for (uint32_t i = 0; i < n_gpus; i++)
        *bh_vec_push(&p->match.gpus) = first_gpu + i;
    if (m == BH_MECH_MPS || m == BH_MECH_TIMESLICE || m == BH_MECH_GATE) {
        p->cap_memory_bytes = 20 * BH_GIB;
        p->cap_compute_ppm = 250000;
        p->replicas = 4;
    }
    if (m == BH_MECH_GATE) {
        p->mechanism = BH_MECH_FRACTIONAL;
        p->backing = BH_MECH_GATE;
    }
    return p;
}

/*
 * One machine of 8 H100, as a site has it: whole GPUs 0-1 (research, ops), MIG 2-3 (research), shares by the gate 4-5
 * (research, ops), MPS 6-7 (research). All are colleagues.
 */
static inline void lab(struct fixture *f)
{
    fixture_init(f);
    struct bh_tenant *t = add_tenant(f, "research", BH_TRUST_INTERNAL, BH_QUOTA_FAIRSHARE, 4000);
    t->quota.has_max = true;
    t->quota.max_milli = 8000;
    t->quota.borrow = true;
    (void)add_tenant(f, "ops", BH_TRUST_INTERNAL, BH_QUOTA_HARD, 2000);
    struct bh_fleet_node *n = fixture_node(f, "gpu-01", "H100-80GB", 8);
    n->driver = "580.159.03";
    (void)add_pool(f, "whole", BH_MECH_WHOLE, BH_TIER_CONTAINER, 0, 2, "research", "ops");
    struct bh_pool *mig = add_pool(f, "cut", BH_MECH_MIG, BH_TIER_CONTAINER, 2, 2, "research", NULL);
    *bh_vec_push(&mig->profiles) = (struct bh_text){.s = "1g.10gb"};
    *bh_vec_push(&mig->profiles) = (struct bh_text){.s = "3g.40gb"};
    (void)add_pool(f, "shares", BH_MECH_GATE, BH_TIER_PROCESS, 4, 2, "research", "ops");
    (void)add_pool(f, "mps", BH_MECH_MPS, BH_TIER_PROCESS, 6, 2, "research", NULL);
}

static inline struct bh_admit *lab_admit(struct fixture *f, const struct bh_admit *before)
{
    const struct bh_admit_config config = {.today = TODAY};
    struct bh_admit *a = NULL;
    struct bh_err err = {0};
    (void)fixture_link(f);
    if (bh_admit_new(&f->policy, &f->fleet, &config, before, &a, &err) < 0)
        printf("# %s\n", err.msg);
    return a;
}

static inline int to_sched(void *context, const struct bh_sched_event *e, struct bh_err *err)
{
    return bh_sched_apply(context, e, err);
}

/* A scheduler that was told all of it; NULL: something was refused. */
static inline struct bh_sched *lab_sched(const struct bh_admit *a)
{
    struct bh_sched_config c;
    struct bh_err err = {0};
    size_t n;
    bh_sched_config_init(&c);
    struct bh_sched *s = bh_sched_new(&c);
    if (bh_admit_fleet(a, NULL, 1, to_sched, s, &err) < 0)
        printf("# %s\n", err.msg);
    bh_sched_settle(s);
    const struct bh_sched_refusal *no = bh_sched_refusals(s, &n);
    if (!n && !err.code)
        return s;
    for (size_t i = 0; i < n; i++)
        printf("# %s\n", no[i].why.msg);
    bh_sched_free(s);
    return NULL;
}

static inline int lab_submit(struct bh_sched *s, const struct bh_admit_grant *g)
{
    struct bh_err err = {0};
    const int rc = bh_sched_apply(
        s, &(struct bh_sched_event){.kind = BH_SCHED_SUBMIT, .at_ms = 1, .id = g->job.id, .job = &g->job},
        &err);
    if (rc < 0)
        printf("# %s\n", err.msg);
    return rc;
}

#endif
