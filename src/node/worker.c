/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - a fork, a pipe, one result. */
#include "node/worker.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RESULT_FD = STDERR_FILENO + 1 };

static _Noreturn void be_worker(bh_work *work, const void *arg, pid_t parent, int fd)
{
    struct bh_worker_result result = {0};
    sigset_t none;
    /* Whoever ends the daemon ends this too: the next one starts over. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    /* Whoever has a file of the store, or its lock, keeps the next daemon from it. */
    if (fd != RESULT_FD && dup2(fd, RESULT_FD) < 0)
        _exit(1);
    closefrom(RESULT_FD + 1);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    work(arg, &result);
    _exit(write(RESULT_FD, &result, sizeof(result)) == (ssize_t)sizeof(result) ? 0 : 1);
}

int bh_worker_start(bh_work *work, const void *arg, struct bh_worker *ret, struct bh_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return bh_fail(err, BH_SYSTEM, "pipe: %s", strerror(errno));
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        be_worker(work, arg, parent, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return bh_fail(err, BH_SYSTEM, "fork: %s", strerror(errno));
    }
    *ret = (struct bh_worker){.pid = pid, .fd = ends[0]};
    return BH_OK;
}

static void reap(struct bh_worker *w)
{
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(w->fd);
    *w = (struct bh_worker){.fd = -1};
}

void bh_worker_finish(struct bh_worker *w, struct bh_worker_result *ret)
{
    ssize_t n;
    do
        n = read(w->fd, ret, sizeof(*ret));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*ret)) {
        struct bh_err err;
        *ret = (struct bh_worker_result){.code = bh_fail(&err, BH_SYSTEM, "the process that did it died")};
        memcpy(ret->text, err.msg, sizeof(ret->text) < sizeof(err.msg) ? sizeof(ret->text) : sizeof(err.msg));
    }
    ret->text[sizeof(ret->text) - 1] = '\0';
    reap(w);
}

void bh_worker_kill(struct bh_worker *w)
{
    if (w->pid <= 0)
        return;
    (void)kill(w->pid, SIGKILL);
    reap(w);
}
