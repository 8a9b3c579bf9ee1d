/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steal.c - a tenant that wants more of the card's time than its lease was given, each time in one way.
 *
 * On simulated silicon, without a library. It keeps the card busy for so many seconds, says `ready` when it begins and
 * `rate N` at its end: pieces of 2 ms done in a second, of 500 that fit. Whether that is too much is for others to say.
 *
 * Usage: steal WAY SECONDS [NUMBER ...]
 */
#include "../bypass/bypass.h"
#include "base/units.h"
#include "simgpu/drv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_NS = 2000000, AHEAD = 4, KEPT = 64, PARTS = 10, CHANNEL = RM_CLASS_CHANNEL_HOPPER };

static struct worker {
    struct rm rm;
    uint32_t group, channel;
    uint64_t fence;
} w;
static uint64_t numbers[3];

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void must(int rc, const char *what)
{
    if (rc != RM_OK)
        bp_cannot("%s: %s", what, bp_result(rc));
}

static int make_group(struct rm *r, uint32_t *ret)
{
    uint8_t params[20] = {0};
    params[12] = 1; /* engine: the first graphics one */
    *ret = rm_name(r);
    return rm_alloc(r, r->device, ret, RM_CLASS_CHANNEL_GROUP, params);
}

static int make_channel(struct rm *r, uint32_t group, uint32_t *ret)
{
    uint8_t params[512] = {0};
    *ret = rm_name(r);
    return rm_alloc(r, group, ret, CHANNEL, params);
}

static int schedule(struct rm *r, uint32_t group)
{
    uint8_t params[3] = {1};
    return rm_control(r, group, RM_CTRL_GROUP_SCHEDULE, params, sizeof(params));
}

static void begin(void)
{
    rm_must_open(&w.rm);
    must(make_group(&w.rm, &w.group), "a group");
    must(make_channel(&w.rm, w.group, &w.channel), "a channel");
    must(schedule(&w.rm, w.group), "scheduling it");
}

static uint64_t done(uint32_t channel)
{
    uint64_t n = 0;
    (void)bh_sim_fence(w.rm.ctl, w.rm.client, channel, &n);
    return n;
}

/* Works for so long, and does something every so often meanwhile. */
static int work(uint64_t seconds, uint64_t every_ms, void (*meanwhile)(void))
{
    (void)puts("ready");
    const uint64_t until = now_ms() + seconds * 1000;
    for (uint64_t last = 0; now_ms() < until;) {
        for (const uint64_t had = done(w.channel); w.fence < had + AHEAD;)
            if (bh_sim_doorbell(w.rm.ctl, w.rm.client, w.channel, PIECE_NS, &w.fence) < 0)
                break;
        if (meanwhile && now_ms() - last >= every_ms) {
            last = now_ms();
            meanwhile();
        }
        (void)usleep(500);
    }
    (void)printf("rate %llu\n", (unsigned long long)(done(w.channel) / seconds));
    return BP_MADE;
}

static int plain(uint64_t seconds)
{
    begin();
    return work(seconds, 0, NULL);
}

/* Controls on what nobody knows: which card that is about cannot be said. */
static void touch_nothing(void)
{
    struct rm_disable_channels d = {.count = 0};
    (void)rm_control(&w.rm, 0xdeadbeef, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d));
}

static int tamper(uint64_t seconds)
{
    begin();
    return work(seconds, 100, touch_nothing);
}

static void touch_often(void)
{
    for (int i = 0; i < 1000; i++)
        touch_nothing();
}

static int flood(uint64_t seconds)
{
    begin();
    return work(seconds, 0, touch_often);
}

/* A child that has the file makes something in its parent's client: whose are the channels? */
static int give_to_child(uint64_t seconds)
{
    uint32_t another = 0, zero = 0;
    begin();
    const pid_t child = fork();
    if (child == 0) {
        w.rm.last += 1000;
        another = rm_name(&w.rm);
        must(rm_alloc(&w.rm, w.rm.device, &another, RM_CLASS_SUBDEVICE, &zero), "an object of the child's");
        (void)pause();
    }
    (void)usleep(300000);
    must(make_channel(&w.rm, w.group, &another), "another channel");
    const int rc = work(seconds, 0, NULL);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    return rc;
}

/* More channels than anybody can name. */
static int many_channels(uint64_t seconds)
{
    uint32_t another;
    uint64_t n = 1;
    begin();
    while (n < numbers[0] && make_channel(&w.rm, w.group, &another) == RM_OK)
        n++;
    (void)printf("made %llu\n", (unsigned long long)n);
    return work(seconds, 0, NULL);
}

