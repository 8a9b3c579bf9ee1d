/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_book.c - samples to uses. See use_book.h for what is believed of them.
 *
 * Measured on an H200 with a tenant that always works and one that does for a twentieth of its turns, half of the time
 * each: the first has 37 to 45 % under its name and the second 7 to 15. Together that is what the two used; the second's
 * is several times what it did.
 */
#include "warden/use_book.h"

#include "base/mem.h"

enum {
    GRAPHICS = 1,      /* which engine of a sample: the one for compute, too */
    WHOLE_USE = 10000, /* percent of percent */
    FADES = 12,        /* one part of so many goes with each sample */
    RESTS = 10,        /* permille: it does nothing */
    SEEN_AT_WORK =
        20, /* permille, at least: the sum is good within some hundredths, so that too much may be laid to one */
    SAMPLE = 1024,     /* one, so that it can fade */
    LEAST_PART = 10,   /* of the window one must have had the card in long turns to be judged */
    NAMED_MORE = 1150, /* permille: a busy process is named in 37 to 45 % where it has 50 */
};

#define AWAY_NS UINT64_C(1000000000) /* without a turn */

void bh_use_book_init(struct bh_use_book *u)
{
    *u = (struct bh_use_book){0};
}

static struct bh_use_line *find(struct bh_use_book *u, uint32_t pid)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].pid == pid)
            return &u->at[i];
    return NULL;
}

static bool has_turns(const struct bh_busy_book *turns, uint32_t pid)
{
    for (size_t i = 0; i < turns->n; i++)
        if (turns->at[i].busy.pid == pid)
            return true;
    return false;
}

/* The record of turns forgets processes, and so does this one; there is room for as many. */
static void follow(struct bh_use_book *u, const struct bh_busy_book *turns)
{
    for (size_t i = u->n; i-- > 0;)
        if (!has_turns(turns, u->at[i].pid))
            u->at[i] = u->at[--u->n];
    for (size_t i = 0; i < turns->n; i++)
        if (!find(u, turns->at[i].busy.pid))
            u->at[u->n++] = (struct bh_use_line){.pid = turns->at[i].busy.pid};
}

/* The time of the last one; 0: there is none. */
static uint64_t newest_of(const struct rm_use_samples *s)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < BH_COUNT_OF(s->samples); i++)
        newest = s->samples[i].at > newest ? s->samples[i].at : newest;
    return newest;
}

/* A window begins: what each had up to here does not count in it. What was found before stays. */
static void begin(struct bh_use_book *u, const struct bh_busy_book *turns, uint64_t newest, uint64_t now_ns)
{
    u->begun = true;
    u->newest = newest;
    u->from_ns = now_ns;
    u->seen = 0;
    u->span_ns = u->samples = u->named_all = 0;
    for (size_t i = 0; i < turns->n; i++) {
        struct bh_use_line *line = find(u, turns->at[i].busy.pid);
        line->had_ns = turns->at[i].busy.ns;
        line->had_long_ns = turns->at[i].long_ns;
        line->time_ns = line->long_ns = line->named = 0;
    }
}

/* For each sample: so what is remembered is about two seconds. */
static void fade(struct bh_use_book *u)
{
    u->span_ns -= u->span_ns / FADES;
    u->samples -= u->samples / FADES;
    u->named_all -= u->named_all / FADES;
    for (size_t i = 0; i < u->n; i++) {
        u->at[i].time_ns -= u->at[i].time_ns / FADES;
        u->at[i].long_ns -= u->at[i].long_ns / FADES;
        u->at[i].named -= u->at[i].named / FADES;
    }
}

/* How many were new. */
static size_t take_samples(struct bh_use_book *u, const struct rm_use_samples *s)
{
    size_t n = 0;
    for (size_t i = 0; i < BH_COUNT_OF(s->samples); i++) {
        const struct rm_engine_use *e = &s->samples[i].engines[GRAPHICS];
        if (s->samples[i].at <= u->newest)
            continue;
        n++;
        fade(u);
        const uint64_t use = (uint64_t)(e->use < WHOLE_USE ? e->use : WHOLE_USE) * SAMPLE;
        struct bh_use_line *line = find(u, e->pid);
        u->samples += SAMPLE;
        u->named_all += use;
        if (line)
            line->named += use;
    }
    return n;
}

