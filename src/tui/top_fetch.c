/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_fetch.c - questions to the daemon.
 *
 * What other verbs print (describe, why, logs) is had by running them: the same text, and no second way to make it.
 */
#include "tui/top_fetch.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WHYS = 12, ASK_MS = 3000, READ_MS = 10000, JOBS = 1000, LIST_MAX = 1 << 26 };

int bh_top_source_init(struct bh_top_source *s, struct bh_err *err)
{
    s->shown = (struct bh_arena){0};
    const int rc = bh_remote_init(&s->remote, err);
    s->remote.client.timeout_ms = ASK_MS;
    return rc;
}

void bh_top_source_fini(struct bh_top_source *s)
{
    bh_remote_fini(&s->remote);
    bh_arena_fini(&s->shown);
}

static int ask(struct bh_remote *r, struct bh_top_data *d, struct bh_err *err)
{
    static const char *const paths[] = {"/v1/jobs?state=running", "/v1/jobs?state=waiting"};
    struct bh_buf text;
    bh_buf_init(&text, LIST_MAX);
    int rc = bh_remote_get(r, "/v1/status", &bh_a_status_shape, &d->status, err);
    if (rc == BH_OK)
        rc = bh_remote_get(r, "/v1/gpus", &bh_a_gpus_shape, &d->gpus, err);
    if (rc == BH_OK)
        rc = bh_remote_get(r, "/v1/quota", &bh_a_quotas_shape, &d->quotas, err);
    if (rc == BH_OK)
        rc = bh_remote_list(r, "jobs", paths, BH_COUNT_OF(paths), JOBS, &text, err);
    if (rc == BH_OK)
        rc = bh_answer_read(&r->arena, bh_buf_text(&text), text.n, &bh_a_jobs_shape, &d->jobs, err);
    if (rc == BH_OK)
        bh_remote_whys(r, &d->jobs, WHYS);
    bh_buf_fini(&text);
    return rc;
}

int bh_top_fetch(struct bh_top_source *s, struct bh_top_data *d, struct bh_err *err)
{
    struct bh_top_data next = *d;
    s->remote.arena = (struct bh_arena){0};
    const int rc = ask(&s->remote, &next, err);
    if (rc < 0) {
        bh_arena_fini(&s->remote.arena);
        s->remote.arena = (struct bh_arena){0};
        return rc;
    }
    bh_arena_fini(&s->shown);
    s->shown = s->remote.arena;
    s->remote.arena = (struct bh_arena){0};
    next.here = true;
    next.at_ms = next.status.now_ms;
    *d = next;
    bh_top_remember(d);
    return BH_OK;
}

int bh_top_do(struct bh_top_source *s, enum bh_top_wish wish, const char *id, struct bh_err *err)
{
    static const struct {
        const char *kind, *word;
    } orders[BH_TOP_WISHES] = {[BH_TOP_CANCEL] = {"jobs", "cancel"},
                               [BH_TOP_PAUSE] = {"leases", "pause"},
                               [BH_TOP_RESUME] = {"leases", "resume"}};
    if (!orders[wish].kind)
        return bh_fail(err, BH_INVALID, "not a command");
    const int rc =
        bh_remote_order(&s->remote, orders[wish].kind, id, orders[wish].word, "from bulkhead top", err);
    bh_arena_fini(&s->remote.arena);
    s->remote.arena = (struct bh_arena){0};
    return rc;
}

/* ---- other verbs ---- */

static void take_in(int fd, struct bh_buf *ret)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char bytes[4096];
    while (poll(&p, 1, READ_MS) > 0) {
        const ssize_t n = read(fd, bytes, sizeof(bytes));
        if (n <= 0)
            return;
        bh_buf_add(ret, bytes, (size_t)n);
    }
}

int bh_top_read(const char *const *argv, struct bh_buf *ret, struct bh_err *err)
{
    posix_spawn_file_actions_t files;
    int ends[2], status = 0;
    pid_t child = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return bh_fail(err, BH_SYSTEM, "no pipe: %s", strerror(errno));
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    /* posix_spawn takes the words without const and leaves them as they are. */
    const int code =
        posix_spawn(&child, "/proc/self/exe", &files, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (code == 0) {
        take_in(ends[0], ret);
        (void)kill(child, SIGTERM); /* where it is not done yet */
        (void)waitpid(child, &status, 0);
    }
    close(ends[0]);
    return code == 0 ? BH_OK : bh_fail(err, BH_SYSTEM, "%s: %s", argv[1], strerror(code));
}
