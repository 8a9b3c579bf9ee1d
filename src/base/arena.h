/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that is freed all at once.
 *
 * One document, one policy or one report owns an arena; everything hung below
 * it borrows. Blocks double up to 1 MiB, so the waste stays under a tenth of
 * what was asked for and a large document costs few system calls.
 */
#ifndef BH_BASE_ARENA_H
#define BH_BASE_ARENA_H

#include "base/err.h"

#include <stddef.h>

struct bh_arena_block;
struct bh_arena {
    struct bh_arena_block *head;
    size_t total_bytes; /* obtained from malloc, for the linear-memory checks */
};

void bh_arena_fini(struct bh_arena *a);                   /* a zeroed struct is an empty arena */
void *bh_arena_alloc(struct bh_arena *a, size_t n_bytes); /* zeroed, 8-aligned, never NULL */
char *bh_arena_strn(struct bh_arena *a, const char *s, size_t n);
char *bh_arena_str(struct bh_arena *a, const char *s);
char *bh_arena_printf(struct bh_arena *a, const char *fmt, ...) BH_PRINTF(2, 3);

#endif
