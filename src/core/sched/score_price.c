/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score_price.c - what it costs to take a GPU model that others cannot do without.
 *
 * Work that names models has nowhere else to go; work that does not can stand anywhere. A model's pressure is
 * how much of what is left of it the former will want while the rest of the fleet fills up: their part of all
 * that was asked for so far, times what is left of the fleet, over what is left of the models they name. At 1 it
 * will just do. Above a third of that, work that could stand elsewhere pays in whole points, so that nodes of
 * models with like prices still tie. Where nobody names a model all prices are 0 and nothing changes. There is
 * no look-ahead: a model that fills too fast becomes dear by itself.
 */
#include "core/sched/mig.h"
#include "core/sched/score_inside.h"

enum {
    Q = 16,              /* bits after the point */
    FREE_OF_CHARGE = 30, /* hundredths of pressure that cost nothing */
    POINTS = 20,         /* for each whole of pressure above */
    POINTS_MAX = 120,    /* no fragment is worth that */
    WARM_PART = 64,      /* until this part of the fleet was asked for, prices grow from nothing */
    FORGET_TIMES = 4     /* the past is halved when this many times the fleet was asked for */
};

static uint64_t left_of(const struct bh_shelf *shelf, uint64_t models)
{
    uint64_t sum = 0;
    for (; models; models &= models - 1) {
        const struct bh_shelf_model *m = &shelf->models[__builtin_ctzll(models)];
        sum += m->milli_all - m->milli_used;
    }
    return sum;
}

static void note(struct bh_price *p, uint64_t models, uint64_t milli)
{
    uint32_t i = 0;
    while (i < p->n_masks && p->masks[i].models != models)
        i++;
    if (i == BH_MASKS_MAX)
        return; /* so many different wishes are hardly wishes */
    if (i == p->n_masks) {
        p->masks[i].models = models;
        p->masks[i].milli = 0;
        p->n_masks++;
    }
    p->masks[i].milli += milli;
}

static void forget(struct bh_price *p)
{
    p->milli /= 2;
    for (uint32_t i = 0; i < p->n_masks; i++)
        p->masks[i].milli /= 2;
}

static uint64_t milli_of(const struct bh_shelf *shelf, const struct bh_request *r)
{
    if (r->form != BH_FORM_MIG)
        return bh_request_milli(r);
    const struct bh_gpu_model *known = shelf->models[__builtin_ctzll(r->models)].known;
    return known && r->mig_profile < known->n_profiles ? bh_mig_milli(known, r->mig_profile) : 0;
}

static void set_prices(struct bh_price *p, const struct bh_shelf *shelf)
{
    const uint64_t most = ((uint64_t)POINTS_MAX / POINTS + 1) << Q,
                   free_of_charge = ((uint64_t)FREE_OF_CHARGE << Q) / 100;
    const uint64_t warm = shelf->milli_all / WARM_PART + 1, asked = p->milli > warm ? p->milli : warm;
    const uint64_t left = shelf->milli_all - shelf->milli_used;
    uint64_t pressure[BH_MODELS_MAX] = {0};
    for (uint32_t i = 0; i < p->n_masks; i++) {
        const uint64_t part = (p->masks[i].milli << Q) / asked;
        const uint64_t room = left_of(shelf, p->masks[i].models);
        uint64_t press = room ? part * left / room : most;
        press = press < most ? press : most;
        for (uint64_t models = p->masks[i].models; models; models &= models - 1)
            pressure[__builtin_ctzll(models)] += press;
    }
    for (uint32_t m = 0; m < shelf->n_models; m++) {
        const uint64_t above = pressure[m] > free_of_charge ? pressure[m] - free_of_charge : 0;
        const uint64_t points = above * POINTS >> Q;
        p->price_milli[m] = (int32_t)(points < POINTS_MAX ? points : POINTS_MAX) * 1000;
    }
}

void bh_price_arrived(struct bh_price *p, const struct bh_shelf *shelf, const struct bh_request *r)
{
    if (r->form == BH_FORM_CPU || !shelf->milli_all)
        return;
    uint64_t there = 0;
    for (uint32_t m = 0; m < shelf->n_models; m++)
        there |= shelf->models[m].milli_all ? UINT64_C(1) << m : 0;
    const uint64_t models = r->models & there, milli = milli_of(shelf, r);
    p->milli += milli;
    if (models && models != there)
        note(p, models, milli);
    if (p->milli > FORGET_TIMES * shelf->milli_all)
        forget(p);
    if (p->n_masks)
        set_prices(p, shelf);
}
