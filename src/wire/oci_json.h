/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_json.h - reads JSON piece by piece, without a tree and without memory of its own.
 *
 * For messages of a container runtime: small, and from outside. The first thing that is wrong stops the reader for good;
 * every call after that answers false, so that a caller looks once, at the end. Text that ends too early
 * is told from text that is wrong (`is_short`): more of it may be on its way.
 */
#ifndef BH_WIRE_OCI_JSON_H
#define BH_WIRE_OCI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_OCI_JSON_DEPTH_MAX = 32 };

struct bh_oci_json {
    const char *start, *at, *end;
    unsigned depth;
    bool first; /* nothing was read yet of the innermost object or array */
    bool is_short;
    const char *wrong; /* what is wrong, in words; NULL: nothing yet */
};

void bh_oci_json_init(struct bh_oci_json *r, const char *text, size_t n);
/* What kind of value comes next: one of { [ " 0 t f n, or '\0'. */
char bh_oci_json_peek(struct bh_oci_json *r);
bool bh_oci_json_open(struct bh_oci_json *r, char bracket); /* '{' or '[' */
/* Is there another element? Its key goes into `key` (a longer one is cut); false: the bracket closed, or all is lost. */
bool bh_oci_json_member(struct bh_oci_json *r, char *key, size_t size);
bool bh_oci_json_item(struct bh_oci_json *r);
/* A string into buf, NUL-terminated; one with more than size - 1 bytes or with a NUL inside is wrong. */
bool bh_oci_json_str(struct bh_oci_json *r, char *buf, size_t size);
/* A whole number that is not negative. */
bool bh_oci_json_u64(struct bh_oci_json *r, uint64_t *ret);
bool bh_oci_json_skip(struct bh_oci_json *r); /* any value */
/* Nothing but blanks is left, and nothing was wrong. */
bool bh_oci_json_end(struct bh_oci_json *r);

#endif
