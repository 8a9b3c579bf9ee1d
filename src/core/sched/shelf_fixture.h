/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf_fixture.h - random fleets, requests and lives of a shelf, drawn from a string of bytes.
 *
 * And an oracle that knows only the list of holds: what may stand where, worked out from scratch.
 */
#ifndef BH_CORE_SCHED_SHELF_FIXTURE_H
#define BH_CORE_SCHED_SHELF_FIXTURE_H

#include "base/choice.h"
#include "core/sched/mig.h"
#include "core/sched/pick.h"

enum { WORLD_BYTES = 16384, WORLD_CLASSES = 12, WORLD_HOLDS = 256 };

struct world {
    struct bh_choice choice;
    struct bh_requests requests;
    struct bh_shelf shelf;
    uint32_t classes[WORLD_CLASSES], n_classes;
    uint32_t holds[WORLD_HOLDS], n_holds; /* alive */
};

static inline uint32_t world_draw(struct world *w, uint32_t n)
{
    return bh_choose(&w->choice, n);
}

static inline void world_must(int rc)
{
    if (rc < 0)
        abort();
}

static inline void world_fabric(struct world *w)
{
    uint32_t id;
    const uint32_t racks = world_draw(w, 3);
    for (uint32_t i = 0; i < racks; i++) {
        uint32_t rack;
        world_must(bh_shelf_add_domain(&w->shelf, BH_LEVEL_RACK, BH_NONE, &rack, NULL));
        for (uint32_t k = world_draw(w, 4); k; k--)
            world_must(bh_shelf_add_domain(&w->shelf, BH_LEVEL_LINK, rack, &id, NULL));
    }
}

static inline void world_nodes(struct world *w)
{
    static const uint8_t sizes[] = {8, 4, 2, 1, 0};
    const uint32_t n = 1 + world_draw(w, 24), spin = world_draw(w, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t domains = (uint32_t)w->shelf.domains.n, d = world_draw(w, domains + 1);
        const struct bh_node_spec spec = {.model = world_draw(w, w->shelf.n_models),
                                          .domain = d < domains ? d : BH_NONE,
                                          .rank = (i + spin) % n,
                                          .n_gpus = sizes[world_draw(w, sizeof(sizes))],
                                          .gpu_mib = 1000,
                                          .n_numa = 1 + world_draw(w, 2),
                                          .cpu_milli = 1000 * (4 + world_draw(w, 24)),
                                          .mem_mib = 1024 * (8 + world_draw(w, 64)),
                                          .features = world_draw(w, 8) ? 3 : 1,
                                          .pools = 1 + world_draw(w, 3),
                                          .holds_max = world_draw(w, 8) ? 0 : 3};
        uint32_t id;
        world_must(bh_shelf_add_node(&w->shelf, &spec, &id, NULL));
    }
}

static inline struct bh_request world_request(struct world *w)
{
    static const uint8_t forms[] = {BH_FORM_SHARE, BH_FORM_WHOLE, BH_FORM_SHARE, BH_FORM_CPU, BH_FORM_MIG};
    static const uint16_t millis[] = {100, 250, 320, 470, 500, 810, 999};
    static const uint8_t aparts[] = {BH_APART_NOTHING, BH_APART_NODE, BH_APART_GPU, BH_APART_LINK};
    struct bh_request r = {.form = forms[world_draw(w, sizeof(forms))],
                           .apart = aparts[world_draw(w, sizeof(aparts))],
                           .cpu_milli = 500 * world_draw(w, 12),
                           .mem_mib = 512 * world_draw(w, 8),
                           .models = world_draw(w, 4) ? 0 : 1 + world_draw(w, 7),
                           .features = world_draw(w, 6) ? 0 : 2,
                           .pools = world_draw(w, 6) ? 0 : 2,
                           .trust = world_draw(w, 3)};
    if (r.form == BH_FORM_CPU)
        return r;
    r.n_gpus = (uint8_t)(r.form == BH_FORM_WHOLE   ? 1 + world_draw(w, 4)
                         : r.form == BH_FORM_SHARE ? 1 + !world_draw(w, 4)
                                                   : 1);
    r.gpu_milli = r.form == BH_FORM_WHOLE   ? (uint16_t)BH_GPU_MILLI
                  : r.form == BH_FORM_SHARE ? millis[world_draw(w, BH_COUNT_OF(millis))]
                                            : (uint16_t)0;
    r.gpu_mib = r.form == BH_FORM_SHARE ? 100 * world_draw(w, 6) : 0;
    r.mechanism = (uint8_t)(world_draw(w, 4) == 1);
    r.kinds = (uint8_t)world_draw(w, 3);
    r.avoid = (uint8_t)(world_draw(w, 4) ? 0 : 3 - r.kinds);
    if (r.form == BH_FORM_MIG) {
        r.models = 1;
        r.mig_profile = (uint8_t)world_draw(w, w->shelf.models[0].known->n_profiles);
    }
    return r;
}

