/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - rows and cells of a trace, and complaints that name file, line and column.
 *
 * Cells are separated by one byte (a comma, a tab) and are not quoted: none of the traces quotes, and a quote where a
 * number belongs is refused as what it is. Lines end with LF or CR LF; empty ones are passed over. How long a line may
 * be and how many cells and rows there may be is bounded, so a hostile file costs little. Text is borrowed, never copied.
 */
#ifndef BH_REPLAY_TABLE_H
#define BH_REPLAY_TABLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_TABLE_CELLS = 32, BH_TABLE_LINE_BYTES = 8192, BH_TABLE_CELL_BYTES = 256 };
#define BH_TABLE_FILE_BYTES ((size_t)256 << 20)

struct bh_cell {
    const char *at;
    size_t n;
};

struct bh_table {
    const char *file; /* as complaints name it */
    char separator;
    const char *next, *end;
    uint32_t line; /* of the row at hand, from 1 */
    const char *row;
    uint32_t n_cells;
    struct bh_cell cell[BH_TABLE_CELLS];
};

void bh_table_open(struct bh_table *t, const char *file, const char *text, size_t n, char separator);
/* 1: the next row that is not empty is at hand; 0: no more; negative: the row breaks a bound. */
int bh_table_next(struct bh_table *t, struct bh_err *err) BH_MUST_USE;

/* `FILE:LINE:COLUMN: `, then the words. Column: of the cell, or past the last one where that is missing. */
int bh_table_fail(const struct bh_table *t, uint32_t cell, struct bh_err *err, const char *fmt, ...)
    BH_PRINTF(4, 5);

/* Where a name stands in the row of names; BH_TABLE_NOWHERE: not there. */
#define BH_TABLE_NOWHERE UINT32_MAX
/*
 * The row at hand as names of columns: place[i] of names[i]. The first n_needed must be there, one that is there twice
 * is refused, others are passed over.
 */
int bh_table_header(struct bh_table *t, const char *const *names, size_t n, size_t n_needed,
                    uint32_t *ret_place, struct bh_err *err) BH_MUST_USE;

/* The cell's text, cut at nothing: a pointer and a length. Empty where the row has no such cell. */
struct bh_cell bh_table_cell(const struct bh_table *t, uint32_t cell);
bool bh_cell_eq(struct bh_cell c, const char *s);
/* A whole number from min to max; `name` says in a complaint what it is. */
int bh_table_uint(const struct bh_table *t, uint32_t cell, const char *name, uint64_t min, uint64_t max,
                  uint64_t *ret, struct bh_err *err) BH_MUST_USE;
/* `251674.000000`: seconds below max; what is less than one is dropped. */
int bh_table_seconds(const struct bh_table *t, uint32_t cell, const char *name, uint64_t max, uint64_t *ret,
                     struct bh_err *err) BH_MUST_USE;
/* Not empty, printable ASCII, at most BH_TABLE_CELL_BYTES: names go into tables and plots. */
int bh_table_name(const struct bh_table *t, uint32_t cell, const char *name, struct bh_cell *ret,
                  struct bh_err *err) BH_MUST_USE;

#endif
