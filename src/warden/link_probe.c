/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/link_probe.h"

#include "base/mem.h"
#include "wire/dgram.h"

#include <errno.h>

void bh_link_probe_init(struct bh_link_probe *p, int fd)
{
    *p = (struct bh_link_probe){.fd = fd};
}

void bh_link_probe_fini(struct bh_link_probe *p)
{
    free(p->own);
    *p = (struct bh_link_probe){.fd = -1};
}

bool bh_link_probe_wake(struct bh_link_probe *p)
{
    p->hot = p->hot || (p->fd >= 0 && !p->is_deaf);
    return p->hot;
}

/* As much as may be at a time. True: there was something. */
static bool take_all(struct bh_link_probe *p, uint64_t now_ms)
{
    char bytes[BH_LINK_PROBE_LONGEST + 1];
    size_t room = BH_LINK_PROBE_BYTES;
    int n_taken = 0;
    while (!p->is_deaf && n_taken < BH_LINK_PROBE_DATAGRAMS && room >= BH_LINK_PROBE_LONGEST) {
        const ssize_t got = bh_dgram_take(p->fd, bytes, BH_LINK_PROBE_LONGEST);
        p->is_deaf = got < 0 && (errno == EPERM || errno == ENOTSOCK);
        if (got < 0 && !p->is_deaf)
            break;
        /* The last line needs no end. One that is too long, or is not taken at all, counts as an empty line: garbage. */
        size_t n = got < 0 || got > BH_LINK_PROBE_LONGEST ? 0 : (size_t)got;
        if (n == 0 || bytes[n - 1] != '\n')
            bytes[n++] = '\n';
        bh_own_take(p->own, now_ms, bytes, n);
        room -= got > BH_LINK_PROBE_LONGEST ? BH_LINK_PROBE_LONGEST : n < room ? n : room;
        n_taken++;
    }
    return n_taken > 0;
}

bool bh_link_probe_read(struct bh_link_probe *p, int64_t now_ms, struct bh_govern_own *ret)
{
    struct bh_own_sum sum;
    if (!p->hot || (p->read_ms && now_ms - p->read_ms < BH_LINK_PROBE_MS))
        return false;
    p->read_ms = now_ms;
    if (!p->own) {
        p->own = bh_alloc(1, sizeof(*p->own));
        bh_own_init(p->own, (uint64_t)now_ms);
    }
    const bool took = take_all(p, (uint64_t)now_ms);
    p->hot = bh_own_sum(p->own, (uint64_t)now_ms, &sum) || took;
    *ret = (struct bh_govern_own){.op = BH_GOVERN_OWN,
                                  .has_rate = sum.has_rate,
                                  .done = sum.done,
                                  .lines = sum.lines,
                                  .garbage = sum.garbage,
                                  .rate_milli = sum.rate_milli,
                                  .p50_us = sum.p50_us,
                                  .p99_us = sum.p99_us};
    return true;
}
