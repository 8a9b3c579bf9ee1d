/* SPDX-License-Identifier: Apache-2.0 */
/* fairtree.c - levels as fractions, then one walk that hands out ranks from the best user down. */
#include "core/sched/fairtree.h"

#include <string.h>

/*
 * Slurm's code gives an account with Fairshare=parent this value, and keeps it in the list without its
 * children.
 */
#define SLURM_NO_VALUE UINT32_C(0xfffffffe)
#define USAGE_MAX      (UINT64_C(1) << 63)

void bh_fairtree_init(struct bh_fairtree *t)
{
    memset(t, 0, sizeof(*t));
    *bh_vec_push(&t->nodes) = (struct bh_fairtree_node){0};
}

void bh_fairtree_fini(struct bh_fairtree *t)
{
    bh_vec_fini(&t->nodes);
    free(t->work);
    free(t->competing);
    free(t->order);
    free(t->spare);
    memset(t, 0, sizeof(*t));
}

static void make_room(struct bh_fairtree *t)
{
    if (t->room >= t->nodes.n)
        return;
    free(t->work);
    free(t->competing);
    free(t->order);
    free(t->spare);
    t->room = t->nodes.cap;
    t->work = bh_alloc(t->room, sizeof(*t->work));
    t->competing = bh_alloc(t->room, sizeof(*t->competing));
    t->order = bh_alloc(t->room, sizeof(*t->order));
    t->spare = bh_alloc(t->room, sizeof(*t->spare));
}

int bh_fairtree_add(struct bh_fairtree *t, uint32_t parent, bool user, uint32_t shares, uint64_t usage,
                    uint32_t *ret_node, struct bh_err *err)
{
    if (parent >= t->nodes.n || t->nodes.at[parent].user)
        return bh_fail(err, BH_INVALID, "node %u is no account to be below", parent);
    const uint32_t depth = t->nodes.at[parent].depth + 1;
    if (depth > BH_FAIRTREE_DEPTH)
        return bh_fail(err, BH_INVALID, "more than %u levels", BH_FAIRTREE_DEPTH);
    *ret_node = (uint32_t)t->nodes.n;
    *bh_vec_push(&t->nodes) = (struct bh_fairtree_node){
        .parent = parent, .shares = shares, .depth = depth, .user = user, .usage = usage};
    t->users += user;
    make_room(t);
    return 0;
}

static bool transparent(const struct bh_fairtree_node *n)
{
    return !n->user && n->shares == BH_FAIRTREE_PARENT;
}

static uint64_t sum_capped(uint64_t a, uint64_t b)
{
    return a >= USAGE_MAX || b >= USAGE_MAX - a ? USAGE_MAX : a + b;
}

/* Usage up, and who competes below whom: parents stand before their children. */
static void gather(struct bh_fairtree *t, enum bh_fairtree_rule rule)
{
    const size_t n = t->nodes.n;
    uint32_t first = 0;
    for (size_t i = 0; i < n; i++) {
        const struct bh_fairtree_node *node = &t->nodes.at[i];
        const bool skip = transparent(&t->nodes.at[node->parent]);
        t->work[i] = (struct bh_fairtree_work){
            .usage = sum_capped(node->usage, 0),
            .over = skip ? t->work[node->parent].over : node->parent,
        };
    }
    for (size_t i = n; --i > 0;) {
        struct bh_fairtree_work *up = &t->work[t->nodes.at[i].parent];
        up->usage = sum_capped(up->usage, t->work[i].usage);
    }
    for (size_t i = 1; i < n; i++) {
        const struct bh_fairtree_node *node = &t->nodes.at[i];
        struct bh_fairtree_work *over = &t->work[t->work[i].over];
        if (node->shares != BH_FAIRTREE_PARENT)
            over->level_shares += node->shares;
        over->children += rule == BH_FAIRTREE_SLURM || !transparent(node);
    }
    for (size_t i = 0; i < n; i++) {
        t->work[i].first = first;
        first += t->work[i].children;
        t->work[i].children = 0;
    }
    for (size_t i = 1; i < n; i++) {
        struct bh_fairtree_work *over = &t->work[t->work[i].over];
        if (rule == BH_FAIRTREE_SLURM || !transparent(&t->nodes.at[i]))
            t->competing[over->first + over->children++] = (uint32_t)i;
    }
}

