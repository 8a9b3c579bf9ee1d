/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - tier process: a command with its own user, in its own cgroup, below its warden.
 *
 * Keeper and warden stay outside of that cgroup and keep the user that they were started with: what the tenant uses up or ends is
 * the tenant's own.
 */
#include "base/mem.h"
#include "keeper/keeper.h"
#include "launch/launch.h"
#include "launch/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UMASK = 022 };

/* ---- in the child ---- */

static int fail_errno(struct bh_err *err, enum bh_code code, const char *what)
{
    return bh_fail(err, code, "%s: %s", what, strerrordesc_np(errno));
}

static int take_groups(const struct bh_keeper_spec *s, struct bh_err *err)
{
    const int rc = s->user ? initgroups(s->user, s->gid) : setgroups(s->n_groups, s->groups);
    return rc == 0 ? BH_OK : fail_errno(err, BH_DENIED, "taking the work's groups");
}

static int take_user(const struct bh_keeper_spec *s, struct bh_err *err)
{
    int rc = take_groups(s, err);
    if (rc == BH_OK && (setresgid(s->gid, s->gid, s->gid) < 0 || setresuid(s->uid, s->uid, s->uid) < 0 ||
                        geteuid() != s->uid))
        rc = fail_errno(err, BH_DENIED, "taking the work's user");
    /* The kernel forgets this when a process changes its user. */
    if (rc == BH_OK && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        rc = fail_errno(err, BH_SYSTEM, "prctl");
    if (rc == BH_OK && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        rc = fail_errno(err, BH_SYSTEM, "giving up new privileges");
    return rc;
}

/* A daemon that the kernel is told to spare does not mean its tenants. */
static void forget_protection(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "0", 1);
        close(fd);
    }
}

static int become(void *arg, struct bh_err *err)
{
    const struct bh_keeper *k = arg;
    static const char *const nothing[] = {NULL};
    const char *const *env = k->spec.env ? k->spec.env : nothing;
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid();
    (void)umask(UMASK);
    forget_protection();
    int rc = bh_cgroup_join(&k->groups, k->spec.cgroup, 0, err);
    for (int i = 0; rc == BH_OK && i < 3; i++)
        if (dup2(k->stdio[i], i) < 0)
            rc = fail_errno(err, BH_SYSTEM, "dup2");
    if (rc == BH_OK)
        rc = take_user(&k->spec, err);
    /* As the tenant: what it may not enter it does not start in. */
    if (rc == BH_OK && chdir(k->spec.cwd ? k->spec.cwd : "/") < 0)
        rc = bh_fail(err, errno == ENOENT ? BH_NOT_FOUND : BH_DENIED, "the working folder '%.200s': %s",
                     k->spec.cwd, strerrordesc_np(errno));
    memcpy(&environ, &env, sizeof(environ));
    return rc;
}

/* ---- orders ---- */

static void signal_work(struct bh_keeper *k, int number)
{
    (void)kill(k->work, number);
}

static void terminate(struct bh_keeper *k)
{
    struct bh_err err;
    if (bh_cgroup_signal(&k->groups, k->spec.cgroup, SIGTERM, &err) < 0)
        bh_keeper_say(k, err.msg);
    (void)kill(k->work, SIGCONT); /* who is stopped does not hear it */
}

/* ---- what bh_launch calls ---- */

static void tell(void *arg, const char *line)
{
    bh_keeper_say(arg, line);
}

static int hear(void *arg, struct bh_err *err)
{
    return bh_keeper_hear(arg, err);
}

/* An order to stop may have come since it was looked last. */
static int begin(void *arg, struct bh_err *err)
{
    const int rc = bh_keeper_hear(arg, err);
    return rc < 0 ? rc : bh_keeper_begin(arg, err);
}

static void runs(void *arg, pid_t pid)
{
    struct bh_keeper *k = arg;
    for (int i = 0; i < 3; i++) {
        close(k->stdio[i]);
        k->stdio[i] = -1;
    }
    bh_keeper_runs(k, pid);
}

/* Whoever it left behind goes with it; the warden ends when the last of them has. */
static void over(void *arg)
{
    struct bh_keeper *k = arg;
    k->work = 0;
    bh_keeper_empty(k);
}

int bh_keeper_process(struct bh_keeper *k, struct bh_err *err)
{
    const struct bh_launch_keep keep = {.gate = k->spec.gate,
                                        .fd = k->epoll,
                                        .hear = hear,
                                        .begin = begin,
                                        .become = become,
                                        .runs = runs,
                                        .over = over};
    struct bh_launch launch = {.warden = k->warden,
                               .cap_bytes = k->spec.cap_bytes,
                               .tick_ms = k->spec.tick_ms,
                               .view = k->spec.view,
                               .rdma = k->spec.rdma,
                               .share = k->spec.share,
                               .tell = tell,
                               .arg = k,
                               .keep = &keep};
    struct bh_launch_result result;
    int exit_status = 0;
    memcpy(&launch.argv, &k->spec.argv, sizeof(launch.argv)); /* exec does not write to them */
    k->signal = signal_work;
    k->terminate = terminate;
    k->kill = bh_keeper_empty;
    int rc = bh_cgroup_make(&k->groups, k->spec.cgroup, err);
    if (rc == BH_OK)
        rc = bh_cgroup_limit(&k->groups, k->spec.cgroup, &k->spec.limits, err);
    if (rc == BH_OK)
        rc = bh_launch(&launch, &result, &exit_status, err);
    k->end.status = (uint32_t)exit_status;
    if (rc != BH_OK)
        return rc;
    bh_keeper_take_status(k, result.status);
    if (result.ended)
        bh_keeper_take_account(k, &result.end);
    return BH_OK;
}
