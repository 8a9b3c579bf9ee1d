/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - rows for people, and amounts with their unit.
 *
 * Cells pass through bh_text_add, so what a tenant called its job is shown and not obeyed. On a terminal the last column is
 * cut where the line would be wider; in a pipe nothing is.
 */
#ifndef BH_CLI_TABLE_H
#define BH_CLI_TABLE_H

#include "base/arena.h"
#include "base/mem.h"
#include "cli/cli.h"

struct bh_cell {
    const char *text;
    enum bh_paint paint;
};

struct bh_table {
    struct bh_arena *arena;
    const char *const *heads;
    size_t n_columns;
    BH_VEC(struct bh_cell) cells; /* row after row */
};

void bh_table_init(struct bh_table *t, struct bh_arena *arena, const char *const *heads, size_t n_columns);
void bh_table_fini(struct bh_table *t);
/* The next cell, row after row. NULL or "": there is nothing to say, shown as -. */
void bh_table_add(struct bh_table *t, const char *text);
void bh_table_paint(struct bh_table *t, const char *text, enum bh_paint paint);
/* Heads and rows, each line behind `indent` blanks. */
void bh_table_write(const struct bh_table *t, struct bh_cli *cli, unsigned indent);

/* `head      text`, folded for eyes; nothing where text is NULL. */
void bh_fact(struct bh_cli *cli, const char *head, const char *text);
void bh_heading(struct bh_cli *cli, const char *text);

/* Each is a text in the arena; a number that is not known (BH_ANSWER_UNKNOWN) is NULL. */
const char *bh_say_gpus(struct bh_arena *a, uint64_t milli); /* `2 GPUs`, `0.5 GPU` */
const char *bh_say_memory(struct bh_arena *a, uint64_t mib); /* `20 GiB` */
const char *bh_say_count(struct bh_arena *a, uint64_t n);    /* `12` */
const char *bh_say_time(struct bh_arena *a, uint64_t ms);    /* `2026-11-15 15:01:02Z`; since 1970 */
const char *bh_say_span(struct bh_arena *a, uint64_t ms);    /* `48s`, `3m`, `2h 5m`, `4d 2h` */
const char *bh_say_since(struct bh_arena *a, uint64_t now_ms,
                         uint64_t at_ms); /* the span between; `0s` at least */
/* v / scale with three decimals: `12.500`. */
const char *bh_say_fixed(struct bh_arena *a, uint64_t v, uint64_t scale);

#endif
