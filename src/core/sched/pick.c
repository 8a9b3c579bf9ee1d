/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick.c - trees of maxima, one per class and GPU model.
 *
 * Classes that differ only in trust have one base: scores as if everybody got on with everybody. Scoring is done
 * there, once for all of them; a class takes the base's score where trust makes no difference, nothing where
 * it forbids the node, and scores for itself only nodes shared with others.
 *
 * The nodes of a model stand in a row by rank, each with one byte: its score for the class. Above them one byte
 * for each 64, and one for the row. A change of one byte looks at its 64, and at the row above, only when it was
 * the largest; the first of the largest is found by memchr(). So the row is as good as a binary tree of
 * tournaments, and a tenth of its size.
 */
#include "core/sched/pick.h"

#include "core/sched/fleet_inside.h"

enum {
    FAN = 64,
    ROWS = BH_MODELS_MAX + 1, /* nodes without GPUs have a row too */
    MEMO = 8192,              /* kinds of nodes remembered while building; a power of two */
    AHEAD = 4                 /* changes that are fetched before they are looked at */
};

struct row {
    uint32_t first, end; /* bytes of the row in `leaf`; multiples of FAN */
};

/* Scores as if everybody got on with everybody, and which nodes a class has to look at again. */
struct base {
    uint8_t *leaf; /* NULL: not built yet */
    uint64_t at;   /* position in the shelf's change log */
    uint64_t shelf_epoch, score_epoch;
    uint64_t built;    /* how often: what was taken from it before says nothing */
    uint32_t *log;     /* ring of leaves whose score changed, or that can be had and changed otherwise */
    uint64_t log_head; /* position of the next entry */
};

struct index {
    uint8_t *leaf, *block; /* NULL: not built yet */
    uint8_t root[ROWS];
    uint64_t at;    /* position in the base's log */
    uint64_t built; /* the base's, when this was made */
};

struct bh_pick {
    const struct bh_shelf *shelf;
    struct bh_score *score;
    uint64_t epoch; /* of the shelf, when the rows were laid */
    struct row rows[ROWS];
    uint32_t n_leaves;
    uint32_t *node_of;     /* leaf to node, or BH_NONE */
    uint32_t *leaf_of;     /* node to leaf */
    uint8_t *model_of;     /* block to model */
    uint32_t log_cap;      /* of each base's log; a power of two */
    struct index *indexes; /* by class */
    uint32_t *base_of;     /* class to base, plus one */
    size_t n_indexes, n_base_of;
    struct base *bases;
    size_t n_bases;
    struct bh_requests base_requests; /* without trust */
    uint32_t *memo;                   /* while building: nodes by hash, plus one */
    uint64_t scored;
};

struct bh_pick *bh_pick_new(const struct bh_shelf *shelf, struct bh_score *score)
{
    struct bh_pick *p = bh_alloc(1, sizeof(*p));
    p->shelf = shelf;
    p->score = score;
    p->epoch = UINT64_MAX;
    p->memo = bh_alloc(MEMO, sizeof(*p->memo));
    return p;
}

void bh_pick_free(struct bh_pick *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_indexes; i++) {
        free(p->indexes[i].leaf);
        free(p->indexes[i].block);
    }
    for (size_t i = 0; i < p->n_bases; i++) {
        free(p->bases[i].leaf);
        free(p->bases[i].log);
    }
    free(p->indexes);
    free(p->bases);
    bh_requests_fini(&p->base_requests);
    free(p->base_of);
    free(p->memo);
    free(p->node_of);
    free(p->leaf_of);
    free(p->model_of);
    free(p);
}

uint64_t bh_pick_scored(const struct bh_pick *p)
{
    return p->scored;
}

/* ---- rows ---- */

struct ranked {
    uint32_t model, rank, node;
};

static int by_model_and_rank(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->model != b->model)
        return a->model < b->model ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static void lay_rows(struct bh_pick *p)
{
    const size_t n = p->shelf->nodes.n;
    struct ranked *order = bh_alloc(n + 1, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){p->shelf->nodes.at[i].model, p->shelf->nodes.at[i].rank, (uint32_t)i};
    qsort(order, n, sizeof(*order), by_model_and_rank);
    free(p->node_of);
    free(p->leaf_of);
    free(p->model_of);
    p->model_of = bh_alloc(n / FAN + ROWS + 1, 1);
    p->node_of = bh_alloc(n + ROWS * FAN, sizeof(*p->node_of));
    p->leaf_of = bh_alloc(n + 1, sizeof(*p->leaf_of));
    uint32_t leaf = 0;
    size_t i = 0;
    for (uint32_t model = 0; model < ROWS; model++) {
        p->rows[model].first = leaf;
        for (; i < n && order[i].model == model; i++) {
            p->leaf_of[order[i].node] = leaf;
            p->node_of[leaf++] = order[i].node;
        }
        for (; leaf % FAN; leaf++)
            p->node_of[leaf] = BH_NONE;
        memset(&p->model_of[p->rows[model].first / FAN], (int)model, (leaf - p->rows[model].first) / FAN);
        p->rows[model].end = leaf;
    }
    p->n_leaves = leaf;
    for (p->log_cap = FAN; p->log_cap < leaf / 2;)
        p->log_cap *= 2;
    p->epoch = p->shelf->epoch;
    free(order);
    for (size_t k = 0; k < p->n_indexes; k++) { /* of another length now */
        free(p->indexes[k].leaf);
        free(p->indexes[k].block);
        memset(&p->indexes[k], 0, sizeof(p->indexes[k]));
    }
    bh_score_grow(p->score);
}

