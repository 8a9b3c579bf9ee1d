/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - bulkhead-warden: the gate of one lease, as a process.
 *
 * Started by a launcher with one socket (wire/lease.h). It makes itself small before it serves: no terminal, no files of
 * the launcher's, the user and groups that the tenant began with, and of root's rights only those few that the gate uses.
 * The driver takes the caller's rights for the tenant's, so a call issued here must never carry more than the tenant has
 * (rights.h). What the tenant becomes later the warden does not: its user could stop it.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/limits.h"
#include "warden/gate.h"
#include "warden/link.h"
#include "warden/selftest.h"
#include "warden/start.h"
#include "wire/fds.h"
#include "wire/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GROUPS_MAX = 65536 /* the kernel's NGROUPS_MAX */, FOLLOWER_STACK = 256 << 10, GIVEN_MS = 10000 };

static int fail_errno(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_SYSTEM, "the warden: %s: %s", what, strerrordesc_np(errno));
}

/* ---- whose ---- */

struct identity {
    uid_t uid; /* the effective ones: the driver goes by them */
    gid_t gid;
    gid_t *groups; /* GROUPS_MAX of room */
    size_t n_groups;
};

/* The numbers of `Uid:\t0\t0\t0\t0`; those past max are left out. Returns how many. */
static size_t numbers(const char *line, uint32_t *ret, size_t max)
{
    size_t n = 0;
    for (const char *at = strchr(line, ':'); at && n < max; n++) {
        char word[16] = {0};
        uint64_t v;
        while (*at && !bh_is_digit(*at))
            at++;
        for (size_t i = 0; i + 1 < sizeof(word) && bh_is_digit(*at); i++)
            word[i] = *at++;
        if (bh_uint_parse(word, UINT32_MAX, &v, NULL) < 0)
            break;
        ret[n] = (uint32_t)v;
    }
    return n;
}

static int read_identity(uint32_t pid, struct identity *ret, struct bh_err *err)
{
    char path[64];
    char *line = NULL;
    size_t room = 0, ids = 0;
    uint32_t four[4];
    (void)snprintf(path, sizeof(path), "/proc/%u/status", pid);
    FILE *f = fopen(path, "re");
    while (f && getline(&line, &room, f) > 0) {
        if (bh_str_starts(line, "Uid:") && numbers(line, four, 4) == 4 && ++ids)
            ret->uid = four[1];
        else if (bh_str_starts(line, "Gid:") && numbers(line, four, 4) == 4 && ++ids)
            ret->gid = four[1];
        else if (bh_str_starts(line, "Groups:"))
            ret->n_groups = numbers(line, ret->groups, GROUPS_MAX);
    }
    free(line);
    if (f)
        fclose(f);
    return ids == 2 ? BH_OK
                    : bh_fail(err, BH_NOT_FOUND, "the warden: process %u, whose it is to be, is gone", pid);
}

static bool has_groups(const struct identity *who)
{
    const int n = getgroups(0, NULL);
    if (n < 0 || (size_t)n != who->n_groups)
        return false;
    BH_AUTOFREE gid_t *have = bh_alloc((size_t)n + 1, sizeof(*have));
    return getgroups(n, have) == n && memcmp(have, who->groups, (size_t)n * sizeof(gid_t)) == 0;
}

static int become_user(uid_t uid, struct bh_err *err)
{
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(uid, uid, uid) < 0)
        return fail_errno(err, "taking the command's user");
    return BH_OK;
}

/* Groups that are so already are not set: a launcher that is not quite root could not. */
static int become(const struct identity *who, struct bh_err *err)
{
    if (!has_groups(who) && setgroups(who->n_groups, who->groups) < 0)
        return fail_errno(err, "taking the command's groups");
    if (setresgid(who->gid, who->gid, who->gid) < 0)
        return fail_errno(err, "taking the command's group");
    return become_user(who->uid, err);
}

/* To look into the tenant's processes and to end them; to become, for one call, a user that the tenant has become. */
static int keep_few_rights(struct bh_err *err)
{
    const uint32_t needed = 1u << CAP_SYS_PTRACE | 1u << CAP_KILL, useful = 1u << CAP_SETUID;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &head, has) < 0)
        return fail_errno(err, "capget");
    const uint32_t kept = has[0].permitted & (needed | useful);
    struct __user_cap_data_struct few[_LINUX_CAPABILITY_U32S_3] = {{.effective = kept, .permitted = kept}};
    if ((kept & needed) != needed)
        return bh_fail(err, BH_DENIED,
                       "the warden needs CAP_SYS_PTRACE and CAP_KILL for the processes it answers for");
    if (syscall(SYS_capset, &head, few) < 0)
        return fail_errno(err, "giving up rights");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return fail_errno(err, "prctl");
    return BH_OK;
}

