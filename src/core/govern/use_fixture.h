/* SPDX-License-Identifier: Apache-2.0 */
/* use_fixture.h - a card is played: turns of some milliseconds each, and now and then how much of that was work in all. */
#ifndef BH_CORE_GOVERN_USE_FIXTURE_H
#define BH_CORE_GOVERN_USE_FIXTURE_H

#include "base/mem.h"
#include "base/test.h"
#include "core/govern/use.h"

#define MS UINT64_C(1000000)
enum { A = 42, B = 43, C = 44, D = 45, MOST = 12 };

static struct bh_use use;
static struct bh_use_turns turns[MOST];
static uint64_t now, sampled_ns, next_ns, worked_ns, turn_from;
static struct bh_use_samples news;
static uint64_t taken_ns;
static uint32_t asks;
static uint64_t every_ms; /* a sample comes; 0: every 143 to 167, as was measured */
static uint64_t read_ms;  /* the turns are, so often */
static uint64_t apart_ns; /* the clock of samples, if it is another */
static size_t n_turns;
static bool counts_changes;

struct plays {
    uint32_t pid, turn_ms, works; /* works: permille of it */
};

static inline void begin(void)
{
    bh_use_init(&use);
    memset(turns, 0, sizeof(turns));
    now = sampled_ns = 1000 * MS;
    next_ns = now + 150 * MS;
    worked_ns = apart_ns = 0;
    every_ms = 150;
    read_ms = 5;
    news = (struct bh_use_samples){0};
    taken_ns = now;
    asks = 0;
    n_turns = 0;
    counts_changes = false;
}

static inline struct bh_use_turns *turns_of(uint32_t pid)
{
    for (size_t i = 0; i < n_turns; i++)
        if (turns[i].pid == pid)
            return &turns[i];
    turns[n_turns].pid = pid;
    return &turns[n_turns++];
}

static inline void read_card(void)
{
    const struct bh_use_look look = {
        .now_ns = now, .held = true, .from_ns = turn_from, .at = turns, .n = n_turns};
    if (now >= next_ns) {
        bh_use_samples_add(&news, now + apart_ns, (uint32_t)(worked_ns * 1000 / (now - sampled_ns)));
        sampled_ns = now;
        next_ns = now + (every_ms ? every_ms : 143 + now / MS * 7 % 25) * MS;
        worked_ns = 0;
    }
    bh_use_watch(&use, &look);
    if (!bh_use_is_due(&use, &look))
        return;
    bh_use_samples_follow(&news, taken_ns);
    bh_use_take(&use, &look, &news);
    taken_ns = sampled_ns + apart_ns;
    news = (struct bh_use_samples){0};
    asks++;
}

/* In turns. */
static inline void play(const struct plays *who, size_t n, uint64_t ms)
{
    const uint64_t until = now + ms * MS;
    for (size_t i = 0; now < until; i = (i + 1) % n) {
        turn_from = now;
        turns_of(who[i].pid)->turns += counts_changes;
        for (uint32_t k = 0; k < who[i].turn_ms && now < until; k++) {
            struct bh_use_turns *t = turns_of(who[i].pid);
            now += MS;
            worked_ns += MS / 1000 * who[i].works;
            t->ns += MS;
            t->long_ns += k >= 4 ? MS : k == 3 ? 4 * MS : 0;
            t->heard_ns = now;
            if (now / MS % read_ms == 0)
                read_card();
        }
    }
}

/* One after the other is seen alone. */
static inline void begin_alone(const struct plays *a, const struct plays *b)
{
    begin();
    play(a, 1, 600);
    play(b, 1, 600);
}

static inline uint32_t use_of(uint32_t pid)
{
    return bh_use_permille(&use, pid);
}

static inline bool any_doubt(uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (bh_use_doubt(&use, first + i))
            return true;
    return false;
}

#endif
