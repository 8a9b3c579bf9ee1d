/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.c - batch tenants beside a latency tenant.
 *
 * From outside nobody sees a launch, so nothing can react to one: how long a small kernel waits is bounded
 * by the batch slice alone. It is kept as short as the hardware makes use of. It grows only when batch is
 * wronged: a latency tenant takes more than its fair share (the class is a promise of response, not of more
 * time), batch is below its floor, or so many short visits come that switching eats what batch is owed.
 * Then the ratio of the slices follows the error until it is gone; when nobody is wronged any more it goes
 * back.
 *
 * Batch that gives its slices up early has little of them, however long they are: then the latency tenant's are
 * shortened, which costs a switch each. Not where more is lost than batch has: who does not take what it is due would
 * have the other cut to pieces.
 */
#include "core/govern/govern_inside.h"

#define WHOLE      ((int64_t)BH_FAIR_WHOLE)
#define LOOK_NS    (100 * BH_MS)
#define LOOK_MAX   (1000 * BH_MS)
#define DEAD_PPM   8000
#define EATEN_PPM  250000        /* of the card, by switching, before batch counts as wronged */
#define BLIND_PART 20000         /* of the card, for batch, where nothing can be measured */
#define UNUSED_PPM 30000         /* of the card, that samples may miss of what was used */
#define OWN_PPM    100000        /* of the card: one that surely uses less is excused for what nobody used */
#define SURE_NS    (500 * BH_MS) /* about as old as what is known to be unused */
#define LOST_PPM   300000        /* of the card, by changes between those who do nothing else */
#define LOST_NS    (600 * BH_MS) /* without a break: less and it may be that slices are about to be longer */
#define YOUNG_NS   (300 * BH_MS) /* who has just come is not seen yet, and says nothing of those who are */
#define LINGER_NS  (300 * BH_MS) /* as if they were there still */
#define KEPT_NS    (10000 * BH_MS)
#define HALF_NS    (1000 * BH_MS) /* the batch slice that was found, away for so long, is half as long */
#define RETRY_NS   (2000 * BH_MS)
#define RETRY_MAX  (64000 * BH_MS)
/* A batch slice beyond this would outlast turns; the latency tenant's is shortened instead. */
#define LONGEST_US 5000

struct sides {
    int64_t latency_ppm, batch_ppm, floor_ppm; /* targets */
    int64_t latency_ns, batch_ns;              /* got */
    bool blind;
};

static struct sides weigh(const struct bh_govern *g)
{
    struct sides s = {.latency_ns = g->gone_ns};
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *m = &g->at[i];
        s.blind |= m->active && !m->seen && m->age_ns >= YOUNG_NS;
        if (m->latency) {
            s.latency_ppm += m->target_ppm;
            s.latency_ns += m->sum_ns;
        } else if (m->active) {
            s.batch_ppm += m->target_ppm;
            s.batch_ns += m->sum_ns;
            s.floor_ppm += m->floor_ppm < m->target_ppm ? m->floor_ppm : m->target_ppm;
        }
    }
    return s;
}

