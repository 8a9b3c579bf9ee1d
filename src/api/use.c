/* SPDX-License-Identifier: Apache-2.0 */
/* use.c - sums of slices and jobs by tenant. */
#include "api/use.h"

#include "base/str.h"
#include "store/state_job.h"
#include "store/state_lease.h"

static struct bh_use *use_of(struct bh_uses *u, struct bh_api_req *q, const char *tenant)
{
    if (!bh_api_sees(q, tenant))
        return &u->others;
    for (size_t i = 0; i < u->at.n; i++)
        if (bh_str_eq(u->at.at[i].tenant, tenant))
            return &u->at.at[i];
    struct bh_use *more = bh_vec_push(&u->at); /* it has something, and is no longer in the policy */
    *more = (struct bh_use){.tenant = tenant};
    return more;
}

static void add_tenants(struct bh_api_core *core, struct bh_api_req *q, struct bh_uses *ret)
{
    const struct bh_policy *p = core->view->policy;
    for (size_t i = 0; p && i < p->tenants.n; i++) {
        if (!bh_api_sees(q, p->tenants.at[i].name)) {
            ret->n_others++;
            continue;
        }
        struct bh_use *u = bh_vec_push(&ret->at);
        *u = (struct bh_use){.tenant = p->tenants.at[i].name, .in_policy = &p->tenants.at[i]};
    }
}

static int add_slices(struct bh_api_core *core, struct bh_api_req *q, const char *gpu, struct bh_uses *ret,
                      struct bh_err *err)
{
    bh_store_slices slices = {0};
    const int rc = bh_store_slices_list(core->store, &q->arena, gpu, 0, &slices, err);
    for (size_t i = 0; rc == 0 && i < slices.n; i++) {
        const struct bh_store_slice *s = &slices.at[i];
        *bh_vec_push(&ret->slices) = (struct bh_use_slice){*s, s->lease ? s->tenant : NULL};
        if (!s->lease || s->state == BH_SLICE_FREE)
            continue;
        struct bh_use *u = use_of(ret, q, s->tenant);
        u->milli += s->milli;
        u->mib += s->mib;
    }
    bh_vec_fini(&slices);
    return rc;
}

/* As the schema keeps it: no slice is looked at. */
static int add_held(struct bh_api_core *core, struct bh_api_req *q, struct bh_uses *ret, struct bh_err *err)
{
    bh_store_helds held = {0};
    const int rc = bh_store_held_list(core->store, &q->arena, &held, err);
    for (size_t i = 0; rc == 0 && i < held.n; i++) {
        if (!held.at[i].milli && !held.at[i].mib)
            continue; /* it had something once */
        struct bh_use *u = use_of(ret, q, held.at[i].tenant);
        u->milli += held.at[i].milli;
        u->mib += held.at[i].mib;
    }
    bh_vec_fini(&held);
    return rc;
}

static int count_jobs(struct bh_api_core *core, const char *tenant, enum bh_job_state state, uint64_t *ret,
                      struct bh_err *err)
{
    const struct bh_store_job_filter f = {.tenant = tenant, .states = UINT32_C(1) << state};
    return bh_store_jobs_count(core->store, &f, ret, err);
}

/* Of one tenant, or of all of them. */
static int count(struct bh_api_core *core, struct bh_use *u, struct bh_err *err)
{
    struct bh_store_lease_filter holding = {.tenant = u->tenant};
    for (unsigned i = 0; i < BH_LEASE_STATES; i++)
        if (bh_lease_holds_slices((enum bh_lease_state)i))
            holding.states |= UINT32_C(1) << i;
    int rc = count_jobs(core, u->tenant, BH_JOB_WAITING, &u->waiting, err);
    if (rc == 0)
        rc = count_jobs(core, u->tenant, BH_JOB_RUNNING, &u->running, err);
    return rc == 0 ? bh_store_leases_count(core->store, &holding, &u->leases, err) : rc;
}

/* The others have what all have, less those that are listed. */
static int add_counts(struct bh_api_core *core, struct bh_uses *ret, struct bh_err *err)
{
    struct bh_use *others = &ret->others;
    int rc = count(core, others, err);
    for (size_t i = 0; rc == 0 && i < ret->at.n; i++) {
        struct bh_use *u = &ret->at.at[i];
        rc = count(core, u, err);
        others->waiting -= u->waiting;
        others->running -= u->running;
        others->leases -= u->leases;
    }
    return rc;
}

int bh_uses_read_gpu(struct bh_api_core *core, struct bh_api_req *q, const char *gpu, struct bh_uses *ret)
{
    struct bh_err err;
    *ret = (struct bh_uses){.n_others = 0};
    add_tenants(core, q, ret);
    const int rc = add_slices(core, q, gpu, ret, &err);
    if (rc == 0)
        return 0;
    bh_uses_fini(ret);
    return bh_api_fail(q, rc, &err);
}

int bh_uses_read(struct bh_api_core *core, struct bh_api_req *q, struct bh_uses *ret)
{
    struct bh_err err;
    *ret = (struct bh_uses){.n_others = 0};
    add_tenants(core, q, ret);
    int rc = add_held(core, q, ret, &err);
    if (rc == 0)
        rc = add_counts(core, ret, &err);
    if (rc == 0)
        return 0;
    bh_uses_fini(ret);
    return bh_api_fail(q, rc, &err);
}

void bh_uses_fini(struct bh_uses *u)
{
    bh_vec_fini(&u->at);
    bh_vec_fini(&u->slices);
}
