/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycle_order.c - whose turn it is: of each queue the best work below it.
 *
 * A leaf has lines; the first of each stands for it. A queue with others below it has a tree of matches between
 * these, so that after a start only the matches on one path are played again. Lines that cannot start
 * (no room for the shape, no quota, and nothing of that became more since) do not take part.
 */
#include "core/sched/sched_inside.h"

void bh_order_lay(struct bh_sched *s)
{
    uint32_t seats = 0;
    for (size_t i = 0; i < s->queues.at.n; i++) {
        const struct bh_queue *q = &s->queues.at.at[i];
        uint32_t seat = 0;
        s->rooms.at[i].seats = seats;
        for (uint32_t c = q->first_child; c != BH_QUEUE_NONE; c = s->queues.at.at[c].next_sibling)
            s->rooms.at[c].seat = seat++;
        seats += 2 * q->children;
    }
    bh_vec_room(&s->seats, seats + 1);
    s->seats.n = seats;
}

/* ---- who takes part ---- */

bool bh_shape_gained(const struct bh_sched *s, const struct bh_shape *shape, uint64_t since)
{
    if (shape->anywhere && s->gain[BH_MODELS_MAX] > since)
        return true;
    for (uint32_t m = 0; m < s->shelf.n_models; m++) {
        if ((shape->models >> m & 1) && s->gain[m] > since)
            return true;
    }
    return false;
}

/* Did something on the path, as far as the queue that stood in the way, become less since? */
static bool eased(const struct bh_sched *s, const struct bh_line *l)
{
    for (uint32_t i = l->queue;; i = s->queues.at.at[i].parent) {
        if (s->rooms.at[i].fell > l->at)
            return true;
        if (i == l->why.queue || !s->queues.at.at[i].depth)
            return false;
    }
}

bool bh_line_stuck(const struct bh_sched *s, struct bh_line *l)
{
    struct bh_shape *shape = &s->shapes.at[l->shape];
    switch ((enum bh_stuck)l->stuck) {
    case BH_STUCK_QUOTA:
        if (!eased(s, l))
            return true;
        break;
    case BH_STUCK_VETO:
        if (l->at == s->stats.cycles)
            return true;
        break;
    case BH_STUCK_ROOM:
        if (l->parked != BH_NONE && !bh_shape_gained(s, shape, l->at))
            return true;
        break;
    case BH_STUCK_NOT:
    case BH_STUCK_STUCKS:
        break;
    }
    if (l->parked != BH_NONE || !shape->stuck_at)
        return false;
    if (!bh_shape_gained(s, shape, shape->stuck_at)) {
        l->stuck = BH_STUCK_ROOM;
        l->at = shape->stuck_at;
        return true;
    }
    shape->stuck_at = 0;
    return false;
}

bool bh_line_ready(struct bh_sched *s, struct bh_line *l)
{
    if (!l->heap.n)
        return false;
    if (s->reclaiming && !bh_line_stuck(s, l) && l->stuck == BH_STUCK_NOT)
        return false;
    if (s->reclaiming)
        return (l->stuck == BH_STUCK_ROOM || l->stuck == BH_STUCK_QUOTA) && l->parked == BH_NONE &&
               l->tried_at != s->round && (bh_reclaim_hopeful(s, l) || bh_move_hopeful(s, l));
    if (bh_line_stuck(s, l))
        return false;
    l->stuck = BH_STUCK_NOT;
    return true;
}

/* ---- matches ---- */

/* Does the first of line a go before the first of line b? */
static bool line_wins(const struct bh_sched *s, uint32_t a, uint32_t b, enum bh_turn_key *ret_key)
{
    const struct bh_turn x = bh_line_turn(s, &s->lines.at[a]), y = bh_line_turn(s, &s->lines.at[b]);
    return bh_turn_compare(&s->queues, &x, &y, s->now_ms, ret_key) < 0;
}

