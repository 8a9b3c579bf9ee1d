/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - signals of one who stands between a command and whoever started it, read as data. */
#ifndef BH_LAUNCH_SIGNALS_H
#define BH_LAUNCH_SIGNALS_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

struct bh_signals {
    int fd; /* a signalfd; -1: none were taken */
    sigset_t old_mask;
    struct sigaction old_child;
};

/* All but the faults of this program's own. */
int bh_signals_take(struct bh_signals *s, struct bh_err *err) BH_MUST_USE;
/* As they were; the descriptor stays. */
void bh_signals_restore(const struct bh_signals *s);
/* To the command, unless the kernel has sent it there too. True: this process is to stop in its place (SIGTSTP). */
bool bh_signals_send_on(const struct signalfd_siginfo *si, pid_t to, bool to_is_stopped);
/* Blocked signals come also where they are ignored (nohup, a job in the background). */
bool bh_signals_ignored(int n);

#endif
