/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.h - which sets of GPUs an NVSwitch board can wall off.
 *
 * Generated from data/fabric_partitions.json. A GPU here is its *module id*
 * (1-based, as the driver reports it), never the CUDA index. A set that is no
 * partition (three GPUs, or 1 and 2 on a Hopper board) cannot be isolated.
 */
#ifndef BH_CORE_MODEL_PARTITION_H
#define BH_CORE_MODEL_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bh_fabric_partition {
    uint8_t id;
    uint8_t nvlinks_per_gpu;
    uint32_t modules; /* bit m-1: module id m belongs to it */
};

struct bh_fabric_platform {
    const char *name; /* `HGX/DGX H100, H200, H800, H20` */
    const char *arch; /* joins bh_gpu_model.arch */
    size_t n;
    const struct bh_fabric_partition *partitions;
};

const struct bh_fabric_platform *bh_fabric_platform_find(const char *arch); /* or NULL */
/* The partition that is exactly this set, or NULL. */
const struct bh_fabric_partition *bh_fabric_partition_find(const struct bh_fabric_platform *p,
                                                           uint32_t modules);

#endif
