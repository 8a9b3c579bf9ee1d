/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toll.h - how much of a processor a caller may take, in the daemon's one thread or beside it, for what is added up from a long history.
 *
 * Requests a second do not tell a question that takes a millisecond from one that takes a second. So each caller has a purse of
 * milliseconds, which fills with time up to a most and out of which each answer is paid when it is known what it took. Who has
 * nothing left waits until there is something; the others do not wait for him. The table has a fixed
 * size: whose purse is fullest makes room.
 * Pure: time is a parameter.
 */
#ifndef BH_API_TOLL_H
#define BH_API_TOLL_H

#include <stdbool.h>
#include <stdint.h>

enum { BH_TOLL_CALLERS = 64, BH_TOLL_NAME = 128, BH_TOLL_SHARE = 4 /* a purse fills by one in so many ms */ };

struct bh_toll {
    struct bh_toll_caller {
        char name[BH_TOLL_NAME]; /* "": not in use */
        uint64_t owes_ms;        /* taken out of a full purse, at_ms */
        uint64_t at_ms;
    } callers[BH_TOLL_CALLERS];
};

/* May it ask? false: *ret_wait_ms is when it may again. most_ms: what is in a full purse. */
bool bh_toll_may(const struct bh_toll *t, const char *name, uint64_t most_ms, uint64_t now_ms,
                 uint64_t *ret_wait_ms);
void bh_toll_pay(struct bh_toll *t, const char *name, uint64_t took_ms, uint64_t now_ms);

#endif
