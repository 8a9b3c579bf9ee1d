/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - the two tables: what a state means, and which cause leads from it to which. */
#include "core/lease/lease.h"

#include "base/str.h"

#include <stddef.h>

/* What may name a lease in a state: slices in use, slices being scrubbed, slices nobody gets. */
enum { OWNED = 1, DIRTY = 2, QUARANTINED = 4 };

struct state_row {
    const char *word;
    uint8_t slices; /* bits of what may name it */
    bool some;      /* and one must */
    bool charged, runs, terminal, over;
};

static const struct state_row states[BH_LEASE_STATES] = {
    [BH_LEASE_REQUESTED] = {"requested", 0, false, false, false, false, false},
    [BH_LEASE_ADMITTED] = {"admitted", 0, false, false, false, false, false},
    [BH_LEASE_REFUSED] = {"refused", 0, false, false, false, true, true},
    [BH_LEASE_PREPARING] = {"preparing", OWNED, true, false, true, false, false},
    [BH_LEASE_ACTIVE] = {"active", OWNED, true, true, true, false, false},
    [BH_LEASE_PARKING] = {"parking", OWNED | DIRTY, true, true, true, false, false},
    [BH_LEASE_SUSPENDED] = {"suspended", 0, false, false, true, false, false},
    [BH_LEASE_DRAINING] = {"draining", OWNED | DIRTY, false, true, true, false, false},
    [BH_LEASE_FAILED] = {"failed", OWNED, true, false, true, false, false},
    [BH_LEASE_SCRUBBING] = {"scrubbing", DIRTY | QUARANTINED, false, false, false, false, true},
    [BH_LEASE_RELEASED] = {"released", 0, false, false, false, true, true},
    [BH_LEASE_QUARANTINED] = {"quarantined", QUARANTINED, true, false, false, false, true},
};

static const char *const causes[BH_LEASE_CAUSES] = {
    [BH_LEASE_BY_ADMIT] = "admit",   [BH_LEASE_BY_REFUSE] = "refuse", [BH_LEASE_BY_CANCEL] = "cancel",
    [BH_LEASE_BY_GRANT] = "grant",   [BH_LEASE_BY_READY] = "ready",   [BH_LEASE_BY_BREAK] = "break",
    [BH_LEASE_BY_END] = "end",       [BH_LEASE_BY_EVICT] = "evict",   [BH_LEASE_BY_EXPIRE] = "expire",
    [BH_LEASE_BY_BREACH] = "breach", [BH_LEASE_BY_FAULT] = "fault",   [BH_LEASE_BY_LOSE] = "lose",
    [BH_LEASE_BY_PARK] = "park",     [BH_LEASE_BY_PARKED] = "parked", [BH_LEASE_BY_UNPARK] = "unpark",
    [BH_LEASE_BY_WAKE] = "wake",     [BH_LEASE_BY_EMPTY] = "empty",   [BH_LEASE_BY_STUCK] = "stuck",
    [BH_LEASE_BY_CLEAN] = "clean",   [BH_LEASE_BY_DIRTY] = "dirty",   [BH_LEASE_BY_RETRY] = "retry",
};

/* TO(x) is one more than the state, so that what is left out of the table is no way at all. */
#define TO(name)          ((uint8_t)(BH_LEASE_##name + 1))
#define ON(cause)         [BH_LEASE_BY_##cause]
#define TOLD_TO_END(name) ON(CANCEL) = TO(name), ON(EVICT) = TO(name), ON(EXPIRE) = TO(name)
#define CANNOT_GO_ON(name) \
    TOLD_TO_END(name), ON(BREACH) = TO(name), ON(FAULT) = TO(name), ON(LOSE) = TO(name), ON(END) = TO(name)

static const uint8_t ways[BH_LEASE_STATES][BH_LEASE_CAUSES] = {
    [BH_LEASE_REQUESTED] = {ON(ADMIT) = TO(ADMITTED), ON(REFUSE) = TO(REFUSED), ON(CANCEL) = TO(REFUSED)},
    [BH_LEASE_ADMITTED] = {ON(GRANT) = TO(PREPARING), ON(REFUSE) = TO(REFUSED), ON(CANCEL) = TO(REFUSED)},
    /* Before it is active nothing ran that could have ended by itself: all ways out take back what was set up. */
    [BH_LEASE_PREPARING] = {ON(READY) = TO(ACTIVE), ON(BREAK) = TO(FAILED), CANNOT_GO_ON(FAILED)},
    [BH_LEASE_ACTIVE] = {ON(PARK) = TO(PARKING), CANNOT_GO_ON(DRAINING)},
    [BH_LEASE_PARKING] = {ON(PARKED) = TO(SUSPENDED), ON(UNPARK) = TO(ACTIVE), ON(DIRTY) = TO(DRAINING),
                          CANNOT_GO_ON(DRAINING)},
    [BH_LEASE_SUSPENDED] = {ON(WAKE) = TO(PREPARING), CANNOT_GO_ON(DRAINING)},
    [BH_LEASE_DRAINING] = {ON(EMPTY) = TO(SCRUBBING), ON(STUCK) = TO(QUARANTINED)},
    [BH_LEASE_FAILED] = {ON(EMPTY) = TO(SCRUBBING), ON(STUCK) = TO(QUARANTINED)},
    [BH_LEASE_SCRUBBING] = {ON(CLEAN) = TO(RELEASED), ON(DIRTY) = TO(QUARANTINED)},
    [BH_LEASE_QUARANTINED] = {ON(RETRY) = TO(SCRUBBING)},
};

