/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_fixture.h - a lease whose share is held, with a governor and a launcher that the test plays in threads of its own.
 */
#ifndef BH_WARDEN_LINK_FIXTURE_H
#define BH_WARDEN_LINK_FIXTURE_H

#include "warden/gate_fixture.h"
#include "warden/link.h"
#include "wire/fds.h"
#include "wire/govern.h"

#include <poll.h>

enum { T_GROUP = 0x5c000010, T_CHANNEL = 0x5c000020, T_SUB = 0x5c000002, LEASE_NUMBER = 4242 };

/* ---- what a tenant does ---- */

static inline uint32_t tenant_control(int fd, uint32_t object, uint32_t command, void *params, size_t n)
{
    struct rm_control a = {.client = T_CLIENT,
                           .object = object,
                           .command = command,
                           .params = (uintptr_t)params,
                           .params_size = (uint32_t)n};
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(a)), &a) == 0);
    HOLDS(a.params == (uintptr_t)params && a.params_size == n); /* its own, not ours */
    return a.status;
}

/* A group with two channels. */
static inline int tenant_group(void)
{
    uint8_t group[20] = {0}, schedule[3] = {1};
    uint32_t number = 0;
    const int fd = tenant_open(T_CLIENT);
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV, T_SUB, RM_CLASS_SUBDEVICE, &number, 0) == RM_OK);
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV, T_GROUP, RM_CLASS_CHANNEL_GROUP, group, 0) == RM_OK);
    for (uint32_t i = 0; i < 2; i++)
        HOLDS(sim_alloc(fd, T_CLIENT, T_GROUP, T_CHANNEL + i, RM_CLASS_CHANNEL_HOPPER, NULL, 0) == RM_OK);
    HOLDS(tenant_control(fd, T_GROUP, RM_CTRL_GROUP_SCHEDULE, schedule, sizeof(schedule)) == RM_OK);
    return fd;
}

static inline uint64_t tenant_slice(int fd)
{
    uint64_t us = 0;
    HOLDS(tenant_control(fd, T_GROUP, RM_CTRL_GROUP_GET_TIMESLICE, &us, sizeof(us)) == RM_OK);
    return us;
}

static inline void tenant_until_slice(int fd, uint64_t us)
{
    for (int i = 0; i < 5000 && tenant_slice(fd) != us; i++)
        (void)usleep(1000);
    HOLDS(tenant_slice(fd) == us);
}

/* The test has come so far. */
static inline void tenant_await(uint64_t step)
{
    for (int i = 0; i < 10000 && shared->number[0] < step; i++)
        (void)usleep(1000);
    HOLDS(shared->number[0] >= step);
}

/* ---- the other ends ---- */

union said {
    uint32_t op;
    struct bh_govern_join join;
    struct bh_govern_channels channels;
    struct bh_govern_tampered tampered;
    struct bh_govern_pids pids;
    struct bh_govern_own own;
};

static int lease_probe = -1; /* where the next lease's processes say what they do; stays open */
static int beating = -1;     /* a governor that lives, where the test does not say otherwise */
static inline void answer_join(int fd, int32_t code, const char *text)
{
    struct bh_govern_answer a = {.op = BH_GOVERN_ANSWER, .code = code, .lease = LEASE_NUMBER};
    (void)snprintf(a.text, sizeof(a.text), "%s", text);
    (void)send(fd, &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT);
    beating = code ? -1 : fd;
}

/* Not at each message: there may be thousands. */
static inline void beat(void)
{
    static int64_t last_ms;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t now_ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (beating < 0 || now_ms - last_ms < BH_GOVERN_BEAT_MS)
        return;
    last_ms = now_ms;
    answer_join(beating, 0, "");
}

