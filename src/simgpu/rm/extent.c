/* SPDX-License-Identifier: Apache-2.0 */
/* extent.c - a treap of free ranges, ordered by address, that finds the first one long enough. */
#include "simgpu/rm/extent.h"

#include "base/idmap.h"

static struct bh_extent *node(const struct bh_extents *e, uint32_t i)
{
    return &e->nodes.at[i];
}

static uint64_t largest(const struct bh_extents *e, uint32_t i)
{
    return i ? node(e, i)->largest : 0;
}

static void refresh(struct bh_extents *e, uint32_t i)
{
    struct bh_extent *n = node(e, i);
    uint64_t l = largest(e, n->left), r = largest(e, n->right), m = l > r ? l : r;
    n->largest = m > n->bytes ? m : n->bytes;
}

/* Ranges below `base` to *l, the rest to *r. */
static void split(struct bh_extents *e, uint32_t t, uint64_t base, uint32_t *l, uint32_t *r)
{
    if (!t) {
        *l = *r = 0;
        return;
    }
    struct bh_extent *n = node(e, t);
    if (n->base < base) {
        split(e, n->right, base, &n->right, r);
        *l = t;
    } else {
        split(e, n->left, base, l, &n->left);
        *r = t;
    }
    refresh(e, t);
}

static uint32_t join(struct bh_extents *e, uint32_t l, uint32_t r)
{
    if (!l || !r)
        return l ? l : r;
    if (node(e, l)->rank > node(e, r)->rank) {
        node(e, l)->right = join(e, node(e, l)->right, r);
        refresh(e, l);
        return l;
    }
    node(e, r)->left = join(e, l, node(e, r)->left);
    refresh(e, r);
    return r;
}

static uint32_t node_new(struct bh_extents *e, uint64_t base, uint64_t bytes)
{
    uint32_t i = e->spare;
    if (i)
        e->spare = node(e, i)->left;
    else {
        i = (uint32_t)e->nodes.n;
        (void)bh_vec_push(&e->nodes);
    }
    *node(e, i) = (struct bh_extent){base, bytes, bytes, bh_idmap_mix(base), 0, 0};
    return i;
}

static void node_drop(struct bh_extents *e, uint32_t i)
{
    node(e, i)->left = e->spare;
    e->spare = i;
}

void bh_extents_init(struct bh_extents *e, uint64_t base, uint64_t bytes)
{
    *e = (struct bh_extents){.base = base, .total_bytes = bytes, .free_bytes = bytes};
    *bh_vec_push(&e->nodes) = (struct bh_extent){0};
    e->root = bytes ? node_new(e, base, bytes) : 0;
}

void bh_extents_fini(struct bh_extents *e)
{
    bh_vec_fini(&e->nodes);
    *e = (struct bh_extents){0};
}

/* Takes from the leftmost range that is long enough; the caller knows that there is one. Returns the new root. */
static uint32_t take(struct bh_extents *e, uint32_t t, uint64_t bytes, uint64_t *ret_base)
{
    struct bh_extent *n = node(e, t);
    if (largest(e, n->left) >= bytes) {
        n->left = take(e, n->left, bytes, ret_base);
    } else if (n->bytes >= bytes) {
        *ret_base = n->base;
        n->base += bytes;
        n->bytes -= bytes;
        if (!n->bytes) {
            uint32_t rest = join(e, n->left, n->right);
            node_drop(e, t);
            return rest;
        }
    } else {
        n->right = take(e, n->right, bytes, ret_base);
    }
    refresh(e, t);
    return t;
}

bool bh_extents_take(struct bh_extents *e, uint64_t bytes, uint64_t *ret_base)
{
    if (!bytes || largest(e, e->root) < bytes)
        return false;
    e->root = take(e, e->root, bytes, ret_base);
    e->free_bytes -= bytes;
    return true;
}

/* The first or last range of t leaves it when it touches [base, end); the two grow together. */
static uint32_t absorb(struct bh_extents *e, uint32_t t, bool last, uint64_t *base, uint64_t *end)
{
    struct bh_extent *n = t ? node(e, t) : NULL;
    if (!n)
        return 0;
    uint32_t *further = last ? &n->right : &n->left;
    if (*further) {
        *further = absorb(e, *further, last, base, end);
        refresh(e, t);
        return t;
    }
    if (last ? n->base + n->bytes != *base : n->base != *end)
        return t;
    if (last)
        *base = n->base;
    else
        *end = n->base + n->bytes;
    uint32_t rest = last ? n->left : n->right;
    node_drop(e, t);
    return rest;
}

void bh_extents_give(struct bh_extents *e, uint64_t base, uint64_t bytes)
{
    uint32_t l, r;
    uint64_t end = base + bytes;
    e->free_bytes += bytes;
    split(e, e->root, base, &l, &r);
    l = absorb(e, l, true, &base, &end);
    r = absorb(e, r, false, &base, &end);
    e->root = join(e, join(e, l, node_new(e, base, end - base)), r);
}

uint64_t bh_extents_largest(const struct bh_extents *e)
{
    return largest(e, e->root);
}

bool bh_extents_next(const struct bh_extents *e, uint64_t *at, uint64_t *ret_base, uint64_t *ret_bytes)
{
    const struct bh_extent *found = NULL;
    for (uint32_t t = e->root; t;) {
        const struct bh_extent *n = node(e, t);
        if (n->base >= *at)
            found = n;
        t = n->base >= *at ? n->left : n->right;
    }
    if (!found)
        return false;
    *ret_base = found->base;
    *ret_bytes = found->bytes;
    *at = found->base + 1;
    return true;
}
