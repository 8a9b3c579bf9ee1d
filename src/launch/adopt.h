/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt.h - a warden for every container whose runtime sends its listener here (seccomp `listenerPath`).
 *
 * Each container is a lease of its own. Its warden holds the listener, so it goes on when this process ends. What cannot be
 * held is closed: the container's calls for GPU memory get ENOSYS then. A process that joins a container later
 * (exec) comes with a listener of its own; the container's one ledger does not cover it, so it gets a warden that
 * grants it nothing.
 */
#ifndef BH_LAUNCH_ADOPT_H
#define BH_LAUNCH_ADOPT_H

#include "base/err.h"
#include "wire/lease.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* For a keeper, which starts the container itself and hears others meanwhile; with `once`. `arg` is that of struct bh_adopt. */
struct bh_adopt_keep {
    int fd;                      /* listened to from the beginning to the end */
    struct bh_lease_share share; /* of the cards' time; weight 0: nobody holds it */
    int governor;     /* with a share: the connection for the first warden, which goes to it or is closed */
    uint32_t version; /* that the governor takes; as in struct bh_lease_given */
    int probe;        /* with a share: what each warden reads (launch/probe.h), the keeper's; -1: none */
    /* Something is there; below 0: it is over. BH_NOT_FOUND: not before what has been sent by now was taken, and this was
     * asked once more. */
    int (*hear)(void *arg, struct bh_err *err);
    int (*listening)(void *arg,
                     struct bh_err *err); /* now the container may be started; below 0: it is not */
    void (*came)(void *arg);              /* its listener: the container is about to run, or does */
    void (*held)(void *arg, pid_t pid);   /* its first process, once the warden is ready */
    void (*ended)(void *arg, const struct bh_lease_end *end);
};

struct bh_adopt {
    const char *warden; /* its program */
    const char *socket;
    uint64_t cap_bytes; /* of each GPU, for each container */
    uint32_t tick_ms;   /* 0: the gate's own */
    uint32_t view;      /* enum bh_lease_view */
    bool rdma;          /* other devices may be told of its memory */
    uid_t owner;        /* who, beside root, may send */
    bool once;          /* one container, and then the end */
    void (*tell)(void *arg,
                 const char *line); /* a line about one container, or about a message that was refused */
    void *arg;
    const struct bh_adopt_keep *keep; /* NULL: this is no keeper */
};

/* Serves until SIGTERM, SIGINT or SIGHUP; with `once`, until the container's last process is gone, or why it was not held. */
int bh_adopt_serve(const struct bh_adopt *a, struct bh_err *err) BH_MUST_USE;

#endif
