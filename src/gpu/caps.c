/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/caps.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The driver's tables: 32 GPUs of 15 GPU instances, each with its own node and 8 compute instances. */
enum { GPUS = 32, GIS = 15, CIS = 8, FIRST = 3, MINOR_MAX = (1 << 20) - 1 };

bool bh_caps_number(uint32_t gpu_minor, uint32_t gi, uint32_t ci, uint32_t *ret)
{
    if (gpu_minor >= GPUS || gi >= GIS || (ci != UINT32_MAX && ci >= CIS))
        return false;
    *ret = FIRST + gpu_minor * GIS * (1 + CIS) + gi * (1 + CIS) + (ci == UINT32_MAX ? 0 : 1 + ci);
    return true;
}

bool bh_caps_find(const char *text, uint32_t gpu_minor, uint32_t gi, uint32_t ci, uint32_t *ret)
{
    char want[80];
    if (ci == UINT32_MAX)
        (void)snprintf(want, sizeof(want), "gpu%" PRIu32 "/gi%" PRIu32 "/access ", gpu_minor, gi);
    else
        (void)snprintf(want, sizeof(want), "gpu%" PRIu32 "/gi%" PRIu32 "/ci%" PRIu32 "/access ", gpu_minor,
                       gi, ci);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (!bh_str_starts(line, want))
            continue;
        const char *at = line + strlen(want);
        size_t n = strcspn(at, "\n");
        char number[16];
        uint64_t v;
        if (n >= sizeof(number))
            return false;
        memcpy(number, at, n);
        number[n] = '\0';
        if (bh_uint_parse(number, MINOR_MAX, &v, NULL) < 0)
            return false;
        *ret = (uint32_t)v;
        return true;
    }
    return false;
}
