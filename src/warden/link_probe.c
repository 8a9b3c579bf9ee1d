/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/link_probe.h"

#include "base/mem.h"

#include <unistd.h>

void bh_link_probe_init(struct bh_link_probe *p, int fd)
{
    *p = (struct bh_link_probe){.fd = fd};
}

void bh_link_probe_fini(struct bh_link_probe *p)
{
    if (p->fd >= 0)
        close(p->fd);
    free(p->own);
    *p = (struct bh_link_probe){.fd = -1};
}

bool bh_link_probe_wake(struct bh_link_probe *p)
{
    p->hot = p->fd >= 0;
    return p->hot;
}

bool bh_link_probe_read(struct bh_link_probe *p, int64_t now_ms, struct bh_govern_own *ret)
{
    char bytes[BH_LINK_PROBE_BYTES];
    struct bh_own_sum sum;
    if (!p->hot || (p->read_ms && now_ms - p->read_ms < BH_LINK_PROBE_MS))
        return false;
    p->read_ms = now_ms;
    if (!p->own) {
        p->own = bh_alloc(1, sizeof(*p->own));
        bh_own_init(p->own, (uint64_t)now_ms);
    }
    const ssize_t n = read(p->fd, bytes, sizeof(bytes));
    if (n > 0)
        bh_own_take(p->own, (uint64_t)now_ms, bytes, (size_t)n);
    p->hot = bh_own_sum(p->own, (uint64_t)now_ms, &sum) || n > 0;
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
