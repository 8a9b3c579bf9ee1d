/* SPDX-License-Identifier: Apache-2.0 */
/* card_model.c - from one event to the next: work arrives, ends, a slice ends, a call takes effect. */
#include "core/govern/card_model.h"

#include <stdlib.h>
#include <string.h>

#define NEVER     INT64_MAX
#define ENDLESS   (NEVER / 4)
#define US        INT64_C(1000)
#define MS        INT64_C(1000000)
#define LONG_TURN (4 * MS) /* in which one may have rested: warden/busy_book.h */

static const struct card_pattern kinds[CARD_KINDS] = {
    [CARD_LONG] = {33200 * US, 20 * US, 0}, [CARD_SHORT] = {ENDLESS, 0, 0},
    [CARD_SYNC] = {200 * US, 20 * US, 0},   [CARD_GRAPH] = {ENDLESS, 0, 0},
    [CARD_PERSISTENT] = {ENDLESS, 0, 0},    [CARD_BATCH] = {10700 * US, 20 * US, 0},
    [CARD_GAPS] = {750 * US, 250 * US, 0},  [CARD_SPORADIC] = {215 * US, 0, 5 * MS},
};

int64_t card_alone_ppm(enum card_kind kind)
{
    if (kinds[kind].work_ns == ENDLESS)
        return 1000000;
    const int64_t whole =
        kinds[kind].period_ns ? kinds[kind].period_ns : kinds[kind].work_ns + kinds[kind].gap_ns;
    return kinds[kind].work_ns / US * 1000000 / (whole / US);
}

void card_init(struct card *c)
{
    memset(c, 0, sizeof(*c));
    c->preempt_ns = 170 * US;
    c->yield_ns = 55 * US;
    c->pause_ns = c->resume_ns = 600 * US;
    c->loaded = c->running = -1;
    c->dice = 1;
}

uint32_t card_add(struct card *c, uint64_t id, enum card_kind kind)
{
    uint32_t i = 0;
    while (i < c->n && c->at[i].present)
        i++;
    if (i == CARD_TENANTS)
        abort();
    c->at[i] = (struct card_tenant){.id = id,
                                    .kind = kind,
                                    .pattern = kinds[kind],
                                    .present = true,
                                    .slice_ns = 2 * MS,
                                    .ready_ns = c->now_ns};
    if (i == c->n)
        c->n++;
    return i;
}

static void stop_running(struct card *c)
{
    c->running = -1;
    c->switch_end_ns = 0;
}

void card_remove(struct card *c, uint32_t tenant)
{
    uint32_t kept = 0;
    c->at[tenant].present = false;
    if (c->running == (int)tenant)
        stop_running(c);
    if (c->loaded == (int)tenant)
        c->loaded = -1;
    for (uint32_t i = 0; i < c->n_calls; i++) {
        if (c->call[i].tenant != tenant)
            c->call[kept++] = c->call[i];
    }
    c->n_calls = kept;
}

void card_rest(struct card *c, uint32_t tenant, bool resting)
{
    struct card_tenant *t = &c->at[tenant];
    if (resting && t->work_ns > ENDLESS / 2) {
        t->work_ns = 0; /* what never ends is ended */
        t->ready_ns = NEVER;
    }
    if (t->resting && !resting)
        t->ready_ns = t->work_ns ? t->ready_ns : c->now_ns;
    t->resting = resting;
}

void card_turn_into(struct card *c, uint32_t tenant, enum card_kind kind)
{
    struct card_tenant *t = &c->at[tenant];
    if (t->work_ns > ENDLESS / 2)
        t->work_ns = 0;
    t->kind = kind;
    t->pattern = kinds[kind];
    t->ready_ns = c->now_ns;
}

static bool can_run(const struct card_tenant *t)
{
    return t->present && !t->paused && t->work_ns > 0;
}

/* Who comes after the one loaded, round robin; -1: nobody. Itself last. */
static int next_one(const struct card *c)
{
    for (uint32_t k = 1; k <= c->n; k++) {
        const uint32_t i = (uint32_t)(c->loaded + (int)k + (int)c->n) % c->n;
        if (can_run(&c->at[i]))
            return (int)i;
    }
    return -1;
}

