/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_read.h - reads JSON piece by piece, without a tree and without memory of its own.
 *
 * For messages from outside (a container runtime, a client of the API). The first thing that is wrong stops the reader for good;
 * every call after that answers false, so that a caller looks once, at the end. Text that ends too early
 * is told from text that is wrong (`is_short`): more of it may be on its way.
 */
#ifndef BH_BASE_JSON_READ_H
#define BH_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_JSON_READ_DEPTH_MAX = 32 };

struct bh_json_reader {
    const char *start, *at, *end;
    unsigned depth;
    bool first; /* nothing was read yet of the innermost object or array */
    bool is_short;
    const char *wrong; /* what is wrong, in words; NULL: nothing yet */
};

void bh_json_read_init(struct bh_json_reader *r, const char *text, size_t n);
/* What kind of value comes next: one of { [ " 0 t f n, or '\0'. */
char bh_json_read_peek(struct bh_json_reader *r);
bool bh_json_read_open(struct bh_json_reader *r, char bracket); /* '{' or '[' */
/* Is there another element? Its key goes into `key` (a longer one is cut); false: the bracket closed, or all is lost. */
bool bh_json_read_member(struct bh_json_reader *r, char *key, size_t size);
bool bh_json_read_item(struct bh_json_reader *r);
/* A string into buf, NUL-terminated; one with more than size - 1 bytes or with a NUL inside is wrong. */
bool bh_json_read_str(struct bh_json_reader *r, char *buf, size_t size);
/* A whole number that is not negative. */
bool bh_json_read_u64(struct bh_json_reader *r, uint64_t *ret);
bool bh_json_read_i64(struct bh_json_reader *r, int64_t *ret); /* a whole number */
bool bh_json_read_bool(struct bh_json_reader *r, bool *ret);
/* Any value, as it is written: not NUL-terminated, and known to be JSON. */
bool bh_json_read_raw(struct bh_json_reader *r, const char **ret, size_t *ret_n);
bool bh_json_read_skip(struct bh_json_reader *r); /* any value */
/* Nothing but blanks is left, and nothing was wrong. */
bool bh_json_read_end(struct bh_json_reader *r);

#endif
