/* SPDX-License-Identifier: Apache-2.0 */
/* reserve_fit_test.c - the future that was worked out against one that was brought about: end the holds, and place. */
#include "base/test.h"
#include "core/sched/reserve.h"
#include "core/sched/shelf_fixture.h"

enum { MINUTE = 60000, LIVES = 400 };

/* ---- by hand: a rack of two NVLink domains with two nodes of four GPUs each ---- */

struct hand {
    struct bh_requests requests;
    struct bh_shelf shelf;
    uint64_t ends[16];
    uint32_t link[2], node[4];
};

static void hand_init(struct hand *h)
{
    uint32_t model, rack;
    memset(h, 0, sizeof(*h));
    bh_shelf_init(&h->shelf, &h->requests);
    world_must(bh_shelf_add_model(&h->shelf, NULL, &model, NULL));
    world_must(bh_shelf_add_domain(&h->shelf, BH_LEVEL_RACK, BH_NONE, &rack, NULL));
    for (uint32_t i = 0; i < 2; i++)
        world_must(bh_shelf_add_domain(&h->shelf, BH_LEVEL_LINK, rack, &h->link[i], NULL));
    for (uint32_t i = 0; i < 4; i++) {
        const struct bh_node_spec spec = {
            .domain = h->link[i / 2], .rank = i, .n_gpus = 4, .cpu_milli = 64000, .mem_mib = 1u << 20};
        world_must(bh_shelf_add_node(&h->shelf, &spec, &h->node[i], NULL));
    }
}

static void hand_fini(struct hand *h)
{
    bh_shelf_fini(&h->shelf);
    bh_requests_fini(&h->requests);
}

static uint32_t hand_class(struct hand *h, uint8_t n_gpus)
{
    const struct bh_request r = {
        .form = BH_FORM_WHOLE, .n_gpus = n_gpus, .gpu_milli = BH_GPU_MILLI, .apart = BH_APART_NOTHING};
    uint32_t class_;
    world_must(bh_request_intern(&h->requests, &r, &class_, NULL));
    return class_;
}

static void hand_take(struct hand *h, uint32_t node, uint16_t gpus, uint64_t end_ms)
{
    const struct bh_spot spot = {.node = h->node[node], .gpus = gpus};
    uint32_t hold;
    world_must(bh_shelf_take(&h->shelf, hand_class(h, (uint8_t)bh_bits(gpus)), &spot, &hold, NULL));
    h->ends[hold] = end_ms;
}

static struct bh_shape gang_of(uint32_t class_, uint32_t members, uint8_t within)
{
    return (struct bh_shape){.roles = {{.class_ = class_, .min = members, .max = members}},
                             .n_roles = 1,
                             .within = within,
                             .members = members};
}

TEST(the_domain_that_is_free_first)
{
    struct hand h;
    struct bh_shadow got;
    const uint64_t times[] = {1, 5 * MINUTE, 7 * MINUTE, 9 * MINUTE};
    hand_init(&h);
    hand_take(&h, 0, 0xf, 9 * MINUTE);
    hand_take(&h, 1, 0x1, 5 * MINUTE);
    hand_take(&h, 2, 0x3, 7 * MINUTE);
    hand_take(&h, 3, 0xf, 5 * MINUTE);
    const struct bh_shape eight = gang_of(hand_class(&h, 4), 2, BH_LEVEL_LINK);
    CHECK(bh_shadow_find(&h.shelf, h.ends, times, 4, &eight, &got));
    CHECK_EQ(got.start_ms, 7 * MINUTE);
    CHECK_EQ(got.domain, h.link[1]);
    /* Anywhere: nodes 1 and 3 are free after five minutes. */
    const struct bh_shape anywhere = gang_of(hand_class(&h, 4), 2, BH_LEVEL_ANY);
    CHECK(bh_shadow_find(&h.shelf, h.ends, times, 4, &anywhere, &got));
    CHECK_EQ(got.start_ms, 5 * MINUTE);
    CHECK_EQ(got.domain, BH_NONE);
    /* What never ends is not counted on. */
    const struct bh_shape all = gang_of(hand_class(&h, 4), 4, BH_LEVEL_RACK);
    CHECK(bh_shadow_find(&h.shelf, h.ends, times, 4, &all, &got));
    CHECK_EQ(got.start_ms, 9 * MINUTE);
    h.ends[0] = BH_NEVER_MS;
    CHECK(!bh_shadow_find(&h.shelf, h.ends, times, 4, &all, &got));
    hand_fini(&h);
}

