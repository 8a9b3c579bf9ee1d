/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/word.h"

#include <inttypes.h>

/* Time on the card until what was said counts half. */
#define FADE_ALONE_US  UINT64_C(60000000)
#define FADE_BESIDE_US UINT64_C(10000000)
#define FADE_NOW_US    UINT64_C(600000)
/* One that says nothing for so long has stopped to. Nothing is seen of it within an interval, and those may be longer: so at least
 * one passes without a word. */
#define SILENT_NS (UINT64_C(3000) * 1000 * 1000)
#define GONE_NS   (UINT64_C(10000) * 1000 * 1000) /* and what it said is told no longer */
/* After somebody came or went: latencies are those of seconds. */
#define MIXED_NS (UINT64_C(6000) * 1000 * 1000)

/* Who tells may begin again, and so may numbers. */
static uint64_t since(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : 0;
}

static uint64_t at_least(uint64_t ns, uint64_t of_intervals_ns)
{
    return ns > of_intervals_ns ? ns : of_intervals_ns;
}

static void note(struct bh_word *w, const struct bh_tally_line *line, uint64_t taken_ns)
{
    w->tells = line->tells;
    w->done = line->own_done;
    w->lines = line->own_lines;
    w->taken_ns = taken_ns;
}

void bh_word_pass(struct bh_word *w, const struct bh_tally_line *line)
{
    note(w, line, 0); /* no interval ends here */
}

static void take_latency(struct bh_word *w, uint32_t p99_us)
{
    uint64_t *const mean = &w->p99_us[w->company];
    *mean = w->n_p99[w->company]++ ? (*mean + p99_us) / 2 : p99_us;
}

/* A word is of the time since the one before. */
static void take_done(struct bh_word *w, uint64_t done, uint64_t lines, uint64_t gpu_us, uint64_t interval_ns,
                      uint64_t at_ns)
{
    w->is_mixed |= at_ns - w->heard_ns > at_least(SILENT_NS, interval_ns + interval_ns / 2);
    w->open_us += gpu_us;
    if (!lines)
        return;
    if (!w->is_mixed) {
        bh_worth_add(&w->now, done, lines, w->open_us, FADE_NOW_US);
        bh_worth_add(&w->at[w->company], done, lines, w->open_us,
                     w->company == BH_WORD_ALONE ? FADE_ALONE_US : FADE_BESIDE_US);
    }
    w->open_us = 0;
    w->is_mixed = false;
    w->heard_ns = at_ns;
}

uint64_t bh_word_take(struct bh_word *w, const struct bh_tally_line *line, enum bh_word_company company,
                      uint64_t at_ns)
{
    const uint64_t done = since(w->done, line->own_done), lines = since(w->lines, line->own_lines);
    /* the first one tells where it begins */
    const bool counts = w->tells && line->tells && line->gpu_permille != BH_CULPRIT_UNKNOWN;
    const uint64_t interval_ns = w->taken_ns ? at_ns - w->taken_ns : 0;
    note(w, line, at_ns);
    if (company != w->company) {
        w->company = company;
        w->since_ns = at_ns;
        w->now = (struct bh_worth){0};
        w->is_mixed = true;
    }
    if (!counts) {
        w->is_mixed = true;
        return 0;
    }
    take_done(w, done, lines, line->gpu_us, interval_ns, at_ns);
    w->speaks = at_ns - w->heard_ns <= at_least(GONE_NS, 2 * interval_ns + interval_ns / 2) ||
                line->own_p99_us != UINT32_MAX;
    if (line->own_p99_us != UINT32_MAX && at_ns - w->since_ns > MIXED_NS)
        take_latency(w, line->own_p99_us);
    return w->now.gpu_us ? bh_worth_milli(&w->now) : 0;
}

uint64_t bh_word_alone_milli(const struct bh_word *w)
{
    const struct bh_worth *alone = &w->at[BH_WORD_ALONE];
    return w->speaks && bh_worth_is_known(alone) ? bh_worth_milli(alone) : 0;
}

uint32_t bh_word_worth(const struct bh_word *w)
{
    const struct bh_worth *beside = &w->at[BH_WORD_BESIDE];
    return bh_word_alone_milli(w) && bh_worth_is_known(beside)
               ? bh_worth_permille(bh_word_alone_milli(w), bh_worth_milli(beside))
               : 0;
}

static void units(uint64_t milli, struct bh_buf *out)
{
    if (milli < UINT64_C(100000))
        bh_buf_printf(out, "%" PRIu64 ".%" PRIu64, milli / 1000, milli % 1000 / 100);
    else
        bh_buf_printf(out, "%" PRIu64, milli / 1000);
}

static void say_worth(const struct bh_word *w, struct bh_buf *out)
{
    units(bh_worth_milli(&w->at[BH_WORD_BESIDE]), out);
    bh_buf_str(out, " units a second of card time");
    if (bh_word_worth(w)) {
        bh_buf_str(out, " beside others, ");
        units(bh_word_alone_milli(w), out);
        bh_buf_printf(out, " alone: a turn does %" PRIu32 " %% of the work that it does alone",
                      (bh_word_worth(w) + 5) / 10);
    }
    bh_buf_str(out, "\n");
}

void bh_word_say(const struct bh_word *w, const struct bh_culprit_tenant *who, struct bh_buf *out)
{
    if (w->speaks && bh_worth_is_known(&w->at[BH_WORD_BESIDE])) {
        bh_culprit_lease(who, out);
        bh_buf_str(out, " says of itself: ");
        say_worth(w, out);
    }
    if (w->speaks && w->n_p99[BH_WORD_ALONE] && w->n_p99[BH_WORD_BESIDE]) {
        bh_culprit_lease(who, out);
        bh_buf_printf(out, " says of itself: p99 %" PRIu64 " us beside others, %" PRIu64 " us alone\n",
                      w->p99_us[BH_WORD_BESIDE], w->p99_us[BH_WORD_ALONE]);
    }
}
