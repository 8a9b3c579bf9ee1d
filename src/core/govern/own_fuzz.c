/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a tenant says. Input: the first byte says how they are cut, the rest are the bytes. Cut or whole they come to
 * the same; what is counted never exceeds what was sent; and percentiles are in order.
 */
#include "core/govern/own.h"

#include <stdlib.h>
#include <string.h>

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check(struct bh_own *o, uint64_t now_ms, size_t size, struct bh_own_sum *ret)
{
    (void)bh_own_sum(o, now_ms, ret);
    must(ret->lines + ret->garbage <= size && ret->n_latencies <= size);
    must(ret->done <= BH_OWN_TOTAL && ret->done / BH_OWN_MOST <= ret->lines);
    must((ret->p50_us == BH_OWN_NONE) == (ret->n_latencies == 0));
    must(ret->p50_us <= ret->p99_us);
    must(ret->has_rate || ret->rate_milli == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bh_own whole, cut;
    struct bh_own_sum a, b;
    const size_t piece = size ? 1 + data[0] % 64 : 1, n = size ? size - 1 : 0;
    const uint64_t now_ms = 100000;
    bh_own_init(&whole, now_ms);
    bh_own_init(&cut, now_ms);
    if (n)
        bh_own_take(&whole, now_ms, data + 1, n);
    for (size_t i = 0; i < n; i += piece)
        bh_own_take(&cut, now_ms, data + 1 + i, n - i < piece ? n - i : piece);
    check(&whole, now_ms + 1500, size, &a);
    check(&cut, now_ms + 1500, size, &b);
    must(a.done == b.done && a.lines == b.lines && a.garbage == b.garbage && a.rate_milli == b.rate_milli &&
         a.p50_us == b.p50_us && a.p99_us == b.p99_us && a.n_latencies == b.n_latencies);
    check(&cut, now_ms + 60000, size, &b);
    must(b.n_latencies == 0 && !b.has_rate && b.done == a.done);
    return 0;
}
