/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_room.c - structs that carry no size of their own.
 *
 * Where a struct has a version word the library refuses one it does not know. The others are given in a room
 * with known bytes: what the library wrote past the struct, or did not write at all, shows that it has
 * another struct in mind, and then nothing it says can be trusted.
 */
#include "gpu/nvml.h"

enum { MARK = 0xa5 };

void *bh_nvml_room_fill(struct bh_nvml_room *r)
{
    memset(r->at, MARK, sizeof(r->at));
    return r->at;
}

static bool is_marked(const struct bh_nvml_room *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (r->at[i] != MARK)
            return false;
    return true;
}

int bh_nvml_room_take(const struct bh_nvml *n, const char *call, int status, const struct bh_nvml_room *r,
                      void *out, size_t size, size_t must)
{
    memset(out, 0, size);
    if (status == NVML_FUNCTION_NOT_FOUND)
        return status;
    bool is_long = !is_marked(r, size, sizeof(r->at));
    bool is_short = status == NVML_OK && must < size && is_marked(r, must, must + sizeof(uint32_t));
    if (is_long || is_short) {
        if (!n->heard->misfit.call)
            n->heard->misfit = (struct bh_nvml_misfit){call, size, !is_long};
        return NVML_UNKNOWN;
    }
    if (status == NVML_OK)
        memcpy(out, r->at, size);
    return status;
}

int bh_nvml_fits(const struct bh_nvml *n, struct bh_err *err)
{
    const struct bh_nvml_misfit *m = &n->heard->misfit;
    if (!m->call)
        return BH_OK;
    return bh_fail(
        err, BH_CONFLICT,
        "the NVIDIA library %.200s has another interface than it should: %s writes %s than %zu bytes; "
        "install the library of the loaded driver",
        n->path, m->call, m->is_short ? "less" : "more", m->bytes);
}
