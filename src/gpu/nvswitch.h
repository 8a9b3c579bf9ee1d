/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvswitch.h - the NVSwitches of this machine, as NVIDIA's kernel driver shows them below /proc/driver/nvidia-nvswitch: a folder for
 * each, and in it one file with the version of its firmware. NVML speaks of GPUs alone. Switches that have no driver on the node (of
 * Blackwell's boards, or of a rack) are not there.
 */
#ifndef BH_GPU_NVSWITCH_H
#define BH_GPU_NVSWITCH_H

#include "gpu/gpu.h"

#define BH_NVSWITCH_FOLDER "/proc/driver/nvidia-nvswitch/devices"

enum { BH_NVSWITCH_BIOS_MAX = 32, BH_NVSWITCH_MOST = 64 };

/* `BIOS Version: 96.10.6d.00.01` among the lines of its file. False: it does not say (`N/A`), or not in these letters. */
bool bh_nvswitch_bios(const char *text, char ret[BH_NVSWITCH_BIOS_MAX]);
/* `0000:c1:00.0`: the name of a folder. */
bool bh_nvswitch_is_pci(const char *s);
/* Adds them in the order of their addresses. No folder: there are none; one that cannot be read is a note. */
void bh_nvswitch_read(struct bh_gpu_snapshot *s);

#endif
