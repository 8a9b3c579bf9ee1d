/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairtree_test.c - the documented rule, its ties, the places where Slurm's code differs, and properties of
 * random trees.
 */
#include "core/sched/fairtree.h"

#include "base/choice.h"
#include "base/test.h"

#define NODES_MAX 60

static uint32_t add(struct bh_fairtree *t, uint32_t parent, bool user, uint32_t shares, uint64_t usage)
{
    uint32_t i = UINT32_MAX;
    if (bh_fairtree_add(t, parent, user, shares, usage, &i, NULL))
        abort();
    return i;
}

static uint32_t account(struct bh_fairtree *t, uint32_t parent, uint32_t shares)
{
    return add(t, parent, false, shares, 0);
}

static uint32_t user(struct bh_fairtree *t, uint32_t parent, uint32_t shares, uint64_t usage)
{
    return add(t, parent, true, shares, usage);
}

static uint32_t rank(const struct bh_fairtree *t, uint32_t node)
{
    return t->nodes.at[node].rank;
}

TEST(users_of_the_better_account_come_first)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    const uint32_t a = account(&t, 0, 40), b = account(&t, 0, 60);
    const uint32_t ann = user(&t, a, 1, 10),
                   abe = user(&t, a, 1, 500); /* 510 of 810 used with 40 of 100 shares */
    const uint32_t bea = user(&t, b, 1, 100), bob = user(&t, b, 1, 200);
    bh_fairtree_rank(&t, BH_FAIRTREE_DOCUMENTED);
    CHECK_EQ(rank(&t, bea), 4);
    CHECK_EQ(rank(&t, bob), 3);
    CHECK_EQ(rank(&t, ann), 2); /* used least of all, in the account that used most */
    CHECK_EQ(rank(&t, abe), 1);
}

TEST(no_usage_is_best_and_no_shares_worst)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    const uint32_t idle = user(&t, 0, 1, 0), busy = user(&t, 0, 100, 1), none = user(&t, 0, 0, 0);
    bh_fairtree_rank(&t, BH_FAIRTREE_DOCUMENTED);
    CHECK_EQ(rank(&t, idle), 3);
    CHECK_EQ(rank(&t, busy), 2);
    CHECK_EQ(rank(&t, none), 1);
}

TEST(users_alike_share_a_rank)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    const uint32_t a = user(&t, 0, 2, 20), b = user(&t, 0, 1, 10), c = user(&t, 0, 1, 11);
    bh_fairtree_rank(&t, BH_FAIRTREE_DOCUMENTED);
    CHECK_EQ(rank(&t, a), 3);
    CHECK_EQ(rank(&t, b), 3);
    CHECK_EQ(rank(&t, c), 1);
}

/* Two accounts alike. Merged, their users compete: x1 50/50, y1 10/100 and so on. */
static void tied_accounts(struct bh_fairtree *t, uint32_t out[4], enum bh_fairtree_rule rule)
{
    bh_fairtree_init(t);
    const uint32_t x = account(t, 0, 1), y = account(t, 0, 1);
    out[0] = user(t, x, 1, 40);
    out[1] = user(t, x, 1, 60);
    out[2] = user(t, y, 1, 10);
    out[3] = user(t, y, 1, 90);
    bh_fairtree_rank(t, rule);
}

TEST(accounts_alike_are_merged_as_documented)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    uint32_t u[4];
    tied_accounts(&t, u, BH_FAIRTREE_DOCUMENTED);
    CHECK_EQ(rank(&t, u[2]), 4);
    CHECK_EQ(rank(&t, u[0]), 3);
    CHECK_EQ(rank(&t, u[1]), 2);
    CHECK_EQ(rank(&t, u[3]), 1);
}

TEST(accounts_alike_are_not_merged_by_slurms_code)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    uint32_t u[4];
    tied_accounts(&t, u, BH_FAIRTREE_SLURM);
    CHECK_EQ(rank(&t, u[0]), 4);
    CHECK_EQ(rank(&t, u[1]), 3);
    CHECK_EQ(rank(&t, u[2]), 3); /* the first of the second account has the last rank of the first */
    CHECK_EQ(rank(&t, u[3]), 1);
}

