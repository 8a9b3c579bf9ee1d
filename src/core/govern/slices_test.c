/* SPDX-License-Identifier: Apache-2.0 */
/* slices_test.c - trimming what is off, and giving up on whoever does not fill its slices. */
#include "core/govern/govern_inside.h"

#include "core/govern/card_fixture.h"

static struct bh_govern *two(uint64_t first, uint64_t second, int steps, struct bh_govern_out *out)
{
    struct bh_govern *g = NULL;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int i = 0; i < steps; i++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        in.at[0] = (struct bh_govern_asked){.id = 1, .weight = 7, .state = BH_GOVERN_BUSY, .gpu_ns = first};
        in.at[1] = (struct bh_govern_asked){.id = 2, .weight = 3, .state = BH_GOVERN_BUSY, .gpu_ns = second};
        if (bh_govern_step(g, &in, out, NULL) < 0)
            abort();
    }
    return g;
}

TEST(what_is_right_is_left_alone)
{
    struct bh_govern_out out;
    struct bh_govern *g = two(3400000, 1460000, 2000, &out);
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
    CHECK_EQ(out.at[0].corrections + out.at[1].corrections, 0);
}

TEST(a_small_error_is_trimmed)
{
    struct bh_govern_out out;
    struct bh_govern *g = two(3280000, 1580000, 100, &out);
    const int32_t up = g->at[0].trim, down = g->at[1].trim;
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
    CHECK(up > BH_TRIM_ONE && down < BH_TRIM_ONE);
    CHECK(out.at[0].corrections >= 1);
}

TEST(trims_do_not_wind_up)
{
    struct bh_govern_out out;
    struct bh_govern *g = two(3380000, 1520000, 20000, &out); /* 0.7 points off, and never better */
    const int32_t up = g->at[0].trim, down = g->at[1].trim;
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
    CHECK(up <= 4 * BH_TRIM_ONE && down >= BH_TRIM_ONE / 4);
    CHECK(out.at[0].slice_us <= 100000 && out.at[1].slice_us >= 20);
}

/* An error that comes and goes is never one that trimming does not help: trims would grow without end. */
TEST(trims_of_slices_alone_do_not_wind_up)
{
    struct bh_govern_config config;
    struct bh_govern_out out = {0};
    struct bh_govern *g = NULL;
    bh_govern_config_default(&config);
    config.slices_only = 1;
    if (bh_govern_new(&config, &g, NULL) < 0)
        abort();
    int32_t most = 0, least = BH_TRIM_ONE;
    for (uint32_t step = 0; step < 20000; step++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        /* Each correction halves it, or undoes that. */
        const uint64_t off = 1000000 / (1 + out.at[0].corrections % 2);
        in.at[0] =
            (struct bh_govern_asked){.id = 1, .weight = 1, .state = BH_GOVERN_BUSY, .gpu_ns = 2450000 - off};
        in.at[1] =
            (struct bh_govern_asked){.id = 2, .weight = 1, .state = BH_GOVERN_BUSY, .gpu_ns = 2450000 + off};
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
        most = g->at[0].trim > most ? g->at[0].trim : most;
        least = g->at[1].trim < least ? g->at[1].trim : least;
    }
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
    CHECK(most > 2 * BH_TRIM_ONE && most <= 4 * BH_TRIM_ONE);
    CHECK(least >= BH_TRIM_ONE / 4);
}

TEST(a_large_error_means_turns)
{
    struct bh_govern_out out;
    struct bh_govern *g = two(1950000, 1950000, 60, &out);
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_TURNS);
}

TEST(right_shares_of_a_burnt_card_mean_turns)
{
    struct bh_govern_out out;
    struct bh_govern *g = two(2800000, 1200000, 120, &out);
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_TURNS);
}

/* By the thresholds: 5 points and what a look may be off by, at once; and 4 of the card beyond what slices of this length cost. */
TEST(eleven_points_too_little_or_seven_lost_mean_turns_and_two_lost_do_not)
{
    struct bh_govern_out out;
    struct bh_govern *g = two(2890000, 2010000, 60, &out);
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_TURNS);
    g = two(3185000, 1365000, 120, &out);
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_TURNS);
    g = two(3342500, 1432500, 400, &out);
    bh_govern_free(g);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
}

