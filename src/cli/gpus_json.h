/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus_json.h - a snapshot of GPUs for programs. A reading that is missing is null, and `unknown` of the same
 * object says why under the same key.
 */
#ifndef BH_CLI_GPUS_JSON_H
#define BH_CLI_GPUS_JSON_H

#include "base/buf.h"
#include "gpu/gpu.h"

void bh_gpus_json(struct bh_buf *out, const struct bh_gpu_snapshot *s);

#endif
