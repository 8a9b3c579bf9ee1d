/* SPDX-License-Identifier: Apache-2.0 */
/* gpus_text.h - a snapshot of GPUs for people. What a stand-in shows is called simulated on the first line. */
#ifndef BH_CLI_GPUS_TEXT_H
#define BH_CLI_GPUS_TEXT_H

#include "cli/cli.h"
#include "gpu/gpu.h"

/* A line for each GPU and each MIG instance, in columns; then what is wrong, a sentence a line. */
void bh_gpus_text(struct bh_cli *cli, const struct bh_gpu_snapshot *s);
/* NUMA node, then PCI address, then slices and links; then the NVLink domains. */
void bh_gpus_tree(struct bh_cli *cli, const struct bh_gpu_snapshot *s);

#endif