/* Each try is farther from the one before: after 20, 40, 80 and 160 s. */
TEST(slices_that_failed_are_tried_again_seldom_and_seldomer)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    uint32_t tries = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 60000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        const bool was = out.turns;
        for (uint32_t i = 0; i < 2; i++)
            in.at[i] = (struct bh_govern_asked){
                .id = i + 1, .weight = i ? 3 : 7, .state = BH_GOVERN_BUSY, .gpu_ns = 1950000};
        for (uint32_t i = 0; was && i < 2; i++) {
            in.at[i].state = out.at[i].paused ? BH_GOVERN_UNKNOWN : BH_GOVERN_BUSY;
            in.at[i].gpu_ns = out.at[i].paused ? 0 : 5000000;
        }
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
        tries += was && out.mode == BH_GOVERN_SLICES;
    }
    bh_govern_free(g);
    CHECK(tries >= 3 && tries <= 4);
}

/* One works for a tenth of a second and rests for 60 ms, again and again: it wants less, and slices are not wrong for that. */
TEST(who_rests_for_a_moment_is_not_corrected)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    uint32_t turns = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 4000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        const bool rests = s % 32 >= 20;
        in.at[0] = (struct bh_govern_asked){
            .id = 1, .weight = 1, .state = BH_GOVERN_BUSY, .gpu_ns = rests ? 5000000 : 2450000};
        in.at[1] = (struct bh_govern_asked){.id = 2,
                                            .weight = 1,
                                            .state = rests ? BH_GOVERN_IDLE : BH_GOVERN_BUSY,
                                            .gpu_ns = rests ? 0 : 2450000};
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
        turns += out.turns;
    }
    bh_govern_free(g);
    CHECK_EQ(turns, 0);
    CHECK_EQ(out.at[0].corrections + out.at[1].corrections, 0);
}

/* Of many one or the other is corrected at every look, and what is lost is counted all the same. */
TEST(many_that_synchronize_take_turns_within_half_a_second)
{
    for (uint32_t n = 2; n <= 12; n++) {
        struct world *w = world_new(0, 0);
        w->card.by_turns = true;
        for (uint32_t i = 0; i < n; i++)
            (void)world_add(w, CARD_SYNC, 10 + i, 0);
        world_run(w, 600);
        const uint8_t mode = w->out.mode;
        world_free(w);
        CHECK_EQ(mode, BH_GOVERN_TURNS);
    }
}

TEST(who_stops_synchronizing_gets_slices_again)
{
    struct world *w = world_new(0, 0);
    const uint32_t a = world_add(w, CARD_SYNC, 70, 0)->on_card;
    const uint32_t b = world_add(w, CARD_SYNC, 30, 0)->on_card;
    world_run(w, 1000);
    const bool turns = w->out.mode == BH_GOVERN_TURNS;
    card_turn_into(&w->card, a, CARD_PERSISTENT);
    card_turn_into(&w->card, b, CARD_PERSISTENT);
    world_run(w, 60000);
    const bool slices = w->out.mode == BH_GOVERN_SLICES;
    world_free(w);
    CHECK(turns);
    CHECK(slices);
}

static struct world *by_slices_alone(enum card_kind a, enum card_kind b, uint32_t n)
{
    struct world *w = world_new(0, 0);
    struct bh_govern_config config;
    bh_govern_config_default(&config);
    config.slices_only = 1;
    bh_govern_free(w->g);
    if (bh_govern_new(&config, &w->g, NULL) < 0)
        abort();
    w->card.by_turns = w->slices_only = true;
    for (uint32_t i = 0; i < n; i++)
        (void)world_add(w, i % 2 ? b : a, 10 + i, 0);
    return w;
}

static uint32_t corrections(const struct world *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->out.n; i++)
        n += w->out.at[i].corrections;
    return n;
}

