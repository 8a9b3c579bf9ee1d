/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - one request and its answer, between libmicrohttpd's calls and dispatch.
 *
 * Who asks, how often, and how much he sends is looked at before the body is taken in.
 */
#include "api/console.h"
#include "api/server.h"

#include "base/str.h"
#include "base/units.h"

#include <stdio.h>

/* ---- answers ---- */

static void add_headers(struct bh_exchange *x, struct MHD_Response *r)
{
    const struct bh_api_req *q = &x->q;
    const bool failed = q->status >= 300;
    char text[24];
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  failed || !q->route ? "application/json"
                                  : q->type           ? q->type
                                  : q->route->type    ? q->route->type
                                                      : "application/json");
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (q->status == 401)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (q->status == 405)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, q->problem.needed);
    if (failed && q->problem.retry_s) {
        (void)snprintf(text, sizeof(text), "%u", q->problem.retry_s);
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, text);
    }
    if (q->has_offset) {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)q->next_offset);
        (void)MHD_add_response_header(r, "Bulkhead-Next-Offset", text);
        (void)MHD_add_response_header(r, "Bulkhead-Ended", q->ended ? "true" : "false");
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)q->dropped);
        if (q->dropped)
            (void)MHD_add_response_header(r, "Bulkhead-Dropped", text);
    }
    if (x->api->draining)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result answer(struct bh_exchange *x)
{
    struct bh_buf *out = &x->q.out;
    /* The buffer goes with the response. */
    struct MHD_Response *r = MHD_create_response_from_buffer(out->n, out->at, MHD_RESPMEM_MUST_FREE);
    if (!r)
        return MHD_NO;
    *out = (struct bh_buf){.max = out->max};
    add_headers(x, r);
    x->state = BH_EX_ANSWERED;
    x->moved_ms = bh_api_clock();
    if (x->q.status > 0 && x->q.status < BH_API_STATUSES)
        x->api->core.answers[x->q.status]++;
    const enum MHD_Result rc = MHD_queue_response(x->mhd, (unsigned)x->q.status, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result answer_file(struct bh_exchange *x)
{
    x->state = BH_EX_ANSWERED;
    x->moved_ms = bh_api_clock();
    return bh_console_answer(x->mhd, x->file) < 0 ? MHD_NO : MHD_YES;
}

static enum MHD_Result answer_problem(struct bh_exchange *x)
{
    bh_api_req_fail(&x->q);
    return answer(x);
}

/* ---- what came ---- */

static char hex_of(char c)
{
    c = bh_to_lower(c);
    return (char)(bh_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1);
}

/* %41 and, in a query, +. What is no escape, or stands for a NUL, becomes a byte that no path and no value has. */
size_t bh_exchange_unescape(void *cls, struct MHD_Connection *mhd, char *s)
{
    char *to = s;
    (void)cls;
    (void)mhd;
    for (const char *at = s; *at; at++) {
        if (*at != '%') {
            *to++ = *at;
            continue;
        }
        const char high = at[1] ? hex_of(at[1]) : (char)-1,
                   low = high >= 0 && at[2] ? hex_of(at[2]) : (char)-1;
        if (high < 0 || low < 0) {
            *to++ = '\x01';
            continue;
        }
        const char byte = (char)(high << 4 | low);
        *to++ = byte ? byte : '\x01';
        at += 2;
    }
    *to = '\0';
    return (size_t)(to - s);
}

static enum MHD_Result add_query(void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct bh_api_req *q = cls;
    (void)kind;
    *bh_vec_push(&q->query) = (struct bh_keyed){.key = bh_arena_str(&q->arena, key),
                                                .value = bh_arena_str(&q->arena, value ? value : "")};
    return q->query.n < 64
               ? MHD_YES
               : MHD_NO; /* more than there are fields: refused by the first that is given twice */
}

static const char *header(struct bh_exchange *x, const char *name)
{
    const char *value = MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, name);
    return value ? bh_arena_str(&x->q.arena, value) : NULL;
}

static struct bh_exchange *begin(struct bh_api *api, struct MHD_Connection *mhd, const char *url,
                                 const char *method)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct bh_conn *c = info ? info->socket_context : NULL;
    if (!c || c->cut)
        return NULL;
    struct bh_exchange *x = bh_alloc(1, sizeof(*x));
    x->api = api;
    x->mhd = mhd;
    x->conn = c;
    c->now = x;
    bh_api_req_init(&x->q);
    bh_buf_init(&x->body, BH_BODY_MAX);
    x->q.method = bh_arena_str(&x->q.arena, method);
    x->q.path = bh_arena_strn(&x->q.arena, url, strnlen(url, BH_PATH_MAX));
    x->file = bh_console_find(x->q.method, x->q.path);
    x->q.key = header(x, "Idempotency-Key");
    x->q.last_event = header(x, "Last-Event-ID");
    x->q.accept = header(x, MHD_HTTP_HEADER_ACCEPT);
    (void)MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, add_query, &x->q);
    return x;
}

