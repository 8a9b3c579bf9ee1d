/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - blocks signals, reads them as data, and sends on those that did not reach the command by themselves. */
#include "launch/signals.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Faults of this program's own stay what they are. */
static void all_signals(sigset_t *ret)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(ret);
    for (size_t i = 0; i < BH_COUNT_OF(faults); i++)
        sigdelset(ret, faults[i]);
}

void bh_signals_restore(const struct bh_signals *s)
{
    (void)sigaction(SIGCHLD, &s->old_child, NULL);
    (void)sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

int bh_signals_take(struct bh_signals *s, struct bh_err *err)
{
    struct sigaction child = {.sa_handler =
                                  SIG_DFL}; /* ignored, as it may be here, children cannot be waited for */
    sigset_t all;
    all_signals(&all);
    if (sigprocmask(SIG_BLOCK, &all, &s->old_mask) < 0 || sigaction(SIGCHLD, &child, &s->old_child) < 0)
        return bh_fail(err, BH_SYSTEM, "blocking signals: %s", strerrordesc_np(errno));
    s->fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd >= 0)
        return BH_OK;
    const int rc = bh_fail(err, BH_SYSTEM, "signalfd: %s", strerrordesc_np(errno));
    bh_signals_restore(s);
    return rc;
}

/* The terminal's own go to the whole process group, the command included. */
static bool is_terminal_signal(uint32_t signal)
{
    static const int of_terminal[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGCONT, SIGWINCH};
    for (size_t i = 0; i < BH_COUNT_OF(of_terminal); i++)
        if ((uint32_t)of_terminal[i] == signal)
            return true;
    return false;
}

/* The kernel tells the leader of a session alone that its terminal is gone. */
static bool is_leaders_own(uint32_t signal)
{
    return (signal == SIGHUP || signal == SIGCONT) && getsid(0) == getpid();
}

bool bh_signals_send_on(const struct signalfd_siginfo *si, pid_t to, bool to_is_stopped)
{
    union sigval value = {.sival_ptr = (void *)(uintptr_t)si->ssi_ptr};
    /* A command that is stopped does not hear Ctrl-Z; then nobody would stop, and the shell would wait. */
    if (si->ssi_code == SI_KERNEL && si->ssi_signo == SIGTSTP && to_is_stopped)
        return true;
    if (si->ssi_code == SI_KERNEL && is_terminal_signal(si->ssi_signo) && !is_leaders_own(si->ssi_signo))
        return false;
    if (si->ssi_code == SI_USER && (si->ssi_pid == (uint32_t)getpid() || si->ssi_pid == (uint32_t)to))
        return false; /* a write of ours to nobody (SIGPIPE), or the command to its own group */
    if (si->ssi_code == SI_QUEUE)
        (void)sigqueue(to, (int)si->ssi_signo, value);
    else
        (void)kill(to, (int)si->ssi_signo);
    return false;
}

bool bh_signals_ignored(int n)
{
    struct sigaction now;
    return sigaction(n, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}
