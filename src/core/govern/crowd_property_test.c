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
            world_run(w, 25000);
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

enum { MOST = 10 };
struct crowd {
    uint32_t n, weights[MOST];
};
static const struct crowd ten = {10, {10, 10, 10, 10, 10, 10, 10, 10, 10, 10}};

/* They come and load, one after the other and some again. */
typedef void load_fn(struct world *w, struct bh_choice *c);

/* It holds the card and hardly computes. */
static void load_idly(struct world *w, struct bh_choice *c)
{
    for (uint32_t loads = 0, k = 0; k < 40; k++) {
        card_rest(&w->card, w->at[loads].on_card, bh_choose(c, 3) != 0);
        loads = bh_choose(c, w->n);
        card_rest(&w->card, w->at[loads].on_card, false);
        world_run(w, 100 + 200 * (int64_t)bh_choose(c, 2));
    }
}

/* It computes for an eighth to a quarter of the time, and is believed to use so much. */
static void load_at_work(struct world *w, struct bh_choice *c)
{
    for (uint32_t loads = 0, k = 0; k < 80; k++) {
        loads = bh_choose(c, 3) ? loads : bh_choose(c, w->n);
        for (int i = 0; i < 5; i++) {
            card_rest(&w->card, w->at[loads].on_card, false);
            card_turn_into(&w->card, w->at[loads].on_card, CARD_SHORT);
            world_run(w, 2 + (int64_t)bh_choose(c, 3));
            card_rest(&w->card, w->at[loads].on_card, true);
            world_run(w, 16);
        }
    }
}

struct off {
    int64_t worst, mean; /* permille of the card, of the one that is off by most, from 3 s on */
    int64_t
        least; /* in hundredths of its share, of the one that has least in any second after the first two */
};

static void compare(struct world *w, const struct crowd *crowd, struct off *off)
{
    int64_t most = 0, done[MOST] = {0}, weights = 0;
    for (uint32_t i = 0; i < crowd->n; i++)
        weights += crowd->weights[i];
    for (int second = 0; second < 9; second++) {
        world_mark(w);
        world_run(w, 1000);
        for (uint32_t i = 0; i < crowd->n; i++) {
            const int64_t part = world_rate(w, i) * weights / crowd->weights[i] / 10;
            done[i] += second >= 3 ? world_rate(w, i) : 0;
            off->least = second >= 2 && part < off->least ? part : off->least;
        }
    }
    for (uint32_t i = 0; i < crowd->n; i++) {
        const int64_t by = done[i] / 6 - 1000 * (int64_t)crowd->weights[i] / weights;
        most = by > most ? by : -by > most ? -by : most;
    }
    off->mean += most;
    off->worst = most > off->worst ? most : off->worst;
}

/* After that all of them work. */
static struct off after(load_fn *load, const struct crowd *crowd, const enum card_kind *busy, size_t n_busy,
                        uint64_t runs)
{
    struct off off = {.least = 1000};
    for (uint64_t seed = 1; seed <= runs; seed++) {
        uint8_t bytes[1024];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct world *w = world_new(0, 0);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        w->card.by_turns = true;
        w->card.use_off_permille = 15; /* measured */
        w->card.dice = seed;
        for (uint32_t i = 0; i < crowd->n; i++)
            card_rest(&w->card, world_add(w, CARD_SPORADIC, crowd->weights[i], 0)->on_card, true);
        load(w, &c);
        for (uint32_t i = 0; i < crowd->n; i++) {
            card_rest(&w->card, w->at[i].on_card, false);
            card_turn_into(&w->card, w->at[i].on_card, busy[seed % n_busy]);
        }
        compare(w, crowd, &off);
        world_free(w);
    }
    off.mean /= (int64_t)runs;
    printf("# %u: off by %" PRId64 " permille at the most, %" PRId64 " in the mean; the least has %" PRId64
           " in a hundred of its share in a second\n",
           crowd->n, off.worst, off.mean, off.least);
    return off;
}

static const enum card_kind steady[] = {CARD_LONG, CARD_SHORT, CARD_GRAPH, CARD_BATCH};

TEST(a_crowd_that_has_loaded_is_right_soon)
{
    const struct off off = after(load_idly, &ten, steady, BH_COUNT_OF(steady), 60);
    CHECK(off.worst <= 20 && off.mean <= 11);
}

/* A small share is not more than what it is believed to use, so neither what all of them use nor what it has tells that this is wrong. */
TEST(who_worked_a_little_while_it_loaded_is_right_soon)
{
    static const struct crowd two = {2, {90, 10}},
                              three = {3, {60, 30, 10}}, *const crowds[] = {&two, &three, &ten};
    static const enum card_kind waits[] = {CARD_SYNC};
    for (size_t i = 0; i < BH_COUNT_OF(crowds); i++) {
        const struct off off = after(load_at_work, crowds[i], steady, BH_COUNT_OF(steady), 40);
        CHECK(off.worst <= 25 && off.mean <= 12); /* 53 and 14 when only the sum told */
        CHECK(off.least >= 35);
    }
    for (size_t i = 0; i < BH_COUNT_OF(crowds); i++)
        CHECK(after(load_at_work, crowds[i], waits, BH_COUNT_OF(waits), 40).worst <= 60); /* 160 */
}

