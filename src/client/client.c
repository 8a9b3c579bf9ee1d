/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - questions to the daemon over its unix socket.
 *
 * A connection is kept between questions. The daemon may have closed it meanwhile (it was idle, or the daemon is another):
 * then a question that nothing was received of is asked once more, on a new one, unless asking twice could do
 * something twice. A daemon that has had too many questions of one caller says when it takes the next: a short while is
 * waited here, so that a list of many pages comes whole.
 */
#include "client/client.h"

#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "client/http.h"
#include "client/sse.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD_MAX = 8192, PATIENCE_S = 2 };

bool bh_client_path(char ret[108])
{
    const char *dir = secure_getenv("BULKHEAD_RUN_DIR");
    const int n = snprintf(ret, 108, "%s/api.sock", dir && *dir ? dir : "/run/bulkhead");
    return n > 0 && n < 108;
}

int bh_client_init_at(struct bh_client *c, const char *socket_path, struct bh_err *err)
{
    *c = (struct bh_client){.fd = -1};
    if (strlen(socket_path) >= sizeof(c->path))
        return bh_fail(err, BH_INVALID, "the path of the daemon's socket is too long: '%.200s'", socket_path);
    (void)snprintf(c->path, sizeof(c->path), "%s", socket_path);
    return 0;
}

int bh_client_init(struct bh_client *c, struct bh_err *err)
{
    char path[108];
    if (!bh_client_path(path))
        return bh_fail(err, BH_INVALID, "BULKHEAD_RUN_DIR is too long for a socket's path");
    return bh_client_init_at(c, path, err);
}

void bh_client_fini(struct bh_client *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
    c->in_at = c->in_n = 0;
}

void bh_client_reply_init(struct bh_client_reply *r)
{
    *r = (struct bh_client_reply){.next_offset = UINT64_MAX};
    bh_buf_init(&r->body, BH_CLIENT_BODY_MAX);
}

void bh_client_reply_fini(struct bh_client_reply *r)
{
    bh_buf_fini(&r->body);
}

/* ---- bytes ---- */

static int dial(struct bh_client *c, struct bh_err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (c->fd >= 0)
        return 0;
    memcpy(a.sun_path, c->path, sizeof(a.sun_path));
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return bh_fail(err, BH_SYSTEM, "no socket: %s", strerror(errno));
    if (connect(c->fd, (const struct sockaddr *)&a, sizeof(a)) == 0)
        return 0;
    const int e = errno;
    bh_client_fini(c);
    if (e == EACCES || e == EPERM)
        return bh_fail(err, BH_DENIED, "the daemon's socket '%s' may not be used by this user", c->path);
    return bh_fail(err, BH_NOT_FOUND, "no daemon answers at '%s': %s; is bulkheadd running?", c->path,
                   strerror(e));
}

static int wait_for(struct bh_client *c, short events, struct bh_err *err)
{
    struct pollfd p = {.fd = c->fd, .events = events};
    int n;
    do
        n = poll(&p, 1, c->timeout_ms > 0 ? c->timeout_ms : -1);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return bh_fail(err, BH_BUSY, "the daemon did not answer for %d ms", c->timeout_ms);
    return n < 0 ? bh_fail(err, BH_SYSTEM, "poll: %s", strerror(errno)) : 0;
}

