/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig.c - creating and destroying instances, with the driver's refusals.
 *
 * Whether instances can stand together is asked of the catalogue (bh_mig_layout_fits), so that the planner and
 * the simulated card never disagree. An instance's id follows from its size and place, in the ranges that the driver
 * uses (halves from 1, quarters from 3, eighths from 7), so it is below 15, used again, and also its place in `gis`.
 */
#include "simgpu/rm/mig.h"

#include "base/idmap.h"
#include "base/units.h"
#include "gpu/abi/nvml.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void bh_sim_mig_init(struct bh_sim_mig *m, const struct bh_gpu_model *model, uint64_t seed)
{
    *m = (struct bh_sim_mig){.model = model, .seed = seed};
}

static bool is_cut(const struct bh_sim_mig *m)
{
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
        if (m->gis[i].made)
            return true;
    return false;
}

int bh_sim_mig_set_mode(struct bh_sim_mig *m, bool on, bool busy)
{
    if (!bh_model_has_mig(m->model))
        return NVML_NOT_SUPPORTED;
    m->pending = on;
    /* Instances are a use of the GPU as well. What is pending comes with the next order to an idle GPU. */
    if (on != m->on && !busy && !is_cut(m))
        m->on = on;
    return NVML_OK;
}

/* ---- GPU instances ---- */

static const struct bh_mig_profile *profile_find(const struct bh_sim_mig *m, uint32_t profile_id)
{
    for (size_t i = 0; i < m->model->n_profiles; i++)
        if (m->model->profiles[i].gi_profile_id == profile_id)
            return &m->model->profiles[i];
    return NULL;
}

/* What stands now, and room for more in a list of BH_MIG_INSTANCES_MAX. */
static size_t layout_of(const struct bh_sim_mig *m, struct bh_mig_instance *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
        if (m->gis[i].made)
            ret[n++] = (struct bh_mig_instance){m->gis[i].profile, (int8_t)m->gis[i].start};
    return n;
}

static bool has_start(const struct bh_mig_profile *p, int start)
{
    for (size_t i = 0; i < p->n_starts; i++)
        if (start < 0 || p->starts[i] == start)
            return true;
    return false;
}

/* A card that is cut in n equal parts numbers them from n - 1 on. The whole has 0 there; no instance here is 0. */
static uint32_t id_of(const struct bh_gpu_model *model, const struct bh_mig_profile *p, uint32_t start)
{
    uint32_t parts = model->memory_slices / p->placement_size;
    return parts > 1 ? parts - 1 + start / p->placement_size : 1;
}

/*
 * What the driver shows is published for most profiles. Where it is not, the slices' part of the model's memory, less
 * a thirty-second (the published ones lack 1 to 3 % of it as well); where not even that is, the number in the
 * profile's name, taken as powers of ten. Neither is ever more than the card has.
 */
static uint64_t memory_of(const struct bh_gpu_model *model, const struct bh_mig_profile *p)
{
    char name[16];
    uint64_t gb;
    if (p->memory_mib)
        return (uint64_t)p->memory_mib * BH_MIB;
    if (model->memory_mib)
        return (uint64_t)model->memory_mib * p->placement_size * 31 / (model->memory_slices * UINT64_C(32)) *
               BH_MIB;
    const char *dot = strchr(p->name, '.');
    (void)snprintf(name, sizeof(name), "%.*s", dot ? (int)strcspn(dot + 1, "g") : 0, dot ? dot + 1 : "");
    if (bh_uint_parse(name, UINT16_MAX, &gb, NULL) < 0)
        return 0;
    return gb * UINT64_C(1000000000) / BH_MIB * BH_MIB;
}

int bh_sim_gi_create(struct bh_sim_mig *m, uint32_t profile_id, int start, uint32_t *ret_id)
{
    const struct bh_mig_profile *p = profile_find(m, profile_id);
    struct bh_mig_instance all[BH_MIG_INSTANCES_MAX + 1];
    uint8_t starts[BH_MIG_INSTANCES_MAX + 1];
    if (!m->on)
        return NVML_NOT_SUPPORTED;
    if (!p || start >= BH_MIG_SLICES_MAX || !has_start(p, start))
        return NVML_INVALID_ARGUMENT;
    size_t n = layout_of(m, all);
    all[n] = (struct bh_mig_instance){p, (int8_t)(start < 0 ? -1 : start)};
    if (!bh_mig_layout_fits(m->model, all, n + 1, starts, NULL))
        return NVML_INSUFFICIENT_RESOURCES;
    uint32_t id = id_of(m->model, p, starts[n]);
    m->gis[id] = (struct bh_sim_gi){
        .made = true, .id = id, .profile = p, .start = starts[n], .total_bytes = memory_of(m->model, p)};
    *ret_id = id;
    return NVML_OK;
}