/* One that has ended is told by its pidfd, not by its number, which may be another's. */
static bool is_there(int pidfd)
{
    struct pollfd at = {.fd = pidfd, .events = POLLIN};
    return poll(&at, 1, 0) == 0;
}

/* A warden that follows another is the user that one was, whatever the tenant is by now: else a tenant that laid root down
 * would get one that it may stop. Its groups are those of the first process, where that still is. */
static int drop_rights(int pidfd, const struct bh_lease_start *start, struct bh_err *err)
{
    BH_AUTOFREE gid_t *groups = bh_alloc(GROUPS_MAX, sizeof(*groups));
    struct identity who = {.groups = groups};
    int rc = read_identity(start->root_pid, &who, err);
    const bool there = is_there(pidfd); /* after the look */
    if (start->adopted)
        who.uid = start->uid;
    if (!there && start->adopted)
        rc = become_user(who.uid, err);
    else if (rc == BH_OK)
        rc = become(&who, err);
    if (rc == BH_OK)
        rc = keep_few_rights(err);
    return rc;
}

/* ---- with whom ---- */

static void *end_with_launcher(void *arg)
{
    const int root = (int)(intptr_t)arg;
    struct pollfd at = {.fd = BH_LEASE_SOCKET, .events = POLLRDHUP};
    while (poll(&at, 1, -1) < 0 && errno == EINTR) {
    }
    (void)syscall(SYS_pidfd_send_signal, root, SIGKILL, NULL, 0); /* one that has ended hears nothing */
    return NULL;
}

/* The kernel forgets to end a command with its launcher once the command has changed its user. A thread, because the gate
 * may be waiting for the driver. It is given the number and no place where that stands: a launcher that has heard of the end goes
 * while this process is ending, and then there is nothing of main's any more. */
static int follow_launcher(int root, struct bh_err *err)
{
    pthread_t thread;
    pthread_attr_t small;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, FOLLOWER_STACK);
    (void)pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the gate's to hold back */
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, never followed */
    const int rc = pthread_create(&thread, &small, end_with_launcher, (void *)(intptr_t)root);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&small);
    return rc ? bh_fail(err, BH_SYSTEM, "the warden: a thread: %s", strerrordesc_np(rc)) : BH_OK;
}

/* ---- where ---- */

/* What is meant for the command is not meant for who holds it. A duplicate is held for each file of the driver that a tenant
 * has open; the journal is a large file, if an empty one; the time is that of all the lease's calls. */
static void raise_limits(void)
{
    bh_limits_raise();
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* One heap for all threads, and vectors that have grown apart from it, where they can grow on without leaving holes. */
static void keep_memory_small(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, 32 << 10);
    (void)mallopt(M_TOP_PAD, 4 << 10);
}

static int leave_launcher(struct bh_err *err)
{
    sigset_t none;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return fail_errno(err, "/dev/null");
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null, fd) < 0)
            return fail_errno(err, "dup2");
    if (close_range(BH_LEASE_SOCKET + 1, UINT_MAX, 0) < 0 || chdir("/") < 0)
        return fail_errno(err, "closing what is the launcher's");
    (void)setsid(); /* fails only for one that leads a group: then there is none to leave */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    raise_limits();
    return BH_OK;
}

/* ---- the lease ---- */

/* The connection to the governor, which the launcher has sent behind the lease: waited for, but not for ever. One that goes
 * on can do without until it has another. */
static int receive_governor(const struct bh_lease_start *start, struct bh_link_config *ret,
                            struct bh_err *err)
{
    struct pollfd at = {.fd = BH_LEASE_SOCKET, .events = POLLIN};
    struct bh_lease_given given;
    int fds[BH_FDS_MAX];
    size_t n = 0;
    ret->share = start->share;
    ret->governor = -1;
    ret->version = 0;
    ret->launcher = BH_LEASE_SOCKET;
    ret->share.name[sizeof(ret->share.name) - 1] = '\0';
    const ssize_t got = poll(&at, 1, GIVEN_MS) == 1
                            ? bh_fds_recv_some(BH_LEASE_SOCKET, &given, sizeof(given), fds, &n, err)
                            : 0;
    if (got == (ssize_t)sizeof(given) && given.code == 0 && n == 1) {
        ret->governor = fds[0];
        ret->version = given.version;
        return BH_OK;
    }
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    return start->adopted ? BH_OK
                          : bh_fail(err, BH_SYSTEM, "the warden: no connection to the governor came along");
}

