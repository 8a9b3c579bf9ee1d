/* SPDX-License-Identifier: Apache-2.0 */
/* Others' configuration files: any bytes, with a NUL behind them as the reader gives them. */
#include "host/probe_parse.h"

#include "base/mem.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BH_AUTOFREE char *text = bh_alloc(n + 1, 1);
    bool set[BH_NODE_MINORS_MAX] = {false};
    struct bh_span key, value;
    uint64_t bytes = 0;
    if (n)
        memcpy(text, data, n);
    size_t pos = 0, last = 0, len = strlen(text);
    while (bh_pairs_next(text, &pos, &key, &value)) {
        assert(pos > last && pos <= len);
        assert(key.n && key.at >= text && key.at + key.n <= text + len);
        assert(value.at >= text && value.at + value.n <= text + len);
        last = pos;
        (void)bh_span_lists(value, "task/cgroup");
        (void)bh_span_yes(value);
    }
    struct bh_span found = bh_pairs_find(text, "ConstrainDevices");
    assert(!found.at || found.at + found.n <= text + len);
    assert(!bh_meminfo_bytes(text, "MemTotal", &bytes) || bytes % 1024 == 0);
    (void)bh_json_says_true(text, "cdi");
    size_t marked = 0, minors = bh_nvidia_minors(text, set);
    for (size_t i = 0; i < BH_NODE_MINORS_MAX; i++)
        marked += set[i];
    assert(marked == minors);
    return 0;
}
