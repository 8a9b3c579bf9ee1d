/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.c - the turns of channel groups on one engine, event by event.
 *
 * Time moves from one event to the next (a switch ends, a slice ends, a piece of work is done), never tick by tick,
 * and nothing depends on how the caller cuts time into steps. Whose turn comes next is decided when time moves on,
 * not when the last turn ends, so whatever happens at that instant still counts.
 *
 * Who waits stands in a queue per level: whoever becomes runnable, or has had its turn, goes to the end. A round
 * of a level is over when the one in front has been served in it. A group alone on the engine has no turns to take,
 * so its slices are passed over in one step. Within a group the channels take turns by piece of work: one piece runs
 * to its end (over as many slices as it needs), then the next channel's.
 */
#include "simgpu/rm/sched.h"

#include "base/idmap.h"
#include "base/mem.h"

enum { LEVEL_LOW, LEVEL_MEDIUM, LEVEL_HIGH, LEVELS, US = 1000, TURNS_AHEAD = 1 << 14 };

/* ---- from the caller's ids to what they name ---- */

struct named {
    uint64_t id;
    void *thing;
};

struct names {
    struct bh_idmap map; /* id to place in `all` */
    BH_VEC(struct named) all;
};

static void *name_find(const struct names *m, uint64_t id)
{
    uint32_t at = bh_idmap_find(&m->map, id);
    return at == BH_IDMAP_NONE ? NULL : m->all.at[at].thing;
}

static void name_add(struct names *m, uint64_t id, void *thing)
{
    (void)bh_idmap_add(&m->map, id, (uint32_t)m->all.n);
    *bh_vec_push(&m->all) = (struct named){id, thing};
}

/* The last one moves into the gap. */
static void name_remove(struct names *m, uint64_t id)
{
    uint32_t gap = bh_idmap_find(&m->map, id);
    struct named last = m->all.at[--m->all.n];
    (void)bh_idmap_remove(&m->map, id);
    if (last.id == id)
        return;
    (void)bh_idmap_remove(&m->map, last.id);
    (void)bh_idmap_add(&m->map, last.id, gap);
    m->all.at[gap] = last;
}

static void names_fini(struct names *m)
{
    bh_vec_fini(&m->all);
    bh_idmap_fini(&m->map);
}

/* ---- whose turn it is ---- */

/* What the order of turns knows about a group; also that of a look ahead. */
struct turn {
    struct turn *prev, *next;
    uint64_t slice_ns, served; /* served: the round of its level in which it last was */
    uint64_t turns;            /* how often the engine was switched to it */
    uint32_t level;
};

struct engine {
    struct turn *head[LEVELS], *tail[LEVELS];
    size_t waiting;
    uint64_t round[LEVELS]; /* of the low level: not used, they simply follow each other */
    struct turn *cur;       /* whose turn it is: in no queue; NULL: between turns */
    const struct turn *loaded;
    uint64_t now, switch_ns, switch_left, slice_left;
};

static void wait_last(struct engine *e, struct turn *t)
{
    t->next = NULL;
    t->prev = e->tail[t->level];
    *(t->prev ? &t->prev->next : &e->head[t->level]) = t;
    e->tail[t->level] = t;
    e->waiting++;
}

static void wait_no_more(struct engine *e, struct turn *t)
{
    *(t->prev ? &t->prev->next : &e->head[t->level]) = t->next;
    *(t->next ? &t->next->prev : &e->tail[t->level]) = t->prev;
    e->waiting--;
}

static bool unserved(const struct engine *e, unsigned level)
{
    return e->head[level] && e->head[level]->served != e->round[level];
}

/* High ones that are due, then medium ones, then a low one; with no low one a round of the next level begins anew. */
static unsigned level_of_next(struct engine *e)
{
    if (unserved(e, LEVEL_HIGH))
        return LEVEL_HIGH;
    if (unserved(e, LEVEL_MEDIUM))
        return LEVEL_MEDIUM;
    if (e->head[LEVEL_LOW])
        return LEVEL_LOW;
    unsigned level = e->head[LEVEL_MEDIUM] ? LEVEL_MEDIUM : LEVEL_HIGH;
    e->round[level]++;
    return level;
}

