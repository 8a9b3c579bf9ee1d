/* SPDX-License-Identifier: Apache-2.0 */
/* vigil.c - the child that listens, and what it says. */
#include "node/watch/vigil.h"

#include "base/sysfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TALK_FD = STDERR_FILENO + 1,
    WAIT_MS = 1000,
    LINE_MS = 20,   /* the log may be written a moment after the event came */
    LINE_TRIES = 5, /* so often it is looked at again */
    LOG_BYTES = 8192,
    REAP_TRIES = 20,
    REAP_MS = 10,
};

struct log {
    int fd; /* -1: it cannot be read */
    char text[LOG_BYTES];
    size_t n;
};

static void say(const struct bh_vigil_word *w)
{
    /* Whoever does not listen is gone, and so is this process then. */
    if (send(TALK_FD, w, sizeof(*w), MSG_NOSIGNAL) != (ssize_t)sizeof(*w))
        _exit(1);
}

static void say_text(enum bh_vigil_kind kind, const char *text)
{
    struct bh_vigil_word w = {.kind = (uint8_t)kind};
    (void)snprintf(w.text, sizeof(w.text), "%s", text);
    say(&w);
}

/* ---- the kernel's log ---- */

static void open_log(struct log *l)
{
    char path[BH_SYSPATH_MAX];
    l->fd = bh_syspath(path, "/dev/kmsg") ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (l->fd >= 0)
        (void)lseek(l->fd, 0, SEEK_END); /* what was before is no news */
}

/* The lines that are whole; true: one of them was of this number. */
static bool say_lines(struct log *l, uint64_t number)
{
    bool found = false;
    for (const char *end; (end = memchr(l->text, '\n', l->n));) {
        struct bh_vigil_word w = {.kind = BH_VIGIL_LINE};
        const size_t n = (size_t)(end - l->text);
        if (bh_xid_line(l->text, n, &w.line)) {
            found = found || w.line.number == number;
            say(&w);
        }
        l->n -= n + 1;
        memmove(l->text, end + 1, l->n);
    }
    if (l->n == sizeof(l->text)) /* nobody writes such a line */
        l->n = 0;
    return found;
}

static bool read_log(struct log *l, uint64_t number)
{
    bool found = false;
    for (ssize_t got; l->fd >= 0 && l->n < sizeof(l->text);) {
        got = read(l->fd, l->text + l->n, sizeof(l->text) - l->n);
        if (got < 0 && (errno == EPIPE || errno == EINTR)) /* lines were overwritten before they were read */
            continue;
        if (got <= 0)
            break;
        l->n += (size_t)got;
        found = say_lines(l, number) || found;
    }
    return found;
}

static void say_event(struct log *l, const struct bh_gpu_event *e)
{
    struct bh_vigil_word w = {.kind = BH_VIGIL_EVENT, .event = *e};
    w.event.xid = NULL;
    const bool is_xid = e->kind == BH_GPU_EVENT_XID;
    for (int i = 0; !read_log(l, is_xid ? e->data : UINT64_MAX) && is_xid && l->fd >= 0 && i < LINE_TRIES;
         i++)
        (void)poll(NULL, 0, LINE_MS);
    say(&w);
}

/* ---- the child ---- */

static _Noreturn void listen_on(void)
{
    static struct log log;
    struct bh_gpu_events *events;
    struct bh_gpu_event e;
    struct bh_err err = {0};
    const char *const *gaps;
    open_log(&log);
    if (bh_gpu_events_open(&events, &err) < 0) {
        say_text(BH_VIGIL_FAILED, err.msg);
        _exit(0);
    }
    const size_t n = bh_gpu_events_gaps(events, &gaps);
    for (size_t i = 0; i < n; i++)
        say_text(BH_VIGIL_GAP, gaps[i]);
    for (;;) {
        const int got = bh_gpu_events_wait(events, WAIT_MS, &e, &err);
        if (got < 0) {
            say_text(BH_VIGIL_FAILED, err.msg);
            _exit(0);
        }
        if (got == 0) {
            (void)read_log(&log, UINT64_MAX);
            continue;
        }
        say_event(&log, &e);
        if (e.kind == BH_GPU_EVENT_LOST) /* what is left is to be opened anew */
            _exit(0);
    }
}

static _Noreturn void be_vigil(pid_t parent, int fd)
{
    sigset_t none;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    /* Whoever has a file of the store, or its lock, keeps the next daemon from it. */
    if (fd != TALK_FD && dup2(fd, TALK_FD) < 0)
        _exit(1);
    closefrom(TALK_FD + 1);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    listen_on();
}

/* ---- the daemon's side ---- */

/* Is it gone? Soon after its end it is, but for one that hangs. */
static bool reap(pid_t pid)
{
    for (int i = 0; i < REAP_TRIES; i++) {
        const pid_t got = waitpid(pid, NULL, WNOHANG);
        if (got == pid || (got < 0 && errno == ECHILD))
            return true;
        (void)poll(NULL, 0, REAP_MS);
    }
    return false;
}

int bh_vigil_start(struct bh_vigil *v, struct bh_err *err)
{
    int ends[2];
    if (v->stale && !reap(v->stale))
        return bh_fail(err, BH_BUSY, "process %d, which listened before, hangs in the driver", (int)v->stale);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return bh_fail(err, BH_SYSTEM, "socketpair: %s", strerror(errno));
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        be_vigil(parent, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return bh_fail(err, BH_SYSTEM, "fork: %s", strerror(errno));
    }
    *v = (struct bh_vigil){.pid = pid, .fd = ends[0]};
    return BH_OK;
}

int bh_vigil_next(struct bh_vigil *v, struct bh_vigil_word *ret)
{
    ssize_t n;
    do
        n = recv(v->fd, ret, sizeof(*ret), MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n != (ssize_t)sizeof(*ret))
        return -1;
    ret->text[sizeof(ret->text) - 1] = '\0';
    ret->event.xid = ret->event.kind == BH_GPU_EVENT_XID ? bh_xid_find(ret->event.data) : NULL;
    return 1;
}

void bh_vigil_end(struct bh_vigil *v)
{
    if (v->pid <= 0)
        return;
    (void)kill(v->pid, SIGKILL);
    close(v->fd);
    *v = (struct bh_vigil){.fd = -1, .stale = reap(v->pid) ? 0 : v->pid};
}
