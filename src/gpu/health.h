/* SPDX-License-Identifier: Apache-2.0 */
/* health.h - what the driver's numbers mean for the one who runs the machine. Pure: reads a device, prints nothing. */
#ifndef BH_GPU_HEALTH_H
#define BH_GPU_HEALTH_H

#include "base/buf.h"
#include "gpu/gpu.h"
#include "gpu/xid.h"

/* Reasons for lower clocks, `power cap, too hot`; idling and chosen clocks are no trouble but are said. */
void bh_throttle_words(struct bh_buf *out, uint64_t bits);
/* The worst thing to be seen, as one sentence; NULL: nothing. */
const char *bh_gpu_trouble(struct bh_arena *a, const struct bh_gpu_device *d);
/* How far what the driver shows of the card goes, for whoever heard no event of it. NONE and NOTE: it can be given away. */
enum bh_reach bh_gpu_reach(const struct bh_gpu_device *d);
/* `on`, `off`, `on without wiping memory`, `unknown`: is an AMD GPU told to keep processes apart? */
const char *bh_gpu_isolation_word(const struct bh_gpu_device *d);

#endif
