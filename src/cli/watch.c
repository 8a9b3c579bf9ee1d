/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - follows the daemon's events and redraws. */
#include "cli/watch.h"

#include "base/mem.h"
#include "base/units.h"
#include "cli/table.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LEAST_MS = 200,  /* between two screens */
    AGES_MS = 5000,  /* without a word the list is asked for even so: ages go on */
    RETRY_MS = 1000, /* the daemon is away */
    ROWS_UNKNOWN = 24,
    LIMIT = 200,
    LIMIT_MAX = 1000000,
};

int bh_watch_words(const char *limit, const char *watch, const char *output, uint64_t *ret_limit,
                   struct bh_err *err)
{
    *ret_limit = LIMIT;
    if (limit && (bh_uint_parse(limit, LIMIT_MAX, ret_limit, NULL) < 0 || !*ret_limit))
        return bh_fail(err, BH_USAGE, "--limit: '%.40s' is not a number from 1 to %d", limit, LIMIT_MAX);
    if (watch && output)
        return bh_fail(err, BH_USAGE, "--watch is for people; a program follows GET /v1/events");
    return BH_OK;
}

/* ---- the screen ---- */

void bh_watch_frame(struct bh_buf *out, const char *head, const char *text, unsigned rows, bool dim)
{
    unsigned left = rows > 2 ? rows - 2 : 1;
    bh_buf_printf(out, "\x1b[H%s\x1b[K\n", head);
    while (*text) {
        const size_t n = strcspn(text, "\n");
        size_t more = 0;
        if (left-- == 1 && text[n] && text[n + 1]) {
            for (const char *p = text; *p; p++)
                more += *p == '\n';
            bh_buf_printf(out, "and %zu more lines\x1b[K\n", more);
            break;
        }
        bh_buf_printf(out, "%s%.*s%s\x1b[K\n", dim ? "\x1b[2m" : "", (int)n, text, dim ? "\x1b[0m" : "");
        text += n + (text[n] == '\n');
    }
    bh_buf_str(out, "\x1b[J");
}

static unsigned screen_rows(void)
{
    struct winsize w = {0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row ? w.ws_row : ROWS_UNKNOWN;
}

struct watching {
    struct bh_cli *cli;
    struct bh_remote *r;
    struct bh_client events; /* a connection of its own: the other one asks meanwhile */
    bh_watch_draw draw;
    void *ctx;
    struct bh_buf shown; /* the last list */
    uint64_t shown_ms;
    bool pending; /* something changed since */
    bool begun;   /* the screen was cleared */
    char last_id[64];
    int status; /* of a failure that ends it */
};

static bool put(struct watching *w)
{
    struct bh_err err;
    const int rc = bh_cli_flush(w->cli, STDOUT_FILENO, &err);
    w->cli->out.n = 0;
    if (rc < 0)
        w->status = bh_cli_fail(w->cli, &err);
    return rc == 0;
}

/* away NULL: the list is what is now. */
static bool show(struct watching *w, const char *away)
{
    struct bh_buf *out = &w->cli->out;
    const char *at = bh_say_time(&w->r->arena, w->shown_ms);
    out->n = 0;
    if (w->cli->is_terminal) {
        const char *head = away ? bh_arena_printf(&w->r->arena, "as of %s; %s", at, away) : at;
        if (!w->begun)
            bh_buf_str(out, "\x1b[2J");
        w->begun = true;
        bh_watch_frame(out, head, bh_buf_text(&w->shown), screen_rows(), away && w->cli->paint_out);
    } else if (!away)
        bh_buf_printf(out, "%s\n%s\n", at, bh_buf_text(&w->shown));
    return put(w);
}

/* Asks for the list and shows it. False: it is over, or the daemon is away. */
static bool redraw(struct watching *w, struct bh_err *err)
{
    struct bh_cli *cli = w->cli;
    bh_arena_fini(&w->r->arena);
    cli->out.n = 0;
    const int rc = w->draw(w->ctx, cli, w->r, err);
    if (rc < 0) {
        cli->out.n = 0;
        return false;
    }
    w->shown.n = 0;
    bh_buf_add(&w->shown, bh_buf_text(&cli->out), cli->out.n);
    w->shown_ms = bh_now_ms();
    w->pending = false;
    return show(w, NULL);
}

static bool on_event(void *ctx, const struct bh_client_event *e)
{
    struct watching *w = ctx;
    struct bh_err err;
    (void)snprintf(w->last_id, sizeof(w->last_id), "%.60s", e->id ? e->id : "");
    w->pending = true;
    if (bh_now_ms() - w->shown_ms >= LEAST_MS && !redraw(w, &err))
        return false;
    w->events.timeout_ms = w->pending ? LEAST_MS : AGES_MS;
    return true;
}

static bool reader_is_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP));
}

static void watch_on(struct watching *w)
{
    struct bh_err err;
    while (!w->status && !reader_is_gone()) {
        if (!redraw(w, &err)) {
            if (w->status)
                return;
            if (!w->shown_ms) { /* never anything to show: it is said, and that is all */
                w->status = bh_cli_fail(w->cli, &err);
                return;
            }
            (void)show(w, err.msg);
            (void)poll(NULL, 0, RETRY_MS);
            continue;
        }
        w->events.timeout_ms = AGES_MS;
        const uint64_t began_ms = bh_now_ms();
        if (bh_client_events(&w->events, w->last_id[0] ? w->last_id : NULL, on_event, w, &err) < 0 &&
            bh_now_ms() - began_ms < LEAST_MS) /* no stream, or none for this caller: by the clock, then */
            (void)poll(NULL, 0, RETRY_MS);
    }
}

int bh_watch(struct bh_cli *cli, struct bh_remote *r, bh_watch_draw draw, void *ctx)
{
    struct watching w = {.cli = cli, .r = r, .draw = draw, .ctx = ctx};
    struct bh_err err;
    if (bh_client_init(&w.events, &err) < 0)
        return bh_cli_fail(cli, &err);
    bh_buf_init(&w.shown, cli->out.max);
    watch_on(&w);
    cli->out.n = 0;
    bh_client_fini(&w.events);
    bh_buf_fini(&w.shown);
    return w.status;
}
