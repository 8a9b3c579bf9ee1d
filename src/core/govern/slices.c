/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slices.c - shares by the length of slices alone, and the feedback that trims them.
 *
 * A tenant that fills its slices gets what they say, within a point or two: the trim takes care of that.
 * One that gives up its slices early gets less whatever they say: that shows as an error which trimming
 * does not remove, or (of two or three) as one that is trimmed there and back for ever: work in batches of two slices or three, and
 * nothing between.
 * Then slices are the wrong tool for it: it is marked, and turns are taken. Where slices are all there is, the error is left as it is.
 *
 * How sure an error is depends on how long was looked: a look that ends in the middle of a round is off by
 * part of a round. So sums run on until the error stands out of that, instead of acting on what is only the
 * edge of a window.
 */
#include "core/govern/govern_inside.h"

#define LOOK_NS        (125 * BH_MS)
#define LOOK_MAX       (4000 * BH_MS)
#define TRY_MAX        (160000 * BH_MS)
#define BURN_NS        (400 * BH_MS)
#define SHORT_NS       (2000 * BH_MS)
#define REST_NS        (20 * BH_MS)
#define BLUR_NS        (100 * BH_MS)
#define DEAD_PPM       5000
#define DEAD_ALONE_PPM 15000 /* where slices are all there is: rest is worth more than the last point */
#define LARGE_PPM      50000 /* more than any inexact timer: it does not fill its slices */
#define FAR_PPM        30000 /* too little to look seldom */
#define WRONG_PPM      15000 /* worth another way of sharing when trimming does not help */
#define BURNT_PPM      40000 /* lost beyond what slices of this length cost: they are given up too early */
#define MISSED_PPM     20000 /* of a light tenant's need */
#define ROUND_THIN_US  INT64_C(100000)
#define TRIM_TRIES     3
#define TRIM_RESTLESS  8              /* so often without a rest: there is no slice that would be right */
#define TRIM_REST_NS   (1000 * BH_MS) /* of sums in which nobody stood out */
#define TRIM_FARTHEST  4
#define HELD_SLICES    4
/*
 * Who uses a part of the card beside the others has a slice in which work of some milliseconds is done in one piece: each piece more is two
 * changes of the card in the middle of somebody's work. Not so long that it might be kept without work, though (BH_BUSY_LONG_NS, less a
 * change of the card): what it uses would not be known.
 */
#define PIECE_US 3500

struct crowd {
    uint32_t n;
    int64_t target_ppm, round_us;
};

static struct crowd count(const struct bh_govern *g)
{
    struct crowd c = {0};
    uint32_t least = BH_FAIR_WHOLE;
    for (uint32_t i = 0; i < g->n; i++) {
        if (!bh_is_heavy(&g->at[i]))
            continue;
        c.n++;
        c.target_ppm += g->at[i].target_ppm;
        least = g->at[i].target_ppm < least ? g->at[i].target_ppm : least;
    }
    c.round_us = (int64_t)c.n * g->config.switch_us * 1000 / g->config.loss_permille;
    if (least) { /* a small share must still be a slice worth switching for */
        const int64_t thin = g->config.slice_min_us * c.target_ppm / least;
        const int64_t most = c.round_us > ROUND_THIN_US ? c.round_us : ROUND_THIN_US;
        c.round_us = bh_between(thin, c.round_us, most);
    }
    c.round_us = bh_between(c.round_us, 1, g->config.round_max_us);
    return c;
}

static void clear(struct bh_govern *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->at[i].sum_ns = 0;
    /* what still comes in is from before */
    g->sum_span_ns = -(g->config.lag_us * BH_US);
    g->look_ns = 0;
}

static void clear_burnt(struct bh_govern *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->at[i].burn_ns = 0;
    g->burn_got_ns = 0;
    g->burn_span_ns = -(g->config.lag_us * BH_US);
}

static void clear_all(struct bh_govern *g)
{
    clear(g);
    clear_burnt(g);
}

void bh_slices_begin(struct bh_govern *g)
{
    g->crowd = 0;
}

static uint64_t digest(const struct bh_govern *g)
{
    uint64_t d = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < g->n; i++) {
        if (bh_is_heavy(&g->at[i]))
            d = ((d ^ g->at[i].id) * UINT64_C(0x100000001b3) ^ g->at[i].weight) * UINT64_C(0x100000001b3);
    }
    return d | 1;
}

static int64_t trimmed(int64_t trim, int64_t share, int64_t error)
{
    const int64_t got = share + error;
    int64_t next = trim * 4 / 3;
    if (got > 0)
        next = bh_between(trim * (share + error / 4) / got, trim * 3 / 4, trim * 4 / 3);
    return bh_between(next, BH_TRIM_ONE / TRIM_FARTHEST, BH_TRIM_ONE * TRIM_FARTHEST);
}

static bool still(int64_t before, int64_t now)
{
    return before > 0 ? now > before * 2 / 3 : now < before * 2 / 3;
}

/* With nothing else to try, an error that stays is one that is left alone: else every look would be a correction. */
static bool has_other_ways(const struct bh_govern *g)
{
    return !g->config.slices_only;
}