/* What came since, of a sum that begins anew where its process was forgotten meanwhile. */
static uint64_t since(uint64_t now, uint64_t *was, uint64_t most)
{
    const uint64_t more = now >= *was ? now - *was : now;
    *was = now;
    return more < most ? more : most;
}

static void take_turns(struct bh_use_book *u, const struct bh_busy_book *turns, uint64_t now_ns)
{
    const uint64_t passed = now_ns - u->from_ns;
    for (size_t i = 0; i < turns->n; i++) {
        struct bh_use_line *line = find(u, turns->at[i].busy.pid);
        line->time_ns += since(turns->at[i].busy.ns, &line->had_ns, passed);
        line->long_ns += since(turns->at[i].long_ns, &line->had_long_ns, passed);
        if (now_ns > turns->at[i].heard_ns && now_ns - turns->at[i].heard_ns > AWAY_NS) {
            line->known = false; /* what it did before says nothing of what it does when it comes back */
            line->long_ns = 0;
        }
    }
    u->span_ns += passed;
    u->from_ns = now_ns;
}

/* Microseconds of the window that were used under so much of the samples. */
static uint64_t used_us(const struct bh_use_book *u, uint64_t named)
{
    return u->span_ns / 1000 * named / (u->samples * WHOLE_USE);
}

static bool is_judged(const struct bh_use_book *u, const struct bh_use_line *line)
{
    return line->long_ns >= u->span_ns / LEAST_PART && line->long_ns >= 1000;
}

/* Time for which it was not named, of what it had; 0 for one that was about as often as a busy one is. */
static uint64_t unnamed_us(const struct bh_use_book *u, const struct bh_use_line *line)
{
    const uint64_t had = line->time_ns / 1000, used = used_us(u, line->named) * NAMED_MORE / 1000;
    if (!is_judged(u, line) || used * 1000 >= had * BH_USE_FULL)
        return 0;
    return had - used < line->long_ns / 1000 ? had - used : line->long_ns / 1000;
}

static uint32_t bounded(const struct bh_use_line *line, uint64_t permille)
{
    if (permille >= BH_USE_FULL)
        return 1000;
    return line->named && permille < SEEN_AT_WORK ? SEEN_AT_WORK : (uint32_t)permille;
}

static void judge(struct bh_use_book *u, uint64_t now_ns)
{
    const uint64_t used = used_us(u, u->named_all);
    uint64_t had_all = 0, unnamed_all = 0;
    for (size_t i = 0; i < u->n; i++) {
        had_all += u->at[i].time_ns / 1000;
        unnamed_all += unnamed_us(u, &u->at[i]);
    }
    const uint64_t idle = had_all > used ? had_all - used : 0;
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        const uint64_t had = line->long_ns / 1000, unnamed = unnamed_us(u, line);
        if (!is_judged(u, line)) {
            line->known =
                line->known && line->permille >= RESTS; /* it gave its turns up: one that works is another */
            continue;
        }
        const uint64_t own_idle = unnamed ? idle * unnamed / unnamed_all : 0;
        line->known = true;
        line->known_ns = now_ns;
        line->permille = bounded(line, own_idle < had ? (had - own_idle) * 1000 / had : 0);
    }
}

void bh_use_book_take(struct bh_use_book *u, const struct rm_use_samples *s, const struct bh_busy_book *turns,
                      uint64_t now_ns)
{
    const uint64_t newest = newest_of(s);
    follow(u, turns);
    if (!u->begun || now_ns < u->from_ns || now_ns - u->from_ns > BH_USE_GAP_NS || newest < u->newest) {
        begin(u, turns, newest, now_ns);
        return;
    }
    const size_t n = take_samples(u, s);
    if (n == 0)
        return;
    u->newest = newest;
    take_turns(u, turns, now_ns);
    u->seen = n < BH_USE_FEW_SAMPLES - u->seen ? u->seen + (uint32_t)n : BH_USE_FEW_SAMPLES;
    if (u->seen == BH_USE_FEW_SAMPLES)
        judge(u, now_ns);
}

uint32_t bh_use_book_permille(const struct bh_use_book *u, uint32_t pid, uint64_t now_ns)
{
    for (size_t i = 0; i < u->n; i++) {
        const struct bh_use_line *line = &u->at[i];
        if (line->pid == pid && line->known && now_ns >= line->known_ns &&
            now_ns - line->known_ns <= BH_USE_KEEP_NS)
            return line->permille;
    }
    return BH_DRIVER_USE_UNKNOWN;
}
