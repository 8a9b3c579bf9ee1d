/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - the files of a simulated machine: what the kernel, the driver and the distribution show on a real one.
 *
 * Whoever looks below BULKHEAD_SYSROOT finds there what he would find below `/`: /proc/driver/nvidia, /sys with
 * its links from bus to device, the device nodes as plain files. Nothing in it is secret or ever run.
 */
#ifndef BH_SIMGPU_TREE_H
#define BH_SIMGPU_TREE_H

#include "base/err.h"
#include "simgpu/node.h"

/* Fills an empty folder; one that is not there is made. BH_CONFLICT: something is in it. */
int bh_sim_tree_write(const struct bh_sim_node *node, const char *folder, struct bh_err *err) BH_MUST_USE;
/*
 * Removes such a folder and all that is in it, by descriptor and never through a link. BH_REFUSED: it has no mark
 * of bh_sim_tree_write. The mark goes last, so that what was interrupted can be done again.
 */
int bh_sim_tree_remove(const char *folder, struct bh_err *err) BH_MUST_USE;

#endif
