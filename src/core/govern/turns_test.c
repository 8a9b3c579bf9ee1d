/* SPDX-License-Identifier: Apache-2.0 */
/* turns_test.c - who holds the card: debt carried, the order, the least length, and what caps leave empty. */
#include "core/govern/govern_inside.h"

#include "core/govern/card_fixture.h"

/* Turns of tenants that use all they hold, at the grain of steps; returns how many steps each held. */
static void rotate(const uint32_t *weights, const uint32_t *caps, uint32_t n, int steps, int *held,
                   int *changes)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    uint64_t last = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    *changes = 0;
    for (int s = 0; s < steps; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = n};
        for (uint32_t i = 0; i < n; i++) {
            const bool ran = s && !out.at[i].paused;
            held[i] += ran;
            in.at[i] = (struct bh_govern_asked){.id = i + 1,
                                                .weight = weights[i],
                                                .cap_permille = caps[i],
                                                .state = ran ? BH_GOVERN_BUSY : BH_GOVERN_UNKNOWN,
                                                .gpu_ns = ran ? 5000000 : 0};
            in.at[i].state = s ? in.at[i].state : BH_GOVERN_BUSY;
        }
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
        *changes += last != g->holder;
        last = g->holder;
    }
    bh_govern_free(g);
}

TEST(exact_by_debt_whatever_the_grain)
{
    const uint32_t weights[] = {61, 28, 11}, caps[] = {0, 0, 110};
    int held[3] = {0}, changes;
    rotate(weights, caps, 3, 4000, held, &changes);
    CHECK(held[0] >= 2420 && held[0] <= 2460);
    CHECK(held[1] >= 1100 && held[1] <= 1140);
    CHECK(held[2] >= 425 && held[2] <= 455);
}

TEST(turns_are_not_too_short)
{
    const uint32_t weights[] = {1, 1, 1, 1, 1}, caps[] = {200, 0, 0, 0, 0};
    int held[5] = {0}, changes;
    rotate(weights, caps, 5, 4000, held, &changes);
    CHECK(changes <= 4000 * 5 / 15 + 10);
    for (int i = 0; i < 5; i++)
        CHECK(held[i] >= 780 && held[i] <= 820);
}

TEST(caps_leave_the_rest_empty)
{
    const uint32_t weights[] = {1, 1}, caps[] = {100, 250};
    int held[2] = {0}, changes;
    rotate(weights, caps, 2, 4000, held, &changes);
    CHECK(held[0] >= 390 && held[0] <= 410);
    CHECK(held[1] >= 990 && held[1] <= 1010);
}

TEST(a_small_share_waits_no_longer_than_it_must)
{
    const uint32_t weights[] = {99, 1}, caps[] = {0, 10};
    int held[2] = {0}, changes;
    rotate(weights, caps, 2, 4000, held, &changes);
    CHECK(held[1] >= 30 && held[1] <= 50);
    CHECK(changes >= 20); /* in twenty seconds: a turn every other second at least */
}

/* A holder whose sensors fall silent in its turn, as they do for one that is alone on the card for long, pays by the clock. */
TEST(a_silent_holder_does_not_starve_a_small_share)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    int ran = 0, alone = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 2000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        alone = out.at[1].paused ? alone + 1 : 0;
        for (uint32_t i = 0; i < 2; i++) {
            const bool silent = i == 0 && alone > 60, ran_it = s && !out.at[i].paused;
            in.at[i] =
                (struct bh_govern_asked){.id = i + 1, .weight = i ? 1 : 99, .cap_permille = i ? 10 : 0};
            in.at[i].state = silent || !ran_it ? BH_GOVERN_UNKNOWN : BH_GOVERN_BUSY;
            in.at[i].gpu_ns = silent ? BH_GOVERN_NO_SAMPLE : (ran_it ? 4900000 : 0);
        }
        if (s == 0)
            in.at[0].state = in.at[1].state = BH_GOVERN_BUSY;
        ran += s >= 400 && !out.at[1].paused;
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
    }
    bh_govern_free(g);
    CHECK(ran >= 6); /* in eight seconds */
}

