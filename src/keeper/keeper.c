/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - orders, time, output and the account of one lease, whatever its tier. */
#include "keeper/keeper.h"

#include "base/mem.h"
#include "launch/durable.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_MAX = 1 << 20, AGAIN_MS = 2000, TURNS = 16 };

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void bh_keeper_say(struct bh_keeper *k, const char *line)
{
    struct stat st;
    if (k->log >= 0 && fstat(k->log, &st) == 0 && st.st_size < LOG_MAX)
        (void)dprintf(k->log, "%llu %s\n", (unsigned long long)now_ms(), line);
}

/* ---- state ---- */

static void fill_status(const struct bh_keeper *k, struct bh_keeper_status *ret)
{
    const bool over = k->state == BH_KEEPER_OVER;
    ret->version = BH_KEEPER_VERSION;
    ret->state = (uint32_t)k->state;
    ret->keeper_pid = (uint32_t)getpid();
    ret->work_pid = (uint32_t)k->work;
    ret->started_ms = k->end.started_ms;
    ret->how = over ? (uint32_t)k->end.how : 0;
    ret->status = over ? k->end.status : 0;
    ret->signal = over ? k->end.signal : 0;
    if (ret->code == 0)
        memcpy(ret->text, k->end.why, sizeof(ret->text));
}

void bh_keeper_set_state(struct bh_keeper *k, enum bh_keeper_state state)
{
    struct bh_keeper_status status = {0};
    k->state = state;
    fill_status(k, &status);
    bh_control_tell(&k->control, &status);
}

void bh_keeper_set_timer(struct bh_keeper *k, uint64_t ms)
{
    const struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}};
    (void)timerfd_settime(k->timer, 0, &t, NULL);
}

int bh_keeper_begin(struct bh_keeper *k, struct bh_err *err)
{
    char text[32];
    const uint64_t now = now_ms();
    const int n = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)now);
    int rc = bh_keeper_settle(&k->at, k->folder, err);
    /* Whoever gave the lease away meanwhile has put a file of that name there, lock or no lock (bh_keeper_fence). */
    if (rc == BH_OK)
        rc = bh_durable_create(k->folder, BH_KEEPER_BEGUN_NAME, text, (size_t)n, err);
    if (rc == BH_OK)
        k->end.started_ms = now;
    return rc == BH_CONFLICT ? bh_fail(err, rc, "lease L%llu was given up before its work began",
                                       (unsigned long long)k->spec.lease)
                             : rc;
}

void bh_keeper_runs(struct bh_keeper *k, pid_t work)
{
    k->work = work;
    bh_keeper_set_state(k, k->end.stopped ? BH_KEEPER_STOPS : BH_KEEPER_RUNS);
}

/* ---- orders ---- */

static void stop(struct bh_keeper *k, uint32_t grace_ms, const char *why)
{
    if (k->state == BH_KEEPER_OVER)
        return;
    k->end.stopped = true;
    (void)snprintf(k->end.why, sizeof(k->end.why), "%s", why);
    bh_keeper_say(k, why);
    if (k->state != BH_KEEPER_RUNS && k->state != BH_KEEPER_STOPS)
        return; /* whoever is about to begin it looks */
    bh_keeper_set_state(k, BH_KEEPER_STOPS);
    k->terminate(k);
    bh_keeper_set_timer(k, grace_ms ? grace_ms : 1);
}

static int attach(struct bh_keeper *k, const int fds[3], struct bh_err *err)
{
    const bool wanted = k->spec.attach && k->state == BH_KEEPER_WAITS && !k->attached;
    for (int i = 0; i < 3; i++) {
        if (wanted)
            k->stdio[i] = fds[i];
        else
            close(fds[i]);
    }
    k->attached |= wanted;
    return wanted ? BH_OK : bh_fail(err, BH_CONFLICT, "this lease does not wait for somebody to attach");
}

static int obey(struct bh_keeper *k, const struct bh_keeper_order *order, const int *fds, struct bh_err *err)
{
    switch ((enum bh_keeper_op)order->op) {
    case BH_KEEPER_SIGNAL:
        if (order->signal < 1 || order->signal > (uint32_t)SIGRTMAX)
            return bh_fail(err, BH_INVALID, "no signal %u", order->signal);
        if (k->work == 0)
            return bh_fail(err, BH_CONFLICT, "the work does not run");
        k->signal(k, (int)order->signal);
        return BH_OK;
    case BH_KEEPER_STOP:
        stop(k, order->grace_ms == UINT32_MAX ? k->spec.grace_ms : order->grace_ms, "stopped by an order");
        return BH_OK;
    case BH_KEEPER_ATTACH:
        return attach(k, fds, err);
    case BH_KEEPER_STATUS:
    case BH_KEEPER_WATCH:
        return BH_OK;
    }
    return bh_fail(err, BH_INVALID, "no such order");
}

