/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - connections: who is at the other end, how many of them there may be, and how long they may take.
 *
 * libmicrohttpd's own timeout begins again with every byte; a caller that sends one byte in a while would hold a
 * connection for ever. So each has to bring its whole request, and take its whole answer, within a time.
 */
#include "api/server.h"

#include <stdio.h>
#include <sys/socket.h>

enum { SWEEP_MS = 500 };

void bh_conn_cut(struct bh_conn *c)
{
    c->cut = true;
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* Too many: said at once and without waiting for a request, so that nobody can hold the places of others. */
static void turn_away(struct bh_conn *c)
{
    static const char body[] = "{\"error\": {\"code\": \"busy\", \"message\": \"too many connections\"}}\n";
    char words[320];
    const int n = snprintf(words, sizeof(words),
                           "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                           "Connection: close\r\nRetry-After: 1\r\nContent-Length: %zu\r\n\r\n%s",
                           sizeof(body) - 1, body);
    if (c->peer.is_unix)
        (void)send(c->fd, words, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    bh_conn_cut(c);
}

static void came(struct bh_api *api, struct MHD_Connection *mhd, void **socket_context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct bh_conn *c = bh_alloc(1, sizeof(*c));
    struct bh_limit_caller *caller = NULL;
    c->fd = info->connect_fd;
    c->since_ms = bh_api_clock();
    *socket_context = c;
    c->next = api->conns;
    if (c->next)
        c->next->prev = c;
    api->conns = c;
    if (bh_peer_read(c->fd, &c->arena, &c->peer)) {
        if (c->peer.is_unix)
            (void)snprintf(c->key, sizeof(c->key), "uid:%u", c->peer.uid);
        else
            (void)snprintf(c->key, sizeof(c->key), "addr:%.50s", c->peer.from);
        caller = bh_limit_find(&api->limit, c->key, c->since_ms);
    }
    if (!caller || !bh_limit_connect(&api->limit, caller, c->peer.uid == 0)) {
        c->key[0] = '\0'; /* it is not counted */
        turn_away(c);
    }
}

static void went(struct bh_api *api, struct bh_conn *c)
{
    if (c->key[0])
        bh_limit_disconnect(&api->limit, c->key);
    if (c->prev)
        c->prev->next = c->next;
    else
        api->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    bh_arena_fini(&c->arena);
    free(c);
}

void bh_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        came(cls, mhd, socket_context);
    else if (*socket_context) {
        went(cls, *socket_context);
        *socket_context = NULL;
    }
}

static bool is_too_slow(const struct bh_api *api, const struct bh_conn *c, uint64_t now_ms)
{
    const struct bh_exchange *x = c->now;
    if (!x || x->state == BH_EX_READING)
        return now_ms - c->since_ms > api->limit.limits.idle_ms;
    if (x->state == BH_EX_ANSWERED || (x->state == BH_EX_STREAM && !x->suspended))
        return now_ms - x->moved_ms > api->limit.limits.answer_ms;
    return false; /* it waits for us */
}

uint64_t bh_conns_sweep(struct bh_api *api, uint64_t now_ms)
{
    if (!api->conns)
        return 0;
    if (now_ms - api->swept_ms >= SWEEP_MS) {
        api->swept_ms = now_ms;
        for (struct bh_conn *c = api->conns; c; c = c->next)
            if (!c->cut && is_too_slow(api, c, now_ms))
                bh_conn_cut(c);
    }
    return api->swept_ms + SWEEP_MS;
}
