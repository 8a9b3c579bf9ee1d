/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_stock.h"

#include "base/str.h"

/* Where what this tenant needs could be left over; NULL: no such GPU was opened. */
static struct bh_opened *opened_find(const struct bh_lot *lot, const struct bh_take *t)
{
    for (size_t i = 0; i < lot->opened.n; i++) {
        struct bh_opened *o = &lot->opened.at[i];
        if (o->mechanism == t->mechanism && o->vm == t->vm && o->profile == t->profile &&
            bh_str_eq(o->domain, t->domain))
            return o;
    }
    return NULL;
}

static void lot_hold(struct bh_lot *lot, uint32_t tenant)
{
    if (lot->n_holders < BH_HOLDERS_MAX)
        lot->holders[lot->n_holders] = tenant;
    lot->n_holders++;
}

static uint64_t lot_draw(struct bh_lot *lot, const struct bh_take *t, uint64_t units, uint32_t tenant)
{
    struct bh_opened *o = opened_find(lot, t);
    if (!o && !lot->free)
        return units;
    uint64_t left = o ? o->left : 0, given = left < units ? left : units, rest = units - given;
    uint64_t gpus = rest / t->per_gpu + (rest % t->per_gpu != 0);

    gpus = gpus < lot->free ? gpus : lot->free;
    uint64_t fresh = gpus * t->per_gpu, used = fresh < rest ? fresh : rest;
    if (tenant != BH_NONE && given + used) {
        lot_hold(lot, tenant);
        lot->free -= gpus;
        if (!o && fresh > used) {
            o = bh_vec_push(&lot->opened);
            *o = (struct bh_opened){t->mechanism, t->vm, t->profile, t->domain, 0};
        }
        if (o)
            o->left = o->left - given + fresh - used;
    }
    return rest - used;
}

uint64_t bh_stock_draw(struct bh_ground *g, const struct bh_silicon *s, const struct bh_at_hand *h,
                       const struct bh_take *take, uint32_t tenant)
{
    uint64_t units = take->units;
    /* Nodes that hold no VM go first, so that those which can stay free for who needs one. */
    for (int for_vm = take->vm; for_vm < 2; for_vm++) {
        for (size_t i = 0; units && i < h->lots.n; i++) {
            struct bh_lot *lot = &g->lots.at[h->lots.at[i]];
            if (bh_lot_for_vm(lot, s->mixed) == for_vm)
                units = lot_draw(lot, take, units, tenant);
        }
    }
    return units;
}

static bool is_named(const struct bh_holding *sum, uint32_t tenant)
{
    for (uint32_t i = 0; i < sum->n_holders && i < BH_HOLDERS_MAX; i++) {
        if (sum->holders[i] == tenant)
            return true;
    }
    return false;
}

void bh_stock_count(const struct bh_ground *g, const struct bh_silicon *s, const struct bh_at_hand *h,
                    bool vm, struct bh_holding *sum)
{
    for (size_t i = 0; i < h->lots.n; i++) {
        const struct bh_lot *lot = &g->lots.at[h->lots.at[i]];
        if (vm && !bh_lot_for_vm(lot, s->mixed))
            continue;
        sum->gpus += lot->gpus;
        sum->free += lot->free;
        for (uint32_t k = 0; k < lot->n_holders && k < BH_HOLDERS_MAX; k++) {
            if (is_named(sum, lot->holders[k]))
                continue;
            if (sum->n_holders < BH_HOLDERS_MAX)
                sum->holders[sum->n_holders] = lot->holders[k];
            sum->n_holders++;
        }
        if (lot->n_holders > BH_HOLDERS_MAX)
            sum->n_holders += lot->n_holders - BH_HOLDERS_MAX;
    }
}
