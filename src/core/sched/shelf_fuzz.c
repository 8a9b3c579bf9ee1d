/* SPDX-License-Identifier: Apache-2.0 */
/* shelf_fuzz.c - any life of any fleet: the index answers as a scan does, and the counters stay right. */
#include "core/sched/shelf_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void place(struct world *w, struct bh_pick *pick)
{
    const uint32_t class_ = w->classes[world_draw(w, w->n_classes)];
    const struct bh_request *r = &w->requests.at.at[class_];
    struct bh_spot x, y;
    const bool found = bh_pick_best(pick, class_, &x);
    if (found != bh_pick_naive(pick, class_, &y))
        abort();
    if (!found || w->n_holds == WORLD_HOLDS)
        return;
    if (x.node != y.node || x.gpus != y.gpus || (x.gpus & ~oracle_usable(w, r, x.node)))
        abort();
    world_must(bh_shelf_take(&w->shelf, class_, &x, &w->holds[w->n_holds++], NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w;
    if (size > WORLD_BYTES)
        return 0;
    world_init(&w, data, size);
    struct bh_score *score =
        bh_score_new((enum bh_score_mode)(world_draw(&w, 2) ? BH_SCORE_FGD : BH_SCORE_BULKHEAD), &w.shelf, 1);
    struct bh_pick *pick = bh_pick_new(&w.shelf, score);
    world_typical(&w, score);
    while (w.choice.left) {
        if (world_draw(&w, 3))
            place(&w, pick);
        else
            world_disturb(&w);
    }
    if (!bh_shelf_sound(&w.shelf))
        abort();
    bh_pick_free(pick);
    bh_score_free(score);
    world_fini(&w);
    return 0;
}
