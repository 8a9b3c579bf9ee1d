/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - a fork, a pair of sockets, one result; and the list of those that are not gone yet. */
#include "node/worker.h"

#include "base/mem.h"
#include "base/units.h"
#include "host/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 300, LIMIT_MOST_S = 86400, WAIT_STEP_MS = 200 };

/* ---- who there is ---- */

struct entry {
    pid_t pid;
    int fd; /* -1: whoever started it has its result, or does not want it any more */
    uint64_t since_ms, limit_ms;
    bool expired;
    char what[120];
};
/* Of this process, which starts them from one thread. */
static BH_VEC(struct entry) all;

static uint64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t limit_ms(void)
{
    const char *said = getenv("BULKHEAD_WORKER_TIMEOUT");
    uint64_t seconds = LIMIT_S;
    if (said && *said && bh_uint_parse(said, LIMIT_MOST_S, &seconds, NULL) < 0)
        seconds = LIMIT_S;
    return (seconds ? seconds : LIMIT_S) * 1000;
}

static struct entry *find(pid_t pid)
{
    for (size_t i = 0; i < all.n; i++)
        if (all.at[i].pid == pid)
            return &all.at[i];
    return NULL;
}

static void bury(void)
{
    for (size_t i = all.n; i-- > 0;) {
        if (all.at[i].fd >= 0)
            continue;
        const pid_t gone = waitpid(all.at[i].pid, NULL, WNOHANG);
        if (gone == all.at[i].pid || (gone < 0 && errno == ECHILD))
            all.at[i] = all.at[--all.n];
    }
}

/* Reading at this end is over as if the other one had closed its own, which a process that hangs cannot. */
static void expire(struct entry *e)
{
    e->expired = true;
    (void)kill(e->pid, SIGKILL);
    (void)shutdown(e->fd, SHUT_RDWR);
}

void bh_worker_tick(void)
{
    const uint64_t now = clock_ms();
    bury();
    for (size_t i = 0; i < all.n; i++)
        if (all.at[i].fd >= 0 && !all.at[i].expired && now - all.at[i].since_ms > all.at[i].limit_ms)
            expire(&all.at[i]);
}

bool bh_worker_next(size_t *at, struct bh_worker_seen *ret)
{
    if (*at >= all.n)
        return false;
    const struct entry *e = &all.at[(*at)++];
    *ret = (struct bh_worker_seen){.pid = e->pid,
                                   .what = e->what,
                                   .age_ms = clock_ms() - e->since_ms,
                                   .limit_ms = e->limit_ms,
                                   .over = e->fd < 0 || e->expired};
    return true;
}

void bh_worker_name(const struct bh_worker *w, const char *fmt, ...)
{
    struct entry *e = find(w->pid);
    va_list ap;
    if (!e)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(e->what, sizeof(e->what), fmt, ap);
    va_end(ap);
}

/* ---- one of them ---- */

bool bh_worker_say(const struct bh_worker_result *result)
{
    return write(BH_WORKER_RESULT_FD, result, sizeof(*result)) == (ssize_t)sizeof(*result);
}

/* Whoever has a file of the store, or its lock, keeps the next daemon from it. */
static void keep_files(int fd, int with_fd)
{
    int last = BH_WORKER_RESULT_FD;
    if (with_fd >= 0 && (with_fd = fcntl(with_fd, F_DUPFD, BH_WORKER_WITH_FD + 1)) < 0)
        _exit(1);
    /* One that is there already would be closed by the next program. */
    if (fd == BH_WORKER_RESULT_FD ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, BH_WORKER_RESULT_FD) < 0)
        _exit(1);
    if (with_fd >= 0 && (last = dup2(with_fd, BH_WORKER_WITH_FD)) < 0)
        _exit(1);
    closefrom(last + 1);
}

static _Noreturn void be_worker(bh_work *work, const void *arg, pid_t parent, int fd, int with_fd)
{
    struct bh_worker_result result = {0};
    sigset_t none;
    /* Whoever ends the daemon ends this too: the next one starts over. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    keep_files(fd, with_fd);
    bh_limits_lower_files();
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    work(arg, &result);
    _exit(bh_worker_say(&result) ? 0 : 1);
}

int bh_worker_start(bh_work *work, const void *arg, struct bh_worker *ret, struct bh_err *err)
{
    return bh_worker_start_with(work, arg, -1, ret, err);
}

int bh_worker_start_with(bh_work *work, const void *arg, int with_fd, struct bh_worker *ret,
                         struct bh_err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return bh_fail(err, BH_SYSTEM, "socketpair: %s", strerror(errno));
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        be_worker(work, arg, parent, ends[1], with_fd);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return bh_fail(err, BH_SYSTEM, "fork: %s", strerror(errno));
    }
    *ret = (struct bh_worker){.pid = pid, .fd = ends[0]};
    *bh_vec_push(&all) =
        (struct entry){.pid = pid, .fd = ends[0], .since_ms = clock_ms(), .limit_ms = limit_ms()};
    return BH_OK;
}

/* Not waited for: one that hangs is buried when it is gone. */
static void forget(struct bh_worker *w)
{
    struct entry *e = find(w->pid);
    if (e)
        e->fd = -1;
    close(w->fd);
    *w = (struct bh_worker){.fd = -1};
    bury();
}

void bh_worker_finish(struct bh_worker *w, struct bh_worker_result *ret)
{
    const struct entry *e = find(w->pid);
    ssize_t n;
    do
        n = read(w->fd, ret, sizeof(*ret));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*ret)) {
        const bool hung = e && e->expired;
        *ret = (struct bh_worker_result){.code = hung ? BH_BUSY : BH_SYSTEM};
        if (hung)
            (void)snprintf(ret->text, sizeof(ret->text),
                           "it was not done after %llu s and was ended: the driver may hang",
                           (unsigned long long)(e->limit_ms / 1000));
        else
            (void)snprintf(ret->text, sizeof(ret->text), "the process that did it died");
    }
    ret->text[sizeof(ret->text) - 1] = '\0';
    forget(w);
}

void bh_worker_wait(struct bh_worker *w, struct bh_worker_result *ret)
{
    struct pollfd at = {.fd = w->fd, .events = POLLIN};
    while (poll(&at, 1, WAIT_STEP_MS) <= 0)
        bh_worker_tick();
    bh_worker_finish(w, ret);
}

void bh_worker_kill(struct bh_worker *w)
{
    if (w->pid <= 0)
        return;
    (void)kill(w->pid, SIGKILL);
    forget(w);
}
