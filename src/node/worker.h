/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - something that may take its time, in a child, so that the loop goes on: ending processes, scrubbing a card.
 *
 * A child of the loop's process shares its files but must not use them: the store's above all. It computes one result
 * and ends. One that dies without a word is a failure like another. All descriptors of the daemon's but the
 * standard ones are closed there. One that needs the store becomes another program, which opens it for itself.
 *
 * A driver that hangs keeps a process from ending, whatever is done to it. So nobody here waits for one to be gone: each has a
 * time, after which it is ended and its result is that; who does not go then is remembered and spoken of.
 */
#ifndef BH_NODE_WORKER_H
#define BH_NODE_WORKER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bh_worker_result {
    int32_t code; /* of enum bh_code; the text says why */
    uint32_t verdict;
    uint64_t probed_bytes, total_bytes;
    uint64_t took_ms; /* of a processor, where that is paid for; 0: it is not said */
    char text[480];
};

struct bh_worker {
    pid_t pid; /* 0: none */
    int fd;    /* readable when it has a result, is gone, or its time is over */
};

typedef void bh_work(const void *arg, struct bh_worker_result *ret);
/* The child has a copy of all that arg points to. */
int bh_worker_start(bh_work *work, const void *arg, struct bh_worker *ret, struct bh_err *err) BH_MUST_USE;
/* The same, with one descriptor more: it is BH_WORKER_WITH_FD there. Both stay open where it becomes another program, which says its
 * result as bh_worker_say() does. with_fd -1: none. */
enum { BH_WORKER_RESULT_FD = 3, BH_WORKER_WITH_FD };
int bh_worker_start_with(bh_work *work, const void *arg, int with_fd, struct bh_worker *ret,
                         struct bh_err *err) BH_MUST_USE;
/* In the child: all that there is to say. False: nobody listens. */
bool bh_worker_say(const struct bh_worker_result *result);
/*
 * Takes the result and forgets the worker; waits where it is not done yet. Who hears of it by an event source ends that first, here
 * and at bh_worker_kill: the descriptor is closed, but a child that was just forked may hold it open for a moment more, and the
 * loop would hear of a source that is gone.
 */
void bh_worker_finish(struct bh_worker *w, struct bh_worker_result *ret);
/* The same for whoever has nothing else to do meanwhile; after its time there is a result in any case. */
void bh_worker_wait(struct bh_worker *w, struct bh_worker_result *ret);
/* Ends it and forgets it. */
void bh_worker_kill(struct bh_worker *w);

/* What it does, for people. */
void bh_worker_name(const struct bh_worker *w, const char *fmt, ...) BH_PRINTF(2, 3);
/* Every now and then: ends those whose time is over (BULKHEAD_WORKER_TIMEOUT seconds, 300 where it is not set), which makes their
 * descriptors readable, and buries those that are gone. */
void bh_worker_tick(void);
/* Those that there are, one after the other from *at = 0. NULL: no more. */
struct bh_worker_seen {
    pid_t pid;
    const char *what; /* "": it has no name */
    uint64_t age_ms, limit_ms;
    bool over; /* it was ended, or has said its result, and is not gone */
};
bool bh_worker_next(size_t *at, struct bh_worker_seen *ret);

#endif