/* One of two is in doubt until it had a long turn, again and again where it comes back at once. */
static void doubt(uint32_t weight, bool again, int *held, int *longest, int *gap, int *looks)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    int turn = 0, away = 0;
    bool in_doubt = false;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    *held = *longest = *gap = *looks = 0;
    for (int s = 0; s < 4000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        for (uint32_t i = 0; i < 2; i++) {
            const bool ran = s && !out.at[i].paused;
            in.at[i] = (struct bh_govern_asked){.id = i + 1,
                                                .weight = i ? weight : 100 - weight,
                                                .cap_permille = i ? 10 * weight : 0,
                                                .state = ran || !s ? BH_GOVERN_BUSY : BH_GOVERN_UNKNOWN,
                                                .gpu_ns = ran ? 5000000 : 0};
        }
        turn = s && !out.at[1].paused ? turn + 1 : 0;
        away = turn ? 0 : away + 1;
        in_doubt = s == 400 || (again && turn == 0 && s >= 400) || (in_doubt && turn < 70);
        in.at[1].doubt = in_doubt;
        *looks += turn == 60;
        *held += turn > 0;
        *longest = turn > *longest ? turn : *longest;
        *gap = s > 400 && away > *gap ? away : *gap;
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
    }
    bh_govern_free(g);
}

TEST(a_long_turn_in_doubt_is_paid_back_and_starves_nobody)
{
    static const uint32_t weights[] = {50, 20, 10};
    int held, longest, gap, looks;
    for (size_t k = 0; k < 3; k++) {
        const int due = (int)weights[k] * 40; /* of 4000 steps */
        doubt(weights[k], false, &held, &longest, &gap, &looks);
        CHECK(looks == 1 && longest >= 70 && longest <= 85);
        CHECK(held >= due - 40 && held <= due + 40);
        CHECK(gap <= 400);
        doubt(weights[k], true, &held, &longest, &gap, &looks);
        CHECK(looks >= 3 && looks <= 5); /* in 18 seconds: less and less */
        printf("# %u: %d of %d, %d looks, away for %d\n", weights[k], held, due, looks, gap);
        CHECK(held <= due + 200 && gap <= 400); /* what it has too much is a second at most, ever */
    }
}

/* One of several that are equal and always have work; it ran in the step before, unless that was the first. */
static struct bh_govern_asked equal_one(uint32_t i, uint32_t n, const struct bh_govern_out *was, bool doubt)
{
    const bool ran = was->n && !was->at[i].paused;
    return (struct bh_govern_asked){.id = i + 1,
                                    .weight = 1,
                                    .cap_permille = 1000 / n,
                                    .doubt = doubt,
                                    .state = ran || !was->n ? BH_GOVERN_BUSY : BH_GOVERN_UNKNOWN,
                                    .gpu_ns = ran ? 5000000 : 0};
}

/* As when all of a crowd have loaded: they are in doubt for that, and it is over as soon as it is seen that they work. */
TEST(who_is_in_doubt_when_turns_begin_is_not_looked_at_yet)
{
    for (int lasts = 80; lasts <= 400; lasts += 320) { /* steps in which they are in doubt */
        struct bh_govern *g = NULL;
        struct bh_govern_out out = {0};
        int turn[4] = {0}, longest = 0;
        if (bh_govern_new(NULL, &g, NULL) < 0)
            abort();
        for (int s = 0; s < 400; s++) {
            struct bh_govern_in in = {.elapsed_us = 5000, .n = 4};
            for (uint32_t i = 0; i < 4; i++) {
                in.at[i] = equal_one(i, 4, &out, s < lasts);
                turn[i] = in.at[i].gpu_ns ? turn[i] + 1 : 0;
                longest = turn[i] > longest ? turn[i] : longest;
            }
            if (bh_govern_step(g, &in, &out, NULL) < 0)
                abort();
        }
        bh_govern_free(g);
        printf("# in doubt for %d steps: the longest turn is %d\n", lasts, longest);
        CHECK(lasts == 80 ? longest <= 20 : longest >= 100);
    }
}

struct doubts {
    uint32_t n; /* so many are in doubt */
    int from, lasts;
    int away;    /* before that they rested for so long, in doubt already */
    uint32_t of; /* of so many */
};

