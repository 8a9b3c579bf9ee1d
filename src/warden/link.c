/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - what the governor is told of a lease, and what it orders.
 *
 * What the lease has is compared with what was told, as a whole, whenever the ledger says that a channel or a group came or
 * went: so no way for an object to go can be forgotten here. There is no queue: what could not be sent is what still differs
 * when there is room again. After a governor is lost everything is told anew.
 */
#include "warden/link.h"

#include "gpu/abi/rm.h"
#include "warden/gate_inside.h"
#include "warden/ledger_walk.h"
#include "warden/link_groups.h"
#include "warden/link_join.h"
#include "warden/link_probe.h"
#include "wire/fds.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    AT_ONCE = 64,        /* messages heard before the tenants are served again */
    FIRST_MS = 5000,     /* for the answer to the first join */
    RESUME_MS = 1000,    /* between two times that all are resumed while there is none */
    PATIENCE_MS = 10000, /* for the answer to one: a governor may have to be started */
    YOUNG_EVERY_MS = 20,
    EVERY_MS = 100,
    PIDS_MS = 20,
};

struct bh_link {
    struct bh_gate *gate;
    struct bh_lease_share share;
    int launcher, governor;
    int epoll, timer;
    uint32_t every_ms; /* what the timer is set to; 0: nothing */
    bool begun;        /* the gate serves */
    bool asked;        /* the launcher, and it has not answered */
    int64_t asked_ms;
    uint64_t seen;             /* bh_ledger_runs_changed */
    struct bh_ledger_runs has; /* in order */
    struct bh_groups groups;
    struct bh_link_probe probe;
    struct bh_govern_tampered tampered; /* not yet told, where times is not 0 */
    int64_t tampered_ms;                /* when it was last told */
    bool pids_stale;
    int64_t resumed_ms;
    bool unresumed; /* that failed */
    struct bh_link_join join;
    /* Of this governor. */
    int64_t heard_ms;
    bool joined; /* it has said so */
    bool
        hears_own; /* ... and that it takes what tenants say themselves: one from before an upgrade does not */
    bool said;     /* it was asked to let us join */
    bool full;     /* it has to read first */
    struct bh_ledger_runs told;
    BH_VEC(uint32_t) pids; /* told, up to sent; the rest is on its way */
    size_t pids_sent;
    bool pids_open; /* its list is not complete yet */
    int64_t pids_ms;
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what is set and looked at ---- */

/* Governed or not, an order that stands is looked after. */
static void set_timer(struct bh_link *l)
{
    const bool busy =
        l->groups.n || l->has.n || l->pids_stale || l->tampered.times || !l->joined || l->probe.hot;
    const uint32_t every = l->groups.young ? YOUNG_EVERY_MS : busy ? EVERY_MS : 0;
    const struct timespec t = {.tv_sec = every / 1000, .tv_nsec = (long)(every % 1000) * 1000000};
    if (every == l->every_ms)
        return;
    if (timerfd_settime(l->timer, 0, &(struct itimerspec){.it_interval = t, .it_value = t}, NULL) == 0)
        l->every_ms = every;
}

static int compare(const void *a, const void *b)
{
    const struct bh_ledger_run *p = a, *q = b;
    const uint32_t x[] = {p->gpu, p->client, p->object}, y[] = {q->gpu, q->client, q->object};
    for (size_t i = 0; i < BH_COUNT_OF(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static bool is_told(const struct bh_ledger_run *r)
{
    return bh_ledger_is_channel(r->class) && r->gpu < BH_LEDGER_GPUS;
}

/* Nobody is paused by a governor that is gone. (One that was stopped may go on for a moment: so again and again.) */
static void resume_all(struct bh_link *l)
{
    l->unresumed = false;
    l->resumed_ms = now_ms();
    struct bh_driver_channel at[BH_GOVERN_NAMES];
    size_t n = 0;
    for (size_t i = 0; i < l->has.n; i++) {
        const struct bh_ledger_run *r = &l->has.at[i];
        const struct bh_ledger_run *next = i + 1 < l->has.n ? &l->has.at[i + 1] : NULL;
        if (is_told(r))
            at[n++] = (struct bh_driver_channel){r->client, r->object};
        if (n && (n == BH_COUNT_OF(at) || !next || next->gpu != r->gpu)) {
            l->unresumed |= l->gate->driver->set_running(l->gate->counter, r->gpu, at, n, true) != 0;
            n = 0;
        }
    }
}

/* ---- the connection ---- */

static void watch_governor(struct bh_link *l, bool also_room)
{
    struct epoll_event ev = {.events = EPOLLIN | (also_room ? (uint32_t)EPOLLOUT : 0),
                             .data.ptr = &l->governor};
    (void)epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->governor, &ev);
}

/* Not before the launcher has heard that this warden is ready, and not all the time: the clock asks later. */
static void ask_launcher(struct bh_link *l)
{
    const struct bh_lease_ask ask = bh_link_join_ask(&l->join);
    const int64_t now = now_ms();
    const int64_t pause = bh_link_join_pause_ms(&l->join);
    if (!l->begun || (l->asked_ms && now - l->asked_ms < (l->asked ? PATIENCE_MS : pause)))
        return;
    l->asked_ms = now;
    l->asked =
        l->launcher >= 0 && send(l->launcher, &ask, sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(ask);
    l->join.news |= l->asked;
}

static void tell_launcher(struct bh_link *l)
{
    const struct bh_lease_ask ask = {.what = BH_LEASE_ASK_JOINED};
    if (l->join.news && l->join.hears_news && l->launcher >= 0)
        (void)send(l->launcher, &ask, sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL);
    l->join.news = false;
}

static void hang_up(struct bh_link *l)
{
    if (l->governor >= 0)
        close(l->governor); /* and is awaited no more */
    l->governor = -1;
    l->joined = l->said = l->full = l->pids_open = false;
    l->told.n = 0;
    l->pids_stale = true;
    l->pids_ms = 0;
}

/* It is gone, or as good as gone. */
static void lost(struct bh_link *l)
{
    hang_up(l);
    resume_all(l);
    bh_groups_let_go(&l->groups, l->gate);
    ask_launcher(l);
    set_timer(l);
}

/* False: there is no room, or nobody is there any more. */
static bool send_now(struct bh_link *l, const void *m, size_t n)
{
    if (l->governor < 0 || l->full)
        return false;
    if (send(l->governor, m, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n)
        return true;
    l->full = errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM;
    if (l->full)
        watch_governor(l, true);
    else
        lost(l);
    return false;
}

/* ---- telling ---- */

static void tell_join(struct bh_link *l)
{
    struct bh_govern_join j = {.op = BH_GOVERN_JOIN,
                               .version = l->join.version,
                               .root_pid = l->gate->config->root_pid,
                               .weight = l->share.weight,
                               .cap_permille = l->share.cap_permille,
                               .floor_permille = l->share.floor_permille,
                               .latency = l->share.latency,
                               .lease = l->gate->stats->lease};
    memcpy(j.name, l->share.name, sizeof(j.name) - 1);
    l->said = l->said || send_now(l, &j, sizeof(j));
}

static bool are_pids_due(const struct bh_link *l)
{
    return l->pids_stale && (!l->pids_ms || now_ms() - l->pids_ms >= PIDS_MS);
}

/* Who the lease is, as far as the driver could book something on it. */
static void tell_pids(struct bh_link *l)
{
    if (!l->pids_open) {
        if (!are_pids_due(l))
            return;
        bh_gate_pids(l->gate);
        l->pids.n = 0;
        for (size_t i = 0; i < l->gate->pids.n; i++)
            *bh_vec_push(&l->pids) = l->gate->pids.at[i];
        l->pids_open = true;
        l->pids_stale = false;
        l->pids_ms = now_ms();
        l->pids_sent = 0;
    }
    while (l->pids_open) {
        struct bh_govern_pids m = {.op = BH_GOVERN_PIDS};
        while (m.n < BH_COUNT_OF(m.pids) && l->pids_sent + m.n < l->pids.n) {
            m.pids[m.n] = l->pids.at[l->pids_sent + m.n];
            m.n++;
        }
        m.more = l->pids_sent + m.n < l->pids.n;
        if (!send_now(l, &m, sizeof(m)))
            return;
        l->pids_sent += m.n;
        l->pids_open = m.more;
    }
}

/* What is in one of two ordered lists and not in the other; of_others: also what is somebody else's there. */
static void differences(const struct bh_ledger_runs *from, const struct bh_ledger_runs *than, bool of_others,
                        struct bh_ledger_runs *ret)
{
    size_t k = 0;
    for (size_t i = 0; i < from->n; i++) {
        while (k < than->n && compare(&than->at[k], &from->at[i]) < 0)
            k++;
        const bool there = k < than->n && compare(&than->at[k], &from->at[i]) == 0;
        if (is_told(&from->at[i]) && (!there || (of_others && than->at[k].pid != from->at[i].pid)))
            *bh_vec_push(ret) = from->at[i];
    }
}

/* Those of one client and GPU stand together. How many went out. */
static size_t send_channels(struct bh_link *l, enum bh_govern_op op, const struct bh_ledger_runs *runs)
{
    size_t sent = 0;
    while (sent < runs->n) {
        const struct bh_ledger_run *first = &runs->at[sent];
        struct bh_govern_channels c = {.op = (uint32_t)op,
                                       .gpu = first->gpu,
                                       .pid = first->pid ? first->pid : l->gate->config->root_pid,
                                       .client = first->client};
        for (size_t i = sent; i < runs->n && c.n < BH_GOVERN_NAMES; i++) {
            const struct bh_ledger_run *r = &runs->at[i];
            if (r->gpu != first->gpu || r->pid != first->pid || r->client != first->client)
                break;
            c.names[c.n++] = r->object;
        }
        if (!send_now(l, &c, sizeof(c)))
            break;
        sent += c.n;
    }
    return sent;
}

/* The first n of these were told. */
static void note_told(struct bh_link *l, const struct bh_ledger_runs *runs, size_t n, bool came)
{
    size_t kept = 0, k = 0;
    for (size_t i = 0; i < l->told.n; i++) {
        while (k < n && compare(&runs->at[k], &l->told.at[i]) < 0)
            k++;
        if (k == n || compare(&runs->at[k], &l->told.at[i]) != 0)
            l->told.at[kept++] = l->told.at[i];
    }
    l->told.n = kept;
    for (size_t i = 0; came && i < n; i++)
        *bh_vec_push(&l->told) = runs->at[i];
    if (came && l->told.n)
        qsort(l->told.at, l->told.n, sizeof(l->told.at[0]), compare);
}

static void tell_channels(struct bh_link *l, enum bh_govern_op op)
{
    const bool came = op == BH_GOVERN_HAS;
    struct bh_ledger_runs runs = {0};
    if (came)
        differences(&l->has, &l->told, true, &runs);
    else
        differences(&l->told, &l->has, false, &runs);
    const size_t sent = send_channels(l, op, &runs);
    if (sent && l->governor >= 0)
        note_told(l, &runs, sent, came);
    bh_vec_fini(&runs);
}

/* As a count, and not at each time: a tenant could make it a flood. */
static void tell_tampered(struct bh_link *l, bool at_once)
{
    const int64_t now = now_ms();
    if (!l->tampered.times || (!at_once && l->tampered_ms && now - l->tampered_ms < EVERY_MS) ||
        !send_now(l, &l->tampered, sizeof(l->tampered)))
        return;
    l->tampered.times = 0;
    l->tampered_ms = now;
}

/* Once, until it is asked for again: one that is read by the clock must not wake us, too. */
static void listen_to_probe(struct bh_link *l, int how)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = &l->probe};
    if (l->probe.fd >= 0)
        (void)epoll_ctl(l->epoll, how, l->probe.fd, &ev);
}

/* Read whether there is a governor or not: whoever sends must not wait. Numbers are of all time: one that is lost is no loss. */
static void tell_own(struct bh_link *l)
{
    struct bh_govern_own m;
    if (!l->probe.hot || !bh_link_probe_read(&l->probe, now_ms(), &m))
        return;
    if (l->joined && l->hears_own)
        (void)send_now(l, &m, sizeof(m));
    if (!l->probe.hot)
        listen_to_probe(l, EPOLL_CTL_MOD);
}

/* All that it does not know, as far as it has room. */
static void tell(struct bh_link *l)
{
    tell_join(l);
    if (!l->joined) /* one that refuses hangs up, and more words would cost its answer */
        return;
    tell_pids(l);
    tell_channels(l, BH_GOVERN_LOST);
    tell_channels(l, BH_GOVERN_HAS);
    tell_tampered(l, false);
}

void bh_link_tampered(struct bh_link *l, uint32_t gpu, uint32_t found_us)
{
    l->tampered = (struct bh_govern_tampered){.op = BH_GOVERN_TAMPERED,
                                              .gpu = gpu,
                                              .found_us = found_us,
                                              .set_us = bh_groups_ordered(&l->groups, gpu),
                                              .times = l->tampered.times + (l->tampered.times < UINT32_MAX)};
    l->gate->stats->tampered++;
    bh_groups_beware(&l->groups, now_ms());
    tell_tampered(l, false);
    set_timer(l);
}

void bh_link_pids_changed(struct bh_link *l)
{
    if (l)
        l->pids_stale = true;
}

bool bh_link_has_room(const struct bh_link *l, uint32_t gpu)
{
    size_t n = 0;
    for (size_t i = 0; i < l->has.n; i++)
        n += is_told(&l->has.at[i]) && l->has.at[i].gpu == gpu;
    return n < BH_LINK_CHANNELS;
}

void bh_link_look(struct bh_link *l)
{
    struct bh_ledger_runs now = {0};
    const bool changed = l && bh_ledger_runs_changed(l->gate->ledger) != l->seen;
    if (!l || (!changed && !are_pids_due(l)))
        return;
    if (changed) {
        l->seen = bh_ledger_runs_changed(l->gate->ledger);
        bh_ledger_runs(l->gate->ledger, &now);
        if (now.n)
            qsort(now.at, now.n, sizeof(now.at[0]), compare);
        bh_vec_fini(&l->has);
        l->has = now;
        bh_groups_are(&l->groups, &l->has, l->gate, now_ms());
    }
    if (l->said)
        tell(l);
    set_timer(l);
}

/* ---- hearing ---- */

static void meet(struct bh_link *l, int governor)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &l->governor};
    hang_up(l);
    l->governor = governor;
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, governor, &ev) < 0) {
        hang_up(l);
        return;
    }
    l->gate->stats->governors++;
    l->heard_ms = now_ms(); /* from now on it has time to answer */
    tell(l);
    set_timer(l);
}

