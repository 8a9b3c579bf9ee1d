/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - the loop: one notification after the other, the ends of processes, and the clock.
 *
 * One thread, so there is nothing to lock and no order to get wrong: between the look at the ledger and the answer
 * nothing else happens in the lease. Signals that would end it are held back while it serves; a warden that ended
 * would leave its tenants with ENOSYS.
 */
#include "warden/gate_inside.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS /* 6.6 */
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

enum { BATCH = 64, TICK_MS = 20, SYNC_WAKE_UP = 1, LAST_MS = 10000 };

/* ---- one notification ---- */

/* 0 answered, a negative errno, or BH_GATE_CONTINUE. */
static int decide(struct bh_gate *g, struct bh_gate_call *c)
{
    const struct seccomp_data *d = &c->notif->data;
    const bool is_ioctl = d->nr == SYS_ioctl;
    if (!is_ioctl && d->nr != SYS_mmap) {
        g->stats->denied++;
        return -EPERM; /* the filter sends nothing else */
    }
    c->process = bh_remote_process(&g->remote, c->tid);
    if (!c->process)
        return -ESRCH;
    int rc = bh_remote_file(&g->remote, c->process, c->tid, (int)d->args[is_ioctl ? 0 : 4], &c->file);
    if (rc < 0)
        return rc;
    bh_gate_mapped(c->process, c->tid);
    if (c->file.id)
        bh_gate_wake(g);
    return is_ioctl ? bh_gate_ioctl(g, c, (uint32_t)d->args[1], d->args[2]) : bh_gate_mmap(g, c, d->args[1]);
}

static void answer(struct bh_gate *g, struct bh_gate_call *c, int rc)
{
    struct seccomp_notif_resp resp = {.id = c->notif->id};
    if (rc == BH_GATE_CONTINUE) {
        resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        g->stats->continued++;
    } else {
        resp.error = rc;
        g->stats->emulated += rc == 0;
    }
    if (ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp) < 0 && rc != BH_GATE_CONTINUE)
        bh_gate_undo(g, c);
}

static void serve_one(struct bh_gate *g)
{
    struct seccomp_notif notif = {0};
    if (ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_RECV, &notif) < 0)
        return; /* who asked is gone already */
    struct bh_gate_call c = {.notif = &notif, .tid = notif.pid};
    g->stats->seen++;
    answer(g, &c, decide(g, &c));
    bh_remote_release(&g->remote, &c.file);
}

/* ---- the loop ---- */

static void on_timer(struct bh_gate *g)
{
    uint64_t times;
    if (read(g->timer, &times, sizeof(times)) == (ssize_t)sizeof(times))
        bh_gate_tick(g);
}

/* Whoever ended goes first: its number may be another one's by the time the next call is looked at. */
static void on_others(struct bh_gate *g)
{
    struct epoll_event ev[BATCH];
    bool tick = false;
    int n = epoll_wait(g->epoll, ev, BATCH, 0);
    for (int i = 0; i < n; i++)
        if (ev[i].data.ptr == g)
            tick = true;
        else
            bh_gate_process_gone(g, ev[i].data.ptr);
    if (tick)
        on_timer(g);
}

/* poll and not epoll for the listener: the kernel can wake whoever waits on it directly on the CPU of the one who asks. */
static int loop(struct bh_gate *g, struct bh_err *err)
{
    struct pollfd fds[] = {{.fd = g->config->listener, .events = POLLIN}, {.fd = g->epoll, .events = POLLIN}};
    for (;;) {
        if (poll(fds, BH_COUNT_OF(fds), -1) < 0) {
            if (errno == EINTR)
                continue;
            return bh_fail(err, BH_SYSTEM, "waiting for the tenants: %s", strerror(errno));
        }
        if (fds[1].revents)
            on_others(g);
        if (fds[0].revents & POLLIN)
            serve_one(g);
        else if (fds[0].revents)
            break; /* nobody carries the filter any more */
    }
    /* They may still be closing their files: what a lease held is given back when its last process is gone. */
    const uint32_t last = g->ticks + LAST_MS / g->config->tick_ms;
    while (g->remote.processes.n && g->ticks < last) {
        bh_gate_wake(g);
        if (poll(&fds[1], 1, -1) > 0)
            on_others(g);
    }
    return BH_OK;
}

/* ---- beginning and end ---- */

static void file_closed(void *arg, uint64_t file)
{
    struct bh_gate *g = arg;
    bh_ledger_file_closed(g->ledger, file);
}

static void process_learned(void *arg, struct bh_remote_process *p)
{
    bh_gate_process_new(arg, p);
}

static int start(struct bh_gate *g, struct bh_err *err)
{
    static const struct bh_remote_hear hear = {file_closed, process_learned};
    const uint64_t flags = SYNC_WAKE_UP;
    struct epoll_event on_time = {.events = EPOLLIN, .data.ptr = g};
    int rc = bh_remote_init(&g->remote, g->driver, &hear, g, err);
    if (rc == BH_OK)
        rc = g->driver->open(&g->counter, &g->n_gpus, err);
    if (rc < 0)
        return rc;
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    g->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (g->epoll < 0 || g->timer < 0 || epoll_ctl(g->epoll, EPOLL_CTL_ADD, g->timer, &on_time) < 0)
        return bh_fail(err, BH_SYSTEM, "waiting for the tenants: %s", strerror(errno));
    /* A kernel without it answers EINVAL and is slower. */
    (void)ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags);
    bh_gate_wake(g);
    return BH_OK;
}

static void finish(struct bh_gate *g)
{
    for (uint32_t gpu = 0; gpu < g->n_gpus && gpu < BH_LEDGER_GPUS; gpu++) {
        const struct bh_ledger_sum sum = bh_ledger_sum(g->ledger, gpu);
        if (sum.peak > g->stats->peak_bytes)
            g->stats->peak_bytes = sum.peak;
    }
    bh_remote_fini(&g->remote);
    if (g->counter)
        g->driver->close(g->counter);
    if (g->epoll >= 0)
        close(g->epoll);
    if (g->timer >= 0)
        close(g->timer);
    for (size_t i = 0; i < g->ghosts.n; i++)
        close(g->ghosts.at[i].pidfd);
    bh_vec_fini(&g->ghosts);
    bh_ledger_free(g->ledger);
}

int bh_gate_serve(const struct bh_gate_config *config, struct bh_gate_stats *ret, struct bh_err *err)
{
    static const int held_back[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE};
    struct bh_gate_config own = *config;
    sigset_t signals, before;
    struct bh_gate *g = bh_alloc(1, sizeof(*g));
    own.tick_ms = own.tick_ms ? own.tick_ms : TICK_MS;
    *ret = (struct bh_gate_stats){0};
    g->config = &own;
    g->driver = own.driver;
    g->stats = ret;
    g->epoll = g->timer = -1;
    g->ledger = bh_ledger_new(own.cap_bytes);
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < BH_COUNT_OF(held_back); i++)
        (void)sigaddset(&signals, held_back[i]);
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    int rc = start(g, err);
    if (rc == BH_OK)
        rc = loop(g, err);
    finish(g);
    free(g);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