static uint8_t largest(const uint8_t *at, uint32_t n)
{
    uint8_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = at[i] > most ? at[i] : most;
    return most;
}

static void set_leaf(const struct bh_pick *p, struct index *x, uint32_t leaf, uint8_t value)
{
    const uint8_t old = x->leaf[leaf];
    uint8_t *block = &x->block[leaf / FAN];
    const uint8_t old_block = *block;
    if (value == old)
        return;
    x->leaf[leaf] = value;
    if (value > old_block)
        *block = value;
    else if (old == old_block)
        *block = largest(&x->leaf[leaf / FAN * FAN], FAN);
    if (*block == old_block)
        return;
    const uint32_t model = p->model_of[leaf / FAN];
    uint8_t *root = &x->root[model];
    if (*block > *root)
        *root = *block;
    else if (old_block == *root)
        *root =
            largest(&x->block[p->rows[model].first / FAN], (p->rows[model].end - p->rows[model].first) / FAN);
}

/* ---- keeping a base up to date ---- */

static uint32_t node_hash(const struct bh_shelf_node *n)
{
    uint64_t words[BH_NODE_GPUS * sizeof(uint16_t) / sizeof(uint64_t)];
    uint64_t h = (uint64_t)n->cpu_free << 8 | n->model;
    memcpy(words, n->open, sizeof(words));
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        h = (h ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
    return (uint32_t)(h >> 32);
}

/* From nothing. Many nodes are alike: each kind is scored once, as far as can be remembered. */
static void base_build(struct bh_pick *p, struct base *b, const struct bh_request *r)
{
    const struct bh_shelf *s = p->shelf;
    if (!b->leaf || b->shelf_epoch != s->epoch) {
        free(b->leaf);
        free(b->log);
        b->leaf = bh_alloc(p->n_leaves + 1, 1);
        b->log = bh_alloc(p->log_cap, sizeof(*b->log));
    }
    memset(p->memo, 0, MEMO * sizeof(*p->memo));
    for (uint32_t leaf = 0; leaf < p->n_leaves; leaf++) {
        const uint32_t node = p->node_of[leaf];
        b->leaf[leaf] = BH_SCORE_NONE;
        if (node == BH_NONE)
            continue;
        const struct bh_shelf_node *n = &s->nodes.at[node];
        if (n->n_gpus && !bh_request_takes(r, n->model))
            continue;
        uint32_t *like = &p->memo[node_hash(n) & (MEMO - 1)];
        if (*like && bh_score_alike(p->score, r, *like - 1, node)) {
            b->leaf[leaf] = b->leaf[p->leaf_of[*like - 1]];
            continue;
        }
        b->leaf[leaf] = bh_score_node(p->score, r, node);
        p->scored++;
        *like = node + 1;
    }
    b->at = s->log_head;
    b->shelf_epoch = s->epoch;
    b->score_epoch = bh_score_epoch(p->score);
    b->built++;
}

static void base_catch_up(struct bh_pick *p, struct base *b, const struct bh_request *r)
{
    const struct bh_shelf *s = p->shelf;
    for (; b->at < s->log_head; b->at++) {
        const uint32_t node = s->log[b->at & (s->log_cap - 1)];
        __builtin_prefetch(&s->nodes.at[s->log[(b->at + AHEAD) & (s->log_cap - 1)]]);
        if (s->nodes.at[node].changed != b->at)
            continue; /* it comes again further on */
        const uint32_t leaf = p->leaf_of[node];
        const uint8_t value = bh_score_node(p->score, r, node);
        p->scored++;
        if (value != b->leaf[leaf] || value != BH_SCORE_NONE)
            b->log[b->log_head++ & (p->log_cap - 1)] = leaf;
        b->leaf[leaf] = value;
    }
}

static struct base *base_up_to_date(struct bh_pick *p, uint32_t id)
{
    const struct bh_shelf *s = p->shelf;
    if (id >= p->n_bases) {
        const size_t old = p->n_bases;
        p->bases = bh_grow_(p->bases, &p->n_bases, id + (size_t)1, sizeof(*p->bases));
        memset(&p->bases[old], 0, (p->n_bases - old) * sizeof(*p->bases));
    }
    struct base *b = &p->bases[id];
    struct bh_request r = p->base_requests.at.at[id];
    r.trust = BH_TRUST_MIXED;
    if (!b->leaf || b->shelf_epoch != s->epoch || b->score_epoch != bh_score_epoch(p->score) ||
        s->log_head - b->at > s->log_cap || s->log_head - b->at > p->n_leaves)
        base_build(p, b, &r);
    else
        base_catch_up(p, b, &r);
    return b;
}

static uint32_t base_of(struct bh_pick *p, uint32_t class_)
{
    if (class_ >= p->n_base_of) {
        const size_t old = p->n_base_of;
        p->base_of = bh_grow_(p->base_of, &p->n_base_of, class_ + (size_t)1, sizeof(*p->base_of));
        memset(&p->base_of[old], 0, (p->n_base_of - old) * sizeof(*p->base_of));
    }
    if (!p->base_of[class_]) {
        struct bh_request r = p->shelf->requests->at.at[class_];
        uint32_t id = 0;
        r.trust = 0;
        r.apart = 0;
        if (bh_request_intern(&p->base_requests, &r, &id, NULL) < 0)
            abort(); /* it was a request before */
        p->base_of[class_] = id + 1;
    }
    return p->base_of[class_] - 1;
}

/* ---- keeping a class up to date ---- */

static uint8_t class_value(struct bh_pick *p, const struct base *base, const struct bh_request *r,
                           uint32_t leaf)
{
    const uint8_t value = base->leaf[leaf];
    if (value == BH_SCORE_NONE)
        return BH_SCORE_NONE;
    switch (bh_shelf_welcome(p->shelf, r, &p->shelf->nodes.at[p->node_of[leaf]])) {
    case BH_WELCOME_NO:
        return BH_SCORE_NONE;
    case BH_WELCOME_YES:
        return value;
    case BH_WELCOME_LOOK:
        break;
    }
    p->scored++;
    return bh_score_node(p->score, r, p->node_of[leaf]);
}

static void class_build(struct bh_pick *p, struct index *x, const struct base *base,
                        const struct bh_request *r)
{
    for (uint32_t leaf = 0; leaf < p->n_leaves; leaf++)
        x->leaf[leaf] = class_value(p, base, r, leaf);
    for (uint32_t leaf = 0; leaf < p->n_leaves; leaf += FAN)
        x->block[leaf / FAN] = largest(&x->leaf[leaf], FAN);
    for (uint32_t model = 0; model < ROWS; model++) {
        const struct row row = p->rows[model];
        x->root[model] = largest(&x->block[row.first / FAN], (row.end - row.first) / FAN);
    }
    x->at = base->log_head;
    x->built = base->built;
}

static struct index *index_of(struct bh_pick *p, uint32_t class_)
{
    const struct bh_request *r = &p->shelf->requests->at.at[class_];
    if (p->epoch != p->shelf->epoch)
        lay_rows(p);
    const struct base *base = base_up_to_date(p, base_of(p, class_));
    if (class_ >= p->n_indexes) {
        const size_t old = p->n_indexes;
        p->indexes = bh_grow_(p->indexes, &p->n_indexes, class_ + (size_t)1, sizeof(*p->indexes));
        memset(&p->indexes[old], 0, (p->n_indexes - old) * sizeof(*p->indexes));
    }
    struct index *x = &p->indexes[class_];
    if (!x->leaf) {
        x->leaf = bh_alloc(p->n_leaves + 1, 1);
        x->block = bh_alloc(p->n_leaves / FAN + 1, 1);
    }
    if (x->built != base->built || base->log_head - x->at > p->log_cap) {
        class_build(p, x, base, r);
        return x;
    }
    for (; x->at < base->log_head; x->at++) {
        const uint32_t leaf = base->log[x->at & (p->log_cap - 1)];
        const uint32_t ahead = base->log[(x->at + AHEAD) & (p->log_cap - 1)];
        __builtin_prefetch(&p->shelf->nodes.at[p->node_of[ahead]]);
        __builtin_prefetch(&x->leaf[ahead], 1);
        set_leaf(p, x, leaf, class_value(p, base, r, leaf));
    }
    return x;
}

void bh_pick_prepare(struct bh_pick *p, uint32_t class_)
{
    (void)index_of(p, class_);
}

/* ---- answers ---- */

struct best {
    int32_t milli;
    uint32_t node;
};

static void consider(const struct bh_pick *p, const struct bh_request *r, struct best *b, uint8_t value,
                     uint32_t node)
{
    const struct bh_shelf_node *all = p->shelf->nodes.at;
    const int32_t milli = (value - 1) * 1000 - bh_score_price_milli(p->score, r, all[node].model);
    if (b->node == BH_NONE || milli > b->milli || (milli == b->milli && all[node].rank < all[b->node].rank))
        *b = (struct best){milli, node};
}

static bool answer(struct bh_pick *p, const struct bh_request *r, const struct best *b, struct bh_spot *ret)
{
    if (b->node == BH_NONE)
        return false;
    *ret = bh_score_spot(p->score, r, b->node);
    ret->score_milli = b->milli;
    return true;
}

static uint32_t count_leaves(const struct bh_pick *p, const struct index *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_leaves; i++)
        n += x->leaf[i] != BH_SCORE_NONE;
    return n;
}

