/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_room.h - how much host memory there is for what leaves a card.
 *
 * The process that is suspended pays for it: its cgroup's limit counts as much as the machine's memory, and passing it
 * would end the process.
 */
#ifndef BH_GPU_HOST_ROOM_H
#define BH_GPU_HOST_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct bh_host_group {
    char path[256]; /* of the cgroup with the least room; "": none has a limit, or it cannot be told */
    uint64_t room;  /* UINT64_MAX: no limit known */
};

/* MemAvailable; false: it cannot be told. */
bool bh_host_available(uint64_t *ret_bytes);
/* A process's cgroup (v2) and those above it: the least of limit less use, where the page cache that can be dropped is no
 * use. */
void bh_host_group_read(uint32_t pid, struct bh_host_group *ret);

#endif
