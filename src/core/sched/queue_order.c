/* SPDX-License-Identifier: Apache-2.0 */
/* queue_order.c - the keys of the order of service, each a small function, in a table. */
#include "core/sched/queue_order.h"

#include "core/sched/queue_inside.h"

struct bh_ratio bh_queue_dominant(const struct bh_queues *t, const struct bh_queue *q,
                                  const struct bh_resources *more)
{
    struct bh_ratio most = {0, 1};
    for (uint32_t left = t->config.divided; left; left &= left - 1) {
        const uint32_t r = (uint32_t)__builtin_ctz(left);
        if (!t->total.at[r])
            continue;
        const struct bh_ratio part = {q->used.at[r] + (more ? more->at[r] : 0), t->total.at[r]};
        if (bh_ratio_cmp(part, most) > 0)
            most = part;
    }
    return most;
}

struct bh_ratio bh_queue_saturation(const struct bh_queues *t, const struct bh_queue *q)
{
    struct bh_ratio most = {0, 1};
    BH_EACH_RES(r)
    {
        if (!(t->config.divided >> r & 1) || !q->used.at[r])
            continue;
        const struct bh_ratio part =
            q->fair.at[r] ? (struct bh_ratio){q->used.at[r], q->fair.at[r]} : (struct bh_ratio){1, 0};
        if (bh_ratio_cmp(part, most) > 0)
            most = part;
    }
    return most;
}

struct pair {
    const struct bh_queues *t;
    const struct bh_turn_side *a, *b;
    uint64_t now_ms;
};

