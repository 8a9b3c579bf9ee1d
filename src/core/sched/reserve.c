/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.c - who gets a reservation, and whom it holds back.
 *
 * Reservations are found anew before each cycle: they are a function of the state, nothing is kept that could
 * be wrong later. Of the blocked, the highest band that counts comes first (asking for one is not enough), then who
 * has waited longest.
 */
#include "core/sched/reserve.h"

#include "core/sched/sched_inside.h"

enum { RESERVE_MOST = 64, SOON_MS = 1 };

struct bh_reserve {
    struct bh_reserve_config config;
    struct bh_reservation at[RESERVE_MOST];
    size_t n;
    BH_VEC(uint64_t) ends;  /* by hold, also those to come */
    BH_VEC(uint64_t) times; /* ascending, each once */
    BH_VEC(uint8_t) held;   /* by line: reservation + 1 for which it was held back; 0: none */
};

struct bh_reserve *bh_reserve_new(const struct bh_reserve_config *c)
{
    struct bh_reserve *r = bh_alloc(1, sizeof(*r));
    r->config = *c;
    if (r->config.most > RESERVE_MOST)
        r->config.most = RESERVE_MOST;
    return r;
}

void bh_reserve_free(struct bh_reserve *r)
{
    if (!r)
        return;
    bh_vec_fini(&r->ends);
    bh_vec_fini(&r->times);
    bh_vec_fini(&r->held);
    free(r);
}

/* ---- when what runs will be gone ---- */

static uint64_t later(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms > BH_NEVER_MS - b_ms ? BH_NEVER_MS : a_ms + b_ms;
}

/* Who has run for longer than it said, and who was told to go, may be gone any moment. */
static uint64_t end_of(const struct bh_reserve *r, const struct bh_gang *g, uint64_t now_ms)
{
    const uint64_t runtime = g->runtime_ms ? g->runtime_ms : r->config.assumed_ms;
    if (g->state == BH_GANG_LEAVES || g->state == BH_GANG_ENDS)
        return later(now_ms, SOON_MS);
    if (!runtime)
        return BH_NEVER_MS;
    const uint64_t end = later(g->state == BH_GANG_BOUND ? now_ms : g->since_ms, runtime);
    return end > now_ms ? end : later(now_ms, SOON_MS);
}

