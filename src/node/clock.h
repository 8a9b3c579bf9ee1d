/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the daemon's own time: what is charged is what has passed, whatever the machine's clock is set to.
 *
 * It is the time of day as it was once, and from then on the time since boot, which nobody sets. Where the time of day is set
 * afterwards it is followed only while nothing is charged, forward, and when it has stayed so for a minute. A daemon that starts again
 * during the same boot goes on where the last one stood; after a boot there is nothing but the time of day.
 *
 * What is promised until a time of day (tokens, certificates) goes by the time of day itself.
 */
#ifndef BH_NODE_CLOCK_H
#define BH_NODE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct bh_clock_reading {
    uint64_t wall_ms; /* since 1970, as it is set now */
    uint64_t boot_ms; /* since boot, sleep included */
};
struct bh_clock_reading bh_clock_read(void);

struct bh_clock {
    bool set;
    int64_t offset_ms; /* from the time since boot to its own */
    int64_t apart_ms;  /* from its own time to the time of day, as bh_clock_step last saw it */
    uint64_t since_ms; /* boot: the time of day is ahead since then; 0: it is not */
};

/* Never less than least_ms, and never faster than time. The first reading sets it, where bh_clock_resume did not. */
uint64_t bh_clock_now(struct bh_clock *c, struct bh_clock_reading r, uint64_t least_ms);
/* As the daemon before this one had it, which said at_ms when boot_ms had passed since the same boot. */
void bh_clock_resume(struct bh_clock *c, uint64_t boot_ms, uint64_t at_ms);
/* Did somebody set the time of day since this was last asked? By how much: *ret_ms. */
bool bh_clock_step(struct bh_clock *c, struct bh_clock_reading r, int64_t *ret_ms);
/* Now and then. True: it follows the time of day from here on, and what was kept for bh_clock_resume is old. */
bool bh_clock_follow(struct bh_clock *c, struct bh_clock_reading r, bool charged);

#endif