/* The batch slice that gives batch `part` of the card against a latency tenant that fills its own slices. */
static int64_t slice_for(const struct bh_govern *g, int64_t part, int64_t rest)
{
    const int64_t us = rest > 0 ? g->config.latency_slice_us * part / rest : g->config.slice_max_us;
    return bh_between(us, g->config.short_slice_us, g->config.slice_max_us);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A latency tenant's slice is never shorter: measured, a busy tenant came to nothing in 200 us. */
static int64_t least_us(const struct bh_govern *g)
{
    return larger(g->config.slice_min_us / 2, g->config.short_slice_us);
}

/* Wider than this does not help against what switching eats. */
static int64_t wide(const struct bh_govern *g, const struct sides *s)
{
    return 2 * slice_for(g, s->batch_ppm, s->latency_ppm);
}

/*
 * What nobody used is booked on whoever had the card last: beside batch that rests a small latency tenant seems to have most
 * of it. Surely its own is what is left if all of that was booked on it, and none on batch. (That what batch has not had is
 * its own would be wrong: where two light ones meet, changes between them take most of the card.)
 */
static int64_t surely_own(const struct bh_govern *g)
{
    return (int64_t)bh_ppm(g->latency.sum, g->time.sum) - (int64_t)g->unused_ppm;
}

/*
 * So long as its own is little, what nobody used counts for it. One that uses more takes from batch that waits for its
 * results, however much is left empty between.
 */
static int64_t excused(const struct bh_govern *g)
{
    return surely_own(g) < OWN_PPM ? bh_between((int64_t)g->unused_ppm - UNUSED_PPM, 0, WHOLE) : 0;
}

/* How much of the card batch is wronged by; negative: not at all. */
static int64_t wronged(const struct bh_govern *g, const struct sides *s)
{
    const int64_t latency = bh_ppm(s->latency_ns, g->sum_span_ns),
                  batch = bh_ppm(s->batch_ns, g->sum_span_ns);
    const int64_t over = latency - s->latency_ppm, under = s->batch_ppm - batch;
    if (s->batch_ppm == 0 || s->latency_ppm == 0)
        return -WHOLE;
    const int64_t eaten = g->batch_slice_us < wide(g, s) ? under - EATEN_PPM : -WHOLE;
    return larger(larger(over, eaten), s->floor_ppm ? s->floor_ppm - batch : over) - excused(g);
}

static void clear(struct bh_govern *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->at[i].sum_ns = 0;
    g->gone_ns = 0;
    g->sum_span_ns = -(g->config.lag_us * BH_US);
}

/* How far the ratio may go: the latency tenant's slices may be shortened, or they may not. */
static int64_t longest(const struct bh_govern *g, const struct sides *s)
{
    const int64_t batch = bh_ppm(s->batch_ns, g->sum_span_ns),
                  lost = WHOLE - batch - bh_ppm(s->latency_ns, g->sum_span_ns);
    return lost > batch + batch / 2 ? LONGEST_US
                                    : (int64_t)g->config.latency_slice_us * LONGEST_US / least_us(g);
}

static void feed_back(struct bh_govern *g, const struct sides *s)
{
    const int64_t error = wronged(g, s), was = g->batch_slice_us;
    const int64_t round = bh_between(was, 0, LONGEST_US) + g->config.latency_slice_us;
    const int64_t shared = s->latency_ppm * (WHOLE - s->latency_ppm) / WHOLE;
    const int64_t edge = shared * round / (g->sum_span_ns / BH_US) / (was > g->config.short_slice_us ? 1 : 4);
    /* Relative to the smaller side, which is the one that moves with the slice. */
    const int64_t smaller = s->batch_ppm < s->latency_ppm ? s->batch_ppm : s->latency_ppm;
    const int64_t relative = error * WHOLE / larger(smaller, BLIND_PART);
    const int64_t factor = WHOLE + bh_between(relative, -WHOLE / 2, WHOLE);

    if (error > 0 && g->unused_ppm > UNUSED_PPM && g->much_ns < SURE_NS && g->sum_span_ns < LOOK_MAX)
        return; /* what is unused is known of a second, which may be over */
    if (error >= -(DEAD_PPM + edge) && error <= DEAD_PPM + edge) {
        if (g->sum_span_ns >= LOOK_MAX)
            clear(g);
        return;
    }
    g->batch_slice_us =
        (uint32_t)bh_between(was * factor / WHOLE + (error > 0), g->config.short_slice_us, longest(g, s));
    clear(g);
    for (uint32_t i = 0; i < g->n && g->batch_slice_us != was; i++)
        g->at[i].corrections += bh_is_heavy(&g->at[i]);
}

static bool is_there(const struct bh_govern *g)
{
    bool found = false;
    for (uint32_t i = 0; i < g->n && !found; i++)
        found = g->at[i].latency;
    return found;
}

bool bh_latency_is_here(const struct bh_govern *g)
{
    return is_there(g) || g->kept_ns > KEPT_NS - LINGER_NS;
}

void bh_latency_note(struct bh_govern *g)
{
    g->kept_ns = is_there(g) ? KEPT_NS : bh_between(g->kept_ns - g->step_ns, 0, KEPT_NS);
}

/* Whoever comes and goes would have the others begin with nothing each time. */
static int64_t kept_slice(const struct bh_govern *g)
{
    const int64_t halvings = (KEPT_NS - g->kept_ns) / HALF_NS;
    return g->kept_ns ? (int64_t)g->batch_slice_us >> halvings : 0;
}

void bh_latency_begin(struct bh_govern *g)
{
    g->batch_slice_us = (uint32_t)larger(kept_slice(g), g->config.short_slice_us);
    g->look_ns = g->much_ns = 0;
    g->lost_ns = g->retry_ns = 0;
    g->retry_next = RETRY_NS;
    clear(g);
}

/* Much of the card was nobody's, as far as is known, and not empty either. */
static bool is_lost(const struct bh_govern *g)
{
    int64_t had = 0;
    for (uint32_t i = 0; i < g->n; i++)
        had += g->at[i].gpu.sum;
    return g->unused_ppm && WHOLE - g->unused_ppm - bh_ppm(had, g->time.sum) > LOST_PPM;
}

/*
 * Light ones that begin to work get next to nothing from slices as short as these, each as all the others: the card does little but change
 * between them. So they look light, and would for ever. Turns tell what they are. Where that changes nothing there are many small ones, and
 * it is asked seldom and seldomer.
 */
static void ask_the_light(struct bh_govern *g)
{
    uint32_t batch = 0, light = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        batch += g->at[i].active && !g->at[i].latency;
        light += g->at[i].light;
    }
    const bool lost = batch > 1 && light && is_lost(g);
    g->lost_ns = lost ? bh_between(g->lost_ns + g->step_ns, 0, LOST_NS) : 0;
    g->retry_ns = bh_between(g->retry_ns - g->step_ns, 0, g->retry_ns);
    if (!lost && g->retry_ns == 0)
        g->retry_next = RETRY_NS;
    if (g->lost_ns < LOST_NS || g->retry_ns > 0)
        return;
    for (uint32_t i = 0; i < g->n; i++)
        g->at[i].alone_known = g->at[i].alone_known && !g->at[i].light;
    g->lost_ns = 0;
    g->retry_ns = g->retry_next;
    g->retry_next = bh_between(g->retry_next * 2, 0, RETRY_MAX);
}

