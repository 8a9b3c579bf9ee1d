/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a machine full of wardens, operators and tenants, honest and other (storm_fixture.h). Input: a first byte of
 * 0xff, and the rest goes out as messages, each after two bytes of its length and one of who says it; else drawn from.
 */
#include "governor/storm_fixture.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void stop_if(const char *why)
{
    if (!why)
        return;
    (void)fprintf(stderr, "%s\n", why);
    abort();
}

static void say_all(struct storm *s, const uint8_t *data, size_t size)
{
    while (size > 3 && !s->why) {
        size_t n = (size_t)data[0] << 8 | data[1];
        n = n < size - 3 ? n : size - 3;
        struct bh_choice who = {data + 2, 1};
        s->c = &who;
        const size_t peer = storm_peer(s);
        if (n && !s->why)
            storm_say(s, peer, data + 3, n);
        s->now_ns += 5 * STORM_MS;
        bh_serve_round(s->serve, s->now_ns);
        stop_if(bh_steer_check(bh_serve_steer(s->serve)));
        data += 3 + n;
        size -= 3 + n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct storm s;
    struct bh_choice c = {data, size};
    storm_init(&s, &c);
    if (size && data[0] == 0xff)
        say_all(&s, data + 1, size - 1);
    else
        while (c.left && !s.why)
            storm_step(&s);
    stop_if(storm_end(&s));
    return 0;
}
