/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm_fixture.h - wardens that come, go, lie and talk nonsense, operators who order this and that, tenants that make and
 * lose channels, a driver that fails at times, and a governor that is told to end in the middle of it all.
 *
 * After each step everything that is paused on the cards is written down as such, and was meant to be; at the end nobody
 * is. The same storm runs under a seed and under the fuzzer.
 */
#ifndef BH_GOVERNOR_STORM_FIXTURE_H
#define BH_GOVERNOR_STORM_FIXTURE_H

#include "base/choice.h"
#include "governor/counters_fixture.h"
#include "governor/driver_fixture.h"
#include "governor/serve.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STORM_PEERS = 12, STORM_NAMES = 24, STORM_PIDS = 8, STORM_GPUS = 3 };
#define STORM_MS UINT64_C(1000000)

struct storm {
    struct bh_choice *c;
    struct fake fake;
    struct counters counters;
    struct bh_serve *serve;
    int peers[STORM_PEERS]; /* -1: none */
    uint64_t now_ns;
    uint64_t seen_paused, failures, ends, joins, orders;
    const char *why; /* NULL: all is well */
};

static uint32_t storm_draw(struct storm *s, uint32_t n)
{
    return bh_choose(s->c, n);
}

static void storm_begin(struct storm *s)
{
    const struct bh_gauge_source gauge = counters_source(&s->counters);
    const struct bh_serve_config config = {.listener = -1,
                                           .stop = -1,
                                           .driver = &fake_driver,
                                           .self = &s->fake,
                                           .gauge = &gauge,
                                           .idle_ns = 2000 * STORM_MS};
    for (size_t i = 0; i < STORM_PEERS; i++)
        s->peers[i] = -1;
    if (bh_serve_new(&config, &s->serve, NULL) < 0)
        s->why = "no governor";
}

static inline void storm_init(struct storm *s, struct bh_choice *c)
{
    memset(s, 0, sizeof(*s));
    s->c = c;
    s->now_ns = s->fake.now_ns = 1000 * STORM_MS;
    storm_begin(s);
}

/* ---- what peers do ---- */

static void storm_hang_up(struct storm *s, size_t i)
{
    if (s->peers[i] >= 0)
        close(s->peers[i]);
    s->peers[i] = -1;
}

static size_t storm_peer(struct storm *s)
{
    const size_t i = storm_draw(s, STORM_PEERS);
    int pair[2];
    if (s->peers[i] >= 0)
        return i;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        s->why = "no sockets";
        return i;
    }
    s->peers[i] = pair[0];
    if (bh_serve_connect(s->serve, pair[1], NULL) < 0)
        s->why = "no room for a connection";
    return i;
}