/* How many had a turn that is longer than any usual one. */
static int looked_at(const struct doubts *d)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    int turn[6] = {0}, longest[6] = {0}, looks = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < d->from + d->lasts; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = d->of};
        for (uint32_t i = 0; i < d->of; i++) {
            const bool doubted = i < d->n && s >= d->from - d->away;
            in.at[i] = equal_one(i, d->of, &out, doubted);
            if (doubted && s < d->from) {
                in.at[i].gpu_ns = 0;
                in.at[i].state = out.at[i].paused ? BH_GOVERN_UNKNOWN : BH_GOVERN_IDLE;
            }
            turn[i] = in.at[i].gpu_ns ? turn[i] + 1 : 0;
            longest[i] = turn[i] > longest[i] ? turn[i] : longest[i];
        }
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
    }
    bh_govern_free(g);
    for (uint32_t i = 0; i < 6; i++)
        looks += longest[i] > 25;
    return looks;
}

/* Turns are being taken; of three and more the next samples tell as well. */
TEST(a_crowd_that_comes_into_doubt_takes_turns_first)
{
    int nobody = 0;
    for (int from = 400; from < 460; from++) { /* unless it has the card just then */
        const int looks = looked_at(&(struct doubts){3, from, 90, 0, 6});
        CHECK(looks <= 1);
        nobody += looks == 0;
    }
    CHECK(nobody >= 20);
    CHECK_EQ(looked_at(&(struct doubts){4, 400, 700, 0, 6}), 4);
    CHECK_EQ(looked_at(&(struct doubts){2, 400, 170, 0, 6}), 2);
}

/* It is in doubt for what it did before. */
TEST(who_comes_back_in_doubt_takes_turns_first)
{
    CHECK_EQ(looked_at(&(struct doubts){1, 800, 90, 280, 6}), 0);
    CHECK_EQ(looked_at(&(struct doubts){1, 800, 400, 280, 6}), 1);
    CHECK_EQ(looked_at(&(struct doubts){1, 800, 90, 200, 6}), 1); /* that was no absence */
    CHECK_EQ(looked_at(&(struct doubts){1, 800, 90, 280, 4}), 0);
    CHECK_EQ(looked_at(&(struct doubts){1, 800, 90, 280, 3}), 1); /* few: no sample would be of several */
}

/* Three in doubt, with what each is told to wait for before that; three seconds later again. */
TEST(a_crowd_waits_in_each_doubt_and_not_less_than_it_had_to)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 2000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 6};
        const bool doubt = (s >= 400 && s < 410) || s >= 1400;
        if (s == 1399)
            g->at[1].doubt_wait_ns = 9000 * BH_MS;
        for (uint32_t i = 0; i < 6; i++)
            in.at[i] = equal_one(i, 6, &out, doubt && i < 3);
        const uint64_t holder = g->holder;
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
        if (s == 400 || s == 1400) {
            for (uint32_t i = 0; i < 3; i++)
                CHECK(g->at[i].doubt_wait_ns >= 490 * BH_MS || g->at[i].id == holder);
            CHECK(s == 400 || g->at[1].doubt_wait_ns >= 8900 * BH_MS);
        }
    }
    bh_govern_free(g);
}

/* It came into doubt by what another did, and out of it: that was no look, after which it would not be looked at for long. */
TEST(a_doubt_that_nobody_looked_into_is_soon_looked_into_again)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 4000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        in.at[0] = equal_one(0, 2, &out, false);
        in.at[1] = equal_one(1, 2, &out, s && out.at[1].paused);
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
    }
    const int64_t wait = g->at[1].doubt_wait_ns, next = g->at[1].doubt_next;
    bh_govern_free(g);
    CHECK(wait <= 2000 * BH_MS && next <= 2000 * BH_MS);
}

TEST(a_small_share_is_not_looked_at)
{
    int held, longest, gap, looks;
    for (int again = 0; again < 2; again++) {
        doubt(1, again != 0, &held, &longest, &gap, &looks);
        printf("# %d of 40, longest %d, away for %d\n", held, longest, gap);
        CHECK_EQ(looks, 0);
        CHECK(longest <= 20);
        CHECK(held >= 30 && held <= 60);
    }
}

