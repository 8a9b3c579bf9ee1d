/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disks.h - the disks of this machine, whose speed is shared out.
 *
 * Those with hardware behind them. What is stacked on others (partitions, volumes, loops) reaches one of these, and is
 * counted there for whoever caused it.
 */
#ifndef BH_HOST_DISKS_H
#define BH_HOST_DISKS_H

#include "base/err.h"
#include "base/mem.h"

#include <stdint.h>

struct bh_disk {
    uint32_t major, minor;
};
typedef BH_VEC(struct bh_disk) bh_disks;

/*
 * Adds them, in the order of their names. None is no failure: then there is nothing to share out. root: "" for this machine, also
 * where its GPUs are simulated (a cgroup's disks are the kernel's), or a folder that stands for one.
 */
int bh_disks_list(const char *root, bh_disks *ret, struct bh_err *err) BH_MUST_USE;

#endif
