/* SPDX-License-Identifier: Apache-2.0 */
/* audit_merkle.c - RFC 6962's tree: a node is SHA-256(1, left, right), split at the largest power of two below n. */
#include "store/audit_merkle.h"

#include <string.h>

static void node(const struct bh_hash *left, const struct bh_hash *right, struct bh_hash *ret)
{
    struct bh_hash both[2] = {*left, *right};
    bh_hash_of(1, both[0].at, BH_HASH_BYTES, both[1].at, BH_HASH_BYTES, ret);
}

/* ---- the edge ---- */

size_t bh_merkle_peaks(const struct bh_merkle *m)
{
    return (size_t)__builtin_popcountll(m->n);
}

void bh_merkle_add(struct bh_merkle *m, const struct bh_hash *leaf)
{
    struct bh_hash h = *leaf;
    size_t n = bh_merkle_peaks(m);
    for (uint64_t rest = m->n; rest & 1; rest >>= 1)
        node(&m->peak[--n], &h, &h);
    m->peak[n] = h;
    m->n++;
}

void bh_merkle_root(const struct bh_merkle *m, struct bh_hash *ret)
{
    size_t n = bh_merkle_peaks(m);
    if (n == 0) {
        bh_hash_plain(NULL, 0, ret);
        return;
    }
    struct bh_hash h = m->peak[--n];
    while (n)
        node(&m->peak[--n], &h, &h);
    *ret = h;
}

bool bh_merkle_load(struct bh_merkle *m, uint64_t n, const void *peaks, size_t n_bytes)
{
    if (n >> 62 || n_bytes != (size_t)__builtin_popcountll(n) * BH_HASH_BYTES)
        return false;
    *m = (struct bh_merkle){.n = n};
    if (n_bytes)
        memcpy(m->peak, peaks, n_bytes);
    return true;
}

/* ---- the tree ---- */

void bh_merkle_tree_init(struct bh_merkle_tree *t, const struct bh_merkle *left)
{
    *t = (struct bh_merkle_tree){0};
    if (left) {
        t->left = *left;
        t->n = left->n;
    }
}

void bh_merkle_tree_fini(struct bh_merkle_tree *t)
{
    for (size_t i = 0; i < BH_MERKLE_LEVELS; i++)
        bh_vec_fini(&t->level[i]);
}

/* The first node of a level that is kept: all before it have no leaf left. It may itself begin with some that are gone. */
static uint64_t first_kept(const struct bh_merkle_tree *t, unsigned level)
{
    return t->left.n >> level;
}

/* Node `i` of a level, which covers the leaves from i << level on; NULL: it is not complete, or gone. */
static const struct bh_hash *find(const struct bh_merkle_tree *t, unsigned level, uint64_t i)
{
    const uint64_t first = first_kept(t, level);
    if (i >= first)
        return i - first < t->level[level].n ? &t->level[level].at[i - first] : NULL;
    /* beside what is left lie the peaks of what is gone, and only they are ever needed */
    if (!(first & 1) || i != first - 1)
        return NULL;
    return &t->left.peak[__builtin_popcountll(first) - 1];
}

void bh_merkle_tree_add(struct bh_merkle_tree *t, const struct bh_hash *leaf)
{
    struct bh_hash h = *leaf;
    uint64_t i = t->n++;
    *bh_vec_push(&t->level[0]) = h;
    for (unsigned level = 1; i & 1; i >>= 1, level++) {
        node(find(t, level - 1, i - 1), &h, &h);
        *bh_vec_push(&t->level[level]) = h;
    }
}

/* The largest power of two below n, as its exponent; n > 1. */
static unsigned split(uint64_t n)
{
    return 63u - (unsigned)__builtin_clzll(n - 1);
}

/* The root of the leaves from..from + n - 1, as they stand in a larger tree: from is a multiple of a power of two >= n. */
static bool root_of(const struct bh_merkle_tree *t, uint64_t from, uint64_t n, struct bh_hash *ret)
{
    struct bh_hash right;
    if ((n & (n - 1)) == 0) {
        const unsigned level = (unsigned)__builtin_ctzll(n);
        const struct bh_hash *h = find(t, level, from >> level);
        if (h)
            *ret = *h;
        return h != NULL;
    }
    const uint64_t k = UINT64_C(1) << split(n);
    if (!root_of(t, from, k, ret) || !root_of(t, from + k, n - k, &right))
        return false;
    node(ret, &right, ret);
    return true;
}

