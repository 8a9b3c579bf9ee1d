/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.c - tier container: an OCI runtime is given a bundle, and the listener of its filter comes here.
 *
 * `RUNTIME run --bundle B ID` stays for as long as the container does, and its end is the container's. Without a gate nobody
 * listens. A container that cannot be held does not run: it is deleted.
 *
 * Tier external is the same without a runtime of ours: some engine starts a container with the lease's CDI file, whose hook puts
 * it into the lease's cgroup, and its listener comes here. The first one is the lease's work; the lease ends with it.
 */
#include "base/mem.h"
#include "base/units.h"
#include "keeper/keeper.h"
#include "launch/adopt.h"
#include "launch/governor.h"
#include "launch/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    VERB_MS = 10000,
    ACCOUNT_MS = 10000,
    LISTENER_MS = 60000,
    LISTENER_MOST_S = 86400,
    GONE_MS = 1000,
    NOT_RUN = 127,
    WORDS_MAX = 8
};

/* The keeper's `tier`. */
struct container {
    pid_t runtime; /* 0: it has ended */
    int pidfd;
    int status;       /* of the runtime, once it has ended */
    bool came;        /* its listener: it may have run */
    bool asked;       /* what was sent by now was taken, and its listener was not among it */
    bool late;        /* its listener did not come in time: it was deleted, its runtime is about to end */
    bool held;        /* the warden serves it */
    int64_t until_ms; /* how long its listener is waited for; and once the runtime has ended, the account */
    struct bh_probe_place probe;
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* In which a runtime has its container begin. */
static uint32_t listener_ms(void)
{
    uint64_t s = 0;
    const char *told = secure_getenv("BULKHEAD_CONTAINER_TIMEOUT");
    return told && bh_uint_parse(told, LISTENER_MOST_S, &s, NULL) == BH_OK && s ? (uint32_t)s * 1000
                                                                                : LISTENER_MS;
}

/* ---- the runtime ---- */

/* The program and its options, then these words. */
static _Noreturn void be_runtime(const struct bh_keeper *k, const char *const *words, const int stdio[3])
{
    const char *argv[BH_KEEPER_LIST_MAX + WORDS_MAX + 1];
    size_t n = 0;
    sigset_t none;
    for (const char *const *w = k->spec.runtime; *w; w++)
        argv[n++] = *w;
    for (const char *const *w = words; *w; w++)
        argv[n++] = *w;
    argv[n] = NULL;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid();
    char **as_exec_wants_it;
    const char **given = argv;
    memcpy(&as_exec_wants_it, &given, sizeof(given));
    if (dup2(stdio[0], 0) >= 0 && dup2(stdio[1], 1) >= 0 && dup2(stdio[2], 2) >= 0)
        execvp(as_exec_wants_it[0], as_exec_wants_it);
    (void)dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerrordesc_np(errno));
    _exit(NOT_RUN);
}

static int start_runtime(struct bh_keeper *k, struct bh_err *err)
{
    struct container *it = k->tier;
    const char *const words[] = {"run", "--bundle", k->spec.bundle, k->spec.container, NULL};
    it->runtime = fork();
    if (it->runtime == 0)
        be_runtime(k, words, k->stdio);
    if (it->runtime < 0) {
        it->runtime = 0;
        return bh_fail(err, BH_SYSTEM, "fork: %s", strerrordesc_np(errno));
    }
    it->pidfd = (int)syscall(SYS_pidfd_open, it->runtime, 0);
    if (it->pidfd < 0 || !bh_keeper_listen_to(k, it->pidfd))
        return bh_fail(err, BH_SYSTEM, "pidfd_open: %s", strerrordesc_np(errno));
    for (int i = 0; i < 3; i++) {
        close(k->stdio[i]);
        k->stdio[i] = -1;
    }
    return BH_OK;
}

/* `RUNTIME VERB ... ID`, to its end; one that hangs is ended. */
static void tell_runtime(struct bh_keeper *k, const char *verb, const char *option, const char *after)
{
    const char *words[WORDS_MAX] = {verb};
    size_t n = 1;
    if (option)
        words[n++] = option;
    words[n++] = k->spec.container;
    if (after)
        words[n++] = after;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int stdio[3] = {null, null, k->log >= 0 ? k->log : null};
    const pid_t pid = fork();
    if (pid == 0)
        be_runtime(k, words, stdio);
    const int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    struct pollfd at = {.fd = fd, .events = POLLIN};
    if (fd >= 0 && poll(&at, 1, VERB_MS) != 1) {
        bh_keeper_say(k, "the container runtime does not answer");
        (void)kill(pid, SIGKILL);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    if (fd >= 0)
        close(fd);
    if (null >= 0)
        close(null);
}

/* ---- orders ---- */

static void signal_work(struct bh_keeper *k, int number)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%d", number);
    tell_runtime(k, "kill", NULL, text);
}

