/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sense.c - from samples to facts: who has work, what each got, what each would use alone.
 *
 * Samples may come at every step or seldom, late, and not at all; a busy or idle flag likewise. A paused
 * tenant looks idle and is not, so nothing is concluded about it.
 */
#include "core/govern/govern_inside.h"

#define FAST_NS      (100 * BH_MS)
#define FORGET_NS    (1000 * BH_MS) /* how slowly a smaller need is believed */
#define LIGHT_OUT    300000u
#define PROBE_NS     (200 * BH_MS)
#define PROBE_MAX    (64000 * BH_MS)
#define DOUBT_NS     (2000 * BH_MS)
#define DOUBT_MAX    (64000 * BH_MS)
#define LOOK_LEAST   (200 * BH_MS) /* a sample and a bit */
#define LOOK_LATER   (700 * BH_MS)
#define DOUBT_FRESH  (500 * BH_MS)  /* until samples are of what is done now, and may have ended a doubt */
#define AWAY_LONG    (1000 * BH_MS) /* it may do something else now than what it is in doubt for */
#define FILLS        970000u
#define DEMAND_GRAIN 4096u /* so that targets do not follow every flicker */

void bh_sense_join(struct bh_member *m, const struct bh_govern_asked *a)
{
    *m = (struct bh_member){.id = a->id,
                            .trim = BH_TRIM_ONE,
                            .unfilled_try = 20000 * BH_MS,
                            .probe_ns = 2000 * BH_MS,
                            .doubt_next = DOUBT_NS};
    m->away_ns = 10000 * BH_MS; /* whoever comes is served as one who comes back */
}

void bh_window_add(const struct bh_govern *g, struct bh_window *w, int64_t ns)
{
    w->part[g->part] += ns;
    w->sum += ns;
}

static void window_next(struct bh_window *w, uint32_t part)
{
    w->sum -= w->part[part];
    w->part[part] = 0;
}

static void windows_move(struct bh_govern *g)
{
    /* A long step is as many parts, of which all but the first are empty: the window is a second however far apart steps are. */
    const int64_t full = bh_between(g->part_ns / BH_WINDOW_PART_NS, 0, BH_WINDOW_PARTS - 1);
    g->part_ns = g->part_ns % BH_WINDOW_PART_NS + g->step_ns;
    for (int64_t k = 0; k < full; k++) {
        g->part = (g->part + 1) % BH_WINDOW_PARTS;
        window_next(&g->time, g->part);
        window_next(&g->latency, g->part);
        for (uint32_t i = 0; i < g->n; i++) {
            window_next(&g->at[i].gpu, g->part);
            window_next(&g->at[i].held, g->part);
        }
    }
    bh_window_add(g, &g->time, g->step_ns);
}

static void take_sample(const struct bh_govern *g, struct bh_member *m, uint64_t gpu_ns)
{
    int64_t most;
    m->unseen_ns += g->step_ns;
    m->has_sample = gpu_ns != BH_GOVERN_NO_SAMPLE;
    if (!m->has_sample) {
        m->unseen_ns = bh_between(m->unseen_ns, 0, 10000 * BH_MS);
        m->seen = m->seen && m->unseen_ns < g->config.stale_us * BH_US;
        m->sample_ns = m->span_ns = 0;
        return;
    }
    /* A counter cannot have run faster than time; one that says so is cut, not believed. */
    most = m->unseen_ns + g->config.lag_us * BH_US;
    m->sample_ns = gpu_ns > (uint64_t)most ? most : (int64_t)gpu_ns;
    m->span_ns = m->unseen_ns;
    m->unseen_ns = 0;
    m->seen = true;
    if (!m->paused) {
        const int64_t now = bh_ppm(m->sample_ns, m->span_ns), was = m->fast_ppm;
        m->fast_ppm = (uint32_t)(was + (now - was) * (m->span_ns / BH_US) / ((m->span_ns + FAST_NS) / BH_US));
    }
    bh_window_add(g, &m->gpu, m->sample_ns);
}

/* So many that samples of a full card are of several. */
static bool many_compete(const struct bh_govern *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++)
        n += bh_is_heavy(&g->at[i]);
    return n > 3;
}

