/* SPDX-License-Identifier: Apache-2.0 */
/* govern.c - one step: who is there, what each should get, which way of sharing, what to tell. */
#include "core/govern/govern.h"

#include "base/mem.h"
#include "core/govern/fields.h"
#include "core/govern/govern_inside.h"

#include <inttypes.h>
#include <string.h>

int bh_govern_new(const struct bh_govern_config *config, struct bh_govern **ret, struct bh_err *err)
{
    struct bh_govern_config preset;
    int rc;

    bh_govern_config_default(&preset);
    rc = bh_fields_check(&bh_govern_config_fields, config ? config : &preset, err);
    if (rc < 0)
        return rc;
    *ret = bh_alloc(1, sizeof(**ret));
    (*ret)->config = config ? *config : preset;
    return 0;
}

void bh_govern_free(struct bh_govern *g)
{
    free(g);
}

/* ---- who is there ---- */

static int check(const struct bh_govern_in *in, struct bh_err *err)
{
    int rc = bh_fields_check(&bh_govern_in_fields, in, err);
    for (uint32_t i = 0; rc == 0 && i < in->n; i++)
        rc = bh_fields_check(&bh_govern_asked_fields, &in->at[i], err);
    return rc;
}

static bool same_crowd(const struct bh_govern *g, const struct bh_govern_in *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        if (i >= g->n || g->at[i].id != in->at[i].id)
            return false;
    }
    return g->n == in->n;
}

static int find_double(const struct bh_govern_in *in, struct bh_err *err)
{
    for (uint32_t i = 0; i < in->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (in->at[i].id == in->at[j].id)
                return bh_fail(err, BH_INVALID, "tenant %" PRIu64 " is given twice", in->at[i].id);
        }
    }
    return 0;
}

/* Members stand in the order of the input: who stays is moved to its place, who left falls behind the end. */
static void meet(struct bh_govern *g, const struct bh_govern_in *in)
{
    bool stayed = false;
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t j = i;
        while (j < g->n && g->at[j].id != in->at[i].id)
            j++;
        if (j < g->n) {
            const struct bh_member found = g->at[j];
            g->at[j] = g->at[i];
            g->at[i] = found;
            stayed = true;
            continue;
        }
        if (i < g->n) /* whoever stands here may still be asked for */
            g->at[g->n] = g->at[i];
        g->n++;
        bh_sense_join(&g->at[i], &in->at[i]);
    }
    for (uint32_t i = in->n; i < g->n; i++)
        g->gone_ns += g->at[i].latency ? g->at[i].sum_ns : 0;
    g->n = in->n;
    if (!stayed) { /* a card that was empty for nobody knows how long */
        g->gone_ns = g->kept_ns = 0;
        g->latency = (struct bh_window){0};
        g->mode = BH_GOVERN_FREE;
    }
}

/* ---- targets ---- */

static void divide(struct bh_govern *g)
{
    bool same = g->n_asked == g->n;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *m = &g->at[i];
        const uint32_t demand = bh_sense_demand(m);
        struct bh_fair f = {.weight = m->weight, .floor_ppm = m->floor_ppm, .limit_ppm = demand};
        if (m->cap_ppm && m->cap_ppm < demand)
            f.limit_ppm = m->cap_ppm;
        same = same && memcmp(&f, &g->asked[i], sizeof(f)) == 0;
        g->asked[i] = f;
    }
    if (!same) {
        g->n_asked = g->n;
        memcpy(g->share, g->asked, g->n * sizeof(g->share[0]));
        bh_fair_divide(g->share, g->n);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        m->target_ppm = g->share[i].share_ppm;
        m->light = m->active && !m->latency && bh_sense_demand(m) < BH_FAIR_WHOLE;
    }
}

/* ---- the way of sharing ---- */

struct need {
    enum bh_govern_mode mode;
    bool turns, blind;
};

static struct need choose(const struct bh_govern *g)
{
    struct need w = {.mode = BH_GOVERN_FREE};
    const bool latency = bh_latency_is_here(g);
    bool capped = false, unfilled = false;
    uint32_t heavy = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *m = &g->at[i];
        w.blind |= m->active && !m->seen;
        unfilled |= m->active && m->unfilled_ns > 0;
        heavy += bh_is_heavy(m);
        capped |= bh_is_heavy(m) && m->cap_ppm && m->target_ppm >= m->cap_ppm;
    }
    w.turns = !g->config.slices_only && (capped || (heavy >= 2 && (latency || unfilled)));
    if (latency && !g->config.slices_only)
        w.mode = BH_GOVERN_BESIDE_LATENCY;
    else if (w.turns)
        w.mode = BH_GOVERN_TURNS;
    else if (heavy >= 2)
        w.mode = BH_GOVERN_SLICES;
    return w;
}