uint32_t bh_pick_count(struct bh_pick *p, uint32_t class_)
{
    return count_leaves(p, index_of(p, class_));
}

/* Any of those that fit, each as likely. */
static uint32_t draw(struct bh_pick *p, const struct index *x)
{
    const uint32_t n = count_leaves(p, x);
    uint32_t skip = n ? bh_score_draw(p->score, n) : 0;
    for (uint32_t i = 0; n && i < p->n_leaves; i++) {
        if (x->leaf[i] != BH_SCORE_NONE && !skip--)
            return p->node_of[i];
    }
    return BH_NONE;
}

bool bh_pick_best(struct bh_pick *p, uint32_t class_, struct bh_spot *ret)
{
    const struct index *x = index_of(p, class_);
    const struct bh_request *r = &p->shelf->requests->at.at[class_];
    struct best b = {0, BH_NONE};
    if (bh_score_mode(p->score) == BH_SCORE_RANDOM) {
        b.node = draw(p, x);
        return answer(p, r, &b, ret);
    }
    for (uint32_t model = 0; model < ROWS; model++) {
        const struct row row = p->rows[model];
        if (x->root[model] == BH_SCORE_NONE)
            continue;
        const uint8_t *block =
            memchr(&x->block[row.first / FAN], x->root[model], (row.end - row.first) / FAN);
        const uint8_t *leaf = memchr(&x->leaf[(size_t)(block - x->block) * FAN], x->root[model], FAN);
        consider(p, r, &b, x->root[model], p->node_of[leaf - x->leaf]);
    }
    return answer(p, r, &b, ret);
}

