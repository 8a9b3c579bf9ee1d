/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps.h - which /dev/nvidia-caps node guards which MIG instance.
 *
 * The driver's list (/proc/driver/nvidia-caps/mig-minors) is asked first; where it cannot be read, the
 * driver's fixed numbering gives the answer.
 */
#ifndef BH_GPU_CAPS_H
#define BH_GPU_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The minor of an instance in the text of mig-minors: lines `gpu0/gi1/ci0/access 13`. ci UINT32_MAX: of the GPU
 * instance itself. False: not listed.
 */
bool bh_caps_find(const char *text, uint32_t gpu_minor, uint32_t gi, uint32_t ci, uint32_t *ret);
/* The same by the driver's numbering; false: outside of it. */
bool bh_caps_number(uint32_t gpu_minor, uint32_t gi, uint32_t ci, uint32_t *ret);

#endif
