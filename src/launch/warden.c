/* SPDX-License-Identifier: Apache-2.0 */
/* warden.c - starts a bulkhead-warden with its end of a connection, and hears what it says. */
#include "launch/warden.h"

#include "base/mem.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOT_RUN = 126 };

/* ---- what it takes ---- */

int bh_warden_rights(const char *verb, struct bh_err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    static const struct {
        unsigned number;
        const char *name;
    } needed[] = {{CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}, {CAP_KILL, "CAP_KILL"}};
    if (syscall(SYS_capget, &head, data) < 0)
        return bh_fail(err, BH_SYSTEM, "capget: %s", strerrordesc_np(errno));
    for (size_t i = 0; i < BH_COUNT_OF(needed); i++)
        if (!(data[0].effective & 1u << needed[i].number))
            return bh_fail(err, BH_DENIED,
                           "%s needs root: a warden looks into the processes it holds and ends them "
                           "(CAP_SYS_PTRACE, CAP_KILL); user %u has no %s here; try sudo",
                           verb, (unsigned)geteuid(), needed[i].name);
    return BH_OK;
}

/* A program of ours: in its own folder of a build, or where all of them are installed. */
static int find_program(const char *name, const char *built, char *ret, size_t size, struct bh_err *err)
{
    /* src/cli/bulkhead in a build folder, bin/bulkhead or libexec/bulkhead/bulkhead-keeper when installed: two steps up. */
    const char *const places[] = {built, "libexec/bulkhead", "libexec", "lib/bulkhead", "bulkhead"};
    char base[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", base, sizeof(base) - 1);
    base[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(base, '/');
        if (slash)
            *slash = '\0';
    }
    for (size_t i = 0; i < BH_COUNT_OF(places); i++) {
        const int len = snprintf(ret, size, "%s/%s/%s", base, places[i], name);
        if (len > 0 && (size_t)len < size && access(ret, X_OK) == 0)
            return BH_OK;
    }
    return bh_fail(err, BH_NOT_FOUND,
                   "no %s beside this program: looked in %s, libexec/bulkhead, libexec, "
                   "lib/bulkhead and bulkhead below '%.200s'; install both from one package",
                   name, built, base);
}

int bh_warden_find(char *ret, size_t size, struct bh_err *err)
{
    return find_program("bulkhead-warden", "warden", ret, size, err);
}

int bh_governor_program(char *ret, size_t size, struct bh_err *err)
{
    return find_program("bulkhead-governor", "governor", ret, size, err);
}

int bh_keeper_program(char *ret, size_t size, struct bh_err *err)
{
    return find_program("bulkhead-keeper", "keeper", ret, size, err);
}

int bh_scrub_program(char *ret, size_t size, struct bh_err *err)
{
    return find_program("bulkhead-scrub", "scrub", ret, size, err);
}

int bh_oci_program(char *ret, size_t size, struct bh_err *err)
{
    return find_program("bulkhead-oci", "oci", ret, size, err);
}

int bh_audit_program(char *ret, size_t size, struct bh_err *err)
{
    return find_program("bulkhead-audit", "store", ret, size, err);
}

int bh_warden_journal(int *ret_fd, struct bh_err *err)
{
    *ret_fd = memfd_create("bulkhead-journal", MFD_CLOEXEC);
    return *ret_fd < 0 ? bh_fail(err, BH_SYSTEM, "memfd_create: %s", strerrordesc_np(errno)) : BH_OK;
}

int64_t bh_warden_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t bh_warden_left_ms(int64_t until_ms)
{
    const int64_t left = until_ms - bh_warden_now_ms();
    return left > 0 ? left : 0;
}

bool bh_warden_may_follow(struct bh_warden_followers *f, int64_t now_ms)
{
    size_t oldest = 0;
    for (size_t i = 1; i < BH_WARDEN_FOLLOWERS; i++)
        if (f->at_ms[i] < f->at_ms[oldest])
            oldest = i;
    if (f->at_ms[oldest] && now_ms - f->at_ms[oldest] < BH_WARDEN_FOLLOWERS_MS)
        return false;
    f->at_ms[oldest] = now_ms;
    return true;
}

/* ---- one of them ---- */

static _Noreturn void be_warden(const void *arg, int to_parent)
{
    const char *program = arg;
    char name[] = "bulkhead-warden", *argv[] = {name, NULL};
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    /* dup2 of a descriptor to itself would leave it to be closed. */
    if (to_parent == BH_LEASE_SOCKET ? fcntl(to_parent, F_SETFD, 0) == 0
                                     : dup2(to_parent, BH_LEASE_SOCKET) >= 0)
        execv(program, argv);
    struct bh_lease_answer answer = {.code = BH_SYSTEM};
    (void)snprintf(answer.text, sizeof(answer.text), "'%.200s': %s", program, strerrordesc_np(errno));
    (void)!bh_fds_send(to_parent, &answer, sizeof(answer), NULL, 0, NULL);
    _exit(NOT_RUN);
}

int bh_warden_start(const char *program, struct bh_child *ret, struct bh_err *err)
{
    return bh_child_start(be_warden, program, ret, err);
}

void bh_warden_hand_over(const struct bh_child *w, const struct bh_lease_start *start,
                         const int fds[BH_LEASE_FDS])
{
    /* One that is gone already has said why, if it could: that answer is the better message, and is heard later. */
    (void)!bh_fds_send(w->fd, start, sizeof(*start), fds, BH_LEASE_FDS, NULL);
}

void bh_warden_give_probe(const struct bh_child *w, int probe)
{
    (void)!bh_fds_send(w->fd, "", 1, &probe, 1, NULL);
}

int bh_warden_ready(const struct bh_child *w, struct bh_lease_start *start, bool *ret_died,
                    struct bh_err *err)
{
    return bh_child_answer(w, "the warden", start ? &start->uid : NULL, ret_died, err);
}

bool bh_warden_end(struct bh_child *w, struct bh_lease_end *ret, int *ret_status)
{
    const bool ended = bh_fds_recv(w->fd, ret, sizeof(*ret), NULL, 0, NULL) == BH_OK;
    *ret_status = bh_child_reap(w);
    if (!ended)
        return false;
    ret->text[sizeof(ret->text) - 1] = '\0';
    ret->why_killed[sizeof(ret->why_killed) - 1] = '\0';
    return true;
}

void bh_warden_give(const struct bh_child *w, int governor, uint32_t version, const struct bh_err *why)
{
    /* 0 would be one from before an upgrade, which hears no news */
    struct bh_lease_given given = {.code = governor < 0 ? (int32_t)why->code : 0,
                                   .version = version ? version : UINT32_MAX};
    if (governor < 0)
        memcpy(given.text, why->msg, sizeof(given.text));
    (void)!bh_fds_send(w->fd, &given, sizeof(given), &governor, governor < 0 ? 0 : 1, NULL);
}

bool bh_warden_asks(const struct bh_child *w, struct bh_lease_ask *ret)
{
    if (recv(w->fd, ret, sizeof(*ret), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT) != (ssize_t)sizeof(*ret))
        return false;
    return bh_fds_recv(w->fd, ret, sizeof(*ret), NULL, 0, NULL) == BH_OK;
}

pid_t bh_warden_kill(struct bh_child *w)
{
    const pid_t pid = w->pid;
    if (pid == 0)
        return 0;
    (void)kill(pid, SIGKILL);
    bh_child_close(w);
    w->pid = 0;
    return waitpid(pid, NULL, WNOHANG) == 0 ? pid : 0;
}

const char *bh_warden_no_room(const struct bh_lease_end *end, struct bh_warden_room *ret)
{
    (void)snprintf(ret->text, sizeof(ret->text),
                   "%llu calls failed because the warden could open no more files: raise the hard limit "
                   "(ulimit -Hn)",
                   (unsigned long long)end->no_room);
    return ret->text;
}

const char *bh_warden_how(int status, struct bh_warden_how *ret)
{
    if (WIFSIGNALED(status))
        (void)snprintf(ret->text, sizeof(ret->text), "was killed by signal %d", WTERMSIG(status));
    else
        (void)snprintf(ret->text, sizeof(ret->text), "ended with status %d", WEXITSTATUS(status));
    return ret->text;
}