/* The next turn begins. False: nobody waits. */
static bool turn_begin(struct engine *e)
{
    if (!e->waiting)
        return false;
    unsigned level = level_of_next(e);
    struct turn *t = e->head[level];
    wait_no_more(e, t);
    t->served = e->round[level];
    for (unsigned above = level + 1; above < LEVELS; above++)
        e->round[above]++;
    e->cur = t;
    e->slice_left = t->slice_ns;
    if (e->loaded != t) {
        e->switch_left = e->loaded ? e->switch_ns : 0;
        e->loaded = t;
        t->turns++;
    }
    return true;
}

static void turn_end(struct engine *e)
{
    wait_last(e, e->cur);
    e->cur = NULL;
}

/* ---- groups and channels ---- */

struct channel {
    uint64_t id;
    struct group *group;
    struct channel *prev, *next;         /* among the runnable ones of the group */
    struct channel *prev_sib, *next_sib; /* among all of the group */
    uint64_t *work;                      /* a ring: what is left of each piece, the first one first */
    size_t first, n, cap;                /* cap: a power of two */
    uint64_t submitted, done;            /* fences */
    bool enabled, queued;
};

struct group {
    struct turn turn; /* first: a turn of the real engine is its group */
    uint64_t id, slice_us, busy_ns;
    struct channel *head, *tail; /* runnable channels */
    struct channel *channels;
    bool scheduled, runnable;
};

/* What bh_sim_sched_next found out, until something changes it. */
struct ahead {
    bool known, exact; /* not exact: nothing is done before that time; what then, must be looked at then */
    uint64_t at;
};

struct bh_sim_sched {
    struct engine e;
    struct names groups, channels;
    uint64_t busy_ns;
    struct ahead *ahead;
};

struct bh_sim_sched *bh_sim_sched_new(uint64_t switch_ns)
{
    struct bh_sim_sched *s = bh_alloc(1, sizeof(*s));
    s->ahead = bh_alloc(1, sizeof(*s->ahead));
    s->e.switch_ns = switch_ns;
    s->e.round[LEVEL_MEDIUM] = s->e.round[LEVEL_HIGH] = 1;
    return s;
}

void bh_sim_sched_free(struct bh_sim_sched *s)
{
    if (!s)
        return;
    while (s->groups.all.n)
        bh_sim_group_remove(s, s->groups.all.at[0].id);
    names_fini(&s->groups);
    names_fini(&s->channels);
    free(s->ahead);
    free(s);
}

/* A group is runnable when it was scheduled and has an enabled channel with work. */
static void group_settle(struct bh_sim_sched *s, struct group *g)
{
    bool runnable = g->scheduled && g->head;
    if (runnable == g->runnable)
        return;
    g->runnable = runnable;
    s->ahead->known = false;
    if (runnable)
        wait_last(&s->e, &g->turn);
    else if (s->e.cur == &g->turn)
        s->e.cur = NULL;
    else
        wait_no_more(&s->e, &g->turn);
}

static void channel_leave(struct channel *c)
{
    struct group *g = c->group;
    if (!c->queued)
        return;
    *(c->prev ? &c->prev->next : &g->head) = c->next;
    *(c->next ? &c->next->prev : &g->tail) = c->prev;
    c->queued = false;
}

/* To the end of its group's channels, or out, as it is enabled and has work or not. */
static void channel_settle(struct channel *c)
{
    struct group *g = c->group;
    channel_leave(c);
    if (!c->enabled || !c->n)
        return;
    c->next = NULL;
    c->prev = g->tail;
    *(g->tail ? &g->tail->next : &g->head) = c;
    g->tail = c;
    c->queued = true;
}

