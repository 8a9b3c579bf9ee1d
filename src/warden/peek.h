/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek.h - what a tenant has open, seen without waiting for whoever serves it.
 *
 * A file may lie on a file system that a process serves (FUSE). Whoever closes a duplicate of it, or asks how large it is, waits
 * for that process, and cannot be ended meanwhile. So a file is looked at before it is duplicated, and only what can be
 * the driver's is.
 */
#ifndef BH_WARDEN_PEEK_H
#define BH_WARDEN_PEEK_H

#include "warden/watchdog.h"

#include <stdint.h>
#include <sys/types.h>

/* mode 0: the kernel does not tell it to us. It is a file of somebody else's, then. */
struct bh_peek {
    mode_t mode;
    uint32_t dev_major, dev_minor; /* of a device: which */
};

/* A file of our own. */
void bh_peek_own(int fd, struct bh_peek *ret);
/* What a thread has under fd. 0; -EBADF: nothing; -EACCES: its folder is not for us, and we may not be whom it is for; or
 * what the kernel says. */
int bh_peek(uint32_t tid, int fd, struct bh_peek *ret);

/* Closes what turned out to be another file than was looked at, in a thread of its own. Where too many of these wait
 * already, here: w (NULL: nobody) is told to watch then, and whose file it was. */
void bh_peek_close(int fd, struct bh_watchdog *w, uint32_t who);

#endif