/* Where the tenant's processes say what they do; without it they are not heard, and nothing else. */
static int receive_probe(const struct bh_lease_start *start, struct bh_link_config *ret, struct bh_err *err)
{
    char byte;
    ret->probe = -1;
    return start->flags & BH_LEASE_HAS_PROBE ? bh_fds_recv(BH_LEASE_SOCKET, &byte, 1, &ret->probe, 1, err)
                                             : BH_OK;
}

static int prepare(struct bh_gate_config *config, struct bh_link_config *link, int fds[BH_LEASE_FDS],
                   struct bh_err *err)
{
    struct bh_lease_start start;
    int rc = bh_fds_recv(BH_LEASE_SOCKET, &start, sizeof(start), fds, BH_LEASE_FDS, err);
    if (rc < 0)
        return bh_wrap(err, rc, "the warden");
    rc = bh_start_take(&start, err);
    if (rc < 0)
        return rc;
    *config = (struct bh_gate_config){.listener = fds[BH_LEASE_LISTENER],
                                      .root = fds[BH_LEASE_ROOT],
                                      .root_pid = start.root_pid,
                                      .cap_bytes = start.cap_bytes,
                                      .tick_ms = start.tick_ms,
                                      .view = start.view,
                                      .rdma = (start.flags & BH_LEASE_RDMA) != 0,
                                      .journal = fds[BH_LEASE_JOURNAL],
                                      .adopted = start.adopted != 0,
                                      .driver = bh_driver_here()};
    char version[32];
    rc = receive_probe(&start, link, err);
    if (rc == BH_OK && start.share.weight) {
        rc = receive_governor(&start, link, err);
        config->governed = link;
    }
    if (rc == BH_OK)
        rc = config->driver->check(version, err);
    /* Where a lease goes on it held already. */
    if (rc == BH_OK && !config->adopted)
        rc = bh_selftest(config->driver, version, err);
    if (rc == BH_OK)
        rc = drop_rights(config->root, &start, err);
    if (rc == BH_OK && start.flags & BH_LEASE_ENDS_WITH_LAUNCHER)
        rc = follow_launcher(config->root, err);
    return rc;
}

static int answer(int code, const char *text)
{
    struct bh_lease_answer a = {.code = code, .uid = geteuid()};
    (void)snprintf(a.text, sizeof(a.text), "%s", text);
    return bh_fds_send(BH_LEASE_SOCKET, &a, sizeof(a), NULL, 0, NULL);
}

/* A launcher that is gone is somebody else's matter here. */
static void tell_ready(void *arg)
{
    bool *told = arg;
    *told = true;
    (void)!answer(0, "");
}

/* Nobody may be there to hear it any more; the lease is over all the same. */
static void report(int code, const struct bh_gate_stats *s, const char *text)
{
    struct bh_lease_end end = {.code = code,
                               .seen = s->seen,
                               .emulated = s->emulated,
                               .continued = s->continued,
                               .refused_memory = s->refused_memory,
                               .denied = s->denied,
                               .checks = s->checks,
                               .killed = s->killed,
                               .peak_bytes = s->peak_bytes,
                               .no_room = s->no_room,
                               .slices_set = s->slices_set,
                               .tampered = s->tampered,
                               .governors = s->governors};
    (void)snprintf(end.why_killed, sizeof(end.why_killed), "%s", s->why_killed);
    (void)snprintf(end.text, sizeof(end.text), "%s", text);
    (void)!bh_fds_send(BH_LEASE_SOCKET, &end, sizeof(end), NULL, 0, NULL);
}

int main(void)
{
    struct bh_gate_config config;
    struct bh_link_config link;
    struct bh_gate_stats stats = {0};
    struct bh_err err = {0};
    bool told = false;
    int fds[BH_LEASE_FDS];
    keep_memory_small();
    if (fcntl(BH_LEASE_SOCKET, F_SETFD, FD_CLOEXEC) < 0) {
        fputs("bulkhead-warden is started by bulkhead run, not by hand\n", stderr);
        return bh_code_exit(BH_USAGE);
    }
    int rc = leave_launcher(&err);
    if (rc == BH_OK)
        rc = prepare(&config, &link, fds, &err);
    if (rc == BH_OK) {
        config.ready = tell_ready;
        config.ready_arg = &told;
        rc = bh_gate_serve(&config, &stats, &err);
    }
    if (told)
        report(rc, &stats, rc < 0 ? err.msg : "");
    else
        (void)!answer(rc, err.msg);
    return rc < 0 ? bh_code_exit(rc) : 0;
}
