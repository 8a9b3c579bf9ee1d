/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sense.h - what the card wrote down about who had it when, as samples for the controller.
 *
 * The driver tells of processes; a lease is several, which come and go. Here they are added up, and what each lease got
 * since the last look is told apart from not knowing.
 */
#ifndef BH_GOVERNOR_SENSE_H
#define BH_GOVERNOR_SENSE_H

#include "base/err.h"
#include "warden/driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a turn that another cuts short has at its end without work in it, measured on an H200. It is taken off. */
enum { BH_SENSE_PREEMPT_US = 120 };

struct bh_sense_who {
    uint64_t lease;
    const uint32_t *pids; /* its processes with channels on this GPU, each once */
    size_t n_pids;
    bool paused; /* then it has no turns, whatever it wants */
    bool wants;  /* it runs, and as far as is known it never leaves the card empty to others */
};
struct bh_sense_got {
    uint64_t gpu_ns; /* since its last sample, or BH_GOVERN_NO_SAMPLE */
    uint8_t state;   /* enum bh_govern_state */
    bool
        doubt; /* of gpu_ns some may have been rest; it would be known once it had the card alone for a while */
    /* Turns that began meanwhile, and all time on the card as it was written down, less rests; 0 where nothing is known. */
    uint64_t turns, turn_ns;
};

struct bh_sense;
/* Never NULL. Where the card cannot be watched (watch_busy refuses) it is blind: every read says so. self is borrowed. */
struct bh_sense *bh_sense_new(const struct bh_driver *driver, void *self, uint32_t gpu);
void bh_sense_free(struct bh_sense *s);
/* Several compete, and nothing follows from who rests in its turns (core/govern/use.h). */
void bh_sense_ask_seldom(struct bh_sense *s, bool seldom);
/* Permille of the card that nobody used of late, though somebody had it, and 1 at least; 0: not known. */
uint32_t bh_sense_unused(const struct bh_sense *s);
/*
 * ret[i] for who[i]. A lease that was not there at the last read begins with it; one that is left out is forgotten.
 * BH_OK, or BH_REFUSED where it is blind: then ret says BH_GOVERN_NO_SAMPLE and BH_GOVERN_UNKNOWN of everybody.
 */
int bh_sense_read(struct bh_sense *s, const struct bh_sense_who *who, size_t n, struct bh_sense_got *ret);

#endif