static void take_order(void *arg, const struct bh_keeper_order *order, const int *fds,
                       struct bh_keeper_status *ret)
{
    struct bh_keeper *k = arg;
    struct bh_err err = {0};
    ret->code = obey(k, order, fds, &err);
    if (ret->code < 0)
        memcpy(ret->text, err.msg, sizeof(ret->text));
    fill_status(k, ret);
}

static void was_left(void *arg)
{
    struct bh_keeper *k = arg;
    stop(k, k->spec.grace_ms, "whoever was attached has left");
}

int bh_keeper_open_control(struct bh_keeper *k, int listener, struct bh_err *err)
{
    k->control = (struct bh_control){.epoll = k->epoll,
                                     .listener = listener,
                                     .owner = k->spec.uid,
                                     .order = take_order,
                                     .left = was_left,
                                     .arg = k};
    return bh_control_open(&k->control, err);
}

/* ---- hearing ---- */

bool bh_keeper_listen_to(struct bh_keeper *k, int fd)
{
    struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(k->epoll, EPOLL_CTL_ADD, fd, &want) == 0;
}

static void look_at_clock(struct bh_keeper *k)
{
    uint64_t times;
    if (read(k->timer, &times, sizeof(times)) != (ssize_t)sizeof(times))
        return;
    if (k->state == BH_KEEPER_WAITS) {
        k->end.stopped = true;
        (void)snprintf(k->end.why, sizeof(k->end.why), "nobody attached in time");
    } else if (k->state == BH_KEEPER_STOPS) {
        k->kill(k);
        bh_keeper_set_timer(k, AGAIN_MS); /* what hangs in a driver may come out of it */
    }
}

int bh_keeper_hear(struct bh_keeper *k, struct bh_err *err)
{
    bh_control_hear(&k->control);
    look_at_clock(k);
    for (int i = 0; i < TURNS && bh_output_take(&k->out); i++) {
    }
    for (int i = 0; i < TURNS && bh_output_take(&k->err); i++) {
    }
    if (k->more)
        k->more(k);
    const bool early = k->state == BH_KEEPER_WAITS || k->state == BH_KEEPER_STARTS;
    return k->end.stopped && early ? bh_fail(err, BH_REFUSED, "%s", k->end.why) : BH_OK;
}

int bh_keeper_wait(struct bh_keeper *k, struct bh_err *err)
{
    struct pollfd at = {.fd = k->epoll, .events = POLLIN};
    (void)poll(&at, 1, -1);
    return bh_keeper_hear(k, err);
}

/* ---- the end ---- */

void bh_keeper_empty(struct bh_keeper *k)
{
    struct bh_err err;
    if (bh_cgroup_kill(&k->groups, k->spec.cgroup, BH_KEEPER_KILL_MS, &err) < 0)
        bh_keeper_say(k, err.msg);
}

void bh_keeper_take_account(struct bh_keeper *k, const struct bh_lease_end *end)
{
    k->end.counted = end->code == 0;
    k->end.peak_bytes = end->peak_bytes;
    k->end.refused = end->refused_memory;
    k->end.denied = end->denied;
    k->end.killed = end->killed;
    const char *why = *end->why_killed ? end->why_killed : end->code < 0 ? end->text : "";
    if (*why)
        (void)snprintf(k->end.why, sizeof(k->end.why), "%s", why);
}

void bh_keeper_take_failure(struct bh_keeper *k, int rc, const struct bh_err *err)
{
    k->work = 0;
    k->end.how = BH_KEEPER_NOT_BEGUN;
    k->end.code = rc;
    k->end.started_ms = 0;
    k->end.ended_ms = now_ms();
    memcpy(k->end.why, err->msg, sizeof(k->end.why));
}

void bh_keeper_take_status(struct bh_keeper *k, int status)
{
    k->work = 0;
    k->end.ended_ms = now_ms();
    k->end.how = WIFSIGNALED(status) ? BH_KEEPER_KILLED : BH_KEEPER_EXITED;
    k->end.signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
    k->end.status = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
}