void bh_sim_group_add(struct bh_sim_sched *s, uint64_t group)
{
    if (!group || name_find(&s->groups, group))
        return;
    struct group *g = bh_alloc(1, sizeof(*g));
    g->id = group;
    g->slice_us = BH_SIM_SLICE_DEFAULT_US;
    g->turn.slice_ns = (uint64_t)BH_SIM_SLICE_DEFAULT_US * US;
    name_add(&s->groups, group, g);
}

void bh_sim_group_remove(struct bh_sim_sched *s, uint64_t group)
{
    struct group *g = name_find(&s->groups, group);
    if (!g)
        return;
    while (g->channels)
        bh_sim_channel_remove(s, g->channels->id);
    if (s->e.loaded == &g->turn) {
        s->e.loaded = NULL;
        s->e.switch_left = 0;
    }
    name_remove(&s->groups, group);
    free(g);
}

void bh_sim_group_schedule(struct bh_sim_sched *s, uint64_t group)
{
    struct group *g = name_find(&s->groups, group);
    if (!g)
        return;
    g->scheduled = true;
    group_settle(s, g);
}

bool bh_sim_group_set_slice(struct bh_sim_sched *s, uint64_t group, uint64_t us)
{
    struct group *g = name_find(&s->groups, group);
    if (!g || !us)
        return false;
    g->slice_us = us;
    if (g->scheduled) {
        g->turn.slice_ns = us <= UINT64_MAX / US ? us * US : UINT64_MAX;
        s->ahead->known = false;
    }
    return true;
}

uint64_t bh_sim_group_slice(const struct bh_sim_sched *s, uint64_t group)
{
    const struct group *g = name_find(&s->groups, group);
    return g ? g->slice_us : 0;
}

bool bh_sim_group_set_level(struct bh_sim_sched *s, uint64_t group, uint32_t level)
{
    struct group *g = name_find(&s->groups, group);
    if (!g || level >= LEVELS)
        return false;
    if (g->turn.level == level)
        return true;
    bool waits = g->runnable && s->e.cur != &g->turn;
    if (waits)
        wait_no_more(&s->e, &g->turn);
    g->turn.level = level;
    /* in no round of that level yet; but whoever has the turn is being served */
    g->turn.served = s->e.cur == &g->turn ? s->e.round[level] : 0;
    if (waits)
        wait_last(&s->e, &g->turn);
    s->ahead->known = false;
    return true;
}

void bh_sim_channel_add(struct bh_sim_sched *s, uint64_t group, uint64_t channel)
{
    struct group *g = name_find(&s->groups, group);
    if (!g || !channel || name_find(&s->channels, channel))
        return;
    struct channel *c = bh_alloc(1, sizeof(*c));
    c->id = channel;
    c->group = g;
    c->enabled = true;
    c->next_sib = g->channels;
    if (g->channels)
        g->channels->prev_sib = c;
    g->channels = c;
    name_add(&s->channels, channel, c);
}

void bh_sim_channel_remove(struct bh_sim_sched *s, uint64_t channel)
{
    struct channel *c = name_find(&s->channels, channel);
    if (!c)
        return;
    bh_sim_channel_enable(s, channel, false);
    *(c->prev_sib ? &c->prev_sib->next_sib : &c->group->channels) = c->next_sib;
    if (c->next_sib)
        c->next_sib->prev_sib = c->prev_sib;
    name_remove(&s->channels, channel);
    free(c->work);
    free(c);
}

void bh_sim_channel_enable(struct bh_sim_sched *s, uint64_t channel, bool on)
{
    struct channel *c = name_find(&s->channels, channel);
    if (!c || c->enabled == on)
        return;
    c->enabled = on;
    s->ahead->known = false;
    channel_settle(c);
    group_settle(s, c->group);
}

