/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estate.h - the tenants, quotas, pools and nodes of a policy and a fleet, as the scheduler knows them.
 *
 * A trace says how many GPUs a job needs, a policy who may have how many of which: put together they show what the policy
 * does to that work. Tenants become the tree of queues, each with its quota; a GPU may be used by the tenants whose pools
 * take it, whose drivers its node has and whose site it is at; who shares a kernel with others does so inside its trust
 * domain only. Every GPU is given whole, also those of pools that cut them: a trace speaks of GPUs.
 */
#ifndef BH_REPLAY_ESTATE_H
#define BH_REPLAY_ESTATE_H

#include "core/model/policy.h"
#include "core/sched/sched.h"
#include "replay/jobs.h"

/* Work runs in the leaves of the tree. */
struct bh_estate_tenant {
    const char *name; /* the policy's */
    uint32_t queue;
    uint32_t trust;
    uint8_t apart;           /* enum bh_apart */
    uint64_t pools;          /* of the nodes it may use */
    uint64_t promised_milli; /* its quota, in thousandths of a GPU */
    uint64_t weight;         /* for the measure of shares: what is promised to it */
    uint32_t gpus, most;     /* it may use; of them, the largest job that could ever start */
};

struct bh_estate_queue {
    uint32_t parent;
    struct bh_queue_config config;
};

struct bh_estate_node {
    uint32_t model, link, n_gpus;
    uint64_t pools;
};

struct bh_estate {
    BH_VEC(struct bh_estate_tenant) tenants; /* that run work */
    BH_VEC(struct bh_estate_queue) queues;   /* the root is not among them: id is the place + 1 */
    BH_VEC(struct bh_estate_node) nodes;
    BH_VEC(const struct bh_gpu_model *) models;
    uint32_t n_links;
    uint32_t gpus, left_out; /* in the nodes; that no tenant may use */
};

/* p is linked with f, and both outlive it. Refuses what leaves nobody a GPU, and what is too large for the scheduler. */
int bh_estate_make(struct bh_estate *g, const struct bh_policy *p, const struct bh_fleet *f,
                   struct bh_err *err) BH_MUST_USE;
void bh_estate_fini(struct bh_estate *g); /* a zeroed one is empty */

/*
 * The jobs' tenants become those of the estate: by name, and those whose names it does not know by turns, in the order
 * of their names. Returns how many were not known.
 */
size_t bh_estate_adopt(const struct bh_estate *g, struct bh_jobs *jobs);

/* The events that build it. */
void bh_estate_lay(const struct bh_estate *g, struct bh_sched *s);
/* What one GPU of a tenant's job asks for. */
struct bh_request bh_estate_request(const struct bh_estate_tenant *t);

#endif
