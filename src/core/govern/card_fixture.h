/* SPDX-License-Identifier: Apache-2.0 */
/* card_fixture.h - a card, a controller and the tenants both know, stepped together. */
#ifndef BH_CORE_GOVERN_CARD_FIXTURE_H
#define BH_CORE_GOVERN_CARD_FIXTURE_H

#include "base/mem.h"
#include "base/test.h"
#include "core/govern/card_model.h"
#include "core/govern/govern_log.h"
#include "core/govern/pace.h"

enum { STEP_US = BH_PACE_STEP_US, EVEN_STEP_US = BH_PACE_EVEN_US };

struct world_tenant {
    struct bh_govern_asked asked;
    uint32_t on_card;
    int64_t mark_ns; /* GPU time when the mark was set */
};
struct world {
    struct card card;
    struct bh_govern *g;
    struct bh_govern_in in;
    struct bh_govern_out out;
    struct world_tenant at[CARD_TENANTS];
    uint32_t n;
    int64_t mark_ns, mark_idle_ns, mark_switch_ns;
    uint32_t mode_changes, slice_changes;
    uint64_t next_id;
    bool blind, slices_only; /* slices_only: as the controller's config says */
    struct bh_pace pace;
    uint32_t looks, next_us; /* how often was looked; when next, unless somebody comes or goes */
};

/* Sensors that are off by up to so much, and late by so many steps; the controller knows how late. */
static inline struct world *world_new(uint32_t noise_permille, uint32_t late_steps)
{
    struct world *w = bh_alloc(1, sizeof(*w));
    struct bh_govern_config config;
    bh_govern_config_default(&config);
    config.lag_us += late_steps * STEP_US;
    card_init(&w->card);
    w->card.noise_permille = noise_permille;
    w->card.late_steps = late_steps;
    if (bh_govern_new(&config, &w->g, NULL) < 0)
        abort();
    w->next_id = 1;
    w->next_us = STEP_US;
    return w;
}

static inline void world_free(struct world *w)
{
    bh_govern_free(w->g);
    free(w);
}

static inline struct world_tenant *world_add(struct world *w, enum card_kind kind, uint32_t weight,
                                             uint32_t cap)
{
    struct world_tenant *t = &w->at[w->n++];
    *t = (struct world_tenant){.asked = {.id = w->next_id++, .weight = weight, .cap_permille = cap}};
    t->on_card = card_add(&w->card, t->asked.id, kind);
    w->next_us = STEP_US;
    return t;
}

static inline void world_remove(struct world *w, uint32_t i)
{
    card_remove(&w->card, w->at[i].on_card);
    w->at[i] = w->at[--w->n];
    w->next_us = STEP_US;
}

static inline void world_step(struct world *w)
{
    const struct bh_govern_out was = w->out;
    /* as the governor steps (governor/steer.c), but that who is free is looked at closely */
    const bool as_paced = w->slices_only || was.mode == BH_GOVERN_SLICES;
    w->in.elapsed_us = as_paced ? w->next_us : was.settled && was.n ? EVEN_STEP_US : STEP_US;
    card_run(&w->card, w->in.elapsed_us * INT64_C(1000));
    w->in.n = w->n;
    w->in.unused_permille = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        card_sense(&w->card, w->at[i].on_card, &w->at[i].asked);
        w->in.at[i] = w->at[i].asked;
        if (w->blind) {
            w->in.at[i].gpu_ns = BH_GOVERN_NO_SAMPLE;
            w->in.at[i].state = BH_GOVERN_UNKNOWN;
        }
    }
    if (w->card.by_turns && !w->blind)
        w->in.unused_permille = bh_use_unused(&w->card.use.book, (uint64_t)w->card.now_ns);
    if (bh_govern_step(w->g, &w->in, &w->out, NULL) < 0)
        abort();
    w->mode_changes += was.mode != w->out.mode || was.turns != w->out.turns;
    for (uint32_t i = 0; i < w->out.n && i < was.n; i++)
        w->slice_changes += was.at[i].id == w->out.at[i].id && was.at[i].slice_us != w->out.at[i].slice_us;
    card_apply(&w->card, &w->out);
    w->next_us = bh_pace_us(&w->pace, w->slices_only, &w->in, &w->out);
    bh_use_ask_seldom(&w->card.use.book, w->pace.seldom);
    w->looks++;
}

static inline void world_run(struct world *w, int64_t ms)
{
    for (const int64_t until = w->card.now_ns + ms * 1000000; w->card.now_ns < until;)
        world_step(w);
}

static inline void world_mark(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        w->at[i].mark_ns = w->card.at[w->at[i].on_card].done_ns;
    w->mark_ns = w->card.now_ns;
    w->mark_idle_ns = w->card.idle_ns;
    w->mark_switch_ns = w->card.switch_total_ns;
    w->mode_changes = w->slice_changes = 0;
}

/* Work done since the mark against what it would have done alone, in permille. */
static inline int64_t world_rate(const struct world *w, uint32_t i)
{
    const struct card_tenant *t = &w->card.at[w->at[i].on_card];
    const int64_t ns = t->done_ns - w->at[i].mark_ns, over = w->card.now_ns - w->mark_ns;
    return ns / 1000 * 1000000000 / (over / 1000) / card_alone_ppm(t->kind);
}

/* What all who are there worked since the mark, in permille of the card. */
static inline int64_t world_used(const struct world *w)
{
    int64_t ns = 0;
    for (uint32_t i = 0; i < w->n; i++)
        ns += w->card.at[w->at[i].on_card].done_ns - w->at[i].mark_ns;
    return ns * 1000 / (w->card.now_ns - w->mark_ns);
}

/* What one did as a part of the card. */
static inline int64_t world_share(const struct world *w, uint32_t i)
{
    const enum card_kind kind = w->card.at[w->at[i].on_card].kind;
    return kind == CARD_SPORADIC ? world_rate(w, i) * card_alone_ppm(kind) / 1000000 : world_rate(w, i);
}

#endif
