/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c - one tenant at a time, each for its part of the time.
 *
 * Deficit round robin with carried debt: everybody earns its target while time passes, the holder pays for
 * the time it holds, and the turn goes to whoever is owed most once the holder is behind it by a lead. So
 * an overrun of one turn is paid back in the next, and shares are exact whatever the grain of the steps.
 * Where caps leave a part of the card empty, the empty time is one more in the queue, with nobody behind
 * it.
 */
#include "core/govern/govern_inside.h"

#define CREDIT_MAX    (200 * BH_MS)
#define DEBT_NS       (500 * BH_MS)
#define LONG_AGO      (1000 * BH_MS)
#define EMPTY_LEAST   5000u         /* less than this is rounding, not a cap */
#define CALL_NS       (1 * BH_MS)   /* a pause or a resume, and room to spare; made one after the other */
#define LOOK_MOST     (650 * BH_MS) /* of a holder in doubt; two of the driver's samples need 400 to 600 */
#define OWED_MOST     (1000 * BH_MS)
#define PAY_BACK      10000u         /* of the card: the share it has meanwhile is right within a point */
#define APART_LONG    (1000 * BH_MS) /* without turns: what one waited for is made up for */
#define LEARN_LEAST   (4 * BH_MS)
#define LEARN_OFTEN   (40 * BH_MS)
#define RELIED_NS     (60 * BH_MS)
#define DRY_TURNS     3
#define DRY_TURNS_NEW 2
#define RUNS_DRY      200000u
#define OTHER_PPM     200000
#define NO_GAPS       930000u
#define GAPS_MOST     200000u /* who uses less of its turn than this is charged for the turn */

static bool at_cap(const struct bh_member *m)
{
    return m->cap_ppm && m->target_ppm >= m->cap_ppm;
}

/* Part of the time that nobody may use: only where all who take turns are held by their caps. What a latency tenant seems to have is
 * not taken off: it may be just that part. If it really uses it, earn() spreads what nobody could have. */
static bool has_empty(const struct bh_govern *g)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        sum += g->at[i].latency ? 0 : g->at[i].target_ppm;
        if (g->at[i].in_turns && !at_cap(&g->at[i]))
            return false;
    }
    return sum + EMPTY_LEAST <= BH_FAIR_WHOLE;
}

static struct bh_member *holder_of(struct bh_govern *g)
{
    for (uint32_t i = 0; i < g->n && g->holder; i++) {
        if (g->at[i].id == g->holder)
            return &g->at[i];
    }
    return NULL;
}

static bool relied_on(const struct bh_member *m)
{
    return m->alone_known && m->unlearnt_ns < RELIED_NS;
}

/* What others left of a step to the holder: their time, and a change of the card for each. */
static int64_t left_to(const struct bh_govern *g, const struct bh_member *h)
{
    int64_t left = g->step_ns;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_member *m = &g->at[i];
        if (m != h && m->sample_ns > 0)
            left -= m->sample_ns + g->config.switch_us * BH_US * 5 / 8; /* a visit in a gap costs less */
    }
    return left;
}

static void forget_turn(struct bh_member *m)
{
    m->turn_gpu_ns = m->turn_free_ns = 0;
    m->turn_least_ppm = BH_FAIR_WHOLE;
}

/* By one that uses much: who waits for its results waits for that one, too, and uses less than it would. */
static bool is_visited(const struct bh_govern *g, const struct bh_member *m)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (&g->at[i] != m && g->at[i].beside)
            return true;
    return false;
}

/*
 * Who leaves even gaps uses its turn at a steady rate. Who had work waiting from before and then runs dry
 * does not: it needs no more than it gets in all.
 */
static void learn(const struct bh_govern *g, struct bh_member *m)
{
    uint32_t now = bh_ppm(m->turn_gpu_ns, m->turn_free_ns);
    const uint32_t in_all = bh_ppm(m->gpu.sum, m->age_ns < g->time.sum ? m->age_ns : g->time.sum);
    const uint32_t need = in_all > m->turn_least_ppm ? in_all : m->turn_least_ppm;
    if (m->turn_free_ns < LEARN_LEAST || bh_is_looked_at(m))
        return;
    /* once may be chance */
    m->dry_turns = m->turn_least_ppm < RUNS_DRY ? m->dry_turns + 1 : 0;
    const uint32_t sure = m->certain ? 1 : m->alone_known ? DRY_TURNS : DRY_TURNS_NEW;
    const bool was_dry = m->dry, dry = m->dry_turns >= sure;
    if (m->dry_turns && !dry) {
        forget_turn(m);
        return;
    }
    if (dry && need < now)
        now = need;
    if (m->alone_known && now < m->alone_ppm && is_visited(g, m)) {
        m->unlearnt_ns = 0;
        forget_turn(m);
        return;
    }
    const int64_t change = (int64_t)now - m->alone_ppm;
    /* slowly against noise, at once where it is no noise */
    const bool other = change > OTHER_PPM || change < -OTHER_PPM;
    m->alone_ppm = other ? m->alone_ppm / 2 + now / 2 : (uint32_t)(m->alone_ppm + change / 8);
    if (!m->alone_known || dry || was_dry)
        m->alone_ppm = now;
    m->dry = dry;
    if (dry) /* what it did in its turns says nothing about how much it does */
        m->fast_ppm = now;
    m->alone_known = true;
    m->certain = false;
    m->unlearnt_ns = 0;
    forget_turn(m);
}