/* Whatever they do: nobody is paused, and slices are not changed all the time. */
TEST(slices_alone_pause_nobody_and_come_to_rest)
{
    for (uint32_t a = 0; a < CARD_KINDS; a++)
        for (uint32_t b = a; b < CARD_KINDS; b++) {
            struct world *w = by_slices_alone((enum card_kind)a, (enum card_kind)b, 8);
            world_run(w, 30000);
            const uint32_t before = corrections(w);
            world_run(w, 60000);
            const uint32_t changes = corrections(w) - before;
            const uint64_t calls = w->card.calls_made;
            const uint8_t mode = w->out.mode;
            world_free(w);
            printf("# kinds %u and %u: %u changes in a minute\n", a, b, changes);
            CHECK_EQ(calls, 0);
            CHECK(mode == BH_GOVERN_SLICES || mode == BH_GOVERN_FREE);
            CHECK(changes <= 120);
        }
}

/* By how much the one that is farthest from its part by weight is off, in permille. */
static int64_t farthest(const struct world *w)
{
    int64_t worst = 0, whole = 0;
    for (uint32_t i = 0; i < w->n; i++)
        whole += w->at[i].asked.weight;
    for (uint32_t i = 0; i < w->n; i++) {
        const int64_t off = world_share(w, i) - w->at[i].asked.weight * INT64_C(1000) / whole;
        worst = off > worst ? off : -off > worst ? -off : worst;
    }
    return worst;
}

/* Of more than these one or the other is always at the edge of a look. */
TEST(few_that_fill_their_slices_are_left_alone)
{
    for (uint32_t n = 2; n <= 3; n++) {
        struct world *w = world_new(0, 0);
        w->card.by_turns = true;
        for (uint32_t i = 0; i < n; i++)
            (void)world_add(w, CARD_PERSISTENT, 10 + i, 0);
        world_run(w, 10000);
        const uint32_t before = corrections(w);
        int64_t seldom = 0;
        for (const int64_t until = w->card.now_ns + INT64_C(30000000000); w->card.now_ns < until;) {
            world_step(w);
            seldom += w->in.elapsed_us == EVEN_STEP_US;
        }
        const uint32_t changes = corrections(w) - before;
        const uint8_t mode = w->out.mode;
        world_free(w);
        printf("# %u tenants: %u changes, %lld of 750 looks\n", n, changes, (long long)seldom);
        CHECK_EQ(mode, BH_GOVERN_SLICES);
        CHECK(changes <= 3 && seldom >= 600);
    }
}

static struct world *many_in_slices(uint32_t n, enum card_kind kind, uint32_t step)
{
    struct world *w = world_new(0, 0);
    w->card.by_turns = true;
    for (uint32_t i = 0; i < n; i++)
        (void)world_add(w, kind, 10 + step * i, 0);
    world_run(w, 5000);
    return w;
}

/* They are looked at seldom instead. */
TEST(many_that_fill_their_slices_are_looked_at_seldom)
{
    for (uint32_t n = 4; n <= 10; n += 2) {
        struct world *w = many_in_slices(n, CARD_PERSISTENT, 2);
        world_mark(w);
        const uint32_t looks = w->looks;
        world_run(w, 30000);
        const uint32_t made = w->looks - looks;
        const int64_t worst = farthest(w);
        const uint8_t mode = w->out.mode;
        world_free(w);
        printf("# %u tenants: %u looks in 30 s, %lld permille off\n", n, made, (long long)worst);
        CHECK_EQ(mode, BH_GOVERN_SLICES);
        CHECK(made <= 30 * 9 && worst <= 15);
    }
}

/* Nor are looks close because a look ends in the middle of a long round, or for one that slices cannot help. */
TEST(crowds_of_unequal_ones_are_looked_at_seldom)
{
    static const struct {
        uint32_t weight[4];
        enum card_kind last;
    } crowds[] = {
        {{50, 48, 1, 1}, CARD_PERSISTENT}, {{33, 33, 33, 1}, CARD_PERSISTENT}, {{33, 33, 33, 1}, CARD_SYNC}};
    for (size_t k = 0; k < BH_COUNT_OF(crowds); k++) {
        struct world *w = world_new(0, 0);
        w->card.by_turns = true;
        for (uint32_t i = 0; i < 4; i++)
            (void)world_add(w, i < 3 ? CARD_PERSISTENT : crowds[k].last, crowds[k].weight[i], 0);
        world_run(w, 6000);
        const uint32_t looks = w->looks;
        world_run(w, 60000);
        const uint32_t made = w->looks - looks;
        world_free(w);
        printf("# crowd %zu: %u looks in a minute\n", k, made);
        CHECK(made <= 60 * 20);
    }
}

