/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - a simulated node as a process.
 *
 * The name is taken before the fork and given back by whoever ends last, so two who start the same name at once never
 * both succeed, and a node that was killed leaves a folder whose lock says so.
 */
#include "simgpu/serve/start.h"

#include "simgpu/drv.h"
#include "simgpu/serve/serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 }; /* with a node that was asked something */

/* What the daemon tells its parent, once: less than a pipe takes in one piece. */
struct report {
    int rc;
    struct bh_err err;
    struct bh_sim_place place;
};
_Static_assert(sizeof(struct report) <= 4096, "a report must fit a pipe");

struct serving {
    struct bh_sim_place *place;
    int to; /* the pipe; -1: no parent waits, or it was told */
    void (*ready)(const struct bh_sim_place *place, void *arg);
    void *arg;
};

static void tell(struct serving *s, int rc, const struct bh_err *err)
{
    struct report r = {.rc = rc, .place = *s->place};
    if (rc < 0)
        r.err = *err;
    if (s->to >= 0) {
        (void)!write(s->to, &r, sizeof(r)); /* nobody may be there any more; the node runs all the same */
        close(s->to);
    }
    s->to = -1;
    if (rc == BH_OK && s->ready)
        s->ready(s->place, s->arg);
}

static void on_ready(void *arg)
{
    tell(arg, BH_OK, NULL);
}

/* From a name that was taken to a folder that is gone. */
static int live(struct serving *s, const struct bh_sim_node *node, struct bh_err *err)
{
    mode_t before = umask(022);
    int rc = bh_sim_place_fill(s->place, node, err);
    if (rc == BH_OK) {
        struct bh_sim_serve how = {.node = node, .folder = s->place->folder, .ready = on_ready, .arg = s};
        rc = bh_sim_serve(&how, err);
    }
    int gone = bh_sim_place_remove(s->place, rc < 0 ? NULL : err);
    (void)umask(before);
    return rc < 0 ? rc : gone;
}

int bh_sim_start_here(const char *name, const struct bh_sim_node *node,
                      void (*ready)(const struct bh_sim_place *place, void *arg), void *arg,
                      struct bh_err *err)
{
    struct bh_sim_place place;
    int lock, rc = bh_sim_place_take(name, &place, &lock, err);
    if (rc < 0)
        return rc;
    struct serving s = {.place = &place, .to = -1, .ready = ready, .arg = arg};
    rc = live(&s, node, err);
    close(lock);
    return rc;
}

/* Descriptors 0 to 2 become nothing and the log; lock and pipe stay; everything else of the parent's goes. */
static void settle_in(const struct bh_sim_place *place, int *lock, int *to)
{
    enum { LOCK = 3, PIPE = 4 };
    char log[BH_SIM_FOLDER_MAX + 8];
    (void)snprintf(log, sizeof(log), "%s/log", place->folder);
    int high_lock = fcntl(*lock, F_DUPFD_CLOEXEC, PIPE + 1), high_to = fcntl(*to, F_DUPFD_CLOEXEC, PIPE + 1);
    if (high_lock >= 0 && high_to >= 0 && dup2(high_lock, LOCK) == LOCK && dup2(high_to, PIPE) == PIPE) {
        *lock = LOCK;
        *to = PIPE;
        (void)close_range(PIPE + 1, ~0u, 0);
    }
    int in = open("/dev/null", O_RDWR | O_CLOEXEC);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    const int sink = out >= 0 ? out : in;
    if (in >= 0)
        (void)dup2(in, STDIN_FILENO);
    if (sink >= 0) {
        (void)dup2(sink, STDOUT_FILENO);
        (void)dup2(sink, STDERR_FILENO);
    }
    if (in > STDERR_FILENO)
        close(in);
    if (out > STDERR_FILENO)
        close(out);
    (void)!chdir("/");
}

_Noreturn static void daemon_main(struct bh_sim_place *place, const struct bh_sim_node *node, int lock,
                                  int to)
{
    struct bh_err err = {0};
    /* The parent waits for the first child only; the second belongs to no terminal and to nobody. */
    if (setsid() < 0)
        _exit(1);
    pid_t pid = fork();
    if (pid != 0)
        _exit(pid < 0);
    settle_in(place, &lock, &to);
    struct serving s = {.place = place, .to = to};
    int rc = live(&s, node, &err);
    if (rc < 0) {
        fprintf(stderr, "bulkhead: simulated node '%s': %s\n", place->name, err.msg);
        tell(&s, rc, &err);
    }
    _exit(bh_code_exit(rc));
}

static int hear(int from, const struct bh_sim_place *place, struct report *ret, struct bh_err *err)
{
    ssize_t n;
    do
        n = read(from, ret, sizeof(*ret));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*ret))
        return bh_fail(err, BH_SYSTEM, "simulated node '%s' ended before it answered; its folder is %s",
                       place->name, place->folder);
    if (ret->rc < 0 && err)
        *err = ret->err;
    return ret->rc;
}