static void watch_turn(const struct bh_govern *g, struct bh_member *h)
{
    const int64_t left = left_to(g, h);
    const bool fresh = h->has_sample && h->span_ns <= g->step_ns;
    /* a step that others had half of is no turn of its own */
    if (fresh && left > g->step_ns / 2 && g->held_ns >= g->settle_ns + g->config.lag_us * BH_US) {
        const uint32_t used = bh_ppm(h->sample_ns, left);
        h->turn_gpu_ns += h->sample_ns;
        h->turn_free_ns += left;
        h->turn_least_ppm = used < h->turn_least_ppm ? used : h->turn_least_ppm;
    }
}

/*
 * What it may owe: so much as it earns back in half a second. A small share that got too much of the card while it came would else wait
 * for many seconds until it is even, which is right on paper and starves it.
 */
static int64_t debt_most(const struct bh_govern *g, const struct bh_member *m)
{
    return bh_between(bh_part(DEBT_NS, m->target_ppm), g->config.lead_us * BH_US, CREDIT_MAX);
}

/* Everybody in the queue earns; what is left over or short is spread. */
static void earn(struct bh_govern *g, int64_t spent_ns)
{
    int64_t left = spent_ns, owed = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        if (!m->in_turns)
            continue;
        const int64_t ns = bh_part(g->step_ns, m->target_ppm),
                      back = bh_between(m->owed_ns, 0, bh_between(ns / 2, 0, bh_part(g->step_ns, PAY_BACK)));
        m->owed_ns -= back;
        m->credit_ns += ns - back;
        left -= ns;
        owed += m->target_ppm;
    }
    if (has_empty(g)) {
        /* What the empty part cannot owe any more somebody used, such as a latency tenant: that is spread, too. */
        const int64_t all = g->empty_credit_ns + left;
        g->empty_credit_ns = bh_between(all, -CREDIT_MAX, CREDIT_MAX);
        left = all < -CREDIT_MAX ? all + CREDIT_MAX : 0;
    }
    for (uint32_t i = 0; i < g->n && owed; i++) {
        if (g->at[i].in_turns)
            g->at[i].credit_ns += left / BH_US * (int64_t)g->at[i].target_ppm / owed * BH_US;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const int64_t beyond = -debt_most(g, m) - m->credit_ns;
        if (beyond > 0 && m->id == g->holder && m->doubt)
            m->owed_ns = bh_between(m->owed_ns + beyond, 0, OWED_MOST);
        m->credit_ns = bh_between(m->credit_ns, -debt_most(g, m), CREDIT_MAX);
    }
}

/*
 * What a turn cost: the GPU time it brought, with the gaps this tenant always leaves. While that is not
 * known, all the time it held. By GPU time, the moment when two overlap is charged to whoever used it, and
 * late samples to whoever they belong to.
 */
static int64_t price(const struct bh_govern *g, const struct bh_member *m, int64_t free_ns)
{
    if (m->price_ppm && !m->doubt &&
        m->seen) { /* else nobody says what it had, and a holder that costs nothing would hold for ever */
        const int64_t with_gaps = m->sample_ns / BH_US * BH_FAIR_WHOLE / m->price_ppm * BH_US;
        return bh_between(with_gaps, 0, m->span_ns + g->config.lag_us * BH_US);
    }
    return m->id == g->holder ? free_ns : 0;
}

/* What those who take no turns leave of the step; never nothing, for a holder that costs nothing would hold for ever. */
static int64_t free_time(struct bh_govern *g)
{
    const bool empty = has_empty(g);
    int64_t free_ns = g->step_ns;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        if (g->turns && m->in_turns)
            continue;
        bh_window_add(g, &m->held, m->sample_ns);
        /* The time that caps leave empty is booked on a latency tenant, and must not make turns cheaper. */
        const int64_t had = m->latency && empty ? m->sample_ns : bh_part(g->step_ns, m->fast_ppm);
        free_ns -= m->paused ? 0 : had;
    }
    return bh_between(free_ns, g->step_ns / 8, g->step_ns);
}