static void measure(struct bh_govern *g)
{
    struct sides s;
    g->sum_span_ns += g->step_ns;
    g->much_ns = surely_own(g) < OWN_PPM ? 0 : bh_between(g->much_ns + g->step_ns, 0, SURE_NS);
    for (uint32_t i = 0; i < g->n && g->sum_span_ns > 0; i++)
        g->at[i].sum_ns += g->at[i].sample_ns;
    s = weigh(g);
    if (s.blind) {
        const int64_t part = larger(s.floor_ppm, BLIND_PART);
        g->batch_slice_us = (uint32_t)slice_for(g, part, WHOLE - part);
        clear(g);
    } else if (g->look_ns >= LOOK_NS && g->sum_span_ns >= LOOK_NS / 2) {
        g->look_ns = 0;
        feed_back(g, &s);
    }
}

void bh_latency_decide(struct bh_govern *g)
{
    uint32_t batch, latency = g->config.latency_slice_us;
    if (is_there(g)) {
        g->look_ns += g->step_ns;
        measure(g);
        ask_the_light(g);
    }
    batch = g->batch_slice_us;
    if (batch > LONGEST_US) {
        latency = (uint32_t)bh_between((int64_t)latency * LONGEST_US / batch, least_us(g), latency);
        batch = LONGEST_US;
    }
    for (uint32_t i = 0; i < g->n; i++)
        g->at[i].slice_us = g->at[i].latency ? latency : batch;
}
