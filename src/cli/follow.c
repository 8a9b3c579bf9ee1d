/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - asks for a job's output and state again and again, and no oftener than it must. */
#include "cli/follow.h"

#include "base/str.h"
#include "cli/table.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WAIT_MS = 500, /* for the first byte of standard output; standard error is looked at as often */
    LOOK_MS = 500, /* at the job's state */
    WHY_MS = 2000, /* at the reason why it waits: the daemon works for it */
    SMALL =
        1 << 14, /* a piece so small is followed by a rest: a chatty command must not use up all requests */
    REST_MS = 50,
    AWAY_MS = 500, /* between two attempts to reach the daemon */
    AWAY_MAX_MS = 60000,
};

void bh_follow_init(struct bh_follow *f, struct bh_cli *cli, struct bh_remote *r, const char *job)
{
    *f = (struct bh_follow){.cli = cli, .r = r, .fd = {STDOUT_FILENO, STDERR_FILENO}};
    (void)snprintf(f->job, sizeof(f->job), "%s", job);
}

static int pass_on(int fd, const char *data, size_t n, struct bh_err *err)
{
    while (n) {
        const ssize_t k = write(fd, data, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return bh_fail(err, BH_SYSTEM, "the output cannot be passed on: %s", strerrordesc_np(errno));
        data += k;
        n -= (size_t)k;
    }
    return BH_OK;
}

int bh_follow_piece(struct bh_follow *f, int stream, unsigned wait_ms, size_t *ret_n, struct bh_err *err)
{
    char path[256];
    *ret_n = 0;
    if (f->ended[stream] || f->fd[stream] < 0)
        return BH_OK;
    (void)snprintf(path, sizeof(path), "/v1/jobs/%s/logs?stream=%s&offset=%" PRIu64 "&wait_ms=%u%s%s", f->job,
                   stream ? "err" : "out", f->offset[stream], wait_ms, f->lease[0] ? "&lease=" : "",
                   f->lease);
    int rc = bh_remote_ask(f->r, "GET", path, NULL, err);
    if (rc < 0)
        return rc;
    const struct bh_client_reply *reply = &f->r->reply;
    if (reply->next_offset == UINT64_MAX || reply->next_offset < f->offset[stream])
        return bh_fail(err, BH_SYSTEM, "the daemon's answer is not understood: no offset of a log");
    f->offset[stream] = reply->next_offset;
    f->ended[stream] = reply->ended;
    *ret_n = reply->body.n;
    if (reply->dropped)
        (void)fprintf(stderr,
                      "bulkhead: %" PRIu64 " bytes of %s are missing here: it wrote more than is kept\n",
                      reply->dropped, f->job);
    return pass_on(f->fd[stream], bh_buf_text(&reply->body), reply->body.n, err);
}

int bh_follow_rest(struct bh_follow *f, struct bh_err *err)
{
    for (int stream = 0; stream < 2; stream++)
        for (size_t n = 1; n;) {
            const int rc = bh_follow_piece(f, stream, 0, &n, err);
            if (rc < 0)
                return rc;
        }
    return BH_OK;
}

/* ---- how it gets on ---- */

static void say(struct bh_follow *f, const char *state, const char *why)
{
    struct bh_buf line;
    char now[sizeof(f->state)];
    (void)snprintf(now, sizeof(now), "%s%s%s", state, why ? ": " : "", why ? why : "");
    if (!f->say || bh_str_eq(now, f->state))
        return;
    memcpy(f->state, now, sizeof(now));
    bh_buf_init(&line, 4096);
    bh_paint_add(&line, f->cli->paint_err, BH_PAINT_BOLD, "bulkhead:");
    bh_buf_printf(&line, " %s ", f->job);
    bh_text_add(&line, now);
    (void)fprintf(stderr, "%s\n", bh_buf_text(&line));
    bh_buf_fini(&line);
}

/* Why it waits may not be known, or not be this caller's to know; then its own words are said. */
static void say_waiting(struct bh_follow *f, const struct bh_a_job *j)
{
    struct bh_a_why w;
    const uint64_t now_ms = bh_now_ms();
    if (!f->say || (f->asked_ms && now_ms - f->asked_ms < WHY_MS))
        return;
    f->asked_ms = now_ms;
    const char *path = bh_arena_printf(&f->r->arena, "/v1/jobs/%s/why", f->job);
    const bool told = bh_remote_get(f->r, path, &bh_a_why_shape, &w, NULL) == BH_OK && w.sentence;
    say(f, "waits", told ? w.sentence : j->why);
}

/* Has the attempt got as far as to write anything? */
static bool may_write(const struct bh_a_lease *l)
{
    static const char *const not_yet[] = {"requested", "admitted", "refused", "preparing"};
    for (size_t i = 0; i < BH_COUNT_OF(not_yet); i++)
        if (bh_str_eq(l->state, not_yet[i]))
            return false;
    return true;
}

/* What it had is being taken back and proved clean, which takes its time. */
static bool is_leaving(const struct bh_a_lease *l)
{
    return bh_str_eq(l->state, "draining") || bh_str_eq(l->state, "scrubbing");
}

/* Looks at the job; another attempt is begun to be read where there is one. */
static int look(struct bh_follow *f, struct bh_a_job_detail *ret, struct bh_err *err)
{
    const char *path = bh_arena_printf(&f->r->arena, "/v1/jobs/%s", f->job);
    int rc = bh_remote_get(f->r, path, &bh_a_job_detail_shape, ret, err);
    if (rc < 0)
        return rc;
    f->looked_ms = bh_now_ms();
    const struct bh_a_lease *newest = ret->leases.n ? &ret->leases.at[ret->leases.n - 1] : NULL;
    if (newest && may_write(newest) && !bh_str_eq(newest->id, f->lease)) {
        if (f->lease[0] && (rc = bh_follow_rest(f, err)) < 0)
            return rc;
        if (!bh_remote_id(newest->id, 'L', f->lease))
            return bh_fail(err, BH_SYSTEM, "the daemon's answer is not understood: a lease's id");
        f->offset[0] = f->offset[1] = 0;
        for (int i = 0; i < 2; i++)
            f->ended[i] = f->fd[i] < 0;
    }
    if (bh_str_eq(ret->job->state, "running") && newest && is_leaving(newest))
        say(f, "has stopped", bh_arena_printf(&f->r->arena, "%s is %s", newest->id, newest->state));
    else if (bh_str_eq(ret->job->state, "running"))
        say(f, "runs",
            newest ? bh_arena_printf(&f->r->arena, "%s, %s, %s", newest->id,
                                     newest->stack ? newest->stack : newest->mechanism, newest->tier)
                   : NULL);
    else if (bh_str_eq(ret->job->state, "waiting"))
        say_waiting(f, ret->job);
    return BH_OK;
}

/* One round: state, both streams. *ret: where it has ended and all was passed on. */
static int go_round(struct bh_follow *f, const struct bh_a_job **ret, struct bh_err *err)
{
    struct bh_a_job_detail d = {0};
    size_t out = 0, more = 0;
    int rc;
    *ret = NULL;
    if (bh_now_ms() - f->looked_ms >= LOOK_MS || (f->ended[0] && f->ended[1])) {
        bh_arena_fini(&f->r->arena);
        if ((rc = look(f, &d, err)) < 0)
            return rc;
    }
    const bool over = d.job && bh_str_eq(d.job->state, "ended");
    if (!f->lease[0] || (f->ended[0] && f->ended[1] && !over)) {
        if (over)
            *ret = d.job;
        else
            (void)poll(NULL, 0, LOOK_MS / 2);
        return BH_OK;
    }
    if (over) {
        if ((rc = bh_follow_rest(f, err)) == BH_OK)
            *ret = d.job;
        return rc;
    }
    if ((rc = bh_follow_piece(f, 0, WAIT_MS, &out, err)) < 0 ||
        (rc = bh_follow_piece(f, 1, 0, &more, err)) < 0)
        return rc;
    if (out + more < SMALL)
        (void)poll(NULL, 0, REST_MS);
    return BH_OK;
}

int bh_follow(struct bh_follow *f, bool (*wanted)(void *ctx), void *ctx, struct bh_follow_end *ret,
              struct bh_err *err)
{
    uint64_t away_ms = 0;
    ret->job = NULL;
    while (!ret->job && (!wanted || wanted(ctx))) {
        const int rc = go_round(f, &ret->job, err);
        const bool again = bh_remote_is_away(f->r, rc) || rc == BH_BUSY || rc == BH_LIMITED;
        if (rc < 0 && !again)
            return rc;
        if (rc == BH_OK) {
            away_ms = 0;
            continue;
        }
        away_ms = away_ms ? away_ms : bh_now_ms();
        if (bh_now_ms() - away_ms > AWAY_MAX_MS)
            return bh_wrap(err, rc, "%s goes on; bulkhead logs -f %s", f->job, f->job);
        say(f, "goes on", "the daemon does not answer; it is asked again");
        (void)poll(NULL, 0, AWAY_MS);
    }
    return BH_OK;
}