void bh_turns_charge(struct bh_govern *g)
{
    const int64_t free_ns = free_time(g);
    struct bh_member *h = holder_of(g);
    int64_t spent = 0;

    if (!g->turns)
        return;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const int64_t ns = m->in_turns ? price(g, m, free_ns) : 0;
        m->credit_ns -= ns;
        m->unlearnt_ns = bh_between(m->unlearnt_ns + ns, 0, LONG_AGO);
        bh_window_add(g, &m->held, ns);
        spent += ns;
    }
    if (!g->holder && spent < free_ns) {
        g->empty_credit_ns -= free_ns - spent;
        spent = free_ns;
    }
    earn(g, spent);
    if (h && h->in_turns) {
        watch_turn(g, h);
        if (h->turn_free_ns >= LEARN_OFTEN)
            learn(g, h);
    }
    g->held_ns = bh_between(g->held_ns + g->step_ns, 0, LONG_AGO);
}

void bh_turns_begin(struct bh_govern *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        m->in_turns = false;
        if (!bh_is_held(m)) /* else turns that begin all the time would forgive all it owes */
            m->credit_ns = 0;
        m->turns_first = false; /* its doubt is of what was before: of who loaded, and of slices */
        forget_turn(m);
    }
    g->holder = 0;
    bh_sense_turns_first(g);
    g->held_ns = g->held_before_ns = LONG_AGO;
    g->empty_credit_ns = 0;
}

/* How all who take turns stand, but for this one. */
static int64_t level_of(const struct bh_govern *g, const struct bh_member *m)
{
    int64_t sum = 0, n = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const bool other = g->at[i].in_turns && &g->at[i] != m;
        sum += other ? g->at[i].credit_ns : 0;
        n += other;
    }
    return n ? sum / n : 0;
}

/*
 * Who comes takes its place in the queue: first when it was away. Else level with the others, or behind them by what it owed when it left
 * them, or has had too much since while it was held. Where turns begin again soon after they ended, as they do if one rests in each of
 * its own and is the only one that needs them, each is owed what it waited for: level, they would never come to the last one.
 */
static struct bh_member *line_up(struct bh_govern *g)
{
    struct bh_member *first = NULL;
    int64_t top = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const bool waits = bh_is_heavy(m);
        if (waits && !m->in_turns) {
            if (m->returned || g->apart_ns >= APART_LONG)
                m->waited_ns = 0;
            if (m->returned || !g->turns)
                m->credit_ns = bh_part(m->waited_ns, m->target_ppm);
            else
                m->credit_ns = level_of(g, m) + (m->credit_ns < 0 ? m->credit_ns : 0);
            m->price_ppm = 0;
        } else if (m->in_turns && !waits) {
            m->credit_ns -= level_of(g, m);
        }
        m->in_turns = waits;
        if (waits && m->credit_ns > top)
            top = m->credit_ns;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        if (!m->in_turns || !m->returned || at_cap(m))
            continue;
        m->credit_ns = top + g->config.lead_us * BH_US;
        if (!first)
            first = m;
    }
    return first;
}

/* Of those who are owed the same (as much as may be, where they give up their turns early and pay little) it is whoever waits longest: else
 * the last of three or more would wait for ever. */
static bool comes_before(const struct bh_member *a, const struct bh_member *b)
{
    return a->credit_ns == b->credit_ns ? a->waited_ns > b->waited_ns : a->credit_ns > b->credit_ns;
}

static struct bh_member *most_owed(struct bh_govern *g)
{
    struct bh_member *best = NULL;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->at[i].in_turns && (!best || comes_before(&g->at[i], best)))
            best = &g->at[i];
    }
    return best;
}

/* Nearly all of its time is all of it: the rest was visits of others, not gaps of its own. */
static uint32_t rate_of(const struct bh_member *m)
{
    return m->alone_ppm >= NO_GAPS ? BH_FAIR_WHOLE : m->alone_ppm;
}

static void hand_over(struct bh_govern *g, uint64_t to)
{
    struct bh_member *h = holder_of(g);
    if (h)
        learn(g, h);
    if (h && bh_is_looked_at(h) && g->held_ns >= LOOK_MOST)
        bh_sense_looked(h);
    if (h)
        h->certain = false;
    if (g->holder == to)
        return;
    g->holder = to;
    h = holder_of(g);
    if (h) /* not in the middle: a late sample would be charged on top of the time it belongs to */
        h->price_ppm = h->seen && !h->dry && h->alone_ppm >= GAPS_MOST && relied_on(h) ? rate_of(h) : 0;
    g->held_before_ns = g->held_ns;
    g->held_ns = 0;
}

