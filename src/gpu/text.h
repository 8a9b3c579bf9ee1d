/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - the one door for text that a driver, its library or another process wrote. */
#ifndef BH_GPU_TEXT_H
#define BH_GPU_TEXT_H

#include "base/arena.h"

/*
 * The text in buf up to its NUL, or all `size` bytes where there is none. Blanks around it go; a control
 * character, a byte that is no UTF-8 and what would turn a line around become `?`. NULL: nothing is left.
 */
const char *bh_gpu_text(struct bh_arena *a, const char *buf, size_t size);
/* `0000:18:00.0`; NULL: no such address can be. */
const char *bh_gpu_pci(struct bh_arena *a, unsigned domain, unsigned bus, unsigned device);

#endif
