/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend.c - a lease's memory off the cards and back.
 *
 * A suspension is the driver's own and outlives everybody: so bringing back looks at the processes themselves, whatever the
 * governor remembers. One that is not finished is no suspension: should this process be killed, the guard beside it puts back
 * what was done, and the governor what was held.
 */
#include "launch/suspend.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "launch/child.h"
#include "launch/governor.h"
#include "wire/fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { PIDS_MAX = 4096 }; /* suspended together */

struct pids {
    uint32_t *at;
    size_t n, cap;
};

static bool has_pid(const struct pids *p, uint32_t pid)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->at[i] == pid)
            return true;
    return false;
}

static void add_pid(struct pids *p, uint32_t pid)
{
    if (!has_pid(p, pid))
        *bh_vec_push(p) = pid;
}

/* ---- whose a process is ---- */

/* As the lease's warden knows them: whoever had a file of the driver's, with channels or without, and whoever started it. */
static void known_pids(const struct bh_governor_all *all, struct pids *ret)
{
    for (size_t i = 0; i < all->pids.n; i++)
        add_pid(ret, all->pids.at[i].pid);
    for (size_t i = 0; i < all->rows.n; i++) {
        const struct bh_govern_row *r = &all->rows.at[i];
        for (uint32_t k = 0; k < r->n_pids && k < BH_COUNT_OF(r->pids); k++)
            add_pid(ret, r->pids[k]);
    }
}

static uint32_t parent_of(uint32_t pid)
{
    char path[40], line[256];
    uint64_t parent = 0;
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (bh_str_starts(line, "PPid:\t")) {
            line[strcspn(line, "\n")] = '\0';
            if (bh_uint_parse(line + strlen("PPid:\t"), UINT32_MAX, &parent, NULL) < 0)
                parent = 0;
            break;
        }
    if (f)
        fclose(f);
    return (uint32_t)parent;
}

static bool is_below(uint32_t pid, uint32_t root)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        if (pid == root)
            return true;
        pid = parent_of(pid);
    }
    return false;
}

/* Those that the first process started and that are still its: for a warden that knows less. */
static void pids_below(uint32_t root, struct pids *ret)
{
    DIR *d = opendir("/proc");
    for (const struct dirent *e; d && (e = readdir(d));) {
        uint64_t pid;
        if (bh_uint_parse(e->d_name, UINT32_MAX, &pid, NULL) == BH_OK && pid && is_below((uint32_t)pid, root))
            add_pid(ret, (uint32_t)pid);
    }
    if (d)
        closedir(d);
}

/* ---- the guard ---- */

/* Out of reach of what ends its parent: a terminal, a group, somebody who reads to the end. */
static void be_alone(void)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t all;
    (void)setsid();
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(null, fd);
}

static ssize_t await_message(int fd, void *bytes, size_t max, int fds[BH_FDS_MAX], size_t *ret_n_fds)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    while (poll(&at, 1, -1) < 0 && errno == EINTR) {
    }
    return bh_fds_recv_some(fd, bytes, max, fds, ret_n_fds, NULL);
}

/*
 * Is told who is about to be suspended, with the connection to the governor, and that it is over. Where nobody says so the
 * command is gone, and they are brought back; the governor keeps its hands off meanwhile, for the connection ends
 * with this process.
 */
static _Noreturn void be_guard(const void *arg, int to_parent)
{
    static uint32_t pids[PIDS_MAX];
    int fds[BH_FDS_MAX];
    size_t n_fds;
    char over;
    (void)arg;
    be_alone();
    const ssize_t n = await_message(to_parent, pids, sizeof(pids), fds, &n_fds);
    if (n > 0 && await_message(to_parent, &over, sizeof(over), fds, &n_fds) != (ssize_t)sizeof(over))
        (void)!bh_checkpoint_restore(pids, (size_t)n / sizeof(pids[0]), NULL, NULL);
    _exit(0);
}

static void end_guard(struct bh_child *guard)
{
    (void)!bh_fds_send(guard->fd, "", 1, NULL, 0, NULL);
    (void)bh_child_reap(guard);
}

/* ---- suspend ---- */

/* Those of its processes that use CUDA; running: of them, those that are not suspended yet. */
static int cuda_pids(const char *lease, const struct bh_governor_all *all, struct pids *ret,
                     struct pids *running, struct bh_err *err)
{
    struct pids known = {0};
    known_pids(all, &known);
    BH_AUTOFREE int *states = bh_alloc(known.n + 1, sizeof(*states));
    const int rc = bh_checkpoint_states(known.at, known.n, states, err);
    for (size_t i = 0; rc == BH_OK && i < known.n; i++) {
        if (states[i] != BH_CHECKPOINT_NONE)
            *bh_vec_push(ret) = known.at[i];
        if (states[i] == CU_PROCESS_RUNNING)
            *bh_vec_push(running) = known.at[i];
    }
    bh_vec_fini(&known);
    if (rc < 0)
        return rc;
    if (ret->n > PIDS_MAX)
        return bh_fail(
            err, BH_TOO_LARGE,
            "lease '%.80s' has %zu processes that use CUDA, more than the %d that can be suspended together",
            lease, ret->n, PIDS_MAX);
    return ret->n ? BH_OK
                  : bh_fail(err, BH_NOT_FOUND, "lease '%.80s' has nothing on a GPU that could be suspended",
                            lease);
}

/* The governor resumes what it holds: paused work never ends, and would be waited for. It puts that back where this ends
 * without having been kept. */
