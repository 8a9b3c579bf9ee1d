/* SPDX-License-Identifier: Apache-2.0 */
/* mig_property_test.c - whatever is made and taken away in whatever order, the cut of a card stays possible. */
#include "simgpu/rm/mig.h"

#include "base/idmap.h"
#include "base/mem.h"
#include "base/test.h"
#include "gpu/abi/nvml.h"

enum { STEPS = 3000 };

struct run {
    struct bh_sim_mig c;
    uint64_t state;
    const char *wrong;
};

static uint32_t draw(struct run *r, uint32_t below)
{
    return (uint32_t)(bh_idmap_mix(r->state++) % below);
}

static const char *check_cis(const struct bh_sim_gi *g)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < BH_SIM_CIS_MAX; i++) {
        const struct bh_sim_ci *c = &g->cis[i];
        uint32_t mine = ((1u << c->slices) - 1) << c->start;
        if (!c->made)
            continue;
        if (!g->made || c->id != i || !c->slices || c->start + c->slices > g->profile->compute_slices)
            return "a compute instance that cannot be";
        if (taken & mine)
            return "compute instances overlap";
        taken |= mine;
    }
    return NULL;
}

static const char *check(const struct bh_sim_mig *m)
{
    struct bh_mig_instance all[BH_SIM_GIS_MAX];
    uint32_t taken = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < BH_SIM_GIS_MAX; i++) {
        const struct bh_sim_gi *g = &m->gis[i];
        const char *wrong = check_cis(g);
        if (wrong || !g->made) {
            if (wrong)
                return wrong;
            continue;
        }
        uint32_t mine = ((1u << g->profile->placement_size) - 1) << g->start;
        if (g->id != i || i == 0)
            return "an id that is not its own";
        if (taken & mine)
            return "instances overlap";
        taken |= mine;
        all[n++] = (struct bh_mig_instance){g->profile, (int8_t)g->start};
    }
    if (n && !m->on)
        return "instances without MIG";
    return bh_mig_layout_fits(m->model, all, n, NULL, NULL) ? NULL : "a layout that cannot be";
}

static size_t count_gis(const struct bh_sim_mig *m)
{
    size_t n = 0;
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
        n += m->gis[i].made;
    return n;
}

static void step_create(struct run *r)
{
    const struct bh_gpu_model *m = r->c.model;
    const struct bh_mig_profile *p = &m->profiles[draw(r, m->n_profiles)];
    uint32_t room = bh_sim_gi_room(&r->c, p->gi_profile_id), id = 0;
    size_t before = count_gis(&r->c);
    int start = draw(r, 2) ? -1 : (int)draw(r, BH_MIG_SLICES_MAX);
    bool made = bh_sim_gi_create(&r->c, p->gi_profile_id, start, &id) == NVML_OK;
    if (count_gis(&r->c) != before + made)
        r->wrong = "an instance came from nowhere or took another's place";
    if (start < 0 && made != (room > 0))
        r->wrong = "the room was not there, or was not seen";
    if (made && bh_sim_gi_room(&r->c, p->gi_profile_id) >= room)
        r->wrong = "an instance took no room";
}

static void step_destroy(struct run *r)
{
    uint32_t gi = draw(r, BH_SIM_GIS_MAX + 2);
    bool has_ci = false, was = bh_sim_gi_find(&r->c, gi) != NULL;
    for (uint32_t i = 0; i < BH_SIM_CIS_MAX; i++)
        has_ci = has_ci || bh_sim_ci_find(&r->c, gi, i);
    int want = !was ? NVML_NOT_FOUND : has_ci ? NVML_IN_USE : NVML_OK;
    if (bh_sim_gi_destroy(&r->c, gi) != want)
        r->wrong = "destroyed against the order, or not";
}

static void step_ci(struct run *r)
{
    uint32_t gi = draw(r, BH_SIM_GIS_MAX), id = 0;
    const struct bh_sim_gi *g = bh_sim_gi_find(&r->c, gi);
    uint32_t slices = draw(r, 5);
    int status = bh_sim_ci_create(&r->c, gi, slices, &id);
    if (!g ? status != NVML_NOT_FOUND
           : (slices < 1 || slices > g->profile->compute_slices) && status != NVML_INVALID_ARGUMENT)
        r->wrong = "a compute instance of nothing";
}

static void step_ci_destroy(struct run *r)
{
    uint32_t gi = draw(r, BH_SIM_GIS_MAX), ci = draw(r, BH_SIM_CIS_MAX + 1);
    bool was = bh_sim_ci_find(&r->c, gi, ci) != NULL;
    if (bh_sim_ci_destroy(&r->c, gi, ci) != (was ? NVML_OK : NVML_NOT_FOUND) || bh_sim_ci_find(&r->c, gi, ci))
        r->wrong = "a compute instance stayed, or was none";
}

static void step_mode(struct run *r)
{
    bool on = draw(r, 3) != 0;
    if (bh_sim_mig_set_mode(&r->c, on, draw(r, 4) == 0) != NVML_OK || r->c.pending != on)
        r->wrong = "the mode was not taken";
}

TEST(any_order_of_making_and_taking)
{
    static void (*const steps[])(struct run *) = {step_create,     step_create,     step_create, step_destroy,
                                                  step_destroy,    step_destroy,    step_ci,     step_ci,
                                                  step_ci_destroy, step_ci_destroy, step_mode};
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        struct run r = {.state = i << 32};
        if (!bh_model_has_mig(bh_catalog_at(i)))
            continue;
        bh_sim_mig_init(&r.c, bh_catalog_at(i), i);
        for (int s = 0; s < STEPS && !r.wrong; s++) {
            steps[draw(&r, BH_COUNT_OF(steps))](&r);
            if (!r.wrong)
                r.wrong = check(&r.c);
        }
        if (r.wrong)
            printf("# %s: %s\n", r.c.model->name, r.wrong);
        CHECK(!r.wrong);
    }
}

TEST_MAIN
