/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.h - what callers send, read by a table into a struct.
 *
 * One table says which fields an object has, what each must be and where it goes; the reader, the reader of query strings
 * and the OpenAPI document all follow it, so that what is documented is what is read. Strict: a field nobody knows, one that is
 * given twice, a null, a value of another kind or past its limit is refused with what was needed.
 */
#ifndef BH_API_BODY_H
#define BH_API_BODY_H

#include "api/problem.h"
#include "base/arena.h"
#include "core/model/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each is in C. */
#define BH_API_C_TEXT  const char *          /* NULL: not given */
#define BH_API_C_NAME  const char *          /* bh_name_valid() */
#define BH_API_C_WORD  const char *          /* one of `words` */
#define BH_API_C_U64   uint64_t              /* 0: not given */
#define BH_API_C_I64   int64_t               /* `max` is as far as it goes to both sides */
#define BH_API_C_BOOL  bool                  /* false: not given */
#define BH_API_C_ID    uint64_t              /* `J17`, `L17`, `T3` or the bare number; 0: not given */
#define BH_API_C_TEXTS struct bh_api_texts   /* n 0: not given */
#define BH_API_C_ONE   void *                /* an object of the shape `of`; NULL: not given */
#define BH_API_C_MANY  struct bh_api_objects /* a list of them */

enum bh_api_type {
    BH_API_TEXT,
    BH_API_NAME,
    BH_API_WORD,
    BH_API_U64,
    BH_API_I64,
    BH_API_BOOL,
    BH_API_ID,
    BH_API_TEXTS,
    BH_API_ONE,
    BH_API_MANY,
    BH_API_TYPES
};

struct bh_api_objects {
    void *at; /* one behind the other, `of->size` bytes each */
    size_t n;
};

struct bh_api_shape;
struct bh_api_field {
    const char *name;
    uint8_t type; /* enum bh_api_type */
    bool required;
    char letter;   /* ID: `J` */
    uint16_t at;   /* where it goes */
    uint32_t most; /* TEXTS, MANY: items */
    uint64_t max;  /* bytes of a text (or of each), the largest number */
    const struct bh_words *words;
    const struct bh_api_shape *of;
    const char *doc;
};
struct bh_api_shape {
    const char *name; /* in the document */
    const struct bh_api_field *fields;
    size_t n; /* at most 32 */
    size_t size;
};

/* {BH_API_FIELD("tenant", NAME, struct bh_api_submit, tenant), .required = true, .doc = "whose job it is"} */
#define BH_API_FIELD(key, TYPE, T, member) \
    .name = (key), .type = BH_API_##TYPE,  \
    .at = (uint16_t)(offsetof(T, member) + 0 * sizeof((BH_API_C_##TYPE *)0 == &((T *)0)->member))

/*
 * The whole text is one object of this shape. *ret has shape->size bytes and is zeroed first; what it points at
 * lives in the arena.
 */
int bh_api_body_read(const struct bh_api_shape *shape, const char *text, size_t n, struct bh_arena *arena,
                     void *ret, struct bh_api_problem *p) BH_MUST_USE;
/* One pair of a query string, decoded. `seen` is 0 before the first; bits of the fields that came. */
int bh_api_query_read(const struct bh_api_shape *shape, const char *name, const char *value, uint32_t *seen,
                      struct bh_arena *arena, void *ret, struct bh_api_problem *p) BH_MUST_USE;
/* Nothing that is required is missing. */
int bh_api_shape_done(const struct bh_api_shape *shape, uint32_t seen, struct bh_api_problem *p) BH_MUST_USE;

/* `J17` or `17`; false: neither. */
bool bh_api_id_parse(const char *s, char letter, uint64_t *ret);

#endif
