/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h - what GPU Feature Discovery would write about a simulated node. Pure: a node in, text out.
 *
 * All of it follows from the product the labels name: where that has drifted, all of it has. A node of several
 * products has one label all the same, which names one of them and counts those GPUs alone.
 */
#ifndef BH_SIMGPU_LABELS_H
#define BH_SIMGPU_LABELS_H

#include "base/buf.h"
#include "simgpu/node.h"
#include "simgpu/view.h"

/* gpus: what each card shows now, in the node's order; NULL: as they started. */
void bh_sim_labels(struct bh_buf *b, const struct bh_sim_node *node, const struct bh_sim_gpu_view *gpus);

#endif
