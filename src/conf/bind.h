/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.h - a map of a file into a struct, by a table of its keys.
 *
 * A reader lists the keys a map may have, what each must be and where it goes; this walks
 * the file and the table together. Everything wrong is said with its line and column and
 * the walk goes on: unknown keys with the nearest known one, values of the wrong kind with
 * what was needed and what was there. A null value counts as not written.
 *
 * Every map below an element binds into the element's own struct, so one table describes
 * `quota: {gpus: 4}` with offsets such as quota.gpus_milli.
 */
#ifndef BH_CONF_BIND_H
#define BH_CONF_BIND_H

#include "conf/diag.h"
#include "conf/tree.h"
#include "core/model/policy.h"

#include <stddef.h>

/* The C type each kind of value is kept as; BH_FIELD checks it against the member. */
#define BH_BIND_C_TEXT     const char * /* any scalar; an empty one counts as not written */
#define BH_BIND_C_NAME     const char * /* bh_name_valid */
#define BH_BIND_C_LABEL    const char * /* letters, digits, `.`, `_`, `-`: a node or a fabric */
#define BH_BIND_C_PLACED   struct bh_text
#define BH_BIND_C_TEXTS    bh_text_vec /* one text or a list of them */
#define BH_BIND_C_BOOL     bool
#define BH_BIND_C_FACT     uint8_t  /* enum bh_fact from a boolean */
#define BH_BIND_C_WORD     uint8_t  /* of a word list */
#define BH_BIND_C_WORDS    uint32_t /* a set: one word or a list of them */
#define BH_BIND_C_UINT     uint32_t
#define BH_BIND_C_INT      int32_t  /* a whole number that is not negative, where -1 means not given */
#define BH_BIND_C_COUNT    uint64_t /* thousandths */
#define BH_BIND_C_SIZE     uint64_t /* bytes */
#define BH_BIND_C_SHARE    uint32_t /* parts per million */
#define BH_BIND_C_DURATION uint64_t /* milliseconds */
#define BH_BIND_C_MONEY    uint64_t /* millionths */
#define BH_BIND_C_DATE     int32_t
#define BH_BIND_C_INSTANT  int64_t

enum bh_bind_type {
    BH_BIND_TEXT,
    BH_BIND_NAME,
    BH_BIND_LABEL,
    BH_BIND_PLACED,
    BH_BIND_TEXTS,
    BH_BIND_BOOL,
    BH_BIND_FACT,
    BH_BIND_WORD,
    BH_BIND_WORDS,
    BH_BIND_UINT,
    BH_BIND_INT,
    BH_BIND_COUNT,
    BH_BIND_SIZE,
    BH_BIND_SHARE,
    BH_BIND_DURATION,
    BH_BIND_MONEY,
    BH_BIND_DATE,
    BH_BIND_INSTANT,
    BH_BIND_MAP,  /* of.table, into the same struct */
    BH_BIND_EACH, /* of.each: a list of maps */
    BH_BIND_FN,   /* of.fn reads the value itself */
};

struct bh_bind;
struct bh_field;
typedef void (*bh_bind_fn)(struct bh_bind *b, const struct bh_node *key, const struct bh_node *value,
                           void *base);

struct bh_table {
    const struct bh_field *fields;
    size_t n; /* at most 64 */
};

/* Elements of a list, each a map of its own. */
struct bh_each {
    const char *kind; /* `tenant` */
    const struct bh_table *table;
    void *(*add)(struct bh_bind *b, void *base,
                 struct bh_pos pos); /* the struct to fill; base: of the map around */
    void (*done)(struct bh_bind *b, const struct bh_node *item, void *base); /* or NULL */
};

struct bh_field {
    const char *key;
    uint8_t type; /* enum bh_bind_type */
    bool required;
    uint16_t at;       /* where the value goes */
    uint16_t has;      /* 1 + offset of a bool that says it was given; 0: none */
    uint16_t pos;      /* 1 + offset of a struct bh_pos for the key's place; 0: none */
    uint32_t allow;    /* WORD, WORDS: bits that may be said; 0: all but `unset` */
    uint64_t min, max; /* of an amount, in the unit kept; max 0: no limit */
    union {
        const struct bh_words *words;
        const struct bh_table *table;
        const struct bh_each *each;
        bh_bind_fn fn;
    } of;
};

/* {BH_FIELD("memory", SIZE, struct bh_workload, memory_bytes), .max = ...} */
#define BH_FIELD(key_, TYPE, T, member)    \
    .key = (key_), .type = BH_BIND_##TYPE, \
    .at = (uint16_t)(offsetof(T, member) + 0 * sizeof((BH_BIND_C_##TYPE *)0 == &((T *)0)->member))
#define BH_HAS(T, member) \
    .has = (uint16_t)(1 + offsetof(T, member) + 0 * sizeof((bool *)0 == &((T *)0)->member))
#define BH_POS(T, member) \
    .pos = (uint16_t)(1 + offsetof(T, member) + 0 * sizeof((struct bh_pos *)0 == &((T *)0)->member))
#define BH_FIELD_MAP(key_, table_) .key = (key_), .type = BH_BIND_MAP, .of.table = (table_)
#define BH_FIELD_EACH(key_, each_) .key = (key_), .type = BH_BIND_EACH, .of.each = (each_)
#define BH_FIELD_FN(key_, fn_)     .key = (key_), .type = BH_BIND_FN, .of.fn = (fn_)
#define BH_TABLE(name, fields_)    static const struct bh_table name = {fields_, BH_COUNT_OF(fields_)}

/* Where the walk is, for the messages. */
struct bh_bind_scope {
    const struct bh_bind_scope *up;
    const char *kind; /* of an element; NULL: the value of key */
    const char *key;
    const struct bh_node *map;
};

struct bh_bind {
    struct bh_arena *arena; /* owns what is kept */
    struct bh_diags *d;
    uint32_t file;
    const struct bh_bind_scope *scope;
    void *ctx; /* the reader's own */
};

void bh_bind_map(struct bh_bind *b, const struct bh_table *t, const struct bh_node *map, void *base);
/* The one map that a file of this kind is, with its `bulkhead: 1`; NULL and an error when it is not. */
const struct bh_node *bh_bind_root(struct bh_bind *b, const struct bh_tree *t, const char *kind);
void bh_bind_version(struct bh_bind *b, const struct bh_node *key, const struct bh_node *value, void *base);

/* ---- for readers' own functions ---- */
struct bh_pos bh_bind_pos(const struct bh_bind *b, const struct bh_node *n);
/* The scalar's text, kept; NULL and an error when n is none. */
const char *bh_bind_text(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n);
/* Call fn with each pair of a map whose keys are the user's own. need: `a map from labels to values` */
void bh_bind_pairs(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, const char *need,
                   bh_bind_fn fn, void *base);
/* A whole number from min to max. */
bool bh_bind_uint(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, uint64_t min,
                  uint64_t max, uint64_t *ret);
/* "`key` of pool 'dev' needs NEED; found a list", at n. */
void bh_bind_need(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, const char *fmt, ...)
    BH_PRINTF(4, 5);
/* "`key` of pool 'dev': WHY" */
void bh_bind_refuse(struct bh_bind *b, const struct bh_node *key, struct bh_pos pos, const char *why);
/* One text or a list of them, appended. */
void bh_bind_texts(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n, bh_text_vec *ret);
/* A pair of scalars, kept. */
struct bh_keyed bh_bind_keyed(struct bh_bind *b, const struct bh_node *key, const struct bh_node *value);

#endif