TEST(a_user_beside_an_account_alike_has_the_rank_of_its_best)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    const uint32_t a = account(&t, 0, 1), lone = user(&t, 0, 1, 30);
    const uint32_t a1 = user(&t, a, 1, 10), a2 = user(&t, a, 1, 20);
    for (int rule = BH_FAIRTREE_DOCUMENTED; rule <= BH_FAIRTREE_SLURM; rule++) {
        bh_fairtree_rank(&t, (enum bh_fairtree_rule)rule);
        CHECK_EQ(rank(&t, lone), 3);
        CHECK_EQ(rank(&t, a1), 3);
        CHECK_EQ(rank(&t, a2), 1);
    }
}

TEST(parent_as_share)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    const uint32_t a = account(&t, 0, 10), through = account(&t, a, BH_FAIRTREE_PARENT);
    const uint32_t deep = user(&t, through, 1, 5), flat = user(&t, a, 1, 6),
                   by_parent = user(&t, a, BH_FAIRTREE_PARENT, 999);
    for (int rule = BH_FAIRTREE_DOCUMENTED; rule <= BH_FAIRTREE_SLURM; rule++) {
        bh_fairtree_rank(&t, (enum bh_fairtree_rule)rule);
        CHECK_EQ(rank(&t, by_parent), 3); /* best in its account, whatever it used */
        CHECK_EQ(rank(&t, deep), 2);      /* competes with its uncle: 5 used against 6, one share each */
        CHECK_EQ(rank(&t, flat), 1);
    }
}

/* An account without users hides from Slurm's code that its sibling does not tie with what came before. */
TEST(an_empty_account_in_slurms_code)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    const uint32_t good = user(&t, 0, 2, 1), a = account(&t, 0, 1);
    account(&t, a, 1);
    const uint32_t b = account(&t, a, 1), idle = user(&t, b, 1, 0), busy = user(&t, 0, 1, 5);
    t.nodes.at[a].usage = 4;
    bh_fairtree_rank(&t, BH_FAIRTREE_DOCUMENTED);
    CHECK_EQ(rank(&t, good), 3);
    CHECK_EQ(rank(&t, idle), 2);
    bh_fairtree_rank(&t, BH_FAIRTREE_SLURM);
    CHECK_EQ(rank(&t, good), 3);
    CHECK_EQ(rank(&t, idle), 3);
    CHECK_EQ(rank(&t, busy), 1);
}

TEST(refusals)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    uint32_t u = user(&t, 0, 1, 1), ret = 77, deep = 0;
    CHECK_EQ(bh_fairtree_add(&t, u, true, 1, 1, &ret, NULL), BH_INVALID);
    CHECK_EQ(bh_fairtree_add(&t, 99, true, 1, 1, &ret, NULL), BH_INVALID);
    for (unsigned i = 0; i < BH_FAIRTREE_DEPTH; i++)
        deep = account(&t, deep, 1);
    CHECK_EQ(bh_fairtree_add(&t, deep, true, 1, 1, &ret, NULL), BH_INVALID);
    CHECK_EQ(ret, 77);
}

TEST(amounts_past_the_range_are_held)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    bh_fairtree_init(&t);
    const uint32_t a = account(&t, 0, UINT32_MAX - 1), b = user(&t, 0, UINT32_MAX - 1, UINT64_MAX);
    const uint32_t a1 = user(&t, a, UINT32_MAX - 1, UINT64_MAX), a2 = user(&t, a, 1, UINT64_MAX);
    bh_fairtree_rank(&t, BH_FAIRTREE_DOCUMENTED);
    CHECK_EQ(rank(&t, b), 3);
    CHECK_EQ(rank(&t, a1), 3);
    CHECK_EQ(rank(&t, a2), 1);
}

/* A random tree as a plan, so that it can be built in another order too. */
struct plan {
    uint32_t n, parent[NODES_MAX], shares[NODES_MAX];
    bool user[NODES_MAX];
    uint64_t usage[NODES_MAX];
};

static void draw_plan(struct bh_choice *c, struct plan *p)
{
    const uint32_t span = 1 + bh_choose(c, 6);
    p->n = 2 + bh_choose(c, NODES_MAX - 2);
    p->user[0] = false;
    p->parent[0] = 0;
    for (uint32_t i = 1; i < p->n; i++) {
        do
            p->parent[i] = bh_choose(c, i < 4 ? 1 : i);
        while (p->user[p->parent[i]]);
        p->user[i] = bh_choose(c, 3) != 0;
        p->shares[i] = bh_choose(c, 12) ? bh_choose(c, 1 + span) : BH_FAIRTREE_PARENT;
        p->usage[i] = p->user[i] ? bh_choose(c, 1 + span * 2) : 0;
    }
}

