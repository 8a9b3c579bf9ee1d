/* SPDX-License-Identifier: Apache-2.0 */
/* queue_order.c - the keys of the order of service, each a small function, in a table. */
#include "core/sched/queue_order.h"

#include "core/sched/queue_inside.h"

struct bh_ratio bh_queue_dominant(const struct bh_queues *t, const struct bh_queue *q,
                                  const struct bh_amount *more)
{
    struct bh_ratio most = {0, 1};
    BH_EACH_RES(r)
    {
        if (!(t->config.divided >> r & 1) || !t->total.at[r])
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

/* One side of a comparison: the queue where the paths part, and the work. */
struct side {
    const struct bh_queue *queue, *leaf;
    const struct bh_turn *turn;
};

struct pair {
    const struct bh_queues *t;
    struct side a, b;
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

static int by_entitled(const struct pair *p)
{
    return larger(bh_queue_within(p->a.queue, p->a.turn->amount),
                  bh_queue_within(p->b.queue, p->b.turn->amount));
}

/* Between queues only those by priority have bands and deadlines. */
static bool counts(const struct pair *p, const struct side *s)
{
    return p->a.queue == p->b.queue || s->leaf->config.model == BH_QUOTA_PRIORITY;
}

static int64_t band_of(const struct pair *p, const struct side *s)
{
    return counts(p, s) ? s->turn->band : BH_PRIORITY_NORMAL;
}

static int by_band(const struct pair *p)
{
    return larger(band_of(p, &p->a), band_of(p, &p->b));
}

/* Milliseconds until it must start; UINT64_MAX where that is not critical. */
static uint64_t slack_of(const struct pair *p, const struct side *s)
{
    const struct bh_turn *turn = s->turn;
    const bool steals = p->a.queue != p->b.queue && !bh_queue_within(s->leaf, turn->amount);
    if (turn->deadline_ms == BH_TURN_NO_DEADLINE || !counts(p, s) || steals)
        return UINT64_MAX;
    const uint64_t need =
        turn->runtime_ms < UINT64_MAX - p->now_ms ? p->now_ms + turn->runtime_ms : UINT64_MAX;
    const uint64_t slack = turn->deadline_ms > need ? turn->deadline_ms - need : 0;
    return slack < p->t->config.slack_ms ? slack : UINT64_MAX;
}

static int by_deadline(const struct pair *p)
{
    return smaller(slack_of(p, &p->a), slack_of(p, &p->b));
}

static int by_queue_priority(const struct pair *p)
{
    return larger(p->a.queue->config.priority, p->b.queue->config.priority);
}

/* Dominant share for its pull; who has no pull comes last. */
static struct bh_ratio share_of(const struct pair *p, const struct side *s, bool with)
{
    struct bh_ratio share = bh_queue_dominant(p->t, s->queue, with ? s->turn->amount : NULL);
    if (!s->queue->pull)
        return (struct bh_ratio){1, 0};
    share.den *= s->queue->pull; /* 48 and 37 bits */
    return share;
}

static int by_share(const struct pair *p)
{
    return bh_ratio_cmp(share_of(p, &p->a, true), share_of(p, &p->b, true));
}

static int by_share_now(const struct pair *p)
{
    return bh_ratio_cmp(share_of(p, &p->a, false), share_of(p, &p->b, false));
}

static int by_queue(const struct pair *p)
{
    return (p->a.queue > p->b.queue) - (p->a.queue < p->b.queue);
}

static int by_priority(const struct pair *p)
{
    return larger(p->a.turn->priority, p->b.turn->priority);
}

static int by_user(const struct pair *p)
{
    return larger(p->a.turn->user_rank, p->b.turn->user_rank);
}

static int by_submit(const struct pair *p)
{
    return smaller(p->a.turn->submit_ms, p->b.turn->submit_ms);
}

static int by_id(const struct pair *p)
{
    return smaller(p->a.turn->id, p->b.turn->id);
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

int bh_turn_compare(const struct bh_queues *t, const struct bh_turn *a, const struct bh_turn *b,
                    uint64_t now_ms, enum bh_turn_key *ret_key)
{
    uint32_t x = a->queue, y = b->queue;
    bh_queue_fork(t, &x, &y);
    const struct pair p = {t,
                           {bh_queue_get(t, x), bh_queue_get(t, a->queue), a},
                           {bh_queue_get(t, y), bh_queue_get(t, b->queue), b},
                           now_ms};
    for (int key = BH_TURN_ENTITLED; key < BH_TURN_KEYS; key++) {
        const int c = (x == y ? keys[key].works : keys[key].queues) ? keys[key].compare(&p) : 0;
        if (c) {
            *ret_key = (enum bh_turn_key)key;
            return c;
        }
    }
    *ret_key = BH_TURN_SAME;
    return 0;
}
