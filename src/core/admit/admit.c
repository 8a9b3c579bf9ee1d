/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c - making it, and telling the scheduler of the fleet and the queues. */
#include "core/admit/admit.h"

#include "core/admit/admit_inside.h"

int bh_admit_new(const struct bh_policy *policy, const struct bh_fleet *fleet,
                 const struct bh_admit_config *config, const struct bh_admit *before, struct bh_admit **ret,
                 struct bh_err *err)
{
    struct bh_admit *a = bh_alloc(1, sizeof(*a));
    const size_t n = policy->tenants.n;
    a->policy = policy;
    a->fleet = fleet;
    a->config = *config;
    a->index = (struct bh_lint){.p = policy, .fleet = fleet, .today = config->today, .out = &a->scratch};
    bh_lint_index(&a->index);
    a->pools = bh_alloc(policy->pools.n, sizeof(*a->pools));
    a->trust = bh_alloc(n, sizeof(*a->trust));
    a->needs = bh_alloc(n, sizeof(*a->needs));
    a->leaf = bh_alloc(n, sizeof(*a->leaf));
    int rc = a->index.too_large ? bh_fail(err, BH_TOO_LARGE, "%s", a->index.too_large) : 0;
    if (rc >= 0)
        rc = bh_admit_ground(a, err);
    if (rc >= 0)
        rc = bh_admit_rows(a, before, err);
    a->config.hosts = NULL; /* borrowed for so long only */
    if (rc < 0) {
        bh_admit_free(a);
        return rc;
    }
    bh_admit_stand(a);
    *ret = a;
    return 0;
}

void bh_admit_free(struct bh_admit *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->policy->pools.n; i++) {
        bh_vec_fini(&a->pools[i].standing);
        bh_vec_fini(&a->pools[i].sample);
        bh_vec_fini(&a->pools[i].sampled);
        bh_vec_fini(&a->pools[i].sample_nodes);
    }
    bh_lint_unindex(&a->index);
    bh_report_fini(&a->scratch);
    bh_vec_fini(&a->models);
    bh_vec_fini(&a->parts);
    bh_vec_fini(&a->features);
    bh_vec_fini(&a->rows);
    free(a->first_gpu);
    free(a->part_of);
    free(a->pools);
    free(a->trust);
    free(a->needs);
    free(a->leaf);
    bh_arena_fini(&a->arena);
    free(a);
}

/* ---- events ---- */

static int tell_fleet(const struct bh_admit *a, uint64_t at_ms, bh_admit_emit *emit, void *context,
                      struct bh_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < a->models.n; i++)
        rc = emit(context,
                  &(struct bh_sched_event){
                      .kind = BH_SCHED_MODEL, .at_ms = at_ms, .id = i, .model = a->models.at[i].known},
                  err);
    for (uint32_t i = 0; rc >= 0 && i < a->n_links; i++)
        rc = emit(
            context,
            &(struct bh_sched_event){
                .kind = BH_SCHED_DOMAIN, .at_ms = at_ms, .id = i, .level = BH_LEVEL_LINK, .parent = BH_NONE},
            err);
    for (uint32_t i = 0; rc >= 0 && i < a->parts.n; i++) {
        const struct bh_part *p = &a->parts.at[i];
        const struct bh_node_spec spec = {.model = p->model,
                                          .domain = p->link,
                                          .rank = i,
                                          .n_gpus = p->n_gpus,
                                          .gpu_mib = p->gpu_mib,
                                          .n_numa = p->n_numa,
                                          .cpu_milli = p->cpu_milli,
                                          .mem_mib = p->mem_mib,
                                          .features = p->features,
                                          .pools = p->pools};
        rc = emit(context,
                  &(struct bh_sched_event){.kind = BH_SCHED_NODE, .at_ms = at_ms, .id = i, .node = &spec},
                  err);
    }
    return rc;
}

static bool same_amounts(const struct bh_resources *a, const struct bh_resources *b)
{
    return memcmp(a->at, b->at, sizeof(a->at)) == 0;
}

static bool same_config(const struct bh_queue_config *a, const struct bh_queue_config *b)
{
    return a->model == b->model && same_amounts(&a->guarantee, &b->guarantee) &&
           same_amounts(&a->deserved, &b->deserved) && same_amounts(&a->limit, &b->limit) &&
           a->weight == b->weight && a->priority == b->priority && a->share_max_ppm == b->share_max_ppm &&
           a->serves == b->serves && a->band_max == b->band_max && a->budget == b->budget &&
           a->budget_period_ms == b->budget_period_ms;
}

int bh_admit_fleet(const struct bh_admit *a, const struct bh_admit *before, uint64_t at_ms,
                   bh_admit_emit *emit, void *context, struct bh_err *err)
{
    if (before && !bh_admit_same_ground(a, before))
        return bh_fail(err, BH_CONFLICT,
                       "the policy divides the GPUs in another way: the scheduler must be made anew");
    int rc = before ? 0 : tell_fleet(a, at_ms, emit, context, err);
    for (uint32_t i = 1; rc >= 0 && i < a->rows.n; i++) {
        const struct bh_admit_row *r = &a->rows.at[i];
        if (before && i < before->rows.n && same_config(&r->config, &before->rows.at[i].config))
            continue;
        rc = emit(
            context,
            &(struct bh_sched_event){
                .kind = BH_SCHED_QUEUE, .at_ms = at_ms, .id = i, .parent = r->parent, .queue = &r->config},
            err);
    }
    return rc;
}

/* ---- names ---- */

uint32_t bh_admit_queue(const struct bh_admit *a, uint32_t tenant)
{
    return a->leaf[tenant];
}

uint32_t bh_admit_queue_tenant(const struct bh_admit *a, uint32_t queue)
{
    return queue < a->rows.n ? a->rows.at[queue].tenant : BH_NONE;
}

bool bh_admit_locate(const struct bh_admit *a, struct bh_gpu_ref gpu, uint32_t *ret_node, uint32_t *ret_gpu)
{
    if (gpu.node >= a->fleet->nodes.n || gpu.gpu >= a->fleet->nodes.at[gpu.node].gpus.n)
        return false;
    const uint32_t part = a->part_of[a->first_gpu[gpu.node] + gpu.gpu];
    for (uint32_t i = 0; part != BH_NONE && i < a->parts.at[part].n_gpus; i++)
        if (a->parts.at[part].gpus[i] == gpu.gpu) {
            *ret_node = part;
            *ret_gpu = i;
            return true;
        }
    return false;
}

struct bh_gpu_ref bh_admit_gpu(const struct bh_admit *a, uint32_t node, uint32_t gpu)
{
    return (struct bh_gpu_ref){a->parts.at[node].machine, a->parts.at[node].gpus[gpu]};
}