static void seat_leaf(struct bh_sched *s, uint32_t queue)
{
    struct bh_room *q = &s->rooms.at[queue];
    enum bh_turn_key key;
    q->best = BH_NONE;
    for (uint32_t i = q->first_line; i != BH_NONE; i = s->lines.at[i].next) {
        struct bh_line *l = &s->lines.at[i];
        __builtin_prefetch(&s->lines.at[l->next == BH_NONE ? i : l->next]);
        if (!bh_line_ready(s, l))
            continue;
        const struct bh_shape *shape = &s->shapes.at[l->shape];
        uint32_t binding;
        l->band = (uint8_t)bh_queue_band(&s->queues, queue, (enum bh_priority)shape->band,
                                         shape->least.at[BH_RES_GPU], s->now_ms, &binding);
        if (q->best == BH_NONE || line_wins(s, i, q->best, &key))
            q->best = i;
    }
}

/* Of two children of one queue, the one whose best work goes first; either may have none. */
static uint32_t match(const struct bh_sched *s, uint32_t a, uint32_t b)
{
    enum bh_turn_key key;
    if (a == BH_NONE || b == BH_NONE)
        return a == BH_NONE ? b : a;
    return line_wins(s, s->rooms.at[a].best, s->rooms.at[b].best, &key) ? a : b;
}

static uint32_t entry(const struct bh_sched *s, uint32_t queue)
{
    return s->rooms.at[queue].best == BH_NONE ? BH_NONE : queue;
}

static void crown(struct bh_sched *s, uint32_t queue)
{
    const uint32_t *tree = &s->seats.at[s->rooms.at[queue].seats];
    s->rooms.at[queue].best = tree[1] == BH_NONE ? BH_NONE : s->rooms.at[tree[1]].best;
}

void bh_order_all(struct bh_sched *s)
{
    for (uint32_t i = (uint32_t)s->queues.at.n; i-- > 0;) { /* children come after their parents */
        const struct bh_queue *q = &s->queues.at.at[i];
        if (q->first_child == BH_QUEUE_NONE) {
            seat_leaf(s, i);
            continue;
        }
        uint32_t *tree = &s->seats.at[s->rooms.at[i].seats], n = q->children;
        for (uint32_t c = q->first_child; c != BH_QUEUE_NONE; c = s->queues.at.at[c].next_sibling)
            tree[n + s->rooms.at[c].seat] = entry(s, c);
        for (uint32_t k = n; k-- > 1;)
            tree[k] = match(s, tree[2 * k], tree[2 * k + 1]);
        crown(s, i);
    }
}

void bh_order_leaf(struct bh_sched *s, uint32_t queue)
{
    seat_leaf(s, queue);
    for (uint32_t i = queue; s->queues.at.at[i].depth; i = s->queues.at.at[i].parent) {
        const uint32_t parent = s->queues.at.at[i].parent;
        uint32_t *tree = &s->seats.at[s->rooms.at[parent].seats], k = s->queues.at.at[parent].children;
        k += s->rooms.at[i].seat;
        tree[k] = entry(s, i);
        for (k /= 2; k; k /= 2)
            tree[k] = match(s, tree[2 * k], tree[2 * k + 1]);
        crown(s, parent);
    }
}

/* The line that lost the last match against this one, as high up as there was one. */
uint32_t bh_order_rival(const struct bh_sched *s, uint32_t line, enum bh_turn_key *ret_key)
{
    uint32_t queue = BH_QUEUE_ROOT;
    *ret_key = BH_TURN_SAME;
    while (s->queues.at.at[queue].first_child != BH_QUEUE_NONE) {
        const uint32_t *tree = &s->seats.at[s->rooms.at[queue].seats], winner = tree[1];
        for (uint32_t k = 1; k < s->queues.at.at[queue].children;) {
            const uint32_t mine = tree[2 * k] == winner ? 2 * k : 2 * k + 1, other = tree[mine ^ 1];
            if (other != BH_NONE) {
                const uint32_t rival = s->rooms.at[other].best;
                line_wins(s, line, rival, ret_key);
                return rival;
            }
            k = mine;
        }
        queue = winner;
    }
    return BH_NONE;
}
