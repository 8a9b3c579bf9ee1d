/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ponder.h - questions that take long to work out (what would start a job, what would be if), answered in a child.
 *
 * The daemon has one thread, and a search through a long queue takes seconds: done there it would hold up every tick and every
 * other caller. A fork has the scheduler as it stood, so the search runs on that copy, and what it found comes back as
 * numbers; the daemon puts them into words. One question of a caller at a time and a few in all; the same question about the same
 * state is worked out once, and others are told that it is busy.
 */
#ifndef BH_NODE_PONDER_H
#define BH_NODE_PONDER_H

#include "core/sched/explain.h"
#include "core/sched/whatif.h"
#include "node/daemon.h"

enum {
    BH_PONDER_MOST = 4,     /* under way at a time */
    BH_PONDER_MS = 10000,   /* for one of them; the verdict is told then, and that the search was not over */
    BH_PONDER_STEPS = 64,   /* of a remedy, or of an if */
    BH_PONDER_JOINED = 256, /* that wait for one answer */
    BH_PONDER_KEPT = 64,    /* answers */
    BH_PONDER_KEPT_MS = 2000
};

struct bh_ponder_question {
    uint64_t job;
    bool is_if; /* the changes are tried; else what would start it is searched for */
    uint32_t n_changes;
    struct bh_change changes[BH_PONDER_STEPS];
};

/* Numbers alone: it lies in memory that the child shares. */
struct bh_ponder_answer {
    bool is_known; /* the verdict is there; else there is no such job */
    bool is_over;  /* nothing was left to look for */
    bool starts;   /* of an if */
    int32_t code;  /* of a change that cannot be; err says why */
    struct bh_err err;
    struct bh_verdict verdict;
    uint32_t n_steps;
    struct bh_change steps[BH_PONDER_STEPS];
};

/* A kept answer to the same question, or NULL. Lives until the next call of these. */
const struct bh_ponder_answer *bh_ponder_kept(const struct bh_daemon *d, uint64_t job);
/* Begins, or joins whoever asks the same: bh_why_told() follows for the ticket. BH_BUSY: it is asked too much already. */
int bh_ponder_ask(struct bh_daemon *d, const char *caller, const struct bh_ponder_question *q,
                  uint64_t ticket, struct bh_err *err) BH_MUST_USE;
void bh_ponder_fini(struct bh_daemon *d);

/* why.c: what was found, in words, for whoever waits. rc negative: nothing was. */
void bh_why_told(struct bh_daemon *d, const uint64_t *tickets, size_t n, const struct bh_ponder_answer *found,
                 int rc, const struct bh_err *err);

#endif