/* As on the card: what rests in a turn is not seen, and samples are off by so much. */
static struct world *world_of(uint64_t seed)
{
    struct world *w = world_new(0, 0);
    w->card.by_turns = true;
    w->card.use_off_permille = 15;
    w->card.dice = seed;
    return w;
}

/* Both were seen loading, and one of them uses next to nothing then. What is believed of them may explain the sum and be wrong. */
TEST(a_busy_one_beside_a_small_one_has_the_rest_after_loads)
{
    for (uint64_t seed = 1; seed <= 80; seed++) {
        uint8_t bytes[1024];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct world *w = world_of(seed);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        for (uint32_t i = 0; i < 2; i++)
            card_rest(&w->card, world_add(w, CARD_SPORADIC, 50, 0)->on_card, true);
        load_at_work(w, &c);
        for (uint32_t i = 0; i < 2; i++) {
            card_rest(&w->card, w->at[i].on_card, false);
            card_turn_into(&w->card, w->at[i].on_card, i ? CARD_SPORADIC : CARD_LONG);
        }
        world_run(w, 25000);
        world_mark(w);
        world_run(w, 6000);
        CHECK(world_rate(w, 0) >= 850); /* else 460 to 530, for ever, in one of eight runs */
        world_free(w);
    }
}

/* Those who are known to be small are on the card while the newest rests in its turn, so nothing is missing by what is believed: the busy
 * one had its quarter for ever, and nobody the rest. */
TEST(what_small_ones_leave_that_came_one_after_the_other_is_lent_in_time)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct world *w = world_of(seed);
        (void)world_add(w, CARD_LONG, 50, 0);
        for (uint32_t i = 1; i <= 3; i++) {
            (void)world_add(w, CARD_SPORADIC, 50, 0);
            world_run(w, 3000 * (int64_t)i);
        }
        world_run(w, 60000);
        world_mark(w);
        world_run(w, 20000);
        CHECK(world_share(w, 0) >= 740); /* 130 are theirs, and as much is for changes of the card */
        world_free(w);
    }
}

/* What it leaves is less than the sum of what all do may be off by. */
TEST(what_a_small_one_with_a_small_share_leaves_is_lent_in_time)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world *w = world_of(seed);
        for (uint32_t i = 0; i < 3; i++) {
            (void)world_add(w, i == 2 ? CARD_SPORADIC : CARD_LONG, i == 2 ? 20 : 50, 0);
            world_run(w, 10 * (int64_t)seed);
        }
        world_run(w, 25000);
        world_mark(w);
        world_run(w, 10000);
        CHECK(world_share(w, 0) + world_share(w, 1) >= 890); /* else 828, for ever */
        CHECK(world_rate(w, 2) >= 970);
        world_free(w);
    }
}

/* One of several rests for some steps whenever it has its turn; another has a small share. What the least of the others has, in
 * hundredths of its share. */
static int64_t least_beside(uint32_t n, enum card_kind kind, int steps, uint32_t small)
{
    const uint32_t sly = n / 2;
    struct world *w = world_new(0, 0);
    int64_t least = 1000;
    int rests = 0;
    w->card.by_turns = true;
    for (uint32_t i = 0; i < n; i++)
        (void)world_add(w, i == sly ? CARD_SYNC : kind, i == n - 1 ? small : 10, 0);
    for (int s = 0; s < 3600; s++) {
        if (rests > 0)
            rests--;
        else if (w->out.turns && !w->out.at[sly].paused)
            rests = steps;
        card_rest(&w->card, w->at[sly].on_card, rests > 0);
        world_step(w);
        if (s == 400)
            world_mark(w);
    }
    for (uint32_t i = 0; i < n; i++) {
        const int64_t part = world_rate(w, i) * (10 * (n - 1) + small) / (i == n - 1 ? small : 10) / 10;
        least = i != sly && part < least ? part : least;
    }
    world_free(w);
    return least;
}

/* Turns are taken for it alone, and would end each time and begin again. */
TEST(who_rests_in_each_of_its_turns_starves_nobody)
{
    static const enum card_kind others[] = {CARD_PERSISTENT, CARD_SYNC};
    for (size_t k = 0; k < BH_COUNT_OF(others); k++) {
        for (uint32_t n = 3; n <= 12; n += 3) {
            for (int steps = 1; steps <= 128; steps *= 2) {
                const int64_t equal = least_beside(n, others[k], steps, 10),
                              one = least_beside(n, others[k], steps, 1);
                const int64_t least = equal < one ? equal : one;
                if (least < 55)
                    printf("# %u, resting for %d steps: the least has %" PRId64
                           " in a hundred of its share\n",
                           n, steps, least);
                CHECK(least >= 55);
            }
        }
    }
}