static bool push_root(const struct bh_merkle_tree *t, uint64_t from, uint64_t n, bh_hash_vec *ret)
{
    struct bh_hash h;
    if (!root_of(t, from, n, &h))
        return false;
    *bh_vec_push(ret) = h;
    return true;
}

static void reverse(bh_hash_vec *v)
{
    for (size_t i = 0; i < v->n / 2; i++) {
        const struct bh_hash h = v->at[i];
        v->at[i] = v->at[v->n - 1 - i];
        v->at[v->n - 1 - i] = h;
    }
}

/* RFC 6962, 2.1.1: walked from the root down, so what is pushed stands the wrong way round until the end. */
bool bh_merkle_inclusion(const struct bh_merkle_tree *t, uint64_t leaf, uint64_t size, bh_hash_vec *ret)
{
    uint64_t from = 0, n = size;
    ret->n = 0;
    if (leaf >= size || size > t->n || leaf < t->left.n)
        return false;
    while (n > 1) {
        const uint64_t k = UINT64_C(1) << split(n);
        const bool is_left = leaf - from < k;
        if (!(is_left ? push_root(t, from + k, n - k, ret) : push_root(t, from, k, ret)))
            return false;
        from += is_left ? 0 : k;
        n = is_left ? k : n - k;
    }
    reverse(ret);
    return true;
}

/* RFC 6962, 2.1.2. */
bool bh_merkle_consistency(const struct bh_merkle_tree *t, uint64_t from, uint64_t size, bh_hash_vec *ret)
{
    uint64_t at = 0, n = size, m = from;
    bool whole = true; /* the old tree is a subtree of the new one, whose root the reader has */
    ret->n = 0;
    if (from == 0 || from > size || size > t->n || from < t->left.n)
        return false;
    while (m != n) {
        const uint64_t k = UINT64_C(1) << split(n);
        const bool is_left = m <= k;
        if (!(is_left ? push_root(t, at + k, n - k, ret) : push_root(t, at, k, ret)))
            return false;
        whole = whole && is_left;
        at += is_left ? 0 : k;
        m -= is_left ? 0 : k;
        n = is_left ? k : n - k;
    }
    if (!whole && !push_root(t, at, m, ret))
        return false;
    reverse(ret);
    return true;
}

/* ---- proofs, held against roots ---- */

/* RFC 9162, 2.1.3.2. */
bool bh_merkle_inclusion_check(const struct bh_hash *leaf_hash, uint64_t leaf, uint64_t size,
                               const struct bh_hash *proof, size_t n_proof, const struct bh_hash *root)
{
    struct bh_hash h = *leaf_hash;
    uint64_t i = leaf, last = size - 1;
    if (leaf >= size)
        return false;
    for (size_t p = 0; p < n_proof; p++, i >>= 1, last >>= 1) {
        if (last == 0)
            return false;
        if (!(i & 1) && i != last) {
            node(&h, &proof[p], &h);
            continue;
        }
        node(&proof[p], &h, &h);
        for (; !(i & 1) && i; i >>= 1)
            last >>= 1;
    }
    return last == 0 && bh_hash_eq(&h, root);
}

/* RFC 9162, 2.1.4.2. */
bool bh_merkle_consistency_check(uint64_t from, const struct bh_hash *from_root, uint64_t size,
                                 const struct bh_hash *root, const struct bh_hash *proof, size_t n_proof)
{
    struct bh_hash old, new;
    uint64_t i = from - 1, last = size - 1;
    size_t p = 0;
    if (from == 0 || from > size)
        return false;
    if (from == size)
        return n_proof == 0 && bh_hash_eq(from_root, root);
    for (; i & 1; i >>= 1)
        last >>= 1;
    if (n_proof == 0 && i)
        return false;
    old = new = i ? proof[p++] : *from_root; /* a complete old tree is its own first node */
    for (; p < n_proof; p++, i >>= 1, last >>= 1) {
        if (last == 0)
            return false;
        if (!(i & 1) && i != last) {
            node(&new, &proof[p], &new);
            continue;
        }
        node(&proof[p], &old, &old);
        node(&proof[p], &new, &new);
        for (; !(i & 1) && i; i >>= 1)
            last >>= 1;
    }
    return last == 0 && bh_hash_eq(&old, from_root) && bh_hash_eq(&new, root);
}
