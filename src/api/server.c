/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - libmicrohttpd without threads, below one epoll descriptor of the daemon's loop.
 *
 * What must happen at a time (libmicrohttpd's timeouts, followed logs, signs of life, slow callers) is in one timer; where
 * nobody is connected it is off.
 */
#include "api/server.h"
#include "api/handle.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    POOL_BYTES = 32 * 1024, /* of a connection: its headers must fit, and what is being sent */
    SLACK = 64,             /* connections that are there to be told that they are too many */
};

uint64_t bh_api_clock(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int watch(struct bh_api *api, int fd, struct bh_err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(api->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
        return bh_fail(err, BH_SYSTEM, "epoll_ctl: %s", strerror(errno));
    return 0;
}

static void arm(struct bh_api *api, uint64_t in_ms)
{
    /* A time of 0 would turn it off. */
    const struct itimerspec t = {.it_value = {.tv_sec = (time_t)(in_ms / 1000),
                                              .tv_nsec = (long)(in_ms % 1000) * 1000000 + (in_ms == 0)}};
    (void)timerfd_settime(api->timer_fd, 0, in_ms == UINT64_MAX ? &(struct itimerspec){0} : &t, NULL);
}

static int start_one(struct bh_api *api, const struct bh_api_config *c, bool tls, struct bh_err *err)
{
    const struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)c->cert_pem},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)c->key_pem},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    const unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | (tls ? (unsigned)MHD_USE_TLS : 0);
    struct MHD_Daemon *d = MHD_start_daemon(
        flags, 0, NULL, NULL, bh_exchange_access, api, MHD_OPTION_LISTEN_SOCKET, tls ? c->tcp_fd : c->unix_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)c->limits.connections + SLACK,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES, MHD_OPTION_NOTIFY_CONNECTION, bh_conn_notify,
        api, MHD_OPTION_NOTIFY_COMPLETED, bh_exchange_completed, api, MHD_OPTION_UNESCAPE_CALLBACK,
        bh_exchange_unescape, api, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_TIMEOUT,
        c->limits.answer_ms / 1000 + 1, MHD_OPTION_ARRAY, tls ? secure : plain, MHD_OPTION_END);
    if (!d)
        return bh_fail(err, BH_SYSTEM,
                       tls ? "the HTTPS side of the API cannot be started; are certificate and key right?"
                           : "the unix side of the API cannot be started");
    api->daemon[tls] = d;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || info->epoll_fd < 0)
        return bh_fail(err, BH_SYSTEM, "libmicrohttpd has no epoll descriptor");
    return watch(api, info->epoll_fd, err);
}

int bh_api_start(const struct bh_api_config *c, struct bh_api **ret, struct bh_err *err)
{
    struct bh_api *api = bh_alloc(1, sizeof(*api));
    int rc = 0;
    api->core =
        (struct bh_api_core){.store = c->store, .ops = c->ops, .view = c->view, .log_dir = c->log_dir};
    bh_limit_init(&api->limit, &c->limits);
    api->core.limit = &api->limit;
    bh_events_init(&api->events, c->limits.events, c->view->started_ms);
    api->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    api->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (api->epoll_fd < 0 || api->timer_fd < 0)
        rc = bh_fail(err, BH_SYSTEM, "epoll or timer: %s", strerror(errno));
    else
        rc = watch(api, api->timer_fd, err);
    if (rc == 0 && c->unix_fd >= 0)
        rc = start_one(api, c, false, err);
    if (rc == 0 && c->tcp_fd >= 0)
        rc = start_one(api, c, true, err);
    if (rc < 0) {
        bh_api_free(api);
        return rc;
    }
    *ret = api;
    return 0;
}

void bh_api_free(struct bh_api *api)
{
    if (!api)
        return;
    /* libmicrohttpd does not stop while something is suspended. */
    api->draining = true;
    while (api->waiting) {
        struct bh_exchange *x = api->waiting;
        const bool suspended = x->suspended;
        bh_wait_remove(x);
        x->suspended = false;
        if (suspended)
            MHD_resume_connection(x->mhd);
    }
    for (size_t i = 0; i < BH_COUNT_OF(api->daemon); i++)
        if (api->daemon[i])
            MHD_stop_daemon(api->daemon[i]);
    if (api->timer_fd >= 0)
        (void)close(api->timer_fd);
    if (api->epoll_fd >= 0)
        (void)close(api->epoll_fd);
    bh_events_fini(&api->events);
    bh_api_forget_recent(&api->core.recent);
    bh_store_tally_fini(&api->core.tally);
    free(api);
}