TEST(a_doubt_that_no_turn_ends_ends_the_turn)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    int turn = 0, longest = 0, looks = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 2000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 2};
        for (uint32_t i = 0; i < 2; i++)
            in.at[i] = (struct bh_govern_asked){.id = i + 1,
                                                .weight = 1,
                                                .cap_permille = i ? 500 : 0,
                                                .state = BH_GOVERN_BUSY,
                                                .gpu_ns = s && !out.at[i].paused ? 5000000 : 0,
                                                .doubt = 1};
        turn = s && !out.at[1].paused ? turn + 1 : 0;
        looks += turn == 60;
        longest = turn > longest ? turn : longest;
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
    }
    bh_govern_free(g);
    CHECK(longest >= 125 && longest <= 135); /* 0.65 s */
    CHECK(looks >= 2 && looks <= 4);         /* of ten */
}

TEST(a_cap_is_not_exceeded_to_find_out_what_nobody_could_use)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    int turn = 0, longest = 0, held = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 1200; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 1};
        in.at[0] = (struct bh_govern_asked){.id = 1,
                                            .weight = 1,
                                            .cap_permille = 250,
                                            .state = BH_GOVERN_BUSY,
                                            .gpu_ns = s && !out.at[0].paused ? 5000000 : 0,
                                            .doubt = s > 400 && s < 600};
        turn = s && !out.at[0].paused ? turn + 1 : 0;
        longest = s > 100 && turn > longest ? turn : longest;
        held += s >= 200 && turn > 0;
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
    }
    bh_govern_free(g);
    CHECK(longest > 0 && longest <= 15);
    CHECK(held >= 240 && held <= 260); /* of a thousand */
}

TEST(a_light_tenant_does_not_wait_for_a_look_that_nobody_takes)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    int paused = 0, steps = 0;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    for (int s = 0; s < 4000; s++) {
        struct bh_govern_in in = {.elapsed_us = 5000, .n = 3};
        for (uint32_t i = 0; i < 3; i++)
            in.at[i] = (struct bh_govern_asked){.id = i + 1,
                                                .weight = 1,
                                                .cap_permille = i < 2 ? 300 : 0,
                                                .state = BH_GOVERN_BUSY,
                                                .gpu_ns = !s || out.at[i].paused ? 0
                                                          : i < 2                ? 4500000
                                                                                 : 400000,
                                                .doubt = i < 2 && s > 2000};
        steps += s > 2400;
        paused += s > 2400 && out.at[2].paused;
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            abort();
    }
    bh_govern_free(g);
    CHECK(paused * 10 <= steps);
}

TEST(a_light_tenant_runs_beside_the_holder)
{
    struct world *w = world_new(0, 0);
    (void)world_add(w, CARD_SYNC, 50, 0);
    (void)world_add(w, CARD_LONG, 50, 0);
    (void)world_add(w, CARD_SPORADIC, 50, 0);
    world_run(w, 1000);
    const struct bh_govern_out out = w->out;
    world_free(w);
    CHECK_EQ(out.mode, BH_GOVERN_TURNS);
    CHECK(out.at[2].light && !out.at[2].paused);
    CHECK_EQ(out.at[0].paused + out.at[1].paused, 1);
}

/* It needs 43 permille and is due 28. */
TEST(who_is_held_has_slices_that_are_worth_a_change)
{
    struct world *w = world_new(0, 0);
    (void)world_add(w, CARD_LONG, 99, 0);
    (void)world_add(w, CARD_SPORADIC, 3, 0);
    (void)world_add(w, CARD_SPORADIC, 99, 0);
    world_run(w, 3000);
    world_mark(w);
    world_run(w, 3000);
    const struct bh_govern_out out = w->out;
    const int64_t got = world_share(w, 1);
    world_free(w);
    CHECK(out.at[1].light && out.at[2].light);
    CHECK_EQ(out.at[1].slice_us, 4 * out.at[2].slice_us);
    CHECK(got >= 18 && got <= 33);
}

/* It works while it is taken to do little, and does little while it takes turns. What the least of the others has, in hundredths of its
 * share; what it has itself in *ret. */
