/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/pick.h"

#include "base/test.h"
#include "core/sched/shelf_fixture.h"

static uint8_t bytes[WORLD_BYTES];

/* Two scores of one seed, one for the trees and one for the scan: random draws stay in step. */
struct pair {
    struct bh_score *score_a, *score_b;
    struct bh_pick *a, *b;
};

static void pair_init(struct pair *p, struct world *w, enum bh_score_mode mode)
{
    p->score_a = bh_score_new(mode, &w->shelf, 5);
    p->score_b = bh_score_new(mode, &w->shelf, 5);
    world_typical(w, p->score_a);
    world_typical(w, p->score_b);
    p->a = bh_pick_new(&w->shelf, p->score_a);
    p->b = bh_pick_new(&w->shelf, p->score_b);
}

static void pair_fini(struct pair *p)
{
    bh_pick_free(p->a);
    bh_pick_free(p->b);
    bh_score_free(p->score_a);
    bh_score_free(p->score_b);
}

static bool same_spot(const struct bh_spot *x, const struct bh_spot *y)
{
    return x->node == y->node && x->gpus == y->gpus && x->mig_start == y->mig_start &&
           x->score_milli == y->score_milli;
}

/* One arrival: both must say the same, and it must be as the oracle says. */
static bool place(struct world *w, struct pair *p, uint32_t class_, bool keep)
{
    const struct bh_request *r = &w->requests.at.at[class_];
    struct bh_spot x = {0}, y = {0};
    uint32_t fits = 0, hold;
    bh_score_arrived(p->score_a, class_);
    bh_score_arrived(p->score_b, class_);
    const bool found = bh_pick_best(p->a, class_, &x);
    if (found != bh_pick_naive(p->b, class_, &y) || (found && !same_spot(&x, &y)))
        return false;
    for (uint32_t n = 0; n < w->shelf.nodes.n; n++) {
        const uint32_t usable = oracle_usable(w, r, n);
        if (usable != bh_shelf_usable(&w->shelf, r, n))
            return false;
        fits += usable != 0;
    }
    if (found != (fits > 0) || bh_pick_count(p->a, class_) != fits)
        return false;
    if (!found || w->n_holds == WORLD_HOLDS)
        return true;
    if (bh_shelf_take(&w->shelf, class_, &x, &hold, NULL) < 0)
        return false;
    if (keep)
        w->holds[w->n_holds++] = hold;
    return true;
}

/* A gang that is given up: nothing of it may be seen afterwards. */
static bool try_and_give_up(struct world *w, struct pair *p)
{
    const struct bh_mark mark = bh_shelf_mark(&w->shelf);
    for (uint32_t k = world_draw(w, 5); k; k--) {
        if (!place(w, p, w->classes[world_draw(w, w->n_classes)], false))
            return false;
        if (w->n_holds && !world_draw(w, 3))
            bh_shelf_free(&w->shelf, w->holds[world_draw(w, w->n_holds)]);
    }
    bh_shelf_rollback(&w->shelf, mark);
    return true;
}

static bool life(enum bh_score_mode mode, uint64_t seed, int steps)
{
    struct world w;
    struct pair p;
    bool ok = true;
    bh_choice_fill(bytes, sizeof(bytes), seed);
    world_init(&w, bytes, sizeof(bytes));
    pair_init(&p, &w, mode);
    for (int i = 0; ok && i < steps; i++) {
        const uint32_t what = world_draw(&w, 10);
        if (what < 6)
            ok = place(&w, &p, w.classes[world_draw(&w, w.n_classes)], true);
        else if (what == 6)
            ok = try_and_give_up(&w, &p);
        else
            world_disturb(&w);
    }
    ok = ok && bh_shelf_sound(&w.shelf);
    if (!ok)
        printf("# mode %s, seed %" PRIu64 "\n", bh_score_mode_names[mode], seed);
    pair_fini(&p);
    world_fini(&w);
    return ok;
}

TEST(decisions_are_those_of_a_full_scan)
{
    for (enum bh_score_mode mode = 0; mode < BH_SCORE_MODES; mode++) {
        for (uint64_t seed = 1; seed <= 40; seed++)
            CHECK(life(mode, seed, 120));
    }
}

/* More changes than the log remembers: a class that was not asked for in between starts anew. */
TEST(a_class_that_was_away_for_long_is_right)
{
    struct world w;
    struct pair p;
    bh_choice_fill(bytes, sizeof(bytes), 3);
    world_init(&w, bytes, sizeof(bytes));
    pair_init(&p, &w, BH_SCORE_BULKHEAD);
    struct bh_spot x, y;
    uint32_t class_, hold;
    const struct bh_request r = {
        .form = BH_FORM_CPU, .cpu_milli = 100, .apart = BH_APART_NOTHING, .trust = 9};
    CHECK_EQ(bh_request_intern(&w.requests, &r, &class_, NULL), 0);
    CHECK(bh_pick_best(p.a, w.classes[0], &x) == bh_pick_naive(p.b, w.classes[0], &y));
    CHECK(bh_pick_best(p.a, class_, &x));
    for (uint32_t i = 0; i < 2 * w.shelf.log_cap; i++) {
        CHECK_EQ(bh_shelf_take(&w.shelf, class_, &x, &hold, NULL), 0);
        bh_shelf_free(&w.shelf, hold);
    }
    CHECK(bh_pick_best(p.a, w.classes[0], &x) == bh_pick_naive(p.b, w.classes[0], &y));
    CHECK(place(&w, &p, w.classes[0], true));
    pair_fini(&p);
    world_fini(&w);
}