/* Somebody must be seen alone. Where caps leave the rest to nobody there is nothing to find; beside a latency tenant nobody is alone, no
 * look ends a doubt, and those who are not looked at would get next to nothing between all the looks. */
static bool is_looking(const struct bh_govern *g, const struct bh_member *h)
{
    const bool finds = g->mode != BH_GOVERN_BESIDE_LATENCY && !has_empty(g);
    return h && finds && (bh_is_looked_at(h) || h->certain);
}

/* No turn is shorter than this: long enough to learn from, where that is due. */
static int64_t shortest_turn(const struct bh_govern *g, const struct bh_member *h)
{
    const int64_t usual = 2 * (int64_t)g->config.lead_us * BH_US;
    const int64_t enough = g->settle_ns + g->config.lag_us * BH_US + 2 * g->step_ns;
    if (is_looking(g, h)) /* what was found is worth learning, too */
        return LOOK_MOST + (h->certain ? LEARN_OFTEN + 2 * g->step_ns : 0);
    return h && h->seen && !relied_on(h) && enough > usual ? enough : usual;
}

static void choose_holder(struct bh_govern *g)
{
    const struct bh_member *first = line_up(g), *best = most_owed(g), *h = holder_of(g);
    const bool empty = has_empty(g), calm = g->mode == BH_GOVERN_BESIDE_LATENCY;
    const bool valid = g->holder ? h && h->in_turns : empty;
    const int64_t turn = (calm ? g->config.calm_turn_us : g->config.turn_us) * BH_US;
    const int64_t lead = g->config.lead_us * BH_US;
    const bool nobody = empty && (!best || g->empty_credit_ns > best->credit_ns);
    const uint64_t next = nobody || !best ? 0 : best->id;
    const int64_t owed = next ? best->credit_ns : g->empty_credit_ns;
    const int64_t has = g->holder && h ? h->credit_ns : g->empty_credit_ns;

    if (first && first->id != g->holder)
        hand_over(g, first->id);
    else if (!valid)
        hand_over(g, next);
    else if (owed - has >= lead && g->held_ns >= shortest_turn(g, h) &&
             g->held_ns + g->held_before_ns >= 2 * turn)
        hand_over(g, next);
}

void bh_turns_decide(struct bh_govern *g)
{
    int64_t calls = 0;
    choose_holder(g);
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const bool was = m->paused;
        if (!m->in_turns)
            continue;
        m->paused = m->id != g->holder;
        m->waited_ns = m->paused ? bh_between(m->waited_ns + g->step_ns, 0, 10000 * BH_MS) : 0;
        m->corrections += m->paused && !was;
        calls += m->paused != was;
    }
    /* until all calls are made, others still run in this turn */
    g->settle_ns = calls ? calls * CALL_NS : g->settle_ns;
}

/* Nobody knows yet what the holder uses, and with one that uses much beside it nobody would. */
static bool is_learning(struct bh_govern *g)
{
    const struct bh_member *h = g->turns ? holder_of(g) : NULL;
    return h && !h->alone_known;
}

/* A visit of some milliseconds costs a tenth of it in changes of the card. It pays for half of them: all would be the others' loss. */
static int64_t cost_beside(const struct bh_member *m)
{
    return m->beside ? m->sample_ns + m->sample_ns / 20 : m->sample_ns;
}

void bh_turns_gate(struct bh_govern *g)
{
    if (g->config.slices_only) /* and nobody has any */
        return;
    const int64_t lead = g->config.lead_us * BH_US;
    /* whoever runs beside who is looked at would rest on the card as well */
    const bool looking = g->turns && is_looking(g, holder_of(g)), learning = is_learning(g);
    for (uint32_t i = 0; i < g->n; i++) {
        struct bh_member *m = &g->at[i];
        const bool was = m->paused;
        if (m->in_turns)
            continue;
        const bool in_the_way = m->light && (looking || (learning && m->beside));
        const bool held = m->cap_ppm || bh_is_held(m);
        const uint32_t most = m->cap_ppm && !m->light ? m->cap_ppm : m->target_ppm;
        if (!held || bh_is_heavy(m)) {
            m->gated = false;
            m->paused = in_the_way;
            m->corrections += m->paused && !was;
            continue;
        }
        /* Blind, it is charged for all the time it might have run. */
        m->credit_ns += bh_part(g->step_ns, most) - (m->seen || m->paused ? cost_beside(m) : g->step_ns);
        m->credit_ns = bh_between(m->credit_ns, -CREDIT_MAX, 2 * lead);
        m->gated = m->active && (m->gated ? m->credit_ns < 0 : m->credit_ns < -lead);
        m->paused = m->gated || in_the_way;
        m->corrections += m->paused && !was;
    }
}
