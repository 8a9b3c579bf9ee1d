/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - bulkhead-keeper: one lease, from its spec to its end record (wire/keeper.h).
 *
 * It belongs to nobody: the daemon that started it may end or be killed. No signal but KILL ends it, only a STOP on its socket. If
 * it is killed itself, the kernel ends the first process of the work, the warden ends what it can, and the daemon, which finds the
 * lock free and no end record, empties the cgroup.
 */
#include "base/mem.h"
#include "base/str.h"
#include "host/limits.h"
#include "keeper/keeper.h"
#include "launch/durable.h"
#include "launch/warden.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { ATTACH_MS = 30000, OUTPUT_BYTES = 64 << 20, DRAINED = 1 << 16, AGAIN_MS = 1000 };

static int fail_errno(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_SYSTEM, "%s: %s", what, strerrordesc_np(errno));
}

/* ---- the beginning ---- */

/*
 * What whoever started us ignores the work need not. By the kernel's own call: the library's refuses the signals
 * it keeps for its threads, and those too may come ignored (a runtime above that had blocked out all 64).
 */
static void hear_all(void)
{
    static const struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } as_new = {0};
    for (int n = 1; n < NSIG; n++)
        if (n != SIGKILL && n != SIGSTOP)
            (void)syscall(SYS_rt_sigaction, n, &as_new, NULL, sizeof as_new.mask);
}

/* All but the faults of this program's own, and what tells of children. */
static void be_deaf(void)
{
    static const int heard[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGCHLD};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < BH_COUNT_OF(heard); i++)
        sigdelset(&all, heard[i]);
    hear_all();
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Whoever started us has other children to wait for. */
static void leave_parent(void)
{
    const pid_t pid = fork();
    if (pid > 0)
        _exit(0);
    /* else, where there can be no other process, as its child */
}

static int read_spec(struct bh_keeper *k, const char *path, struct bh_err *err)
{
    BH_AUTOFREE char *text = NULL;
    size_t n = 0;
    const int rc = bh_durable_read(AT_FDCWD, path, BH_KEEPER_SPEC_MAX, &text, &n, err);
    return rc < 0 ? rc : bh_keeper_spec_read(text, n, &k->arena, &k->spec, err);
}

/* The folder that the spec stands in. */
static int open_place(struct bh_keeper *k, const char *path, struct bh_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *folder = slash && slash > path ? bh_arena_strn(&k->arena, path, (size_t)(slash - path))
                         : slash               ? "/"
                                               : ".";
    k->at = (struct bh_keeper_place){.folder = folder, .run_dir = k->spec.run_dir, .lease = k->spec.lease};
    k->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->folder < 0)
        return fail_errno(err, folder);
    k->log = openat(k->folder, "keeper.log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return BH_OK;
}

/* What cannot be known to be missing is there: nothing is begun on a guess. */
static bool is_there(const struct bh_keeper *k, const char *name)
{
    return faccessat(k->folder, name, F_OK, 0) == 0 || errno != ENOENT;
}

/* With the lock held: whoever was here before has said all that there is. */
static int is_first(const struct bh_keeper *k, struct bh_err *err)
{
    if (is_there(k, BH_KEEPER_END_NAME))
        return bh_fail(err, BH_CONFLICT, "lease L%llu has ended already", (unsigned long long)k->spec.lease);
    if (is_there(k, BH_KEEPER_BEGUN_NAME))
        return bh_fail(err, BH_CONFLICT, "lease L%llu was begun before, and its keeper was lost",
                       (unsigned long long)k->spec.lease);
    return BH_OK;
}

static int open_loop(struct bh_keeper *k, struct bh_err *err)
{
    int listener = -1;
    k->epoll = epoll_create1(EPOLL_CLOEXEC);
    k->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (k->epoll < 0 || k->timer < 0 || !bh_keeper_listen_to(k, k->timer))
        return fail_errno(err, "epoll");
    const int rc = bh_keeper_listen(&k->at, k->spec.attach, &listener, err);
    return rc < 0 ? rc : bh_keeper_open_control(k, listener, err);
}

static int open_keeper(struct bh_keeper *k, const char *path, struct bh_err *err)
{
    bh_limits_raise();
    int rc = read_spec(k, path, err);
    if (rc == BH_OK)
        rc = open_place(k, path, err);
    if (rc == BH_OK)
        rc = bh_keeper_lock(&k->at, &k->lock, err);
    if (rc == BH_OK) {
        rc = is_first(k, err);
        if (rc < 0)
            bh_keeper_vanish(&k->at); /* ours, as the lock is */
    }
    return rc == BH_OK ? open_loop(k, err) : rc;
}

/* ---- the work ---- */

static int open_output(struct bh_keeper *k, struct bh_err *err)
{
    const uint64_t room = k->spec.output_bytes ? k->spec.output_bytes : OUTPUT_BYTES;
    k->stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (k->stdio[0] < 0)
        return fail_errno(err, "/dev/null");
    int rc = bh_output_open(&k->out, k->folder, "out", room, &k->stdio[1], err);
    if (rc == BH_OK)
        rc = bh_output_open(&k->err, k->folder, "err", room, &k->stdio[2], err);
    if (rc == BH_OK && (!bh_keeper_listen_to(k, k->out.from) || !bh_keeper_listen_to(k, k->err.from)))
        rc = fail_errno(err, "epoll");
    return rc;
}

