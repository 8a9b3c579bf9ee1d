/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_sound.c - is a shelf what its holds make it?
 *
 * A second shelf is built from the same nodes and domains, every hold is put on it anew, and what both say is
 * compared. So a counter that drifted over thousands of changes is found, whichever change it was.
 */
#include "core/sched/fleet.h"

static bool same_crowd(const struct bh_crowd *a, const struct bh_crowd *b)
{
    return a->holds == b->holds && a->strict == b->strict && a->trust == b->trust;
}

static bool same_node(const struct bh_shelf_node *a, const struct bh_shelf_node *b)
{
    return a->cpu_free == b->cpu_free && a->mem_free == b->mem_free && a->n_whole == b->n_whole &&
           a->n_gone == b->n_gone && a->milli_gone == b->milli_gone && a->health == b->health &&
           same_crowd(&a->crowd, &b->crowd) && !memcmp(a->open, b->open, sizeof(a->open)) &&
           !memcmp(a->sizes, b->sizes, sizeof(a->sizes));
}

static bool same_gpu(const struct bh_shelf_gpu *a, const struct bh_shelf_gpu *b)
{
    return a->mib_free == b->mib_free && a->milli_free == b->milli_free && a->use == b->use &&
           a->health == b->health && a->mechanism == b->mechanism && a->kinds == b->kinds &&
           a->avoid == b->avoid && a->gone == b->gone && a->mig_held == b->mig_held &&
           a->mig_compute == b->mig_compute && same_crowd(&a->crowd, &b->crowd);
}

static bool same_domain(const struct bh_shelf_domain *a, const struct bh_shelf_domain *b)
{
    return a->n_nodes == b->n_nodes && a->n_gpus == b->n_gpus && a->n_whole == b->n_whole &&
           a->n_gone == b->n_gone && a->models == b->models && same_crowd(&a->crowd, &b->crowd) &&
           !memcmp(a->by_whole, b->by_whole, sizeof(a->by_whole));
}

/* The same hardware with nothing on it. */
static bool empty_twin(const struct bh_shelf *s, struct bh_shelf *twin)
{
    uint32_t id;
    for (uint32_t i = 0; i < s->n_models; i++) {
        if (bh_shelf_add_model(twin, s->models[i].known, &id, NULL) < 0)
            return false;
    }
    for (size_t i = 0; i < s->domains.n; i++) {
        const struct bh_shelf_domain *d = &s->domains.at[i];
        if (bh_shelf_add_domain(twin, d->level, d->parent, &id, NULL) < 0)
            return false;
    }
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct bh_shelf_node *n = &s->nodes.at[i];
        const struct bh_node_spec spec = {.model = n->model,
                                          .domain = n->domain,
                                          .rank = n->rank,
                                          .n_gpus = n->n_gpus,
                                          .gpu_mib = n->n_gpus ? s->gpus.at[n->first_gpu].mib_all : 0,
                                          .cpu_milli = n->cpu_all,
                                          .mem_mib = n->mem_all,
                                          .features = n->features,
                                          .pools = n->pools,
                                          .holds_max = n->holds_max};
        if (bh_shelf_add_node(twin, &spec, &id, NULL) < 0)
            return false;
    }
    return true;
}

static bool put_holds(const struct bh_shelf *s, struct bh_shelf *twin)
{
    for (size_t i = 0; i < s->holds.n; i++) {
        const struct bh_hold *h = &s->holds.at[i];
        const struct bh_spot spot = {.node = h->node, .gpus = h->gpus, .mig_start = h->mig_start};
        uint32_t id;
        if (h->state == BH_HOLD_FREE)
            continue;
        if (bh_shelf_take(twin, h->class_, &spot, &id, NULL) < 0)
            return false;
        if (h->state == BH_HOLD_RELEASING)
            bh_shelf_release(twin, id);
    }
    /* Last, since nothing new comes to what is not well. */
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct bh_shelf_node *n = &s->nodes.at[i];
        for (uint32_t g = 0; g < n->n_gpus; g++)
            bh_shelf_set_health(twin, (uint32_t)i, g, s->gpus.at[n->first_gpu + g].health);
        bh_shelf_set_health(twin, (uint32_t)i, BH_NONE, n->health);
    }
    return true;
}

static bool same(const struct bh_shelf *a, const struct bh_shelf *b)
{
    bool ok = a->n_taken == b->n_taken && a->milli_used == b->milli_used && a->milli_all == b->milli_all;
    for (uint32_t i = 0; ok && i < a->n_models; i++)
        ok = a->models[i].milli_used == b->models[i].milli_used &&
             a->models[i].milli_all == b->models[i].milli_all;
    for (size_t i = 0; ok && i < a->nodes.n; i++)
        ok = same_node(&a->nodes.at[i], &b->nodes.at[i]);
    for (size_t i = 0; ok && i < a->gpus.n; i++)
        ok = same_gpu(&a->gpus.at[i], &b->gpus.at[i]);
    for (size_t i = 0; ok && i < a->domains.n; i++)
        ok = same_domain(&a->domains.at[i], &b->domains.at[i]);
    return ok;
}

bool bh_shelf_sound(const struct bh_shelf *s)
{
    struct bh_shelf twin;
    bh_shelf_init(&twin, s->requests);
    const bool ok = empty_twin(s, &twin) && put_holds(s, &twin) && same(s, &twin);
    bh_shelf_fini(&twin);
    return ok;
}
