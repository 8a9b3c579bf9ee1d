/* SPDX-License-Identifier: Apache-2.0 */
/* sched_fuzz.c - any life of any fleet: sound after every cycle, in any order within a tick, and over a restart. */
#include "core/sched/sched_life_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TICKS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct life l;
    struct bh_sched_bytes saved;
    struct bh_sched *again;
    if (size > LIFE_BYTES)
        return 0;
    life_begin(&l, data, size, 2);
    for (uint32_t i = 0; i < TICKS_MAX && l.choice.left; i++) {
        if (!life_live(&l, 1))
            abort();
        if (draw(&l, 8))
            continue;
        bh_sched_save(l.s[1], &saved);
        if (bh_sched_load(saved.at, saved.n, &again, NULL) < 0)
            abort();
        free(saved.at);
        bh_sched_free(l.s[1]);
        life_seat(&l, 1, again);
    }
    life_end(&l);
    return 0;
}