/* ---- may it ---- */

static int too_often(struct bh_exchange *x, uint64_t wait_ms)
{
    x->q.problem.retry_s = (uint32_t)(wait_ms / 1000 + 1);
    bh_api_hint(&x->q.problem, NULL, NULL, "wait, or follow /v1/events instead of asking again and again");
    return bh_api_refuse(&x->q.problem, BH_LIMITED,
                         "too many requests of one caller; the next may come in %llu ms",
                         (unsigned long long)wait_ms);
}

static int take_one(struct bh_exchange *x, const char *key)
{
    const uint64_t now_ms = bh_api_clock();
    struct bh_limit_caller *c = bh_limit_find(&x->api->limit, key, now_ms);
    uint64_t wait_ms = 1000;
    return c && bh_limit_request(&x->api->limit, c, now_ms, &wait_ms) ? 0 : too_often(x, wait_ms);
}

/* A wrong token was shown. */
static int shown_in_vain(struct bh_exchange *x, int rc)
{
    struct bh_api *api = x->api;
    const uint64_t now_ms = bh_api_clock();
    struct bh_limit_caller *c = bh_limit_find(&api->limit, x->conn->key, now_ms);
    const bool locked = c && bh_limit_auth_failed(&api->limit, c, now_ms);
    api->core.ops->auth_failed(api->core.ops->self, x->conn->peer.from, locked,
                               locked ? "too many wrong tokens: locked out" : x->q.problem.err.msg);
    return rc;
}

static int locked_out(struct bh_exchange *x)
{
    x->q.problem.retry_s = x->api->limit.limits.lockout_ms / 1000 + 1;
    return bh_api_refuse(&x->q.problem, BH_LIMITED,
                         "too many wrong tokens came from '%s'; it is locked out for a while",
                         x->conn->peer.from);
}

static int know_caller(struct bh_exchange *x)
{
    struct bh_api *api = x->api;
    const char *authorization = header(x, MHD_HTTP_HEADER_AUTHORIZATION);
    const struct bh_limit_caller *c = bh_limit_find(&api->limit, x->conn->key, bh_api_clock());
    char key[BH_LIMIT_KEY];
    int rc;
    if (authorization && (!c || bh_limit_is_locked(c, bh_api_clock())))
        return locked_out(x);
    if (authorization && !bh_str_starts(authorization, "Bearer "))
        return bh_api_refuse(&x->q.problem, BH_UNKNOWN_CALLER,
                             "the header Authorization has no Bearer token");
    if (!authorization && (rc = take_one(x, x->conn->key)) < 0)
        return rc;
    rc = bh_auth_caller(&x->conn->peer, authorization ? authorization + 7 : NULL, api->core.view->policy,
                        api->core.store, api->core.view->wall_ms, &x->q.arena, &x->q.caller, &x->q.problem);
    if (rc < 0)
        return authorization ? shown_in_vain(x, rc) : rc;
    if (api->core.ops->came_in)
        api->core.ops->came_in(api->core.ops->self, &x->q.caller);
    /* Whichever of his tokens he shows, and whether he shows one at all, it is he who asks. */
    (void)snprintf(key, sizeof(key), "who:%.58s", x->q.caller.principal);
    return take_one(x, key);
}

static bool same_grants(const struct bh_api_caller *a, const struct bh_api_caller *b)
{
    if (a->n_grants != b->n_grants)
        return false;
    for (size_t i = 0; i < a->n_grants; i++)
        if (a->grants[i].role != b->grants[i].role || !a->grants[i].tenant != !b->grants[i].tenant ||
            (a->grants[i].tenant && !bh_str_eq(a->grants[i].tenant, b->grants[i].tenant)))
            return false;
    return true;
}

int bh_exchange_know_again(struct bh_exchange *x)
{
    const struct bh_api_core *core = &x->api->core;
    const char *authorization = header(x, MHD_HTTP_HEADER_AUTHORIZATION);
    struct bh_api_caller now;
    const int rc =
        bh_auth_caller(&x->conn->peer, authorization ? authorization + 7 : NULL, core->view->policy,
                       core->store, core->view->wall_ms, &x->q.arena, &now, &x->q.problem);
    if (rc < 0 || same_grants(&x->q.caller, &now))
        return rc;
    if (now.unsure) {
        x->q.problem.retry_s = 1;
        return bh_api_refuse(&x->q.problem, BH_BUSY, "whose token this is cannot be looked up at the moment");
    }
    return bh_api_refuse(&x->q.problem, BH_DENIED,
                         "your roles were changed while this was worked out; ask again");
}

static int check_size(struct bh_exchange *x)
{
    const char *text = MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t n = 0;
    if (text && bh_uint_parse(text, BH_BODY_MAX, &n, NULL) < 0)
        x->too_large = true;
    if (x->too_large)
        return bh_api_refuse(&x->q.problem, BH_TOO_LARGE, "the body is larger than %d bytes", BH_BODY_MAX);
    if (n && x->conn->peer.uid != 0 && x->api->body_bytes + n > BH_BODIES_MAX)
        return bh_api_refuse(&x->q.problem, BH_BUSY, "too much is being sent at this moment");
    x->counted = (size_t)n;
    x->api->body_bytes += (size_t)n;
    return 0;
}