static void terminate(struct bh_keeper *k)
{
    tell_runtime(k, "kill", NULL, "TERM");
}

static void kill_it(struct bh_keeper *k)
{
    tell_runtime(k, "delete", "--force", NULL);
    bh_keeper_empty(k);
}

/* ---- hearing ---- */

/* Has the runtime ended? Then so has the container, and what is left of it goes. */
static void look(struct bh_keeper *k)
{
    struct container *it = k->tier;
    if (it->runtime == 0 || waitpid(it->runtime, &it->status, WNOHANG) != it->runtime)
        return;
    close(it->pidfd);
    it->runtime = 0;
    k->work = 0;
    kill_it(k);
    it->until_ms = now_ms() + ACCOUNT_MS;
    bh_keeper_set_timer(k, ACCOUNT_MS);
}

static int look_at_times(struct bh_keeper *k, struct bh_err *err)
{
    const struct container *it = k->tier;
    const bool over = now_ms() >= it->until_ms;
    if (it->came)
        return it->runtime == 0 && over ? bh_fail(err, BH_BUSY, "the warden gives no account") : BH_OK;
    if (it->runtime == 0 && !it->late)
        return bh_fail(err, BH_REFUSED,
                       "the container runtime ended before the container was held; err has its words");
    return it->runtime == 0 || over
               ? bh_fail(err, BH_REFUSED, "no listener came: the bundle lacks the lease's seccomp profile")
               : BH_OK;
}

/*
 * Whether one whose listener did not come has begun is not said before all that was sent is taken: who had no processor for a while
 * finds the listener, the end of its time, the end of its runtime and an order to stop it all at once. And it is said of one
 * that is gone, for until then it could send.
 */
static int be_sure(struct bh_keeper *k, int rc)
{
    struct container *it = k->tier;
    if (rc >= 0 || it->came)
        return rc;
    if (it->late && it->runtime && now_ms() < it->until_ms)
        return BH_OK;
    if (!it->asked) {
        it->asked = true;
        return BH_NOT_FOUND;
    }
    if (it->late || it->runtime == 0)
        return rc;
    it->late = true;
    it->asked = false;
    it->until_ms = now_ms() + VERB_MS;
    kill_it(k);
    bh_keeper_set_timer(k, VERB_MS);
    return BH_OK;
}

static int hear(void *arg, struct bh_err *err)
{
    struct bh_keeper *k = arg;
    int rc = bh_keeper_hear(k, err);
    if (rc == BH_OK)
        rc = look_at_times(k, err);
    return be_sure(k, rc);
}

static int listening(void *arg, struct bh_err *err)
{
    struct bh_keeper *k = arg;
    struct container *it = k->tier;
    int rc = bh_keeper_hear(k, err);
    if (rc == BH_OK)
        rc = bh_keeper_begin(k, err);
    it->until_ms = now_ms() + listener_ms();
    bh_keeper_set_timer(k, listener_ms());
    return rc < 0 ? rc : start_runtime(k, err);
}

static void came(void *arg)
{
    struct bh_keeper *k = arg;
    struct container *it = k->tier;
    it->came = true;
    if (it->runtime)
        bh_keeper_set_timer(k, 0);
}

static void held(void *arg, pid_t pid)
{
    struct bh_keeper *k = arg;
    struct container *it = k->tier;
    it->held = true;
    bh_keeper_runs(k, pid);
}

static void ended(void *arg, const struct bh_lease_end *end)
{
    bh_keeper_take_account(arg, end);
}

static void tell(void *arg, const char *line)
{
    bh_keeper_say(arg, line);
}

/* ---- both ways ---- */

/* The governor first, as for a process: a container whose share is not held is not started. */
static int find_governor(struct bh_keeper *k, struct bh_adopt_keep *ret, struct bh_err *err)
{
    struct bh_child seeker = {.fd = -1};
    int rc = k->spec.share.weight ? bh_governor_seek(&seeker, err) : BH_OK;
    if (rc < 0 || !k->spec.share.weight)
        return rc;
    for (;;) {
        struct pollfd at[2] = {{.fd = seeker.fd, .events = POLLIN}, {.fd = k->epoll, .events = POLLIN}};
        (void)poll(at, 2, -1);
        if (at[0].revents)
            return bh_governor_found(&seeker, &ret->governor, &ret->version, err);
        rc = bh_keeper_hear(k, err);
        if (rc < 0) {
            (void)kill(seeker.pid, SIGKILL);
            (void)bh_child_reap(&seeker);
            return rc;
        }
    }
}

typedef int (*ask_fn)(void *arg, struct bh_err *err);