/* It changes nothing by which looks would become close. */
TEST(who_begins_to_synchronize_among_many_has_its_share_soon)
{
    for (uint32_t n = 4; n <= 10; n += 2) {
        struct world *w = many_in_slices(n, CARD_PERSISTENT, 0);
        const uint32_t before_us = w->in.elapsed_us;
        card_turn_into(&w->card, w->at[0].on_card, CARD_SYNC);
        world_run(w, 1000);
        const bool turns = w->out.turns;
        world_run(w, 500);
        world_mark(w);
        world_run(w, 1000);
        const int64_t share = world_share(w, 0);
        world_free(w);
        printf("# of %u: %lld permille after 1.5 s\n", n, (long long)share);
        CHECK_EQ(before_us, BH_PACE_MANY_EVEN_US);
        CHECK(turns);
        CHECK(share >= 700 / n);
    }
}

/* One that uses little is kept to its share by pauses beside slices: they begin and end at looks. */
TEST(where_somebody_is_paused_looks_are_close)
{
    uint32_t paused = 0, far = 0;
    for (int64_t before_ms = 8000; before_ms <= 12000; before_ms += 1000) {
        struct world *w = world_new(0, 0);
        w->card.by_turns = true;
        for (uint32_t i = 0; i < 6; i++)
            (void)world_add(w, CARD_PERSISTENT, 10, 0);
        const uint32_t small = world_add(w, CARD_SPORADIC, 6, 0)->on_card;
        w->card.at[small].pattern = (struct card_pattern){750000, 0, 5000000};
        (void)world_add(w, CARD_SYNC, 10,
                        0); /* so that all take turns, in which it is seen what the small one uses */
        world_run(w, before_ms);
        world_remove(w, 7);
        for (const int64_t until = w->card.now_ns + INT64_C(20000000000); w->card.now_ns < until;) {
            world_step(w);
            const bool held = w->out.mode == BH_GOVERN_SLICES && w->out.at[6].paused;
            paused += held;
            far += held && w->next_us != STEP_US;
        }
        world_free(w);
    }
    printf("# paused at %u looks\n", paused);
    CHECK(paused > 100);
    CHECK_EQ(far, 0);
}

/* Who is starved is looked at closely until something is done about it. However slices were trimmed, a round is not so long that those
 * who wait for it seem to rest. */
TEST(who_has_nothing_among_sixteen_is_found)
{
    for (uint32_t i = 0; i < 12; i++) {
        struct world *w = many_in_slices(16, CARD_PERSISTENT, 0);
        world_run(w, 700 * i);
        int64_t round_us = 0;
        for (uint32_t k = 0; k < w->out.n; k++)
            round_us += w->out.at[k].slice_us;
        card_turn_into(&w->card, w->at[0].on_card, CARD_SYNC);
        world_run(w, 3500);
        world_mark(w);
        world_run(w, 2000);
        const int64_t share = world_share(w, 0);
        const bool turns = w->out.turns;
        world_free(w);
        CHECK(round_us <= 250000);
        CHECK(turns);
        CHECK(share >= 40);
    }
}

/* Of a round of twice the time between two looks each sees the same half: who was short in it was trimmed up, and stayed so. */
TEST(crowds_of_twenty_have_what_they_are_due)
{
    for (uint32_t n = 18; n <= 20; n++)
        for (uint32_t step = 1; step <= 3; step++) {
            struct world *w = many_in_slices(n, CARD_PERSISTENT, step);
            world_run(w, 5000);
            world_mark(w);
            world_run(w, 20000);
            const int64_t worst = farthest(w);
            world_free(w);
            printf("# %u tenants, step %u: %lld permille off\n", n, step, (long long)worst);
            CHECK(worst <= 20);
        }
}