/* False: no governor says that. */
static bool hear(struct bh_link *l, const void *bytes, size_t n, struct bh_err *err)
{
    struct bh_govern_answer answer;
    struct bh_govern_slice slice;
    uint32_t op;
    if (n < sizeof(op))
        return false;
    memcpy(&op, bytes, sizeof(op));
    if (op == BH_GOVERN_SLICE && n == sizeof(slice)) {
        memcpy(&slice, bytes, sizeof(slice));
        bh_groups_order(&l->groups, l->gate, &slice, now_ms());
        return slice.gpu < BH_LEDGER_GPUS;
    }
    if ((op != BH_GOVERN_ANSWER && op != BH_GOVERN_END) || n != sizeof(answer))
        return false;
    memcpy(&answer, bytes, sizeof(answer));
    answer.text[sizeof(answer.text) - 1] = '\0';
    if (op == BH_GOVERN_END) {
        bh_gate_end(l->gate, answer.text);
        return true;
    }
    if (answer.code < 0) {
        if (!l->joined)
            bh_link_join_refused(&l->join, answer.code);
        (void)bh_fail(err, (enum bh_code)answer.code, "the governor: %s", answer.text);
        return false;
    }
    const bool is_new = !l->joined;
    if (is_new)
        l->hears_own = strcmp(answer.text, BH_GOVERN_HEARS_OWN) == 0;
    l->joined = true;
    bh_link_join_taken(&l->join);
    l->gate->stats->lease = answer.lease; /* the next warden comes back by it */
    if (is_new) {
        tell_launcher(l);
        tell(l);
    }
    return true;
}

