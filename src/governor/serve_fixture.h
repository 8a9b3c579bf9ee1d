/* SPDX-License-Identifier: Apache-2.0 */
/* serve_fixture.h - a governor over a card that is played, its clock, and connections to it. */
#ifndef BH_GOVERNOR_SERVE_FIXTURE_H
#define BH_GOVERNOR_SERVE_FIXTURE_H

#include "governor/driver_fixture.h"
#include "governor/serve.h"

#include <string.h>
#include <sys/socket.h>

#define MS UINT64_C(1000000)

static struct fake fake;
static struct bh_serve *s;
static uint64_t now;

/* The driver is the played one, whatever the configuration says. */
static inline bool begin_with(struct bh_serve_config config)
{
    memset(&fake, 0, sizeof(fake));
    config.driver = &fake_driver;
    config.self = &fake;
    now = fake.now_ns = 10000 * MS;
    return bh_serve_new(&config, &s, NULL) == BH_OK;
}

/* Our end of a connection; the other is the governor's. */
static inline int dial(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    return bh_serve_connect(s, pair[1], NULL) == BH_OK ? pair[0] : -1;
}

static inline void work(uint64_t ns)
{
    for (const uint64_t until = now + ns; now < until; now += 5 * MS) {
        fake_advance(&fake, 5 * MS);
        bh_serve_round(s, now);
    }
}

static inline bool say(int fd, const void *m, size_t n)
{
    const bool sent = send(fd, m, n, MSG_NOSIGNAL) == (ssize_t)n;
    bh_serve_round(s, now);
    return sent;
}

#endif