struct bh_sim_gi *bh_sim_gi_find(struct bh_sim_mig *m, uint32_t gi)
{
    return gi < BH_SIM_GIS_MAX && m->gis[gi].made ? &m->gis[gi] : NULL;
}

int bh_sim_gi_destroy(struct bh_sim_mig *m, uint32_t gi)
{
    struct bh_sim_gi *g = bh_sim_gi_find(m, gi);
    if (!g)
        return NVML_NOT_FOUND;
    for (size_t i = 0; i < BH_SIM_CIS_MAX; i++)
        if (g->cis[i].made)
            return NVML_IN_USE;
    if (g->used_bytes)
        return NVML_IN_USE;
    *g = (struct bh_sim_gi){0};
    return NVML_OK;
}

uint32_t bh_sim_gi_room(const struct bh_sim_mig *m, uint32_t profile_id)
{
    const struct bh_mig_profile *p = profile_find(m, profile_id);
    struct bh_mig_instance all[BH_MIG_INSTANCES_MAX + 1];
    uint32_t room = 0;
    if (!m->on || !p)
        return 0;
    for (size_t n = layout_of(m, all); n < BH_MIG_INSTANCES_MAX; n++, room++) {
        all[n] = (struct bh_mig_instance){p, -1};
        if (!bh_mig_layout_fits(m->model, all, n + 1, NULL, NULL))
            break;
    }
    return room;
}

/* ---- compute instances ---- */

/* The first run of free slices that is long enough; -1: none. */
static int ci_place(const struct bh_sim_gi *g, uint32_t slices)
{
    uint32_t taken = 0, want = (1u << slices) - 1;
    for (size_t i = 0; i < BH_SIM_CIS_MAX; i++)
        if (g->cis[i].made)
            taken |= ((1u << g->cis[i].slices) - 1) << g->cis[i].start;
    for (uint32_t at = 0; at + slices <= g->profile->compute_slices; at++)
        if (!(taken & want << at))
            return (int)at;
    return -1;
}

/* Counted from the first instance this card ever had, so that no two are alike. */
static void uuid_next(struct bh_sim_mig *m, char *ret, size_t size)
{
    uint64_t n = bh_idmap_mix(m->seed) + 2 * m->made++, a = bh_idmap_mix(n), b = bh_idmap_mix(n + 1);
    (void)snprintf(ret, size, "MIG-%08" PRIx64 "-%04" PRIx64 "-5%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
                   a >> 32, a >> 16 & 0xffff, a & 0xfff, 0x8000 | (b >> 48 & 0x3fff),
                   b & UINT64_C(0xffffffffffff));
}

int bh_sim_ci_create(struct bh_sim_mig *m, uint32_t gi, uint32_t slices, uint32_t *ret_id)
{
    struct bh_sim_gi *g = bh_sim_gi_find(m, gi);
    uint32_t id = 0;
    if (!g)
        return NVML_NOT_FOUND;
    if (slices < 1 || slices > g->profile->compute_slices)
        return NVML_INVALID_ARGUMENT;
    while (id < BH_SIM_CIS_MAX && g->cis[id].made)
        id++;
    int at = ci_place(g, slices);
    if (at < 0 || id == BH_SIM_CIS_MAX)
        return NVML_INSUFFICIENT_RESOURCES;
    g->cis[id] = (struct bh_sim_ci){.made = true, .id = id, .slices = slices, .start = (uint32_t)at};
    uuid_next(m, g->cis[id].uuid, sizeof(g->cis[id].uuid));
    *ret_id = id;
    return NVML_OK;
}

struct bh_sim_ci *bh_sim_ci_find(struct bh_sim_mig *m, uint32_t gi, uint32_t ci)
{
    struct bh_sim_gi *g = bh_sim_gi_find(m, gi);
    return g && ci < BH_SIM_CIS_MAX && g->cis[ci].made ? &g->cis[ci] : NULL;
}

int bh_sim_ci_destroy(struct bh_sim_mig *m, uint32_t gi, uint32_t ci)
{
    struct bh_sim_ci *c = bh_sim_ci_find(m, gi, ci);
    if (!c)
        return NVML_NOT_FOUND;
    if (c->users)
        return NVML_IN_USE;
    *c = (struct bh_sim_ci){0};
    return NVML_OK;
}
