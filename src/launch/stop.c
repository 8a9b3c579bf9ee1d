/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stop.h"

#include "launch/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOK_MS = 50 };

struct watch {
    pid_t launcher, command;
    const int *fds;
};

/* Also of one that is gone: whoever looks after it is to know. */
static bool runs(pid_t pid)
{
    char path[40], line[512];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;
    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(line, ')'); /* its name may hold anything */
    return !end || (end[1] && end[2] != 'T' && end[2] != 't');
}

static enum bh_woken wait_for_a_reason(const struct watch *w)
{
    for (;;) {
        struct pollfd at[BH_STOP_FDS];
        for (size_t i = 0; i < BH_STOP_FDS; i++)
            at[i] = (struct pollfd){.fd = w->fds[i], .events = POLLIN};
        if (poll(at, BH_STOP_FDS, LOOK_MS) > 0)
            return BH_WOKEN_FOR_EVENT;
        if (runs(w->command))
            return BH_WOKEN_FOR_COMMAND;
    }
}

/* In a session of its own: what stops the group of the command and the launcher does not stop it. */
static _Noreturn void look_on(const void *arg, int to_launcher)
{
    const struct watch *w = arg;
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != w->launcher)
        _exit(1);
    const char why = (char)wait_for_a_reason(w);
    (void)!send(to_launcher, &why, 1, MSG_NOSIGNAL);
    /* Until it is killed: the launcher may not have come to its stop yet. */
    for (;;) {
        (void)kill(w->launcher, SIGCONT);
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static void stop_by(int signal)
{
    sigset_t one;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signal);
    (void)raise(signal);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
    (void)sigprocmask(SIG_BLOCK, &one, NULL);
}

enum bh_woken bh_stop(int signal, pid_t command, const int fds[BH_STOP_FDS], pid_t *ret_waker)
{
    const struct watch w = {.launcher = getpid(), .command = command, .fds = fds};
    struct bh_child watcher;
    char why = BH_WOKEN_BY_OTHERS;
    *ret_waker = 0;
    if (bh_child_start(look_on, &w, &watcher, NULL) < 0)
        return BH_WOKEN_FOR_EVENT;
    *ret_waker = watcher.pid;
    stop_by(signal);
    (void)kill(watcher.pid, SIGKILL);
    (void)!recv(watcher.fd, &why, 1, MSG_DONTWAIT);
    (void)bh_child_reap(&watcher);
    return (enum bh_woken)why;
}