/* Nodes that come later, and other typical work: both change every tree. */
TEST(new_nodes_and_new_typical_work_are_seen)
{
    struct world w;
    struct pair p;
    bh_choice_fill(bytes, sizeof(bytes), 8);
    world_init(&w, bytes, sizeof(bytes));
    pair_init(&p, &w, BH_SCORE_FGD);
    for (int i = 0; i < 10; i++) {
        const struct bh_node_spec spec = {.model = 0,
                                          .domain = BH_NONE,
                                          .n_gpus = 8,
                                          .cpu_milli = 64000,
                                          .mem_mib = 100000,
                                          .rank = 1000u + (uint32_t)i,
                                          .pools = 3,
                                          .features = 3,
                                          .gpu_mib = 1000};
        uint32_t id;
        CHECK(place(&w, &p, w.classes[(uint32_t)i % w.n_classes], true));
        CHECK_EQ(bh_shelf_add_node(&w.shelf, &spec, &id, NULL), 0);
        CHECK(place(&w, &p, w.classes[(uint32_t)i % w.n_classes], true));
        const struct bh_typical one = {w.classes[(uint32_t)i % w.n_classes], 7};
        bh_score_set_typical(p.score_a, &one, 1);
        bh_score_set_typical(p.score_b, &one, 1);
        CHECK(place(&w, &p, w.classes[(uint32_t)(i + 1) % w.n_classes], true));
    }
    pair_fini(&p);
    world_fini(&w);
}

static bool below(const struct bh_shelf *s, uint32_t node, uint32_t domain)
{
    uint32_t d = s->nodes.at[node].domain;
    while (d != BH_NONE && d != domain)
        d = s->domains.at[d].parent;
    return d == domain;
}

/* The best below a domain is the best of its nodes, scored from nothing. */
TEST(within_a_domain)
{
    uint32_t asked = 0, found = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct world w;
        struct pair p;
        bh_choice_fill(bytes, sizeof(bytes), seed + 1000);
        world_init(&w, bytes, sizeof(bytes));
        pair_init(&p, &w, BH_SCORE_BULKHEAD);
        for (int i = 0; i < 30 && w.shelf.domains.n; i++) {
            const uint32_t domain = world_draw(&w, (uint32_t)w.shelf.domains.n);
            const uint32_t class_ = w.classes[world_draw(&w, w.n_classes)];
            const struct bh_request *r = &w.requests.at.at[class_];
            struct bh_spot spot;
            uint32_t best = BH_NONE, hold;
            int32_t most = 0;
            for (uint32_t n = 0; n < w.shelf.nodes.n; n++) {
                const uint8_t value = bh_score_afresh(p.score_b, r, n);
                const int32_t milli =
                    value * 1000 - bh_score_price_milli(p.score_b, r, w.shelf.nodes.at[n].model);
                if (value == BH_SCORE_NONE || !below(&w.shelf, n, domain))
                    continue;
                if (best == BH_NONE || milli > most ||
                    (milli == most && w.shelf.nodes.at[n].rank < w.shelf.nodes.at[best].rank))
                    best = n, most = milli;
            }
            CHECK_EQ(bh_pick_within(p.a, class_, domain, &spot), best != BH_NONE);
            asked++;
            if (best == BH_NONE)
                continue;
            found++;
            CHECK_EQ(spot.node, best);
            CHECK_EQ(bh_shelf_take(&w.shelf, class_, &spot, &hold, NULL), 0);
        }
        pair_fini(&p);
        world_fini(&w);
    }
    CHECK(asked > 500 && found > 200);
}

/* Only nodes that changed are scored again. */
TEST(a_question_costs_what_changed)
{
    struct bh_requests requests = {0};
    struct bh_shelf shelf;
    uint32_t id, class_, hold;
    bh_shelf_init(&shelf, &requests);
    CHECK_EQ(bh_shelf_add_model(&shelf, NULL, &id, NULL), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        const struct bh_node_spec spec = {.domain = BH_NONE, .n_gpus = 8, .cpu_milli = 64000, .rank = i};
        CHECK_EQ(bh_shelf_add_node(&shelf, &spec, &id, NULL), 0);
    }
    const struct bh_request r = {.form = BH_FORM_WHOLE, .n_gpus = 1, .gpu_milli = BH_GPU_MILLI};
    CHECK_EQ(bh_request_intern(&requests, &r, &class_, NULL), 0);
    struct bh_score *score = bh_score_new(BH_SCORE_PACKING, &shelf, 0);
    struct bh_pick *pick = bh_pick_new(&shelf, score);
    bh_pick_prepare(pick, class_);
    CHECK_EQ(bh_pick_scored(pick), 1); /* a thousand nodes of one kind */
    for (uint32_t i = 0; i < 8000; i++) {
        struct bh_spot spot;
        CHECK(bh_pick_best(pick, class_, &spot));
        CHECK_EQ(spot.node, i / 8);
        CHECK_EQ(spot.gpus, 1u << i % 8);
        CHECK_EQ(bh_shelf_take(&shelf, class_, &spot, &hold, NULL), 0);
    }
    struct bh_spot none;
    CHECK(!bh_pick_best(pick, class_, &none));
    CHECK_EQ(bh_pick_count(pick, class_), 0);
    CHECK_EQ(bh_pick_scored(pick), 1 + 8000);
    bh_pick_free(pick);
    bh_score_free(score);
    bh_shelf_fini(&shelf);
    bh_requests_fini(&requests);
}

TEST_MAIN
