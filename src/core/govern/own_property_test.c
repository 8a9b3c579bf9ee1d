/* SPDX-License-Identifier: Apache-2.0 */
/* own_property_test.c - whatever is said, in whatever pieces and whenever: it is what a plain reading of the same lines gives. */
#include "core/govern/own.h"

#include "base/choice.h"
#include "base/mem.h"
#include "base/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400, BYTES = 4096, LINES = 200 };

/* What was said and when, in a list. */
struct word {
    uint64_t at_ms, units;
    uint32_t us;
    bool is_done;
};
static struct word words[LINES];
static uint32_t n_words, n_odd;

static int by_size(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t draw_line(struct bh_choice *c, uint64_t now_ms, char *ret, size_t size)
{
    struct word w = {.at_ms = now_ms, .is_done = bh_choose(c, 2)};
    if (bh_choose(c, 8) == 0) {
        n_odd++;
        return (size_t)snprintf(ret, size, "%.*s\n", (int)bh_choose(c, 100),
                                "done x or so, and more than fits into a line of ours, by far");
    }
    if (w.is_done)
        w.units = bh_choose(c, 4) ? bh_choose(c, 1000) : bh_choose(c, UINT32_MAX);
    else
        w.us = bh_choose(c, 4) ? bh_choose(c, 5000) : bh_choose(c, UINT32_MAX);
    words[n_words++] = w;
    return (size_t)(w.is_done ? snprintf(ret, size, "done %" PRIu64 "\n", w.units)
                              : snprintf(ret, size, "latency %" PRIu32 "us\n", w.us));
}

static bool is_near(uint32_t said, uint32_t real)
{
    const uint32_t off = said > real ? said - real : real - said;
    return off <= real / 30 + 1;
}

/* By the list: those in the window, sorted. */
static const char *compare(struct bh_own *o, uint64_t now_ms)
{
    uint32_t took[LINES], n = 0;
    uint64_t done = 0, ever = 0, lines = 0;
    const uint64_t slot = now_ms / BH_OWN_SLOT_MS, first = slot < BH_OWN_SLOTS ? 0 : slot - BH_OWN_SLOTS + 1;
    struct bh_own_sum s;
    const bool any = bh_own_sum(o, now_ms, &s);
    for (uint32_t i = 0; i < n_words; i++) {
        const struct word *w = &words[i];
        const bool in = w->at_ms / BH_OWN_SLOT_MS >= first;
        ever += w->units;
        lines += w->is_done;
        done += in ? w->units : 0;
        if (in && !w->is_done)
            took[n++] = w->us;
    }
    if (s.done != ever || s.lines != lines || s.garbage != n_odd || s.n_latencies != n)
        return "counts differ";
    if (!any && (done || n))
        return "something was said, and is not heard";
    if (s.has_rate && s.rate_milli < done * 1000000 / BH_OWN_WINDOW_MS)
        return "a rate below what was done in the window";
    if (!n)
        return s.p50_us == BH_OWN_NONE ? NULL : "a latency of nothing";
    qsort(took, n, sizeof(took[0]), by_size);
    if (!is_near(s.p50_us, took[(n * 500 + 999) / 1000 - 1]) ||
        !is_near(s.p99_us, took[(n * 990 + 999) / 1000 - 1]))
        return "percentiles are off";
    return NULL;
}

static const char *play(uint64_t seed)
{
    static struct bh_own own;
    static uint8_t bytes[BYTES];
    struct bh_choice c = {bytes, sizeof(bytes)};
    uint64_t now_ms = 1000 + seed;
    const char *why = NULL;
    bh_choice_fill(bytes, sizeof(bytes), seed);
    n_words = n_odd = 0;
    bh_own_init(&own, now_ms);
    while (!why && n_words < LINES && c.left) {
        char line[200];
        const size_t n = draw_line(&c, now_ms, line, sizeof(line));
        for (size_t at = 0, piece; at < n; at += piece) {
            piece = 1 + bh_choose(&c, 12);
            piece = piece < n - at ? piece : n - at;
            bh_own_take(&own, now_ms, line + at, piece);
        }
        now_ms += bh_choose(&c, 20) ? bh_choose(&c, 200) : bh_choose(&c, 9000);
        if (bh_choose(&c, 4) == 0)
            why = compare(&own, now_ms);
    }
    return why ? why : compare(&own, now_ms);
}

TEST(a_window_is_what_its_lines_say)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        const char *why = play(seed);
        if (why)
            printf("# seed %" PRIu64 ": %s\n", seed, why);
        CHECK(!why);
    }
}

TEST_MAIN
