/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - answers that are not there yet, and those that never end: commands that are committed later, logs that have
 * to grow, events. All are suspended in libmicrohttpd while they have nothing to do, and resumed in the turn of the loop in
 * which they have.
 */
#include "api/handle.h"
#include "api/server.h"

#include <poll.h>

enum {
    LOOK_MS = 100,            /* at the sizes of logs that somebody follows */
    GONE_MS = 1000,           /* whether those are still there for whom something is worked out */
    BEAT_MS = 15000,          /* a sign of life, by which a reader who is gone is noticed */
    TOKEN_STREAM_MS = 300000, /* after which a token is looked at again: the reader comes back by itself */
    PIECE_MAX = 1 << 16,
};

void bh_wait_add(struct bh_exchange *x, enum bh_exchange_state state)
{
    x->state = state;
    x->listed = true;
    x->prev = NULL;
    x->next = x->api->waiting;
    if (x->next)
        x->next->prev = x;
    x->api->waiting = x;
    if (state == BH_EX_STREAM)
        return;
    x->suspended = true;
    MHD_suspend_connection(x->mhd);
}

void bh_wait_remove(struct bh_exchange *x)
{
    if (!x->listed)
        return;
    x->listed = false;
    if (x->prev)
        x->prev->next = x->next;
    else
        x->api->waiting = x->next;
    if (x->next)
        x->next->prev = x->prev;
}

static void resume(struct bh_exchange *x)
{
    if (!x->suspended)
        return;
    x->suspended = false;
    x->moved_ms = bh_api_clock();
    MHD_resume_connection(x->mhd);
}

void bh_wait_ready(struct bh_exchange *x)
{
    bh_wait_remove(x);
    x->state = BH_EX_READY;
    resume(x);
}

/* ---- logs ---- */

static bool has_grown(const struct bh_exchange *x)
{
    return x->q.log_folder && bh_stream_has_moved(x->q.log_folder, x->q.log_name, &x->q.log_mark);
}

/* The same question again; true: it has an answer now. */
static bool log_again(struct bh_exchange *x)
{
    x->q.out.n = 0;
    x->q.has_offset = false;
    return bh_api_dispatch(&x->api->core, &x->q) == 0 && x->q.follow == BH_FOLLOW_NOTHING;
}

static void wake_log(struct bh_exchange *x, uint64_t now_ms, bool look)
{
    struct bh_api *api = x->api;
    const bool over = now_ms >= x->until_ms || api->draining;
    if (over || ((x->touched || (look && has_grown(x))) && log_again(x)))
        bh_wait_ready(x);
    x->touched = false;
}

/* ---- streams ---- */

static bool fill(struct bh_exchange *x, uint64_t now_ms)
{
    x->piece.n = x->piece_at = 0;
    if (bh_cursor_read(&x->api->events, &x->cursor, &x->q.caller, &x->piece, PIECE_MAX))
        return true;
    if (now_ms - x->moved_ms >= BEAT_MS)
        bh_buf_str(&x->piece, ":\n\n");
    return x->piece.n > 0;
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct bh_exchange *x = cls;
    const uint64_t now_ms = bh_api_clock();
    (void)pos;
    if (x->piece_at == x->piece.n) {
        /* Who is so slow that the ring went past him comes back and is told to begin anew. */
        if (x->api->draining || (x->until_ms && now_ms >= x->until_ms) ||
            bh_cursor_is_lost(&x->api->events, &x->cursor))
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (!fill(x, now_ms)) {
            x->suspended = true;
            MHD_suspend_connection(x->mhd);
            return 0;
        }
    }
    const size_t left = x->piece.n - x->piece_at, n = left < max ? left : max;
    memcpy(buf, x->piece.at + x->piece_at, n);
    x->piece_at += n;
    x->moved_ms = now_ms;
    return (ssize_t)n;
}

enum MHD_Result bh_stream_start(struct bh_exchange *x)
{
    const uint64_t now_ms = bh_api_clock();
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, x, NULL);
    if (!r)
        return MHD_NO;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    bh_buf_init(&x->piece, PIECE_MAX * 2);
    bh_buf_str(&x->piece, ":\n\n"); /* so that the reader knows at once that it is listened to */
    x->cursor = bh_cursor_at(&x->api->events, x->q.last_event);
    x->until_ms = x->q.caller.token ? now_ms + TOKEN_STREAM_MS : 0;
    x->moved_ms = now_ms;
    bh_wait_add(x, BH_EX_STREAM);
    const enum MHD_Result rc = MHD_queue_response(x->mhd, 200, r);
    MHD_destroy_response(r);
    return rc;
}

static void wake_stream(struct bh_exchange *x, uint64_t now_ms)
{
    if (x->api->end_streams)
        x->until_ms = now_ms;
    if (x->api->changed || x->api->draining || now_ms - x->moved_ms >= BEAT_MS ||
        (x->until_ms && now_ms >= x->until_ms))
        resume(x);
}

/* libmicrohttpd does not look at what is suspended. */
static bool is_gone(const struct bh_exchange *x)
{
    struct pollfd p = {.fd = x->conn->fd, .events = POLLRDHUP};
    return x->suspended && poll(&p, 1, 0) > 0;
}

/* Who closed his end while nothing was to be said is not noticed until the next sign of life, and counts until then. */
void bh_streams_reap(struct bh_api *api)
{
    for (struct bh_exchange *x = api->waiting; x; x = x->next) {
        if (x->state == BH_EX_STREAM && is_gone(x)) {
            x->until_ms = 1;
            resume(x);
        }
    }
}

/* ---- bills ---- */

/* Nobody is to be kept busy for somebody who does not wait any more. */
static void end_bill(struct bh_exchange *x, uint64_t now_ms)
{
    const bool look = now_ms - x->moved_ms >= GONE_MS;
    if (look)
        x->moved_ms = now_ms;
    if (look && is_gone(x)) {
        bh_h_usage_gone(&x->api->core, &x->q);
        bh_wait_ready(x);
    }
}

/* ---- all of them ---- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

uint64_t bh_waits_wake(struct bh_api *api, uint64_t now_ms)
{
    const bool look = now_ms - api->logs_ms >= LOOK_MS;
    uint64_t next = 0;
    if (look)
        api->logs_ms = now_ms;
    for (struct bh_exchange *x = api->waiting, *after; x; x = after) {
        after = x->next;
        if (x->state == BH_EX_LOG)
            wake_log(x, now_ms, look);
        else if (x->state == BH_EX_STREAM)
            wake_stream(x, now_ms);
        else if (x->state == BH_EX_LATER && x->q.bill) /* the end of one may be the end of another */
            end_bill(x, now_ms);
    }
    for (const struct bh_exchange *x = api->waiting; x; x = x->next) {
        if (x->state == BH_EX_LOG)
            next = sooner(next, sooner(x->until_ms, api->logs_ms + LOOK_MS));
        else if (x->state == BH_EX_STREAM && x->suspended)
            next = sooner(next, x->moved_ms + BEAT_MS);
        else if (x->q.bill)
            next = sooner(next, x->moved_ms + GONE_MS);
    }
    api->changed = api->end_streams = false;
    return next;
}