static void storm_say(struct storm *s, size_t peer, const void *m, size_t n)
{
    char heard[2048];
    if (send(s->peers[peer], m, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        storm_hang_up(s, peer); /* it was cut off */
    /* some read what they are told, others never */
    while (peer % 2 && s->peers[peer] >= 0 && recv(s->peers[peer], heard, sizeof(heard), MSG_DONTWAIT) > 0) {
    }
}

static void storm_join(struct storm *s)
{
    static const uint32_t caps[] = {0, 0, 0, 100, 500, 1000, 1001};
    const size_t peer = storm_peer(s);
    struct bh_govern_join j = {.op = BH_GOVERN_JOIN,
                               .version = BH_GOVERN_WIRE_VERSION,
                               .root_pid = storm_draw(s, STORM_PIDS),
                               .weight = 1 + storm_draw(s, 100)};
    j.cap_permille = caps[storm_draw(s, BH_COUNT_OF(caps))];
    j.latency = storm_draw(s, 4) == 0;
    j.lease = storm_draw(s, 3) ? 0 : storm_draw(s, STORM_PIDS);
    j.name[0] = (char)('a' + storm_draw(s, 4));
    s->joins++;
    storm_say(s, peer, &j, sizeof(j));
}

/* Of that many names from a few; half of them a client's own. */
static struct bh_govern_channels storm_names(struct storm *s, uint32_t op)
{
    struct bh_govern_channels m = {
        .op = op, .gpu = storm_draw(s, STORM_GPUS), .pid = 1 + storm_draw(s, STORM_PIDS)};
    m.client = m.pid * 100;
    m.n = storm_draw(s, 6);
    for (uint32_t i = 0; i < m.n; i++)
        m.names[i] = storm_draw(s, STORM_NAMES);
    if (storm_draw(s, 60) == 0)
        m.gpu = storm_draw(s, 256);
    if (storm_draw(s, 60) == 0)
        m.n = storm_draw(s, 256);
    return m;
}

static void storm_has(struct storm *s)
{
    const struct bh_govern_channels m = storm_names(s, BH_GOVERN_HAS);
    const size_t peer = storm_peer(s);
    /* else it speaks of what there is not, or of somebody else's */
    if (storm_draw(s, 4) && m.gpu < STORM_GPUS)
        for (uint32_t i = 0; i < m.n && i < BH_GOVERN_NAMES; i++)
            (void)fake_make(&s->fake, m.gpu, m.pid, (struct bh_driver_channel){m.client, m.names[i]});
    fake_pid(&s->fake, m.pid)->busy = storm_draw(s, 4) != 0;
    storm_say(s, peer, &m, sizeof(m));
}

static void storm_lost(struct storm *s)
{
    const struct bh_govern_channels m = storm_names(s, BH_GOVERN_LOST);
    const size_t peer = storm_peer(s);
    for (size_t i = s->fake.n; storm_draw(s, 2) && i-- > 0;) {
        struct fake_channel *c = &s->fake.channels[i];
        bool named = m.n == 0;
        for (uint32_t k = 0; !named && k < m.n && k < BH_GOVERN_NAMES; k++)
            named = m.names[k] == c->name.channel;
        if (named && c->name.client == m.client)
            fake_unmake(&s->fake, c);
    }
    storm_say(s, peer, &m, sizeof(m));
}

static void storm_order(struct storm *s)
{
    struct bh_govern_order o = {.op = storm_draw(s, 4) ? BH_GOVERN_ORDER : BH_GOVERN_LIST,
                                .version = BH_GOVERN_WIRE_VERSION};
    o.what = storm_draw(s, 5);
    o.lease = storm_draw(s, 2) ? storm_draw(s, STORM_PIDS) : 0;
    o.name[0] = (char)('a' + storm_draw(s, 4));
    s->orders++;
    storm_say(s, storm_peer(s), &o, sizeof(o));
}

static void storm_nonsense(struct storm *s)
{
    static const size_t sizes[] = {1,
                                   4,
                                   sizeof(struct bh_govern_join),
                                   sizeof(struct bh_govern_channels),
                                   sizeof(struct bh_govern_order),
                                   sizeof(struct bh_govern_tampered),
                                   sizeof(struct bh_govern_pids),
                                   sizeof(struct bh_govern_own),
                                   1500};
    uint8_t bytes[1500] = {0};
    const size_t n = sizes[storm_draw(s, BH_COUNT_OF(sizes))], peer = storm_peer(s);
    bytes[0] = (uint8_t)storm_draw(s, BH_GOVERN_OWN + 2);
    for (size_t i = 4; i < n && i < 64; i++)
        bytes[i] = (uint8_t)storm_draw(s, 256);
    storm_say(s, peer, bytes, n);
}

static void storm_leave(struct storm *s)
{
    storm_hang_up(s, storm_draw(s, STORM_PEERS));
}

/* ---- what else happens ---- */

static void storm_time(struct storm *s)
{
    for (uint32_t i = 1 + storm_draw(s, 8); i > 0; i--) {
        const uint64_t ns = (1 + storm_draw(s, 30)) * STORM_MS;
        s->now_ns += ns;
        fake_advance(&s->fake, ns);
        bh_serve_round(s->serve, s->now_ns);
    }
}

static void storm_long_time(struct storm *s)
{
    s->now_ns += storm_draw(s, 12000) * STORM_MS;
}

static void storm_fail(struct storm *s)
{
    s->fake.failure = (uint8_t)(1 + storm_draw(s, 2));
    s->fake.fail_left = 1 + storm_draw(s, 12);
    s->failures++;
}

static void storm_blind(struct storm *s)
{
    s->fake.blind = !s->fake.blind;
}

static void storm_end_governor(struct storm *s)
{
    s->fake.failure = FAKE_WORKS;
    s->fake.fail_left = 0;
    if (bh_serve_free(s->serve) != 0)
        s->why = "channels are left that it knows to be paused";
    if (fake_paused(&s->fake))
        s->why = "somebody is left paused";
    for (size_t i = 0; i < STORM_PEERS; i++)
        storm_hang_up(s, i);
    s->ends++;
}

static void storm_restart(struct storm *s)
{
    storm_end_governor(s);
    storm_begin(s);
}

static inline void storm_step(struct storm *s)
{
    static void (*const steps[])(struct storm *) = {
        storm_join, storm_join, storm_join,  storm_has,   storm_has,   storm_has,
        storm_has,  storm_lost, storm_order, storm_order, storm_order, storm_leave,
        storm_time, storm_time, storm_time,  storm_time,  storm_fail,  storm_nonsense,
    };
    const uint32_t seldom = storm_draw(s, 100);
    static void (*const others[])(struct storm *) = {storm_restart, storm_long_time, storm_blind};
    if (seldom < BH_COUNT_OF(others))
        others[seldom](s);
    else
        steps[storm_draw(s, BH_COUNT_OF(steps))](s);
    if (s->why)
        return;
    bh_serve_round(s->serve, s->now_ns);
    s->why = bh_steer_check(bh_serve_steer(s->serve));
    for (size_t i = 0; i < s->fake.n; i++) {
        const struct fake_channel *c = &s->fake.channels[i];
        s->seen_paused += c->paused;
        if (c->paused && !bh_steer_knows(bh_serve_steer(s->serve), c->gpu, c->name))
            s->why = "a channel is paused and nobody knows";
    }
}

static inline const char *storm_end(struct storm *s)
{
    if (s->serve)
        storm_end_governor(s);
    return s->why;
}

#endif
