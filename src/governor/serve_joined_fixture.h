/* SPDX-License-Identifier: Apache-2.0 */
/* serve_joined_fixture.h - leases with one channel each, and orders, at the governor of serve_fixture.h. */
#ifndef BH_GOVERNOR_SERVE_JOINED_FIXTURE_H
#define BH_GOVERNOR_SERVE_JOINED_FIXTURE_H

#include "governor/serve_fixture.h"

#include <stdio.h>

static inline bool begin(void)
{
    return begin_with((struct bh_serve_config){.listener = -1, .stop = -1});
}

static inline int answered(int fd)
{
    struct bh_govern_answer a = {0};
    return recv(fd, &a, sizeof(a), MSG_DONTWAIT) == sizeof(a) && a.op == BH_GOVERN_ANSWER ? a.code : 1;
}

/* lease: the number of one that comes back; 0: a new one. */
static inline int comes(uint32_t pid, const char *name, uint64_t lease)
{
    struct bh_govern_join j = {.op = BH_GOVERN_JOIN,
                               .version = BH_GOVERN_WIRE_VERSION,
                               .root_pid = pid,
                               .weight = 10,
                               .lease = lease};
    const struct bh_govern_channels m = {
        .op = BH_GOVERN_HAS, .pid = pid, .client = pid, .n = 1, .names = {1}};
    (void)snprintf(j.name, sizeof(j.name), "%s", name);
    (void)fake_make(&fake, 0, pid, (struct bh_driver_channel){pid, 1});
    fake_pid(&fake, pid)->busy = true;
    const int fd = dial();
    return fd >= 0 && say(fd, &j, sizeof(j)) && answered(fd) == BH_OK && say(fd, &m, sizeof(m)) ? fd : -1;
}

static inline int joins(uint32_t pid, const char *name)
{
    return comes(pid, name, 0);
}

static inline int comes_back(uint32_t pid, const char *name)
{
    return comes(pid, name, pid);
}

static inline struct bh_govern_order order_of(uint32_t what, const char *name)
{
    struct bh_govern_order o = {.op = BH_GOVERN_ORDER, .version = BH_GOVERN_WIRE_VERSION, .what = what};
    (void)snprintf(o.name, sizeof(o.name), "%s", name);
    return o;
}

static inline int orders(int fd, uint32_t what, const char *name)
{
    const struct bh_govern_order o = order_of(what, name);
    return say(fd, &o, sizeof(o)) ? answered(fd) : 1;
}

#endif
