/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_merkle.h - the Merkle tree of RFC 6962 (and 9162) over the hashes of the records.
 *
 * With it one hash stands for the whole log, one record can be shown to be in it without the others
 * (inclusion), and an old root can be shown to be the beginning of a new one (consistency). Leaves are given as
 * leaf hashes. Two forms: the edge (a hash for each complete subtree, enough to add leaves and to know the root;
 * at most 2 KiB, it lies in the database) and the tree (all nodes, for proofs).
 */
#ifndef BH_STORE_AUDIT_MERKLE_H
#define BH_STORE_AUDIT_MERKLE_H

#include "base/mem.h"
#include "store/audit_crypto.h"

enum { BH_MERKLE_LEVELS = 64 };

/* ---- the edge ---- */

struct bh_merkle {
    uint64_t n;                            /* leaves */
    struct bh_hash peak[BH_MERKLE_LEVELS]; /* the largest subtree first; as many as n has bits set */
};

void bh_merkle_add(struct bh_merkle *m, const struct bh_hash *leaf); /* a zeroed struct is the empty tree */
void bh_merkle_root(const struct bh_merkle *m, struct bh_hash *ret);
size_t bh_merkle_peaks(const struct bh_merkle *m);
/* From what was stored: n leaves and their peaks, as bytes; false: they cannot belong together. */
bool bh_merkle_load(struct bh_merkle *m, uint64_t n, const void *peaks, size_t n_bytes);

/* ---- the tree ---- */

typedef BH_VEC(struct bh_hash) bh_hash_vec;

struct bh_merkle_tree {
    struct bh_merkle left; /* leaves that are gone: their edge is left */
    uint64_t n;            /* leaves, those that are gone too */
    bh_hash_vec level[BH_MERKLE_LEVELS];
};

/* left: NULL when the tree begins with its first leaf. */
void bh_merkle_tree_init(struct bh_merkle_tree *t, const struct bh_merkle *left);
void bh_merkle_tree_fini(struct bh_merkle_tree *t);
void bh_merkle_tree_add(struct bh_merkle_tree *t, const struct bh_hash *leaf);
/*
 * The proof that leaf number `leaf` (from 0) is in the tree of the first `size` leaves; and that the first
 * `from` leaves are the beginning of the first `size`. False: no such leaf or tree here (or it is gone).
 */
bool bh_merkle_inclusion(const struct bh_merkle_tree *t, uint64_t leaf, uint64_t size, bh_hash_vec *ret);
bool bh_merkle_consistency(const struct bh_merkle_tree *t, uint64_t from, uint64_t size, bh_hash_vec *ret);

/* ---- proofs, held against roots ---- */

bool bh_merkle_inclusion_check(const struct bh_hash *leaf_hash, uint64_t leaf, uint64_t size,
                               const struct bh_hash *proof, size_t n_proof, const struct bh_hash *root);
bool bh_merkle_consistency_check(uint64_t from, const struct bh_hash *from_root, uint64_t size,
                                 const struct bh_hash *root, const struct bh_hash *proof, size_t n_proof);

#endif
