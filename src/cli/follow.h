/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - what a job writes, and how it gets on, until it ends.
 *
 * The bytes are passed on as they are. A job that has to go and comes back is followed from attempt to attempt. A daemon that
 * is away for a moment is waited for: the work does not depend on it.
 */
#ifndef BH_CLI_FOLLOW_H
#define BH_CLI_FOLLOW_H

#include "cli/remote.h"

struct bh_follow {
    struct bh_cli *cli;
    struct bh_remote *r;
    char job[BH_REMOTE_ID_MAX];
    char lease[BH_REMOTE_ID_MAX]; /* the attempt that is read; "": none yet */
    uint64_t offset[2];           /* of standard output and error */
    bool ended[2];                /* nothing more comes of this attempt */
    int fd[2];                    /* where each goes; -1: it is not wanted */
    bool say;                     /* how it gets on, on standard error */
    char state[200];              /* said last */
    uint64_t looked_ms, asked_ms; /* at the job; at why it waits */
};

void bh_follow_init(struct bh_follow *f, struct bh_cli *cli, struct bh_remote *r, const char *job);
/* What there is now of the stream (0 or 1) from the offset on, waiting up to wait_ms for the first byte. */
int bh_follow_piece(struct bh_follow *f, int stream, unsigned wait_ms, size_t *ret_n,
                    struct bh_err *err) BH_MUST_USE;
/* All that there is of the attempt, and no waiting. */
int bh_follow_rest(struct bh_follow *f, struct bh_err *err) BH_MUST_USE;

/* How a job ended; texts live in r->arena. */
struct bh_follow_end {
    const struct bh_a_job *job;
};
/*
 * To its end. wanted(ctx) is asked between two looks, at least every second: false, and it is followed no more (ret->job is
 * NULL then).
 */
int bh_follow(struct bh_follow *f, bool (*wanted)(void *ctx), void *ctx, struct bh_follow_end *ret,
              struct bh_err *err) BH_MUST_USE;

#endif
