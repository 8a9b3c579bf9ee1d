/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are tenants' calls: the manager answers each, keeps its invariants, and holds nothing at the end. */
#include "simgpu/rm/storm_fixture.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_choice c = {data, size};
    struct storm s;
    storm_init(&s, &c);
    while (c.left) {
        storm_step(&s);
        const char *why = bh_sim_rm_check(s.rm);
        if (why) {
            (void)fprintf(stderr, "%s\n", why);
            abort();
        }
    }
    if (!storm_end(&s))
        abort();
    return 0;
}
