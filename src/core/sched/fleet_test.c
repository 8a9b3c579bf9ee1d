/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/fleet.h"

#include "base/test.h"
#include "core/sched/shelf_fixture.h"

static struct bh_requests requests;
static struct bh_shelf shelf;

static uint32_t class_of(struct bh_request r)
{
    uint32_t id;
    world_must(bh_request_intern(&requests, &r, &id, NULL));
    return id;
}

/* Two nodes of 4 GPUs in one NVLink domain, and one apart. */
static void setup(void)
{
    uint32_t id, link;
    bh_shelf_init(&shelf, &requests);
    world_must(bh_shelf_add_model(&shelf, bh_catalog_find("H100"), &id, NULL));
    world_must(bh_shelf_add_domain(&shelf, BH_LEVEL_LINK, BH_NONE, &link, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        const struct bh_node_spec spec = {.domain = i < 2 ? link : BH_NONE,
                                          .rank = i,
                                          .n_gpus = 4,
                                          .gpu_mib = 1000,
                                          .cpu_milli = 8000,
                                          .mem_mib = 4096,
                                          .holds_max = 6};
        world_must(bh_shelf_add_node(&shelf, &spec, &id, NULL));
    }
}

static void teardown(void)
{
    bh_shelf_fini(&shelf);
    bh_requests_fini(&requests);
}

static int take(uint32_t class_, uint32_t node, uint16_t gpus, uint32_t *ret)
{
    return bh_shelf_take(&shelf, class_, &(struct bh_spot){.node = node, .gpus = gpus}, ret, NULL);
}

static const struct bh_request whole2 = {
    .form = BH_FORM_WHOLE, .n_gpus = 2, .gpu_milli = 1000, .cpu_milli = 1000};
static const struct bh_request half = {
    .form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 500, .gpu_mib = 400, .cpu_milli = 1000};

TEST(amounts_are_taken_and_come_back)
{
    setup();
    uint32_t a, b, c;
    CHECK_EQ(take(class_of(whole2), 0, 0x3, &a), 0);
    CHECK_EQ(take(class_of(half), 0, 0x4, &b), 0);
    CHECK_EQ(take(class_of(half), 0, 0x4, &c), 0);
    const struct bh_shelf_node *n = &shelf.nodes.at[0];
    CHECK_EQ(n->cpu_free, 5000);
    CHECK_EQ(n->n_whole, 1);
    CHECK_EQ(n->open[2], 0);
    CHECK_EQ(shelf.gpus.at[2].mib_free, 200);
    CHECK_EQ(shelf.milli_used, 3000);
    CHECK_EQ(take(class_of(half), 0, 0x4, &c), BH_CONFLICT);
    CHECK_EQ(take(class_of(whole2), 0, 0xc, &c), BH_CONFLICT);
    CHECK_EQ(take(class_of(half), 0, 0, &c), BH_CONFLICT);
    CHECK_EQ(take(class_of(half), 99, 1, &c), BH_CONFLICT);
    bh_shelf_free(&shelf, a);
    CHECK_EQ(n->n_whole, 3);
    CHECK(bh_shelf_sound(&shelf));
    teardown();
}

TEST(memory_of_a_gpu_bounds_its_shares)
{
    setup();
    uint32_t h;
    struct bh_request big = half;
    big.gpu_milli = 100;
    big.gpu_mib = 601;
    CHECK_EQ(take(class_of(half), 0, 1, &h), 0);
    CHECK_EQ(take(class_of(big), 0, 1, &h), BH_CONFLICT);
    CHECK_EQ(take(class_of(big), 0, 2, &h), 0);
    teardown();
}

TEST(releasing_is_not_free)
{
    setup();
    uint32_t a, b;
    const uint32_t all = class_of((struct bh_request){.form = BH_FORM_WHOLE, .n_gpus = 4, .gpu_milli = 1000});
    CHECK_EQ(take(all, 0, 0xf, &a), 0);
    bh_shelf_release(&shelf, a);
    bh_shelf_release(&shelf, a); /* twice is once */
    CHECK_EQ(shelf.nodes.at[0].n_whole, 0);
    CHECK_EQ(shelf.nodes.at[0].n_gone, 4);
    CHECK_EQ(shelf.nodes.at[0].milli_gone, 4000);
    CHECK_EQ(shelf.domains.at[0].n_gone, 4);
    CHECK_EQ(shelf.domains.at[0].n_whole, 4);
    CHECK_EQ(take(all, 0, 0xf, &b), BH_CONFLICT);
    CHECK(bh_shelf_sound(&shelf));
    bh_shelf_free(&shelf, a);
    bh_shelf_free(&shelf, a);
    CHECK_EQ(shelf.nodes.at[0].n_gone, 0);
    CHECK_EQ(shelf.domains.at[0].n_whole, 8);
    CHECK_EQ(take(all, 0, 0xf, &b), 0);
    teardown();
}

TEST(only_the_healthy_gets_new_work)
{
    setup();
    uint32_t h, old;
    CHECK_EQ(take(class_of(half), 0, 1, &old), 0);
    for (enum bh_health health = BH_HEALTH_CORDON; health < BH_HEALTHS; health++) {
        bh_shelf_set_health(&shelf, 0, BH_NONE, health);
        CHECK_EQ(take(class_of(half), 0, 2, &h), BH_CONFLICT);
        CHECK_EQ(shelf.domains.at[0].n_whole, 4);
        CHECK_EQ(shelf.holds.at[old].state, BH_HOLD_TAKEN);
    }
    bh_shelf_set_health(&shelf, 0, BH_NONE, BH_HEALTH_OK);
    bh_shelf_set_health(&shelf, 0, 1, BH_HEALTH_FAILED);
    bh_shelf_set_health(&shelf, 0, 9, BH_HEALTH_FAILED); /* there is none */
    CHECK_EQ(shelf.nodes.at[0].n_whole, 2);
    CHECK_EQ(take(class_of(half), 0, 2, &h), BH_CONFLICT);
    CHECK_EQ(take(class_of(half), 0, 4, &h), 0);
    CHECK(bh_shelf_sound(&shelf));
    teardown();
}

TEST(a_node_has_so_many_holds)
{
    setup();
    uint32_t h;
    const uint32_t small = class_of((struct bh_request){.form = BH_FORM_CPU, .cpu_milli = 1});
    for (int i = 0; i < 6; i++)
        CHECK_EQ(take(small, 0, 0, &h), 0);
    CHECK_EQ(take(small, 0, 0, &h), BH_CONFLICT);
    bh_shelf_free(&shelf, h);
    CHECK_EQ(take(small, 0, 0, &h), 0);
    teardown();
}

/* For each rule of the newcomer: where somebody else's half GPU may be for it to be let in beside it. */
TEST(trust_is_a_hard_constraint)
{
    static const struct {
        uint8_t first, second;
        bool gpu, node, link;
    } cases[] = {
        {BH_APART_NOTHING, BH_APART_NOTHING, true, true, true},
        {BH_APART_NOTHING, BH_APART_GPU, false, true, true},
        {BH_APART_GPU, BH_APART_NOTHING, false, true, true},
        {BH_APART_NOTHING, BH_APART_NODE, false, false, true},
        {BH_APART_NODE, BH_APART_NOTHING, false, false, true},
        {BH_APART_NODE, BH_APART_GPU, false, false, true},
        {BH_APART_LINK, BH_APART_NOTHING, false, false, false},
        {BH_APART_NOTHING, BH_APART_LINK, false, false, false},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_request a = half, b = half;
        uint32_t first, h;
        a.apart = cases[i].first, b.apart = cases[i].second;
        b.trust = 1;
        setup();
        CHECK_EQ(take(class_of(a), 0, 1, &first), 0);
        CHECK_EQ(take(class_of(b), 0, 1, &h) == 0, cases[i].gpu);
        CHECK_EQ(take(class_of(b), 0, 2, &h) == 0, cases[i].node);
        CHECK_EQ(take(class_of(b), 1, 1, &h) == 0, cases[i].link);
        CHECK_EQ(take(class_of(b), 2, 1, &h), 0); /* in no common domain */
        CHECK(bh_shelf_sound(&shelf));
        teardown();
        setup();
        b.trust = 0; /* one's own is always welcome */
        CHECK_EQ(take(class_of(a), 0, 1, &first), 0);
        CHECK_EQ(take(class_of(b), 0, 1, &h), 0);
        teardown();
    }
}

/* When the stranger leaves a mixed place, it belongs to one trust domain again. */
TEST(a_mixed_place_clears_up)
{
    setup();
    struct bh_request a = half, b = half, strict = half;
    a.apart = b.apart = BH_APART_NOTHING;
    b.trust = 1;
    strict.apart = BH_APART_LINK;
    strict.gpu_milli = 100, strict.gpu_mib = 0;
    uint32_t mine, yours, h;
    CHECK_EQ(take(class_of(a), 0, 1, &mine), 0);
    CHECK_EQ(take(class_of(b), 0, 1, &yours), 0);
    CHECK_EQ(shelf.gpus.at[0].crowd.trust, BH_TRUST_MIXED);
    CHECK_EQ(take(class_of(strict), 1, 1, &h), BH_CONFLICT);
    bh_shelf_free(&shelf, yours);
    CHECK_EQ(shelf.gpus.at[0].crowd.trust, 0);
    CHECK_EQ(shelf.nodes.at[0].crowd.trust, 0);
    CHECK_EQ(shelf.domains.at[0].crowd.trust, 0);
    CHECK_EQ(take(class_of(strict), 1, 1, &h), 0);
    teardown();
}

TEST(mechanisms_and_kinds_on_one_gpu)
{
    setup();
    struct bh_request mps = half, bursty = half, steady = half;
    uint32_t h, first;
    mps.mechanism = 1;
    bursty.kinds = 1;
    steady.avoid = 1;
    CHECK_EQ(take(class_of(half), 0, 1, &h), 0);
    CHECK_EQ(take(class_of(mps), 0, 1, &h), BH_CONFLICT);
    CHECK_EQ(take(class_of(mps), 0, 2, &h), 0);
    CHECK_EQ(take(class_of(bursty), 0, 4, &first), 0);
    CHECK_EQ(take(class_of(steady), 0, 4, &h), BH_CONFLICT);
    bh_shelf_free(&shelf, first);
    CHECK_EQ(take(class_of(steady), 0, 4, &h), 0);
    CHECK_EQ(take(class_of(bursty), 0, 4, &h), BH_CONFLICT);
    teardown();
}

TEST(instances_and_shares_do_not_mix)
{
    setup();
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    const uint8_t one = (uint8_t)(bh_mig_find(m, "1g.10gb") - m->profiles);
    const uint32_t mig =
        class_of((struct bh_request){.form = BH_FORM_MIG, .n_gpus = 1, .models = 1, .mig_profile = one});
    uint32_t a, b, h;
    CHECK_EQ(bh_shelf_take(&shelf, mig, &(struct bh_spot){.gpus = 1, .mig_start = 6}, &a, NULL), 0);
    CHECK(shelf.holds.at[a].mig_recut);
    CHECK_EQ(bh_shelf_take(&shelf, mig, &(struct bh_spot){.gpus = 1, .mig_start = 6}, &b, NULL), BH_CONFLICT);
    CHECK_EQ(bh_shelf_take(&shelf, mig, &(struct bh_spot){.gpus = 1, .mig_start = 7}, &b, NULL), BH_CONFLICT);
    CHECK_EQ(bh_shelf_take(&shelf, mig, &(struct bh_spot){.gpus = 1, .mig_start = 5}, &b, NULL), 0);
    CHECK_EQ(shelf.milli_used, 2 * (1000 / 7));
    CHECK_EQ(take(class_of(half), 0, 1, &h), BH_CONFLICT);
    CHECK_EQ(shelf.nodes.at[0].n_whole, 3);
    bh_shelf_free(&shelf, a);
    CHECK_EQ(take(class_of(half), 0, 1, &h), BH_CONFLICT);
    bh_shelf_free(&shelf, b);
    CHECK_EQ(shelf.nodes.at[0].n_whole, 4); /* the cuts are idle */
    CHECK_EQ(bh_shelf_take(&shelf, mig, &(struct bh_spot){.gpus = 1, .mig_start = 6}, &a, NULL), 0);
    CHECK(!shelf.holds.at[a].mig_recut);
    bh_shelf_free(&shelf, a);
    CHECK_EQ(take(class_of(half), 0, 1, &h), 0);
    bh_shelf_free(&shelf, h);
    CHECK_EQ(bh_shelf_take(&shelf, mig, &(struct bh_spot){.gpus = 1, .mig_start = 6}, &a, NULL), 0);
    CHECK(shelf.holds.at[a].mig_recut); /* shares were in between */
    teardown();
}

TEST(what_cannot_be_built_is_refused)
{
    setup();
    uint32_t id;
    const struct bh_node_spec large = {.n_gpus = BH_NODE_GPUS + 1, .domain = BH_NONE};
    const struct bh_node_spec unknown = {.n_gpus = 1, .model = 7, .domain = BH_NONE};
    const struct bh_node_spec nowhere = {.domain = 44};
    CHECK_EQ(bh_shelf_add_node(&shelf, &large, &id, NULL), BH_TOO_LARGE);
    CHECK_EQ(bh_shelf_add_node(&shelf, &unknown, &id, NULL), BH_INVALID);
    CHECK_EQ(bh_shelf_add_node(&shelf, &nowhere, &id, NULL), BH_INVALID);
    const struct bh_mark mark = bh_shelf_mark(&shelf);
    CHECK_EQ(bh_shelf_add_node(&shelf, &(struct bh_node_spec){.domain = BH_NONE}, &id, NULL), BH_BUSY);
    bh_shelf_commit(&shelf, mark);
    CHECK_EQ(bh_shelf_add_node(&shelf, &(struct bh_node_spec){.domain = BH_NONE}, &id, NULL), 0);
    for (uint32_t i = shelf.n_models; i < BH_MODELS_MAX; i++)
        CHECK_EQ(bh_shelf_add_model(&shelf, NULL, &id, NULL), 0);
    CHECK_EQ(bh_shelf_add_model(&shelf, NULL, &id, NULL), BH_TOO_LARGE);
    teardown();
}

/* ---- the undo log, on random lives ---- */

struct copy {
    struct bh_shelf_node *nodes;
    struct bh_shelf_gpu *gpus;
    struct bh_shelf_domain *domains;
    struct bh_hold *holds;
    size_t n_holds;
    uint32_t n_taken;
    uint64_t milli_used;
};

static void *copy_of(const void *at, size_t n, size_t size)
{
    void *to = bh_alloc(n + 1, size);
    if (n)
        memcpy(to, at, n * size);
    return to;
}

static struct copy copy_shelf(const struct bh_shelf *s)
{
    return (struct copy){.nodes = copy_of(s->nodes.at, s->nodes.n, sizeof(*s->nodes.at)),
                         .gpus = copy_of(s->gpus.at, s->gpus.n, sizeof(*s->gpus.at)),
                         .domains = copy_of(s->domains.at, s->domains.n, sizeof(*s->domains.at)),
                         .holds = copy_of(s->holds.at, s->holds.n, sizeof(*s->holds.at)),
                         .n_holds = s->holds.n,
                         .n_taken = s->n_taken,
                         .milli_used = s->milli_used};
}

static void copy_fini(struct copy *c)
{
    free(c->nodes);
    free(c->gpus);
    free(c->domains);
    free(c->holds);
}

static bool same_hold(const struct bh_hold *a, const struct bh_hold *b)
{
    return a->node == b->node && a->class_ == b->class_ && a->gpus == b->gpus && a->state == b->state &&
           a->mig_start == b->mig_start && a->mig_recut == b->mig_recut && a->next == b->next &&
           a->prev == b->prev;
}

static bool gpu_is(const struct bh_shelf_gpu *a, const struct bh_shelf_gpu *b)
{
    return a->milli_free == b->milli_free && a->mib_free == b->mib_free && a->use == b->use &&
           a->health == b->health && a->kinds == b->kinds && a->avoid == b->avoid && a->gone == b->gone &&
           a->mechanism == b->mechanism && a->mig_held == b->mig_held && a->mig_compute == b->mig_compute &&
           a->mig_stale == b->mig_stale && !memcmp(a->mig_at, b->mig_at, sizeof(a->mig_at)) &&
           !memcmp(&a->crowd, &b->crowd, sizeof(a->crowd));
}

/* To the last field, but for the change log: that goes on. */
static bool is_as_copied(const struct bh_shelf *s, struct copy *c)
{
    if (s->n_taken != c->n_taken || s->milli_used != c->milli_used)
        return false;
    for (size_t i = 0; i < s->nodes.n; i++) {
        c->nodes[i].changed = s->nodes.at[i].changed;
        if (memcmp(&s->nodes.at[i], &c->nodes[i], sizeof(c->nodes[i])) != 0)
            return false;
    }
    for (size_t i = 0; i < s->gpus.n; i++) {
        if (!gpu_is(&s->gpus.at[i], &c->gpus[i]))
            return false;
    }
    for (size_t i = 0; i < s->domains.n; i++) {
        if (memcmp(&s->domains.at[i], &c->domains[i], sizeof(c->domains[i])) != 0)
            return false;
    }
    for (size_t i = 0; i < s->holds.n; i++) {
        const bool is_new = i >= c->n_holds;
        if (is_new ? s->holds.at[i].state != BH_HOLD_FREE
                   : c->holds[i].state != BH_HOLD_FREE && !same_hold(&s->holds.at[i], &c->holds[i]))
            return false;
    }
    return true;
}

static void put_somewhere(struct world *w)
{
    const uint32_t class_ = w->classes[world_draw(w, w->n_classes)];
    const struct bh_request *r = &w->requests.at.at[class_];
    const uint32_t n = (uint32_t)w->shelf.nodes.n, from = world_draw(w, n);
    for (uint32_t k = 0; k < n && w->n_holds < WORLD_HOLDS; k++) {
        struct bh_spot spot = {.node = (from + k) % n};
        uint32_t usable = bh_shelf_usable(&w->shelf, r, spot.node);
        if (!usable)
            continue;
        for (uint32_t g = r->n_gpus; g; g--, usable &= usable - 1)
            spot.gpus = (uint16_t)(spot.gpus | (usable & -usable));
        if (r->form == BH_FORM_MIG) {
            const struct bh_shelf_node *node = &w->shelf.nodes.at[spot.node];
            struct bh_mig_place place;
            if (!bh_mig_best(w->shelf.models[node->model].known,
                             &w->shelf.gpus.at[node->first_gpu + (uint32_t)__builtin_ctz(spot.gpus)],
                             r->mig_profile, &place))
                abort();
            spot.mig_start = place.start;
        }
        world_must(bh_shelf_take(&w->shelf, class_, &spot, &w->holds[w->n_holds++], NULL));
        return;
    }
}

static void live_on(struct world *w, uint32_t steps)
{
    for (; steps; steps--) {
        if (world_draw(w, 5) < 3)
            put_somewhere(w);
        else
            world_disturb(w);
    }
}

static bool undo_life(uint64_t seed)
{
    static uint8_t bytes[WORLD_BYTES];
    struct world w;
    bool ok = true;
    bh_choice_fill(bytes, sizeof(bytes), seed);
    world_init(&w, bytes, sizeof(bytes));
    for (int round = 0; ok && round < 8; round++) {
        live_on(&w, 12);
        struct copy before = copy_shelf(&w.shelf);
        const uint32_t n_holds = w.n_holds;
        uint32_t holds[WORLD_HOLDS];
        memcpy(holds, w.holds, sizeof(holds));
        const struct bh_mark outer = bh_shelf_mark(&w.shelf);
        live_on(&w, 6);
        const struct bh_mark inner = bh_shelf_mark(&w.shelf);
        struct copy middle = copy_shelf(&w.shelf);
        live_on(&w, 6);
        if (world_draw(&w, 2)) {
            bh_shelf_rollback(&w.shelf, inner);
            ok = is_as_copied(&w.shelf, &middle);
        } else {
            bh_shelf_commit(&w.shelf, inner);
        }
        bh_shelf_rollback(&w.shelf, outer);
        ok = ok && is_as_copied(&w.shelf, &before) && bh_shelf_sound(&w.shelf) && !w.shelf.undo.n &&
             !w.shelf.marks;
        w.n_holds = n_holds;
        memcpy(w.holds, holds, sizeof(holds));
        copy_fini(&before);
        copy_fini(&middle);
    }
    if (!ok)
        printf("# seed %" PRIu64 "\n", seed);
    world_fini(&w);
    return ok;
}

TEST(what_is_rolled_back_never_was)
{
    for (uint64_t seed = 1; seed <= 200; seed++)
        CHECK(undo_life(seed));
}

/* The same ids come again after a rollback: a replay of the same events gives the same bytes. */
TEST(ids_are_the_same_after_a_rollback)
{
    setup();
    uint32_t a, b, again;
    const struct bh_mark mark = bh_shelf_mark(&shelf);
    CHECK_EQ(take(class_of(half), 0, 1, &a), 0);
    CHECK_EQ(take(class_of(half), 1, 1, &b), 0);
    bh_shelf_rollback(&shelf, mark);
    CHECK_EQ(take(class_of(half), 1, 2, &again), 0);
    CHECK_EQ(again, a);
    CHECK_EQ(take(class_of(half), 1, 4, &again), 0);
    CHECK_EQ(again, b);
    teardown();
}

TEST(room_is_made_ahead)
{
    setup();
    bh_shelf_reserve(&shelf, 100, 50);
    const struct bh_hold *holds = shelf.holds.at;
    const struct bh_shelf_undo *undo = shelf.undo.at;
    const uint32_t small = class_of((struct bh_request){.form = BH_FORM_CPU});
    const struct bh_mark mark = bh_shelf_mark(&shelf);
    uint32_t h;
    for (uint32_t i = 0; i < 18; i++)
        CHECK_EQ(take(small, i / 6, 0, &h), 0);
    CHECK(shelf.holds.at == holds && shelf.undo.at == undo);
    bh_shelf_commit(&shelf, mark);
    CHECK_EQ(shelf.undo.n, 0);
    teardown();
}

TEST_MAIN