static bool has_body(const struct bh_exchange *x)
{
    const char *n = MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (n && !bh_str_eq(n, "0")) ||
           MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

/* The headers are there, the body is not. */
static int admit(struct bh_exchange *x)
{
    if (x->file)
        return take_one(x, x->conn->key);
    const struct bh_api_route *route = bh_api_route_find(x->q.method, x->q.path, &x->q);
    int rc = route && !route->roles ? take_one(x, x->conn->key) : know_caller(x);
    x->q.route = route;
    if (rc == 0 &&
        !route) /* said only to who is known; the search filled the problem, and knowing him may have not */
        rc = bh_api_route_find(x->q.method, x->q.path, &x->q) ? 0 : x->q.problem.err.code;
    return rc < 0 ? rc : check_size(x);
}

/* ---- the body, and on ---- */

static enum MHD_Result take_data(struct bh_exchange *x, const char *data, size_t *n_data)
{
    /* A body without a length: what is too much is let go by, within reason, so that the answer is read. */
    if (x->body.n + *n_data > BH_BODY_MAX)
        x->too_large = true;
    if (x->body.n + *n_data > (size_t)2 * BH_BODY_MAX)
        return MHD_NO;
    if (x->too_large)
        x->body.n += *n_data;
    else
        bh_buf_add(&x->body, data, *n_data);
    if (x->body.n > x->counted) {
        x->api->body_bytes += x->body.n - x->counted;
        x->counted = x->body.n;
    }
    *n_data = 0;
    return x->api->body_bytes > BH_BODIES_MAX && x->conn->peer.uid != 0 ? MHD_NO : MHD_YES;
}

static enum MHD_Result start_stream(struct bh_exchange *x)
{
    struct bh_limit_caller *c = bh_limit_find(&x->api->limit, x->conn->key, bh_api_clock());
    if (!c || !bh_limit_stream(&x->api->limit, c)) {
        bh_streams_reap(
            x->api); /* a page that was loaded anew left one: there is room for whoever asks again */
        x->q.problem.retry_s = 5;
        (void)bh_api_refuse(&x->q.problem, BH_LIMITED, "too many streams of events are open");
        return answer_problem(x);
    }
    (void)snprintf(x->stream_key, sizeof(x->stream_key), "%s", c->key);
    return bh_stream_start(x);
}

static enum MHD_Result dispatch(struct bh_exchange *x)
{
    if (x->failed)
        return answer_problem(x);
    if (x->file)
        return answer_file(x);
    if (x->too_large) {
        (void)bh_api_refuse(&x->q.problem, BH_TOO_LARGE, "the body is larger than %d bytes", BH_BODY_MAX);
        return answer_problem(x);
    }
    x->q.body = bh_buf_text(&x->body);
    x->q.n_body = x->body.n;
    if (bh_api_dispatch(&x->api->core, &x->q) == BH_API_LATER) {
        bh_wait_add(x, BH_EX_LATER);
        return MHD_YES;
    }
    if (x->q.follow == BH_FOLLOW_EVENTS)
        return start_stream(x);
    if (x->q.follow == BH_FOLLOW_LOG && !x->api->draining) {
        x->until_ms = bh_api_clock() + x->q.wait_ms;
        bh_wait_add(x, BH_EX_LOG);
        return MHD_YES;
    }
    return answer(x);
}

enum MHD_Result bh_exchange_access(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                   const char *version, const char *data, size_t *n_data, void **con_cls)
{
    struct bh_exchange *x = *con_cls;
    (void)version;
    if (!x) {
        *con_cls = x = begin(cls, mhd, url, method);
        if (!x)
            return MHD_NO;
        x->failed = admit(x) < 0;
        /* An answer before a body closes the connection; where none follows, there is no need for that. */
        return x->failed && has_body(x) ? answer_problem(x) : MHD_YES;
    }
    if (x->state == BH_EX_READY)
        return answer(x);
    if (x->state != BH_EX_READING)
        return MHD_YES;
    return *n_data ? take_data(x, data, n_data) : dispatch(x);
}

void bh_exchange_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                           enum MHD_RequestTerminationCode why)
{
    struct bh_exchange *x = *con_cls;
    (void)cls;
    (void)mhd;
    (void)why;
    if (!x)
        return;
    *con_cls = NULL;
    bh_wait_remove(x);
    x->api->body_bytes -= x->counted;
    if (x->stream_key[0])
        bh_limit_stream_end(&x->api->limit, x->stream_key);
    x->conn->now = NULL;
    x->conn->since_ms = bh_api_clock();
    bh_buf_fini(&x->piece);
    bh_buf_fini(&x->body);
    bh_api_req_fini(&x->q);
    free(x);
}