/* BH_NOT_FOUND: the other side is gone. */
static int send_all(struct bh_client *c, const char *data, size_t n, struct bh_err *err)
{
    while (n) {
        int rc = wait_for(c, POLLOUT, err);
        if (rc < 0)
            return rc;
        const ssize_t k = send(c->fd, data, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return bh_fail(err, BH_NOT_FOUND, "the daemon hung up: %s", strerror(errno));
        data += k;
        n -= (size_t)k;
    }
    return 0;
}

/* What was received and is not used yet; more if there is nothing. c->in_n 0: the other side closed. */
static int receive(struct bh_client *c, struct bh_err *err)
{
    if (c->in_at < c->in_n)
        return 0;
    c->in_at = c->in_n = 0;
    for (;;) {
        const int rc = wait_for(c, POLLIN, err);
        if (rc < 0)
            return rc;
        const ssize_t k = recv(c->fd, c->in, sizeof(c->in), 0);
        if (k >= 0) {
            c->in_n = (uint32_t)k;
            return 0;
        }
        if (errno == ECONNRESET)
            return 0;
        if (errno != EINTR)
            return bh_fail(err, BH_SYSTEM, "the daemon's answer cannot be read: %s", strerror(errno));
    }
}

/* ---- one question ---- */

static int write_head(const struct bh_client_ask *a, bool stream, const char *last_id, char head[HEAD_MAX],
                      struct bh_err *err)
{
    struct bh_buf b;
    bh_buf_init(&b, HEAD_MAX - 1);
    bh_buf_printf(&b, "%s %s HTTP/1.1\r\nHost: bulkhead\r\nAccept: %s\r\n", a->method, a->path,
                  stream ? "text/event-stream" : "*/*");
    if (a->body)
        bh_buf_printf(&b, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                      a->type ? a->type : "application/json", a->n);
    if (a->key)
        bh_buf_printf(&b, "Idempotency-Key: %s\r\n", a->key);
    if (last_id)
        bh_buf_printf(&b, "Last-Event-ID: %s\r\n", last_id);
    bh_buf_str(&b, "\r\n");
    const bool full = b.full;
    if (!full)
        memcpy(head, b.at, b.n + 1);
    bh_buf_fini(&b);
    return full ? bh_fail(err, BH_TOO_LARGE, "the question is too long") : 0;
}

static int send_question(struct bh_client *c, const char *head, const struct bh_client_ask *a,
                         struct bh_err *err)
{
    int rc = dial(c, err);
    if (rc == 0)
        rc = send_all(c, head, strlen(head), err);
    if (rc == 0 && a->body && a->n)
        rc = send_all(c, a->body, a->n, err);
    return rc;
}

/* Feeds the parser until the answer is over. *ret_any: something of it came. */
static int read_answer(struct bh_client *c, struct bh_http *h, bh_http_body_fn fn, void *ctx, bool *ret_any,
                       struct bh_err *err)
{
    *ret_any = false;
    while (h->part != BH_HTTP_DONE) {
        size_t used;
        int rc = receive(c, err);
        if (rc < 0)
            return rc;
        if (c->in_n == 0) {
            rc = bh_http_end(h, err);
            bh_client_fini(c);
            return rc < 0 && !*ret_any ? bh_fail(err, BH_NOT_FOUND, "the daemon hung up") : rc;
        }
        *ret_any = true;
        rc = bh_http_feed(h, c->in + c->in_at, c->in_n - c->in_at, &used, fn, ctx, err);
        c->in_at += (uint32_t)used;
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int into_buf(void *ctx, const char *data, size_t n, struct bh_err *err)
{
    struct bh_buf *b = ctx;
    bh_buf_add(b, data, n);
    return b->full ? bh_fail(err, BH_TOO_LARGE, "the daemon's answer is larger than %zu bytes", b->max) : 0;
}

/* Asking again does nothing twice. */
static bool may_repeat(const struct bh_client_ask *a)
{
    return bh_str_eq(a->method, "GET") || a->key;
}

static int converse(struct bh_client *c, const char *head, const struct bh_client_ask *a, struct bh_http *h,
                    bh_http_body_fn fn, void *ctx, struct bh_err *err)
{
    for (bool again = c->fd >= 0 && may_repeat(a);; again = false) {
        bool any = false;
        bh_http_init(h);
        int rc = send_question(c, head, a, err);
        /* Where sending failed the daemon may have answered already: too large, too many. */
        if (rc == 0 || (rc == BH_NOT_FOUND && c->fd >= 0)) {
            const int read_rc = read_answer(c, h, fn, ctx, &any, err);
            rc = any || rc == 0 ? read_rc : rc;
        }
        if (rc != 0 || h->close)
            bh_client_fini(c);
        if (rc != BH_NOT_FOUND || any || !again)
            return rc;
    }
}

/* ---- failures that the daemon stated ---- */

static enum bh_code code_of(const char *word)
{
#define BH_ERR(code, str, http, exit_) \
    if (bh_str_eq(word, str))          \
        return BH_##code;
#include "base/errors.def"
#undef BH_ERR
    return BH_SYSTEM;
}

static bool read_error(const struct bh_buf *body, struct bh_err *err)
{
    char key[16], code[32] = "", message[400] = "", next[240] = "";
    struct bh_json_reader r;
    bh_json_read_init(&r, bh_buf_text(body), body->n);
    if (!bh_json_read_open(&r, '{') || !bh_json_read_member(&r, key, sizeof(key)) ||
        !bh_str_eq(key, "error") || !bh_json_read_open(&r, '{'))
        return false;
    while (bh_json_read_member(&r, key, sizeof(key))) {
        if (bh_str_eq(key, "code"))
            (void)bh_json_read_str(&r, code, sizeof(code));
        else if (bh_str_eq(key, "message"))
            (void)bh_json_read_str(&r, message, sizeof(message));
        else if (bh_str_eq(key, "next"))
            (void)bh_json_read_str(&r, next, sizeof(next));
        else
            (void)bh_json_read_skip(&r);
    }
    if (!message[0])
        return false;
    (void)bh_fail(err, code_of(code), "%s%s%.*s", message, next[0] ? "; " : "", 70, next);
    return true;
}

static int stated(const struct bh_http *h, const struct bh_buf *body, struct bh_err *err)
{
    struct bh_err told;
    if (!read_error(body, &told)) /* libmicrohttpd's own answers to what is not HTTP have no words of ours */
        return bh_fail(err, h->status == 503 ? BH_BUSY : BH_SYSTEM, "the daemon answered %d", h->status);
    if (err)
        *err = told;
    return told.code;
}

/* Nothing was done, and it is worth the wait: of what patience there is left. */
static bool is_for_later(const struct bh_http *h, uint64_t left_s)
{
    return h->status == 429 && h->retry_s > 0 && h->retry_s <= left_s;
}

int bh_client_ask(struct bh_client *c, const struct bh_client_ask *ask, struct bh_client_reply *ret,
                  struct bh_err *err)
{
    char head[HEAD_MAX];
    struct bh_http h;
    int rc = write_head(ask, false, NULL, head, err);
    if (rc < 0)
        return rc;
    for (uint64_t left_s = PATIENCE_S;; left_s -= h.retry_s) {
        ret->body.n = 0;
        ret->body.full = false;
        ret->status = 0;
        rc = converse(c, head, ask, &h, into_buf, &ret->body, err);
        if (rc < 0 || !is_for_later(&h, left_s))
            break;
        (void)poll(NULL, 0, (int)h.retry_s * 1000);
    }
    if (rc < 0)
        return rc;
    ret->status = h.status;
    ret->next_offset = h.next_offset;
    ret->ended = h.ended;
    ret->dropped = h.dropped;
    memcpy(ret->type, h.type, sizeof(ret->type));
    return h.status >= 200 && h.status < 300 ? 0 : stated(&h, &ret->body, err);
}

int bh_client_get(struct bh_client *c, const char *path, struct bh_client_reply *ret, struct bh_err *err)
{
    return bh_client_ask(c, &(struct bh_client_ask){.method = "GET", .path = path}, ret, err);
}

int bh_client_post(struct bh_client *c, const char *path, const char *json, struct bh_client_reply *ret,
                   struct bh_err *err)
{
    return bh_client_ask(
        c,
        &(struct bh_client_ask){.method = "POST", .path = path, .body = json, .n = json ? strlen(json) : 0},
        ret, err);
}

/* ---- events ---- */

struct following {
    struct bh_sse sse;
    struct bh_buf refusal; /* the answer was no stream */
    const struct bh_http *h;
    bh_client_event_fn fn;
    void *ctx;
};

static int follow(void *ctx, const char *data, size_t n, struct bh_err *err)
{
    struct following *f = ctx;
    if (f->h->status != 200)
        return into_buf(&f->refusal, data, n, err);
    return bh_sse_feed(&f->sse, data, n, f->fn, f->ctx) ? 0 : 1; /* 1: enough */
}

int bh_client_events(struct bh_client *c, const char *last_id, bh_client_event_fn fn, void *ctx,
                     struct bh_err *err)
{
    const struct bh_client_ask ask = {.method = "GET", .path = "/v1/events"};
    struct following *f = bh_alloc(1, sizeof(*f));
    char head[HEAD_MAX];
    struct bh_http h;
    *f = (struct following){.h = &h, .fn = fn, .ctx = ctx};
    bh_buf_init(&f->refusal, BH_CLIENT_LINE_MAX);
    int rc = write_head(&ask, true, last_id, head, err);
    if (rc == 0)
        rc = converse(c, head, &ask, &h, follow, f, err);
    if (rc == 0 && h.status != 200)
        rc = stated(&h, &f->refusal, err);
    else if (rc == 0)
        rc = bh_fail(err, BH_NOT_FOUND, "the daemon ended the events");
    bh_client_fini(c); /* what is left of the stream is nobody's */
    bh_buf_fini(&f->refusal);
    free(f);
    return rc == 1 ? 0 : rc;
}