/* It has the card, whether it works or not. */
static void stay(const struct card *c, struct card_tenant *t, int64_t ns)
{
    const bool was_long = t->seen.turn_ns > LONG_TURN;
    t->seen.heard_ns = c->now_ns;
    t->seen.had_ns += ns;
    t->seen.turn_ns += ns;
    if (t->seen.turn_ns > LONG_TURN)
        t->seen.long_ns += was_long ? ns : t->seen.turn_ns;
}

static void turn_ends(struct card *c)
{
    c->moved_ns = c->now_ns;
    if (c->loaded >= 0)
        c->at[c->loaded].seen.turn_ns = 0;
}

static void switch_to(struct card *c, int to, int64_t cost)
{
    c->running = to;
    if (to < 0)
        return;
    cost = to == c->loaded ? 0 : cost;
    if (to != c->loaded)
        turn_ends(c);
    c->at[to].seen.turns += to != c->loaded || c->at[to].seen.turn_ns == 0;
    c->loaded = to;
    c->switch_end_ns = c->now_ns + cost;
    c->slice_start_ns = c->switch_end_ns;
    c->switch_total_ns += cost;
}

static void submit(struct card *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct card_tenant *t = &c->at[i];
        if (!t->present || t->resting || t->ready_ns > c->now_ns)
            continue;
        if (t->work_ns == 0)
            t->arrived_ns = t->ready_ns;
        t->work_ns += t->pattern.work_ns;
        t->ready_ns =
            t->pattern.period_ns && t->work_ns < 10 * MS ? t->ready_ns + t->pattern.period_ns : NEVER;
    }
}

static void make_calls(struct card *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n_calls; i++) {
        if (c->call[i].at_ns > c->now_ns) {
            c->call[kept++] = c->call[i];
            continue;
        }
        c->at[c->call[i].tenant].paused = c->call[i].pause;
        if (c->loaded == (int)c->call[i].tenant)
            turn_ends(c);
        if (c->call[i].pause && c->running == (int)c->call[i].tenant) {
            stop_running(c);
            switch_to(c, next_one(c), c->preempt_ns);
        }
    }
    c->n_calls = kept;
}

/* When the slice being used ends: at once known only when somebody waits for it. */
static int64_t slice_end(const struct card *c)
{
    const struct card_tenant *t = &c->at[c->running];
    const int64_t used = c->now_ns > c->slice_start_ns ? c->now_ns - c->slice_start_ns : 0;
    const int64_t slices = used / t->slice_ns + 1;
    return next_one(c) == c->running ? NEVER : c->slice_start_ns + slices * t->slice_ns;
}

static void finish(struct card *c, struct card_tenant *t)
{
    if (t->kind == CARD_SPORADIC && t->n_waits < CARD_WAITS)
        t->wait_ns[t->n_waits++] = c->now_ns - t->arrived_ns;
    if (!t->pattern.period_ns)
        t->ready_ns = c->now_ns + t->pattern.gap_ns;
    else if (t->ready_ns == NEVER)
        t->ready_ns = c->now_ns;
    stop_running(c);
}

static int64_t next_event(const struct card *c, int64_t until)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct card_tenant *t = &c->at[i];
        if (t->present && !t->resting && t->ready_ns < until)
            until = t->ready_ns;
    }
    for (uint32_t i = 0; i < c->n_calls; i++)
        until = c->call[i].at_ns < until ? c->call[i].at_ns : until;
    if (c->running >= 0) {
        const int64_t from = c->switch_end_ns > c->now_ns ? c->switch_end_ns : c->now_ns;
        const int64_t end = from + c->at[c->running].work_ns, slice = slice_end(c);
        until = end < until ? end : until;
        until = slice < until ? slice : until;
    }
    return until > c->now_ns ? until : c->now_ns;
}

static void advance(struct card *c, int64_t to)
{
    const int64_t from = c->switch_end_ns > c->now_ns && c->running >= 0 ? c->switch_end_ns : c->now_ns;
    for (uint32_t i = 0; i < c->n; i++)
        c->at[i].paused_total_ns += c->at[i].present && c->at[i].paused ? to - c->now_ns : 0;
    if (c->running < 0)
        c->idle_ns += to - c->now_ns;
    else /* to the driver's samples a change is work, too; measured: 988 permille with 640 of them a second */
        c->use.worked_ns += to - c->now_ns;
    if (c->running >= 0 && to > from) {
        struct card_tenant *t = &c->at[c->running];
        t->work_ns -= to - from;
        t->done_ns += to - from;
        t->worked = true;
    }
    if (to > from && c->loaded >= 0 && !c->at[c->loaded].paused)
        stay(c, &c->at[c->loaded], to - from);
    c->now_ns = to;
}

