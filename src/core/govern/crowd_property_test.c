/* SPDX-License-Identifier: Apache-2.0 */
/* crowd_property_test.c - many that begin at once, on a card of which only turns and samples are seen (core/govern/use.h). */
#include "base/choice.h"
#include "core/govern/card_fixture.h"

/* All of them did little and were known for it. They are neither taken to do so for long, nor looked at one after the other. */
TEST(a_crowd_that_begins_to_work_is_right_soon)
{
    static const enum card_kind busy[] = {CARD_LONG, CARD_SHORT, CARD_SYNC, CARD_GRAPH};
    for (uint32_t n = 2; n <= 8; n += 2) {
        int64_t sum = 0;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct world *w = world_new(0, 0);
            uint32_t weights = 0;
            int64_t worst = 0;
            w->card.by_turns = true;
            w->card.use_off_permille = 10;
            w->card.dice = seed;
            card_run(&w->card, (int64_t)seed * 7000000); /* when samples come is chance */
            for (uint32_t i = 0; i < n; i++)
                weights += world_add(w, CARD_SPORADIC, 10 + 5 * i, 0)->asked.weight;
            world_run(w, 12000);
            for (uint32_t i = 0; i < n; i++)
                card_turn_into(&w->card, w->at[i].on_card, busy[seed % BH_COUNT_OF(busy)]);
            world_run(w, 2000);
            world_mark(w);
            world_run(w, 1000);
            for (uint32_t i = 0; i < n; i++) {
                const int64_t off = world_share(w, i) - 1000 * (int64_t)w->at[i].asked.weight / weights;
                worst = off > worst ? off : -off > worst ? -off : worst;
            }
            world_free(w);
            sum += worst;
        }
        printf("# %u: in the third second off by %" PRId64 " permille at the most, in the mean\n", n,
               sum / 20);
        CHECK(sum / 20 <= (n < 8 ? 60 : 120));
    }
}

/* Ten come and load, one after the other and some again: they hold the card and hardly compute. Then all of them work. */
TEST(a_crowd_that_has_loaded_is_right_soon)
{
    enum { N = 10, RUNS = 60 };
    static const enum card_kind busy[] = {CARD_LONG, CARD_SHORT, CARD_GRAPH, CARD_BATCH};
    int64_t sum = 0, worst = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        uint8_t bytes[256];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct world *w = world_new(0, 0);
        int64_t most = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        w->card.by_turns = true;
        w->card.use_off_permille = 15; /* measured */
        w->card.dice = seed;
        for (uint32_t i = 0; i < N; i++)
            card_rest(&w->card, world_add(w, CARD_SPORADIC, 10, 0)->on_card, true);
        for (uint32_t loads = 0, k = 0; k < 40; k++) {
            card_rest(&w->card, w->at[loads].on_card, bh_choose(&c, 3) != 0);
            loads = bh_choose(&c, N - 1);
            card_rest(&w->card, w->at[loads].on_card, false);
            world_run(w, 100 + 200 * (int64_t)bh_choose(&c, 1));
        }
        for (uint32_t i = 0; i < N; i++) {
            card_rest(&w->card, w->at[i].on_card, false);
            card_turn_into(&w->card, w->at[i].on_card, busy[seed % BH_COUNT_OF(busy)]);
        }
        world_run(w, 3000);
        world_mark(w);
        world_run(w, 6000);
        for (uint32_t i = 0; i < N; i++) {
            const int64_t off = world_rate(w, i) - 1000 / N;
            most = off > most ? off : -off > most ? -off : most;
        }
        world_free(w);
        sum += most;
        worst = most > worst ? most : worst;
    }
    printf("# from 3 s on off by %" PRId64 " permille at the most, %" PRId64 " in the mean\n", worst,
           sum / RUNS);
    CHECK(worst <= 60 && sum / RUNS <= 16); /* 49 and 18 when only the sum told */
}

/* It rests for a moment whenever it has its turn, and it is the only one that needs turns. */
TEST(who_rests_in_each_of_its_turns_starves_nobody)
{
    for (uint32_t n = 4; n <= 10; n += 3) {
        struct world *w = world_new(0, 0);
        uint32_t sly = 0, had = 0;
        int64_t least = 1000;
        w->card.by_turns = true;
        for (uint32_t i = 0; i < n; i++) {
            const struct world_tenant *t = world_add(w, i == n / 2 ? CARD_SYNC : CARD_PERSISTENT, 10, 0);
            sly = i == n / 2 ? t->on_card : sly;
        }
        for (int s = 0; s < 2400; s++) {
            had = w->out.turns && !w->out.at[n / 2].paused ? had + 1 : 0;
            card_rest(&w->card, sly, had >= 2);
            world_step(w);
            if (s == 400)
                world_mark(w);
        }
        for (uint32_t i = 0; i < n; i++)
            least = i != n / 2 && world_rate(w, i) < least ? world_rate(w, i) : least;
        world_free(w);
        printf("# %u: the others have at least %" PRId64 " of %u permille\n", n, least, 1000 / n);
        CHECK(least >= 800 / n);
    }
}

TEST_MAIN
