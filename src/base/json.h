/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a streaming JSON writer into a capped buffer.
 *
 * The writer keeps the commas and the nesting; the caller keeps the order, so
 * the same calls give the same bytes. Indented by two spaces, for people.
 */
#ifndef BH_BASE_JSON_H
#define BH_BASE_JSON_H

#include "base/buf.h"

#include <stdint.h>

enum { BH_JSON_DEPTH_MAX = 32 };

struct bh_json {
    struct bh_buf *out;
    unsigned depth;
    uint32_t has_item; /* bit d: the container at depth d has an element already */
    uint32_t is_flat;  /* bit d: the container at depth d is written on one line */
    bool after_key;
};

void bh_json_init(struct bh_json *j, struct bh_buf *out);
void bh_json_open(struct bh_json *j, char bracket);      /* '{' or '[', an element a line */
void bh_json_open_flat(struct bh_json *j, char bracket); /* all on one line */
void bh_json_close(struct bh_json *j, char bracket);     /* '}' or ']' */
void bh_json_key(struct bh_json *j, const char *key);
void bh_json_str(struct bh_json *j,
                 const char *s); /* NULL writes null; bytes that are not UTF-8 become U+FFFD */
void bh_json_u64(struct bh_json *j, uint64_t v);
void bh_json_i64(struct bh_json *j, int64_t v);
/* v / 10^decimals, all decimals written: (12345, 3) is 12.345. */
void bh_json_fixed(struct bh_json *j, uint64_t v, unsigned decimals);
void bh_json_bool(struct bh_json *j, bool v);

/* key and value in one call, the common case */
void bh_json_key_str(struct bh_json *j, const char *key, const char *s);
void bh_json_key_u64(struct bh_json *j, const char *key, uint64_t v);
void bh_json_key_i64(struct bh_json *j, const char *key, int64_t v);
void bh_json_key_fixed(struct bh_json *j, const char *key, uint64_t v, unsigned decimals);
void bh_json_key_bool(struct bh_json *j, const char *key, bool v);

#endif