TEST(slices_and_roles)
{
    struct hand h;
    hand_init(&h);
    const uint32_t two = hand_class(&h, 2), four = hand_class(&h, 4);
    /* Four members of two GPUs in one NVLink domain each: two slices, and not a third. */
    struct bh_shape sliced = gang_of(two, 8, BH_LEVEL_RACK);
    sliced.roles[0].slice = 4;
    sliced.roles[0].slice_level = BH_LEVEL_LINK;
    CHECK(bh_shadow_fits(&h.shelf, h.ends, &sliced, 0, 1));
    hand_take(&h, 0, 0x1, 5 * MINUTE);
    CHECK(!bh_shadow_fits(&h.shelf, h.ends, &sliced, 0, 1));
    CHECK(bh_shadow_fits(&h.shelf, h.ends, &sliced, 0, 5 * MINUTE));
    /* Three members of four GPUs, then two of two: the second role has what the first left. */
    struct bh_shape roles = gang_of(four, 3, BH_LEVEL_RACK);
    roles.roles[1] = (struct bh_gang_role){.class_ = two, .min = 1, .max = 1};
    roles.n_roles = 2;
    CHECK(bh_shadow_fits(&h.shelf, h.ends, &roles, 0, 1));
    roles.roles[1].min = 2;
    CHECK(!bh_shadow_fits(&h.shelf, h.ends, &roles, 0, 1));
    CHECK(bh_shadow_fits(&h.shelf, h.ends, &roles, 0, 5 * MINUTE));
    hand_fini(&h);
}

/* ---- at random ---- */

/* One more of the class on the node, on the GPUs that have most room: as many fit so as fit at all. */
static bool place_one(struct world *w, uint32_t class_, uint32_t node)
{
    const struct bh_request *r = &w->requests.at.at[class_];
    const struct bh_shelf_node *n = &w->shelf.nodes.at[node];
    uint32_t usable = bh_shelf_usable(&w->shelf, r, node), hold;
    struct bh_spot spot = {.node = node};
    while (usable && bh_bits(spot.gpus) < r->n_gpus) {
        uint32_t best = BH_NODE_GPUS, most = 0;
        for (uint32_t i = 0; i < n->n_gpus; i++) {
            const uint32_t by_mib =
                r->gpu_mib ? w->shelf.gpus.at[n->first_gpu + i].mib_free / r->gpu_mib : BH_GPU_MILLI;
            const uint32_t by_milli = r->gpu_milli ? (uint32_t)n->open[i] / r->gpu_milli : 1;
            const uint32_t slots = by_mib < by_milli ? by_mib : by_milli;
            if ((usable >> i & 1) && !(spot.gpus >> i & 1) && slots > most) {
                best = i;
                most = slots;
            }
        }
        if (best == BH_NODE_GPUS)
            return false;
        spot.gpus |= (uint16_t)(1u << best);
    }
    return usable && bh_shelf_take(&w->shelf, class_, &spot, &hold, NULL) == 0;
}

static void end_holds(struct world *w, const uint64_t *ends, uint64_t at_ms)
{
    for (uint32_t i = 0; i < w->shelf.holds.n; i++)
        if (w->shelf.holds.at[i].state != BH_HOLD_FREE && ends[i] <= at_ms)
            bh_shelf_free(&w->shelf, i);
}

/* How many really fit on the node once those holds have ended. */
static uint32_t really(struct world *w, const uint64_t *ends, uint32_t class_, uint32_t node, uint64_t at_ms)
{
    const struct bh_mark mark = bh_shelf_mark(&w->shelf);
    uint32_t n = 0;
    end_holds(w, ends, at_ms);
    while (n < 100 && place_one(w, class_, node))
        n++;
    bh_shelf_rollback(&w->shelf, mark);
    return n;
}

static void fill(struct world *w, uint64_t *ends)
{
    for (uint32_t i = 0; i < 60; i++) {
        const uint32_t class_ = w->classes[world_draw(w, w->n_classes)];
        const uint32_t node = world_draw(w, (uint32_t)w->shelf.nodes.n);
        if (w->requests.at.at[class_].form != BH_FORM_MIG)
            (void)place_one(w, class_, node);
    }
    for (uint32_t i = 0; i < w->shelf.holds.n; i++)
        ends[i] = 1 + world_draw(w, 9);
    for (uint32_t i = 0; i < 3; i++)
        bh_shelf_set_health(&w->shelf, world_draw(w, (uint32_t)w->shelf.nodes.n), BH_NONE,
                            world_draw(w, 2) ? BH_HEALTH_OK : BH_HEALTH_CORDON);
}

