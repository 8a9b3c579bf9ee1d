/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - MIG profiles as the driver's library numbers them.
 *
 * Three numbers must not be mixed: the profile's id (what an instance is created with), the library's own number of it
 * (what its description is asked for by) and the id of an instance. Ids mean something only together with the model.
 */
#include "simgpu/nvml/api.h"
#include "simgpu/rm/mig.h"

#include <string.h>

static const struct bh_nv_profile_fact *fact_of(const struct bh_gpu_model *m, uint32_t id)
{
    for (size_t i = 0; i < bh_nv_profile_fact_count; i++)
        if (bh_nv_profile_facts[i].id == id && strcmp(bh_nv_profile_facts[i].model, m->name) == 0)
            return &bh_nv_profile_facts[i];
    return NULL;
}

bool bh_nv_profile_by_id(const struct bh_gpu_model *m, uint32_t id, struct bh_nv_profile *ret)
{
    const struct bh_nv_profile_fact *f = m ? fact_of(m, id) : NULL;
    for (uint32_t i = 0; f && i < m->n_profiles; i++)
        if (m->profiles[i].gi_profile_id == id) {
            *ret = (struct bh_nv_profile){&m->profiles[i], f->nvml_enum, f->copy, f->decoder,
                                          f->encoder,      f->jpeg,      f->ofa};
            return true;
        }
    return false;
}

bool bh_nv_profile_by_enum(const struct bh_gpu_model *m, uint32_t nvml_enum, struct bh_nv_profile *ret)
{
    for (uint32_t i = 0; m && i < m->n_profiles; i++)
        if (bh_nv_profile_by_id(m, m->profiles[i].gi_profile_id, ret) && ret->nvml_enum == nvml_enum)
            return true;
    return false;
}

/* Where the catalogue has no figure, the node's rule gives one: an instance is made on a card that nobody has. */
uint64_t bh_nv_profile_mib(const struct bh_nv_call *c, const struct bh_mig_profile *p)
{
    struct bh_sim_mig card;
    uint32_t gi = 0;
    if (p->memory_mib)
        return p->memory_mib;
    bh_sim_mig_init(&card, c->model, 0);
    if (bh_sim_mig_set_mode(&card, true, false) != NVML_OK ||
        bh_sim_gi_create(&card, p->gi_profile_id, -1, &gi) != NVML_OK)
        return 0;
    return bh_sim_gi_find(&card, gi)->total_bytes >> 20;
}

/* Likewise, and as little known: the slices' part of the card. */
uint32_t bh_nv_profile_sm(const struct bh_nv_call *c, const struct bh_mig_profile *p)
{
    if (p->sm || !c->model->compute_slices)
        return p->sm;
    return c->gpu->sm / c->model->compute_slices * p->compute_slices;
}

uint32_t bh_nv_capability(const struct bh_gpu_model *m)
{
    for (size_t i = 0; i < bh_nv_model_fact_count; i++)
        if (strcmp(bh_nv_model_facts[i].model, m->name) == 0)
            return bh_nv_model_facts[i].capability;
    return 0;
}