static int suspend_held(uint64_t lease, const struct pids *pids, const struct pids *running, int guard,
                        const struct bh_checkpoint_progress *progress, struct bh_err *err)
{
    struct bh_err after;
    uint32_t version;
    int held, rc = bh_governor_hold(lease, &held, &version, err);
    if (rc < 0)
        return rc;
    if (running->n)
        rc = bh_fds_send(guard, running->at, running->n * sizeof(running->at[0]), &held, 1, err);
    if (rc == BH_OK)
        rc = bh_checkpoint_suspend(pids->at, pids->n, progress, err);
    if (rc == BH_OK) {
        rc = bh_governor_keep(held, version, lease, err);
        if (rc < 0 && running->n)
            rc = bh_checkpoint_restore(running->at, running->n, progress, &after) < 0
                     ? bh_wrap(err, rc, "it is suspended and could not be brought back; bulkhead resume")
                     : bh_wrap(err, rc, "all was put back");
    }
    close(held);
    return rc;
}

int bh_suspend(const char *lease, const struct bh_checkpoint_progress *progress, struct bh_err *err)
{
    struct bh_governor_all all = {0};
    struct pids pids = {0}, running = {0};
    struct bh_child guard;
    int rc = bh_governor_find(lease, &all, err);
    if (rc < 0) {
        bh_governor_all_fini(&all);
        return rc;
    }
    /* Before the library is loaded: it does not work in a child of one that has it. */
    rc = bh_child_start(be_guard, NULL, &guard, err);
    if (rc == BH_OK) {
        rc = cuda_pids(lease, &all, &pids, &running, err);
        if (rc == BH_OK)
            rc = suspend_held(all.rows.at[0].lease, &pids, &running, guard.fd, progress, err);
        end_guard(&guard); /* what went wrong is put back, or cannot be */
    }
    bh_vec_fini(&pids);
    bh_vec_fini(&running);
    bh_governor_all_fini(&all);
    return rc;
}

/* ---- resume ---- */

static bool is_known_suspended(const struct bh_governor_all *all)
{
    return all->rows.at[0].state == BH_GOVERN_SHOWN_SUSPENDED;
}

/* Whose memory is on the host. Fails where that cannot be told of one of the lease's; what was found is found all the same. */
static int look_away(const struct bh_governor_all *all, struct pids *add, struct bh_err *err)
{
    struct pids looked = {0};
    struct bh_err why = {0};
    bool untold = false;
    known_pids(all, &looked);
    const size_t n_known = looked.n;
    pids_below(all->rows.at[0].root_pid, &looked);
    BH_AUTOFREE int *states = bh_alloc(looked.n + 1, sizeof(*states));
    const int rc = bh_checkpoint_states(looked.at, looked.n, states, &why);
    /* Where nobody could be suspended nobody is. */
    const bool none_can_be = (rc == BH_NOT_FOUND || rc == BH_REFUSED) && !is_known_suspended(all);
    for (size_t i = 0; i < looked.n; i++) {
        untold |= i < n_known && states[i] == BH_CHECKPOINT_UNTOLD && !none_can_be;
        if (states[i] >= 0 && states[i] != CU_PROCESS_RUNNING)
            add_pid(add, looked.at[i]);
    }
    bh_vec_fini(&looked);
    return untold ? bh_fail(err, why.code, "%s", why.msg) : BH_OK;
}

/* Brings back all that can be. */
static int restore_all(const struct bh_governor_all *all, const struct bh_checkpoint_progress *progress,
                       struct bh_err *err)
{
    struct pids away = {0};
    struct bh_err why = {0};
    const int told = look_away(all, &away, &why);
    int rc = away.n ? bh_checkpoint_restore(away.at, away.n, progress, err) : BH_OK;
    if (rc == BH_OK && told < 0)
        rc = bh_fail(err, why.code, "%s", why.msg);
    bh_vec_fini(&away);
    return rc;
}

/*
 * While it comes back nobody pauses it: the driver waits for it. Somebody who suspends it just now holds it already. Where the
 * governor knows of no suspension and does not answer any more it is brought back all the same: slowly, if at all.
 */
static int restore_held(const struct bh_governor_all *all, const struct bh_checkpoint_progress *progress,
                        struct bh_err *err)
{
    uint32_t version;
    int held = -1, rc = bh_governor_hold(all->rows.at[0].lease, &held, &version, err);
    if (rc == BH_OK || rc == BH_BUSY || !is_known_suspended(all))
        rc = restore_all(all, progress, err);
    if (rc == BH_OK && (held >= 0 || is_known_suspended(all)))
        rc = bh_governor_order(all->rows.at[0].lease, BH_GOVERN_RESUME, err);
    if (held >= 0)
        close(held);
    return rc;
}

/* What is paused needs no library, and does not wait for one. A governor that followed knows of no suspension: one is looked for. */
static int resume_running(const struct bh_governor_all *all, const struct bh_checkpoint_progress *progress,
                          struct bh_err *err)
{
    struct pids away = {0};
    int rc = bh_governor_order(all->rows.at[0].lease, BH_GOVERN_RESUME, err);
    if (rc < 0)
        return rc;
    rc = look_away(all, &away, err);
    if (away.n)
        rc = restore_held(all, progress, err);
    bh_vec_fini(&away);
    return rc;
}

int bh_unsuspend(const char *lease, const struct bh_checkpoint_progress *progress, struct bh_err *err)
{
    struct bh_governor_all all = {0};
    int rc = bh_governor_find(lease, &all, err);
    if (rc == BH_OK)
        rc = is_known_suspended(&all) ? restore_held(&all, progress, err)
                                      : resume_running(&all, progress, err);
    bh_governor_all_fini(&all);
    return rc;
}
