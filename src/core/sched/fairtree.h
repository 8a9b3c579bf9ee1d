/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairtree.h - Slurm's Fair Tree: one rank for every user, account by account from the root down.
 *
 * Below each parent the children are ordered by S / U, their part of the siblings' shares over their part of
 * the parent's usage. No usage is the best, no shares the worst. All users below the better of two accounts
 * come before all users below the other. A user marked "parent" (Fairshare=parent) is best in its account; an
 * account marked so is as if it were not there: what is below it competes one level up.
 *
 * Ties, as Slurm documents them: sibling users with equal values have one rank; sibling accounts with equal
 * values are merged, their children compete with each other; a user with the value of a sibling account has
 * the rank of that account's best user.
 *
 * What Slurm's code does (from 14.11 to this day, and BH_FAIRTREE_SLURM does the same): equal accounts are
 * never merged. They are visited one after the other in the order of the list, and the best user of a later
 * one only shares the rank of the last user of the one before; after an account without users even with that
 * of a better account. Ranks then depend on the order in which accounts are listed.
 *
 * Values are compared as fractions of integers. Slurm divides in floating point, so of two values that are
 * equal but made of different numbers (2 of 7 shares with 2 used, 1 of 7 with 1) it may see one as larger.
 */
#ifndef BH_CORE_SCHED_FAIRTREE_H
#define BH_CORE_SCHED_FAIRTREE_H

#include "base/err.h"
#include "base/mem.h"
#include "core/sched/wide.h"

#include <stdbool.h>
#include <stdint.h>

#define BH_FAIRTREE_PARENT UINT32_MAX /* shares: Fairshare=parent */
#define BH_FAIRTREE_ROOT   0u
#define BH_FAIRTREE_DEPTH  64u /* levels below the root */

enum bh_fairtree_rule {
    BH_FAIRTREE_DOCUMENTED,
    BH_FAIRTREE_SLURM,
};

struct bh_fairtree_node {
    uint32_t parent; /* comes before its children */
    uint32_t shares;
    uint32_t depth;
    bool user;
    uint64_t usage; /* its own; what is below is added. Held at 2^63 */
    uint32_t rank;  /* of a user, the answer: from the number of users (the best) down to 1 */
};

/* What ranking works on, for each node; filled anew each time. */
struct bh_fairtree_work {
    struct bh_ratio level;
    uint64_t usage;           /* with what is below */
    uint64_t level_shares;    /* sum over those who compete below it */
    uint32_t over;            /* below whom it competes */
    uint32_t first, children; /* in `competing` */
};

struct bh_fairtree {
    BH_VEC(struct bh_fairtree_node) nodes;
    uint32_t users;
    struct bh_fairtree_work *work; /* all of them nodes.cap long, so that ranking does not allocate */
    uint32_t *competing, *order, *spare;
    size_t room;
};

void bh_fairtree_init(struct bh_fairtree *t); /* with the root */
void bh_fairtree_fini(struct bh_fairtree *t);
/* Fails on a parent that is not there or is a user, and past BH_FAIRTREE_DEPTH. */
int bh_fairtree_add(struct bh_fairtree *t, uint32_t parent, bool user, uint32_t shares, uint64_t usage,
                    uint32_t *ret_node, struct bh_err *err);
void bh_fairtree_rank(struct bh_fairtree *t, enum bh_fairtree_rule rule);

#endif
