/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - text that grows up to a stated maximum.
 *
 * The maximum is compulsory. An append that would pass it adds nothing and sets
 * `full`; the caller looks once at the end instead of after every append.
 */
#ifndef BH_BASE_BUF_H
#define BH_BASE_BUF_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bh_buf {
    char *at; /* always NUL-terminated once something was added */
    size_t n, cap, max;
    bool full;
};

void bh_buf_init(struct bh_buf *b, size_t max);
void bh_buf_fini(struct bh_buf *b);
void bh_buf_add(struct bh_buf *b, const char *s, size_t n);
void bh_buf_str(struct bh_buf *b, const char *s);
void bh_buf_u64(struct bh_buf *b, uint64_t v); /* in decimal: an answer has thousands of numbers */
void bh_buf_printf(struct bh_buf *b, const char *fmt, ...) BH_PRINTF(2, 3);
const char *bh_buf_text(const struct bh_buf *b); /* "" when empty */

#endif