static void default_slices(struct bh_govern *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->at[i].slice_us = bh_slice_beside(g, &g->at[i]);
}

static void nothing(struct bh_govern *g)
{
    (void)g;
}

static const struct {
    void (*begin)(struct bh_govern *);
    void (*decide)(struct bh_govern *);
} modes[BH_GOVERN_MODES] = {
    [BH_GOVERN_FREE] = {nothing, default_slices},
    [BH_GOVERN_SLICES] = {bh_slices_begin, bh_slices_decide},
    [BH_GOVERN_TURNS] = {nothing, default_slices},
    [BH_GOVERN_BESIDE_LATENCY] = {bh_latency_begin, bh_latency_decide},
};

static void decide(struct bh_govern *g, const struct need *w)
{
    if (w->mode != g->mode)
        modes[w->mode].begin(g);
    if (w->turns != g->turns)
        bh_turns_begin(g);
    g->mode = w->mode;
    g->many = false;
    modes[g->mode].decide(g);
    if (w->turns)
        bh_turns_decide(g);
    g->turns = w->turns;
    g->apart_ns = w->turns ? 0 : bh_between(g->apart_ns + g->step_ns, 0, 10000 * BH_MS);
    bh_turns_gate(g);
    bh_latency_note(g);
}

/* ---- what to tell ---- */

#define SETTLED_NS      (1000 * BH_MS)
#define MANY_SETTLED_NS (3000 * BH_MS) /* whether turns would be better is known after two: slices.c */

/* Shares by slices that are right stay so by themselves; who comes or goes is told to whoever calls this. Of many one or the other is
 * always at the edge of what is corrected: for them it is enough that nobody is in need. */
static void watch_still(struct bh_govern *g)
{
    uint64_t d = UINT64_C(0xcbf29ce484222325) ^ g->mode;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *m = &g->at[i];
        const uint64_t now[] = {m->id, g->many ? 0 : m->slice_us, g->many ? 0 : m->corrections,
                                (uint64_t)m->active << 1 | (uint64_t)m->light};
        for (size_t k = 0; k < sizeof(now) / sizeof(now[0]); k++)
            d = (d ^ now[k]) * UINT64_C(0x100000001b3);
    }
    const bool still = d == g->told && (!g->many || bh_slices_hold(g));
    g->still_ns = still ? bh_between(g->still_ns + g->step_ns, 0, MANY_SETTLED_NS) : 0;
    g->told = d;
}

static uint32_t permille(const struct bh_govern *g, const struct bh_member *m, const struct bh_window *w)
{
    const int64_t over = m->age_ns < g->time.sum ? m->age_ns : g->time.sum;
    return over > 0 && w->sum > 0 ? (uint32_t)((w->sum * 1000 + over / 2) / over) : 0;
}

static uint8_t level_of(const struct bh_govern *g, const struct bh_member *m)
{
    if (g->mode != BH_GOVERN_BESIDE_LATENCY)
        return (uint8_t)g->config.default_level;
    return m->latency ? 2 : 0;
}

static void tell(const struct bh_govern *g, const struct need *w, struct bh_govern_out *out)
{
    out->mode = (uint8_t)g->mode;
    out->turns = g->turns;
    out->open_loop = w->blind;
    out->pause_first = g->turns && g->mode == BH_GOVERN_BESIDE_LATENCY;
    out->settled =
        !g->turns && g->mode <= BH_GOVERN_SLICES && g->still_ns >= (g->many ? MANY_SETTLED_NS : SETTLED_NS);
    out->n = g->n;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *m = &g->at[i];
        out->at[i] = (struct bh_govern_told){
            .id = m->id,
            .slice_us = m->slice_us,
            .level = level_of(g, m),
            .paused = m->paused,
            .active = m->active,
            .light = m->light,
            .seen = m->seen,
            .escaped = m->escape_ns > 0,
            .target_permille = (m->target_ppm + 500) / 1000,
            .delivered_permille = m->seen ? permille(g, m, &m->gpu) : 0,
            .held_permille = m->seen ? permille(g, m, &m->held) : 0,
            .corrections = m->corrections,
        };
    }
}

int bh_govern_step(struct bh_govern *g, const struct bh_govern_in *in, struct bh_govern_out *out,
                   struct bh_err *err)
{
    struct need w;
    int rc = check(in, err);

    if (rc < 0)
        return rc;
    if (!same_crowd(g, in)) {
        rc = find_double(in, err);
        if (rc < 0)
            return rc;
        meet(g, in);
    }
    bh_sense(g, in);
    bh_turns_charge(g);
    divide(g);
    w = choose(g);
    decide(g, &w);
    watch_still(g);
    tell(g, &w, out);
    return 0;
}