/* Slices that are about half a batch give it in two or in three of them, and nothing between: seen on a card, where they were corrected
 * there and back six times a second. */
TEST(who_cannot_be_trimmed_right_takes_turns)
{
    static const uint32_t weights[][3] = {{70, 30}, {30, 70}, {65, 35}, {60, 40}, {75, 25}, {60, 30, 10}};
    for (size_t k = 0; k < BH_COUNT_OF(weights); k++) {
        struct world *w = world_new(0, 0);
        w->card.by_turns = true;
        for (uint32_t i = 0; i < 3 && weights[k][i]; i++)
            (void)world_add(w, CARD_BATCH, weights[k][i], 0);
        world_run(w, 3000);
        const uint32_t before = corrections(w);
        world_mark(w);
        world_run(w, 6000);
        const int64_t worst = farthest(w);
        const uint8_t mode = w->out.mode;
        printf("# %u/%u: mode %u, %u corrections, %lld permille off\n", weights[k][0], weights[k][1], mode,
               corrections(w) - before, (long long)worst);
        const uint32_t changes = corrections(w) - before;
        world_free(w);
        CHECK(worst <= 20);
        CHECK(mode == BH_GOVERN_TURNS || changes <= 6);
    }
}

/* What fills its slices has its share all the same. */
TEST(slices_alone_are_exact_for_who_fills_them)
{
    struct world *w = by_slices_alone(CARD_PERSISTENT, CARD_SHORT, 8);
    world_run(w, 10000);
    world_mark(w);
    world_run(w, 20000);
    const int64_t worst = farthest(w);
    int64_t sum = 0;
    for (uint32_t i = 0; i < 8; i++)
        sum += world_share(w, i);
    world_free(w);
    CHECK(worst <= 15 && sum >= 960);
}

/* Also of tenants whose slices are corrected again and again: a correction does not need closer looks. */
TEST(slices_alone_are_looked_at_four_times_a_second)
{
    for (uint32_t kind = 0; kind < CARD_KINDS; kind++) {
        struct world *w = by_slices_alone((enum card_kind)kind, (enum card_kind)kind, 8);
        world_run(w, 5000);
        const uint32_t before = w->looks, asked = w->card.use.asks;
        world_run(w, 20000);
        const uint32_t looks = w->looks - before, asks = w->card.use.asks - asked;
        const bool competes = w->out.mode == BH_GOVERN_SLICES;
        printf("# kind %u: %u looks and %u questions for samples in 20 s\n", kind, looks, asks);
        world_free(w);
        if (competes)
            CHECK(looks <= 100 && asks <= 5);
    }
}

/* What is left to correct is found by looks that are far apart, too. */
TEST(seldom_looks_correct_as_much_as_close_ones)
{
    struct world *w = by_slices_alone(CARD_LONG, CARD_LONG, 8);
    for (uint32_t i = 0; i < 8; i++)
        w->at[i].asked.weight = 10 + 5 * i;
    world_run(w, 10000);
    world_mark(w);
    world_run(w, 20000);
    const int64_t worst = farthest(w);
    const uint32_t far_us = w->in.elapsed_us, changes = corrections(w);
    world_free(w);
    printf("# %lld permille off, %u corrections\n", (long long)worst, changes);
    CHECK_EQ(far_us, BH_PACE_ALONE_EVEN_US);
    CHECK(changes > 0 && worst <= 22);
}

static bool is_right(const struct world *w, uint32_t of, int64_t whole)
{
    for (uint32_t i = 0; i < of; i++) {
        const int64_t off = world_share(w, i) - w->at[i].asked.weight * INT64_C(1000) / whole;
        if (off > 30 || off < -30)
            return false;
    }
    return true;
}

