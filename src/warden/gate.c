/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - the loop: one notification after the other, the ends of processes, and the clock.
 *
 * One thread, so there is nothing to lock and no order to get wrong: between the look at the ledger and the answer
 * nothing else happens in the lease. Signals that would end it are held back while it serves. One that is killed all the
 * same is followed by another (gate_adopt.c): what is known lies in the journal, and so does the call being served.
 */
#include "warden/gate_inside.h"

#include "warden/gate_view.h"
#include "warden/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS /* 6.6 */
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

enum { BATCH = 64, TICK_MS = 20, SYNC_WAKE_UP = 1, LAST_MS = 10000, LOOK_MS = 200 };

/* ---- one notification ---- */

static void on_others(struct bh_gate *g);

/* Whoever ended goes first: its number may be another one's by the time the next call is looked at. (Not within one tick of
 * the kernel's clock: bh_remote_process.) */
void bh_gate_who(struct bh_gate *g, struct bh_gate_call *c)
{
    if (g->others_ns != bh_remote_tick_ns())
        on_others(g);
    c->process = bh_remote_process(&g->remote, c->tid);
}

/* 0 answered, a negative errno, or BH_GATE_CONTINUE. */
static int decide(struct bh_gate *g, struct bh_gate_call *c)
{
    const struct seccomp_data *d = &c->notif->data;
    const bool is_ioctl = d->nr == SYS_ioctl;
    if (!is_ioctl && d->nr != SYS_mmap) {
        g->stats->denied++;
        return -EPERM; /* the filter sends nothing else */
    }
    if (is_ioctl && bh_gate_is_control(d->args[1]))
        return bh_gate_control(g, c);
    bh_gate_who(g, c);
    if (!c->process)
        return -ESRCH;
    int rc = bh_remote_file(&g->remote, c->process, c->tid, (int)d->args[is_ioctl ? 0 : 4], &c->file);
    g->stats->no_room += rc == -EMFILE;
    if (rc < 0)
        return rc;
    bh_gate_mapped(g, c->process, c->tid);
    bh_gate_wake(g);
    if (is_ioctl)
        return bh_gate_ioctl(g, c, (uint32_t)d->args[1], d->args[2]);
    rc = bh_gate_mmap(g, c, d->args[1]);
    if (rc == BH_GATE_CONTINUE)
        bh_journal_mapping(g->journal,
                           &(struct bh_journal_mapping){c->process->pid, c->tid,
                                                        c->file.what.kind == BH_FILE_UVM ? d->args[1] : 0});
    return rc;
}

/* Nobody is there to hear it: what was made for it goes. */
void bh_gate_send_answer(struct bh_gate *g, struct bh_gate_call *c)
{
    struct seccomp_notif_resp *answer = &bh_journal_flight(g->journal)->answer;
    if (ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_SEND, answer) < 0 && answer->flags == 0)
        bh_gate_undo(g, c);
}

/* The answer counts, with all that was done for it, before it is sent. */
static void answer(struct bh_gate *g, struct bh_gate_call *c, int rc)
{
    struct seccomp_notif_resp *answer = &bh_journal_flight(g->journal)->answer;
    *answer = (struct seccomp_notif_resp){.id = c->notif->id};
    if (rc == BH_GATE_CONTINUE) {
        answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        g->stats->continued++;
    } else {
        answer->error = rc;
        g->stats->emulated += rc == 0;
    }
    bh_journal_commit(g->journal, BH_JOURNAL_ANSWERED);
    bh_gate_send_answer(g, c);
}

void bh_gate_serve_flight(struct bh_gate *g)
{
    const struct seccomp_notif *notif = &bh_journal_flight(g->journal)->notif;
    struct bh_gate_call c = {.notif = notif,
                             .tid = notif->pid,
                             .file.fd = -1,
                             .watchdog = g->watchdog,
                             .listener = g->config->listener};
    answer(g, &c, decide(g, &c));
    if (bh_proof_is_due(&g->proof)) /* while the tenant is on its way */
        (void)bh_proof_settle(&g->proof);
    bh_link_look(g->link);
    bh_remote_release(&g->remote, &c.file);
    bh_journal_clear_flight(g->journal);
}

/* Into the journal: a call that was taken is not given to anybody again, so it must outlive who took it. False: who asked is
 * gone already, or everybody is. */
static bool receive(struct bh_gate *g)
{
    return ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_RECV, &bh_journal_flight(g->journal)->notif) == 0;
}

static void serve_one(struct bh_gate *g)
{
    g->stats->seen++;
    bh_gate_serve_flight(g);
}

/* ---- the loop ---- */

static void on_timer(struct bh_gate *g)
{
    uint64_t times;
    if (read(g->timer, &times, sizeof(times)) == (ssize_t)sizeof(times))
        bh_gate_tick(g);
}

