/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks.h - what the daemon knows of its own state, layer by layer, for `bulkhead doctor` and the one word of health: what is
 * wrong, in a sentence, and what to do about it. Worked out when somebody asks; nothing here waits.
 */
#ifndef BH_NODE_WATCH_CHECKS_H
#define BH_NODE_WATCH_CHECKS_H

#include "api/ops.h"

struct bh_daemon;

struct bh_checks {
    struct bh_arena arena;
    BH_VEC(struct bh_api_check) at;
    uint64_t made_ms, made_of; /* when, and of which rows of the store */
    /* The last thing that went wrong; "": nothing did since. */
    char store[200]; /* the store could not be written */
    char audit[200]; /* the log got no checkpoint */
    char scrub[240]; /* a slice could not be proved clean */
    char look[200];  /* the driver did not answer */
    uint64_t scrubs_failed;
};

/* The view's checks anew, if they are not of this moment or the store was written since. For the API: self is the daemon. */
void bh_checks_fresh(void *self);
/* Something of it has changed: the next one who asks hears it. */
void bh_checks_stale(struct bh_daemon *d);
void bh_checks_fini(struct bh_checks *c);

#endif