bool bh_pick_within(struct bh_pick *p, uint32_t class_, uint32_t domain, struct bh_spot *ret)
{
    const struct index *x = index_of(p, class_);
    const struct bh_shelf *s = p->shelf;
    const struct bh_request *r = &s->requests->at.at[class_];
    struct best b = {0, BH_NONE};
    for (uint32_t d = domain; d != BH_NONE; d = bh_shelf_domain_next(s, domain, d, true)) {
        for (uint32_t n = s->domains.at[d].first_node; n != BH_NONE; n = s->nodes.at[n].next) {
            const uint8_t value = x->leaf[p->leaf_of[n]];
            if (value != BH_SCORE_NONE)
                consider(p, r, &b, value, n);
        }
    }
    return answer(p, r, &b, ret);
}

static uint32_t draw_naive(struct bh_pick *p, const struct bh_request *r)
{
    uint32_t n = 0, skip = 0;
    for (uint32_t i = 0; i < p->n_leaves; i++)
        n += p->node_of[i] != BH_NONE && bh_score_afresh(p->score, r, p->node_of[i]) != BH_SCORE_NONE;
    skip = n ? bh_score_draw(p->score, n) : 0;
    for (uint32_t i = 0; n && i < p->n_leaves; i++) {
        if (p->node_of[i] != BH_NONE && bh_score_afresh(p->score, r, p->node_of[i]) != BH_SCORE_NONE &&
            !skip--)
            return p->node_of[i];
    }
    return BH_NONE;
}

bool bh_pick_naive(struct bh_pick *p, uint32_t class_, struct bh_spot *ret)
{
    const struct bh_request *r = &p->shelf->requests->at.at[class_];
    struct best b = {0, BH_NONE};
    if (p->epoch != p->shelf->epoch)
        lay_rows(p);
    if (bh_score_mode(p->score) == BH_SCORE_RANDOM) {
        b.node = draw_naive(p, r);
        return answer(p, r, &b, ret);
    }
    for (uint32_t n = 0; n < p->shelf->nodes.n; n++) {
        const uint8_t value = bh_score_afresh(p->score, r, n);
        p->scored++;
        if (value != BH_SCORE_NONE)
            consider(p, r, &b, value, n);
    }
    return answer(p, r, &b, ret);
}