static void work_push(struct channel *c, uint64_t work_ns)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 8;
        uint64_t *work = bh_alloc(cap, sizeof(*work));
        for (size_t i = 0; i < c->n; i++)
            work[i] = c->work[(c->first + i) & (c->cap - 1)];
        free(c->work);
        c->work = work;
        c->first = 0;
        c->cap = cap;
    }
    c->work[(c->first + c->n++) & (c->cap - 1)] = work_ns;
}

uint64_t bh_sim_submit(struct bh_sim_sched *s, uint64_t channel, uint64_t work_ns)
{
    struct channel *c = name_find(&s->channels, channel);
    if (!c)
        return 0;
    work_push(c, work_ns ? work_ns : 1);
    if (!c->queued) {
        channel_settle(c);
        group_settle(s, c->group);
    }
    return ++c->submitted;
}

uint64_t bh_sim_fence_done(const struct bh_sim_sched *s, uint64_t channel)
{
    const struct channel *c = name_find(&s->channels, channel);
    return c ? c->done : 0;
}

/* ---- time ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The current group uses d of its slice. More than the slice: it is alone, and each new slice is its own again. */
static void use_slice(struct engine *e, uint64_t d)
{
    if (d <= e->slice_left) {
        e->slice_left -= d;
        return;
    }
    d -= e->slice_left;
    turn_end(e);
    (void)turn_begin(e);
    uint64_t used = d % e->slice_left;
    e->slice_left = used ? e->slice_left - used : 0;
}

static void piece_done(struct bh_sim_sched *s, struct channel *c)
{
    c->first = (c->first + 1) & (c->cap - 1);
    c->n--;
    c->done++;
    s->ahead->known = false;
    channel_settle(c);
    group_settle(s, c->group);
}

/* The current group runs until its slice, its piece of work or the time given ends. */
static void run(struct bh_sim_sched *s, uint64_t until)
{
    struct engine *e = &s->e;
    struct group *g = (struct group *)e->cur;
    uint64_t *left = &g->head->work[g->head->first];
    uint64_t d = least(until - e->now, *left);
    if (e->waiting)
        d = least(d, e->slice_left);
    use_slice(e, d);
    e->now += d;
    g->busy_ns += d;
    s->busy_ns += d;
    *left -= d;
    if (!*left)
        piece_done(s, g->head);
}

void bh_sim_sched_advance(struct bh_sim_sched *s, uint64_t now_ns)
{
    struct engine *e = &s->e;
    while (e->now < now_ns) {
        if (!e->cur && !turn_begin(e)) {
            e->now = now_ns;
        } else if (e->switch_left) {
            uint64_t d = least(e->switch_left, now_ns - e->now);
            e->switch_left -= d;
            e->now += d;
        } else if (!e->slice_left) {
            turn_end(e);
        } else {
            run(s, now_ns);
        }
    }
}

uint64_t bh_sim_group_busy_ns(const struct bh_sim_sched *s, uint64_t group)
{
    const struct group *g = name_find(&s->groups, group);
    return g ? g->busy_ns : 0;
}

uint64_t bh_sim_group_turns(const struct bh_sim_sched *s, uint64_t group)
{
    const struct group *g = name_find(&s->groups, group);
    return g ? g->turn.turns : 0;
}

bool bh_sim_group_runs(const struct bh_sim_sched *s, uint64_t group)
{
    const struct group *g = name_find(&s->groups, group);
    return g && s->e.cur == &g->turn;
}

uint64_t bh_sim_sched_busy_ns(const struct bh_sim_sched *s)
{
    return s->busy_ns;
}

/* ---- looking ahead ---- */

/* A copy of a runnable group: until the first piece is done no group comes or goes, so turns repeat in cycles. */
struct probe {
    struct turn turn; /* first */
    uint64_t left;    /* of the piece it is at */
};

static struct probe probe_of(const struct turn *t)
{
    const struct channel *c = ((const struct group *)t)->head;
    return (struct probe){*t, c->work[c->first]};
}

