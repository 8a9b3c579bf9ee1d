/* SPDX-License-Identifier: Apache-2.0 */
/* use_book.c - the driver's ring of samples and the record of turns, in the form that core/govern/use.h takes. */
#include "warden/use_book.h"

#include "base/mem.h"

enum {
    GRAPHICS = 1,      /* which engine of a sample: the one for compute, too */
    WHOLE_USE = 10000, /* percent of percent */
    PERMILLE = 10,     /* of that */
};
_Static_assert((int)BH_USE_PROCESSES == (int)BH_BUSY_PIDS, "a process with turns and without a use");
_Static_assert(BH_USE_UNKNOWN == BH_DRIVER_USE_UNKNOWN, "two ways not to know");

void bh_use_book_init(struct bh_use_book *u)
{
    bh_use_init(&u->use);
    u->begun = false;
    u->newest = 0;
}

static struct bh_use_look look_at(const struct bh_busy_book *turns, uint64_t now_ns,
                                  struct bh_use_turns at[BH_BUSY_PIDS])
{
    for (size_t i = 0; i < turns->n; i++)
        at[i] = (struct bh_use_turns){.pid = turns->at[i].busy.pid,
                                      .ns = turns->at[i].busy.ns,
                                      .long_ns = turns->at[i].long_ns,
                                      .heard_ns = turns->at[i].heard_ns,
                                      .turns = turns->at[i].busy.turns};
    return (struct bh_use_look){
        .now_ns = now_ns, .held = turns->held, .from_ns = turns->from, .at = at, .n = turns->n};
}

bool bh_use_book_watch(struct bh_use_book *u, const struct bh_busy_book *turns, uint64_t now_ns)
{
    struct bh_use_turns at[BH_BUSY_PIDS];
    const struct bh_use_look look = look_at(turns, now_ns, at);
    bh_use_watch(&u->use, &look);
    return bh_use_is_due(&u->use, &look);
}

void bh_use_book_note(struct bh_use_book *u, const struct bh_busy_book *turns)
{
    struct bh_use_turns at[BH_BUSY_PIDS];
    if (!bh_use_wants_mark(&u->use, turns->until_ns))
        return;
    const struct bh_use_look look = look_at(turns, turns->until_ns, at);
    bh_use_watch(&u->use, &look);
}

/* The new ones. A ring that is older than what was read is another: it begins anew. */
static struct bh_use_samples read_ring(struct bh_use_book *u, const struct rm_use_samples *s)
{
    const uint64_t before = u->newest;
    struct bh_use_samples ret = {0};
    uint64_t newest = 0;
    for (size_t i = 0; i < BH_COUNT_OF(s->samples); i++) {
        const uint32_t use = s->samples[i].engines[GRAPHICS].use;
        const uint64_t at = s->samples[i].at;
        newest = at > newest ? at : newest;
        if (at > before)
            bh_use_samples_add(&ret, at, (use < WHOLE_USE ? use : WHOLE_USE) / PERMILLE);
    }
    const bool again = u->begun && newest >= before;
    u->begun = true;
    u->newest = newest;
    bh_use_samples_follow(&ret, before);
    return again ? ret : (struct bh_use_samples){0};
}

void bh_use_book_take(struct bh_use_book *u, const struct rm_use_samples *s, const struct bh_busy_book *turns,
                      uint64_t now_ns)
{
    struct bh_use_turns at[BH_BUSY_PIDS];
    const struct bh_use_look look = look_at(turns, now_ns, at);
    struct bh_use_samples samples = {0};
    if (s)
        samples = read_ring(u, s);
    bh_use_take(&u->use, &look, &samples);
}

uint32_t bh_use_book_permille(const struct bh_use_book *u, uint32_t pid)
{
    return bh_use_permille(&u->use, pid);
}

bool bh_use_book_doubt(const struct bh_use_book *u, uint32_t pid)
{
    return bh_use_doubt(&u->use, pid);
}