void card_run(struct card *c, int64_t ns)
{
    const int64_t until = c->now_ns + ns;
    for (;;) {
        submit(c);
        if (c->running >= 0 && c->at[c->running].work_ns <= 0) {
            finish(c, &c->at[c->running]);
            continue; /* it may have more at once */
        }
        make_calls(c);
        if (c->running < 0)
            switch_to(c, next_one(c), c->yield_ns);
        if (c->now_ns >= until)
            return;
        if (c->running >= 0) {
            const int64_t end = slice_end(c);
            advance(c, next_event(c, until));
            if (c->now_ns >= end && c->at[c->running].work_ns > 0)
                switch_to(c, next_one(c), c->preempt_ns);
        } else {
            advance(c, next_event(c, until));
        }
    }
}

static uint64_t roll(struct card *c)
{
    uint64_t z = (c->dice += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The driver samples the card by itself, a little unevenly. */
static void sample_use(struct card *c)
{
    const int64_t passed = c->now_ns - c->use.from_ns;
    if (c->now_ns < c->use.next_ns)
        return;
    const uint32_t busy = passed > 0 ? (uint32_t)(c->use.worked_ns * 1000 / passed) : 0;
    const uint32_t off = c->use_off_permille ? (uint32_t)(roll(c) % c->use_off_permille) : 0;
    bh_use_samples_add(&c->use.news, (uint64_t)c->now_ns, busy - busy * off / 1000);
    c->use.from_ns = c->now_ns;
    c->use.worked_ns = 0;
    c->use.next_ns =
        c->now_ns + (c->use_every_ns ? c->use_every_ns : 143 * MS + (int64_t)(roll(c) % (uint64_t)(24 * MS)));
}

/* As the warden does at every reading (driver_busy.c). A tenant is a process; its number is its place. */
static void read_use(struct card *c)
{
    struct bh_use_turns at[CARD_TENANTS];
    struct bh_use_look look = {.now_ns = (uint64_t)c->now_ns, .at = at};
    if (c->use.read_ns == c->now_ns)
        return;
    c->use.read_ns = c->now_ns;
    sample_use(c);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct card_tenant *t = &c->at[i];
        if (t->present)
            at[look.n++] = (struct bh_use_turns){i + 1, (uint64_t)t->seen.had_ns, (uint64_t)t->seen.long_ns,
                                                 (uint64_t)t->seen.heard_ns, t->seen.turns};
    }
    look.held = c->loaded >= 0 && !c->at[c->loaded].paused;
    look.from_ns = look.held ? (uint64_t)(c->now_ns - c->at[c->loaded].seen.turn_ns) : 0;
    bh_use_watch(&c->use.book, &look);
    if (!bh_use_is_due(&c->use.book, &look))
        return;
    bh_use_samples_follow(&c->use.news, c->use.taken_ns);
    bh_use_take(&c->use.book, &look, &c->use.news);
    c->use.taken_ns = (uint64_t)c->use.from_ns;
    c->use.news = (struct bh_use_samples){0};
    c->use.asks++;
}

static uint32_t pid_of(const struct card *c, const struct card_tenant *t)
{
    return (uint32_t)(t - c->at) + 1;
}

/* Does somebody else keep it from the card whenever it rests? One that may rest itself does not. */
static bool is_crowded(const struct card *c, const struct card_tenant *t)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct card_tenant *o = &c->at[i];
        const uint32_t use = bh_use_permille(&c->use.book, i + 1);
        if (o != t && o->present && o->seen.wants && use >= BH_USE_FULL && !bh_use_doubt(&c->use.book, i + 1))
            return true;
    }
    return false;
}

