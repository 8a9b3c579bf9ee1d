/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_fuzz.c - any order of causes on one lease, with books kept as the store keeps them: after every step the
 * invariant holds, and what was released was proved clean.
 */
#include "base/choice.h"
#include "core/lease/lease.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a step changes in the books, as the transaction that makes it does. */
static void keep_books(struct bh_lease_facts *f, enum bh_lease_cause cause, enum bh_lease_state to,
                       struct bh_choice *c)
{
    if (cause == BH_LEASE_BY_GRANT || cause == BH_LEASE_BY_WAKE) {
        f->owned = 1 + bh_choose(c, 8);
        f->granted += f->owned;
        f->keeper = true;
    }
    if (cause == BH_LEASE_BY_EMPTY || cause == BH_LEASE_BY_RETRY) {
        f->dirty += f->owned + f->quarantined;
        f->owned = f->quarantined = 0;
    }
    if (cause == BH_LEASE_BY_PARKED || cause == BH_LEASE_BY_CLEAN) {
        f->proved += f->owned + f->dirty;
        f->owned = f->dirty = 0;
    }
    if (to == BH_LEASE_QUARANTINED) {
        const uint32_t clean = cause == BH_LEASE_BY_DIRTY ? bh_choose(c, f->dirty) : 0;
        f->proved += clean;
        f->quarantined = f->owned + f->dirty - clean;
        f->owned = f->dirty = 0;
    }
    f->state = to;
    f->usage_open = bh_lease_is_charged(to) ? f->owned + f->dirty : 0;
    f->keeper = f->keeper && bh_lease_may_run(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_choice c = {data, size};
    struct bh_lease_facts f = {.state = BH_LEASE_REQUESTED};
    while (c.left) {
        const enum bh_lease_cause cause = (enum bh_lease_cause)bh_choose(&c, BH_LEASE_CAUSES);
        enum bh_lease_state to;
        if (!bh_lease_next(f.state, cause, &to))
            continue;
        /* Without a slice there is none to keep from others, or to leave. */
        if (!f.owned && !f.dirty && !f.quarantined &&
            (cause == BH_LEASE_BY_STUCK || cause == BH_LEASE_BY_DIRTY))
            continue;
        keep_books(&f, cause, to, &c);
        if (bh_lease_invariant(&f, NULL) || (bh_lease_hands_on(f.state) && f.proved != f.granted))
            abort();
    }
    return 0;
}