static int run_held(struct bh_keeper *k, ask_fn hears, ask_fn listens, struct bh_err *err)
{
    struct bh_adopt_keep keep = {.fd = k->epoll,
                                 .share = k->spec.share,
                                 .governor = -1,
                                 .probe = -1,
                                 .hear = hears,
                                 .listening = listens,
                                 .came = came,
                                 .held = held,
                                 .ended = ended};
    struct container *it = k->tier;
    /* What is put into the container must be there before it is, and stays until the lease's end. */
    int rc = k->spec.probe ? bh_probe_open_at(&it->probe, k->spec.probe, err) : BH_OK;
    if (rc == BH_OK)
        rc = find_governor(k, &keep, err);
    if (rc < 0)
        return rc;
    keep.probe = it->probe.fd;
    const struct bh_adopt adopt = {.warden = k->warden,
                                   .socket = k->spec.listener,
                                   .cap_bytes = k->spec.cap_bytes,
                                   .tick_ms = k->spec.tick_ms,
                                   .view = k->spec.view,
                                   .rdma = k->spec.rdma,
                                   .owner = geteuid(),
                                   .once = true,
                                   .tell = tell,
                                   .arg = k,
                                   .keep = &keep};
    return bh_adopt_serve(&adopt, err);
}

static int run_free(struct bh_keeper *k, struct bh_err *err)
{
    struct container *it = k->tier;
    const int rc = listening(k, err);
    bh_keeper_set_timer(k, 0);
    it->held = it->came = rc == BH_OK;
    if (rc == BH_OK)
        bh_keeper_runs(k, it->runtime);
    return rc;
}

/* One that was too quick to be held has ended by itself, and the runtime is about to; any other one must not run. */
static void end_unheld(struct bh_keeper *k)
{
    const struct container *it = k->tier;
    struct pollfd at = {.fd = it->pidfd, .events = POLLIN};
    if (!it->came || poll(&at, 1, GONE_MS) != 1)
        kill_it(k);
}

/* It goes on without a warden: nobody else reads what it says. */
static void wait_alone(struct bh_keeper *k)
{
    const struct container *it = k->tier;
    struct pollfd at = {.fd = k->epoll, .events = POLLIN};
    (void)poll(&at, 1, it->probe.fd >= 0 ? BH_PROBE_DRAIN_MS : -1);
    bh_probe_drain(&it->probe);
    (void)!bh_keeper_hear(k, NULL);
}

int bh_keeper_container(struct bh_keeper *k, struct bh_err *err)
{
    struct container state = {.pidfd = -1, .probe = {.fd = -1}}, *it = &state;
    k->tier = it;
    k->signal = signal_work;
    k->terminate = terminate;
    k->kill = kill_it;
    k->more = look;
    const int rc = k->spec.gate ? run_held(k, hear, listening, err) : run_free(k, err);
    if (rc < 0 && it->held)
        bh_keeper_say(k, err->msg); /* it goes on, or has ended, without an account */
    if (rc < 0 && !it->held && it->runtime)
        end_unheld(k);
    while (it->runtime)
        wait_alone(k);
    bh_probe_close(&it->probe);
    if (!it->came)
        return rc;
    bh_keeper_take_status(k, it->status);
    if (!it->held && !*k->end.why)
        memcpy(k->end.why, err->msg, sizeof(k->end.why));
    return BH_OK;
}

/* ---- somebody else's engine ---- */

static void signal_first(struct bh_keeper *k, int number)
{
    (void)kill(k->work, number);
}

static void terminate_all(struct bh_keeper *k)
{
    struct bh_err err;
    if (bh_cgroup_signal(&k->groups, k->spec.cgroup, SIGTERM, &err) < 0)
        bh_keeper_say(k, err.msg);
}

static int hear_only(void *arg, struct bh_err *err)
{
    struct bh_keeper *k = arg;
    return be_sure(k, bh_keeper_hear(k, err));
}

/* Whoever comes from now on finds a cgroup with the lease's limits. */
static int ready_for_one(void *arg, struct bh_err *err)
{
    struct bh_keeper *k = arg;
    int rc = bh_keeper_hear(k, err);
    if (rc == BH_OK)
        rc = bh_cgroup_make(&k->groups, k->spec.cgroup, err);
    if (rc == BH_OK)
        rc = bh_cgroup_limit(&k->groups, k->spec.cgroup, &k->spec.limits, err);
    return rc == BH_OK ? bh_keeper_begin(k, err) : rc;
}

int bh_keeper_external(struct bh_keeper *k, struct bh_err *err)
{
    struct container state = {.pidfd = -1, .probe = {.fd = -1}};
    k->tier = &state;
    k->signal = signal_first;
    k->terminate = terminate_all;
    k->kill = bh_keeper_empty;
    const int rc = run_held(k, hear_only, ready_for_one, err);
    k->work = 0;
    bh_keeper_empty(k); /* also one that came and could not be held */
    bh_probe_close(&state.probe);
    if (!state.came)
        return rc;
    bh_keeper_take_status(k, 0);
    if (rc < 0 || !*k->end.why)
        (void)snprintf(k->end.why, sizeof(k->end.why), "%s",
                       rc < 0 ? err->msg : "its container ended; its engine knows how");
    return BH_OK;
}