TEST(a_node_at_a_time_to_come)
{
    uint32_t compared = 0, with_room = 0;
    for (uint64_t seed = 0; seed < LIVES; seed++) {
        static uint8_t bytes[WORLD_BYTES];
        static struct world w;
        uint64_t ends[128] = {0};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        world_init(&w, bytes, sizeof(bytes));
        fill(&w, ends);
        for (uint32_t i = 0; i < w.n_classes; i++)
            for (uint32_t node = 0; node < w.shelf.nodes.n; node++) {
                const struct bh_request *r = &w.requests.at.at[w.classes[i]];
                const uint64_t at = world_draw(&w, 11);
                const uint32_t said = bh_shadow_room(&w.shelf, ends, w.classes[i], node, at);
                const uint32_t is = really(&w, ends, w.classes[i], node, at);
                if (r->form == BH_FORM_MIG || (r->form == BH_FORM_CPU && !r->cpu_milli && !r->mem_mib))
                    continue;
                CHECK_EQ(said < 100 ? said : 100, is);
                compared++;
                with_room += is != 0;
            }
        world_fini(&w);
    }
    CHECK(compared > 10000 && with_room > 1000);
}

/* Members of one class somewhere below the domain: any order of nodes will do. */
static bool gang_really(struct world *w, const uint64_t *ends, const struct bh_shape *g, uint32_t domain,
                        uint64_t at_ms)
{
    const struct bh_mark mark = bh_shelf_mark(&w->shelf);
    uint32_t n = 0;
    end_holds(w, ends, at_ms);
    for (uint32_t node = 0; node < w->shelf.nodes.n; node++)
        if (domain == BH_NONE || bh_shelf_domain_of(&w->shelf, node, g->within) == domain)
            while (n < g->members && place_one(w, g->roles[0].class_, node))
                n++;
    bh_shelf_rollback(&w->shelf, mark);
    return n == g->members;
}

TEST(the_earliest_time_of_a_gang)
{
    static const uint64_t times[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint32_t found = 0, none = 0;
    for (uint64_t seed = 0; seed < LIVES; seed++) {
        static uint8_t bytes[WORLD_BYTES];
        static struct world w;
        uint64_t ends[128] = {0};
        bh_choice_fill(bytes, sizeof(bytes), 77777 + seed);
        world_init(&w, bytes, sizeof(bytes));
        fill(&w, ends);
        for (uint32_t i = 0; i < w.n_classes; i++) {
            const uint8_t withins[] = {BH_LEVEL_LINK, BH_LEVEL_RACK, BH_LEVEL_ANY};
            const struct bh_shape g =
                gang_of(w.classes[i], 1 + world_draw(&w, 6), withins[world_draw(&w, 3)]);
            struct bh_shadow got = {0}, is = {.start_ms = BH_NEVER_MS};
            if (w.requests.at.at[w.classes[i]].form == BH_FORM_MIG)
                continue;
            for (size_t t = 0; t < BH_COUNT_OF(times) && is.start_ms == BH_NEVER_MS; t++)
                for (uint32_t d = 0; d <= w.shelf.domains.n && is.start_ms == BH_NEVER_MS; d++) {
                    const bool whole = d == w.shelf.domains.n;
                    if (whole ? g.within == BH_LEVEL_ANY : w.shelf.domains.at[d].level == g.within)
                        if (gang_really(&w, ends, &g, whole ? BH_NONE : d, times[t]))
                            is = (struct bh_shadow){times[t], whole ? BH_NONE : d};
                }
            const bool ok = bh_shadow_find(&w.shelf, ends, times, BH_COUNT_OF(times), &g, &got);
            CHECK_EQ(ok, is.start_ms != BH_NEVER_MS);
            if (ok) {
                CHECK_EQ(got.start_ms, is.start_ms);
                CHECK_EQ(got.domain, is.domain);
            }
            found += ok;
            none += !ok;
        }
        world_fini(&w);
    }
    CHECK(found > 300 && none > 300);
}

TEST_MAIN