static void mark_unfilled(struct bh_member *m)
{
    m->unfilled_ns = m->unfilled_try;
    m->unfilled_try = bh_between(m->unfilled_try * 2, 0, TRY_MAX);
    m->trims = m->restless = 0;
    m->corrections++;
}

/* A sample may be of time before the sum began: by what it is longer than the step. Of the step itself a little is enough, however
 * far apart the looks are: sums begin and end with one. */
static int64_t blur(const struct bh_govern *g, const struct bh_member *m)
{
    const int64_t more = m->span_ns > g->step_ns ? m->span_ns - g->step_ns : 0;
    return m->span_ns < BLUR_NS ? m->span_ns : bh_between(more + BLUR_NS, BLUR_NS, m->span_ns);
}

/* By how much a share may seem off because a look ends in the middle of a round. */
static int64_t edge_of(int64_t share, int64_t round_us, int64_t span_ns)
{
    return share * (BH_FAIR_WHOLE - share) / BH_FAIR_WHOLE * round_us / (span_ns / BH_US);
}

/* Whether this tenant's error stood out, and what was done about it. */
static bool correct(const struct bh_govern *g, struct bh_member *m, const struct crowd *c, int64_t total_ns)
{
    const int64_t whole = m->light ? g->sum_span_ns : total_ns;
    const int64_t share = m->light ? m->target_ppm : (int64_t)m->target_ppm * BH_FAIR_WHOLE / c->target_ppm;
    const int64_t error = (int64_t)bh_ppm(m->sum_ns, whole) - share;
    const int64_t edge = edge_of(share, c->round_us + blur(g, m) / BH_US, g->sum_span_ns);

    if (m->light) {
        if (error >= -(MISSED_PPM + edge) || !has_other_ways(g))
            return false;
        mark_unfilled(m);
        return true;
    }
    /* The edge is a worst case, but who comes again and again at the same part of a round is there always. Of many there is always one
     * at half of it, and on a card they come to take turns in the end; that is worth more to ten of them than slices, which are changed
     * ten times as often. Not by counting their trims: who works by the clock fills its slices and leaves much of its turns. */
    const int64_t dead = has_other_ways(g) ? DEAD_PPM : DEAD_ALONE_PPM;
    const int64_t sure = dead + (has_other_ways(g) && c->n > BH_GOVERN_FEW ? edge / 2 : edge);
    if (error <= sure && error >= -sure)
        return false;
    if (has_other_ways(g) &&
        (error < -(LARGE_PPM + edge) || (error < -(WRONG_PPM + edge) && m->trims >= TRIM_TRIES) ||
         (c->n <= BH_GOVERN_FEW && m->restless >= TRIM_RESTLESS))) {
        mark_unfilled(m);
        return true;
    }
    if (m->trims >= TRIM_TRIES && still(m->last_error, error)) /* it did not help: look longer instead */
        return false;
    /* an error that shrinks or changes its sign is being dealt with */
    m->trims = still(m->last_error, error) ? m->trims + 1 : 1;
    m->last_error = error;
    const int32_t trim = (int32_t)trimmed(m->trim, share, error);
    if (trim == m->trim && !has_other_ways(g)) /* it is as far as it goes */
        return false;
    m->trim = trim;
    m->restless++;
    m->corrections++;
    return true;
}

/* Shares may be right and the card lost all the same: tenants that switch at each of their gaps. */
static bool burns(const struct bh_govern *g, const struct crowd *c)
{
    const int64_t cost = (int64_t)c->n * g->config.switch_us * BH_FAIR_WHOLE / c->round_us;
    return g->burn_span_ns >= BURN_NS &&
           bh_ppm(g->burn_got_ns, g->burn_span_ns) + cost + BURNT_PPM < BH_FAIR_WHOLE;
}

/* Of many there is always one whose slice is being corrected, and sums begin anew each time: who is short through all of that is not seen
 * in them. */
static bool mark_short(struct bh_govern *g, const struct crowd *c)
{
    int64_t total = 0;
    bool any = false;
    for (uint32_t i = 0; i < g->n; i++)
        total += bh_is_heavy(&g->at[i]) ? g->at[i].burn_ns : 0;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const int64_t share = (int64_t)m->target_ppm * BH_FAIR_WHOLE / c->target_ppm;
        const int64_t edge = edge_of(share, c->round_us, g->burn_span_ns);
        if (!bh_is_heavy(m) || bh_ppm(m->burn_ns, total) + WRONG_PPM + edge >= share)
            continue;
        mark_unfilled(m);
        any = true;
    }
    return any;
}

