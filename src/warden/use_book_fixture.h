/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_book_fixture.h - the driver's ring of samples, filled as it was seen to be, and as nobody should.
 *
 * The answer's sizes and the engine's place are those of gpu/abi/rm.h, which the recording holds to.
 */
#ifndef BH_WARDEN_USE_BOOK_FIXTURE_H
#define BH_WARDEN_USE_BOOK_FIXTURE_H

#include "warden/busy_book_fixture.h"
#include "warden/use_book.h"

static inline void samples_clear(struct rm_use_samples *s)
{
    memset(s, 0, sizeof(*s));
    s->type = RM_SAMPLES_USE;
    s->bytes = sizeof(s->samples);
}

/* One more, of `use` in percent of percent, in the place of the oldest. */
static inline void samples_add(struct rm_use_samples *s, uint64_t at, uint32_t pid, uint32_t use)
{
    s->samples[s->tracker].at = at;
    for (size_t e = 0; e < BH_COUNT_OF(s->samples[0].engines); e++)
        s->samples[s->tracker].engines[e] =
            (struct rm_engine_use){.pid = UINT32_MAX, .guest_pid = UINT32_MAX};
    s->samples[s->tracker].engines[1].pid = pid;
    s->samples[s->tracker].engines[1].use = use;
    s->tracker = (s->tracker + 1) % BH_COUNT_OF(s->samples);
    s->count += s->count < BH_COUNT_OF(s->samples);
}

/* What must hold whatever was read: NULL, or a sentence. */
static inline const char *use_wrong(const struct bh_use_book *u, const struct bh_busy_book *turns)
{
    if (u->use.n != turns->n)
        return "not as many processes as have turns";
    for (size_t i = 0; i < u->use.n; i++) {
        const uint32_t pid = u->use.at[i].pid, use = bh_use_book_permille(u, pid);
        if (use != BH_DRIVER_USE_UNKNOWN && use > 1000)
            return "more work than time";
        if (use != BH_DRIVER_USE_UNKNOWN && use >= BH_USE_FULL && use < 1000)
            return "a busy one loses";
        if (use != BH_DRIVER_USE_UNKNOWN && bh_use_book_doubt(u, pid))
            return "known, and in doubt";
    }
    return bh_use_book_permille(u, 999999999) == BH_DRIVER_USE_UNKNOWN ? NULL : "nobody's use";
}

/* Reads whatever the bytes say. */
static inline const char *play_use(struct bh_choice *c)
{
    static struct bh_use_book use;
    static struct bh_busy_book turns;
    static struct rm_use_samples s;
    struct book_tape tape = {.now_ns = BEGAN_NS};
    const char *why = NULL;
    uint64_t at = 1;
    bh_use_book_init(&use);
    bh_busy_book_init(&turns);
    turns.until_ns = BEGAN_NS;
    samples_clear(&s);
    while (c->left && !why) {
        static const uint32_t steps[] = {32, 2180000, 140000000, 300000000, 2000000000};
        tape_turn(&tape, &turns, bh_choose(c, 6) ? bh_choose(c, 4) : bh_choose(c, 1000),
                  steps[bh_choose(c, BH_COUNT_OF(steps))]);
        switch (bh_choose(c, 8)) {
        case 0:
            bh_busy_book_lose(&turns);
            break;
        case 1:
            for (size_t i = 0; i < 16; i++)
                ((uint8_t *)&s)[bh_choose(c, sizeof(s))] = (uint8_t)bh_choose(c, 256);
            s.tracker %= BH_COUNT_OF(s.samples);
            break;
        case 2:
            samples_clear(&s);
            break;
        case 3:
            tape.now_ns += (uint64_t)bh_choose(c, 256) << 28;
            bh_busy_book_look(&turns, tape.now_ns);
            break;
        default:
            samples_add(&s, at += bh_choose(c, 3), bh_choose(c, 5), bh_choose(c, 12000));
        }
        const uint64_t now_ns = tape.now_ns - (bh_choose(c, 16) ? 0 : 400000000);
        if (bh_use_book_watch(&use, &turns, now_ns) || bh_choose(c, 2))
            bh_use_book_take(&use, bh_choose(c, 16) ? &s : NULL, &turns, now_ns);
        why = use_wrong(&use, &turns);
    }
    return why;
}

#endif
