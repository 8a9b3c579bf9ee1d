/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lend.c - one that uses more of the card than a light tenant does, and less than half of it: beside the others, if that serves it.
 *
 * In its turns it rests for part of the time, and nobody has that; one that waits for its results works only while it has its turn, too.
 * Beside the others it waits for a slice of theirs each time it has work: work of some milliseconds gets nearly all that it asks for, and
 * the others have the rest. Work of some microseconds comes to less than in turns. Which it is cannot be known, so it is tried: it must
 * have been the same for a while (who loads is not), and goes back to turns if it has less than it had there, or wants more. The next try
 * is later each time.
 *
 * It is tried only beside such as fill the card: where nobody does, what one has beside others is not known. Who comes later and leaves
 * gaps is looked at without its visits (turns.c): by them it would wait, and be taken for one that wants less. One that wants more than
 * its share is held to it by pauses (bh_is_held), and tried only if it is the only one: what changes and pauses cost is the others' loss.
 */
#include "core/govern/govern_inside.h"

#define STEADY_NS  (3000 * BH_MS)
#define TRIED_NS   (1500 * BH_MS) /* until the last second is all of the try */
#define BACK_NS    (5000 * BH_MS)
#define BACK_MAX   (160000 * BH_MS)
#define SERVED_NS  (60000 * BH_MS) /* so long beside the others: it was no mistake */
#define BESIDE_PPM 450000u         /* with more there is little left to lend */
#define IDLE_NS    (100 * BH_MS)   /* who rests has less because it wants less */
#define HAD_PART   60              /* in a hundred: less of what it asks for serves nobody */
#define LEAST_PART 85              /* in a hundred of what it had in its turns */
#define FILLS_PPM  (BH_USE_FULL * 1000u)

/* In tenths: above the one it takes turns, beside the others it may come to the other. */
enum { BEGIN_TENTHS = 8, END_TENTHS = 9 };

uint32_t bh_lend_most(const struct bh_member *m)
{
    return m->beside ? BESIDE_PPM / BEGIN_TENTHS * END_TENTHS : 0;
}

/* One that rests in its turn gives it up, and is not away for that. */
static bool is_away(const struct bh_govern *g, const struct bh_member *m)
{
    return !m->active && m->away_ns >= g->config.away_us * BH_US;
}

void bh_lend_shares(struct bh_govern *g)
{
    uint64_t weights = 0;
    for (uint32_t i = 0; i < g->n; i++)
        weights += is_away(g, &g->at[i]) ? 0 : g->at[i].weight;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        m->fair_ppm = is_away(g, m) ? 0 : (uint32_t)(m->weight * (uint64_t)BH_FAIR_WHOLE / weights);
        if (m->cap_ppm && m->cap_ppm < m->fair_ppm)
            m->fair_ppm = m->cap_ppm;
    }
}

/* What it had beside the others is not what it wants, so that is learnt anew, in turns. */
static void go_back(struct bh_member *m)
{
    m->back_ns = m->beside_ns >= SERVED_NS ? 0 : bh_between(m->back_ns * 2, BACK_NS, BACK_MAX);
    m->steady_ns = -m->back_ns;
    m->beside = m->alone_known = false;
}

/* It does something else: no try until it has been the same for a while. */
static void begin_again(struct bh_member *m)
{
    m->steady_ns = bh_between(m->steady_ns, m->steady_ns, 0);
}

/* For a while it has no work at all: that is no mistake, if it was served until then. */
static void go_away(struct bh_member *m)
{
    if (m->beside && m->beside_ns < TRIED_NS)
        go_back(m);
    begin_again(m);
    m->beside = false;
}

/* What it uses alone, as far as its share goes. */
static uint32_t asks(const struct bh_member *m)
{
    return m->alone_ppm < m->target_ppm ? m->alone_ppm : m->target_ppm;
}

static uint32_t others_here(const struct bh_govern *g, const struct bh_member *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++)
        n += &g->at[i] != m && !is_away(g, &g->at[i]);
    return n;
}

static void try_it(const struct bh_govern *g, struct bh_member *m, uint32_t got_ppm)
{
    const uint32_t part = asks(m) / 100 * HAD_PART;
    m->beside = true;
    m->had_ppm = got_ppm > part ? got_ppm : part;
    m->beside_n = others_here(g, m);
    m->beside_ns = 0;
}

static bool uses_a_part(const struct bh_member *m)
{
    return m->alone_known && m->alone_ppm >= BH_LIGHT_PPM && m->alone_ppm < BESIDE_PPM;
}

static bool within_share(const struct bh_member *m, uint32_t tenths)
{
    return m->alone_ppm < m->fair_ppm / 10 * tenths;
}

static bool may_lend(const struct bh_member *m)
{
    return uses_a_part(m) && within_share(m, BEGIN_TENTHS);
}

static bool fills(const struct bh_member *m)
{
    return m->alone_known && m->alone_ppm >= FILLS_PPM;
}

/* Of all others that take turns: each fills the card, or may come to run beside the others, too; and one does fill it. */
static bool others_fill(const struct bh_govern *g, const struct bh_member *m)
{
    uint32_t fill = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *o = &g->at[i];
        if (o == m || !bh_is_heavy(o))
            continue;
        if (!fills(o) && !may_lend(o))
            return false;
        fill += fills(o);
    }
    return fill > 0;
}

/* Nobody else runs so, and nobody is known to leave gaps in its turns. */
static bool is_only(const struct bh_govern *g, const struct bh_member *m)
{
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *o = &g->at[i];
        if (o != m && (o->beside || (bh_is_heavy(o) && o->alone_known && !fills(o))))
            return false;
    }
    return true;
}

/* It leaves some of its share; or, the only one, it has much less of that in its turns than it asks for. */
static bool may_try(const struct bh_govern *g, const struct bh_member *m, uint32_t got_ppm)
{
    const bool misses = uses_a_part(m) && got_ppm < asks(m) / 10 * BEGIN_TENTHS;
    return others_fill(g, m) && (may_lend(m) || (misses && is_only(g, m)));
}

/* Its visits would hide the gaps of who comes, so that one is seen without them first. */
static bool stays_only(const struct bh_govern *g, const struct bh_member *m)
{
    return is_only(g, m) && others_here(g, m) <= m->beside_n;
}

static bool wants_more(const struct bh_govern *g, const struct bh_member *m)
{
    return m->alone_known &&
           (m->alone_ppm >= bh_lend_most(m) || (!within_share(m, END_TENTHS) && !stays_only(g, m)));
}

void bh_lend_watch(const struct bh_govern *g, struct bh_member *m)
{
    const uint32_t got = bh_ppm(m->gpu.sum, g->time.sum);
    const bool may = !m->latency && g->mode != BH_GOVERN_BESIDE_LATENCY;
    if (is_away(g, m)) {
        go_away(m);
    } else if (m->beside) {
        const bool worse =
            m->beside_ns >= TRIED_NS && m->idle_ns < IDLE_NS && got < m->had_ppm / 100 * LEAST_PART;
        m->beside_ns += m->light && !m->paused ? g->step_ns : 0;
        if (!may || worse || wants_more(g, m))
            go_back(m);
    } else if (!may || (m->alone_known && !m->doubt && !uses_a_part(m))) {
        begin_again(m);
    } else if (m->alone_known && !m->doubt) {
        m->steady_ns += g->step_ns;
        if (m->steady_ns >= STEADY_NS && may_try(g, m, got))
            try_it(g, m, got);
    }
}