/* A latency tenant, and others that all rest after each piece of work: what the worst of these does in ten seconds, in hundredths of what
 * they do in the mean. */
struct resting {
    uint32_t n, latency_weight;
    int64_t work_us, gap_us;
    uint64_t dice;
};

static int64_t worst_of_resting(const struct resting *r)
{
    struct world *w = world_new(0, 0);
    int64_t least = INT64_MAX, sum = 0;
    w->card.by_turns = true;
    w->card.dice = r->dice;
    world_add(w, CARD_SPORADIC, r->latency_weight, 0)->asked.latency = BH_GOVERN_LATENCY;
    for (uint32_t i = 0; i < r->n; i++)
        w->card.at[world_add(w, CARD_SYNC, 50, 0)->on_card].pattern =
            (struct card_pattern){r->work_us * 1000, r->gap_us * 1000, 0};
    world_run(w, 5000);
    world_mark(w);
    world_run(w, 10000);
    for (uint32_t i = 1; i <= r->n; i++) {
        const int64_t did = w->card.at[w->at[i].on_card].done_ns - w->at[i].mark_ns;
        least = did < least ? did : least;
        sum += did;
    }
    world_free(w);
    return sum ? least * r->n * 100 / sum : 0;
}

/* All that take turns give them up early, each after some work of its own, and pay little for them: so all are owed as much as may be. */
TEST(of_several_that_rest_beside_a_latency_tenant_nobody_starves)
{
    int64_t least = INT64_MAX;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint8_t bytes[64];
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct resting r = {.dice = seed, .latency_weight = 10 + bh_choose(&c, 90)};
        r.n = 3 + bh_choose(&c, 4);
        r.work_us = 5000 + 1000 * (int64_t)bh_choose(&c, 40);
        r.gap_us = 12000 + 1000 * (int64_t)bh_choose(&c, 30);
        const int64_t worst = worst_of_resting(&r);
        CHECK(worst >= 50);
        least = worst < least ? worst : least;
    }
    printf("# in 150 crowds the least has %" PRId64 " in a hundred of the mean\n", least);
}

/* Found in 40,000 of them. One had nothing for ever: in the first it was light and waited for all the looks; in the second their steps
 * fell into those of the turns, and of those owed the same the first of the list came first. */
TEST(of_those_that_rest_in_step_beside_a_latency_tenant_nobody_starves)
{
    static const struct resting found[] = {
        {.n = 5, .latency_weight = 50, .work_us = 14793, .gap_us = 26288, .dice = 56827},
        {.n = 4, .latency_weight = 28, .work_us = 2165, .gap_us = 42784, .dice = 3439},
    };
    for (size_t i = 0; i < BH_COUNT_OF(found); i++)
        CHECK(worst_of_resting(&found[i]) >= 25);
}

/* They loaded, and were light. In slices that are short for the sake of a latency tenant each of them has next to nothing when all begin to
 * work, whether that one has something to do or not. */
TEST(who_has_loaded_beside_an_idle_latency_tenant_has_its_share)
{
    static const int64_t every_ms[] = {0, 10000, 1000, 5};
    for (uint32_t k = 0; k < 4 * BH_COUNT_OF(every_ms); k++) {
        const int64_t period_ms = every_ms[k / 4];
        const uint32_t n = 2 + k % 4 * 2;
        struct world *w = world_new(0, 0);
        uint32_t weights = 0;
        int64_t least = INT64_MAX;
        w->card.by_turns = true;
        w->card.use_off_permille = 15;
        w->card.dice = k;
        for (uint32_t i = 0; i < n; i++)
            weights += world_add(w, CARD_SPORADIC, 20 + 10 * i, 0)->asked.weight;
        world_run(w, 15000);
        struct world_tenant *latency = world_add(w, CARD_SPORADIC, 50, 0);
        latency->asked.latency = BH_GOVERN_LATENCY;
        w->card.at[latency->on_card].pattern.period_ns = period_ms * 1000000;
        card_rest(&w->card, latency->on_card, period_ms == 0);
        for (uint32_t i = 0; i < n; i++)
            card_turn_into(&w->card, w->at[i].on_card, k % 2 ? CARD_LONG : CARD_SYNC);
        world_run(w, 5000);
        world_mark(w);
        world_run(w, 10000);
        for (uint32_t i = 0; i < n; i++) {
            const int64_t part = world_rate(w, i) * weights / w->at[i].asked.weight;
            least = part < least ? part : least;
        }
        const int64_t used = world_used(w);
        printf("# %u of them, the other works every %" PRId64 " ms: %" PRId64
               " permille used, the least has %" PRId64 " of its share\n",
               n, period_ms, used, least);
        world_free(w);
        CHECK(used >= 800);
        CHECK(least >= 750);
    }
}

TEST_MAIN