/* The larger one goes first. */
static int larger(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int smaller(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static bool is_entitled(const struct bh_turn_side *s)
{
    return s->ready ? s->entitled : bh_queue_within(s->queue, s->turn->amount);
}

static int by_entitled(const struct pair *p)
{
    return larger(is_entitled(p->a), is_entitled(p->b));
}

/* Between queues only those by priority have bands and deadlines. */
static bool counts(const struct pair *p, const struct bh_turn_side *s)
{
    return p->a->queue == p->b->queue || s->leaf->config.model == BH_QUOTA_PRIORITY;
}

static int64_t band_of(const struct pair *p, const struct bh_turn_side *s)
{
    return counts(p, s) ? s->turn->band : BH_PRIORITY_NORMAL;
}

static int by_band(const struct pair *p)
{
    return larger(band_of(p, p->a), band_of(p, p->b));
}

/* Is it within the entitlements of its path, from its own queue up to where the two paths part? */
static bool path_within(const struct bh_queues *t, const struct bh_turn_side *s)
{
    const struct bh_queue *q = s->leaf;
    while (q != s->queue && bh_queue_within(q, s->turn->amount))
        q = bh_queue_get(t, q->parent);
    return q == s->queue && is_entitled(s);
}

/* Milliseconds until it must start; UINT64_MAX where that is not critical. */
static uint64_t slack_of(const struct pair *p, const struct bh_turn_side *s)
{
    const struct bh_turn *turn = s->turn;
    if (turn->deadline_ms == BH_TURN_NO_DEADLINE || !counts(p, s))
        return UINT64_MAX;
    if (p->a->queue != p->b->queue && !path_within(p->t, s))
        return UINT64_MAX; /* it would take from others */
    const uint64_t need =
        turn->runtime_ms < UINT64_MAX - p->now_ms ? p->now_ms + turn->runtime_ms : UINT64_MAX;
    const uint64_t slack = turn->deadline_ms > need ? turn->deadline_ms - need : 0;
    return slack < p->t->config.slack_ms ? slack : UINT64_MAX;
}

static int by_deadline(const struct pair *p)
{
    return smaller(slack_of(p, p->a), slack_of(p, p->b));
}

static int by_queue_priority(const struct pair *p)
{
    return larger(p->a->queue->config.priority, p->b->queue->config.priority);
}

/* Dominant share for its pull; who has no pull comes last. */
static struct bh_ratio share_of(const struct bh_queues *t, const struct bh_turn_side *s, bool with)
{
    struct bh_ratio share = bh_queue_dominant(t, s->queue, with ? s->turn->amount : NULL);
    if (!s->queue->pull)
        return (struct bh_ratio){1, 0};
    share.den *= s->queue->pull; /* 48 and 37 bits */
    return share;
}

static int by_share(const struct pair *p)
{
    return bh_ratio_cmp(p->a->ready ? p->a->share : share_of(p->t, p->a, true),
                        p->b->ready ? p->b->share : share_of(p->t, p->b, true));
}

static int by_share_now(const struct pair *p)
{
    return bh_ratio_cmp(share_of(p->t, p->a, false), share_of(p->t, p->b, false));
}

static int by_queue(const struct pair *p)
{
    return (p->a->queue > p->b->queue) - (p->a->queue < p->b->queue);
}

static int by_priority(const struct pair *p)
{
    return larger(p->a->turn->priority, p->b->turn->priority);
}

static int by_user(const struct pair *p)
{
    return larger(p->a->turn->user_rank, p->b->turn->user_rank);
}

static int by_submit(const struct pair *p)
{
    return smaller(p->a->turn->submit_ms, p->b->turn->submit_ms);
}

static int by_id(const struct pair *p)
{
    return smaller(p->a->turn->id, p->b->turn->id);
}

static const struct {
    const char *text;
    int (*compare)(const struct pair *p);
    bool queues, works; /* used between queues; between work of one queue */
} keys[BH_TURN_KEYS] = {
    [BH_TURN_SAME] = {"nothing", NULL, false, false},
    [BH_TURN_ENTITLED] = {"within its entitlement", by_entitled, true, false},
    [BH_TURN_BAND] = {"priority", by_band, true, true},
    [BH_TURN_DEADLINE] = {"deadline", by_deadline, true, true},
    [BH_TURN_QUEUE_PRIORITY] = {"priority of the queue", by_queue_priority, true, false},
    [BH_TURN_SHARE] = {"smaller share", by_share, true, false},
    [BH_TURN_SHARE_NOW] = {"smaller share so far", by_share_now, true, false},
    [BH_TURN_QUEUE] = {"older queue", by_queue, true, false},
    [BH_TURN_PRIORITY] = {"priority in the queue", by_priority, false, true},
    [BH_TURN_USER] = {"its user's rank", by_user, false, true},
    [BH_TURN_SUBMIT] = {"asked first", by_submit, false, true},
    [BH_TURN_ID] = {"id", by_id, false, true},
};

const char *bh_turn_key_text(enum bh_turn_key key)
{
    return keys[key].text;
}

void bh_turn_side(const struct bh_queues *t, const struct bh_turn *turn, uint32_t queue,
                  struct bh_turn_side *ret)
{
    *ret = (struct bh_turn_side){
        bh_queue_get(t, queue), bh_queue_get(t, turn->queue), turn, false, false, {0, 1}};
}

void bh_turn_ready(const struct bh_queues *t, struct bh_turn_side *s)
{
    s->entitled = is_entitled(s);
    s->share = share_of(t, s, true);
    s->ready = true;
}

int bh_turn_sides(const struct bh_queues *t, const struct bh_turn_side *a, const struct bh_turn_side *b,
                  uint64_t now_ms, enum bh_turn_key *ret_key)
{
    const struct pair p = {t, a, b, now_ms};
    const bool same = a->queue == b->queue;
    for (int key = BH_TURN_ENTITLED; key < BH_TURN_KEYS; key++) {
        const int c = (same ? keys[key].works : keys[key].queues) ? keys[key].compare(&p) : 0;
        if (c) {
            *ret_key = (enum bh_turn_key)key;
            return c;
        }
    }
    *ret_key = BH_TURN_SAME;
    return 0;
}

int bh_turn_compare(const struct bh_queues *t, const struct bh_turn *a, const struct bh_turn *b,
                    uint64_t now_ms, enum bh_turn_key *ret_key)
{
    struct bh_turn_side x, y;
    uint32_t i = a->queue, k = b->queue;
    bh_queue_fork(t, &i, &k);
    bh_turn_side(t, a, i, &x);
    bh_turn_side(t, b, k, &y);
    return bh_turn_sides(t, &x, &y, now_ms, ret_key);
}
