/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "core/sched/shelf_fixture.h"

/* Every number that is kept along is wrong once, and that is seen. */
TEST(a_wrong_number_is_found)
{
    struct bh_requests requests = {0};
    struct bh_shelf s;
    uint32_t id, link, class_, hold;
    const struct bh_request r = {
        .form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 400, .gpu_mib = 10, .kinds = 1};
    bh_shelf_init(&s, &requests);
    world_must(bh_request_intern(&requests, &r, &class_, NULL));
    world_must(bh_shelf_add_model(&s, bh_catalog_find("H100"), &id, NULL));
    world_must(bh_shelf_add_domain(&s, BH_LEVEL_LINK, BH_NONE, &link, NULL));
    const struct bh_node_spec spec = {
        .domain = link, .n_gpus = 2, .gpu_mib = 100, .cpu_milli = 10, .mem_mib = 10};
    world_must(bh_shelf_add_node(&s, &spec, &id, NULL));
    world_must(bh_shelf_take(&s, class_, &(struct bh_spot){.gpus = 1}, &hold, NULL));
    CHECK(bh_shelf_sound(&s));
#define WRONG(field)                \
    do {                            \
        (field)++;                  \
        CHECK(!bh_shelf_sound(&s)); \
        (field)--;                  \
        CHECK(bh_shelf_sound(&s));  \
    } while (0)
    struct bh_shelf_node *n = s.nodes.at;
    struct bh_shelf_gpu *g = s.gpus.at;
    struct bh_shelf_domain *d = s.domains.at;
    WRONG(s.n_taken);
    WRONG(s.milli_used);
    WRONG(s.models[0].milli_used);
    WRONG(n->cpu_free);
    WRONG(n->mem_free);
    WRONG(n->n_whole);
    WRONG(n->n_gone);
    WRONG(n->milli_gone);
    WRONG(n->open[1]);
    WRONG(n->sizes[0]);
    WRONG(n->crowd.holds);
    WRONG(n->crowd.trust);
    WRONG(g->milli_free);
    WRONG(g->mib_free);
    WRONG(g->use);
    WRONG(g->kinds);
    WRONG(g->avoid);
    WRONG(g->gone);
    WRONG(g->mechanism);
    WRONG(g->mig_held);
    WRONG(g->mig_compute);
    WRONG(g->crowd.strict);
    WRONG(d->n_whole);
    WRONG(d->n_gone);
    WRONG(d->by_whole[3]);
    WRONG(d->crowd.holds);
#undef WRONG
    /* Nor can two have what one can have. */
    s.holds.at[hold].gpus = 2;
    CHECK(!bh_shelf_sound(&s));
    s.holds.at[hold].gpus = 0;
    CHECK(!bh_shelf_sound(&s));
    bh_shelf_fini(&s);
    bh_requests_fini(&requests);
}

TEST_MAIN