/* Sums that could only be passed by times nobody lives to see stay at the end of time. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX - 1;
}
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX - 1 : r;
}

/* The rest of a turn, or the next one. True: a piece is done in it, at e->now. */
static bool probe_turn(struct engine *e)
{
    if (!e->cur)
        (void)turn_begin(e);
    struct probe *p = (struct probe *)e->cur;
    bool ends = p->left <= e->slice_left || !e->waiting;
    uint64_t d = ends ? p->left : e->slice_left;
    e->now = plus(e->now, plus(e->switch_left, d));
    e->switch_left = 0;
    p->left -= d;
    if (!ends)
        turn_end(e);
    return ends;
}

/* How many turns each group of a level has in a cycle after which the order is what it was before. */
struct cycle {
    uint64_t turns[LEVELS], all;
};

static struct cycle cycle_of(const struct probe *probes, size_t n)
{
    uint64_t count[LEVELS] = {0};
    for (size_t i = 0; i < n; i++)
        count[probes[i].turn.level]++;
    uint64_t low = count[LEVEL_LOW], medium = count[LEVEL_MEDIUM];
    struct cycle c = {.turns = {1, low ? low : 1, low ? low * (1 + medium) : medium ? medium : 1}};
    for (unsigned l = 0; l < LEVELS; l++)
        c.all += count[l] * c.turns[l];
    return c;
}

/* Pass over all whole cycles in which nobody finishes. Between turns, with two groups or more: each turn switches. */
static void skip_cycles(struct engine *e, struct probe *probes, size_t n)
{
    struct cycle c = cycle_of(probes, n);
    uint64_t cycles = UINT64_MAX, length = times(c.all, e->switch_ns);
    for (size_t i = 0; i < n; i++) {
        const struct probe *p = &probes[i];
        uint64_t turns = c.turns[p->turn.level];
        cycles = least(cycles, (p->left - 1) / p->turn.slice_ns / turns);
        length = plus(length, times(turns, p->turn.slice_ns));
    }
    for (size_t i = 0; i < n; i++)
        probes[i].left -= cycles * c.turns[probes[i].turn.level] * probes[i].turn.slice_ns;
    e->now = plus(e->now, times(cycles, length));
}

/* A cycle may have as many turns as groups of the three levels multiplied: it is not walked to its end. */
static struct ahead look_ahead(const struct bh_sim_sched *s)
{
    struct turn gone = {0};
    struct engine e = s->e;
    size_t n = 0, most = s->e.waiting + (s->e.cur != NULL);
    if (!most)
        return (struct ahead){true, true, UINT64_MAX};
    BH_AUTOFREE struct probe *probes = bh_alloc(most, sizeof(*probes));
    e.waiting = 0;
    e.loaded = s->e.loaded ? &gone : NULL;
    for (unsigned l = 0; l < LEVELS; l++) {
        e.head[l] = e.tail[l] = NULL;
        for (const struct turn *t = s->e.head[l]; t; t = t->next) {
            probes[n] = probe_of(t);
            wait_last(&e, &probes[n].turn);
            if (t == s->e.loaded)
                e.loaded = &probes[n].turn;
            n++;
        }
    }
    if (s->e.cur) {
        probes[n] = probe_of(s->e.cur);
        e.loaded = e.cur = &probes[n++].turn;
    }
    /* First the turn that has begun; or the next one, the only one that may need no switch. */
    bool ends = probe_turn(&e);
    if (!ends)
        skip_cycles(&e, probes, n);
    for (int i = 0; !ends && i < TURNS_AHEAD; i++)
        ends = probe_turn(&e);
    return (struct ahead){true, ends, e.now};
}

uint64_t bh_sim_sched_next(const struct bh_sim_sched *s)
{
    if (!s->ahead->known || (!s->ahead->exact && s->ahead->at <= s->e.now))
        *s->ahead = look_ahead(s);
    return s->ahead->at;
}
