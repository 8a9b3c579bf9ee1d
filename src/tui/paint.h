/* SPDX-License-Identifier: Apache-2.0 */
/* paint.h - a screen on a real terminal, and its keys: all that knows ncurses. */
#ifndef BH_TUI_PAINT_H
#define BH_TUI_PAINT_H

#include "tui/screen.h"

/* False: this terminal cannot be used. color: sixteen of them, where the terminal has them. */
bool bh_paint_begin(bool color);
void bh_paint_end(void);
void bh_paint_size(unsigned *ret_rows, unsigned *ret_cols);
void bh_paint_show(const struct bh_screen *s);
/* Waits so long for a key (enum bh_top_key or a code point); 0: none came, or the size changed. */
uint32_t bh_paint_key(int wait_ms);

#endif
