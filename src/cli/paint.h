/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paint.h - text for people: colour, wrapping, and nothing that a file could do to a terminal.
 *
 * Colour never carries a meaning alone. Text that came from a file passes through
 * bh_text_add, so a control sequence hidden in a manifest is shown, not obeyed.
 */
#ifndef BH_CLI_PAINT_H
#define BH_CLI_PAINT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum bh_paint {
    BH_PAINT_PLAIN,
    BH_PAINT_BOLD,
    BH_PAINT_DIM,
    BH_PAINT_RED,
    BH_PAINT_YELLOW,
    BH_PAINT_CYAN,
    BH_PAINT_GREEN,
};

/* word: --color's value or NULL (auto). is_tty: of the stream in question. */
bool bh_paint_wanted(const char *word, bool is_tty, const char *no_color, const char *term);
/* 40 to 100: the terminal's width, or 100 where there is none. */
unsigned bh_paint_width(int fd);

/* Control characters and bytes that are not UTF-8 become \xNN. */
void bh_text_add(struct bh_buf *b, const char *s);
/* bh_text_add between a colour and its end. */
void bh_paint_add(struct bh_buf *b, bool on, enum bh_paint color, const char *s);
size_t bh_text_width(const char *s); /* code points */

/*
 * s in lines of at most width columns. The cursor stands at column `at`; further lines are
 * indented by `indent`. A word longer than a line stands alone. Ends with a newline.
 */
void bh_text_wrap(struct bh_buf *b, const char *s, unsigned at, unsigned indent, unsigned width);
/* s, each of its lines indented. */
void bh_text_block(struct bh_buf *b, const char *s, unsigned indent);
void bh_text_blanks(struct bh_buf *b, size_t n);
/* A word as a shell reads it back: quoted only where it must be. */
void bh_text_shell(struct bh_buf *b, const char *s);

#endif