/* Always one that nobody has paused yet, with work in it. */
static int new_channels(uint64_t seconds)
{
    struct {
        uint32_t group, channel;
    } kept[KEPT] = {{0}};
    uint64_t sum = 0, fence;
    rm_must_open(&w.rm);
    (void)puts("ready");
    const uint64_t until = now_ms() + seconds * 1000;
    for (size_t i = 0; now_ms() < until; i = (i + 1) % KEPT) {
        if (kept[i].group) {
            sum += done(kept[i].channel);
            must(rm_free(&w.rm, w.rm.client, kept[i].group), "freeing");
        }
        must(make_group(&w.rm, &kept[i].group), "a group");
        must(make_channel(&w.rm, kept[i].group, &kept[i].channel), "a channel");
        must(schedule(&w.rm, kept[i].group), "scheduling it");
        for (int k = 0; k < 6 * PARTS; k++)
            (void)bh_sim_doorbell(w.rm.ctl, w.rm.client, kept[i].channel, PIECE_NS / PARTS, &fence);
        (void)usleep(3000);
    }
    for (size_t i = 0; i < KEPT; i++)
        sum += kept[i].group ? done(kept[i].channel) : 0;
    (void)printf("rate %llu\n", (unsigned long long)(sum / PARTS / seconds));
    return BP_MADE;
}

/* A call that is let through and becomes another one, as a second thread makes of it on a real card. */
static int turned(uint32_t cmd, void *call, uint32_t *word, uint32_t into)
{
    if (ioctl(w.rm.ctl, cmd, call) == 0 || errno != ENOTTY)
        bp_cannot("the call was not let through");
    *word = into;
    return bh_sim_ioctl_direct(w.rm.ctl, cmd, call);
}

static int hidden_channel(uint64_t seconds)
{
    uint8_t params[512] = {0};
    begin();
    struct rm_alloc a = {.client = w.rm.client, .class = 0x7777, .params = (uintptr_t)params};
    must(make_group(&w.rm, &a.parent), "a group");
    must(schedule(&w.rm, a.parent), "scheduling it");
    w.channel = a.object = rm_name(&w.rm);
    if (turned(RM_IOC(RM_ALLOC, sizeof(a)), &a, &a.class, CHANNEL) < 0 || a.status != RM_OK)
        bp_cannot("no channel behind the gate: status 0x%x", a.status);
    return work(seconds, 0, NULL);
}

/* Many clients with a channel each, all gone at once, again and again. */
static int many_clients(uint64_t seconds)
{
    const uint64_t until = now_ms() + seconds * 1000;
    const pid_t other = fork();
    while (other == 0 && now_ms() < until) {
        if (fork() == 0) {
            struct rm r;
            rm_must_open(&r);
            for (uint64_t i = 0; i < numbers[0]; i++) {
                struct rm_device_params device = {0};
                struct rm own = {.ctl = r.ctl, .gpu = r.gpu};
                uint32_t group, channel;
                must(rm_alloc(&own, 0, &own.client, RM_CLASS_CLIENT, NULL), "a client");
                device.client_share = own.client;
                own.device = rm_name(&own);
                must(rm_alloc(&own, own.client, &own.device, RM_CLASS_DEVICE, &device), "its device");
                must(make_group(&own, &group), "its group");
                must(make_channel(&own, group, &channel), "its channel");
            }
            _exit(0);
        }
        (void)wait(NULL);
    }
    if (other == 0)
        _exit(0);
    begin();
    const int rc = work(seconds, 0, NULL);
    (void)waitpid(other, NULL, 0);
    return rc;
}

/* Pauses whoever has a channel by these names: client and first channel of those that are tried. */
static int pause_others(uint64_t seconds)
{
    struct rm_disable_channels d = {.disable = 1, .count = 1};
    uint64_t hits = 0;
    (void)seconds;
    rm_must_open(&w.rm);
    for (d.clients[0] = (uint32_t)numbers[0]; d.clients[0] < (uint32_t)numbers[0] + 64; d.clients[0]++)
        for (uint32_t i = 0; i < 256 && d.clients[0] != w.rm.client; i++) {
            struct rm_control a = {.client = w.rm.client,
                                   .object = w.rm.subdevice,
                                   .command = 0x2080014a,
                                   .params = (uintptr_t)&d,
                                   .params_size = sizeof(d)};
            d.channels[0] = (uint32_t)numbers[1] + i;
            hits +=
                turned(RM_IOC(RM_CONTROL, sizeof(a)), &a, &a.command, RM_CTRL_FIFO_DISABLE_CHANNELS) == 0 &&
                a.status == RM_OK;
        }
    (void)printf("hits %llu\n", (unsigned long long)hits);
    return BP_MADE;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*fn)(uint64_t seconds);
    } ways[] = {{"plain", plain},
                {"tamper", tamper},
                {"flood", flood},
                {"give-to-child", give_to_child},
                {"many-channels", many_channels},
                {"new-channels", new_channels},
                {"hidden-channel", hidden_channel},
                {"many-clients", many_clients},
                {"pause-others", pause_others}};
    uint64_t seconds = 0;
    bp.sim = true;
    bp.self = argv[0];
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3 || bh_uint_parse(argv[2], 3600, &seconds, NULL) < 0 || seconds == 0)
        return 2;
    for (int i = 3; i < argc && i < 6; i++)
        if (bh_uint_parse(argv[i], UINT32_MAX, &numbers[i - 3], NULL) < 0)
            return 2;
    for (size_t i = 0; i < COUNT(ways); i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].fn(seconds);
    return 2;
}