static void look_later(struct bh_member *m, int64_t ns)
{
    m->doubt_wait_ns = bh_between(m->doubt_wait_ns, ns, DOUBT_MAX);
}

static void see_work(const struct bh_govern *g, struct bh_member *m, enum bh_govern_state state)
{
    const bool works = state == BH_GOVERN_BUSY || m->sample_ns > 0;
    const bool rests = state == BH_GOVERN_IDLE || (m->has_sample && m->sample_ns == 0);
    const bool holder = g->turns && m->in_turns && g->holder == m->id;
    const bool was = m->active;

    if (m->paused) { /* looks idle; rests of turn after turn add up, as a turn may be too short to be sure */
        m->idle_ns = m->sample_ns > 0 ? 0 : m->idle_ns;
    } else if (works) {
        m->active = true;
        m->idle_ns = 0;
    } else if (rests) {
        m->idle_ns = bh_between(m->idle_ns + g->step_ns, 0, 10000 * BH_MS);
        if (m->idle_ns >= (holder ? g->config.idle_us : g->config.away_us) * BH_US)
            m->active = false;
    } else if (!m->seen) {
        m->active = true; /* blind: it must be taken to have work */
    }
    /* A short rest is no absence: else resting would be a way to the head of the queue. */
    m->returned = m->active && !was && m->away_ns >= g->config.away_us * BH_US;
    if (m->returned && m->away_ns >= AWAY_LONG && many_compete(g))
        look_later(m, DOUBT_FRESH);
    m->away_ns = m->active ? 0 : bh_between(m->away_ns + g->step_ns, 0, 10000 * BH_MS);
}

/* They take turns first: if all of them work, that tells as well, and costs nobody a wait. One or two are looked at while they do what
 * they came into doubt for. */
static bool crowd_in_doubt(const struct bh_govern *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++)
        n += g->at[i].doubt;
    return n > 2;
}

void bh_sense_turns_first(struct bh_govern *g)
{
    if (!crowd_in_doubt(g))
        return;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const bool looked_at = g->turns && g->holder == m->id && bh_is_looked_at(m);
        if (!m->doubt || m->turns_first || looked_at)
            continue;
        m->turns_first = true;
        look_later(m, DOUBT_FRESH);
    }
}

/*
 * What it used with nobody in its way tells a tenant that rests from one that was kept from the card. A
 * light tenant is seen beside others only, where one that synchronizes would look light as well: so it is
 * asked again now and then, seldom and seldomer, by giving it a turn of its own.
 */
static void learn_alone(const struct bh_govern *g, struct bh_member *m)
{
    if (m->returned)
        m->alone_known = false;
    if (!m->light || !m->alone_known) {
        m->light_ns = 0;
        return;
    }
    m->light_ns += g->step_ns;
    const bool look = bh_is_looked_at(m);
    /* In a second, of one that may work for some tenths of it and then rest. */
    const uint32_t now = m->beside ? bh_ppm(m->gpu.sum, g->time.sum) : m->fast_ppm;
    if (look || m->light_ns >= m->probe_ns) {
        if (look && crowd_in_doubt(g))
            m->doubt_wait_ns = LOOK_LATER;
        m->alone_known = false;
        m->probe_ns = bh_between(m->probe_ns * 2, 0, PROBE_MAX);
        m->unfilled_ns = bh_between(PROBE_NS, m->unfilled_ns, PROBE_NS + m->unfilled_ns);
    } else if (now > m->alone_ppm) {
        if (!bh_is_held(m)) /* else this is what it does when it may, not what it needs */
            m->alone_ppm = now;
    } else if (m->has_sample && g->mode != BH_GOVERN_SLICES) {
        const int64_t less = (int64_t)m->alone_ppm - now;
        m->alone_ppm -= (uint32_t)(less * (m->span_ns / BH_US) / ((m->span_ns + FORGET_NS) / BH_US));
    }
}

static uint32_t light_most(const struct bh_member *m)
{
    const uint32_t usual = m->light ? LIGHT_OUT : BH_LIGHT_PPM, beside = bh_lend_most(m);
    return beside > usual ? beside : usual;
}

