/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steer.h - from what the controller says to what is done: channels pause and run, wardens are told slices.
 *
 * Keeps one thing true: a channel that this process paused is written down as such (in its seat, or among the orphans,
 * whose lease is gone and whose resuming failed) until the driver has said that it runs again. So nothing can be forgotten
 * while it is paused, and bh_steer_release() finds everything.
 */
#ifndef BH_GOVERNOR_STEER_H
#define BH_GOVERNOR_STEER_H

#include "governor/gauge.h"
#include "governor/state.h"

#define BH_STEER_NEVER UINT64_MAX
enum { BH_STEER_LOG_PREFIX = 480 };

struct bh_steer_config {
    const struct bh_driver *driver;
    void *self; /* the driver's, borrowed */
    struct bh_state *state;
    /* To a lease's warden. false: not now; it is tried again. */
    bool (*tell)(void *arg, const struct bh_governed *l, const struct bh_govern_slice *m);
    /* To its warden: a lease is to end, and why. It is said again. */
    void (*end)(void *arg, const struct bh_governed *l, const char *why);
    void *arg;
    /* NULL: time is what a step is told. Else each card has its own: pauses of those before it take time. */
    uint64_t (*clock)(void);
    /* NULL, or where each step is written down, for core/govern/govern_log.h to read: PREFIX.gpuN. Shorter than
     * BH_STEER_LOG_PREFIX. */
    const char *log_prefix;
    /* Shares by slices and nothing else (core/govern/govern.h): nobody may ask for a cap or for latency. */
    bool slices_only;
    struct bh_gauge
        *gauge; /* is given what leases that compete had; borrowed; NULL: nobody asks who slows whom */
};

struct bh_steer_counts {
    uint64_t steps, pauses, resumes;
    uint64_t failed;   /* calls to the driver; all are made again */
    uint64_t refused;  /* steps that the controller refused: then everybody runs */
    uint64_t given_up; /* channels that could not be resumed for so long that they must be gone */
    uint64_t escaped;  /* steps in which somebody had the card who was paused */
    uint64_t ended;    /* leases for that */
    size_t orphans;
};

struct bh_steer;
struct bh_steer *bh_steer_new(const struct bh_steer_config *config);
void bh_steer_free(struct bh_steer *t); /* after bh_steer_release() */

/* From now on, by slices alone or not. Controllers begin anew where that changes, and their logs end. */
void bh_steer_set_slices_only(struct bh_steer *t, bool only);

/* Steps of the cards that are due. When to call next, on the same clock; BH_STEER_NEVER: when something changes. */
uint64_t bh_steer_step(struct bh_steer *t, uint64_t now_ns);
/* What a warden says of its channels. Those that go while they are paused are resumed all the same: it may be wrong. */
int bh_steer_has(struct bh_steer *t, struct bh_governed *l, const struct bh_govern_channels *m,
                 struct bh_err *err) BH_MUST_USE;
int bh_steer_lost(struct bh_steer *t, struct bh_governed *l, const struct bh_govern_channels *m,
                  struct bh_err *err) BH_MUST_USE;
/* Its warden is gone: its channels run, and are forgotten. */
void bh_steer_leave(struct bh_steer *t, struct bh_governed *l, uint64_t now_ns);
/* An operator's order (enum bh_govern_what), done before this returns. BH_SYSTEM: it stands, but the driver failed. */
int bh_steer_order(struct bh_steer *t, struct bh_governed *l, uint32_t what, struct bh_err *err) BH_MUST_USE;
/* Nobody finished a suspension (BH_GOVERN_SUSPEND): the hold (enum bh_hold) from before it, unless it was resumed since. */
void bh_steer_put_back(struct bh_steer *t, struct bh_governed *l, uint8_t hold);
/* Everybody runs with the driver's own slices. How many channels could not be resumed. */
size_t bh_steer_release(struct bh_steer *t);

/* A line of the list; seat NULL: one that has no channels yet. */
void bh_steer_row(const struct bh_steer *t, const struct bh_governed *l, struct bh_seat *seat,
                  struct bh_govern_row *ret);
/* Who slows whom on that card, in lines; nothing where nobody competes. */
void bh_steer_noise(const struct bh_steer *t, uint32_t gpu, uint64_t now_ns, struct bh_buf *out);
struct bh_steer_counts bh_steer_counts(const struct bh_steer *t);
/* Is that channel written down as one that may be paused? */
bool bh_steer_knows(const struct bh_steer *t, uint32_t gpu, struct bh_driver_channel name);
/* NULL, or what is wrong: somebody is paused whom nobody meant to pause. */
const char *bh_steer_check(const struct bh_steer *t);

#endif