static int64_t beside_one_that_changes(uint32_t n, int64_t *ret)
{
    struct world *w = world_new(0, 0);
    int64_t least = 1000;
    w->card.by_turns = true;
    w->card.use_off_permille = 15;
    w->card.dice = n;
    for (uint32_t i = 0; i < n; i++)
        (void)world_add(w, i ? CARD_SYNC : CARD_PERSISTENT, 10, 0);
    for (int step = 0; step < 6800; step++) {
        const bool works = w->out.n == 0 || w->out.at[0].light;
        if (works == (w->card.at[w->at[0].on_card].kind == CARD_SPORADIC))
            card_turn_into(&w->card, w->at[0].on_card, works ? CARD_PERSISTENT : CARD_SPORADIC);
        world_step(w);
        if (step == 800)
            world_mark(w);
    }
    for (uint32_t i = 1; i < n; i++) {
        const int64_t part = world_rate(w, i) * n / 10;
        least = part < least ? part : least;
    }
    *ret =
        (w->card.at[w->at[0].on_card].done_ns - w->at[0].mark_ns) / ((w->card.now_ns - w->mark_ns) / 100) * n;
    world_free(w);
    return least;
}

TEST(who_leaves_turns_in_debt_and_comes_back_gains_nothing)
{
    for (uint32_t n = 3; n <= 5; n++) {
        int64_t own;
        const int64_t least = beside_one_that_changes(n, &own);
        printf("# %u: it has %" PRId64 " in a hundred of its share, the least of the others %" PRId64 "\n", n,
               own, least);
        CHECK(own <= 100 && least >= 45);
    }
}

TEST(a_capped_latency_tenant_is_held_to_its_cap)
{
    struct world *w = world_new(0, 0);
    world_add(w, CARD_SHORT, 50, 200)->asked.latency = BH_GOVERN_LATENCY;
    (void)world_add(w, CARD_LONG, 50, 0);
    world_run(w, 1000);
    world_mark(w);
    world_run(w, 3000);
    const int64_t got = world_rate(w, 0), other = world_rate(w, 1);
    world_free(w);
    CHECK(got >= 180 && got <= 220);
    CHECK(other >= 740);
}

/* With no batch there that its slices could be held against; and also where nobody says what it had. */
TEST(a_capped_latency_tenant_is_held_to_its_cap_alone_and_unseen)
{
    for (int blind = 0; blind < 2; blind++) {
        struct world *w = world_new(0, 0);
        world_add(w, CARD_SHORT, 50, 200)->asked.latency = BH_GOVERN_LATENCY;
        w->blind = blind != 0;
        world_run(w, 1000);
        world_mark(w);
        world_run(w, 3000);
        const int64_t got = world_rate(w, 0);
        world_free(w);
        CHECK(got >= 170 && got <= 230);
    }
}

/* What it did not use while it rested is not saved up for when it works. */
TEST(a_capped_latency_tenant_that_rested_is_held_to_its_cap)
{
    struct world *w = world_new(0, 0);
    const uint32_t capped = world_add(w, CARD_SHORT, 50, 100)->on_card;
    w->at[0].asked.latency = BH_GOVERN_LATENCY;
    (void)world_add(w, CARD_LONG, 50, 0);
    world_run(w, 1000);
    card_rest(&w->card, capped, true);
    world_run(w, 5000);
    card_rest(&w->card, capped, false);
    world_mark(w);
    world_run(w, 300);
    const int64_t got = world_rate(w, 0);
    world_free(w);
    CHECK(got <= 100 + 100); /* 30 ms of 300, and 30 more: two leads and some steps */
}

/* One that is held runs beside a busy one, and another makes turns begin and end all the time. */
TEST(what_one_owes_that_is_held_is_not_forgiven_when_turns_begin)
{
    struct bh_govern *g = NULL;
    struct bh_govern_out out = {0};
    struct bh_govern_in in = {.elapsed_us = 5000, .n = 1};
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    in.at[0] = (struct bh_govern_asked){.id = 1, .weight = 1, .state = BH_GOVERN_BUSY, .gpu_ns = 0};
    if (bh_govern_step(g, &in, &out, NULL) < 0)
        abort();
    struct bh_member *m = &g->at[0];
    m->active = m->light = m->alone_known = true;
    m->alone_ppm = 100000;
    m->target_ppm = 50000;
    m->credit_ns = -7000000;
    CHECK(bh_is_held(m));
    bh_turns_begin(g);
    CHECK_EQ(m->credit_ns, -7000000);
    m->target_ppm = 500000;
    CHECK(!bh_is_held(m));
    bh_turns_begin(g);
    CHECK_EQ(m->credit_ns, 0);
    bh_govern_free(g);
}

TEST_MAIN
