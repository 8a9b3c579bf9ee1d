/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - something that may take its time, in a child, so that the loop goes on: ending processes, scrubbing a card.
 *
 * A child of the loop's process shares its files but must not use them: the store's above all. It computes one result
 * and ends. One that dies without a word is a failure like another. All descriptors of the daemon's but the
 * standard ones are closed there.
 */
#ifndef BH_NODE_WORKER_H
#define BH_NODE_WORKER_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct bh_worker_result {
    int32_t code; /* of enum bh_code; the text says why */
    uint32_t verdict;
    uint64_t probed_bytes, total_bytes;
    char text[480];
};

struct bh_worker {
    pid_t pid; /* 0: none */
    int fd;    /* readable when it has a result, or is gone */
};

typedef void bh_work(const void *arg, struct bh_worker_result *ret);
/* The child has a copy of all that arg points to. */
int bh_worker_start(bh_work *work, const void *arg, struct bh_worker *ret, struct bh_err *err) BH_MUST_USE;
/* Takes the result and forgets the worker; waits where it is not done yet. */
void bh_worker_finish(struct bh_worker *w, struct bh_worker_result *ret);
/* Ends it and forgets it. */
void bh_worker_kill(struct bh_worker *w);

#endif
