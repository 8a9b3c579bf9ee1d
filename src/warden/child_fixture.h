/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child_fixture.h - a process to be looked at: it makes something ready, says where that is, and waits for its end.
 *
 * It ends with the test at the latest, so that one which failed half way leaves nobody who holds its output open.
 */
#ifndef BH_WARDEN_CHILD_FIXTURE_H
#define BH_WARDEN_CHILD_FIXTURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    int pidfd;
    void *made; /* what `make` gave there */
};

/* make NULL: nothing. False: there is no such child. */
static inline bool child_start(void *(*make)(const void *arg), const void *arg, struct child *ret)
{
    int told[2];
    *ret = (struct child){.pidfd = -1};
    if (pipe(told) < 0)
        return false;
    ret->pid = fork();
    if (ret->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        void *made = make ? make(arg) : NULL;
        (void)!write(told[1], &made, sizeof(made));
        for (;;)
            (void)pause();
    }
    close(told[1]);
    const bool good = ret->pid > 0 && read(told[0], &ret->made, sizeof(ret->made)) == sizeof(ret->made);
    close(told[0]);
    ret->pidfd = good ? (int)syscall(SYS_pidfd_open, ret->pid, 0) : -1;
    return good;
}

/* Somebody has killed it. */
static inline bool child_is_ended(const struct child *c)
{
    int status;
    return waitpid(c->pid, &status, WNOHANG) == c->pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* The same, waited for; for a machine that is slow. */
static inline bool child_ends(struct child *c)
{
    for (int i = 0; i < 5000; i++) {
        if (child_is_ended(c)) {
            close(c->pidfd);
            return true;
        }
        (void)usleep(1000);
    }
    return false;
}

static inline bool child_end(struct child *c)
{
    return c->pid > 0 && kill(c->pid, SIGKILL) == 0 && child_ends(c);
}

#endif