/* bytes: WORLD_BYTES of them, or what a fuzzer gives. */
static inline void world_init(struct world *w, const uint8_t *bytes, size_t n)
{
    uint32_t id;
    memset(w, 0, sizeof(*w));
    w->choice = (struct bh_choice){bytes, n};
    bh_shelf_init(&w->shelf, &w->requests);
    world_must(bh_shelf_add_model(&w->shelf, bh_catalog_find("H100"), &id, NULL));
    world_must(bh_shelf_add_model(&w->shelf, NULL, &id, NULL));
    world_must(bh_shelf_add_model(&w->shelf, bh_catalog_find("A100"), &id, NULL));
    world_fabric(w);
    world_nodes(w);
    w->n_classes = 2 + world_draw(w, WORLD_CLASSES - 1);
    for (uint32_t i = 0; i < w->n_classes; i++) {
        const struct bh_request r = world_request(w);
        world_must(bh_request_intern(&w->requests, &r, &w->classes[i], NULL));
    }
}

static inline void world_fini(struct world *w)
{
    bh_shelf_fini(&w->shelf);
    bh_requests_fini(&w->requests);
}

static inline void world_typical(struct world *w, struct bh_score *score)
{
    struct bh_typical at[WORLD_CLASSES];
    for (uint32_t i = 0; i < w->n_classes; i++)
        at[i] = (struct bh_typical){w->classes[i], 1 + (w->classes[i] * 37 + 11) % 50};
    bh_score_set_typical(score, at, w->n_classes);
}

/* One hold fewer, or one that will go, or somebody falls ill or well. */
static inline void world_disturb(struct world *w)
{
    const uint32_t what = world_draw(w, 8);
    if (what < 5 && w->n_holds) {
        const uint32_t i = world_draw(w, w->n_holds);
        bh_shelf_release(&w->shelf, w->holds[i]);
        if (what < 4) {
            bh_shelf_free(&w->shelf, w->holds[i]);
            w->holds[i] = w->holds[--w->n_holds];
        }
        return;
    }
    const uint32_t node = world_draw(w, (uint32_t)w->shelf.nodes.n), n = w->shelf.nodes.at[node].n_gpus;
    const uint32_t gpu = what == 5 || !n ? BH_NONE : world_draw(w, n);
    const enum bh_health health = world_draw(w, 3) ? BH_HEALTH_OK : (enum bh_health)world_draw(w, BH_HEALTHS);
    bh_shelf_set_health(&w->shelf, node, gpu, health);
}

/* ---- the oracle ---- */

static inline bool oracle_pair(const struct world *w, const struct bh_request *a, uint32_t node_a,
                               uint32_t gpus_a, const struct bh_request *b, uint32_t node_b, uint32_t gpus_b)
{
    const uint32_t link = w->shelf.nodes.at[node_a].link;
    const bool near = link != BH_NONE && link == w->shelf.nodes.at[node_b].link;
    const bool strangers = a->trust != b->trust;
    const bool gpu_work = a->form != BH_FORM_CPU && b->form != BH_FORM_CPU;
    if (strangers && near && gpu_work && (a->apart == BH_APART_LINK || b->apart == BH_APART_LINK))
        return false;
    if (node_a != node_b)
        return true;
    if (strangers && (a->apart == BH_APART_LINK || a->apart == BH_APART_NODE || b->apart == BH_APART_LINK ||
                      b->apart == BH_APART_NODE))
        return false;
    if (!(gpus_a & gpus_b))
        return true;
    if (strangers && (a->apart != BH_APART_NOTHING || b->apart != BH_APART_NOTHING))
        return false;
    if (a->form != b->form || a->form == BH_FORM_WHOLE || (a->kinds & b->avoid) || (b->kinds & a->avoid))
        return false;
    return a->form != BH_FORM_SHARE || a->mechanism == b->mechanism;
}

