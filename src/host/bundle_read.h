/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_read.h - objects of a runtime's JSON by a table of the members that matter; the rest is passed over.
 *
 * Keys at such a place are the specification's, plain letters. One that Go would take for a known key although it is not
 * written like it, and one that stands there twice, are wrong (bundle_spec.h says why).
 */
#ifndef BH_HOST_BUNDLE_READ_H
#define BH_HOST_BUNDLE_READ_H

#include "base/json_read.h"

enum { BH_READ_KEY_MAX = 64, BH_READ_MEMBERS_MAX = 16 };

struct bh_read {
    struct bh_json_reader json;
    void *into;
    const char *wrong; /* with the content rather than the form; NULL: nothing */
};
struct bh_read_member {
    const char *key;
    void (*read)(struct bh_read *r); /* must take the value, whatever it is */
};

/* The members of the object that comes next; anything else than an object is passed over. Where `other` is not NULL it takes
 * the value of each key that is not known. */
void bh_read_object(struct bh_read *r, const struct bh_read_member *known, size_t n,
                    void (*other)(struct bh_read *r, const char *key));
/* Calls `read` for each element of the list that comes next; anything else is passed over. */
void bh_read_list(struct bh_read *r, void (*read)(struct bh_read *r));
/* A string that fits; false: it is something else, or longer, and was passed over. */
bool bh_read_text(struct bh_read *r, char *buf, size_t size);
/* The value as it is written; it was passed over. */
void bh_read_raw(struct bh_read *r, const char **ret, size_t *ret_n);
/* Is all of the text read, and right? Else what is wrong, in words. */
const char *bh_read_end(struct bh_read *r);

#endif
