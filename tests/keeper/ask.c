/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - launch/keeper.h from a shell, as the daemon uses it.
 *
 * Usage: ask FOLDER RUN-DIR LEASE start KEEPER | look | status | signal N | stop GRACE-MS | watch | attach
 *        ask - CGROUP 0 empty
 * Each prints lines of `key value` and ends with the exit status of what came of it. `watch` and `attach` go on to the end.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/cgroup.h"
#include "launch/keeper.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static const char *const states[] = {"waits", "starts", "runs", "stops", "over"};
static const char *const hows[] = {"exited", "killed", "not-begun"};
static const char *const found[] = {"never", "lives", "ended", "lost"};

static void show_status(const struct bh_keeper_status *s)
{
    printf("state %s\nkeeper %u\nwork %u\nstatus %u\nsignal %u\ntext %s\n", states[s->state % 5],
           s->keeper_pid, s->work_pid, s->status, s->signal, s->text);
    (void)fflush(stdout);
}

static int look(const struct bh_keeper_place *at, struct bh_err *err)
{
    struct bh_keeper_look l;
    const int rc = bh_keeper_look(at, &l, err);
    if (rc < 0)
        return rc;
    printf("found %s\npid %d\n", found[l.found], (int)l.pid);
    if (l.found == BH_KEEPER_ENDED)
        printf("how %s\nstatus %u\nsignal %u\nstopped %d\nwhy %s\n", hows[l.end.how], l.end.status,
               l.end.signal, l.end.stopped, l.end.why);
    if (l.pidfd >= 0)
        close(l.pidfd);
    return BH_OK;
}

static int start(const struct bh_keeper_place *at, const char *program, struct bh_err *err)
{
    int fd;
    const int rc = bh_keeper_start(program, at, &fd, err);
    return rc < 0 ? rc : bh_keeper_started(fd, err);
}

static int order(const struct bh_keeper_place *at, enum bh_keeper_op op, const char *number,
                 struct bh_err *err)
{
    uint64_t n = 0;
    struct bh_keeper_status status;
    int rc = number ? bh_uint_parse(number, UINT32_MAX, &n, err) : BH_OK;
    const struct bh_keeper_order o = {
        .version = BH_KEEPER_VERSION, .op = op, .signal = (uint32_t)n, .grace_ms = (uint32_t)n};
    if (rc == BH_OK)
        rc = bh_keeper_order(at, &o, &status, err);
    if (rc == BH_OK)
        show_status(&status);
    return rc;
}

static int watch(const struct bh_keeper_place *at, bool attach, struct bh_err *err)
{
    const int stdio[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    struct bh_keeper_status status;
    int fd = -1, rc = bh_keeper_watch(at, attach ? stdio : NULL, &fd, &status, err);
    while (rc == BH_OK) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (!attach)
            show_status(&status);
        if (status.state == BH_KEEPER_OVER)
            return attach ? (int)(status.signal ? 128 + status.signal : status.status) : 0;
        (void)poll(&one, 1, -1);
        rc = bh_keeper_next(fd, &status, err);
    }
    return rc;
}

static int empty(const char *name, struct bh_err *err)
{
    enum { PATIENCE_MS = 20000 };
    struct bh_cgroups c;
    int rc = bh_cgroups_open("", &c, err);
    if (rc < 0)
        return rc;
    rc = bh_cgroup_kill(&c, name, PATIENCE_MS, err);
    if (rc == BH_OK)
        rc = bh_cgroup_remove(&c, name, err);
    bh_cgroups_close(&c);
    return rc;
}

int main(int argc, char **argv)
{
    struct bh_err err = {0};
    uint64_t lease = 0;
    if (argc < 5 || bh_uint_parse(argv[3], UINT64_MAX, &lease, &err) < 0)
        return 2;
    const struct bh_keeper_place at = {.folder = argv[1], .run_dir = argv[2], .lease = lease};
    const char *verb = argv[4], *more = argc > 5 ? argv[5] : NULL;
    const int rc = bh_str_eq(verb, "start")    ? start(&at, more, &err)
                   : bh_str_eq(verb, "look")   ? look(&at, &err)
                   : bh_str_eq(verb, "status") ? order(&at, BH_KEEPER_STATUS, NULL, &err)
                   : bh_str_eq(verb, "signal") ? order(&at, BH_KEEPER_SIGNAL, more, &err)
                   : bh_str_eq(verb, "stop")   ? order(&at, BH_KEEPER_STOP, more, &err)
                   : bh_str_eq(verb, "watch")  ? watch(&at, false, &err)
                   : bh_str_eq(verb, "attach") ? watch(&at, true, &err)
                   : bh_str_eq(verb, "empty")  ? empty(argv[2], &err)
                                               : bh_fail(&err, BH_USAGE, "no verb '%.40s'", verb);
    if (rc < 0)
        (void)fprintf(stderr, "%s\n", err.msg);
    return rc < 0 ? bh_code_exit(rc) : rc;
}
