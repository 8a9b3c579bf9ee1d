/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h - a grid of cells: what stands where, and in which style. Pure, so that a screen is tested without a terminal.
 *
 * What does not fit is cut at the edge of its field. Text that comes from elsewhere is shown and not obeyed: a control
 * character, or one that may be wider than a cell, becomes `?`.
 */
#ifndef BH_TUI_SCREEN_H
#define BH_TUI_SCREEN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Each means something by itself; the painter has a colour for it where there are colours. */
enum bh_style {
    BH_STYLE_PLAIN,
    BH_STYLE_HEAD,  /* names of columns */
    BH_STYLE_TITLE, /* bold */
    BH_STYLE_DIM,   /* old, or of no importance */
    BH_STYLE_GOOD,
    BH_STYLE_WARN,
    BH_STYLE_BAD,
    BH_STYLE_MARK,   /* where the cursor is */
    BH_STYLE_KEY,    /* a key of the footer */
    BH_STYLE_ACCENT, /* bars, and what is chosen */
    BH_STYLES
};

struct bh_cell_at {
    char s[5]; /* one code point; "": a blank */
    uint8_t style;
};

struct bh_screen {
    unsigned rows, cols;
    struct bh_cell_at *cells;
};

void bh_screen_init(struct bh_screen *s, unsigned rows, unsigned cols); /* blanks */
void bh_screen_fini(struct bh_screen *s);
/* From (row, col) on, at most `width` cells; returns the column behind what was written. Outside is nowhere. */
unsigned bh_screen_put(struct bh_screen *s, unsigned row, unsigned col, unsigned width, enum bh_style style,
                       const char *text);
/* Every cell of the row, whatever it shows. */
void bh_screen_mark(struct bh_screen *s, unsigned row, unsigned col, unsigned width, enum bh_style style);
/* Dim: what is there is old. */
void bh_screen_dim(struct bh_screen *s, unsigned first, unsigned last);

/* Lines without blanks at their end. sgr: with the escape codes of sixteen colours. */
void bh_screen_text(const struct bh_screen *s, bool sgr, struct bh_buf *out);
/* The same lines as a letter for each cell's style: for tests. */
void bh_screen_styles(const struct bh_screen *s, struct bh_buf *out);

/* ---- small pictures ---- */

struct bh_picture {
    char s[400];
};
/* `[||||||      ]` in `width` cells, of which value/most are filled. */
const char *bh_picture_bar(uint64_t value, uint64_t most, unsigned width, struct bh_picture *ret);
/* The last `width` values of 0 to 100 as blocks, or as letters where only ASCII is to be had; UINT8_MAX: not known. */
const char *bh_picture_line(const uint8_t *values, unsigned n, unsigned width, bool ascii,
                            struct bh_picture *ret);

#endif
