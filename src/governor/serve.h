/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the governor's connections and its one loop.
 *
 * A message that is not of its kind, not in its place or impossible ends the connection it came on, and nothing else:
 * a warden that is cut off is a warden that is gone, and its lease runs. Nothing here waits for a peer: who does not read
 * is told later, or not at all.
 */
#ifndef BH_GOVERNOR_SERVE_H
#define BH_GOVERNOR_SERVE_H

#include "base/err.h"
#include "governor/steer.h"
#include "warden/driver.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_SERVE_CONNECTIONS = 256 };

struct bh_serve_config {
    int listener; /* non-blocking, of SOCK_SEQPACKET, borrowed; -1: none */
    int stop;     /* readable: make an end (a signalfd, borrowed); -1: none */
    const struct bh_driver *driver;
    void *self; /* the driver's, borrowed */
    const char *log_prefix;
    /* No pauses: less exact, and least to do; caps and latency are refused. But a lease that was promised one before this governor
     * keeps it: while there is such a one, pauses are made. */
    bool slices_only;
    const struct bh_gauge_source *gauge; /* counters of the cards; NULL: nobody judges who slows whom */
    uint64_t (*clock)(void); /* bh_serve_clock(); NULL: only rounds are made, which say the time */
    uint64_t idle_ns;        /* so long without a connection, and may_end is asked; 0: never */
    /* Nobody is at the door, and the door is closed now. false: somebody may come. */
    bool (*may_end)(void *arg);
    /* Asked every second. false: who looks for it does not find this one, so that it ends: another may be there already. NULL: it is
     * found. */
    bool (*is_found)(void *arg);
    void *arg;
};

struct bh_serve;
int bh_serve_new(const struct bh_serve_config *config, struct bh_serve **ret, struct bh_err *err) BH_MUST_USE;
/* Everybody runs afterwards, whatever was going on. How many channels could not be resumed. A thread that hangs in the
 * driver's library is left behind after a second. */
size_t bh_serve_free(struct bh_serve *s);

uint64_t bh_serve_clock(void); /* CLOCK_MONOTONIC, in ns */
/* Until it is told to stop, has been idle or is not found any more. Failures of single peers are none. Needs a clock. */
int bh_serve_run(struct bh_serve *s, struct bh_err *err) BH_MUST_USE;

/* For tests, which have time of their own: everything that is there to be done at that time, without waiting. */
void bh_serve_round(struct bh_serve *s, uint64_t now_ns);
/* A connection that somebody made otherwise; taken over, also on failure. */
int bh_serve_connect(struct bh_serve *s, int fd, struct bh_err *err) BH_MUST_USE;
bool bh_serve_is_over(const struct bh_serve *s);
const struct bh_state *bh_serve_state(const struct bh_serve *s);
struct bh_steer *bh_serve_steer(struct bh_serve *s);

#endif
