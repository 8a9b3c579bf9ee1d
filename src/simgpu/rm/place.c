/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - engines with memory of their own: a whole card, or the GPU instances it is cut into.
 *
 * Addresses of an instance start where its first memory slice does, so that a new cut over old slices sees the same
 * memory. A slice is given as many addresses as the roomiest profile of the model needs for one.
 */
#include "gpu/abi/nvml.h"
#include "simgpu/rm/state.h"

static uint64_t usable(const struct bh_sim_gpu *g)
{
    return g->total_bytes > g->reserved_bytes ? (g->total_bytes - g->reserved_bytes) / SIM_UNIT * SIM_UNIT
                                              : 0;
}

static uint64_t slice_span(const struct bh_sim_gpu *g)
{
    const struct bh_gpu_model *m = g->model;
    uint64_t span = m->memory_slices ? usable(g) / m->memory_slices : 0;
    for (size_t i = 0; i < m->n_profiles; i++) {
        const struct bh_mig_profile *p = &m->profiles[i];
        uint64_t each = p->placement_size ? ((uint64_t)p->memory_mib << 20) / p->placement_size : 0;
        span = each > span ? each : span;
    }
    return (span / SIM_LARGE + 1) * SIM_LARGE;
}

static void place_make(struct bh_sim_rm *rm, struct sim_place *p, uint32_t gpu, struct bh_sim_gi *gi)
{
    const struct bh_sim_gpu *g = &rm->node.gpus[gpu];
    *p = (struct sim_place){.made = true, .gpu = gpu, .gi = gi ? gi->id : SIM_NONE, .instance = gi};
    if (gi)
        bh_extents_init(&p->memory, gi->start * slice_span(g), gi->total_bytes / SIM_UNIT * SIM_UNIT);
    else
        bh_extents_init(&p->memory, 0, usable(g));
    p->sched = bh_sim_sched_new(BH_SIM_SWITCH_NS);
    bh_sim_sched_advance(p->sched, rm->now_ns);
}

static void place_drop(struct sim_place *p)
{
    bh_sim_sched_free(p->sched);
    bh_extents_fini(&p->memory);
    *p = (struct sim_place){0};
}

void bh_simrm_places_init(struct bh_sim_rm *rm)
{
    for (uint32_t g = 0; g < rm->node.n_gpus; g++) {
        struct sim_gpu *s = &rm->gpus[g];
        bh_sim_mig_init(&s->mig, rm->node.gpus[g].model, bh_idmap_mix(rm->node.seed + g));
        s->lost = rm->node.gpus[g].dead;
        if (rm->node.gpus[g].mig)
            (void)bh_sim_mig_set_mode(&s->mig, true, false);
        place_make(rm, &s->whole, g, NULL);
    }
}

void bh_simrm_places_fini(struct bh_sim_rm *rm)
{
    for (uint32_t g = 0; g < rm->node.n_gpus; g++) {
        place_drop(&rm->gpus[g].whole);
        for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
            if (rm->gpus[g].gis[i].made)
                place_drop(&rm->gpus[g].gis[i]);
    }
}

struct sim_object *bh_simrm_partition(const struct sim_client *client, uint32_t gpu)
{
    for (size_t i = 0; i < client->partitions.n; i++)
        if (client->partitions.at[i]->gpu == gpu)
            return client->partitions.at[i];
    return NULL;
}

struct sim_place *bh_simrm_place(struct bh_sim_rm *rm, const struct sim_client *client, uint32_t gpu)
{
    struct sim_object *partition = bh_simrm_partition(client, gpu);
    if (partition)
        return partition->place;
    return rm->gpus[gpu].mig.on ? NULL : &rm->gpus[gpu].whole;
}

/* Instances that came or went since the last order. */
static void follow_cut(struct bh_sim_rm *rm, uint32_t gpu)
{
    struct sim_gpu *s = &rm->gpus[gpu];
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++) {
        if (s->mig.gis[i].made && !s->gis[i].made)
            place_make(rm, &s->gis[i], gpu, &s->mig.gis[i]);
        else if (!s->mig.gis[i].made && s->gis[i].made)
            place_drop(&s->gis[i]);
    }
}

static bool instance_used(struct sim_gpu *s, uint32_t gi)
{
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
        if (s->gis[i].made && s->gis[i].gi == gi && s->gis[i].pins)
            return true;
    return false;
}

static bool gpu_used(const struct sim_gpu *s)
{
    bool used = s->n_objects || s->whole.pins;
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
        used = used || s->gis[i].pins;
    return used;
}

static int order_mode(struct sim_gpu *s, struct bh_sim_mig_order *o)
{
    return o->profile_id > 1 ? NVML_INVALID_ARGUMENT
                             : bh_sim_mig_set_mode(&s->mig, o->profile_id != 0, gpu_used(s));
}

static int order_gi_create(struct sim_gpu *s, struct bh_sim_mig_order *o)
{
    return bh_sim_gi_create(&s->mig, o->profile_id, o->start, &o->gi);
}

static int order_gi_destroy(struct sim_gpu *s, struct bh_sim_mig_order *o)
{
    return instance_used(s, o->gi) ? NVML_IN_USE : bh_sim_gi_destroy(&s->mig, o->gi);
}

static int order_room(struct sim_gpu *s, struct bh_sim_mig_order *o)
{
    o->room = bh_sim_gi_room(&s->mig, o->profile_id);
    return NVML_OK;
}

static int order_ci_create(struct sim_gpu *s, struct bh_sim_mig_order *o)
{
    return bh_sim_ci_create(&s->mig, o->gi, o->profile_id, &o->ci);
}

static int order_ci_destroy(struct sim_gpu *s, struct bh_sim_mig_order *o)
{
    return bh_sim_ci_destroy(&s->mig, o->gi, o->ci);
}

int bh_sim_rm_mig(struct bh_sim_rm *rm, const struct bh_sim_caller *who, struct bh_sim_mig_order *order)
{
    static int (*const VERBS[])(struct sim_gpu *s, struct bh_sim_mig_order *o) = {
        [BH_SIM_MIG_MODE] = order_mode,
        [BH_SIM_MIG_GI_CREATE] = order_gi_create,
        [BH_SIM_MIG_GI_DESTROY] = order_gi_destroy,
        [BH_SIM_MIG_GI_ROOM] = order_room,
        [BH_SIM_MIG_CI_CREATE] = order_ci_create,
        [BH_SIM_MIG_CI_DESTROY] = order_ci_destroy,
    };
    if (order->verb >= BH_COUNT_OF(VERBS) || order->gpu >= rm->node.n_gpus)
        order->status = NVML_INVALID_ARGUMENT;
    else if (order->verb != BH_SIM_MIG_GI_ROOM && !who->admin)
        order->status = NVML_NO_PERMISSION;
    else if (rm->gpus[order->gpu].lost)
        order->status = NVML_GPU_IS_LOST;
    else {
        order->status = VERBS[order->verb](&rm->gpus[order->gpu], order);
        follow_cut(rm, order->gpu);
    }
    return order->status;
}