/* Could this one GPU of the node (or the node, without GPUs: bit 0) be part of it, next to all that is there? */
static inline bool oracle_gpu(const struct world *w, const struct bh_request *r, uint32_t node, uint32_t gpu)
{
    const struct bh_shelf *s = &w->shelf;
    const uint32_t bit = r->form == BH_FORM_CPU ? 0 : 1u << gpu;
    const struct bh_gpu_model *known =
        s->nodes.at[node].n_gpus ? s->models[s->nodes.at[node].model].known : NULL;
    struct bh_mig_instance there[BH_MIG_INSTANCES_MAX];
    uint32_t milli = r->gpu_milli, mib = r->gpu_mib, n_there = 0;
    if (bit && (s->gpus.at[s->nodes.at[node].first_gpu + gpu].health != BH_HEALTH_OK))
        return false;
    for (size_t i = 0; i < s->holds.n; i++) {
        const struct bh_hold *h = &s->holds.at[i];
        if (h->state == BH_HOLD_FREE)
            continue;
        const struct bh_request *other = &s->requests->at.at[h->class_];
        if (!oracle_pair(w, r, node, bit, other, h->node, h->gpus))
            return false;
        if (h->node != node || !(h->gpus & bit))
            continue;
        milli += other->gpu_milli;
        mib += other->gpu_mib;
        if (other->form == BH_FORM_MIG)
            there[n_there++] =
                (struct bh_mig_instance){&known->profiles[other->mig_profile], (int8_t)h->mig_start};
    }
    if (r->form != BH_FORM_MIG)
        return milli <= BH_GPU_MILLI &&
               (!bit || mib <= s->gpus.at[s->nodes.at[node].first_gpu + gpu].mib_all);
    if (n_there == BH_MIG_INSTANCES_MAX || !known)
        return false;
    there[n_there] = (struct bh_mig_instance){&known->profiles[r->mig_profile], -1};
    return bh_mig_layout_fits(known, there, n_there + 1, NULL, NULL);
}

/* The same as bh_shelf_usable(). */
static inline uint32_t oracle_usable(const struct world *w, const struct bh_request *r, uint32_t node)
{
    const struct bh_shelf_node *n = &w->shelf.nodes.at[node];
    uint64_t cpu = r->cpu_milli, mem = r->mem_mib;
    uint32_t holds = 0, mask = 0, count = 0;
    for (size_t i = 0; i < w->shelf.holds.n; i++) {
        const struct bh_hold *h = &w->shelf.holds.at[i];
        if (h->state == BH_HOLD_FREE || h->node != node)
            continue;
        cpu += w->requests.at.at[h->class_].cpu_milli;
        mem += w->requests.at.at[h->class_].mem_mib;
        holds++;
    }
    if (n->health != BH_HEALTH_OK || cpu > n->cpu_all || mem > n->mem_all || (r->features & ~n->features) ||
        (r->pools && !(r->pools & n->pools)) || (n->holds_max && holds >= n->holds_max))
        return 0;
    if (r->form == BH_FORM_CPU)
        return oracle_gpu(w, r, node, 0) ? UINT32_MAX : 0;
    if (!n->n_gpus || (r->models && !(r->models >> n->model & 1)))
        return 0;
    for (uint32_t g = 0; g < n->n_gpus; g++) {
        if (oracle_gpu(w, r, node, g)) {
            mask |= 1u << g;
            count++;
        }
    }
    return count >= r->n_gpus ? mask : 0;
}

#endif
