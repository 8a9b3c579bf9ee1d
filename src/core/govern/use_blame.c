/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_blame.c - who had the card whenever it was empty.
 *
 * What one of many leaves of its turns is little of the whole, and the sum puts up with it (use.c). But a sample is of 150 to 200 ms, of
 * which some had much and others little: the more of it one had that rests, the less was used. So each sample is held against what each
 * had of its time, and a line is laid through the newest of them for each: it falls for whoever rests. (Who comes before or after that one
 * in the round has more when it has less, so lines of others may fall, too, but they explain less.) What is believed of those who rest is
 * put to what was used, so that nobody is blamed for them. Whose line falls steeply and explains most is looked at while something is
 * missing; nothing is believed of anybody by this. Where no line falls all leave gaps alike, and nobody waits for a look.
 *
 * Measured on an H200, where one of five equal ones worked a quarter of its turns: its line fell by 71 to 79 in a hundred of sixteen
 * samples, and none of the others' by more than 25.
 *
 * Not told so: who rests by several processes that have its turns one after the other, or beside one that visits (class latency); a second
 * one that rests while the first is known and runs beside the others, since that one seems to use what the second leaves.
 */
#include "core/govern/use_inside.h"

#include <assert.h>

#define EMPTY_NS (2000 * BH_USE_MS)   /* something is missing for so long before anybody is blamed */
#define WAIT_NS  (10000 * BH_USE_MS)  /* until the next one may be, at first, */
#define MOST_NS  (160000 * BH_USE_MS) /* and at last */
#define APART_NS (150 * BH_USE_MS)    /* marks that are further apart do not tell who had what between them */

enum {
    MISSING = 40, /* permille of the time held: the last of 14 leaves 5 % if it works a quarter of its time */
    ENOUGH = 12,  /* samples for a line */
    FADES = 16,   /* one part of so many goes with each */
    SCALE = 1024, /* of all sums, for what is left of them to be exact enough */
    LOADING = 600,    /* permille: of a sample that says less the sum tells; somebody loaded, mostly */
    LITTLE = 70,      /* permille of the card: below 5 % there is no turn for a look (BH_LOOK_LEAST_PPM) */
    STEEP = -400,     /* permille: it works three fifths of its time at most */
    TELLS = 400,      /* permille of how much samples differ: its line explains no less of that */
    VARIED = 10 * 10, /* permille, squared: who had as much in all samples has no line */
};

/* Between two marks, or the last one and now. */
struct moment {
    uint32_t mark;
    uint64_t part_ns, of_ns;
};

static bool find_moment(const struct bh_use *u, uint64_t at_ns, uint64_t now_ns, struct moment *ret)
{
    const uint64_t at = at_ns < now_ns ? at_ns : now_ns;
    const uint32_t m = bh_use_mark_before(u, now_ns, now_ns - at);
    if (m == BH_USE_MARKS)
        return false;
    const uint64_t next = m == u->mark ? now_ns : u->mark_ns[(m + 1) % BH_USE_MARKS];
    *ret = (struct moment){m, at - u->mark_ns[m], bh_use_less(next, u->mark_ns[m])};
    return ret->of_ns <= APART_NS;
}

static uint64_t between(uint64_t from, uint64_t to, const struct moment *m)
{
    return m->of_ns ? from + bh_use_less(to, from) * m->part_ns / m->of_ns : from;
}

/* What it had had by then; `in_long`: in long turns. */
static uint64_t had_by(const struct bh_use *u, const struct bh_use_line *line, const struct moment *m,
                       bool in_long)
{
    const uint64_t *marks = in_long ? line->marks_long_ns : line->marks_ns;
    const uint64_t now = in_long ? line->long_ns : line->had_ns;
    return between(marks[m->mark], m->mark == u->mark ? now : marks[(m->mark + 1) % BH_USE_MARKS], m);
}

/* Permille of a sample's time. */
static int64_t had_of(const struct bh_use *u, const struct bh_use_line *line, const struct moment ends[2],
                      uint64_t span, bool in_long)
{
    assert(span);
    const uint64_t had = bh_use_less(had_by(u, line, &ends[1], in_long), had_by(u, line, &ends[0], in_long));
    return (int64_t)((had < span ? had : span) * BH_USE_WHOLE / span);
}

static void put(int64_t *sum, int64_t value)
{
    *sum += SCALE * value - *sum / FADES;
}

/* What was used of its time, and what those rested of whom it is known. */
static int64_t accounted_for(const struct bh_use *u, const struct bh_use_sample *s,
                             const struct moment ends[2])
{
    int64_t all = s->permille;
    for (size_t i = 0; i < u->n; i++) {
        const struct bh_use_line *line = &u->at[i];
        const int64_t rests = line->known ? BH_USE_WHOLE - (int64_t)line->permille : 0;
        all += had_of(u, line, ends, s->to_ns - s->from_ns, true) * rests / BH_USE_WHOLE;
    }
    return all;
}

