/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - YAML text as a tree that remembers where everything stood.
 *
 * libyaml reads; this keeps line and column on every node, follows aliases, and
 * holds the limits that keep a hostile file from costing more than its size:
 * 64 MiB of text, 32 levels, aliases that expand to at most four times the
 * file's own nodes. JSON is YAML here. Several documents a file are several roots.
 *
 * Shaped for files of a few hundred thousand nodes: nodes are 32 bytes, children
 * are a linked list in file order, scalars are copied once into the arena.
 */
#ifndef BH_CONF_TREE_H
#define BH_CONF_TREE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bh_node_kind { BH_NODE_SCALAR, BH_NODE_SEQ, BH_NODE_MAP };

struct bh_node {
    struct bh_node *next; /* next sibling; in a map: key, value, key, value, ... */
    union {
        struct bh_node *first; /* of a seq or map, NULL when empty */
        const char *text;      /* of a scalar, NUL-terminated (a NUL inside is refused) */
    } u;
    uint32_t line, column; /* from 1: where the node's text starts */
    uint32_t n;            /* children of a seq, pairs of a map, bytes of a scalar */
    uint8_t kind;          /* enum bh_node_kind */
    bool quoted;           /* scalar: was quoted or a block, so never null/bool/number by accident */
    bool literal;          /* scalar: a literal block (|): its text starts on line+1 */
};

struct bh_tree {
    struct bh_arena arena;
    BH_VEC(struct bh_node *) docs; /* roots, in file order; an empty document is skipped */
    const char *text;              /* borrowed: the caller keeps it while it asks for comments */
    size_t n_text;
    uint32_t *line_at; /* offset of each line, made on the first bh_tree_comment */
    size_t n_lines;
};

/* Why a file could not be read, and where. */
struct bh_tree_error {
    uint32_t line, column;
    char message[200];
};

void bh_tree_fini(struct bh_tree *t);
/* Parse; on failure *ret_error says where, and *t is empty. */
int bh_tree_parse(struct bh_tree *t, const char *text, size_t n, struct bh_tree_error *ret_error) BH_MUST_USE;

/* A map's value for key, or NULL. Linear: for maps with few keys. */
const struct bh_node *bh_node_get(const struct bh_node *map, const char *key);
/* Like bh_node_get twice and more: bh_node_path(n, "spec", "template", NULL). */
const struct bh_node *bh_node_path(const struct bh_node *map, ...) __attribute__((sentinel));
/* A scalar's text, or NULL when n is NULL or no scalar. */
const char *bh_node_text(const struct bh_node *n);
bool bh_node_is_null(const struct bh_node *n); /* plain `~`, `null`, or nothing */
/* -1: no boolean. Plain true/false/yes/no/on/off. */
int bh_node_bool(const struct bh_node *n);

/* for (const struct bh_node *k = map->u.first, *v; k && (v = k->next, true); k = v->next) */
#define BH_EACH_PAIR(k, v, map) \
    for (const struct bh_node *k = (map)->u.first, *v = NULL; k && (v = k->next, true); k = v->next)
#define BH_EACH_ITEM(i, seq) for (const struct bh_node *i = (seq)->u.first; i; i = i->next)

/*
 * The comment on a line, without its `#` and leading blanks, or NULL. Looks for a `#` that
 * starts the line or follows a blank, outside quotes. The text is copied into the tree's arena.
 */
const char *bh_tree_comment(struct bh_tree *t, uint32_t line);
/* The same with its place. */
struct bh_comment {
    const char *text;
    uint32_t column; /* of the `#`, from 1 */
    bool alone;      /* nothing else stands on the line */
};
bool bh_tree_comment_find(struct bh_tree *t, uint32_t line, struct bh_comment *ret);

#endif