/* What the governor makes of the card's record of turns (governor/sense.c). */
static void sense_turns(struct card *c, struct card_tenant *t, struct bh_govern_asked *ret)
{
    const bool on = c->loaded >= 0 && &c->at[c->loaded] == t && !t->paused;
    const uint32_t use = bh_use_permille(&c->use.book, pid_of(c, t));
    const bool known = use != BH_USE_UNKNOWN, rests = use < 10, crowded = is_crowded(c, t);
    const bool quiet = on && c->now_ns - c->moved_ns > 800 * MS;
    const int64_t had = t->seen.had_ns - t->seen.told_ns;
    const bool waits = !on && !had && !t->will_pause && crowded && c->now_ns - t->seen.heard_ns < 300 * MS;
    t->seen.told_ns = t->seen.had_ns;
    ret->gpu_ns = (uint64_t)had;
    ret->state = on || had ? BH_GOVERN_BUSY : BH_GOVERN_IDLE;
    ret->doubt = bh_use_doubt(&c->use.book, pid_of(c, t));
    if ((quiet && !known) || waits) {
        ret->gpu_ns = BH_GOVERN_NO_SAMPLE;
        ret->state = BH_GOVERN_UNKNOWN;
    } else if ((quiet || (!crowded && !t->will_pause)) && known) {
        ret->gpu_ns = rests ? 0 : (uint64_t)(had / 1000 * use);
        ret->state = rests ? BH_GOVERN_IDLE : ret->state;
    }
}

void card_sense(struct card *c, uint32_t tenant, struct bh_govern_asked *ret)
{
    struct card_tenant *t = &c->at[tenant];
    int64_t got = t->done_ns - t->told_ns;
    const bool working = can_run(t) || t->worked;

    t->told_ns = t->done_ns;
    if (c->late_steps) {
        const int64_t now = got;
        got = t->late_ns[0];
        memmove(&t->late_ns[0], &t->late_ns[1], sizeof(t->late_ns) - sizeof(t->late_ns[0]));
        t->late_ns[c->late_steps - 1] = now;
    }
    if (c->noise_permille) {
        const int64_t by = (int64_t)(roll(c) % (2 * (uint64_t)c->noise_permille + 1)) - c->noise_permille;
        got += got / 1000 * by;
    }
    ret->id = t->id;
    ret->gpu_ns = (uint64_t)got;
    ret->state = working ? BH_GOVERN_BUSY : BH_GOVERN_IDLE;
    if (t->paused)
        ret->state = BH_GOVERN_UNKNOWN;
    t->worked = false;
    if (c->by_turns) {
        read_use(c);
        sense_turns(c, t, ret);
    }
    if (c->new_unknown && !t->known) {
        ret->gpu_ns = BH_GOVERN_NO_SAMPLE;
        ret->state = BH_GOVERN_UNKNOWN;
    }
    t->known = true;
}

static void call_for(struct card *c, uint32_t tenant, bool pause)
{
    const int64_t start = c->caller_free_ns > c->now_ns ? c->caller_free_ns : c->now_ns;
    if (c->n_calls == CARD_CALLS)
        abort();
    c->caller_free_ns = start + (pause ? c->pause_ns : c->resume_ns);
    c->call[c->n_calls].tenant = tenant;
    c->call[c->n_calls].pause = pause;
    c->call[c->n_calls++].at_ns = c->caller_free_ns;
    c->at[tenant].will_pause = pause;
    c->calls_made++;
}

void card_apply(struct card *c, const struct bh_govern_out *out)
{
    for (int pass = 0; pass < 2; pass++) {
        const bool pause = (pass == 0) == (out->pause_first != 0);
        for (uint32_t k = 0; k < out->n; k++) {
            for (uint32_t i = 0; i < c->n; i++) {
                struct card_tenant *t = &c->at[i];
                if (!t->present || t->id != out->at[k].id)
                    continue;
                t->slice_ns = out->at[k].slice_us * US;
                t->seen.wants = out->at[k].active && !out->at[k].light && !out->at[k].paused;
                if (t->will_pause != (out->at[k].paused != 0) && pause == (out->at[k].paused != 0))
                    call_for(c, i, pause);
            }
        }
    }
}

static int by_length(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

int64_t card_wait_ns(struct card_tenant *t, uint32_t permille)
{
    if (t->n_waits == 0)
        return 0;
    qsort(t->wait_ns, t->n_waits, sizeof(t->wait_ns[0]), by_length);
    return t->wait_ns[(uint64_t)t->n_waits * permille / 1000 - (permille == 1000)];
}