/* The clock, and processes that have ended. */
static void on_others(struct bh_gate *g)
{
    struct epoll_event ev[BATCH];
    bool tick = false;
    g->others_ns = bh_remote_tick_ns();
    int n = epoll_wait(g->epoll, ev, BATCH, 0);
    for (int i = 0; i < n; i++)
        if (ev[i].data.ptr == g)
            tick = true;
        else if (ev[i].data.ptr == g->link)
            bh_link_serve(g->link);
        else
            bh_gate_process_gone(g, ev[i].data.ptr);
    if (tick)
        on_timer(g);
    bh_link_look(g->link);
    bh_journal_commit(g->journal, bh_journal_stage(g->journal));
}

/* poll and not epoll for the listener: the kernel can wake whoever waits on it directly on the CPU of the one who asks. */
static int poll_all(struct bh_gate *g, struct bh_err *err)
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
        if (fds[0].revents & POLLIN) {
            if (receive(g))
                serve_one(g);
        } else if (fds[0].revents) {
            return BH_OK; /* nobody carries the filter any more */
        }
    }
}

static int loop(struct bh_gate *g, struct bh_err *err)
{
    struct pollfd others = {.fd = g->epoll, .events = POLLIN};
    int rc = poll_all(g, err);
    if (rc < 0)
        return rc;
    /* They may still be closing their files: what a lease held is given back when its last process is gone. */
    const int64_t last_ns = bh_remote_tick_ns() + (int64_t)LAST_MS * 1000000;
    while (g->remote.processes.n && bh_remote_tick_ns() < last_ns) {
        bh_gate_wake(g);
        if (poll(&others, 1, -1) > 0)
            on_others(g);
    }
    (void)bh_gate_close_lost(g, true);
    return BH_OK;
}

/* ---- beginning and end ---- */

static void file_closed(void *arg, uint64_t file)
{
    struct bh_gate *g = arg;
    bh_ledger_file_closed(g->ledger, file);
}

/* Whatever it holds loses its name now. */
static void file_closing(void *arg, const struct bh_remote_file *f)
{
    struct bh_gate *g = arg;
    bh_proof_before_close(&g->proof, f->fd, f->id);
}

static void process_learned(void *arg, struct bh_remote_process *p)
{
    struct bh_gate *g = arg;
    p->started = bh_thread_started(p->pid);
    bh_journal_process(g->journal, &(struct bh_journal_process){p->pid, p->started});
    bh_gate_process_new(g, p);
}

static void file_held(void *arg, const struct bh_remote_process *p, int fd, const struct bh_remote_file *f)
{
    struct bh_gate *g = arg;
    bh_journal_slot(g->journal, &(struct bh_journal_slot){.pid = p->pid,
                                                          .fd = fd,
                                                          .file = f->id,
                                                          .kind = f->what.kind,
                                                          .gpu = f->what.gpu,
                                                          .inode = bh_remote_inode(f)});
}

static void file_dropped(void *arg, const struct bh_remote_process *p, int fd)
{
    struct bh_gate *g = arg;
    bh_journal_slot_gone(g->journal, p->pid, fd);
}

/* Lost files are in the ledger still: whoever comes after must hear of them to take them out. */
static void tell_lost(struct bh_gate *g, struct bh_journal *j)
{
    const struct bh_remote_process nobody = {.pid = (uint32_t)g->remote.self};
    for (size_t i = 0; g->remote.n_lost && i < g->remote.files.n; i++)
        if (g->remote.files.at[i].id && !g->remote.files.at[i].refs) {
            file_held(g, &nobody, g->remote.files.at[i].fd, &g->remote.files.at[i]);
            bh_journal_slot_gone(j, nobody.pid, g->remote.files.at[i].fd);
        }
}

/* What the journal does not hear from the ledger. */
static void tell_rest(void *arg, struct bh_journal *j)
{
    struct bh_gate *g = arg;
    tell_lost(g, j);
    for (size_t i = 0; i < g->ghosts.n; i++)
        bh_journal_process(j, &(struct bh_journal_process){g->ghosts.at[i].pid, g->ghosts.at[i].started});
    for (size_t i = 0; i < g->remote.processes.n; i++) {
        const struct bh_remote_process *p = g->remote.processes.at[i];
        bh_journal_process(j, &(struct bh_journal_process){p->pid, p->started});
        for (size_t k = 0; k < p->slots.n; k++)
            file_held(g, p, p->slots.at[k].fd, &g->remote.files.at[p->slots.at[k].file]);
        for (size_t k = 0; k < p->mapping.n; k++)
            bh_journal_mapping(
                j, &(struct bh_journal_mapping){p->pid, p->mapping.at[k].tid, p->mapping.at[k].bytes});
    }
}

