/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.h - what each tenant has and waits for at this moment, summed from the store.
 *
 * Tenants that the caller may not see are summed into one, so that a handler cannot show them by mistake.
 */
#ifndef BH_API_USE_H
#define BH_API_USE_H

#include "api/inside.h"
#include "store/state_slice.h"

struct bh_use {
    const char *tenant;                /* NULL: the others together */
    const struct bh_tenant *in_policy; /* NULL: it is not in the policy any more */
    uint64_t waiting, running;         /* jobs */
    uint64_t leases, milli, mib;       /* that hold slices, and how much of them */
};

/* Who has a slice: the tenant of the lease in `lease`. */
struct bh_use_slice {
    struct bh_store_slice slice;
    const char *tenant; /* NULL: nobody has it or left it */
};

struct bh_uses {
    BH_VEC(struct bh_use) at; /* those the caller may see, in the order of the policy */
    struct bh_use others;
    uint64_t n_others; /* tenants */
    /* Of bh_uses_read_gpu(), all of them: whose they are must be asked before they are shown. */
    BH_VEC(struct bh_use_slice) slices;
};

int bh_uses_read(struct bh_api_core *core, struct bh_api_req *q, struct bh_uses *ret) BH_MUST_USE;
/* Only what is given of one card (NULL: of all), and nothing of jobs and leases. */
int bh_uses_read_gpu(struct bh_api_core *core, struct bh_api_req *q, const char *gpu,
                     struct bh_uses *ret) BH_MUST_USE;
void bh_uses_fini(struct bh_uses *u);

#endif
