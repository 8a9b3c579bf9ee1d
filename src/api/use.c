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

/* Leases are in the order of their ids. */
static const struct bh_store_lease *lease_find(const bh_store_leases *l, uint64_t id)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (l->at[mid].id == id)
            return &l->at[mid];
        if (l->at[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static int add_slices(struct bh_api_core *core, struct bh_api_req *q, struct bh_uses *ret, struct bh_err *err)
{
    const struct bh_store_lease_filter live = {.states = bh_store_lease_live()};
    const struct bh_store_page all = {.limit = BH_STORE_PAGE_MAX};
    bh_store_leases leases = {0};
    bh_store_slices slices = {0};
    int rc = bh_store_leases_list(core->store, &q->arena, &live, &all, &leases, err);
    if (rc == 0)
        rc = bh_store_slices_list(core->store, &q->arena, NULL, 0, &slices, err);
    for (size_t i = 0; rc == 0 && i < leases.n; i++)
        if (bh_lease_holds_slices(leases.at[i].state))
            use_of(ret, q, leases.at[i].tenant)->leases++;
    for (size_t i = 0; rc == 0 && i < slices.n; i++) {
        const struct bh_store_slice *s = &slices.at[i];
        const struct bh_store_lease *l = s->lease ? lease_find(&leases, s->lease) : NULL;
        *bh_vec_push(&ret->slices) = (struct bh_use_slice){*s, l ? l->tenant : NULL};
        if (!l || s->state == BH_SLICE_FREE)
            continue;
        struct bh_use *u = use_of(ret, q, l->tenant);
        u->milli += s->milli;
        u->mib += s->mib;
    }
    bh_vec_fini(&leases);
    bh_vec_fini(&slices);
    return rc;
}

static int count(struct bh_api_core *core, const char *tenant, enum bh_job_state state, uint64_t *ret,
                 struct bh_err *err)
{
    const struct bh_store_job_filter f = {.tenant = tenant, .states = UINT32_C(1) << state};
    return bh_store_jobs_count(core->store, &f, ret, err);
}

/* The others have what all have, less those that are listed. */
static int add_jobs(struct bh_api_core *core, struct bh_uses *ret, struct bh_err *err)
{
    int rc = count(core, NULL, BH_JOB_WAITING, &ret->others.waiting, err);
    if (rc == 0)
        rc = count(core, NULL, BH_JOB_RUNNING, &ret->others.running, err);
    for (size_t i = 0; rc == 0 && i < ret->at.n; i++) {
        struct bh_use *u = &ret->at.at[i];
        rc = count(core, u->tenant, BH_JOB_WAITING, &u->waiting, err);
        if (rc == 0)
            rc = count(core, u->tenant, BH_JOB_RUNNING, &u->running, err);
        ret->others.waiting -= u->waiting;
        ret->others.running -= u->running;
    }
    return rc;
}

int bh_uses_read(struct bh_api_core *core, struct bh_api_req *q, struct bh_uses *ret)
{
    struct bh_err err;
    *ret = (struct bh_uses){.n_others = 0};
    add_tenants(core, q, ret);
    int rc = add_slices(core, q, ret, &err);
    if (rc == 0)
        rc = add_jobs(core, ret, &err);
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