static int await_client(struct bh_keeper *k, struct bh_err *err)
{
    int rc = BH_OK;
    bh_keeper_set_state(k, BH_KEEPER_WAITS);
    bh_keeper_set_timer(k, ATTACH_MS);
    while (rc == BH_OK && !k->attached)
        rc = bh_keeper_wait(k, err);
    bh_keeper_set_timer(k, 0);
    return rc;
}

static int run(struct bh_keeper *k, struct bh_err *err)
{
    int rc = k->spec.attach ? await_client(k, err) : open_output(k, err);
    if (rc == BH_OK)
        bh_keeper_set_state(k, BH_KEEPER_STARTS);
    if (rc == BH_OK && k->spec.gate)
        rc = bh_warden_rights("a keeper", err);
    if (rc == BH_OK && k->spec.gate)
        rc = bh_warden_find(k->warden, sizeof(k->warden), err);
    if (rc == BH_OK)
        rc = bh_cgroups_open("", &k->groups, err);
    if (rc < 0)
        return rc;
    switch (k->spec.tier) {
    case BH_KEEPER_CONTAINER:
        return bh_keeper_container(k, err);
    case BH_KEEPER_EXTERNAL:
        return bh_keeper_external(k, err);
    default:
        return bh_keeper_process(k, err);
    }
}

/* ---- the end ---- */

static void note_output(struct bh_keeper *k)
{
    for (int i = 0; i < DRAINED && bh_output_take(&k->out); i++) {
    }
    for (int i = 0; i < DRAINED && bh_output_take(&k->err); i++) {
    }
    k->end.output_lost_bytes = k->out.lost + k->err.lost;
    bh_output_close(&k->out);
    bh_output_close(&k->err);
}

static void note_cgroup(struct bh_keeper *k)
{
    struct bh_err err;
    uint64_t n = 0;
    if (bh_cgroup_out_of_memory(&k->groups, k->spec.cgroup, &n))
        k->end.out_of_memory = n;
    if (n && !*k->end.why)
        (void)snprintf(k->end.why, sizeof(k->end.why),
                       "%llu of its processes were ended: the lease has no more of the machine's memory",
                       (unsigned long long)n);
    bh_keeper_empty(k);
    if (bh_cgroup_remove(&k->groups, k->spec.cgroup, &err) < 0)
        bh_keeper_say(k, err.msg);
}

/* A disk that is full now may not be later; until the record is there the lease is not over. */
static void write_end(struct bh_keeper *k)
{
    struct bh_buf text;
    struct bh_err err;
    bh_buf_init(&text, 1 << 16);
    bh_keeper_end_write(&k->end, &text);
    while (bh_durable_write(k->folder, BH_KEEPER_END_NAME, text.at, text.n, &err) < 0) {
        struct pollfd at = {.fd = k->epoll, .events = POLLIN};
        bh_keeper_say(k, err.msg);
        (void)poll(&at, 1, AGAIN_MS);
        (void)!bh_keeper_hear(k, NULL);
        (void)poll(NULL, 0, AGAIN_MS);
    }
    bh_buf_fini(&text);
}

static void finish(struct bh_keeper *k, int rc, const struct bh_err *err)
{
    if (rc < 0)
        bh_keeper_take_failure(k, rc, err);
    for (int i = 0; i < 3; i++)
        if (k->stdio[i] >= 0)
            close(k->stdio[i]);
    note_cgroup(k);
    note_output(k);
    write_end(k);
    bh_keeper_set_state(k, BH_KEEPER_OVER);
    bh_control_close(&k->control);
    bh_keeper_vanish(&k->at);
}

static void report(bool wanted, int rc, const struct bh_err *err)
{
    struct bh_keeper_status status = {
        .version = BH_KEEPER_VERSION, .code = rc, .keeper_pid = (uint32_t)getpid()};
    if (rc < 0)
        memcpy(status.text, err->msg, sizeof(status.text));
    if (wanted) {
        (void)!bh_fds_send(BH_KEEPER_REPORT, &status, sizeof(status), NULL, 0, NULL);
        close(BH_KEEPER_REPORT);
    }
}

static void close_all(struct bh_keeper *k)
{
    const int fds[] = {k->folder, k->log, k->epoll, k->timer, k->lock};
    bh_cgroups_close(&k->groups);
    bh_control_close(&k->control);
    for (size_t i = 0; i < BH_COUNT_OF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    bh_arena_fini(&k->arena);
}

int main(int argc, char **argv)
{
    struct bh_keeper k = {.folder = -1,
                          .lock = -1,
                          .log = -1,
                          .epoll = -1,
                          .timer = -1,
                          .control = {.listener = -1},
                          .out = {.from = -1, .file = -1},
                          .err = {.from = -1, .file = -1},
                          .stdio = {-1, -1, -1}};
    struct bh_err err = {0};
    const bool reports = argc == 3 && bh_str_eq(argv[1], "--report");
    if (!reports && argc != 2) {
        (void)fprintf(stderr, "usage: bulkhead-keeper [--report] SPECFILE\n");
        return bh_code_exit(BH_USAGE);
    }
    if (reports)
        leave_parent();
    be_deaf();
    if (reports)
        (void)fcntl(BH_KEEPER_REPORT, F_SETFD, FD_CLOEXEC);
    int rc = open_keeper(&k, argv[argc - 1], &err);
    report(reports, rc, &err);
    if (rc < 0) {
        (void)fprintf(stderr, "bulkhead-keeper: %s\n", err.msg);
    } else {
        k.end.lease = k.spec.lease;
        rc = run(&k, &err);
        finish(&k, rc, &err);
        rc = BH_OK;
    }
    close_all(&k);
    return rc < 0 ? bh_code_exit(rc) : 0;
}