/* The next message that is not about processes, of which the last is kept; 0: it hung up, or nothing came for long. */
static struct bh_govern_pids heard_pids;
static inline size_t hear_link(int fd, union said *ret)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    for (int i = 0; i < 200; i++) {
        memset(ret, 0, sizeof(*ret));
        beat();
        if (poll(&at, 1, 100) != 1)
            continue;
        const ssize_t n = recv(fd, ret, sizeof(*ret), 0);
        if (n != (ssize_t)sizeof(ret->pids) || ret->op != BH_GOVERN_PIDS)
            return n > 0 ? (size_t)n : 0;
        heard_pids = ret->pids;
    }
    return 0;
}

/* Passes over what is not of this kind. */
static inline bool hear_op(int fd, uint32_t op, union said *ret)
{
    while (hear_link(fd, ret))
        if (ret->op == op)
            return true;
    return false;
}

static inline void order_slice(int fd, uint32_t us)
{
    const struct bh_govern_slice s = {.op = BH_GOVERN_SLICE, .gpu = 0, .slice_us = us, .level = 1};
    (void)send(fd, &s, sizeof(s), MSG_NOSIGNAL);
}

static uint32_t given_version;        /* what the launcher says of governors */
static struct bh_lease_ask given_ask; /* and what it was last asked */

/* Heard a question for another governor, and gives one; the test's end of it, or -1. */
static inline int give_another(int launcher)
{
    struct pollfd at = {.fd = launcher, .events = POLLIN};
    struct bh_lease_given given = {.version = given_version};
    int pair[2];
    if (poll(&at, 1, 20000) != 1 ||
        recv(launcher, &given_ask, sizeof(given_ask), MSG_TRUNC) != (ssize_t)sizeof(given_ask) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    if (bh_fds_send(launcher, &given, sizeof(given), &pair[1], 1, NULL) < 0)
        return -1;
    close(pair[1]);
    return pair[0];
}

struct governed {
    int governor, launcher; /* the test's ends */
    const char *why;        /* NULL: all was as it should be */
};
typedef void play_fn(struct governed *g);
static play_fn *play;

/* Of the test's thread: it goes no further when it does not hold. */
#define PLAYS(e)                            \
    do {                                    \
        if (!(e)) {                         \
            g->why = #e;                    \
            shared->number[0] = UINT32_MAX; \
            return;                         \
        }                                   \
    } while (0)

static inline void *play_main(void *arg)
{
    play(arg);
    return NULL;
}

/* As lease() of gate_fixture.h. */
static inline int governed_lease(tenant_fn *fn, play_fn *with, struct bh_gate_stats *ret, struct bh_err *err)
{
    struct leased l;
    struct governed g = {0};
    int to_governor[2], to_launcher[2], status;
    pthread_t thread;
    if (!lease_begin(fn, &l) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, to_governor) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, to_launcher) < 0)
        return -1;
    g.governor = to_governor[0];
    g.launcher = to_launcher[0];
    play = with;
    beating = -1;
    if (pthread_create(&thread, NULL, play_main, &g) != 0)
        return -1;
    const struct bh_link_config link = {
        .probe = lease_probe,
        .share = {.weight = 30, .cap_permille = 250, .floor_permille = 50, .name = "it"},
        .governor = to_governor[1],
        .version = given_version,
        .launcher = to_launcher[1]};
    const struct bh_gate_config config = {.listener = l.listener,
                                          .root = l.root,
                                          .root_pid = (uint32_t)l.tenant,
                                          .cap_bytes = BH_GIB,
                                          .tick_ms = 5,
                                          .view = lease_view,
                                          .journal = -1,
                                          .governed = &link,
                                          .driver = &bh_driver_simulated};
    const int rc = bh_gate_serve(&config, ret, err);
    close(l.listener);
    close(l.root);
    close(to_launcher[1]);
    (void)pthread_join(thread, NULL);
    close(g.governor);
    close(g.launcher);
    (void)waitpid(l.launcher, &status, 0);
    if (g.why)
        printf("# the governor's side: %s\n", g.why);
    if (shared->line)
        printf("# tenant failed in line %d\n", shared->line);
    return rc < 0 ? rc : g.why ? 99 : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
