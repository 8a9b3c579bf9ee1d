/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vigil.h - one process that listens to the driver's health events for as long as the daemon lives.
 *
 * The driver's call blocks, and its library may crash: so neither is in the daemon. The kernel's log is read beside it, for
 * it alone says which process an error was of.
 */
#ifndef BH_NODE_WATCH_VIGIL_H
#define BH_NODE_WATCH_VIGIL_H

#include "gpu/events.h"

#include <sys/types.h>

enum bh_vigil_kind {
    BH_VIGIL_LINE,   /* `line`: of the kernel's log; comes before the event that it is about */
    BH_VIGIL_EVENT,  /* `event` */
    BH_VIGIL_GAP,    /* `text`: what is not watched */
    BH_VIGIL_FAILED, /* `text`: it cannot go on, and ends */
};

struct bh_vigil_word {
    uint8_t kind; /* enum bh_vigil_kind */
    struct bh_xid_line line;
    struct bh_gpu_event event; /* its xid is not set */
    char text[320];
};

struct bh_vigil {
    pid_t pid;   /* 0: none */
    int fd;      /* readable when it has something to say, or is gone */
    pid_t stale; /* one that was ended and hangs in the driver; 0: none */
};

/* *v: all zero, or one that has ended. BH_BUSY: that one is still there. */
int bh_vigil_start(struct bh_vigil *v, struct bh_err *err) BH_MUST_USE;
/* 1: *ret is what it said. 0: no more for now. -1: it is gone; bh_vigil_end follows. */
int bh_vigil_next(struct bh_vigil *v, struct bh_vigil_word *ret);
/* None: fine. A driver that hangs keeps it from ending: that is not waited for. */
void bh_vigil_end(struct bh_vigil *v);

#endif
