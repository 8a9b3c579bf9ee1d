/* SPDX-License-Identifier: Apache-2.0 */
/* pos.h - where something was written. */
#ifndef BH_CORE_MODEL_POS_H
#define BH_CORE_MODEL_POS_H

#include <stdint.h>

struct bh_pos {
    uint32_t file;   /* index into the caller's list of files */
    uint32_t line;   /* from 1; 0 = nothing was written (a default) */
    uint32_t column; /* from 1 */
};

#endif