static void hear_governor(struct bh_link *l, struct bh_err *err)
{
    union {
        struct bh_govern_answer answer;
        struct bh_govern_row row;
    } room;
    for (int i = 0; i < AT_ONCE && l->governor >= 0; i++) {
        const ssize_t n = recv(l->governor, &room, sizeof(room), MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        l->heard_ms = now_ms();
        if (n > 0 && (size_t)n <= sizeof(room) && hear(l, &room, (size_t)n, err))
            continue;
        if (n <= 0)
            (void)bh_fail(err, BH_BUSY,
                          "the governor died as it was joined, or is of another version; try again");
        lost(l);
    }
}

static void hear_launcher(struct bh_link *l)
{
    struct bh_lease_given given;
    int fds[BH_FDS_MAX];
    size_t n_fds;
    struct bh_err err;
    const ssize_t n = bh_fds_recv_some(l->launcher, &given, sizeof(given), fds, &n_fds, &err);
    if (n == BH_BUSY)
        return;
    if (n <= 0) { /* it is gone, and whoever it started is about to be */
        (void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->launcher, NULL);
        l->launcher = -1;
        set_timer(l);
        return;
    }
    l->asked = false;
    if (n == sizeof(given))
        bh_link_join_given(&l->join, given.version);
    if (n == sizeof(given) && given.code == 0 && n_fds == 1 && l->governor < 0) {
        meet(l, fds[0]);
        return;
    }
    for (size_t i = 0; i < n_fds; i++)
        close(fds[i]);
}

/* What it said while nobody listened here comes first. */
static void look_if_silent(struct bh_link *l)
{
    struct bh_err err;
    if (now_ms() - l->heard_ms <= BH_GOVERN_SILENT_MS)
        return;
    hear_governor(l, &err);
    if (l->governor < 0 || now_ms() - l->heard_ms <= BH_GOVERN_SILENT_MS)
        return;
    l->join.silences++;
    lost(l);
}

static void on_time(struct bh_link *l)
{
    uint64_t times;
    struct bh_groups_found found[BH_GROUPS_FOUND_MAX];
    if (read(l->timer, &times, sizeof(times)) != (ssize_t)sizeof(times))
        return;
    if (l->governor >= 0)
        look_if_silent(l);
    if (l->governor < 0 && (l->unresumed || now_ms() - l->resumed_ms >= RESUME_MS))
        resume_all(l);
    if (l->governor < 0)
        ask_launcher(l);
    else
        tell(l);
    tell_own(l);
    const size_t n = bh_groups_look(&l->groups, l->gate, now_ms(), found);
    for (size_t i = 0; i < n; i++)
        bh_link_tampered(l, found[i].gpu, found[i].slice_us);
    set_timer(l);
}

void bh_link_serve(struct bh_link *l)
{
    struct epoll_event ev[4];
    struct bh_err err;
    const int n = epoll_wait(l->epoll, ev, BH_COUNT_OF(ev), 0);
    l->begun = true;
    for (int i = 0; i < n; i++) {
        if (ev[i].data.ptr == &l->timer)
            on_time(l);
        else if (ev[i].data.ptr == &l->probe) {
            if (bh_link_probe_wake(&l->probe))
                set_timer(l);
        } else if (ev[i].data.ptr == &l->launcher)
            hear_launcher(l);
        else if (l->governor >= 0 && ev[i].events & ~(uint32_t)EPOLLOUT)
            hear_governor(l, &err);
        else if (l->governor >= 0) {
            l->full = false;
            watch_governor(l, false);
            tell(l);
        }
    }
}

/* ---- tenants ---- */

uint32_t bh_link_slice_wanted(struct bh_link *l, uint32_t client, uint32_t group, uint64_t slice_us)
{
    const uint32_t found = slice_us > UINT32_MAX ? UINT32_MAX : (uint32_t)slice_us;
    if (bh_groups_may_ask(&l->groups, client, group))
        return RM_OK;
    bh_link_tampered(l, bh_ledger_gpu_of(l->gate->ledger, client, group), found);
    return RM_INSUFFICIENT_PERMISSIONS;
}

void bh_link_scheduled(struct bh_link *l, uint32_t client, uint32_t group)
{
    bh_groups_are_young(&l->groups, client, group, now_ms());
    set_timer(l);
}

/* ---- beginning and end ---- */

int bh_link_fd(const struct bh_link *l)
{
    return l->epoll;
}

/* At the beginning nobody is served yet, so the answer can be waited for. */
static int await_first(struct bh_link *l, struct bh_err *err)
{
    const int64_t until = now_ms() + FIRST_MS;
    *err = (struct bh_err){0};
    while (!l->joined && l->governor >= 0) {
        struct pollfd at = {.fd = l->governor, .events = POLLIN};
        const int64_t left = until - now_ms();
        if (left <= 0)
            return bh_fail(err, BH_BUSY, BH_GOVERN_SILENT);
        if (poll(&at, 1, (int)left) > 0)
            hear_governor(l, err);
    }
    if (l->joined)
        return BH_OK;
    return err->code ? (int)err->code
                     : bh_fail(err, BH_BUSY,
                               "the governor died as it was joined, or is of another version; try again");
}

static int start(struct bh_link *l, const struct bh_link_config *config, struct bh_err *err)
{
    struct epoll_event on_timer = {.events = EPOLLIN, .data.ptr = &l->timer};
    struct epoll_event on_launcher = {.events = EPOLLIN, .data.ptr = &l->launcher};
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->epoll < 0 || l->timer < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->timer, &on_timer) < 0 ||
        (l->launcher >= 0 && epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->launcher, &on_launcher) < 0)) {
        if (config->governor >= 0)
            close(config->governor);
        return bh_fail(err, BH_SYSTEM, "waiting for the governor: %s", strerrordesc_np(errno));
    }
    listen_to_probe(l, EPOLL_CTL_ADD);
    l->groups.inherited = l->gate->config->adopted;
    bh_link_look(l);
    l->groups.inherited = false;
    if (l->gate->config->adopted)
        resume_all(l);
    if (config->governor >= 0)
        meet(l, config->governor);
    if (!l->gate->config->adopted)
        return await_first(l, err);
    set_timer(l);
    return BH_OK;
}

int bh_link_new(struct bh_gate *g, const struct bh_link_config *config, struct bh_link **ret,
                struct bh_err *err)
{
    struct bh_link *l = bh_alloc(1, sizeof(*l));
    *l = (struct bh_link){.gate = g,
                          .share = config->share,
                          .launcher = config->launcher,
                          .governor = -1,
                          .epoll = -1,
                          .timer = -1,
                          .pids_stale = true,
                          .seen = UINT64_MAX};
    bh_link_join_init(&l->join, config->version);
    bh_link_probe_init(&l->probe, config->probe);
    const int rc = start(l, config, err);
    if (rc < 0)
        bh_link_free(l);
    else
        *ret = l;
    return rc;
}

void bh_link_free(struct bh_link *l)
{
    if (!l)
        return;
    tell_tampered(l, true);
    hang_up(l);
    if (l->epoll >= 0)
        close(l->epoll);
    if (l->timer >= 0)
        close(l->timer);
    bh_vec_fini(&l->has);
    bh_vec_fini(&l->told);
    bh_vec_fini(&l->pids);
    bh_groups_fini(&l->groups);
    bh_link_probe_fini(&l->probe);
    free(l);
}