static void add_sample(struct bh_use *u, const struct bh_use_sample *s, uint64_t now_ns)
{
    struct moment ends[2];
    if (s->to_ns <= s->from_ns || s->to_ns - s->from_ns > 2 * BH_USE_WINDOW_NS ||
        !find_moment(u, s->from_ns, now_ns, &ends[0]) || !find_moment(u, s->to_ns, now_ns, &ends[1]))
        return;
    const int64_t used = accounted_for(u, s, ends);
    if (used < LOADING)
        return;
    put(&u->blame.weight, 1);
    put(&u->blame.used, used);
    put(&u->blame.used2, used * used);
    for (size_t i = 0; i < u->n; i++) {
        const int64_t had = had_of(u, &u->at[i], ends, s->to_ns - s->from_ns, false);
        put(&u->at[i].blame.had, had);
        put(&u->at[i].blame.had2, had * had);
        put(&u->at[i].blame.both, had * used);
    }
    u->blame.samples += u->blame.samples < ENOUGH;
}

void bh_use_blame_add(struct bh_use *u, const struct bh_use_samples *s, uint64_t now_ns)
{
    for (uint32_t i = 0; i < s->n_timed; i++)
        if (s->at[i].to_ns <= now_ns + BH_USE_LATE_NS)
            add_sample(u, &s->at[i], now_ns);
}

void bh_use_blame_forget(struct bh_use *u)
{
    u->blame.samples = 0;
    u->blame.empty_ns = 0;
    u->blame.weight = u->blame.used = u->blame.used2 = 0;
    for (size_t i = 0; i < u->n; i++)
        u->at[i].blame = (struct bh_use_blamed){0};
}

/* Of two sums and that of the products: how much they differ together. */
static int64_t covariance(const struct bh_use *u, int64_t both, int64_t a, int64_t b)
{
    const int64_t n = u->blame.weight;
    return both / n - (a / n) * (b / n) - ((a / n) * (b % n) + (b / n) * (a % n)) / n;
}

/* Permille of the time held. */
static int64_t missing(const struct bh_use *u)
{
    const uint64_t us = bh_use_less(u->low_us, u->used_us);
    return u->held_us ? (int64_t)(us * BH_USE_WHOLE / u->held_us) : 0;
}

/* How much of the difference between samples its line explains, if that falls steeply; 0: it does not, or it had always as much. */
static int64_t explains(const struct bh_use *u, const struct bh_use_line *line)
{
    const struct bh_use_blamed *b = &line->blame;
    const int64_t varied = covariance(u, b->had2, b->had, b->had),
                  joint = covariance(u, b->both, b->had, u->blame.used);
    return varied < VARIED || joint > varied * STEEP / BH_USE_WHOLE ? 0 : joint * joint / varied;
}

/* It was looked at lately, and that explained nothing: else one that works then would hide all others. */
static bool is_spared(const struct bh_use *u, const struct bh_use_line *line, uint64_t now_ns)
{
    return line->reviewed_ns && now_ns >= line->reviewed_ns &&
           now_ns - line->reviewed_ns < 2 * u->blame.wait_ns;
}

/* Whose line falls steeply and explains most; NULL: nobody's, or that is one who had little. */
static struct bh_use_line *who(struct bh_use *u, uint64_t now_ns)
{
    const int64_t differs = covariance(u, u->blame.used2, u->blame.used, u->blame.used);
    int64_t most = differs * TELLS / BH_USE_WHOLE;
    struct bh_use_line *ret = NULL;
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        const int64_t explained = is_spared(u, line, now_ns) ? 0 : explains(u, line);
        if (explained > most) {
            ret = line;
            most = explained;
        }
    }
    return ret && ret->blame.had >= u->blame.weight * LITTLE ? ret : NULL;
}

/* Later each time, whatever comes of it: who works when it is looked at would be looked at again and again. */
static void put_off(struct bh_use_blame *b, uint64_t now_ns)
{
    b->wait_ns = b->wait_ns < WAIT_NS / 2 ? WAIT_NS : b->wait_ns < MOST_NS / 2 ? 2 * b->wait_ns : MOST_NS;
    b->next_ns = now_ns + b->wait_ns;
    b->empty_ns = 0;
}

void bh_use_blame(struct bh_use *u, uint64_t span, uint64_t now_ns)
{
    struct bh_use_blame *b = &u->blame;
    const bool waits = now_ns < b->next_ns && b->next_ns - now_ns <= b->wait_ns; /* or the clock went back */
    const bool empty = missing(u) > MISSING && bh_use_may_look(u); /* of one in doubt it is not known */
    if (u->seldom) {
        bh_use_blame_forget(u);
        return;
    }
    b->empty_ns = empty ? b->empty_ns + span : bh_use_less(b->empty_ns, span);
    b->empty_ns = b->empty_ns < EMPTY_NS ? b->empty_ns : EMPTY_NS;
    if (b->empty_ns < EMPTY_NS || b->samples < ENOUGH || waits)
        return;
    struct bh_use_line *line = who(u, now_ns);
    if (!line)
        return;
    put_off(b, now_ns);
    bh_use_look_at(u, line, now_ns);
}