int bh_sim_start(const char *name, const struct bh_sim_node *node, struct bh_sim_place *ret,
                 struct bh_err *err)
{
    struct bh_sim_place place;
    struct bh_sim_node_view view;
    struct report report;
    int lock, ends[2], status;
    int rc = bh_sim_place_take(name, &place, &lock, err);
    if (rc < 0)
        return rc;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        rc = bh_fail(err, BH_SYSTEM, "cannot make a pipe: %s", strerror(errno));
        (void)!bh_sim_place_remove(&place, NULL);
        close(lock);
        return rc;
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        daemon_main(&place, node, lock, ends[1]);
    int error = errno;
    if (pid < 0)
        (void)!bh_sim_place_remove(&place, NULL);
    close(lock);
    close(ends[1]);
    if (pid < 0)
        rc = bh_fail(err, BH_SYSTEM, "cannot start a process: %s", strerror(error));
    else
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    if (rc == BH_OK)
        rc = hear(ends[0], &place, &report, err);
    close(ends[0]);
    if (rc < 0)
        return rc;
    bh_sim_use(report.place.folder);
    if (bh_sim_hello(&view) < 0)
        rc = bh_fail(err, BH_SYSTEM, "simulated node '%s' does not answer: %s", name, strerror(errno));
    bh_sim_use(NULL);
    if (rc == BH_OK)
        *ret = report.place;
    return rc;
}

int bh_sim_order(const struct bh_sim_place *place, enum bh_sim_op op, uint64_t a, char *body, size_t n,
                 size_t body_max, struct bh_err *err)
{
    struct bh_sim_msg msg = {.op = op, .a = a, .n_body = (uint32_t)n};
    bh_sim_use(place->folder);
    bh_sim_patience(PATIENCE_MS);
    int rc = bh_sim_call(&msg, body, body_max, -1, NULL), error = errno;
    bh_sim_patience(0);
    bh_sim_use(NULL);
    if (rc == 0)
        return BH_OK;
    if (error == EPERM || error == EACCES)
        return bh_fail(err, BH_DENIED,
                       "simulated node '%s' is not yours: only its owner (uid %u) or root may do that",
                       place->name, (unsigned)place->uid);
    if (error == ENODEV)
        return bh_fail(err, BH_NOT_FOUND,
                       "simulated node '%s' died; bulkhead sim start %s --name %s starts it again, "
                       "bulkhead sim stop %s removes it",
                       place->name, place->scene, place->name, place->name);
    if (error == EAGAIN)
        return bh_fail(err, BH_BUSY, "simulated node '%s' did not answer for %d s", place->name,
                       PATIENCE_MS / 1000);
    if (error == EINVAL && msg.n_body && msg.n_body < body_max)
        return bh_fail(err, BH_INVALID, "%.*s", (int)msg.n_body, body);
    return bh_fail(err, BH_SYSTEM, "simulated node '%s': %s", place->name, strerror(error));
}

static bool ends_within(const struct bh_sim_place *place, int ms)
{
    enum { STEP_MS = 10 };
    for (; bh_sim_place_runs(place); ms -= STEP_MS) {
        const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
        if (ms <= 0)
            return false;
        (void)nanosleep(&step, NULL);
    }
    return true;
}

/* Does that process have the node's lock open? Its number may be another process's by now. */
static bool has_lock(const struct bh_sim_place *place, uint32_t pid)
{
    char path[BH_SIM_FOLDER_MAX + 8], fds[32];
    struct stat lock, st;
    bool found = false;
    (void)snprintf(path, sizeof(path), "%s/lock", place->folder);
    (void)snprintf(fds, sizeof(fds), "/proc/%u/fd", (unsigned)pid);
    DIR *d = lstat(path, &lock) == 0 ? opendir(fds) : NULL;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found =
            fstatat(dirfd(d), e->d_name, &st, 0) == 0 && st.st_ino == lock.st_ino && st.st_dev == lock.st_dev;
    if (d)
        closedir(d);
    return found;
}

/* One that does not answer: it may be stopped, or stuck. Asked to end first, then ended. */
static int end_it(const struct bh_sim_place *place, struct bh_err *err)
{
    static const struct {
        int signal[2], ms;
    } steps[] = {{{SIGTERM, SIGCONT}, 2000}, {{SIGKILL, SIGKILL}, 5000}};
    struct bh_sim_place now;
    int rc = bh_sim_place_find(place->name, &now, err);
    if (rc < 0 || !now.runs)
        return rc == BH_NOT_FOUND ? BH_OK : rc;
    int fd = now.pid ? (int)syscall(SYS_pidfd_open, (pid_t)now.pid, 0) : -1;
    bool ended = false;
    if (fd >= 0 && has_lock(place, now.pid))
        for (size_t i = 0; !ended && i < BH_COUNT_OF(steps); i++) {
            for (size_t k = 0; k < 2; k++)
                (void)syscall(SYS_pidfd_send_signal, fd, steps[i].signal[k], NULL, 0);
            ended = ends_within(place, steps[i].ms);
        }
    if (fd >= 0)
        close(fd);
    return ended ? BH_OK
                 : bh_fail(err, BH_BUSY,
                           "simulated node '%s' does not answer, and process %u that should serve it could "
                           "not be ended",
                           place->name, (unsigned)now.pid);
}

int bh_sim_stop(const struct bh_sim_place *place, struct bh_err *err)
{
    enum { LONG_MS = 10000 };
    if (!bh_sim_place_runs(place))
        return bh_sim_place_sweep(place, err);
    int rc = bh_sim_order(place, BH_SIM_OP_STOP, 0, NULL, 0, 0, err);
    /* It may have been on its way out already. */
    if (rc < 0 && rc != BH_NOT_FOUND && rc != BH_BUSY)
        return rc;
    if (rc == BH_BUSY || !ends_within(place, LONG_MS))
        rc = end_it(place, err);
    else
        rc = BH_OK;
    if (rc < 0)
        return rc;
    return access(place->folder, F_OK) == 0 ? bh_sim_place_sweep(place, err) : BH_OK;
}