/* The looks are far apart by then: how soon it is noticed is all that this is about. */
TEST(by_slices_alone_shares_are_right_a_second_after_anything_happened)
{
    struct world *w = by_slices_alone(CARD_PERSISTENT, CARD_PERSISTENT, 7);
    world_run(w, 5000);
    CHECK_EQ(w->in.elapsed_us, BH_PACE_ALONE_EVEN_US);
    (void)world_add(w, CARD_PERSISTENT, 40, 0); /* somebody comes: 131 of all weights */
    world_run(w, 1000);
    CHECK(w->in.elapsed_us < BH_PACE_ALONE_EVEN_US);
    world_mark(w);
    world_run(w, 1000);
    CHECK(is_right(w, 8, 131));
    for (int times = 0; times < 3; times++) { /* it rests, and works again, at any time between two looks */
        world_run(w, 3000 + times * 70);
        card_rest(&w->card, w->at[7].on_card, true);
        world_run(w, 1000);
        CHECK_EQ(w->out.at[7].active, 0);
        CHECK(w->in.elapsed_us < BH_PACE_ALONE_EVEN_US);
        world_mark(w);
        world_run(w, 1000);
        CHECK(is_right(w, 7, 91));
        world_run(w, 3000 + times * 70);
        card_rest(&w->card, w->at[7].on_card, false);
        world_run(w, 1000);
        CHECK_EQ(w->out.at[7].active, 1);
        world_mark(w);
        world_run(w, 1000);
        CHECK(is_right(w, 8, 131));
    }
    world_run(w, 3000);
    world_remove(w, 7);
    world_run(w, 1000);
    world_mark(w);
    world_run(w, 1000);
    CHECK(is_right(w, 7, 91));
    world_free(w);
}

/* Five by slices; one has a sixth less than its share, and the slices of the others are off by as much, now one way and now the other. */
TEST(who_is_short_through_all_corrections_takes_turns)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    uint32_t before = 0;
    for (uint32_t step = 0; step < 500; step++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 5};
        const bool flip = step / 25 % 2;
        for (uint32_t i = 0; i < in.n; i++) {
            const uint64_t off = (i % 2 == flip) ? 1250000 : 833000;
            in.at[i] = (struct bh_govern_asked){
                .id = i + 1, .weight = 1, .state = BH_GOVERN_BUSY, .gpu_ns = i ? off : 833000};
        }
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
        before += step < 300 && out.turns;
    }
    bh_govern_free(g);
    CHECK_EQ(before, 0);
    CHECK_EQ(out.mode, BH_GOVERN_TURNS);
}

/* Among two a small share makes rounds longer; where many make them long already it must not make them shorter: changes would cost more. */
TEST(a_small_share_makes_no_round_shorter)
{
    for (uint32_t n = 2; n <= 16; n++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = n};
        struct bh_govern_config config;
        struct bh_govern_out out;
        struct bh_govern *g = NULL;
        uint64_t round_us = 0;
        bh_govern_config_default(&config);
        CHECK_EQ(bh_govern_new(&config, &g, NULL), 0);
        for (uint32_t i = 0; i < n; i++)
            in.at[i] = (struct bh_govern_asked){
                .id = i + 1, .weight = i ? 100 : 1, .state = BH_GOVERN_BUSY, .gpu_ns = 5000000 / n};
        const int rc = bh_govern_step(g, &in, &out, NULL);
        bh_govern_free(g);
        CHECK_EQ(rc, 0);
        for (uint32_t i = 0; i < n; i++)
            round_us += out.at[i].slice_us;
        CHECK(out.at[0].slice_us >= config.slice_min_us / 2); /* in less a busy one came to nothing */
        CHECK(n > 2 || out.at[0].slice_us >= config.slice_min_us * 95 / 100);
        CHECK(round_us + n >= (uint64_t)n * config.switch_us * 1000 / config.loss_permille);
        CHECK(round_us <= config.round_max_us);
    }
}

TEST(an_idle_tenants_slice_waits_for_it)
{
    struct world *w = world_new(0, 0);
    (void)world_add(w, CARD_SHORT, 10, 0);
    (void)world_add(w, CARD_SHORT, 10, 0);
    const uint32_t idle = world_add(w, CARD_SHORT, 20, 0)->on_card;
    card_rest(&w->card, idle, true);
    world_run(w, 1000);
    const struct bh_govern_out out = w->out;
    world_free(w);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
    CHECK_EQ(out.at[2].active, 0);
    CHECK_EQ(out.at[2].slice_us, out.at[0].slice_us);
}

TEST_MAIN