int bh_api_fd(const struct bh_api *api)
{
    return api->epoll_fd;
}

/* When libmicrohttpd wants to be called again. */
static uint64_t library_timeout(struct bh_api *api)
{
    uint64_t soonest = UINT64_MAX;
    for (size_t i = 0; i < BH_COUNT_OF(api->daemon); i++) {
        MHD_UNSIGNED_LONG_LONG ms;
        if (api->daemon[i] && MHD_get_timeout(api->daemon[i], &ms) == MHD_YES && ms < soonest)
            soonest = ms;
    }
    return soonest;
}

void bh_api_run(struct bh_api *api)
{
    uint64_t expired, now_ms = bh_api_clock();
    (void)!read(api->timer_fd, &expired, sizeof(expired));
    (void)bh_waits_wake(api, now_ms);
    for (size_t i = 0; i < BH_COUNT_OF(api->daemon); i++)
        if (api->daemon[i])
            (void)MHD_run(api->daemon[i]);
    now_ms = bh_api_clock();
    /* Handlers may have changed something: who waits for it is woken before the library is asked when it wants to go on. */
    const uint64_t at[] = {bh_waits_wake(api, now_ms), bh_conns_sweep(api, now_ms)};
    uint64_t in_ms = library_timeout(api);
    for (size_t i = 0; i < BH_COUNT_OF(at); i++) {
        const uint64_t left = at[i] > now_ms ? at[i] - now_ms : 0;
        if (at[i] && left < in_ms)
            in_ms = left;
    }
    arm(api, in_ms);
}

static struct bh_exchange *of_ticket(const struct bh_api *api, uint64_t ticket)
{
    struct bh_exchange *x = api->waiting;
    while (x && (x->state != BH_EX_LATER || x->q.ticket != ticket))
        x = x->next;
    return x;
}

void bh_api_answer(struct bh_api *api, uint64_t ticket, int rc, uint64_t id, const struct bh_err *err)
{
    struct bh_exchange *x = of_ticket(api, ticket);
    if (!x)
        return;
    bh_api_req_answer(&x->q, rc, id, err);
    bh_wait_ready(x);
    arm(api, 0);
}

void bh_api_answer_why(struct bh_api *api, uint64_t ticket, int rc, const struct bh_api_why *why,
                       const struct bh_err *err)
{
    struct bh_exchange *x = of_ticket(api, ticket);
    if (!x)
        return;
    if (bh_h_why_show(&x->q, rc, why, err) < 0 || bh_exchange_know_again(x) < 0)
        bh_api_req_fail(&x->q);
    bh_wait_ready(x);
    arm(api, 0);
}

void bh_api_answer_bill(struct bh_api *api, uint64_t ticket, int rc, struct bh_store_bill *bill,
                        uint64_t took_ms, const struct bh_err *err)
{
    struct bh_exchange *x = of_ticket(api, ticket);
    if (!x)
        return;
    if (bh_h_usage_show(&api->core, &x->q, rc, bill, took_ms, err) < 0 || bh_exchange_know_again(x) < 0)
        bh_api_req_fail(&x->q);
    bh_wait_ready(x);
    arm(api, 0);
}

void bh_api_changed(struct bh_api *api, enum bh_api_kind kind, uint64_t id, const char *tenant,
                    const char *state)
{
    if (!api)
        return;
    bh_events_add(&api->events, kind, id, tenant, state);
    api->changed = true;
    for (struct bh_exchange *x = api->waiting; kind == BH_API_KIND_JOB && x; x = x->next) {
        uint64_t job;
        x->touched |= x->state == BH_EX_LOG && bh_api_id_parse(x->q.param, 'J', &job) && job == id;
    }
    api->end_streams |= kind == BH_API_KIND_POLICY;
    if (api->waiting)
        arm(api, 0);
}

bool bh_api_drain(struct bh_api *api)
{
    if (!api->draining) {
        api->draining = true;
        for (size_t i = 0; i < BH_COUNT_OF(api->daemon); i++) {
            const int fd = api->daemon[i] ? MHD_quiesce_daemon(api->daemon[i]) : -1;
            if (fd >= 0)
                (void)close(fd);
        }
    }
    for (struct bh_conn *c = api->conns; c; c = c->next)
        if (!c->now && !c->cut)
            bh_conn_cut(c);
    arm(api, 0);
    return !api->conns;
}
