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
#include "simgpu/view.h"

/* Fills an empty folder; one that is not there is made. BH_CONFLICT: something is in it. */
int bh_sim_tree_write(const struct bh_sim_node *node, const char *folder, struct bh_err *err) BH_MUST_USE;
/*
 * What changes while the machine runs: parameters of the driver, the nodes of MIG slices, and the labels that follow
 * from both. gpus: what each card shows now, in the node's order. Each file is replaced at once, so that who reads it
 * meanwhile has the old one or the new one; what has not changed is left alone. BH_REFUSED: no mark, see below.
 */
struct bh_sim_tree_state {
    bool scrubs; /* freed memory is cleared */
    const struct bh_sim_gpu_view *gpus;
};
int bh_sim_tree_follow(const struct bh_sim_node *node, const char *folder,
                       const struct bh_sim_tree_state *now, struct bh_err *err) BH_MUST_USE;
/*
 * Removes such a folder and all that is in it, by descriptor and never through a link. BH_REFUSED: it has no mark
 * of bh_sim_tree_write. The mark goes last, so that what was interrupted can be done again.
 */
int bh_sim_tree_remove(const char *folder, struct bh_err *err) BH_MUST_USE;

#endif
