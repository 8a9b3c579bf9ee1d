/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleep.h - a share's GPU memory to the host and back: by order, and by itself where its tenant agreed to that (`idle` in the
 * policy).
 *
 * The lease stays active and keeps its slices, so that there is a place to come back to; what others gain is its memory on a
 * card that is promised more than once, and its time. It has been idle while it used no GPU time, and its processes next to
 * no processor time. Whoever sleeps by itself wakes by itself when its processes begin to work again; whoever was suspended
 * by order waits for one.
 *
 * Orders for the governor, pausing among them, and what the daemon does by itself are written before they are carried out: the record
 * of who wanted it and a note of what is to be done are durable first. The note goes with what came of it. Where the daemon dies between
 * the two, or the governor does not answer, or does not know the lease yet, the order is carried out again; what fails for good is in the
 * log as well. Another note says whose memory may be off the card: it is there before the memory goes and until it is back, so that
 * whoever resumes need not ask anybody.
 */
#ifndef BH_NODE_SLEEP_H
#define BH_NODE_SLEEP_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_daemon;
struct bh_life;
struct bh_sleep_task;

/* One that may sleep, as it was last seen. */
struct bh_sleep_idle {
    uint64_t lease;
    uint64_t busy_ns, cpu_ns, seen_ms;
    uint64_t active_ms, woken_ms;
    uint64_t again_ms; /* nothing is tried by itself before that; 0: it may be */
    uint32_t failed;   /* so often on end */
    bool by_itself;    /* it sleeps, and nobody ordered it */
    bool moved;        /* since it was last seen: its processes have used time for that, and not for work */
};

/* A lease that has an order and that the governor does not know. */
struct bh_sleep_unknown {
    uint64_t lease, since_ms;
};

enum bh_sleep_what { BH_SLEEP_PAUSE, BH_SLEEP_RESUME, BH_SLEEP_SUSPEND, BH_SLEEP_WAKE, BH_SLEEP_WHATS };

struct bh_sleepers {
    BH_VEC(struct bh_sleep_task *) tasks; /* that are under way */
    BH_VEC(struct bh_sleep_idle) idle;
    BH_VEC(struct bh_sleep_unknown) unknown;
    bool swept;       /* what earlier daemons left was looked through */
    bool repeated;    /* orders that may not have been carried out are under way again */
    uint64_t held_ms; /* whether those who are held are is looked at then */
};

/* Can it be ordered? Asked before anything is written. */
int bh_sleep_check(const struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what,
                   struct bh_err *err) BH_MUST_USE;
/* What is to be done, beside the record of who wants it: in the caller's transaction, which is committed before what follows. */
int bh_sleep_write(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what,
                   struct bh_err *err) BH_MUST_USE;
/* Begins, in a process of its own; the answer to the ticket follows. Returns BH_API_LATER, or why it cannot begin. */
int bh_sleep_order(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what, uint64_t ticket,
                   struct bh_err *err) BH_MUST_USE;
/* BH_SLEEP_WAKE where its memory may be off the card, else BH_SLEEP_RESUME: as the books say. A governor may have forgotten. */
int bh_sleep_what_resumes(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what *ret,
                          struct bh_err *err) BH_MUST_USE;
void bh_sleep_tick(struct bh_daemon *d);
void bh_sleep_fini(struct bh_daemon *d);

#endif
