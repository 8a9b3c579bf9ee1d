/* SPDX-License-Identifier: Apache-2.0 */
/* uvm.c - the structures of the UVM file's calls, as far as their contents matter. */
#include "simgpu/cuda/play.h"

#include "gpu/abi/rm.h"
#include "simgpu/drv.h"

#include <errno.h>
#include <string.h>

enum { ARG_MAX = 9264, NONE = UINT16_MAX, MAP_AT_COUNT = 9240 };

/* Where a call has what, in bytes; those that are not here name a range first, or nothing. */
static const struct layout {
    uint32_t number;
    uint16_t range, uuid, ctl, client, object;
} layouts[] = {
    {UVM_INITIALIZE, NONE, NONE, NONE, NONE, NONE},          {UVM_REGISTER_GPU, NONE, 0, 24, 28, NONE},
    {UVM_UNREGISTER_GPU, NONE, 0, NONE, NONE, NONE},         {UVM_REGISTER_GPU_VASPACE, NONE, 0, 16, 20, 24},
    {UVM_UNREGISTER_GPU_VASPACE, NONE, 0, NONE, NONE, NONE}, {UVM_REGISTER_CHANNEL, 32, 0, 16, 20, 24},
    {UVM_UNREGISTER_CHANNEL, NONE, 0, NONE, 16, 20},         {UVM_MAP_EXTERNAL, 0, 24, 9248, 9252, 9256},
    {UVM_MAP_DYNAMIC_PARALLELISM, 0, 16, NONE, NONE, NONE},  {UVM_UNMAP_EXTERNAL, 0, 16, NONE, NONE, NONE},
};
static const struct layout other = {0, 0, NONE, NONE, NONE, NONE};

/* NONE: a number that is not known. */
static uint16_t status_at(uint32_t number)
{
    static const struct {
        uint32_t number, status;
    } calls[] = {
#define UVM_CALL(name, number_, bytes, status_) {number_, status_},
#include "gpu/abi/uvm.def"
#undef UVM_CALL
    };
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++)
        if (calls[i].number == number)
            return (uint16_t)calls[i].status;
    return NONE;
}

static const struct layout *layout_of(uint32_t number)
{
    for (size_t i = 0; i < BH_COUNT_OF(layouts); i++)
        if (layouts[i].number == number)
            return &layouts[i];
    return &other;
}

static void put(uint8_t *arg, uint16_t at, const void *from, size_t n)
{
    if (at != NONE)
        memcpy(arg + at, from, n);
}

int bh_uvm(int fd, uint32_t number, const struct bh_uvm_call *what)
{
    _Alignas(8) uint8_t arg[ARG_MAX] = {0};
    const struct layout *l = layout_of(number);
    const uint64_t range[3] = {what->base, what->length, what->offset}, one = 1;
    uint32_t status = 0;
    put(arg, l->range, range, number == UVM_MAP_EXTERNAL ? sizeof(range) : 2 * sizeof(range[0]));
    if (what->uuid)
        put(arg, l->uuid, what->uuid, 16);
    put(arg, l->ctl, &what->ctl, sizeof(what->ctl));
    put(arg, l->client, &what->client, sizeof(what->client));
    put(arg, l->object, &what->object, sizeof(what->object));
    if (number == UVM_MAP_EXTERNAL)
        memcpy(arg + MAP_AT_COUNT, &one, sizeof(one)); /* how many GPUs */
    if (bh_sim_ioctl(fd, number, arg) < 0)
        return -errno;
    if (status_at(number) != NONE)
        memcpy(&status, arg + status_at(number), sizeof(status));
    return (int)status;
}