static void look(struct bh_govern *g, const struct crowd *c)
{
    int64_t total = 0;
    bool stood_out = false;

    for (uint32_t i = 0; i < g->n; i++)
        total += bh_is_heavy(&g->at[i]) ? g->at[i].sum_ns : 0;
    if (total == 0 || c->target_ppm == 0)
        return;
    if (has_other_ways(g) && burns(g, c)) {
        for (uint32_t i = 0; i < g->n; i++) {
            if (bh_is_heavy(&g->at[i]))
                mark_unfilled(&g->at[i]);
        }
        return;
    }
    if (has_other_ways(g) && c->n > BH_GOVERN_FEW && g->burn_span_ns >= SHORT_NS && mark_short(g, c))
        return;
    if (g->burn_span_ns >= LOOK_MAX)
        clear_burnt(g);
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->at[i].active && !g->at[i].latency)
            stood_out |= correct(g, &g->at[i], c, total);
    }
    for (uint32_t i = 0; i < g->n && !stood_out && g->sum_span_ns >= TRIM_REST_NS; i++)
        g->at[i].restless = 0;
    if (stood_out) {
        clear(g);
    } else if (g->sum_span_ns >= LOOK_MAX) {
        clear(g);
        for (uint32_t i = 0; i < g->n && has_other_ways(g); i++)
            g->at[i].trims = 0;
    }
}

static void sum_up(struct bh_govern *g, const struct crowd *c)
{
    bool blind = false, rests = false;
    g->sum_span_ns += g->step_ns;
    g->burn_span_ns += g->step_ns;
    g->look_ns += g->step_ns;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        if (g->sum_span_ns > 0)
            m->sum_ns += m->sample_ns;
        if (g->burn_span_ns > 0) {
            g->burn_got_ns += m->sample_ns;
            m->burn_ns += m->sample_ns;
        }
        blind |= bh_is_heavy(m) && !m->seen;
        rests |= bh_is_heavy(m) && m->idle_ns >= REST_NS;
    }
    /* Who rests gets less than its share because it wants less: no error to correct. */
    if (blind || rests)
        clear_all(g);
    else if (g->look_ns >= LOOK_NS && g->sum_span_ns >= LOOK_NS / 2) {
        g->look_ns = 0;
        look(g, c);
    }
}

uint32_t bh_slice_beside(const struct bh_govern *g, const struct bh_member *m)
{
    if (m->beside)
        return PIECE_US;
    return g->config.default_slice_us * (bh_is_held(m) ? HELD_SLICES : 1);
}

/* Nobody is paused, which is done at looks, and of those that compete nobody had far less than its part of what all of them had in the last
 * second. Who is not seen cannot be helped by looking. */
bool bh_slices_hold(const struct bh_govern *g)
{
    int64_t target_ppm = 0, total = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *m = &g->at[i];
        target_ppm += bh_is_heavy(m) ? m->target_ppm : 0;
        total += bh_is_heavy(m) ? m->gpu.sum : 0;
        if (m->paused)
            return false;
    }
    for (uint32_t i = 0; i < g->n && target_ppm > 0 && g->time.sum > 0; i++) {
        const struct bh_member *m = &g->at[i];
        const int64_t share = (int64_t)m->target_ppm * BH_FAIR_WHOLE / target_ppm;
        const int64_t edge = edge_of(share, g->config.round_max_us / 2, g->time.sum);
        if (bh_is_heavy(m) && m->seen && bh_ppm(m->gpu.sum, total) + FAR_PPM + edge < share)
            return false;
    }
    return true;
}

static int64_t trimmed_us(const struct crowd *c, const struct bh_member *m)
{
    return c->target_ppm ? c->round_us * m->target_ppm / c->target_ppm * m->trim / BH_TRIM_ONE : 0;
}

void bh_slices_decide(struct bh_govern *g)
{
    struct crowd c = count(g);
    const uint64_t crowd = digest(g);
    /* Below that a slice is over before its work has begun: measured, a busy tenant came to nothing in 200 us. */
    const int64_t least_us = g->config.slice_min_us / 2;
    int64_t weights = 0, round_us = 0;

    g->many = c.n > BH_GOVERN_FEW;
    if (crowd != g->crowd) {
        g->crowd = crowd;
        clear_all(g);
        for (uint32_t i = 0; i < g->n; i++)
            g->at[i].trims = g->at[i].restless = 0;
    } else {
        sum_up(g, &c);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        weights += bh_is_heavy(&g->at[i]) ? g->at[i].weight : 0;
        round_us += bh_is_heavy(&g->at[i]) ? trimmed_us(&c, &g->at[i]) : 0;
    }
    /* Who is away for longer than a round may be is taken to rest (governor/sense.c). Nor are trims to make a long round longer: two looks
     * to a round see the same part of it each time. */
    const int64_t longest_us =
        bh_between(c.round_us > ROUND_THIN_US ? c.round_us : ROUND_THIN_US, 0, g->config.round_max_us);
    const int64_t most_us = round_us > longest_us ? longest_us : round_us;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        int64_t us = bh_slice_beside(g, m);
        if (bh_is_heavy(m) && round_us > 0)
            us = bh_between(trimmed_us(&c, m) * most_us / round_us, least_us, g->config.slice_max_us);
        else if (!m->active) /* what it would get, so that it is there the moment it comes back */
            us = c.round_us * m->weight / (weights + m->weight);
        m->slice_us = (uint32_t)bh_between(us, g->config.short_slice_us, g->config.slice_max_us);
    }
}
