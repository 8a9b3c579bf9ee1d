/* SPDX-License-Identifier: Apache-2.0 */
/* toll.c - purses of milliseconds, by the names of callers. */
#include "api/toll.h"

#include <stdio.h>
#include <string.h>

static uint64_t owes(const struct bh_toll_caller *c, uint64_t now_ms)
{
    const uint64_t back = now_ms > c->at_ms ? (now_ms - c->at_ms) / BH_TOLL_SHARE : 0;
    return c->owes_ms > back ? c->owes_ms - back : 0;
}

/* Names are told apart by as much of them as is kept. */
static bool is_of(const struct bh_toll_caller *c, const char *name)
{
    return c->name[0] && strncmp(c->name, name, sizeof(c->name) - 1) == 0;
}

bool bh_toll_may(const struct bh_toll *t, const char *name, uint64_t most_ms, uint64_t now_ms,
                 uint64_t *ret_wait_ms)
{
    *ret_wait_ms = 0;
    for (size_t i = 0; i < BH_TOLL_CALLERS; i++) {
        const struct bh_toll_caller *c = &t->callers[i];
        const uint64_t left = is_of(c, name) ? owes(c, now_ms) : 0;
        if (left >= most_ms && left)
            *ret_wait_ms = (left - most_ms + 1) * BH_TOLL_SHARE;
    }
    return *ret_wait_ms == 0;
}

void bh_toll_pay(struct bh_toll *t, const char *name, uint64_t took_ms, uint64_t now_ms)
{
    struct bh_toll_caller *c = &t->callers[0];
    for (size_t i = 0; i < BH_TOLL_CALLERS; i++) {
        struct bh_toll_caller *x = &t->callers[i];
        if (is_of(x, name)) {
            c = x;
            break;
        }
        if (owes(x, now_ms) < owes(c, now_ms))
            c = x;
    }
    if (!is_of(c, name)) {
        *c = (struct bh_toll_caller){.at_ms = now_ms};
        (void)snprintf(c->name, sizeof(c->name), "%s", name);
    }
    c->owes_ms = owes(c, now_ms) + took_ms;
    c->at_ms = now_ms;
}