static int open_journal(struct bh_gate *g, struct bh_err *err)
{
    const struct bh_gate_config *c = g->config;
    struct bh_journal_found found = {0};
    uint64_t seed = 0; /* one that a tenant cannot know */
    (void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
    int rc = c->adopted ? bh_journal_adopt(c->journal, c->cap_bytes, seed, &g->journal, &found, err)
                        : bh_journal_new(c->journal, c->cap_bytes, &g->journal, err);
    if (rc < 0)
        return rc;
    g->stats = bh_journal_stats(g->journal);
    g->ledger = c->adopted ? bh_steal(&found.ledger) : bh_ledger_new(c->cap_bytes);
    if (!c->adopted)
        bh_ledger_seed(g->ledger, seed);
    bh_journal_attach(g->journal, g->ledger, tell_rest, g);
    bh_proof_init(&g->proof, g->driver, g->counter, g->ledger);
    if (c->adopted)
        bh_gate_adopt(g, &found);
    bh_journal_found_fini(&found);
    return BH_OK;
}

static int open_link(struct bh_gate *g, struct bh_err *err)
{
    int rc = bh_link_new(g, g->config->governed, &g->link, err);
    struct epoll_event on_link = {.events = EPOLLIN, .data.ptr = g->link};
    if (rc == BH_OK && epoll_ctl(g->epoll, EPOLL_CTL_ADD, bh_link_fd(g->link), &on_link) < 0)
        rc = bh_fail(err, BH_SYSTEM, "waiting for the governor: %s", strerror(errno));
    return rc;
}

static int start(struct bh_gate *g, struct bh_err *err)
{
    static const struct bh_remote_hear hear = {file_closed, process_learned, file_held, file_dropped,
                                               file_closing};
    const uint64_t flags = SYNC_WAKE_UP;
    struct epoll_event on_time = {.events = EPOLLIN, .data.ptr = g};
    int rc = bh_watchdog_start(LOOK_MS, &g->watchdog, err);
    if (rc == BH_OK)
        bh_watchdog_add(g->watchdog, g->config->root);
    if (rc == BH_OK)
        rc = bh_remote_init(&g->remote, g->driver, &hear, g, err);
    g->remote.watchdog = g->watchdog;
    if (rc == BH_OK)
        rc = g->driver->open(&g->counter, &g->n_gpus, err);
    if (rc == BH_OK && g->n_gpus == 0)
        rc = bh_fail(err, BH_NOT_FOUND, "the %s driver has no GPU; bulkhead doctor looks for the reason",
                     g->driver->name);
    if (rc < 0)
        return rc;
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    g->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (g->epoll < 0 || g->timer < 0 || epoll_ctl(g->epoll, EPOLL_CTL_ADD, g->timer, &on_time) < 0)
        return bh_fail(err, BH_SYSTEM, "waiting for the tenants: %s", strerror(errno));
    /* A kernel without it answers EINVAL and is slower. */
    (void)ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags);
    bh_gate_wake(g);
    rc = open_journal(g, err);
    if (rc == BH_OK && g->config->governed)
        rc = open_link(g, err);
    if (rc < 0)
        return rc;
    if (g->config->ready)
        g->config->ready(g->config->ready_arg);
    on_others(g);
    bh_gate_finish_flight(g);
    return BH_OK;
}

static void finish(struct bh_gate *g, struct bh_gate_stats *ret)
{
    if (g->stats)
        *ret = *g->stats;
    for (uint32_t gpu = 0; g->ledger && gpu < g->n_gpus && gpu < BH_LEDGER_GPUS; gpu++) {
        const struct bh_ledger_sum sum = bh_ledger_sum(g->ledger, gpu);
        if (sum.peak > ret->peak_bytes)
            ret->peak_bytes = sum.peak;
    }
    bh_link_free(g->link);
    bh_watchdog_stop(g->watchdog);
    bh_remote_fini(&g->remote);
    bh_journal_free(g->journal);
    if (g->counter)
        g->driver->close(g->counter);
    if (g->epoll >= 0)
        close(g->epoll);
    if (g->timer >= 0)
        close(g->timer);
    for (size_t i = 0; i < g->ghosts.n; i++)
        close(g->ghosts.at[i].pidfd);
    bh_vec_fini(&g->ghosts);
    bh_vec_fini(&g->pids);
    bh_proof_fini(&g->proof);
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
    g->epoll = g->timer = -1;
    bh_rights_read(&g->rights);
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < BH_COUNT_OF(held_back); i++)
        (void)sigaddset(&signals, held_back[i]);
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    int rc = start(g, err);
    if (rc == BH_OK)
        rc = loop(g, err);
    finish(g, ret);
    free(g);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