static struct bh_ratio level_of(const struct bh_fairtree *t, uint32_t i)
{
    const struct bh_fairtree_node *node = &t->nodes.at[i];
    const struct bh_fairtree_work *work = &t->work[i], *over = &t->work[work->over];
    if (node->shares == BH_FAIRTREE_PARENT)
        return node->user ? (struct bh_ratio){1, 0} : (struct bh_ratio){SLURM_NO_VALUE, 1};
    if (!node->shares)
        return (struct bh_ratio){0, 1};
    if (!work->usage)
        return (struct bh_ratio){1, 0};
    return (struct bh_ratio){bh_wide_mul(node->shares, over->usage),
                             bh_wide_mul(over->level_shares, work->usage)};
}

/* Negative: a is served before b. */
static int compare(const struct bh_fairtree *t, uint32_t a, uint32_t b)
{
    const int c = bh_ratio_cmp(t->work[b].level, t->work[a].level);
    return c ? c : t->nodes.at[b].user - t->nodes.at[a].user;
}

/* Stable, because the order of equal accounts counts where Slurm's code is followed. */
static void sort(struct bh_fairtree *t, uint32_t *at, size_t n)
{
    if (n < 2)
        return;
    const size_t half = n / 2;
    sort(t, at, half);
    sort(t, at + half, n - half);
    memcpy(t->spare, at, half * sizeof(*at));
    for (size_t to = 0, left = 0, right = half; left < half; to++) {
        const bool take_left = right == n || compare(t, t->spare[left], at[right]) <= 0;
        at[to] = take_left ? t->spare[left++] : at[right++];
    }
}

/* The ranks still to give, with ties and without. */
struct ranks {
    uint32_t tied, next;
    size_t used; /* of t->order; every node enters it once */
};

static void append(struct bh_fairtree *t, struct ranks *r, uint32_t account)
{
    const struct bh_fairtree_work *w = &t->work[account];
    for (uint32_t i = 0; i < w->children; i++)
        t->order[r->used++] = t->competing[w->first + i];
}

/* The accounts that are taken together with the one at i. */
static size_t alike(const struct bh_fairtree *t, const uint32_t *at, size_t i, size_t n,
                    enum bh_fairtree_rule rule)
{
    size_t end = i + 1;
    while (rule == BH_FAIRTREE_DOCUMENTED && end < n && !compare(t, at[i], at[end]))
        end++;
    return end;
}

static void visit(struct bh_fairtree *t, struct ranks *r, size_t begin, enum bh_fairtree_rule rule, bool tied)
{
    uint32_t *at = &t->order[begin];
    const size_t n = r->used - begin;
    sort(t, at, n);
    for (size_t i = 0, end; i < n; i = end) {
        if (i)
            tied = !bh_ratio_cmp(t->work[at[i - 1]].level, t->work[at[i]].level);
        end = i + 1;
        if (t->nodes.at[at[i]].user) {
            if (!tied)
                r->tied = r->next;
            t->nodes.at[at[i]].rank = r->tied;
            r->next--;
            continue;
        }
        const size_t below = r->used;
        end = alike(t, at, i, n, rule);
        for (size_t k = i; k < end; k++)
            append(t, r, at[k]);
        visit(t, r, below, rule, tied);
    }
}

void bh_fairtree_rank(struct bh_fairtree *t, enum bh_fairtree_rule rule)
{
    struct ranks r = {t->users, t->users, 0};
    if (t->nodes.n < 2)
        return;
    gather(t, rule);
    for (uint32_t i = 1; i < t->nodes.n; i++)
        t->work[i].level = level_of(t, i);
    append(t, &r, BH_FAIRTREE_ROOT);
    visit(t, &r, 0, rule, false);
}
