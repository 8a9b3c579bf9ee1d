/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - the numbers of the controller's structs as tables: name, place, bounds.
 *
 * One table per struct serves for checking an input, for writing a log line and for reading it back, so
 * that a field cannot be forgotten in one of the three.
 */
#ifndef BH_CORE_GOVERN_FIELDS_H
#define BH_CORE_GOVERN_FIELDS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct bh_field {
    const char *name;
    size_t offset, size;
    uint64_t min, max;
    uint64_t preset; /* of a setting */
};
struct bh_fields {
    const struct bh_field *at;
    size_t n;
};
extern const struct bh_fields bh_govern_config_fields, bh_govern_in_fields, bh_govern_asked_fields,
    bh_govern_out_fields, bh_govern_told_fields;

uint64_t bh_field_get(const struct bh_field *f, const void *from);
void bh_field_put(const struct bh_field *f, void *to, uint64_t v);
/* Every field within its bounds? */
int bh_fields_check(const struct bh_fields *fs, const void *from, struct bh_err *err) BH_MUST_USE;

#endif
