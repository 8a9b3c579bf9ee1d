/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.h - stop because the command did, so that a shell sees it, and go on by oneself when that is needed.
 *
 * A command can stop itself and be woken by a child of its own: if its launcher stayed stopped, nobody would follow a governor or a warden
 * that is gone, and the command would be free of its share. So one who cannot be stopped from there looks on, and wakes it.
 */
#ifndef BH_LAUNCH_STOP_H
#define BH_LAUNCH_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BH_STOP_FDS = 2 };

enum bh_woken {
    BH_WOKEN_BY_OTHERS, /* as by a shell; or nobody stopped: the kernel does not stop whom nobody would wake */
    BH_WOKEN_FOR_COMMAND, /* it runs again */
    BH_WOKEN_FOR_EVENT,   /* a descriptor became ready, and the command is stopped as before */
};

/* Stops this process by `signal` (SIGSTOP, or SIGTSTP as if it were not blocked) until somebody wakes it, `command` runs, or one of the
 * descriptors (-1: none) is readable. Where nobody can be found to look on it does not stop, as if one were. *ret_waker: whose SIGCONT is
 * not meant for the command. */
enum bh_woken bh_stop(int signal, pid_t command, const int fds[BH_STOP_FDS], pid_t *ret_waker);

#endif
