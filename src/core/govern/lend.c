/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lend.c - one that uses more of the card than a light tenant does, and less than half of it: beside the others, if that serves it.
 *
 * In its turns it rests for part of the time, and nobody has that; one that waits for its results works only while it has its turn, too.
 * Beside the others it waits for a slice of theirs each time it has work: work of some milliseconds gets nearly all that it asks for, or
 * all that its share allows (bh_is_held), and the others have the rest. Work of some microseconds comes to less than in turns. Which it is
 * cannot be known, so it is tried: it must have been the same for a while (who loads is not), and goes back to turns if it has less than
 * it had there, or wants more. The next try is later each time.
 *
 * It is tried only beside such as fill the card: where nobody does, what one has beside others is not known. Who comes later and leaves
 * gaps is looked at without its visits (turns.c): by them it would wait, and be taken for one that wants less.
 */
#include "core/govern/govern_inside.h"

#define STEADY_NS  (3000 * BH_MS)
#define TRIED_NS   (1500 * BH_MS) /* until the last second is all of the try */
#define BACK_NS    (5000 * BH_MS)
#define BACK_MAX   (160000 * BH_MS)
#define SERVED_NS  (60000 * BH_MS) /* so long beside the others: it was no mistake */
#define BEGIN_PPM  450000u         /* with more there is little left to lend */
#define END_PPM    500000u
#define IDLE_NS    (100 * BH_MS) /* who rests has less because it wants less */
#define LEAST_PART 85            /* in a hundred of what it had in its turns */
#define FILLS_PPM  (BH_USE_FULL * 1000u)

uint32_t bh_lend_most(const struct bh_member *m)
{
    return m->beside ? END_PPM : 0;
}

/* One that rests in its turn gives it up, and is not away for that. */
static bool is_away(const struct bh_govern *g, const struct bh_member *m)
{
    return !m->active && m->away_ns >= g->config.away_us * BH_US;
}

/* What it had beside the others is not what it wants, so that is learnt anew, in turns. */
static void go_back(struct bh_member *m)
{
    m->back_ns = m->beside_ns >= SERVED_NS ? 0 : bh_between(m->back_ns * 2, BACK_NS, BACK_MAX);
    m->steady_ns = -m->back_ns;
    m->beside = m->alone_known = false;
}

/* For a while it has no work at all: that is no mistake, if it was served until then. */
static void go_away(struct bh_member *m)
{
    if (m->beside && m->beside_ns < TRIED_NS)
        go_back(m);
    m->steady_ns = bh_between(m->steady_ns, m->steady_ns, 0);
    m->beside = false;
}

static void try_it(struct bh_member *m, uint32_t had_ppm)
{
    m->beside = true;
    m->had_ppm = had_ppm;
    m->beside_ns = 0;
}

static bool uses_a_part(const struct bh_member *m)
{
    return m->alone_known && m->alone_ppm >= BH_LIGHT_PPM && m->alone_ppm < BEGIN_PPM;
}

/* Of all others that take turns: each fills the card, or may come to run beside the others, too; and one does fill it. */
static bool others_fill(const struct bh_govern *g, const struct bh_member *m)
{
    uint32_t fill = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *o = &g->at[i];
        if (o == m || !bh_is_heavy(o))
            continue;
        const bool fills = o->alone_known && o->alone_ppm >= FILLS_PPM;
        if (!fills && !uses_a_part(o))
            return false;
        fill += fills;
    }
    return fill > 0;
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
        const bool more = m->alone_known && m->alone_ppm >= END_PPM;
        m->beside_ns += m->light && !m->paused ? g->step_ns : 0;
        if (!may || worse || more)
            go_back(m);
    } else if (!may || (m->alone_known && !m->doubt && !uses_a_part(m))) {
        m->steady_ns = bh_between(m->steady_ns, m->steady_ns, 0);
    } else if (m->alone_known && !m->doubt) {
        m->steady_ns += g->step_ns;
        if (m->steady_ns >= STEADY_NS && others_fill(g, m))
            try_it(m, got);
    }
}
