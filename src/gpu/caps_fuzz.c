/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a list of minors: what is found is a minor, and asking never walks past the end. */
#include "base/mem.h"
#include "gpu/caps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_alloc(size + 1, 1);
    uint32_t v;
    if (size)
        memcpy(text, data, size);
    for (uint32_t gi = 0; gi < 3; gi++)
        if ((bh_caps_find(text, gi, gi, UINT32_MAX, &v) || bh_caps_find(text, 0, gi, 0, &v)) && v >= 1u << 20)
            abort();
    free(text);
    return 0;
}