/* order[k] is the plan's node that is added k-th; where[] says what became of it. */
static void build(struct bh_fairtree *t, const struct plan *p, const uint32_t *order, uint32_t *where)
{
    bh_fairtree_init(t);
    where[0] = 0;
    for (uint32_t k = 1; k < p->n; k++) {
        const uint32_t i = order[k];
        where[i] = add(t, where[p->parent[i]], p->user[i], p->shares[i], p->usage[i]);
    }
}

static void any_order(struct bh_choice *c, const struct plan *p, uint32_t *order)
{
    bool done[NODES_MAX] = {true};
    order[0] = 0;
    for (uint32_t k = 1; k < p->n; k++) {
        uint32_t i = bh_choose(c, p->n);
        while (done[i] || !done[p->parent[i]])
            i = (i + 1) % p->n;
        order[k] = i;
        done[i] = true;
    }
}

/* Is `node` below `top`, or it? */
static bool is_below(const struct bh_fairtree *t, uint32_t node, uint32_t top)
{
    while (node != top && node)
        node = t->nodes.at[node].parent;
    return node == top;
}

/* By how much a user of the better one must be ahead: by Slurm's code it may be 0. */
static bool better_beats_worse(const struct bh_fairtree *t, uint32_t ahead)
{
    const uint32_t n = (uint32_t)t->nodes.n;
    for (uint32_t a = 1; a < n; a++)
        for (uint32_t b = 1; b < n; b++) {
            if (a == b || t->work[a].over != t->work[b].over ||
                bh_ratio_cmp(t->work[a].level, t->work[b].level) <= 0)
                continue;
            if ((!t->nodes.at[a].user && t->nodes.at[a].shares == BH_FAIRTREE_PARENT) ||
                (!t->nodes.at[b].user && t->nodes.at[b].shares == BH_FAIRTREE_PARENT))
                continue; /* what is below these competes elsewhere */
            for (uint32_t x = a; x < n; x++)
                for (uint32_t y = b; y < n; y++)
                    if (t->nodes.at[x].user && t->nodes.at[y].user && is_below(t, x, a) &&
                        is_below(t, y, b) && rank(t, x) < rank(t, y) + ahead)
                        return false;
        }
    return true;
}

/* A rank says how many are better. */
static bool ranks_count(const struct bh_fairtree *t)
{
    for (uint32_t a = 1; a < t->nodes.n; a++) {
        uint32_t better = 0;
        for (uint32_t b = 1; b < t->nodes.n; b++)
            better += t->nodes.at[b].user && rank(t, b) > rank(t, a);
        if (t->nodes.at[a].user && rank(t, a) != t->users - better)
            return false;
    }
    return true;
}

TEST(random_trees)
{
    uint8_t bytes[8192];
    struct plan p = {0};
    for (uint64_t seed = 0; seed < 250; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        uint32_t order[NODES_MAX], where[NODES_MAX], where2[NODES_MAX];
        struct bh_fairtree t BH_AUTO(bh_fairtree_fini), other BH_AUTO(bh_fairtree_fini);
        draw_plan(&c, &p);
        for (uint32_t i = 0; i < p.n; i++)
            order[i] = i;
        build(&t, &p, order, where);
        any_order(&c, &p, order);
        build(&other, &p, order, where2);
        bh_fairtree_rank(&t, BH_FAIRTREE_SLURM);
        CHECK(better_beats_worse(&t, 0));
        CHECK(ranks_count(&t));
        bh_fairtree_rank(&t, BH_FAIRTREE_DOCUMENTED);
        CHECK(better_beats_worse(&t, 1));
        CHECK(ranks_count(&t));
        bh_fairtree_rank(&other, BH_FAIRTREE_DOCUMENTED);
        for (uint32_t i = 1; i < p.n; i++) /* as documented, the order of the list does not count */
            CHECK_EQ(rank(&t, where[i]), rank(&other, where2[i]));
    }
}

TEST_MAIN