static int by_time(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Releasing ones are on their way out. What is not there yet will be somebody's whose end is not known here. */
static void see_ends(struct bh_reserve *r, const struct bh_sched *s, uint64_t now_ms)
{
    const struct bh_shelf *shelf = bh_sched_shelf(s);
    bh_vec_room(&r->ends, shelf->holds.cap);
    r->ends.n = shelf->holds.cap;
    r->times.n = 0;
    for (size_t i = 0; i < r->ends.n; i++)
        r->ends.at[i] = i < shelf->holds.n && shelf->holds.at[i].state == BH_HOLD_RELEASING
                            ? later(now_ms, SOON_MS)
                            : BH_NEVER_MS;
    *bh_vec_push(&r->times) = later(now_ms, SOON_MS);
    for (size_t slot = 0; slot < bh_sched_slots(s); slot++) {
        const struct bh_gang *g = bh_sched_slot(s, slot);
        if (g->state == BH_GANG_FREE || g->first_hold == BH_NONE)
            continue;
        /* What a parked job left behind stays until it goes on; that is not known. */
        const uint64_t end = g->state == BH_GANG_PENDING ? BH_NEVER_MS : end_of(r, g, now_ms);
        for (uint32_t h = g->first_hold; h != BH_NONE; h = bh_sched_owner(s, h)->next)
            r->ends.at[h] = end;
        if (end != BH_NEVER_MS)
            *bh_vec_push(&r->times) = end;
    }
    qsort(r->times.at, r->times.n, sizeof(*r->times.at), by_time);
    size_t n = 0;
    for (size_t i = 0; i < r->times.n; i++)
        if (!n || r->times.at[i] != r->times.at[n - 1])
            r->times.at[n++] = r->times.at[i];
    r->times.n = n;
}

/* ---- who is blocked ---- */

/* As between queues in the order of service: only queues by priority have bands, as far as their budgets last. */
static enum bh_priority band_of(const struct bh_sched *s, const struct bh_gang *g, uint64_t now_ms)
{
    const struct bh_shape *shape = bh_sched_shape(s, g);
    uint32_t binding;
    if (bh_queue_get(&s->queues, g->queue)->config.model != BH_QUOTA_PRIORITY)
        return BH_PRIORITY_NORMAL;
    return bh_queue_band(&s->queues, g->queue, (enum bh_priority)shape->band, shape->least.at[BH_RES_GPU],
                         now_ms, &binding);
}

static bool goes_first(const struct bh_sched *s, uint32_t line_a, uint32_t line_b, uint64_t now_ms)
{
    const struct bh_gang *a = bh_sched_first(s, &s->lines.at[line_a]),
                         *b = bh_sched_first(s, &s->lines.at[line_b]);
    const enum bh_priority band_a = band_of(s, a, now_ms), band_b = band_of(s, b, now_ms);
    if (band_a != band_b)
        return band_a > band_b;
    return a->submit_ms != b->submit_ms ? a->submit_ms < b->submit_ms : a->id < b->id;
}

/* The first `most` of the blocked lines, kept in order as they are met. */
static void see_blocked(struct bh_reserve *r, const struct bh_sched *s, uint64_t now_ms)
{
    r->n = 0;
    for (uint32_t i = 0; i < s->lines.n; i++) {
        const struct bh_line *l = &s->lines.at[i];
        const struct bh_gang *first = l->heap.n ? bh_sched_first(s, l) : NULL;
        size_t at = r->n;
        if (!first || l->stuck != BH_STUCK_ROOM || first->parked)
            continue;
        while (at && goes_first(s, i, r->at[at - 1].line, now_ms))
            at--;
        if (at == r->config.most)
            continue;
        if (r->n < r->config.most)
            r->n++;
        memmove(&r->at[at + 1], &r->at[at], (r->n - 1 - at) * sizeof(r->at[0]));
        r->at[at] = (struct bh_reservation){.job = first->id, .line = i};
    }
}

void bh_reserve_refresh(struct bh_reserve *r, const struct bh_sched *s, uint64_t now_ms)
{
    size_t n = 0;
    bh_vec_room(&r->held, s->lines.n);
    r->held.n = s->lines.n;
    if (r->held.n)
        memset(r->held.at, 0, r->held.n);
    see_ends(r, s, now_ms);
    see_blocked(r, s, now_ms);
    for (size_t i = 0; i < r->n; i++) {
        struct bh_reservation *x = &r->at[i];
        const struct bh_gang *g = bh_sched_job(s, x->job);
        if (bh_shadow_find(bh_sched_shelf(s), r->ends.at, r->times.at, r->times.n, bh_sched_shape(s, g),
                           &x->shadow))
            r->at[n++] = *x;
    }
    r->n = n;
}

const struct bh_reservation *bh_reserve_list(const struct bh_reserve *r, size_t *ret_n)
{
    *ret_n = r->n;
    return r->at;
}

const struct bh_reservation *bh_reserve_before(const struct bh_reserve *r, uint32_t line)
{
    return line < r->held.n && r->held.at[line] ? &r->at[r->held.at[line] - 1] : NULL;
}

/* ---- who may go ahead ---- */

static bool is_inside(const struct bh_shelf *s, const struct bh_place *places, uint32_t n, uint32_t domain)
{
    if (domain == BH_NONE)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (bh_shelf_domain_of(s, places[i].spot.node, (enum bh_level)s->domains.at[domain].level) == domain)
            return true;
    return false;
}

/*
 * Its places are on the shelf already, and so are those of all that this cycle has started. None of them was there at the
 * refresh, so they stay for ever as far as is known here; the next refresh knows better.
 */
static bool delays(const struct bh_reserve *r, const struct bh_sched *s, const struct bh_reservation *x,
                   const struct bh_gang *g, const struct bh_place *places, uint32_t n, uint64_t now_ms)
{
    const struct bh_gang *first = bh_sched_job(s, x->job);
    const bool grows = g->state != BH_GANG_PENDING;
    const uint64_t since_ms = grows ? g->since_ms : now_ms;
    if ((!grows && g->line == x->line) || !first || first->state != BH_GANG_PENDING)
        return false;
    if (g->runtime_ms && later(since_ms, g->runtime_ms) <= x->shadow.start_ms)
        return false;
    if (!is_inside(bh_sched_shelf(s), places, n, x->shadow.domain))
        return false;
    if (!grows) {
        const struct bh_turn mine = bh_line_turn(s, &s->lines.at[g->line]),
                             its = bh_line_turn(s, &s->lines.at[x->line]);
        enum bh_turn_key key;
        if (bh_turn_compare(bh_sched_queues(s), &mine, &its, now_ms, &key) < 0)
            return false;
    }
    return !bh_shadow_fits(bh_sched_shelf(s), r->ends.at, bh_sched_shape(s, first), x->shadow.domain,
                           x->shadow.start_ms);
}

bool bh_reserve_veto(void *reserve, const struct bh_sched *s, const struct bh_gang *g,
                     const struct bh_place *places, uint32_t n, uint64_t now_ms)
{
    struct bh_reserve *r = reserve;
    for (size_t i = 0; i < r->n; i++)
        if (delays(r, s, &r->at[i], g, places, n, now_ms)) {
            if (g->state == BH_GANG_PENDING && g->line < r->held.n)
                r->held.at[g->line] = (uint8_t)(i + 1);
            return false;
        }
    return true;
}