uint32_t bh_sense_demand(const struct bh_member *m)
{
    uint64_t need = BH_FAIR_WHOLE;
    if (!m->active)
        return 0;
    if (m->latency && m->seen)
        need = m->fast_ppm + (uint64_t)m->fast_ppm / 8 + 10000;
    else if (!m->latency && m->alone_known && m->alone_ppm < light_most(m))
        need = m->alone_ppm + (uint64_t)m->alone_ppm / 16 + 5000;
    need = (need + DEMAND_GRAIN - 1) / DEMAND_GRAIN * DEMAND_GRAIN;
    return need > BH_FAIR_WHOLE ? BH_FAIR_WHOLE : (uint32_t)need;
}

bool bh_is_held(const struct bh_member *m)
{
    return m->light && m->target_ppm < bh_sense_demand(m);
}

void bh_sense_looked(struct bh_member *m)
{
    m->doubt_wait_ns = m->doubt_next;
    m->doubt_next = bh_between(m->doubt_next * 2, 0, DOUBT_MAX);
}

/*
 * One that works when it is looked at and rests else would have long turns again and again: it has to wait longer and
 * longer. It gains nothing by them, but the others wait.
 */
static void take_doubt(const struct bh_govern *g, struct bh_member *m, bool doubt)
{
    m->doubt_wait_ns = bh_between(m->doubt_wait_ns - g->step_ns, 0, m->doubt_wait_ns);
    if (m->light) {
        m->doubt_wait_ns = 0;
        m->doubt_next = DOUBT_NS;
    }
    if (m->doubt && !doubt) { /* what was learnt before was learnt of samples that held rests */
        m->certain = g->turns && g->holder == m->id && g->held_ns >= LOOK_LEAST && bh_is_looked_at(m);
        if (m->certain)
            bh_sense_looked(m);
        else /* nobody looked: it ended by what all of them did */
            look_later(m, DOUBT_NS);
        m->alone_known = false;
        m->turn_gpu_ns = m->turn_free_ns = 0;
        m->turn_least_ppm = BH_FAIR_WHOLE;
    }
    m->certain = m->certain && !doubt;
    m->turns_first = m->turns_first && doubt;
    m->doubt = doubt;
}

static void watch_escape(const struct bh_govern *g, struct bh_member *m)
{
    const int64_t settled = 10 * BH_MS + g->config.lag_us * BH_US;
    m->paused_ns = m->paused ? bh_between(m->paused_ns + g->step_ns, 0, 10000 * BH_MS) : 0;
    if (m->paused_ns < settled || !m->has_sample || m->span_ns > m->paused_ns - settled)
        m->escape_ns = m->paused ? m->escape_ns : 0;
    else
        m->escape_ns =
            m->sample_ns > m->span_ns / 2 ? bh_between(m->escape_ns + m->span_ns, 0, 10000 * BH_MS) : 0;
}

void bh_sense(struct bh_govern *g, const struct bh_govern_in *in)
{
    g->step_ns = in->elapsed_us * BH_US;
    g->unused_ppm = in->unused_permille * 1000;
    windows_move(g);
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const struct bh_govern_asked *a = &in->at[i];
        m->weight = a->weight;
        m->cap_ppm = a->cap_permille * 1000;
        m->floor_ppm = a->floor_permille * 1000;
        m->latency = a->latency == BH_GOVERN_LATENCY;
        m->age_ns = bh_between(m->age_ns + g->step_ns, 0, 10000 * BH_MS);
        /* Slices are tried again in time, but not while it is seen to leave gaps. */
        if (!m->alone_known || m->alone_ppm >= FILLS)
            m->unfilled_ns = bh_between(m->unfilled_ns - g->step_ns, 0, m->unfilled_ns);
        take_doubt(g, m, a->doubt != 0);
        take_sample(g, m, a->gpu_ns);
        if (m->latency)
            bh_window_add(g, &g->latency, m->sample_ns);
        see_work(g, m, (enum bh_govern_state)a->state);
        learn_alone(g, m);
        watch_escape(g, m);
    }
    bh_lend_shares(g);
    for (uint32_t i = 0; i < g->n; i++)
        bh_lend_watch(g, &g->at[i]);
    bh_sense_turns_first(g);
}