const char *bh_lease_state_str(enum bh_lease_state s)
{
    return states[s].word;
}

const char *bh_lease_cause_str(enum bh_lease_cause c)
{
    return causes[c];
}

int bh_lease_state_find(const char *word)
{
    for (int i = 0; i < BH_LEASE_STATES; i++) {
        if (bh_str_eq(states[i].word, word))
            return i;
    }
    return -1;
}

int bh_lease_cause_find(const char *word)
{
    for (int i = 0; i < BH_LEASE_CAUSES; i++) {
        if (bh_str_eq(causes[i], word))
            return i;
    }
    return -1;
}

bool bh_lease_next(enum bh_lease_state s, enum bh_lease_cause c, enum bh_lease_state *ret)
{
    if (!ways[s][c])
        return false;
    *ret = (enum bh_lease_state)(ways[s][c] - 1);
    return true;
}

int bh_lease_step(enum bh_lease_state s, enum bh_lease_cause c, enum bh_lease_state *ret, struct bh_err *err)
{
    if (!bh_lease_next(s, c, ret))
        return bh_fail(err, BH_CONFLICT, "a lease that is '%s' has no way on by '%s'", states[s].word,
                       causes[c]);
    return 0;
}

bool bh_lease_may_become(enum bh_lease_state from, enum bh_lease_state to)
{
    for (int c = 0; c < BH_LEASE_CAUSES; c++) {
        if (ways[from][c] == to + 1)
            return true;
    }
    return false;
}

bool bh_lease_holds_slices(enum bh_lease_state s)
{
    return states[s].slices != 0;
}

bool bh_lease_is_charged(enum bh_lease_state s)
{
    return states[s].charged;
}

bool bh_lease_may_run(enum bh_lease_state s)
{
    return states[s].runs;
}

bool bh_lease_hands_on(enum bh_lease_state s)
{
    return s == BH_LEASE_RELEASED;
}

bool bh_lease_is_terminal(enum bh_lease_state s)
{
    return states[s].terminal;
}

bool bh_lease_is_over(enum bh_lease_state s)
{
    return states[s].over;
}

static int check_slices(const struct bh_lease_facts *f, const struct state_row *row, struct bh_err *err)
{
    const struct {
        uint8_t bit;
        uint32_t n;
        const char *word;
    } kinds[] = {{OWNED, f->owned, "in use"},
                 {DIRTY, f->dirty, "being scrubbed"},
                 {QUARANTINED, f->quarantined, "in quarantine"}};
    const uint64_t named = (uint64_t)f->owned + f->dirty + f->quarantined;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].n && !(row->slices & kinds[i].bit))
            return bh_fail(err, BH_CONFLICT, "a lease that is '%s' has %u slices %s", row->word, kinds[i].n,
                           kinds[i].word);
    }
    if (row->some && !named)
        return bh_fail(err, BH_CONFLICT, "a lease that is '%s' has no slice", row->word);
    if (named + f->proved != f->granted)
        return bh_fail(
            err, BH_CONFLICT,
            "a lease was given %u slices; %llu name it and %u were proved clean: the rest is nowhere",
            f->granted, (unsigned long long)named, f->proved);
    return 0;
}

int bh_lease_invariant(const struct bh_lease_facts *f, struct bh_err *err)
{
    const struct state_row *row = &states[f->state];
    const bool uses = f->owned || f->dirty;
    const int rc = check_slices(f, row, err);
    if (rc)
        return rc;
    /* A suspended lease that has to end drains without slices, and then there is nothing to pay for. */
    if (row->charged && uses && !f->usage_open)
        return bh_fail(err, BH_CONFLICT, "a lease that is '%s' uses slices and nobody pays for them",
                       row->word);
    if (f->usage_open && !(row->charged && uses))
        return bh_fail(err, BH_CONFLICT, "a lease that is '%s' still pays, in %u intervals", row->word,
                       f->usage_open);
    if (f->keeper && !row->runs)
        return bh_fail(err, BH_CONFLICT, "a lease that is '%s' still has a keeper", row->word);
    return 0;
}
