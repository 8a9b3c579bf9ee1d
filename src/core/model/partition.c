/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - lookups in the table of fabric partitions. */
#include "core/model/partition.h"

#include "base/str.h"
#include "core/model/tables.h"

const struct bh_fabric_platform *bh_fabric_platform_find(const char *arch)
{
    for (size_t i = 0; i < bh_fabric_platform_count; i++)
        if (bh_str_eq_nocase(bh_fabric_platforms[i].arch, arch))
            return &bh_fabric_platforms[i];
    return NULL;
}

const struct bh_fabric_partition *bh_fabric_partition_find(const struct bh_fabric_platform *p,
                                                           uint32_t modules)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->partitions[i].modules == modules)
            return &p->partitions[i];
    return NULL;
}
